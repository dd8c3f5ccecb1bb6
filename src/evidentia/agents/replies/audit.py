"""What is found in a reply before it goes out: citations, table results, images, supplements, and whether it says that nothing was found.

The audit compares words, never meaning, and reads nothing but the reply, the question and what the tools returned; the same input gives
the same findings. Findings hold under any profile: which of them count is the policy's word. Where wording leaves a doubt, nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.agents.citations.resolve import gather
from evidentia.agents.replies.citations import citation_findings
from evidentia.agents.replies.evidence import drawn_on, sources_of
from evidentia.agents.replies.images import image_findings
from evidentia.agents.replies.layout import lay_out
from evidentia.agents.replies.sentence_roles import Act
from evidentia.agents.replies.supplements import supplement_findings
from evidentia.agents.replies.tables import instruction_findings, table_findings
from evidentia.agents.replies.words import NO_TERMS, read_terms
from evidentia.contracts.protocol import ProtocolRule, ReplyFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.replies.evidence import Source
    from evidentia.agents.replies.layout import Layout, Unit
    from evidentia.agents.replies.words import Terms
    from evidentia.agents.results import ResultFacts


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


def _answer_findings(layout: Layout, results: Sequence[ResultFacts], *, says_not_found: bool) -> list[ReplyFinding]:
    """Return a finding for a reply that says nothing of what was found, and for one that asserts although nothing was."""
    if says_not_found or not results:
        return []
    asserts = _asserts(layout)
    has_evidence = any(result.has_evidence for result in results)
    asks = any(saying.act is Act.QUESTION for unit in layout.units for saying in unit.sayings)
    if has_evidence and not asserts and not asks and not any(unit.cited or unit.is_supplement for unit in layout.units):
        reason = "the reply says nothing of what was retrieved"
        return [ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason=reason)]
    if not has_evidence and asserts:
        reason = "the reply states something although nothing was retrieved"
        return [ReplyFinding(rule=ProtocolRule.ANSWER_BEFORE_RETRIEVAL, reason=reason)]
    return []


def _says_not_found(layout: Layout, sources: Sequence[Source], *, known: Terms) -> bool:
    """Tell whether a reply as a whole says that nothing was found: some sentence does, and no unit answers from a source."""
    plain = [unit for unit in layout.units if not unit.is_supplement]
    if not any(saying.act is Act.NOT_FOUND for unit in plain for saying in unit.sayings):
        return False
    return not any(_answers(unit, sources, known=known) for unit in plain)


def _answers(unit: Unit, sources: Sequence[Source], *, known: Terms) -> bool:
    """Tell whether a unit answers from a source; one that is cited and stands there word by word does, even if it speaks of not finding."""
    if unit.claims:
        return bool(unit.cited) or bool(drawn_on(unit.terms, sources, known=known))
    said = NO_TERMS.union(*(saying.terms for saying in unit.sayings)) if unit.cited else NO_TERMS
    return any(drawn.is_clear and drawn.shared * 4 >= drawn.new * 3 for drawn in drawn_on(said, sources, known=known))


def _asserts(layout: Layout) -> bool:
    return any(unit.claims for unit in layout.units if not unit.is_supplement)
