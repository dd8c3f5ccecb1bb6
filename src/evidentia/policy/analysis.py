"""What can be said about policies before any run: contradictions, rules that never fire, policies that change nothing, empty scopes.

Rules are intervals and sets, so questions about all documents come down to a few that are put to the evaluator itself.
No finding without traces that were executed; what cannot be decided is not reported.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import Enforcement
from evidentia.policy.analysis_blocking import blocking_findings, diversity_finding
from evidentia.policy.analysis_findings import Finding, FindingKind, Severity, Subject
from evidentia.policy.analysis_globs import UndecidedError
from evidentia.policy.analysis_pairs import pair_findings
from evidentia.policy.analysis_rules import rule_findings
from evidentia.policy.analysis_scopes import near_misses, shared_facts
from evidentia.policy.analysis_witness import Witness, execute, reproduces
from evidentia.policy.categories import category
from evidentia.policy.scope import in_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import RunFacts

__all__ = ["Analysis", "Finding", "FindingKind", "Severity", "Witness", "analyze", "reproduces"]

MAX_POLICIES: Final = 200


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """Every finding, the gravest first, and what could not be decided."""

    policies: int
    findings: tuple[Finding, ...]
    undecided: tuple[str, ...] = ()
    """Questions that were too large; nothing is claimed about them."""

    @property
    def worst(self) -> Severity | None:
        """Return how grave the gravest finding is; None without any."""
        return self.findings[0].severity if self.findings else None


def analyze(policies: Sequence[Policy]) -> Analysis:
    """Return what is the matter with policies, alone and with each other; those that are not enabled are left out.

    1. scopes that match no run
    2. rules of single policies
    3. runs in which nothing can pass
    4. pairs of which one makes the other, or one of its rules, superfluous
    """
    subjects = _subjects(policies)
    undecided: list[str] = []
    reached: list[tuple[Subject, RunFacts]] = []
    found: list[Finding] = []
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
    return Analysis(policies=len(subjects), findings=tuple(_ordered(found)), undecided=tuple(undecided))


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
    return [Subject(policy=each, rules=msgspec.convert(each.body.rules, category(each.body.category).rules)) for each in enabled]


def _single(subject: Subject, facts: RunFacts) -> Iterator[Finding]:
    yield from rule_findings(subject, facts)
    if _is_retrieval(subject):
        yield from diversity_finding(subject, facts)


def _together(reached: Sequence[tuple[Subject, RunFacts]], undecided: list[str]) -> list[Finding]:
    """Return the findings about policies that are in force in the same run; a run is named for each, and for each two."""
    runs = [facts for _, facts in reached]
    found: list[Finding] = []
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


def _one_stricter_each(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with one stricter policy for each that is redundant, one that is not itself redundant where there is such."""
    redundant = {each.policies[0] for each in findings if each.kind is FindingKind.REDUNDANT}
    kept: dict[str, Finding] = {}
    others: list[Finding] = []
    for each in sorted(findings, key=lambda each: each.policies[-1] in redundant):
        if each.kind is FindingKind.REDUNDANT:
            kept.setdefault(each.policies[0], each)
        else:
            others.append(each)
    return [*kept.values(), *others]


def _blocked(subjects: Sequence[Subject], runs: Iterable[RunFacts], undecided: list[str]) -> list[Finding]:
    """Return what nothing can pass, once for each set of policies that some run has in force."""
    enforced = [each for each in subjects if _is_retrieval(each) and each.policy.body.enforcement is Enforcement.ENFORCE]
    seen: set[tuple[str, ...]] = set()
    found: dict[tuple[str, ...], Finding] = {}
    for facts in runs:
        in_force = [each for each in enforced if in_scope(each.policy, facts)]
        names = tuple(each.name for each in in_force)
        if names in seen:
            continue
        seen.add(names)
        for finding in _decided(blocking_findings(in_force, facts), undecided, " and ".join(f"'{name}'" for name in names)):
            found.setdefault(finding.policies, finding)
    return list(found.values())


def _decided(findings: Iterator[Finding], undecided: list[str], about: str) -> list[Finding]:
    """Return the findings up to where a question is too large, which is written down."""
    found: list[Finding] = []
    try:
        found.extend(findings)
    except UndecidedError:
        undecided.append(about)
    return found


def _never_matches(subject: Subject) -> Finding:
    misses = list(near_misses(subject.policy))
    return Finding(
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


def _ordered(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: (-each.severity.rank, each.kind.value, each.policies, each.rules, each.message))
