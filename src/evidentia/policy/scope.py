"""Is a policy for this run? Facets with glob characters are matched, others are equal; exclusions win, and an empty scope is for all."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from evidentia.contracts.policies import DEFAULT_TENANT, PolicyScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import RunFacts

_FACETS: Final = (
    ("agents", "agent_name"),
    ("agent_ids", "agent_id"),
    ("agent_groups", "agent_group"),
    ("agent_types", "agent_type"),
    ("workflows", "workflow_name"),
    ("users", "user_id"),
    ("user_groups", "user_group"),
    ("teams", "team"),
    ("tools", "tool"),
    ("models", "model"),
)
_EXCLUSIONS: Final = (
    ("exclude_agents", "agent_name"),
    ("exclude_users", "user_id"),
    ("exclude_tools", "tool"),
    ("exclude_models", "model"),
)
_GLOB_CHARACTERS: Final = frozenset("*?[")
_EVERYONE: Final = PolicyScope()


def in_scope(policy: Policy, facts: RunFacts) -> bool:
    """Tell whether a policy is for a run; upper and lower case differ."""
    scope = policy.body.scope
    if not _in_tenant(policy, facts.tenant):
        return False
    if scope == _EVERYONE:
        return True
    if any(_matches(getattr(scope, facet), getattr(facts, fact)) for facet, fact in _EXCLUSIONS):
        return False
    return all(not (wanted := getattr(scope, facet)) or _matches(wanted, getattr(facts, fact)) for facet, fact in _FACETS)


def _in_tenant(policy: Policy, tenant: str) -> bool:
    """Tell whether a policy reaches a tenant: only one of the default tenant may name others."""
    wanted = policy.body.scope.tenants
    if wanted and not _matches(wanted, tenant):
        return False
    return tenant == policy.tenant or (bool(wanted) and policy.tenant == DEFAULT_TENANT)


def _matches(patterns: Sequence[str], value: str) -> bool:
    return any(_match(pattern, value) for pattern in patterns)


def _match(pattern: str, value: str) -> bool:
    if _GLOB_CHARACTERS.isdisjoint(pattern):
        return pattern == value
    return fnmatchcase(value, pattern)
