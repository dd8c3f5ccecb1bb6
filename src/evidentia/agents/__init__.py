"""What does an agent call?

Runs, their records, observation and enforcement. Public names are imported on first use, so that importing
the room stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evidentia.agents.context import Context
    from evidentia.agents.current_context import get_current_context
    from evidentia.agents.decorators import decision, observe, reasoning, retrieval, retry, step, tool
    from evidentia.agents.enforcement import ApprovalDecision, PolicyCheck, auto_approve, auto_deny, prompt_approval
    from evidentia.agents.errors import InvalidRecordError
    from evidentia.contracts.errors import PolicyInvalidError, PolicyViolationError

__all__ = [
    "ApprovalDecision",
    "Context",
    "InvalidRecordError",
    "PolicyCheck",
    "PolicyInvalidError",
    "PolicyViolationError",
    "auto_approve",
    "auto_deny",
    "decision",
    "get_current_context",
    "observe",
    "prompt_approval",
    "reasoning",
    "retrieval",
    "retry",
    "step",
    "tool",
]

_HOMES = {
    "evidentia.agents.context": ("Context",),
    "evidentia.agents.current_context": ("get_current_context",),
    "evidentia.agents.decorators": ("decision", "observe", "reasoning", "retrieval", "retry", "step", "tool"),
    "evidentia.agents.enforcement": ("ApprovalDecision", "PolicyCheck", "auto_approve", "auto_deny", "prompt_approval"),
    "evidentia.agents.errors": ("InvalidRecordError",),
    "evidentia.contracts.errors": ("PolicyInvalidError", "PolicyViolationError"),
}
_EXPORTS = {name: home for home, names in _HOMES.items() for name in names}


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
