"""Circuit breaker: leaves a source alone that fails again and again, and finds out with one call at a time whether it answers once more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import BreakerState

if TYPE_CHECKING:
    from evidentia.contracts.ports import Clock

_NS_PER_MS = 1_000_000
_MAX_DOUBLINGS = 5
REFUSED = 0
"""What `admit` returns when the source is not to be asked; every real ticket is larger."""


class Breaker:
    """Counts one source's failures in a row. Thread safe; its time is the clock's `elapsed_ns`, which never goes back.

    A call that was admitted ends in exactly one of `succeeded`, `failed` and `released`, with its ticket. What is said of a call
    that was admitted before the breaker last opened changes nothing: it tells of a time that is over.
    """

    def __init__(self, clock: Clock, *, failures: int, open_ms: int) -> None:
        self._clock = clock
        self._most_failures = failures
        self._open_ms = open_ms
        self._lock = threading.Lock()
        self._ticket = 1
        self._failures = 0
        self._openings = 0
        self._opens_again_ns: int | None = None
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        """Return whether the next call would be made as usual, not at all, or to see; a probe that is out counts as the last."""
        with self._lock:
            return self._state()

    @property
    def why_refused(self) -> str:
        """Return in words why `admit` refuses; the same words for the same history, whenever it is asked."""
        with self._lock:
            if self._state() is BreakerState.HALF_OPEN:
                return "not asked: one call is out to see whether it answers again"
            return f"not asked: it failed {self._failures} times in a row and is left alone for {self._rest_ms()} ms"

    def admit(self) -> int:
        """Return a ticket for one call, or `REFUSED`."""
        with self._lock:
            state = self._state()
            if state is BreakerState.CLOSED:
                return self._ticket
            if state is BreakerState.OPEN or self._is_probing:
                return REFUSED
            self._is_probing = True
            return self._ticket

    def succeeded(self, ticket: int) -> None:
        """Take note that a call ended well: the source is asked as usual from now on."""
        with self._lock:
            if ticket == self._ticket:
                self._failures = self._openings = 0
                self._opens_again_ns = None
                self._is_probing = False

    def recovered(self) -> None:
        """Take note that a call which was counted as failed ended well a little later: the source is slow, not broken."""
        with self._lock:
            self._failures = self._openings = 0
            self._opens_again_ns = None
            self._is_probing = False

    def failed(self, ticket: int) -> None:
        """Take note that a call failed or ran out of time."""
        with self._lock:
            if ticket != self._ticket:
                return
            self._failures += 1
            if self._is_probing or self._failures >= self._most_failures:
                self._open()

    def released(self, ticket: int) -> None:
        """Take note that nothing was learnt from a call; a probe gives its place to the next one."""
        with self._lock:
            if ticket == self._ticket:
                self._is_probing = False

    def _state(self) -> BreakerState:
        if self._opens_again_ns is None:
            return BreakerState.CLOSED
        if self._clock.elapsed_ns() < self._opens_again_ns:
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    def _open(self) -> None:
        self._openings += 1
        self._opens_again_ns = self._clock.elapsed_ns() + self._rest_ms() * _NS_PER_MS
        self._is_probing = False
        self._ticket += 1

    def _rest_ms(self) -> int:
        """Return how long it stays open this time: doubled with every opening that no success came between."""
        return self._open_ms << min(self._openings - 1, _MAX_DOUBLINGS)
