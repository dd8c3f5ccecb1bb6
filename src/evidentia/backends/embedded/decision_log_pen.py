"""What a process writes its decisions with: one chain in parts, each left when it is large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.database import storage_errors
from evidentia.backends.embedded.decision_log_file import DECISIONS_NAME, DecisionFile
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.runs import PoliciesRecorded, RunStarted
from evidentia.provenance.decision_chain import GENESIS, SEED_SIZE, LogPart, Sealer, head_of
from evidentia.provenance.decision_lines import ADMIN_RUN
from evidentia.provenance.frontier import Frontier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import LogEntry, LogHead
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.contracts.runs import RunId

MAX_BYTES: Final = 64 << 20
_NAME_BYTES: Final = 6
_MAX_RUNS: Final = 10_000


class Place(NamedTuple):
    """Where a record stands, and the hash of the one before it."""

    part: LogPart
    offset: int
    previous: bytes


class DecisionPen:
    """Seals and writes entries. Not thread safe."""

    def __init__(self, directory: Path, *, clock: Clock, entropy: Entropy, max_bytes: int) -> None:
        self._directory = directory
        self._clock = clock
        self._entropy = entropy
        self._most_bytes = max_bytes
        self._policies: dict[Sha256, LogEntry] = {}
        self._stated: set[Sha256] = set()
        self._sealer: Sealer | None = None
        self._parts = 0
        self._file: DecisionFile | None = None
        self._runs: dict[RunId, Place] = {}
        self.problem: str | None = None
        """Why the last entries could not be written; None when they were."""

    @property
    def part(self) -> LogPart | None:
        """Return what is written to; None when nothing is."""
        return None if self._file is None else self._file.part

    def head(self) -> LogHead:
        """Return where the chain stands."""
        return head_of("", GENESIS, Frontier()) if self._sealer is None else self._sealer.head()

    def place_of(self, run_id: RunId) -> Place | None:
        """Return where a run begins in the file that is written to, which nobody else can rewrite; None when it does not begin there."""
        return self._runs.get(run_id)

    def write(self, entries: Sequence[LogEntry], *, is_synced: bool) -> None:
        """Write entries, all or none, or raise BaseStateError."""
        try:
            with storage_errors(self._directory, name=DECISIONS_NAME):
                file = self._file or self._open()
                self._write(file, entries)
                if is_synced:
                    file.sync()
        except (EvidentiaError, OSError) as error:
            self.problem = str(error)
            if self._file is not None and self._file.is_torn:
                self.break_off()
            raise
        self.problem = None
        if file.bytes >= self._most_bytes:
            self.leave()

    def leave(self) -> None:
        """Sync and close the file; the next entry goes on with the chain in another."""
        if self._file is not None:
            with storage_errors(self._directory, name=DECISIONS_NAME):
                self._file.sync()
            self._close()

    def break_off(self) -> None:
        """Let go of the file as it is, and of its chain: whatever stands at its end, nothing may follow it."""
        self._close()
        self._sealer = None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._runs = {}

    def _open(self) -> DecisionFile:
        if self._sealer is None:
            begun_at = self._clock.now().strftime("%Y%m%dT%H%M%S-%fZ")
            name = f"{begun_at}-{self._entropy.take(_NAME_BYTES).hex()}"
            self._sealer = Sealer(name, seed=self._entropy.take(SEED_SIZE))
            self._stated = set()
            self._parts = 0
        self._file = DecisionFile(self._directory / DECISIONS_NAME, LogPart(self._sealer.log, self._parts + 1))
        self._parts += 1
        return self._file

    def _write(self, file: DecisionFile, entries: Sequence[LogEntry]) -> None:
        """Seal entries and write them; a chain states each set of policies before the first run under it, also one that another stated."""
        sealer = self._sealer
        assert sealer is not None  # noqa: S101 - opened with the file
        mark, stated = sealer.mark(), set(self._stated)
        lines: list[bytes] = []
        runs: dict[RunId, Place] = {}
        for entry in entries:
            kind = type(entry.call)
            if entry.policies not in stated:
                stated.add(entry.policies)
                if kind is PoliciesRecorded:
                    self._policies[entry.policies] = entry
                elif (known := self._policies.get(entry.policies)) is not None:
                    lines.append(sealer.seal(msgspec.structs.replace(known, run_id=ADMIN_RUN, at_us=entry.at_us)))
            if (kind is RunStarted or kind is PoliciesRecorded) and entry.run_id not in runs:
                runs[entry.run_id] = Place(file.part, file.bytes + sum(map(len, lines)), sealer.mark().previous.hex().encode())
            lines.append(sealer.seal(entry))
        try:
            file.write(b"".join(lines))
        except OSError:
            sealer.reset(mark)
            raise
        self._stated = stated
        self._remember(runs)

    def _remember(self, runs: dict[RunId, Place]) -> None:
        for run_id, place in runs.items():
            self._runs.setdefault(run_id, place)
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]
