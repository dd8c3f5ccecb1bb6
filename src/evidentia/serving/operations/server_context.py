"""A plane at work: its parts, the base it serves, the runs that are open in it, and who is let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from starlette.concurrency import run_in_threadpool

from evidentia.contracts.control import NO_FACTS
from evidentia.contracts.ports import Clock, Entropy, Governor, PolicyStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.control import AuditEntry, AuditKind, IssuedToken, PushResult, Role, SecretKept, TokenFacts, TokenId, TokenInfo
    from evidentia.contracts.policies import StoredPolicy
    from evidentia.governance.log_scan import KeptLogs
    from evidentia.serving.identity.admission import Admission
    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
    from evidentia.serving.operations.open_runs import OpenRuns
    from evidentia.serving.operations.served_base import ServedBase


class Forwarding(Protocol):
    """Hands what only one process may do to that process."""

    async def forward(self, endpoint: Endpoint, request: OperationRequest) -> Reply:
        """Return what the writing process answers; its refusals are raised here."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What every endpoint is handed."""

    parts: ControlParts
    served_base: ServedBase
    runs: OpenRuns
    admission: Admission
    writer: Forwarding | None = None
    """Who writes; None when this process does."""
    watch: Callable[[Endpoint, Coroutine[None, None, Reply]], Awaitable[Reply]] | None = None
    """What stands around each operation, such as what counts them; None for nothing."""


# --- parts ---
# What the control plane is made of: ports, and the few further powers it needs.


class PolicyKeeper(PolicyStore, Protocol):
    """A store of policies that can also take several at once, and tells everything that was changed."""

    def versions(self, name: str, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return every version of a policy, the oldest first, also when it was removed."""
        ...

    def push(
        self,
        bodies: Sequence[Mapping[str, Any]],  # Any: whatever was sent; that is what is checked
        *,
        tenant: str,
        by: str,
        is_dry: bool = False,
    ) -> Sequence[PushResult]:
        """Put bodies in force by their names, all or none; a dry run changes nothing."""
        ...

    def audit(self, *, tenant: str, after: int = 0, limit: int = 100) -> Sequence[AuditEntry]:
        """Return who changed which policy, token or secret, oldest first."""
        ...

    def note(self, kind: AuditKind, change: str, *, subject: str, name: str, tenant: str, by: str) -> None:
        """Write a line of the audit about something that is kept elsewhere: documents, sources, the base, sessions."""
        ...


class TokenKeeper(Protocol):
    """Issues, verifies and revokes bearer tokens."""

    def issue(
        self,
        *,
        name: str,
        roles: Sequence[Role],
        tenant: str,
        by: str,
        expires_at: datetime | None = None,
        facts: TokenFacts = NO_FACTS,
    ) -> IssuedToken:
        """Make a token, and return it with its secret, which nobody can read again."""
        ...

    def recall(self, token: str) -> TokenInfo | None:
        """Return a token that was verified a moment ago, without waiting; None when it has to be verified."""
        ...

    def verify(self, token: str, *, before_hash: Callable[[], None] | None = None) -> TokenInfo | None:
        """Return whose token it is; None when it is unknown, wrong, expired or revoked. `before_hash` may raise to spare a slow hash."""
        ...

    def standing(self, token_id: TokenId) -> TokenInfo | None:
        """Return the token of an id; None when it is unknown, expired or revoked."""
        ...

    def tokens(self, *, tenant: str | None = None) -> Sequence[TokenInfo]:
        """Return every token without its secret, by the time it was made."""
        ...

    def revoke(self, token_id: TokenId, *, tenant: str | None, by: str) -> TokenInfo:
        """Make a token worthless from now on."""
        ...


class SecretKeeper(Protocol):
    """Keeps secrets that nobody reads back."""

    def put(self, name: str, value: str, *, tenant: str, by: str) -> SecretKept:
        """Keep a secret in place of what had its name."""
        ...

    def names(self, *, tenant: str) -> Sequence[str]:
        """Return what the secrets of a tenant are called, in order."""
        ...

    def kept(self, name: str, *, tenant: str) -> SecretKept:
        """Return since when a secret is kept, or raise NotFoundError."""
        ...

    def remove(self, name: str, *, tenant: str, by: str) -> None:
        """Forget a secret."""
        ...


class ControlParts(Protocol):
    """The parts of a plane."""

    @property
    def directory(self) -> Path:
        """Return where the base is."""
        ...

    @property
    def policies(self) -> PolicyKeeper:
        """Return what keeps policies."""
        ...

    @property
    def log(self) -> KeptLogs:
        """Return the decision log."""
        ...

    @property
    def tokens(self) -> TokenKeeper:
        """Return what knows tokens."""
        ...

    @property
    def secrets(self) -> SecretKeeper:
        """Return what keeps secrets."""
        ...

    @property
    def clock(self) -> Clock:
        """Return what tells the time."""
        ...

    @property
    def entropy(self) -> Entropy:
        """Return what gives unpredictable bytes."""
        ...

    @property
    def version(self) -> str:
        """Return the version of the plane."""
        ...

    def governor_of(self, tenant: str) -> Governor:
        """Return what starts the runs of a tenant; its judge has that tenant's keys."""
        ...


# --- audit ---
# What admins did, written into the audit.


async def write_audit(context: ServerContext, request: OperationRequest, kind: AuditKind, change: str, *, subject: str) -> None:
    """Write what whoever asks did to what."""
    await run_in_threadpool(context.parts.policies.note, kind, change, subject=subject, name=subject, tenant=request.tenant, by=request.by)
