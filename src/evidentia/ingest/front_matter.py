"""The fenced block at the head of a text file in which it says things about itself.

A small language on purpose: `key: value`, quoted strings, `[a, b]` and `- item` lists. What does not fit is not front matter
but text; no YAML library means no anchors to unfold, no types to confuse and nothing to construct.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.reasons import NoteReason, SkipReason

MAX_BLOCK_LENGTH = 16_384
MAX_VALUE_LENGTH = 1_000
MAX_KEYS = 64
MAX_LIST_ENTRIES = 64

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]{0,63})[ \t]*:(?:[ \t]+(.*))?\Z", re.DOTALL)
_LIST_ENTRY = re.compile(r"[ \t]*-[ \t]+(.*)\Z", re.DOTALL)
_ACCESS_CLAIM = re.compile(r"^[ \t]*[\"']?(?:acl|classification)[\"']?[ \t]*:", re.MULTILINE | re.IGNORECASE)

Declared = Mapping[str, str | tuple[str, ...]]


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What a text declares and where its body begins."""

    declared: Declared = msgspec.field(default_factory=dict)
    body_start: int = 0
    notes: tuple[str, ...] = ()


def split_front_matter(text: str) -> FrontMatter:
    """Return what the head of `text` declares; a block that cannot be understood is body, with a note.

    Raises:
        DocumentUnreadableError: The block cannot be understood but speaks of access; guessing might open what was closed.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return FrontMatter()
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_BLOCK_LENGTH)
    if closing is None:
        # A rule at the head of an ordinary text looks like this too, so it is no mistake worth a note.
        return FrontMatter()
    block = text[opening.end() : closing.start()]
    declared, problem = _parse(block)
    if not problem:
        return FrontMatter(declared=declared, body_start=closing.end())
    if _ACCESS_CLAIM.search(block):
        advice = f"has front matter that cannot be understood ({problem}) and limits access; correct it and ingest the file again"
        raise DocumentUnreadableError(SkipReason.BAD_CLAIM, advice)
    return FrontMatter(
        notes=(f"{NoteReason.FRONT_MATTER.value}: has front matter that cannot be understood ({problem}); it counts as text",)
    )


def _parse(block: str) -> tuple[dict[str, str | tuple[str, ...]], str]:
    """Return the declarations, and the first problem or an empty string."""
    declared: dict[str, str | tuple[str, ...]] = {}
    list_key = ""
    for number, line in enumerate(block.splitlines(), start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _LIST_ENTRY.match(line)
        if entry is not None and list_key:
            declared[list_key] = _appended(declared[list_key], _unquoted(entry.group(1)))
            continue
        match = _KEY.match(line)
        if match is None:
            return {}, f"line {number} is not 'key: value'"
        key, value = match.group(1).lower(), (match.group(2) or "").strip()
        if key in declared:
            return {}, f"line {number} repeats '{key}'"
        if len(declared) >= MAX_KEYS:
            return {}, f"more than {MAX_KEYS} keys"
        declared[key] = _value(value)
        list_key = key if not value else ""
    return declared, ""


def _value(text: str) -> str | tuple[str, ...]:
    if text.startswith("[") and text.endswith("]"):
        entries = (_unquoted(entry) for entry in text[1:-1].split(",")[:MAX_LIST_ENTRIES])
        return tuple(entry for entry in entries if entry)
    return _unquoted(text)


def _appended(value: str | tuple[str, ...], entry: str) -> str | tuple[str, ...]:
    entries = value if isinstance(value, tuple) else ()
    return (*entries, entry) if entry and len(entries) < MAX_LIST_ENTRIES else entries


def _unquoted(text: str) -> str:
    value = text.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return (value[1:-1] if is_quoted else value.split(" #", 1)[0].rstrip())[:MAX_VALUE_LENGTH]
