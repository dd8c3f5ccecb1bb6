"""Static analysis of policies: contradictions, rules that never fire, policies that change nothing, empty scopes.

Rules are intervals and sets, so questions about all documents come down to a few that are put to the evaluator itself.
No finding without traces that were executed; what cannot be decided is not reported.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import Enforcement, GroundingRules, JudgePhase, Policy, RetrievalRules, ScoreEvalMode
from evidentia.contracts.runs import AnyCall, GroundingEntry, RetrievedDocument, RunEnded, RunFacts
from evidentia.policy.analysis_blocking import (
    SCALE,
    FindingKind,
    PolicyFinding,
    Severity,
    Subject,
    Witness,
    blocking_findings,
    diversity_finding,
    execute,
    passing_document,
    reproduces,
)
from evidentia.policy.analysis_pairs import is_exact, pair_findings
from evidentia.policy.analysis_scopes import UndecidedError, near_misses, shared_facts
from evidentia.policy.categories import category
from evidentia.policy.evaluator import in_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


__all__ = ["FindingKind", "PolicyAnalysis", "PolicyFinding", "Severity", "Witness", "analyze", "reproduces"]

MAX_POLICIES: Final = 200


class PolicyAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """Every finding, the gravest first, and what could not be decided."""

    policies: int
    findings: tuple[PolicyFinding, ...]
    undecided: tuple[str, ...] = ()
    """Questions that were too large; nothing is claimed about them."""

    @property
    def worst(self) -> Severity | None:
        """Return how grave the gravest finding is; None without any."""
        return self.findings[0].severity if self.findings else None


def analyze(policies: Sequence[Policy]) -> PolicyAnalysis:
    """Return what is the matter with policies, alone and with each other; those that are not enabled are left out.

    1. scopes that match no run
    2. rules of single policies
    3. runs in which nothing can pass
    4. pairs of which one makes the other, or one of its rules, superfluous
    """
    subjects = _subjects(policies)
    undecided: list[str] = []
    reached: list[tuple[Subject, RunFacts]] = []
    found: list[PolicyFinding] = []
    for subject in subjects:
        try:
            facts = shared_facts(subject.policy)
        except UndecidedError:
            undecided.append(f"which runs '{subject.name}' is for")
            continue
        if facts is None:
            found.append(_never_matches(subject))
        else:
            reached.append((subject, facts))
    for subject, facts in reached:
        found += _decided(_single(subject, facts), undecided, f"the rules of '{subject.name}'")
    found += _together(reached, undecided)
    return PolicyAnalysis(policies=len(subjects), findings=tuple(_ordered(found)), undecided=tuple(undecided))


def _subjects(policies: Sequence[Policy]) -> list[Subject]:
    enabled = sorted(
        (each for each in policies if each.body.enabled), key=lambda each: (each.body.priority, each.body.name, each.policy_id)
    )
    names = [each.body.name for each in enabled]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidFieldError("policies", f"two policies are called '{twice[0]}'; findings name policies, so give each its own name")
    if len(enabled) > MAX_POLICIES:
        raise InvalidFieldError("policies", f"{len(enabled)} are more than can be compared with each other; the most is {MAX_POLICIES}")
    return [Subject(policy=each, rules=convert(each.body.rules, category(each.body.category).rules)) for each in enabled]


def _single(subject: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    yield from rule_findings(subject, facts)
    if _is_retrieval(subject):
        yield from diversity_finding(subject, facts)


def _together(reached: Sequence[tuple[Subject, RunFacts]], undecided: list[str]) -> list[PolicyFinding]:
    """Return the findings about policies that are in force in the same run; a run is named for each, and for each two."""
    runs = [facts for _, facts in reached]
    found: list[PolicyFinding] = []
    for (first, _), (second, _) in combinations(reached, 2):
        about = f"'{first.name}' and '{second.name}' together"
        try:
            facts = shared_facts(first.policy, second.policy)
        except UndecidedError:
            undecided.append(about)
            continue
        if facts is not None:
            runs.append(facts)
            found += _decided(pair_findings(first, second, facts), undecided, about)
    subjects = [subject for subject, _ in reached]
    return [*_one_stricter_each(found), *_blocked(subjects, runs, undecided)]


def _one_stricter_each(findings: Sequence[PolicyFinding]) -> list[PolicyFinding]:
    """Return the findings with one stricter policy for each that is redundant, one that is not itself redundant where there is such."""
    redundant = {each.policies[0] for each in findings if each.kind is FindingKind.REDUNDANT}
    kept: dict[str, PolicyFinding] = {}
    others: list[PolicyFinding] = []
    for each in sorted(findings, key=lambda each: each.policies[-1] in redundant):
        if each.kind is FindingKind.REDUNDANT:
            kept.setdefault(each.policies[0], each)
        else:
            others.append(each)
    return [*kept.values(), *others]


def _blocked(subjects: Sequence[Subject], runs: Iterable[RunFacts], undecided: list[str]) -> list[PolicyFinding]:
    """Return what nothing can pass, once for each set of policies that some run has in force."""
    enforced = [each for each in subjects if _is_retrieval(each) and each.policy.body.enforcement is Enforcement.ENFORCE]
    seen: set[tuple[str, ...]] = set()
    found: dict[tuple[str, ...], PolicyFinding] = {}
    for facts in runs:
        in_force = [each for each in enforced if in_scope(each.policy, facts)]
        names = tuple(each.name for each in in_force)
        if names in seen:
            continue
        seen.add(names)
        for finding in _decided(blocking_findings(in_force, facts), undecided, " and ".join(f"'{name}'" for name in names)):
            found.setdefault(finding.policies, finding)
    return list(found.values())


def _decided(findings: Iterator[PolicyFinding], undecided: list[str], about: str) -> list[PolicyFinding]:
    """Return the findings up to where a question is too large, which is written down."""
    found: list[PolicyFinding] = []
    try:
        found.extend(findings)
    except UndecidedError:
        undecided.append(about)
    return found


def _never_matches(subject: Subject) -> PolicyFinding:
    misses = list(near_misses(subject.policy))
    return PolicyFinding(
        kind=FindingKind.SCOPE_NEVER_MATCHES,
        severity=Severity.ERROR,
        policies=(subject.name,),
        rules=("scope",),
        message=f"'{subject.name}' is for no run: whatever its scope names, it also excludes",
        proof="no value of a facet is both asked for and not excluded; the automata of its patterns have no common word",
        witnesses=tuple(execute([subject.policy], facts, note="its name is asked for, and excluded") for facts in misses[:3]),
    )


def _is_retrieval(subject: Subject) -> bool:
    return subject.policy.body.category == "retrieval"


def _ordered(findings: Iterable[PolicyFinding]) -> list[PolicyFinding]:
    return sorted(findings, key=lambda each: (-each.severity.rank, each.kind.value, each.policies, each.rules, each.message))


# --- rules of one policy ---
# What is the matter with the rules of one policy: those that can never fire, settings that nothing reads, and checks with a hole.
#
# Every finding has the trace that comes closest to contradicting it, executed.

_SCORES: Final = "grounding scores lie between 0 and 1"
_CONFIDENCE: Final = "output confidence lies between 0 and 1"
_LOW: Final = GroundingEntry(grounding_scores=(0.0,), output_confidence=0.0)


class NeverFires(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a rule never fires, and the trace that would show it if it were not so."""

    kind: FindingKind
    rule: str
    """The rule that must not be violated in the trace."""
    settings: tuple[str, ...]
    message: str
    proof: str
    calls: tuple[AnyCall, ...] = ()
    assumes: str = ""


def rule_findings(subject: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    """Yield what is the matter with the rules of a policy, in a run that it is for."""
    if isinstance(subject.rules, RetrievalRules):
        yield from (found for claim in _retrieval_claims(subject, subject.rules) for found in _settled(claim, subject, facts))
    elif isinstance(subject.rules, GroundingRules):
        yield from (found for claim in _grounding_claims(subject.rules) for found in _settled(claim, subject, facts))
        yield from _second_warning(subject, subject.rules, facts)
        yield from _abstention(subject, subject.rules, facts)
        yield from _judge(subject, subject.rules, facts)


def _settled(claim: NeverFires, subject: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    """Yield a claim whose trace holds it up."""
    witness = execute([subject.policy], facts, claim.calls, note=f"nothing comes closer to violating {claim.rule}")
    if witness.fires(subject.name, claim.rule):
        return
    yield PolicyFinding(
        kind=claim.kind,
        severity=Severity.NOTE,
        policies=(subject.name,),
        rules=claim.settings,
        message=f"'{subject.name}': {claim.message}",
        proof=claim.proof,
        witnesses=(witness,),
        assumes=claim.assumes,
    )


def _retrieval_claims(subject: Subject, rules: RetrievalRules) -> Iterator[NeverFires]:
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


def _grounding_claims(rules: GroundingRules) -> Iterator[NeverFires]:
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


def _score_claims(rules: GroundingRules) -> Iterator[NeverFires]:
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
) -> NeverFires:
    return NeverFires(
        kind=FindingKind.UNREACHABLE, rule=rule, settings=settings, message=message, proof=proof, calls=calls, assumes=assumes
    )


def _unused(rule: str, message: str, *, calls: tuple[AnyCall, ...] = (), settings: Sequence[str] = ()) -> NeverFires:
    proof = "nothing reads the setting while the other is as it is"
    return NeverFires(kind=FindingKind.UNUSED, rule=rule, settings=tuple(settings) or (rule,), message=message, proof=proof, calls=calls)


def _second_warning(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[PolicyFinding]:
    if not rules.require_source_grounding or not rules.min_citations:
        return
    witness = execute([subject.policy], facts, note="a run without citations")
    if witness.fires(subject.name, "require_source_grounding") and witness.fires(subject.name, "min_citations"):
        message = (
            f"'{subject.name}': require_source_grounding only says a second time what min_citations {rules.min_citations} says: "
            "a run without citations has too few"
        )
        yield _hole(FindingKind.UNUSED, subject, ("require_source_grounding", "min_citations"), message, witness)


def _abstention(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[PolicyFinding]:
    threshold = rules.abstention_threshold
    if not threshold or rules.abstention_response is not None:
        return
    call = GroundingEntry(citations=_enough(rules), output_confidence=round(threshold / 2, 4))
    witness = execute([subject.policy], facts, [call], note="an output that should be an abstention")
    if witness.fires(subject.name, "abstention_threshold"):
        message = f"'{subject.name}' wants the agent to abstain below {threshold:g} and does not say with which words"
        yield _hole(FindingKind.ABSTENTION_WITHOUT_RESPONSE, subject, ("abstention_threshold", "abstention_response"), message, witness)


def _judge(subject: Subject, rules: GroundingRules, facts: RunFacts) -> Iterator[PolicyFinding]:
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
) -> PolicyFinding:
    return PolicyFinding(
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
