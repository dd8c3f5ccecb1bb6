"""What two policies are to each other: one that makes the other redundant, or a rule that never gets to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.policies import Compat, Enforcement, RetrievalRules
from evidentia.policy.analysis_blocking import standing
from evidentia.policy.analysis_findings import Finding, FindingKind, Severity
from evidentia.policy.analysis_scopes import covers
from evidentia.policy.analysis_strictness import documents_between, firing_calls, is_as_strict, policies_of
from evidentia.policy.analysis_witness import execute, said_of
from evidentia.policy.evaluator import PolicySet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.runs import RunFacts
    from evidentia.policy.analysis_findings import Subject
    from evidentia.policy.analysis_witness import Witness

_DEFAULTS: Final = msgspec.to_builtins(RetrievalRules())
_DOCUMENT_RULES: Final = ("min_relevance_score", "blocked_sources", "allowed_collections", "max_source_age_days")


def pair_findings(first: Subject, second: Subject, facts: RunFacts) -> Iterator[Finding]:
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


def _redundant(stricter: Subject, other: Subject, facts: RunFacts) -> Iterator[Finding]:
    pair = policies_of([stricter, other])
    witnesses = [execute(pair, facts, calls) for calls in firing_calls(other)]
    fired = [witness for witness in witnesses if witness.strongest(other.name).rank]
    if not fired or not all(_is_never_later(witness, stricter.name, other.name) for witness in fired):
        return
    yield Finding(
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


def _never_decides(stricter: Subject, other: Subject, facts: RunFacts) -> Iterator[Finding]:
    in_force = PolicySet.of(policies_of([stricter, other]))
    said = [(document, said_of(in_force, document)) for document in documents_between([stricter, other])]
    for rule in _DOCUMENT_RULES if _are_resolved(stricter, other) else ():
        if other.policy.body.rules[rule] == _DEFAULTS[rule]:
            continue  # nobody chose it, so nobody needs to hear of it
        fires = [(document, each) for document, found in said for each in found if each.policy == other.name and each.rule == rule]
        if not fires or any(each.is_decisive for _, each in fires):
            continue
        witness = execute(policies_of([stricter, other]), facts, [fires[0][0]], note=f"violates {rule} of '{other.name}'")
        if not witness.fires(other.name, rule):
            continue
        yield Finding(
            kind=FindingKind.NEVER_DECIDES,
            severity=Severity.NOTE,
            policies=(other.name, stricter.name),
            rules=(rule,),
            message=f"{rule} of '{other.name}' never decides: where it is violated, '{stricter.name}' decides",
            proof=f"{standing(len(said))} for all that can be; of the {len(fires)} that violate it, it decides none",
            witnesses=(witness,),
        )


def _is_enforced(subject: Subject) -> bool:
    return subject.policy.body.enforcement is Enforcement.ENFORCE


def _are_resolved(*subjects: Subject) -> bool:
    return all(each.policy.body.compat is Compat.RESOLVED for each in subjects)


def _are_retrieval(*subjects: Subject) -> bool:
    return all(each.policy.body.category == "retrieval" for each in subjects)
