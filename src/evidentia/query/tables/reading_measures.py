"""The measures of a question: functions of columns, numbers of rows, and which end of a measure is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.query.tables import phrases as p
from evidentia.query.tables.drafts import Measure
from evidentia.query.tables.reading_conditions import ConditionReader
from evidentia.query.tables.reading_cursor import SKIPPED, Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.linking import Piece


class MeasureReader(Cursor):
    """Reads measures into the draft of its cursor."""

    def __init__(self, draft: Draft, pieces: Sequence[Piece]) -> None:
        super().__init__(draft, pieces)
        self.conditions = ConditionReader(draft, pieces)

    def read_measure(self) -> None:
        """Read one or more functions and the noun they are of: `average, minimum and maximum age`, `how many orders`."""
        functions: list[str] = []
        place = self.place
        while (piece := self.piece(place)) is not None:
            if piece.operator in p.FUNCTIONS:
                functions.append(piece.operator)
            elif not (piece.operator in {p.AND, p.DISTINCT} or (piece.is_word and piece.text in SKIPPED)):
                break
            self.is_distinct = self.is_distinct or piece.operator == p.DISTINCT
            place += 1
        place = self._skip_before_noun(place)
        noun = self.piece(place)
        if noun is None or not noun.names:
            self.explain_not(self.pieces[self.place])
            return
        function, *others = functions
        is_extreme = function in {p.MAX, p.MIN} and not self.is_asking
        if is_extreme:
            self.draft.best = (p.HIGH if function == p.MAX else p.LOW, Measure("", noun))
        elif function != p.COUNT and others == [p.COUNT]:
            self.draft.measures.append(Measure(function, noun))
        else:
            self.draft.measures.extend(Measure(each, noun, is_distinct=self.is_distinct) for each in functions)
        self.is_distinct = self.is_asking = False
        self.place = place + 1

    def _skip_before_noun(self, place: int) -> int:
        """Return the place of the noun; a value before it is a condition, and a noun before it the first part of a name."""
        while (piece := self.piece(place)) is not None:
            after = self.piece(place + 1)
            if piece.names and self.is_part_of_name(place):
                self.draft.contexts.append(piece)
                place += 1
            elif piece.values and not piece.names and not piece.tail and after is not None and after.names:
                place += self.conditions.read(place) or 1
            else:
                break
        return place

    def read_best(self) -> None:
        """Read the end of a measure: `the highest price` alone is a maximum, `with the highest price` says which rows."""
        direction = self.pieces[self.place].operator
        place, function = self.after(), ""
        while (piece := self.piece(place)) is not None and (piece.operator in p.FUNCTIONS or (piece.is_word and piece.text in SKIPPED)):
            function = piece.operator if piece.operator in {p.COUNT, p.AVG, p.SUM} and not function else function
            place += 1
        if piece is None or not piece.names:
            self.explain_not(self.pieces[self.place])
            return
        is_number = piece.is_measure
        self.place = place + 1
        if not self.draft.outputs and not self.draft.measures and not is_number and not self.draft.is_person:
            self.draft.outputs.append(piece)
            self.direction = direction
            self.draft.limit = self.draft.limit or 1
            self.is_asking = False
        elif not self.draft.outputs and not self.draft.measures and not function and not self.draft.is_person:
            self.draft.measures.append(Measure(p.MAX if direction == p.HIGH else p.MIN, piece))
            self.is_asking = False
        else:
            self.set_best(direction, Measure(function, piece))

    def set_best(self, direction: str, measure: Measure) -> None:
        """Note which end of which measure is asked for; two of them are too many."""
        if self.draft.best is not None and self.draft.best != (direction, measure):
            self.draft.unexplained.append("more than one superlative")
        self.draft.best = (direction, measure)

    def read_adjective(self, piece: Piece) -> None:
        """Read an adjective that names a measure: the cheapest, the latest."""
        direction = p.ADJECTIVES[piece.adjective][0] if piece.adjective in p.ADJECTIVES else p.RECENCY[piece.adjective]
        noun = self.piece(self.place + 1)
        if noun is not None and noun.is_measure:
            self._read_adjective_measure(piece, noun, direction)
            return
        self.set_best(direction, Measure("", None, adjective=piece.adjective))
        self.place += 1

    def _read_adjective_measure(self, piece: Piece, noun: Piece, direction: str) -> None:
        """Read an adjective before the measure itself: of days, the oldest is the first."""
        if any(name.column is not None and name.column.is_temporal for name in noun.names):
            if piece.adjective not in p.RECENCY:
                self.draft.unexplained.append(piece.adjective)
            direction = p.RECENCY.get(piece.adjective, direction)
        if self.draft.outputs or self.draft.is_person:
            self.set_best(direction, Measure("", noun))
        else:
            self.draft.measures.append(Measure(p.MAX if direction == p.HIGH else p.MIN, noun))
            self.is_asking = False
        self.place += 2

    def read_top(self) -> None:
        """Read how many rows are wanted."""
        number = self.piece(self.place + 1)
        if number is None or not isinstance(number.number, int) or number.number < 1 or number.unit:
            self.explain_not(self.pieces[self.place])
            return
        self.draft.limit = number.number
        self.direction = p.HIGH
        self.place += 2
