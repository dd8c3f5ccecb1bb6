"""Follows a run for the policies of the category `retrieval`.

Limits of all policies are merged, so that a document which passes them costs the same for one policy and for a hundred;
only where the merged limits fail is each policy asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from evidentia.contracts.policies import PolicyAction, RetrievalRules
from evidentia.contracts.runs import BatchClosed, GroundingEntry, LlmCall, Phase, RetrievedDocument, RunEnded, StepCall, ToolCall
from evidentia.policy.calls import check_call
from evidentia.policy.digests import set_digest
from evidentia.policy.handling import Category, Outcome, stored
from evidentia.policy.retrieval_rules import (
    Candidate,
    check_retrieval,
    document_notes,
    judge_diversity,
    judge_document,
    judge_settled,
    limits_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.calls import Metadata, RunCall
    from evidentia.contracts.decisions import JudgeAsk
    from evidentia.contracts.runs import BatchId
    from evidentia.policy.handling import TypedPolicy, Violation
    from evidentia.policy.retrieval_rules import RetrievalLimits

_TITLE: Final = "Retrieval"


class CompiledRetrieval:
    """The limits of every policy, those that all share, and the merged ones."""

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

    def begin(self) -> Outcome:
        """Return what is said before anything was recorded."""
        return stored(_TITLE)

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return nothing: retrieval asks no judge."""
        del call
        return ()

    def passed(self, call: RunCall, *, count: int) -> Outcome | None:
        """Return what a document that passed stands for; a count that settles in silence stands for nothing, nor what was judged before."""
        if not isinstance(call, RetrievedDocument) or call.judged_by == self.digest:
            return None
        return _outcome(Phase.MID_EXECUTION, {}, count=count, notes=document_notes(call))

    def judge(self, document: RetrievedDocument, *, count: int) -> dict[int, Sequence[Violation]]:
        """Return what each policy says of a document, by its position; empty when it passes all."""
        found: dict[int, Sequence[Violation]] = {}
        candidate = Candidate.of(document, count=count)
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

    def record(self, call: RunCall) -> Outcome | None:
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

    def finish(self, end: RunEnded) -> Outcome:
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
        return _outcome(Phase.AFTER_WORKFLOW, found, count=self.count)

    def _document(self, call: RetrievedDocument) -> Outcome | None:
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
        return _outcome(Phase.MID_EXECUTION, found, count=count, notes=document_notes(call)) if found else None

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

    def _settle(self, batches: Sequence[BatchId | None]) -> Outcome | None:
        counts = [self._counts.get(batch, 0) for batch in batches]
        found = self._compiled.settle(counts)
        self._close(batches)
        return _outcome(Phase.MID_EXECUTION, found, count=sum(counts)) if found else None

    def _close(self, batches: Iterable[BatchId | None]) -> None:
        for batch in batches:
            self._open.pop(batch, None)
            self._settled.add(batch)


def _outcome(phase: Phase, found: Mapping[int, Sequence[Violation]], *, count: int, notes: Mapping[str, object] | None = None) -> Outcome:
    metadata: Metadata = {"chunk_count": count, **notes} if notes else {"chunk_count": count}
    return Outcome(phase=phase, found=found, reason=f"Retrieval quality within policy ({count} chunks)", metadata=metadata)


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
