"""Filters of Haystack mean the same here as there."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from haystack import Document
from haystack.utils.filters import document_matches_filter

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.predicates import check_fields, matches
from evidentia.integrations.haystack_filters import predicate_of

DOCUMENTS: list[dict[str, Any]] = [
    {"source_id": "handbook", "language": "en", "extra": {"floor": 3}},
    {"source_id": "handbook", "language": "de", "extra": {"floor": 4}},
    {"source_id": "security"},
    {},
]
CONDITIONS: list[dict[str, Any]] = [
    *({"field": "meta.language", "operator": operator, "value": "en"} for operator in ("==", "!=")),
    *({"field": "meta.language", "operator": operator, "value": None} for operator in ("==", "!=")),
    *({"field": "meta.source_id", "operator": operator, "value": ["handbook", "none"]} for operator in ("in", "not in")),
    *({"field": "meta.extra.floor", "operator": operator, "value": value} for operator in (">", ">=", "<", "<=") for value in (3, 3.5)),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda each: f"{each['field']} {each['operator']} {each['value']}")
def test_a_condition_holds_for_the_same_documents(condition: dict[str, Any]) -> None:
    holds_there = [document_matches_filter(condition, Document(content="any", meta=meta)) for meta in DOCUMENTS]
    holds_here = [matches(predicate_of(condition), meta) for meta in DOCUMENTS]

    assert holds_there == holds_here


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
def test_a_group_holds_for_the_same_documents(operator: str) -> None:
    for first, second in product(CONDITIONS, repeat=2):
        group = {"operator": operator, "conditions": [first, {"operator": "NOT", "conditions": [second]}]}
        holds_there = [document_matches_filter(group, Document(content="any", meta=meta)) for meta in DOCUMENTS]

        assert holds_there == [matches(predicate_of(group), meta) for meta in DOCUMENTS], group


def test_the_names_of_fields_may_stand_without_meta() -> None:
    filters = {"field": "language", "operator": "==", "value": "en"}

    check_fields(predicate_of(filters))
    assert [True, False, False, False] == [matches(predicate_of(filters), meta) for meta in DOCUMENTS]


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"operator": "==", "value": "en"}, "no 'field'"),
        ({"field": "language", "value": "en"}, "no 'operator'"),
        ({"field": "language", "operator": "=="}, "no 'value'"),
        ({"field": "language", "operator": "~", "value": "en"}, "'~' is not one of"),
        ({"field": "language", "operator": ["=="], "value": "en"}, "is not one of"),
        ({"field": "language", "operator": "in", "value": "en"}, "need a list"),
        ({"field": "language", "operator": "==", "value": {"en": True}}, "of type dict"),
        ({"field": "language", "operator": ">", "value": None}, "of type NoneType"),
        ({"operator": "XOR", "conditions": []}, "'XOR' is not one of"),
        ({"operator": "AND", "conditions": "all"}, "not a list"),
    ],
)
def test_what_is_not_understood_is_refused(filters: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        predicate_of(filters)
