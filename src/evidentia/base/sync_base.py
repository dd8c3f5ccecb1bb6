"""`Base`: the same methods as `AsyncBase`, for callers that are not async. Nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from evidentia.base.async_base import AsyncBase, aconnect
from evidentia.base.portal import Portal
from evidentia.contracts.ingestion import DEFAULT_SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from evidentia.base.answers import EvidenceResponse
    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.documents import CommitSummary, StoredChunk
    from evidentia.contracts.evidence import EvidenceRequest
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, VerifyReport
    from evidentia.contracts.receipts import ReplayReport, WhyReport
    from evidentia.contracts.reports import DoctorReport, GcReport, IngestProgress, IngestReport
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.vectors import EmbedProgress, EmbedReport


def connect(path: str | Path, *, init: bool = False, principal: Principal | None = None) -> Base:
    """Open the base in a directory; `init=True` makes it when it is missing. It acts as its owner unless `principal` says otherwise."""
    portal = Portal()
    try:
        return Base(portal.run(aconnect(path, init=init, principal=principal)), portal)
    except BaseException:
        portal.close()
        raise


class Base:
    """A base in use. Any number may read; one at a time may write. Close it, or use it as a context manager."""

    def __init__(self, inner: AsyncBase, portal: Portal) -> None:
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

    def documents(self) -> list[tuple[DocumentId, AccessRule, int]]:
        """Return every live document with its access rule and its number of chunks, ordered by id."""
        return self._portal.run(self._inner.documents())

    def chunks(self, document_id: str) -> list[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        return self._portal.run(self._inner.chunks(document_id))

    def retrieve(self, query: str | EvidenceRequest, **fields: object) -> EvidenceResponse:
        """Answer a question with ranked, attributed fragments; keywords are the fields of `EvidenceRequest`."""
        return self._portal.run(self._inner.retrieve(query, **fields))

    def replay(self, receipt_id: str) -> ReplayReport:
        """Answer a receipt's request again on its own version and say whether the result is the same."""
        return self._portal.run(self._inner.replay(receipt_id))

    def why(self, receipt_id: str, chunk_id: str) -> WhyReport:
        """Say why a chunk is, or is not, in the answer of a receipt, and the smallest change that would have let it in."""
        return self._portal.run(self._inner.why(receipt_id, chunk_id))

    def verify(self, target: str | FragmentExport | EvidenceResponse | None = None) -> VerifyReport:
        """Recompute custody of the whole base, of a document or chunk by its id, of an exported fragment, or of an answer."""
        return self._portal.run(self._inner.verify(target))

    def export(self, chunk_id: str) -> FragmentExport:
        """Return a fragment with everything a stranger needs to check it offline."""
        return self._portal.run(self._inner.export(chunk_id))

    def consistency(self, first_size: int) -> ConsistencyProof:
        """Return the proof that the event log of `first_size` entries is a prefix of the present one."""
        return self._portal.run(self._inner.consistency(first_size))

    def gc(self, *, keep_versions: int | None = None) -> GcReport:
        """Remove all but the newest versions; the default is the setting `storage.keep_versions`."""
        return self._portal.run(self._inner.gc(keep_versions=keep_versions))

    def doctor(self) -> DoctorReport:
        """Check the installation and the base, quickly; `verify` is the thorough check."""
        return self._portal.run(self._inner.doctor())

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
