"""Whether a sentence says that no relevant information was found, in any of the usual wordings.

A sentence that says so of one part and goes on to answer (`not in section 2, but ...`) does not say it, and neither does one about files,
errors or anything else that is not found. English, with the plain wordings of Chinese, Japanese and German.
"""

from __future__ import annotations

import re
from typing import Final

from evidentia.agents.replies.words import read_terms

_WHAT: Final = (
    r"(?:information|info|evidence|results?|records?|documents?|documentation|data|details?|mentions?|references?|answers?|entry|entries"
    r"|match|matches|passages?|sources?|materials?|content|hits?|indications?|facts?|guidance|figures?)"
)
_WHERE: Final = (
    r"(?:knowledge bases?|documents?|documentation|sources?|results?|materials?|files?|corpus|spreadsheets?|tables?|passages?|handbook"
    r"|manual|records|collection|index|evidence|context|excerpts?|data|database|retrieved \w+|available \w+)"
)
_FIND: Final = r"(?:find|locate|identify|retrieve|return|see|spot|turn up|come across|discover|obtain|answer (?:this|that|the|your))"
_FOUND: Final = (
    r"(?:found|located|identified|retrieved|available|returned|discovered|provided|mentioned|covered|present|contained|included|described)"
)
_NOT: Final = r"(?: not|n['\u2019]t| never)"
_FEW: Final = r"(?:[\w'\u2019-]+,? ){0,5}?"
_NEAR: Final = r"[^.;]{0,80}?"
_TELL: Final = (
    r"(?:contain|mention|say|include|provide|cover|state|address|specify|give|have|hold|list|show|discuss|describe|answer|offer|tell)"
)
_SEARCH: Final = r"(?:search|searches|retrieval|query|queries|lookup)"
_BRING: Final = r"(?:found|find|finds|returned|returns|yielded|gave|produced|turned up|brought up|came up with|came back with|see)"
_BE: Final = r"(?:is|was|were|are|seems? to be|appears? to be|simply is)"
_PATTERNS: Final = (
    rf"\bno {_FEW}{_WHAT}\b{_NEAR}\b(?:{_FOUND}|exists?|came up|turned up|matched|matches)\b",
    rf"\bno (?:relevant|matching|related|applicable|pertinent|useful|usable|such|suitable) {_FEW}{_WHAT}\b",
    rf"\bthere {_BE} (?:(?:no|not any) {_FEW}{_WHAT}|nothing (?:\w+ )?(?:in the|about|on))\b",
    rf"\bthere (?:is|was|are|were)n['\u2019]t (?:any )?{_FEW}{_WHAT}\b",
    (
        rf"\b(?:i|we|it|one|tools?|{_SEARCH})\b{_NEAR}(?:could|can|did|do|was|were|am|are|have|had)(?:{_NOT}|not)(?: \w+){{0,3}}? "
        rf"(?:{_FIND}|found|located)\b"
    ),
    rf"\b(?:unable|not able|failed|was(?: not|n['\u2019]t) possible) to {_FIND}\b",
    rf"\bcould{_NOT} be (?:found|located|identified|retrieved|answered)\b",
    rf"\b(?:i|we|tools?|sources?|{_SEARCH})\b{_NEAR}\b{_BRING}(?: up)? (?:no|nothing|none|empty|zero)\b",
    (
        rf"\b{_SEARCH}\b[^.;]{{0,60}}?\b(?:came (?:up|back) empty|(?:was|were) (?:empty|unsuccessful)|drew a blank"
        r"|without (?:any )?(?:results?|success))\b"
    ),
    rf"\b{_WHERE}\b{_NEAR}\b(?:do|does|did){_NOT}(?: \w+)? {_TELL}\b",
    (
        rf"\b{_WHERE}\b{_NEAR}\b(?:have|has|had|contained|(?:contain|hold|include|provide|give|make)s?) "
        rf"(?:no|nothing) ?{_FEW}(?:{_WHAT}|about|on|of|that|for|regarding)\b"
    ),
    rf"\b(?:is|was|are|were){_NOT}(?: to be)?(?: \w+)?? {_FOUND}\b[^.;]{{0,30}}?\b(?:in|by|within|among|from) [^.;]{{0,40}}?{_WHERE}\b",
    rf"\b{_WHAT}\b{_NEAR}\b(?:is|was|are|were){_NOT} (?:found|available|returned|retrieved)$",
    rf"\bno {_FEW}{_WHERE} {_TELL}s?\b",
    rf"\b(?:i|we)\b{_NEAR}\b(?:searched|looked|checked|tried)\b{_NEAR}\bwithout (?:any )?(?:success|results?)\b",
    rf"\b(?:none of|neither|nothing in) {_FEW}{_WHERE}\b{_NEAR}\b(?:{_TELL}|match|matche|speak|relate|deal)s?\b",
    rf"\b(?:i|we) (?:do|did){_NOT} (?:currently )?have (?:any |enough )?{_FEW}{_WHAT}\b",
    r"\bcan(?:not|n['\u2019]t| not) be (?:answered|found|determined) (?:from|with|in|based)\b",
    rf"\bnothing (?:\w+ )?(?:relevant|about|on|matching|related|useful|{_FOUND}|(?:was|could be|has been|is) {_FOUND}|came up|turned up)\b",
    r"^no (?:results?|matches|hits|evidence|information|data)(?: at all)?(?: (?:for|on|about) [^.;]{1,80})?$",
    r"\u672a\u627e\u5230|\u6ca1\u6709\u627e\u5230|\u627e\u4e0d\u5230|\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
    r"\bkeine (?:relevanten |passenden )?(?:informationen|angaben|hinweise)\b",
)
_NOT_FOUND: Final = re.compile("|".join(_PATTERNS), re.IGNORECASE)
_HINTS: Final = frozenset(
    {"no", "not", "nothing", "none", "neither", "never", "cannot", "unable", "failed", "empty", "unsuccessful", "drew", "without", "keine"}
)
_HINT_PARTS: Final = ("n't", "n\u2019t", "\u627e", "\u898b")
"""One of these stands in every sentence that a pattern fits: most sentences are done with them."""
_TURN: Final = re.compile(
    r";|[,:\u2014\u2013] ?(?:however|though|although|yet|instead|nevertheless|still|whereas|while|except)\b|\bbut\b"
    r"|\b(?:other|apart) (?:than|from)\b|\bexcept (?:for|that|in)\b",
    re.IGNORECASE,
)
_CONCEDES: Final = re.compile(
    r"(?:while|although|though|even though|despite|if|when|whenever|where|once|unless|because|since|apart from|besides)\b", re.IGNORECASE
)
_OFFER: Final = re.compile(
    r"\b(?:you (?:can|could|may|might|should)|i (?:can|could|would|will|suggest|recommend|am happy)|please|try|let me|feel free|contact)\b",
    re.IGNORECASE,
)
_EDGES: Final = ".,;:!?()\"'*_"
_LEAST_ANSWER: Final = 3
_MAX_LENGTH: Final = 600


def says_nothing_found(sentence: str) -> bool:
    """Tell whether a sentence says that nothing relevant was found, without going on to answer; only its first 600 characters count."""
    bare = sentence[:_MAX_LENGTH].strip(" *_.!\u3002")
    if not _has_hint(bare.lower()) or _CONCEDES.match(bare):
        return False
    found = _NOT_FOUND.search(bare)
    if found is None:
        return False
    turn = _TURN.search(bare, found.start())
    if turn is None or turn.end() <= found.end():
        return True
    rest = bare[turn.end() :]
    return _OFFER.search(rest) is not None or len(read_terms(rest)) < _LEAST_ANSWER or _NOT_FOUND.search(rest) is not None


def _has_hint(lowered: str) -> bool:
    return not _HINTS.isdisjoint(word.strip(_EDGES) for word in lowered.split()) or any(part in lowered for part in _HINT_PARTS)
