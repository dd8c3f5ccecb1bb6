"""The citations of a reply: well formed, naming what was returned, standing at what they belong to, and few enough.

A unit needs a citation when it asserts something that it draws on a source. What only leads to the list or table behind it needs none
when that is cited, and between a unit and its citation may stand what asserts nothing, such as the counts of a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.citations import TableCitation
from evidentia.agents.citations.resolve import quoted, what_is_wrong
from evidentia.agents.replies.evidence import Drawn, drawn_on, shares
from evidentia.contracts.protocol import ProtocolRule, ReplyFinding
from evidentia.text.blocks import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.citations import Citation
    from evidentia.agents.citations.resolve import Shown
    from evidentia.agents.replies.evidence import Source
    from evidentia.agents.replies.layout import Cited, Layout, Unit
    from evidentia.agents.replies.words import Terms

_COUNTED: Final = 2
_SHORT_LEAD: Final = 2
_MAX_LISTED: Final = 8
_LISTED: Final = frozenset({BlockKind.LIST, BlockKind.TABLE})


class _Need(NamedTuple):
    """A unit that draws on sources, the one it shares most with first."""

    unit: Unit
    drawn: tuple[Drawn, ...]


def citation_findings(layout: Layout, *, sources: Sequence[Source], shown: Shown, known: Terms, needs_any: bool) -> list[ReplyFinding]:
    """Return what is found in the citations of a reply; `known` are the terms of the question, `needs_any` that it must cite something."""
    findings = [finding for unit in layout.units for cited in unit.cited for finding in _check_tag(cited, unit, shown)]
    findings += [finding for cited in layout.strays for finding in _check_tag(cited, None, shown)]
    findings += [finding for unit in layout.units for finding in _count(unit)]
    if needs_any and not layout.tags:
        reason = "what was retrieved is used, and nothing is cited"
        return [*findings, ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason=reason)]
    needs = [need for unit in layout.units if (need := _need_of(unit, sources, known=known)) is not None]
    return findings + _check_places(layout, needs, sources=sources, known=known)


def valid_citations(unit: Unit) -> list[Citation]:
    """Return the well formed citations of a unit."""
    return [cited.tag.citation for cited in unit.cited if cited.tag.citation is not None]


def _check_tag(cited: Cited, unit: Unit | None, shown: Shown) -> list[ReplyFinding]:
    block = unit.number if unit else None
    citation = cited.tag.citation
    findings: list[ReplyFinding] = []
    if citation is None:
        reason = "; ".join(f"{problem.what}: {problem.write}" for problem in cited.tag.problems)
        findings.append(ReplyFinding(rule=ProtocolRule.CITATION_GRAMMAR, reason=f"a citation is not well formed: {reason}", block=block))
    elif wrong := what_is_wrong(citation, shown):
        findings.append(ReplyFinding(rule=ProtocolRule.CITATION_UNRESOLVED, reason=wrong, block=block))
    if unit is not None and (problem := _misplaced(cited, unit)):
        findings.append(ReplyFinding(rule=ProtocolRule.CITATION_PLACEMENT, reason=problem, block=block))
    return findings


def _misplaced(cited: Cited, unit: Unit) -> str:
    if cited.is_inside:
        return f"a citation stands inside the {unit.kind.value}; it belongs at its end"
    is_table = isinstance(cited.tag.citation, TableCitation)
    if is_table and unit.kind in _LISTED and not cited.has_own_line:
        return f"the citation of a table stands in the {unit.kind.value}; it belongs on a line of its own behind it"
    return ""


def _count(unit: Unit) -> list[ReplyFinding]:
    """Return a finding for each unit with two citations or more; citations at the ends of several items count item by item."""
    items = {cited.item for cited in unit.cited if cited.item is not None}
    groups: dict[int | None, list[Cited]] = {}
    for cited in unit.cited:
        groups.setdefault(cited.item if len(items) > 1 else None, []).append(cited)
    counts = [_counted(group) for group in groups.values()]
    return [
        ReplyFinding(
            rule=ProtocolRule.CITATION_COUNT, reason=f"{count} citations stand at one {unit.kind.value}", block=unit.number, count=count
        )
        for count in counts
        if count >= _COUNTED
    ]


def _counted(group: Sequence[Cited]) -> int:
    """Return how many citations count: one for each file and sheet is always allowed."""
    count = 0
    seen: set[tuple[str, int]] = set()
    for cited in group:
        citation = cited.tag.citation
        place = (citation.file, citation.sheet) if isinstance(citation, TableCitation) else None
        count += place is None or place in seen
        if place is not None:
            seen.add(place)
    return count


def _need_of(unit: Unit, sources: Sequence[Source], *, known: Terms) -> _Need | None:
    if unit.is_supplement or not unit.claims:
        return None
    drawn = drawn_on(unit.terms, sources, known=known)
    is_citable = any(each.source.piece is None or each.source.piece.is_citable for each in drawn)
    return _Need(unit, drawn) if is_citable else None


def _check_places(layout: Layout, needs: Sequence[_Need], *, sources: Sequence[Source], known: Terms) -> list[ReplyFinding]:
    bare = [need for need in needs if not need.unit.cited and not _is_covered(need, layout.units, needs)]
    at_end = _is_collected(layout, bare, needs)
    findings: list[ReplyFinding] = []
    if at_end:
        numbers = [need.unit.number for need in bare]
        listed = ", ".join(str(number) for number in numbers[:_MAX_LISTED])
        reason = f"all citations stand at the end, and what was retrieved is used before without one (block {listed})"
        findings.append(ReplyFinding(rule=ProtocolRule.CITATIONS_AT_END, reason=reason, metadata={"blocks": numbers}))
    elif layout.strays:
        reason = f"{len(layout.strays)} citations stand behind a heading or before the text, at nothing they could belong to"
        findings.append(ReplyFinding(rule=ProtocolRule.CITATION_PLACEMENT, reason=reason))
    for need in bare:
        finding = _missing(need, layout, needs, is_collected=at_end)
        if finding is not None:
            findings.append(finding)
    swapped = (_swapped(need, sources, known=known) for need in needs if need.unit.cited)
    return findings + [finding for finding in swapped if finding is not None]


def _is_covered(need: _Need, units: Sequence[Unit], needs: Sequence[_Need]) -> bool:
    """Tell whether the citation of the next unit is that of this one: a lead to a list from the same source, or what asserts nothing."""
    unit = need.unit
    following = units[unit.number] if unit.number < len(units) else None
    if following is None or not following.cited or following.is_supplement:
        return False
    if not following.claims:
        return True
    if unit.kind is not BlockKind.PARAGRAPH or following.kind not in _LISTED or len(unit.sayings) > _SHORT_LEAD:
        return False
    own = next((other.drawn for other in needs if other.unit is following), ())
    return not own or any(drawn.source is own[0].source for drawn in need.drawn)


def _is_collected(layout: Layout, bare: Sequence[_Need], needs: Sequence[_Need]) -> bool:
    """Tell whether all citations stand at or behind the last unit although earlier ones need theirs."""
    if not bare or not layout.tags:
        return False
    used = [*(need.unit for need in needs), *(unit for unit in layout.units if unit.cited and unit.claims)]
    last = max(used, key=lambda unit: unit.number)
    if any(unit.cited for unit in layout.units if unit.number < last.number) or bare[0].unit.number >= layout.units[-1].number:
        return False
    if any(cited.tag.start < last.start for cited in layout.strays):
        return False
    ends = [tag.citation for tag in layout.tags]
    return len(ends) > 1 or any(citation is None or need.drawn[0].source.is_named_by(citation) for need in bare for citation in ends)


def _names_any(need: _Need, citation: Citation) -> bool:
    return any(drawn.source.is_named_by(citation) for drawn in need.drawn)


def _missing(need: _Need, layout: Layout, needs: Sequence[_Need], *, is_collected: bool) -> ReplyFinding | None:
    unit = need.unit
    source = need.drawn[0].source
    holders = [tag.citation for tag in layout.tags if tag.citation is not None and _names_any(need, tag.citation)]
    owners = [other for other in needs if any(_names_any(other, citation) for citation in valid_citations(other.unit))]
    belongs_elsewhere = any(other.drawn[0].source is source for other in owners)
    if holders and is_collected and not belongs_elsewhere:
        return None
    if holders and not belongs_elsewhere:
        reason = f"the {unit.kind.value} uses {_name(source)}, whose citation stands elsewhere"
        return ReplyFinding(rule=ProtocolRule.CITATION_PLACEMENT, reason=reason, block=unit.number)
    reason = f"the {unit.kind.value} uses {_name(source)} and cites nothing"
    return ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason=reason, block=unit.number)


def _swapped(need: _Need, sources: Sequence[Source], *, known: Terms) -> ReplyFinding | None:
    """Return a finding for a unit whose citations name sources that share nothing with it, where another source clearly does."""
    best = need.drawn[0]
    citations = valid_citations(need.unit)
    if any(best.source.is_named_by(citation) for citation in citations):
        return None
    named = [source for source in sources if any(source.is_named_by(citation) for citation in citations)]
    if not best.is_clear or not named or len(citations) < len(need.unit.cited):
        return None
    if any(shares(need.unit.terms, source, known=known) * 3 >= best.shared for source in named):
        return None
    reason = f"the {need.unit.kind.value} uses {_name(best.source)} and cites {_name(named[0])}"
    return ReplyFinding(rule=ProtocolRule.CITATION_PLACEMENT, reason=reason, block=need.unit.number)


def _name(source: Source) -> str:
    if not source.file:
        return "what a tool returned"
    where = f"sheet {source.sheet}" if source.sheet is not None else f"page {source.pages[0] if source.pages else 0}"
    return f"{where} of {quoted(source.filename or source.file)}"
