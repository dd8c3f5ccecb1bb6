"""The user's synonyms of what stands in the question, outside its quotes, are searched as well and count half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.query.lexical import PARTIAL_WEIGHT, Expansion, added_terms
from evidentia.query.words import unquoted

if TYPE_CHECKING:
    from evidentia.text.tokens import Tokeniser


MAX_POSITIONS: Final = 1_024
"""Synonyms are looked for among so many words."""
MAX_TERMS: Final = 32


def expand_synonyms(text: str, *, tokeniser: Tokeniser, synonyms: Synonyms) -> Expansion:
    """Return the terms of the synonyms of every entry that occurs, the longest entry at each place, at most 32 terms."""
    found: dict[Entry, None] = {}
    left = MAX_POSITIONS
    for stretch in unquoted(text):
        terms = tokeniser.phrase_terms(" ".join(stretch.split(maxsplit=left)[:left]))[:left] if left else []
        left -= len(terms)
        found |= dict.fromkeys(_entries_in(terms, synonyms))
    added = dict.fromkeys(term for entry in found for terms in synonyms.additions[entry] for term in terms)
    note = ", ".join(" ".join(entry) for entry in list(found)[:MAX_TERMS]) or "no entry of the file occurs"
    return Expansion(weights=dict.fromkeys(list(added)[:MAX_TERMS], PARTIAL_WEIGHT), note=note)


def _entries_in(terms: Sequence[str], synonyms: Synonyms) -> Iterator[Entry]:
    place = 0
    while place < len(terms):
        step = 1
        for count in range(min(synonyms.longest, len(terms) - place), 0, -1):
            entry = tuple(terms[place : place + count])
            if entry in synonyms.additions:
                yield entry
                step = count
                break
        place += step


# --- synonym file ---
# The user's file of synonyms: `a, b, c` works both ways, `a => b, c` one way, `#` starts a comment.
#
# An entry may have several words. A line that cannot be read is an error that names the file and the line; nothing is skipped in silence.
# Entries are compared as terms, so `key` and `Keys` are one entry. Groups do not chain: `a, b` and `b, c` do not make `c` of `a`.

MAX_FILE_LENGTH: Final = 1 << 20
MAX_LINES: Final = 20_000
MAX_ENTRIES: Final = 32
MAX_ENTRY_LENGTH: Final = 100
MAX_ENTRY_TERMS: Final = 8
MAX_ADDED: Final = 64
"""One entry adds at most so many entries, over all lines."""
FIELD: Final = "query.synonyms"

Entry = tuple[str, ...]
"""The terms of an entry, one per position."""


class Synonyms(msgspec.Struct, frozen=True, kw_only=True):
    """What each entry adds, and how many terms the longest entry has."""

    additions: Mapping[Entry, tuple[tuple[str, ...], ...]] = msgspec.field(default_factory=dict)
    """The terms of each added entry, in the order of the file."""
    longest: int = 0


def parse_synonyms(text: str, *, file: str, tokeniser: Tokeniser) -> Synonyms:
    """Return the synonyms of a file; `file` is its name for messages."""
    if len(text) > MAX_FILE_LENGTH:
        raise InvalidFieldError(FIELD, f"'{file}' has more than {MAX_FILE_LENGTH} characters; split or shorten it")
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise InvalidFieldError(FIELD, f"'{file}' has more than {MAX_LINES} lines; shorten it")
    additions: dict[Entry, dict[tuple[str, ...], None]] = {}
    for number, line in enumerate(lines, start=1):
        rule = line.partition("#")[0].strip().lstrip("\ufeff")
        if rule:
            _LineReader(file, number, tokeniser).read(rule, additions)
    longest = max(map(len, additions), default=0)
    return Synonyms(additions={entry: tuple(added) for entry, added in additions.items() if added}, longest=longest)


class _LineReader:
    """Reads one line; knows its place for the message."""

    def __init__(self, file: str, number: int, tokeniser: Tokeniser) -> None:
        self._file = file
        self._number = number
        self._tokeniser = tokeniser

    def read(self, rule: str, additions: dict[Entry, dict[tuple[str, ...], None]]) -> None:
        """Add what the line says to what is known."""
        left, arrow, right = rule.partition("=>")
        if "=>" in right:
            self._refuse("'=>' may stand only once")
        sources = self._entries(left)
        targets = self._entries(right) if arrow else sources
        if not arrow and len(sources) < 2:  # noqa: PLR2004 - a word alone has no synonym
            self._refuse("a group needs at least two entries separated by commas")
        for entry, _ in sources:
            known = additions.setdefault(entry, {})
            known |= dict.fromkeys(terms for other, terms in targets if other != entry)
            if len(known) > MAX_ADDED:
                self._refuse(f"'{' '.join(entry)}' has more than {MAX_ADDED} synonyms by now")

    def _entries(self, side: str) -> list[tuple[Entry, tuple[str, ...]]]:
        entries = [entry.strip() for entry in side.split(",")]
        if len(entries) > MAX_ENTRIES:
            self._refuse(f"more than {MAX_ENTRIES} entries in one group")
        return [self._entry(entry) for entry in entries]

    def _entry(self, entry: str) -> tuple[Entry, tuple[str, ...]]:
        if not entry:
            self._refuse("an entry is empty; check the commas and the arrow")
        if len(entry) > MAX_ENTRY_LENGTH:
            self._refuse(f"an entry has more than {MAX_ENTRY_LENGTH} characters")
        terms = tuple(self._tokeniser.phrase_terms(entry))
        if not terms:
            self._refuse(f"'{entry}' has no word to search for")
        if len(terms) > MAX_ENTRY_TERMS:
            self._refuse(f"'{entry}' has more than {MAX_ENTRY_TERMS} words")
        return terms, tuple(added_terms(entry, self._tokeniser))

    def _refuse(self, problem: str) -> NoReturn:
        raise InvalidFieldError(FIELD, f"'{self._file}', line {self._number}: {problem}")
