"""Which names patterns have in common, decided exactly: a search over the product of their automata, with a name as proof.

A pattern without glob characters is a name. Refuses to guess: a product that grows too large is undecided.
"""

from __future__ import annotations

from collections import deque
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_STATES: Final = 2_000
_FRIENDLY: Final = "xabcdefghijklmnopqrstuvwyz0123456789-_XABCDEFGHIJKLMNOPQRSTUVWYZ"
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class UndecidedError(Exception):
    """The product of the patterns is too large to be searched."""


class _Token(NamedTuple):
    """One piece of a pattern: a character, `?`, `*` or a class in brackets."""

    text: str
    is_star: bool = False
    is_literal: bool = False

    def takes(self, character: str) -> bool:
        return self.text == character if self.is_literal else fnmatchcase(character, self.text)


def find_name(patterns: Sequence[str], wanted: Callable[[tuple[bool, ...]], bool]) -> str | None:
    """Return a name for which `wanted` holds of whether each pattern matches it, or None when there is none.

    Names are not empty. Names that stand in the patterns are preferred, then short ones. Raises UndecidedError.
    """
    for guess in _guesses(patterns):
        if wanted(tuple(fnmatchcase(guess, pattern) if is_glob(pattern) else guess == pattern for pattern in patterns)):
            return guess
    return _search([_tokens(pattern) for pattern in patterns], wanted)


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern has glob characters; one without is compared as it is."""
    return any(character in pattern for character in "*?[")


def _guesses(patterns: Sequence[str]) -> Iterator[str]:
    yield "agent"
    for pattern in patterns:
        yield pattern.replace("*", "x").replace("?", "x")


def _search(patterns: Sequence[tuple[_Token, ...]], wanted: Callable[[tuple[bool, ...]], bool]) -> str | None:
    """Walk over all names by length; two names that leave every pattern in the same state are one."""
    alphabet = _alphabet(patterns)
    begin = tuple(_closed(pattern, 1) for pattern in patterns)
    # The empty name is no name, so the state of the beginning is not marked as seen: a word may come back to it.
    seen: set[tuple[int, ...]] = set()
    pending = deque([("", begin)])
    while pending:
        word, states = pending.popleft()
        for character in alphabet:
            after = tuple(_step(pattern, state, character) for pattern, state in zip(patterns, states, strict=True))
            if after in seen:
                continue
            name = word + character
            if wanted(tuple(bool(state >> len(pattern) & 1) for pattern, state in zip(patterns, after, strict=True))):
                return name
            seen.add(after)
            if len(seen) > MAX_STATES:
                raise UndecidedError
            pending.append((name, after))
    return None


def _step(pattern: tuple[_Token, ...], state: int, character: str) -> int:
    """Return the positions (as bits) after a character."""
    after = 0
    for position, token in enumerate(pattern):
        if state >> position & 1 and (token.is_star or token.takes(character)):
            after |= 1 << (position if token.is_star else position + 1)
    return _closed(pattern, after)


def _closed(pattern: tuple[_Token, ...], state: int) -> int:
    for position, token in enumerate(pattern):
        if token.is_star and state >> position & 1:
            state |= 1 << (position + 1)
    return state


def _tokens(pattern: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    at = 0
    while at < len(pattern):
        end = _class_end(pattern, at) if pattern[at] == "[" else at
        text = pattern[at : end + 1]
        is_class = len(text) > 1
        found.append(_Token(text, is_star=text == "*", is_literal=not is_class and text not in {"*", "?"}))
        at = end + 1
    return tuple(found)


def _class_end(pattern: str, start: int) -> int:
    """Return where a class ends; a bracket that is never closed is a character."""
    at = start + 1
    if pattern[at : at + 1] == "!":
        at += 1
    end = pattern.find("]", at + 1 if pattern[at : at + 1] == "]" else at)
    return start if end < 0 else end


def _alphabet(patterns: Sequence[tuple[_Token, ...]]) -> tuple[str, ...]:
    """Return one character of every class that the patterns tell apart, friendly ones where there is a choice."""
    tokens = [token for pattern in patterns for token in pattern if not token.is_star]
    named = sorted({character for token in tokens if token.text != "?" for character in token.text})
    cuts = sorted({0} | {point for character in named for point in (ord(character), ord(character) + 1) if point <= _LAST})
    found: dict[tuple[bool, ...], str] = {}
    for character in (*_FRIENDLY, *named, *(chr(cut) for cut in cuts if cut not in _SURROGATES)):
        found.setdefault(tuple(token.takes(character) for token in tokens), character)
    return tuple(found.values())
