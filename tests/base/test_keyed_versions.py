"""Versions are keyed for everybody but the owner: nobody can test a guess at a document that they may not see."""

from __future__ import annotations

import hmac
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia import Base, Principal, connect
from evidentia.base.maintenance import restore
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.answer_verification import verify_response

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AS_OF = "2026-01-01T00:00:00Z"
SOMEBODY = Principal(principal_id=PrincipalId("somebody"), clearance=Classification.INTERNAL)


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Base]:
    (tmp_path / "open.md").write_text("Keys rotate every 30 days.")
    (tmp_path / "closed.md").write_text("The launch is on Monday.")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "open.md"], source="open", embed=False)
        base.ingest([tmp_path / "closed.md"], source="closed", classification="confidential", embed=False)
        yield base


@pytest.fixture
def other(owner: Base) -> Iterator[Base]:
    with connect(owner.path, principal=SOMEBODY) as base:
        yield base


def keyed(base: Base, value: str) -> str:
    with closing(sqlite3.connect(base.path / "evidentia.sqlite")) as database:
        (secret,) = database.execute("SELECT secret FROM version_secrets").fetchone()
    return hmac.digest(secret, value.encode(), "sha256").hex()


def owners_hashes(base: Base) -> set[str]:
    """Return every hash of commit records that the owner sees and nobody else may, salted ones apart."""
    found: set[str] = set()
    for version in base.versions():
        found |= {version.corpus_version, version.evidence_state}
    commit = base.retrieve("keys").commit
    names = ("parent", "corpus_version", "evidence_state", "segments_hash", "sources_hash", "roots_hash", "keys_hash")
    return found | {getattr(commit, name) for name in names} | {base.retrieve("keys").commit_hash}


def test_others_see_keyed_versions_and_none_of_the_owners(owner: Base, other: Base) -> None:
    answer, head = other.retrieve("keys", as_of=AS_OF), owner.head()
    shown = [answer, other.head(), other.versions(), other.diff(1, 2), other.export(answer.fragments[0].chunk_id), other.signed_head()]
    seen = [msgspec.json.encode(each).decode() for each in shown]

    assert (keyed(owner, head.corpus_version), keyed(owner, head.evidence_state)) == (answer.corpus_version, answer.evidence_state)
    assert (answer.corpus_version, answer.evidence_state) == (other.head().corpus_version, other.head().evidence_state)
    assert (answer.corpus_version, answer.evidence_state) == (answer.commit.corpus_version, answer.commit.evidence_state)
    assert [] == [(value, text[:60]) for value in owners_hashes(owner) for text in seen if value in text]


def test_a_keyed_answer_verifies_for_others_and_for_the_owner(owner: Base, other: Base) -> None:
    answer = other.retrieve("keys", as_of=AS_OF)

    assert verify_response(answer).ok
    assert other.verify(answer).ok
    assert owner.verify(answer).ok
    assert owner.signed_head().head.commit_hash == answer.commit_hash


def test_a_keyed_receipt_is_replayed_and_explained(owner: Base, other: Base) -> None:
    answer = other.retrieve("keys", as_of=AS_OF)
    receipt, chunk = str(answer.receipt_id), answer.fragments[0].chunk_id
    owner.remove(["open:open.md"])

    for asker in (owner, other):
        replayed = asker.replay(receipt)
        assert replayed.is_same
        assert (answer.result_hash, answer.evidence_state) == (replayed.result_hash, replayed.response.evidence_state)
        assert "answered" == asker.why(receipt, chunk).stage


def test_others_name_versions_by_their_keyed_hashes_and_by_no_others(owner: Base, other: Base) -> None:
    before = owner.head()
    mine = other.head()
    owner.remove(["open:open.md"])

    pinned = other.retrieve("keys", corpus_version=mine.corpus_version, as_of=AS_OF)
    assert mine.evidence_state == pinned.evidence_state
    assert [] == list(other.retrieve("keys", as_of=AS_OF).fragments)
    assert 0 == other.diff(mine.corpus_version, other.head().corpus_version).added.total
    for field in ("corpus_version", "evidence_state"):
        with pytest.raises(NotFoundError):
            other.retrieve("keys", **{field: getattr(before, field)})
        assert owner.retrieve("keys", **{field: getattr(mine, field)}).evidence_state == before.evidence_state
    with pytest.raises(NotFoundError):
        other.diff(before.corpus_version, 3)


def test_the_hash_of_an_answer_confirms_no_guess_at_the_state(owner: Base, other: Base) -> None:
    """Whoever knows everything but the state could otherwise compute it from a guess and compare."""
    mine, theirs = (base.retrieve("keys", as_of=AS_OF, principal=None) for base in (owner, other))
    guessed = msgspec.structs.replace(theirs, evidence_state=mine.evidence_state, commit=mine.commit, corpus_version=mine.corpus_version)

    assert {"result", "response", "commit"} <= {link.check for link in verify_response(guessed).broken}


def test_a_backup_carries_the_secret_along(owner: Base, other: Base, tmp_path: Path) -> None:
    answer = other.retrieve("keys", as_of=AS_OF)
    owner.backup(tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "restored")

    with connect(tmp_path / "restored", principal=SOMEBODY) as restored:
        assert restored.retrieve("keys", as_of=AS_OF).result_hash == answer.result_hash
        assert restored.replay(str(answer.receipt_id)).is_same
        assert restored.verify(answer).ok


def test_two_bases_with_the_same_documents_are_equal_for_their_owners_alone(owner: Base, other: Base, tmp_path: Path) -> None:
    with connect(tmp_path / "twin", init=True) as twin:
        twin.ingest([tmp_path / "open.md"], source="open", embed=False)
        twin.ingest([tmp_path / "closed.md"], source="closed", classification="confidential", embed=False)
        with connect(tmp_path / "twin", principal=SOMEBODY) as others:
            assert owner.head().corpus_version == twin.head().corpus_version
            assert other.head().corpus_version != others.head().corpus_version


def test_a_public_record_is_hashed_like_any_other(owner: Base, other: Base) -> None:
    answer = other.retrieve("keys", as_of=AS_OF)

    assert owner.export(answer.fragments[0].chunk_id).commit == answer.commit
    assert encode_struct(answer.commit) != encode_struct(owner.retrieve("keys", as_of=AS_OF).commit)
