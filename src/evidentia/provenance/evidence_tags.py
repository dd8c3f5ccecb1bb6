"""Evidence tags for a prompt: provenance around content, in a form that content cannot forge or close.

Content and values come from documents and are hostile. Whatever could be read as one of our tags, also when disguised
with invisible characters, odd brackets or letters that merely look right, has its bracket written as a character
reference; `unescape` gives the original back, byte for byte.
"""

from __future__ import annotations

import re

import msgspec

from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.text.confusables import SQUARE_OPENERS, seen_from

TAG = "EVIDENCE"

_OPENER = re.compile(f"[{re.escape(SQUARE_OPENERS)}]")
_REFERENCE = re.compile(r"&(?:amp;)*#(?P<code>\d{1,6});")
_HOUR_S, _DAY_S = 3_600, 86_400


class TagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a tag says about its content; None leaves the attribute out."""

    source: str
    authority: AuthorityTier
    rank: int
    freshness_s: int | None = None
    confidence_percent: int | None = None
    retrieval_method: str | None = None
    is_human_verified: bool = False
    flags: tuple[str, ...] = ()


def render_tag(facts: TagFacts, content: str) -> str:
    """Return the content between an opening and a closing tag."""
    return f"[{TAG} {' '.join(_attributes(facts))}]\n{escape(content)}\n[/{TAG}]"


def escape(content: str) -> str:
    """Return the content with every bracket that could begin a tag written as a reference."""
    protected = _REFERENCE.sub(lambda reference: f"&amp;{reference[0][1:]}", content)
    if not _OPENER.search(protected):
        return protected
    return _OPENER.sub(lambda opener: _escaped_opener(protected, opener), protected)


def unescape(escaped: str) -> str:
    """Return what `escape` was given."""

    def original(reference: re.Match[str]) -> str:
        text = reference[0]
        return "&" + text.removeprefix("&amp;") if text.startswith("&amp;") else chr(int(reference["code"]))

    return _REFERENCE.sub(original, escaped)


def freshness_text(seconds: int) -> str:
    """Return an age as people write it: minutes below an hour, hours below three days, then days."""
    if seconds < _HOUR_S:
        return f"{max(0, seconds) // 60}m"
    if seconds < 3 * _DAY_S:
        return f"{seconds // _HOUR_S}h"
    return f"{seconds // _DAY_S}d"


def _attributes(facts: TagFacts) -> list[str]:
    attributes = [f'source="{_value(facts.source)}"', f"authority={facts.authority.name}"]
    if facts.freshness_s is not None:
        attributes.append(f"freshness={freshness_text(facts.freshness_s)}")
    if facts.confidence_percent is not None:
        attributes.append(f"confidence={facts.confidence_percent // 100}.{facts.confidence_percent % 100:02d}")
    if facts.retrieval_method is not None:
        attributes.append(f'retrieval_method="{_value(facts.retrieval_method)}"')
    attributes.append(f"rank={facts.rank}")
    if facts.is_human_verified:
        attributes.append("human_verified=true")
    attributes += [f"{flag}=true" for flag in facts.flags if flag.isidentifier() and flag.isascii()]
    return attributes


def _value(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r'["&\[\]<>]', lambda character: f"&#{ord(character[0])};", printable)


def _escaped_opener(content: str, opener: re.Match[str]) -> str:
    word, is_buried = seen_from(content, opener.end())
    return f"&#{ord(opener[0])};" if is_buried or word.startswith(TAG.casefold()) else opener[0]
