"""A fragment with its proof, put together so that a stranger can check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.provenance import FragmentExport
from evidentia.provenance.chain import stored_chain
from evidentia.provenance.verify import EXPORT_FORMAT

if TYPE_CHECKING:
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.ports import ProvingReader


def export_fragment(reader: ProvingReader, chunk_id: ChunkId) -> FragmentExport:
    """Return the export of a chunk, proved against the newest version of the log."""
    chunk = reader.chunk(chunk_id)
    if chunk is None:
        raise NotFoundError("chunk", chunk_id)
    commit, commit_hash = reader.commit_record()
    return FragmentExport(
        format=EXPORT_FORMAT,
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        source_id=chunk.source_id,
        position=chunk.position,
        start=chunk.start,
        end=chunk.end,
        content=chunk.content,
        provenance_chain=stored_chain(chunk),
        event=reader.event(chunk.event_index),
        inclusion=reader.inclusion(chunk.event_index, size=commit.log_size),
        commit=commit,
        commit_hash=commit_hash,
        is_live=chunk.is_live,
    )
