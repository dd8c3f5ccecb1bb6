"""The context of a chunk: its document's path and title, and the headings or definitions that it stands under.

An index adds these words to a chunk's own, so that it is found by them; texts, offsets and ids know nothing of it. Context is a function
of a document's text and metadata. Refuses to parse: headings are lines with number signs, a definition is a line that begins with its
language's word for one, and lasts until a line stands as far to the left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.vocabulary import ContentType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.contracts.documents import DocumentMetadata

CONTEXT_FORM: Final = "evidentia-context/1"
"""Changes whenever the same document may get another context: what is indexed under one form never passes for another."""
MAX_PARTS: Final = 16
"""How many parts a context has at most; the innermost headings come first."""
MAX_PART_CHARS: Final = 200
Span = tuple[int, int]
_Mark = tuple[int, int, str]
"""Where a heading or a definition begins, how deep it is, and its words; without words it only ends those before it."""

_DEEPEST: Final = 1 << 30
_FIRST_LETTER: Final = re.compile(r"\S")
_HEADING: Final = re.compile(r"^ {0,3}+(?:(#{1,6})[ \t]++(\S[^\r\n]*+)|(`{3,}+|~{3,}+))", re.MULTILINE)
_LINE: Final = re.compile(r"^([ \t]*+)([^\s#)\]}][^\r\n]*+)", re.MULTILINE)
_DEFINITION: Final = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]{1,9}\))?|override|virtual|sealed|open"
    r"|data|inline|unsafe|partial)[ \t]++){0,6}+"
    r"(?:class|def|defmodule|enum|fn|func|function|fun|impl|interface|module|namespace|object|protocol|record|struct|trait)[ \t]++"
    r"(?:\([^()\r\n]*+\)[ \t]*+)?+([^\s(){}:;<=,]++)"
)
_CODE_NAME: Final = re.compile(r"\.(?:c|cc|cpp|cs|ex|go|h|hpp|java|js|jsx|kt|lua|mjs|php|pl|py|pyi|rb|rs|scala|sh|swift|ts|tsx|zig)$")


class ContextFacts(NamedTuple):
    """What of a document's metadata decides about the contexts of its chunks; equal facts and equal texts have equal contexts."""

    title: str
    path: str
    content_type: ContentType

    @classmethod
    def of(cls, metadata: DocumentMetadata) -> ContextFacts:
        """Return those of a document; a title that is a file's name tells its language."""
        is_code = _CODE_NAME.search(metadata.path or metadata.title) is not None
        return cls(metadata.title, metadata.path, ContentType.CODE if is_code else metadata.content_type)


def contexts_of(text: str, spans: Sequence[Span], facts: ContextFacts) -> Sequence[tuple[str, ...]]:
    """Return the parts of each chunk's context, in the order in which they count: path, title, headings from the innermost.

    A title that the chunk holds, or that is the file's name, is left out, and so is a heading that is the title.
    """
    title, path = facts.title.strip()[:MAX_PART_CHARS], facts.path[-MAX_PART_CHARS:]
    marks = _MARKS.get(facts.content_type) if len(spans) > 1 else None
    if marks is None and not title and not path:
        return [()] * len(spans)
    chains: Iterable[tuple[str, ...]] = [()] * len(spans) if marks is None else _chains(marks(text), text, spans)
    is_file_name = f"{path.rpartition('/')[2]}.".startswith(f"{title}.")
    contexts: list[tuple[str, ...]] = []
    for (start, end), chain in zip(spans, chains, strict=True):
        is_told = not title or is_file_name or text.find(title, start, end) >= 0
        named = (path, "" if is_told else title, *(heading for heading in chain if heading != title))
        contexts.append(tuple(part for part in named if part)[:MAX_PARTS])
    return contexts


def _chains(marks: Sequence[_Mark], text: str, spans: Sequence[Span]) -> Iterator[tuple[str, ...]]:
    """Yield what each span stands under where it begins, the innermost first; a mark that it begins with ends what is as deep."""
    above: list[_Mark] = []
    place = 0
    for start, _ in spans:
        found = _FIRST_LETTER.search(text, start)
        first = found.start() if found else start
        while place < len(marks) and marks[place][0] < first:
            while above and above[-1][1] >= marks[place][1]:
                above.pop()
            if marks[place][2]:
                above.append(marks[place])
            place += 1
        own_depth = marks[place][1] if place < len(marks) and marks[place][0] == first else _DEEPEST
        yield tuple(words for _, depth, words in reversed(above) if depth < own_depth)


def _headings(text: str) -> Sequence[_Mark]:
    """Return the headings of Markdown; what stands between code fences is none."""
    marks: list[_Mark] = []
    fence = ""
    for found in _HEADING.finditer(text):
        signs, words, ticks = found.groups()
        if ticks:
            fence = ("" if ticks.startswith(fence) else fence) if fence else ticks
        elif not fence:
            marks.append((found.start(1), len(signs), words.strip(" \t#")[:MAX_PART_CHARS]))
    return marks


def _definitions(text: str) -> Sequence[_Mark]:
    """Return every line of code with its indentation, and with its name where it defines something."""
    marks: list[_Mark] = []
    for found in _LINE.finditer(text):
        defined = _DEFINITION.match(text, found.start(2), found.end(2))
        marks.append((found.start(2), len(found[1]), defined[1][:MAX_PART_CHARS] if defined else ""))
    return marks


_MARKS: Final[dict[ContentType, Callable[[str], Sequence[_Mark]]]] = {
    ContentType.CODE: _definitions,
    ContentType.ANNOTATION: _headings,
    ContentType.DOCUMENTATION: _headings,
    ContentType.RUNBOOK: _headings,
}
"""How the marks of a kind of document are found; the number sign begins a comment in the others."""
