"""What is the matter with the rules of one policy: those that can never fire, settings that nothing reads, and checks with a hole.

Every finding has the trace that comes closest to contradicting it, executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import GroundingRules, JudgePhase, RetrievalRules, ScoreEvalMode
from evidentia.contracts.runs import AnyCall, GroundingEntry, RetrievedDocument, RunEnded
from evidentia.policy.analysis_blocking import SCALE, passing_document
from evidentia.policy.analysis_findings import Finding, FindingKind, Severity
from evidentia.policy.analysis_strictness import is_exact
from evidentia.policy.analysis_witness import execute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.runs import RunFacts
    from evidentia.policy.analysis_findings import Subject
    from evidentia.policy.analysis_witness import Witness

_SCORES: Final = "grounding scores lie between 0 and 1"
_CONFIDENCE: Final = "output confidence lies between 0 and 1"
_LOW: Final = GroundingEntry(grounding_scores=(0.0,), output_confidence=0.0)


class Closest(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a rule never fires, and the trace that would show it if it were not so."""

    kind: FindingKind
    rule: str
    """The rule that must not be violated in the trace."""
    settings: tuple[str, ...]
    message: str
    proof: str
    calls: tuple[AnyCall, ...] = ()
    assumes: str = ""


def rule_findings(subject: Subject, facts: RunFacts) -> Iterator[Finding]:
    """Yield what is the matter with the rules of a policy, in a run that it is for."""
    if isinstance(subject.rules, RetrievalRules):
        yield from (found for claim in _retrieval_claims(subject, subject.rules) for found in _settled(claim, subject, facts))
    elif isinstance(subject.rules, GroundingRules):
        yield from (found for claim in _grounding_claims(subject.rules) for found in _settled(claim, subject, facts))
        yield from _second_warning(subject, subject.rules, facts)
        yield from _abstention(subject, subject.rules, facts)
        yield from _judge(subject, subject.rules, facts)


def _settled(claim: Closest, subject: Subject, facts: RunFacts) -> Iterator[Finding]:
    """Yield a claim whose trace holds it up."""
    witness = execute([subject.policy], facts, claim.calls, note=f"nothing comes closer to violating {claim.rule}")
    if witness.fires(subject.name, claim.rule):
        return
    yield Finding(
        kind=claim.kind,
        severity=Severity.NOTE,
        policies=(subject.name,),
        rules=claim.settings,
        message=f"'{subject.name}': {claim.message}",
        proof=claim.proof,
        witnesses=(witness,),
        assumes=claim.assumes,
    )


def _retrieval_claims(subject: Subject, rules: RetrievalRules) -> Iterator[Closest]:
    document = passing_document([subject]) or RetrievedDocument(relevance_score=1.0, age_days=0)
    if rules.min_chunks == 0:
        yield _never("min_chunks", ("min_chunks",), "min_chunks 0 is never violated", "no count is below 0")
    if rules.min_relevance_score <= 0:
        yield _never(
            "min_relevance_score",
            ("min_relevance_score",),
            f"min_relevance_score {rules.min_relevance_score:g} is never violated",
            "no score between 0 and 1 is below it",
            calls=(msgspec.structs.replace(document, relevance_score=0.0),),
            assumes=SCALE,
        )
    if rules.require_source_diversity and rules.max_single_source_ratio >= 1:
        yield _never(
            "max_single_source_ratio",
            ("require_source_diversity", "max_single_source_ratio"),
            "diversity is required and never missed: no source can hold more than all documents",
            "no share is above 1",
            calls=(document, document),
        )
    if not rules.require_source_diversity and rules.max_single_source_ratio != RetrievalRules().max_single_source_ratio:
        yield _unused(
            "max_single_source_ratio",
            "max_single_source_ratio is set, and require_source_diversity is not",
            calls=(document, document),
        )


def _grounding_claims(rules: GroundingRules) -> Iterator[Closest]:
    yield from _score_claims(rules)
    if rules.min_citations == 0:
        yield _never("min_citations", ("min_citations",), "min_citations 0 is never violated", "no count is below 0")
    if rules.abstention_threshold == 0:
        yield _never(
            "abstention_threshold",
            ("abstention_threshold",),
            "abstention_threshold 0 is never violated",
            "no confidence between 0 and 1 is below 0",
            calls=(_LOW,),
            assumes=_CONFIDENCE,
        )
    if rules.abstention_threshold is None and rules.abstention_response is not None:
        yield _unused("abstention_threshold", "abstention_response is set, and abstention_threshold is not", calls=(_LOW,))


def _score_claims(rules: GroundingRules) -> Iterator[Closest]:
    floor, threshold = rules.score_relevance_floor, rules.min_grounding_score
    if floor is not None and floor >= threshold and threshold > 0 and is_exact(rules):
        yield _never(
            "min_grounding_score",
            ("score_relevance_floor", "min_grounding_score"),
            f"min_grounding_score {threshold:g} is never violated: score_relevance_floor {floor:g} leaves no lower score",
            "every score that is kept is at least the floor, and so is their mean",
            calls=(GroundingEntry(grounding_scores=(floor, 0.0)),),
        )
    if threshold == 0:
        yield _never(
            "min_grounding_score",
            ("min_grounding_score",),
            "min_grounding_score 0 is never violated",
            "no score between 0 and 1 is below 0",
            calls=(_LOW,),
            assumes=_SCORES,
        )
    if rules.score_eval_mode is not ScoreEvalMode.TOP_N and rules.score_top_n != GroundingRules().score_top_n:
        yield _unused("score_top_n", f"score_top_n is set, and score_eval_mode is {rules.score_eval_mode.value}", calls=(_LOW,))
    changed = [name for name in _JUDGE_SETTINGS if getattr(rules, name) != getattr(GroundingRules(), name)]
    if not rules.llm_grounding_check and changed:
        yield _unused("llm_grounding_check", f"{', '.join(changed)} set, and llm_grounding_check is not", calls=(_LOW,), settings=changed)


_JUDGE_SETTINGS: Final = ("llm_grounding_model", "llm_grounding_threshold", "llm_grounding_criteria", "llm_grounding_phase")


def _never(
    rule: str, settings: tuple[str, ...], message: str, proof: str, *, calls: tuple[AnyCall, ...] = (), assumes: str = ""
) -> Closest:
    return Closest(kind=FindingKind.UNREACHABLE, rule=rule, settings=settings, message=message, proof=proof, calls=calls, assumes=assumes)


def _unused(rule: str, message: str, *, calls: tuple[AnyCall, ...] = (), settings: Sequence[str] = ()) -> Closest:
    proof = "nothing reads the setting while the other is as it is"
    return Closest(kind=FindingKind.UNUSED, rule=rule, settings=tuple(settings) or (rule,), message=message, proof=proof, calls=calls)


def _second_warning(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[Finding]:
    if not rules.require_source_grounding or not rules.min_citations:
        return
    witness = execute([subject.policy], facts, note="a run without citations")
    if witness.fires(subject.name, "require_source_grounding") and witness.fires(subject.name, "min_citations"):
        message = (
            f"'{subject.name}': require_source_grounding only says a second time what min_citations {rules.min_citations} says: "
            "a run without citations has too few"
        )
        yield _hole(FindingKind.UNUSED, subject, ("require_source_grounding", "min_citations"), message, witness)


def _abstention(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[Finding]:
    threshold = rules.abstention_threshold
    if not threshold or rules.abstention_response is not None:
        return
    call = GroundingEntry(citations=_enough(rules), output_confidence=round(threshold / 2, 4))
    witness = execute([subject.policy], facts, [call], note="an output that should be an abstention")
    if witness.fires(subject.name, "abstention_threshold"):
        message = f"'{subject.name}' wants the agent to abstain below {threshold:g} and does not say with which words"
        yield _hole(FindingKind.ABSTENTION_WITHOUT_RESPONSE, subject, ("abstention_threshold", "abstention_response"), message, witness)


def _judge(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[Finding]:
    if not rules.llm_grounding_check:
        return
    out = {subject.policy.policy_id: Judgement(status=JudgeStatus.UNAVAILABLE, model=rules.llm_grounding_model, problem="out of reach")}
    call = GroundingEntry(grounding_scores=(1.0,), citations=_enough(rules), output_confidence=1.0, judgements=out)
    outage = execute([subject.policy], facts, [call], end=RunEnded(judgements=out), note="the judge cannot be reached")
    if outage.is_stopped:
        message = f"'{subject.name}' blocks everything while its judge is out of reach"
        yield _hole(FindingKind.JUDGE_OUTAGE_BLOCKS, subject, ("llm_grounding_check",), message, outage, severity=Severity.WARNING)
    elif not outage.violations:
        message = f"'{subject.name}' lets everything pass its judge while that is out of reach; a posture of degrade would warn"
        yield _hole(FindingKind.JUDGE_OUTAGE_PASSES, subject, ("llm_grounding_check",), message, outage)
    zero = {subject.policy.policy_id: Judgement(status=JudgeStatus.JUDGED, score=0.0, model=rules.llm_grounding_model)}
    worst = execute(
        [subject.policy], facts, [GroundingEntry(judgements=zero)], end=RunEnded(judgements=zero), note="the lowest score a judge can give"
    )
    if rules.llm_grounding_threshold == 0 and not worst.fires(subject.name, "llm_grounding_check"):
        message = f"'{subject.name}': llm_grounding_threshold 0 is never violated, and the judge is asked all the same"
        yield _hole(FindingKind.UNREACHABLE, subject, ("llm_grounding_threshold",), message, worst)
    skipped = execute([subject.policy], facts, note="a run that records no grounding")
    if rules.llm_grounding_phase is JudgePhase.MID_EXECUTION and not skipped.violations:
        message = f"'{subject.name}' asks its judge only where grounding is recorded, and nothing requires that it is"
        settings = ("llm_grounding_phase", "min_citations")
        yield _hole(FindingKind.JUDGE_CAN_BE_SKIPPED, subject, settings, message, skipped, severity=Severity.WARNING)


def _hole(
    kind: FindingKind, subject: Subject, settings: tuple[str, ...], message: str, witness: Witness, *, severity: Severity = Severity.NOTE
) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        policies=(subject.name,),
        rules=settings,
        message=message,
        proof="the trace shows it",
        witnesses=(witness,),
    )


def _enough(rules: GroundingRules) -> tuple[str, ...]:
    return tuple(f"source-{number}" for number in range(rules.min_citations))
