"""The images of a reply: each belongs to the text it stood next to in the evidence, and is shown where the reply uses that text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.citations import DocumentCitation, WebCitation
from evidentia.agents.replies.citations import valid_citations
from evidentia.contracts.protocol import ProtocolRule, ReplyFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.replies.evidence import Source
    from evidentia.agents.replies.layout import Layout, Unit
    from evidentia.agents.replies.words import Terms
    from evidentia.agents.results import Piece

_LEAST_SHARED: Final = 2
_SHOWN: Final = 12


class _Image(NamedTuple):
    """An image, the text it belongs to, and the unit that uses that text most; None where none does."""

    image: str
    piece: Piece
    nearest: Terms
    """Without the words of the question, which every unit may share."""
    user: Unit | None


def image_findings(layout: Layout, sources: Sequence[Source], *, known: Terms) -> list[ReplyFinding]:
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


def _images_of(piece: Piece, units: Sequence[Unit], *, known: Terms) -> list[_Image]:
    candidates = [unit for unit in units if not unit.is_supplement and _may_use(unit, piece)]
    found: list[_Image] = []
    for image in piece.images:
        nearest = piece.nearest.get(image) or piece.terms
        best = max(candidates, key=lambda unit: (_overlap(unit, nearest), -unit.number), default=None)
        is_used = best is not None and (_uses(best, nearest) or _is_all(piece, nearest, best))
        found.append(_Image(image, piece, nearest - known or nearest, best if is_used else None))
    return found


def _may_use(unit: Unit, piece: Piece) -> bool:
    """Tell whether a unit cites a piece, or cites nothing: what cites other evidence is not about this."""
    return bool(unit.terms) and (not unit.cited or _cites(unit, piece))


def _cites(unit: Unit, piece: Piece) -> bool:
    citations = valid_citations(unit)
    if not piece.file:
        return any(isinstance(citation, WebCitation) for citation in citations)
    return any(isinstance(each, DocumentCitation) and each.file == piece.file and each.page in piece.pages for each in citations)


def _overlap(unit: Unit, nearest: Terms) -> int:
    return len(unit.terms & nearest)


def _uses(unit: Unit, nearest: Terms) -> bool:
    shared = _overlap(unit, nearest)
    return shared >= _LEAST_SHARED and shared * 3 >= min(len(nearest), len(unit.terms))


def _is_all(piece: Piece, nearest: Terms, unit: Unit) -> bool:
    """Tell whether a piece that a unit cites says hardly more than what the image belongs to."""
    return len(piece.terms) <= 2 * len(nearest) and _cites(unit, piece)


def _is_misplaced(found: _Image, units: Sequence[Unit]) -> bool:
    if found.user is None:
        return False
    neighbours = [unit for unit in units if found.image in unit.images or found.image in unit.leads]
    neighbours += [units[unit.number - 2] for unit in neighbours if not unit.claims and unit.number > 1]
    best = _overlap(found.user, found.nearest)
    return all(_is_elsewhere(unit, found, best) for unit in neighbours)


def _is_elsewhere(unit: Unit, found: _Image, best: int) -> bool:
    """Tell whether a unit speaks of other things than an image belongs to: it shares little, or cites other evidence and shares less."""
    shared = _overlap(unit, found.nearest)
    return shared * 2 < best or (shared < best and not _may_use(unit, found.piece))


def _are_at_end(layout: Layout) -> bool:
    """Tell whether images stand at the last unit that asserts something, or behind it, and nowhere else."""
    asserting = [unit.number for unit in layout.units if unit.claims]
    last = max(asserting, default=0)
    return all(not unit.images or unit.number >= last for unit in layout.units)


def _finding(rule: ProtocolRule, found: _Image, what: str) -> ReplyFinding:
    block = found.user.number if found.user else None
    return ReplyFinding(rule=rule, reason=f"image {found.image[:_SHOWN]} {what}", block=block, metadata={"image": found.image})
