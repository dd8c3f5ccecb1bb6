"""File names as they may be shown to people: one line, no control characters, bounded; refuses to change what a name is."""

from __future__ import annotations

LONGEST_SHOWN = 200


def legible(name: str) -> str:
    r"""Return `name` fit for a message: what cannot be printed is written as an escape such as `\x1b` or `\u202e`."""
    if name.isprintable() and len(name) <= LONGEST_SHOWN:
        return name
    shown = name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 1]}…"
    return "".join(_printable(character) for character in shown)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
