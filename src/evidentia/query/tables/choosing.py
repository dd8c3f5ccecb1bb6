"""The one statement that a draft means: the cheapest of its readings; none where two are equally cheap or all are far-fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.tables.joins import AmbiguousWayError, JoinGraph
from evidentia.query.tables.resolving import TooManyReadingsError, readings
from evidentia.query.tables.scopes import CannotBuildError
from evidentia.query.tables.statements import build

if TYPE_CHECKING:
    from evidentia.query.tables.drafts import Draft
    from evidentia.query.tables.frames import Built
    from evidentia.query.tables.schema import Schema

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
