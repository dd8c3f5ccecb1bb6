"""Citations read from a reply, strictly; whatever was meant to be one and is not is told with what to write instead.

The cost is linear in the reply. A tag never spans lines, so a text that ends in the middle of one takes nothing else with it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from evidentia.agents.citations import Citation, DocumentCitation, TableCitation, WebCitation, unescape
from evidentia.text.blocks import TAG

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


class Problem(NamedTuple):
    """What is wrong with a tag, and what to write."""

    what: str
    write: str


class FoundCitation(NamedTuple):
    """A tag, well formed or not: characters `start` up to, not including, `end`; `citation` is None where there are problems."""

    start: int
    end: int
    citation: Citation | None
    problems: tuple[Problem, ...] = ()


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
            # The end of an element belongs to its beginning, which is told already.
            problem = Problem("an end tag stands alone", 'write <CITATION file="..." filename="..." page=N />')
            found.append(FoundCitation(tag.start(), tag.end(), None, (problem,)))
    return tuple(found)


def _read(start: int, tag: str) -> FoundCitation:
    plain = _PLAIN.fullmatch(tag) if len(tag) <= _MAX_PLAIN_LENGTH else None
    if plain:
        citation: Citation | None = DocumentCitation(file=unescape(plain[1]), filename=unescape(plain[2]), page=int(plain[3]))
        return FoundCitation(start, start + len(tag), citation)
    problems: list[Problem] = []
    opening = _BODY.match(tag)
    begin = opening.end() if opening else len(_NAME)
    if tag[:begin] != _NAME:
        problems.append(Problem(f"it begins with {_shown(tag[:begin])}", f"begin it with {_NAME}"))
    if not tag.endswith(">"):
        problems.append(Problem("it does not end", "end it with />"))
    elif not tag.endswith("/>"):
        problems.append(Problem("its slash is missing", "end it with />"))
    body = tag[begin:].removesuffix(">").removesuffix("/")
    values = _attributes(body, problems)
    citation = None if problems else _build(values, problems)
    return FoundCitation(start, start + len(tag), None if problems else citation, tuple(problems))


def _attributes(body: str, problems: list[Problem]) -> dict[str, str]:
    values: dict[str, str] = {}
    place = 0
    while len(problems) <= _MAX_PROBLEMS and (found := _ATTRIBUTE.match(body, place)):
        name = found[1]
        if place == found.start(1) or body[place : found.start(1)].strip():
            problems.append(Problem(f"no space stands before {_shown(name)}", "put a space between attributes"))
        if name in values:
            problems.append(Problem(f"{name} stands twice", f"write {name} once"))
        elif name not in _KNOWN:
            problems.append(Problem(f"{_shown(name)} is no attribute", f"use only {', '.join(_KNOWN)}{_nearest(name)}"))
        values.setdefault(name, found[2])
        place = found.end()
    if body[place:].strip():
        problems.append(Problem(f"{_shown(body[place:].strip())} is no attribute", 'write attributes as name="text" or name=number'))
    return values


def _nearest(name: str) -> str:
    lowered = {"pages": "page", "row": "rows", "file_name": "filename", "sheets": "sheet"}.get(name.lower(), name.lower())
    return f"; did you mean {lowered}" if lowered in _KNOWN else ""


def _build(values: dict[str, str], problems: list[Problem]) -> Citation | None:
    form = _form(values)
    missing = [name for name in form if name not in values]
    foreign = [name for name in values if name not in form]
    if missing:
        problems.append(Problem(f"{', '.join(missing)} is missing", f"write {_sample(form)}"))
    if foreign:
        problems.append(Problem(f"{', '.join(foreign)} does not go with {form[0]}", f"write {_sample(form)}"))
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


def _text(name: str, value: str, problems: list[Problem]) -> str:
    bare = value[1:-1]
    if not value.startswith('"'):
        problems.append(Problem(f"{name} is not in double quotes", f'write {name}="..."'))
    elif not bare.strip():
        problems.append(Problem(f"{name} is empty", f"write the {name} that the result shows"))
    elif _BREAKING.search(bare):
        problems.append(Problem(f"{name} holds an angle bracket", "write &lt; and &gt;"))
    return unescape(bare)


def _number(name: str, value: str, problems: list[Problem]) -> int:
    bare = value.strip("\"'")
    if value != bare:
        problems.append(
            Problem(
                f"{name} is in quotes",
                f"write {name}={bare}" if _INTEGER.fullmatch(bare) else f"write {name}= and one whole number, without quotes",
            )
        )
    elif not _INTEGER.fullmatch(value) or not value.isascii():
        problems.append(Problem(f"{name} is {_shown(value)}", f"write {name}= and one whole number, without quotes"))
    elif name == "sheet" and int(value) < 1:
        problems.append(Problem("sheet is 0", "count sheets from 1"))
    return int(value) if not problems else 0


def _rows(value: str, problems: list[Problem]) -> tuple[int, ...]:
    if not _LIST.fullmatch(value) or not value.isascii():
        fix = "rows=[2, 4]: whole numbers in brackets, without quotes"
        problems.append(Problem(f"rows is {_shown(value)}", f"write {fix}"))
        return ()
    rows = tuple(int(row) for row in value.strip("[] \t").split(","))
    if 0 in rows:
        problems.append(Problem("rows holds 0", "count rows from 1"))
    return rows


def _shown(text: str) -> str:
    short = text if len(text) <= _MAX_SHOWN_LENGTH else text[: _MAX_SHOWN_LENGTH - 3] + "..."
    return "'" + short.replace("<", "(").replace(">", ")") + "'"
