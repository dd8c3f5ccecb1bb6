"""Where a reader stands in a sentence, and what it knows so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.tables import phrases as p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.linking import Piece

SKIPPED: Final = frozenset(
    ("the", "a", "an", "all", "any", "their", "its", "of", "there", "is", "are", "his", "her", "different", "for", "total", "corresponding")
)
"""Words that say nothing between an operator and what it takes."""


class Cursor:
    """A place in the pieces of one sentence."""

    def __init__(self, draft: Draft, pieces: Sequence[Piece]) -> None:
        self.draft = draft
        self.pieces = pieces
        self.place = 0
        self.is_asking = True
        self.is_distinct = False
        self.direction = ""

    def skip(self) -> None:
        """Go on by one piece."""
        self.place += 1

    def explain_not(self, piece: Piece) -> None:
        """Note that nothing explains a piece, and go on."""
        self.draft.unexplained.append(piece.text)
        self.place += 1

    def after(self, *, skipping: bool = True) -> int:
        """Return the place of the next piece that is more than an article."""
        place = self.place + 1
        while skipping and place < len(self.pieces) and self.pieces[place].is_word and self.pieces[place].text in SKIPPED:
            place += 1
        return place

    def piece(self, place: int) -> Piece | None:
        """Return the piece at a place; None after the last."""
        return self.pieces[place] if place < len(self.pieces) else None

    def is_part_of_name(self, place: int) -> bool:
        """Tell whether a noun is followed by another that says what is meant: of `business categories`, categories."""
        piece, after, then = self.pieces[place], self.piece(place + 1), self.piece(place + 2)
        if piece.tail or after is None or not after.names or after.values or after.operator:
            return False
        is_verb = after.text.endswith("ed") or (then is not None and then.operator in {*p.COMPARISONS, p.BETWEEN})
        is_plural = piece.text.endswith("s") and not piece.text.endswith("ss")
        return not is_verb and not is_plural
