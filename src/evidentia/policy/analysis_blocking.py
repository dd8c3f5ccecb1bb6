"""Do policies let anything pass? One that does not blocks everything; several that do, and do not together, contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus, Verdict
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.runs import AnyCall, RetrievedDocument, RunEnded, RunFacts
from evidentia.contracts.vocabulary import RankedVocabulary, Vocabulary
from evidentia.policy.analysis_scopes import HIGHEST_SCORE, best_documents, fresh_source
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.retrieval_rules import RetrievalLimits, limits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SCALE: Final = "relevance scores lie between 0 and 1"
MAX_COUNTED: Final = 1_000
"""Documents in a trace about counts; limits beyond are not tried out, so nothing is said about them."""


def blocking_findings(subjects: Sequence[Subject], facts: RunFacts) -> Iterator[PolicyFinding]:
    """Yield what nothing can pass in a run with these facts, named by as few policies as will do."""
    if not subjects:
        return
    if _blocks_all(subjects):
        yield from _everything_blocked(_core(subjects), facts)
        return
    counted = _counts_exclude_each_other(subjects)
    if counted is not None:
        yield from _no_count_passes(*counted, facts)


def retrieval_limits(subject: Subject) -> RetrievalLimits:
    """Return the rules of a retrieval policy as intervals and sets."""
    return limits_of(subject.policy, subject.rules)  # type: ignore[arg-type]  # the rules of a retrieval policy are of that type


def passing_document(subjects: Sequence[Subject]) -> RetrievedDocument | None:
    """Return a document that none of the policies blocks, or None when there is none."""
    in_force = PolicySet.of(policies_of(subjects))
    documents = best_documents([retrieval_limits(each) for each in subjects])
    return next((each for each in documents if not any(said.action.stops for said in violations_of(in_force, each))), None)


def _blocks_all(subjects: Sequence[Subject]) -> bool:
    return bool(subjects) and passing_document(subjects) is None


def _core(subjects: Sequence[Subject]) -> list[Subject]:
    """Return policies that block everything together, such that without any one of them something would pass."""
    core = list(subjects)
    for each in subjects:
        without = [other for other in core if other is not each]
        if without and _blocks_all(without):
            core = without
    return core


def _everything_blocked(core: Sequence[Subject], facts: RunFacts) -> Iterator[PolicyFinding]:
    limits = [retrieval_limits(each) for each in core]
    tried = best_documents(limits)
    witnesses = [
        execute(policies_of(core), facts, [alone], note=f"'{each.name}' alone lets this pass")
        for each in (core if len(core) > 1 else ())
        if (alone := passing_document([each])) is not None
    ] or [execute(policies_of(core), facts, tried[:1], note="as good as a document can be")]
    names = tuple(each.name for each in core)
    rules = tuple(sorted({said.rule for witness in witnesses for said in witness.violations if said.action.stops and said.call == 1}))
    empty = execute(policies_of(core), facts, note="a run without documents")
    reach = "every document, and a run without any" if empty.is_stopped else "every document"
    if not all(witness.is_stopped for witness in witnesses):
        return
    yield PolicyFinding(
        kind=FindingKind.BLOCKS_EVERYTHING if len(core) == 1 else FindingKind.CONTRADICTION,
        severity=Severity.ERROR,
        policies=names,
        rules=rules,
        message=f"{_listed(names)} {'blocks' if len(names) == 1 else 'together block'} {reach} ({', '.join(rules)})",
        proof=f"{cells_in_words(len(tried))} for all that can begin a run; each was put to the evaluator and blocked",
        witnesses=tuple(witnesses) + ((empty,) if empty.is_stopped else ()),
        assumes=SCALE if _passes_beyond_scale(core, facts) else "",
    )


def _passes_beyond_scale(core: Sequence[Subject], facts: RunFacts) -> bool:
    """Tell whether a score above 1, which some engines give, would pass."""
    limits = [retrieval_limits(each) for each in core]
    high = max(HIGHEST_SCORE, *(each.min_relevance for each in limits))
    beyond = [msgspec.structs.replace(each, relevance_score=high) for each in best_documents(limits)]
    return any(
        not any(said.call == 1 and said.action.stops for said in execute(policies_of(core), facts, [each]).violations) for each in beyond
    )


def _counts_exclude_each_other(subjects: Sequence[Subject]) -> tuple[Subject, Subject] | None:
    """Return a policy that blocks fewer documents than another blocks more than; read literally, too few is said at once."""
    limits = [(each, found) for each in subjects if not (found := retrieval_limits(each)).is_literal and found.on_count.stops]
    if not limits:
        return None
    at_least = max(limits, key=lambda pair: pair[1].min_chunks)
    at_most = min(limits, key=lambda pair: pair[1].max_chunks)
    if at_least[1].min_chunks <= at_most[1].max_chunks or at_least[1].min_chunks > MAX_COUNTED:
        return None
    return at_least[0], at_most[0]


def _no_count_passes(at_least: Subject, at_most: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    pair = (at_least, at_most)
    document = passing_document(pair)
    if document is None:
        return
    low, high = retrieval_limits(at_most).max_chunks, retrieval_limits(at_least).min_chunks
    tried = sorted({0, 1, low, low + 1, high - 1, high, high + 1})
    witnesses = [_counted(pair, facts, document, count) for count in tried]
    if not all(witness.is_stopped for witness in witnesses):
        return
    yield PolicyFinding(
        kind=FindingKind.CONTRADICTION,
        severity=Severity.ERROR,
        policies=(at_least.name, at_most.name),
        rules=("min_chunks", "max_chunks"),
        message=f"'{at_least.name}' blocks fewer than {high} documents and '{at_most.name}' more than {low}: no number of them passes",
        proof=f"a count is below {high} or above {low}; runs of {', '.join(map(str, tried))} documents were executed and blocked",
        witnesses=tuple(witness for witness in witnesses if len(witness.calls) in {low, high}),
    )


def _counted(pair: Sequence[Subject], facts: RunFacts, document: RetrievedDocument, count: int) -> Witness:
    return execute(policies_of(pair), facts, [document] * count, note=f"a run of {count} documents that pass every other rule")


def diversity_finding(subject: Subject, facts: RunFacts) -> Iterator[PolicyFinding]:
    """Yield that no run can be diverse enough: even if every document comes from another source, each has too large a share."""
    limits = retrieval_limits(subject)
    if limits.max_ratio is None or limits.max_chunks > MAX_COUNTED or 1 / limits.max_chunks <= limits.max_ratio:
        return
    document = passing_document([subject])
    if document is None:
        return
    fresh = fresh_source([limits])
    calls = [msgspec.structs.replace(document, source=f"{fresh}-{number}") for number in range(limits.max_chunks)]
    witness = execute([subject.policy], facts, calls, note="every document from another source")
    if not witness.fires(subject.name, "max_single_source_ratio"):
        return
    yield PolicyFinding(
        kind=FindingKind.ALWAYS_WARNS,
        severity=Severity.WARNING,
        policies=(subject.name,),
        rules=("max_single_source_ratio", "max_chunks"),
        message=(
            f"'{subject.name}' warns about every run of 1 to {limits.max_chunks} documents: "
            f"one of {limits.max_chunks} is already more than {limits.max_ratio:g} of them"
        ),
        proof="the largest share of n documents is at least 1/n, which is greater than the ratio up to max_chunks",
        witnesses=(witness,),
    )


def cells_in_words(documents: int) -> str:
    """Return how many documents stand for all, in words."""
    return "1 document stands" if documents == 1 else f"{documents} documents stand"


def policies_of(subjects: Sequence[Subject]) -> list[Policy]:
    """Return the policies of subjects."""
    return [each.policy for each in subjects]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


# --- findings ---
# What can be said about policies before any run: kinds of findings, how grave they are, and the traces that prove them.


class FindingKind(Vocabulary):
    """What is the matter with one policy, or with several together."""

    CONTRADICTION = "contradiction"
    """Each policy lets something pass, and together they let nothing pass."""
    BLOCKS_EVERYTHING = "blocks_everything"
    REDUNDANT = "redundant"
    """Another policy, in the same or a wider scope, is always at least as strict and never later."""
    NEVER_DECIDES = "never_decides"
    """A rule that never decides, since a rule of another policy always does where it fires."""
    UNREACHABLE = "unreachable"
    """A rule that can never fire."""
    UNUSED = "unused"
    """A setting that another setting switches off."""
    ALWAYS_WARNS = "always_warns"
    SCOPE_NEVER_MATCHES = "scope_never_matches"
    ABSTENTION_WITHOUT_RESPONSE = "abstention_without_response"
    JUDGE_OUTAGE_PASSES = "judge_outage_passes"
    JUDGE_OUTAGE_BLOCKS = "judge_outage_blocks"
    JUDGE_CAN_BE_SKIPPED = "judge_can_be_skipped"


class Severity(RankedVocabulary):
    """How grave a finding is, least first."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class PolicyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding with executed traces; `proof` says why it holds beyond them."""

    kind: FindingKind
    severity: Severity
    policies: tuple[str, ...]
    """The names of the policies it is about, the one to change first."""
    rules: tuple[str, ...] = ()
    message: str
    proof: str
    witnesses: tuple[Witness, ...]
    assumes: str = ""
    """What must be true of the traffic for it to hold; empty where nothing must."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A policy under analysis with rules in the type of its category."""

    policy: Policy
    rules: object

    @property
    def name(self) -> str:
        """Return the name of the policy."""
        return self.policy.body.name


# --- witness ---
# A trace as proof: calls that were put to the evaluator, and what it said of each. Nothing is claimed that was not executed.


class WitnessedViolation(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule said of one call of a trace; `call` counts from 1, and one more than there are is the end."""

    call: int
    policy: str
    rule: str
    action: PolicyAction
    reason: str
    is_decisive: bool = False


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """A run under some policies, call by call, with every violation that the evaluator found."""

    policies: tuple[str, ...]
    facts: RunFacts
    calls: tuple[AnyCall, ...] = ()
    end: RunEnded = RunEnded()
    violations: tuple[WitnessedViolation, ...] = ()
    note: str = ""
    """What the trace shows, for people."""

    @property
    def is_stopped(self) -> bool:
        """Tell whether any call of the trace, or its end, is stopped."""
        return any(violation.action.stops for violation in self.violations)

    def strongest(self, policy: str, *, until: int | None = None) -> PolicyAction:
        """Return the strongest action of a policy, over all calls or up to one."""
        said = [each.action for each in self.violations if each.policy == policy and (until is None or each.call <= until)]
        return max(said, key=lambda action: action.rank, default=PolicyAction.ALLOW)

    def fires(self, policy: str, rule: str) -> bool:
        """Tell whether a rule is violated anywhere in the trace."""
        return any(each.policy == policy and each.rule == rule for each in self.violations)


def execute(
    policies: Sequence[Policy], facts: RunFacts, calls: Sequence[AnyCall] = (), *, end: RunEnded | None = None, note: str = ""
) -> Witness:
    """Put a trace to the evaluator, to its end, and return what it said; provisional counts are left out."""
    ending = end or RunEnded()
    in_force = PolicySet.of(policies).for_run(facts)
    evaluator = RunEvaluator(in_force)
    evaluator.begin()
    found = [each for number, call in enumerate(calls, start=1) for each in _violations(number, evaluator.record(call))]
    found.extend(_violations(len(calls) + 1, evaluator.finish(ending)))
    return Witness(
        policies=tuple(policy.body.name for policy in in_force.policies),
        facts=facts,
        calls=tuple(calls),
        end=ending,
        violations=tuple(found),
        note=note,
    )


def violations_of(in_force: PolicySet, call: AnyCall) -> tuple[WitnessedViolation, ...]:
    """Return what policies say of the first call of a run, which is all that a rule about one document can depend on."""
    return tuple(_violations(1, RunEvaluator(in_force).record(call)))


def reproduces(witness: Witness, policies: Sequence[Policy]) -> bool:
    """Tell whether the evaluator says the same of a trace again."""
    return execute(policies, witness.facts, witness.calls, end=witness.end, note=witness.note) == witness


def _violations(call: int, verdicts: Sequence[Verdict]) -> Iterator[WitnessedViolation]:
    for verdict in verdicts:
        for each in verdict.evaluations:
            if each.rule and each.action is not PolicyAction.ALLOW and each.status is not DecisionStatus.PROVISIONAL:
                is_decisive = each.rule == verdict.decisive.rule and each.policy_id == verdict.decisive.policy_id
                yield WitnessedViolation(
                    call=call, policy=each.policy_name, rule=each.rule, action=each.action, reason=each.reason, is_decisive=is_decisive
                )
