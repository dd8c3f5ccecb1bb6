"""Integer weights: correctly rounded, alike in both forms, and within their bounds."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.text.weights import QUERY_TERM_LIMIT, Bm25, idf_fixed, ln_fixed, tfidf_impacts

MAX_DOCUMENTS = (1 << 31) - 1
LENGTHS = st.lists(st.integers(0, MAX_DOCUMENTS), min_size=1, max_size=8)
POSITIVE = st.integers(1, 1 << 33)


def ln_in_a_hundred_digits(numerator: int, denominator: int) -> int:
    with localcontext(prec=100):
        return int((65536 * (Decimal(numerator).ln() - Decimal(denominator).ln())).to_integral_value(ROUND_HALF_EVEN))


@given(POSITIVE, POSITIVE)
@example(1 << 33, (1 << 33) - 1)
@example(1, 1 << 33)
def test_the_logarithm_is_correctly_rounded(numerator: int, denominator: int) -> None:
    assert ln_in_a_hundred_digits(numerator, denominator) == ln_fixed(numerator, denominator)


def test_a_logarithm_close_to_a_half_gets_more_digits() -> None:
    with localcontext(prec=120):
        near = (Decimal("100.5") / 65536).exp()
        denominator = 10**60
        numerator = int((near * denominator).to_integral_value())

    expected = [100, 101]

    assert expected == [ln_fixed(numerator - 1, denominator), ln_fixed(numerator + 1, denominator)]


@pytest.mark.parametrize(
    ("kind", "numerator", "denominator"),
    [("lucene", 202, 61), ("robertson", 141, 61), ("tfidf", 100, 30)],
)
def test_each_idf_is_the_logarithm_of_its_ratio(kind: str, numerator: int, denominator: int) -> None:
    assert ln_in_a_hundred_digits(numerator, denominator) == idf_fixed(kind, documents=100, containing=30)


def test_robertson_is_negative_for_common_terms_and_lucene_never() -> None:
    assert idf_fixed("robertson", documents=10, containing=9) < 0
    assert idf_fixed("lucene", documents=10, containing=10) > 0


def test_a_term_found_nowhere_weighs_nothing_in_tfidf() -> None:
    nothing = 0

    assert nothing == idf_fixed("tfidf", documents=10, containing=0)


@pytest.mark.parametrize(
    ("kind", "documents", "containing", "field"),
    [("bm26", 10, 1, "idf"), ("lucene", 0, 0, "documents"), ("lucene", 10, 11, "containing"), ("lucene", 10, -1, "containing")],
)
def test_impossible_statistics_are_refused(kind: str, documents: int, containing: int, field: str) -> None:
    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        idf_fixed(kind, documents=documents, containing=containing)


@pytest.mark.parametrize(("k1_milli", "b_milli"), [(-1, 0), (10_001, 0), (0, -1), (0, 1001)])
def test_parameters_out_of_range_are_refused(k1_milli: int, b_milli: int) -> None:
    with pytest.raises(InvalidFieldError):
        Bm25.of(total_length=10, documents=1, k1_milli=k1_milli, b_milli=b_milli)


@given(
    lengths=LENGTHS,
    frequencies=st.lists(st.integers(1, MAX_DOCUMENTS), min_size=8, max_size=8),
    documents=st.integers(1, MAX_DOCUMENTS),
    total_length=st.integers(0, 1 << 40),
    idf=st.integers(-1_460_000, 1_460_000),
    k1_milli=st.integers(0, 10_000),
    b_milli=st.integers(0, 1000),
)
@example(
    lengths=[MAX_DOCUMENTS],
    frequencies=[MAX_DOCUMENTS] * 8,
    documents=MAX_DOCUMENTS,
    total_length=0,
    idf=1_460_000,
    k1_milli=10_000,
    b_milli=1000,
)
@example(
    lengths=[MAX_DOCUMENTS], frequencies=[1] * 8, documents=MAX_DOCUMENTS, total_length=0, idf=-1_460_000, k1_milli=10_000, b_milli=1000
)
@example(lengths=[0], frequencies=[1] * 8, documents=1, total_length=0, idf=1_460_000, k1_milli=0, b_milli=0)
def test_arrays_and_plain_integers_agree(
    *, lengths: list[int], frequencies: list[int], documents: int, total_length: int, idf: int, k1_milli: int, b_milli: int
) -> None:
    total = min(total_length, documents << 18)
    setting = Bm25.of(total_length=total, documents=documents, k1_milli=k1_milli, b_milli=b_milli)
    pairs = list(zip(frequencies, lengths, strict=False))
    norms = setting.norms(np.array([length for _, length in pairs], np.int32))
    impacts = setting.impacts(np.array([frequency for frequency, _ in pairs], np.int32), norms, idf=idf)

    assert [setting.impact(frequency, length, idf=idf) for frequency, length in pairs] == impacts.tolist()


@given(
    frequency=st.integers(1, 1000),
    length=st.integers(1, 10_000),
    documents=st.integers(1, 1 << 24),
    average=st.integers(1, 2000),
    idf=st.integers(-1_100_000, 1_100_000),
    k1_milli=st.integers(0, 3000),
    b_milli=st.integers(0, 1000),
)
def test_rounding_costs_less_than_two_units(
    *, frequency: int, length: int, documents: int, average: int, idf: int, k1_milli: int, b_milli: int
) -> None:
    k1, b = Fraction(k1_milli, 1000), Fraction(b_milli, 1000)
    exact = Fraction(idf) * frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * Fraction(length, average)))
    setting = Bm25.of(total_length=documents * average, documents=documents, k1_milli=k1_milli, b_milli=b_milli)
    tolerance = 2 + abs(exact) / (1 << 15)

    assert abs(setting.impact(frequency, length, idf=idf) - exact) < tolerance


def test_a_hand_computed_impact() -> None:
    setting = Bm25.of(total_length=1000, documents=10)
    expected = round(Fraction(2 * 2 * 5, 7) * 65536)

    assert expected == setting.impact(2, 100, idf=65536 * 2)


def test_a_whole_query_fits_an_int32_sum() -> None:
    rarest = idf_fixed("lucene", documents=MAX_DOCUMENTS, containing=0)
    setting = Bm25.of(total_length=1, documents=1, k1_milli=10_000, b_milli=0)

    assert QUERY_TERM_LIMIT * setting.peak(rarest) < 1 << 31


def test_tfidf_multiplies_the_raw_count() -> None:
    expected = [3 << 10, 1 << 40]

    assert expected == tfidf_impacts(np.array([3, 1 << 30], np.int32), idf=1 << 10).tolist()
