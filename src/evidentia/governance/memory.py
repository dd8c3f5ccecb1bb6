"""Policies kept in memory: the port without a base, for tests, for scripts and for the policies a control plane was last seen with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError, PolicyConflictError
from evidentia.contracts.policies import DEFAULT_TENANT, ChangeKind, Policy, PolicyChange, StoredPolicy
from evidentia.contracts.ports import DecisionLog, PolicyStore
from evidentia.policy.rules import check_policy
from evidentia.provenance.decision_chain import SEED_SIZE, LogPart, Sealer, read_records, record_lines, with_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord
    from evidentia.contracts.policies import PolicyBody, PolicyId
    from evidentia.contracts.ports import Clock, Entropy
    from evidentia.contracts.runs import RunId


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


# --- memory log ---
# The decision log without a base: the same lines and the same chain, in memory.

_LINES_PER_BLOCK = 4_096


class MemoryLog(DecisionLog):
    """Implements `DecisionLog` and `KeptLogs` with one log of one part. Thread safe; entries are sealed when somebody reads."""

    problem: str | None = None
    """Memory is always there."""

    def __init__(self, *, entropy: Entropy, name: str = "memory") -> None:
        self._lock = threading.Lock()
        self._pending: list[LogEntry] = []
        self._lines: list[bytes] = []
        self._begins: dict[RunId, int] = {}
        """The place of the first line of each run, while no line was moved."""
        self._is_rewritten = False
        self._sealer = Sealer(name, seed=entropy.take(SEED_SIZE))
        self._part = LogPart(name, 1)

    def append(self, entries: Sequence[LogEntry], *, sealed: bool = False) -> Sequence[LogRecord]:
        """Take entries in order; `sealed` returns a record for each."""
        with self._lock:
            self._pending.extend(entries)
            if not sealed:
                return ()
            self._seal()
            first = len(self._lines) - len(entries)
            previous = self._lines[first - 1].partition(b" ")[0] if first else None
            return tuple(read_records(self._part.log, record_lines(self._lines[first:]), previous=previous))

    def flush(self) -> None:
        """Seal everything taken so far."""
        with self._lock:
            self._seal()

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield the records in order whose seq is greater than `after`; those of a run are looked for from where it begins."""
        lines = self._sealed(self._part)
        first = 0 if run_id is None else self._begins.get(run_id, 0 if self._is_rewritten else len(lines))
        previous = lines[first - 1].partition(b" ")[0] if first else None
        return read_records(self._part.log, record_lines(lines[first:]), run_id=run_id, after=after, previous=previous)

    def head(self) -> LogHead:
        """Return where the log stands."""
        with self._lock:
            self._seal()
            return self._sealer.head()

    def close(self) -> None:
        """Seal what is left; the log stays readable."""
        self.flush()

    def parts(self) -> Sequence[LogPart]:
        """Return the one part there is."""
        return (self._part,)

    def blocks(self, part: LogPart) -> Iterator[bytes]:
        """Yield the log as it stands now, in pieces of whole lines."""
        lines = self._sealed(part)
        return (b"".join(lines[start : start + _LINES_PER_BLOCK]) for start in range(0, len(lines), _LINES_PER_BLOCK))

    def rewrite(self, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Put a changed copy in the place of the log; what is appended meanwhile comes after it."""
        lines = self._sealed(part)
        changed = list(with_ends(change(iter((b"".join(lines),)))))
        with self._lock:
            self._lines = changed + self._lines[len(lines) :]
            self._begins.clear()
            self._is_rewritten = True

    def _sealed(self, part: LogPart) -> Sequence[bytes]:
        if part != self._part:
            raise NotFoundError("decision log", str(part))
        with self._lock:
            self._seal()
            return tuple(self._lines)

    def _seal(self) -> None:
        for entry in self._pending:
            if not self._is_rewritten:
                self._begins.setdefault(entry.run_id, len(self._lines))
            self._lines.append(self._sealer.seal(entry))
        self._pending.clear()
