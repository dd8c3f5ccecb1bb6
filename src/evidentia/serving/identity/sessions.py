"""Who is signed in to the dashboard: sessions in memory, each bound to a token. Nothing of a cookie is kept but its hash."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from starlette.concurrency import run_in_threadpool

from evidentia.contracts.control import AuditKind, TokenId, TokenInfo
from evidentia.foundation.lru import LruCache
from evidentia.serving.identity.admission import Admission, Identity, unauthorized

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.serving.operations.api_errors import ApiError


IDLE_S: Final = 3_600
"""A session of which nothing is heard for so long ends, however long it might have lasted."""
RECHECK_NS: Final = 2_000_000_000
"""For how long a session is believed without asking whether its token still holds."""
MAX_SESSIONS: Final = 10_000
MAX_OF_ONE: Final = 20
"""Sessions of one token; another one ends the one that was not used for longest."""
_SECRET_BYTES: Final = 32
_MAX_LENGTH: Final = 100
_SECOND_NS: Final = 1_000_000_000


class AuditWriter(Protocol):
    """Writes lines of the audit."""

    def note(self, kind: AuditKind, change: str, *, subject: str, name: str, tenant: str, by: str) -> None:
        """Write who did what to what."""
        ...


class Session:
    """Somebody who is signed in; the forms they are shown carry `csrf`."""

    __slots__ = ("csrf", "identity")

    def __init__(self, identity: Identity, *, csrf: str) -> None:
        self.identity = identity
        self.csrf = csrf

    def accepts(self, csrf: str) -> bool:
        """Tell whether a form was made for this session."""
        return hmac.compare_digest(csrf.encode(errors="surrogatepass"), self.csrf.encode())

    def __repr__(self) -> str:
        """Return whose it is, and nothing that would let anybody in."""
        return f"Session(token_id={self.identity.token.token_id!r})"


class SignedIn:
    """A session that was just made, and the value of its cookie, which is kept nowhere."""

    __slots__ = ("cookie", "max_age_s", "session")

    def __init__(self, session: Session, *, cookie: str, max_age_s: int) -> None:
        self.session = session
        self.cookie = cookie
        self.max_age_s = max_age_s

    def __repr__(self) -> str:
        """Return whose it is, and nothing that would let anybody in."""
        return f"SignedIn({self.session!r})"


@dataclass(slots=True)
class _Kept:
    session: Session
    opened_ns: int
    seen_ns: int
    checked_ns: int


class SessionStore:
    """The sessions of one process, for one event loop.

    A token that is revoked or expires ends its sessions within `RECHECK_NS`.
    """

    def __init__(
        self,
        admission: Admission,
        *,
        notes: AuditWriter,
        clock: Clock,
        entropy: Entropy,
        session_s: int,
        idle_s: int = IDLE_S,
        most: int = MAX_SESSIONS,
    ) -> None:
        self._admission = admission
        self._notes = notes
        self._clock = clock
        self._entropy = entropy
        self._session_s = session_s
        self._idle_s = min(idle_s, session_s)
        self._most = most
        self._kept: dict[bytes, _Kept] = {}
        """By the hash of the cookie, the one that was used last at the end."""

    async def open(self, identity: Identity, *, replacing: str = "") -> SignedIn:
        """Sign somebody in under a new cookie; the session of the cookie they came with, if any, ends."""
        await self._note("signed in", identity.token)
        cookie, csrf = self._secret(), self._secret()
        session = Session(identity, csrf=csrf)
        self._kept.pop(_hash(replacing), None)
        self._make_room(identity.token)
        now = self._clock.elapsed_ns()
        self._kept[_hash(cookie)] = _Kept(session, now, now, now)
        return SignedIn(session, cookie=cookie, max_age_s=self._session_s)

    async def find(self, cookie: str, *, is_use: bool = True) -> Session | None:
        """Return the session of a cookie; None when there is none, or none any more.

        Without `is_use` nothing is heard of it by that: a page that keeps itself up to date does not keep its session alive.
        """
        key = _hash(cookie)
        kept = self._kept.get(key)
        if kept is None or len(cookie) > _MAX_LENGTH:
            return None
        if not self._lasts(kept):
            self._drop(key, kept)
            return None
        if self._clock.elapsed_ns() - kept.checked_ns >= RECHECK_NS and not await self._recheck(key, kept):
            return None
        if self._kept.get(key) is not kept:  # it was closed meanwhile
            return None
        if is_use:
            self._kept[key] = self._kept.pop(key)
            kept.seen_ns = self._clock.elapsed_ns()
        return kept.session

    async def close(self, cookie: str) -> bool:
        """Sign somebody out; tell whether they were in."""
        kept = self._kept.pop(_hash(cookie), None)
        if kept is None:
            return False
        await self._note("signed out", kept.session.identity.token)
        return True

    def __len__(self) -> int:
        """Return how many sessions are kept."""
        return len(self._kept)

    def _lasts(self, kept: _Kept) -> bool:
        now = self._clock.elapsed_ns()
        is_young = now - kept.opened_ns < self._session_s * _SECOND_NS and now - kept.seen_ns < self._idle_s * _SECOND_NS
        expires_at = kept.session.identity.token.expires_at
        return is_young and (expires_at is None or self._clock.now() < expires_at)

    async def _recheck(self, key: bytes, kept: _Kept) -> bool:
        """Bring the identity up to date, and tell whether the token still holds."""
        at_ns = self._clock.elapsed_ns()
        identity = await self._admission.renewed(kept.session.identity)
        if identity is None:
            self._drop(key, kept)
            return False
        kept.session = Session(identity, csrf=kept.session.csrf)
        kept.checked_ns = at_ns
        return True

    def _make_room(self, token: TokenInfo) -> None:
        self._kept = {key: kept for key, kept in self._kept.items() if self._lasts(kept)}
        own = [key for key, kept in self._kept.items() if kept.session.identity.token.token_id == token.token_id]
        for key in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            del self._kept[key]
        while len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]

    def _drop(self, key: bytes, kept: _Kept) -> None:
        if self._kept.get(key) is kept:
            del self._kept[key]

    def _secret(self) -> str:
        return base64.urlsafe_b64encode(self._entropy.take(_SECRET_BYTES)).rstrip(b"=").decode()

    async def _note(self, change: str, token: TokenInfo) -> None:
        await run_in_threadpool(note_session, self._notes, change, token)


def note_session(notes: AuditWriter, change: str, token: TokenInfo) -> None:
    """Write that the holder of a token came or went."""
    by = f"{token.name} ({token.token_id})"
    notes.note(AuditKind.SESSION, change, subject=token.token_id, name=token.name, tenant=token.tenant, by=by)


def _hash(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="surrogatepass")).digest()


# --- one-time links: a code opens the dashboard once, within an hour, as the holder of a named token ---

HOLDS_S: Final = 3_600
MAX_LINKS: Final = 1_000
_CODE_BYTES: Final = 32


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
        self._waiting: LruCache[str, _Waiting] = LruCache(most)

    def make(self, token_id: TokenId) -> str:
        """Return a code for whoever is to come in as the holder of a token."""
        code = new_code(self._entropy)
        self.expect(hash_of(code), token_id=token_id)
        return code

    def expect(self, hashed: str, *, token_id: TokenId) -> None:
        """Take a code that was made elsewhere, by its hash."""
        self._waiting.put(hashed, _Waiting(hashed, token_id, self._clock.elapsed_ns() + self._holds_ns))

    async def redeem(self, code: str, *, client: str | None = None) -> Identity:
        """Return whose link a code is; it is worthless from now on.

        Raises:
            ApiError: 401 for a code that is unknown, used or too old, or whose token does not hold; 429 for too many of those.
        """
        hashed = hash_of(code[: _MAX_LENGTH + 1])
        waiting = self._waiting.pop(hashed)  # before anything is waited for: of two at once, one comes too late
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
