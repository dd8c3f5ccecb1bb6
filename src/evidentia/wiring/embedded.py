"""A directory to the parts of an embedded base."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from evidentia.backends.embedded.backup.hot_backup import BaseFiles, EmbeddedBackup
from evidentia.backends.embedded.backup.restore import restore_backup
from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME
from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.logs.receipt_log import EmbeddedReceipts
from evidentia.backends.embedded.logs.usage_log import USAGE_NAME
from evidentia.backends.embedded.records.archive import EmbeddedArchive
from evidentia.backends.embedded.records.attachments import EmbeddedLayouts
from evidentia.backends.embedded.records.collector import EmbeddedCollector
from evidentia.backends.embedded.records.database import storage_errors
from evidentia.backends.embedded.records.document_list import LiveCounts
from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues
from evidentia.backends.embedded.records.note_store import EmbeddedNotes
from evidentia.backends.embedded.records.reader import EmbeddedReader
from evidentia.backends.embedded.records.responses import EmbeddedResponses
from evidentia.backends.embedded.records.source_registry import EmbeddedRegistry
from evidentia.backends.embedded.records.version_history import EmbeddedHistory
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import BaseForbiddenError, BaseMissingError, NotFoundError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.ids import RequestId, SourceId
from evidentia.contracts.ports import Clock, Encoder, Entropy, SupportsTraces
from evidentia.contracts.sources import SourceCount
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.engine.answer_governance import NO_POLICIES, Governing
from evidentia.engine.model_calls import ThreadedModelCalls
from evidentia.engine.pipeline import Engine
from evidentia.engine.receipt_replay import Replayer
from evidentia.engine.retrieval_task import RetrievalTask
from evidentia.federation.candidate_cache import CandidateCache
from evidentia.federation.federated_search import Federation
from evidentia.federation.source_health import HealthBook
from evidentia.foundation.offload import ThreadPoolBlockingExecutor, ThreadPoolOffloader
from evidentia.sources.intake import intake_identity
from evidentia.sources.registration import check_change
from evidentia.text.tokens import Tokeniser
from evidentia.wiring.components import BaseComponents
from evidentia.wiring.directory import Directory
from evidentia.wiring.model_registry import CALIBRATION_NAME, NONE_ATTACHED, SYNONYMS_NAME, AttachedModels, ModelRegistry
from evidentia.wiring.settings_file import SETTINGS_NAME, has_base, read_settings, settings_template
from evidentia.wiring.system import SystemClock, SystemEntropy
from evidentia.wiring.telemetry_sinks import TraceHub, sinks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from pathlib import Path

    from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
    from evidentia.contracts.access import Principal
    from evidentia.contracts.backups import BackupProgress, BackupReport, RestoreReport
    from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
    from evidentia.contracts.provenance import SigningKey
    from evidentia.contracts.receipts import EngineConfig
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.policy.evaluator import PolicySet
    from evidentia.wiring.governance_runtime import GovernanceRuntime
    from evidentia.wiring.tabular import TableParts

NOTES_NAME = "notes.db"
RUNTIME_NAME = "runtime.db"
RESPONSES_NAME = "responses.db"
TRACES_NAME = "traces.db"
INBOX_NAME = "inbox"
"""Where documents that were sent wait while they are taken in."""
RUNTIME_WAIT_MS = 25
"""How long a request waits for another process to write what may be lost anyway."""
_ANYTHING = EvidenceRequest(query=DecomposedQuery(text="anything unheard-of"), receipt=False)
"""A question of common and of unknown words: to answer it, everything that questions need is read."""
MODELS_S = 60
"""How long a request waits for models to be loaded; after that it is answered without those that are not."""
LOADER_S = 5
"""How long closing waits for models that are being loaded; those that hang are left behind."""
BASE_FILES = BaseFiles(
    settings=(SETTINGS_NAME, CALIBRATION_NAME),
    synonyms=SYNONYMS_NAME,
    databases=(GOVERNANCE_NAME, NOTES_NAME),
    rebuilt=(RUNTIME_NAME, RESPONSES_NAME, TRACES_NAME, USAGE_NAME, INBOX_NAME),
)


class EmbeddedComponents:
    """The parts of one embedded base, each made when it is first asked for."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Settings,
        clock: Clock,
        entropy: Entropy,
        control: GovernanceRuntime | None = None,
        attached: AttachedModels = NONE_ATTACHED,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.clock = clock
        self.entropy = self._entropy = entropy
        self.reader = EmbeddedReader(directory)
        self.receipts = EmbeddedReceipts(directory, entropy=entropy)
        self._models = ModelRegistry(directory, settings=settings, clock=clock, attached=attached)
        self._lock = threading.RLock()
        self._index: EmbeddedIndex | None = None
        self._engines: dict[EngineConfig, Engine] = {}
        self._alone: Engine | None = None
        self._is_warm = False
        self._is_used = False
        self._warming = threading.Lock()
        self._has_models = threading.Event()
        self._loader: threading.Thread | None = None
        """Set once the models are loaded, or cannot be: a request that may ask one waits for that before its time begins to run."""
        self._calls = ThreadedModelCalls(clock, settings=settings.fanout)
        self._workers = ThreadPoolBlockingExecutor()
        self._offloader = ThreadPoolOffloader(shared=self._workers)
        self._controls: dict[bool, GovernanceRuntime] = {}
        self._shared_control = control
        self._governance = directory / GOVERNANCE_NAME
        self._is_governed: bool | None = None

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
        return self._models.config

    def engine(self, config: EngineConfig) -> Engine:
        """Return the engine with these settings; those of the base are `config`."""
        with self._lock:
            if config not in self._engines:
                self._engines[config] = self._make_engine(config, federation=lambda: self.federation)
            return self._engines[config]

    def _make_engine(self, config: EngineConfig, *, federation: Callable[[], Federation] | None) -> Engine:
        return Engine(
            self.index,
            receipts=self.receipts,
            config=config,
            models=self._models.models_for(config),
            clock=self.clock,
            entropy=self._entropy,
            federation=federation,
            sink=None if federation is None else self.traces,
            governing=Governing(self._policies_in_force, lambda: self.control().answers),
            offloader=self._offloader,
            calls=self._calls,
        )

    def control(self, *, is_durable: bool = False) -> GovernanceRuntime:
        """Return what governs this base: its policies, its decision log, its judge; the durable one writes a log of its own.

        Parts that were given a control use that one for everything, and leave it to be closed by whoever gave it.
        """
        if self._shared_control is not None:
            return self._shared_control
        with self._lock:
            if is_durable not in self._controls:
                from evidentia.wiring.governance_runtime import GovernanceRuntime

                self._controls[is_durable] = GovernanceRuntime(
                    self.directory, clock=self.clock, entropy=self._entropy, is_durable=is_durable
                )
            return self._controls[is_durable]

    def _policies_in_force(self, tenant: str) -> PolicySet:
        """Return a tenant's policies; a base that never had any costs no more than a look for the file.

        Where the directory can no longer be looked into, what was known of it counts; one that was never seen is not answered from.
        """
        try:
            self._is_governed = self._governance.exists()
        except PermissionError as error:
            if self._is_governed is None:
                raise BaseForbiddenError(str(self.directory)) from error
        return self.control().in_force(tenant) if self._is_governed else NO_POLICIES

    async def retrieve(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
        local_only: bool = False,
    ) -> EvidenceResponse:
        """Answer a request; `local_only` leaves out the sources outside the base.

        The first request has to open the base: the index before its time begins to run, and what else is read for the first time while
        it does, so it waits for the base however long that takes. Models are loaded beside it, and waited for by the first request
        that may ask one, before its time begins to run as well.
        """
        is_first = not self._is_warm
        if is_first:
            await self._workers.run(self._warm)
        if self._needs_models(request):
            await self._workers.run(self._await_models)
        engine = self._engine_alone() if local_only else self.engine(self.config)
        task = RetrievalTask(engine, executor=self._workers, watch=watch, prefetch=prefetch, no_deadline=is_first)
        return await task.run(request, principal=principal)

    def retrieve_blocking(
        self, request: EvidenceRequest, *, principal: Principal, on_loop: Callable[[Coroutine[Any, Any, bool]], bool]
    ) -> EvidenceResponse:
        """Do what `retrieve` does for a thread that waits, with an event loop only where something needs one."""
        is_first = not self._is_warm
        if is_first:
            self._warm()
        if self._needs_models(request):
            self._await_models()
        task = RetrievalTask(self.engine(self.config), executor=self._workers, no_deadline=is_first)
        return task.run_blocking(request, principal=principal, on_loop=on_loop)

    @cached_property
    def layouts(self) -> EmbeddedLayouts:
        """Return what lists tables and finds images and cells for whoever may see them."""
        return EmbeddedLayouts(self.reader)

    @cached_property
    def history(self) -> EmbeddedHistory:
        """Return what knows the versions and their differences."""
        return EmbeddedHistory(self.directory, live=self.live_counts)

    @cached_property
    def tables(self) -> TableParts:
        """Return what answers questions about tables."""
        from evidentia.wiring.tabular import TableParts

        return TableParts(self.settings, open_content=self.layouts.content)

    @cached_property
    def registry(self) -> EmbeddedRegistry:
        """Return what keeps the descriptors of sources."""
        return EmbeddedRegistry(self.directory, open_writer=self.writer, check=check_change)

    @cached_property
    def notes(self) -> EmbeddedNotes:
        """Return what keeps agents' notes."""
        return EmbeddedNotes(self.directory / NOTES_NAME, clock=self.clock)

    @cached_property
    def runtime(self) -> EmbeddedKeyValues:
        """Return what keeps what was measured."""
        return EmbeddedKeyValues(self.directory / RUNTIME_NAME, wait_ms=RUNTIME_WAIT_MS)

    @cached_property
    def responses(self) -> EmbeddedResponses:
        """Return what keeps responses of sources outside the base."""
        most = self.settings.cache.most_entries
        return EmbeddedResponses(self.directory / RESPONSES_NAME, clock=self.clock, most_entries=most, wait_ms=RUNTIME_WAIT_MS)

    @cached_property
    def sources(self) -> Directory:
        """Return what asks each source in this process."""
        return Directory(self.directory, notes=self.notes, open_base=partial(open_parts, clock=self.clock, entropy=self._entropy))

    @cached_property
    def traces(self) -> TraceHub:
        """Return those who are told of every request."""
        return TraceHub(sinks_of(self.settings.telemetry, path=self.directory / TRACES_NAME))

    def recent_traces(self, limit: int) -> list[RequestTrace]:
        """Return the newest requests, newest first."""
        return [trace for sink in self.traces.sinks if isinstance(sink, SupportsTraces) for trace in sink.traces(limit=limit)]

    def find_trace(self, request_id: str) -> RequestTrace:
        """Return one request by its id, the beginning of it, or its receipt."""
        for sink in self.traces.sinks:
            found = sink.trace(RequestId(request_id)) if isinstance(sink, SupportsTraces) else None
            if found is not None:
                return found
        raise NotFoundError("trace", request_id)

    @cached_property
    def live_counts(self) -> LiveCounts:
        """Return what counts the live documents."""
        return LiveCounts(self.directory)

    def counts(self, scope: AccessScope | None, *, is_dated: bool = False) -> Mapping[SourceId, SourceCount]:
        """Return how much of each source a scope shows; attribute rules are decided by the index, which has the fields as columns."""
        if scope is None or not scope.rules:
            return self.live_counts.by_source(scope, is_dated=is_dated)
        shown = self.index.at(search=self.settings.search).documents(scope)
        return {source: SourceCount(count, None) for source, count in sorted(shown.items())}

    @cached_property
    def federation(self) -> Federation:
        """Return what asks sources outside the base."""
        return Federation(
            self.sources,
            cache=CandidateCache(
                self.responses, settings=self.settings.cache, clock=self.clock, intake=intake_identity(self.settings.sources)
            ),
            health=HealthBook(self.runtime, clock=self.clock),
            clock=self.clock,
            settings=self.settings.sources,
            fanout=self.settings.fanout,
            workers=self._workers,
        )

    def _engine_alone(self) -> Engine:
        with self._lock:
            if self._alone is None:
                self._alone = self._make_engine(self.config, federation=None)
            return self._alone

    def _warm(self) -> None:
        engine = self.engine(self.config)
        engine.warm()
        self._is_warm = True
        self._loader = threading.Thread(target=self._load_models, args=(engine,), name="evidentia-models", daemon=True)
        self._loader.start()

    def _load_models(self, engine: Engine) -> None:
        try:
            engine.open_models()
        finally:
            self._has_models.set()

    def _needs_models(self, request: EvidenceRequest) -> bool:
        return not self._has_models.is_set() and (request.mode != RetrievalMode.LEXICAL or bool(self.settings.query.rewriter))

    def _await_models(self) -> None:
        self._has_models.wait(MODELS_S)

    def warm(self) -> None:
        """Load what requests need before there is one: what a search reads, by way of one whose answer nobody sees, and the counts."""
        with self._warming:
            if not self._is_used:
                self._warm()
                self._await_models()
                self.engine(self.config).answer(_ANYTHING, principal=local_owner())
                self.live_counts.by_source(None)
                self._is_used = True

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
            on_close=self._catch_up,
        )

    def rotate_key(self) -> SigningKey:
        """Begin a new signing key, for which the present one vouches."""
        with closing(self.writer()) as writer:
            return writer.rotate_key()

    def _catch_up(self) -> None:
        """Make what was written ready to be searched before the writer says that it is done: the next request of this process sees it."""
        if self._index is not None:
            self._index.catch_up()

    def vectors(self) -> EmbeddedVectors:
        """Return what gives chunks their vectors; whoever asks for it closes it."""
        from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors

        return EmbeddedVectors(self.directory, clock=self.clock, entropy=self._entropy, wait_ms=self.settings.storage.writer_wait_ms)

    @contextmanager
    def _open_vectors(self) -> Iterator[EmbeddedVectors]:
        with closing(self.vectors()) as store:
            yield store
        self._catch_up()

    @property
    def encoder(self) -> Encoder | None:
        """Return what the settings say makes vectors; None when this base is to have none."""
        return self._models.encoder()

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

    def back_up(self, destination: Path, *, watch: Callable[[BackupProgress], None] | None, is_stopped: Callable[[], bool]) -> BackupReport:
        """Take a copy of the base, with everything that this process has decided so far."""
        with self._lock:
            controls = [*self._controls.values(), *([] if self._shared_control is None else [self._shared_control])]
        for control in controls:
            control.log.flush()
        backup = EmbeddedBackup(self.directory, files=BASE_FILES, settings=self.settings, clock=self.clock)
        return backup.take(destination, watch=watch, is_stopped=is_stopped)

    def components(self) -> BaseComponents:
        """Return the parts as `base` takes them: each is made here when it is first called for."""
        return BaseComponents(
            directory=self.directory,
            settings=self.settings,
            clock=self.clock,
            entropy=self.entropy,
            reader=self.reader,
            receipts=self.receipts,
            index=lambda: self.index,
            history=lambda: self.history,
            layouts=lambda: self.layouts,
            registry=lambda: self.registry,
            notes=lambda: self.notes,
            policies=lambda: self.control().policies,
            counts=self.counts,
            writer=self.writer,
            rotate_key=self.rotate_key,
            vectors=self._open_vectors,
            archive=lambda: closing(self.archive()),
            collector=self.collector,
            back_up=self.back_up,
            warm=self.warm,
            encoder=lambda: self.encoder,
            retrieve=self.retrieve,
            retrieve_blocking=self.retrieve_blocking,
            replayer=self.replayer,
            tables=lambda: self.tables.asker,
            federation=lambda: self.federation,
            sources=lambda: self.sources,
            governor=lambda principal, *, is_durable: self.control(is_durable=is_durable).bound_to(principal),
            recent_traces=self.recent_traces,
            find_trace=self.find_trace,
            close_sources=self.close_sources,
            close=self.close,
        )

    async def close_sources(self) -> None:
        """Stop asking, give back every connection to a source, and let the work end that an answer did not wait for."""
        if "federation" in self.__dict__:
            await self.federation.close()
        if "sources" in self.__dict__:
            await self.sources.close()
        await self._workers.close()

    def close(self) -> None:
        """Give back what is held."""
        for made in ("traces", "notes", "runtime", "responses", "tables"):
            if made in self.__dict__:
                getattr(self, made).close()
        for control in self._controls.values():
            control.close()
        if self._loader is not None:  # a process that ends while onnxruntime makes a session is aborted
            self._loader.join(LOADER_S)
        self._calls.close()
        self._offloader.close()
        self._workers.shutdown()
        self._models.close()
        self.reader.close()
        self.receipts.close()
        if self._index is not None:
            self._index.close()


def create(directory: Path, *, clock: Clock | None = None, entropy: Entropy | None = None) -> None:
    """Make an empty base with its commented settings file."""
    create_base(directory, clock=clock or SystemClock(), entropy=entropy or SystemEntropy())
    settings = directory / SETTINGS_NAME
    if not settings.exists():
        with storage_errors(directory):
            settings.write_text(settings_template(), encoding="utf-8")


def restore(backup: Path, directory: Path, *, watch: Callable[[BackupProgress], None] | None = None) -> RestoreReport:
    """Make a base from a backup in a directory that is new or empty."""
    return restore_backup(backup, directory, watch=watch)


def open_parts(
    directory: Path,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    control: GovernanceRuntime | None = None,
    attached: AttachedModels = NONE_ATTACHED,
) -> EmbeddedComponents:
    """Open the base in a directory; `control` is what governs it, where somebody has that open already.

    `attached` are models of the caller's own, in the place of those that the settings name.
    """
    if not has_base(directory):
        raise BaseMissingError(str(directory))
    return EmbeddedComponents(
        directory,
        settings=read_settings(directory),
        clock=clock or SystemClock(),
        entropy=entropy or SystemEntropy(),
        control=control,
        attached=attached,
    )


def open_base(
    directory: Path, *, clock: Clock | None = None, entropy: Entropy | None = None, control: GovernanceRuntime | None = None
) -> BaseComponents:
    """Open the base in a directory as `base` takes it."""
    return open_parts(directory, clock=clock, entropy=entropy, control=control).components()
