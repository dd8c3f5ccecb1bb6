"""Human annotations: corrections, labels and knowledge that attach to what they speak about."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from evidentia.contracts.ids import AnnotationId, PrincipalId, SemanticVersion
from evidentia.contracts.provenance import ProvenanceRecord
from evidentia.contracts.vocabulary import AnnotationTargetType, AnnotationType, ExpertiseLevel


class AnnotationTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What an annotation speaks about, pinned to a version where one is given."""

    target_type: AnnotationTargetType
    target_id: str
    target_version: SemanticVersion | None = None


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A statement by a person about a target; never a search result of its own."""

    annotation_id: AnnotationId
    target: AnnotationTarget
    annotation_type: AnnotationType
    content: str
    author: PrincipalId
    author_expertise: ExpertiseLevel = ExpertiseLevel.UNKNOWN
    created_at: datetime
    expires_at: datetime | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    supersedes: tuple[AnnotationId, ...] = ()
    provenance: ProvenanceRecord | None = None
