"""The policies' table, read word by word: slow, without state, from plain dictionaries.

For the latest call of a trace everything is worked out again from the whole trace. Nothing here comes from the engine.
A call is a dictionary with a `kind`: `retrieval`, `batch`, `grounding`, `tool`, `llm`, `step` or `end`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import grounding_oracle
import retrieval_oracle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Fields = dict[str, Any]  # JSON: a policy's body, a call, an evaluation or a verdict

DEFAULTS = {"retrieval": retrieval_oracle.DEFAULTS, "grounding": grounding_oracle.DEFAULTS}
CATEGORIES = ("retrieval", "grounding")
RANK = {"allow": 0, "warn": 1, "block": 2}
FACETS = {"agents": "agent_name", "users": "user_id", "workflows": "workflow_name", "teams": "team", "user_groups": "user_group"}
EXCLUSIONS = {"exclude_agents": "agent_name", "exclude_users": "user_id"}
NOTICE = "factual_consistency_check"


def rules_of(policy: Mapping[str, Any]) -> Fields:
    """Return a policy's rules with every default filled in."""
    return {**DEFAULTS[policy["category"]], **policy.get("rules", {})}


def in_scope(policy: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Tell whether a policy is for a run: each facet that is given must match, and exclusions win."""
    scope = policy.get("scope", {})
    if any(_matches(scope[name], facts.get(fact, "")) for name, fact in EXCLUSIONS.items() if scope.get(name)):
        return False
    return all(_matches(scope[name], facts.get(fact, "")) for name, fact in FACETS.items() if scope.get(name))


def _matches(patterns: Iterable[str], value: str) -> bool:
    return any(fnmatchcase(value, each) if any(sign in each for sign in "*?[") else value == each for each in patterns)


def in_force(policies: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[Fields]:
    """Return the policies of a run by priority, then name."""
    kept = [dict(each) for each in policies if each.get("enabled", True) and in_scope(each, facts)]
    return sorted(kept, key=lambda each: (each.get("priority", 100), each["name"]))


def begin(policies: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], *, is_enforced: bool = True) -> list[Fields]:
    """Return what is decided before a run: its rules are stored."""
    return [_stored(category, kept, is_enforced=is_enforced) for category, kept in _by_category(in_force(policies, facts))]


def decide(
    policies: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], trace: Sequence[Fields], *, is_enforced: bool = True
) -> list[Fields]:
    """Return what every category says of the last call of a trace, passes included; empty where none has a say.

    After a block nothing is told as within policy, whether the run is enforced or not.
    """
    is_late = was_stopped(policies, facts, trace[:-1], is_enforced=True)
    return _decided(policies, facts, trace, is_enforced=is_enforced, is_late=is_late)


def _decided(
    policies: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], trace: Sequence[Fields], *, is_enforced: bool, is_late: bool
) -> list[Fields]:
    is_end = trace[-1]["kind"] == "end"
    is_over = is_end and (trace[-1]["status"] == "error" or (is_late and is_enforced))
    verdicts = []
    for category, kept in _by_category(in_force(policies, facts)):
        found = [(policy, _said(policy, trace)) for policy in kept]
        if all(said is None for _, said in found):
            continue
        evaluations = [
            {"policy": policy["name"], **(_after_block(each) if is_late else each)}
            for policy, said in found
            for each in _with_pass(policy, said or [], trace)
        ]
        phase = "after_workflow" if is_end else "mid_execution"
        verdicts.append(_verdict(category, kept, evaluations, trace, phase=phase, is_enforced=is_enforced, is_over=is_over))
    return verdicts


def was_stopped(policies: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], trace: Sequence[Fields], *, is_enforced: bool) -> bool:
    """Tell whether one of the calls was stopped."""
    prefixes = (trace[: length + 1] for length in range(len(trace)))
    return any(
        stops(verdict) for prefix in prefixes for verdict in _decided(policies, facts, prefix, is_enforced=is_enforced, is_late=False)
    )


def _after_block(evaluation: Fields) -> Fields:
    return {**evaluation, "reason": evaluation["reason"].replace("within policy", "recorded after a block")}


def stops(verdict: Mapping[str, Any]) -> bool:
    """Tell whether a verdict raises."""
    return bool(verdict["is_enforced"] and verdict["action"] == "block")


def is_pass(evaluation: Mapping[str, Any]) -> bool:
    """Tell whether a policy was checked and not violated."""
    return bool(evaluation["action"] == "allow" and evaluation["status"] != "bypassed")


def _by_category(kept: Sequence[Fields]) -> list[tuple[str, list[Fields]]]:
    pairs = [(category, [each for each in kept if each["category"] == category]) for category in CATEGORIES]
    return [(category, members) for category, members in pairs if members]


def _stored(category: str, kept: Sequence[Fields], *, is_enforced: bool) -> Fields:
    stored = {"rule": "", "action": "allow", "reason": f"{category.capitalize()} rules stored", "metadata": {}, "status": "evaluated"}
    evaluations = []
    for policy in kept:
        evaluations.append({"policy": policy["name"], **stored})
        if rules_of(policy).get(NOTICE):
            evaluations.append({"policy": policy["name"], **stored, "rule": NOTICE})
    return _verdict(category, kept, evaluations, (), phase="before_workflow", is_enforced=is_enforced, is_over=False)


def _said(policy: Fields, trace: Sequence[Fields]) -> list[Fields] | None:
    if policy["category"] == "retrieval":
        return retrieval_oracle.said(rules_of(policy), trace, is_literal=policy.get("compat") == "literal")
    postures = policy.get("posture", {})
    posture = postures.get("llm_grounding_check", postures.get("*", "open"))
    judgement = trace[-1].get("judgements", {}).get(policy["name"])
    return grounding_oracle.said(rules_of(policy), trace, judgement=judgement, posture=posture)


def _with_pass(policy: Fields, said: list[Fields], trace: Sequence[Fields]) -> list[Fields]:
    """Return what was said, and that the policy passed unless it was violated."""
    return said if any(each["action"] != "allow" for each in said) else [*said, _passed(policy, trace)]


def _passed(policy: Fields, trace: Sequence[Fields]) -> Fields:
    if policy["category"] == "retrieval":
        return retrieval_oracle.passed(rules_of(policy), trace)
    return grounding_oracle.passed(rules_of(policy), trace, judgement=trace[-1].get("judgements", {}).get(policy["name"]))


def _verdict(
    category: str,
    kept: Sequence[Fields],
    evaluations: list[Fields],
    trace: Sequence[Fields],
    *,
    phase: str,
    is_enforced: bool,
    is_over: bool,
) -> Fields:
    """Return the strongest action with the first reason of that strength; what is in shadow never outweighs what is enforced."""
    shadowed = {each["name"] for each in kept if not is_enforced or each.get("enforcement") == "shadow"}
    enforced = [each for each in evaluations if each["policy"] not in shadowed]
    decisive = _decisive(enforced, evaluations)
    told = _told(decisive, kept, evaluations, trace) if phase == "after_workflow" and category == "grounding" else decisive
    said = [_shadowed(each) if each["policy"] in shadowed else each for each in evaluations]
    is_shadow = decisive["policy"] in shadowed
    heeded = [each for each in kept if (each["name"] in shadowed) == is_shadow]
    return {
        "category": category,
        "phase": phase,
        **{name: told[name] for name in ("policy", "rule", "action", "reason", "metadata")},
        "status": (_shadowed(told) if is_shadow else told)["status"],
        "is_enforced": not is_over and not is_shadow and told["status"] != "provisional",
        "abstention_response": _abstention(heeded, said),
        "evaluations": said,
    }


def _decisive(enforced: Sequence[Fields], evaluations: Sequence[Fields]) -> Fields:
    """Return the strongest of what is enforced, else of what is not; a count that is only provisional is the weakest warning."""
    choices = (_violated(enforced), _violated(evaluations), _not_passed(enforced), _not_passed(evaluations), enforced)
    candidates = next((each for each in choices if each), evaluations)
    return max(candidates, key=lambda each: (RANK[each["action"]], each["status"] != "provisional"))


def _shadowed(evaluation: Fields) -> Fields:
    """Return what a policy without effect says; that something was not checked, or not yet, is still told."""
    return {**evaluation, "status": "shadow"} if evaluation["status"] == "evaluated" else evaluation


def _violated(evaluations: Sequence[Fields]) -> list[Fields]:
    return [each for each in evaluations if each["action"] != "allow"]


def _not_passed(evaluations: Sequence[Fields]) -> list[Fields]:
    return [each for each in evaluations if not is_pass(each)]


def _told(decisive: Fields, kept: Sequence[Fields], evaluations: Sequence[Fields], trace: Sequence[Fields]) -> Fields:
    if is_pass(decisive):
        return decisive
    policy = next(each for each in kept if each["name"] == decisive["policy"])
    own = [each for each in evaluations if each["policy"] == decisive["policy"] and RANK[each["action"]] == RANK[decisive["action"]]]
    return grounding_oracle.joined(rules_of(policy), trace, own)


def _abstention(kept: Sequence[Fields], said: Sequence[Fields]) -> str | None:
    """Return the first response that a policy wants given because of the confidence."""
    for policy in kept:
        response = rules_of(policy).get("abstention_response")
        is_wanted = any(each["policy"] == policy["name"] and each["rule"] == "abstention_threshold" for each in said)
        if is_wanted and response is not None:
            return str(response)
    return None
