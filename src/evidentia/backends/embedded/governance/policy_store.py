"""Policies in the file of a base's governance: every version stays, one name is one live policy, and each change has an author.

The store checks nothing itself: `check` turns a body into a policy, or says everything that is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from evidentia.backends.embedded.governance.governance_db import AuditChange, GovernanceFile, damaged, digest_of, note_change, read_changes
from evidentia.contracts.control import AuditEntry, AuditKind, PushAction, PushResult
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import FieldProblem, NotFoundError, PolicyConflictError, PolicyInvalidError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import DEFAULT_TENANT, ChangeKind, Policy, PolicyBody, PolicyChange, PolicyId, StoredPolicy
from evidentia.contracts.ports import Clock, PolicyStore

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence


_MAX_TENANTS_KEPT = 64


class BodyCheck(Protocol):
    """Turns what an author wrote into a policy."""

    def __call__(
        self,
        body: PolicyBody | Mapping[str, Any],  # Any: whatever was sent; that is what is checked
        *,
        policy_id: PolicyId | None = None,
        version: int = 1,
        tenant: str = DEFAULT_TENANT,
    ) -> Policy:
        """Return the policy, or raise PolicyInvalidError with every problem."""
        ...


class EmbeddedPolicies(PolicyStore):
    """Implements `PolicyStore`. Thread safe; several processes may share the file, and each sees what the others write."""

    def __init__(self, file: GovernanceFile, *, check: BodyCheck, clock: Clock) -> None:
        self._file = file
        self._check = check
        self._clock = clock
        self._kept: dict[str, tuple[tuple[int, int], tuple[StoredPolicy, ...]]] = {}

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, enabled or not, by priority and then name; the same object while nothing changes."""
        with self._file.reading() as database:
            if database is None:
                return ()
            state = (int(database.execute("PRAGMA data_version").fetchone()[0]), database.total_changes)
            kept = self._kept.get(tenant)
            if kept is not None and kept[0] == state:
                return kept[1]
            found = read_live(database, tenant=tenant)
            ordered = tuple(sorted(found, key=lambda each: (each.policy.body.priority, each.policy.body.name, each.policy.policy_id)))
            if len(self._kept) >= _MAX_TENANTS_KEPT:
                self._kept.clear()
            self._kept[tenant] = (state, ordered)
            return ordered

    def find(self, name: str, *, tenant: str, version: int | None = None) -> StoredPolicy:
        """Return a policy by its id or name, the newest version by default, or raise NotFoundError.

        One that was removed is found when a version is named.
        """
        with self._file.reading() as database:
            state = None if database is None else _named(database, name, tenant=tenant, has_removed=version is not None)
            if database is None or state is None:
                raise NotFoundError("policy", name)
            found = read_newest(database, state) if version is None else read_version(database, state, version)
        if found is None:
            raise NotFoundError("version of a policy", f"{name} {version}")
        return found

    def versions(self, name: str, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return every version of a policy, the oldest first, also when it was removed."""
        with self._file.reading() as database:
            state = None if database is None else _named(database, name, tenant=tenant, has_removed=True)
            if database is None or state is None:
                raise NotFoundError("policy", name)
            return read_versions(database, state)

    def put(
        self, body: PolicyBody, *, tenant: str, by: str, policy_id: PolicyId | None = None, expected: int | None = None
    ) -> StoredPolicy:
        """Store a body as a new policy or as the next version of one; `expected` is the version that it replaces, 0 for none.

        Raises:
            PolicyInvalidError: The body cannot be put in force.
            PolicyConflictError: Another version is in force, or the name is taken.
            NotFoundError: No live policy has this id.
        """
        self._check(body, tenant=tenant)  # before anybody waits for the file
        with self._file.transaction() as database:
            return self._put(database, body, tenant=tenant, by=by, policy_id=policy_id, expected=expected)

    def push(
        self,
        bodies: Sequence[Mapping[str, Any]],  # Any: whatever was sent; that is what is checked
        *,
        tenant: str,
        by: str,
        is_dry: bool = False,
    ) -> Sequence[PushResult]:
        """Put bodies in force by their names, all or none, and say what became of each; a dry run changes nothing.

        Raises PolicyInvalidError with the problems of all of them, each path with its place in the list.
        """
        policies = self._checked(bodies, tenant=tenant)
        if is_dry:
            with self._file.reading() as existing:
                return [_foreseen(existing, policy) for policy in policies]
        with self._file.transaction() as database:
            return [self._push(database, policy, by=by) for policy in policies]

    def remove(self, policy_id: PolicyId, *, tenant: str, by: str, expected: int | None = None) -> StoredPolicy:
        """Take a policy out of force; its versions stay readable."""
        with self._file.reading() as existing:
            if existing is None:
                raise NotFoundError("policy", policy_id)
        with self._file.transaction() as database:
            state = _named(database, policy_id, tenant=tenant, has_removed=False)
            if state is None:
                raise NotFoundError("policy", policy_id)
            _refuse_other_version(state, expected)
            stored, now = read_newest(database, state), self._clock.now()
            write_state(database, state._replace(is_removed=True))
            note_change(database, _change(stored.policy, ChangeKind.REMOVED), tenant=tenant, by=by, at=now)
        return msgspec.structs.replace(stored, is_removed=True, updated_at=now, updated_by=by)

    def changes(self, *, tenant: str, after: int = 0, limit: int = 100) -> Sequence[PolicyChange]:
        """Return who changed which policy, oldest first."""
        with self._file.reading() as database:
            kind = AuditKind.POLICY
            found = [] if database is None else read_changes(database, tenant=tenant, after=after, limit=limit, kind=kind)
        return [
            PolicyChange(
                seq=entry.seq,
                at=entry.at,
                by=entry.by,
                change=ChangeKind(entry.change),
                policy_id=PolicyId(entry.subject),
                name=entry.name,
                version=entry.version or 0,
                digest=entry.digest or Sha256(""),
            )
            for entry in found
        ]

    def note(self, kind: AuditKind, change: str, *, subject: str, name: str, tenant: str, by: str) -> None:
        """Write a line of the audit about something that is kept elsewhere: documents, sources, the base, sessions."""
        with self._file.transaction() as database:
            note_change(database, AuditChange(kind, change, subject, name), tenant=tenant, by=by, at=self._clock.now())

    def audit(self, *, tenant: str, after: int = 0, limit: int = 100) -> Sequence[AuditEntry]:
        """Return who changed which policy, token or secret, oldest first."""
        with self._file.reading() as database:
            return [] if database is None else read_changes(database, tenant=tenant, after=after, limit=limit)

    def _put(
        self, database: sqlite3.Connection, body: PolicyBody, *, tenant: str, by: str, policy_id: PolicyId | None, expected: int | None
    ) -> StoredPolicy:
        state = _replaced(database, body, tenant=tenant, policy_id=policy_id, expected=expected)
        is_new = state is None or state.is_removed
        chosen = state.policy_id if state else _free_id(database, self._check(body, tenant=tenant))
        policy = self._check(body, policy_id=chosen, version=state.version + 1 if state else 1, tenant=tenant)
        now = self._clock.now()
        created_at = now if state is None or is_new else read_newest(database, state).created_at
        stored = StoredPolicy(policy=policy, created_at=created_at, updated_at=now, updated_by=by)
        write_version(database, stored)
        kind = ChangeKind.CREATED if is_new else ChangeKind.UPDATED
        note_change(database, _change(policy, kind), tenant=tenant, by=by, at=now)
        return stored

    def _push(self, database: sqlite3.Connection, policy: Policy, *, by: str) -> PushResult:
        foreseen = _foreseen(database, policy)
        if foreseen.action is PushAction.UNCHANGED:
            return foreseen
        is_update = foreseen.action is PushAction.UPDATED
        policy_id = foreseen.policy_id if is_update else None
        stored = self._put(database, policy.body, tenant=policy.tenant, by=by, policy_id=policy_id, expected=None)
        return msgspec.structs.replace(foreseen, policy_id=stored.policy.policy_id, version=stored.policy.version)

    def _checked(self, bodies: Sequence[Mapping[str, Any]], *, tenant: str) -> list[Policy]:  # Any: as in `push`
        checked: list[Policy] = []
        problems: list[FieldProblem] = []
        places: dict[str, int] = {}
        for place, body in enumerate(bodies):
            where = f"policies[{place}]"
            try:
                policy = self._check(body, tenant=tenant)
            except PolicyInvalidError as error:
                problems += [each._replace(path=f"{where}.{each.path}" if each.path else where) for each in error.problems]
                continue
            first = places.setdefault(policy.body.name, place)
            if first != place:
                problems.append(FieldProblem(f"{where}.name", f"policies[{first}] has the same name"))
            checked.append(policy)
        if problems:
            raise PolicyInvalidError(problems)
        return checked


def _named(database: sqlite3.Connection, name: str, *, tenant: str, has_removed: bool) -> PolicyState | None:
    """Return the policy with this id, else the live one with this name, else one of that name that was removed."""
    found = state_by_id(database, name, tenant=tenant)
    if found is not None and (has_removed or not found.is_removed):
        return found
    live = state_by_name(database, name, tenant=tenant)
    return state_by_name(database, name, tenant=tenant, is_removed=True) if live is None and has_removed else live


def _replaced(
    database: sqlite3.Connection, body: PolicyBody, *, tenant: str, policy_id: PolicyId | None, expected: int | None
) -> PolicyState | None:
    """Return what a body follows on: the policy that was named, or a removed one of the same name; None for a new one."""
    taken = state_by_name(database, body.name, tenant=tenant)
    if policy_id is None:
        if taken is not None:
            if expected is None:
                raise PolicyConflictError(body.name, f"the name is taken by '{taken.policy_id}', version {taken.version}")
            _refuse_other_version(taken, expected)
            return taken
        if expected:
            raise PolicyConflictError(body.name, f"it is not in force, so there is no version {expected} to replace")
        return state_by_name(database, body.name, tenant=tenant, is_removed=True)
    state = state_by_id(database, policy_id, tenant=tenant)
    if state is None or state.is_removed:
        raise NotFoundError("policy", policy_id)
    _refuse_other_version(state, expected)
    if taken is not None and taken.policy_id != state.policy_id:
        raise PolicyConflictError(body.name, f"the name is taken by '{taken.policy_id}'")
    return state


def _foreseen(database: sqlite3.Connection | None, policy: Policy) -> PushResult:
    """Return what pushing a policy does."""
    name, tenant = policy.body.name, policy.tenant
    live = None if database is None else state_by_name(database, name, tenant=tenant)
    if database is not None and live is not None:
        is_known = is_same(read_newest(database, live).policy.body, policy.body)
        action, version = (PushAction.UNCHANGED, live.version) if is_known else (PushAction.UPDATED, live.version + 1)
        return PushResult(name=name, action=action, policy_id=live.policy_id, version=version)
    removed = None if database is None else state_by_name(database, name, tenant=tenant, is_removed=True)
    policy_id = removed.policy_id if removed else policy.policy_id if database is None else _free_id(database, policy)
    return PushResult(name=name, action=PushAction.CREATED, policy_id=policy_id, version=removed.version + 1 if removed else 1)


def _free_id(database: sqlite3.Connection, policy: Policy) -> PolicyId:
    """Return the id that follows from the name; another one where a policy that was renamed still has it."""
    candidate, attempt = policy.policy_id, 1
    while state_by_id(database, candidate, tenant=policy.tenant) is not None:
        attempt += 1
        candidate = PolicyId(f"{policy.policy_id}-{attempt}")
    return candidate


def _refuse_other_version(state: PolicyState, expected: int | None) -> None:
    if expected is not None and expected != state.version:
        raise PolicyConflictError(state.name, f"version {state.version} is in force, not {expected}")


def _change(policy: Policy, change: ChangeKind) -> AuditChange:
    return AuditChange(AuditKind.POLICY, change.value, policy.policy_id, policy.body.name, policy.version, policy.digest)


# --- governance db policies ---
# The rows of policies: which version of each is in force, and every version there was.

_STANDING: Final = "SELECT policy_id, version, name, is_removed, digest FROM policies WHERE tenant = ?"
_VERSIONS: Final = "SELECT version, stored, digest FROM policy_versions WHERE tenant = ? AND policy_id = ?"
_ALL: Final = """SELECT p.policy_id, p.version, p.name, p.is_removed, p.digest, v.stored, v.digest
    FROM policies p LEFT JOIN policy_versions v USING (tenant, policy_id, version) WHERE p.tenant = ?"""

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = json_decoder(StoredPolicy)


class PolicyState(NamedTuple):
    """How a policy stands: its newest version, its name, and whether it was removed."""

    tenant: str
    policy_id: PolicyId
    version: int
    name: str
    is_removed: bool

    @property
    def digest(self) -> bytes:
        """Return what vouches for the row."""
        return digest_of(self.tenant, self.policy_id, str(self.version), self.name, str(int(self.is_removed)))


def state_by_id(database: sqlite3.Connection, policy_id: str, *, tenant: str) -> PolicyState | None:
    """Return how the policy with this id stands, removed or not."""
    return _one(database, f"{_STANDING} AND policy_id = ?", (tenant, policy_id))


def state_by_name(database: sqlite3.Connection, name: str, *, tenant: str, is_removed: bool = False) -> PolicyState | None:
    """Return how the policy with this name stands: the live one, or the first by id of those that were removed."""
    return _one(database, f"{_STANDING} AND name = ? AND is_removed = ? ORDER BY policy_id LIMIT 1", (tenant, name, int(is_removed)))


def read_live(database: sqlite3.Connection, *, tenant: str) -> Iterator[StoredPolicy]:
    """Yield the policies that were not removed."""
    # All are read: one that a rotten byte made look removed is damage, not a rule less.
    for *row, stored, digest in database.execute(_ALL, (tenant,)).fetchall():
        state = _checked(tenant, tuple(row))
        if not state.is_removed:
            yield _stored(state, state.version, stored, digest)


def read_version(database: sqlite3.Connection, state: PolicyState, version: int) -> StoredPolicy | None:
    """Return one version of a policy; None when there was none."""
    if not 1 <= version <= state.version:
        return None
    found = database.execute(f"{_VERSIONS} AND version = ?", (state.tenant, state.policy_id, version)).fetchone()
    if found is None:
        raise damaged(f"version {version} of policy {state.policy_id!a}")
    return _stored(state, *found)


def read_newest(database: sqlite3.Connection, state: PolicyState) -> StoredPolicy:
    """Return the newest version of a policy."""
    found = read_version(database, state, state.version)
    if found is None:
        raise damaged(f"version {state.version} of policy {state.policy_id!a}")
    return found


def read_versions(database: sqlite3.Connection, state: PolicyState) -> list[StoredPolicy]:
    """Return every version of a policy, the oldest first."""
    found = database.execute(f"{_VERSIONS} ORDER BY version", (state.tenant, state.policy_id)).fetchall()
    return [_stored(state, *row) for row in found]


def write_version(database: sqlite3.Connection, stored: StoredPolicy) -> None:
    """Add a version, and put it in force."""
    policy = stored.policy
    encoded = _encode(stored)
    vouching = digest_of(policy.tenant, policy.policy_id, str(policy.version), encoded)
    row = (policy.tenant, policy.policy_id, policy.version, encoded, vouching)
    database.execute("INSERT INTO policy_versions VALUES (?, ?, ?, ?, ?)", row)
    write_state(database, PolicyState(policy.tenant, policy.policy_id, policy.version, policy.body.name, is_removed=False))


def write_state(database: sqlite3.Connection, state: PolicyState) -> None:
    """Say how a policy stands from now on."""
    database.execute(
        """INSERT INTO policies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, policy_id) DO UPDATE SET
        version = excluded.version, name = excluded.name, is_removed = excluded.is_removed, digest = excluded.digest""",
        (state.tenant, state.policy_id, state.version, state.name, int(state.is_removed), state.digest),
    )


def is_same(body: PolicyBody, other: PolicyBody) -> bool:
    """Tell whether two bodies say the same."""
    return _encode(body) == _encode(other)


def _one(database: sqlite3.Connection, statement: str, parameters: tuple[object, ...]) -> PolicyState | None:
    found = database.execute(statement, parameters).fetchone()
    return None if found is None else _checked(str(parameters[0]), found)


def _checked(tenant: str, row: tuple[object, ...]) -> PolicyState:
    policy_id, version, name, is_removed, digest = row
    state = PolicyState(tenant, PolicyId(str(policy_id)), int(str(version)), str(name), is_removed=bool(is_removed))
    if state.digest != digest:
        raise damaged(f"how policy {policy_id!a} stands")
    return state


def _stored(state: PolicyState, version: int, encoded: object, digest: object) -> StoredPolicy:
    if not isinstance(encoded, bytes) or digest_of(state.tenant, state.policy_id, str(version), encoded) != digest:
        raise damaged(f"version {version} of policy {state.policy_id!a}")
    return msgspec.structs.replace(_decode(encoded), is_removed=state.is_removed)
