"""Who is let in to do what: a credential that holds, a role that the operation asks for, and the right tenant."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from starlette.concurrency import run_in_threadpool

from evidentia.contracts.access import DEFAULT_TENANT, Principal
from evidentia.contracts.control import SIGNED_PREFIX, TokenId, TokenInfo
from evidentia.foundation.offload import ThreadPoolBlockingExecutor
from evidentia.foundation.rate_limit import MAX_KEYS, MINUTE_NS, SECOND_NS, Rate, RateLimiter
from evidentia.serving.identity.callers import Grants
from evidentia.serving.identity.pools import Pools
from evidentia.serving.operations.api_errors import FORBIDDEN, TOO_MANY, UNAUTHORIZED, ApiError
from evidentia.serving.operations.request_facts import note_token
from evidentia.wiring.governance_runtime import open_usage, signed_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import ServerSettings
    from evidentia.serving.operations.endpoint import Needs
    from evidentia.wiring.governance_runtime import GovernanceRuntime, TokenStore


SCHEME: Final = "bearer"
_SIGNED_DOTS: Final = 2
MAX_VERIFYING: Final = 2
"""Credentials that are verified at once."""


class Identity(NamedTuple):
    """Whoever was let in: the token, and who its holder is to the base."""

    token: TokenInfo
    principal: Principal


class SignedTokens(Protocol):
    """Verifies tokens that an identity provider signed."""

    def recall(self, token: str) -> TokenInfo | None:
        """Return what was verified a moment ago, without waiting; None when it has to be verified."""
        ...

    def verify(self, token: str) -> TokenInfo | None:
        """Return whose token it is; None when anything about it is wrong. It never raises."""
        ...

    def holds(self, token: TokenInfo) -> bool:
        """Tell whether a token that was verified before would be so now."""
        ...


class Admission:
    """Lets in, or refuses. One for all doors.

    Without a `limiter` nobody is told to wait; without `signed` only the base's own tokens are taken.
    """

    def __init__(
        self,
        tokens: TokenStore,
        *,
        grants: Grants | None = None,
        limiter: Limiter | None = None,
        signed: SignedTokens | None = None,
        pools: Pools | None = None,
    ) -> None:
        self.pools = pools or Pools()
        """What those who were let in share."""
        # A slow hash takes 16 MiB, which its thread keeps: few threads, and none of those that answer requests.
        self._verifying = ThreadPoolBlockingExecutor(max_threads=MAX_VERIFYING)
        self._tokens = tokens
        self._grants = grants or Grants()
        self._limiter = limiter
        self._signed = signed

    async def admit(self, authorization: str, needs: Needs, *, client: str | None = None) -> Identity:
        """Return who asks by the value of an Authorization header, when they may do this; `client` is the address they ask from."""
        identity = await self.identify(credential_in(authorization), client=client)
        self.allow(identity, needs)
        return identity

    async def identify(self, credential: str, *, client: str | None = None) -> Identity:
        """Return who holds a credential; nothing is counted against their limits."""
        if not credential:
            raise unauthorized("missing_token", "there is no bearer token", challenge="")
        # What was verified a moment ago is at hand; anything else may take a slow hash, which is no work for the event loop.
        token = self._recalled(credential) or await self._verified(credential, client)
        if token is None:
            raise unauthorized("invalid_token", "the token is unknown, expired or revoked", challenge=', error="invalid_token"')
        note_token(token.token_id)
        return Identity(token, self._grants.principal_of(token))

    def allow(self, identity: Identity, needs: Needs) -> None:
        """Count a request against the limits of a token, then refuse what its role or tenant does not allow."""
        if self._limiter is not None:
            self._limiter.count(identity.token)
        self.check(identity, needs)

    def check(self, identity: Identity, needs: Needs) -> None:
        """Refuse what the role or the tenant of a token does not allow."""
        token = identity.token
        note_token(token.token_id)
        if not set(token.roles) & set(needs.roles):
            needed = " or ".join(role.value for role in needs.roles)
            raise ApiError(FORBIDDEN, "wrong_role", f"this needs the role {needed}", hint="use a token that has the role")
        if needs.is_base_wide and token.tenant != DEFAULT_TENANT:
            message = f"this is about the whole base, which tokens of the tenant '{DEFAULT_TENANT}' are for"
            raise ApiError(FORBIDDEN, "wrong_tenant", message, hint=f"use a token of the tenant '{DEFAULT_TENANT}'")

    async def holder(self, token_id: TokenId) -> Identity | None:
        """Return who holds the token of an id, as it stands now; None when it is unknown, expired or revoked."""
        token = await run_in_threadpool(self._tokens.standing, token_id)
        return None if token is None else Identity(token, self._grants.principal_of(token))

    async def renewed(self, identity: Identity) -> Identity | None:
        """Return an identity as it stands now; a signed token cannot be taken back, so its own stays while its key is the provider's."""
        token_id = identity.token.token_id
        if not token_id.startswith(SIGNED_PREFIX):
            return await self.holder(token_id)
        return identity if self._signed is not None and await run_in_threadpool(self._signed.holds, identity.token) else None

    def wrong(self, client: str | None) -> None:
        """Count something that did not hold against an address; after too many it is told to wait."""
        if self._limiter is not None:
            self._limiter.wrong(client)

    def sign_in(self, identity: Identity, *, client: str | None) -> None:
        """Count a credential that begins a session against its token and its address; after too many, both are told to wait."""
        if self._limiter is not None:
            self._limiter.sign_in(identity.token.token_id, client)

    def close(self) -> None:
        """Write down what was counted."""
        self._verifying.shutdown()
        if self._limiter is not None:
            self._limiter.close()

    def _recalled(self, credential: str) -> TokenInfo | None:
        if self._signed is not None and is_signed(credential):
            return self._signed.recall(credential)
        return self._tokens.recall(credential)

    async def _verified(self, credential: str, client: str | None) -> TokenInfo | None:
        """Return whose a credential is that is not at hand. What does not hold counts against the address it came from."""
        if self._signed is not None and is_signed(credential):
            token = await run_in_threadpool(self._signed.verify, credential)
        else:
            token = await self._verified_own(credential, client)
        if token is None:
            self.wrong(client)
        return token

    async def _verified_own(self, credential: str, client: str | None) -> TokenInfo | None:
        """Return whose a token of the base is. A slow hash is counted before it is taken, and forgiven when the token holds."""
        limiter = self._limiter
        if limiter is None:
            return await self._verifying.run(lambda: self._tokens.verify(credential))
        has_hashed = False

        def before_hash() -> None:
            nonlocal has_hashed
            limiter.begin_hash(client)
            has_hashed = True

        token = await self._verifying.run(lambda: self._tokens.verify(credential, before_hash=before_hash))
        if token is not None and has_hashed:
            limiter.forgive_hash(client)
        return token


def credential_in(authorization: str) -> str:
    """Return what stands after `Bearer` in an Authorization header; empty when it is something else."""
    scheme, _, credential = authorization.partition(" ")
    return credential.strip() if scheme.lower() == SCHEME else ""


def is_signed(credential: str) -> bool:
    """Tell whether a credential has the three parts of a JWT; the base's own tokens have no dots."""
    return credential.count(".") == _SIGNED_DOTS


def unauthorized(code: str, message: str, *, challenge: str) -> ApiError:
    """Return the refusal for a credential that is missing or does not hold."""
    headers = {"www-authenticate": f'Bearer realm="evidentia"{challenge}'}
    hint = "send 'Authorization: Bearer TOKEN'; `evidentia tokens add` makes one"
    return ApiError(UNAUTHORIZED, code, message, hint=hint, headers=headers)


# --- admission by the settings of a served base ---


class LooseParts(NamedTuple):
    """The parts of a way in, where there is no control that has them."""

    directory: Path
    tokens: TokenStore
    clock: Clock


def make_admission(
    parts: GovernanceRuntime | LooseParts, settings: ServerSettings, *, workers: int = 1, grants: Grants | None = None
) -> Admission:
    """Return who lets in, in one of so many processes; whoever asks for it closes it when the last request was answered.

    Raises:
        InvalidFieldError: The settings about signed tokens are not complete.
    """
    signed = signed_tokens(settings.jwt, directory=parts.directory, clock=parts.clock)
    limiter = Limiter(
        clock=parts.clock,
        requests_per_minute=settings.requests_per_minute,
        requests_per_day=settings.requests_per_day,
        usage=open_usage(parts.directory, clock=parts.clock),
        workers=workers,
    )
    return Admission(parts.tokens, grants=grants, limiter=limiter, signed=signed, pools=Pools(share_percent=settings.share_percent))


# --- rate limits and quotas of tokens, and how often an address may show a credential that does not hold ---

WRONG: Final = Rate(permits=30, burst=60)
"""Credentials that do not hold, for each address: 60 at once, then one in two seconds. A slow hash takes about 40 ms."""
SIGN_IN: Final = Rate(permits=20, burst=20)
"""Sessions that a token begins: 20 at once, then one in three seconds; an address may begin as many as it may be wrong."""
MAX_BURST: Final = 10_000
"""However much a minute allows, no more than this at once."""
_NETWORK_BITS: Final = 64
"""Of an IPv6 address: whoever has one has all that begin like it."""


class Usage(Protocol):
    """Counts what is asked in a day (UTC), across processes and restarts."""

    def spend(self, token_id: TokenId, *, most: int) -> bool:
        """Count one request of today and return True; False when there were as many as may be."""
        ...

    def close(self) -> None:
        """Write down what is not written yet."""
        ...


class Limiter:
    """Says 429 before any work is done. Thread safe; in each of several `workers` for its share of what a minute allows.

    The numbers are those of a token that has none of its own; 0 is as much as it likes. Without a `usage` there are no quotas.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        requests_per_minute: int = 0,
        requests_per_day: int = 0,
        usage: Usage | None = None,
        workers: int = 1,
        max_keys: int = MAX_KEYS,
    ) -> None:
        self._clock = clock
        self._per_minute = requests_per_minute
        self._per_day = requests_per_day
        self._usage = usage
        self._workers = workers
        self._tokens = RateLimiter[str](clock, period_ns=MINUTE_NS * workers, max_keys=max_keys)
        self._wrong = RateLimiter[str](clock, period_ns=MINUTE_NS, max_keys=max_keys)
        self._sign_ins = RateLimiter[tuple[str, str]](clock, period_ns=MINUTE_NS, max_keys=max_keys)
        self._hashes = RateLimiter[str](clock, period_ns=MINUTE_NS, max_keys=max_keys)
        """Apart from what is wrong without a hash, so that nobody is kept out by garbage from the address they share."""

    def count(self, token: TokenInfo) -> None:
        """Count one request of a token.

        Raises:
            ApiError: 429 `rate_limited` or `quota_exceeded`; `retry-after` says in how many seconds to come back.
        """
        limits = token.facts.limits
        per_minute = limits.requests_per_minute or self._per_minute
        wait_ns = self._tokens.take(token.token_id, share_of(per_minute, workers=self._workers)) if per_minute else 0
        if wait_ns:
            message = f"the token may ask {per_minute} times a minute"
            raise _too_many("rate_limited", message, hint="wait as long as retry-after says", wait_ns=wait_ns)
        per_day = limits.requests_per_day or self._per_day
        if per_day and self._usage is not None and not self._usage.spend(token.token_id, most=per_day):
            hint = "come back after midnight UTC, or ask an admin for a token with a larger quota"
            raise _too_many("quota_exceeded", f"the token may ask {per_day} times a day", hint=hint, wait_ns=self._until_midnight_ns())

    def wrong(self, client: str | None) -> None:
        """Count a credential that did not hold against the address it came from.

        Raises:
            ApiError: 429 `too_many_attempts`, in the place of saying once more that it does not hold.
        """
        _refuse_guesses(self._wrong.take(network_of(client), WRONG))

    def sign_in(self, token_id: TokenId, client: str | None) -> None:
        """Count the beginning of a session, which is written into the audit, against the address and the token.

        Raises:
            ApiError: 429 `too_many_attempts`.
        """
        wait_ns = self._sign_ins.take(("address", network_of(client)), WRONG) or self._sign_ins.take(("token", token_id), SIGN_IN)
        if wait_ns:
            message = "too many sessions were begun with this token or from this address"
            raise _too_many("too_many_attempts", message, hint="wait as long as retry-after says", wait_ns=wait_ns)

    def begin_hash(self, client: str | None) -> None:
        """Count a slow hash against the address that asks for it, before it is taken.

        Raises:
            ApiError: 429 `too_many_attempts`.
        """
        _refuse_guesses(self._hashes.take(network_of(client), WRONG))

    def forgive_hash(self, client: str | None) -> None:
        """Take back what `begin_hash` counted, since the credential holds."""
        self._hashes.give_back(network_of(client))

    def close(self) -> None:
        """Write down what is not written yet."""
        if self._usage is not None:
            self._usage.close()

    def _until_midnight_ns(self) -> int:
        now = self._clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return (midnight - now) // timedelta(microseconds=1) * 1_000


def share_of(per_minute: int, *, workers: int = 1) -> Rate:
    """Return one worker's share of so many a minute; a minute's share may come at once, one at least."""
    return Rate(per_minute, max(1, min(per_minute // workers, MAX_BURST)))


def _too_many(code: str, message: str, *, hint: str, wait_ns: int) -> ApiError:
    return ApiError(TOO_MANY, code, message, hint=hint, headers={"retry-after": str(max(1, -(-wait_ns // SECOND_NS)))})


def _refuse_guesses(wait_ns: int) -> None:
    if wait_ns:
        message = "too many credentials that do not hold came from this address"
        raise _too_many("too_many_attempts", message, hint="check the token, and wait as long as retry-after says", wait_ns=wait_ns)


def network_of(client: str | None) -> str:
    """Return what tells one client from another; everybody without an address is one."""
    try:
        address = ipaddress.ip_address((client or "").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(int(address) >> _NETWORK_BITS)
    return str(address)
