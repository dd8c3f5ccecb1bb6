"""Evidence tags for a prompt: provenance around content, in a form that content cannot forge or close.

Content and values come from documents and are hostile. Whatever could be read as one of our tags, also when disguised
with invisible characters, odd brackets or letters that merely look right, has its bracket written as a character
reference; `unescape` gives the original back, byte for byte.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.confidence_words import decimals
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.text.confusables import SQUARE_OPENERS, seen_from

if TYPE_CHECKING:
    from evidentia.contracts.evidence import EvidenceFragment

TAG = "EVIDENCE"
DOUBT = "Note: probably nothing here answers the question.\n"
"""The line before fragments that are all unlikely to be relevant; it counts as part of the text, and ends so that it is counted alone."""

_OPENER = re.compile(f"[{re.escape(SQUARE_OPENERS)}]")
_REFERENCE = re.compile(r"&(?:amp;)*#(?P<code>\d{1,6});")
_HOUR_S, _DAY_S = 3_600, 86_400


class TagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a tag says about its content; None leaves the attribute out."""

    source: str
    authority: AuthorityTier
    rank: int
    freshness_s: int | None = None
    confidence: float | None = None
    retrieval_method: str | None = None
    is_human_verified: bool = False
    flags: tuple[str, ...] = ()


def facts_of(fragment: EvidenceFragment, *, rank: int, as_of: datetime) -> TagFacts:
    """Return what the tag of a fragment says at a rank of an answer; its freshness is the age of the content, where that has a date."""
    trust, context = fragment.trust_metadata, fragment.retrieval_context
    return TagFacts(
        source=fragment.source_id,
        authority=fragment.authority_tier,
        rank=rank,
        freshness_s=age_s(fragment, as_of=as_of),
        confidence=fragment.confidence,
        retrieval_method=context.method if context else None,
        is_human_verified=bool(trust and trust.verified_by),
        flags=fragment.flags,
    )


def age_s(fragment: EvidenceFragment, *, as_of: datetime) -> int | None:
    """Return how many seconds ago the content was changed; None when it has no date that can be read. What is dated later is new."""
    try:
        updated_at = datetime.fromisoformat(fragment.metadata.get("updated_at", ""))
    except ValueError:
        return None
    return None if updated_at.tzinfo is None else max(0, int((as_of - updated_at).total_seconds()))


def render_tag(facts: TagFacts, content: str) -> str:
    """Return the content between an opening and a closing tag."""
    return (opening(facts) + closing(content)).removesuffix("\n")


def opening(facts: TagFacts) -> str:
    """Return the first half of a rendered fragment, which ends before the bracket that ends its tag.

    It ends in a letter or a digit and the other half begins with a bracket, so no tokenizer joins the two, and each can be counted alone.
    """
    return f"[{TAG} {' '.join(_attributes(facts))}"


def closing(content: str) -> str:
    """Return the other half of a rendered fragment, with the line end before the next."""
    return f"]\n{escape(content)}\n[/{TAG}]\n"


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
    if facts.confidence is not None:
        attributes.append(f"confidence={decimals(facts.confidence)}")
    if facts.retrieval_method is not None:
        attributes.append(f'retrieval_method="{_value(facts.retrieval_method)}"')
    attributes.append(f"rank={facts.rank}")
    if facts.is_human_verified:
        attributes.append("human_verified=true")
    attributes += [f"{flag}=true" for flag in dict.fromkeys(facts.flags) if flag.isidentifier() and flag.isascii()]
    return attributes


def _value(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r'["&\[\]<>]', lambda character: f"&#{ord(character[0])};", printable)


def _escaped_opener(content: str, opener: re.Match[str]) -> str:
    word, is_buried = seen_from(content, opener.end())
    return f"&#{ord(opener[0])};" if is_buried or word.startswith(TAG.casefold()) else opener[0]
