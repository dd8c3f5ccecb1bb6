"""`AsyncBase`: everything a user does with a base, written once; `Base` wraps it.

Blocking work runs on a worker thread, so that an event loop stays free.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from evidentia.base import administration, visible_content
from evidentia.base.answers import EvidenceResponse
from evidentia.base.base_ingest import embed_into, ingest_into, ingest_options
from evidentia.base.maintenance import check_up
from evidentia.contracts import evidence as messages
from evidentia.contracts.access import AccessRule, Principal, local_owner, normalised
from evidentia.contracts.documents import DEFAULT_SOURCE, AccessChange, ChangeSet, CommitSummary, StoredChunk, VersionDiff, VersionSummary
from evidentia.contracts.errors import InvalidFieldError, NotAllowedError
from evidentia.contracts.evidence import EvidenceRequest, FinalResponse, StreamEvent
from evidentia.contracts.ids import ChunkId, DocumentId, ReceiptId, Sha256, SourceId
from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, SignedHead, SigningKey, VerifyReport
from evidentia.contracts.tables import OpenTable, TableAnswer, TableCard, TableId
from evidentia.engine.request_checks import request_from
from evidentia.provenance import verification
from evidentia.wiring import embedded
from evidentia.wiring.settings_file import has_base, is_address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping

    from evidentia.contracts.backups import BackupProgress, BackupReport
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.contracts.ports import Governor
    from evidentia.contracts.receipts import ReplayReport, WhyReport
    from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport, IngestProgress, IngestReport
    from evidentia.contracts.retrieval import SourceTrial, WarmReport
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.sources import FreshnessReport, Note, SourceDescriptor, SourceStatus
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.contracts.vectors import EmbedProgress, EmbedReport
    from evidentia.foundation.loop_thread import LoopThread
    from evidentia.wiring.components import BaseComponents


async def aconnect(path: str | Path, *, init: bool = False, principal: Principal | None = None, token: str | None = None) -> AsyncBase:
    """Open the base in a directory, or the one that is served at an address such as `https://host:8321`.

    In a directory, `init=True` makes it when it is missing, and it acts as its owner unless `principal` says otherwise.
    At an address, `token` says who asks; the default is the environment variable `EVIDENTIA_TOKEN`.
    """
    if is_address(path):
        from evidentia.base.remote_base import aconnect_remote

        return await aconnect_remote(str(path), init=init, principal=principal, token=token)
    return await asyncio.to_thread(open_directory, path, init=init, principal=principal, token=token)


def open_directory(path: str | Path, *, init: bool, principal: Principal | None, token: str | None) -> AsyncBase:
    """Open the base in a directory, on the thread that asks."""
    if token is not None:
        raise InvalidFieldError("token", "a base in a directory takes none; it acts as its owner, or as `principal`")
    if init and not has_base(Path(path)):
        embedded.create(Path(path))
    return AsyncBase(embedded.open_base(Path(path)), principal=normalised(principal or local_owner()))


class AsyncBase:
    """A base in use. Any number may read; one at a time may write. Close it, or use it as a context manager."""

    def __init__(self, parts: BaseComponents, *, principal: Principal) -> None:
        self._parts = parts
        self._principal = principal
        self._is_closing = threading.Event()

    @property
    def path(self) -> Path:
        """Return the directory of the base."""
        return self._parts.directory

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self._parts.settings

    async def ingest(
        self,
        paths: Iterable[str | Path],
        *,
        source: str = DEFAULT_SOURCE,
        authority: str = "curated",
        classification: str = "internal",
        tenant: str = "default",
        acl: Iterable[str] = (),
        tags: Iterable[str] = (),
        prune: bool = False,
        embed: bool = True,
        on_progress: Callable[[IngestProgress], None] | None = None,
        on_embedding: Callable[[EmbedProgress], None] | None = None,
    ) -> IngestReport:
        """Take in files, directories and JSONL corpora; what is unchanged is skipped, what cannot be read is reported.

        Everything can be found by its words as soon as it is in. Then, unless `embed` is false, every chunk that lacks a vector
        gets one, as `embed` does; the versions in the report are those after that.
        Both callbacks are called from a worker thread, and with a commit whenever a batch has become durable.
        """
        self._require_owner("ingest")
        options = ingest_options(
            source=source, authority=authority, classification=classification, tenant=tenant, acl=acl, tags=tags, prune=prune
        )
        given = [Path(path) for path in paths]
        with self._stoppable() as is_stopped:
            return await asyncio.to_thread(
                ingest_into,
                self._parts,
                given,
                options,
                is_embedding=embed,
                on_progress=on_progress,
                on_embedding=on_embedding,
                is_stopped=is_stopped,
            )

    async def embed(self, *, on_progress: Callable[[EmbedProgress], None] | None = None) -> EmbedReport:
        """Give every chunk that lacks one its vector; it goes on where an earlier call was interrupted.

        Searching goes on meanwhile. Closing the base, or cancelling the call, ends it with what is encoded by then.
        `on_progress` is called from a worker thread, and with a commit whenever a batch has become durable.
        """
        self._require_owner("embed")
        with self._stoppable() as is_stopped:
            return await asyncio.to_thread(embed_into, self._parts, on_progress=on_progress, is_stopped=is_stopped)

    async def remove(self, document_ids: Iterable[str]) -> CommitSummary:
        """Remove documents; their old versions stay readable until `gc`."""
        self._require_owner("remove documents")
        changes = ChangeSet(removals=tuple(DocumentId(each) for each in document_ids))
        return await asyncio.to_thread(_commit, self._parts, changes)

    async def set_access(self, document_ids: Iterable[str], access: AccessRule) -> CommitSummary:
        """Give documents another access rule, as a new version."""
        self._require_owner("change access")
        changes = ChangeSet(access_changes=tuple(AccessChange(document_id=DocumentId(each), access=access) for each in document_ids))
        return await asyncio.to_thread(_commit, self._parts, changes)

    async def head(self) -> CommitSummary:
        """Return the newest version."""
        return await asyncio.to_thread(visible_content.head, self._parts, self._principal)

    async def versions(self, *, limit: int = 20) -> list[VersionSummary]:
        """Return the newest versions with what each holds, newest first; those that `gc` removed are named without it."""
        return await asyncio.to_thread(visible_content.versions, self._parts, self._principal, limit=limit)

    async def diff(self, older: int | str, newer: int | str, *, limit: int = 1_000) -> VersionDiff:
        """Return what differs between two versions, each by its number, by a hash such as its `corpus_version`, or by its beginning.

        At most `limit` documents of each kind are listed; the totals count all of them.
        """
        return await asyncio.to_thread(visible_content.diff, self._parts, self._principal, older, newer, limit=limit)

    async def documents(self, *, after: str = "", limit: int | None = None) -> list[tuple[DocumentId, AccessRule, int]]:
        """Return every live document with its access rule and its number of chunks, ordered by id.

        With a `limit`, only so many; the page after them begins `after` the last id of this one.
        """
        return await asyncio.to_thread(visible_content.documents, self._parts, self._principal, after=after, limit=limit)

    async def chunks(self, document_id: str) -> list[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        return await asyncio.to_thread(visible_content.chunks, self._parts, DocumentId(document_id), self._principal)

    async def tables(self) -> list[TableCard]:
        """Return the tables of every live document, ordered by document; no cell is read for it."""
        return await asyncio.to_thread(visible_content.tables, self._parts, self._principal)

    async def open_table(self, table_id: str) -> OpenTable:
        """Return a table of a live document with its cells."""
        return await asyncio.to_thread(visible_content.open_table, self._parts, self._principal, TableId(table_id))

    async def ask_tables(self, question: str, *, limit: int = 200) -> TableAnswer:
        """Answer a question from spreadsheets: rows with the rows of the sheets they came from, or why there are none.

        Rules that link words to columns and cells plan a statement, and decline what they cannot read; nothing is guessed.
        """
        return await asyncio.to_thread(visible_content.ask_tables, self._parts, self._principal, question, limit=limit)

    async def layout(self, document_id: str) -> DocumentLayout | None:
        """Return the pages, images and tables of a live document; None where it has none of them."""
        return await asyncio.to_thread(visible_content.layout, self._parts, self._principal, DocumentId(document_id))

    async def image(self, image_hash: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image, by the hash that a fragment or a layout names."""
        return await asyncio.to_thread(visible_content.image, self._parts, self._principal, Sha256(image_hash))

    async def retrieve(self, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        """Answer a question with ranked, attributed fragments; keywords are the fields of `EvidenceRequest`."""
        response = await self._parts.retrieve(self._request(query, fields), principal=self._principal)
        return EvidenceResponse.of(response)

    def _retrieve_blocking(self, portal: LoopThread, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        request = self._request(query, fields)
        return EvidenceResponse.of(self._parts.retrieve_blocking(request, principal=self._principal, on_loop=portal.run))

    async def retrieve_stream(self, query: str | EvidenceRequest, **fields: object) -> AsyncGenerator[StreamEvent, None]:
        """Yield what happens while a question is answered, and last the answer itself, the same as `retrieve` gives."""
        events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        request = self._request(query, fields)
        answering = asyncio.ensure_future(self._parts.retrieve(request, principal=self._principal, watch=events.put_nowait))
        answering.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield FinalResponse(response=EvidenceResponse.of(answering.result()))
        finally:
            answering.cancel()

    async def add_source(
        self, descriptor: SourceDescriptor | Mapping[str, object], retriever: object | None = None, *, isolate: bool = False
    ) -> SourceDescriptor:
        """Register a source outside the base, which every request may then ask.

        A `retriever` is any object with `retrieve`, sync or async; it is attached in this process only. One that may block what it
        runs on is kept apart with `isolate=True`. Other kinds (`base`, `remote`, `mcp`) need none: their connection says where they are.
        """
        self._require_owner("register sources")
        return await asyncio.to_thread(administration.add_source, self._parts, descriptor, retriever, isolate=isolate)

    async def remove_source(self, source_id: str) -> None:
        """Forget a source outside the base, and what was kept of it."""
        self._require_owner("remove sources")
        await asyncio.to_thread(administration.remove_source, self._parts, source_id)

    async def sources(self) -> list[SourceStatus]:
        """Return every source you may know of, with its health, ordered by id."""
        return await asyncio.to_thread(administration.source_statuses, self._parts, self._principal)

    async def source_freshness(self) -> list[FreshnessReport]:
        """Return how old every source's data is beside what it promises."""
        return await asyncio.to_thread(administration.source_freshness, self._parts, self._principal)

    async def test_source(self, source_id: str, query: str, *, limit: int = 10) -> SourceTrial:
        """Ask one source outside the base by itself; nothing of it is kept or ranked."""
        return await administration.try_source(self._parts, self._principal, source_id, query, limit=limit)

    async def source_changed(self, source_id: str) -> int:
        """Say that a source's data has changed: what was kept of it is forgotten. Return how much that was."""
        self._require_owner("tell of changes")
        return await asyncio.to_thread(self._parts.federation().changed, SourceId(source_id))

    async def remember(
        self,
        text: str,
        *,
        title: str = "",
        agent: str = "",
        session: str = "",
        authority: str = "ephemeral",
        ttl_s: int | None = None,
    ) -> Note:
        """Write a note that later requests of the same principal, agent and session find; without a session, of all of them."""
        return await asyncio.to_thread(
            administration.remember,
            self._parts,
            self._principal,
            text,
            title=title,
            agent=agent,
            session=session,
            authority=authority,
            ttl_s=ttl_s,
        )

    async def notes(self, *, agent: str | None = None, session: str | None = None) -> list[Note]:
        """Return your notes that have not expired, ordered by id."""
        return await asyncio.to_thread(administration.notes, self._parts, self._principal, agent=agent, session=session)

    async def forget(self, note_ids: Iterable[str]) -> int:
        """Forget notes, and return how many there were."""
        return await asyncio.to_thread(administration.forget, self._parts, self._principal, note_ids)

    async def add_policy(self, body: PolicyBody | Mapping[str, object]) -> StoredPolicy:
        """Put a policy in force, or the next version of the one with its name; `PolicyInvalidError` names every field that is wrong."""
        self._require_owner("change policies")
        return await asyncio.to_thread(administration.add_policy, self._parts, self._principal, body)

    async def policies(self) -> list[StoredPolicy]:
        """Return your tenant's policies by priority and name, those that are disabled included."""
        return await asyncio.to_thread(administration.live_policies, self._parts, self._principal)

    async def remove_policy(self, name: str) -> StoredPolicy:
        """Take a policy out of force by its name or id; its versions stay readable."""
        self._require_owner("change policies")
        return await asyncio.to_thread(administration.remove_policy, self._parts, self._principal, name)

    async def warm(self, questions: Iterable[str] = (), **fields: object) -> WarmReport:
        """Ask questions ahead of time, so that what sources say is kept until it changes; those of `cache.warm` where none are given."""
        asked = tuple(questions) or self.settings.cache.warm
        requests = [self._request(question, fields) for question in asked]
        return await administration.warm(self._parts, self._principal, requests)

    async def cache_stats(self) -> CacheStats:
        """Return what is kept of what sources said, and how often it served."""
        return await asyncio.to_thread(self._parts.federation().cache.stats)

    async def flush_cache(self, source: str | None = None) -> int:
        """Forget what was kept, of one source or of all, and return how much that was."""
        self._require_owner("flush the cache")
        return await asyncio.to_thread(self._parts.federation().changed, None if source is None else SourceId(source))

    async def traces(self, *, limit: int = 20) -> list[RequestTrace]:
        """Return the newest requests with what took how long, newest first."""
        self._require_owner("see traces")
        return await asyncio.to_thread(self._parts.recent_traces, limit)

    async def trace(self, request_id: str) -> RequestTrace:
        """Return one request by its id, the beginning of it, or its receipt."""
        self._require_owner("see traces")
        return await asyncio.to_thread(self._parts.find_trace, request_id)

    async def replay(self, receipt_id: str) -> ReplayReport:
        """Answer a receipt's request again on its own version and say whether the result is the same."""
        return await asyncio.to_thread(_replay, self._parts, ReceiptId(receipt_id), self._principal)

    async def why(self, receipt_id: str, chunk_id: str) -> WhyReport:
        """Say why a chunk is, or is not, in the answer of a receipt, and the smallest change that would have let it in."""
        return await asyncio.to_thread(_why, self._parts, ReceiptId(receipt_id), ChunkId(chunk_id), self._principal)

    async def verify(self, target: str | FragmentExport | messages.EvidenceResponse | None = None) -> VerifyReport:
        """Recompute custody of the whole base, of a document or chunk by its id, of an exported fragment, or of an answer.

        An answer of this base is compared with its receipt, too.
        """
        if isinstance(target, FragmentExport):
            return await asyncio.to_thread(verification.verify_export, target)
        if isinstance(target, messages.EvidenceResponse):
            return await asyncio.to_thread(visible_content.verify_answer, self._parts, target)
        if target is None:
            self._require_owner("verify the whole base")
        return await asyncio.to_thread(visible_content.verify, self._parts, target, self._principal)

    async def export(self, chunk_id: str) -> FragmentExport:
        """Return a fragment with everything a stranger needs to check it offline."""
        return await asyncio.to_thread(visible_content.export, self._parts, ChunkId(chunk_id), self._principal)

    async def signed_head(self, sequence: int | None = None) -> SignedHead:
        """Return the head of the log at a version, the newest by default, with the signature of the base and its public keys."""
        return await asyncio.to_thread(visible_content.signed_head, self._parts, sequence)

    async def rotate_key(self) -> SigningKey:
        """Sign with a new key from now on, for which the present one vouches; the private part of that is destroyed."""
        self._require_owner("rotate the signing key")
        return await asyncio.to_thread(self._parts.rotate_key)

    async def consistency(self, first_size: int) -> ConsistencyProof:
        """Return the proof that the event log of `first_size` entries is a prefix of the present one."""
        return await asyncio.to_thread(visible_content.consistency, self._parts, first_size)

    async def gc(self, *, keep_versions: int | None = None) -> GcReport:
        """Remove all but the newest versions; the default is the setting `storage.keep_versions`."""
        self._require_owner("collect versions")
        keep = self.settings.storage.keep_versions if keep_versions is None else keep_versions
        return await asyncio.to_thread(_collect, self._parts, keep)

    async def backup(self, destination: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> BackupReport:
        """Copy the base, as it stands at one moment, into a new directory, or into one new file whose name ends in `.tar`.

        Others may write meanwhile. What exists is never overwritten; `evidentia restore` makes a base of the copy.
        `on_progress` is called from a worker thread.
        """
        self._require_owner("take a backup")
        with self._stoppable() as is_stopped:
            return await asyncio.to_thread(self._parts.back_up, Path(destination), watch=on_progress, is_stopped=is_stopped)

    async def doctor(self) -> DoctorReport:
        """Check the installation and the base, quickly; `verify` is the thorough check."""
        return await asyncio.to_thread(check_up, self.path)

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs agents' runs by this base's policies; `durable` has every decision on disk before the call goes on."""
        return self._parts.governor(self._principal, is_durable=durable)

    async def close(self) -> None:
        """Give back what the base holds."""
        self._is_closing.set()
        await self._parts.close_sources()
        await asyncio.to_thread(self._parts.close)

    @contextmanager
    def _stoppable(self) -> Iterator[Callable[[], bool]]:
        """Give a long step what it asks whether anybody still waits for it: a thread does not notice that its caller left."""
        is_over = threading.Event()
        try:
            yield lambda: is_over.is_set() or self._is_closing.is_set()
        finally:
            is_over.set()

    def _request(self, query: str | EvidenceRequest, fields: Mapping[str, object]) -> EvidenceRequest:
        request = request_from(query, fields)
        if request.principal is not None:
            self._require_owner("ask as somebody else")
        return request

    def _require_owner(self, act: str) -> None:
        if not self._principal.is_owner:
            raise NotAllowedError(act)

    async def __aenter__(self) -> Self:
        """Return the base itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the base."""
        await self.close()


def _replay(parts: BaseComponents, receipt_id: ReceiptId, asker: Principal) -> ReplayReport:
    return parts.replayer().replay(receipt_id, asker=asker)


def _why(parts: BaseComponents, receipt_id: ReceiptId, chunk_id: ChunkId, asker: Principal) -> WhyReport:
    return parts.replayer().why(receipt_id, chunk_id, asker=asker)


def _commit(parts: BaseComponents, changes: ChangeSet) -> CommitSummary:
    writer = parts.writer()
    try:
        return writer.commit(changes)
    finally:
        writer.close()


def _collect(parts: BaseComponents, keep_versions: int) -> GcReport:
    if keep_versions < 1:
        raise InvalidFieldError("keep_versions", f"{keep_versions} is less than 1")
    parts.notes().clean()
    return parts.collector().collect(keep_versions=keep_versions)
