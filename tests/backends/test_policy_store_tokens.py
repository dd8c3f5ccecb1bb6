"""Tokens and secrets on disk: what is kept of them, when they hold, and what a thief of the file gets."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from policy_store_samples import BEGAN, CountedEntropy, MovedClock

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME, EmbeddedSecrets, GovernanceFile
from evidentia.backends.embedded.governance.token_store import RECHECK_NS, EmbeddedTokens
from evidentia.contracts.control import Role, TokenId
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a long text that nobody guesses"


def tokens_in(directory: Path, *, clock: MovedClock, seed: str = "") -> EmbeddedTokens:
    return EmbeddedTokens(GovernanceFile(directory / GOVERNANCE_NAME), clock=clock, entropy=CountedEntropy(seed))


def secrets_in(directory: Path, *, key: str | None = KEY) -> EmbeddedSecrets:
    return EmbeddedSecrets(
        GovernanceFile(directory / GOVERNANCE_NAME), master_key=lambda: key, clock=MovedClock(), entropy=CountedEntropy()
    )


def everything_in(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir())


def test_a_token_opens_and_its_secret_is_not_on_disk(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    issued = tokens.issue(name="bob", roles=[Role.ADMIN, Role.READER], tenant="t", by="ann")

    prefix, token_id, secret = issued.token.split("_", 2)
    assert ("evt", issued.info.token_id) == (prefix, token_id)
    assert 43 == len(secret)
    assert (Role.READER, Role.ADMIN) == issued.info.roles
    assert issued.info == tokens.verify(issued.token)
    assert secret.encode() not in everything_in(tmp_path)


def test_what_is_not_quite_a_token_does_not_open(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    token = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann").token
    other = tokens.issue(name="eve", roles=[Role.READER], tenant="t", by="ann").token
    crossed = "_".join([*other.split("_", 2)[:2], token.split("_", 2)[2]])

    assert [None] * 6 == [tokens.verify(each) for each in (token[:-1], token + "a", crossed, "", "evt__", "\ud800" * 3)]
    assert tokens.recall(crossed) is None


def test_many_who_show_the_same_token_at_once_wait_for_one_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    issued = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann")
    wrong = issued.token[:-1] + ("a" if issued.token[-1] != "a" else "b")
    hashes, scrypt, together = [], hashlib.scrypt, threading.Barrier(6)

    def counted(secret: bytes, **cost: Any) -> bytes:  # Any: what the hash takes
        hashes.append(secret)
        return scrypt(secret, **cost)

    monkeypatch.setattr(hashlib, "scrypt", counted)

    def meet() -> None:
        together.wait(30)

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: tokens.verify(issued.token, before_hash=meet), range(6)))

    assert [issued.info] * 6 == found
    assert 1 == len(hashes)
    assert [None, None] == [tokens.verify(wrong) for _ in range(2)]
    assert 3 == len(hashes)


def test_what_was_verified_is_recalled_for_a_moment(tmp_path: Path) -> None:
    clock = MovedClock()
    tokens = tokens_in(tmp_path, clock=clock)
    issued = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann")

    assert tokens.recall(issued.token) is None
    tokens.verify(issued.token)
    assert issued.info == tokens.recall(issued.token)
    clock.move(seconds=RECHECK_NS / 1e9 + 1)
    assert tokens.recall(issued.token) is None
    assert issued.info == tokens.verify(issued.token)


def test_a_token_expires_at_its_moment_also_when_it_is_remembered(tmp_path: Path) -> None:
    clock = MovedClock()
    tokens = tokens_in(tmp_path, clock=clock)
    token = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann", expires_at=BEGAN + timedelta(seconds=1)).token

    assert tokens.verify(token) is not None
    clock.move(seconds=1)
    assert tokens.recall(token) is None
    assert tokens.verify(token) is None


def test_revoking_counts_at_once_here_and_within_seconds_elsewhere(tmp_path: Path) -> None:
    clock = MovedClock()
    here, there = tokens_in(tmp_path, clock=clock), tokens_in(tmp_path, clock=clock, seed="there")
    issued = here.issue(name="bob", roles=[Role.READER], tenant="t", by="ann")
    for each in (here, there):
        each.verify(issued.token)

    here.revoke(issued.info.token_id, tenant="t", by="ann")

    assert here.recall(issued.token) is None
    assert here.verify(issued.token) is None
    assert there.recall(issued.token) is not None
    clock.move(seconds=3)
    assert there.recall(issued.token) is None
    assert there.verify(issued.token) is None


def test_a_verification_under_way_does_not_bring_a_revoked_token_back(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    issued = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann")
    tokens.verify(issued.token)
    remembered = dict(tokens._kept)
    tokens.revoke(issued.info.token_id, tenant="t", by="ann")

    tokens._kept.update(remembered)

    assert tokens.recall(issued.token) is None


def test_a_token_of_another_tenant_is_not_revoked(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    token_id = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann").info.token_id

    for tenant, name in (("other", token_id), ("t", TokenId("nothing"))):
        with pytest.raises(NotFoundError):
            tokens.revoke(name, tenant=tenant, by="eve")
    assert [None] == [each.revoked_at for each in tokens.tokens(tenant="t")]
    assert [] == list(tokens.tokens(tenant="other"))


def test_a_moment_that_has_passed_is_no_expiry(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="expires_at"):
        tokens_in(tmp_path, clock=MovedClock()).issue(name="bob", roles=[Role.READER], tenant="t", by="ann", expires_at=BEGAN)


def test_a_token_whose_roles_were_changed_on_disk_is_damage(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, clock=MovedClock())
    token = tokens.issue(name="bob", roles=[Role.READER], tenant="t", by="ann").token
    tokens._file.close()
    with sqlite3.connect(tmp_path / GOVERNANCE_NAME) as database:
        database.execute("UPDATE tokens SET info = CAST(replace(CAST(info AS TEXT), 'reader', 'admin') AS BLOB)")
    database.close()

    with pytest.raises(BaseDamagedError):
        tokens.verify(token)


# --- secrets ---


def test_a_secret_is_kept_sealed_and_opens_for_its_tenant(tmp_path: Path) -> None:
    secrets = secrets_in(tmp_path)
    secrets.put("KEY", "hush-hush", tenant="t", by="ann")

    assert "hush-hush" == secrets.secret("KEY", "t") == secrets_in(tmp_path).secret("KEY", "t")
    assert secrets.secret("KEY", "other") is None
    assert secrets.secret("OTHER", "t") is None
    assert b"hush-hush" not in everything_in(tmp_path)
    assert KEY.encode() not in everything_in(tmp_path)


@pytest.mark.parametrize("key", [None, "", "short"])
def test_without_a_key_worth_the_name_no_secret_is_taken(tmp_path: Path, key: str | None) -> None:
    with pytest.raises(InvalidFieldError, match="EVIDENTIA_SECRET_KEY"):
        secrets_in(tmp_path, key=key).put("KEY", "hush", tenant="t", by="ann")
    assert not (tmp_path / GOVERNANCE_NAME).exists()


def test_another_key_opens_nothing_and_says_so(tmp_path: Path) -> None:
    secrets_in(tmp_path).put("KEY", "hush", tenant="t", by="ann")

    with pytest.raises(BaseDamagedError, match="does not open"):
        secrets_in(tmp_path, key="another long text of somebody").secret("KEY", "t")


def test_a_sealed_secret_opens_under_no_other_name(tmp_path: Path) -> None:
    secrets = secrets_in(tmp_path)
    secrets.put("KEY", "hush", tenant="t", by="ann")
    secrets._file.close()
    with sqlite3.connect(tmp_path / GOVERNANCE_NAME) as database:
        database.execute("UPDATE secrets SET tenant = 'eve'")
    database.close()

    with pytest.raises(BaseDamagedError):
        secrets.secret("KEY", "eve")


def test_the_same_secret_twice_is_sealed_differently(tmp_path: Path) -> None:
    secrets = secrets_in(tmp_path)
    for name in ("A", "B"):
        secrets.put(name, "hush", tenant="t", by="ann")
    with secrets._file.reading() as database:
        assert database is not None
        sealed = {bytes(row[0]) for row in database.execute("SELECT sealed FROM secrets")}

    assert 2 == len(sealed)
    assert ["A", "B"] == list(secrets.names(tenant="t"))


def test_a_removed_secret_is_gone_from_the_file(tmp_path: Path) -> None:
    secrets = secrets_in(tmp_path)
    secrets.put("KEY", "hush", tenant="t", by="ann")
    secrets.remove("KEY", tenant="t", by="ann")

    assert secrets.secret("KEY", "t") is None
    with pytest.raises(NotFoundError):
        secrets.remove("KEY", tenant="t", by="ann")
    with pytest.raises(NotFoundError):
        secrets.kept("KEY", tenant="t")
