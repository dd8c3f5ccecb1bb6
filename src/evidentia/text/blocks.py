"""The markdown of a reply as blocks, by exact character spans: paragraphs, lists, tables, headings, code, quotes, images, citation lines.

One pass over the lines; the cost is linear in the text, whatever it holds. Refuses to render: what it does not know is a paragraph.
- A line of nothing but citation tags, also behind a list mark, is a citation line, and one of nothing but images an image line; neither
  goes on a paragraph, a list or a table.
- A list goes on over blank lines when another item, or an indented line, follows.
- A table is two lines with bars or more, the second of them a rule.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.text.sentences import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

TAG: Final = re.compile(r'<[ \t]{0,4}+(?P<close>/?)[ \t]{0,4}+citations?(?![\w-])(?:[^<>"\n]++|"[^"\n]*+")*+>?', re.IGNORECASE)
"""Whatever was meant to be a citation tag, well formed or not; it never spans lines."""

_IMAGE: Final = re.compile(r"!\[[^\[\]\n]*+\]\([ \t]*+([^()\s]*+)(?:[ \t]++\"[^\"\n()]*+\")?[ \t]*+\)")
_MARK: Final = re.compile(r"[ \t]*+(?:[-*+\u2022]|\(?\d{1,9}[.)]|\(?[a-zA-Z][.)])(?:[ \t]++|$)(?:\[[ xX]\][ \t]++)?")
_HEADING: Final = re.compile(r"[ ]{0,3}+#{1,6}(?:[ \t]|$)")
_FENCE: Final = re.compile(r"[ ]{0,3}+(`{3,}+|~{3,}+)")
_BREAK: Final = re.compile(r"[ ]{0,3}+(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)$")
_UNDERLINE: Final = re.compile(r"[ ]{0,3}+(?:=++|-++)[ \t]*+$")
_TABLE_RULE: Final = re.compile(r"[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|?)++[ \t]*+$")


class BlockKind(StrEnum):
    """What a block is."""

    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    HEADING = "heading"
    CODE = "code"
    QUOTE = "quote"
    IMAGE = "image"
    CITATION = "citation"
    BREAK = "break"
    """A line across the page."""


_BY_LETTER: Final = {">": BlockKind.QUOTE, "|": BlockKind.TABLE}
_ALONE: Final = frozenset({BlockKind.HEADING, BlockKind.BREAK})
_WORDED: Final = frozenset({BlockKind.PARAGRAPH, BlockKind.TABLE})


class Block(NamedTuple):
    """A block: characters `start` up to, not including, `end`, and what stands there; a list has its items."""

    kind: BlockKind
    start: int
    end: int
    text: str
    items: tuple[Span, ...] = ()


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    kind: BlockKind | None
    """None is a blank line."""


def blocks(markdown: str) -> tuple[Block, ...]:
    """Return the blocks in order, never overlapping; together they hold all that is not blank."""
    lines = list(_lines(markdown))
    found: list[Block] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.kind is None:
            place += 1
            continue
        end, kind = _end_of_block(lines, place)
        last = end - 1
        while lines[last].kind is None:
            last -= 1
        found.append(_block(markdown, lines[place : last + 1], kind))
        place = end
    return tuple(found)


def image_spans(text: str) -> list[tuple[int, int, str]]:
    """Return where each image stands, and its target."""
    if "](" not in text:
        return []
    return [(found.start(), found.end(), found[1]) for found in _IMAGE.finditer(text)]


def without_mark(item: str) -> str:
    """Return a line without its list mark."""
    found = _MARK.match(item)
    return item[found.end() :] if found else item


def _lines(markdown: str) -> Iterator[_Line]:
    start = 0
    fence = ""
    for text in markdown.split("\n"):
        end = start + len(text)
        bare = text.removesuffix("\r")
        opened = _FENCE.match(bare) if "```" in bare or "~~~" in bare else None
        if fence:
            kind: BlockKind | None = BlockKind.CODE
            fence = "" if _closes(bare, fence) else fence
        elif opened:
            kind, fence = BlockKind.CODE, opened[1]
        else:
            kind = _kind_of(bare)
        yield _Line(start, end, bare, kind)
        start = end + 1


def _kind_of(line: str) -> BlockKind | None:
    bare = line.lstrip()
    if not bare:
        return None
    by_first = _by_first_letter(line, bare[0])
    if by_first is not None:
        return by_first
    marked = _MARK.match(line)
    rest = line[marked.end() :] if marked else bare
    if rest.startswith("<") and _is_only(TAG, rest):
        return BlockKind.CITATION
    if rest.startswith("!") and _is_only(_IMAGE, rest):
        return BlockKind.IMAGE
    return BlockKind.LIST if marked else BlockKind.PARAGRAPH


def _by_first_letter(line: str, first: str) -> BlockKind | None:
    if first == "#" and _HEADING.match(line):
        return BlockKind.HEADING
    if first in "-*_" and _BREAK.match(line):
        return BlockKind.BREAK
    return _BY_LETTER.get(first)


def _is_only(pattern: re.Pattern[str], line: str) -> bool:
    """Tell whether a line holds what the pattern finds and nothing else, but white space and commas between."""
    place = 0
    for found in pattern.finditer(line):
        if line[place : found.start()].strip(" \t,;"):
            return False
        place = found.end()
    return place > 0 and not line[place:].strip(" \t,;.")


def _end_of_block(lines: list[_Line], place: int) -> tuple[int, BlockKind]:
    kind = lines[place].kind
    if kind in _ALONE:
        return place + 1, kind
    if kind is BlockKind.CODE:
        return _end_of_code(lines, place), kind
    if kind is BlockKind.LIST:
        return _end_of_list(lines, place), kind
    if _opens_table(lines, place):
        return _end_of_table(lines, place), BlockKind.TABLE
    if kind in _WORDED:
        return _end_of_paragraph(lines, place)
    end = place + 1
    while end < len(lines) and lines[end].kind is kind:
        end += 1
    return end, kind or BlockKind.PARAGRAPH


def _end_of_code(lines: list[_Line], place: int) -> int:
    opened = _FENCE.match(lines[place].text)
    fence = opened[1] if opened else "```"
    end = place + 1
    while end < len(lines):
        end += 1
        if _closes(lines[end - 1].text, fence):
            break
    return end


def _closes(line: str, fence: str) -> bool:
    found = _FENCE.match(line)
    return found is not None and found[1].startswith(fence) and not line[found.end() :].strip()


def _end_of_list(lines: list[_Line], place: int) -> int:
    end = last = place + 1
    while end < len(lines):
        line = lines[end]
        if line.kind is None:
            end += 1
            continue
        is_lazy = end == last and line.kind in _WORDED and not _opens_table(lines, end)
        is_inside = line.kind in {BlockKind.PARAGRAPH, BlockKind.QUOTE, BlockKind.TABLE} and line.text[:1] in " \t"
        if line.kind is not BlockKind.LIST and not is_lazy and not is_inside:
            break
        end += 1
        last = end
    return last


def _opens_table(lines: list[_Line], place: int) -> bool:
    if place + 1 >= len(lines) or "|" not in lines[place].text or "-" not in lines[place + 1].text:
        return False
    rule = lines[place + 1].text
    return "|" in rule and _TABLE_RULE.match(rule) is not None


def _end_of_table(lines: list[_Line], place: int) -> int:
    end = place + 2
    while end < len(lines) and lines[end].kind in _WORDED and "|" in lines[end].text:
        end += 1
    return end


def _end_of_paragraph(lines: list[_Line], place: int) -> tuple[int, BlockKind]:
    end = place + 1
    while end < len(lines) and lines[end].kind in _WORDED and not _opens_table(lines, end):
        if end == place + 1 and _UNDERLINE.match(lines[end].text):
            return end + 1, BlockKind.HEADING
        end += 1
    is_underlined = end == place + 1 and end < len(lines) and lines[end].kind in {BlockKind.BREAK, BlockKind.LIST}
    if is_underlined and _UNDERLINE.match(lines[end].text):
        return end + 1, BlockKind.HEADING
    return end, BlockKind.PARAGRAPH


def _block(markdown: str, lines: list[_Line], kind: BlockKind) -> Block:
    start = lines[0].start
    end = lines[-1].start + len(lines[-1].text.rstrip())
    start += len(lines[0].text) - len(lines[0].text.lstrip())
    items = tuple(_items(lines, start=start, end=end)) if kind is BlockKind.LIST else ()
    return Block(kind, start, end, markdown[start:end], items)


def _items(lines: list[_Line], *, start: int, end: int) -> Iterator[Span]:
    """Yield the items; an item reaches to the next, nested ones count as items of their own."""
    starts = [max(start, line.start) for line in lines if line.kind is BlockKind.LIST]
    for place, first in enumerate(starts):
        yield Span(first, starts[place + 1] if place + 1 < len(starts) else end)
