"""The order that a question asks for: by which measures, and which end first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.tables import phrases as p
from evidentia.query.tables.drafts import Draft, Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.linking import Piece

_SKIPPED: Final = frozenset(
    ("the", "their", "a", "an", "of", "by", "its", "in", "order", "results", "from", "to", "first", "each", "them", "it")
)
_DIRECTIONS: Final = {p.UP: p.UP, p.DOWN: p.DOWN, p.HIGH: p.DOWN, p.LOW: p.UP}


def read_order(draft: Draft, pieces: Sequence[Piece], place: int) -> int:
    """Add the order that begins at a piece to the draft, and return the place after it."""
    direction, function = "", ""
    measures: list[Measure] = []
    while place < len(pieces):
        piece = pieces[place]
        if piece.operator in _DIRECTIONS:
            direction = direction or _DIRECTIONS[piece.operator]
        elif piece.operator in p.FUNCTIONS:
            function = piece.operator
        elif piece.names and (not measures or pieces[place - 1].operator == p.AND or pieces[place - 1].tail == ","):
            measures.append(Measure(function, piece))
            function = ""
        elif not _is_passed(piece, pieces[place + 1] if place + 1 < len(pieces) else None):
            break
        place += 1
    if not measures:
        draft.order.append((direction or p.UP, None))
    draft.order.extend((direction or p.UP, measure) for measure in measures)
    return place


def _is_passed(piece: Piece, after: Piece | None) -> bool:
    if piece.operator == p.TOP and piece.text == "first" and (after is None or after.number is None):
        return True
    if piece.operator == p.ORDER or (piece.is_word and piece.text in _SKIPPED):
        return True
    return piece.operator == p.AND and after is not None and bool(after.names)
