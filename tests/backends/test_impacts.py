"""Impacts that are looked up, spread and found again equal those that are worked out one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.backends.embedded.lexical.view import COMMON_SHARE, TermPostings
from evidentia.backends.embedded.records.document_table import WORTH_A_TABLE, CodedLengths, ImpactTable
from evidentia.text.weights import Bm25

IDF = 200_000


@given(
    lengths=st.lists(st.integers(0, 300_000), min_size=1, max_size=40),
    postings=st.data(),
    most=st.sampled_from([1, 3, 40, 1 << 21]),
)
def test_an_impact_from_the_table_is_the_impact(lengths: list[int], postings: st.DataObject, most: int) -> None:
    coded = CodedLengths.of(np.asarray(lengths, dtype=np.int32))
    places = postings.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=WORTH_A_TABLE * 4 * len(lengths)))
    frequencies = postings.draw(st.lists(st.integers(1, most), min_size=len(places), max_size=len(places)))
    bm25 = Bm25.of(total_length=sum(lengths), documents=len(lengths))

    found = ImpactTable(bm25, coded).impacts(np.asarray(places, dtype=np.int32), np.asarray(frequencies, dtype=np.int32), idf=IDF)

    assert [bm25.impact(frequency, lengths[place], idf=IDF) for place, frequency in zip(places, frequencies, strict=True)] == found.tolist()


def test_lengths_come_back_from_their_codes() -> None:
    lengths = np.asarray([7, 0, 7, 100_000, 3], dtype=np.int32)
    coded = CodedLengths.of(lengths)

    assert [0, 3, 7, 100_000] == coded.distinct.tolist()
    assert lengths.tolist() == coded.distinct[coded.codes].tolist()
    assert 0 == len(CodedLengths.of(np.empty(0, dtype=np.int32)).codes)


def test_more_lengths_than_a_narrow_code_holds_have_wide_ones() -> None:
    lengths = np.arange(70_000, dtype=np.int32)
    coded = CodedLengths.of(lengths)

    assert np.uint32 == coded.codes.dtype
    assert lengths.tolist() == coded.distinct[coded.codes].tolist()


@pytest.mark.parametrize("impacts", [[5, 1, 7], [5, 0, -7]])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("size", [4, 4 * COMMON_SHARE])
def test_adding_again_adds_the_same(impacts: list[int], times: int, size: int) -> None:
    places = np.asarray([0, 2, 3], dtype=np.int32)
    postings = TermPostings(places, places, np.asarray(impacts, dtype=np.int32), idf=1, size=size)
    expected = np.zeros(size, dtype=np.int64)
    for _ in range(3):
        expected[places] += np.asarray(impacts) * times
    totals, touched = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.bool_)
    for _ in range(3):
        postings.add_to(totals, times)
    postings.touch(touched)

    assert expected.tolist() == totals.tolist()
    assert [0, 2, 3] == np.flatnonzero(touched).tolist()
    assert [5, 0, impacts[1]] == postings.at(np.asarray([0, 1, 2], dtype=np.int32)).tolist()
    assert (min(impacts) > 0) is postings.is_positive
