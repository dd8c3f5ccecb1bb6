"""What a base holds, for those who may see it: documents, pages, images, tables, versions and proofs.

What is hidden looks like what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, Sha256, SourceId, chunk_parts
from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, SignedHead, VerifyReport
from evidentia.engine.answer_verification import verify_receipt, verify_response
from evidentia.policy.access import access_scope, is_allowed
from evidentia.provenance import verification
from evidentia.provenance.custody_chain import stored_chain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.documents import StoredChunk, VersionDiff, VersionSummary
    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.ports import ProvingReader
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.tables import OpenTable, TableAnswer, TableCard, TableId
    from evidentia.wiring.components import BaseComponents


MAX_ROWS = 10_000
MAX_VERSIONS = 10_000
MAX_DOCUMENTS = 100_000


def documents(parts: BaseComponents, principal: Principal, *, after: str, limit: int | None) -> list[tuple[DocumentId, AccessRule, int]]:
    """Return the first live documents after an id that a caller may see; without a limit, all of them."""
    if limit is not None:
        _check_limit(limit, most=MAX_DOCUMENTS)
    return list(parts.reader.documents(scope=scope_of(parts, principal), after=after, limit=limit))


def chunks(parts: BaseComponents, document_id: DocumentId, principal: Principal) -> list[StoredChunk]:
    """Return the live chunks of a document."""
    found = list(parts.reader.chunks_of(document_id)) if _sees(parts, principal, document_id) else []
    if not found:
        raise NotFoundError("document", document_id)
    return found


def tables(parts: BaseComponents, principal: Principal) -> list[TableCard]:
    """Return the tables that a caller may see."""
    return list(parts.layouts().cards(scope_of(parts, principal)))


def open_table(parts: BaseComponents, principal: Principal, table_id: TableId) -> OpenTable:
    """Return a table with its cells."""
    return parts.layouts().table(table_id, scope_of(parts, principal))


def ask_tables(
    parts: BaseComponents, principal: Principal, question: str, *, limit: int, is_given: Callable[[str], bool] = lambda _: True
) -> TableAnswer:
    """Return the rows of tables that answer a question, or why there are none; `is_given` tells whose documents are asked."""
    _check_question(question, limit)
    cards = [card for card in parts.layouts().cards(scope_of(parts, principal)) if is_given(card.document_id)]
    return parts.tables().ask(question, cards, as_of=parts.clock.now(), limit=limit)


def layout(parts: BaseComponents, principal: Principal, document_id: DocumentId) -> DocumentLayout | None:
    """Return the layout of a live document; None where it has none."""
    if not _sees(parts, principal, document_id) or not parts.reader.holds(document_id):
        raise NotFoundError("document", document_id)
    return parts.reader.layout(document_id)


def image(parts: BaseComponents, principal: Principal, image_hash: Sha256) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image."""
    return parts.layouts().image(image_hash, scope_of(parts, principal))


def head(parts: BaseComponents, principal: Principal) -> CommitSummary:
    """Return the newest version, whose hashes are keyed for everybody but the owner."""
    if principal.is_owner:
        return parts.reader.head()
    commit, _ = parts.reader.commit_record(is_public=True)
    return CommitSummary(
        sequence=commit.sequence,
        corpus_version=CorpusVersion(commit.corpus_version),
        evidence_state=EvidenceState(commit.evidence_state),
        log_size=commit.log_size,
        log_root=commit.log_root,
        committed_at=commit.committed_at,
    )


def versions(parts: BaseComponents, principal: Principal, *, limit: int) -> list[VersionSummary]:
    """Return the newest versions."""
    _check_limit(limit, most=MAX_VERSIONS)
    return parts.history().versions(limit=limit, scope=scope_of(parts, principal))


def diff(parts: BaseComponents, principal: Principal, older: int | str, newer: int | str, *, limit: int) -> VersionDiff:
    """Return what differs between two versions."""
    _check_limit(limit, most=MAX_DOCUMENTS)
    return parts.history().diff(older, newer, limit=limit, scope=scope_of(parts, principal))


def export(parts: BaseComponents, chunk_id: ChunkId, principal: Principal) -> FragmentExport:
    """Return a fragment that a caller may see, with its proof."""
    if not _sees_chunk(parts, principal, chunk_id):
        raise NotFoundError("chunk", chunk_id)
    return export_fragment(parts.reader, chunk_id)


def export_fragment(reader: ProvingReader, chunk_id: ChunkId) -> FragmentExport:
    """Return the export of a chunk, proved against the newest version of the log."""
    chunk = reader.chunk(chunk_id)
    if chunk is None:
        raise NotFoundError("chunk", chunk_id)
    commit, commit_hash = reader.commit_record(is_public=True)
    export = FragmentExport(
        format=verification.EXPORT_FORMAT,
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
        head=reader.signed_head(commit.sequence),
    )
    return msgspec.structs.replace(export, export_hash=verification.export_hash(export))


def verify(parts: BaseComponents, target: str | None, principal: Principal) -> VerifyReport:
    """Recompute the custody of the whole base, or of a document or chunk that a caller may see."""
    if target is not None and _sees_chunk(parts, principal, ChunkId(target)):
        return verification.verify_export(export_fragment(parts.reader, ChunkId(target)))
    if target is not None and not _sees(parts, principal, DocumentId(target)):
        raise NotFoundError("document or chunk", target)
    with parts.archive() as archive:
        if target is None:
            return verification.verify_base(archive)
        report = verification.verify_document(archive, target)
    if report.ok and not report.documents:
        raise NotFoundError("document or chunk", target)
    return report


def verify_answer(parts: BaseComponents, response: EvidenceResponse) -> VerifyReport:
    """Check an answer from its own bytes; one that this base gave with a receipt, by that as well."""
    if response.receipt_id is None or response.commit.base_id != parts.reader.commit_record()[0].base_id:
        return verify_response(response)
    try:
        return verify_receipt(response, parts.receipts.read(response.receipt_id))
    except (NotFoundError, BaseDamagedError):
        return verify_receipt(response, None)


def signed_head(parts: BaseComponents, sequence: int | None) -> SignedHead:
    """Return the signed head of a commit; it is public, whoever asks."""
    found = parts.reader.signed_head(sequence)
    if found is None:
        raise NotFoundError("signed head", "of the newest version" if sequence is None else f"of version {sequence}")
    return found


def consistency(parts: BaseComponents, first_size: int) -> ConsistencyProof:
    """Return the proof that an earlier event log is a prefix of the present one."""
    size = parts.reader.head().log_size
    if not 0 <= first_size <= size:
        raise InvalidFieldError("first_size", f"{first_size} is not between 0 and the log's {size} entries")
    return parts.reader.consistency(first_size, size=size)


def scope_of(parts: BaseComponents, principal: Principal) -> AccessScope | None:
    """Return what a caller may see; None for the owner, who sees to the whole base."""
    return None if principal.is_owner else access_scope(principal, acl_scope=None, rules=parts.settings.access.rules)


def _sees(parts: BaseComponents, principal: Principal, document_id: DocumentId) -> bool:
    """Tell whether a caller may see a document by the last rule it had; the owner sees to the whole base."""
    scope = scope_of(parts, principal)
    return scope is None or parts.index().visibility(document_id, scope=scope) is True


def hidden_ids(parts: BaseComponents, principal: Principal, names: Collection[str]) -> set[str]:
    """Return those of the names that would be ids of chunks, or of documents of the base's sources, and are none that a caller may see.

    What is hidden and what is not there are not told apart; any other name is no id.
    """
    own = {source_id for source_id, each in parts.registry().descriptors().items() if each.is_own} if names else set()
    found: set[str] = set()
    for name in names:
        if chunk_parts(ChunkId(name)) is not None:
            found |= set() if _sees_chunk(parts, principal, ChunkId(name)) else {name}
        elif name in own:
            found |= set() if _sees_source(parts, principal, SourceId(name)) else {name}
        elif name.partition(":")[0] in own and not _sees(parts, principal, DocumentId(name)):
            found.add(name)
    return found


def _sees_source(parts: BaseComponents, principal: Principal, source_id: SourceId) -> bool:
    """Tell whether a caller may see a document of a source; one without is as good as none."""
    scope = scope_of(parts, principal)
    return scope is None or source_id in parts.index().at(search=parts.settings.search).sources(scope)


def _sees_chunk(parts: BaseComponents, principal: Principal, chunk_id: ChunkId) -> bool:
    """Tell whether a caller may see a chunk: by the last rule its document had, and by the one it was stored under.

    The first comes first: nothing is read of a hidden document, so that asking for its chunks takes the time of asking for none.
    """
    scope, named = scope_of(parts, principal), chunk_parts(chunk_id)
    if named is None or not _sees(parts, principal, named.document_id):
        return False
    chunk = parts.reader.chunk(chunk_id)
    return chunk is not None and (scope is None or is_allowed(chunk.access, scope))


def required_id(field: str, value: object) -> str:
    """Return an id as it was given; anything but a text is refused by the name of its field."""
    if not isinstance(value, str) or not value:
        raise InvalidFieldError(field, f"expected a text, not {type(value).__name__ if value != '' else 'an empty one'}")
    return value


def _check_question(question: object, limit: object) -> None:
    if not isinstance(question, str) or not question.strip():
        raise InvalidFieldError("question", "expected a question about tables")
    if any("\ud800" <= character <= "\udfff" for character in question):
        raise InvalidFieldError("question", "holds half of a character (a surrogate), which is no text")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_ROWS:
        raise InvalidFieldError("limit", f"expected a whole number from 1 to {MAX_ROWS}, not {limit!r:.50}")


def _check_limit(limit: int, *, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidFieldError("limit", f"{limit} is not between 1 and {most}")
