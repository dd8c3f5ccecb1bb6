"""What a base is made of: the parts that `base` works with, as ports and as what makes them, whichever store is behind them.

A store fills this struct (`wiring.embedded` does it for a directory). What is a function here is made when it is first called, so
that opening a base stays cheap; whoever fills the struct keeps what it made, and closes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from evidentia.contracts.access import Principal
    from evidentia.contracts.backups import BackupProgress, BackupReport
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, StreamEvent
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports import (
        BaseReader,
        Clock,
        Collector,
        CustodyArchive,
        Encoder,
        Entropy,
        EvidenceIndex,
        Governor,
        LayoutCatalogue,
        NoteStore,
        PolicyStore,
        ReceiptLog,
        SourceAttachments,
        SourceRegistry,
        SourceWriter,
        VectorStore,
        VersionHistory,
    )
    from evidentia.contracts.provenance import SigningKey
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.sources import SourceCount
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.engine.receipt_replay import Replayer
    from evidentia.federation.federated_search import Federation
    from evidentia.tables.asker import TableAsker


class Retrieval(Protocol):
    """Answers a request from the base and its sources."""

    def __call__(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
    ) -> Awaitable[EvidenceResponse]:
        """Return the answer as a principal may have it; `watch` is told what happens meanwhile."""
        ...


class SourceCounts(Protocol):
    """Counts the live documents of each source."""

    def __call__(self, scope: AccessScope | None, *, is_dated: bool = False) -> Mapping[SourceId, SourceCount]:
        """Return what a scope shows of each source, None everything; the moment of the newest only where it is asked for."""
        ...


class BlockingRetrieval(Protocol):
    """Does the same for a thread that waits; `on_loop` runs on an event loop what needs one."""

    def __call__(
        self, request: EvidenceRequest, *, principal: Principal, on_loop: Callable[[Coroutine[Any, Any, bool]], bool]
    ) -> EvidenceResponse:
        """Return the answer as a principal may have it."""
        ...


class Backup(Protocol):
    """Copies a base as it stands at one moment."""

    def __call__(
        self, destination: Path, *, watch: Callable[[BackupProgress], None] | None, is_stopped: Callable[[], bool]
    ) -> BackupReport:
        """Return what was copied."""
        ...


class OpenGovernor(Protocol):
    """Opens what governs agents' runs by a base's policies."""

    def __call__(self, principal: Principal, *, is_durable: bool) -> Governor:
        """Return it for the runs of a principal; the durable one has every decision on disk before a call goes on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseComponents:
    """The parts of one open base."""

    directory: Path
    settings: Settings
    clock: Clock
    entropy: Entropy
    # What is stored.
    reader: BaseReader
    receipts: ReceiptLog
    index: Callable[[], EvidenceIndex]
    history: Callable[[], VersionHistory]
    layouts: Callable[[], LayoutCatalogue]
    registry: Callable[[], SourceRegistry]
    notes: Callable[[], NoteStore]
    policies: Callable[[], PolicyStore]
    counts: SourceCounts
    # What changes it; whoever asks for one of these closes it.
    writer: Callable[[], SourceWriter]
    rotate_key: Callable[[], SigningKey]
    vectors: Callable[[], AbstractContextManager[VectorStore]]
    archive: Callable[[], AbstractContextManager[CustodyArchive]]
    collector: Callable[[], Collector]
    back_up: Backup
    # What answers.
    warm: Callable[[], None]
    """Loads what requests need, and returns when it is there; done twice it costs nothing."""
    encoder: Callable[[], Encoder | None]
    retrieve: Retrieval
    retrieve_blocking: BlockingRetrieval
    replayer: Callable[[], Replayer]
    tables: Callable[[], TableAsker]
    federation: Callable[[], Federation]
    sources: Callable[[], SourceAttachments]
    governor: OpenGovernor
    recent_traces: Callable[[int], list[RequestTrace]]
    find_trace: Callable[[str], RequestTrace]
    close_sources: Callable[[], Awaitable[None]]
    """Stops asking sources and gives back their connections; `close` comes after it."""
    close: Callable[[], None]
