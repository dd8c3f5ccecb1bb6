"""What the spans say, in the words of two conventions side by side, for readers of either.

OpenTelemetry: the GenAI conventions for retrieval spans, in development, as of semantic conventions 1.41; what they mark as
opt-in (`gen_ai.retrieval.documents`, `gen_ai.retrieval.query.text`) is left out. OpenInference: 0.1, kind and documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.vocabulary import CoverageState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

    Attributes = dict[str, str | int | float | bool | tuple[str, ...]]

RETRIEVAL: Final = "retrieval"
PROVIDER: Final = "evidentia"
DEADLINE: Final = "deadline_exceeded"
DOCUMENT: Final = "document."
"""How the attributes begin that name the fragments of an answer: `document.<place>.id` and `document.<place>.score`."""
_KIND: Final = "openinference.span.kind"
_STAGE_KINDS: Final = {"rerank": "RERANKER", "govern": "GUARDRAIL"}
_ERRORS: Final = {CoverageState.TIMED_OUT: "timeout", CoverageState.BREAKER_OPEN: "breaker_open"}


def request_attributes(trace: RequestTrace) -> Attributes:
    """Return what is said of a request as a whole."""
    attributes: Attributes = {
        "gen_ai.operation.name": RETRIEVAL,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.top_k": float(trace.limit),
        _KIND: "RETRIEVER",
        "evidentia.request_id": trace.request_id,
        "evidentia.result_hash": trace.result_hash,
        "evidentia.tenant": trace.tenant,
        "evidentia.principal_fingerprint": trace.principal_fingerprint,
        "evidentia.mode": trace.mode,
        "evidentia.deadline_ms": trace.deadline_ms,
        "evidentia.fragments": trace.fragments,
        "evidentia.candidates": trace.candidates,
        "evidentia.tokens_used": trace.tokens_used,
        "evidentia.cache_hit_ratio": trace.cache_hit_ratio,
    }
    if trace.receipt_id is not None:
        attributes["evidentia.receipt_id"] = trace.receipt_id
    if trace.degraded:
        attributes["evidentia.degraded"] = trace.degraded
    if trace.agent_name:
        attributes["gen_ai.agent.name"] = attributes["agent.name"] = trace.agent_name
    if request_error(trace):
        attributes["error.type"] = request_error(trace)
    return attributes | _documents(trace)


def stage_attributes(span: TraceSpan) -> Attributes:
    """Return what is said of a stage; the fragments are named by the request."""
    attributes: Attributes = {_KIND: _STAGE_KINDS.get(span.name, "CHAIN"), "evidentia.stage": span.name}
    if span.note:
        attributes["evidentia.note"] = span.note
    return attributes | _own(span.attributes)


def source_attributes(span: TraceSpan) -> Attributes:
    """Return what is said of one source's part."""
    attributes: Attributes = {
        "gen_ai.operation.name": RETRIEVAL,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.data_source.id": span.name,
        _KIND: "RETRIEVER",
        "evidentia.state": span.state.value if span.state else "",
    }
    if span.note:
        attributes["evidentia.note"] = span.note
    if source_error(span):
        attributes["error.type"] = source_error(span)
    return attributes | _own(span.attributes)


def request_error(trace: RequestTrace) -> str:
    """Return what kind of error a request ended in: an answer that lacks something is none, one that is late is."""
    return DEADLINE if trace.latency_ms > trace.deadline_ms else ""


def source_error(span: TraceSpan) -> str:
    """Return what kind of error a source's part ended in; a source that was not to be asked made none."""
    if span.state is CoverageState.FAILED:
        return span.note or "_OTHER"
    return _ERRORS.get(span.state, "") if span.state else ""


def _documents(trace: RequestTrace) -> Attributes:
    """Return the ids and scores of the answer's fragments, best first, as OpenInference spells them."""
    named: Attributes = {}
    for span in trace.spans:
        for name, value in span.attributes.items():
            if span.kind == "stage" and name.startswith(DOCUMENT):
                place, _, field = name.removeprefix(DOCUMENT).partition(".")
                named[f"retrieval.documents.{place}.document.{field}"] = value
    return named


def _own(attributes: Mapping[str, str | int | float | bool]) -> Attributes:
    return {f"evidentia.{name}": value for name, value in attributes.items() if not name.startswith(DOCUMENT)}
