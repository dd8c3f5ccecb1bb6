"""Compound questions and comparisons in parts that can be searched by themselves, each with the context that it shares.

Rules over words, no understanding: several questions in one (`How ...? Who ...?`, `what is A and how do I B`), comparisons, and lists.
What no rule is sure of stays whole. Part by part is searched beside the whole question, never instead of it.

Beside what people wrote for StrategyQA, counting their steps that refer to no other step (the rules were written with its questions in
sight, and most of them need knowledge that no rule has):

                                                        train        dev
    questions                                           2,061        229
    taken apart                                            69         10
    of these, as many parts as steps                       56          8
    all, as many parts as steps (never taking apart)  898 (846)  100 (94)
    content terms of parts that their nearest step has  50 %       47 %   (of the whole question: 37 %, 36 %)
    content terms of that step that the part has        50 %       54 %   (the whole question: 53 %, 65 %)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.comparison import split_comparison
from evidentia.query.context import leans
from evidentia.query.english import OPENERS, QUESTION_WORDS
from evidentia.query.enumeration import split_list, split_pair
from evidentia.query.words import Word, count_content, join, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TEXT_LENGTH: Final = 2_000
"""Longer texts are not taken apart."""
MAX_WORDS: Final = 320
MAX_CLAUSE_WORDS: Final = 60
MAX_PARTS: Final = 6
MAX_SHARED: Final = 8


def decompose(text: str) -> tuple[str, ...]:
    """Return two to six parts, or nothing when the question is better left whole."""
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
    if clauses := _clauses(words):
        return _finish(_with_context(clauses, ()))
    return _finish(split_comparison(words)) or _finish(split_list(words)) or _finish(split_pair(words))


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
