"""Text from documents and file names made harmless for a terminal. Refuses to change what is printable."""

from __future__ import annotations

import re
import unicodedata

# JSON escapes what is below U+0020 by itself. These remain: DEL, C1 controls, soft hyphen, zero-width and bidirectional
# marks, line and paragraph separators, interlinear annotation, tags. Each can hide or reorder what a reader sees.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def printable(text: str) -> str:
    r"""Return one line in which whatever a terminal might act on is written as an escape such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _escape(character) for character in text)


def printable_json(document: str) -> str:
    r"""Return the same JSON with what a terminal might act on written as `\uXXXX`; its meaning does not change."""
    return _UNSAFE_IN_JSON.sub(_json_escape, document)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
