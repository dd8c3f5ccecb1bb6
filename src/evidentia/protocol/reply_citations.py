"""The citations of a reply: well formed, naming what was returned, standing at what they belong to, and few enough.

A unit needs a citation when it asserts something that it draws on a source. What only leads to the list or table behind it needs none
when that is cited, and between a unit and its citation may stand what asserts nothing, such as the counts of a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.protocol import ProtocolRule, ReplyFinding
from evidentia.protocol.citations import Citation, DocumentCitation, ShownSources, TableCitation, WebCitation, quoted, what_is_wrong
from evidentia.protocol.sentence_roles import NO_TERMS, Terms, is_strong
from evidentia.text.blocks import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.protocol.reply_layout import PlacedCitation, ReplyLayout, ReplyUnit
    from evidentia.protocol.tool_results import EvidencePiece, ResultFacts


_COUNTED: Final = 2
_SHORT_LEAD: Final = 2
_MAX_LISTED: Final = 8
_LISTED: Final = frozenset({BlockKind.LIST, BlockKind.TABLE})


class _Need(NamedTuple):
    """A unit that draws on sources, the one it shares most with first."""

    unit: ReplyUnit
    drawn: tuple[SourceOverlap, ...]


def citation_findings(
    layout: ReplyLayout, *, sources: Sequence[CitableSource], shown: ShownSources, known: Terms, needs_any: bool
) -> list[ReplyFinding]:
    """Return what is found in the citations of a reply; `known` are the terms of the question, `needs_any` that it must cite something."""
    findings = [finding for unit in layout.units for cited in unit.cited for finding in _check_tag(cited, unit, shown)]
    findings += [finding for cited in layout.strays for finding in _check_tag(cited, None, shown)]
    findings += [finding for unit in layout.units for finding in _count(unit)]
    if needs_any and not layout.tags:
        reason = "what was retrieved is used, and nothing is cited"
        return [*findings, ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason=reason)]
    needs = [need for unit in layout.units if (need := _need_of(unit, sources, known=known)) is not None]
    return findings + _check_places(layout, needs, sources=sources, known=known)


def valid_citations(unit: ReplyUnit) -> list[Citation]:
    """Return the well formed citations of a unit."""
    return [cited.tag.citation for cited in unit.cited if cited.tag.citation is not None]


def _check_tag(cited: PlacedCitation, unit: ReplyUnit | None, shown: ShownSources) -> list[ReplyFinding]:
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


def _misplaced(cited: PlacedCitation, unit: ReplyUnit) -> str:
    if cited.is_inside:
        return f"a citation stands inside the {unit.kind.value}; it belongs at its end"
    is_table = isinstance(cited.tag.citation, TableCitation)
    if is_table and unit.kind in _LISTED and not cited.has_own_line:
        return f"the citation of a table stands in the {unit.kind.value}; it belongs on a line of its own behind it"
    return ""


def _count(unit: ReplyUnit) -> list[ReplyFinding]:
    """Return a finding for each unit with two citations or more; citations at the ends of several items count item by item."""
    items = {cited.item for cited in unit.cited if cited.item is not None}
    groups: dict[int | None, list[PlacedCitation]] = {}
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


def _counted(group: Sequence[PlacedCitation]) -> int:
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


def _need_of(unit: ReplyUnit, sources: Sequence[CitableSource], *, known: Terms) -> _Need | None:
    if unit.is_supplement or not unit.claims:
        return None
    drawn = drawn_on(unit.terms, sources, known=known)
    is_citable = any(each.source.piece is None or each.source.piece.is_citable for each in drawn)
    return _Need(unit, drawn) if is_citable else None


def _check_places(layout: ReplyLayout, needs: Sequence[_Need], *, sources: Sequence[CitableSource], known: Terms) -> list[ReplyFinding]:
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


def _is_covered(need: _Need, units: Sequence[ReplyUnit], needs: Sequence[_Need]) -> bool:
    """Tell whether the citation of the next unit is that of this one: a lead to a list from the same source, or what asserts nothing."""
    unit = need.unit
    following = units[unit.number] if unit.number < len(units) else None
    if following is None or not following.cited or following.is_supplement:
        return False
    if not following.claims:
        return True
    if unit.kind is not BlockKind.PARAGRAPH or following.kind not in _LISTED or len(unit.sentences) > _SHORT_LEAD:
        return False
    own = next((other.drawn for other in needs if other.unit is following), ())
    return not own or any(drawn.source is own[0].source for drawn in need.drawn)


def _is_collected(layout: ReplyLayout, bare: Sequence[_Need], needs: Sequence[_Need]) -> bool:
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


def _missing(need: _Need, layout: ReplyLayout, needs: Sequence[_Need], *, is_collected: bool) -> ReplyFinding | None:
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


def _swapped(need: _Need, sources: Sequence[CitableSource], *, known: Terms) -> ReplyFinding | None:
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


def _name(source: CitableSource) -> str:
    if not source.file:
        return "what a tool returned"
    where = f"sheet {source.sheet}" if source.sheet is not None else f"page {source.pages[0] if source.pages else 0}"
    return f"{where} of {quoted(source.filename or source.file)}"


# --- evidence ---
# What a unit of a reply draws on: how much of what it says, beyond the words of the question, stands in each source.
#
# A unit draws on a source when at least half of its new content terms stand there, two of them at least, or one with a digit. The source
# it draws on most shares the most terms; the first returned wins a tie.

LEAST_SHARED: Final = 2
_CLEARLY: Final = 3


class CitableSource(NamedTuple):
    """A piece of text, or the rows of one sheet: what a citation can name."""

    file: str
    filename: str
    pages: tuple[int, ...]
    sheet: int | None
    terms: Terms
    piece: EvidencePiece | None = None

    def is_named_by(self, citation: Citation) -> bool:
        """Tell whether a citation names this source."""
        if isinstance(citation, DocumentCitation):
            return self.sheet is None and citation.file == self.file and citation.page in self.pages
        if isinstance(citation, TableCitation):
            return citation.sheet == self.sheet and citation.file == self.file
        return self.piece is not None and citation.url.rstrip("/") in self.piece.text


class SourceOverlap(NamedTuple):
    """How much of a unit stands in one source."""

    source: CitableSource
    shared: int
    new: int

    @property
    def is_clear(self) -> bool:
        """Tell whether it is hardly a matter of chance: three terms or more."""
        return self.shared >= _CLEARLY


def sources_of(results: Sequence[ResultFacts]) -> tuple[CitableSource, ...]:
    """Return everything that was returned, in order."""
    found: list[CitableSource] = []
    for result in results:
        found += [CitableSource(piece.file, piece.filename, piece.pages, None, piece.terms, piece) for piece in result.pieces]
        names = dict(result.files.values())
        found += [CitableSource(file, names.get(file, ""), (), sheet, terms) for (file, sheet), (_, terms) in result.sheets.items()]
    return tuple(found)


def drawn_on(terms: Terms, sources: Sequence[CitableSource], *, known: Terms = NO_TERMS) -> tuple[SourceOverlap, ...]:
    """Return the sources that a text draws on, the one it shares most with first; what the question says does not count."""
    new = terms - known
    found: list[tuple[int, int, SourceOverlap]] = []
    for place, source in enumerate(sources):
        shared = new & source.terms
        count = len(shared)
        if count * 2 >= len(new) and (count >= LEAST_SHARED or (count and any(is_strong(term) for term in shared))):
            found.append((-count, place, SourceOverlap(source, count, len(new))))
    return tuple(drawn for _, _, drawn in sorted(found, key=lambda entry: entry[:2]))


def shares(terms: Terms, source: CitableSource, *, known: Terms = NO_TERMS) -> int:
    """Return how many new content terms a text shares with a source."""
    return len((terms - known) & source.terms)


# --- images ---
# The images of a reply: each belongs to the text it stood next to in the evidence, and is shown where the reply uses that text.

_LEAST_SHARED: Final = 2
_SHOWN: Final = 12


class _Image(NamedTuple):
    """An image, the text it belongs to, and the unit that uses that text most; None where none does."""

    image: str
    piece: EvidencePiece
    nearest: Terms
    """Without the words of the question, which every unit may share."""
    user: ReplyUnit | None


def image_findings(layout: ReplyLayout, sources: Sequence[CitableSource], *, known: Terms) -> list[ReplyFinding]:
    """Return the images that the reply leaves out, or shows away from the text they belong to."""
    pieces = [source.piece for source in sources if source.piece is not None and source.piece.images]
    if not pieces:
        return []
    images = {found.image: found for piece in reversed(pieces) for found in _images_of(piece, layout.units, known=known)}
    shown = {image for unit in layout.units for image in (*unit.images, *unit.leads)} | set(layout.stray_images)
    ignored = [found for found in images.values() if found.user is not None and found.image not in shown]
    strayed = [found for found in images.values() if found.image in shown and _is_misplaced(found, layout.units)]
    findings = [_finding(ProtocolRule.IMAGE_IGNORED, found, "is not in the reply, which uses the text it belongs to") for found in ignored]
    findings += [_finding(ProtocolRule.IMAGE_MISPLACED, found, "does not stand next to the text it belongs to") for found in strayed]
    if strayed and _are_at_end(layout):
        findings.append(ReplyFinding(rule=ProtocolRule.IMAGES_AT_END, reason="all images stand at the end of the reply"))
    return sorted(findings, key=lambda finding: (finding.rule.value, finding.reason))


def _images_of(piece: EvidencePiece, units: Sequence[ReplyUnit], *, known: Terms) -> list[_Image]:
    candidates = [unit for unit in units if not unit.is_supplement and _may_use(unit, piece)]
    found: list[_Image] = []
    for image in piece.images:
        nearest = piece.nearest.get(image) or piece.terms
        best = max(candidates, key=lambda unit: (_overlap(unit, nearest), -unit.number), default=None)
        is_used = best is not None and (_uses(best, nearest) or _is_all(piece, nearest, best))
        found.append(_Image(image, piece, nearest - known or nearest, best if is_used else None))
    return found


def _may_use(unit: ReplyUnit, piece: EvidencePiece) -> bool:
    """Tell whether a unit cites a piece, or cites nothing: what cites other evidence is not about this."""
    return bool(unit.terms) and (not unit.cited or _cites(unit, piece))


def _cites(unit: ReplyUnit, piece: EvidencePiece) -> bool:
    citations = valid_citations(unit)
    if not piece.file:
        return any(isinstance(citation, WebCitation) for citation in citations)
    return any(isinstance(each, DocumentCitation) and each.file == piece.file and each.page in piece.pages for each in citations)


def _overlap(unit: ReplyUnit, nearest: Terms) -> int:
    return len(unit.terms & nearest)


def _uses(unit: ReplyUnit, nearest: Terms) -> bool:
    shared = _overlap(unit, nearest)
    return shared >= _LEAST_SHARED and shared * 3 >= min(len(nearest), len(unit.terms))


def _is_all(piece: EvidencePiece, nearest: Terms, unit: ReplyUnit) -> bool:
    """Tell whether a piece that a unit cites says hardly more than what the image belongs to."""
    return len(piece.terms) <= 2 * len(nearest) and _cites(unit, piece)


def _is_misplaced(found: _Image, units: Sequence[ReplyUnit]) -> bool:
    if found.user is None:
        return False
    neighbours = [unit for unit in units if found.image in unit.images or found.image in unit.leads]
    neighbours += [units[unit.number - 2] for unit in neighbours if not unit.claims and unit.number > 1]
    best = _overlap(found.user, found.nearest)
    return all(_is_elsewhere(unit, found, best) for unit in neighbours)


def _is_elsewhere(unit: ReplyUnit, found: _Image, best: int) -> bool:
    """Tell whether a unit speaks of other things than an image belongs to: it shares little, or cites other evidence and shares less."""
    shared = _overlap(unit, found.nearest)
    return shared * 2 < best or (shared < best and not _may_use(unit, found.piece))


def _are_at_end(layout: ReplyLayout) -> bool:
    """Tell whether images stand at the last unit that asserts something, or behind it, and nowhere else."""
    asserting = [unit.number for unit in layout.units if unit.claims]
    last = max(asserting, default=0)
    return all(not unit.images or unit.number >= last for unit in layout.units)


def _finding(rule: ProtocolRule, found: _Image, what: str) -> ReplyFinding:
    block = found.user.number if found.user else None
    return ReplyFinding(rule=rule, reason=f"image {found.image[:_SHOWN]} {what}", block=block, metadata={"image": found.image})
