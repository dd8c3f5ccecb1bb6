"""BM25 and TF-IDF in integers, so that two platforms agree bit for bit. Refuses floats: none occurs in this file.

Robertson and Zaragoza (2009), in their letters: idf(t) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / avgdl)), with f the frequency of t
in d, |d| the length in positions, avgdl = `total_length / documents`. k1 and b are thousandths. Weights are fixed point, 2^-16 each.

How a BM25 impact is rounded, each step to the nearest integer, halves up:
1. idf at 2^-16 (correctly rounded logarithm), then `peak` = idf * (k1 + 1) at 2^-16;
2. `step` = k1 * b / avgdl and `floor` = k1 * (1 - b) at 2^-40, `norm` = floor + |d| * step at 2^-16;
3. `share` = f / (f + norm) at 2^-24;  4. impact = peak * share at 2^-16.

Bounds, which keep every product under 2^62: documents < 2^31, k1 <= 10, lengths above 2^18 count as 2^18, frequencies above 2^20 as
2^20, an average length below 1 as 1. So |idf| <= ln(2^32) < 22.2 and |impact| <= 22.2 * 11 * 2^16 < 2^31 / 134: the impacts of
`QUERY_TERM_LIMIT` terms fit an int32 sum.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHT_BITS: Final = 16
QUERY_TERM_LIMIT: Final = 128
LARGEST_K1_MILLI: Final = 10_000
LARGEST_LENGTH: Final = 1 << 18
LARGEST_FREQUENCY: Final = 1 << 20
DEFAULT_K1_MILLI: Final = 1500
DEFAULT_B_MILLI: Final = 750
IDF_KINDS: Final = ("lucene", "robertson", "tfidf")

_MILLI: Final = 1000
_NORM_BITS: Final = 40
_SHARE_BITS: Final = 24
_FEWEST_DIGITS: Final = 32


def idf_fixed(kind: str, *, documents: int, containing: int) -> int:
    """Return the weight of a term found in `containing` of `documents`, at 2^-16.

    `lucene` is ln(1 + (N - n + 0.5) / (n + 0.5)), never negative; `robertson` is ln((N - n + 0.5) / (n + 0.5)), negative for terms in more
    than half the documents; `tfidf` is ln(N / n), and 0 for a term found nowhere.
    """
    _check("documents", documents, least=1, most=(1 << 31) - 1)
    _check("containing", containing, least=0, most=documents)
    if kind == "lucene":
        return ln_fixed(2 * documents + 2, 2 * containing + 1)
    if kind == "robertson":
        return ln_fixed(2 * (documents - containing) + 1, 2 * containing + 1)
    if kind == "tfidf":
        return ln_fixed(documents, containing or documents)
    raise InvalidFieldError("idf", f"'{kind}' is not one of {', '.join(IDF_KINDS)}")


@lru_cache(maxsize=1 << 16)
def ln_fixed(numerator: int, denominator: int) -> int:
    """Return ln(numerator / denominator) of positive integers, correctly rounded to 2^-16.

    Decimal arithmetic is specified to the last digit, unlike `math.log`. Digits are added until both ends of the error interval round
    alike; the logarithm of a rational other than 1 is irrational, so that ends.
    """
    if numerator == denominator:
        return 0
    digits = _FEWEST_DIGITS
    while True:
        context = Context(prec=digits)
        ratio = context.divide(Decimal(numerator), Decimal(denominator))
        scaled = context.multiply(context.ln(ratio), Decimal(1 << WEIGHT_BITS))
        error = Decimal(10) ** (10 - digits)
        low, high = (int(context.to_integral_value(end)) for end in (context.subtract(scaled, error), context.add(scaled, error)))
        if low == high:
            return low
        digits *= 2


class Bm25(NamedTuple):
    """One setting of BM25: the rounded constants that a whole query shares."""

    k1_milli: int
    step: int
    floor: int

    @classmethod
    def of(cls, *, total_length: int, documents: int, k1_milli: int = DEFAULT_K1_MILLI, b_milli: int = DEFAULT_B_MILLI) -> Self:
        """Return the setting for these statistics: `documents` passages of `total_length` positions together."""
        _check("documents", documents, least=1, most=(1 << 31) - 1)
        _check("total_length", total_length, least=0, most=documents * LARGEST_LENGTH)
        _check("k1", k1_milli, least=0, most=LARGEST_K1_MILLI)
        _check("b", b_milli, least=0, most=_MILLI)
        length = max(total_length, documents)
        step = _divide((k1_milli * b_milli * documents) << _NORM_BITS, _MILLI * _MILLI * length)
        floor = _divide((k1_milli * (_MILLI - b_milli)) << _NORM_BITS, _MILLI * _MILLI)
        return cls(k1_milli=k1_milli, step=step, floor=floor)

    def peak(self, idf: int) -> int:
        """Return the impact that no frequency exceeds: idf * (k1 + 1)."""
        return _divide(idf * (self.k1_milli + _MILLI), _MILLI)

    def norms(self, lengths: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return k1 * (1 - b + b * |d| / avgdl) of each length; worth keeping for as long as the statistics hold."""
        capped = np.minimum(lengths, LARGEST_LENGTH).astype(np.int64)
        drop = _NORM_BITS - WEIGHT_BITS
        return (capped * self.step + (self.floor + (1 << (drop - 1)))) >> drop

    def impacts(self, frequencies: NDArray[np.int32], norms: NDArray[np.int64], *, idf: int) -> NDArray[np.int32]:
        """Return the impact of each posting of one term, given the norm of each posting's passage; frequencies are at least 1."""
        scaled = np.minimum(frequencies, LARGEST_FREQUENCY).astype(np.int64) << WEIGHT_BITS
        whole = scaled + norms
        share = ((scaled << _SHARE_BITS) + (whole >> 1)) // whole
        rounded: NDArray[np.int64] = (share * self.peak(idf) + (1 << (_SHARE_BITS - 1))) >> _SHARE_BITS
        return rounded.astype(np.int32)

    def impact(self, frequency: int, length: int, *, idf: int) -> int:
        """Return one impact in plain integers: the reference for `impacts`, and what an explanation shows."""
        norm = _divide(self.floor + min(length, LARGEST_LENGTH) * self.step, 1 << (_NORM_BITS - WEIGHT_BITS))
        scaled = min(frequency, LARGEST_FREQUENCY) << WEIGHT_BITS
        share = _divide(scaled << _SHARE_BITS, scaled + norm)
        return _divide(share * self.peak(idf), 1 << _SHARE_BITS)


def tfidf_impacts(frequencies: NDArray[np.int32], *, idf: int) -> NDArray[np.int64]:
    """Return tf * idf of each posting, exactly; raw frequencies are unbounded, hence the wider integers."""
    return frequencies.astype(np.int64) * idf


def _divide(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _check(field: str, value: int, *, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidFieldError(field, f"'{value}' is not between {least} and {most}")
