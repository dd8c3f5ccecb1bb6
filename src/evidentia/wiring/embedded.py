"""A directory to the parts of an embedded base."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.backends.embedded.archive import EmbeddedArchive
from evidentia.backends.embedded.collector import EmbeddedCollector
from evidentia.backends.embedded.database import database_path, storage_errors
from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.reader import EmbeddedReader
from evidentia.backends.embedded.receipts import EmbeddedReceipts
from evidentia.backends.embedded.writer import EmbeddedWriter, create_base
from evidentia.contracts.errors import BaseForbiddenError, BaseMissingError
from evidentia.engine.pipeline import Engine
from evidentia.engine.replaying import Replayer
from evidentia.text.tokens import Tokeniser
from evidentia.wiring.settings_file import SETTINGS_NAME, read_settings, settings_template
from evidentia.wiring.shelf import ModelShelf
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.backends.embedded.vector_store import EmbeddedVectors
    from evidentia.contracts.ports import Clock, Encoder, Entropy
    from evidentia.contracts.receipts import EngineConfig
    from evidentia.contracts.settings import Settings


class EmbeddedParts:
    """The parts of one embedded base, each made when it is first asked for."""

    def __init__(self, directory: Path, *, settings: Settings, clock: Clock, entropy: Entropy) -> None:
        self.directory = directory
        self.settings = settings
        self.clock = clock
        self._entropy = entropy
        self.reader = EmbeddedReader(directory)
        self.receipts = EmbeddedReceipts(directory, entropy=entropy)
        self._shelf = ModelShelf(directory, settings=settings, clock=clock)
        self._lock = threading.RLock()
        self._index: EmbeddedIndex | None = None
        self._engines: dict[EngineConfig, Engine] = {}

    @property
    def index(self) -> EmbeddedIndex:
        """Return what opens snapshots for searching."""
        with self._lock:
            if self._index is None:
                self._index = EmbeddedIndex(self.directory, tokeniser=Tokeniser(self.settings.text.language).identity)
            return self._index

    @property
    def config(self) -> EngineConfig:
        """Return the settings that shape this base's answers."""
        return self._shelf.config

    def engine(self, config: EngineConfig) -> Engine:
        """Return the engine with these settings; those of the base are `config`."""
        with self._lock:
            if config not in self._engines:
                self._engines[config] = Engine(
                    self.index,
                    receipts=self.receipts,
                    config=config,
                    models=self._shelf.models_for(config),
                    clock=self.clock,
                    entropy=self._entropy,
                )
            return self._engines[config]

    def replayer(self) -> Replayer:
        """Return what asks receipts."""
        return Replayer(self.index, receipts=self.receipts, engine_for=self.engine, config=self.config, clock=self.clock)

    def writer(self) -> EmbeddedWriter:
        """Return the writer, waiting for another one to finish for as long as the settings say."""
        return EmbeddedWriter(
            self.directory,
            clock=self.clock,
            entropy=self._entropy,
            language=self.settings.text.language,
            wait_ms=self.settings.storage.writer_wait_ms,
        )

    def vectors(self) -> EmbeddedVectors:
        """Return what gives chunks their vectors; whoever asks for it closes it."""
        from evidentia.backends.embedded.vector_store import EmbeddedVectors

        return EmbeddedVectors(self.directory, clock=self.clock, entropy=self._entropy, wait_ms=self.settings.storage.writer_wait_ms)

    @property
    def encoder(self) -> Encoder | None:
        """Return what the settings say makes vectors; None when this base is to have none."""
        return self._shelf.encoder()

    def archive(self) -> EmbeddedArchive:
        """Return a snapshot for verification."""
        return EmbeddedArchive(self.directory)

    def collector(self) -> EmbeddedCollector:
        """Return what removes old versions."""
        storage = self.settings.storage
        return EmbeddedCollector(
            self.directory,
            clock=self.clock,
            entropy=self._entropy,
            wait_ms=storage.writer_wait_ms,
            segments_per_size=storage.segments_per_size,
        )

    def close(self) -> None:
        """Give back what is held."""
        self.reader.close()
        self.receipts.close()
        if self._index is not None:
            self._index.close()


def has_base(directory: Path) -> bool:
    """Tell whether there is a base in this directory."""
    try:
        return database_path(directory).is_file()
    except PermissionError as error:
        raise BaseForbiddenError(str(directory)) from error


def create(directory: Path, *, clock: Clock | None = None, entropy: Entropy | None = None) -> None:
    """Make an empty base with its commented settings file."""
    create_base(directory, clock=clock or SystemClock(), entropy=entropy or SystemEntropy())
    settings = directory / SETTINGS_NAME
    if not settings.exists():
        with storage_errors(directory):
            settings.write_text(settings_template(), encoding="utf-8")


def open_parts(directory: Path, *, clock: Clock | None = None, entropy: Entropy | None = None) -> EmbeddedParts:
    """Open the base in a directory."""
    if not has_base(directory):
        raise BaseMissingError(str(directory))
    return EmbeddedParts(directory, settings=read_settings(directory), clock=clock or SystemClock(), entropy=entropy or SystemEntropy())
