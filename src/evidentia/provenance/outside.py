"""Custody of what a source outside the base said: what came, what it was asked, and what cleaning made of it.

Such a chain vouches for what this side received and when. What happened to the text before is the source's word, or a chain of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.provenance import DocumentCustody, OriginDescriptor, ToolStamp, TransformationRecord
from evidentia.provenance.chain import chain_of

if TYPE_CHECKING:
    from evidentia.contracts.provenance import ProvenanceEntry
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.vocabulary import SourceType

RETRIEVE_STEP: Final = "retrieve"
CLEAN_STEP: Final = "clean"
INTAKE_TOOL: Final = ToolId("evidentia.intake")
INTAKE_VERSION: Final = SemanticVersion("1.0.0")
"""Changes whenever the intake may make another content of the same reply."""


def outside_chain(candidate: ExternalCandidate, *, source_type: SourceType, version: SemanticVersion) -> tuple[ProvenanceEntry, ...]:
    """Return the chain of a candidate: its origin, how it was retrieved from its source, and how it was cleaned."""
    stamp = ToolStamp(tool_id=INTAKE_TOOL, tool_version=INTAKE_VERSION, timestamp=candidate.retrieved_at)
    custody = DocumentCustody(
        origin=_origin(candidate, source_type=source_type), transformations=(_retrieval(candidate, version=version),), cut_by=stamp
    )
    cleaning = TransformationRecord(
        step=CLEAN_STEP,
        tool_id=stamp.tool_id,
        tool_version=stamp.tool_version,
        timestamp=stamp.timestamp,
        input_hash=candidate.received_hash,
        output_hash=candidate.content_hash,
        parameters={"characters": len(candidate.content), "flags": " ".join(candidate.flags)},
    )
    return chain_of(custody, content=candidate.content.encode(), last=cleaning)


def _origin(candidate: ExternalCandidate, *, source_type: SourceType) -> OriginDescriptor:
    return OriginDescriptor(
        source_id=candidate.source_id,
        source_type=source_type,
        document_id=candidate.document_id,
        document_version=_updated_at(candidate),
        extraction_method=RETRIEVE_STEP,
        extraction_timestamp=candidate.retrieved_at,
        content_hash=candidate.received_hash,
        content_length=candidate.received_length,
        media_type=candidate.media_type,
    )


def _retrieval(candidate: ExternalCandidate, *, version: SemanticVersion) -> TransformationRecord:
    parameters: dict[str, int | str] = {"origin": candidate.origin, "query": candidate.query, "rank": candidate.rank}
    if candidate.updated_at is not None:
        parameters["updated_at"] = _updated_at(candidate)
    return TransformationRecord(
        step=RETRIEVE_STEP,
        tool_id=ToolId(candidate.source_id),
        tool_version=version,
        timestamp=candidate.retrieved_at,
        input_hash=candidate.received_hash,
        output_hash=candidate.received_hash,
        parameters=parameters,
    )


def _updated_at(candidate: ExternalCandidate) -> str:
    return "" if candidate.updated_at is None else candidate.updated_at.isoformat()
