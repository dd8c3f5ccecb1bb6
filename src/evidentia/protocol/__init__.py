"""How should an agent retrieve, cite and check itself?

The agent protocol for one question: classify it, prepare queries, check calls, judge results, audit the reply, lint traces.

What is said of a question and a query are rules over words, measured in docs/protocol.md. What is allowed is the profile's word.
"""

from __future__ import annotations

from evidentia.protocol.classification import breadth, classify_task, explicit_file, question_type, role_of
from evidentia.protocol.queries import prepare_query
from evidentia.protocol.session import ProtocolSession, lint_trace
from evidentia.protocol.sufficiency import shortfalls

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
