"""The two sides of a comparison, each with what they are compared by.

Known forms: `difference between A and B`, `compare A with B`, `A vs B`, `is A larger than B`, `which is faster, A or B`. A side ends where
a preposition, a verb or a mark of punctuation starts the rest. Whatever is not clearly one of these is no comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.english import (
    AUXILIARIES,
    COMPARATIVES,
    DETERMINERS,
    DIFFERENCES,
    GENERIC_COMPARATIVES,
    NUMBERS,
    PREPOSITIONS,
    QUESTION_WORDS,
    VAGUE,
)
from evidentia.query.words import Word, join

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SIDE_LENGTH: Final = 8
_JOINING: Final = frozenset(("and", "with", "to", "against", "vs", "versus"))
_ENDING: Final = (PREPOSITIONS - {"of"}) | AUXILIARIES | QUESTION_WORDS | {"and", "or"}
_LEADING: Final = AUXILIARIES | QUESTION_WORDS | DETERMINERS | {"both", "there"}
_NO_COMPARATIVES: Final = frozenset(("other", "rather"))


def split_comparison(words: Sequence[Word]) -> tuple[str, ...]:
    """Return the two sides with what they share, or nothing."""
    plain = ["" if word.is_quoted else word.plain for word in words]
    for place, word in enumerate(plain):
        if word == "between" and place and plain[place - 1] in DIFFERENCES:
            return _joined_sides(words, plain, before=place - 1, start=place + 1)
        if word in {"compare", "comparing"} and plain[place + 1 : place + 2] not in (["to"], ["with"]):
            return _joined_sides(words, plain, before=place, start=place + 1)
        if word in {"vs", "versus", "compare"}:
            return _sides_around(words, plain, place)
        if word == "than":
            return _sides_of_than(words, plain, place)
        if word == "or" and _asks_which(plain):
            return _sides_around(words, plain, place)
    return ()


def run_before(words: Sequence[Word], place: int) -> int:
    """Return where the run of subject words starts that ends before `place`."""
    start = place
    while start and place - start < MAX_SIDE_LENGTH and words[start - 1].is_content and (start == place or not words[start - 1].tail):
        start -= 1
    return start


def _asks_which(plain: Sequence[str]) -> bool:
    return "which" in plain and any(word in COMPARATIVES for word in plain)


def _joined_sides(words: Sequence[Word], plain: Sequence[str], *, before: int, start: int) -> tuple[str, ...]:
    """Return the sides of `A and B` that begins at `start`; what names a subject before `before` is shared."""
    joint = next((place for place in range(start, len(words)) if plain[place] in _JOINING), None)
    if joint is None:
        return ()
    end = _side_end(words, plain, joint + 1)
    if end < len(words) and plain[end] in {"and", "or"}:
        return ()
    return _parts(words[:before], words[start:joint], words[joint + 1 : end], words[end:])


def _sides_around(words: Sequence[Word], plain: Sequence[str], joint: int) -> tuple[str, ...]:
    start = run_before(words, joint)
    begin = joint + 1 + (words[joint].plain == "compare")
    end = _side_end(words, plain, begin)
    return _parts(words[:start], words[start:joint], words[begin:end], words[end:])


def _sides_of_than(words: Sequence[Word], plain: Sequence[str], joint: int) -> tuple[str, ...]:
    following = words[joint + 1 : joint + 3]
    named = [word for word in following if word.plain not in DETERMINERS]
    if not named or not named[0].is_content or named[0].plain in NUMBERS | VAGUE or named[0].plain[:1].isdigit():
        return ()
    comparative = _comparative(plain, joint)
    if comparative is None:
        return ()
    end = _side_end(words, plain, joint + 1)
    quality = words[comparative + (plain[comparative] in GENERIC_COMPARATIVES) : joint]
    first = _trim(words[:comparative])
    if first:
        return _parts((), first, words[joint + 1 : end], [*quality, *words[end:]])
    start = run_before(words, joint)
    return _parts(words[comparative:start], words[start:joint], words[joint + 1 : end], words[end:])


def _comparative(plain: Sequence[str], joint: int) -> int | None:
    last = plain[joint - 1] if joint else ""
    if last in _NO_COMPARATIVES:
        return None
    known = next((place for place in range(joint - 1, -1, -1) if plain[place] in COMPARATIVES), None)
    return joint - 1 if known is None and last.endswith("er") else known


def _side_end(words: Sequence[Word], plain: Sequence[str], start: int) -> int:
    """Return where the side that begins at `start` ends."""
    place = start
    while place < len(words):
        if place > start and plain[place] in _ENDING:
            return place
        place += 1
        if words[place - 1].tail:
            break
    return place


def _trim(words: Sequence[Word]) -> Sequence[Word]:
    """Return words without the auxiliaries and determiners around them."""
    start, end = 0, len(words)
    while start < end and words[start].plain in _LEADING:
        start += 1
    while end > start and words[end - 1].plain in _LEADING:
        end -= 1
    return words[start:end]


def _parts(head: Sequence[Word], first: Sequence[Word], second: Sequence[Word], tail: Sequence[Word]) -> tuple[str, ...]:
    sides = [_trim(side) for side in (first, second)]
    if not all(0 < len(side) <= MAX_SIDE_LENGTH and any(word.is_content for word in side) for side in sides):
        return ()
    shared = [word for word in head if word.is_content and word.plain not in GENERIC_COMPARATIVES]
    return tuple(join([*shared, *side, *tail]) for side in sides)
