"""The sentences of a reply by what they do: assert something, ask, introduce, be polite, tell counts, or say that nothing was found.

Rules of wording, no model. When in doubt a sentence asserts nothing: what is left out here is never accused.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

from evidentia.grounding.lexicon import EMPTY, NUMBER_WORDS, TOKENISER
from evidentia.text.sentences import split_sentences

LEAST_TERMS: Final = 2
"""Words with content that a sentence needs to assert something; one is enough when it has a digit."""

_APOSTROPHE: Final = "['\u2019]"
_POLITE: Final = re.compile(
    "(?:hi|hello|hey|dear|greetings|good (?:morning|afternoon|evening|question)|thanks|thank you|you(?:"
    + _APOSTROPHE
    + "re| are) welcome|welcome"
    "|sure|certainly|of course|absolutely|great question|sorry|cheers|sincerely|regards|(?:best|kind) regards|happy to|glad to"
    "|i apologi[sz]e|i (?:really )?hope|i(?:"
    + _APOSTROPHE
    + "m| am) (?:happy|glad|sorry)|i(?:"
    + _APOSTROPHE
    + "d| would) be (?:happy|glad)"
    "|i can (?:also |help|look|search|check)|let me know|feel free|do(?: not|n"
    + _APOSTROPHE
    + "t) hesitate|just (?:ask|let)|you can also ask"
    "|please (?:let|feel|tell|ask|contact|reach|do not|don" + _APOSTROPHE + "t)|should you|would you like|is there anything"
    "|if you (?:need|want|have|would|like|wish|are looking)|for (?:more|further) (?:details|information|help))\\b",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    "(?:here(?:" + _APOSTROPHE + "s| is| are)|below(?: is| are|,)?|the following|as follows|the (?:table|list|steps|details|results?) below"
    "|(?:i|we) (?:have )?(?:found|searched|looked|checked|retrieved)|you asked|your question|to answer your|in (?:answer|reply) to"
    "|(?:this|the) (?:answer|reply|table|list) (?:is based|shows|lists|gives|draws)|these are|this is what"
    "|(?:based on|according to) (?:the|these|what))\\b",
    re.IGNORECASE,
)
_OPENERS: Final = frozenset(
    "hi hello hey dear greetings good thanks thank you you're welcome sure certainly of absolutely great sorry cheers sincerely "  # noqa: SIM905 - a list of words reads as words
    "regards best kind happy glad i i'm i'd let feel do don't just please should would is if for here here's below the as we your to in "
    "this these based according".split()
)
"""The first words of all that the two patterns find: most sentences are done with them."""
_MAX_LEAD_LENGTH: Final = 16
_MAX_ATTRIBUTION_LENGTH: Final = 8
_COUNT_WORD: Final = re.compile(
    r"\b(?:totals?|display|displayed|displaying|shown|showing|shows?|omit|omits|omitted|omitting|left out|leav(?:e|es|ing) out|truncated"
    r"|not (?:shown|displayed|listed|included)|remaining|match|matches|matching|list|lists|listed|hidden|in all|altogether|cut off|out of"
    r"|more rows|further rows|of (?:them|these|which)|of (?:the |all )?\d|first \d)",
    re.IGNORECASE,
)
_CLOSERS: Final = "\"')]}*_\u2019\u201d\u00bb "
_LEAST_COUNTS: Final = 2
_DIGIT: Final = re.compile("[0-9]")
_COUNT_TALK: Final = re.compile(
    r"\b(?:total|displayed|displaying|shown|showing|shows|omitted|left out|not (?:shown|displayed|listed|included)|truncated|remaining"
    r"|match|matches|matching|rows|results|entries|records|hidden|out of)\b|\d of (?:the )?\d"
)
"""Two of these in a sentence with two numbers are about the result, not about the world."""


class SentenceRole(IntEnum):
    """What a sentence does."""

    CLAIM = 0
    QUESTION = 1
    LEAD = 2
    POLITE = 3
    COUNTS = 4
    NOT_FOUND = 5
    NOTHING = 6


class RoleSentence(NamedTuple):
    """A sentence, what it does, and its content terms."""

    text: str
    role: SentenceRole
    terms: Terms


def read_sentences(text: str) -> tuple[RoleSentence, ...]:
    """Return the sentences of a text that holds no tags and no list marks."""
    return tuple(_read(text[span.start : span.end]) for span in split_sentences(text))


def is_about_counts(text: str) -> bool:
    """Tell whether a text speaks of how much is shown and how much is not."""
    return _COUNT_WORD.search(text) is not None


def _read(sentence: str) -> RoleSentence:
    terms = read_terms(sentence)
    return RoleSentence(sentence, _act_of(sentence, terms), terms)


def _act_of(sentence: str, terms: Terms) -> SentenceRole:
    bare = sentence.strip(_CLOSERS)
    if bare.endswith(("?", "\uff1f")):
        return SentenceRole.QUESTION
    if says_nothing_found(bare):
        return SentenceRole.NOT_FOUND
    opens = bare.partition(" ")[0].rstrip(",.!").replace("\u2019", "'").lower() in _OPENERS
    if opens and _POLITE.match(bare):
        return SentenceRole.POLITE
    if bare.endswith((":", "\uff1a")) or (opens and _is_lead(bare)):
        return SentenceRole.LEAD
    is_attribution = bare.startswith(("\u2014", "\u2013", "-- ")) and len(bare.split()) <= _MAX_ATTRIBUTION_LENGTH
    return SentenceRole.NOTHING if is_attribution else _act_of_statement(bare, terms)


def _act_of_statement(bare: str, terms: Terms) -> SentenceRole:
    numbers = sum(1 for term in terms if is_strong(term))
    if numbers >= _LEAST_COUNTS and len(set(_COUNT_TALK.findall(bare.lower()))) >= _LEAST_COUNTS:
        return SentenceRole.COUNTS
    return SentenceRole.CLAIM if numbers or len(terms) >= LEAST_TERMS else SentenceRole.NOTHING


def _is_lead(bare: str) -> bool:
    """Tell whether a short sentence without numbers only leads to what follows."""
    if _LEAD.match(bare) is None or len(bare.split()) > _MAX_LEAD_LENGTH:
        return False
    return "," not in bare and not _DIGIT.search(bare)


# --- not found ---
# Whether a sentence says that no relevant information was found, in any of the usual wordings.
#
# A sentence that says so of one part and goes on to answer (`not in section 2, but ...`) does not say it, and neither does one about
# files, errors or anything else that is not found. English, with the plain wordings of Chinese, Japanese and German.

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


# --- words ---
# The words of replies and evidence: content terms with numbers in one spelling, and how much two texts share.

Terms = frozenset[str]
"""Stems of the words that say something, and numbers in digits."""

NO_TERMS: Final = Terms()
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[,.'\u2019\u00a0\u202f\u2009 ]\d{3})++(?!\d)")
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,18}(?!\d)")
_WORD: Final = re.compile(r"[a-z]+")
_NO_DIGIT: Final = re.compile(r"\D")
_REMEMBERED_WORDS: Final = 1 << 15
_MAX_REMEMBERED_LENGTH: Final = 48
_TWELVE: Final = 12
_SPELT: Final = {"zero": 0, "none": 0, "no": 0} | {word: int(digits) for word, digits in NUMBER_WORDS.items() if int(digits) <= _TWELVE}


def read_terms(text: str) -> Terms:
    """Return the content terms of a text; 1,200 is also found as 1200."""
    return NO_TERMS.union(*map(_WORDS.__getitem__, set(text.split())))


def counts_in(text: str) -> frozenset[int]:
    """Return every number that a text may state: 1,200, 1 200, 1'200 and 1200, and words up to twelve; groups also one by one."""
    found = {int(number) for number in _NUMBER.findall(text)}
    found.update(int(_NO_DIGIT.sub("", number)[:18]) for number in _GROUPED.findall(text))
    found.update(_SPELT[word] for word in _WORD.findall(text.lower()) if word in _SPELT)
    return frozenset(found)


def is_strong(term: str) -> bool:
    """Tell whether a term is hardly shared by chance: it is not letters alone, as numbers and codes are."""
    return not term.isalpha()


class _TermsCache(dict[str, Terms]):
    """The content terms of each word, read once; what is remembered is bounded and never changes what is returned."""

    def __missing__(self, word: str) -> Terms:
        terms = Terms(TOKENISER.analyse(word).terms) - EMPTY
        if "," in word:
            terms |= {_NO_DIGIT.sub("", number) for number in _GROUPED.findall(word)}
        if len(word) <= _MAX_REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[word] = terms
        return terms


_WORDS: Final = _TermsCache()
