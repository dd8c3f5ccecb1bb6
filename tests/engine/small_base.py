"""A base of a few documents on a memory disk, with a clock that stands still and an encoder that remembers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.known_vectors import give_vectors, remembering_encoder
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.ids import CorpusVersion
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.receipt_replay import Replayer
from evidentia.query.synonyms import parse_synonyms
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.text.tokens import Tokeniser
from evidentia.wiring import embedded as wiring
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import ChangeSet
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ids import ChunkId, ReceiptId
    from evidentia.contracts.ports import EvidenceIndex
    from evidentia.contracts.receipts import EngineConfig, ReplayReport
    from evidentia.contracts.settings import Settings
    from evidentia.query.synonyms import Synonyms

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # a receipt is synced, which costs milliseconds on a real disk


def memory_folder(fallback: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when left, in memory where the system offers that."""
    return tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else fallback)


class SmallBase:
    """Made from commits in one go; `wrap` puts something between the engine and its index.

    After commit number n, the chunks whose text is in `embedded[n]` get their vectors; without it there are none.
    `synonyms` is the file that the settings name.
    """

    def __init__(
        self,
        directory: Path,
        *,
        settings: Settings,
        commits: Sequence[ChangeSet],
        embedded: Sequence[AbstractSet[str]] = (),
        synonyms: str = "",
        wrap: Callable[[EvidenceIndex], EvidenceIndex] | None = None,
    ) -> None:
        self._clock, self._entropy = SteppingClock(step_s=0), RepeatableEntropy()
        wiring.create(directory, clock=self._clock, entropy=self._entropy)
        (directory / SETTINGS_NAME).write_text(_settings_text(settings), encoding="utf-8")
        if settings.query.synonyms:
            (directory / settings.query.synonyms).write_text(synonyms, encoding="utf-8")
        self._synonyms = _parsed(settings, synonyms)
        self.is_collected = False
        self.parts = wiring.open_parts(directory, clock=self._clock, entropy=self._entropy)
        self.corpus_versions = self._commit(commits, embedded)
        self._index: EvidenceIndex = wrap(self.parts.index) if wrap else self.parts.index
        self._engine = self._engine_for(self.parts.config)

    def answer(self, request: EvidenceRequest, *, principal: Principal) -> EvidenceResponse:
        """Answer a request."""
        return self._engine.answer(request, principal=principal)

    def shown_version(self, number: int, *, principal: Principal) -> CorpusVersion:
        """Return the name of the version after commit number n that a principal is shown: the owner's own, or the keyed one."""
        corpus_version = self.corpus_versions[number]
        if principal.is_owner:
            return corpus_version
        version = self.parts.index.at(search=self.parts.config.search, corpus_version=corpus_version).version
        return CorpusVersion(version.public_commit.corpus_version)

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
        self.is_collected = True

    def close(self) -> None:
        """Give back what is held."""
        self.parts.close()

    def _commit(self, commits: Sequence[ChangeSet], embedded: Sequence[AbstractSet[str]]) -> list[CorpusVersion]:
        versions = []
        for number, changes in enumerate(commits):
            writer = self.parts.writer()
            try:
                versions.append(writer.commit(changes).corpus_version)
            finally:
                writer.close()
            if embedded and embedded[number]:
                self.embed(embedded[number])
        return versions

    def embed(self, texts: AbstractSet[str]) -> None:
        """Give the chunks with these texts their vectors."""
        encoder = remembering_encoder()
        give_vectors(self.parts, encoder.identity, lambda chunk: encoder.encode_document(chunk.text) if chunk.text in texts else None)

    def _engine_for(self, config: EngineConfig) -> Engine:
        models = Models(
            encoder=remembering_encoder,
            reranker=lambda: None,
            rewriter=lambda: None,
            merger=lambda: None,
            synonyms=self._synonyms,
        )
        return Engine(self._index, receipts=self.parts.receipts, config=config, models=models, clock=self._clock, entropy=self._entropy)

    def _replayer(self) -> Replayer:
        return Replayer(
            self._index, receipts=self.parts.receipts, engine_for=lambda _: self._engine, config=self.parts.config, clock=self._clock
        )


def _settings_text(settings: Settings) -> str:
    """Return the settings that matter here as TOML, whose strings and integers JSON writes too."""
    lines = []
    for section in ("search", "access", "query", "ranking"):
        values = msgspec.to_builtins(getattr(settings, section))
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _parsed(settings: Settings, synonyms: str) -> Synonyms | None:
    if not settings.query.synonyms:
        return None
    return parse_synonyms(synonyms, file=settings.query.synonyms, tokeniser=Tokeniser(settings.text.language))
