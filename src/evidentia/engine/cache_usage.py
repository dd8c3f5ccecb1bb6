"""Which entries were used when, so that those not used for longest make room; kept in the store, for all processes alike.

The store is looked through seldom, since that takes long. In between a process goes by what it did itself: alone it never keeps more
entries than the settings allow beyond a sixteenth, and after the first look none beyond. Of several, each may add a quarter.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from evidentia.engine.cache_entries import moment_at
from evidentia.engine.cache_keys import USED, entry_name, tier_of, used_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.ports import KeyValueStore
    from evidentia.contracts.vocabulary import CacheTier

NOTED_EVERY_US: Final = 60_000_000
"""A use is written down for other processes once in a minute; in this one it counts at once."""

_FIRST_LOOK: Final = 16
_NEXT_LOOK: Final = 4
_MOMENT_BYTES: Final = 8


class Usage:
    """Notes uses and makes room. Thread safe."""

    def __init__(self, store: KeyValueStore, *, most_entries: int) -> None:
        self._store = store
        self._most = most_entries
        self._used: OrderedDict[str, int] = OrderedDict()
        """When each entry was last used, as far as this process knows, longest ago first."""
        self._before_look = min(64, most_entries // _FIRST_LOOK)
        self._has_looked = False
        self._lock = threading.Lock()

    def use(self, entry: str, *, used_us: int) -> None:
        """Count a use of an entry in this process."""
        with self._lock:
            self._used[entry] = used_us
            self._used.move_to_end(entry)
            if len(self._used) > self._most:  # others keep more, or this process has not looked for a while
                self._used.popitem(last=False)

    def note(self, entry: str, *, used_us: int, expires_us: int | None) -> None:
        """Write down when an entry was used; the note ends with the entry."""
        expires_at = None if expires_us is None else moment_at(expires_us)
        self._store.put(used_name(entry), max(0, used_us).to_bytes(_MOMENT_BYTES, "big"), expires_at=expires_at)

    def note_again(self, entry: str, *, used_us: int, expires_us: int | None) -> None:
        """Write down that an entry is still used, unless it was written down within the last minute."""
        noted = self._store.get(used_name(entry))
        if noted is None or used_us - _moment(noted) >= NOTED_EVERY_US:
            self.note(entry, used_us=used_us, expires_us=expires_us)

    def make_room(self, entry: str) -> list[str]:
        """Make room for an entry and return those that were dropped for it."""
        with self._lock:
            if self._is_time_to_look(entry):
                self._look()
            self._used.pop(entry, None)
            dropped = [self._used.popitem(last=False)[0] for _ in range(len(self._used) + 1 - self._most)]
        for gone in dropped:
            self._store.delete(gone)
            self._store.delete(used_name(gone))
        return dropped

    def forget(self, prefix: str) -> None:
        """Let go of every entry whose name begins so."""
        with self._lock:
            for entry in [entry for entry in self._used if entry.startswith(prefix)]:
                del self._used[entry]

    def entries(self) -> Mapping[CacheTier, int]:
        """Return how many entries each tier has, everybody's together."""
        return Counter(tier for name, _ in self._store.items(USED) if (tier := tier_of(name)) is not None)

    def _is_time_to_look(self, entry: str) -> bool:
        """Tell whether to look through the store: after so many entries, and sooner in one of 16 processes that end before that."""
        self._before_look -= 1
        return self._before_look < 0 or (not self._has_looked and entry.endswith("0"))

    def _look(self) -> None:
        known = {entry_name(name): _moment(kept) for name, kept in self._store.items(USED)}
        used = {entry: max(moment, self._used.get(entry, 0)) for entry, moment in known.items()}
        self._used = OrderedDict(sorted(used.items(), key=lambda pair: (pair[1], pair[0])))
        self._before_look = self._most // _NEXT_LOOK
        self._has_looked = True


def _moment(kept: bytes) -> int:
    return int.from_bytes(kept, "big") if len(kept) == _MOMENT_BYTES else 0
