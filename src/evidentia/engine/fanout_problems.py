"""Says what went wrong inside a source in a few safe words: the kind of the error, and of its message only what is not content."""

from __future__ import annotations

import re
from typing import NamedTuple

from evidentia.contracts.errors import EvidentiaError, MissingExtraError

_MAX_CHARS = 160
_MAX_KIND_CHARS = 60
_MAX_RAW_CHARS = 2_000
_LEFT_OUT = "…"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|«[^»]*»|“[^”]*”")
_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://\S*", re.IGNORECASE)
_LONG_WORD = re.compile(r"\S{24,}")
_UNPRINTABLE = re.compile(r"[^\w .,;:!?()\[\]{}/+*=%$#@&|_…'\"-]")


class Problem(NamedTuple):
    """Why a source failed."""

    kind: str
    """The error's type."""
    told: str
    """The type and what is left of the message, for the caller whose question it was."""
    shared: str
    """The same without a message that a stranger wrote, for the health of the source, which others see."""


def problem_of(error: BaseException, *, query: str) -> Problem:
    """Describe an error: quoted text, addresses, long words and the question itself are left out of its message."""
    kind = _cleaned(type(error).__name__)[:_MAX_KIND_CHARS] or "Exception"
    message = str(error) if type(error) is MissingExtraError else _message(error, query=query)
    told = f"{kind}: {message}" if message else kind
    return Problem(kind=kind, told=told, shared=told if isinstance(error, EvidentiaError) else kind)


def _message(error: BaseException, *, query: str) -> str:
    try:
        raw = str(error)[:_MAX_RAW_CHARS]
    except BaseException:  # noqa: BLE001 (what a source raises is a stranger's, also when it is asked for its words)
        return ""
    if query:
        raw = raw.replace(query, _LEFT_OUT)
    for pattern in (_QUOTED, _ADDRESS, _LONG_WORD):
        raw = pattern.sub(_LEFT_OUT, raw)
    cleaned = _cleaned(raw)
    return cleaned if len(cleaned) <= _MAX_CHARS else f"{cleaned[: _MAX_CHARS - 1]}{_LEFT_OUT}"


def _cleaned(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())
