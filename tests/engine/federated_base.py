"""An embedded base that asks sources outside it, in virtual time: real parts, no threads, and sources that tests write themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from engine.cached_answers import DictResponses
from evidentia.contracts.access import local_owner
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import CacheSettings, FanoutSettings, SourceSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourceConnection, SourceDescriptor, SourcePolicy
from evidentia.contracts.vocabulary import ConnectionKind, LatencyTier, RetrievalMode, SourceType
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.retrieval_task import RetrievalTask
from evidentia.federation.candidate_cache import CandidateCache
from evidentia.federation.federated_search import Federation
from evidentia.federation.source_health import HealthBook
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.testing.virtual_time import InlineBlockingExecutor, VirtualClock, run_virtual
from evidentia.wiring import embedded as wiring
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
    from evidentia.contracts.ports import BlockingRetriever, Encoder, ResponseStore, Retriever
    from evidentia.contracts.telemetry import RequestTrace

OWNER = local_owner()
OPEN = SourceAccessPolicy()
WITHOUT_VECTORS = '[embedding]\nencoder = "none"\n'


class ListedTraces:
    """Implements `TraceSink` as a list of the last few."""

    def __init__(self) -> None:
        self.traces: list[RequestTrace] = []

    def record(self, trace: RequestTrace) -> None:
        """Keep a trace."""
        self.traces = [*self.traces[-9:], trace]


class FederatedBase:
    """One base on disk, and as many engines over it as a test wants, each with caches, breakers and measures of its own."""

    def __init__(
        self,
        directory: Path,
        *,
        documents: Sequence[PreparedDocument] = (),
        descriptors: Iterable[SourceDescriptor] = (),
        settings: str = WITHOUT_VECTORS,
        encoder: Callable[[], Encoder | None] = lambda: None,
    ) -> None:
        self.clock, self.entropy = VirtualClock(), RepeatableEntropy()
        self._encoder = encoder
        wiring.create(directory, clock=self.clock, entropy=self.entropy)
        (directory / SETTINGS_NAME).write_text(settings, encoding="utf-8")
        self.parts = wiring.open_parts(directory, clock=self.clock, entropy=self.entropy)
        self.commit(ChangeSet(documents=tuple(documents)), *descriptors)

    def commit(self, changes: ChangeSet, *descriptors: SourceDescriptor) -> None:
        """Change documents and register sources, all in one version."""
        writer = self.parts.writer()
        try:
            for descriptor in descriptors:
                writer.register(descriptor)
            writer.commit(changes)
        finally:
            writer.close()

    def attach(self, retrievers: Mapping[str, Retriever | BlockingRetriever]) -> None:
        """Let objects answer for sources."""
        for source_id, retriever in retrievers.items():
            self.parts.sources.attach(SourceId(source_id), retriever)

    def asking(
        self,
        *,
        cache: CacheSettings | None = None,
        sources: SourceSettings | None = None,
        fanout: FanoutSettings | None = None,
        store: ResponseStore | None = None,
    ) -> Asking:
        """Return an engine that has asked nobody yet."""
        limits = sources or SourceSettings()
        kept = store if store is not None else DictResponses(self.clock)
        traces = ListedTraces()
        federation = Federation(
            self.parts.sources,
            cache=CandidateCache(kept, settings=cache or CacheSettings(), clock=self.clock),
            health=HealthBook(None, clock=self.clock),
            clock=self.clock,
            settings=limits,
            fanout=fanout or FanoutSettings(),
        )
        return Asking(self, self._engine(limits, federation, traces), federation, traces)

    def alone(self, *, sources: SourceSettings | None = None) -> Engine:
        """Return an engine that asks nobody outside."""
        return self._engine(sources or SourceSettings(), None, None)

    def close(self) -> None:
        """Give back what is held."""
        self.parts.close()

    def _engine(self, limits: SourceSettings, federation: Federation | None, traces: ListedTraces | None) -> Engine:
        models = Models(encoder=self._encoder, reranker=lambda: None, rewriter=lambda: None, merger=lambda: None, synonyms=None)
        return Engine(
            self.parts.index,
            receipts=self.parts.receipts,
            config=msgspec.structs.replace(self.parts.config, sources=limits),
            models=models,
            clock=self.clock,
            entropy=self.entropy,
            federation=None if federation is None else lambda: federation,
            sink=traces,
        )


class Asking:
    """An engine with its federation, asked on an event loop of virtual time."""

    def __init__(self, base: FederatedBase, engine: Engine, federation: Federation, traces: ListedTraces) -> None:
        self._base = base
        self.engine = engine
        self.federation = federation
        self.traces = traces

    async def retrieve(
        self,
        request: EvidenceRequest,
        *,
        principal: Principal = OWNER,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
    ) -> EvidenceResponse:
        """Answer a request on the running loop."""
        task = RetrievalTask(self.engine, executor=InlineBlockingExecutor(), watch=watch, prefetch=prefetch)
        return await task.run(request, principal=principal)

    def answer(self, request: EvidenceRequest, *, principal: Principal = OWNER, prefetch: bool = False) -> EvidenceResponse:
        """Answer a request on a loop of its own; whatever is late is given up with it."""
        return run_virtual(self.retrieve(request, principal=principal, prefetch=prefetch), clock=self._base.clock)

    def answers(self, requests: Sequence[tuple[EvidenceRequest, Principal]]) -> list[EvidenceResponse]:
        """Answer requests one after the other on one loop."""

        async def one_by_one() -> list[EvidenceResponse]:
            return [await self.retrieve(request, principal=principal) for request, principal in requests]

        return run_virtual(one_by_one(), clock=self._base.clock)


def describe(name: str, *, policy: SourceAccessPolicy = OPEN, **fields: object) -> SourceDescriptor:
    """Return the descriptor of a source that is a Python object."""
    return SourceDescriptor(
        **{
            "source_id": SourceId(name),
            "source_type": SourceType.API,
            "latency_tier": LatencyTier.WARM,
            "access_policy": policy,
            "connection": SourceConnection(kind=ConnectionKind.PYTHON),
            **fields,
        }  # type: ignore[arg-type]  # the fields of a descriptor
    )


def ask(query: str | DecomposedQuery, *, policy: SourcePolicy | None = None, **fields: object) -> EvidenceRequest:
    """Return a request that asks as many sources as there are, by words alone, and leaves no receipt."""
    return EvidenceRequest(
        **{
            "query": DecomposedQuery(text=query) if isinstance(query, str) else query,
            "source_policy": policy or SourcePolicy(most_sources=12),
            "mode": RetrievalMode.LEXICAL,
            "receipt": False,
            **fields,
        }  # type: ignore[arg-type]  # the fields of a request
    )
