"""Does a text speak of a word? Found by its stem, in one pass over the text and without cutting it into words.

A probe looks for the part that a word and its stem share, and compares stems only where that part begins a word. Names with digits are
found in any of their spellings (`HT-40`, `HT40`, `HT 40`), short forms by what they stand for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from evidentia.agents.protocol.vocabulary import GROUPS
from evidentia.text.tokens import Tokeniser

MAX_OCCURRENCES: Final = 64
"""Places at which one word is looked at; a hostile text costs no more."""
MAX_SHORT_LENGTH: Final = 6

_tokeniser: Final = Tokeniser("english")
_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")


@lru_cache(maxsize=1 << 16)
def stem_of(word: str) -> str:
    """Return the stem of a word in lower case."""
    terms = _tokeniser.analyse(word).terms
    return terms[0] if terms else word


class Probe(NamedTuple):
    """One word to be found."""

    stem: str
    start: str
    """What every word of this stem begins with."""
    spellings: tuple[str, ...] = ()
    """For what has a digit or a sign inside: it is found as one of these, whole."""
    short: str = ""
    """A short form in small letters, for what it stands for."""

    def occurs(self, text: str) -> bool:
        """Tell whether a text, in lower case, has the word."""
        if self.spellings:
            return any(_stands_alone(text, spelling) for spelling in self.spellings)
        if _has_stem(text, self.start, self.stem):
            return True
        return bool(self.short) and _spelt_out(self.short).search(text) is not None


@lru_cache(maxsize=1 << 14)
def probe_of(word: str) -> Probe:
    """Return the probe of a word as it is written."""
    lowered = word.casefold()
    if not lowered.isalpha():
        return Probe(stem=lowered, start=lowered, spellings=_spellings(lowered))
    stem = stem_of(lowered)
    shared = next((place for place, letter in enumerate(stem) if letter != lowered[place : place + 1]), len(stem))
    if shared == len(stem) and stem.endswith("i"):
        shared -= 1  # the stem of `ferry` and of `ferries` is `ferri`: what they share ends before it
    is_short = word.isupper() and 1 < len(word) <= MAX_SHORT_LENGTH
    return Probe(stem=stem, start=lowered[:shared] or lowered, short=lowered if is_short else "")


def relatives(stem: str) -> tuple[Probe, ...]:
    """Return the other words of the groups that a stem stands in."""
    return _related().get(stem, ())


def words_near(stem: str) -> tuple[str, ...]:
    """Return the same as words, in the order of the groups."""
    return _near().get(stem, ())


@lru_cache(maxsize=1)
def _near() -> dict[str, tuple[str, ...]]:
    near: dict[str, dict[str, None]] = {}
    for group in GROUPS:
        for word in group:
            near.setdefault(stem_of(word), {}).update(dict.fromkeys(other for other in group if stem_of(other) != stem_of(word)))
    return {stem: tuple(words) for stem, words in near.items()}


@lru_cache(maxsize=1)
def _related() -> dict[str, tuple[Probe, ...]]:
    related: dict[str, dict[Probe, None]] = {}
    for group in GROUPS:
        probes = [probe_of(word) for word in group]
        for probe in probes:
            related.setdefault(probe.stem, {}).update(dict.fromkeys(other for other in probes if other.stem != probe.stem))
    return {stem: tuple(found) for stem, found in related.items()}


def _has_stem(text: str, start: str, stem: str) -> bool:
    place = text.find(start)
    for _ in range(MAX_OCCURRENCES):
        if place < 0:
            return False
        end = place + len(start)
        if not place or not text[place - 1].isalnum():
            while end < len(text) and text[end].isalnum():
                end += 1
            word = text[place:end]
            if word == stem or stem_of(word) == stem:
                return True
        place = text.find(start, end)
    return False


def _stands_alone(text: str, spelling: str) -> bool:
    place = text.find(spelling)
    for _ in range(MAX_OCCURRENCES):
        if place < 0:
            return False
        end = place + len(spelling)
        if (not place or not text[place - 1].isalnum()) and (end == len(text) or not text[end].isalnum()):
            return True
        place = text.find(spelling, place + 1)
    return False


def _spellings(word: str) -> tuple[str, ...]:
    """Return a name with digits or signs as people write it: as it is, closed up, apart, and with a hyphen."""
    parts = _PARTS.findall(word)
    return tuple(dict.fromkeys((word, "".join(parts), " ".join(parts), "-".join(parts)))) if parts else (word,)


@lru_cache(maxsize=1 << 10)
def _spelt_out(short: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + r"\w{0,30}+[ -](?:of |and |for |the )?+".join(map(re.escape, short)) + r"\w")
