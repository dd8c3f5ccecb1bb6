"""Policies kept in memory: the port of a policy store without a base."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError, PolicyConflictError
from evidentia.contracts.policies import DEFAULT_TENANT, ChangeKind, Policy, PolicyChange, StoredPolicy
from evidentia.contracts.ports import PolicyStore
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policies import PolicyBody, PolicyId
    from evidentia.contracts.ports import Clock


class MemoryPolicies(PolicyStore):
    """Implements `PolicyStore`. Thread safe; nothing outlives the process."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._versions: dict[tuple[str, PolicyId], list[StoredPolicy]] = {}
        self._changes: list[tuple[str, PolicyChange]] = []

    def live(self, *, tenant: str = DEFAULT_TENANT) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, enabled or not, by priority and then name."""
        with self._lock:
            newest = [versions[-1] for (owner, _), versions in self._versions.items() if owner == tenant]
        return sorted((each for each in newest if not each.is_removed), key=_place)

    def find(self, name: str, *, tenant: str = DEFAULT_TENANT, version: int | None = None) -> StoredPolicy:
        """Return a policy by its id or name, the newest version by default, or raise NotFoundError."""
        with self._lock:
            for stored in self._candidates(name, tenant):
                if version is None and not stored[-1].is_removed:
                    return stored[-1]
                found = [each for each in stored if each.policy.version == version]
                if found:
                    return found[-1]
        raise NotFoundError("policy", name)

    def put(
        self,
        body: PolicyBody,
        *,
        tenant: str = DEFAULT_TENANT,
        by: str = "",
        policy_id: PolicyId | None = None,
        expected: int | None = None,
    ) -> StoredPolicy:
        """Store a checked body as a new policy or as the next version of one; `expected` is the version that it replaces, 0 for none.

        Raises PolicyConflictError when another version is in force, or when a new policy's name is taken, and NotFoundError when
        there is no live policy with this id.
        """
        checked = check_policy(body, policy_id=policy_id, tenant=tenant)
        with self._lock:
            key = (tenant, checked.policy_id)
            before = self._versions.get(key, [])
            self._refuse_conflict(checked, before, policy_id=policy_id, expected=expected)
            version = before[-1].policy.version + 1 if before else 1
            policy = check_policy(body, policy_id=checked.policy_id, version=version, tenant=tenant)
            now = self._clock.now()
            is_new = not before or before[-1].is_removed
            created_at = now if is_new else before[-1].created_at
            stored = StoredPolicy(policy=policy, created_at=created_at, updated_at=now, updated_by=by)
            self._keep(stored, ChangeKind.CREATED if is_new else ChangeKind.UPDATED)
        return stored

    def remove(self, policy_id: PolicyId, *, tenant: str = DEFAULT_TENANT, by: str = "", expected: int | None = None) -> StoredPolicy:
        """Take a policy out of force; its versions stay readable."""
        with self._lock:
            before = self._versions.get((tenant, policy_id), [])
            if not before or before[-1].is_removed:
                raise NotFoundError("policy", policy_id)
            last = before[-1]
            if expected is not None and last.policy.version != expected:
                raise PolicyConflictError(last.policy.body.name, _other_version(last.policy))
            stored = StoredPolicy(
                policy=last.policy, created_at=last.created_at, updated_at=self._clock.now(), updated_by=by, is_removed=True
            )
            self._keep(stored, ChangeKind.REMOVED)
        return stored

    def changes(self, *, tenant: str = DEFAULT_TENANT, after: int = 0, limit: int = 100) -> Sequence[PolicyChange]:
        """Return who changed what, oldest first."""
        with self._lock:
            return [change for owner, change in self._changes if owner == tenant and change.seq > after][:limit]

    def _candidates(self, name: str, tenant: str) -> list[list[StoredPolicy]]:
        """Return the histories that go by a name, the one with that id first, live ones before removed ones."""
        own = [(key[1], versions) for key, versions in self._versions.items() if key[0] == tenant]
        named = [each for each in own if name in {each[0], each[1][-1].policy.body.name}]
        return [versions for _, versions in sorted(named, key=lambda each: (each[0] != name, each[1][-1].is_removed, each[0]))]

    def _refuse_conflict(self, checked: Policy, before: list[StoredPolicy], *, policy_id: PolicyId | None, expected: int | None) -> None:
        name = checked.body.name
        in_force = before[-1].policy if before and not before[-1].is_removed else None
        if policy_id is not None and in_force is None:
            raise NotFoundError("policy", policy_id)
        if expected is not None and expected != (in_force.version if in_force else 0):
            raise PolicyConflictError(name, _other_version(in_force) if in_force else "it is not in force")
        if policy_id is None and expected is None and in_force:
            raise PolicyConflictError(name, "the name is taken")
        for (owner, other_id), versions in self._versions.items():
            is_other = owner == checked.tenant and other_id != checked.policy_id
            if is_other and not versions[-1].is_removed and versions[-1].policy.body.name == name:
                raise PolicyConflictError(name, "the name is taken")

    def _keep(self, stored: StoredPolicy, change: ChangeKind) -> None:
        policy = stored.policy
        self._versions.setdefault((policy.tenant, policy.policy_id), []).append(stored)
        line = PolicyChange(
            seq=len(self._changes) + 1,
            at=stored.updated_at,
            by=stored.updated_by,
            change=change,
            policy_id=policy.policy_id,
            name=policy.body.name,
            version=policy.version,
            digest=policy.digest,
        )
        self._changes.append((policy.tenant, line))


def _place(stored: StoredPolicy) -> tuple[int, str, str]:
    return stored.policy.body.priority, stored.policy.body.name, stored.policy.policy_id


def _other_version(policy: Policy) -> str:
    return f"version {policy.version} is in force"
