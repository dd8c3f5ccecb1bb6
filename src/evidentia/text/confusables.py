"""What a stretch of text says to somebody who looks at it: without invisible characters, odd widths or letters that merely look right."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

SQUARE_OPENERS: Final = (
    "["
    "\N{FULLWIDTH LEFT SQUARE BRACKET}"
    "\N{LEFT BLACK LENTICULAR BRACKET}"
    "\N{LEFT TORTOISE SHELL BRACKET}"
    "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}"
    "\N{LIGHT LEFT TORTOISE SHELL BRACKET ORNAMENT}"
    "\N{LEFT SQUARE BRACKET WITH UNDERBAR}"
    "\N{SMALL LEFT TORTOISE SHELL BRACKET}"
)
ANGLE_OPENERS: Final = (
    "<"
    "\N{FULLWIDTH LESS-THAN SIGN}"
    "\N{SMALL LESS-THAN SIGN}"
    "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
    "\N{LEFT ANGLE BRACKET}"
    "\N{MATHEMATICAL LEFT ANGLE BRACKET}"
)
SLASHES: Final = "/\\\N{DIVISION SLASH}\N{FRACTION SLASH}"
LOOK_AHEAD: Final = 64
"""How far a word may be stretched with what cannot be seen before it counts as hidden."""

_LOOKALIKES: Final = str.maketrans(
    {
        "\N{CYRILLIC CAPITAL LETTER IE}": "E",
        "\N{CYRILLIC SMALL LETTER IE}": "e",
        "\N{CYRILLIC CAPITAL LETTER BYELORUSSIAN-UKRAINIAN I}": "I",
        "\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}": "i",
        "\N{CYRILLIC CAPITAL LETTER ES}": "C",
        "\N{CYRILLIC SMALL LETTER ES}": "c",
        "\N{CYRILLIC CAPITAL LETTER A}": "A",
        "\N{CYRILLIC SMALL LETTER A}": "a",
        "\N{CYRILLIC CAPITAL LETTER O}": "O",
        "\N{CYRILLIC SMALL LETTER O}": "o",
        "\N{CYRILLIC CAPITAL LETTER TE}": "T",
        "\N{CYRILLIC CAPITAL LETTER IZHITSA}": "V",
        "\N{CYRILLIC SMALL LETTER IZHITSA}": "v",
        "\N{CYRILLIC CAPITAL LETTER DZE}": "S",
        "\N{CYRILLIC SMALL LETTER DZE}": "s",
        "\N{GREEK CAPITAL LETTER EPSILON}": "E",
        "\N{GREEK CAPITAL LETTER IOTA}": "I",
        "\N{GREEK CAPITAL LETTER NU}": "N",
        "\N{GREEK CAPITAL LETTER OMICRON}": "O",
        "\N{GREEK SMALL LETTER OMICRON}": "o",
        "\N{GREEK CAPITAL LETTER TAU}": "T",
        "\N{GREEK CAPITAL LETTER RHO}": "P",
        "\N{GREEK CAPITAL LETTER ALPHA}": "A",
        "\N{GREEK SMALL LETTER NU}": "v",
        "\N{CYRILLIC CAPITAL LETTER KOMI DE}": "d",
        "\N{CYRILLIC SMALL LETTER KOMI DE}": "d",
    }
)
INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufe00-\ufe0f\ufeff"
)
"""Characters that take no room, as a range of a regular expression."""
TAG_CHARACTERS: Final = "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Invisible doubles of ASCII and the further variation selectors, likewise."""
_UNSEEN: Final = ("Cf", "Mn", "Cc")


def seen(text: str) -> str:
    """Return the letters that people see, in lower case and without spaces."""
    folded = unicodedata.normalize("NFKD", text.translate(_LOOKALIKES))
    return "".join(each for each in folded if not each.isspace() and unicodedata.category(each) not in _UNSEEN).casefold()


def seen_from(text: str, start: int) -> tuple[str, bool]:
    """Return what is seen from a place on, slashes aside, and whether so much there cannot be seen that nobody can tell."""
    ahead = text[start : start + LOOK_AHEAD]
    word = seen(ahead).lstrip(SLASHES)
    return word, len(ahead) == LOOK_AHEAD and len(word) < LOOK_AHEAD // 4


def spread(word: str) -> str:
    """Return a pattern that finds a word also when invisible characters stand between its letters."""
    return f"[{INVISIBLE}{TAG_CHARACTERS}]*".join(re.escape(letter) for letter in word)
