"""A clock that a test moves, bytes that are no secret, and a file of governance to share."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME, GovernanceFile
from evidentia.backends.embedded.governance.policy_store import EmbeddedPolicies
from evidentia.contracts.policies import PolicyBody
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from pathlib import Path

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)


class MovedClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> datetime:
        return BEGAN + self.passed

    def elapsed_ns(self) -> int:
        return int(self.passed.total_seconds() * 1_000_000_000)

    def move(self, **span: float) -> None:
        self.passed += timedelta(**span)


class CountedEntropy:
    """Bytes that differ from draught to draught, and are the same in every run of a test."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._drawn = 0

    def take(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(f"{self._seed}{self._drawn}".encode()).digest(count)


def policies_in(directory: Path, *, clock: MovedClock | None = None) -> EmbeddedPolicies:
    """Return the policies of a base on a connection of their own."""
    return EmbeddedPolicies(GovernanceFile(directory / GOVERNANCE_NAME), check=check_policy, clock=clock or MovedClock())


def body(name: str = "guard", **fields: Any) -> PolicyBody:
    """Return a body that can be put in force."""
    return PolicyBody(**{"name": name, "category": "retrieval", "rules": {"min_relevance_score": 0.5}, **fields})
