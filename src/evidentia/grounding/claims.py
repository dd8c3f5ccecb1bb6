"""An answer cut into claims, by exact character spans. What asserts nothing is no claim: headings, questions, greetings, code, rules.

A claim is a sentence, without its list mark. Refuses to rephrase: a pronoun stays a pronoun.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from evidentia.contracts.errors import InvalidFieldError
from evidentia.grounding.reading import read_claim
from evidentia.text.sentences import split_sentences

LEAST_WORDS: Final = 2
"""Words with content that a claim has at least."""

_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]{0,3}\1[`~]*+[ \t]*+$|\Z)", re.MULTILINE | re.DOTALL)
_MARK: Final = re.compile(r"\s*(?:[-*+\u2022>]\s+|\(?\d{1,3}[.)]\s+|\(?[a-zA-Z][.)]\s+)?(?:\[[ xX]\]\s+)?")
_RULE: Final = re.compile(r"[\W_]*")
_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|dear|greetings|good (?:morning|afternoon|evening)|thanks|thank you|you(?:'|\u2019)re welcome|welcome|sure|certainly"
    r"|of course|absolutely|great question|sorry|i apologi[sz]e|i hope (?:this|that)|i(?:'|\u2019)m (?:happy|glad|sorry)|let me know"
    r"|feel free|please (?:let|feel|note)|happy to help|best regards|kind regards|regards|sincerely|cheers"
    r"|here (?:is|are)|here(?:'|\u2019)s"
    r"|based on (?:the|these|your))\b",
    re.IGNORECASE,
)
_MAX_GREETING_LENGTH: Final = 12
_CLOSERS: Final = "\"')]}*_\u2019\u201d\u00bb"


class ClaimSpan(NamedTuple):
    """Characters `start` up to, not including, `end` of the answer, and what stands there."""

    start: int
    end: int
    text: str


def split_claims(answer: str) -> list[ClaimSpan]:
    """Return the claims of an answer in order, never overlapping; empty when it asserts nothing."""
    if not isinstance(answer, str):
        raise InvalidFieldError("answer", f"it is a {type(answer).__name__}; pass the answer as text")
    # Code is blanked, not cut, so that spans stay those of the answer.
    prose = _FENCE.sub(lambda found: re.sub(r"\S", " ", found[0]), answer) if "```" in answer or "~~~" in answer else answer
    claims: list[ClaimSpan] = []
    for span in split_sentences(prose):
        mark = _MARK.match(answer, span.start, span.end)
        start = mark.end() if mark else span.start
        text = answer[start : span.end]
        if is_claim(text):
            claims.append(ClaimSpan(start, span.end, text))
    return claims


def is_claim(sentence: str) -> bool:
    """Tell whether a sentence asserts something that evidence could support."""
    bare = sentence.strip()
    if _RULE.fullmatch(bare) or bare.startswith(("#", "|")):
        return False
    ending = bare.rstrip(_CLOSERS)
    if ending.endswith(("?", "\uff1f", ":")) or _is_heading(bare):
        return False
    if _GREETING.match(bare) and len(bare.split()) <= _MAX_GREETING_LENGTH:
        return False
    return len(read_claim(bare).weights) >= LEAST_WORDS


def _is_heading(sentence: str) -> bool:
    """Tell whether a line is all in emphasis without a full stop, as headings are written without a mark."""
    is_emphasised = sentence.startswith(("**", "__")) and sentence.endswith(("**", "__"))
    return is_emphasised and not sentence.strip("*_ ").endswith((".", "!", "\u3002"))
