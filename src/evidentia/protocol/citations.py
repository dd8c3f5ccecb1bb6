"""Citations: what they are, and how they are written. Three forms, each one line: a page of a document, rows of a sheet, an address.

    <CITATION file="handbook:keys.pdf" filename="keys.pdf" page=3 />
    <CITATION file="handbook:prices.xlsx" filename="prices.xlsx" sheet=1 rows=[2, 4] />
    <CITATION url="https://example.org/a" />

Values are escaped, so that no file name can end a tag or begin another; what is written is what is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.protocol.table_rows import read_code
from evidentia.text.blocks import TAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.protocol.tool_results import EvidencePiece, ResultFacts


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


def cite_piece(piece: EvidencePiece, *, page: int | None = None) -> DocumentCitation:
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


# --- parser ---
# A strict parser of the citations in a reply; a malformed one is reported with what to write instead.
#
# The cost is linear in the reply. A tag never spans lines, so a text that ends in the middle of one takes nothing else with it.

_NAME: Final = "<CITATION"
_FORMS: Final = (("file", "filename", "page"), ("file", "filename", "sheet", "rows"), ("url",))
_KNOWN: Final = ("file", "filename", "page", "sheet", "rows", "url")
_ATTRIBUTE: Final = re.compile(r'\s*+([A-Za-z_][\w-]*+)\s*+=\s*+("[^"]*+"|\'[^\']*+\'|\[[^\]]*+\]|[^\s"\'\[/]++(?:/(?!$)[^\s"\'\[/]*+)*+)')
_BODY: Final = re.compile(r"<[ \t]{0,4}+/?[ \t]{0,4}+citations?", re.IGNORECASE)
_PLAIN: Final = re.compile(r'<CITATION file="([^"<>\n]*[^"<>\s][^"<>\n]*)" filename="([^"<>\n]*[^"<>\s][^"<>\n]*)" page=([0-9]{1,9}) ?/>')
"""A document's citation as it is mostly written; read at once, with the same outcome."""
_LIST: Final = re.compile(r"\[[ \t]*+\d{1,9}(?:[ \t]*+,[ \t]*+\d{1,9})*+[ \t]*+\]")
_INTEGER: Final = re.compile(r"\d{1,9}")
_MAX_SHOWN_LENGTH: Final = 80
_MAX_PROBLEMS: Final = 4
_MAX_PLAIN_LENGTH: Final = 400
_BREAKING: Final = re.compile(r"[<>]")


class CitationProblem(NamedTuple):
    """What is wrong with a tag, and what to write."""

    what: str
    write: str


class FoundCitation(NamedTuple):
    """A tag, well formed or not: characters `start` up to, not including, `end`; `citation` is None where there are problems."""

    start: int
    end: int
    citation: Citation | None
    problems: tuple[CitationProblem, ...] = ()


def parse_citation(text: str) -> Citation | None:
    """Return the citation that a text is, as a whole; None when it is not exactly one well formed tag."""
    found = find_citations(text)
    is_whole = len(found) == 1 and found[0].start == 0 and found[0].end == len(text)
    return found[0].citation if is_whole else None


def find_citations(reply: str) -> tuple[FoundCitation, ...]:
    """Return every tag that is or was meant to be a citation, in order."""
    if "<" not in reply:
        return ()
    found: list[FoundCitation] = []
    for tag in TAG.finditer(reply):
        if not tag["close"]:
            found.append(_read(tag.start(), tag[0].rstrip()))
        elif not found or reply[found[-1].end : tag.start()].strip():
            # The end of an element belongs to its beginning, which is reported already.
            problem = CitationProblem("an end tag stands alone", 'write <CITATION file="..." filename="..." page=N />')
            found.append(FoundCitation(tag.start(), tag.end(), None, (problem,)))
    return tuple(found)


def _read(start: int, tag: str) -> FoundCitation:
    plain = _PLAIN.fullmatch(tag) if len(tag) <= _MAX_PLAIN_LENGTH else None
    if plain:
        citation: Citation | None = DocumentCitation(file=unescape(plain[1]), filename=unescape(plain[2]), page=int(plain[3]))
        return FoundCitation(start, start + len(tag), citation)
    problems: list[CitationProblem] = []
    opening = _BODY.match(tag)
    begin = opening.end() if opening else len(_NAME)
    if tag[:begin] != _NAME:
        problems.append(CitationProblem(f"it begins with {_shown(tag[:begin])}", f"begin it with {_NAME}"))
    if not tag.endswith(">"):
        problems.append(CitationProblem("it does not end", "end it with />"))
    elif not tag.endswith("/>"):
        problems.append(CitationProblem("its slash is missing", "end it with />"))
    body = tag[begin:].removesuffix(">").removesuffix("/")
    values = _attributes(body, problems)
    citation = None if problems else _build(values, problems)
    return FoundCitation(start, start + len(tag), None if problems else citation, tuple(problems))


def _attributes(body: str, problems: list[CitationProblem]) -> dict[str, str]:
    values: dict[str, str] = {}
    place = 0
    while len(problems) <= _MAX_PROBLEMS and (found := _ATTRIBUTE.match(body, place)):
        name = found[1]
        if place == found.start(1) or body[place : found.start(1)].strip():
            problems.append(CitationProblem(f"no space stands before {_shown(name)}", "put a space between attributes"))
        if name in values:
            problems.append(CitationProblem(f"{name} stands twice", f"write {name} once"))
        elif name not in _KNOWN:
            problems.append(CitationProblem(f"{_shown(name)} is no attribute", f"use only {', '.join(_KNOWN)}{_nearest(name)}"))
        values.setdefault(name, found[2])
        place = found.end()
    if body[place:].strip():
        problems.append(
            CitationProblem(f"{_shown(body[place:].strip())} is no attribute", 'write attributes as name="text" or name=number')
        )
    return values


def _nearest(name: str) -> str:
    lowered = {"pages": "page", "row": "rows", "file_name": "filename", "sheets": "sheet"}.get(name.lower(), name.lower())
    return f"; did you mean {lowered}" if lowered in _KNOWN else ""


def _build(values: dict[str, str], problems: list[CitationProblem]) -> Citation | None:
    form = _form(values)
    missing = [name for name in form if name not in values]
    foreign = [name for name in values if name not in form]
    if missing:
        problems.append(CitationProblem(f"{', '.join(missing)} is missing", f"write {_sample(form)}"))
    if foreign:
        problems.append(CitationProblem(f"{', '.join(foreign)} does not go with {form[0]}", f"write {_sample(form)}"))
    texts = {name: _text(name, values[name], problems) for name in form if name in values and name in {"file", "filename", "url"}}
    numbers = {name: _number(name, values[name], problems) for name in form if name in values and name in {"page", "sheet"}}
    rows = _rows(values["rows"], problems) if "rows" in form and "rows" in values else ()
    if problems:
        return None
    if "url" in form:
        return WebCitation(url=texts["url"])
    if "page" in form:
        return DocumentCitation(file=texts["file"], filename=texts["filename"], page=numbers["page"])
    return TableCitation(file=texts["file"], filename=texts["filename"], sheet=numbers["sheet"], rows=rows)


def _form(values: dict[str, str]) -> tuple[str, ...]:
    """Return the attributes that were meant: those of a sheet or an address where one of theirs is there, else those of a page."""
    document, table, web = _FORMS
    if "sheet" in values or ("rows" in values and "page" not in values):
        return table
    return web if "url" in values and "file" not in values else document


def _sample(form: tuple[str, ...]) -> str:
    samples = {"page": "page=N", "sheet": "sheet=S", "rows": "rows=[R, ...]"}
    attributes = [samples.get(name, f'{name}="..."') for name in form]
    return f"{_NAME} {' '.join(attributes)} />"


def _text(name: str, value: str, problems: list[CitationProblem]) -> str:
    bare = value[1:-1]
    if not value.startswith('"'):
        problems.append(CitationProblem(f"{name} is not in double quotes", f'write {name}="..."'))
    elif not bare.strip():
        problems.append(CitationProblem(f"{name} is empty", f"write the {name} that the result shows"))
    elif _BREAKING.search(bare):
        problems.append(CitationProblem(f"{name} holds an angle bracket", "write &lt; and &gt;"))
    return unescape(bare)


def _number(name: str, value: str, problems: list[CitationProblem]) -> int:
    bare = value.strip("\"'")
    if value != bare:
        problems.append(
            CitationProblem(
                f"{name} is in quotes",
                f"write {name}={bare}" if _INTEGER.fullmatch(bare) else f"write {name}= and one whole number, without quotes",
            )
        )
    elif not _INTEGER.fullmatch(value) or not value.isascii():
        problems.append(CitationProblem(f"{name} is {_shown(value)}", f"write {name}= and one whole number, without quotes"))
    elif name == "sheet" and int(value) < 1:
        problems.append(CitationProblem("sheet is 0", "count sheets from 1"))
    return int(value) if not problems else 0


def _rows(value: str, problems: list[CitationProblem]) -> tuple[int, ...]:
    if not _LIST.fullmatch(value) or not value.isascii():
        fix = "rows=[2, 4]: whole numbers in brackets, without quotes"
        problems.append(CitationProblem(f"rows is {_shown(value)}", f"write {fix}"))
        return ()
    rows = tuple(int(row) for row in value.strip("[] \t").split(","))
    if 0 in rows:
        problems.append(CitationProblem("rows holds 0", "count rows from 1"))
    return rows


def _shown(text: str) -> str:
    short = text if len(text) <= _MAX_SHOWN_LENGTH else text[: _MAX_SHOWN_LENGTH - 3] + "..."
    return "'" + short.replace("<", "(").replace(">", ")") + "'"


# --- resolution ---
# Whether a citation names something that was returned in this run, and what would be right where it does not.

_MAX_LENGTH: Final = 60
_MAX_SHOWN: Final = 8


class ShownSources(NamedTuple):
    """All that the results of a run showed, by what a citation names."""

    names: Mapping[str, str]
    """The file name of each file."""
    pages: Mapping[str, frozenset[int]]
    rows: Mapping[tuple[str, int], frozenset[int]]
    """The rows of each file and sheet."""
    urls: frozenset[str]
    foreign: tuple[str, ...]
    """The texts of tools that are not ours."""


def gather(results: Sequence[ResultFacts]) -> ShownSources:
    """Return what the results showed."""
    names: dict[str, str] = {}
    pages: dict[str, set[int]] = {}
    rows: dict[tuple[str, int], frozenset[int]] = {}
    urls: set[str] = set()
    foreign: list[str] = []
    for result in results:
        for piece in result.pieces:
            if piece.file:
                names.setdefault(piece.file, piece.filename)
                pages.setdefault(piece.file, set()).update(piece.pages)
            else:
                foreign.append(piece.text)
        names.update({file: name for file, name in result.files.values() if file not in names})
        for place, (shown, _) in result.sheets.items():
            rows[place] = rows.get(place, frozenset()) | shown
        urls.update(result.urls)
    return ShownSources(names, {file: frozenset(found) for file, found in pages.items()}, rows, frozenset(urls), tuple(foreign))


def what_is_wrong(citation: Citation, shown: ShownSources) -> str:
    """Return why a citation names nothing that was returned, and what would be right; empty when it resolves."""
    if isinstance(citation, DocumentCitation):
        return _check_document(citation, shown)
    if isinstance(citation, TableCitation):
        return _check_table(citation, shown)
    return _check_url(citation, shown)


def _check_document(citation: DocumentCitation, shown: ShownSources) -> str:
    problem = _check_file(citation.file, citation.filename, shown)
    if problem is not None:
        return problem
    pages = shown.pages.get(citation.file)
    if pages is None:
        sheets = _listed(sheet for file, sheet in shown.rows if file == citation.file)
        return f"{quoted(citation.file)} was shown as a table; cite it with sheet={sheets or 'S'} rows=[...]"
    if citation.page in pages:
        return ""
    return f"page {citation.page} of {quoted(citation.filename)} was not shown; the pages shown are {_listed(pages)}, counted from 0"


def _check_table(citation: TableCitation, shown: ShownSources) -> str:
    problem = _check_file(citation.file, citation.filename, shown)
    if problem is not None:
        return problem
    if all(file != citation.file for file, _ in shown.rows):
        return f"{quoted(citation.file)} was shown as text; cite it with page={_listed(shown.pages.get(citation.file, ()))}"
    rows = shown.rows.get((citation.file, citation.sheet))
    if rows is None:
        sheets = _listed(sheet for file, sheet in shown.rows if file == citation.file)
        return f"sheet {citation.sheet} of {quoted(citation.filename)} was not shown; the sheets shown are {sheets}"
    strange = [row for row in citation.rows if row not in rows]
    if not strange:
        return ""
    return (
        f"rows {_listed(strange)} of sheet {citation.sheet} of {quoted(citation.filename)} were not shown; those shown are {_listed(rows)}"
    )


def _check_file(file: str, filename: str, shown: ShownSources) -> str | None:
    """Return what is wrong with the file or its name, empty when another tool named both; None when the result has to tell more."""
    name = shown.names.get(file)
    if name is not None:
        return None if name == filename else f"the file name of {quoted(file)} is {quoted(name)}, not {quoted(filename)}"
    if any(file in text and filename in text for text in shown.foreign):
        return ""
    right = next((known for known, named in sorted(shown.names.items()) if named == filename), None)
    advice = f'; write file="{_short(right)}"' if right is not None else _advice(shown)
    return f"file {quoted(file)} was not returned in this run{advice}"


def _check_url(citation: WebCitation, shown: ShownSources) -> str:
    if citation.url in shown.urls or any(citation.url.rstrip("/") == url.rstrip("/") for url in shown.urls):
        return ""
    if not shown.urls:
        return f"no result showed the address {quoted(citation.url)}; cite file, filename and page"
    return f"the address {quoted(citation.url)} was not shown; those shown are {', '.join(sorted(shown.urls)[:3])}"


def quoted(value: str) -> str:
    """Return a value between quotes on one line, shortened and escaped: it may come from a document."""
    return f"'{_short(value)}'"


def _short(value: str) -> str:
    written = escape(value)
    return written if len(written) <= _MAX_LENGTH else written[: _MAX_LENGTH - 3] + "..."


def _advice(shown: ShownSources) -> str:
    known = [_short(file) for file in sorted(shown.names)[:3]]
    return f"; those returned are {', '.join(known)}" if known else "; nothing with a file was returned"


def _listed(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    listed = ", ".join(str(number) for number in ordered[:_MAX_SHOWN])
    return f"{listed} and {len(ordered) - _MAX_SHOWN} more" if len(ordered) > _MAX_SHOWN else listed
