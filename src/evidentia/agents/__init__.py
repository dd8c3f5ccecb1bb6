"""What does an agent call?

Sessions, observation, the agent protocol, citations and the self-check. Public names are imported on first use, so that importing
the room stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evidentia.agents.approval import ApprovalDecision, auto_approve, auto_deny, prompt_approval
    from evidentia.agents.context import Context
    from evidentia.agents.current import get_current_context
    from evidentia.agents.decorators import decision, reasoning, retrieval, step, tool
    from evidentia.agents.enforcement import PolicyCheck
    from evidentia.agents.errors import InvalidRecordError
    from evidentia.agents.observing import observe
    from evidentia.agents.protocol import ProtocolSession, lint_trace
    from evidentia.agents.retrying import retry
    from evidentia.agents.tools import Toolbox
    from evidentia.contracts.errors import PolicyInvalidError, PolicyViolationError

__all__ = [
    "ApprovalDecision",
    "Context",
    "InvalidRecordError",
    "PolicyCheck",
    "PolicyInvalidError",
    "PolicyViolationError",
    "ProtocolSession",
    "Toolbox",
    "auto_approve",
    "auto_deny",
    "decision",
    "get_current_context",
    "lint_trace",
    "observe",
    "prompt_approval",
    "reasoning",
    "retrieval",
    "retry",
    "step",
    "tool",
]

_EXPORTS = {
    "ApprovalDecision": "evidentia.agents.approval",
    "Context": "evidentia.agents.context",
    "InvalidRecordError": "evidentia.agents.errors",
    "PolicyCheck": "evidentia.agents.enforcement",
    "PolicyInvalidError": "evidentia.contracts.errors",
    "PolicyViolationError": "evidentia.contracts.errors",
    "ProtocolSession": "evidentia.agents.protocol",
    "Toolbox": "evidentia.agents.tools",
    "auto_approve": "evidentia.agents.approval",
    "auto_deny": "evidentia.agents.approval",
    "decision": "evidentia.agents.decorators",
    "get_current_context": "evidentia.agents.current",
    "lint_trace": "evidentia.agents.protocol",
    "observe": "evidentia.agents.observing",
    "prompt_approval": "evidentia.agents.approval",
    "reasoning": "evidentia.agents.decorators",
    "retrieval": "evidentia.agents.decorators",
    "retry": "evidentia.agents.retrying",
    "step": "evidentia.agents.decorators",
    "tool": "evidentia.agents.decorators",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name == "errors":
        # `import evidentia.agents as sdk; sdk.errors.PolicyViolationError` works without importing the module by its name.
        return import_module("evidentia.agents.errors")
    if name not in _EXPORTS:
        problem = f"module 'evidentia.agents' has no attribute {name!r}"
        raise AttributeError(problem)
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
