"""How much the words of one particular question should count against its vectors.

A question full of identifiers is best answered by its words, a long one in plain language by its meaning. What decides is a logistic
model over a few features of the question. It is given as data; nothing here fits it.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import InvalidFieldError
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import exp_fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.search import LexicalQuery

LEAST_MILLI: Final = 100
MAX_MILLI: Final = 900
LARGEST_COUNT: Final = 64
"""Higher counts of a question count as this, so that no length of text drowns the other features."""

_BITS: Final = 16
_MILLI: Final = 1000
_LARGEST_COEFFICIENT: Final = 1 << 40


class QueryFeatures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a question looks like: counts up to LARGEST_COUNT, and rarities (idf) at 2^-16."""

    terms: int = 0
    """Different terms asked for."""
    words: int = 0
    """Pieces of text between white space."""
    phrases: int = 0
    identifiers: int = 0
    """Pieces that look like names of code, options, paths or numbered things."""
    is_question: int = 0
    """1 when it ends in a question mark, else 0."""
    rarest: int = 0
    """The rarity of the rarest term."""
    mean_rarity: int = 0
    """The mean rarity of the terms, rounded down."""


FEATURES: Final = QueryFeatures.__struct_fields__
"""The names a model may weigh."""
_RARITIES: Final = ("rarest", "mean_rarity")


class QueryWeightModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted model: ln(words / vectors) = intercept + the sum of coefficient * feature, coefficients at 2^-16."""

    version: Literal[1] = 1
    basis: str = ""
    """What it was fitted on."""
    intercept: Annotated[int, msgspec.Meta(ge=-_LARGEST_COEFFICIENT, le=_LARGEST_COEFFICIENT)] = 0
    coefficients: dict[str, Annotated[int, msgspec.Meta(ge=-_LARGEST_COEFFICIENT, le=_LARGEST_COEFFICIENT)]] = {}


def read_model(content: bytes) -> QueryWeightModel:
    """Return the model that a JSON file holds; one that names an unknown feature is refused."""
    try:
        model = decode_json(content, QueryWeightModel)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFieldError("query_weights", f"the model cannot be read ({error}); fit it again") from error
    unknown = sorted(set(model.coefficients) - set(FEATURES))
    if unknown:
        raise InvalidFieldError("query_weights.coefficients", f"'{unknown[0]}' is not one of {', '.join(FEATURES)}")
    return model


@lru_cache(maxsize=1)
def shipped_weights() -> QueryWeightModel:
    """Return the model that comes with the package."""
    return read_model((files("evidentia.ranking") / "query_weights.json").read_bytes())


def query_features(query: LexicalQuery, text: str, rarities: Mapping[str, int], *, identifiers: int) -> QueryFeatures:
    """Return the features of a question: its terms and phrases, its text as asked, the idf of its terms at 2^-16, its identifiers.

    A term without a known rarity counts as a term and not in the rarities.
    """
    pieces = text.split()
    known = [rarities[term] for term in query.terms if term in rarities]
    return QueryFeatures(
        terms=_capped(len(query.terms)),
        words=_capped(len(pieces)),
        phrases=_capped(len(query.phrases) + len(query.preferred)),
        identifiers=_capped(identifiers),
        is_question=int(text.rstrip().endswith(("?", "\N{FULLWIDTH QUESTION MARK}"))),
        rarest=max(known, default=0),
        mean_rarity=sum(known) // len(known) if known else 0,
    )


def lexical_milli(features: QueryFeatures, model: QueryWeightModel) -> int:
    """Return the words' share in linear fusion, in thousandths from 100 to 900; a model without coefficients gives 500."""
    total = model.intercept << _BITS
    for name, coefficient in model.coefficients.items():
        value: int = getattr(features, name)
        total += coefficient * (value if name in _RARITIES else value << _BITS)
    return max(LEAST_MILLI, min(MAX_MILLI, _logistic_milli(total >> _BITS)))


def _logistic_milli(point: int) -> int:
    """Return 1 / (1 + exp(-x)) in thousandths, rounded to the nearest, for x at 2^-16; x and -x add up to 1000."""
    whole = ONE + exp_fixed(-abs(point))
    share = (2 * _MILLI * ONE + whole) // (2 * whole)
    return share if point >= 0 else _MILLI - share


def _capped(count: int) -> int:
    return min(count, LARGEST_COUNT)
