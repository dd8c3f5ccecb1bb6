"""The rows of policies: which version of each is in force, and every version there was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.governance_db import damaged, digest_of
from evidentia.contracts.policies import PolicyBody, PolicyId, StoredPolicy

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_STANDING: Final = "SELECT policy_id, version, name, is_removed, digest FROM policies WHERE tenant = ?"
_VERSIONS: Final = "SELECT version, stored, digest FROM policy_versions WHERE tenant = ? AND policy_id = ?"
_ALL: Final = """SELECT p.policy_id, p.version, p.name, p.is_removed, p.digest, v.stored, v.digest
    FROM policies p LEFT JOIN policy_versions v USING (tenant, policy_id, version) WHERE p.tenant = ?"""

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(StoredPolicy).decode


class Standing(NamedTuple):
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


def standing_by_id(database: sqlite3.Connection, policy_id: str, *, tenant: str) -> Standing | None:
    """Return how the policy with this id stands, removed or not."""
    return _one(database, f"{_STANDING} AND policy_id = ?", (tenant, policy_id))


def standing_by_name(database: sqlite3.Connection, name: str, *, tenant: str, is_removed: bool = False) -> Standing | None:
    """Return how the policy with this name stands: the live one, or the first by id of those that were removed."""
    return _one(database, f"{_STANDING} AND name = ? AND is_removed = ? ORDER BY policy_id LIMIT 1", (tenant, name, int(is_removed)))


def read_live(database: sqlite3.Connection, *, tenant: str) -> Iterator[StoredPolicy]:
    """Yield the policies that were not removed."""
    # All are read: one that a rotten byte made look removed is damage, not a rule less.
    for *row, stored, digest in database.execute(_ALL, (tenant,)).fetchall():
        standing = _checked(tenant, tuple(row))
        if not standing.is_removed:
            yield _stored(standing, standing.version, stored, digest)


def read_version(database: sqlite3.Connection, standing: Standing, version: int) -> StoredPolicy | None:
    """Return one version of a policy; None when there was none."""
    if not 1 <= version <= standing.version:
        return None
    found = database.execute(f"{_VERSIONS} AND version = ?", (standing.tenant, standing.policy_id, version)).fetchone()
    if found is None:
        raise damaged(f"version {version} of policy {standing.policy_id!a}")
    return _stored(standing, *found)


def read_newest(database: sqlite3.Connection, standing: Standing) -> StoredPolicy:
    """Return the newest version of a policy."""
    found = read_version(database, standing, standing.version)
    if found is None:
        raise damaged(f"version {standing.version} of policy {standing.policy_id!a}")
    return found


def read_versions(database: sqlite3.Connection, standing: Standing) -> list[StoredPolicy]:
    """Return every version of a policy, the oldest first."""
    found = database.execute(f"{_VERSIONS} ORDER BY version", (standing.tenant, standing.policy_id)).fetchall()
    return [_stored(standing, *row) for row in found]


def write_version(database: sqlite3.Connection, stored: StoredPolicy) -> None:
    """Add a version, and put it in force."""
    policy = stored.policy
    encoded = _encode(stored)
    vouching = digest_of(policy.tenant, policy.policy_id, str(policy.version), encoded)
    row = (policy.tenant, policy.policy_id, policy.version, encoded, vouching)
    database.execute("INSERT INTO policy_versions VALUES (?, ?, ?, ?, ?)", row)
    write_standing(database, Standing(policy.tenant, policy.policy_id, policy.version, policy.body.name, is_removed=False))


def write_standing(database: sqlite3.Connection, standing: Standing) -> None:
    """Say how a policy stands from now on."""
    database.execute(
        """INSERT INTO policies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, policy_id) DO UPDATE SET
        version = excluded.version, name = excluded.name, is_removed = excluded.is_removed, digest = excluded.digest""",
        (standing.tenant, standing.policy_id, standing.version, standing.name, int(standing.is_removed), standing.digest),
    )


def is_same(body: PolicyBody, other: PolicyBody) -> bool:
    """Tell whether two bodies say the same."""
    return _encode(body) == _encode(other)


def _one(database: sqlite3.Connection, statement: str, parameters: tuple[object, ...]) -> Standing | None:
    found = database.execute(statement, parameters).fetchone()
    return None if found is None else _checked(str(parameters[0]), found)


def _checked(tenant: str, row: tuple[object, ...]) -> Standing:
    policy_id, version, name, is_removed, digest = row
    standing = Standing(tenant, PolicyId(str(policy_id)), int(str(version)), str(name), is_removed=bool(is_removed))
    if standing.digest != digest:
        raise damaged(f"how policy {policy_id!a} stands")
    return standing


def _stored(standing: Standing, version: int, encoded: object, digest: object) -> StoredPolicy:
    if not isinstance(encoded, bytes) or digest_of(standing.tenant, standing.policy_id, str(version), encoded) != digest:
        raise damaged(f"version {version} of policy {standing.policy_id!a}")
    return msgspec.structs.replace(_decode(encoded), is_removed=standing.is_removed)
