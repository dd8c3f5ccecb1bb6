"""The custody chain of a fragment: one hash per record, each sealing the one before.

    h0 = SHA-256(canonical origin record || content bytes of the fragment)
    hi = SHA-256(h(i-1) || canonical transformation record i)

`||` joins bytes and h(i-1) stands as its 32 raw bytes. The last transformation's `output_hash` is the SHA-256 of the
fragment's content, and each transformation's `input_hash` is the `output_hash` before it (the first one's is the
origin's `content_hash`), so the chain ties the original bytes to the fragment without a gap.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.ids import SemanticVersion, Sha256, ToolId
from evidentia.contracts.provenance import (
    DocumentCustody,
    OriginDescriptor,
    OriginEntry,
    ProvenanceEntry,
    ToolStamp,
    TransformationEntry,
    TransformationRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.vectors import VectorIdentity
    from evidentia.contracts.vocabulary import SourceType


CHUNK_STEP = "chunk"
EMBED_STEP: Final = "embed"

_sha256 = hashlib.sha256


def chunk_record(
    custody: DocumentCustody, *, position: int, start: int, end: int, text_hash: Sha256, content_hash: Sha256
) -> TransformationRecord:
    """Return the record of cutting one chunk out of its document's text."""
    stamp = custody.cut_by
    return TransformationRecord(
        step=CHUNK_STEP,
        tool_id=stamp.tool_id,
        tool_version=stamp.tool_version,
        timestamp=stamp.timestamp,
        input_hash=text_hash,
        output_hash=content_hash,
        parameters={"end": end, "position": position, "start": start},
    )


class DocumentChain:
    """Computes chunk heads of one document, encoding what the chunks share only once."""

    def __init__(self, custody: DocumentCustody) -> None:
        self._custody = custody
        self._origin = encode_struct(custody.origin)
        self._steps = [encode_struct(record) for record in custody.transformations]

    def head(self, content: bytes, record: TransformationRecord) -> Sha256:
        """Return the last hash of the chain that ends in `record`."""
        digest = _sha256(self._origin + content).digest()
        for step in self._steps:
            digest = _sha256(digest + step).digest()
        return Sha256(_sha256(digest + encode_struct(record)).hexdigest())


def chain_of(custody: DocumentCustody, *, content: bytes, last: TransformationRecord) -> tuple[ProvenanceEntry, ...]:
    """Return the whole chain of a fragment, origin first, each entry with its hash."""
    digest = _sha256(encode_struct(custody.origin) + content).digest()
    entries: list[ProvenanceEntry] = [OriginEntry(record=custody.origin, hash=Sha256(digest.hex()))]
    for record in (*custody.transformations, last):
        digest = _sha256(digest + encode_struct(record)).digest()
        entries.append(TransformationEntry(record=record, hash=Sha256(digest.hex())))
    return tuple(entries)


def stored_chain(chunk: StoredChunk) -> tuple[ProvenanceEntry, ...]:
    """Return the whole chain of a chunk as it was read back."""
    last = chunk_record(
        chunk.custody,
        position=chunk.position,
        start=chunk.start,
        end=chunk.end,
        text_hash=chunk.text_hash,
        content_hash=chunk.content_hash,
    )
    return chain_of(chunk.custody, content=chunk.content.encode(), last=last)


def embedded_chain(chain: tuple[ProvenanceEntry, ...], identity: VectorIdentity, *, at: datetime) -> tuple[ProvenanceEntry, ...]:
    """Return a chain with the step that gave its content a vector, which an answer used; the content stays as it is.

    `at` is the moment of the commit that holds the vector: vectors are committed together, and keep no moments of their own.
    """
    content_hash = chain[-1].record.output_hash if isinstance(chain[-1], TransformationEntry) else chain[-1].record.content_hash
    record = TransformationRecord(
        step=EMBED_STEP,
        tool_id=ToolId(identity.name),
        tool_version=SemanticVersion(identity.model),
        timestamp=at,
        input_hash=content_hash,
        output_hash=content_hash,
        parameters={"dimension": identity.dimension, "normalisation": identity.normalisation},
    )
    digest = _sha256(bytes.fromhex(chain[-1].hash) + encode_struct(record)).hexdigest()
    return (*chain, TransformationEntry(record=record, hash=Sha256(digest)))


def logged_chain(chain: Sequence[ProvenanceEntry]) -> Sequence[ProvenanceEntry]:
    """Return a chain as far as the event log knows it: a vector is made after the event."""
    last = chain[-1].record if chain else None
    return chain[:-1] if isinstance(last, TransformationRecord) and last.step == EMBED_STEP else chain


def chain_faults(chain: Sequence[ProvenanceEntry], *, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield (link, problem) for every link of a chain that does not hold for this content, first link first."""
    if not chain or not isinstance(chain[0], OriginEntry):
        yield "link 0", "the chain does not begin with an origin"
        return
    digest = _sha256(encode_struct(chain[0].record) + content).digest()
    if digest.hex() != chain[0].hash:
        yield "link 0 (origin)", "the hash does not match the origin record and the content"
    flowing: str = chain[0].record.content_hash
    for number, entry in enumerate(chain[1:], start=1):
        if not isinstance(entry, TransformationEntry):
            yield f"link {number}", "an origin stands in the middle of the chain"
            return
        link = f"link {number} ({entry.record.step})"
        digest = _sha256(digest + encode_struct(entry.record)).digest()
        if digest.hex() != entry.hash:
            yield link, "the hash does not match the record and the link before it"
        if entry.record.input_hash != flowing:
            yield link, "the input is not the output of the link before it"
        flowing = entry.record.output_hash
    if flowing != _sha256(content).hexdigest():
        yield f"link {len(chain) - 1}", "the last output is not the content"


# --- outside ---
# Custody of what a source outside the base said: what came, what it was asked, and what cleaning made of it.
#
# Such a chain vouches for what this side received and when. What happened to the text before is the source's word, or a chain of its own.

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
