"""A source, a question to it, and an intake between them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evidentia.contracts.access import Principal
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import PrincipalId, SourceId, TenantId
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ConnectionKind
from evidentia.sources.intake import Intake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.sources.intake import Taken

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WIKI = SourceDescriptor(
    source_id=SourceId("wiki"),
    authority_tier=AuthorityTier.DERIVED,
    connection=SourceConnection(kind=ConnectionKind.PYTHON),
    access_policy=SourceAccessPolicy(tenants=("acme",), minimum_clearance=Classification.INTERNAL),
)
ASK = SourceAsk(
    query=SubQuery(text="how tall is the crane?"),
    principal=Principal(principal_id=PrincipalId("ann"), tenant=TenantId("acme"), clearance=Classification.CONFIDENTIAL),
    limit=10,
    budget_ms=100,
    as_of=NOW,
)


def taken(*proposed: object, settings: SourceSettings | None = None) -> Taken:
    """Return what an intake makes of a reply."""
    return taken_from(proposed, settings=settings)


def taken_from(proposed: Iterable[object], *, settings: SourceSettings | None = None) -> Taken:
    """Return what an intake makes of a reply that is read as far as the intake wants."""
    intake = Intake(WIKI, ASK, settings=settings or SourceSettings(), now=lambda: NOW)
    for each in proposed:
        if not intake.take(each):
            break
    return intake.finished()


def only(*proposed: object, settings: SourceSettings | None = None) -> ExternalCandidate:
    """Return the one candidate of a reply."""
    (candidate,) = taken(*proposed, settings=settings).candidates
    return candidate
