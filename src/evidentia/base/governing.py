"""The policies of a base as its owner changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.access import Principal
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.wiring.embedded import BaseComponents


def add(parts: BaseComponents, principal: Principal, body: PolicyBody | Mapping[str, Any]) -> StoredPolicy:
    """Store a body as a new policy, or as the next version of the one with its name. Any: as an author writes it."""
    tenant = str(principal.tenant)
    checked = check_policy(body, tenant=tenant).body
    store = parts.control().policies
    known = next((each.policy for each in store.live(tenant=tenant) if each.policy.body.name == checked.name), None)
    return store.put(
        checked,
        tenant=tenant,
        by=str(principal.principal_id),
        policy_id=known.policy_id if known else None,
        expected=known.version if known else None,
    )


def live(parts: BaseComponents, principal: Principal) -> list[StoredPolicy]:
    """Return a tenant's policies."""
    return list(parts.control().policies.live(tenant=str(principal.tenant)))


def remove(parts: BaseComponents, principal: Principal, name: str) -> StoredPolicy:
    """Take a policy out of force."""
    tenant = str(principal.tenant)
    store = parts.control().policies
    found = store.find(name, tenant=tenant).policy
    return store.remove(found.policy_id, tenant=tenant, by=str(principal.principal_id), expected=found.version)
