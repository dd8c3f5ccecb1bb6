"""Citations: what they are, and how they are written. Three forms, each one line: a page of a document, rows of a sheet, an address.

    <CITATION file="handbook:keys.pdf" filename="keys.pdf" page=3 />
    <CITATION file="handbook:prices.xlsx" filename="prices.xlsx" sheet=1 rows=[2, 4] />
    <CITATION url="https://example.org/a" />

Values are escaped, so that no file name can end a tag or begin another; what is written is what is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.agents.results_tables import read_code
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evidentia.agents.results import Piece

_SPECIAL: Final = re.compile(r'[&"<>\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]')
_NAMED: Final = {'"': "&quot;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_REFERENCE: Final = re.compile(r"&(?:(quot|amp|lt|gt|apos)|#(\d{1,7}));")
_CHARACTERS: Final = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class DocumentCitation(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a document, counted from 0."""

    file: str
    filename: str
    page: int

    @property
    def text(self) -> str:
        """Return it as it is written."""
        return f'<CITATION file="{escape(self.file)}" filename="{escape(self.filename)}" page={self.page} />'


class TableCitation(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a sheet of a file, both counted from 1."""

    file: str
    filename: str
    sheet: int
    rows: tuple[int, ...]

    @property
    def text(self) -> str:
        """Return it as it is written."""
        rows = ", ".join(str(row) for row in self.rows)
        return f'<CITATION file="{escape(self.file)}" filename="{escape(self.filename)}" sheet={self.sheet} rows=[{rows}] />'


class WebCitation(msgspec.Struct, frozen=True, kw_only=True):
    """An address."""

    url: str

    @property
    def text(self) -> str:
        """Return it as it is written."""
        return f'<CITATION url="{escape(self.url)}" />'


Citation = DocumentCitation | TableCitation | WebCitation


def cite_piece(piece: Piece, *, page: int | None = None) -> DocumentCitation:
    """Return the citation of a piece of text: of its first page, or of the page that is named."""
    if not piece.file:
        raise InvalidFieldError("file", "the piece has none; cite the address it came from with cite_url")
    chosen = piece.pages[0] if page is None and piece.pages else page or 0
    if chosen not in piece.pages:
        raise InvalidFieldError("page", f"{chosen} is not one of {list(piece.pages)}, the pages of the piece")
    return DocumentCitation(file=piece.file, filename=piece.filename, page=chosen)


def cite_rows(codes: Iterable[str], files: Mapping[str, tuple[str, str]]) -> tuple[TableCitation, ...]:
    """Return one citation for each file and sheet, with its rows in order, given codes of `__src` and the files behind them."""
    rows: dict[tuple[int, int], set[int]] = {}
    for text in codes:
        code = read_code(text)
        if code is None or f"F{code.file}" not in files:
            raise InvalidFieldError("codes", f"'{text}' is no code of this result; write F<file>S<sheet>R<row> as __src does")
        rows.setdefault((code.file, code.sheet), set()).add(code.row)
    found: list[TableCitation] = []
    for (number, sheet), shown in sorted(rows.items()):
        file, filename = files[f"F{number}"]
        found.append(TableCitation(file=file, filename=filename, sheet=sheet, rows=tuple(sorted(shown))))
    return tuple(found)


def cite_url(url: str) -> WebCitation:
    """Return the citation of an address."""
    if not url.strip():
        raise InvalidFieldError("url", "it is empty; pass the address that was shown")
    return WebCitation(url=url)


def escape(value: str) -> str:
    """Return a value as it stands between quotes: quotes, angle brackets, ampersands, line breaks and what is invisible are escaped."""
    return _SPECIAL.sub(lambda found: _NAMED.get(found[0]) or f"&#{ord(found[0])};", value)


def unescape(value: str) -> str:
    """Return a value without escapes; what is no escape stays as it is."""
    return _REFERENCE.sub(_unescape_one, value) if "&" in value else value


def _unescape_one(found: re.Match[str]) -> str:
    if found[1]:
        return _CHARACTERS[found[1]]
    point = int(found[2])
    return chr(point) if point <= _LAST_CODE_POINT and point not in _SURROGATES else found[0]
