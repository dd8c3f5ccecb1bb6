"""The members of a list or of a pair of which one thing is asked, each in the question that is left without the others.

Known forms: `A, B and C`, `both A and B`, and `A and B` beside a word that speaks of two at once (`same`, `share`, `compatible`). Plain
`A and B` stays whole: it is as often one name (`Romeo and Juliet`) as two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.comparison import run_before
from evidentia.query.english import DETERMINERS, SYMMETRIC
from evidentia.query.words import Word, join

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MEMBER_LENGTH: Final = 4
MAX_SMALL_LENGTH: Final = 3
_JOINING: Final = frozenset(("and", "or"))


def split_list(words: Sequence[Word]) -> tuple[str, ...]:
    """Return one question per member of `A, B and C`, or nothing."""
    for joint in range(2, len(words) - 1):
        if words[joint].plain in _JOINING and not words[joint].is_quoted:
            members = _members(words, joint)
            if members:
                members[0] = (_with_determiners(words, members[0][0]), members[0][1])
                head, tail = words[: members[0][0]], words[members[-1][1] :]
                return tuple(join([*head, *words[start:end], *tail]) for start, end in members)
    return ()


def split_pair(words: Sequence[Word]) -> tuple[str, ...]:
    """Return one question per member of a pair that something is said of at once, or nothing."""
    joints = [place for place, word in enumerate(words) if word.plain in _JOINING and not word.is_quoted]
    if len(joints) != 1 or not any(word.plain in SYMMETRIC and not word.is_quoted for word in words):
        return ()
    joint = joints[0]
    begin = _skip_determiners(words, joint + 1)
    start, end = _member_start(words, joint, is_name=begin < len(words) and words[begin].is_name), _member_end(words, begin)
    if start == joint or end == begin or (begin == joint + 1 and _shares_noun(words[start:joint], words[begin:end])):
        return ()
    start = _with_determiners(words, start)
    head, tail = [word for word in words[:start] if word.plain not in {"both", "either"}], words[end:]
    return join([*head, *words[start:joint], *tail]), join([*head, *words[joint + 1 : end], *tail])


def _members(words: Sequence[Word], joint: int) -> list[tuple[int, int]]:
    """Return where the members before and after the last `and` start and end; at least three, or none."""
    end = _member_end(words, _skip_determiners(words, joint + 1))
    spans = [(joint + 1, end)] if end > joint + 1 else []
    close = joint
    while spans and close:
        start = close - 1
        while start and words[start - 1].tail != "," and close - start < MAX_MEMBER_LENGTH:
            start -= 1
        is_first = not start or words[start - 1].tail != ","
        if is_first:
            start = run_before(words, close)
        if start == close or not all(word.is_content or word.plain in DETERMINERS for word in words[start:close]):
            break
        spans.insert(0, (start, close))
        close = 0 if is_first else start
    has_commas = all(words[stop - 1].tail == "," for _, stop in spans[:-2])
    return spans if len(spans) > 2 and close == 0 and has_commas else []  # noqa: PLR2004 - two are a pair, not a list


def _shares_noun(first: Sequence[Word], second: Sequence[Word]) -> bool:
    """Tell whether one small word stands beside several: `hot and cold water` may be two waters."""
    return len(first) == 1 < len(second) and not first[0].is_name and not second[0].is_name


def _member_start(words: Sequence[Word], joint: int, *, is_name: bool) -> int:
    """Return where the member before `joint` starts; of `watch Naruto and Bleach` the name alone."""
    start = run_before(words, joint)
    if is_name and start < joint and words[joint - 1].is_name:
        while not words[start].is_name:
            start += 1
    return start


def _with_determiners(words: Sequence[Word], start: int) -> int:
    """Return where a member starts that takes the determiners before it along, so that another may bring its own."""
    while start and words[start - 1].plain in DETERMINERS:
        start -= 1
    return start


def _skip_determiners(words: Sequence[Word], place: int) -> int:
    while place < len(words) and words[place].plain in DETERMINERS:
        place += 1
    return place


def _member_end(words: Sequence[Word], start: int) -> int:
    """Return where the member that begins at `start` ends: a name with its capitals, other words up to three."""
    place = start
    is_name = start < len(words) and words[start].is_name
    longest = MAX_MEMBER_LENGTH if is_name else MAX_SMALL_LENGTH
    while place < len(words) and place - start < longest and words[place].is_content and words[place].plain not in SYMMETRIC:
        if place > start and (words[place].plain.endswith("ly") or (is_name and not words[place].is_name)):
            break
        place += 1
        if words[place - 1].tail:
            break
    return place
