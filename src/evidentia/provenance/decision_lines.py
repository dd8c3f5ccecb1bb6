"""How a record of the decision log is spelt: a header that always stays, and details that can be taken out.

    header  = [seq, at_us, run, kind, policies, count, overhead_us, outcomes]    JSON without a space
    details = {"n": nonce, ...}                                                 JSON

Documents have one-letter keys in the details, since they are most of any log; every other call stands under `k` as its
contract spells it. Verdicts stand under `v`, and what each came to also in the header, so that it outlasts a redaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus, Evaluation, LogEntry, Verdict
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import PolicyAction, PolicyId
from evidentia.contracts.protocol import ReplyDrafted, SpanId, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.runs import (
    AnyCall,
    BatchClosed,
    BatchId,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    Phase,
    PoliciesRecorded,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunStarted,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ADMIN_RUN: Final = RunId("admin")
"""Under this run stands what was done to the log itself."""
REDACTED_MARK: Final = b"~"
NO_POLICIES: Final = Sha256("0" * 64)
DOCUMENT: Final = "retrieval"
TENANT_MARK: Final = "~"
"""What stands after the tenant in the id of a run that a server began: whose it was outlasts a redaction."""


class VerdictSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one verdict came to, without a word of its inputs."""

    phase: Phase
    category: str
    policy_id: PolicyId
    version: int
    digest: Sha256
    rule: str
    action: PolicyAction
    status: DecisionStatus
    is_enforced: bool


class LineHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What always stays of a record."""

    seq: int
    at_us: int
    run_id: RunId
    kind: str
    policies: Sha256
    count: int = 0
    overhead_us: float = 0.0
    outcomes: tuple[VerdictSummary, ...] = ()


class Details(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What can be taken out of a record, as it is read; verdicts stay bytes until somebody wants them."""

    call: AnyCall
    verdicts: bytes = b""


class _Document(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    n: str
    r: float = 0.0
    s: str = ""
    c: str = ""
    a: int | float | None = None
    b: BatchId | None = None
    k: str = ""
    p: SpanId | None = None
    j: str = ""


class _DecidedDocument(_Document, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    v: tuple[Verdict, ...]


class _StoredDocument(_Document, frozen=True, gc=False):
    v: msgspec.Raw = msgspec.Raw(b"")


class _WrittenCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    n: str
    k: AnyCall
    v: tuple[Verdict, ...] = ()


class _StoredCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    n: str
    k: AnyCall
    v: msgspec.Raw = msgspec.Raw(b"")


_encoder = msgspec.json.Encoder()
_decode_header = json_decoder(LineHeader)
_decode_document = json_decoder(_StoredDocument)
_decode_call = json_decoder(_StoredCall)
_decode_verdicts = json_decoder(tuple[Verdict, ...])

_KINDS: Final[Mapping[type, str]] = {
    RunStarted: "run",
    PoliciesRecorded: "policies",
    RetrievedDocument: DOCUMENT,
    BatchClosed: "batch",
    GroundingEntry: "grounding",
    ToolCall: "tool",
    LlmCall: "llm",
    StepCall: "step",
    SpanOpened: "span",
    SpanClosed: "span_end",
    CheckBypassed: "bypass",
    TaskOpened: "task",
    ToolAsked: "ask",
    ToolAnswered: "answer",
    ReplyDrafted: "reply",
    RunEnded: "end",
}
_EMPTY: Final[Mapping[str, AnyCall]] = {kind: made() for made, kind in _KINDS.items() if made is not RunStarted}


def kind_of(call: AnyCall) -> str:
    """Return the word for what was recorded."""
    return _KINDS[type(call)]


def encode_header(entry: LogEntry, *, seq: int) -> bytes:
    """Return the header of an entry; it holds no space, whatever its run is called."""
    outcomes = outcomes_of(entry.verdicts) if entry.verdicts else ()
    header = LineHeader(seq, entry.at_us, entry.run_id, _KINDS[type(entry.call)], entry.policies, entry.count, entry.overhead_us, outcomes)
    # A space can only stand inside a string here, so its escape means the same.
    return _encoder.encode(header).replace(b" ", b"\\u0020")


def outcomes_of(verdicts: Iterable[Verdict]) -> tuple[VerdictSummary, ...]:
    """Return what verdicts came to."""
    return tuple(_outcome(verdict) for verdict in verdicts)


def encode_details(entry: LogEntry, *, nonce: str) -> bytes:
    """Return the details of an entry."""
    call, verdicts = entry.call, entry.verdicts
    if type(call) is not RetrievedDocument:
        return _encoder.encode(_WrittenCall(n=nonce, k=call, v=verdicts))
    document = (call.relevance_score, call.source, call.collection, call.age_days, call.batch, call.chunk_id, call.span, call.judged_by)
    fields = (nonce, *document)
    return _encoder.encode(_DecidedDocument(*fields, v=verdicts) if verdicts else _Document(*fields))


def encode_verdicts(verdicts: tuple[Verdict, ...]) -> bytes:
    """Return verdicts as they stand in the details; nothing for none."""
    return _encoder.encode(verdicts) if verdicts else b""


def decode_header(header: bytes) -> LineHeader:
    """Read a header, or raise MsgspecError."""
    return _decode_header(header)


def decode_details(kind: str, details: bytes) -> Details:
    """Read the details of a record of a kind, or raise MsgspecError."""
    if kind == DOCUMENT:
        stored = _decode_document(details)
        return Details(call=_document(stored), verdicts=bytes(stored.v))
    other = _decode_call(details)
    return Details(call=other.k, verdicts=bytes(other.v))


def decode_document(details: bytes) -> tuple[RetrievedDocument, msgspec.Raw]:
    """Read the details of a document, which is most of what is ever read, with as little as possible around it."""
    stored = _decode_document(details)
    return _document(stored), stored.v


def decode_verdicts(verdicts: bytes) -> tuple[Verdict, ...]:
    """Read verdicts as they stand in the details."""
    return _decode_verdicts(verdicts) if verdicts else ()


def entry_of(header: LineHeader, details: bytes) -> LogEntry:
    """Return the entry that a record holds; of a redacted one, what its header still says."""
    if details.startswith(REDACTED_MARK):
        call, verdicts = empty_call(header.kind, header.run_id), tuple(_bare_verdict(outcome) for outcome in header.outcomes)
    else:
        read = decode_details(header.kind, details)
        call, verdicts = read.call, decode_verdicts(read.verdicts)
    return LogEntry(
        at_us=header.at_us,
        run_id=header.run_id,
        policies=header.policies,
        call=call,
        verdicts=verdicts,
        count=header.count,
        overhead_us=header.overhead_us,
    )


def empty_call(kind: str, run_id: RunId) -> AnyCall:
    """Return a call of a kind with nothing in it, in place of one that was taken out."""
    tenant, mark, _ = run_id.partition(TENANT_MARK)
    facts = RunFacts(run_id=run_id, agent_name="", tenant=tenant) if mark else RunFacts(run_id=run_id, agent_name="")
    return _EMPTY.get(kind) or RunStarted(facts=facts)


def _document(stored: _StoredDocument) -> RetrievedDocument:
    return RetrievedDocument(
        relevance_score=stored.r,
        source=stored.s,
        collection=stored.c,
        age_days=stored.a,
        batch=stored.b,
        chunk_id=stored.k,
        span=stored.p,
        judged_by=stored.j,
    )


def _outcome(verdict: Verdict) -> VerdictSummary:
    said = verdict.decisive
    return VerdictSummary(
        verdict.phase,
        said.category,
        said.policy_id,
        said.version,
        said.digest,
        said.rule,
        said.action,
        said.status,
        verdict.is_enforced,
    )


def _bare_verdict(outcome: VerdictSummary) -> Verdict:
    said = Evaluation(
        policy_id=outcome.policy_id,
        policy_name="",
        version=outcome.version,
        digest=outcome.digest,
        category=outcome.category,
        rule=outcome.rule,
        action=outcome.action,
        reason="",
        status=outcome.status,
    )
    return Verdict(phase=outcome.phase, decisive=said, evaluations=(said,), is_enforced=outcome.is_enforced)
