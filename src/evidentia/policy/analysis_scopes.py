"""Which runs two scopes have in common, and whether one lies within another: decided facet by facet, with facts as proof."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.contracts.runs import RunFacts, RunId
from evidentia.policy.analysis_globs import UndecidedError, find_name, is_glob
from evidentia.policy.scope import in_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evidentia.contracts.policies import Policy

_FACETS: Final = (
    ("agents", "agent_name", "exclude_agents"),
    ("agent_ids", "agent_id", ""),
    ("agent_groups", "agent_group", ""),
    ("agent_types", "agent_type", ""),
    ("workflows", "workflow_name", ""),
    ("users", "user_id", "exclude_users"),
    ("user_groups", "user_group", ""),
    ("teams", "team", ""),
    ("tools", "tool", "exclude_tools"),
    ("models", "model", "exclude_models"),
    ("tenants", "tenant", ""),
)
_PLAIN: Final = RunFacts(run_id=RunId("witness"), agent_name="agent")


class _Reach(NamedTuple):
    """The values of one facet that a policy is for; without `wanted`, all that are not excluded."""

    wanted: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        return (*self.wanted, *self.excluded)

    def holds(self, matches: Sequence[bool]) -> bool:
        """Tell whether a value is reached, from which of the patterns match it."""
        wanted, excluded = matches[: len(self.wanted)], matches[len(self.wanted) :]
        return (not self.wanted or any(wanted)) and not any(excluded)


def shared_facts(*policies: Policy) -> RunFacts | None:
    """Return the facts of a run that every policy is for, or None when there can be no such run. Raises UndecidedError."""
    found: dict[str, str] = {}
    for facet, fact, exclusion in _FACETS:
        reaches = tuple(_reach(policy, facet, exclusion) for policy in policies)
        if not any(reach.patterns for reach in reaches):
            continue
        value = _value(reaches, _all_hold, default=getattr(_PLAIN, fact))
        if value is None:
            return None
        found[fact] = value
    facts = _facts(found)
    if not all(in_scope(policy, facts) for policy in policies):
        raise UndecidedError  # the witness does not hold, so nothing is claimed
    return facts


def covers(wider: Policy, narrower: Policy) -> bool:
    """Tell whether every run that one policy is for is one that the other is for. Raises UndecidedError."""
    for facet, fact, exclusion in _FACETS:
        reaches = (_reach(narrower, facet, exclusion), _reach(wider, facet, exclusion))
        if not reaches[1].patterns:
            continue
        if _value(reaches, _only_first_holds, default=getattr(_PLAIN, fact)) is not None:
            return False
    return True


def near_misses(policy: Policy) -> Iterator[RunFacts]:
    """Yield facts that come closest to a scope which matches nothing: one for each name that it asks for in vain."""
    for facet, fact, exclusion in _FACETS:
        reach = _reach(policy, facet, exclusion)
        if _value((reach,), _all_hold, default=getattr(_PLAIN, fact)) is None:
            for pattern in reach.wanted or ("agent",):
                yield _facts({"tenant": policy.tenant, fact: pattern.replace("*", "x").replace("?", "x")})


def _facts(values: Mapping[str, str]) -> RunFacts:
    return msgspec.structs.replace(_PLAIN, **values)


@lru_cache(maxsize=4_096)
def _value(reaches: tuple[_Reach, ...], wanted: Callable[[Sequence[_Reach], Sequence[bool]], bool], *, default: str) -> str | None:
    """Return a value of a facet: what runs have by default where it will do, then none at all, then any name; None without any.

    Many policies share a scope, so answers are kept.
    """
    patterns = [pattern for reach in reaches for pattern in reach.patterns]

    def is_wanted(matches: Sequence[bool]) -> bool:
        return wanted(reaches, matches)

    for plain in (default, ""):
        if is_wanted([_matches(pattern, plain) for pattern in patterns]):
            return plain
    return find_name(patterns, is_wanted)


def _matches(pattern: str, value: str) -> bool:
    return fnmatchcase(value, pattern) if is_glob(pattern) else pattern == value


def _all_hold(reaches: Sequence[_Reach], matches: Sequence[bool]) -> bool:
    return all(_held(reaches, matches))


def _only_first_holds(reaches: Sequence[_Reach], matches: Sequence[bool]) -> bool:
    first, *others = _held(reaches, matches)
    return first and not any(others)


def _held(reaches: Sequence[_Reach], matches: Sequence[bool]) -> Iterator[bool]:
    at = 0
    for reach in reaches:
        end = at + len(reach.patterns)
        yield reach.holds(matches[at:end])
        at = end


def _reach(policy: Policy, facet: str, exclusion: str) -> _Reach:
    scope = policy.body.scope
    if facet != "tenants":
        return _Reach(getattr(scope, facet), getattr(scope, exclusion) if exclusion else ())
    if is_glob(policy.tenant):
        raise UndecidedError
    if not scope.tenants:
        return _Reach((policy.tenant,), ())
    if policy.tenant == DEFAULT_TENANT:
        return _Reach(scope.tenants, ())
    is_named = any(_matches(pattern, policy.tenant) for pattern in scope.tenants)
    return _Reach((policy.tenant,), () if is_named else (policy.tenant,))
