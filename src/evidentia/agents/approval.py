"""Somebody decides whether a call that a policy stopped may go on: what they say, and three that always say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.errors import PolicyViolationError

    OnPolicyBlock = Callable[[PolicyViolationError], "ApprovalDecision"]

_NS_PER_S = 1_000_000_000
_YES = frozenset({"y", "yes"})


class ApprovalDecision(msgspec.Struct, frozen=True):
    """What somebody said about a call that was stopped; one that timed out is not approved."""

    approved: bool
    approver: str = ""
    timed_out: bool = False
    elapsed_seconds: float = 0.0

    @property
    def lets_go_on(self) -> bool:
        """Tell whether the call may go on."""
        return self.approved and not self.timed_out


def auto_approve(error: PolicyViolationError) -> ApprovalDecision:
    """Let every stopped call go on; for tests and trials."""
    del error
    return ApprovalDecision(approved=True, approver="auto_approve")


def auto_deny(error: PolicyViolationError) -> ApprovalDecision:
    """Let no stopped call go on."""
    del error
    return ApprovalDecision(approved=False, approver="auto_deny")


def prompt_approval(error: PolicyViolationError) -> ApprovalDecision:
    """Ask at the terminal; anything but yes is no, and so is a terminal that nobody sits at."""
    clock = SystemClock()
    began = clock.elapsed_ns()
    shown = str(error).encode("unicode_escape").decode()
    try:
        reply = input(f"A policy stopped this call: {shown}\nLet it go on? [y/N] ")
    except EOFError:
        reply = ""
    elapsed = (clock.elapsed_ns() - began) / _NS_PER_S
    return ApprovalDecision(approved=reply.strip().lower() in _YES, approver="terminal", elapsed_seconds=elapsed)
