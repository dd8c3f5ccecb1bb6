"""The bulk path says what the plain path says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text import term_table
from evidentia.text.term_table import EncodedPassages, TermTable
from evidentia.text.tokens import Tokeniser

ENGLISH = Tokeniser()
PASSAGES = st.lists(st.text(alphabet="aB9_.'- \u6771\u00e9", max_size=40), max_size=8)


def decode(encoded: EncodedPassages, terms: list[str]) -> list[list[tuple[str, int]]]:
    placed = [(terms[number], int(position)) for number, position in zip(encoded.term_ids, encoded.positions, strict=True)]
    passages, start = [], 0
    for count in encoded.term_counts.tolist():
        passages.append(placed[start : start + count])
        start += count
    return passages


def encode(texts: list[str]) -> tuple[TermTable, EncodedPassages]:
    table = TermTable(ENGLISH)
    for text in texts:
        table.add(text)
    return table, table.take()


@given(PASSAGES)
def test_bulk_and_plain_paths_agree(texts: list[str]) -> None:
    table, encoded = encode(texts)

    assert [ENGLISH.terms_with_positions(text) for text in texts] == decode(encoded, table.terms)


@given(PASSAGES)
def test_a_length_counts_positions(texts: list[str]) -> None:
    _, encoded = encode(texts)

    assert [len(ENGLISH.phrase_terms(text)) for text in texts] == encoded.lengths.tolist()


@given(PASSAGES)
def test_a_full_table_forgets_without_changing_the_answer(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_table, "SURFACE_LIMIT", 2)
        table, encoded = encode(texts)

    assert [ENGLISH.terms_with_positions(text) for text in texts] == decode(encoded, table.terms)


def test_terms_are_numbered_by_first_appearance() -> None:
    table, encoded = encode(["keys rotate", "rotate p53"])
    expected = ["key", "rotat", "rotat", "p53", "p", "53"]  # codespell:ignore rotat

    assert list(dict.fromkeys(expected)) == table.terms
    assert expected == [table.terms[number] for number in encoded.term_ids]


def test_take_starts_afresh_and_keeps_the_vocabulary() -> None:
    table, _ = encode(["keys"])
    table.add("rotate keys")
    batches = [table.take().term_ids.tolist(), table.take().term_ids.tolist()]
    expected = [[1, 0], []]

    assert expected == batches


def test_words_too_long_to_remember_are_still_encoded() -> None:
    blob = "x" * 1000
    table, encoded = encode([f"{blob} {blob}"])
    expected = [[("x" * 64, 0), ("x" * 64, 1)]]

    assert expected == decode(encoded, table.terms)
