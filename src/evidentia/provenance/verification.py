"""Verification: recompute everything a hash speaks for, and name the first link that does not hold.

A whole base is checked in the order in which one thing vouches for the next: storage, commit records, event log,
documents, vectors. An exported fragment is checked from its own bytes alone. Nothing here reads a file or a clock.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import Sha256, chunk_id_of
from evidentia.contracts.ports import CustodyArchive, SupportsLayouts, SupportsSignedHeads, SupportsVectorCustody
from evidentia.contracts.provenance import CUSTODY_FORMAT, BrokenLink, CommitRecord, FragmentExport, IngestEvent, VerifyReport
from evidentia.provenance import merkle
from evidentia.provenance.corpus_hash import CorpusState, evidence_state, member_bytes, vector_faults
from evidentia.provenance.custody_chain import DocumentChain, chain_faults, chunk_record, logged_chain
from evidentia.provenance.layout_custody import LayoutCheck
from evidentia.provenance.merkle import Frontier
from evidentia.provenance.signed_heads import head_faults, head_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.documents import PreparedChunk, StoredDocument

EXPORT_FORMAT = f"evidentia-fragment/{CUSTODY_FORMAT}"
OLDER_EXPORT_FORMAT = "evidentia-fragment/1"
"""What exports of older releases say; they have no signed head."""
MAX_FAULTS = 20
"""A report lists at most this many broken links; the first is the one that matters."""

UNREADABLE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""What code meets when a stored value is not of the kind it should be; for verification that is a finding, not a crash."""

_PENDING_MEMBERS = 256

_decode_event = json_decoder(IngestEvent)


def verify_base(archive: CustodyArchive) -> VerifyReport:
    """Check a whole base."""
    return _BaseCheck(archive, target="base", only=None).run()


def verify_document(archive: CustodyArchive, document_id: str) -> VerifyReport:
    """Check every stored version of one document, and the log and commits that vouch for it."""
    return _BaseCheck(archive, target=f"document '{document_id}'", only=document_id).run()


def verify_export(export: FragmentExport) -> VerifyReport:
    """Check an exported fragment from its own bytes alone, one of an older release by the rules of its own format."""
    is_older = export.format == OLDER_EXPORT_FORMAT
    broken = tuple(_export_faults(export, is_older=is_older))
    return VerifyReport(
        ok=not broken,
        target=f"fragment '{export.chunk_id}'",
        fragments=1,
        events=1,
        commits=1,
        broken=broken,
        custody_format=1 if is_older else CUSTODY_FORMAT,
        signed_by=export.head.head.public_key if export.head is not None and not is_older and not broken else "",
    )


def export_hash(export: FragmentExport) -> Sha256:
    """Return the hash of everything in an export but this hash."""
    return sha256_hex(encode_struct(msgspec.structs.replace(export, export_hash="")))


class _BaseCheck:
    """One walk over an archive, in memory that does not grow with it."""

    def __init__(self, archive: CustodyArchive, *, target: str, only: str | None) -> None:
        self._archive = archive
        self._target = target
        self._only = only
        self._broken: list[BrokenLink] = []
        self._commits: list[CommitRecord] = []
        self._events = 0
        self._documents = 0
        self._fragments = 0
        self._signed_by = ""
        self._layouts = LayoutCheck(archive.attachment if isinstance(archive, SupportsLayouts) else _keeps_nothing)

    def run(self) -> VerifyReport:
        for step in (
            self._check_storage,
            self._check_commits,
            self._check_heads,
            self._check_log,
            self._check_documents,
            self._check_vectors,
        ):
            try:
                self._collect(step())
            except UNREADABLE as error:
                self._broken.append(
                    BrokenLink(check=step.__name__.removeprefix("_check_"), where="records", problem=f"a value cannot be read ({error})")
                )
            except BaseDamagedError as error:
                self._broken.append(BrokenLink(check=step.__name__.removeprefix("_check_"), where=error.where, problem=error.problem))
            if self._broken:
                break
        return VerifyReport(
            ok=not self._broken,
            target=self._target,
            fragments=self._fragments,
            documents=self._documents,
            events=self._events,
            commits=len(self._commits),
            broken=tuple(self._broken),
            signed_by="" if self._broken else self._signed_by,
        )

    def _collect(self, faults: Iterator[BrokenLink]) -> None:
        for fault in faults:
            self._broken.append(fault)
            if len(self._broken) >= MAX_FAULTS:
                return

    def _check_storage(self) -> Iterator[BrokenLink]:
        return self._archive.storage_faults()

    def _check_commits(self) -> Iterator[BrokenLink]:
        parent = ""
        for expected, (record, stored_hash) in enumerate(self._archive.commits()):
            where = f"commit {expected}"
            self._commits.append(record)
            if record.sequence != expected:
                yield BrokenLink(check="commit", where=where, problem="the commit is missing")
            if record.parent != parent:
                yield BrokenLink(check="commit", where=where, problem="it does not name the commit before it")
            parent = sha256_hex(encode_struct(record))
            if parent != stored_hash:
                yield BrokenLink(check="commit", where=where, problem="the record does not have its stored hash")
            if record.base_id != self._commits[0].base_id:
                yield BrokenLink(check="commit", where=where, problem="it belongs to another base")

    def _check_heads(self) -> Iterator[BrokenLink]:
        if not isinstance(self._archive, SupportsSignedHeads):
            return
        heads = {signed.head.sequence: signed for signed in self._archive.signed_heads()}
        for record in self._commits:
            signed = heads.pop(record.sequence, None)
            if signed is None:
                if record.keys_hash:
                    yield BrokenLink(check="head", where=f"head {record.sequence}", problem="it is missing")
                continue
            yield from head_faults(signed)
            if signed.head != head_of(self._archive.public_commit(record), public_key=signed.head.public_key):
                yield BrokenLink(check="head", where=f"head {record.sequence}", problem="it is of another commit")
            self._signed_by = signed.head.public_key
        for sequence in heads:
            yield BrokenLink(check="head", where=f"head {sequence}", problem="there is no such commit")

    def _check_log(self) -> Iterator[BrokenLink]:
        frontier = Frontier()
        leaves = self._archive.log_leaves(0, self._commits[-1].log_size)
        for record in self._commits:
            while frontier.size < record.log_size:
                leaf = next(leaves, None)
                if leaf is None:
                    yield BrokenLink(check="event log", where=f"event {frontier.size}", problem="the entry is missing")
                    return
                self._events += 1
                frontier.append(merkle.leaf_hash(leaf))
            if frontier.root().hex() != record.log_root:
                yield BrokenLink(check="event log", where=f"commit {record.sequence}", problem="the log does not have the committed root")
                return

    def _check_documents(self) -> Iterator[BrokenLink]:
        changes = _VersionChanges(oldest=self._commits[-1].oldest_readable)
        for document in self._archive.documents():
            is_wanted = self._only is None or document.document_id == self._only
            if is_wanted:
                yield from self._document_faults(document)
                self._documents += 1
                self._fragments += len(document.chunks)
            if self._only is None:
                changes.count(document)
        if self._only is None:
            yield from self._version_faults(changes)

    def _check_vectors(self) -> Iterator[BrokenLink]:
        if self._only is None and isinstance(self._archive, SupportsVectorCustody):
            yield from vector_faults(self._archive, self._commits)

    def _document_faults(self, document: StoredDocument) -> Iterator[BrokenLink]:
        where = f"document '{document.document_id}'"
        custody = document.custody
        if custody.origin.document_id != document.document_id or custody.origin.source_id != document.source_id:
            yield BrokenLink(check="custody", where=where, problem="the origin is another document's")
        if sha256_hex(document.text) != document.text_hash:
            yield BrokenLink(check="content", where=where, problem="the stored text does not have its hash")
        if not custody.transformations or custody.transformations[-1].output_hash != document.text_hash:
            yield BrokenLink(check="custody", where=where, problem="the last extraction did not give this text")
        access_hash = sha256_hex(encode_struct(document.access))
        problem = self._event_problem(
            document.version_event,
            document_id=document.document_id,
            source_id=document.source_id,
            fingerprint=document.fingerprint,
            access_hash=access_hash,
            root=document.root,
        )
        if problem:
            yield BrokenLink(check="event log", where=where, problem=problem)
        chain = DocumentChain(custody)
        for number, (chunk, event_index) in enumerate(zip(document.chunks, document.event_indexes, strict=True)):
            if chunk.position != number:
                yield BrokenLink(check="custody", where=where, problem=f"chunk {number} says that it is number {chunk.position}")
            problem = _chunk_problem(document, chunk, chain) or self._event_problem(
                event_index, document_id=document.document_id, chunk_id=chunk.chunk_id, custody_head=chunk.custody_head
            )
            if problem:
                yield BrokenLink(check="custody", where=f"chunk '{chunk.chunk_id}'", problem=problem)
        for place, problem in self._layouts.faults(document):
            yield BrokenLink(check="layout", where=place, problem=problem)

    def _event_problem(self, index: int, **expected: str | int) -> str:
        leaf = next(self._archive.log_leaves(index, index + 1), None) if 0 <= index < self._events else None
        if leaf is None:
            return f"the log has no event {index}"
        try:
            event = _decode_event(leaf)
        except msgspec.MsgspecError as error:
            return f"event {index} cannot be read ({error})"
        if event.index != index:
            return f"event {index} says that it is event {event.index}"
        wrong = [name for name, value in expected.items() if getattr(event, name) != value]
        return f"event {index} records another {', '.join(wrong)}" if wrong else ""

    def _version_faults(self, changes: _VersionChanges) -> Iterator[BrokenLink]:
        corpus = CorpusState()
        known = {record.sequence for record in self._commits}
        for sequence in sorted(changes.sequences - known):
            yield BrokenLink(check="version", where=f"commit {sequence}", problem="documents speak of a commit that is not there")
        for record in self._commits[changes.oldest :]:
            changes.apply(record.sequence, corpus)
            where = f"commit {record.sequence}"
            if corpus.version != record.corpus_version:
                yield BrokenLink(check="version", where=where, problem="the live documents do not have the committed corpus_version")
                return
            state = evidence_state(corpus.version, sources=record.sources_hash, vectors=record.vectors, contexts=record.contexts)
            if state != record.evidence_state:
                yield BrokenLink(check="version", where=where, problem="the evidence_state does not follow from its parts")
        if corpus.state != self._archive.corpus_state():
            yield BrokenLink(check="version", where="corpus state", problem="the stored running sum is not that of the live documents")


def _keeps_nothing(_: Sha256) -> None:
    """Stand for an archive that keeps no attachments: a document with a layout is then not whole."""


class _VersionChanges:
    """What each commit added to and took from the corpus, as sums rather than lists."""

    def __init__(self, *, oldest: int) -> None:
        self.oldest = oldest
        self._sums: dict[int, CorpusState] = {}
        self._pending: dict[int, tuple[list[bytes], list[bytes]]] = {}

    @property
    def sequences(self) -> set[int]:
        """Return the commits that documents speak of."""
        return self._sums.keys() | self._pending.keys()

    def count(self, document: StoredDocument) -> None:
        """Take a version of a document into account; what was there before the oldest version counts from there on."""
        marks = [(chunk.chunk_id, chunk.content_hash) for chunk in document.chunks]
        member = member_bytes(document.document_id, metadata=document.metadata, access=document.access, chunks=marks)
        self._note(max(document.added_at, self.oldest), member, side=0)
        if document.removed_at is not None:
            self._note(document.removed_at, member, side=1)

    def apply(self, sequence: int, corpus: CorpusState) -> None:
        """Bring the corpus from the commit before to this one."""
        self._settle(sequence)
        if sequence in self._sums:
            corpus.join(self._sums[sequence])

    def _note(self, sequence: int, member: bytes, *, side: int) -> None:
        pending = self._pending.setdefault(sequence, ([], []))
        pending[side].append(member)
        if len(pending[side]) >= _PENDING_MEMBERS:
            self._settle(sequence)

    def _settle(self, sequence: int) -> None:
        coming, going = self._pending.pop(sequence, ([], []))
        if coming or going:
            total = self._sums.setdefault(sequence, CorpusState())
            total.add(coming)
            total.remove(going)


def _chunk_problem(document: StoredDocument, chunk: PreparedChunk, chain: DocumentChain) -> str:
    content = document.text[chunk.byte_start : chunk.byte_end]
    if not 0 <= chunk.byte_start < chunk.byte_end <= len(document.text):  # a slice would not mind
        return "it does not lie within its document"
    if sha256_hex(content) != chunk.content_hash:
        return "the stored text does not have the chunk's hash"
    record = chunk_record(
        document.custody,
        position=chunk.position,
        start=chunk.start,
        end=chunk.end,
        text_hash=document.text_hash,
        content_hash=chunk.content_hash,
    )
    if chain.head(content, record) != chunk.custody_head:
        return "the chain does not end in the stored head"
    if not _offsets_agree(document.text, chunk):
        return "character and byte offsets do not agree"
    return ""


def _offsets_agree(text: bytes, chunk: PreparedChunk) -> bool:
    try:
        before = len(text[: chunk.byte_start].decode())
        inside = len(text[chunk.byte_start : chunk.byte_end].decode())
    except UnicodeDecodeError:
        return False
    return before == chunk.start and before + inside == chunk.end


def _export_faults(export: FragmentExport, *, is_older: bool) -> Iterator[BrokenLink]:
    """Check the format, then the fragment, and then what covers all of it: the most particular fault is the first."""
    where = f"fragment '{export.chunk_id}'"
    if not is_older and export.format != EXPORT_FORMAT:
        yield BrokenLink(check="format", where=where, problem=f"'{export.format}' is not '{EXPORT_FORMAT}'")
    yield from fragment_faults(export)
    if is_older:
        return
    if export_hash(export) != export.export_hash:
        yield BrokenLink(check="export", where=where, problem="the export_hash is not that of this export")
    if export.head is None:
        return  # of a base that nobody has written to since heads are signed
    yield from head_faults(export.head)
    if export.head.head != head_of(export.commit, public_key=export.head.head.public_key):
        yield BrokenLink(check="head", where=f"head {export.head.head.sequence}", problem="it is of another commit")


def fragment_faults(export: FragmentExport) -> Iterator[BrokenLink]:
    """Check, in order: identity, chain, event, inclusion, commit."""
    where = f"fragment '{export.chunk_id}'"
    content = export.content.encode()
    content_hash = sha256_hex(content)
    if chunk_id_of(export.document_id, position=export.position, content_hash=content_hash) != export.chunk_id:
        yield BrokenLink(check="identity", where=where, problem="the chunk id is not that of this document, position and content")
    for link, problem in chain_faults(export.provenance_chain, content=content):
        yield BrokenLink(check="chain", where=link, problem=problem)
    yield from _origin_faults(export, where=where)
    event = export.event
    head = logged_chain(export.provenance_chain)[-1].hash if export.provenance_chain else ""
    if (event.document_id, event.source_id, event.chunk_id, event.custody_head) != (
        export.document_id,
        export.source_id,
        export.chunk_id,
        head,
    ):
        yield BrokenLink(check="event", where=f"event {event.index}", problem="the event records another fragment or chain")
    proof = export.inclusion
    leaf = merkle.leaf_hash(encode_struct(event))
    if event.index != proof.leaf_index or not merkle.verify_inclusion(
        leaf, index=proof.leaf_index, size=proof.tree_size, path=_raw(proof.hashes), root=_raw((proof.root,))[0]
    ):
        yield BrokenLink(check="inclusion", where=f"event {event.index}", problem="the event is not in the log with this root")
    if (export.commit.log_size, export.commit.log_root) != (proof.tree_size, proof.root):
        yield BrokenLink(check="commit", where=f"commit {export.commit.sequence}", problem="the commit names another log")
    if hashlib.sha256(encode_struct(export.commit)).hexdigest() != export.commit_hash:
        yield BrokenLink(check="commit", where=f"commit {export.commit.sequence}", problem="the record does not have its hash")


def _origin_faults(export: FragmentExport, *, where: str) -> Iterator[BrokenLink]:
    if not export.provenance_chain:
        return
    origin, last = export.provenance_chain[0].record, logged_chain(export.provenance_chain)[-1].record
    named = (getattr(origin, "document_id", ""), getattr(origin, "source_id", ""))
    if named != (export.document_id, export.source_id):
        yield BrokenLink(check="identity", where=where, problem="the chain begins in another document")
    cut = {"end": export.end, "position": export.position, "start": export.start}
    if getattr(last, "parameters", None) != cut:
        yield BrokenLink(check="identity", where=where, problem="the chain ends in another stretch of the document")


def _raw(hashes: tuple[str, ...]) -> list[bytes]:
    try:
        return [bytes.fromhex(each) for each in hashes]
    except ValueError:
        return [b""] * len(hashes)
