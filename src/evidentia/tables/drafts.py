"""A question as far as its words go: what is asked for, counted, grouped, compared and ordered, with readings still open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evidentia.tables.entity_linking import Piece, Value
    from evidentia.tables.phrases import Days


class Measure(NamedTuple):
    """A function of what some words name; without a function, the column itself. `adjective` names it where no noun does."""

    function: str
    noun: Piece | None
    is_distinct: bool = False
    adjective: str = ""


class Condition(NamedTuple):
    """What must hold of a row: values, or a comparison with numbers or days; `noun` says of which column, where the question does."""

    noun: Piece | None
    operator: str
    values: tuple[tuple[Value, ...], ...] = ()
    numbers: tuple[int | float, ...] = ()
    days: Days | None = None
    unit: str = ""
    is_negated: bool = False
    is_count: bool = False
    """The noun is counted: more than three orders."""
    preposition: str = ""
    text: str = ""
    alternative: int = 0
    """Conditions of one number above 0 are alternatives of each other."""


@dataclass
class Draft:
    """What the words of a question say."""

    outputs: list[Piece] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    groups: list[Piece] = field(default_factory=list)
    contexts: list[Piece] = field(default_factory=list)
    absent: list[Piece] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    best: tuple[str, Measure] | None = None
    """Which end of which measure is asked for."""
    limit: int | None = None
    order: list[tuple[str, Measure | None]] = field(default_factory=list)
    is_distinct: bool = False
    is_person: bool = False
    """The question asks who: rows of the table of the conditions are meant where nothing else is."""
    unexplained: list[str] = field(default_factory=list)
