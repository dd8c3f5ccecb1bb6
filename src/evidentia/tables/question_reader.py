"""From pieces to a draft, left to right: each operator takes what it needs from what follows or went before.

Words that no rule takes and that are not mere glue are kept as unexplained; a draft with one of them is never planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.tables import phrases as p
from evidentia.tables.condition_reader import MeasureReader
from evidentia.tables.drafts import Condition, Draft, Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.tables.entity_linking import Piece


_AGAIN: Final = frozenset(("their", "its", "his", "her", "which", "what", "corresponding"))
"""Words after which things are asked for again."""
_DEGREES: Final = frozenset(("high", "large", "big", "great", "low", "small", "long"))
_ASKING_AGAIN: Final = frozenset(("give", "show", "return", "include", "list", "display", "provide", "tell", "also"))


def read(pieces: Sequence[Piece]) -> Draft:
    """Return what the pieces say."""
    draft = Draft()
    sentences = _sentences(pieces)
    for number, sentence in enumerate(sentences):
        _Reader(draft, sentence, is_first=number == 0).run()
    return draft


def _sentences(pieces: Sequence[Piece]) -> list[list[Piece]]:
    sentences: list[list[Piece]] = [[]]
    for piece in pieces:
        sentences[-1].append(piece)
        if piece.ends_sentence:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


class _Reader(MeasureReader):
    def __init__(self, draft: Draft, pieces: Sequence[Piece], *, is_first: bool) -> None:
        super().__init__(draft, pieces)
        if not is_first and pieces[0].words[0].plain not in _ASKING_AGAIN and pieces[0].operator not in {p.ORDER, p.UP, p.DOWN}:
            draft.unexplained.append(pieces[0].text)

    def run(self) -> None:
        handlers: dict[str, Callable[[], None]] = {
            p.COUNT: self.read_measure,
            p.AVG: self.read_measure,
            p.SUM: self.read_measure,
            p.MAX: self.read_measure,
            p.MIN: self.read_measure,
            p.HIGH: self.read_best,
            p.LOW: self.read_best,
            p.TOP: self.read_top,
            p.EACH: self._read_groups,
            p.ORDER: self._read_order,
            p.UP: self._read_order,
            p.DOWN: self._read_order,
            p.DISTINCT: self._read_distinct,
            p.OR: self._read_or,
            p.AND: self.skip,
            p.NOT: self._read_not,
            p.RATE: self._read_rate,
        }
        while self.place < len(self.pieces):
            piece = self.pieces[self.place]
            if piece.operator in handlers and not (piece.adjective and self._is_recency()):
                handlers[piece.operator]()
            elif piece.operator == p.RATIO:
                self.explain_not(piece)
            elif piece.adjective:
                self.read_adjective(piece)
            elif piece.operator or piece.values or piece.number is not None or piece.days:
                self._read_condition(piece)
            elif piece.names:
                self._read_noun(piece)
            else:
                self._read_word(piece)

        if self.conditions.is_alternative:
            self.draft.unexplained.append("or")
        if self.conditions.is_negated:
            self.draft.unexplained.append("not")

    def _read_rate(self) -> None:
        """Take `a month` as a word of the measure that is told by the month; it has to be used elsewhere."""
        self.draft.contexts.append(self.pieces[self.place])
        self.place += 1

    def _read_or(self) -> None:
        self.conditions.is_alternative = self.pieces[self.place].text == "or"
        self.place += 1

    def _is_recency(self) -> bool:
        """Tell whether `first` stands for a day: before a thing, not before a number."""
        after = self.piece(self.place + 1)
        return after is not None and after.number is None

    def _read_groups(self) -> None:
        place = self.after()
        is_found = False
        while (piece := self.piece(place)) is not None and piece.names:
            if self.is_part_of_name(place):
                self.draft.contexts.append(piece)
                place += 1
                continue
            self.draft.groups.append(piece)
            is_found = True
            joint = self.piece(place + 1)
            follows = self.piece(place + 2)
            if joint is not None and joint.operator == p.AND and follows is not None and follows.names and not piece.tail:
                place += 2
                continue
            place += 1
            break
        if not is_found:
            self.explain_not(self.pieces[self.place])
            return
        self.is_asking = False
        self.place = place

    def _read_order(self) -> None:
        self.place = read_order(self.draft, self.pieces, self.place)

    def _read_distinct(self) -> None:
        self.is_distinct = True
        self.draft.is_distinct = self.is_asking or self.draft.is_distinct
        self.place += 1

    def _read_not(self) -> None:
        place = self.after()
        while (
            (piece := self.piece(place)) is not None
            and piece.is_word
            and piece.text in {"have", "has", "had", "with", "having", "do", "does", "any", "in", "from"}
        ):
            place += 1
        if piece is not None and piece.names and not piece.values and piece.names[0].column is None:
            follows = self.piece(place + 1)
            if follows is None or not (follows.operator or follows.values):
                self.draft.absent.append(piece)
                self.place = place + 1
                return
        if piece is not None and any(name.column is not None and name.column.truth for name in piece.names):
            self.draft.conditions.append(Condition(piece, p.TRUTH, is_negated=True))
            self.place = place + 1
            return
        self.conditions.is_negated = True
        self.place += 1

    def _read_condition(self, piece: Piece) -> None:
        ahead = self.piece(self.place + 1)
        is_count = isinstance(piece.number, int) and not piece.unit and ahead is not None
        if is_count and ahead is not None and (ahead.operator in {p.HIGH, p.LOW} or ahead.adjective):
            self.draft.limit = int(piece.number or 1)
            self.place += 1
            return
        taken = self.conditions.read(self.place)
        if not taken:
            self.explain_not(piece)
            return
        after = self.piece(self.place + taken)
        is_adjective = bool(piece.values) and not self.draft.outputs and after is not None and bool(after.names)
        self.is_asking = self.is_asking and is_adjective
        self.place += taken

    def _read_noun(self, piece: Piece) -> None:
        self.place += 1
        if self.is_part_of_name(self.place - 1):
            self.draft.contexts.append(piece)
        elif self.is_asking and not self._is_condition_ahead():
            before = self.pieces[self.place - 2] if self.place > 1 else None
            if before is not None and before.names and not before.tail:
                self.draft.unexplained.append(f"{before.text} {piece.text}")
            self.draft.outputs.append(piece)
            self.draft.is_distinct = self.draft.is_distinct or self.is_distinct
            self.is_distinct = False
        else:
            self._own(piece)
            self.draft.contexts.append(piece)

    def _own(self, owner: Piece) -> None:
        """Let what was asked for `of` a table be columns of that table, where it has such columns."""
        tables = [name.table for name in owner.names if name.column is None and not name.cost]
        back = self.place - 2
        while back >= 0 and self.pieces[back].is_word and self.pieces[back].text in {"the", "all", "a", "an", "any"}:
            back -= 1
        if not tables or back < 1 or self.pieces[back].text != "of" or self.pieces[back - 1] not in self.draft.outputs:
            return
        for place, output in enumerate(self.draft.outputs):
            names = tuple(name for name in output.names if name.table in tables)
            self.draft.outputs[place] = output._replace(names=names or output.names)

    def _is_condition_ahead(self) -> bool:
        """Tell whether a noun is what a condition is about: `salary over`, and after `who`, `hired in 2020`."""
        place = self.place
        while (piece := self.piece(place)) is not None and piece.is_word and piece.text in {"in", "on", "of", "is", "at"}:
            place += 1
        if piece is None:
            return False
        if piece.operator in {*p.COMPARISONS, p.BETWEEN}:
            return bool(self.draft.outputs) or self.draft.is_person
        return (bool(self.draft.outputs) or self.draft.is_person) and (piece.number is not None or piece.days is not None)

    def _read_word(self, piece: Piece) -> None:
        word = piece.text
        before = self.pieces[self.place - 1] if self.place else None
        after = self.piece(self.after())
        if word == "by" and after is not None and after.names and (self._groups_by(before) or self.direction):
            self._read_by(after)
            return
        if word == "terms" and self.direction and (after is not None and after.names):
            self._read_by(after)
            return
        if word == "who" and not (self.draft.outputs or self.draft.measures):
            self.draft.is_person = True
        if word in _AGAIN and (self.place == 0 or word in {"their", "its"} or (before is not None and before.operator == p.AND)):
            self.is_asking = True
        elif word in p.CONTEXT_STARTS and (self.draft.outputs or self.draft.measures):
            self.is_asking = False
        is_opening = not (self.draft.outputs or self.draft.measures) and (word in p.OPENING or self._asks_how_much(word, before, after))
        if not (is_opening or word in p.GLUE or word in {"terms"}):
            self.draft.unexplained.append(word)
        self.place += 1

    def _asks_how_much(self, word: str, before: Piece | None, after: Piece | None) -> bool:
        """Tell whether `how high` and the like ask for a measure that is named itself: the deposit, and not a mountain."""
        return word in _DEGREES and before is not None and before.text == "how" and after is not None and after.is_measure

    def _groups_by(self, before: Piece | None) -> bool:
        return bool(self.draft.measures) and before is not None and bool(before.names or before.values or before.number is not None)

    def _read_by(self, noun: Piece) -> None:
        if self.direction and self.draft.best is None:
            self.set_best(self.direction, Measure("", noun))
            self.place = self.after() + 1
            return
        self._read_groups()


# --- reading order ---
# The order that a question asks for: by which measures, and which end first.

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
