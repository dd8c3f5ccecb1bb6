"""Questions about tables answered by rule: every word explained, one reading, or a reason why not. No model, no chance, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.tables import PlanDeclined, TablePlan
from evidentia.query.normalisation import normalise_text
from evidentia.query.tables.choosing import NoReadingError, choose
from evidentia.query.tables.linking import MAX_WORDS, link
from evidentia.query.tables.ratios import plan_ratio
from evidentia.query.tables.reading import read
from evidentia.query.tables.schema import Schema
from evidentia.query.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.tables import OpenTable
    from evidentia.query.tables.linking import Piece

VERSION: Final = 1
MAX_QUESTION_LENGTH: Final = 1_000
_SURE: Final = 40


class SchemaPlanner:
    """Implements `TablePlanner` by schema and value linking. Thread safe; equal questions over equal tables give equal plans."""

    @property
    def identity(self) -> str:
        """Return the name of the rules."""
        return f"evidentia-schema-planner/{VERSION}"

    def plan(self, question: str, tables: Sequence[OpenTable], *, budget_ms: int) -> TablePlan | PlanDeclined:  # noqa: ARG002 - bounded by work, not by time
        """Return the one plan that explains every word, or why there is none."""
        if len(question) > MAX_QUESTION_LENGTH:
            return self._declined(f"the question is longer than {MAX_QUESTION_LENGTH} characters")
        if len(words_of(question, limit=MAX_WORDS + 1)) > MAX_WORDS:
            return self._declined(f"the question has more than {MAX_WORDS} words")
        schema = Schema(tables)
        pieces = link(normalise_text(question), schema)
        try:
            total, built = plan_ratio(pieces, schema) or choose(read(pieces), schema)
        except NoReadingError as error:
            return self._declined(str(error))
        return TablePlan(
            statement=built.statement,
            parameters=built.parameters,
            tables=tuple(table.card.table_id for table in built.tables),
            support=built.support,
            reading=tuple(_notes(pieces)),
            confidence=max(_SURE - total, 1) / _SURE,
            planner=self.identity,
        )

    def _declined(self, reason: str) -> PlanDeclined:
        return PlanDeclined(reason=reason, planner=self.identity)


def _notes(pieces: Sequence[Piece]) -> list[str]:
    """Return how each part was linked: to operators, names or values."""
    notes = []
    for piece in pieces:
        if piece.operator:
            notes.append(f"'{piece.text}': {piece.operator}")
        elif piece.names:
            name = piece.names[0]
            notes.append(f"'{piece.text}': {name.table.sql_name}{'' if name.column is None else '.' + name.column.sql_name}")
        elif piece.values:
            column = piece.values[0].column
            notes.append(f"'{piece.text}': a value of {column.table.sql_name}.{column.sql_name}")
    return notes
