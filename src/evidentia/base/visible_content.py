"""Pages, images and tables of a base's documents, each for those who may see the document; what is hidden looks like what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError, NotFoundError
from evidentia.contracts.provenance import FragmentExport
from evidentia.policy.access import access_scope
from evidentia.provenance.custody_chain import stored_chain
from evidentia.provenance.verification import EXPORT_FORMAT

if TYPE_CHECKING:
    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import VersionDiff, VersionSummary
    from evidentia.contracts.ids import ChunkId, DocumentId, Sha256
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.ports import ProvingReader
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.tables import OpenTable, TableAnswer, TableCard, TableId
    from evidentia.wiring.components import BaseComponents


MAX_ROWS = 10_000


def tables(parts: BaseComponents, principal: Principal) -> list[TableCard]:
    """Return the tables that a caller may see."""
    return list(parts.layouts().cards(_scope(parts, principal)))


def open_table(parts: BaseComponents, principal: Principal, table_id: TableId) -> OpenTable:
    """Return a table with its cells."""
    return parts.layouts().table(table_id, _scope(parts, principal))


def ask_tables(parts: BaseComponents, principal: Principal, question: str, *, limit: int) -> TableAnswer:
    """Return the rows of tables that answer a question, or why there are none."""
    _check_question(question, limit)
    cards = parts.layouts().cards(_scope(parts, principal))
    return parts.tables().ask(question, cards, as_of=parts.clock.now(), limit=limit)


def layout(parts: BaseComponents, principal: Principal, document_id: DocumentId) -> DocumentLayout | None:
    """Return the layout of a live document; None where it has none."""
    scope = _scope(parts, principal)
    is_visible = scope is None or parts.index().visibility(document_id, scope=scope) is True
    if not is_visible or not parts.reader.holds(document_id):
        raise NotFoundError("document", document_id)
    return parts.reader.layout(document_id)


def image(parts: BaseComponents, principal: Principal, image_hash: Sha256) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image."""
    return parts.layouts().image(image_hash, _scope(parts, principal))


def _scope(parts: BaseComponents, principal: Principal) -> AccessScope | None:
    """Return what a caller may see; None for the owner, who sees to the whole base."""
    return None if principal.is_owner else access_scope(principal, acl_scope=None, rules=parts.settings.access.rules)


def _check_question(question: object, limit: object) -> None:
    if not isinstance(question, str) or not question.strip():
        raise InvalidFieldError("question", "expected a question about tables")
    if any("\ud800" <= character <= "\udfff" for character in question):
        raise InvalidFieldError("question", "holds half of a character (a surrogate), which is no text")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_ROWS:
        raise InvalidFieldError("limit", f"expected a whole number from 1 to {MAX_ROWS}, not {limit!r:.50}")


# --- exporting ---
# A fragment with its proof, put together so that a stranger can check it.


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


# --- versions ---
# The versions of a base and their differences, each as the caller may see it.

MAX_VERSIONS = 10_000
MAX_DOCUMENTS = 100_000


def versions(parts: BaseComponents, principal: Principal, *, limit: int) -> list[VersionSummary]:
    """Return the newest versions."""
    _check_limit(limit, most=MAX_VERSIONS)
    return parts.history().versions(limit=limit, scope=_versions_scope(parts, principal))


def diff(parts: BaseComponents, principal: Principal, older: int | str, newer: int | str, *, limit: int) -> VersionDiff:
    """Return what differs between two versions."""
    _check_limit(limit, most=MAX_DOCUMENTS)
    return parts.history().diff(older, newer, limit=limit, scope=_versions_scope(parts, principal))


def _check_limit(limit: int, *, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidFieldError("limit", f"{limit} is not between 1 and {most}")


def _versions_scope(parts: BaseComponents, principal: Principal) -> AccessScope | None:
    """Return what a caller may see; the owner sees to the whole base."""
    return None if principal.is_owner else access_scope(principal, acl_scope=None, rules=parts.settings.access.rules)
