"""A way in over a real file of tokens, a clock that a test moves, and an audit to read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME, GovernanceFile
from evidentia.backends.embedded.governance.policy_store import EmbeddedPolicies
from evidentia.backends.embedded.governance.token_store import EmbeddedTokens
from evidentia.contracts.control import Role, TokenFacts, TokenLimits
from evidentia.policy.rules import check_policy
from evidentia.serving.identity.admission import Admission, Limiter
from evidentia.serving.operations.api_errors import ApiError
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.testing.virtual_time import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from evidentia.contracts.control import IssuedToken
    from evidentia.serving.identity.admission import Identity


class Asking(NamedTuple):
    """What an operation needs."""

    roles: tuple[Role, ...] = (Role.READER, Role.ADMIN)
    is_base_wide: bool = False


ASK = Asking()


class CountingTokens(EmbeddedTokens):
    """Real tokens that also tell how often the slow hash was taken."""

    hashes = 0

    def _hash(self, secret: str, salt: bytes) -> bytes:
        self.hashes += 1
        return super()._hash(secret, salt)


class Gate:
    """Who lets in, and all that it needs."""

    def __init__(self, directory: Path, *, is_limited: bool = True, **options: Any) -> None:
        self.clock = VirtualClock()
        self.entropy = RepeatableEntropy()
        self.file = GovernanceFile(directory / GOVERNANCE_NAME)
        self.tokens = CountingTokens(self.file, clock=self.clock, entropy=self.entropy)
        self.policies = EmbeddedPolicies(self.file, check=check_policy, clock=self.clock)
        self.limiter = Limiter(clock=self.clock, **options.pop("limits", {}))
        self.admission = Admission(self.tokens, limiter=self.limiter if is_limited else None, **options)

    def issue(self, name: str = "bob", *, roles: tuple[Role, ...] = (Role.READER,), tenant: str = "acme", **more: Any) -> IssuedToken:
        """Make a token."""
        limits = TokenLimits(requests_per_minute=more.pop("rate", None), requests_per_day=more.pop("quota", None))
        return self.tokens.issue(name=name, roles=roles, tenant=tenant, by="test", facts=TokenFacts(limits=limits), **more)

    def admit(self, token: str, needs: Any = ASK, **more: Any) -> Identity:
        """Ask with a token."""
        identity: Identity = run(self.admission.admit(f"Bearer {token}", needs, **more))
        return identity

    def refused(self, token: str, needs: Any = ASK, **more: Any) -> ApiError:
        """Ask with a token in vain."""
        with pytest.raises(ApiError) as raised:
            self.admit(token, needs, **more)
        return raised.value

    def changes(self, tenant: str = "acme") -> list[tuple[str, str, str]]:
        """Return what the audit says."""
        return [(each.kind.value, each.change, each.by) for each in self.policies.audit(tenant=tenant)]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Do something that waits."""
    return asyncio.run(work)


def code_of(refusal: ApiError) -> tuple[int, str]:
    """Return what a refusal says to programs."""
    return refusal.status, refusal.fault.code
