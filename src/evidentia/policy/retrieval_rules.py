"""The rules of the category `retrieval` as pure functions: from limits, counts and a document to violations.

Order: the count, then relevance, blocked source, collection and age of the document. The first block ends a policy's evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import FieldProblem
from evidentia.contracts.policies import Compat, PolicyAction
from evidentia.policy.calls import is_out_of_range
from evidentia.policy.handling import Violation
from evidentia.policy.posture import action_of, posture_of
from evidentia.policy.words import days, percent, percent_of, shown, two_decimals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.calls import Metadata
    from evidentia.contracts.policies import Policy, RetrievalRules
    from evidentia.contracts.runs import RetrievedDocument

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


class Candidate(NamedTuple):
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


def judge_document(limits: RetrievalLimits, candidate: Candidate) -> Sequence[Violation]:
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
    return Violation(
        rule="max_chunks",
        action=limits.on_count,
        reason=f"Retrieved chunks ({count}) exceeds max ({limits.max_chunks})",
        metadata={"chunk_count": count, "limit": limits.max_chunks},
    )


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
