"""Questions about tables answered by rule: every word explained, one reading, or a reason why not. No model, no chance, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.ports import TablePlanner
from evidentia.contracts.tables import SOURCE_COLUMN, OpenTable, PlanDeclined, TablePlan
from evidentia.query.normalisation import normalise_text
from evidentia.query.words import words_of
from evidentia.tables import phrases as p
from evidentia.tables.drafts import Draft, Measure
from evidentia.tables.entity_linking import MAX_WORDS, Piece, link
from evidentia.tables.filters import quote
from evidentia.tables.joins import AmbiguousWayError, CannotBuildError, JoinGraph
from evidentia.tables.question_reader import read
from evidentia.tables.readings import TooManyReadingsError, readings
from evidentia.tables.schema import Schema
from evidentia.tables.statements import Built, build

if TYPE_CHECKING:
    from collections.abc import Sequence


VERSION: Final = 1
MAX_QUESTION_LENGTH: Final = 1_000
_SURE: Final = 40


class SchemaPlanner(TablePlanner):
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


# --- ratios ---
# Ratios: of two numbers of rows or sums, each planned by itself, or of two columns of each row.

_WHOLE: Final = frozenset(("all", "total", "total number of"))


def plan_ratio(pieces: Sequence[Piece], schema: Schema) -> tuple[int, Built] | None:
    """Return the statement of a ratio; None where the question asks for none, NoReadingError where it cannot be read."""
    place = next((number for number, piece in enumerate(pieces) if piece.operator == p.RATIO), None)
    if place is None:
        return None
    if any(not (piece.is_word and piece.text in p.OPENING) for piece in pieces[:place]):
        raise NoReadingError(f"'{pieces[place].text}' does not stand where a ratio is asked for")
    is_share = pieces[place].text != "ratio"
    first, second, is_whole = _sides(pieces[place + 1 :], is_share=is_share)
    upper, lower = read(first), read(second)
    if is_share and not second:
        lower = _whole_of(upper)
    columns = _columns(upper, lower)
    if columns is not None:
        return _of_columns(columns, lower, schema)
    if upper.groups or lower.groups or upper.order or lower.order or upper.best or lower.best:
        raise NoReadingError("a ratio for each of several groups is not planned")
    shared = lower.conditions if is_whole else lower.conditions[len(upper.conditions) :]
    upper.conditions.extend(shared)
    return _of_numbers(_counted(upper), _counted(lower), schema, is_percent=pieces[place].text.startswith("percent"))


def _whole_of(part: Draft) -> Draft:
    """Return what a part is a part of: the same things without conditions."""
    things = [*part.outputs, *(measure.noun for measure in part.measures if measure.noun is not None)]
    if len(things) != 1 or not (part.conditions or part.contexts) or part.groups:
        raise NoReadingError("it is not clear what the share is of")
    return Draft(outputs=things)


def _sides(pieces: Sequence[Piece], *, is_share: bool) -> tuple[Sequence[Piece], Sequence[Piece], bool]:
    """Return what stands above and below the line, and whether below is the whole of which above is a part."""
    texts = [piece.text for piece in pieces]
    if texts[:1] != ["of"]:
        raise NoReadingError("it is not clear what the ratio is of")
    for place in range(2, len(texts) - 1):
        if texts[place] == "to" or texts[place - 1 : place + 1] == ["out", "of"]:
            end = place if texts[place] == "to" else place - 1
            rest = place + 1
            is_whole = False
            while rest < len(texts) and (texts[rest] in _WHOLE or texts[rest] == "the"):
                is_whole = is_whole or texts[rest] in _WHOLE
                rest += 1
            return pieces[1:end], pieces[rest:], is_whole
    if is_share:
        return pieces[1:], (), False
    raise NoReadingError("it is not clear what the ratio is of")


def _counted(draft: Draft) -> Draft:
    """Return the draft of one number: what is asked for is counted."""
    if not draft.measures and len(draft.outputs) == 1 and not draft.outputs[0].is_measure:
        draft.measures.append(Measure(p.COUNT, draft.outputs.pop()))
    if len(draft.measures) != 1 or draft.outputs:
        raise NoReadingError("it is not clear what the ratio is of")
    return draft


def _of_numbers(upper: Draft, lower: Draft, schema: Schema, *, is_percent: bool) -> tuple[int, Built]:
    above_cost, above = choose(upper, schema)
    below_cost, below = choose(lower, schema)
    factor = "100.0 * " if is_percent else ""
    text = f"SELECT {factor}CAST(({above.statement}) AS REAL) / NULLIF(({below.statement}), 0) AS {quote('ratio')}"
    built = Built(
        statement=text,
        parameters=(*above.parameters, *below.parameters),
        support=f"{above.support} UNION ALL {below.support}",
        tables=tuple(dict.fromkeys([*above.tables, *below.tables])),
        effort=above.effort + below.effort,
        names=("ratio",),
    )
    return max(above_cost, below_cost), built


def _columns(upper: Draft, lower: Draft) -> tuple[Piece, Piece] | None:
    """Return the two columns where the ratio is one of each row."""
    sides = (upper.outputs, lower.outputs)
    if len(lower.groups) != 1 or any(len(side) != 1 for side in sides) or upper.conditions or lower.conditions or upper.groups:
        return None
    numeric = [tuple(name for name in side[0].names if name.column is not None and name.column.is_numeric) for side in sides]
    if not all(numeric) or upper.measures or lower.measures or any(side[0].names[0].column is None for side in sides):
        return None
    return upper.outputs[0]._replace(names=numeric[0]), lower.outputs[0]._replace(names=numeric[1])


def _of_columns(columns: tuple[Piece, Piece], lower: Draft, schema: Schema) -> tuple[int, Built]:
    draft = Draft(outputs=[*lower.groups, *columns], contexts=lower.contexts, unexplained=lower.unexplained)
    cost, built = choose(draft, schema)
    if built.support or len(built.names) != 3 or len(built.tables) > 1:  # noqa: PLR2004 - what a row is called, and two numbers
        raise NoReadingError("it is not clear what the ratio is of")
    label, above, below = (quote(name) for name in built.names)
    source = quote(SOURCE_COLUMN)
    text = f"SELECT {label}, CAST({above} AS REAL) / NULLIF({below}, 0) AS {quote('ratio')}, {source} FROM ({built.statement})"  # noqa: S608 - quoted names
    return cost, built._replace(statement=text, names=(built.names[0], "ratio"))


# --- choosing ---
# The one statement that a draft means: the cheapest of its readings; none where two are equally cheap or all are far-fetched.

MAX_BUILT: Final = 400
MAX_COST: Final = 24
"""A statement that costs more is far-fetched; chosen on the databases that the benchmark calls seen."""


class NoReadingError(Exception):
    """A question has no statement; the argument says why."""


def choose(draft: Draft, schema: Schema) -> tuple[int, Built]:
    """Return the cheapest statement with its cost; NoReadingError where there is none or more than one."""
    if draft.unexplained:
        words = ", ".join(f"'{word}'" for word in draft.unexplained[:5])
        raise NoReadingError(f"nothing in the tables explains {words}")
    graph = JoinGraph(schema)
    try:
        ordered = sorted(readings(draft, schema), key=lambda reading: reading.cost)
    except TooManyReadingsError:
        raise NoReadingError("the words may mean too many things") from None
    best: list[tuple[int, Built]] = []
    reason = "no reading of the question fits the tables"
    for reading in ordered[:MAX_BUILT]:
        if best and 2 * reading.cost > best[0][0]:
            break
        try:
            built = build(draft, reading, graph)
        except CannotBuildError as error:
            reason = str(error)
            continue
        except AmbiguousWayError:
            reason = "the tables hang together in several ways and the question does not say which is meant"
            continue
        total = 2 * reading.cost + built.effort
        if not best or total < best[0][0]:
            best = [(total, built)]
        elif total == best[0][0]:
            best.append((total, built))
    return _only(best, reason)


def _only(best: list[tuple[int, Built]], reason: str) -> tuple[int, Built]:
    if not best:
        raise NoReadingError(reason)
    if len({(built.statement, built.parameters) for _, built in best}) > 1:
        raise NoReadingError("the question can be read in several ways")
    if best[0][0] > MAX_COST:
        raise NoReadingError("the only reading of the question is far-fetched")
    return best[0]
