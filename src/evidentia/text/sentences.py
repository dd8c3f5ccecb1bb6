"""Where sentences begin and end, as exact character spans. Refuses to change a character: quoting a span quotes the source.

Rules of punctuation, no model: a missed boundary gives a longer sentence, never a lost one. A sentence ends
- at `.`, `!`, `?` or an ellipsis before white space, unless the next letter is in lower case, or the full stop belongs to an abbreviation,
  an initial or a list number; closing quotes and brackets go with it;
- at a full stop of Chinese or Japanese;
- at a blank line, and at a line end, unless the next line goes on in lower case or the line ends in an abbreviation. Headings
  and list items thus stand alone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_CLOSERS: Final = "\"')\\]}\u2019\u201d\u00bb\u300d\u300f\u3011\uff09"
# A run of stops is tried once, from its first: `......` would otherwise cost the square of its length.
_STOP: Final = re.compile(
    rf"(?<![.!?\u2026])(?P<stop>[.!?\u2026]++)[{_CLOSERS}]*+(?=\s)|(?P<ideographic>[\u3002\uff01\uff1f\uff61]+)[{_CLOSERS}]*|(?P<line>[\r\n\u2028\u2029]\s*)"
)
_BLANKS: Final = re.compile(r"\s*")
_LAST_WORD: Final = re.compile(r"[\w.]+\Z")
_DOTTED: Final = re.compile(r"(?:\w\.)+\w")
_MARKER: Final = re.compile(r"\w{1,3}[.)]\s")
_LOOK_BACK: Final = 24
_ABBREVIATIONS: Final = frozenset(
    "al approx art ca capt cf ch chap col dr ed eds eq eqs eqn est ex fig figs gen gov hon lt mr mrs ms messrs mt no nos nr op p pp "  # noqa: SIM905 - a list of words reads as words
    "par prof ref refs rep resp rev sec sect sen sgt sp spp st str subsp suppl tab var viz vol vols vs".split()
)
_FINAL_ABBREVIATIONS: Final = frozenset({"a.m", "p.m", "ph.d", "u.k", "u.s", "u.s.a"})


class Span(NamedTuple):
    """Characters `start` up to, not including, `end`."""

    start: int
    end: int


def split_sentences(text: str) -> list[Span]:
    """Return the sentences in order: trimmed, never overlapping, and together all of the text that is not blank."""
    spans: list[Span] = []
    start = 0
    for found in _STOP.finditer(text):
        if _is_end(text, found, start=start):
            _append_trimmed(spans, text, start, found.end())
            start = found.end()
    _append_trimmed(spans, text, start, len(text))
    return spans


def _append_trimmed(spans: list[Span], text: str, start: int, end: int) -> None:
    sentence = text[start:end]
    bare = sentence.strip()
    if bare:
        first = start + len(sentence) - len(sentence.lstrip())
        spans.append(Span(first, first + len(bare)))


def _is_end(text: str, found: re.Match[str], *, start: int) -> bool:
    if found["ideographic"]:
        return True
    if found["line"]:
        return text.startswith("#", start) or _is_line_end(text, found)
    following = _character_after(text, found.end())
    if following.islower():
        return False
    return found["stop"] != "." or not _is_abbreviated(text, found.start(), following)


def _is_line_end(text: str, found: re.Match[str]) -> bool:
    if len(found["line"].replace("\r\n", "\n").rstrip(" \t").splitlines()) > 1:
        return True
    if _MARKER.match(text, found.end()):
        return True
    following = text[found.end() : found.end() + 1]
    if text[found.start() - 1 : found.start()] == ".":
        return not following.islower() and not _is_abbreviated(text, found.start() - 1, following)
    return not following.islower()


def _is_abbreviated(text: str, dot: int, following: str) -> bool:
    before = text[max(0, dot - _LOOK_BACK) : dot]
    last = _LAST_WORD.search(before)
    if last is None:
        return False
    word = last[0].lower()
    if word in _FINAL_ABBREVIATIONS:
        return not following.isupper()
    if word.isdigit():
        return not before[: last.start()].rpartition("\n")[2].strip() and (last.start() > 0 or dot <= _LOOK_BACK)
    is_initial = len(word) == 1 and last[0].isupper()
    return is_initial or word in _ABBREVIATIONS or _DOTTED.fullmatch(word) is not None


def _character_after(text: str, index: int) -> str:
    blanks = _BLANKS.match(text, index)
    end = blanks.end() if blanks else index
    return text[end : end + 1]
