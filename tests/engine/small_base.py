"""A base of a few documents on a memory disk, asked through the wiring, with a clock that stands still."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import EvidentiaError
from evidentia.engine.pipeline import Engine
from evidentia.engine.replaying import Replayer
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.wiring import embedded
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import ChangeSet
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ids import ChunkId, CorpusVersion, ReceiptId
    from evidentia.contracts.ports import EvidenceIndex
    from evidentia.contracts.receipts import EngineConfig, ReplayReport
    from evidentia.contracts.settings import Settings

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # a receipt is synced, which costs milliseconds on a real disk


def memory_folder(fallback: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when left, in memory where the system offers that."""
    return tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else fallback)


class SmallBase:
    """Made from commits in one go; `wrap` puts something between the engine and its index."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Settings,
        commits: Iterable[ChangeSet],
        wrap: Callable[[EvidenceIndex], EvidenceIndex] | None = None,
    ) -> None:
        self._clock, self._entropy = SteppingClock(step_s=0), RepeatableEntropy()
        embedded.create(directory, clock=self._clock, entropy=self._entropy)
        (directory / SETTINGS_NAME).write_text(_settings_text(settings), encoding="utf-8")
        self.parts = embedded.open_parts(directory, clock=self._clock, entropy=self._entropy)
        self.corpus_versions = self._commit(commits)
        self._index: EvidenceIndex = wrap(self.parts.index) if wrap else self.parts.index
        self._engine = self._engine_for(self.parts.config) if wrap else self.parts.engine(self.parts.config)

    def answer(self, request: EvidenceRequest, *, principal: Principal) -> EvidenceResponse:
        """Answer a request."""
        return self._engine.answer(request, principal=principal)

    def replay(self, receipt_id: ReceiptId, *, asker: Principal) -> ReplayReport:
        """Answer a receipt again."""
        return self._replayer().replay(receipt_id, asker=asker)

    def why(self, receipt_id: ReceiptId, chunk_id: ChunkId, *, asker: Principal) -> str:
        """Return everything that `why` says about a chunk, as text: the report, or the error with its kind."""
        try:
            report = self._replayer().why(receipt_id, chunk_id, asker=asker)
        except EvidentiaError as error:
            return f"{type(error).__name__} {error.code}: {error}"
        return msgspec.json.encode(msgspec.structs.replace(report, receipt_id="")).decode()

    def collect(self) -> None:
        """Remove every version but the newest."""
        self.parts.collector().collect(keep_versions=1)

    def close(self) -> None:
        """Give back what is held."""
        self.parts.close()

    def _commit(self, commits: Iterable[ChangeSet]) -> list[CorpusVersion]:
        writer = self.parts.writer()
        try:
            return [writer.commit(changes).corpus_version for changes in commits]
        finally:
            writer.close()

    def _engine_for(self, config: EngineConfig) -> Engine:
        return Engine(self._index, receipts=self.parts.receipts, config=config, clock=self._clock, entropy=self._entropy)

    def _replayer(self) -> Replayer:
        return Replayer(
            self._index, receipts=self.parts.receipts, engine_for=lambda _: self._engine, config=self.parts.config, clock=self._clock
        )


def _settings_text(settings: Settings) -> str:
    """Return the settings that matter here as TOML, whose strings and integers JSON writes too."""
    lines = []
    for section in ("search", "access"):
        values = msgspec.to_builtins(getattr(settings, section))
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"
