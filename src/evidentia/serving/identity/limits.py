"""How much a token may ask: so much a minute, so much a day; and how often an address may show a credential that does not hold."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from evidentia.serving.identity.buckets import MAX_KEPT, Buckets, Pace
from evidentia.serving.operations.api_errors import TOO_MANY, ApiError

if TYPE_CHECKING:
    from evidentia.contracts.control import TokenId, TokenInfo
    from evidentia.contracts.ports import Clock

WRONG: Final = Pace(interval_ns=2_000_000_000, burst=60)
"""Credentials that do not hold, for each address: 60 at once, then one in two seconds. A slow hash takes about 40 ms."""
_SECOND_NS: Final = 1_000_000_000
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
        max_kept: int = MAX_KEPT,
    ) -> None:
        self._clock = clock
        self._per_minute = requests_per_minute
        self._per_day = requests_per_day
        self._usage = usage
        self._workers = workers
        self._buckets = Buckets(clock=clock, max_kept=max_kept)
        self._wrong = Buckets(clock=clock, max_kept=max_kept)
        self._hashes = Buckets(clock=clock, max_kept=max_kept)
        """Apart from what is wrong without a hash, so that nobody is kept out by garbage from the address they share."""

    def count(self, token: TokenInfo) -> None:
        """Count one request of a token.

        Raises:
            Refusal: 429 `rate_limited` or `quota_exceeded`; `retry-after` says in how many seconds to come back.
        """
        limits = token.facts.limits
        per_minute = limits.requests_per_minute or self._per_minute
        wait_ns = self._buckets.take(token.token_id, Pace.of(per_minute, workers=self._workers)) if per_minute else 0
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
            Refusal: 429 `too_many_attempts`, in the place of saying once more that it does not hold.
        """
        _refuse_guesses(self._wrong.take(_network_of(client), WRONG))

    def begin_hash(self, client: str | None) -> None:
        """Count a slow hash against the address that asks for it, before it is taken.

        Raises:
            Refusal: 429 `too_many_attempts`.
        """
        _refuse_guesses(self._hashes.take(_network_of(client), WRONG))

    def forgive_hash(self, client: str | None) -> None:
        """Take back what `begin_hash` counted, since the credential holds."""
        self._hashes.give_back(_network_of(client), WRONG)

    def close(self) -> None:
        """Write down what is not written yet."""
        if self._usage is not None:
            self._usage.close()

    def _until_midnight_ns(self) -> int:
        now = self._clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return (midnight - now) // timedelta(microseconds=1) * 1_000


def _too_many(code: str, message: str, *, hint: str, wait_ns: int) -> ApiError:
    return ApiError(TOO_MANY, code, message, hint=hint, headers={"retry-after": str(max(1, -(-wait_ns // _SECOND_NS)))})


def _refuse_guesses(wait_ns: int) -> None:
    if wait_ns:
        message = "too many credentials that do not hold came from this address"
        raise _too_many("too_many_attempts", message, hint="check the token, and wait as long as retry-after says", wait_ns=wait_ns)


def _network_of(client: str | None) -> str:
    """Return what tells one client from another; everybody without an address is one."""
    try:
        address = ipaddress.ip_address((client or "").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(int(address) >> _NETWORK_BITS)
    return str(address)
