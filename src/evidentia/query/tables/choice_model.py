"""The fitted numbers by which tables are ranked, read from the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

_FILE: Final = "weights.json"


class ChoiceModel(msgspec.Struct, frozen=True, kw_only=True):
    """What each kind of evidence counts, in thousandths."""

    version: int = 1
    basis: str = ""
    name: int = 2000
    """A word of the title, the sheet's name or the name in statements."""
    column: int = 1000
    value: int = 500
    """A word of a sample."""
    file: int = 1000
    saturation: int = 1000
    """BM25's k1."""
    length: int = 300
    """BM25's b, over the number of columns."""
    named: int = 500
    """The share of a table's name that the question holds."""
    column_named: int = 200
    """A column whose whole name the question holds."""
    document: int = 500
    """What the tables of the document explain together."""
    similarity: int = 0
    document_similarity: int = 0
    """The vectors' cosines of the table, and of the best table of its document."""


class ChoiceModels(msgspec.Struct, frozen=True, kw_only=True):
    """One model for words alone, one for words and vectors."""

    words: ChoiceModel
    with_vectors: ChoiceModel


@cache
def packaged_models() -> ChoiceModels:
    """Return the models that come with Evidentia, as `tools/fit_tables.py` wrote them."""
    return msgspec.json.decode((files("evidentia.query.tables") / _FILE).read_bytes(), type=ChoiceModels)
