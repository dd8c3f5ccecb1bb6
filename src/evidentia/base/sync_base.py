"""Written by tools/write_sync_base.py; nothing here is changed by hand.

`Base`: the same methods as `AsyncBase`, for callers that are not async.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from evidentia.base.async_base import AsyncBase, aconnect, open_directory
from evidentia.contracts.documents import DEFAULT_SOURCE
from evidentia.foundation.loop_thread import LoopThread
from evidentia.wiring.settings_file import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from evidentia.base.answers import EvidenceResponse
    from evidentia.contracts import evidence as messages
    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.backups import BackupProgress, BackupReport
    from evidentia.contracts.documents import CommitSummary, StoredChunk, VersionDiff, VersionSummary
    from evidentia.contracts.evidence import EvidenceRequest, StreamEvent
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.contracts.ports import Governor
    from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, SignedHead, SigningKey, VerifyReport
    from evidentia.contracts.receipts import ReplayReport, WhyReport
    from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport, IngestProgress, IngestReport
    from evidentia.contracts.retrieval import SourceTrial, WarmReport
    from evidentia.contracts.settings import OutboundSettings, Settings
    from evidentia.contracts.sources import FreshnessReport, Note, SourceDescriptor, SourceStatus
    from evidentia.contracts.tables import OpenTable, TableAnswer, TableCard
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.contracts.vectors import EmbedProgress, EmbedReport


def connect(
    path: str | Path,
    *,
    init: bool = False,
    principal: Principal | None = None,
    token: str | None = None,
    outbound: OutboundSettings | None = None,
) -> Base:
    """Open the base in a directory, or the one that is served at an address such as `https://host:8321`.

    In a directory, `init=True` makes it when it is missing, and it acts as its owner unless `principal` says otherwise.
    At an address, `token` says who asks; the default is the environment variable `EVIDENTIA_TOKEN`. `outbound` names the certificate
    authorities, a client certificate and a proxy; the default is what `EVIDENTIA_AUTHORITIES` and its like say.
    """
    portal = LoopThread("evidentia")
    if not is_address(path):
        return Base(open_directory(path, init=init, principal=principal, token=token, outbound=outbound), portal)
    try:
        return Base(portal.run(aconnect(path, init=init, principal=principal, token=token, outbound=outbound)), portal)
    except BaseException:
        portal.close()
        raise


class Base:
    """A base in use. Any number may read; one at a time may write. Close it, or use it as a context manager."""

    def __init__(self, inner: AsyncBase, portal: LoopThread) -> None:
        self._inner = inner
        self._portal = portal

    @property
    def path(self) -> Path:
        """Return the directory of the base."""
        return self._inner.path

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self._inner.settings

    def ingest(
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
        """Take in files, directories and JSONL corpora; what is unchanged is skipped, what cannot be read is reported.

        Everything can be found by its words as soon as it is in. Then, unless `embed` is false, every chunk that lacks a vector
        gets one, as `embed` does; the versions in the report are those after that.
        Both callbacks are called from a worker thread, and with a commit whenever a batch has become durable.
        """
        return self._portal.run(
            self._inner.ingest(
                paths,
                source=source,
                authority=authority,
                classification=classification,
                tenant=tenant,
                acl=acl,
                tags=tags,
                prune=prune,
                embed=embed,
                on_progress=on_progress,
                on_embedding=on_embedding,
            )
        )

    def embed(self, *, on_progress: Callable[[EmbedProgress], None] | None = None) -> EmbedReport:
        """Give every chunk that lacks one its vector; it goes on where an earlier call was interrupted.

        Searching goes on meanwhile. Closing the base, or cancelling the call, ends it with what is encoded by then.
        `on_progress` is called from a worker thread, and with a commit whenever a batch has become durable.
        """
        return self._portal.run(self._inner.embed(on_progress=on_progress))

    def remove(self, document_ids: Iterable[str]) -> CommitSummary:
        """Remove documents; their old versions stay readable until `gc`."""
        return self._portal.run(self._inner.remove(document_ids))

    def set_access(self, document_ids: Iterable[str], access: AccessRule) -> CommitSummary:
        """Give documents another access rule, as a new version."""
        return self._portal.run(self._inner.set_access(document_ids, access))

    def head(self) -> CommitSummary:
        """Return the newest version."""
        return self._portal.run(self._inner.head())

    def versions(self, *, limit: int = 20) -> list[VersionSummary]:
        """Return the newest versions with what each holds, newest first; those that `gc` removed are named without it."""
        return self._portal.run(self._inner.versions(limit=limit))

    def diff(self, older: int | str, newer: int | str, *, limit: int = 1000) -> VersionDiff:
        """Return what differs between two versions, each by its number, by a hash such as its `corpus_version`, or by its beginning.

        At most `limit` documents of each kind are listed; the totals count all of them.
        """
        return self._portal.run(self._inner.diff(older, newer, limit=limit))

    def documents(self, *, after: str = "", limit: int | None = None) -> list[tuple[DocumentId, AccessRule, int]]:
        """Return every live document with its access rule and its number of chunks, ordered by id.

        With a `limit`, only so many; the page after them begins `after` the last id of this one.
        """
        return self._portal.run(self._inner.documents(after=after, limit=limit))

    def chunks(self, document_id: str) -> list[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        return self._portal.run(self._inner.chunks(document_id))

    def tables(self) -> list[TableCard]:
        """Return the tables of every live document, ordered by document; no cell is read for it."""
        return self._portal.run(self._inner.tables())

    def open_table(self, table_id: str) -> OpenTable:
        """Return a table of a live document with its cells."""
        return self._portal.run(self._inner.open_table(table_id))

    def ask_tables(self, question: str, *, limit: int = 200) -> TableAnswer:
        """Answer a question from spreadsheets: rows with the rows of the sheets they came from, or why there are none.

        Rules that link words to columns and cells plan a statement, and decline what they cannot read; nothing is guessed.
        """
        return self._portal.run(self._inner.ask_tables(question, limit=limit))

    def layout(self, document_id: str) -> DocumentLayout | None:
        """Return the pages, images and tables of a live document; None where it has none of them."""
        return self._portal.run(self._inner.layout(document_id))

    def image(self, image_hash: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image, by the hash that a fragment or a layout names."""
        return self._portal.run(self._inner.image(image_hash))

    def retrieve(self, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        """Answer a question with ranked, attributed fragments; keywords are the fields of `EvidenceRequest`."""
        return self._inner._retrieve_blocking(self._portal, query, **fields)  # noqa: SLF001 - its twin

    def retrieve_stream(self, query: str | EvidenceRequest, **fields: object) -> Iterator[StreamEvent]:
        """Yield what happens while a question is answered, and last the answer itself, the same as `retrieve` gives."""
        return self._portal.stream(self._inner.retrieve_stream(query, **fields))

    def add_source(
        self, descriptor: SourceDescriptor | Mapping[str, object], retriever: object | None = None, *, isolate: bool = False
    ) -> SourceDescriptor:
        """Register a source outside the base, which every request may then ask.

        A `retriever` is any object with `retrieve`, sync or async; it is attached in this process only. One that may block what it
        runs on is kept apart with `isolate=True`. Other kinds (`base`, `remote`, `mcp`) need none: their connection says where they are.
        """
        return self._portal.run(self._inner.add_source(descriptor, retriever, isolate=isolate))

    def remove_source(self, source_id: str) -> None:
        """Forget a source outside the base, and what was kept of it."""
        return self._portal.run(self._inner.remove_source(source_id))

    def sources(self) -> list[SourceStatus]:
        """Return every source you may know of, with its health, ordered by id."""
        return self._portal.run(self._inner.sources())

    def source_freshness(self) -> list[FreshnessReport]:
        """Return how old every source's data is beside what it promises."""
        return self._portal.run(self._inner.source_freshness())

    def test_source(self, source_id: str, query: str, *, limit: int = 10) -> SourceTrial:
        """Ask one source outside the base by itself; nothing of it is kept or ranked."""
        return self._portal.run(self._inner.test_source(source_id, query, limit=limit))

    def source_changed(self, source_id: str) -> int:
        """Say that a source's data has changed: what was kept of it is forgotten. Return how much that was."""
        return self._portal.run(self._inner.source_changed(source_id))

    def remember(
        self, text: str, *, title: str = "", agent: str = "", session: str = "", authority: str = "ephemeral", ttl_s: int | None = None
    ) -> Note:
        """Write a note that later requests of the same principal, agent and session find; without a session, of all of them."""
        return self._portal.run(self._inner.remember(text, title=title, agent=agent, session=session, authority=authority, ttl_s=ttl_s))

    def notes(self, *, agent: str | None = None, session: str | None = None) -> list[Note]:
        """Return your notes that have not expired, ordered by id."""
        return self._portal.run(self._inner.notes(agent=agent, session=session))

    def forget(self, note_ids: Iterable[str]) -> int:
        """Forget notes, and return how many there were."""
        return self._portal.run(self._inner.forget(note_ids))

    def add_policy(self, body: PolicyBody | Mapping[str, object]) -> StoredPolicy:
        """Put a policy in force, or the next version of the one with its name; `PolicyInvalidError` names every field that is wrong."""
        return self._portal.run(self._inner.add_policy(body))

    def policies(self) -> list[StoredPolicy]:
        """Return your tenant's policies by priority and name, those that are disabled included."""
        return self._portal.run(self._inner.policies())

    def remove_policy(self, name: str) -> StoredPolicy:
        """Take a policy out of force by its name or id; its versions stay readable."""
        return self._portal.run(self._inner.remove_policy(name))

    def warm(self, questions: Iterable[str] = (), **fields: object) -> WarmReport:
        """Ask questions ahead of time, so that what sources say is kept until it changes; those of `cache.warm` where none are given."""
        return self._portal.run(self._inner.warm(questions, **fields))

    def cache_stats(self) -> CacheStats:
        """Return what is kept of what sources said, and how often it served."""
        return self._portal.run(self._inner.cache_stats())

    def flush_cache(self, source: str | None = None) -> int:
        """Forget what was kept, of one source or of all, and return how much that was."""
        return self._portal.run(self._inner.flush_cache(source))

    def traces(self, *, limit: int = 20) -> list[RequestTrace]:
        """Return the newest requests with what took how long, newest first."""
        return self._portal.run(self._inner.traces(limit=limit))

    def trace(self, request_id: str) -> RequestTrace:
        """Return one request by its id, the beginning of it, or its receipt."""
        return self._portal.run(self._inner.trace(request_id))

    def replay(self, receipt_id: str) -> ReplayReport:
        """Answer a receipt's request again on its own version and say whether the result is the same."""
        return self._portal.run(self._inner.replay(receipt_id))

    def why(self, receipt_id: str, chunk_id: str) -> WhyReport:
        """Say why a chunk is, or is not, in the answer of a receipt, and the smallest change that would have let it in."""
        return self._portal.run(self._inner.why(receipt_id, chunk_id))

    def verify(self, target: str | FragmentExport | messages.EvidenceResponse | None = None) -> VerifyReport:
        """Recompute custody of the whole base, of a document or chunk by its id, of an exported fragment, or of an answer.

        An answer of this base is compared with its receipt, too.
        """
        return self._portal.run(self._inner.verify(target))

    def export(self, chunk_id: str) -> FragmentExport:
        """Return a fragment with everything a stranger needs to check it offline."""
        return self._portal.run(self._inner.export(chunk_id))

    def signed_head(self, sequence: int | None = None) -> SignedHead:
        """Return the head of the log at a version, the newest by default, with the signature of the base and its public keys."""
        return self._portal.run(self._inner.signed_head(sequence))

    def rotate_key(self) -> SigningKey:
        """Sign with a new key from now on, for which the present one vouches; the private part of that is destroyed."""
        return self._portal.run(self._inner.rotate_key())

    def consistency(self, first_size: int) -> ConsistencyProof:
        """Return the proof that the event log of `first_size` entries is a prefix of the present one."""
        return self._portal.run(self._inner.consistency(first_size))

    def gc(self, *, keep_versions: int | None = None) -> GcReport:
        """Remove all but the newest versions; the default is the setting `storage.keep_versions`."""
        return self._portal.run(self._inner.gc(keep_versions=keep_versions))

    def backup(self, destination: str | Path, *, on_progress: Callable[[BackupProgress], None] | None = None) -> BackupReport:
        """Copy the base, as it stands at one moment, into a new directory, or into one new file whose name ends in `.tar`.

        Others may write meanwhile. What exists is never overwritten; `evidentia restore` makes a base of the copy.
        `on_progress` is called from a worker thread.
        """
        return self._portal.run(self._inner.backup(destination, on_progress=on_progress))

    def doctor(self) -> DoctorReport:
        """Check the installation and the base, quickly; `verify` is the thorough check."""
        return self._portal.run(self._inner.doctor())

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs agents' runs by this base's policies; `durable` has every decision on disk before the call goes on."""
        return self._inner.governor(durable=durable)

    def close(self) -> None:
        """Give back what the base holds."""
        self._portal.run(self._inner.close())
        self._portal.close()

    def __enter__(self) -> Self:
        """Return the base itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the base."""
        self.close()
