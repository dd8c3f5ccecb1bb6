"""What retrievers return, read as candidates: scores that mean something, origins, moments, and metadata of one line."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from evidentia.integrations.proposals import BlockingSource, Proposal, candidates_of


def proposal(*, score: object = None, **metadata: object) -> Proposal:
    return Proposal(content="text", own_id="one", score=score, metadata=metadata)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([0.9, 0.5, 0.5, 0], [0.9, 0.5, 0.5, 0.0]),
        ([1, 1], [1.0, 1.0]),
        ([0.1, 0.9], [None, None]),
        ([12.4, 0.5], [None, None]),
        ([0.5, -0.1], [None, None]),
        ([0.5, float("nan")], [None, None]),
        ([0.5, None], [None, None]),
        ([0.5, "0.4"], [None, None]),
        ([], []),
    ],
    ids=["falling", "equal", "distances", "too large", "negative", "not a number", "missing", "texts", "none"],
)
def test_scores_are_kept_where_they_say_what_the_order_says(given: list[object], kept: list[float | None]) -> None:
    assert kept == [each.score for each in candidates_of([proposal(score=score) for score in given])]


@pytest.mark.parametrize(
    ("metadata", "origin"),
    [
        ({"source": "a.md", "url": "https://example.com"}, "a.md"),
        ({"source": "", "url": "https://example.com"}, "https://example.com"),
        ({"source": {"name": "a.md"}, "file_path": "b.md"}, "b.md"),
        ({"author": "a.md"}, ""),
    ],
)
def test_the_origin_is_the_first_place_that_is_named(metadata: dict[str, object], origin: str) -> None:
    assert [origin] == [each.origin for each in candidates_of([proposal(**metadata)])]


@pytest.mark.parametrize(
    ("metadata", "moment"),
    [
        ({"updated_at": "2024-05-01T08:00:00Z"}, datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ({"last_modified": datetime(2024, 5, 1, 8, tzinfo=UTC)}, datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ({"updated_at": "soon", "last_modified": "2024-05-01T08:00:00+00:00"}, datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ({"updated_at": "2024-05-01T08:00:00"}, None),
        ({"updated_at": "2024-05-01"}, None),
        ({"updated_at": date(2024, 5, 1)}, None),
        ({"updated_at": 1714550400}, None),
        ({}, None),
    ],
)
def test_a_moment_has_a_time_zone(metadata: dict[str, object], moment: datetime | None) -> None:
    assert [moment] == [each.updated_at for each in candidates_of([proposal(**metadata)])]


def test_metadata_of_one_line_is_kept() -> None:
    named = {"page": 3, "share": 0.5, "is_draft": True, "tags": ["a"], "tree": {"a": "b"}, "none": None, "author": "Eve"}
    (candidate,) = candidates_of([Proposal(content="text", own_id="", score=None, metadata={**named, 7: "seven"})])

    assert {"author": "Eve", "is_draft": "true", "page": "3", "share": "0.5"} == dict(candidate.metadata)


def test_a_source_returns_all_that_was_found() -> None:
    source = BlockingSource(lambda query, limit: [proposal(query=query, limit=limit)] * 3)

    assert [{"limit": "1", "query": "crane"}] * 3 == [dict(each.metadata) for each in source.retrieve("crane", limit=1)]
