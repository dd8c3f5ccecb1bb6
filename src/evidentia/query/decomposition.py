"""Compound questions and comparisons in parts that can be searched by themselves, each with the context that it shares.

Rules over words, no understanding: several questions in one (`How ...? Who ...?`, `what is A and how do I B`) and comparisons.
What no rule is sure of stays whole. Part by part is searched beside the whole question, never instead of it.

Beside what people wrote for StrategyQA, counting their steps that refer to no other step (the rules were written with its questions in
sight, and most of them need knowledge that no rule has):

                                                        train        dev
    questions                                           2,061        229
    taken apart                                            52         10
    of these, as many parts as steps                       40          8
    all, as many parts as steps (never taking apart)  882 (846)  100 (94)
    content terms of parts that their nearest step has  49 %       47 %   (of the whole question: 35 %, 36 %)
    content terms of that step that the part has        47 %       54 %   (the whole question: 50 %, 65 %)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.conversation import leans
from evidentia.query.words import Word, count_content, join, words_of
from evidentia.text.english import (
    AUXILIARIES,
    COMPARATIVES,
    DETERMINERS,
    DIFFERENCES,
    GENERIC_COMPARATIVES,
    NUMBERS,
    OPENERS,
    PREPOSITIONS,
    QUESTION_WORDS,
    SYMMETRIC,
    VAGUE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_TEXT_LENGTH: Final = 2_000
"""Longer texts are not taken apart."""
MAX_WORDS: Final = 320
MAX_CLAUSE_WORDS: Final = 60
MAX_PARTS: Final = 6
MAX_SHARED: Final = 8


def decompose(text: str, *, is_eager: bool = False) -> tuple[str, ...]:
    """Return two to six parts, or nothing when the question is better left whole.

    Lists, pairs and a second question that leans on the first (`what is A and how does it B`) ask for one thing and stay whole: taken
    apart they found less on judged questions (`benchmarks/decomposition.py`). Engines before were eager and took them apart.
    """
    if len(text) > MAX_TEXT_LENGTH:
        return ()
    sentences = _sentences(words_of(text, limit=MAX_WORDS))
    questions = [sentence for sentence in sentences if _is_question(sentence)]
    if len(questions) > 1:
        background = [word for sentence in sentences if not _is_question(sentence) for word in sentence]
        return _finish(_with_context(questions, background))
    if len(sentences) != 1 or len(sentences[0]) > MAX_CLAUSE_WORDS:
        return ()
    words = sentences[0]
    clauses = _clauses(words)
    if clauses and (is_eager or not leans(join(clauses[1]))):
        return _finish(_with_context(clauses, ()))
    return _finish(split_comparison(words)) or (is_eager and (_finish(split_list(words)) or _finish(split_pair(words)))) or ()


def _sentences(words: Sequence[Word]) -> list[list[Word]]:
    sentences: list[list[Word]] = [[]]
    for place, word in enumerate(words):
        sentences[-1].append(word)
        is_last = place + 1 == len(words)
        is_stopped = word.tail in {".", "!"} and word.plain != "vs" and not is_last and words[place + 1].is_name
        if not is_last and ("?" in word.tail or is_stopped):
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def _is_question(sentence: Sequence[Word]) -> bool:
    return "?" in sentence[-1].tail and count_content(sentence) > 0


def _clauses(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return the two questions of `what is A and how do I B`, or none."""
    if words[0].plain not in QUESTION_WORDS:
        return []
    for joint in range(2, len(words) - 2):
        if words[joint].plain in {"and", "or", "but"} and words[joint + 1].plain in QUESTION_WORDS:
            first, second = words[:joint], words[joint + 1 :]
            is_open = words[joint - 1].plain in QUESTION_WORDS
            return [first, second] if count_content(first) and count_content(second) and not is_open else []
    return []


def _with_context(questions: Sequence[Sequence[Word]], background: Sequence[Word]) -> list[str]:
    """Return the questions as texts; one that leans takes the subject of the first, and all take the background."""
    shared = _subjects(background)
    first = _subjects(questions[0])
    texts = []
    for place, question in enumerate(questions):
        text = join(question[1:] if question[0].plain in OPENERS and len(question) > 1 else question)
        needed = [*shared, *(first if place and leans(join(question)) else ())]
        texts.append(" ".join([text, *needed]))
    return texts


def _subjects(words: Sequence[Word]) -> list[str]:
    return list(dict.fromkeys(word.text for word in words if word.is_content))[:MAX_SHARED]


def _finish(parts: Sequence[str]) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(parts))
    return distinct if 1 < len(distinct) <= MAX_PARTS else ()


# --- enumeration ---
# The members of a list or of a pair of which one thing is asked, each in the question that is left without the others.
#
# Known forms: `A, B and C`, `both A and B`, and `A and B` beside a word that speaks of two at once (`same`, `share`, `compatible`). Plain
# `A and B` stays whole: it is as often one name (`Romeo and Juliet`) as two.

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


# --- comparison ---
# The two sides of a comparison, each with what they are compared by.
#
# Known forms: `difference between A and B`, `compare A with B`, `A vs B`, `is A larger than B`, `which is faster, A or B`. A side ends
# where a preposition, a verb or a mark of punctuation starts the rest. Whatever is not clearly one of these is no comparison.

MAX_SIDE_LENGTH: Final = 8
_COMPARISON_JOINING: Final = frozenset(("and", "with", "to", "against", "vs", "versus"))
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
    joint = next((place for place in range(start, len(words)) if plain[place] in _COMPARISON_JOINING), None)
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
