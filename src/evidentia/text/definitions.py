"""Short forms that a text explains itself: "service level agreement (SLA)", "SLA (service level agreement)", glossary lines.

Schwartz and Hearst (2003): a short form stands for the words beside it when its characters occur in them from right to
left and the first begins a word. Words whose initials are the short form are taken first ("secure sockets layer (SSL)",
of which the shortest reading would lose a word). Precision over recall: what looks like a word or a figure is no short
form, the last word must take part, and no long form begins with an article.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST_SHORT: Final = 2
MAX_SHORT_LENGTH: Final = 10
MAX_LONG_LENGTH: Final = 100
MAX_LOOKED_AT: Final = 4096
"""Parentheses that may explain something, and lines, that are read in one text: a passage has far fewer, hostile texts no more."""

_MAX_EXTRA_WORDS: Final = 5
_TITLE_LENGTH: Final = 3
_PADDING: Final = 6

_LETTER: Final = r"(?:[^\W_]|[&/.+-])"
_SHORT: Final = re.compile(rf"[^\W_]{_LETTER}*(?: {_LETTER}+)?")
# What opens with a short form, or stands behind a capital or a digit; most parentheses are remarks and never leave the pattern.
_ENCLOSED: Final = re.compile(
    rf"\((?:[\"'*_`\u2018\u201c]{{0,2}}+([^\W_]{_LETTER}{{1,9}}+(?: {_LETTER}{{1,7}}+)?+)[\"'*_`\u2019\u201d]{{0,2}}+[),;]"
    r"|(?:(?<=[^\W_a-z]\()|(?<=[^\W_a-z]\s\()|(?<=[^\W_a-z][\"'*_`]\s\()|(?<=[^\W_a-z][*_]{2}\s\())([^()]{4,100}+)\))"
)
_BREAK: Final = re.compile(r"[.!?;:](?=\s)|[()\[\]{}|<>=\"\u201c\u201d\u2026@]|//|--")
_PAUSE: Final = re.compile(r"[.;:,!?](?=\s|$)|\s[\u2013\u2014-](?=\s)|[()\[\]{}|<>=\"\u201c\u201d\u2026]")
_ENTRY: Final = re.compile(
    r"[ \t>*+|-]{0,8}+(?:\d{1,3}[.)] )?+[*_`]{0,3}+([^\W_](?:[^\W_]|[&/+-]){1,9}+)[*_`]{0,3}+[ \t]{0,20}+"
    r"(?:[:=|\u2013\u2014-][*_`]{0,3}+[ \t]{1,20}+|\n[ \t]{0,3}+:[ \t]{1,20}+)[*_`]{0,3}+(\w[^\n]{3,160}+)"
)
_SEPARATORS: Final = (": ", ":*", "|", "- ", "= ", "\u2013", "\u2014")
_OPENERS: Final = ("a ", "an ", "and ", "are ", "by ", "is ", "of ", "or ", "the ", "was ", "were ", "with ")
_QUOTES: Final = " \t\n\"'*_`\u2018\u2019\u201c\u201d"
_WORD: Final = re.compile(r"[^\W_]+")


class Explanation(NamedTuple):
    """A short form as written, and its long form in lower case with single spaces."""

    short: str
    long: str


def find_definitions(text: str) -> list[Explanation]:
    """Return what a text explains, each pair once: in parentheses first, then in lines, each in the order of the text."""
    found: list[Explanation | None] = []
    if "(" in text:
        found += [_read_enclosed(text, enclosed) for enclosed in islice(_ENCLOSED.finditer(text), MAX_LOOKED_AT)]
    if "\n" in text:
        if any(separator in text for separator in _SEPARATORS):
            found += _read_lines(text)
    elif entry := _ENTRY.match(text):
        found.append(_read_entry(entry[1], entry[2]))
    return [each for each in dict.fromkeys(found) if each is not None]


def words_of(text: str) -> str:
    """Return the lower-case words of a long form, by which two are compared."""
    return " ".join(_WORD.findall(text.lower()))


def _read_enclosed(text: str, enclosed: re.Match[str]) -> Explanation | None:
    short, inside = enclosed.groups()
    start = enclosed.start()
    if inside is not None:
        before = text[max(0, start - MAX_SHORT_LENGTH - _PADDING) : start].rstrip(_QUOTES)
        return _read_entry(before.rsplit(None, 1)[-1].lstrip(_QUOTES), inside.lstrip(_QUOTES))
    if not _is_marked(short):
        return None
    _, gap, window = text[max(0, start - MAX_LONG_LENGTH) : start].lower().rpartition("\n\n")
    long = _long_before(short.lower(), window.replace("\n", " "), is_cut=start > MAX_LONG_LENGTH and not gap)
    return None if long is None else _pair(short, long)


def _read_lines(text: str) -> Iterator[Explanation | None]:
    start = 0
    for _ in range(MAX_LOOKED_AT):
        entry = _ENTRY.match(text, start)
        if entry is not None:
            yield _read_entry(entry[1], entry[2])
        start = text.find("\n", start) + 1
        if not start:
            return


def _is_marked(candidate: str) -> bool:
    """Tell whether a short piece of text looks like an abbreviation rather than like a word or a figure."""
    rest = candidate[1:]
    if len(candidate) > MAX_SHORT_LENGTH:
        return False
    if rest != rest.lower():
        return True
    return candidate[0].isupper() and " " not in rest and (len(candidate) <= _TITLE_LENGTH or any(map(str.isdigit, rest)))


def _read_entry(short: str, explained: str) -> Explanation | None:
    """Return the pair when the explanation, up to its first pause, is the long form from its first word on."""
    if len(short) < SHORTEST_SHORT or not _SHORT.fullmatch(short) or not _is_marked(short):
        return None
    pause = _PAUSE.search(explained)
    long = (explained if pause is None else explained[: pause.start()]).strip(_QUOTES).lower()
    return _pair(short, long) if _spells(short.lower(), long) else None


def _pair(short: str, long: str) -> Explanation | None:
    """Return the pair when the long form has a fitting number of words and neither a break nor the short form in it."""
    long = long.strip(_QUOTES)
    words = long.split()
    most = min(len(short) + _MAX_EXTRA_WORDS, 2 * len(short))
    if not 0 < len(words) <= most or len(long) <= len(short) or short.lower() in words or _BREAK.search(long):
        return None
    spelt = " ".join(words)
    return Explanation(_singular(short), spelt) if spelt.isprintable() else None


def _long_before(short: str, window: str, *, is_cut: bool) -> str | None:
    """Return the words at the end of the window that a short form stands for; a window that was cut may begin inside a word."""
    count = len(short)
    words = window.rsplit(None, count)
    last = words[-count:]
    if last and last[-1][0] == short[-1] and short == "".join([word[0] for word in last]) and (len(words) > count or not is_cut):
        return " ".join(last)
    begin = _begin(short, window)
    is_whole = begin > 0 or (begin == 0 and not is_cut)
    return window[begin:] if is_whole and not window.startswith(_OPENERS, begin) else None


def _begin(short: str, window: str) -> int:
    """Return where the shortest long form begins, or -1: characters from right to left, the first at the start of a word."""
    window = window.rstrip()
    least, end = window.rfind(" ") + 1, len(window)
    for character in short[:0:-1]:
        if character.isalnum():
            end = window.rfind(character, least, end)
            if end < 0:
                return -1
            least = 0
    while True:
        end = window.rfind(short[0], 0, end)
        if end <= 0:
            return end
        if not window[end - 1].isalnum():
            return window.rfind(" ", 0, end) + 1


def _spells(short: str, long: str) -> bool:
    """Tell whether the characters of a short form occur in this order, the first one first."""
    place = 0 if long.startswith(short[0]) else -1
    for character in short[1:]:
        if place >= 0 and character.isalnum():
            place = long.find(character, place + 1)
    return place >= 0


def _singular(short: str) -> str:
    return short[:-1] if len(short) > SHORTEST_SHORT and short[-1] == "s" and short[-2].isupper() else short
