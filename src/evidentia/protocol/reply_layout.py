"""A reply as units: each paragraph, list, table or quote with the citations and images that stand at it, and whether it is a supplement.

Units are counted from 1; headings, image lines and citation lines are not units. Tags inside code are text, not citations.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from evidentia.contracts.layout import IMAGE_SCHEME
from evidentia.protocol.citations import FoundCitation, find_citations
from evidentia.protocol.sentence_roles import LEAST_TERMS, RoleSentence, SentenceRole, Terms, read_sentences
from evidentia.text.blocks import TAG, Block, BlockKind, blocks, image_spans, without_mark

_NAME: Final = r"(?:supplement(?:ary)?|general knowledge)(?: (?:information|notes?|background|knowledge))?(?: ?\([^()\n]{0,60}\))?"
_MARK: Final = re.compile(
    rf"[\s*_#>]*+(?:{_NAME}[*_ ]*+[:\u2014\u2013]|(?:from|as|by way of|based on) (?:my |a matter of |some )?(?:own |general )"
    r"(?:knowledge|background)\b)",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(rf"[\s#*_]*+{_NAME}[\s#*_:=-]*+", re.IGNORECASE)
_LABEL: Final = re.compile(r"[\s*_]*(?:sources?|references?|citations?|cited|see|evidence)?[\s*_:.,;()\[\]-]*", re.IGNORECASE)
_REST: Final = re.compile(r"[^\w]*+")
_WHOLE: Final = frozenset({BlockKind.LIST, BlockKind.TABLE})
_SPACED: Final = frozenset({BlockKind.HEADING, BlockKind.BREAK})


class PlacedCitation(NamedTuple):
    """A tag and how it stands at its unit."""

    tag: FoundCitation
    is_inside: bool = False
    """Words of the same sentence or item stand behind it."""
    has_own_line: bool = False
    item: int | None = None
    """The item of the list at whose end it stands."""


class ReplyUnit(msgspec.Struct, kw_only=True, dict=True):
    """A paragraph, list, table, quote or piece of code of a reply."""

    number: int
    kind: BlockKind
    start: int
    end: int
    text: str
    """Without tags, images and list marks."""
    raw: str
    is_supplement: bool = False
    cited: list[PlacedCitation] = msgspec.field(default_factory=list)
    images: list[str] = msgspec.field(default_factory=list)
    """Those inside it or right behind it."""
    leads: list[str] = msgspec.field(default_factory=list)
    """Images right before it."""

    @cached_property
    def sentences(self) -> tuple[RoleSentence, ...]:
        """Return its sentences."""
        return () if self.kind is BlockKind.CODE else read_sentences(self.text)

    @cached_property
    def claims(self) -> tuple[RoleSentence, ...]:
        """Return those of its sentences that assert something; lists and tables assert as a whole, single words included."""
        if self.kind not in _WHOLE:
            return tuple(sentence for sentence in self.sentences if sentence.role is SentenceRole.CLAIM)
        parts = tuple(sentence for sentence in self.sentences if sentence.role in {SentenceRole.CLAIM, SentenceRole.NOTHING})
        return parts if len(Terms().union(*(part.terms for part in parts))) >= LEAST_TERMS else ()

    @cached_property
    def terms(self) -> Terms:
        """Return the content of what it asserts."""
        return Terms().union(*(claim.terms for claim in self.claims))


class ReplyLayout(NamedTuple):
    """A reply as it is laid out."""

    units: tuple[ReplyUnit, ...]
    strays: tuple[PlacedCitation, ...]
    """Tags that belong to no unit: behind a heading, or before everything."""
    stray_images: tuple[str, ...]
    tags: tuple[FoundCitation, ...]
    reply: str

    @property
    def prose(self) -> str:
        """Return the reply without tags."""
        return TAG.sub(" ", self.reply)


def lay_out(reply: str) -> ReplyLayout:
    """Return the units of a reply."""
    return _Builder(reply).build()


def is_marked(text: str) -> bool:
    """Tell whether a text begins as a supplement does."""
    return _MARK.match(text) is not None


class _Builder:
    """Goes over the blocks once; remembers the unit that a line of tags or images belongs to."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self._units: list[ReplyUnit] = []
        self._strays: list[PlacedCitation] = []
        self._stray_images: list[str] = []
        self._open: ReplyUnit | None = None
        self._waiting: list[str] = []
        self._is_supplement = False
        self._tags = find_citations(reply)
        self._place = 0

    def build(self) -> ReplyLayout:
        """Return the layout."""
        tags: list[FoundCitation] = []
        for block in blocks(self._reply):
            inside = self._tags_until(block.end)
            if block.kind is BlockKind.CODE:
                inside = []
            tags += inside
            self._take(block, inside)
        self._stray_images += self._waiting
        return ReplyLayout(tuple(self._units), tuple(self._strays), tuple(self._stray_images), tuple(tags), self._reply)

    def _tags_until(self, end: int) -> list[FoundCitation]:
        found: list[FoundCitation] = []
        while self._place < len(self._tags) and self._tags[self._place].start < end:
            found.append(self._tags[self._place])
            self._place += 1
        return found

    def _take(self, block: Block, tags: list[FoundCitation]) -> None:
        if block.kind in _SPACED:
            self._open = None
            self._strays += [PlacedCitation(tag) for tag in tags]
            self._is_supplement = block.kind is BlockKind.HEADING and _TITLE.fullmatch(block.text) is not None
        elif block.kind is BlockKind.CITATION:
            self._attach([PlacedCitation(tag, has_own_line=True) for tag in tags])
        elif block.kind is BlockKind.IMAGE:
            self._show(_hashes(block.text))
        elif tags and block.kind is BlockKind.PARAGRAPH and _LABEL.fullmatch(TAG.sub("", block.text)):
            # `Sources: ...` is a line of citations; with a label of its own it still stands right behind the unit before it.
            self._attach([PlacedCitation(tag, has_own_line=True) for tag in tags])
        else:
            self._add(block, tags)

    def _attach(self, cited: list[PlacedCitation]) -> None:
        (self._open.cited if self._open else self._strays).extend(cited)

    def _show(self, images: list[str]) -> None:
        if self._open:
            self._open.images += images
        self._waiting += images

    def _add(self, block: Block, tags: list[FoundCitation]) -> None:
        is_supplement = block.kind is not BlockKind.CODE and (self._is_supplement or is_marked(block.text))
        unit = ReplyUnit(
            number=len(self._units) + 1,
            kind=block.kind,
            start=block.start,
            end=block.end,
            text=_clean(block),
            raw=block.text,
            is_supplement=is_supplement,
            cited=[_place_of(tag, block) for tag in tags],
            images=_hashes(block.text),
            leads=self._waiting,
        )
        if self._open is None:
            self._stray_images += self._waiting
        self._waiting = []
        self._units.append(unit)
        self._open = unit


def _hashes(text: str) -> list[str]:
    return [target.removeprefix(IMAGE_SCHEME) for _, _, target in image_spans(text) if target.startswith(IMAGE_SCHEME)]


def _clean(block: Block) -> str:
    """Return the words of a block: without tags and images, each item and each row a line of its own."""
    text = block.text
    if "<" in text:
        text = TAG.sub(" ", text)
    for start, end, _ in reversed(image_spans(text)):
        text = text[:start] + " " + text[end:]
    if block.kind is BlockKind.LIST:
        return "\n\n".join(without_mark(line) for line in text.split("\n"))
    if block.kind is BlockKind.TABLE:
        rows = [row.replace("|", " ") for row in text.split("\n") if row.strip(" |:-\t")]
        return "\n\n".join(" ".join(row.split()) for row in rows)
    if block.kind is BlockKind.QUOTE:
        return "\n".join(line.lstrip().removeprefix(">").lstrip() for line in text.split("\n"))
    return text


def _place_of(tag: FoundCitation, block: Block) -> PlacedCitation:
    end = block.end
    item = None
    if block.kind is BlockKind.LIST:
        for place, span in enumerate(block.items):
            if span.start <= tag.start < span.end:
                item, end = place, span.end
    behind = TAG.sub("", block.text[tag.end - block.start : end - block.start])
    is_inside = block.kind is BlockKind.TABLE or _REST.fullmatch(_without_images(behind)) is None
    return PlacedCitation(tag, is_inside=is_inside, item=item)


def _without_images(text: str) -> str:
    for start, end, _ in reversed(image_spans(text)):
        text = text[:start] + text[end:]
    return text
