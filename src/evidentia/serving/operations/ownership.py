"""Whose runs, decisions and receipts are whose, and what others than the owner see of them.

Readers and agents see their own. Auditors and admins see those of their tenant, within their clearance: of a run whose owner was cleared
for more they see that it happened and what was decided, and ids of documents and chunks that they may not see stand there keyed.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import NAME_PATTERN
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.operations import AUDITORS
from evidentia.contracts.runs import RunFacts, RunId, RunSummary, RunTrace
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.result_hashes import sealed
from evidentia.governance.decision_expansion import withheld
from evidentia.governance.log_scan import KeptLogs, beginnings_of
from evidentia.policy.access import owner_digest
from evidentia.provenance.decision_chain import redact_line, split_line
from evidentia.provenance.decision_lines import TENANT_MARK as MARK
from evidentia.serving.operations.api_errors import bad_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.base.async_base import AsyncBase
    from evidentia.contracts.control import AuditEntry
    from evidentia.contracts.decisions import PolicyDecision, RecordProof
    from evidentia.contracts.doors import ReceiptView
    from evidentia.contracts.policy_trials import ShadowReport
    from evidentia.contracts.receipts import Receipt, ReplayReport
    from evidentia.contracts.telemetry import RequestTrace, TraceSpan
    from evidentia.serving.operations.endpoint import OperationRequest
    from evidentia.serving.operations.server_context import ServerContext

_NAMESPACE_DIGITS: Final = 16
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK: Final = re.compile(r"[^\s\"'<>]+#\d+@[0-9a-f]{16}")
_NO_CONTENT: Final = frozenset({"judged_by", "owner"})
"""Hashes of policies and principals, which are no content."""
_Message = TypeVar("_Message", bound=msgspec.Struct)


class Viewer:
    """Whoever asks, towards what somebody began. For one request."""

    def __init__(self, context: ServerContext, operation: OperationRequest) -> None:
        self._base = context.served_base
        self._principal = operation.principal
        self._token = operation.token
        self._tenant = operation.tenant
        self._own = owner_digest(operation.principal)
        self._namespace = MARK.join((operation.tenant, _digest(operation.token.token_id, self._own)[:_NAMESPACE_DIGITS], ""))
        self._sees_others = bool(set(AUDITORS) & set(operation.token.roles))
        self._masks: dict[str, str] = {}

    @property
    def owner(self) -> str | None:
        """Return whose runs may be read; None for everybody's of the tenant."""
        return None if self._sees_others else self._own

    # --- runs by their names: another's answers like one that is not there ---

    def new_run(self, name: str) -> RunId:
        """Return what a run that begins is called in the log, in the namespace of its token; a name that is none is refused."""
        if not re.fullmatch(NAME_PATTERN, name):
            raise bad_field("facts.run_id", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
        return RunId(self._namespace + name)

    def own_run(self, name: str) -> RunId:
        """Return what a run of this token is called in the log, by that name or by the client's own."""
        if MARK in name and not name.startswith(self._namespace):
            raise NotFoundError("run", name)
        return RunId(name if MARK in name else self._namespace + name)

    def find_run(self, log: KeptLogs, name: str) -> RunFacts:
        """Return a run of the plane or of a process beside it; only one that is wholly for whoever asks is there."""
        candidates = tuple(dict.fromkeys((RunId(name if MARK in name else self._namespace + name), RunId(name))))
        begun = beginnings_of(log, candidates)
        for candidate in candidates:
            found = begun.get(candidate, ())
            if found and all(self.may_read(facts) for facts in found):
                return found[-1]
        raise NotFoundError("run", name)

    def may_read(self, facts: RunFacts) -> bool:
        """Tell whether a run may be read at all."""
        return facts.tenant == self._tenant and (self._sees_others or facts.owner == self._own)

    # --- what others began, as it may be seen ---

    def summary(self, summary: RunSummary) -> RunSummary:
        """Return a line of the list of runs."""
        if not self._is_above(summary.facts):
            return summary
        return msgspec.structs.replace(summary, facts=msgspec.structs.replace(summary.facts, metadata={}))

    def trace(self, trace: RunTrace) -> RunTrace:
        """Return a run with its spans."""
        facts = trace.summary.facts
        if facts.owner == self._own:
            return trace
        if not self._is_above(facts):
            return self._masked(trace, [(span.name, span.attributes) for span in trace.spans])
        spans = tuple(msgspec.structs.replace(span, name=span.kind, attributes={"is_redacted": True}) for span in trace.spans)
        return msgspec.structs.replace(trace, summary=self.summary(trace.summary), spans=spans)

    def decision(self, facts: RunFacts, decision: PolicyDecision) -> PolicyDecision:
        """Return a decision about a run."""
        if facts.owner == self._own:
            return decision
        return withheld(decision) if self._is_above(facts) else self._masked(decision, (decision.inputs, decision.metadata))

    def proof(self, facts: RunFacts, proof: RecordProof) -> RecordProof:
        """Return the proof of a record; another's line comes without its details, and proves as much."""
        if facts.owner == self._own:
            return proof
        return msgspec.structs.replace(proof, line=redact_line(split_line(proof.line.encode())).decode().rstrip("\n"))

    async def find_receipt(self, receipt_id: str) -> Receipt:
        """Return a receipt that may be read; another's is not there."""
        return await self._base.receipt(receipt_id, asker=self._principal, sees_others=self._sees_others)

    def receipt(self, receipt: Receipt, view: ReceiptView) -> ReceiptView:
        """Return what a receipt says; another's hashes of what was answered are keyed, and a question above the clearance is left out."""
        caller = receipt.request.principal
        if caller is None or caller == self._principal:
            return view
        keyed = self._base.keyed
        versions = ("corpus_version", "evidence_state") if caller.is_owner else ()  # everybody else's are keyed already
        names = [name for name in ("result_hash", "response_hash", *versions) if getattr(view, name)]
        query = "" if caller.clearance.rank > self._principal.clearance.rank else view.query
        shown = msgspec.structs.replace(view, query=query, **{name: keyed(getattr(view, name)) for name in names})
        return self._masked(shown, view.fragments)

    def replay(self, receipt: Receipt, report: ReplayReport) -> ReplayReport:
        """Return a replay of a receipt; the hashes of another's whole answer, which holds more than is shown, are keyed."""
        if receipt.request.principal == self._principal or not report.hidden:
            return report
        keyed, response = self._base.keyed, report.response
        shown = msgspec.structs.replace(response, request_hash=keyed(response.request_hash), result_hash=keyed(response.result_hash))
        return msgspec.structs.replace(
            report, recorded_hash=keyed(report.recorded_hash), result_hash=keyed(report.result_hash), response=sealed(shown)
        )

    @property
    def sees_whole_base(self) -> bool:
        """Tell whether hashes of all documents are told as the owner sees them: to the operator's auditors and admins of full clearance."""
        return self._sees_others and self._tenant == DEFAULT_TENANT and self._principal.clearance is Classification.RESTRICTED

    @property
    def base(self) -> AsyncBase:
        """Return the base as whoever asks sees it: as its owner does, or as the principal may."""
        return self._base.base_of(self._tenant) if self.sees_whole_base else self._base.base_for(self._principal, self._token)

    def version(self, message: _Message) -> _Message:
        """Return what names a version; nobody is to test a guess at a document by it."""
        return self._keyed(message, "corpus_version", "evidence_state")

    def request(self, trace: RequestTrace) -> RequestTrace:
        """Return the trace of a request; nobody is to test a guess at who asked, or at the answer, by it.

        Documents and sources are named to those alone who may see the whole base.
        """
        if self.sees_whole_base:
            return trace
        spans = tuple(_without_documents(each) for each in trace.spans if each.kind != "source")
        return self._keyed(msgspec.structs.replace(trace, spans=spans, degraded=()), "principal_fingerprint", "result_hash")

    def _keyed(self, message: _Message, *names: str) -> _Message:
        given = {} if self.sees_whole_base else {name: getattr(message, name, "") for name in names}
        return msgspec.structs.replace(message, **{name: self._base.keyed(value) for name, value in given.items() if value})

    def report(self, report: ShadowReport) -> ShadowReport:
        """Return what a policy would have changed; it speaks of documents by their ids."""
        return self._masked(report, [each.name for each in report.changes.sources])

    def changes(self, changes: Sequence[AuditEntry]) -> list[AuditEntry]:
        """Return lines of the audit, some of which are about documents."""
        return [self._masked(each, each.subject) for each in changes]

    def _is_above(self, facts: RunFacts) -> bool:
        """Tell whether the owner of a run was cleared for more than whoever asks."""
        known = facts.clearance in Classification.words() and facts.owner != self._own
        return known and Classification(facts.clearance).rank > self._principal.clearance.rank

    def _masked(self, message: _Message, given: object) -> _Message:
        """Return a message in which every id and hash that was given, and may not be seen, stands keyed."""
        hidden = self._hidden_in(given)
        if not hidden:
            return message
        encoded = msgspec.json.encode(message)
        for name in sorted(hidden, key=lambda each: (-len(each), each)):
            encoded = encoded.replace(msgspec.json.encode(name)[1:-1], msgspec.json.encode(self._masks[name])[1:-1])
        return decode_json(encoded, type(message))

    def _hidden_in(self, given: object) -> set[str]:
        texts = set(_texts(given))
        names = texts | {found for text in texts for found in _CHUNK.findall(text)}
        self._masks |= self._base.masks(names - self._masks.keys(), principal=self._principal)
        hashes = {found for text in texts for found in _HASH.findall(text)}
        self._masks |= {each: self._base.keyed(each) for each in hashes - self._masks.keys()}
        return (names | hashes) & self._masks.keys()


def _texts(given: object) -> Iterator[str]:
    """Yield every text in a value as JSON has it."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict):
        for name, value in given.items():
            yield from () if name in _NO_CONTENT else _texts([name, value])
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _texts(value)


def _digest(*parts: str) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _without_documents(span: TraceSpan) -> TraceSpan:
    told = {name: value for name, value in span.attributes.items() if not name.startswith("document.")}
    return msgspec.structs.replace(span, attributes=told, note="")
