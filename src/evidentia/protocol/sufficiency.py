"""What a result lacks beside the question it was to answer. Which of it makes a result insufficient is the profile's word.

Messages alone are no evidence. Evidence is off topic when it has neither a name nor any word of the question's subject, nor a word of the
same group. What later results add is counted: whether something is missing is judged over all that was found so far.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import QuestionType, Shortfall
from evidentia.protocol.question_words import relatives
from evidentia.protocol.questions import Entity, QuestionFacts, times_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.protocol.tool_results import ResultFacts

MAX_CHARS: Final = 200_000
"""Characters of one result that are looked at."""
_LEAST_SHARE: Final = 4
"""One in so many words of a subject has to occur, where nothing is named."""
_LEAST_WORDS: Final = 3
_YEAR: Final = re.compile(r"(?<![\w.,-])(?:19|20)\d\d(?![\w%]|[.,]\d)")
_COVERED: Final = frozenset((QuestionType.LIST, QuestionType.HISTORY, QuestionType.COMPARISON, QuestionType.MIXED))
"""What asks for all of something."""
_LISTED: Final = _COVERED | {QuestionType.TABLE, QuestionType.EXTRACTION, QuestionType.RANKING}
"""Where a table that was cut short lacks something that was asked for."""

_CHOSEN: Final = frozenset((QuestionType.LIST, QuestionType.TABLE, QuestionType.EXTRACTION, QuestionType.RANKING, QuestionType.QUANTITY))
"""Where rows are chosen by a name that they need not repeat."""
_PROSE_WORDS: Final = 6
_SEVERAL: Final = 2


def evidence_text(result: ResultFacts) -> str:
    """Return what a result says, in lower case, without marks and instructions of ours."""
    said = [f"{piece.filename}\n{piece.text}" for piece in result.pieces]
    if result.rows:
        said += [" ".join(result.columns), *(" ".join(row.cells) for row in result.rows)]
        said += [filename for _, filename in result.files.values()]
    return "\n".join(said)[:MAX_CHARS].casefold()


def shortfalls(
    facts: QuestionFacts, result: ResultFacts, *, kind: QuestionType, earlier: Sequence[str] = (), text: str | None = None
) -> tuple[Shortfall, ...]:
    """Return what a result lacks, in the declared order; `earlier` is the evidence of the results before it.

    `text` is the evidence of the result, where the caller has it.
    """
    if not result.pieces and not result.rows:
        return _messages(result)
    said = evidence_text(result) if text is None else text
    if not _is_usable(result):
        return (Shortfall.NO_EVIDENCE,)
    if not _is_figures(result) and _is_off_topic(facts, said):
        return (Shortfall.OFF_TOPIC, Shortfall.MISSING_ENTITY) if facts.entities else (Shortfall.OFF_TOPIC,)
    found: list[Shortfall] = []
    whole = "\n".join((*earlier, said)) if earlier else said
    if not _leaves_names_out(result, kind) and _misses_entity(facts, whole):
        found.append(Shortfall.MISSING_ENTITY)
    if (not _leaves_names_out(result, kind) and _leaves_part_open(facts, whole)) or (
        kind in _COVERED and _is_partial(facts, result, whole, kind=kind, has_earlier=bool(earlier))
    ):
        found.append(Shortfall.PARTIAL)
    if result.omitted and kind in _LISTED:
        found.append(Shortfall.TRUNCATED)
    return tuple(found)


def _messages(result: ResultFacts) -> tuple[Shortfall, ...]:
    found = ((Shortfall.ERROR, result.is_error), (Shortfall.NO_SPREADSHEET, result.has_no_spreadsheet))
    return tuple(each for each, holds in found if holds) or (Shortfall.EMPTY,)


def _is_usable(result: ResultFacts) -> bool:
    if result.rows:
        return any(cell.strip() for row in result.rows for cell in row.cells)
    return any(len(piece.text.split(None, _LEAST_WORDS)) >= _LEAST_WORDS for piece in result.pieces)


def _is_off_topic(facts: QuestionFacts, said: str) -> bool:
    if not facts.topic and not facts.entities:
        return False
    if any(probe.occurs(said) for probe in facts.topic) or any(entity.occurs(said) for entity in facts.entities):
        return False
    related = sum(any(other.occurs(said) for other in relatives(probe.stem)) for probe in facts.topic)
    return 2 * related <= len(facts.topic)


def _misses_entity(facts: QuestionFacts, whole: str) -> bool:
    """Tell whether nothing that the question names is there, or none of the years that it is about while others are."""
    if facts.entities:
        if not any(entity.occurs(whole) for entity in facts.entities):
            return True
    elif facts.topic:
        shared = sum(probe.occurs(whole) or any(other.occurs(whole) for other in relatives(probe.stem)) for probe in facts.topic)
        if _LEAST_SHARE * shared < len(facts.topic):
            return True
    if not facts.years:
        return False
    years = set(_YEAR.findall(whole))
    return bool(years) and _is_outside(years, facts)


def _is_outside(years: set[str], facts: QuestionFacts) -> bool:
    """Tell whether no year lies in the question's time: one of its years, or between the first and the last of them."""
    first, last = min(facts.years), max(facts.years)
    times = times_of(facts)
    is_open = any(time.startswith(("since", "after")) for time in times)
    is_before = any(time.startswith(("until", "before")) for time in times)
    return not any((first <= year or is_before) and (year <= last or is_open) for year in years)


def _leaves_part_open(facts: QuestionFacts, whole: str) -> bool:
    """Tell whether one of several questions in one is not touched at all."""
    if len(facts.parts) < _SEVERAL:
        return False
    return any(
        not any(probe.occurs(whole) or any(other.occurs(whole) for other in relatives(probe.stem)) for probe in part)
        for part in facts.parts
    )


def _is_partial(facts: QuestionFacts, result: ResultFacts, whole: str, *, kind: QuestionType, has_earlier: bool) -> bool:
    if any(not side.occurs(whole) for side in facts.sides):
        return True
    if not _leaves_names_out(result, kind) and any(not _is_told_apart(entity, facts, whole) for entity in facts.entities):
        return True
    if kind is QuestionType.HISTORY and len(facts.years) > 1:
        return any(year not in whole for year in (min(facts.years), max(facts.years)))
    if kind is QuestionType.MIXED and not has_earlier:
        return not any(map(str.isdigit, whole)) or (bool(result.rows) and not _has_prose(result))
    return False


def _is_told_apart(entity: Entity, facts: QuestionFacts, whole: str) -> bool:
    """Tell whether a text speaks of an entity and not only of another that shares a word with it, as `Plan Large` does of `Plan Small`."""
    if not entity.occurs(whole):
        return False
    shared = {probe for other in facts.entities if other is not entity for probe in other.probes}
    own = [probe for probe in entity.probes if probe not in shared]
    return len(own) == len(entity.probes) or not own or any(probe.occurs(whole) for probe in own)


def _leaves_names_out(result: ResultFacts, kind: QuestionType) -> bool:
    """Tell whether a table may answer without naming what was asked for: rows that were chosen by it, or figures alone."""
    return bool(result.rows) and (kind in _CHOSEN or _is_figures(result))


def _is_figures(result: ResultFacts) -> bool:
    """Tell whether a table has figures alone, as a count or a sum: what they are of was said by the query."""
    return bool(result.rows) and not any(letter.isalpha() for row in result.rows for cell in row.cells for letter in cell)


def _has_prose(result: ResultFacts) -> bool:
    return any(len(cell.split()) >= _PROSE_WORDS for row in result.rows for cell in row.cells)
