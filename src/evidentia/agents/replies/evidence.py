"""What a unit of a reply draws on: how much of what it says, beyond the words of the question, stands in each source.

A unit draws on a source when at least half of its new content terms stand there, two of them at least, or one with a digit. The source it
draws on most shares the most terms; the first returned wins a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.citations import DocumentCitation, TableCitation
from evidentia.agents.replies.words import NO_TERMS, Terms, is_strong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.citations import Citation
    from evidentia.agents.results import Piece, ResultFacts

LEAST_SHARED: Final = 2
_CLEARLY: Final = 3


class Source(NamedTuple):
    """A piece of text, or the rows of one sheet: what a citation can name."""

    file: str
    filename: str
    pages: tuple[int, ...]
    sheet: int | None
    terms: Terms
    piece: Piece | None = None

    def is_named_by(self, citation: Citation) -> bool:
        """Tell whether a citation names this source."""
        if isinstance(citation, DocumentCitation):
            return self.sheet is None and citation.file == self.file and citation.page in self.pages
        if isinstance(citation, TableCitation):
            return citation.sheet == self.sheet and citation.file == self.file
        return self.piece is not None and citation.url.rstrip("/") in self.piece.text


class Drawn(NamedTuple):
    """How much of a unit stands in one source."""

    source: Source
    shared: int
    new: int

    @property
    def is_clear(self) -> bool:
        """Tell whether it is hardly a matter of chance: three terms or more."""
        return self.shared >= _CLEARLY


def sources_of(results: Sequence[ResultFacts]) -> tuple[Source, ...]:
    """Return everything that was returned, in order."""
    found: list[Source] = []
    for result in results:
        found += [Source(piece.file, piece.filename, piece.pages, None, piece.terms, piece) for piece in result.pieces]
        names = dict(result.files.values())
        found += [Source(file, names.get(file, ""), (), sheet, terms) for (file, sheet), (_, terms) in result.sheets.items()]
    return tuple(found)


def drawn_on(terms: Terms, sources: Sequence[Source], *, known: Terms = NO_TERMS) -> tuple[Drawn, ...]:
    """Return the sources that a text draws on, the one it shares most with first; what the question says does not count."""
    new = terms - known
    found: list[tuple[int, int, Drawn]] = []
    for place, source in enumerate(sources):
        shared = new & source.terms
        count = len(shared)
        if count * 2 >= len(new) and (count >= LEAST_SHARED or (count and any(is_strong(term) for term in shared))):
            found.append((-count, place, Drawn(source, count, len(new))))
    return tuple(drawn for _, _, drawn in sorted(found, key=lambda entry: entry[:2]))


def shares(terms: Terms, source: Source, *, known: Terms = NO_TERMS) -> int:
    """Return how many new content terms a text shares with a source."""
    return len((terms - known) & source.terms)
