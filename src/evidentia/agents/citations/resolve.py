"""Whether a citation names something that was returned in this run, and what would be right where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.citations import DocumentCitation, TableCitation, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.agents.citations import Citation, WebCitation
    from evidentia.agents.results import ResultFacts

_MAX_LENGTH: Final = 60
_MAX_SHOWN: Final = 8


class Shown(NamedTuple):
    """All that the results of a run showed, by what a citation names."""

    names: Mapping[str, str]
    """The file name of each file."""
    pages: Mapping[str, frozenset[int]]
    rows: Mapping[tuple[str, int], frozenset[int]]
    """The rows of each file and sheet."""
    urls: frozenset[str]
    foreign: tuple[str, ...]
    """The texts of tools that are not ours."""


def gather(results: Sequence[ResultFacts]) -> Shown:
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
    return Shown(names, {file: frozenset(found) for file, found in pages.items()}, rows, frozenset(urls), tuple(foreign))


def what_is_wrong(citation: Citation, shown: Shown) -> str:
    """Return why a citation names nothing that was returned, and what would be right; empty when it resolves."""
    if isinstance(citation, DocumentCitation):
        return _check_document(citation, shown)
    if isinstance(citation, TableCitation):
        return _check_table(citation, shown)
    return _check_url(citation, shown)


def _check_document(citation: DocumentCitation, shown: Shown) -> str:
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


def _check_table(citation: TableCitation, shown: Shown) -> str:
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


def _check_file(file: str, filename: str, shown: Shown) -> str | None:
    """Return what is wrong with the file or its name, empty when another tool named both; None when the result has to tell more."""
    name = shown.names.get(file)
    if name is not None:
        return None if name == filename else f"the file name of {quoted(file)} is {quoted(name)}, not {quoted(filename)}"
    if any(file in text and filename in text for text in shown.foreign):
        return ""
    right = next((known for known, named in sorted(shown.names.items()) if named == filename), None)
    advice = f'; write file="{_short(right)}"' if right is not None else _advice(shown)
    return f"file {quoted(file)} was not returned in this run{advice}"


def _check_url(citation: WebCitation, shown: Shown) -> str:
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


def _advice(shown: Shown) -> str:
    known = [_short(file) for file in sorted(shown.names)[:3]]
    return f"; those returned are {', '.join(known)}" if known else "; nothing with a file was returned"


def _listed(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    listed = ", ".join(str(number) for number in ordered[:_MAX_SHOWN])
    return f"{listed} and {len(ordered) - _MAX_SHOWN} more" if len(ordered) > _MAX_SHOWN else listed
