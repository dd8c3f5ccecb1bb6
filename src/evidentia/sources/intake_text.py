"""Text from outside made safe to keep: bounded, in one form, and showing a reader all that it holds.

Removed is what hides or reorders what a reader sees: control characters, unpaired surrogates, marks that override the direction
of writing, zero-width characters, tags. A joiner stays where it shapes letters of a script that joins or an emoji, and a variation
selector where it is the only one. Nothing here costs more than a small multiple of the length that it is allowed to read.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

from evidentia.text.truncation import truncate

_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
# What is not printable by Python's own measure covers all else that is removed, and is found much sooner.
_UNSEEN_YET_PRINTABLE: Final = re.compile(f"[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0{_SELECTORS}]")
_REPEATED_SELECTORS: Final = re.compile(f"([{_SELECTORS}])[{_SELECTORS}]+")
# Latin letters and their marks never join, so a joiner beside one only hides a word from a search for it.
_LOOSE_JOINERS: Final = re.compile(
    f"(?<![^\x00-\u036f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u036f\u200c\u200d{_SELECTORS}])"
)
_JOINERS: Final = "\u200c\u200d"
_BEYOND_LATIN: Final = re.compile("[\u0300-\U0010ffff]")
# The only characters that are no marks and yet decompose into nothing but marks.
_DOUBLE_MARKS: Final = (("\u0f73", "\u0f71\u0f72"), ("\u0f75", "\u0f71\u0f74"), ("\u0f81", "\u0f71\u0f80"))
_MAX_MARKS: Final = 30
"""As many marks may follow a letter as in the stream-safe form of Unicode (UAX 15); sorting them costs the square of their number."""
_LONG_MARK_RUN: Final = re.compile(rb"[^\x00]{%d,}" % (_MAX_MARKS + 1))
_LOOK_BACK: Final = 2_000
_LOOK_AHEAD: Final = 256
_SLACK: Final = 4
"""Of a line, this many times its allowed length is read, since cleaning makes it shorter."""


def exact_text(value: str, *, most: int) -> str:
    """Return the first characters of a text as a plain `str`; a subclass has no say in it, and a longer text costs nothing."""
    if type(value) is str and len(value) <= most:
        return value
    return str.__getitem__(value, slice(0, max(0, most)))


def is_clean_line(value: object, *, most: int) -> bool:
    """Tell, soon and for most lines, that a value is a text which cleaning would leave as it is; False says nothing."""
    return (
        type(value) is str
        and len(value) <= most
        and value.isascii()
        and value.isprintable()
        and "  " not in value
        and value[:1] != " "
        and value[-1:] != " "
    )


def clean_text(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), with lines that end in a line feed and without what is not to be seen."""
    if text.isascii() and text.isprintable():
        return text
    if text.replace("\n", " ").replace("\t", " ").isprintable() and not _UNSEEN_YET_PRINTABLE.search(text):
        return _composed(text)
    seen = _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))
    composed = _composed(_REPEATED_SELECTORS.sub(r"\1", seen))
    joined = _LOOSE_JOINERS.sub("", composed)
    # What stood on both sides of a joiner may compose, and selectors may meet.
    return composed if joined == composed else _composed(_REPEATED_SELECTORS.sub(r"\1", joined))


def clean_line(value: str, *, most: int) -> str:
    """Return the first `most` characters of a text as one clean line."""
    if is_clean_line(value, most=most):
        return value
    line = " ".join(clean_text(exact_text(value, most=most * _SLACK)).split())
    return line[:most].rstrip(f" {_JOINERS}")


def cut_text(text: str, *, most: int) -> str:
    """Return at most `most` characters of a clean text: up to a sentence end near their end, else up to the last one."""
    if len(text) <= most:
        return text
    start = max(most // 2, most - _LOOK_BACK)
    ending = truncate(text[start : most + _LOOK_AHEAD], tokens=most - start, count=len)
    return text[: start + len(ending)] if ending else text[:most].rstrip(_JOINERS)


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", _without_towers(text))


def _without_towers(text: str) -> str:
    """Return a text in which no letter carries more marks than `_MAX_MARKS`."""
    if not _BEYOND_LATIN.search(text):
        return text
    for double, single in _DOUBLE_MARKS:
        text = text.replace(double, single)
    classes = bytes(map(unicodedata.combining, text))
    runs = [found.span() for found in _LONG_MARK_RUN.finditer(classes)]
    if not runs:
        return text
    edges = [0, *(edge for start, end in runs for edge in (start + _MAX_MARKS, end)), len(text)]
    return "".join(text[start:end] for start, end in list(pairwise(edges))[::2])
