"""Names that a statement may use without quotes, made from what people wrote; a document cannot choose a keyword or a mark of ours."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_NAME_LENGTH = 60
MAX_TITLE_IN_NAME_LENGTH = 40
"""A longer title is a sentence and names nothing."""
_UNSAFE = re.compile(r"[^a-z0-9]+")
_GENERIC_SHEET = re.compile(r"(sheet|table|tabelle|feuil|feuille|hoja|foglio|planilha|blad|ark|arkusz)?[\s_]*\d*", re.IGNORECASE)
_SPELLED_OUT = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "\u0131": "i"})
_KEYWORD_LIST = (
    "abort action add after all alter always analyze and as asc attach autoincrement before begin between by cascade case cast "
    "check collate column commit conflict constraint create cross current current_date current_time current_timestamp database "
    "default deferrable deferred delete desc detach distinct do drop each else end escape except exclude exclusive exists explain "
    "fail filter first following for foreign from full generated glob group groups having if ignore immediate in index indexed "
    "initially inner insert instead intersect into is isnull join key last left like limit match materialized natural no not "
    "nothing notnull null nulls of offset on or order others outer over partition plan pragma preceding primary query raise range "
    "recursive references regexp reindex release rename replace restrict returning right rollback row rows savepoint select set "
    "table temp temporary then ties to transaction trigger unbounded union unique update using vacuum values view virtual when "
    "where window with without true false rowid oid any some interval top"
)
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
"""Keywords of SQLite, and words that SQLite or other dialects read as something else than a name."""


def table_sql_name(file_name: str, sheet_name: str, title: str, taken: Collection[str]) -> str:
    """Return a name for a table that is not among `taken`: from its title, its sheet or its file, the first that says something."""
    stem = PurePosixPath(file_name.replace("\\", "/")).stem
    sheet = "" if _GENERIC_SHEET.fullmatch(sheet_name.strip()) else sheet_name
    short_title = title if len(title) <= MAX_TITLE_IN_NAME_LENGTH else ""
    name = _safe(short_title) or _safe(sheet) or _safe(stem) or "table_1"
    return _unique(_usable(name, prefix="t_"), frozenset(taken))


def column_sql_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return a name for each column, in order and all different; one that says nothing in letters or digits gets its number."""
    taken: set[str] = set()
    made: list[str] = []
    for number, name in enumerate(names, start=1):
        sql_name = _unique(_usable(_safe(name) or f"column_{number}", prefix="c_"), taken)
        taken.add(sql_name)
        made.append(sql_name)
    return tuple(made)


def _safe(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name[: 4 * MAX_NAME_LENGTH].lower().translate(_SPELLED_OUT))
    letters = "".join(character for character in folded if not unicodedata.combining(character))
    return _UNSAFE.sub("_", letters).strip("_")[:MAX_NAME_LENGTH].rstrip("_")


def _usable(name: str, *, prefix: str) -> str:
    if name[0].isdigit() or name.startswith("sqlite_"):
        return f"{prefix}{name}"
    return f"{name}_" if name in _KEYWORDS else name


def _unique(name: str, taken: Collection[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
