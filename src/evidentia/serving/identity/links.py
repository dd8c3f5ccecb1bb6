"""One-time links into the dashboard: a code that opens once, within an hour, as the holder of a named token."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.concurrency import run_in_threadpool

from evidentia.serving.identity.admission import unauthorized
from evidentia.serving.identity.sessions import note_session

if TYPE_CHECKING:
    from evidentia.contracts.control import TokenId
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.serving.identity.admission import Admission, Identity
    from evidentia.serving.identity.sessions import AuditWriter
    from evidentia.serving.operations.api_errors import ApiError

HOLDS_S: Final = 3_600
MAX_LINKS: Final = 1_000
_CODE_BYTES: Final = 32
_MAX_LENGTH: Final = 100
_SECOND_NS: Final = 1_000_000_000


class _Waiting(NamedTuple):
    hashed: str
    token_id: TokenId
    until_ns: int


class Links:
    """The codes that wait to be used, in memory; of each the hash is kept. For one event loop."""

    def __init__(
        self, admission: Admission, *, notes: AuditWriter, clock: Clock, entropy: Entropy, holds_s: int = HOLDS_S, most: int = MAX_LINKS
    ) -> None:
        self._admission = admission
        self._notes = notes
        self._clock = clock
        self._entropy = entropy
        self._holds_ns = holds_s * _SECOND_NS
        self._most = most
        self._waiting: dict[str, _Waiting] = {}

    def make(self, token_id: TokenId) -> str:
        """Return a code for whoever is to come in as the holder of a token."""
        code = new_code(self._entropy)
        self.expect(hash_of(code), token_id=token_id)
        return code

    def expect(self, hashed: str, *, token_id: TokenId) -> None:
        """Take a code that was made elsewhere, by its hash."""
        if len(self._waiting) >= self._most:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[hashed] = _Waiting(hashed, token_id, self._clock.elapsed_ns() + self._holds_ns)

    async def redeem(self, code: str, *, client: str | None = None) -> Identity:
        """Return whose link a code is; it is worthless from now on.

        Raises:
            Refusal: 401 for a code that is unknown, used or too old, or whose token does not hold; 429 for too many of those.
        """
        hashed = hash_of(code[: _MAX_LENGTH + 1])
        waiting = self._waiting.pop(hashed, None)  # before anything is waited for: of two at once, one comes too late
        if waiting is None or not hmac.compare_digest(waiting.hashed, hashed) or waiting.until_ns <= self._clock.elapsed_ns():
            raise self._worthless(client)
        identity = await self._admission.holder(waiting.token_id)
        if identity is None:
            raise self._worthless(client)
        await run_in_threadpool(note_session, self._notes, "link used", identity.token)
        return identity

    def _worthless(self, client: str | None) -> ApiError:
        self._admission.wrong(client)
        return unauthorized("invalid_link", "the link was used, is too old, or was never made", challenge="")

    def __repr__(self) -> str:
        """Return how many wait, and nothing about them."""
        return f"Links(waiting={len(self._waiting)})"


def new_code(entropy: Entropy) -> str:
    """Return a code that nobody guesses."""
    return base64.urlsafe_b64encode(entropy.take(_CODE_BYTES)).rstrip(b"=").decode()


def hash_of(code: str) -> str:
    """Return what is kept of a code."""
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()
