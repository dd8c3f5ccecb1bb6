"""Conflicts as users meet them: flagged in the answer, and silent about what has been closed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import AccessRule, Principal, connect
from evidentia.contracts.ids import PrincipalId

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base

ALICE = Principal(principal_id=PrincipalId("alice"), groups=("ops",))
QUESTION = "how often are signing keys rotated?"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a base in which a policy and a note disagree."""
    (tmp_path / "policy.md").write_text("Signing keys are rotated every 30 days.\n")
    (tmp_path / "note.md").write_text("Signing keys are rotated every 90 days.\n")
    with connect(tmp_path / "base", init=True) as opened:
        opened.ingest([tmp_path / "policy.md"], source="policies", authority="canonical", classification="public")
        opened.ingest([tmp_path / "note.md"], source="notes", authority="user", classification="public")
        yield opened


def test_the_higher_authority_holds_and_the_other_stays_flagged(base: Base) -> None:
    answer = base.retrieve(QUESTION)
    (conflict,) = answer.conflicts
    flags = {str(fragment.document_id): fragment.flags for fragment in answer.fragments}

    assert ("30 days", ("90 days",), "authority") == (conflict.value, conflict.losing_values, conflict.decided_by)
    assert "conflict_won" in flags["policies:policy.md"]
    assert "conflict_lost" in flags["notes:note.md"]
    assert base.verify(answer).ok


def test_a_replay_says_nothing_of_a_conflict_with_what_was_closed(base: Base) -> None:
    with connect(base.path, principal=ALICE) as asking:
        receipt = asking.retrieve(QUESTION).receipt_id
        assert receipt
        base.set_access(["notes:note.md"], AccessRule(acl=("group:board",)))
        replayed = asking.replay(receipt)

    assert replayed.is_same
    assert 1 == replayed.hidden
    assert () == replayed.response.conflicts
    assert "90 days" not in str(replayed)
    assert "notes:note.md#" not in str(replayed)
    assert not any(flag.startswith("conflict") for fragment in replayed.response.fragments for flag in fragment.flags)
    assert not any(fragment.trust_metadata and fragment.trust_metadata.conflict_flag for fragment in replayed.response.fragments)
