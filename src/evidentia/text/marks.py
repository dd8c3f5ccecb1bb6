"""The marks of our tool results, and how text of documents is kept from forming one.

What could be read as a mark, also when disguised, has one of its characters written as a character reference. Parsers look for the
exact marks; people and models still read the text as it was meant.
"""

from __future__ import annotations

import re
from typing import Final

from evidentia.text.confusables import ANGLE_OPENERS, INVISIBLE, SQUARE_OPENERS, TAG_CHARACTERS, seen_from, spread

INSTRUCTION: Final = "[INSTRUCTION]"
EXTRA_INSTRUCTION: Final = "[EXTRA_INSTRUCTION]"
RAG_BEGIN: Final = "RAG_KNOWLEDGE BEGIN"
RAG_END: Final = "RAG_KNOWLEDGE END"
TABLE_BEGIN: Final = "TABLE_KNOWLEDGE BEGIN"
TABLE_END: Final = "TABLE_KNOWLEDGE END"
FILE_TABLE: Final = "file_ref_table:"
NO_SPREADSHEET: Final = "no excel files found"
ERROR: Final = "Error:"
CITATION: Final = "CITATION"

_SQUARE_WORD: Final = re.compile(r"(?:extra_?)?instruction(?![a-z])|evidence")
_ANGLE_WORD: Final = re.compile("citation")
_OPENER: Final = re.compile(f"[{re.escape(SQUARE_OPENERS + ANGLE_OPENERS)}]")
_WORDS: Final = re.compile(
    "|".join(spread(word) for word in ("RAG_KNOWLEDGE", "TABLE_KNOWLEDGE", "file_ref_table", "__src", "evidentia-image:")), re.IGNORECASE
)
_TRACES: Final = ("_knowledge", "_ref_", "__src", "evidentia-")
"""One of these stands in every such word that nothing invisible disguises."""
_UNSEEN: Final = f"[{INVISIBLE}{TAG_CHARACTERS}]"
_HEADING: Final = re.compile(
    rf"^(?P<indent>(?:\s|{_UNSEEN})*)(?P<mark>[#\N{{FULLWIDTH NUMBER SIGN}}\N{{SMALL NUMBER SIGN}}])"
    rf"(?=(?:[#\s\N{{FULLWIDTH NUMBER SIGN}}\N{{SMALL NUMBER SIGN}}]|{_UNSEEN}){{0,64}}"
    rf"[{re.escape(SQUARE_OPENERS)}](?:\s|{_UNSEEN}){{0,64}}\d)",
    re.MULTILINE,
)
_CODE: Final = re.compile(
    rf"(?<![A-Za-z0-9_])F(?={_UNSEEN}{{0,16}}\d(?:\d|{_UNSEEN}){{0,48}}S{_UNSEEN}{{0,16}}\d(?:\d|{_UNSEEN}){{0,48}}R{_UNSEEN}{{0,16}}\d)"
)


def neutralise(text: str) -> str:
    """Return the text with everything in it that could be read as one of our marks made harmless."""
    if _OPENER.search(text):
        text = _HEADING.sub(lambda found: f"{found['indent']}&#{ord(found['mark'])};", text)
        text = _OPENER.sub(lambda opener: _without_mark(text, opener), text)
    if not text.isascii() or any(trace in text.lower() for trace in _TRACES):
        text = _WORDS.sub(_referenced, text)
    return _CODE.sub("&#70;", text)


def neutral_line(text: str) -> str:
    """Return the text on one line, neutralised; for names, titles and alt texts."""
    return neutralise(" ".join("".join(each if each.isprintable() else " " for each in text).split()))


def _without_mark(text: str, opener: re.Match[str]) -> str:
    word, is_buried = seen_from(text, opener.end())
    mark = _ANGLE_WORD if opener[0] in ANGLE_OPENERS else _SQUARE_WORD
    return f"&#{ord(opener[0])};" if is_buried or mark.match(word) else opener[0]


def _referenced(found: re.Match[str]) -> str:
    """Return a word with its first sign that is no letter written as a reference."""
    word = found[0]
    place = next(place for place, each in enumerate(word) if not each.isalnum())
    return f"{word[:place]}&#{ord(word[place])};{word[place + 1 :]}"
