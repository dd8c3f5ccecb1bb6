"""Documents: send them, list them, take them out, and say who may see them; an admin's hand reaches no further than the tenant."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import re
import shutil
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final

import msgspec

from evidentia.base.base_ingest import ingest_options
from evidentia.contracts.access import DEFAULT_TENANT, AccessRule, is_acl_entry
from evidentia.contracts.control import AuditKind
from evidentia.contracts.doors import (
    AccessRequest,
    DocumentEntry,
    DocumentIds,
    DocumentPage,
    IngestRequest,
    SentDocument,
    SentFile,
    encode_cursor,
)
from evidentia.contracts.errors import BaseBusyError, BaseStateError, DuplicateDocumentError, NotFoundError, ServiceError
from evidentia.contracts.ids import DocumentId, SourceId, TenantId, document_id_of
from evidentia.foundation.disk import make_private_directory, open_private
from evidentia.serving.operations.api_errors import CONFLICT, ApiError, bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, endpoint
from evidentia.serving.operations.ownership import Viewer
from evidentia.serving.operations.server_context import ServerContext, write_audit
from evidentia.text.names import is_source_name
from evidentia.wiring.embedded import INBOX_NAME

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.reports import IngestReport, SkippedInput
    from evidentia.serving.operations.served_base import ServedBase


@endpoint("ingest")
async def _ingest(context: ServerContext, operation: OperationRequest) -> Reply:
    request: IngestRequest = operation.body
    try:
        report = await take_in(context.served_base, request, principal=operation.principal)
    except (BaseStateError, ServiceError) as error:  # by then some of it may be in
        await write_audit(context, operation, AuditKind.DOCUMENT, f"ingest failed ({error.code})", subject=request.source)
        raise
    change = f"ingested {report.added} added {report.changed} changed"
    await write_audit(context, operation, AuditKind.DOCUMENT, change, subject=request.source)
    return Reply(Viewer(context, operation).version(report))


@endpoint("list_documents")
async def _list_documents(context: ServerContext, operation: OperationRequest) -> Reply:
    (after,) = decode_cursor(operation.query["cursor"], (str,)) or ("",)
    limit: int = operation.query["limit"]
    found = await context.served_base.base_for(operation.principal, operation.token).documents(after=after, limit=limit + 1)
    page = found[:limit]
    entries = tuple(DocumentEntry(document_id=name, access=access, chunks=chunks) for name, access, chunks in page)
    return Reply(DocumentPage(documents=entries, next_cursor=encode_cursor((page[-1][0],)) if len(found) > limit else None))


@endpoint("remove_documents")
async def _remove_documents(context: ServerContext, operation: OperationRequest) -> Reply:
    request: DocumentIds = operation.body
    names = await _own(context, operation, request.document_ids)
    summary = await context.served_base.base_of(operation.tenant).remove(names)
    await write_audit(context, operation, AuditKind.DOCUMENT, f"removed {len(names)}", subject=names[0])
    return Reply(Viewer(context, operation).version(summary))


@endpoint("set_access")
async def _set_access(context: ServerContext, operation: OperationRequest) -> Reply:
    request: AccessRequest = operation.body
    for place, entry in enumerate(request.acl):
        if not is_acl_entry(entry):
            raise bad_field(f"acl[{place}]", "write user:NAME, group:NAME or role:NAME")
    names = await _own(context, operation, request.document_ids)
    rule = AccessRule(tenant=TenantId(operation.tenant), classification=request.classification, acl=tuple(sorted(set(request.acl))))
    summary = await context.served_base.base_of(operation.tenant).set_access(names, rule)
    await write_audit(context, operation, AuditKind.DOCUMENT, f"access of {len(names)} changed", subject=names[0])
    return Reply(Viewer(context, operation).version(summary))


async def _own(context: ServerContext, operation: OperationRequest, document_ids: Sequence[DocumentId]) -> list[DocumentId]:
    """Return documents of the tenant that the admin may see, each once; all others and those that are not there are refused alike."""
    names = list(dict.fromkeys(document_ids))
    rules = await asyncio.to_thread(context.served_base.access_of, names)
    hidden = await asyncio.to_thread(context.served_base.masks, names, principal=operation.principal)
    for document_id in names:
        if document_id not in rules or document_id in hidden or rules[document_id].tenant != operation.tenant:
            raise NotFoundError("document", document_id)
    return names


# --- document intake ---
# Documents that were sent: staged below the base under the names they were given, taken in, and cleared away.
#
# A path that leads out of its source is refused before anything is written. Sources of other tenants than the operator's carry the tenant
# in their name, so that nobody's document takes the place of somebody else's. The stage of a source is always in the same place, so that
# what is sent again is known to be the same; one lock stands for all stages of a tenant, and whoever holds it finds them empty. Tenants do
# not wait for each other but for a place among those who read at a time, and the base itself is locked for commits alone.

POLL_MS: Final = 20
_CORPUS: Final = ".sent.jsonl"
"""No file that is sent can be called so."""
_SOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_encode: Final = msgspec.json.Encoder(order="sorted").encode


async def take_in(served_base: ServedBase, request: IngestRequest, *, principal: Principal) -> IngestReport:
    """Take in what was sent as documents of a tenant; who comes while the same tenant does waits as long as a writer may wait.

    A document that the sender may not see is not replaced: whoever could would open it, or learn what it says by sending a guess.
    """
    tenant = principal.tenant
    if not request.documents and not request.files:
        raise bad_field("documents", "there is nothing to take in; send documents or files")
    source = source_of(request.source, tenant=tenant)
    paths = checked_paths(request.files)
    names = [document_id_of(source, str(each)) for each in (*(document.id for document in request.documents), *paths)]
    there = await asyncio.to_thread(served_base.access_of, names)
    if await asyncio.to_thread(served_base.masks, there, principal=principal):
        raise _elsewhere()
    inbox = served_base.directory / INBOX_NAME
    lock = await _locked(inbox, tenant=tenant, places=served_base.ingest_places, wait_ms=served_base.settings.storage.writer_wait_ms)
    # One thread does the rest and gives lock and place back: it goes on when its caller is cancelled, and nobody may stage meanwhile.
    work = partial(_take_in, served_base, request, paths, lock=lock, source=source, tenant=tenant)
    return await asyncio.shield(asyncio.wrap_future(served_base.ingest_threads.submit(work)))


def source_of(name: str, *, tenant: str) -> SourceId:
    """Return what a source is called in the base: `docs` of the tenant `acme` is `_acme__docs`, and just `docs` of the operator's.

    No two tenants' sources are called the same: what is sent begins with a letter or digit, and a written tenant holds no `__`.
    """
    if not _SOURCE.fullmatch(name):
        raise bad_field("source", "use letters, digits and . _ -, beginning with a letter or digit")
    source = f"{_prefix(tenant)}{name}"
    if tenant == DEFAULT_TENANT:
        return SourceId(source)
    if not is_source_name(source):
        raise bad_field("source", f"it is too long; with the tenant's name before it, it is {source}")
    return SourceId(source)


def _prefix(tenant: str) -> str:
    """Return what the names of a tenant's sources begin with; those of the operator's begin with a letter or digit of their own."""
    return "" if tenant == DEFAULT_TENANT else f"_{_written(tenant)}__"


def _written(tenant: str) -> str:
    return tenant.replace("_", "_u").replace(":", "_c")


async def _locked(inbox: Path, *, tenant: str, places: threading.Semaphore, wait_ms: int) -> IO[bytes]:
    """Return the open file that is the tenant's lock, once it is ours and there is a place to read; nothing blocks meanwhile."""
    lock = await asyncio.to_thread(_opened, inbox, f"{_written(tenant)}.lock")
    is_locked = False
    try:
        for _ in range(max(1, wait_ms // POLL_MS)):
            with contextlib.suppress(BlockingIOError):
                if not is_locked:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_locked = True
                if places.acquire(blocking=False):
                    return lock
            await asyncio.sleep(POLL_MS / 1000)
    except BaseException:
        lock.close()
        raise
    lock.close()
    raise BaseBusyError(inbox.name, waited_ms=wait_ms)


def _opened(inbox: Path, name: str) -> IO[bytes]:
    make_private_directory(inbox)
    return open_private(inbox / name, "wb")


def _take_in(
    served_base: ServedBase, request: IngestRequest, paths: list[PurePosixPath], *, lock: IO[bytes], source: SourceId, tenant: str
) -> IngestReport:
    options = ingest_options(
        source=source,
        authority=request.authority.value,
        classification=request.classification.value,
        tenant=tenant,
        acl=request.acl,
        tags=request.tags,
        prune=False,
    )
    stages = served_base.directory / INBOX_NAME / "staged"
    try:
        with lock:
            make_private_directory(stages)
            _clear(stages, tenant=tenant)  # of an ingest that did not end
            try:
                staged = _write(stages / options.source, request, paths)
                report = served_base.ingest(staged, options, is_embedding=request.embed)
            except DuplicateDocumentError as error:
                raise _elsewhere() from error
            finally:
                _clear(stages, tenant=tenant)
    finally:
        served_base.ingest_places.release()
    return msgspec.structs.replace(report, skipped=tuple(map(_named, report.skipped)), notes=tuple(map(_named, report.notes)))


def _clear(stages: Path, *, tenant: str) -> None:
    """Remove what a tenant has staged; a link in its place is removed and not followed."""
    if stages.is_symlink():
        stages.unlink()
    prefix = _prefix(tenant)
    for stage in stages.iterdir() if stages.is_dir() else ():
        if stage.name.startswith(prefix) if prefix else not stage.name.startswith("_"):
            if stage.is_symlink():
                stage.unlink()
            shutil.rmtree(stage, ignore_errors=True)


def _write(stage: Path, request: IngestRequest, paths: list[PurePosixPath]) -> list[Path]:
    written: list[Path] = []
    if request.documents:
        corpus = stage / "corpus" / _CORPUS
        make_private_directory(corpus.parent)
        with open_private(corpus, "xb") as opened:
            opened.write(b"\n".join(_line(each) for each in request.documents))
        written.append(corpus)
    if request.files:
        root = stage / "files"
        for place, (path, file) in enumerate(zip(paths, request.files, strict=True)):
            _write_file(root / path, file, place)
        written.append(root)
    return written


def _write_file(target: Path, file: SentFile, place: int) -> None:
    make_private_directory(target.parent)
    try:
        with open_private(target, "xb") as opened:
            opened.write(file.content)
    except FileExistsError as error:  # where the file system of the server takes both names for one
        raise bad_field(f"files[{place}].path", "another file of this name is sent, but for upper case or accents") from error


def _line(document: SentDocument) -> bytes:
    return _encode({"_id": document.id, "title": document.title, "text": document.text, "metadata": document.metadata})


def _named(entry: SkippedInput) -> SkippedInput:
    """Return an entry about a line as one about the document that was sent."""
    name, _, line = entry.path.partition(":")
    if name != _CORPUS:
        return entry
    place = f"documents[{int(line) - 1}]" if line.isdecimal() else "documents"
    message = entry.message.replace(f"line {line} of '{_CORPUS}'", place).replace(f"'{_CORPUS}'", place)
    return msgspec.structs.replace(entry, path=place, message=message)


def _elsewhere() -> ApiError:
    message = "a document of this name is in the base from a directory of the server, or is not yours to replace"
    return ApiError(CONFLICT, "document_elsewhere", message, hint="send it to another source, or under another name")


# --- sent paths ---
# Names under which files are sent: within their source, each once, and none both a file and a directory.

MAX_NAME_BYTES: Final = 255
"""Of one part of a path, as file systems have it."""
MAX_PATH_BYTES: Final = 1_000
_PROBLEM: Final = "write a path within the source, such as 'guides/setup.md': no root, no '.' or '..', no hidden or unprintable name"


def checked_paths(files: Sequence[SentFile]) -> list[PurePosixPath]:
    """Return the paths in order, or refuse the first that cannot be."""
    paths = [_checked(file.path, place) for place, file in enumerate(files)]
    taken: dict[PurePosixPath, int] = {}
    for place, path in enumerate(paths):
        if path in taken:
            raise _refused(place, f"files[{taken[path]}] has the same path")
        taken[path] = place
    for place, path in enumerate(paths):
        if above := next((each for each in path.parents if each in taken), None):
            raise _refused(place, f"files[{taken[above]}] is a file where this needs a directory")
    return paths


def _checked(text: str, place: int) -> PurePosixPath:
    path = PurePosixPath(text)
    is_plain = str(path) == text and path.parts and not path.is_absolute() and text.isprintable() and "\\" not in text
    if not is_plain or any(part.startswith(".") for part in path.parts):
        raise _refused(place, _PROBLEM)
    if len(text.encode()) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_NAME_BYTES for part in path.parts):
        raise _refused(place, f"write at most {MAX_NAME_BYTES} bytes between two slashes, and {MAX_PATH_BYTES} in all")
    return path


def _refused(place: int, problem: str) -> ApiError:
    return bad_field(f"files[{place}].path", problem)
