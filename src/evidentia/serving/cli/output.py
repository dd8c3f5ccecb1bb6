"""What reaches stdout and stderr: lines, notes, tables and JSON. Text of documents is escaped on its way out."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from evidentia.serving.cli.invocation import Invocation


MARK_STYLE = "bold"
GAP = "  "
"""Between two columns."""
MAX_INDENT = 4
LEAST_TEXT = 40
"""A long last column with less room than this stands below its row on a terminal."""


class MarkedText(NamedTuple):
    """A cell of a table in which some stretches stand out on a terminal; elsewhere it is plain text."""

    pieces: tuple[tuple[str, bool], ...]

    def __str__(self) -> str:
        """Return the text without marks."""
        return "".join(text for text, _ in self.pieces)


class Figure(str):
    """A number as it is shown; in a table it stands on the right."""

    __slots__ = ()


def put(*lines: str) -> None:
    """Print lines of data on stdout; an empty one where none is given."""
    for line in lines or ("",):
        print(printable(line))  # noqa: T201 - a command line prints


def note(call: Invocation, line: str) -> None:
    """Print a remark on stderr, unless notes were declined."""
    if not call.is_quiet:
        sys.stderr.write(f"note: {printable(line)}\n")  # in one piece, so that an interrupt finds a whole line or none
        sys.stderr.flush()


def flush() -> None:
    """Hand what was printed to whoever reads it, at once."""
    sys.stdout.flush()


def put_json(message: object, *, is_compact: bool = False) -> None:
    """Print a message as JSON on stdout, in UTF-8 whatever the terminal says, fields in their declared order."""
    import msgspec

    encoded = msgspec.json.encode(message, order="deterministic")
    _put_encoded(encoded if is_compact else msgspec.json.format(encoded, indent=2))


def put_answer(message: object) -> None:
    """Print an answer as JSON on stdout with its maps in the order they have: facets are hashed in that order."""
    import msgspec

    _put_encoded(msgspec.json.format(msgspec.json.encode(message), indent=2))


def _put_encoded(encoded: bytes) -> None:
    put_bytes(f"{printable_json(encoded.decode())}\n".encode())


def put_bytes(content: bytes) -> None:
    """Write bytes on stdout, all of them: with PYTHONUNBUFFERED, one write to a pipe may take only a part."""
    sys.stdout.flush()
    left = memoryview(content)
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return how many there are: `1 note`, `2 notes`; `nouns` is the plural where it is not the noun with an s."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def put_table(header: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "") -> None:
    """Print a table on stdout: drawn on a terminal, aligned columns elsewhere. Numbers stand on the right."""
    cells = [[printable(str(value)) for value in row] for row in rows]
    is_number = [bool(rows) and all(isinstance(row[column], int | Figure) for row in rows) for column in range(len(header))]
    if title:
        put(title)
    if sys.stdout.isatty():
        _draw(header, rows, is_number)
    else:
        _align([list(header), *cells], is_number)


def put_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print names with their values, one pair a line."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        put(f"{name:<{width}}  {value}")


def facts_of(report: object, *names: str) -> list[tuple[str, object]]:
    """Return fields of a report as facts; a name is that of its field, with spaces for underscores."""
    return [(name, getattr(report, name.replace(" ", "_"))) for name in names]


def _align(lines: Sequence[Sequence[str]], is_number: Sequence[bool]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(is_number))]
    for line in lines:
        padded = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(line, widths, is_number, strict=True))
        print(GAP.join(padded).rstrip())  # noqa: T201


def _draw(header: Sequence[str], rows: Sequence[Sequence[object]], is_number: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False, emoji=False)
    texts = [[_styled(value) for value in row] for row in rows]
    widths = [max(len(name), *(text[column].cell_len for text in texts), 0) for column, name in enumerate(header)]
    if _is_cramped(widths, room=console.width):
        _stack(console, header, texts, widths, is_number)
        return
    numbers = [width for width, right in zip(widths, is_number, strict=True) if right]
    if sum(numbers) + len(GAP) * len(widths) > console.width:
        _spell_out(console, header, texts)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name, right in zip(header, is_number, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in texts:
        table.add_row(*row)
    console.print(table)


def _is_cramped(widths: Sequence[int], *, room: int) -> bool:
    """Tell whether a long last column would be left with a sliver of the terminal."""
    *leading, last = widths
    return last > LEAST_TEXT and sum(leading) + len(GAP) * len(leading) + LEAST_TEXT > room


def _stack(
    console: Console, header: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int], is_number: Sequence[bool]
) -> None:
    """Print every row as a line of its short cells, with the long last one below."""
    from rich.padding import Padding
    from rich.text import Text

    def line(cells: Sequence[Text]) -> Text:
        padded = [cell.copy() for cell in cells]
        for cell, width, right in zip(padded, widths, is_number, strict=False):
            cell.align("right" if right else "left", width)
        joined = Text(GAP).join(padded)
        joined.rstrip()
        return joined

    console.print(line([Text(name) for name in header[:-1]]))
    console.print("\u2500" * console.width)
    for *leading, last in rows:
        console.print(line(leading))
        console.print(Padding(last, (0, 0, 0, min(widths[0] + len(GAP), MAX_INDENT))))


def _spell_out(console: Console, header: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Print every row as names with their values, since numbers must not be cut."""
    from rich.text import Text

    for row in rows:
        console.print(Text(GAP).join(Text(f"{name} ") + cell for name, cell in zip(header, row, strict=True)))


def _styled(value: object) -> Text:
    from rich.text import Text

    if not isinstance(value, MarkedText):
        return Text(printable(str(value)))
    return Text.assemble(*((printable(text), MARK_STYLE if is_marked else "") for text, is_marked in value.pieces))


# Text from documents and file names made harmless for a terminal. Refuses to change what is printable.

# JSON escapes what is below U+0020 by itself. These remain: DEL, C1 controls, soft hyphen, zero-width and bidirectional
# marks, line and paragraph separators, interlinear annotation, tags. Each can hide or reorder what a reader sees.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def printable(text: str) -> str:
    r"""Return one line in which whatever a terminal might act on is written as an escape such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _escape(character) for character in text)


def printable_json(document: str) -> str:
    r"""Return the same JSON with what a terminal might act on written as `\uXXXX`; its meaning does not change."""
    return _UNSAFE_IN_JSON.sub(_json_escape, document)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
