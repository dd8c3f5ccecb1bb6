"""What a question requires of a source is read off its signs, and said by their kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.vocabulary import QueryCapability
from evidentia.query.capabilities import infer_capabilities

EXACT, SEMANTIC, STRUCTURED, GRAPH = QueryCapability
NAMES = ("orders", "customer_name", "id")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("how do we rotate keys", {EXACT: "words", SEMANTIC: "words"}),
        ("what does rotate_keys do with stale entries", {EXACT: "identifiers", SEMANTIC: "words"}),
        ("CVE-2021-44228", {EXACT: "identifiers"}),
        ('"signing key"', {EXACT: "quoted words"}),
        ("???", {EXACT: "words", SEMANTIC: "words"}),
        ("who owns the checkout service", {EXACT: "words", SEMANTIC: "words", GRAPH: "a relation"}),
        ("what calls the ledger", {EXACT: "words", SEMANTIC: "words", GRAPH: "a relation"}),
        ("what breaks if the vault depends on nothing", {EXACT: "words", SEMANTIC: "words", GRAPH: "a relation"}),
        ("how many keys are there", {EXACT: "words", SEMANTIC: "words", STRUCTURED: "a quantity"}),
        ("errors of the last 30 minutes", {EXACT: "words", SEMANTIC: "words", STRUCTURED: "a time"}),
        ("which order is late", {EXACT: "words", SEMANTIC: "words", STRUCTURED: "a table or column"}),
        ("the customer name of Ann", {EXACT: "words", SEMANTIC: "words", STRUCTURED: "a table or column"}),
        ("the id of Ann", {EXACT: "words", SEMANTIC: "words"}),
    ],
)
def test_signs_say_what_is_required(text: str, expected: dict[QueryCapability, str]) -> None:
    assert expected == infer_capabilities(text, names=NAMES)


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
def test_every_text_requires_something_and_no_word_of_it_is_told(text: str, names: list[str]) -> None:
    found = infer_capabilities(text, names=names)

    assert EXACT in found
    assert set(found.values()) <= {"words", "identifiers", "quoted words", "a relation", "a quantity", "a time", "a table or column"}
