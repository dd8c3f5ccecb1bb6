"""The intake: which shapes it reads, what it puts right, what it refuses, and that nothing a source does raises."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pytest
from intake_samples import ASK, NOW, WIKI, only, taken, taken_from

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.ids import TenantId, chunk_parts
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType
from evidentia.provenance.custody_exchange import BROKEN_CUSTODY, FAULT_KEY
from evidentia.sources.intake import Intake, intake_identity

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "The crane is 40 m tall."


class _Node:
    """Has what a LlamaIndex node has."""

    node_id = "n-1"
    metadata = {"file_path": "/docs/crane.md", "page": 3}  # noqa: RUF012

    def get_content(self) -> str:
        return TEXT


class _Explosive:
    """Raises whenever it is looked at, except by pytest."""

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name) if name.startswith("__") else RuntimeError(name)


# --- shapes ---


@pytest.mark.parametrize(
    "proposed",
    [
        Candidate(content=TEXT, own_id="n-1"),
        {"content": TEXT, "id": "n-1"},
        {"text": TEXT, "_id": "n-1"},
        {"page_content": TEXT, "chunk_id": "n-1"},
        {"body": TEXT, "own_id": "n-1"},
        SimpleNamespace(page_content=TEXT, metadata={"source": "x"}, id="n-1"),
        SimpleNamespace(node=_Node(), score=0.5),
        _Node(),
        SimpleNamespace(content=TEXT, meta={"url": "https://x"}, id="n-1", score=None),
        (Candidate(content=TEXT, own_id="n-1"), 0.5),
        (SimpleNamespace(page_content=TEXT, metadata={}, id="n-1"), 0.5),
        {"content": TEXT.encode(), "id": "n-1"},
    ],
)
def test_every_shape_becomes_the_same_candidate(proposed: object) -> None:
    candidate = only(proposed)

    assert (TEXT, "wiki:n-1") == (candidate.content, candidate.document_id)
    assert sha256_hex(TEXT.encode()) == candidate.content_hash == candidate.received_hash
    assert (1, ASK.query.text, NOW, len(TEXT)) == (candidate.rank, candidate.query, candidate.retrieved_at, candidate.received_length)


def test_a_plain_text_is_named_by_its_hash() -> None:
    candidate = only(TEXT)

    assert f"wiki:{sha256_hex(TEXT.encode())}" == candidate.document_id


@pytest.mark.parametrize(
    "proposed", [None, 7, 1.5, True, [], [TEXT], {}, {"title": "no content"}, object(), (TEXT,), (TEXT, 0.5, 1), {TEXT}]
)
def test_anything_else_is_no_candidate(proposed: object) -> None:
    found = taken(proposed)

    assert ((), {"not_a_candidate": 1}, False) == found


def test_what_frameworks_keep_in_metadata_is_read_from_there() -> None:
    metadata = {"source": "https://wiki/crane", "title": "Crane", "updated_at": "2026-01-02T00:00:00Z", "page": 3}

    candidate = only(SimpleNamespace(page_content=TEXT, metadata=metadata, id=None))

    assert ("https://wiki/crane", "Crane", datetime(2026, 1, 2, tzinfo=UTC)) == (candidate.origin, candidate.title, candidate.updated_at)
    assert {"page": "3", "source": "https://wiki/crane"} == candidate.metadata


# --- what raises or lies ---


class _ExplosiveMapping(dict[str, str]):
    def items(self) -> Iterator[tuple[str, str]]:  # type: ignore[override]  # it raises instead
        raise OSError


@pytest.mark.parametrize("proposed", [_Explosive(), {"content": TEXT, "metadata": _ExplosiveMapping()}])
def test_an_object_that_raises_is_unreadable(proposed: object) -> None:
    assert {"unreadable": 1} == taken(proposed, TEXT).faults
    assert 1 == len(taken(proposed, TEXT).candidates)


@pytest.mark.parametrize("content", [7, None, ["a"], object(), b"\xff\xfe", SimpleNamespace(a=1)])
def test_content_that_is_no_text_is_refused(content: object) -> None:
    found = taken(SimpleNamespace(page_content=content, metadata={}, id="x"))

    assert ((), {"not_text": 1}) == (found.candidates, found.faults)


@pytest.mark.parametrize("content", ["", "  \n\t ", "\u200b\u202e\x00", b""])
def test_content_of_which_nothing_is_left_is_refused(content: str | bytes) -> None:
    assert {"empty": 1} == taken({"content": content}).faults


def test_a_mark_of_broken_custody_is_counted_and_not_taken() -> None:
    found = taken(Candidate(content="", metadata={FAULT_KEY: BROKEN_CUSTODY}), Candidate(content=TEXT))

    assert (1, {"broken_custody": 1}) == (len(found.candidates), found.faults)


def test_authority_is_the_registry_s_whatever_the_source_claims() -> None:
    candidate = only({"content": TEXT, "authority_tier": "canonical", "metadata": {"authority_tier": "canonical", "tenant": "other"}})

    assert AuthorityTier.DERIVED is candidate.authority_tier
    assert {} == candidate.metadata
    assert {"reserved_metadata": 1} == taken({"content": TEXT, "metadata": {"authority_tier": "canonical", "evidentia.x": "y"}}).faults


# --- identity ---


@pytest.mark.parametrize("own_id", ["a#b", "a#1@0123456789abcdef", "x@y", "#", "a:b", "p/q.md#12@ffffffffffffffff"])
def test_signs_of_our_own_ids_in_theirs_do_no_harm(own_id: str) -> None:
    candidate = only({"content": TEXT, "id": own_id})

    parts = chunk_parts(candidate.chunk_id)

    assert parts is not None
    assert (f"wiki:{own_id}", 0, candidate.content_hash[:16]) == parts


@pytest.mark.parametrize(
    ("own_id", "expected"), [(7, "7"), (UUID(int=5), str(UUID(int=5))), ("  a \n b\x00 ", "a b"), (np.int64(9), "9"), ("e\u0301", "\xe9")]
)
def test_ids_become_one_clean_line(own_id: object, expected: str) -> None:
    assert f"wiki:{expected}" == only({"content": TEXT, "id": own_id}).document_id


@pytest.mark.parametrize(
    ("own_id", "faults"), [(True, {"bad_id": 1}), (10**400, {"bad_id": 1}), (b"x", {"bad_id": 1}), ("\u200b ", {}), ("", {})]
)
def test_an_id_that_names_nothing_is_replaced_by_the_hash(own_id: object, faults: dict[str, int]) -> None:
    found = taken({"content": TEXT, "id": own_id, "origin": "here"})

    assert faults == found.faults
    assert f"wiki:{sha256_hex(TEXT.encode())}" == found.candidates[0].document_id


def test_long_ids_stay_apart() -> None:
    first, second = taken({"content": TEXT, "id": "x" * 1_000 + "1"}, {"content": TEXT, "id": "x" * 1_000 + "2"}).candidates

    assert first.document_id != second.document_id
    assert len(first.document_id) <= 205


def test_of_two_with_one_id_the_first_stays() -> None:
    found = taken({"content": "first", "id": "a"}, {"content": "second", "id": "a"}, {"content": "third", "id": "b"})

    assert ["first", "third"] == [each.content for each in found.candidates]
    assert [1, 2] == [each.rank for each in found.candidates]
    assert 1 == found.faults["duplicate_id"]


def test_of_two_with_one_id_and_scores_the_better_stays_whoever_came_first() -> None:
    pair = [{"content": "low", "id": "a", "score": 0.2}, {"content": "high", "id": "a", "score": 0.3}]

    assert "high" == only(*pair).content == only(*reversed(pair)).content


# --- order ---


def test_with_scores_the_best_comes_first() -> None:
    found = taken(("low", 0.1), ("high", 1), ("middle", np.float32(0.5)), ("almost", Fraction(9, 10)))

    assert ["high", "almost", "middle", "low"] == [each.content for each in found.candidates]


@pytest.mark.parametrize("score", [True, math.nan, math.inf, -0.1, 1.01, "0.5", 10**400, 2, [1], np.bool_(True)])
def test_one_bad_score_and_the_order_of_the_reply_holds(score: object) -> None:
    found = taken({"content": "low", "score": 0.1}, {"content": "odd", "score": score}, {"content": "high", "score": 0.9})

    assert ["low", "odd", "high"] == [each.content for each in found.candidates]
    assert {"bad_score": 1} == found.faults


def test_one_missing_score_is_no_fault() -> None:
    found = taken(("low", 0.1), "none", ("high", 0.9))

    assert (["low", "none", "high"], {}) == ([each.content for each in found.candidates], found.faults)


def test_scores_that_differ_by_less_than_can_be_held_are_equal() -> None:
    nearly = 0.5 + 2.0**-40

    assert taken(("a", 0.5), ("b", nearly)).candidates == taken(("b", 0.5), ("a", nearly)).candidates


# --- limits ---


def test_no_more_candidates_are_read_than_are_taken() -> None:
    read: list[int] = []

    def endless() -> Iterator[str]:
        while True:
            read.append(len(read))
            yield f"text {len(read)}"

    found = taken_from(endless(), settings=SourceSettings(most_candidates=5))

    assert (5, {"too_many": 1}, True) == (len(found.candidates), found.faults, found.is_cut)
    assert 6 == len(read)


def test_refused_proposals_count_too() -> None:
    assert ((), {"not_a_candidate": 3, "too_many": 1}, True) == taken_from([None] * 10, settings=SourceSettings(most_candidates=3))


def test_an_exact_number_of_candidates_is_not_cut() -> None:
    assert not taken("a", "b", settings=SourceSettings(most_candidates=2)).is_cut


def test_a_long_content_is_cut_at_a_sentence_and_says_so() -> None:
    text = "One two three four. Five six seven eight. Nine ten eleven twelve."

    candidate = only(text, settings=SourceSettings(most_chars=50))

    assert "One two three four. Five six seven eight." == candidate.content
    assert ("cut_by_intake", "no_origin") == candidate.flags
    assert (sha256_hex(text.encode()), len(text)) == (candidate.received_hash, candidate.received_length)
    assert {"too_long": 1} == taken(text, settings=SourceSettings(most_chars=50)).faults


def test_a_content_that_is_mostly_hidden_is_cut_and_says_so() -> None:
    candidate = only("seen" + "\u200b" * 400 + "more", settings=SourceSettings(most_chars=100))

    assert ("seen", True) == (candidate.content, "cut_by_intake" in candidate.flags)


def test_a_reply_is_not_read_beyond_its_limit() -> None:
    found = taken("x" * 60, "y" * 60, "z" * 60, settings=SourceSettings(most_reply_chars=100))

    assert ["x" * 60, "y" * 40] == [each.content for each in found.candidates]
    assert ({"reply_too_large": 1, "too_long": 1}, True) == (found.faults, found.is_cut)


def test_a_huge_content_costs_no_more_than_what_is_read_of_it() -> None:
    class Huge(str):
        __slots__ = ()

        def __len__(self) -> int:
            raise AssertionError("nobody has to measure this")

        def encode(self, *_: object) -> bytes:
            raise AssertionError("nobody has to encode this")

    candidate = only(Huge("word " * 4_000_000), settings=SourceSettings(most_chars=100, most_reply_chars=1_000))

    assert (100, 1_000) == (len(candidate.content), candidate.received_length)


def test_bytes_are_cut_between_characters() -> None:
    found = taken("\u20ac" * 2_000, settings=SourceSettings(most_reply_chars=1_000))
    as_bytes = taken(("\u20ac" * 2_000).encode(), settings=SourceSettings(most_reply_chars=1_000))

    assert found == as_bytes


def test_what_has_come_can_be_asked_for_at_any_moment() -> None:
    intake = Intake(WIKI, ASK, settings=SourceSettings(), now=lambda: NOW)

    counts = [(intake.take(text), len(intake.finished().candidates)) for text in ("a", "b", "c")]

    assert [(True, 1), (True, 2), (True, 3)] == counts


def test_after_a_limit_nothing_more_is_taken() -> None:
    intake = Intake(WIKI, ASK, settings=SourceSettings(most_candidates=1), now=lambda: NOW)

    assert [True, False, False] == [intake.take(text) for text in ("a", "b", "c")]
    assert {"too_many": 1} == intake.finished().faults


# --- fields ---


@pytest.mark.parametrize(
    "moment", [datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))), "2026-01-01T12:00:00Z", " 2026-01-01T14:00:00+02:00"]
)
def test_dates_with_a_zone_are_kept_in_utc(moment: object) -> None:
    assert datetime(2026, 1, 1, 12, tzinfo=UTC) == only({"content": TEXT, "updated_at": moment}).updated_at


@pytest.mark.parametrize(
    ("moment", "fault"),
    [
        (datetime(2026, 1, 1), "bad_date"),  # noqa: DTZ001  # without a zone on purpose
        ("2026-01-01", "bad_date"),
        ("yesterday", "bad_date"),
        (1_700_000_000, "bad_date"),
        ("0001-01-01T00:00:00+14:00", "bad_date"),
        ("2" * 1_000, "bad_date"),
        (NOW + timedelta(microseconds=1), "future_date"),
        ("2999-01-01T00:00:00Z", "future_date"),
    ],
)
def test_a_date_that_cannot_be_true_is_left_out(moment: object, fault: str) -> None:
    found = taken({"content": TEXT, "updated_at": moment})

    assert {fault: 1} == found.faults
    assert found.candidates[0].updated_at is None


def test_a_date_of_the_very_moment_is_no_lie() -> None:
    assert NOW == only({"content": TEXT, "updated_at": NOW}).updated_at


@pytest.mark.parametrize(("confidence", "expected"), [(0.25, 250_000), (1, 1_000_000), (0, 0)])
def test_confidence_is_kept_in_millionths(confidence: float, expected: int) -> None:
    assert expected == only({"content": TEXT, "confidence": confidence}).confidence_millionths


def test_a_confidence_that_is_none_is_left_out() -> None:
    found = taken({"content": TEXT, "confidence": 7})

    assert (None, {"bad_confidence": 1}) == (found.candidates[0].confidence_millionths, found.faults)


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (None, AccessRule(tenant=TenantId("acme"), classification=Classification.INTERNAL)),
        ({}, AccessRule(tenant=TenantId("acme"), classification=Classification.INTERNAL)),
        ({"classification": "public"}, AccessRule(tenant=TenantId("acme"), classification=Classification.INTERNAL)),
        ({"classification": "Restricted"}, AccessRule(tenant=TenantId("acme"), classification=Classification.RESTRICTED)),
        ({"acl": ["user:b", "user:a", "user:b"]}, AccessRule(tenant=TenantId("acme"), acl=("user:a", "user:b"))),
        (AccessRule(tenant=TenantId("other")), AccessRule(tenant=TenantId("other"))),
    ],
)
def test_access_is_that_of_the_source_or_stricter(access: object, expected: AccessRule) -> None:
    assert expected == only({"content": TEXT, "access": access}).access


@pytest.mark.parametrize(
    "access",
    [
        "public",
        {"classification": "harmless"},
        {"acl": "user:a"},
        {"acl": ["anyone"]},
        {"acl": [7]},
        {"acl": [f"user:{number}" for number in range(1_000)]},
        {"tenant": ""},
        {"tenant": 7},
        {"only_on": "Mondays"},
        AccessRule(acl=("everybody",)),
    ],
)
def test_an_access_rule_that_is_not_understood_denies(access: object) -> None:
    assert ((), {"bad_access": 1}, False) == taken({"content": TEXT, "access": access})


def test_metadata_is_short_names_with_short_values() -> None:
    metadata = {"page": 3, "ratio": 0.5, "is_draft": True, "when": NOW, "none": None, "bad name!": "x", "list": [1], "long": "y" * 5_000}

    found = taken({"content": TEXT, "metadata": metadata})

    expected = {"is_draft": "true", "long": "y" * 1_000, "page": "3", "ratio": "0.5", "when": NOW.isoformat()}
    assert expected == found.candidates[0].metadata
    assert {"bad_metadata": 1, "metadata_cut": 1} == found.faults


def test_of_much_metadata_the_first_names_are_kept_in_whatever_order_they_came() -> None:
    metadata = {f"k{number:02}": str(number) for number in range(50)}

    kept = only({"content": TEXT, "metadata": metadata}).metadata

    assert sorted(metadata)[:32] == list(kept)
    assert kept == only({"content": TEXT, "metadata": dict(reversed(metadata.items()))}).metadata


def test_a_mapping_with_a_million_keys_is_not_walked() -> None:
    class Endless(dict[str, str]):
        def items(self) -> Iterator[tuple[str, str]]:  # type: ignore[override]  # it lies about what it is
            number = 0
            while True:
                number += 1
                yield f"k{number}", "v"

    found = taken({"content": TEXT, "metadata": Endless()})

    assert ({}, {"bad_metadata": 1}) == (found.candidates[0].metadata, found.faults)


@pytest.mark.parametrize(
    ("given", "expected", "faults"),
    [
        ("text/HTML; charset=utf-8", "text/html", {}),
        ("nonsense", "text/plain", {"bad_media_type": 1}),
        (7, "text/plain", {"bad_media_type": 1}),
        (None, "text/plain", {}),
    ],
)
def test_media_types_are_types_with_a_subtype(given: object, expected: str, faults: dict[str, int]) -> None:
    found = taken({"content": TEXT, "media_type": given})

    assert (expected, faults) == (found.candidates[0].media_type, found.faults)


@pytest.mark.parametrize(
    ("given", "expected", "faults"),
    [
        ("Code", ContentType.CODE, {}),
        ("poem", ContentType.DOCUMENTATION, {"bad_content_type": 1}),
        (7, ContentType.DOCUMENTATION, {"bad_content_type": 1}),
    ],
)
def test_kinds_of_content_are_read_by_their_word(given: object, expected: ContentType, faults: dict[str, int]) -> None:
    found = taken({"content": TEXT, "content_type": given})

    assert (expected, faults) == (found.candidates[0].content_type, found.faults)


def test_titles_and_origins_are_lines() -> None:
    found = taken({"content": TEXT, "title": "A\nlong\u202e " + "t" * 500, "origin": "https://x/\n\x1b[2J" + "o" * 5_000})
    candidate = found.candidates[0]

    assert "A long " + "t" * 293 == candidate.title
    assert candidate.origin.startswith("https://x/ [2Jooo")
    assert 2_000 == len(candidate.origin)
    assert {"bad_origin": 1, "bad_title": 1} == found.faults


def test_a_candidate_without_an_origin_is_taken_and_flagged() -> None:
    assert ("no_origin",) == only(TEXT).flags
    assert () == only({"content": TEXT, "origin": "https://x"}).flags


def test_whatever_is_taken_can_be_written_down() -> None:
    found = taken({"content": "a\ud800b", "id": "i\udfff", "title": "t\ud800", "origin": "o\ud800", "metadata": {"k": "v\ud800"}})

    assert b"a" in encode_struct(found.candidates[0])


def test_another_limit_is_another_intake() -> None:
    usual = SourceSettings()

    assert intake_identity(usual) == intake_identity(SourceSettings(most_per_part=9))
    assert 4 == len(
        {
            intake_identity(each)
            for each in (usual, *(SourceSettings(**{name: 7}) for name in ("most_candidates", "most_chars", "most_reply_chars")))
        }
    )


@pytest.mark.parametrize("entry", ["user:first admin", "user:jwt:alice", "group:on call"])
def test_names_of_tokens_stand_in_access_lists(entry: str) -> None:
    """What another base says of a holder of a token carries that holder's name, spaces and all."""
    (admitted,), faults, _ = taken({"content": TEXT, "access": {"acl": [entry]}})

    assert ((entry,), {}) == (admitted.access.acl, faults)
