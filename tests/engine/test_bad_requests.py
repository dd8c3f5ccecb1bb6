"""A request that cannot be answered is refused by the name of its field, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evidentia import Base, EvidenceRequest, connect
from evidentia.contracts.errors import EvidentiaError, FilterSyntaxError, InvalidFieldError, NotFoundError
from evidentia.contracts.evidence import DecomposedQuery, RankingWeights, SubQuery, TimeWindow, Turn
from evidentia.contracts.predicates import And, Compare, Exists, In, Not
from evidentia.contracts.sources import SourcePolicy
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

SURROGATE = "\ud800"
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - the mistake under test
BEFORE_TIME = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
MANY = 16


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Return a base with two documents."""
    folder = tmp_path_factory.mktemp("bad-requests")
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text("---\ntags: [a, b]\nowner: ops\n---\n# Keys\n\nKeys are rotated.\n")
    (folder / "docs" / "other.md").write_text("# Other\n\nNothing about keys.\n")
    with connect(folder / "base", init=True) as made:
        made.ingest([folder / "docs"], source="handbook")
        yield made


FIELDS: list[tuple[str, object, str, str]] = [
    ("ranking_weights", {"relevance": math.nan}, "ranking_weights.relevance", ""),
    ("ranking_weights", {"relevance": math.inf}, "ranking_weights.relevance", ""),
    ("ranking_weights", {"relevance": -0.1}, "ranking_weights.relevance", ""),
    ("ranking_weights", {"relevance": 1.1}, "ranking_weights.relevance", ""),
    ("ranking_weights", {"relevance": 0.5}, "ranking_weights", "they sum to 1.05, not to 1"),
    ("ranking_weights", {"relevancy": 1.0}, "ranking_weights.relevancy", "a request has no such field"),
    ("ranking_weights", [0.25] * 4, "ranking_weights", ""),
    ("diversity_constraint", math.nan, "diversity_constraint", ""),
    ("diversity_constraint", 1.5, "diversity_constraint", ""),
    ("token_budget", -1, "token_budget", "expected `int` >= 1"),
    ("token_budget", 0, "token_budget", "expected `int` >= 1"),
    ("token_budget", 2**32, "token_budget", ""),
    ("latency_deadline_ms", 0, "latency_deadline_ms", "expected `int` >= 1"),
    ("latency_deadline_ms", 1.5, "latency_deadline_ms", ""),
    ("limit", 0, "limit", "expected `int` >= 1"),
    ("limit", -3, "limit", ""),
    ("limit", 10_001, "limit", "expected `int` <= 10000"),
    ("limit", "10", "limit", "expected `int`, got `str`"),
    ("limit", True, "limit", ""),
    ("limit", 2**80, "limit", ""),
    ("cost_budget_micros", -1, "cost_budget_micros", ""),
    ("cost_budget_micros", 2**53, "cost_budget_micros", "9007199254740992 is more than 9007199254740991"),
    ("max_staleness_ms", 2**70, "max_staleness_ms", ""),
    ("as_of", NAIVE, "as_of", "'2026-01-01T00:00:00' has no time zone; add Z for UTC"),
    ("as_of", "2026-01-01T00:00:00", "as_of", "'2026-01-01T00:00:00' has no time zone; add Z for UTC"),
    ("as_of", "yesterday", "as_of", "it is not a time such as 2026-01-31T12:00:00Z"),
    ("as_of", "2026-02-30", "as_of", "it is not a time such as 2026-01-31T12:00:00Z"),
    ("as_of", 1_700_000_000, "as_of", ""),
    ("as_of", BEFORE_TIME, "as_of", "'0001-01-01T00:00:00+02:00' is not within the years 1 to 9999 in UTC"),
    ("as_of", "9999-12-31T23:59:59-01:00", "as_of", ""),
    ("time_window", {"start": "2026-01-01T00:00:00"}, "time_window.start", ""),
    ("time_window", {"end": NAIVE}, "time_window.end", ""),
    ("time_window", {"start": "0001-01-01T00:00:00+05:00"}, "time_window.start", ""),
    ("time_window", {"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "time_window", "it ends before it starts"),
    ("time_window", {"begin": "2026-01-01T00:00:00Z"}, "time_window.begin", "a request has no such field"),
    ("mode", "sparse", "mode", "'sparse' is not one of hybrid, lexical, dense"),
    ("fusion", "magic", "fusion", "'magic' is not one of linear, rrf, learned"),
    ("governance", "loose", "governance", "'loose' is not one of off, annotate, filter, enforce"),
    (
        "without",
        ["context", "magic"],
        "without[1]",
        "'magic' is not one of context, normalise, spelling, abbreviations, synonyms, decompose, rewrite",
    ),
    ("tokenizer", "cl100k", "tokenizer", "'cl100k' is not one of o200k_base, chars4"),
    ("tokenizer", ["chars4"], "tokenizer", ""),
    ("facets", ["colour"], "facets", ""),
    ("facets", ["extra."], "facets", ""),
    ("facets", [f"extra.{number}" for number in range(MANY + 1)], "facets", "17 facets are more than 16"),
    ("facets", "title", "facets", "expected `array`, got `str`"),
    ("facets", [1], "facets[0]", ""),
    ("explain", "yes", "explain", ""),
    ("receipt", 1, "receipt", ""),
    ("agent_name", SURROGATE, "agent_name", "it holds an unpaired surrogate"),
    ("session_context", SURROGATE, "session_context", "it holds an unpaired surrogate"),
    ("task", {"type": SURROGATE}, "task", "it holds an unpaired surrogate"),
    ("task", {"kind": "fix"}, "task", "object missing required field `type`"),
    ("turns", [{"role": "user", "text": "hi", "extra": 1}], "turns[0].extra", "a request has no such field"),
    ("source_policy", {"alowed_sources": ["handbook"]}, "source_policy.alowed_sources", "a request has no such field"),
    (
        "source_policy",
        {"minimum_authority": "gospel"},
        "source_policy.minimum_authority",
        "'gospel' is not one of ephemeral, user, derived, curated, canonical",
    ),
    ("source_policy", {"acl_scope": [SURROGATE]}, "source_policy", "it holds an unpaired surrogate"),
    ("principal", {"principal_id": "x", "clearence": "public"}, "principal.clearence", "a request has no such field"),
    ("principal", "alice", "principal", ""),
    ("filter", 3, "filter", ""),
    ("filter", range(3), "filter", ""),
    ("filter", {"op": "exists", "field": "colour"}, "colour", ""),
    ("filter", {"op": "exists", "field": "title", "not": True}, "filter", ""),
    ("corpus_version", 3, "corpus_version", ""),
    ("evidence_state", SURROGATE, "evidence_state", "it holds an unpaired surrogate"),
]


@pytest.mark.parametrize(("name", "value", "field", "problem"), FIELDS, ids=lambda each: str(each)[:40].encode("ascii", "replace").decode())
def test_a_wrong_value_is_refused_by_the_name_of_its_field(base: Base, name: str, value: object, field: str, problem: str) -> None:
    before = _receipts(base)
    with pytest.raises(InvalidFieldError) as caught:
        base.retrieve("keys", **{name: value})

    assert field == caught.value.field
    assert str(caught.value).startswith(f"field '{field}': {problem}")
    assert before == _receipts(base)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "it is empty"),
        (" \n\t ", "it is empty"),
        (SURROGATE, "it holds an unpaired surrogate"),
        ("x" * 10_000_000, "10000000 characters are more than search.max_query_chars, 32768"),
        ("x" * 32_769, "32769 characters are more than search.max_query_chars, 32768"),
        (3, "expected a text, got int"),
        (None, "expected a text, got NoneType"),
        (b"keys", "expected a text, got bytes"),
    ],
    ids=lambda each: str(each)[:20].encode("ascii", "replace").decode(),
)
def test_a_query_that_is_no_question_is_refused(base: Base, query: Any, problem: str) -> None:
    before = _receipts(base)
    with pytest.raises(InvalidFieldError) as caught:
        base.retrieve(query)

    assert f"field 'query': {problem}" == str(caught.value)
    assert before == _receipts(base)


def test_a_query_of_the_longest_length_is_answered(base: Base) -> None:
    assert 2 == len(base.retrieve("keys " * 6_553, receipt=False).fragments)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ('language == "en"', 11, ""),
        ('language = "en', 12, ""),
        ('language = "en" AN author = "x"', 17, ""),
        ("", 1, ""),
        ('(language = "en"', 17, ""),
    ],
)
def test_a_filter_that_does_not_parse_is_refused_with_its_column(base: Base, text: str, column: int, problem: str) -> None:
    before = _receipts(base)
    with pytest.raises(FilterSyntaxError) as caught:
        base.retrieve("keys", filter=text)

    assert column == caught.value.column
    assert str(caught.value).startswith(f"filter, column {column}: {problem}")
    assert before == _receipts(base)


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ('lang_uage = "en"', "lang_uage", "did you mean 'language'?"),
        ('colour = "red"', "colour", "the fields are author, authority_tier"),
        ('authority_tier >= "gospel"', "authority_tier", "'gospel' is not"),
        ('updated_at > "soon"', "updated_at", "'soon' is not"),
    ],
)
def test_a_filter_over_what_is_not_there_says_what_is(base: Base, text: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        base.retrieve("keys", filter=text)

    assert field == caught.value.field
    assert problem in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("corpus_version", "0" * 64), ("corpus_version", ""), ("evidence_state", "f" * 64)])
def test_a_version_that_is_not_there_is_named_with_its_field(base: Base, name: str, value: str) -> None:
    before = _receipts(base)
    with pytest.raises(NotFoundError) as caught:
        base.retrieve("keys", **{name: value})

    assert f"no {name} '{value}'" == str(caught.value)
    assert before == _receipts(base)


@pytest.mark.parametrize("name", ["limits", "text", "query_text", "query"])
def test_an_unknown_keyword_is_named(base: Base, name: str) -> None:
    with pytest.raises((InvalidFieldError, TypeError)) as caught:
        base.retrieve("keys", **{name: 3})

    assert name in str(caught.value)


@pytest.mark.parametrize("day", ["2026-01-31", date(2026, 1, 31)])
def test_a_date_is_its_first_instant_in_utc(base: Base, day: object) -> None:
    instant = datetime(2026, 1, 31, tzinfo=UTC)
    by_date, by_time = (base.retrieve("keys", as_of=each, time_window={"end": each}) for each in (day, instant))

    assert instant == by_date.as_of
    assert by_time.result_hash == by_date.result_hash


def test_a_request_that_is_made_takes_no_further_fields(base: Base) -> None:
    with pytest.raises(InvalidFieldError, match="field 'limit': a request that is already made takes no further fields"):
        base.retrieve(_request(), limit=3)


@pytest.mark.parametrize("depth", [70, 400, 100_000])
def test_a_filter_that_is_nested_too_deeply_is_refused(base: Base, depth: int) -> None:
    nested: dict[str, object] = {"op": "exists", "field": "title"}
    for _ in range(depth):
        nested = {"op": "not", "clause": nested}
    with pytest.raises(InvalidFieldError, match=r"field 'filter': (it )?is nested"):
        base.retrieve("keys", filter=nested)


DIRECT: list[tuple[str, object, str]] = [
    ("ranking_weights", RankingWeights(relevance=math.nan), "ranking_weights.relevance"),
    ("ranking_weights", RankingWeights(authority=-math.inf), "ranking_weights.authority"),
    ("ranking_weights", RankingWeights(relevance=0.9), "ranking_weights"),
    ("diversity_constraint", math.nan, "diversity_constraint"),
    ("token_budget", 0, "token_budget"),
    ("token_budget", -5, "token_budget"),
    ("latency_deadline_ms", 0, "latency_deadline_ms"),
    ("limit", 0, "limit"),
    ("limit", -1, "limit"),
    ("limit", 10_001, "limit"),
    ("limit", "ten", "limit"),
    ("as_of", NAIVE, "as_of"),
    ("as_of", "never", "as_of"),
    ("as_of", BEFORE_TIME, "as_of"),
    ("time_window", TimeWindow(start=datetime(2026, 1, 2, tzinfo=UTC), end=datetime(2026, 1, 1, tzinfo=UTC)), "time_window"),
    ("time_window", TimeWindow(start=NAIVE), "time_window.start"),
    ("query", DecomposedQuery(text=""), "query"),
    ("query", DecomposedQuery(text="x" * 10_000_000), "query"),
    ("query", DecomposedQuery(text="keys", subqueries=(SubQuery(text="x", weight=math.nan),)), "query.subqueries[0].weight"),
    ("query", "keys", "query"),
    ("mode", "sparse", "mode"),
    ("tokenizer", "cl100k", "tokenizer"),
    ("facets", ("colour",), "facets"),
    ("source_policy", SourcePolicy(minimum_authority="gospel"), "source_policy.minimum_authority"),  # type: ignore[arg-type]  # the mistake
    ("principal", 3, "principal"),
    ("filter", Compare("extra.owner", "=", 0.5), "filter.value"),  # type: ignore[arg-type]  # the mistake under test
    ("filter", Compare("colour", "=", "red"), "colour"),
    ("agent_name", SURROGATE, "agent_name"),
]


@pytest.mark.parametrize(("name", "value", "field"), DIRECT, ids=lambda each: str(each)[:40].encode("ascii", "replace").decode())
def test_a_request_made_as_an_object_is_held_to_the_same_rules(base: Base, name: str, value: object, field: str) -> None:
    before = _receipts(base)
    with pytest.raises(InvalidFieldError) as caught:
        base.retrieve(msgspec.structs.replace(_request(), **{name: value}))

    assert field == caught.value.field
    assert before == _receipts(base)


def test_lists_where_tuples_are_meant_give_the_same_answer(base: Base) -> None:
    """A request made as an object may hold what no type checker would pass; what has a plain meaning is answered."""
    kept = _request(facets=("language", "tags"), turns=(Turn(role="user", text="hi"),), filter=In("language", ("en", "de")))
    loose = _request(facets=["language", "tags"], turns=[Turn(role="user", text="hi")], filter=In("language", ["en", "de"]))  # type: ignore[arg-type]  # what is under test

    assert base.retrieve(kept).result_hash == base.retrieve(loose).result_hash


def test_a_set_is_read_in_a_fixed_order(base: Base) -> None:
    names = ["title", "language", "tags", "path", "media_type", "content_type", "source_id", "author"]
    first = base.retrieve("keys", as_of="2026-01-01T00:00:00Z", facets=set(names), receipt=False)
    second = base.retrieve("keys", as_of="2026-01-01T00:00:00Z", facets=sorted(names), receipt=False)

    assert first.request_hash == second.request_hash


words = st.text(max_size=12) | st.sampled_from(
    ["", "hybrid", "title", "extra.x", SURROGATE, "2026-01-01T00:00:00Z", "handbook", "[", "\x00"]
)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | words | st.binary(max_size=4) | st.datetimes()
trees = st.recursive(
    st.builds(lambda field, value: {"op": "compare", "field": field, "operator": "=", "value": value}, words, scalars)
    | st.builds(lambda field: {"op": "exists", "field": field}, words),
    lambda inner: (
        st.builds(lambda clauses: {"op": "and", "clauses": clauses}, st.lists(inner, max_size=3))
        | st.builds(lambda clause: {"op": "not", "clause": clause}, inner)
    ),
    max_leaves=6,
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=8)
names = st.sampled_from([name for name in EvidenceRequest.__struct_fields__ if name != "query"])


@given(st.dictionaries(names, values | trees, min_size=1, max_size=3), st.text(max_size=20))
@example({"filter": {"op": "and", "clauses": []}}, "keys")
@example({"as_of": "0001-01-01T00:00:00+00:01"}, "keys")
@settings(max_examples=cases(200, of=600), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_whatever_the_fields_hold_only_our_errors_are_raised(base: Base, fields: dict[str, object], text: str) -> None:
    with contextlib.suppress(EvidentiaError):
        base.retrieve(text, **{"receipt": False} | fields)


@given(
    names,
    values | st.builds(Exists, words) | st.builds(And, st.lists(st.builds(Exists, words), max_size=2).map(tuple)) | st.builds(Not, words),
)
@settings(max_examples=cases(133, of=400), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_whatever_an_object_holds_only_our_errors_are_raised(base: Base, name: str, value: object) -> None:
    request = msgspec.structs.replace(_request(receipt=False), **{name: value})
    with contextlib.suppress(EvidentiaError):
        base.retrieve(request)


def _request(**fields: Any) -> EvidenceRequest:
    return EvidenceRequest(query=DecomposedQuery(text="keys"), as_of=fields.pop("as_of", datetime(2026, 1, 1, tzinfo=UTC)), **fields)


def _receipts(base: Base) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((base.path / "receipts").glob("*")))
