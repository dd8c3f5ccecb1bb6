"""The audit of a reply before it goes out: citations, table results, images, supplements, and whether it says that nothing was found.

The audit compares words, never meaning, and reads nothing but the reply, the question and what the tools returned; the same input gives
the same findings. Findings hold under any profile: which of them count is the policy's word. Where wording leaves a doubt, nothing is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.protocol import ProtocolRule, ReplyFinding
from evidentia.protocol.citations import gather
from evidentia.protocol.reply_citations import CitableSource, citation_findings, drawn_on, image_findings, sources_of, valid_citations
from evidentia.protocol.reply_layout import ReplyLayout, ReplyUnit, is_marked, lay_out
from evidentia.protocol.reply_tables import instruction_findings, table_findings
from evidentia.protocol.sentence_roles import NO_TERMS, RoleSentence, SentenceRole, Terms, read_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.protocol.tool_results import ResultFacts


_ATTRIBUTION: Final = read_terms("according documentation says puts")
"""What a reply says of where something stands, as with the name of the file: it is not part of what is said."""


class ReplyAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply is, and what was found in it; which findings count is the profile's word."""

    says_not_found: bool = False
    uses_evidence: bool = False
    """It says more than that nothing was found, and something was retrieved."""
    has_supplement: bool = False
    findings: tuple[ReplyFinding, ...] = ()


def audit_reply(
    reply: str, *, question: str, results: Sequence[ResultFacts], has_supplement_allowed: bool, is_sufficient: bool
) -> ReplyAudit:
    """Return what is found in a reply, given the question and what the tools returned.

    1. The reply is laid out as units with their citations and images.
    2. Whether it says that nothing was found, and whether it uses what was retrieved.
    3. Citations; 4. table results; 5. images; 6. supplements; 7. lines of ours that were not followed; 8. whether it answers at all.
    """
    layout = lay_out(reply)
    sources = sources_of(results)
    known = read_terms(question) | _ATTRIBUTION.union(*(read_terms(source.filename) for source in sources))
    says_not_found = _says_not_found(layout, sources, known=known)
    uses_evidence = not says_not_found and any(result.has_evidence for result in results) and _asserts(layout)
    needs_any = uses_evidence and any(result.is_citable for result in results)
    findings = citation_findings(layout, sources=sources, shown=gather(results), known=known, needs_any=needs_any)
    findings += table_findings(layout, results, question=question, uses_evidence=uses_evidence)
    findings += image_findings(layout, sources, known=known) if uses_evidence else []
    findings += supplement_findings(layout, sources, known=known, is_allowed=has_supplement_allowed, is_sufficient=is_sufficient)
    findings += instruction_findings(results, findings)
    findings += _answer_findings(layout, results, says_not_found=says_not_found)
    return ReplyAudit(
        says_not_found=says_not_found,
        uses_evidence=uses_evidence,
        has_supplement=any(unit.is_supplement for unit in layout.units),
        findings=tuple(findings),
    )


def _answer_findings(layout: ReplyLayout, results: Sequence[ResultFacts], *, says_not_found: bool) -> list[ReplyFinding]:
    """Return a finding for a reply that says nothing of what was found, and for one that asserts although nothing was."""
    if says_not_found or not results:
        return []
    asserts = _asserts(layout)
    has_evidence = any(result.has_evidence for result in results)
    asks = any(sentence.role is SentenceRole.QUESTION for unit in layout.units for sentence in unit.sentences)
    if has_evidence and not asserts and not asks and not any(unit.cited or unit.is_supplement for unit in layout.units):
        reason = "the reply says nothing of what was retrieved"
        return [ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason=reason)]
    if not has_evidence and asserts:
        reason = "the reply states something although nothing was retrieved"
        return [ReplyFinding(rule=ProtocolRule.ANSWER_BEFORE_RETRIEVAL, reason=reason)]
    return []


def _says_not_found(layout: ReplyLayout, sources: Sequence[CitableSource], *, known: Terms) -> bool:
    """Tell whether a reply as a whole says that nothing was found: some sentence does, and no unit answers from a source."""
    plain = [unit for unit in layout.units if not unit.is_supplement]
    if not any(sentence.role is SentenceRole.NOT_FOUND for unit in plain for sentence in unit.sentences):
        return False
    return not any(_answers(unit, sources, known=known) for unit in plain)


def _answers(unit: ReplyUnit, sources: Sequence[CitableSource], *, known: Terms) -> bool:
    """Tell whether a unit answers from a source; one that is cited and stands there word by word does, even if it speaks of not finding."""
    if unit.claims:
        return bool(unit.cited) or bool(drawn_on(unit.terms, sources, known=known))
    said = NO_TERMS.union(*(sentence.terms for sentence in unit.sentences)) if unit.cited else NO_TERMS
    return any(drawn.is_clear and drawn.shared * 4 >= drawn.new * 3 for drawn in drawn_on(said, sources, known=known))


def _asserts(layout: ReplyLayout) -> bool:
    return any(unit.claims for unit in layout.units if not unit.is_supplement)


# --- supplements ---
# Supplements of a model's own knowledge: apart from what was retrieved, within their scope, without citations, and hedged.
#
# What a supplement may not hold is a list of patterns by kind. Numbers in names (`OAuth 2.0`, `SHA-256`) are no exact numbers.

_MONTHS: Final = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_APOSTROPHE_S: Final = "(?:['\u2019]s)?"
SCOPE: Final = {
    "prices": (
        r"[$\u20ac\u00a3\u00a5] ?\d|\d ?(?:usd|eur|gbp|chf|dollars?|euros?|pounds?|cents?)\b"
        r"|\bpric(?:e|es|ed) (?:is|are|at|of|from|starts?)\b"
        r"|\bcosts? (?:about |around |roughly |approximately |at least |up to )?"
        r"(?:[$\u20ac\u00a3]|\d|\w+ (?:hundred|thousand|dollars?|euros?))"
    ),
    "fees": r"\b(?:fees?|surcharges?) (?:is|are|of|starts?|applies|apply|amounts?)\b",
    "discounts": r"\bdiscounts? (?:is|are|of|for|applies|apply)\b|\b(?:a|the|get|gets|offers?) [\w-]* ?discounts?\b",
    "rankings": (
        r"\brank(?:s|ed|ing|ings)\b|\brank (?:first|second|third|last|among|highest|lowest)\b"
        r"|\bnumber one\b|#1\b|\btop[- ](?:\d+|three|five|ten)\b|\b(?:best|worst)[- ]sell\w+"
        r"|\b(?:largest|biggest|leading|most popular) (?:\w+ ){0,2}"
        r"(?:company|vendor|provider|product|bank|manufacturer|tool|supplier|in the world)\b"
    ),
    "internal policies": (
        rf"\b(?:internal|company|corporate|in-house|our|your (?:company|organi[sz]ation|employer|team){_APOSTROPHE_S})"
        r" (?:[\w-]+ ){0,3}(?:polic(?:y|ies)|rules?|procedures?|guidelines?)\b"
    ),
    "user details": (
        r"\byour (?:account|order|orders|subscription|contract|balance|invoice|salary|address|employee|profile|booking|ticket|plan)\b"
        r"|[\w.+-]{1,64}@[\w-]{1,64}\.\w"
    ),
    "current status": (
        r"\b(?:is|are) (?:currently|now|at present) (?:\w+ )?"
        r"(?:down|up|available|unavailable|open|closed|running|active|offline|online|in effect|valid)\b"
        r"|\b(?:current|present) (?:status|state|version|ceo|price|rate|balance)\b|\bas of (?:today|now|this)\b|\bright now\b"
    ),
    "latest updates": (
        r"\b(?:latest|newest|most recent) (?:\w+ )?(?:version|release|update|news|edition|model|change|changes|announcement)\b"
        r"|\b(?:recently|just) (?:released|announced|updated|launched|changed|introduced)\b"
    ),
    "dates": (
        rf"\b(?:in|since|until|before|after|by|from|on|around) (?:early |late |mid-?)?(?:{_MONTHS} )?(?:1[6-9]|20)\d\d\b"
        rf"|\b\d{{4}}-\d\d-\d\d\b|\b{_MONTHS} \d{{1,2}}\b|\b\d{{1,2}}(?:[a-z]{{2}})? (?:of )?{_MONTHS}\b"
        r"|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    ),
    "metrics": (
        r"\d ?(?:%|percent\b|per ?cent\b)"
        r"|\b(?:latency|throughput|accuracy|revenue|turnover|market share|headcount) (?:is|was|of|reaches|reached|at)\b"
    ),
    "specifications": (
        r"\b\d[\d.,]{0,20} ?(?:[kmgt]b|[kmg]?hz|mm|cm|km|kg|mg|watts?|volts?|w|v|mah|rpm|inch(?:es)?|pixels?|mbps|gbps|ms|seconds?"
        r"|minutes?|hours?|days?|weeks?|months?|years?|bits?|bytes?|degrees?)\b"
    ),
}
"""The kinds of facts that a supplement may not supply, by what they are written like."""

_SCOPE: Final = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in SCOPE.items())
_NUMBER: Final = re.compile(r"(?<![\w./-])\d[\d.,]*+(?![\w-])")
_NAMED_NUMBER: Final = re.compile(
    r"(?:\b(?!(?:About|Around|Roughly|Over|Nearly|Almost|Some|At|In|Up|Between|Only|Of|Approximately|Under|By|To|From|With|And|Or|The)\b)"
    r"[A-Z][\w+#/-]{0,40}|\b[a-z]{1,20}[A-Z]\w{0,20}|\b(?:version|step|layer|level|type|section|chapter))\s\d[\d.]*\b"
)
"""A number behind a name; at the beginning of a sentence, words that only lead to a number are no names."""
_TIMELY: Final = re.compile(
    r"\b(?:currently|current|now|nowadays|today|these days|recent|recently|latest|newest|newly|new|modern|upcoming|soon|at the moment"
    r"|at present|this year|evolving|evolves?|changes? (?:over time|often|frequently|quickly|rapidly)|up[- ]to[- ]date|state of the art"
    r"|so far|to date|as of|trends?|trending|popular)\b",
    re.IGNORECASE,
)
_SWEEPING: Final = re.compile(
    r"\b(?:always|never|everywhere|everyone|everybody|nobody|without exception|in every case|(?:all|most) experts|experts agree"
    r"|has become the|guaranteed)\b",
    re.IGNORECASE,
)
"""What is said so broadly that it may well be wrong."""
_HEDGE: Final = re.compile(
    r"\b(?:might|could|perhaps|possibly|probably|likely|unsure|uncertain|uncertainty|not (?:certain|sure|verified|confirmed)|verify"
    r"|double-check|check|confirm|cannot (?:confirm|guarantee)|as far as i know|to (?:the best of )?my knowledge|out[- ]of[- ]date"
    r"|outdated|can (?:vary|change|differ)|var(?:y|ies)|no(?:t| )guarantee\w*|i (?:believe|think)|seems?|appears? to|subject to change"
    r"|(?-i:may)|may (?:be|have|vary|differ|change|not|no longer))\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(
    r"\b(?:from|based on|out of|as|of|by) (?:my |our )?(?:own |general |common )(?:knowledge|background)\b|\bmy training\b"
    r"|\b(?:beyond|outside|not (?:in|from|part of)) (?:the |these |any )?(?:retrieved |provided |available )?"
    r"(?:documents?|sources?|evidence|results?)\b|\b(?:general|common) knowledge\b",
    re.IGNORECASE,
)
_INNER_MARK: Final = re.compile(r"[.!?][*_\"')\]]*\s+[*_]*(?:supplement(?:ary)?|general knowledge)(?: \w+)?[*_ ]*:", re.IGNORECASE)
"""A mark behind a sentence that ends in bold type or a bracket, where sentences are not told apart."""
_OWN_HINTS: Final = ("knowledge", "background", "training", "beyond", "outside", "not ")
_LEAST_TERMS: Final = 6


def supplement_findings(
    layout: ReplyLayout, sources: Sequence[CitableSource], *, known: Terms, is_allowed: bool, is_sufficient: bool
) -> list[ReplyFinding]:
    """Return what is found in the supplements of a reply, and where one is mixed with what was retrieved."""
    supplements = [unit for unit in layout.units if unit.is_supplement]
    findings: list[ReplyFinding] = []
    if supplements and not is_allowed:
        findings.append(_finding(ProtocolRule.SELF_KNOWLEDGE_OFF, supplements[0], "the reply has a supplement where none is allowed"))
    if supplements and is_sufficient:
        findings.append(
            _finding(
                ProtocolRule.SELF_KNOWLEDGE_NEEDLESS, supplements[0], "the reply has a supplement although what was retrieved is enough"
            )
        )
    for unit in supplements:
        findings += _check_supplement(unit, sources, known=known)
    plain = [unit for unit in layout.units if not unit.is_supplement and unit.claims]
    findings += [
        _finding(ProtocolRule.SELF_KNOWLEDGE_MIXED, unit, reason) for unit in plain if (reason := _mixed_in(unit, sources, known=known))
    ]
    if supplements:
        findings += [
            _finding(
                ProtocolRule.SELF_KNOWLEDGE_MIXED,
                unit,
                f"the {unit.kind.value} has neither a citation nor a mark, and nothing retrieved supports it",
            )
            for unit in plain
            if _is_unsupported(unit, layout, sources, known=known)
        ]
    return findings


def scope_of(text: str) -> tuple[str, ...]:
    """Return the kinds of facts in a text that a supplement may not supply."""
    kinds = [kind for kind, pattern in _SCOPE if pattern.search(text)]
    if not kinds and _NUMBER.search(_NAMED_NUMBER.sub(" ", text)):
        kinds.append("exact numbers")
    return tuple(kinds)


def _check_supplement(unit: ReplyUnit, sources: Sequence[CitableSource], *, known: Terms) -> list[ReplyFinding]:
    findings: list[ReplyFinding] = []
    drawn = [claim for claim in unit.claims if _is_retrieved(claim, sources, known=known)]
    if drawn and len(drawn) < len(unit.claims):
        findings.append(_finding(ProtocolRule.SELF_KNOWLEDGE_MIXED, unit, "the supplement holds what was retrieved as well"))
    elif unit.cited and not drawn:
        findings.append(_finding(ProtocolRule.SELF_KNOWLEDGE_CITED, unit, "the supplement has a citation that does not support it"))
    text = unit.text.split(":", 1)[-1] if is_marked(unit.text) else unit.text
    kinds = () if drawn and len(drawn) == len(unit.claims) else scope_of(text)
    if kinds:
        finding = _finding(ProtocolRule.SELF_KNOWLEDGE_SCOPE, unit, f"the supplement gives {', '.join(kinds)}", kinds=list(kinds))
        findings.append(finding)
    if (_TIMELY.search(text) or _SWEEPING.search(text)) and not _HEDGE.search(text):
        findings.append(
            _finding(
                ProtocolRule.UNCERTAINTY_UNSTATED,
                unit,
                "the supplement speaks of what changes over time or holds everywhere, and does not say that it is uncertain",
            )
        )
    return findings


def _is_retrieved(claim: RoleSentence, sources: Sequence[CitableSource], *, known: Terms) -> bool:
    """Tell whether a sentence of a supplement is taken from a source: nearly all of it stands there."""
    best = next(iter(drawn_on(claim.terms, sources, known=known)), None)
    return best is not None and best.is_clear and best.shared * 4 >= best.new * 3


def _mixed_in(unit: ReplyUnit, sources: Sequence[CitableSource], *, known: Terms) -> str:
    """Return why a unit that is no supplement has one in it; empty when it has none."""
    marked = next((sentence for sentence in unit.sentences[1:] if is_marked(sentence.text)), None)
    if marked is not None or _INNER_MARK.search(unit.text):
        return f"a supplement begins inside the {unit.kind.value}"
    if not unit.cited:
        return ""
    lowered = unit.text.lower()
    if not any(hint in lowered for hint in _OWN_HINTS):
        return ""
    own = [claim for claim in unit.claims if claim.role is SentenceRole.CLAIM and _OWN.search(claim.text)]
    if any(not drawn_on(claim.terms, sources, known=known) for claim in own):
        return f"the {unit.kind.value} is cited and says of a part that it is not from what was retrieved"
    return ""


def _is_unsupported(unit: ReplyUnit, layout: ReplyLayout, sources: Sequence[CitableSource], *, known: Terms) -> bool:
    """Tell whether hardly a word of a unit of some length stands anywhere in what was retrieved."""
    new = unit.terms - known
    following = layout.units[unit.number] if unit.number < len(layout.units) else None
    if unit.cited or valid_citations(unit) or len(new) < _LEAST_TERMS or (following and following.cited and not following.claims):
        return False
    return max((len(new & source.terms) for source in sources), default=0) * 6 <= len(new)


def _finding(rule: ProtocolRule, unit: ReplyUnit, reason: str, *, kinds: list[str] | None = None) -> ReplyFinding:
    return ReplyFinding(rule=rule, reason=reason, block=unit.number, metadata={"kinds": kinds} if kinds else {})
