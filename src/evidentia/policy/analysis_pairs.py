"""What two policies are to each other: one that makes the other redundant, or a rule that never gets to decide."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.policies import Compat, ConfidenceMode, Enforcement, GroundingRules, PolicyAction, RetrievalRules, ScoreEvalMode
from evidentia.contracts.runs import AnyCall, GroundingEntry, RetrievedDocument, RunFacts
from evidentia.policy.analysis_blocking import (
    FindingKind,
    PolicyFinding,
    Severity,
    cells_in_words,
    execute,
    policies_of,
    retrieval_limits,
    violations_of,
)
from evidentia.policy.analysis_scopes import cells, covers
from evidentia.policy.evaluator import PolicySet
from evidentia.policy.grounding_rules import AVERAGE_PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.policy.analysis_blocking import Subject, Witness, WitnessedViolation
    from evidentia.policy.retrieval_rules import RetrievalLimits


_DEFAULTS: Final = msgspec.to_builtins(RetrievalRules())
_DOCUMENT_RULES: Final = ("min_relevance_score", "blocked_sources", "allowed_collections", "max_source_age_days")


def pair_findings(first: Subject, second: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    """Yield what a policy makes of another one that is decided before or after it, both in scope of a run with these facts."""
    if not (_is_enforced(first) and _is_enforced(second)):
        return
    for stricter, other in ((first, second), (second, first)):
        if covers(stricter.policy, other.policy) and is_as_strict(stricter, other):
            yield from _redundant(stricter, other, facts)
            return
    for stricter, other in ((first, second), (second, first)):
        if _are_retrieval(stricter, other) and covers(stricter.policy, other.policy):
            yield from _never_decides(stricter, other, facts)


def _redundant(stricter: Subject, other: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    pair = policies_of([stricter, other])
    witnesses = [execute(pair, facts, calls) for calls in firing_calls(other)]
    fired = [witness for witness in witnesses if witness.strongest(other.name).rank]
    if not fired or not all(_is_never_later(witness, stricter.name, other.name) for witness in fired):
        return
    yield PolicyFinding(
        kind=FindingKind.REDUNDANT,
        severity=Severity.WARNING,
        policies=(other.name, stricter.name),
        message=f"'{other.name}' changes no action: '{stricter.name}' is in force wherever it is, at least as strict, and never later",
        proof="its scope is covered, its documents were compared cell by cell or its limits rule by rule, "
        f"and in {len(fired)} traces that it does not let pass the other was never weaker",
        witnesses=tuple(_one_per_rule(fired, other.name)),
    )


def _is_never_later(witness: Witness, stricter: str, other: str) -> bool:
    moments = range(1, len(witness.calls) + 2)
    return all(witness.strongest(stricter, until=call).rank >= witness.strongest(other, until=call).rank for call in moments)


def _one_per_rule(witnesses: list[Witness], policy: str) -> Iterator[Witness]:
    shown: set[str] = set()
    for witness in sorted(witnesses, key=lambda each: (len(each.violations), len(each.calls))):
        rules = {each.rule for each in witness.violations if each.policy == policy}
        if not rules <= shown:
            shown |= rules
            yield witness


def _never_decides(stricter: Subject, other: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    in_force = PolicySet.of(policies_of([stricter, other]))
    said = [(document, violations_of(in_force, document)) for document in documents_between([stricter, other])]
    for rule in _DOCUMENT_RULES if _are_resolved(stricter, other) else ():
        if other.policy.body.rules[rule] == _DEFAULTS[rule]:
            continue  # a default that no author chose is no finding
        fires = [(document, each) for document, found in said for each in found if each.policy == other.name and each.rule == rule]
        if not fires or any(each.is_decisive for _, each in fires):
            continue
        witness = execute(policies_of([stricter, other]), facts, [fires[0][0]], note=f"violates {rule} of '{other.name}'")
        if not witness.fires(other.name, rule):
            continue
        yield PolicyFinding(
            kind=FindingKind.NEVER_DECIDES,
            severity=Severity.NOTE,
            policies=(other.name, stricter.name),
            rules=(rule,),
            message=f"{rule} of '{other.name}' never decides: where it is violated, '{stricter.name}' decides",
            proof=f"{cells_in_words(len(said))} for all that can be; of the {len(fires)} that violate it, it decides none",
            witnesses=(witness,),
        )


def _is_enforced(subject: Subject) -> bool:
    return subject.policy.body.enforcement is Enforcement.ENFORCE


def _are_resolved(*subjects: Subject) -> bool:
    return all(each.policy.body.compat is Compat.RESOLVED for each in subjects)


def _are_retrieval(*subjects: Subject) -> bool:
    return all(each.policy.body.category == "retrieval" for each in subjects)


# --- strictness ---
# Is one policy always at least as strict as another, and never later? Sound: a yes is proved, a no may only mean that it is not known.
#
# At least as strict: at every moment of every run, the strongest action of the one so far is not weaker than that of the other.


def is_as_strict(stricter: Subject, other: Subject) -> bool:
    """Tell whether a policy is always at least as strict as another of its category, wherever both apply. Raises UndecidedError."""
    if stricter.policy.body.category != other.policy.body.category or not _are_resolved(stricter, other):
        return False
    if isinstance(stricter.rules, GroundingRules) and isinstance(other.rules, GroundingRules):
        return _grounding_as_strict(stricter.rules, other.rules)
    if stricter.policy.body.category != "retrieval":
        return False
    return _counts_as_strict(retrieval_limits(stricter), retrieval_limits(other)) and _documents_as_strict(stricter, other)


def firing_calls(subject: Subject) -> list[tuple[AnyCall, ...]]:
    """Return traces that should make a policy fire, one or more for each of its rules; shortest first."""
    if isinstance(subject.rules, GroundingRules):
        return _grounding_traces(subject.rules)
    limits = retrieval_limits(subject)
    documents = cells([limits])
    many = tuple([documents[0]] * (limits.max_chunks + 1)) if limits.max_chunks <= _MAX_DOCUMENTS else ()
    return [(), *((each,) for each in documents), many]


_MAX_DOCUMENTS = 100


def _documents_as_strict(stricter: Subject, other: Subject) -> bool:
    """Ask both about a document of every cell."""
    first, second = PolicySet.of([stricter.policy]), PolicySet.of([other.policy])
    documents = cells([retrieval_limits(stricter), retrieval_limits(other)])
    return all(_strongest(violations_of(first, each)) >= _strongest(violations_of(second, each)) for each in documents)


def _strongest(said: Iterable[WitnessedViolation]) -> int:
    """Return the rank of the strongest action about the document itself; counts are compared on their own."""
    return max((each.action.rank for each in said if each.rule not in {"min_chunks", "max_chunks"}), default=0)


def _counts_as_strict(stricter: RetrievalLimits, other: RetrievalLimits) -> bool:
    """Compare intervals: what is too few, too many or too much of one source for the other is so for the stricter one."""
    return (
        stricter.on_count.rank >= other.on_count.rank
        and stricter.min_chunks >= other.min_chunks
        and stricter.max_chunks <= other.max_chunks
        and (other.max_ratio is None or (stricter.max_ratio is not None and stricter.max_ratio <= other.max_ratio))
    )


def _grounding_as_strict(stricter: GroundingRules, other: GroundingRules) -> bool:
    """Compare rule by rule. What a judge will say is not known, so a policy that asks one is never redundant."""
    return (
        not other.llm_grounding_check
        and PolicyAction(stricter.action_on_violation.value).rank >= PolicyAction(other.action_on_violation.value).rank
        and _scores_as_strict(stricter, other)
        and _citations_as_strict(stricter, other)
        and _at_most(stricter.max_unsupported_claims, other.max_unsupported_claims)
        and _confidence_as_strict(stricter, other)
    )


def _scores_as_strict(stricter: GroundingRules, other: GroundingRules) -> bool:
    """Compare what scores violate, with no floor as the lowest there can be.

    Under `all`, the other is violated by a score in [its floor, its minimum), or when all scores lie below its floor. With a floor
    that is not higher, a minimum that is not lower, and the other's floor within the minimum, each of those is a score in
    [floor, minimum) of the stricter one, or leaves nothing above its floor. Averages and best scores are compared where floors
    are equal, or with a stricter one that looks at every score: a low mean, or a low score among the best, is a low score.
    """
    floor = -inf if stricter.score_relevance_floor is None else stricter.score_relevance_floor
    other_floor = -inf if other.score_relevance_floor is None else other.score_relevance_floor
    if stricter.min_grounding_score < other.min_grounding_score:
        return False
    mode = stricter.score_eval_mode
    if mode is ScoreEvalMode.ALL:
        return floor <= other_floor <= stricter.min_grounding_score and is_exact(other)
    if mode is not other.score_eval_mode or floor != other_floor:
        return False
    return mode is ScoreEvalMode.AVERAGE or stricter.score_top_n >= other.score_top_n


def is_exact(rules: GroundingRules) -> bool:
    """Tell whether the rounding of a mean cannot bring it below the threshold."""
    threshold = rules.min_grounding_score
    return rules.score_eval_mode is not ScoreEvalMode.AVERAGE or round(threshold, AVERAGE_PLACES) == threshold


def _citations_as_strict(stricter: GroundingRules, other: GroundingRules) -> bool:
    counts_fewer = stricter.unique_citations or not other.unique_citations or other.min_citations <= 1
    asks_more = stricter.min_citations >= other.min_citations
    asks_any = stricter.require_source_grounding or stricter.min_citations >= 1 or not other.require_source_grounding
    return asks_any and (other.min_citations == 0 or (asks_more and counts_fewer))


def _at_most(limit: int | None, other: int | None) -> bool:
    return other is None or (limit is not None and limit <= other)


def _confidence_as_strict(stricter: GroundingRules, other: GroundingRules) -> bool:
    if other.abstention_threshold is None:
        return True
    if other.abstention_response not in {None, stricter.abstention_response}:
        return False  # what is said instead of an answer may be the other's
    is_lower = stricter.confidence_mode in {other.confidence_mode, ConfidenceMode.MIN}
    return stricter.abstention_threshold is not None and stricter.abstention_threshold >= other.abstention_threshold and is_lower


def _grounding_traces(rules: GroundingRules) -> list[tuple[AnyCall, ...]]:
    enough = tuple(f"source-{number}" for number in range(rules.min_citations))
    claims = tuple(f"claim {number}" for number in range((rules.max_unsupported_claims or 0) + 1))
    return [
        (),
        (GroundingEntry(grounding_scores=(0.0,), citations=enough),),
        (GroundingEntry(grounding_scores=(0.0, 1.0), citations=enough),),
        (GroundingEntry(grounding_scores=(0.0, 0.0, 0.0), citations=enough),),
        (GroundingEntry(citations=enough, unsupported_claims=claims),),
        (GroundingEntry(citations=enough, output_confidence=0.0),),
    ]


def documents_between(subjects: Sequence[Subject]) -> list[RetrievedDocument]:
    """Return one document of every cell that the rules of some retrieval policies cut."""
    return cells([retrieval_limits(each) for each in subjects])
