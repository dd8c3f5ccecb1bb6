"""The rules of the category `retrieval` as pure functions: from limits, counts and a document to violations.

Order: the count, then relevance, blocked source, collection and age of the document. The first block ends a policy's evaluation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import FieldProblem
from evidentia.contracts.policies import Compat, Policy, PolicyAction, RetrievalRules
from evidentia.contracts.runs import BatchClosed, BatchId, GroundingEntry, LlmCall, Phase, RetrievedDocument, RunEnded, StepCall, ToolCall
from evidentia.policy.handlers import (
    OUT_OF_RANGE,
    Category,
    CategoryOutcome,
    TypedPolicy,
    Unjudged,
    Violation,
    check_call,
    is_out_of_range,
    set_digest,
)
from evidentia.policy.posture import action_of, posture_of
from evidentia.policy.rule_checks import days, percent, percent_of, shortest, shown, two_decimals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.protocol import Metadata, RunCall


# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_ALLOW: Final = PolicyAction.ALLOW
_WARN: Final = PolicyAction.WARN
_BLOCK: Final = PolicyAction.BLOCK
_EVALUATED: Final = DecisionStatus.EVALUATED
_BYPASSED: Final = DecisionStatus.BYPASSED
_PROVISIONAL: Final = DecisionStatus.PROVISIONAL

_UNSAID: Metadata = {}


class RetrievalLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one policy asks, in the form in which it is compared; equal rules have equal limits."""

    min_relevance: float
    max_age: int
    min_chunks: int
    max_chunks: int
    allowed: tuple[str, ...]
    blocked: frozenset[str]
    max_ratio: float | None
    """None where several sources are not required."""
    on_low_relevance: PolicyAction
    on_stale: PolicyAction
    on_count: PolicyAction
    on_unknown_age: PolicyAction
    is_literal: bool
    repeats_count: bool
    """Whether too many documents are spoken of at every further one."""
    ends_at_low_relevance: bool
    low_relevance: str
    """How the reason goes on after the score."""

    def passes(self, document: RetrievedDocument, count: int) -> bool:
        """Tell whether there is surely nothing to say about a document; False is no answer."""
        age = document.age_days
        return (
            document.relevance_score >= self.min_relevance
            and self.min_chunks <= count
            and (count <= self.max_chunks or (count > self.max_chunks + 1 and not self.repeats_count))
            and document.source not in self.blocked
            and (not self.allowed or document.collection in self.allowed)
            and (self.on_unknown_age is _ALLOW if age is None else age <= self.max_age)
        )


def limits_of(policy: Policy, rules: RetrievalRules) -> RetrievalLimits:
    """Return the limits of a policy; for unknown ages the stronger of its rule and its posture holds."""
    unknown = (PolicyAction(rules.action_on_unknown_age.value), action_of(posture_of(policy, "max_source_age_days")))
    on_count = PolicyAction(rules.action_on_chunk_violation.value)
    on_low_relevance = PolicyAction(rules.action_on_low_relevance.value)
    is_literal = policy.body.compat is Compat.LITERAL
    return RetrievalLimits(
        min_relevance=rules.min_relevance_score,
        max_age=rules.max_source_age_days,
        min_chunks=rules.min_chunks,
        max_chunks=rules.max_chunks,
        allowed=rules.allowed_collections,
        blocked=frozenset(rules.blocked_sources),
        max_ratio=rules.max_single_source_ratio if rules.require_source_diversity else None,
        on_low_relevance=on_low_relevance,
        on_stale=PolicyAction(rules.action_on_stale_source.value),
        on_count=on_count,
        on_unknown_age=max(unknown, key=lambda action: action.rank),
        is_literal=is_literal,
        repeats_count=is_literal or on_count is _BLOCK,
        ends_at_low_relevance=is_literal or on_low_relevance is _BLOCK,
        low_relevance=f" below threshold ({two_decimals(rules.min_relevance_score)})",
    )


def check_retrieval(rules: RetrievalRules) -> Iterable[FieldProblem]:
    """Yield what the types of the rules cannot say."""
    if rules.min_chunks > rules.max_chunks:
        yield FieldProblem("min_chunks", f"{rules.min_chunks} is more than max_chunks, which is {rules.max_chunks}")
    # Not in the type: policies that were stored before it was asked stay readable.
    if is_out_of_range(rules.min_relevance_score):
        yield FieldProblem("min_relevance_score", f"{shortest(rules.min_relevance_score)} {OUT_OF_RANGE}; write 0.75 for 75 percent")


class CheckedDocument(NamedTuple):
    """A document that some policy may object to, with what is the same for all policies."""

    document: RetrievedDocument
    chunk_count: int
    """How many documents its batch holds with it."""
    score: str
    flags: Metadata

    @classmethod
    def of(cls, document: RetrievedDocument, *, count: int) -> Self:
        """Return a document as the `count`-th of its batch."""
        flags: Metadata = {"score_out_of_range": True} if is_out_of_range(document.relevance_score) else _UNSAID
        return cls(document=document, chunk_count=count, score=two_decimals(document.relevance_score), flags=flags)


def judge_document(limits: RetrievalLimits, candidate: CheckedDocument) -> Sequence[Violation]:
    """Return what a policy says of a document; empty when it passes."""
    document, count, score, flags = candidate
    found: list[Violation] = []
    if not limits.min_chunks <= count <= limits.max_chunks:
        counted = _judge_count(limits, count)
        if counted is not None:
            found.append(counted)
            if limits.is_literal or counted.action is _BLOCK:
                return found
    if document.relevance_score < limits.min_relevance:
        low = Violation(
            rule="min_relevance_score",
            action=limits.on_low_relevance,
            reason=f"Retrieval relevance ({score}){limits.low_relevance}",
            metadata={"relevance_score": document.relevance_score, "threshold": limits.min_relevance, **flags},
        )
        found.append(low)
        if limits.ends_at_low_relevance:
            return found
    age = document.age_days
    if document.source in limits.blocked or (limits.allowed and document.collection not in limits.allowed):
        found.append(_foreign(limits, document, flags))
    elif age is None:
        if limits.on_unknown_age is not _ALLOW:
            found.append(_unknown_age(limits, flags))
    elif age > limits.max_age:
        found.append(_stale(limits, age, flags))
    return found


def _foreign(limits: RetrievalLimits, document: RetrievedDocument, flags: Metadata) -> Violation:
    """Return what is said of a blocked source, or else of a collection that is not allowed; both always block."""
    if document.source in limits.blocked:
        return Violation(
            rule="blocked_sources",
            action=_BLOCK,
            reason=f"Retrieved from blocked source '{shown(document.source)}'",
            metadata={"blocked_source": document.source, **flags},
        )
    return Violation(
        rule="allowed_collections",
        action=_BLOCK,
        reason=f"Collection '{shown(document.collection)}' not in allowed list",
        metadata={"collection": document.collection, "allowed": list(limits.allowed), **flags},
    )


def _stale(limits: RetrievalLimits, age: float, flags: Metadata) -> Violation:
    return Violation(
        rule="max_source_age_days",
        action=limits.on_stale,
        reason=f"Source age ({days(age)} days) exceeds max ({limits.max_age} days)",
        metadata={"age_days": age, "max_age": limits.max_age, **flags},
    )


def _judge_count(limits: RetrievalLimits, count: int) -> Violation | None:
    """Return what a growing count violates: too many is said once, by a block again and again; too few is provisional."""
    if count < limits.min_chunks:
        return _too_few(limits, count, is_provisional=not limits.is_literal)
    if count <= limits.max_chunks or not (limits.repeats_count or count == limits.max_chunks + 1):
        return None
    reason, metadata = too_many(limits, count)
    return Violation(rule="max_chunks", action=limits.on_count, reason=reason, metadata=metadata)


def too_many(limits: RetrievalLimits, count: int) -> tuple[str, Metadata]:
    """Return how a count over the maximum is told: as a violation where it is crossed, and not as within policy afterwards."""
    return f"Retrieved chunks ({count}) exceeds max ({limits.max_chunks})", {"chunk_count": count, "limit": limits.max_chunks}


def judge_settled(limits: RetrievalLimits, count: int) -> Violation | None:
    """Return what a policy says of a batch that gets no more documents; read literally, only an empty one is still open."""
    if count >= limits.min_chunks or (limits.is_literal and count):
        return None
    return _too_few(limits, count)


def judge_diversity(limits: RetrievalLimits, sources: Mapping[str, int]) -> Violation | None:
    """Return the warning about sources that dominate a run's documents, by descending share and then name."""
    total = sum(sources.values())
    if limits.max_ratio is None or not total:
        return None
    ratio = limits.max_ratio
    dominating = sorted((-number, source) for source, number in sources.items() if number / total > ratio)
    if not dominating:
        return None
    warnings = [
        f"Source '{shown(source)}' dominates at {percent_of(-number, total)}% (max {percent(ratio)}%)" for number, source in dominating
    ]
    return Violation(rule="max_single_source_ratio", action=_WARN, reason="; ".join(warnings), metadata={"warnings": warnings})


def document_notes(document: RetrievedDocument) -> dict[str, object]:
    """Return what an allow says about a document besides the count: what is not known of it, and what is odd."""
    notes: dict[str, object] = {}
    if document.age_days is None:
        notes = {"age_days": None, "unknown_age": True}
    if is_out_of_range(document.relevance_score):
        notes["score_out_of_range"] = True
    return notes


def _too_few(limits: RetrievalLimits, count: int, *, is_provisional: bool = False) -> Violation:
    return Violation(
        rule="min_chunks",
        action=_WARN if is_provisional else limits.on_count,
        reason=f"Retrieved chunks ({count}) below minimum ({limits.min_chunks})",
        metadata={"chunk_count": count, "limit": limits.min_chunks},
        status=_PROVISIONAL if is_provisional else _EVALUATED,
    )


def _unknown_age(limits: RetrievalLimits, flags: Metadata) -> Violation:
    return Violation(
        rule="max_source_age_days",
        action=limits.on_unknown_age,
        reason=f"Source age is unknown (max {limits.max_age} days)",
        metadata={"age_days": None, "max_age": limits.max_age, **flags},
        status=_BYPASSED,
    )


# --- retrieval run ---
# Follows a run for the policies of the category `retrieval`.
#
# Limits of all policies are merged, so that a document which passes them costs the same for one policy and for a hundred; only where the
# merged limits fail is each policy asked.

_TITLE: Final = "Retrieval"


class CompiledRetrieval(Unjudged):
    """The limits of every policy, those that all share, and the merged ones."""

    title = _TITLE
    listens_to: Final = (RetrievedDocument, BatchClosed, GroundingEntry, LlmCall, StepCall, ToolCall)

    def __init__(self, policies: Sequence[TypedPolicy]) -> None:
        self.digest = set_digest(each.policy for each in policies)
        self.places = _by_limits([limits_of(each.policy, each.rules) for each in policies])
        limits = list(self.places)
        self.needs_sources = any(each.max_ratio is not None for each in limits)
        self.min_chunks = max(each.min_chunks for each in limits)
        self.max_chunks = min(each.max_chunks for each in limits)
        # Beyond these a count is spoken of at every document; at a crossing only once.
        self.repeated_max = min((each.max_chunks for each in limits if each.repeats_count), default=math.inf)
        self.crossings = frozenset(each.max_chunks + 1 for each in limits if not each.repeats_count)
        self.min_relevance = max(each.min_relevance for each in limits)
        self.max_age = min(each.max_age for each in limits)
        self.blocked = frozenset[str]().union(*(each.blocked for each in limits))
        self.allowed = _allowed_by_all(limits)
        self.passes_unknown_age = all(each.on_unknown_age is PolicyAction.ALLOW for each in limits)

    def start(self) -> RetrievalRun:
        """Return what follows a new run."""
        return RetrievalRun(self)

    def passed(self, call: RunCall, *, count: int) -> CategoryOutcome | None:
        """Return what a document that passed stands for; a count that settles in silence stands for nothing, nor what was judged before."""
        if not isinstance(call, RetrievedDocument) or call.judged_by == self.digest:
            return None
        return self.outcome(Phase.MID_EXECUTION, {}, count=count, notes=document_notes(call))

    def outcome(
        self,
        phase: Phase,
        found: Mapping[int, Sequence[Violation]],
        *,
        count: int,
        most: int | None = None,
        notes: Mapping[str, object] | None = None,
    ) -> CategoryOutcome:
        """Return an outcome; `most` is the largest count that was reached where that is not `count`."""
        reached = count if most is None else most
        since: dict[int, tuple[str, Metadata]] = {}
        for limits, places in self.places.items() if reached > self.max_chunks else ():
            if reached > limits.max_chunks:
                reason, metadata = too_many(limits, reached)
                since.update(dict.fromkeys(places, (reason, {**metadata, **(notes or {})})))
        reason = f"Retrieval quality within policy ({count} chunks)"
        return CategoryOutcome(phase=phase, found=found, reason=reason, metadata={"chunk_count": count, **(notes or {})}, since=since)

    def judge(self, document: RetrievedDocument, *, count: int) -> dict[int, Sequence[Violation]]:
        """Return what each policy says of a document, by its position; empty when it passes all."""
        found: dict[int, Sequence[Violation]] = {}
        candidate = CheckedDocument.of(document, count=count)
        for limits, places in self.places.items():
            if limits.passes(document, count):
                continue
            if violations := judge_document(limits, candidate):
                for place in places:
                    found[place] = violations
        return found

    def settle(self, counts: Iterable[int]) -> dict[int, Sequence[Violation]]:
        """Return what each policy says of batches that get no more documents."""
        low = [count for count in counts if count < self.min_chunks]
        found: dict[int, Sequence[Violation]] = {}
        for limits, places in self.places.items() if low else ():
            violations = [violation for count in low if (violation := judge_settled(limits, count)) is not None]
            if violations:
                found.update(dict.fromkeys(places, violations))
        return found


class RetrievalRun:
    """Counts the documents of a run and decides about each. Cost per call does not grow with the run."""

    __slots__ = (
        "_allowed",
        "_blocked",
        "_compiled",
        "_counts",
        "_crossings",
        "_max_age",
        "_max_chunks",
        "_min_chunks",
        "_min_relevance",
        "_open",
        "_passes_unknown_age",
        "_repeated_max",
        "_settled",
        "_sources",
        "count",
    )

    def __init__(self, compiled: CompiledRetrieval) -> None:
        self._compiled = compiled
        self._min_chunks, self._max_chunks = compiled.min_chunks, compiled.max_chunks
        self._repeated_max, self._crossings = compiled.repeated_max, compiled.crossings
        self._min_relevance, self._max_age = compiled.min_relevance, compiled.max_age
        self._blocked, self._allowed = compiled.blocked, compiled.allowed
        self._passes_unknown_age = compiled.passes_unknown_age
        self._counts: dict[BatchId | None, int] = {}
        self._open: dict[BatchId | None, None] = {}
        self._settled: set[BatchId | None] = set()
        self._sources: dict[str, int] | None = {} if compiled.needs_sources else None
        self.count = 0

    def record(self, call: RunCall) -> CategoryOutcome | None:
        """Take a call: a document is judged, the end of a batch and any call that does not retrieve settle counts."""
        if call.__class__ is RetrievedDocument:
            if call.judged_by == self._compiled.digest:
                self._known(call)
                return None
            return self._document(call)
        self.count = 0
        if isinstance(call, BatchClosed):
            return self._settle([call.batch] if call.batch not in self._settled else [])
        if not self._open or (isinstance(call, ToolCall) and call.is_retrieval):
            return None
        return self._settle(list(self._open))

    def finish(self, end: RunEnded) -> CategoryOutcome:
        """Settle what is open, or a run without any document, and look for sources that dominate."""
        del end
        left = list(self._open) if self._counts or self._settled else [None]
        found = self._compiled.settle([self._counts.get(batch, 0) for batch in left])
        self._close(left)
        for limits, places in self._compiled.places.items():
            if (violation := judge_diversity(limits, self._sources or {})) is not None:
                for place in places:
                    found[place] = [*found.get(place, ()), violation]
        self.count = sum(self._counts.values())
        return self._compiled.outcome(Phase.AFTER_WORKFLOW, found, count=self.count, most=max(self._counts.values(), default=0))

    def _document(self, call: RetrievedDocument) -> CategoryOutcome | None:
        count = self._counts.get(call.batch, 0) + 1
        try:
            is_fine = (
                call.relevance_score.__class__ is not bool  # type: ignore[redundant-expr]  # callers may ignore the types
                and self._min_relevance <= call.relevance_score < math.inf
                and self._min_chunks <= count
                and (count <= self._max_chunks or (count <= self._repeated_max and count not in self._crossings))
                and call.source not in self._blocked
                and (self._allowed is None or call.collection in self._allowed)
                and (
                    self._passes_unknown_age if (age := call.age_days) is None else age.__class__ is not bool and 0 <= age <= self._max_age
                )
            )
        except TypeError:
            check_call(call)  # says which field is no number or no text
            raise
        if not is_fine:
            check_call(call)
        self._count(call)
        if is_fine:
            return None
        found = self._compiled.judge(call, count=count)
        return self._compiled.outcome(Phase.MID_EXECUTION, found, count=count, notes=document_notes(call)) if found else None

    def _known(self, call: RetrievedDocument) -> None:
        """Count a document that these very policies have judged already, in the answer it came with."""
        check_call(call)
        self._count(call)

    def _count(self, call: RetrievedDocument) -> int:
        batch = call.batch
        self._counts[batch] = self.count = count = self._counts.get(batch, 0) + 1
        if count == 1 and batch not in self._settled:
            self._open[batch] = None
        if self._sources is not None:
            self._sources[call.source] = self._sources.get(call.source, 0) + 1
        return count

    def _settle(self, batches: Sequence[BatchId | None]) -> CategoryOutcome | None:
        counts = [self._counts.get(batch, 0) for batch in batches]
        found = self._compiled.settle(counts)
        self._close(batches)
        return self._compiled.outcome(Phase.MID_EXECUTION, found, count=sum(counts), most=max(counts)) if found else None

    def _close(self, batches: Iterable[BatchId | None]) -> None:
        for batch in batches:
            self._open.pop(batch, None)
            self._settled.add(batch)


def _by_limits(limits: Iterable[RetrievalLimits]) -> Mapping[RetrievalLimits, Sequence[int]]:
    """Return the positions of the policies that ask the same, so that it is asked once."""
    places: dict[RetrievalLimits, list[int]] = {}
    for place, each in enumerate(limits):
        places.setdefault(each, []).append(place)
    return places


def _allowed_by_all(limits: Iterable[RetrievalLimits]) -> frozenset[str] | None:
    """Return the collections that every policy allows; None when none asks."""
    lists = [frozenset(each.allowed) for each in limits if each.allowed]
    return frozenset.intersection(*lists) if lists else None


RETRIEVAL: Final = Category(name="retrieval", title=_TITLE, rules=RetrievalRules, compile=CompiledRetrieval, check=check_retrieval)
