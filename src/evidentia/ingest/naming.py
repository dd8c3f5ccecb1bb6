"""File names as they may be shown to people: one line, no control characters, bounded; refuses to change what a name is."""

from __future__ import annotations

MAX_SHOWN_LENGTH = 200


def legible(name: str) -> str:
    r"""Return `name` fit for a message: what cannot be printed is written as an escape such as `\x1b` or `\u202e`."""
    if name.isprintable() and len(name) <= MAX_SHOWN_LENGTH:
        return name
    shown = name if len(name) <= MAX_SHOWN_LENGTH else f"{name[: MAX_SHOWN_LENGTH - 1]}…"
    return "".join(_printable(character) for character in shown)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
