"""How often each source was forgotten, so that an answer that was on its way meanwhile does not bring the old state back.

A generation is part of every name: what belongs to an older one is never found, in whichever process it was kept. It is the moment of
its beginning, so that one that the store lost is followed by a later one and not by the first again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from evidentia.engine.cache_entries import microseconds
from evidentia.engine.cache_keys import GENERATIONS, generation_name

if TYPE_CHECKING:
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import Clock, KeyValueStore

_BYTES: Final = 8
_LARGEST: Final = 1 << 62


class Generations:
    """Reads and advances the generations of sources. Thread safe."""

    def __init__(self, store: KeyValueStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()

    def current(self, source_id: SourceId) -> int:
        """Return a source's generation; one that is not known begins now."""
        name = generation_name(source_id)
        stored = self._stored(name)
        if stored is None:
            return self._begin(name, after=0)
        with self._lock:
            self._newest[name] = max(stored, self._newest.get(name, 0))
        return stored

    def stored(self, source_id: SourceId) -> int | None:
        """Return the generation that the store has of a source: what belongs to any other was forgotten."""
        return self._stored(generation_name(source_id))

    def advance(self, source_id: SourceId | None) -> None:
        """Begin a new generation of one source, or of all."""
        if source_id is not None:
            name = generation_name(source_id)
            self._begin(name, after=self._stored(name) or 0)
            return
        known = {name: _read(kept) or 0 for name, kept in self._store.items(GENERATIONS)}
        with self._lock:
            names = sorted(known.keys() | self._newest.keys())
        for name in names:
            self._begin(name, after=known.get(name, 0))

    def _stored(self, name: str) -> int | None:
        return _read(self._store.get(name))

    def _begin(self, name: str, *, after: int) -> int:
        now = microseconds(self._clock.now())
        with self._lock:
            generation = max(now, after + 1, self._newest.get(name, 0) + 1)
            self._newest[name] = generation
        self._store.put(name, generation.to_bytes(_BYTES, "big"))
        return generation


def _read(kept: bytes | None) -> int | None:
    if kept is None or len(kept) != _BYTES:
        return None
    generation = int.from_bytes(kept, "big")
    return generation if 0 < generation < _LARGEST else None
