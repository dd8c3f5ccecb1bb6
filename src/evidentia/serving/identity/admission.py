"""Who is let in to do what: a credential that holds, a role that the operation asks for, and the right tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from starlette.concurrency import run_in_threadpool

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import SIGNED_PREFIX
from evidentia.serving.identity.callers import Grants
from evidentia.serving.operations.api_errors import FORBIDDEN, UNAUTHORIZED, ApiError

if TYPE_CHECKING:
    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import TokenId, TokenInfo
    from evidentia.serving.identity.limits import Limiter
    from evidentia.serving.operations.endpoint import Needs
    from evidentia.serving.operations.parts import TokenKeeper

SCHEME: Final = "bearer"
_SIGNED_DOTS: Final = 2


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


class Admission:
    """Lets in, or refuses. One for all doors.

    Without a `limiter` nobody is told to wait; without `signed` only the base's own tokens are taken.
    """

    def __init__(
        self,
        tokens: TokenKeeper,
        *,
        grants: Grants | None = None,
        limiter: Limiter | None = None,
        signed: SignedTokens | None = None,
    ) -> None:
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
        return Identity(token, self._grants.principal_of(token))

    def allow(self, identity: Identity, needs: Needs) -> None:
        """Count a request against the limits of a token, then refuse what its role or tenant does not allow."""
        if self._limiter is not None:
            self._limiter.count(identity.token)
        self.check(identity, needs)

    def check(self, identity: Identity, needs: Needs) -> None:
        """Refuse what the role or the tenant of a token does not allow."""
        token = identity.token
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
        """Return an identity as it stands now; a signed token cannot be taken back, so its own stays until it expires."""
        token_id = identity.token.token_id
        return identity if token_id.startswith(SIGNED_PREFIX) else await self.holder(token_id)

    def wrong(self, client: str | None) -> None:
        """Count something that did not hold against an address; after too many it is told to wait."""
        if self._limiter is not None:
            self._limiter.wrong(client)

    def close(self) -> None:
        """Write down what was counted."""
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
            return await run_in_threadpool(self._tokens.verify, credential)
        has_hashed = False

        def before_hash() -> None:
            nonlocal has_hashed
            limiter.begin_hash(client)
            has_hashed = True

        token = await run_in_threadpool(self._tokens.verify, credential, before_hash=before_hash)
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
