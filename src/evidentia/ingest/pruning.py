"""Which live documents are gone from where they came from; refuses to call gone what merely could not be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evidentia.contracts.documents import KnownDocument
    from evidentia.contracts.ids import DocumentId, SourceId
    from evidentia.ingest.walk import Walk


def gone_files(
    live: Mapping[DocumentId, KnownDocument], *, source: SourceId, walk: Walk, moved: Mapping[str, str]
) -> tuple[DocumentId, ...]:
    """Return the documents from the walked roots that the walk no longer found, sorted.

    Only directories that were given count: a file given by name says nothing about its neighbours. What lies below a directory
    that could not be listed stays. `moved` gives for a root that is gone the walked root its files were found in.
    """
    roots = frozenset(walk.roots)
    found = {(file.root, file.own_id) for file in walk.files}
    gone = []
    for document_id, document in live.items():
        own_id = own_id_of(document_id, source=source)
        root = moved.get(document.root, document.root)
        if root not in roots or (root, own_id) in found or _is_unwalked(root, own_id, walk):
            continue
        gone.append(document_id)
    return tuple(sorted(gone))


def gone_records(live: Mapping[DocumentId, KnownDocument], *, source: SourceId, has_seen: Callable[[str], bool]) -> tuple[DocumentId, ...]:
    """Return the documents from corpora whose id was not seen in this run, sorted."""
    return tuple(
        sorted(
            document_id
            for document_id, document in live.items()
            if not document.root and not has_seen(own_id_of(document_id, source=source))
        )
    )


def own_id_of(document_id: DocumentId, *, source: SourceId) -> str:
    """Return a document's own id within its source."""
    return document_id.removeprefix(f"{source}:")


def _is_unwalked(root: str, own_id: str, walk: Walk) -> bool:
    return any(root == there and (not prefix or own_id.startswith(f"{prefix}/")) for there, prefix in walk.unwalked)
