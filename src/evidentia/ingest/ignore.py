"""Patterns that keep files out, with the meaning gitignore gives them; refuses to read any file itself.

A pattern file may be hostile like anything else in the tree, so matching takes time proportional to pattern times path: a
star never backtracks past the star after it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

IGNORED_NAMES = frozenset({"node_modules", "__pycache__", "evidentia.toml"})
"""Never ingested, besides everything hidden (`.git`, `.venv`, `.evidentia` and the like) and editor backups."""
BACKUP_ENDINGS = ("~", ".swp", ".swo", ".bak", ".orig")
MAX_PATTERN_LENGTH = 1_000


class IgnorePattern(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an ignore file: what it matches and whether it lets back in."""

    segments: tuple[re.Pattern[str] | None, ...]
    """One expression per path segment; None is `**`, any number of segments."""
    is_negated: bool
    is_anchored: bool
    needs_directory: bool

    def matches(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        """Tell whether the pattern names the path, given in segments relative to the pattern's own directory."""
        if self.needs_directory and not is_directory:
            return False
        if not self.is_anchored:
            only = self.segments[0]
            return only is None or only.fullmatch(parts[-1]) is not None
        return _segments_match(self.segments, parts)


class IgnoreRules(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns in force in one directory: outer ones first, because the last that matches decides."""

    layers: tuple[tuple[int, tuple[IgnorePattern, ...]], ...] = ()
    """The depth of the directory each group of patterns stands in, and the group."""

    def extended(self, patterns: Sequence[IgnorePattern], *, depth: int) -> IgnoreRules:
        """Return the rules with the patterns of a directory `depth` segments below the root added."""
        return IgnoreRules(layers=(*self.layers, (depth, tuple(patterns)))) if patterns else self

    def ignores(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        """Tell whether a path, in segments relative to the root, is kept out by the last pattern that names it."""
        for depth, patterns in reversed(self.layers):
            relative = parts[depth:]
            for pattern in reversed(patterns):
                if pattern.matches(relative, is_directory=is_directory):
                    return not pattern.is_negated
        return False


def is_ignored_name(name: str) -> bool:
    """Tell whether a file or directory of this name is never ingested, whatever the patterns say."""
    return name.startswith(".") or name in IGNORED_NAMES or name.endswith(BACKUP_ENDINGS) or (name.startswith("#") and name.endswith("#"))


def parse_patterns(lines: Iterable[str]) -> tuple[IgnorePattern, ...]:
    """Return the patterns of an ignore file; blank lines, comments and lines beyond any sane length are passed over."""
    parsed = (_parse(line) for line in lines if len(line) <= MAX_PATTERN_LENGTH)
    return tuple(pattern for pattern in parsed if pattern is not None)


def _parse(line: str) -> IgnorePattern | None:
    text = _without_trailing_spaces(line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    needs_directory = text.endswith("/")
    text = text[:-1] if needs_directory else text
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    segments = tuple(None if part == "**" else _segment(part) for part in text.split("/"))
    if not is_anchored and segments == (None,):
        segments = (_segment("*"),)
    return IgnorePattern(segments=_merged(segments), is_negated=is_negated, is_anchored=is_anchored, needs_directory=needs_directory)


def _without_trailing_spaces(text: str) -> str:
    stripped = text.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and len(stripped) < len(text) else stripped


def _merged(segments: tuple[re.Pattern[str] | None, ...]) -> tuple[re.Pattern[str] | None, ...]:
    kept = [segment for index, segment in enumerate(segments) if segment is not None or index == 0 or segments[index - 1] is not None]
    return tuple(kept)


def _segment(glob: str) -> re.Pattern[str]:
    """Compile one segment; each star is atomic with what follows it, so that a match never backtracks into an earlier star."""
    pieces: list[str] = [""]
    index = 0
    while index < len(glob):
        character = glob[index]
        index += 1
        if character == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif character == "?":
            pieces[-1] += "."
        elif character == "[":
            expression, index = _bracket(glob, index)
            pieces[-1] += expression
        elif character == "\\":
            if index == len(glob):
                return re.compile(r"(?!)")
            pieces[-1] += re.escape(glob[index])
            index += 1
        else:
            pieces[-1] += re.escape(character)
    first, *rest = pieces
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last}", re.DOTALL)


def _bracket(glob: str, start: int) -> tuple[str, int]:
    """Return the expression for a bracket opened just before `start`, and where the glob goes on."""
    index = start
    is_negated = index < len(glob) and glob[index] in "!^"
    index += is_negated
    members: list[str] = []
    first = index
    while index < len(glob) and (glob[index] != "]" or index == first):
        if glob.startswith("[:", index) and (end := glob.find(":]", index)) > 0:
            members.append(_CLASSES.get(glob[index + 2 : end], ""))
            index = end + 2
            continue
        low, index = _member(glob, index)
        if index + 1 < len(glob) and glob[index] == "-" and glob[index + 1] != "]":
            high, index = _member(glob, index + 1)
            members.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
        else:
            members.append(re.escape(low))
    if index >= len(glob):
        return r"(?!)", len(glob)  # git matches nothing with a bracket that is never closed
    inner = "".join(members)
    if not inner:
        return ("." if is_negated else r"(?!)"), index + 1
    return f"[{'^' if is_negated else ''}{inner}]", index + 1


def _member(glob: str, index: int) -> tuple[str, int]:
    if glob[index] == "\\" and index + 1 < len(glob):
        return glob[index + 1], index + 2
    return glob[index], index + 1


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def _segments_match(segments: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Match segment by segment, returning only to the last `**`: earlier ones can gain nothing by taking more."""
    at = part = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        segment = segments[at] if at < len(segments) else _NOTHING
        if segment is None:
            if at == len(segments) - 1:
                return True
            retry = (at, part)
            at += 1
        elif segment.fullmatch(parts[part]) is not None:
            at, part = at + 1, part + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            at, part = retry[0] + 1, retry[1]
        else:
            return False
    return at == len(segments)


_NOTHING = re.compile(r"(?!)")
