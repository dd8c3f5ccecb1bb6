"""A filter is decided before the search or after it, whichever costs less, and nobody can tell which by the result."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from test_search import FACETS, OWNER, READER, Reference, _document, _narrowing, _query
from test_vectors import make_base, question

from evidentia.backends.embedded.lexical.filter_choice import MEASURED, POST_FILTER, PRE_FILTER, Narrowing
from evidentia.backends.embedded.records.metadata_columns import MetadataColumn, MetadataColumns
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import matches
from evidentia.contracts.settings import SearchSettings
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.filter_choice import FilterCosts

WORLDS, ALL_CASES = 10, 5_000
PER_WORLD = cases(600, of=ALL_CASES) // WORLDS
WAYS = (MEASURED, PRE_FILTER, POST_FILTER)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_either_way_gives_the_same_result_and_the_one_of_the_reference(tmp_path: Path, seed: int) -> None:
    chance = random.Random(f"filters {seed}")
    base = make_base(tmp_path / "base")
    made = {each.document_id: each for each in (_document(str(number), chance) for number in range(chance.randint(5, 60)))}
    base.put(*made.values())
    base.embed(most=chance.choice([10, 1_000]))
    search = SearchSettings()
    references = {scope.fingerprint: Reference(list(made.values()), scope, search) for scope in (OWNER, READER)}
    snapshot = base.snapshot()
    for case in range(PER_WORLD):
        query, narrowing, limit = _query(chance), _narrowing(chance, depth=3), chance.choice([1, 3, 10, 100])
        scope = chance.choice([OWNER, READER])
        found = []
        for costs in chance.sample(WAYS, len(WAYS)):
            snapshot.filter_costs = costs
            words = snapshot.search(query, scope=scope, narrowing=narrowing, facets=FACETS, limit=limit)
            near = snapshot.nearest(question(f"q{case}"), scope=scope, narrowing=narrowing, phrases=(), limit=limit)
            union = snapshot.count_union(words, near.hits, query=query, scope=scope, narrowing=narrowing)
            found.append((words, near, union))
        best, matching, by_source, facets = references[scope.fingerprint].answer(query, narrowing=narrowing, limit=limit)
        words = found[0][0]

        assert found[0] == found[1] == found[2]
        assert best == [(hit.chunk_id, hit.score) for hit in words.hits]
        assert (matching, by_source, facets) == (words.matching, dict(words.matching_by_source), words.facets)


def _narrowing_over(records: Sequence[Mapping[str, object]], text: str, *, costs: FilterCosts = MEASURED) -> Narrowing:
    places = np.arange(len(records), dtype=np.int32)
    columns = MetadataColumns(lambda: (), {field: MetadataColumn.of([record.get(field) for record in records]) for field in records[0]})
    return Narrowing(parse(text), columns=columns, document_of=places, documents=np.arange(len(records), dtype=np.int32), costs=costs)


MANY = [{"title": f"page {number}", "language": "en" if number % 100 else "de", "source_id": "s"} for number in range(20_000)]


def test_a_rare_term_is_looked_for_first_and_the_filter_decided_for_what_it_matches() -> None:
    narrowing = _narrowing_over(MANY, 'title contains "7"')

    assert narrowing.kept_first(matching=20, additions=20, terms=1) is None
    assert [True, False] == narrowing.at(np.asarray([17, 18])).tolist()


def test_a_selective_filter_is_decided_first_where_words_match_nearly_everything() -> None:
    narrowing = _narrowing_over(MANY, 'language = "de"')
    kept = narrowing.kept_first(matching=40_000, additions=40_000, terms=2)

    assert kept is not None
    assert list(range(0, len(MANY), 100)) == kept.tolist()


def test_a_filter_that_keeps_nearly_all_is_decided_after_the_search() -> None:
    assert _narrowing_over(MANY, 'language = "en"').kept_first(matching=40_000, additions=40_000, terms=2) is None


def test_a_clause_with_many_values_is_decided_for_what_the_others_leave() -> None:
    compared: list[object] = []

    class Title(str):
        """Takes note of being compared."""

        __slots__ = ()

        def __contains__(self, part: object) -> bool:
            compared.append(self)
            return str.__contains__(self, str(part))

    records = [{**each, "title": Title(each["title"])} for each in MANY[:1_000]]
    mask = _narrowing_over(records, 'title contains "0" AND NOT (language = "en" OR source_id != "s")').mask

    assert list(range(0, 1_000, 100)) == np.flatnonzero(mask).tolist()
    assert 10 == len(compared)


@pytest.mark.parametrize("text", ["TRUE", "FALSE", "author exists OR NOT author exists", 'language = "en" AND NOT language = "en"'])
def test_filters_that_always_or_never_hold(text: str) -> None:
    narrowing = _narrowing_over(MANY[:50], text)
    expected = [matches(parse(text), each) for each in MANY[:50]]

    assert expected == narrowing.mask.tolist() == _narrowing_over(MANY[:50], text).at(np.arange(50)).tolist()


def test_a_filter_whose_normal_form_is_too_large_is_decided_all_the_same() -> None:
    text = " OR ".join(f'(language = "en" AND title contains "{number}")' for number in range(12))
    expected = [matches(parse(text), each) for each in MANY[:200]]

    assert expected == _narrowing_over(MANY[:200], text).mask.tolist()


def test_too_few_among_the_nearest_are_made_up_for() -> None:
    """The documents that pass are the farthest: what should suffice does not, and the filter is decided first after all."""
    asked: list[tuple[bool, int]] = []
    distances = np.arange(len(MANY), dtype=np.int64)[::-1]

    def search(*, keep: NDArray[np.bool_] | None, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        asked.append((keep is None, limit))
        places = np.arange(len(MANY)) if keep is None else np.flatnonzero(keep)
        return places[:limit], distances[places[:limit]], False

    narrowing = _narrowing_over(MANY, 'title >= "page 19000" AND title < "page 2"', costs=POST_FILTER)
    places, _, _ = narrowing.nearest(search, limit=3, is_exact=True)

    assert [191, 192, 193] == places.tolist()
    assert [True, False] == [is_open for is_open, _ in asked]


def test_an_approximate_search_is_told_what_is_kept() -> None:
    def search(*, keep: NDArray[np.bool_] | None, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        assert keep is not None
        return np.flatnonzero(keep)[:limit], np.zeros(limit, dtype=np.int64), True

    places, _, _ = _narrowing_over(MANY, 'language = "de"', costs=POST_FILTER).nearest(search, limit=2, is_exact=False)

    assert [0, 100] == places.tolist()
