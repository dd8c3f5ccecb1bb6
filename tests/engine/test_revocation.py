"""What was closed stays closed: an old version, a removal or another door does not reopen it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import AccessRule, EvidenceRequest, Principal, connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import InvalidFieldError, NotAllowedError, NotFoundError
from evidentia.contracts.evidence import DecomposedQuery
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.result_hashes import response_hash
from evidentia.policy.access import parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base
    from evidentia.contracts.documents import CommitSummary

BOB = Principal(principal_id="bob", clearance="internal", groups=("staff", "oncall"))  # type: ignore[arg-type]  # as people type it
CLOSED = AccessRule(classification=Classification.RESTRICTED)


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Base]:
    """Return a base with an open page about keys and one about ferries."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text("# Keys\n\nThe harbour key is kept in the tower.\n")
    (tmp_path / "docs" / "ferry.md").write_text("# Ferry\n\nThe harbour ferry leaves at noon.\n")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "docs"], source="docs")
        yield base


def _shown_head(base: Base) -> CommitSummary:
    """Return the newest version by the names that Bob is shown; he cannot ask for one by those that only the owner knows."""
    with connect(base.path, principal=BOB) as bobs:
        return bobs.head()


def _found(base: Base, **fields: object) -> list[str]:
    return [fragment.document_id for fragment in base.retrieve("harbour", mode="lexical", principal=BOB, **fields).fragments]


def test_an_old_version_does_not_reopen_what_was_closed_since(owned: Base) -> None:
    then = _shown_head(owned)
    assert ["docs:ferry.md", "docs:keys.md"] == sorted(_found(owned))
    owned.set_access(["docs:keys.md"], CLOSED)

    assert ["docs:ferry.md"] == _found(owned, corpus_version=then.corpus_version)
    assert ["docs:ferry.md"] == _found(owned, evidence_state=then.evidence_state)


def test_an_old_version_stays_closed_after_the_document_was_removed(owned: Base) -> None:
    then = _shown_head(owned)
    receipt = owned.retrieve("harbour", mode="lexical", principal=BOB).receipt_id
    owned.set_access(["docs:keys.md"], CLOSED)
    owned.remove(["docs:keys.md"])
    assert receipt is not None
    with connect(owned.path, principal=BOB) as bobs:
        replayed = bobs.replay(receipt)

    assert ["docs:ferry.md"] == _found(owned, corpus_version=then.corpus_version)
    assert replayed.is_same
    assert ["docs:ferry.md"] == [fragment.document_id for fragment in replayed.response.fragments]


def test_a_document_that_was_closed_then_is_not_opened_by_the_rule_of_today(owned: Base) -> None:
    owned.set_access(["docs:keys.md"], CLOSED)
    then = _shown_head(owned)
    owned.set_access(["docs:keys.md"], AccessRule())

    assert ["docs:ferry.md"] == _found(owned, corpus_version=then.corpus_version)
    assert ["docs:ferry.md", "docs:keys.md"] == sorted(_found(owned))


def test_an_answer_from_an_old_version_can_be_replayed_after_more_was_closed(owned: Base) -> None:
    then = _shown_head(owned)
    owned.set_access(["docs:keys.md"], CLOSED)
    receipt = owned.retrieve("harbour", mode="lexical", principal=BOB, corpus_version=then.corpus_version).receipt_id
    owned.set_access(["docs:ferry.md"], CLOSED)
    assert receipt is not None

    assert owned.replay(receipt).is_same


def test_a_replay_has_the_hash_of_what_it_shows(owned: Base) -> None:
    answer = owned.retrieve("harbour", mode="lexical", principal=BOB)
    owned.set_access(["docs:keys.md"], CLOSED)
    assert answer.receipt_id is not None
    with connect(owned.path, principal=BOB) as bobs:
        shown = bobs.replay(answer.receipt_id).response

    assert ["docs:ferry.md"] == [fragment.document_id for fragment in shown.fragments]
    assert response_hash(shown) == shown.response_hash


def test_a_version_that_nobody_closed_anything_in_is_answered_as_before(owned: Base) -> None:
    as_of = "2026-01-01T00:00:00Z"
    then = _shown_head(owned)
    first = owned.retrieve("harbour", as_of=as_of, principal=BOB)
    owned.remove(["docs:ferry.md"])
    again = owned.retrieve("harbour", as_of=as_of, principal=BOB, corpus_version=then.corpus_version)

    assert first.result_hash == again.result_hash


def test_whoever_is_not_the_owner_sees_only_what_is_his_by_every_door(owned: Base) -> None:
    owned.set_access(["docs:keys.md"], CLOSED)
    secret = owned.chunks("docs:keys.md")[0].chunk_id
    with connect(owned.path, principal=BOB) as bobs:
        assert ["docs:ferry.md"] == [document_id for document_id, _, _ in bobs.documents()]
        assert bobs.verify(bobs.export(bobs.chunks("docs:ferry.md")[0].chunk_id)).ok
        for ask, wanted in ((bobs.chunks, "docs:keys.md"), (bobs.export, secret), (bobs.verify, secret), (bobs.verify, "docs:keys.md")):
            with pytest.raises(NotFoundError) as denied:
                ask(wanted)
            with pytest.raises(NotFoundError) as absent:
                ask(wanted.replace("keys", "nowt"))
            assert str(denied.value) == str(absent.value).replace("nowt", "keys")


def test_whoever_is_not_the_owner_changes_nothing_and_asks_only_for_himself(owned: Base, tmp_path: Path) -> None:
    with connect(owned.path, principal=BOB) as bobs:
        for act in (
            lambda: bobs.ingest([tmp_path / "docs"]),
            lambda: bobs.remove(["docs:keys.md"]),
            lambda: bobs.set_access(["docs:keys.md"], CLOSED),
            bobs.gc,
            bobs.verify,
            lambda: bobs.retrieve("harbour", principal=local_owner()),
            lambda: bobs.retrieve(EvidenceRequest(query=DecomposedQuery(text="harbour"), principal=local_owner())),
        ):  # fmt: skip
            with pytest.raises(NotAllowedError, match="only the owner of the base may"):
                act()
        assert 2 == len(bobs.retrieve("harbour").fragments)


def test_the_order_of_groups_does_not_matter(owned: Base) -> None:
    other = Principal(principal_id="bob", clearance=Classification.INTERNAL, groups=("oncall", "staff", "oncall"))  # type: ignore[arg-type]  # a plain name
    as_of = "2026-01-01T00:00:00Z"

    assert (
        owned.retrieve("harbour", as_of=as_of, principal=BOB).result_hash
        == owned.retrieve("harbour", as_of=as_of, principal=other).result_hash
    )


@pytest.mark.parametrize("clearance", ["galactic", 7])
def test_a_principal_that_makes_no_sense_is_refused_when_connecting(owned: Base, clearance: object) -> None:
    with pytest.raises(InvalidFieldError, match="field 'principal'"):
        connect(owned.path, principal=Principal(principal_id="bob", clearance=clearance))  # type: ignore[arg-type]  # the mistake under test


def test_a_rule_with_a_word_that_does_not_exist_is_named() -> None:
    parse_rule('classification <= "$caller.ceiling" OR tags contains "open"')
    with pytest.raises(InvalidFieldError, match=r"field 'access.rules': 'classification <= \"secret\"' is not a rule"):
        parse_rule('classification <= "secret"')
