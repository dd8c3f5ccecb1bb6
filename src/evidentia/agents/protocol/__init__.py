"""The agent protocol for one question: classify it, prepare queries, check calls, judge results, audit the reply, lint traces.

What is said of a question and a query are rules over words, measured in docs/protocol.md. What is allowed is the profile's word.
"""

from __future__ import annotations

from evidentia.agents.protocol.lint import lint_trace
from evidentia.agents.protocol.queries import prepare_query
from evidentia.agents.protocol.session import ProtocolSession
from evidentia.agents.protocol.sufficiency import shortfalls
from evidentia.agents.protocol.tasks import breadth, classify_task, explicit_file, question_type
from evidentia.agents.protocol.tools import role_of

__all__ = [
    "ProtocolSession",
    "breadth",
    "classify_task",
    "explicit_file",
    "lint_trace",
    "prepare_query",
    "question_type",
    "role_of",
    "shortfalls",
]
