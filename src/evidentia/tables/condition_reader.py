"""The measures of a question: functions of columns, numbers of rows, and which end of a measure is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.tables import phrases as p
from evidentia.tables.drafts import Condition, Draft, Measure
from evidentia.tables.phrases import is_year

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.tables.entity_linking import Piece


# --- reading cursor ---
# Where a reader stands in a sentence, and what it knows so far.

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


# --- reading measures ---


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


# --- reading conditions ---
# The conditions of a question: comparisons with numbers and days, ranges, beginnings, and values of cells.

_QUOTES: Final = (
    "\"' \N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
)
_ARTICLES: Final = frozenset(("the", "a", "an", "year", "years", "of", "than", "in"))
_MORE: Final = {"more": p.LEAST, "higher": p.LEAST, "above": p.LEAST, "later": p.LEAST, "over": p.LEAST, "greater": p.LEAST}
_LESS: Final = {"less": p.MOST, "fewer": p.MOST, "lower": p.MOST, "below": p.MOST, "earlier": p.MOST, "under": p.MOST}
_OR_SO: Final = _MORE | _LESS


class ConditionReader:
    """Reads conditions from the pieces of one sentence into a draft."""

    def __init__(self, draft: Draft, pieces: Sequence[Piece]) -> None:
        self._draft = draft
        self._pieces = pieces
        self.is_negated = False
        self.is_alternative = False
        self._alternatives = 0

    def read(self, place: int) -> int:
        """Add the condition that begins at a piece; return how many pieces it took, 0 where it cannot be read."""
        piece = self._pieces[place]
        if piece.operator == p.BETWEEN:
            return self._range(place)
        if piece.operator == p.START:
            return self._beginning(place)
        if piece.operator in p.COMPARISONS:
            return self._comparison(place)
        if piece.values:
            return self._values(place)
        if piece.number is not None or piece.days:
            return self._equality(place)
        return 0

    def _add(self, condition: Condition) -> None:
        if condition.noun is not None and any(measure.noun is condition.noun for measure in self._draft.measures) and not condition.values:
            # `an average price over 100` compares a function, which no filter of rows does.
            self._draft.unexplained.append(condition.text or condition.noun.text)
        alternative = 0
        if self.is_alternative and self._draft.conditions:
            last = self._draft.conditions[-1]
            alternative = last.alternative or self._next_alternative()
            self._draft.conditions[-1] = last._replace(alternative=alternative)
        self._draft.conditions.append(condition._replace(is_negated=self.is_negated, alternative=alternative))
        self.is_negated = self.is_alternative = False

    def _next_alternative(self) -> int:
        self._alternatives += 1
        return self._alternatives

    def _skip(self, place: int) -> int:
        while place < len(self._pieces) and self._pieces[place].is_word and self._pieces[place].text in _ARTICLES:
            place += 1
        return place

    def _noun_before(self, place: int) -> Piece | None:
        """Return the noun that a condition follows with nothing but small words between."""
        back = place - 1
        while back >= 0 and (
            (self._pieces[back].is_word and self._pieces[back].text in p.BEFORE_VALUE) or self._pieces[back].operator == p.NOT
        ):
            back -= 1
        if back < 0 or not self._pieces[back].names or (self._pieces[back].values and not self._pieces[back].names):
            return None
        return self._pieces[back]

    def _comparison(self, place: int) -> int:
        operator = self._pieces[place].operator
        at = self._skip(place + 1)
        if at >= len(self._pieces):
            return 0
        amount = self._pieces[at]
        if amount.days:
            return self._compare_days(place, at)
        if amount.number is None:
            return 0
        is_time = self._pieces[place].words[0].plain in p.TIMELIKE
        noun = self._measured_before(place)
        after = self._pieces[at + 1] if at + 1 < len(self._pieces) else None
        length = at + 1 - place
        is_counted = after is not None and bool(after.names) and not after.operator
        if noun is None and not is_time and is_counted and not amount.tail and not amount.unit:
            self._add(Condition(after, operator, numbers=(amount.number,), is_count=True, text=amount.text))
            return length + 1
        if noun is None and not is_time and not amount.unit:
            return 0
        self._add(Condition(noun, operator, numbers=(amount.number,), unit=amount.unit, text=amount.text))
        return length

    def _measured_before(self, place: int) -> Piece | None:
        noun = self._noun_before(place)
        return noun if noun is not None and noun.is_measure else None

    def _compare_days(self, place: int, at: int) -> int:
        noun = self._measured_before(place)
        self._add(Condition(noun, self._pieces[place].operator, days=self._pieces[at].days, text=self._pieces[at].text))
        return at + 1 - place

    def _range(self, place: int) -> int:
        first = self._skip(place + 1)
        joint = first + 1
        second = self._skip(joint + 1)
        if second >= len(self._pieces) or self._pieces[joint].operator != p.AND:
            return 0
        low, high = self._pieces[first], self._pieces[second]
        noun = self._measured_before(place)
        if low.days and high.days:
            days = low.days._replace(end=high.days.end)
            self._add(Condition(noun, p.EQUAL, days=days, text=f"{low.text} to {high.text}"))
        elif low.number is not None and high.number is not None and (noun is not None or (is_year(low.number) and is_year(high.number))):
            numbers = (low.number, high.number)
            self._add(Condition(noun, p.BETWEEN, numbers=numbers, unit=high.unit or low.unit, text=f"{low.text} to {high.text}"))
        else:
            return 0
        return second + 1 - place

    def _beginning(self, place: int) -> int:
        noun = self._noun_before(place)
        letters = self._pieces[place + 1] if place + 1 < len(self._pieces) else None
        if noun is None or letters is None or letters.operator:
            return 0
        text = letters.words[0].text.strip(_QUOTES)
        if not text or len(letters.words) > 1 or any(sign in text for sign in "%_\\"):
            return 0
        self._add(Condition(noun, p.START, text=text))
        return 2

    def _equality(self, place: int) -> int:
        """Read a number or a day after a noun (`id 3`, `hired in 2020`), or a year or a day alone."""
        piece = self._pieces[place]
        after = self._pieces[place + 2] if place + 2 < len(self._pieces) else None
        is_open = place + 1 < len(self._pieces) and self._pieces[place + 1].operator == p.OR and after is not None and after.text in _OR_SO
        operator = _OR_SO[after.text] if is_open and after is not None else p.EQUAL
        taken = 3 if is_open else 1
        noun = self._measured_before(place) or (None if is_year(piece.number) or piece.days else self._noun_before(place))
        if is_year(piece.number) and noun is not None and not noun.may_be_year:
            noun = None
        if noun is None and not piece.days and not is_year(piece.number):
            return 0
        if piece.days:
            self._add(Condition(noun, operator, days=piece.days, text=piece.text))
        elif piece.number is not None:
            self._add(Condition(noun, operator, numbers=(piece.number,), unit=piece.unit, text=piece.text))
        return taken

    def _values(self, place: int) -> int:
        """Read values joined by `or`, `and` or commas; a value in brackets after another says the same again."""
        first = self._pieces[place]
        noun = self._noun_before(place)
        before = self._pieces[place - 1] if place else None
        preposition = before.text if before is not None and before.text in {"from", "to"} else ""
        alternatives = [first.values]
        texts = [first.text]
        end = place + 1
        while end < len(self._pieces):
            piece = self._pieces[end]
            after = self._pieces[end + 1] if end + 1 < len(self._pieces) else None
            if piece.values and ")" in piece.tail and not self._pieces[end - 1].tail:
                alternatives[-1] = (*piece.values, *(value._replace(cost=value.cost + 1) for value in alternatives[-1]))
                end += 1
            elif (
                piece.operator in self._joints(end)
                and after is not None
                and after.values
                and not after.names
                and self._share(alternatives[-1], after)
            ):
                alternatives.append(after.values)
                texts.append(after.text)
                end += 2
            elif piece.values and not piece.names and self._pieces[end - 1].tail == "," and self._share(alternatives[-1], piece):
                alternatives.append(piece.values)
                texts.append(piece.text)
                end += 1
            else:
                break
        self._add(Condition(noun, p.EQUAL, values=tuple(alternatives), preposition=preposition, text=", ".join(texts)))
        return end - place

    def _joints(self, place: int) -> frozenset[str]:
        """Return what joins values of which one is enough; after `both`, `and` asks for all of them."""
        is_both = any(piece.text == "both" for piece in self._pieces[:place])
        return frozenset((p.OR,)) if is_both else frozenset((p.OR, p.AND))

    @staticmethod
    def _share(values: Sequence[object], piece: Piece) -> bool:
        columns = {value.column for value in piece.values}
        return any(getattr(value, "column", None) in columns for value in values)
