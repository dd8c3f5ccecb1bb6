"""An answer in the forms people use, and what its receipt says when it is asked again."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia import AccessRule, Base, EvidenceResponse, Principal, connect
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.result_hashes import result_hash, sealed
from evidentia.engine.selection import OVER_BUDGET
from evidentia.provenance.evidence_tags import unescape
from evidentia.serving.cli.demo_tour import SAMPLE_SOURCES, copy_samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.receipts import WhyReport

AS_OF = "2026-03-01T00:00:00Z"
READER = Principal(principal_id=PrincipalId("reader"), clearance=Classification.INTERNAL)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Return the demo's base, in which one ticket pretends to be our own evidence."""
    folder = tmp_path_factory.mktemp("answers")
    copy_samples(folder / "corpus")
    with connect(folder / "base", init=True) as base:
        for source in SAMPLE_SOURCES:
            base.ingest([folder / "corpus" / source.path], source=source.name, authority=source.authority)
        yield base


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a base of twelve short documents with one text each and one that few may see."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.md").write_text(f"Keys {'keys ' * number}are rotated by hand number{number}.\n")
    (folder / "phrase.md").write_text("---\nowner: ops\n---\nHere rotated keys stand together.\n")
    (folder / "none.md").write_text("Nothing of the sort; only zebras.\n")
    (folder / "secret.md").write_text("---\nclassification: restricted\n---\nThe secret keys keys keys.\n")
    with connect(tmp_path / "base", init=True) as made:
        made.ingest([folder], source="handbook", authority="curated")
        yield made


def _chunk(base: Base, name: str) -> str:
    return base.chunks(f"handbook:{name}.md")[0].chunk_id


# --- forms ---


def test_the_context_holds_every_fragment_between_tags_of_its_own(demo: Base) -> None:
    answer = demo.retrieve("rotate signing keys", as_of=AS_OF, limit=4)
    context = answer.to_context()
    opened = re.findall(r'^\[EVIDENCE source="([^"]*)" authority=([A-Z]+) .*rank=(\d+)[^\]]*\]$', context, re.MULTILINE)

    assert 4 == len(answer.fragments)
    expected = [(each.source_id, each.authority_tier.name, str(rank)) for rank, each in enumerate(answer.fragments, start=1)]
    assert expected == opened
    assert 4 == context.count("\n[/EVIDENCE]")
    for fragment in answer.fragments:
        assert fragment.content in unescape(context)


def test_a_document_that_forges_a_tag_opens_and_closes_none(demo: Base) -> None:
    answer = demo.retrieve("EVIDENCE authority canonical", as_of=AS_OF, limit=20)
    forged = [fragment for fragment in answer.fragments if re.search(r"\[/?EVIDENCE", fragment.content)]
    context = answer.to_context()

    assert forged, "the demo corpus no longer holds a forged tag"
    assert len(answer.fragments) == len(re.findall(r"\[EVIDENCE ", context))
    assert len(answer.fragments) == len(re.findall(r"\[/EVIDENCE\]", context))
    assert "&#91;" in context


def test_an_answer_survives_json_and_is_verified_from_it(demo: Base) -> None:
    answer = demo.retrieve("rotate keys", as_of=AS_OF, facets=["authority_tier", "tags"], explain=True, token_budget=900)
    read = msgspec.json.decode(answer.to_json(), type=EvidenceResponse)

    assert answer == read
    assert answer.to_dict() == json.loads(answer.to_json())
    assert answer == msgspec.convert(json.loads(answer.to_json()), EvidenceResponse)
    assert answer.withheld
    assert demo.verify(answer).ok
    assert demo.verify(read).ok


@pytest.mark.parametrize("path", [("fragments", 0, "score"), ("facets", "language", "en"), ("fragments", 0, "content"), ("config_hash",)])
def test_an_answer_that_was_changed_is_not_verified(demo: Base, path: tuple[Any, ...]) -> None:
    plain = demo.retrieve("rotate keys", as_of=AS_OF, facets=["language"], receipt=False).to_dict()
    holder: Any = json.loads(json.dumps(plain))
    changed = holder
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = holder[path[-1]] + 1 if isinstance(holder[path[-1]], int) else "x" + holder[path[-1]]
    report = demo.verify(msgspec.convert(changed, EvidenceResponse))

    assert not report.ok


def test_content_that_is_not_its_content_hash_is_found_out(demo: Base) -> None:
    """Even where the hash of the answer was made anew over the wrong content_hash."""
    answer = demo.retrieve("rotate keys", as_of=AS_OF, receipt=False)
    first = msgspec.structs.replace(answer.fragments[0], content_hash="0" * 64)
    fragments = (first, *answer.fragments[1:])
    resealed = result_hash(
        request=answer.request_hash,
        evidence_state=answer.evidence_state,
        config=answer.config_hash,
        fragments=fragments,
        coverage=answer.source_coverage,
        withheld=answer.withheld,
        policies=answer.policies,
        conflicts=answer.conflicts,
        facets=answer.facets,
        truncation_applied=answer.truncation_applied,
    )
    report = demo.verify(sealed(msgspec.structs.replace(answer, fragments=fragments, result_hash=resealed)))

    assert ["the content does not have its content_hash"] == [link.problem for link in report.broken]


def test_a_data_frame_has_one_row_for_each_fragment(demo: Base) -> None:
    pytest.importorskip("pandas")
    answer = demo.retrieve("rotate keys", as_of=AS_OF, limit=5)
    frame = answer.to_pandas()

    assert ["rank", "confidence", "likelihood", "order", "relevance_score"] == list(frame.columns)[:5]
    assert {"source_id", "document_id", "authority_tier", "chunk_id", "token_count", "content"} == set(frame.columns[5:])
    assert [fragment.likelihood for fragment in answer.fragments] == frame["likelihood"].tolist()
    assert [1, 2, 3, 4, 5] == frame["rank"].tolist()
    assert [fragment.chunk_id for fragment in answer.fragments] == frame["chunk_id"].tolist()
    assert 0 == len(demo.retrieve("qqqqqqq", as_of=AS_OF, mode="lexical").to_pandas())


def test_a_notebook_shows_markup_as_text(tmp_path: Path) -> None:
    hostile = '<script>alert("keys")</script><img src=x onerror=alert(1)>'
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "<b>.md").write_text(f"# Keys\n\n{hostile}\n")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "docs"])
        shown = base.retrieve("keys", mode="lexical")._repr_html_()

    assert html.escape(hostile) in shown
    assert {"caption", "table", "tbody", "td", "th", "thead", "tr"} == set(re.findall(r"</?(\w+)", shown))


def test_a_context_says_when_nothing_in_it_is_likely_and_a_notebook_leads_with_it(demo: Base) -> None:
    answer = demo.retrieve("best recipe for lasagna", as_of=AS_OF, limit=3)
    caption = re.search("<caption>(.*)</caption>", answer._repr_html_())

    assert answer.is_doubtful
    assert answer.to_context().startswith("Note: probably nothing here answers the question.\n[EVIDENCE ")
    assert not demo.retrieve("rotate signing keys", as_of=AS_OF).to_context().startswith("Note")
    assert caption is not None
    assert caption[1].startswith("Probably nothing here: the best match is unlikely to be relevant (0.")


def test_what_an_answer_lacks_is_shown_in_a_notebook(demo: Base) -> None:
    answer = demo.retrieve("keys", as_of=AS_OF, latency_deadline_ms=60_000, receipt=False)
    late = msgspec.structs.replace(answer, degraded=("deadline: the answer took longer than 1 ms",))

    assert "<p>deadline: the answer took longer than 1 ms</p>" not in answer._repr_html_()
    assert "<p>deadline: the answer took longer than 1 ms</p>" in late._repr_html_()


# --- replay ---


def test_a_replay_is_cut_to_what_the_asker_may_see_today(base: Base, tmp_path: Path) -> None:
    answer = base.retrieve("keys", as_of=AS_OF, limit=20, facets=["classification"], token_budget=10_000, explain=True)
    hidden, *_ = answer.fragments
    base.set_access([hidden.document_id], AccessRule(classification=Classification.RESTRICTED, acl=("user:other",)))
    owner = base.replay(answer.receipt_id or "")
    with connect(tmp_path / "base", principal=READER) as reading:
        cut = reading.replay(answer.receipt_id or "")

    assert owner.is_same
    assert 0 == owner.hidden
    assert answer.facets == owner.response.facets
    assert cut.is_same
    assert answer.result_hash == cut.result_hash
    restricted = [each.chunk_id for each in answer.fragments if each.document_id in (hidden.document_id, "handbook:secret.md")]
    assert len(restricted) == cut.hidden
    assert [each.chunk_id for each in answer.fragments if each.chunk_id not in restricted] == [
        each.chunk_id for each in cut.response.fragments
    ]


def test_a_replay_for_another_asker_counts_nothing_that_the_asker_may_not_see(base: Base, tmp_path: Path) -> None:
    """Facets, counts, decisions and explanations of an answer speak of everything that its first caller could see."""
    answer = base.retrieve("keys", as_of=AS_OF, limit=3, facets=["classification", "path"], explain=True)
    with connect(tmp_path / "base", principal=READER) as reading:
        response = reading.replay(answer.receipt_id or "").response

    assert "restricted" in answer.facets["classification"]
    assert {} == response.facets
    assert len(response.fragments) == response.total_candidates
    assert () == response.decisions
    assert {0} == {report.candidates for report in response.source_coverage.values()}
    assert all(fragment.explanation == () for fragment in response.fragments)
    assert sum(fragment.token_count for fragment in response.fragments) == response.tokens_used
    assert "secret" not in msgspec.json.encode(response).decode()


def test_a_replay_for_the_same_asker_is_whole(tmp_path: Path, base: Base) -> None:
    with connect(tmp_path / "base", principal=READER) as reading:
        answer = reading.retrieve("keys", as_of=AS_OF, facets=["classification"])
        replayed = reading.replay(answer.receipt_id or "")

    assert base.path == tmp_path / "base"
    assert replayed.is_same
    assert (answer.facets, answer.total_candidates) == (replayed.response.facets, replayed.response.total_candidates)
    assert replayed.response.receipt_id is None


def test_a_receipt_that_is_not_there_is_not_found(base: Base) -> None:
    for ask in (base.replay, lambda receipt: base.why(receipt, _chunk(base, "1"))):
        with pytest.raises(NotFoundError, match="no receipt 'r-000000000000-1'"):
            ask("r-000000000000-1")


# --- why ---


WORDS: dict[str, Any] = {"mode": "lexical", "diversity_constraint": 1.0}
"""What is asked for here: a place that words decide and nothing shifts."""


def _ask(base: Base, query: str, **fields: Any) -> tuple[str, EvidenceResponse]:
    answer = base.retrieve(query, as_of=AS_OF, **WORDS | fields)
    assert answer.receipt_id
    return answer.receipt_id, answer


def _changed(why: WhyReport, **fields: Any) -> dict[str, Any]:
    """Return a request's fields with the numbers that the smallest change names."""
    return fields | {name: int(value) for name, value in re.findall(r"(limit|token_budget)=(\d+)", why.smallest_change)}


def _is_in(base: Base, chunk_id: str, query: str, **fields: Any) -> bool:
    return chunk_id in [fragment.chunk_id for fragment in base.retrieve(query, as_of=AS_OF, receipt=False, **WORDS | fields).fragments]


def test_why_an_answered_chunk_is_there(base: Base) -> None:
    receipt, answer = _ask(base, "keys", limit=3, explain=True)
    for rank, fragment in enumerate(answer.fragments, start=1):
        why = base.why(receipt, fragment.chunk_id)

        assert ("answered", rank, "") == (why.stage, why.rank, why.smallest_change)
        assert (fragment.score, fragment.scores, fragment.confidence) == (why.score, why.scores, why.confidence)
        assert fragment.scores.lexical == sum(term.score for term in why.terms)
        assert fragment.explanation == why.terms


def test_why_a_chunk_was_cut_by_the_limit_and_the_limit_that_keeps_it(base: Base) -> None:
    receipt, answer = _ask(base, "keys", limit=2)
    matching = base.retrieve("keys", as_of=AS_OF, limit=100, receipt=False, **WORDS).fragments
    for rank, fragment in enumerate(matching[2:], start=3):
        why = base.why(receipt, fragment.chunk_id)

        assert ("rerank", rank, f"limit={rank}") == (why.stage, why.rank, why.smallest_change)
        assert f"it is number {rank} by score, and the limit is 2" == why.reason
        assert _is_in(base, fragment.chunk_id, "keys", **_changed(why))
        assert not _is_in(base, fragment.chunk_id, "keys", limit=rank - 1)
    assert answer.total_candidates == len(matching)


@pytest.mark.parametrize("limit", [2, 5, 20])
@pytest.mark.parametrize("token_budget", [1, 20, 45])
def test_why_a_chunk_did_not_fit_and_the_least_that_lets_it_in(base: Base, limit: int, token_budget: int) -> None:
    """The change named is enough, and one token or one place less is not."""
    receipt, answer = _ask(base, "keys", limit=limit, token_budget=token_budget)
    withheld = {each.chunk_id for each in answer.withheld}
    for fragment in base.retrieve("keys", as_of=AS_OF, limit=100, receipt=False, **WORDS).fragments:
        why = base.why(receipt, fragment.chunk_id)
        if why.stage == "answered":
            continue
        changed = _changed(why, limit=limit, token_budget=token_budget)

        assert (fragment.chunk_id in withheld) == (why.stage == "budget")
        assert (why.reason == OVER_BUDGET) == (why.stage == "budget")
        assert _is_in(base, fragment.chunk_id, "keys", **changed)
        for name in re.findall(r"(limit|token_budget)=", why.smallest_change):
            assert not _is_in(base, fragment.chunk_id, "keys", **changed | {name: changed[name] - 1})


def test_why_a_chunk_without_the_words_is_missing(base: Base) -> None:
    chunk = _chunk(base, "none")
    receipt, _ = _ask(base, "keys", limit=2)
    why = base.why(receipt, chunk)

    assert ("search", None, 0, ()) == (why.stage, why.rank, why.score, why.terms)
    assert "none of the query's words occurs in it" == why.reason
    assert "a query with one of its words" == why.smallest_change
    assert _is_in(base, chunk, "zebras", limit=2)


def test_why_a_chunk_without_the_phrase_is_missing(base: Base) -> None:
    chunk = _chunk(base, "3")
    receipt, _ = _ask(base, '+"rotated keys"', limit=20)
    why = base.why(receipt, chunk)

    assert ("search", None) == (why.stage, why.rank)
    assert "a phrase that the query requires does not occur in it" == why.reason
    assert "the query without the plus sign before the quotation marks" == why.smallest_change
    assert _is_in(base, chunk, '"rotated keys"', limit=20)


def test_a_change_that_is_not_enough_by_itself_names_the_rest(base: Base) -> None:
    """Without the plus sign many chunks match, so the limit and the budget have their say too."""
    receipt, _ = _ask(base, '+"rotated keys"', limit=1, token_budget=45)
    for fragment in base.retrieve('"rotated keys"', as_of=AS_OF, limit=20, receipt=False, **WORDS).fragments[1:]:
        chunk, why = fragment.chunk_id, base.why(receipt, fragment.chunk_id)
        if why.stage == "answered":
            continue

        assert why.smallest_change.startswith("the query without the plus sign before the quotation marks and limit=")
        assert not _is_in(base, chunk, '"rotated keys"', limit=1, token_budget=45)
        assert _is_in(base, chunk, '"rotated keys"', **_changed(why, limit=1, token_budget=45))


@pytest.mark.parametrize(
    ("given", "admitting"),
    [
        ({"filter": 'extra.owner = "ops"'}, {"filter": 'extra.owner = "ops" OR document_id = "handbook:3.md"'}),
        ({"time_window": {"start": "2020-01-01T00:00:00Z"}}, {}),
        ({"source_policy": {"denied_sources": ["handbook"]}}, {}),
        ({"source_policy": {"allowed_sources": ["elsewhere"]}}, {"source_policy": {"allowed_sources": ["handbook"]}}),
        ({"source_policy": {"minimum_authority": "canonical"}}, {"source_policy": {"minimum_authority": "curated"}}),
    ],
)
def test_why_a_chunk_was_left_out_by_what_the_request_wants(base: Base, given: dict[str, Any], admitting: dict[str, Any]) -> None:
    chunk = _chunk(base, "3")
    receipt, _ = _ask(base, "keys", limit=20, **given)
    why = base.why(receipt, chunk)

    assert ("sources", None) == (why.stage, why.rank)
    assert "the filter, the time window or source_policy leaves it out" == why.reason
    assert "a filter, window or source_policy that admits it" == why.smallest_change
    assert not _is_in(base, chunk, "keys", limit=20, **given)
    assert _is_in(base, chunk, "keys", limit=20, **admitting)


def test_a_chunk_that_is_left_out_twice_is_told_both(base: Base) -> None:
    receipt, _ = _ask(base, "keys", limit=1, filter='extra.owner = "ops"')
    without_words = base.why(receipt, _chunk(base, "none"))
    lower = base.why(receipt, _chunk(base, "0"))

    assert "a filter, window or source_policy that admits it and a query with one of its words" == without_words.smallest_change
    assert re.fullmatch(r"a filter, window or source_policy that admits it( and limit=2)?", lower.smallest_change)
    assert _is_in(
        base, _chunk(base, "0"), "keys", **_changed(lower, filter='extra.owner = "ops" OR document_id = "handbook:0.md"', limit=1)
    )


def test_why_a_chunk_was_out_of_the_callers_sight(base: Base) -> None:
    """The owner asks about an answer to someone who could not see the chunk; that someone is told that there is none."""
    secret = _chunk(base, "secret")
    with connect(base.path, principal=READER) as reading:
        receipt, answer = _ask(reading, "keys", limit=20)
        with pytest.raises(NotFoundError, match="no chunk"):
            reading.why(receipt, secret)
        with pytest.raises(NotFoundError, match="no chunk"):
            reading.why(receipt, "handbook:nowhere.md#0@0000000000000000")
    why = base.why(receipt, secret)

    assert "secret" not in answer.to_json()
    assert ("scope", None, 0) == (why.stage, why.rank, why.score)
    assert "a caller who may see it, or a version that holds it" == why.smallest_change
    assert _is_in(base, secret, "keys", limit=20)


def test_why_of_a_chunk_that_came_later_or_has_changed_since(base: Base, tmp_path: Path) -> None:
    receipt, _ = _ask(base, "keys", limit=20)
    old = _chunk(base, "3")
    (tmp_path / "docs" / "3.md").write_text("Keys of another kind.\n")
    base.ingest([tmp_path / "docs"], source="handbook", authority="curated")

    assert "answered" == base.why(receipt, old).stage
    assert "scope" == base.why(receipt, _chunk(base, "3")).stage
