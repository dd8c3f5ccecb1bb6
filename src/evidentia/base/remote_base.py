"""A base that is served somewhere else, as the same object that a local base is: every method asks the operation of its kind there.

Most methods are made from the declared operations; those that do more than ask stand here.

Who asks is what the token says, so nothing here checks for an owner; the server does. What only makes sense beside the base itself
(its directory, its settings, a backup, a retriever in this process) is refused with what to do instead.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from evidentia.base.answers import EvidenceResponse
from evidentia.base.async_base import AsyncBase
from evidentia.base.base_ingest import given_paths, ingest_options
from evidentia.base.remote_ingest import Parcel, prepare_sending, send
from evidentia.contracts import doors
from evidentia.contracts import evidence as messages
from evidentia.contracts.access import DEFAULT_TENANT, AccessRule, Principal
from evidentia.contracts.control import PolicyPage
from evidentia.contracts.documents import DEFAULT_SOURCE, CommitSummary
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import EvidenceRequest, FinalResponse, StreamEvent
from evidentia.contracts.operations import LIMIT, MAX_LIMIT, OPERATION_BY_NAME, OPERATIONS, Operation
from evidentia.contracts.policies import PolicyBody, StoredPolicy
from evidentia.contracts.provenance import FragmentExport, SigningKey, VerifyReport
from evidentia.contracts.reports import IngestProgress, IngestReport
from evidentia.contracts.retrieval import WarmReport
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vectors import EmbedProgress, EmbedReport
from evidentia.engine.answer_verification import verify_response
from evidentia.engine.request_checks import request_from
from evidentia.provenance.verification import verify_export
from evidentia.wiring.remote_calls import open_calls

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.backups import BackupProgress, BackupReport
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.ports import Governor, OperationCalls
    from evidentia.contracts.settings import OutboundSettings, Settings
    from evidentia.foundation.loop_thread import LoopThread

Answer = TypeVar("Answer")
Remote = TypeVar("Remote", bound="RemoteBase")

CALL_MS: Final = 60_000
LONG_MS: Final = 6 * 3_600_000
"""For what takes as long as a base is large: taking material in, embedding, verifying, collecting."""
MARGIN_MS: Final = 10_000
"""How much longer than its deadline a request may take: for the way, and for a server that has just been started."""


async def aconnect_remote(
    address: str, *, init: bool, principal: Principal | None, token: str | None, outbound: OutboundSettings | None = None
) -> RemoteBase:
    """Open the base that is served at an address, and ask it once, so that a wrong address or token shows here."""
    if init:
        raise InvalidFieldError("init", "a base is made where it is served; run `evidentia init` there")
    if principal is not None:
        raise InvalidFieldError("principal", "who asks is what the token says; a token made with --delegate names others in each request")
    base = RemoteBase(open_calls(address, token=token, outbound=outbound))
    try:
        await base.head()
    except BaseException:
        await base.close()
        raise
    return base


def _remote_method(operation: Operation) -> Callable[..., Awaitable[object]]:
    """Return the method of a base that asks a declared operation over there, with the signature of the local one."""
    local = getattr(AsyncBase, operation.base_method)
    signature = inspect.signature(local)
    kind: Any = operation.reply  # Any: the class of a message

    @wraps(local)
    async def ask(self: RemoteBase, *args: object, **keywords: object) -> object:
        bound = signature.bind(self, *args, **keywords)
        bound.apply_defaults()
        given = {operation.parameters.get(name, name): value for name, value in bound.arguments.items() if name != "self"}
        reply = await self._call(operation.name, kind, {name: _sendable(operation, name, value) for name, value in given.items()})
        return _content(reply, signature.return_annotation)

    return ask


def _sendable(operation: Operation, name: str, value: object) -> object:
    """Return an argument as it travels: a limit is held to what one reply may list, a word in the query is a text."""
    field = next((each for each in operation.query if each.name == name), None)
    if field is LIMIT and isinstance(value, int):
        return min(value, MAX_LIMIT)
    if field is not None and field.kind is str and value is not None:
        return str(value)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _content(reply: msgspec.Struct, annotation: str) -> object:
    """Return what a local method returns by its annotation: the message itself, its fields, or what its one field holds."""
    if annotation in {type(reply).__name__, "None"}:
        return None if annotation == "None" else reply
    values = msgspec.structs.astuple(reply)
    if annotation.startswith("tuple["):
        return values
    return list(values[0]) if annotation.startswith("list[") else values[0]


def _with_remote_methods(cls: type[Remote]) -> type[Remote]:
    """Give a class the methods of every declared operation that it does not define itself."""
    for each in OPERATIONS:
        if each.base_method and each.base_method not in vars(cls):
            setattr(cls, each.base_method, _remote_method(each))
    return cls


@_with_remote_methods
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
        paths: str | Path | Iterable[str | Path],
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
            return await self._call("ingest", IngestReport, _members(sent))

        sending = await asyncio.to_thread(prepare_sending, given_paths(paths))
        return await send(sending, take_in, head=self.head, on_progress=on_progress)

    async def embed(self, *, on_progress: Callable[[EmbedProgress], None] | None = None) -> EmbedReport:
        """Have every chunk that lacks one given its vector; `on_progress` is called once, when it is done."""
        report = await self._call("embed", EmbedReport)
        if on_progress is not None:
            progress = EmbedProgress(embedded=report.embedded, chunks=report.embedded + report.remaining)
            await asyncio.to_thread(on_progress, progress)
        return report

    async def set_access(self, document_ids: Iterable[str], access: AccessRule) -> CommitSummary:
        """Give documents of the token's tenant another access rule, as a new version."""
        if access.tenant != DEFAULT_TENANT:
            self._refuse("access.tenant", "keeps documents in the tenant of the token; leave it out")
        params = {"document_ids": tuple(document_ids), "classification": access.classification, "acl": access.acl}
        return await self._call("set_access", CommitSummary, params)

    async def documents(self, *, after: str = "", limit: int | None = None) -> list[tuple[DocumentId, AccessRule, int]]:
        """Return every live document that the token shows, with its access rule and its number of chunks, ordered by id.

        With a `limit`, only so many; the page after them begins `after` the last id of this one.
        """
        found: list[tuple[DocumentId, AccessRule, int]] = []
        cursor = doors.encode_cursor((after,)) if after else None
        while limit is None or len(found) < limit:
            count = MAX_LIMIT if limit is None else min(limit - len(found), MAX_LIMIT)
            page = await self._call("list_documents", doors.DocumentPage, {"limit": count, "cursor": cursor})
            found += [(each.document_id, each.access, each.chunks) for each in page.documents]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def retrieve(self, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        """Answer a question with ranked, attributed fragments; keywords are the fields of `EvidenceRequest`."""
        request = request_from(query, fields)
        timeout_ms = request.latency_deadline_ms + self._margin_ms
        return EvidenceResponse.of(await self._call("retrieve", messages.EvidenceResponse, _members(request), timeout_ms=timeout_ms))

    def _retrieve_blocking(self, portal: LoopThread, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        return portal.run(self.retrieve(query, **fields))

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
        return await self._call("add_source", SourceDescriptor, given)

    async def forget(self, note_ids: Iterable[str]) -> int:
        """Forget notes, and return how many there were."""
        named = tuple(note_ids)
        return (await self._call("forget", doors.Count, {"note_ids": named})).count if named else 0

    async def add_policy(self, body: PolicyBody | Mapping[str, object]) -> StoredPolicy:
        """Put a policy in force, or the next version of the one with its name; `PolicyInvalidError` names every field that is wrong."""
        given = _members(body) if isinstance(body, msgspec.Struct) else dict(body)
        known = await self._call("list_policies", PolicyPage, {"name": given["name"]}) if given.get("name") else None
        if known is None or not known.policies:
            return await self._call("create_policy", StoredPolicy, given)
        current = known.policies[0].policy
        return await self._call("replace_policy", StoredPolicy, {**given, "id": current.policy_id, "if_match": f'"{current.version}"'})

    async def policies(self) -> list[StoredPolicy]:
        """Return the policies of the token's tenant by priority and name, those that are disabled included."""
        found: list[StoredPolicy] = []
        cursor: str | None = None
        while True:
            page = await self._call("list_policies", PolicyPage, {"limit": MAX_LIMIT, "cursor": cursor})
            found += page.policies
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def warm(self, questions: Iterable[str] = (), **fields: object) -> WarmReport:
        """Have questions asked ahead of time; those of the server's `cache.warm` where none are given."""
        if fields:
            self._refuse(min(fields), "is warmed with questions alone")
        return await self._call("warm_cache", WarmReport, {"questions": tuple(questions)})

    async def verify(self, target: str | FragmentExport | messages.EvidenceResponse | None = None) -> VerifyReport:
        """Recompute custody: of an answer or an exported fragment here, without trusting the server; of anything else there."""
        if isinstance(target, messages.EvidenceResponse):
            return verify_response(target)
        if isinstance(target, FragmentExport):
            return verify_export(target)
        if target is None:
            return await self._call("verify_base", VerifyReport, timeout_ms=LONG_MS)
        return await self._call("verify", VerifyReport, {"target": target}, timeout_ms=LONG_MS)

    async def rotate_key(self) -> SigningKey:
        """Refuse: a key is made beside the base."""
        self._refuse("key", "is rotated where it is served; run `evidentia key --rotate` there")

    async def backup(self, destination: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> BackupReport:
        """Refuse: a copy is taken beside the base."""
        del destination, on_progress
        self._refuse("destination", "is copied where it is served; run `evidentia backup` there")

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs agents' runs by this base's policies: the plane itself."""
        if durable:
            self._refuse("durable", "says where it is served whether decisions are on disk first; run `evidentia serve --durable` there")
        return self._calls.governor()

    async def close(self) -> None:
        """Give back the connections."""
        await self._calls.close()

    async def _call(
        self, operation: str, kind: type[Answer], params: Mapping[str, object] | None = None, *, timeout_ms: int | None = None
    ) -> Answer:
        """Return the answer of an operation; what changes nothing is asked once more when the connection broke."""
        is_repeatable = OPERATION_BY_NAME[operation].is_repeatable
        given = {name: value for name, value in (params or {}).items() if value is not None}
        allowed_ms = timeout_ms or (CALL_MS if is_repeatable else LONG_MS)
        return await self._calls.call(operation, given, kind, timeout_ms=allowed_ms, is_repeatable=is_repeatable)

    def _refuse(self, field: str, problem: str) -> NoReturn:
        raise InvalidFieldError(field, f"the base at '{self._calls.host}' {problem}")


def _members(message: msgspec.Struct) -> dict[str, object]:
    """Return what a message says beyond its defaults, by the names that travel."""
    fields = msgspec.structs.fields(message)
    given = {field.encode_name: (getattr(message, field.name), field.default) for field in fields}
    return {name: value for name, (value, default) in given.items() if value is not default}
