"""The words of replies and evidence: content terms with numbers in one spelling, and how much two texts share."""

from __future__ import annotations

import re
from typing import Final

from evidentia.grounding.lexicon import EMPTY, NUMBER_WORDS, TOKENISER

Terms = frozenset[str]
"""Stems of the words that say something, and numbers in digits."""

NO_TERMS: Final = Terms()
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[,.'\u2019\u00a0\u202f\u2009 ]\d{3})++(?!\d)")
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,18}(?!\d)")
_WORD: Final = re.compile(r"[a-z]+")
_NO_DIGIT: Final = re.compile(r"\D")
_REMEMBERED_WORDS: Final = 1 << 15
_MAX_REMEMBERED_LENGTH: Final = 48
_TWELVE: Final = 12
_SPELT: Final = {"zero": 0, "none": 0, "no": 0} | {word: int(digits) for word, digits in NUMBER_WORDS.items() if int(digits) <= _TWELVE}


def read_terms(text: str) -> Terms:
    """Return the content terms of a text; 1,200 is also found as 1200."""
    return NO_TERMS.union(*map(_WORDS.__getitem__, set(text.split())))


def counts_in(text: str) -> frozenset[int]:
    """Return every number that a text may state: 1,200, 1 200, 1'200 and 1200, and words up to twelve; groups also one by one."""
    found = {int(number) for number in _NUMBER.findall(text)}
    found.update(int(_NO_DIGIT.sub("", number)[:18]) for number in _GROUPED.findall(text))
    found.update(_SPELT[word] for word in _WORD.findall(text.lower()) if word in _SPELT)
    return frozenset(found)


def is_strong(term: str) -> bool:
    """Tell whether a term is hardly shared by chance: it is not letters alone, as numbers and codes are."""
    return not term.isalpha()


class _Words(dict[str, Terms]):
    """The content terms of each word, read once; what is remembered is bounded and never changes what is returned."""

    def __missing__(self, word: str) -> Terms:
        terms = Terms(TOKENISER.analyse(word).terms) - EMPTY
        if "," in word:
            terms |= {_NO_DIGIT.sub("", number) for number in _GROUPED.findall(word)}
        if len(word) <= _MAX_REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[word] = terms
        return terms


_WORDS: Final = _Words()
