"""Entries by name: in memory those used last, in the store all of them, and room made for new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.engine.cache_entries import Held, HeldEntries, decode_entry, encode_entry, moment_at
from evidentia.engine.cache_keys import ENTRIES, FORGOTTEN, quoted
from evidentia.engine.cache_usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import KeyValueStore
    from evidentia.contracts.vocabulary import CacheTier
    from evidentia.engine.cache_entries import Demand, Entry

_TRUSTED_US: Final = 60_000_000
"""After a minute an entry is read again from the store: another process may have kept a newer answer."""


class Shelf:
    """Keeps entries. Thread safe."""

    def __init__(self, store: KeyValueStore, *, most_entries: int) -> None:
        self._store = store
        self._held = HeldEntries()
        self._usage = Usage(store, most_entries=most_entries)

    def read(self, name: str, demand: Demand, *, lifetime_us: int | None, kept_us: int | None) -> Entry | None:
        """Return the entry under a name when the demand admits it within its lifetime; it is kept for `kept_us` in all."""
        held = self._held.get(name)
        if held is None or demand.now_us - held.read_us >= _TRUSTED_US or not demand.admits(held.entry, lifetime_us=lifetime_us):
            held = self._load(name, now_us=demand.now_us)
            if held is None or not demand.admits(held.entry, lifetime_us=lifetime_us):
                return None
            self._usage.note_again(name, used_us=demand.now_us, expires_us=_end(held.entry, kept_us))
        self._held.put(name, held)
        self._usage.use(name, used_us=demand.now_us)
        return held.entry

    def holds(self, name: str) -> bool:
        """Tell whether an entry is in memory."""
        return self._held.get(name) is not None

    def write(self, name: str, entry: Entry, *, now_us: int, kept_us: int | None) -> bool:
        """Keep an entry for a while, in place of what was there; False when it cannot be kept."""
        content = encode_entry(entry, name=name)
        if content is None:
            return False
        self._held.drop(self._usage.make_room(name))
        expires_us = _end(entry, kept_us)
        self._store.put(name, content, expires_at=None if expires_us is None else moment_at(expires_us))
        self._usage.note(name, used_us=now_us, expires_us=expires_us)
        self._usage.use(name, used_us=now_us)
        self._held.put(name, Held(entry, len(content), now_us))
        return True

    def is_superseded(self, name: str, entry: Entry, *, now_us: int) -> bool:
        """Tell whether another process has kept a newer answer since this one came; one from the future is not believed."""
        stored = decode_entry(self._store.get(name), name=name)
        return stored is not None and entry.last_us < stored.last_us <= now_us

    def forget(self, source_id: SourceId | None) -> int:
        """Drop every entry of a source, or of all, with all that points to them; return how many entries there were."""
        self._held.drop_under(entries_under(source_id))
        self._usage.forget(entries_under(source_id))
        counts = {prefix: self._store.delete(prefix + _steps(source_id)) for prefix in FORGOTTEN}
        return counts[ENTRIES]

    def entries(self) -> Mapping[CacheTier, int]:
        """Return how many entries each tier has."""
        return self._usage.entries()

    def _load(self, name: str, *, now_us: int) -> Held | None:
        content = self._store.get(name)
        entry = decode_entry(content, name=name)
        if entry is None or content is None:
            if self._held.get(name) is not None:
                self._held.drop([name])
            return None
        held = Held(entry, len(content), now_us)
        self._held.put(name, held)
        return held


def entries_under(source_id: SourceId | None) -> str:
    """Return how the names of a source's entries begin, or of all."""
    return ENTRIES + _steps(source_id)


def _steps(source_id: SourceId | None) -> str:
    return "" if source_id is None else f"{quoted(source_id)}/"


def _end(entry: Entry, kept_us: int | None) -> int | None:
    return None if kept_us is None else entry.first_us + kept_us
