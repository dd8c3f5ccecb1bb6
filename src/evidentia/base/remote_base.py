"""A base that is served somewhere else, as the same object that a local base is: every method asks the operation of its kind there.

Who asks is what the token says, so nothing here checks for an owner; the server does. What only makes sense beside the base itself
(its directory, its settings, a backup, a retriever in this process) is refused with what to do instead.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import msgspec

from evidentia.base.answers import EvidenceResponse
from evidentia.base.async_base import AsyncBase
from evidentia.base.base_ingest import ingest_options
from evidentia.base.remote_ingest import prepare_sending, send
from evidentia.contracts import doors
from evidentia.contracts import evidence as messages
from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import PolicyPage
from evidentia.contracts.documents import DEFAULT_SOURCE, CommitSummary, VersionDiff, VersionSummary
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import FinalResponse
from evidentia.contracts.policies import StoredPolicy
from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, VerifyReport
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport, IngestReport
from evidentia.contracts.retrieval import SourceTrial, WarmReport
from evidentia.contracts.sources import Note, SourceDescriptor
from evidentia.contracts.tables import OpenTable, TableAnswer
from evidentia.contracts.telemetry import RequestTrace
from evidentia.contracts.vectors import EmbedProgress, EmbedReport
from evidentia.engine.request_checks import request_from
from evidentia.wiring.remote_calls import open_calls

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from evidentia.base.remote_ingest import Parcel
    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.backups import BackupProgress, BackupReport
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.evidence import EvidenceRequest, StreamEvent
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import Governor, OperationCalls
    from evidentia.contracts.reports import IngestProgress
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.sources import FreshnessReport, SourceStatus
    from evidentia.contracts.tables import TableCard

Answer = TypeVar("Answer")

CALL_MS: Final = 60_000
LONG_MS: Final = 6 * 3_600_000
"""For what takes as long as a base is large: taking material in, embedding, verifying, collecting."""
MARGIN_MS: Final = 10_000
"""How much longer than its deadline a request may take: for the way, and for a server that has just been started."""
_PAGE: Final = 500


async def aconnect_remote(address: str, *, init: bool, principal: Principal | None, token: str | None) -> RemoteBase:
    """Open the base that is served at an address, and ask it once, so that a wrong address or token shows here."""
    if init:
        raise InvalidFieldError("init", "a base is made where it is served; run `evidentia init` there")
    if principal is not None:
        raise InvalidFieldError("principal", "who asks is what the token says; a token made with --delegate names others in each request")
    base = RemoteBase(open_calls(address, token=token))
    try:
        await base.head()
    except BaseException:
        await base.close()
        raise
    return base


class RemoteBase(AsyncBase):
    """A served base in use. Any number may ask at once. Close it, or use it as a context manager."""

    def __init__(self, calls: OperationCalls, *, margin_ms: int = MARGIN_MS) -> None:
        self._calls = calls
        self._margin_ms = margin_ms

    @property
    def path(self) -> Path:
        """Refuse: the directory is the server's affair."""
        self._refuse("path", "has no directory here; everything it holds is asked for by its methods")

    @property
    def settings(self) -> Settings:
        """Refuse: the settings are the server's affair."""
        self._refuse("settings", "keeps its settings to itself; they are in evidentia.toml where it is served")

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
        """Send files, directories and JSONL corpora of this machine, some megabytes at a time.

        They belong to the tenant of the token. Vectors are made with the last of them, and `on_embedding` is not called.
        """
        del on_embedding
        if prune:
            self._refuse("prune", "is not pruned from afar; remove documents by their ids with `remove`")
        if tenant != DEFAULT_TENANT:
            self._refuse("tenant", "takes documents in for the tenant of the token; leave it out")
        options = ingest_options(
            source=source, authority=authority, classification=classification, tenant=tenant, acl=acl, tags=tags, prune=False
        )
        request = doors.IngestRequest(
            source=options.source,
            authority=options.authority,
            classification=options.access.classification,
            acl=options.access.acl,
            tags=options.tags,
        )

        async def take_in(parcel: Parcel, is_last: bool) -> IngestReport:  # noqa: FBT001 - as `send` calls it
            sent = msgspec.structs.replace(request, files=parcel.files, embed=embed and is_last)
            return await self._do("ingest", IngestReport, _members(sent))

        sending = await asyncio.to_thread(prepare_sending, [Path(path) for path in paths])
        return await send(sending, take_in, head=self.head, on_progress=on_progress)

    async def embed(self, *, on_progress: Callable[[EmbedProgress], None] | None = None) -> EmbedReport:
        """Have every chunk that lacks one given its vector; `on_progress` is called once, when it is done."""
        report = await self._do("embed", EmbedReport)
        if on_progress is not None:
            progress = EmbedProgress(embedded=report.embedded, chunks=report.embedded + report.remaining)
            await asyncio.to_thread(on_progress, progress)
        return report

    async def remove(self, document_ids: Iterable[str]) -> CommitSummary:
        """Remove documents of the token's tenant; their old versions stay readable until `gc`."""
        return await self._do("remove_documents", CommitSummary, {"document_ids": tuple(document_ids)})

    async def set_access(self, document_ids: Iterable[str], access: AccessRule) -> CommitSummary:
        """Give documents of the token's tenant another access rule, as a new version."""
        if access.tenant != DEFAULT_TENANT:
            self._refuse("access.tenant", "keeps documents in the tenant of the token; leave it out")
        params = {"document_ids": tuple(document_ids), "classification": access.classification, "acl": access.acl}
        return await self._do("set_access", CommitSummary, params)

    async def head(self) -> CommitSummary:
        """Return the newest version."""
        return await self._ask("show_head", CommitSummary)

    async def versions(self, *, limit: int = 20) -> list[VersionSummary]:
        """Return the newest versions with what each holds, newest first, at most 500; those that `gc` removed are named without it."""
        return list((await self._ask("list_versions", doors.VersionList, {"limit": min(limit, _PAGE)})).versions)

    async def diff(self, older: int | str, newer: int | str, *, limit: int = 1_000) -> VersionDiff:
        """Return what differs between two versions, each by its number, by a hash such as its `corpus_version`, or by its beginning.

        At most 500 documents of each kind are listed; the totals count all of them.
        """
        return await self._ask("show_diff", VersionDiff, {"older": str(older), "newer": str(newer), "limit": min(limit, _PAGE)})

    async def documents(self) -> list[tuple[DocumentId, AccessRule, int]]:
        """Return every live document that the token shows, with its access rule and its number of chunks, ordered by id."""
        found: list[tuple[DocumentId, AccessRule, int]] = []
        cursor: str | None = None
        while True:
            page = await self._ask("list_documents", doors.DocumentPage, {"limit": _PAGE, "cursor": cursor})
            found += [(each.document_id, each.access, each.chunks) for each in page.documents]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def chunks(self, document_id: str) -> list[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        return list((await self._ask("list_chunks", doors.ChunkList, {"document": document_id})).chunks)

    async def tables(self) -> list[TableCard]:
        """Return the tables of every live document, ordered by document; no cell is read for it."""
        return list((await self._ask("list_tables", doors.TableList)).tables)

    async def open_table(self, table_id: str) -> OpenTable:
        """Return a table of a live document with its cells."""
        return await self._ask("open_table", OpenTable, {"table": table_id})

    async def ask_tables(self, question: str, *, limit: int = 200) -> TableAnswer:
        """Answer a question from spreadsheets: rows with the rows of the sheets they came from, or why there are none."""
        return await self._ask("ask_tables", TableAnswer, {"question": question, "limit": limit})

    async def layout(self, document_id: str) -> DocumentLayout | None:
        """Return the pages, images and tables of a live document; None where it has none of them."""
        return (await self._ask("show_layout", doors.LayoutView, {"document": document_id})).layout

    async def image(self, image_hash: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image, by the hash that a fragment or a layout names."""
        view = await self._ask("show_image", doors.ImageView, {"hash": image_hash})
        return view.media_type, view.content

    async def retrieve(self, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        """Answer a question with ranked, attributed fragments; keywords are the fields of `EvidenceRequest`."""
        request = request_from(query, fields)
        timeout_ms = request.latency_deadline_ms + self._margin_ms
        return EvidenceResponse.of(await self._ask("retrieve", messages.EvidenceResponse, _members(request), timeout_ms=timeout_ms))

    async def retrieve_stream(self, query: str | EvidenceRequest, **fields: object) -> AsyncGenerator[StreamEvent, None]:
        """Yield what happens while a question is answered, and last the answer itself, the same as `retrieve` gives."""
        request = request_from(query, fields)
        timeout_ms = request.latency_deadline_ms + self._margin_ms
        async for event in self._calls.stream("retrieve_stream", _members(request), timeout_ms=timeout_ms):
            yield FinalResponse(response=EvidenceResponse.of(event.response)) if isinstance(event, FinalResponse) else event

    async def add_source(
        self, descriptor: SourceDescriptor | Mapping[str, object], retriever: object | None = None, *, isolate: bool = False
    ) -> SourceDescriptor:
        """Register a source outside the base, which every request may then ask; the server has to reach it."""
        if retriever is not None or isolate:
            self._refuse("retriever", "cannot ask an object of this process; register a source of kind remote, mcp or base")
        given = _members(descriptor) if isinstance(descriptor, SourceDescriptor) else dict(descriptor)
        return await self._do("add_source", SourceDescriptor, given)

    async def remove_source(self, source_id: str) -> None:
        """Forget a source outside the base, and what was kept of it."""
        await self._do("remove_source", doors.Done, {"id": source_id})

    async def sources(self) -> list[SourceStatus]:
        """Return every source the token's holder may know of, with its health, ordered by id."""
        return list((await self._ask("list_sources", doors.SourceList)).sources)

    async def source_freshness(self) -> list[FreshnessReport]:
        """Return how old every source's data is beside what it promises."""
        return list((await self._ask("list_freshness", doors.FreshnessList)).sources)

    async def test_source(self, source_id: str, query: str, *, limit: int = 10) -> SourceTrial:
        """Ask one source outside the base by itself; nothing of it is kept or ranked."""
        return await self._ask("test_source", SourceTrial, {"id": source_id, "query": query, "limit": limit})

    async def source_changed(self, source_id: str) -> int:
        """Say that a source's data has changed: what was kept of it is forgotten. Return how much that was."""
        return (await self._do("source_changed", doors.Count, {"id": source_id})).count

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
        params = {"text": text, "title": title, "agent": agent, "session": session, "authority": authority, "ttl_s": ttl_s}
        return await self._do("remember", Note, params)

    async def notes(self, *, agent: str | None = None, session: str | None = None) -> list[Note]:
        """Return your notes that have not expired, ordered by id."""
        return list((await self._ask("list_notes", doors.NoteList, {"agent": agent, "session": session})).notes)

    async def forget(self, note_ids: Iterable[str]) -> int:
        """Forget notes, and return how many there were."""
        named = tuple(note_ids)
        return (await self._do("forget", doors.Count, {"note_ids": named})).count if named else 0

    async def add_policy(self, body: PolicyBody | Mapping[str, object]) -> StoredPolicy:
        """Put a policy in force, or the next version of the one with its name; `PolicyInvalidError` names every field that is wrong."""
        given = _members(body) if isinstance(body, msgspec.Struct) else dict(body)
        known = await self._ask("list_policies", PolicyPage, {"name": given["name"]}) if given.get("name") else None
        if known is None or not known.policies:
            return await self._do("create_policy", StoredPolicy, given)
        current = known.policies[0].policy
        return await self._do("replace_policy", StoredPolicy, {**given, "id": current.policy_id, "if_match": f'"{current.version}"'})

    async def policies(self) -> list[StoredPolicy]:
        """Return the policies of the token's tenant by priority and name, those that are disabled included."""
        found: list[StoredPolicy] = []
        cursor: str | None = None
        while True:
            page = await self._ask("list_policies", PolicyPage, {"limit": _PAGE, "cursor": cursor})
            found += page.policies
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def remove_policy(self, name: str) -> StoredPolicy:
        """Take a policy out of force by its name or id; its versions stay readable."""
        return await self._do("remove_policy", StoredPolicy, {"id": name})

    async def warm(self, questions: Iterable[str] = (), **fields: object) -> WarmReport:
        """Have questions asked ahead of time; those of the server's `cache.warm` where none are given."""
        if fields:
            self._refuse(min(fields), "is warmed with questions alone")
        return await self._do("warm_cache", WarmReport, {"questions": tuple(questions)})

    async def cache_stats(self) -> CacheStats:
        """Return what is kept of what sources said, and how often it served."""
        return await self._ask("show_cache", CacheStats)

    async def flush_cache(self, source: str | None = None) -> int:
        """Forget what was kept, of one source or of all, and return how much that was."""
        return (await self._do("flush_cache", doors.Count, {"source_id": source})).count

    async def traces(self, *, limit: int = 20) -> list[RequestTrace]:
        """Return the newest requests with what took how long, newest first; at most 500."""
        return list((await self._ask("list_traces", doors.TraceList, {"limit": min(limit, _PAGE)})).traces)

    async def trace(self, request_id: str) -> RequestTrace:
        """Return one request by its id, the beginning of it, or its receipt."""
        return await self._ask("show_request", RequestTrace, {"id": request_id})

    async def replay(self, receipt_id: str) -> ReplayReport:
        """Answer a receipt's request again on its own version and say whether the result is the same."""
        return await self._ask("replay", ReplayReport, {"id": receipt_id})

    async def why(self, receipt_id: str, chunk_id: str) -> WhyReport:
        """Say why a chunk is, or is not, in the answer of a receipt, and the smallest change that would have let it in."""
        return await self._ask("why", WhyReport, {"id": receipt_id, "chunk": chunk_id})

    async def verify(self, target: str | FragmentExport | messages.EvidenceResponse | None = None) -> VerifyReport:
        """Recompute custody: of an answer or an exported fragment here, without trusting the server; of anything else there."""
        if isinstance(target, FragmentExport | messages.EvidenceResponse):
            return await super().verify(target)
        if target is None:
            return await self._ask("verify_base", VerifyReport, timeout_ms=LONG_MS)
        return await self._ask("verify", VerifyReport, {"target": target}, timeout_ms=LONG_MS)

    async def export(self, chunk_id: str) -> FragmentExport:
        """Return a fragment with everything a stranger needs to check it offline."""
        return await self._ask("export", FragmentExport, {"chunk": chunk_id})

    async def consistency(self, first_size: int) -> ConsistencyProof:
        """Return the proof that the event log of `first_size` entries is a prefix of the present one."""
        return await self._ask("show_consistency", ConsistencyProof, {"first_size": first_size})

    async def gc(self, *, keep_versions: int | None = None) -> GcReport:
        """Remove all but the newest versions; the default is the server's setting `storage.keep_versions`."""
        return await self._do("collect", GcReport, {"keep_versions": keep_versions})

    async def backup(self, destination: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> BackupReport:
        """Refuse: a copy is taken beside the base."""
        del destination, on_progress
        self._refuse("destination", "is copied where it is served; run `evidentia backup` there")

    async def doctor(self) -> DoctorReport:
        """Check the installation and the base over there, quickly; `verify` is the thorough check."""
        return await self._ask("doctor", DoctorReport)

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs agents' runs by this base's policies: the plane itself."""
        if durable:
            self._refuse("durable", "says where it is served whether decisions are on disk first; run `evidentia serve --durable` there")
        return self._calls.governor()

    async def close(self) -> None:
        """Give back the connections."""
        await self._calls.close()

    async def _ask(
        self, operation: str, kind: type[Answer], params: Mapping[str, object] | None = None, *, timeout_ms: int = CALL_MS
    ) -> Answer:
        """Return the answer to a question, which may be asked once more when the way was broken."""
        return await self._calls.call(operation, _given(params), kind, timeout_ms=timeout_ms, is_repeatable=True)

    async def _do(self, operation: str, kind: type[Answer], params: Mapping[str, object] | None = None) -> Answer:
        """Have something changed, and return what became of it."""
        return await self._calls.call(operation, _given(params), kind, timeout_ms=LONG_MS)

    def _refuse(self, field: str, problem: str) -> NoReturn:
        raise InvalidFieldError(field, f"the base at '{self._calls.host}' {problem}")


def _given(params: Mapping[str, object] | None) -> dict[str, object]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _members(message: msgspec.Struct) -> dict[str, object]:
    """Return what a message says beyond its defaults, by the names that travel."""
    fields = msgspec.structs.fields(message)
    given = {field.encode_name: (getattr(message, field.name), field.default) for field in fields}
    return {name: value for name, (value, default) in given.items() if value is not default}
