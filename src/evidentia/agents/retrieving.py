"""What an agent records about documents: one by one, in batches, or as the evidence that the engine answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from evidentia.agents.checks import LARGEST, MAX_AGE_DAYS, age_since, checked_age, checked_number, checked_numbers, checked_text
from evidentia.agents.current import current_span, innermost_span
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.telling import Teller
from evidentia.contracts.runs import BatchClosed, BatchId, RetrievedDocument, ToolCall
from evidentia.engine.governing import recorded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date, datetime
    from types import TracebackType

    from evidentia.contracts.calls import SpanId
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse
    from evidentia.contracts.ports import Clock

_FIELDS: Final = ("relevance_score", "source", "collection", "age_days", "created_at", "chunk_id")
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "relevance_score": ("score", "similarity"),
    "source": ("id", "document_id", "source_id"),
    "chunk_id": (),
}
"""What documents of other libraries call the same."""


class RetrievalRecorder(Teller):
    """The half of a context that records documents."""

    _clock: Clock
    _is_auto_grounding: bool
    _next_batch: int = 0

    def record_retrieval_result(
        self,
        *,
        relevance_score: float = 0.0,
        source: str = "",
        collection: str = "",
        age_days: float | None = None,
        created_at: datetime | date | None = None,
        batch_id: str | None = None,
        query_id: str | None = None,
        chunk_id: str = "",
    ) -> None:
        """Record one document that was retrieved; the policies decide here, and a block is raised here.

        Without `age_days` or `created_at` the age is unknown, and recorded as such. With `batch_id` (or `query_id`, the same) the
        document counts in that batch, else in the run. Raises InvalidRecordError, a ValueError, for what cannot be compared.
        """
        # Each check is a comparison that a good value passes at once; what fails one is looked at again, and refused by name.
        if relevance_score.__class__ is not float or not -LARGEST <= relevance_score <= LARGEST:
            relevance_score = checked_number(relevance_score, "relevance_score")
        if source.__class__ is not str or not source.isascii():
            source = checked_text(source, "source")
        if collection.__class__ is not str or not collection.isascii():
            collection = checked_text(collection, "collection")
        if chunk_id.__class__ is not str or not chunk_id.isascii():
            chunk_id = checked_text(chunk_id, "chunk_id")
        if created_at is not None:
            age_days = self._age(age_days, created_at)
        elif age_days is not None and (type(age_days) is not int or not 0 <= age_days <= MAX_AGE_DAYS):
            age_days = checked_age(age_days)
        batch = query_id if batch_id is None else batch_id
        call = RetrievedDocument(
            span=None if current_span.get() is None else self._retrieval_span(),
            relevance_score=relevance_score,
            source=source,
            collection=collection,
            age_days=age_days,
            batch=None if batch is None else BatchId(checked_text(batch, "batch_id")),
            chunk_id=chunk_id,
        )
        run = self._live
        if run is None:
            self._record(call)
            return
        verdicts = run.record(call)
        if verdicts:
            self._heeding.heed(run, verdicts)

    def record_retrieval_results(self, documents: Iterable[object], batch_id: str | None = None) -> None:
        """Record documents as one batch, whose count is settled when all are in.

        A document is a mapping with the names of `record_retrieval_result`, or an object with such attributes.
        """
        with self.retrieval_batch(batch_id=batch_id) as batch:
            for document in documents:
                batch.record(**_described(document))

    def retrieval_batch(self, query: str = "", *, batch_id: str | None = None) -> RetrievalBatch:
        """Return a batch for `with`: documents recorded in it are counted together, and the count is settled at its end."""
        if batch_id is None:
            self._next_batch += 1
            batch_id = f"batch-{self._next_batch}"
        return RetrievalBatch(self, BatchId(checked_text(batch_id, "batch_id")), query=query)

    def record_retrieval(
        self,
        response: EvidenceResponse | None = None,
        *,
        query: str = "",
        documents: Iterable[object] = (),
        source: str = "",
        duration_ms: float = 0,
        top_k: int | None = None,
        scores: Iterable[float] | None = None,
    ) -> None:
        """Record what a retrieval gave: an answer of the engine, or documents with their scores.

        Of an answer each fragment is recorded: its confidence, document, source and age at `as_of`. What the engine has judged says by
        which policies, so that these do not judge it twice. `source` is for documents that do not name their own.
        """
        if response is not None:
            self._record_response(response)
            return
        given = [_described(document) for document in documents]
        ranked = checked_numbers(scores, "scores")
        if ranked and len(ranked) != len(given):
            raise InvalidRecordError("scores", f"there are {len(ranked)} for {len(given)} documents; give one for each")
        described = [
            {"source": source, **each, **({"relevance_score": ranked[place]} if ranked else {})} for place, each in enumerate(given)
        ]
        attributes = self._content(query=query or None) | ({} if top_k is None else {"top_k": top_k})
        length = checked_number(duration_ms, "duration_ms")
        self._record(
            ToolCall(span=self._span(), name="retrieval", is_retrieval=True, duration_ms=length, sources=len(given), attributes=attributes)
        )
        with self.retrieval_batch(query) as batch:
            for each in described:
                batch.record(**each)
        if self._is_auto_grounding:
            self.record_grounding(
                grounding_scores=[each.get("relevance_score", 0.0) for each in described], citations=[each["source"] for each in described]
            )

    def _record_response(self, response: EvidenceResponse) -> None:
        span = self._retrieval_span()
        batch = BatchId(f"request-{response.request_id}")
        for fragment in response.fragments:
            judged_by = response.policies if _is_judged(fragment, response) else ""
            document = recorded(fragment, as_of=response.as_of)
            self._record(msgspec.structs.replace(document, span=span, batch=batch, judged_by=judged_by))
        self._record(BatchClosed(span=span, batch=batch))

    def _age(self, age_days: object, created_at: object) -> int:
        if age_days is not None:
            raise InvalidRecordError("created_at", "age_days is given as well; give one of the two")
        return age_since(created_at, now=self._clock.now())

    def _retrieval_span(self) -> SpanId | None:
        return innermost_span(self._owner(), is_retrieval=True)

    def close_batch(self, batch: BatchId) -> None:
        """Say that a batch gets no more documents; its count is settled."""
        self._record(BatchClosed(span=self._retrieval_span(), batch=batch))


class RetrievalBatch:
    """Documents that are counted together. Left by an exception it stays open, and is settled with the run."""

    def __init__(self, recorder: RetrievalRecorder, batch_id: BatchId, *, query: str) -> None:
        self._recorder = recorder
        self.batch_id = batch_id
        self.query = query

    def record(self, **document: Any) -> None:  # noqa: ANN401 - the arguments of record_retrieval_result
        """Record one document of the batch, by the names of `record_retrieval_result`."""
        self._recorder.record_retrieval_result(**document, batch_id=self.batch_id)

    def close(self) -> None:
        """Settle the count."""
        self._recorder.close_batch(self.batch_id)

    def __enter__(self) -> Self:
        """Begin it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Settle it, unless something went wrong on the way."""
        if kind is None:
            self.close()

    async def __aenter__(self) -> Self:
        """Begin it."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Settle it, unless something went wrong on the way."""
        self.__exit__(kind, error, trace)


def _is_judged(fragment: EvidenceFragment, response: EvidenceResponse) -> bool:
    """Tell whether the engine's word holds; what policies would have stopped, and only flagged, is for the run to decide."""
    return not any(remark.chunk_id == fragment.chunk_id and remark.action.stops for remark in response.governance)


def _described(document: object) -> dict[str, Any]:
    """Return a document in the names of `record_retrieval_result`; a bare text is its source."""
    if isinstance(document, str):
        return {"source": document}
    described: dict[str, Any] = {}
    for field in _FIELDS:
        for name in (field, *_OTHER_NAMES.get(field, ())):
            value = document.get(name) if hasattr(document, "get") else getattr(document, name, None)
            if value is not None:
                described[field] = value
                break
    return described
