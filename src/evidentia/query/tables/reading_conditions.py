"""The conditions of a question: comparisons with numbers and days, ranges, beginnings, and values of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.tables import phrases as p
from evidentia.query.tables.amounts import is_year
from evidentia.query.tables.drafts import Condition, Draft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.query.tables.linking import Piece

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
