"""Every replaceable part, one sentence each; docs/reference/ports.md says who implements them.

A port has at most five methods. Extra powers are small `Supports...` protocols that wiring checks once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord, PolicyDecision, Verdict
    from evidentia.contracts.documents import ChangeSet, CommitSummary, KnownDocument, StoredChunk, StoredDocument
    from evidentia.contracts.evidence import StreamEvent, Turn
    from evidentia.contracts.grounding import GroundingScore
    from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, ReceiptId, RequestId, Sha256, SourceId
    from evidentia.contracts.judging import Judgement, JudgeRequest
    from evidentia.contracts.layout import DocumentLayout, ExtractedText
    from evidentia.contracts.policies import Policy, PolicyBody, PolicyChange, PolicyId, StoredPolicy
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.provenance import BrokenLink, CommitRecord, ConsistencyProof, InclusionProof, IngestEvent
    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.reports import GcReport
    from evidentia.contracts.retrieval import Rewriting, SourceAsk
    from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts, RunId
    from evidentia.contracts.search import (
        AccessScope,
        ChunkSignals,
        ChunkStanding,
        Definition,
        DenseHits,
        DenseQuery,
        LegScores,
        LexicalHits,
        LexicalQuery,
        SearchHit,
        SnapshotVersion,
    )
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.sources import Note, SourceDescriptor
    from evidentia.contracts.tables import CellValue, OpenTable, PlanDeclined, TableLimits, TablePlan, TableRows
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.contracts.vectors import EmbeddingState, PendingChunk, StoredVector, VectorIdentity
    from evidentia.contracts.vocabulary import AuthorityTier


Answer = TypeVar("Answer")


class Clock(Protocol):
    """Tells the time, so that nothing else has to."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        ...

    def elapsed_ns(self) -> int:
        """Return nanoseconds since some fixed moment, never going back."""
        ...


class Entropy(Protocol):
    """Gives unpredictable bytes for salts and identifiers, so that nothing else has to."""

    def take(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        ...


class DocumentReader(Protocol):
    """Turns the bytes of one kind of file into text."""

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the text, or raise DocumentUnreadableError; never anything else, whatever the bytes."""
        ...


class TokenCounter(Protocol):
    """Counts tokens the way a named model does."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""
        ...


class EvidenceWriter(Protocol):
    """Changes a base, one writer at a time, one commit at a time."""

    def known(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
        """Return what is remembered of those of the documents that are live."""
        ...

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        """Return every live document of one source."""
        ...

    def register(self, descriptor: SourceDescriptor) -> None:
        """Add a source or replace its descriptor; durable with the next commit."""
        ...

    def commit(self, changes: ChangeSet) -> CommitSummary:
        """Make all of the changes durable and visible at once, or none of them."""
        ...

    def close(self) -> None:
        """Give up the right to write; what was not committed is lost."""
        ...


class EvidenceReader(Protocol):
    """Reads one base at a version; readers never block the writer, nor it them."""

    def head(self) -> CommitSummary:
        """Return the newest committed version."""
        ...

    def chunk(self, chunk_id: ChunkId) -> StoredChunk | None:
        """Return a chunk whose version has not been collected, live or not."""
        ...

    def chunks_of(self, document_id: DocumentId) -> Sequence[StoredChunk]:
        """Return the live chunks of a document in order of position."""
        ...

    def documents(self) -> Iterator[tuple[DocumentId, AccessRule, int]]:
        """Yield every live document with its access rule and its number of chunks, ordered by id."""
        ...

    def close(self) -> None:
        """Give back what the reader holds."""
        ...


@runtime_checkable
class SupportsProofs(Protocol):
    """Proves what the event log holds."""

    def event(self, index: int) -> IngestEvent:
        """Return an entry of the event log."""
        ...

    def commit_record(self) -> tuple[CommitRecord, Sha256]:
        """Return the newest commit record and its hash."""
        ...

    def inclusion(self, index: int, *, size: int) -> InclusionProof:
        """Return the proof that event `index` is in the log of `size` events."""
        ...

    def consistency(self, first_size: int, *, size: int) -> ConsistencyProof:
        """Return the proof that the log of `first_size` events is a prefix of the log of `size`."""
        ...


class ProvingReader(EvidenceReader, SupportsProofs, Protocol):
    """A reader that can prove what it reads."""


class CustodyArchive(Protocol):
    """Gives verification the stored bytes, and reports what is wrong with the storage itself."""

    def commits(self) -> Iterator[tuple[CommitRecord, Sha256]]:
        """Yield every commit record with its stored hash, oldest first."""
        ...

    def log_leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the leaves of the event log as stored."""
        ...

    def corpus_state(self) -> bytes:
        """Return the stored running sum behind the newest corpus_version."""
        ...

    def documents(self) -> Iterator[StoredDocument]:
        """Yield every stored version of every document with its chunks, ordered by key."""
        ...

    def storage_faults(self) -> Iterator[BrokenLink]:
        """Yield what is wrong below the level of records: pages, indexes, segment files."""
        ...


@runtime_checkable
class SupportsVectorCustody(Protocol):
    """Gives verification the vectors that a base says it has."""

    def vector_reigns(self) -> Sequence[tuple[int, int, VectorIdentity]]:
        """Return from which commit on which space is in force, oldest first."""
        ...

    def vector_members(self) -> Iterator[StoredVector]:
        """Yield every stored vector once per version of its document."""
        ...

    def vector_state(self) -> bytes:
        """Return the stored running sum behind the newest version's vectors."""
        ...


class Collector(Protocol):
    """Removes versions nobody needs any more."""

    def collect(self, *, keep_versions: int) -> GcReport:
        """Remove all but the newest versions and merge segments; the event log is never shortened."""
        ...


class EvidenceSnapshot(Protocol):
    """One version of a base's own evidence, searched within what a scope allows."""

    @property
    def version(self) -> SnapshotVersion:
        """Return the version that this snapshot shows."""
        ...

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        """Return the best matches, exactly, with counts over the whole match."""
        ...

    def chunks(self, hits: Sequence[SearchHit]) -> Sequence[StoredChunk]:
        """Return the chunks behind hits, in the same order."""
        ...

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        """Return how a chunk stands towards a query; None when the scope does not show it. The rank costs a whole search."""
        ...

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources of which the scope shows at least one document, with their highest authority."""
        ...


class SupportsVectors(Protocol):
    """Searches the vectors of a snapshot."""

    @property
    def vectors(self) -> VectorIdentity | None:
        """Return the space in which this version's vectors live; None when it has none."""
        ...

    def nearest(
        self, query: DenseQuery, *, scope: AccessScope, narrowing: Predicate | None, phrases: Sequence[Sequence[str]], limit: int
    ) -> DenseHits:
        """Return the chunks nearest to a vector among those that hold every phrase, exactly unless it says otherwise."""
        ...

    def similarities(self, hits: Sequence[SearchHit]) -> NDArray[np.int64]:
        """Return the cosine of each pair at 2^-16, at least 0; -1 where one of the two has no vector."""
        ...


class SupportsScoring(Protocol):
    """Scores any chunk of a snapshot, whichever leg found it."""

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        """Return the exact score of each leg for each hit, in the order given."""
        ...

    def count_union(
        self, found: LexicalHits, others: Sequence[SearchHit], *, query: LexicalQuery, scope: AccessScope, narrowing: Predicate | None
    ) -> LexicalHits:
        """Return what `search` found, with counts and facets over its match and the chunks that were found otherwise."""
        ...

    def lengths(self, hits: Sequence[SearchHit]) -> Sequence[int]:
        """Return how many positions the text of each hit has."""
        ...

    def signals(self, hits: Sequence[SearchHit]) -> Sequence[ChunkSignals]:
        """Return what ranks each hit besides its match."""
        ...


class Lexicon(Protocol):
    """The words that one caller may see, and how that caller's corpus explains them."""

    @property
    def chunks(self) -> int:
        """Return how many chunks the caller may see."""
        ...

    def chunks_with(self, term: str) -> int:
        """Return in how many chunks a term occurs."""
        ...

    def similar(self, term: str, *, edits: int) -> Sequence[tuple[str, int]]:
        """Return terms with the same first letter within so many edits, with their chunks: nearest, most frequent, then by name."""
        ...

    def long_forms(self, short: str) -> Sequence[Definition]:
        """Return what the corpus says a short form stands for, the most frequent first."""
        ...

    def short_forms(self, long: str) -> Sequence[Definition]:
        """Return the short forms that the corpus gives to a long one (compared as lower-case words)."""
        ...


class SupportsLexicon(Protocol):
    """Knows the words of a snapshot."""

    def lexicon(self, scope: AccessScope) -> Lexicon:
        """Return the words that a scope shows; nothing else has any influence on it."""
        ...


class SupportsSources(Protocol):
    """Knows the sources that were registered in a snapshot's version."""

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, inside the base and outside, ordered by id; who may know of it is for others to say."""
        ...


class SupportsInclusion(Protocol):
    """Proves that the log of a snapshot's version holds what was read from it."""

    def proofs(self, chunks: Sequence[StoredChunk]) -> Sequence[tuple[IngestEvent, InclusionProof]]:
        """Return, for each chunk, the event that entered it and the proof that the log holds it."""
        ...


class SearchableSnapshot(EvidenceSnapshot, SupportsVectors, SupportsScoring, SupportsLexicon, SupportsSources, SupportsInclusion, Protocol):
    """A snapshot with every power that the engine asks of a base's own evidence."""


class EvidenceIndex(Protocol):
    """Opens snapshots of a base's own evidence."""

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
    ) -> SearchableSnapshot:
        """Return the newest version with these hashes, scored as `search` says; without hashes, the newest of all.

        What it shows is what its own access rules and those of `access_state` (the newest version by default) both allow.
        """
        ...

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        """Tell whether a scope shows a document in a version, else by the last rule it had; None when there is no such document."""
        ...


class ReceiptLog(Protocol):
    """Keeps receipts, append-only, durable before they are handed out."""

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt durably and return its id."""
        ...

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt, or raise NotFoundError."""
        ...


class Retriever(Protocol):
    """Finds candidate fragments in one source outside the base, without blocking."""

    def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
        """Yield what the source proposes, best first, as `Candidate` or whatever it has; nothing it yields is believed as it is."""
        ...


class BlockingRetriever(Protocol):
    """Finds candidate fragments in one source outside the base, on a thread of its own."""

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
        """Yield what the source proposes, best first, as `Candidate` or whatever it has; nothing it yields is believed as it is."""
        ...


@runtime_checkable
class SupportsDataVersion(Protocol):
    """Can tell cheaply whether a source's data has changed, so that what was kept is not used after it has."""

    def data_version(self) -> str:
        """Return a word that is another one whenever an answer may be."""
        ...


class SourceDirectory(Protocol):
    """Knows what asks each registered source in this process."""

    def retriever(self, descriptor: SourceDescriptor) -> Retriever | BlockingRetriever | None:
        """Return what asks a source; None when nothing is attached that could."""
        ...


class SourceRegistry(Protocol):
    """Keeps the descriptors of sources in the base; every change is a new version of it."""

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, ordered by id."""
        ...

    def register(self, descriptor: SourceDescriptor) -> CommitSummary:
        """Add a source or replace its descriptor."""
        ...

    def remove(self, source_id: SourceId) -> CommitSummary:
        """Forget a source; one that has documents is refused."""
        ...


class KeyValueStore(Protocol):
    """Keeps bytes under names for a while; what was measured or can be fetched again lives here, and may be lost."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a name and has not expired."""
        ...

    def put(self, key: str, value: bytes, *, expires_at: datetime | None = None) -> None:
        """Keep a value under a name, in place of what was there."""
        ...

    def delete(self, prefix: str) -> int:
        """Forget every name that begins so, and return how many there were."""
        ...

    def items(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield every name that begins so, with its value, ordered by name."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


@runtime_checkable
class SupportsTransactions(Protocol):
    """Writes several values as cheaply as one."""

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context: what this thread changes within it is written when it ends, all or nothing."""
        ...


@runtime_checkable
class SupportsBatchReads(Protocol):
    """Reads several values more cheaply than one by one."""

    def batch_reads(self) -> AbstractContextManager[None]:
        """Return a context: what this thread reads within it is at least as new as the beginning of it."""
        ...

    def preload(self, keys: Sequence[str]) -> None:
        """Read several values in one go, which this thread is about to ask for within the context."""
        ...


class SupportsKeyScan(Protocol):
    """Says what is kept without reading it."""

    def names(self, prefix: str) -> Iterator[str]:
        """Yield every name that begins so, in order."""
        ...


class NoteStore(Protocol):
    """Keeps what agents write down for themselves."""

    def add(self, note: Note) -> None:
        """Keep a note, durably."""
        ...

    def of(self, *, tenant: str, owner: str, agent_name: str | None, session: str | None, now: datetime) -> Sequence[Note]:
        """Return the notes of one owner that have not expired, ordered by id; of any agent or session where that is None.

        Notes for every session of an agent are among those of each of them.
        """
        ...

    def remove(self, note_ids: Sequence[str], *, tenant: str, owner: str) -> int:
        """Forget notes of one owner, and return how many there were."""
        ...

    def revision(self) -> str:
        """Return a word that is another one after every change."""
        ...


class TraceSink(Protocol):
    """Is told of every request once it has been answered; never late and never in the way."""

    def record(self, trace: RequestTrace) -> None:
        """Take note of a request; it must not block, and whatever goes wrong stays here."""
        ...


@runtime_checkable
class SupportsTraces(Protocol):
    """Remembers requests for a while."""

    def traces(self, *, limit: int) -> Sequence[RequestTrace]:
        """Return the newest requests, newest first."""
        ...

    def trace(self, request_id: RequestId) -> RequestTrace | None:
        """Return one request, if it is still remembered."""
        ...


class BlockingExecutor(Protocol):
    """Runs the engine's own blocking steps away from the event loop."""

    def run(self, work: Callable[[], Answer]) -> Awaitable[Answer]:
        """Return what gives what the work returns, or raises what it raises; whoever stops waiting does not stop the work."""
        ...


class Offloader(Protocol):
    """Does a piece of work beside whoever asks for it, when somebody is free; else it is done when it is waited for."""

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Return what waits for the work, once, and returns what it returns or raises what it raises."""
        ...


class Encoder(Protocol):
    """Turns a text into a vector, the same vector every time on one machine. Thread safe: texts are encoded in parallel."""

    @property
    def identity(self) -> VectorIdentity:
        """Return the space its vectors live in."""
        ...

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question as integers at the identity's scale."""
        ...

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage as integers at the identity's scale."""
        ...


@runtime_checkable
class SupportsBatches(Protocol):
    """Encodes several passages in one call, where a call is what costs."""

    def encode_documents(self, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
        """Return one vector per text, in the order given."""
        ...


class VectorStore(Protocol):
    """Gives chunks their vectors, a batch at a time; the right to write is held only during `add`."""

    def state(self, identity: VectorIdentity) -> EmbeddingState:
        """Return how much of the newest version has vectors of this identity."""
        ...

    def pending(self, identity: VectorIdentity, *, limit: int) -> Sequence[PendingChunk]:
        """Return live chunks that have no vector of this identity, in a steady order."""
        ...

    def known(self, identity: VectorIdentity, content_hashes: Sequence[Sha256]) -> Mapping[Sha256, NDArray[np.int32]]:
        """Return vectors that texts with these hashes already have."""
        ...

    def add(self, identity: VectorIdentity, vectors: Mapping[int, NDArray[np.int32]]) -> CommitSummary:
        """Make vectors durable and visible at once as a new version; chunks that are gone by now are passed over."""
        ...


class Reranker(Protocol):
    """Scores candidates against the question by reading both together."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return one fixed-point score (2^-16) per passage, best candidates first, for as many as the time allows: a prefix."""
        ...


class Merger(Protocol):
    """Merges what the legs say of a candidate into one score by a fitted model."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def merge(self, features: Sequence[Sequence[int]]) -> Sequence[int]:
        """Return one fixed-point score (2^-16) per candidate; the features are those of `ranking.merging`."""
        ...


class QueryRewriter(Protocol):
    """Puts a question into words that are easier to search for; what it returns is recorded in the receipt."""

    def rewrite(self, query: str, turns: Sequence[Turn], *, budget_ms: int) -> Rewriting:
        """Return the question to search for, or the question itself with the reason; never raises for the model's sake."""
        ...


class ClaimScorer(Protocol):
    """Says how well passages support claims. Thread safe."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order; a claim it could not judge in time is unscored, with the reason."""
        ...


class GroundingJudge(Protocol):
    """Judges whether an output is grounded in its sources, by a model that reads both. Thread safe."""

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Return the judgement, or the status that says why there is none; never raises for the model's sake."""
        ...


class TablePlanner(Protocol):
    """Turns a question about tables into one read-only statement; what it returns passes the guard whoever wrote it."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its plans may."""
        ...

    def plan(self, question: str, tables: Sequence[OpenTable], *, budget_ms: int) -> TablePlan | PlanDeclined:
        """Return a plan over some of the tables, or why there is none; never raises for a model's sake."""
        ...


class TableEngine(Protocol):
    """Runs one read-only statement over tables, or refuses it. Thread safe."""

    def run(
        self,
        statement: str,
        parameters: Sequence[CellValue],
        *,
        tables: Sequence[OpenTable],
        limits: TableLimits,
        as_of: datetime | None = None,
    ) -> TableRows:
        """Return the rows, or raise StatementRefusedError; each table also has the column `__src`, and `as_of` is now."""
        ...


@runtime_checkable
class SupportsLayouts(Protocol):
    """Keeps what documents hold besides their text."""

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout of a live document; None where it has none."""
        ...

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has."""
        ...


class SourceTexts(Protocol):
    """Finds the text that a citation names."""

    def text_of(self, citation: str) -> str | None:
        """Return the text; None when it is not at hand."""
        ...


class PolicyStore(Protocol):
    """Keeps policies, every version they had, and who changed them."""

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, enabled or not, by priority and then name."""
        ...

    def find(self, name: str, *, tenant: str, version: int | None = None) -> StoredPolicy:
        """Return a policy by its id or name, the newest version by default, or raise NotFoundError."""
        ...

    def put(
        self, body: PolicyBody, *, tenant: str, by: str, policy_id: PolicyId | None = None, expected: int | None = None
    ) -> StoredPolicy:
        """Store a checked body as a new policy or as the next version of one; `expected` is the version that it replaces.

        Raises PolicyConflictError when another version is in force, or when a new policy's name is taken.
        """
        ...

    def remove(self, policy_id: PolicyId, *, tenant: str, by: str, expected: int | None = None) -> StoredPolicy:
        """Take a policy out of force; its versions stay readable."""
        ...

    def changes(self, *, tenant: str, after: int = 0, limit: int = 100) -> Sequence[PolicyChange]:
        """Return who changed what, oldest first."""
        ...


class AppendedEntries(Protocol):
    """What a log took with one `append`."""

    def records(self) -> Sequence[LogRecord]:
        """Return the entries with their seals, in order; what is still buffered is written first, or BaseStateError says why not."""
        ...


class DecisionLog(Protocol):
    """Keeps what runs recorded and what was decided, sealed record by record. Thread safe; appending never blocks on reading."""

    def append(self, entries: Sequence[LogEntry]) -> AppendedEntries:
        """Take entries in order; in durable mode they are on disk when this returns, or it raises BaseStateError."""
        ...

    def flush(self) -> None:
        """Wait until everything taken so far is written."""
        ...

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield records in order, of every process that wrote, those of this one included; each log's records come together."""
        ...

    def head(self) -> LogHead:
        """Return where this process's own log stands."""
        ...

    def close(self) -> None:
        """Write what is left and let go of the file."""
        ...


class GovernedRun(Protocol):
    """Decides about one run, call by call, and writes down what it decided. Thread safe."""

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        ...

    def record(self, call: AnyCall, *, text: str = "") -> Sequence[Verdict]:
        """Decide about a call; empty when everything passed. `text` is what a model or the agent said, for a judge to read."""
        ...

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Decide about the whole run and close it; `text` is its final output."""
        ...

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order."""
        ...


class Governor(Protocol):
    """Starts runs under the policies in force."""

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> GovernedRun:
        """Pin the policies in scope, those of the store and those given, and decide about the beginning."""
        ...


class AnswerLog(Protocol):
    """Writes down what policies said of an answer."""

    def write(
        self, facts: RunFacts, policies: Sequence[Policy], calls: Sequence[tuple[AnyCall, tuple[Verdict, ...], int]], *, is_enforced: bool
    ) -> Iterator[PolicyDecision]:
        """Write a whole run at once: who asked, each call with its verdicts and count, the end last; what was decided can be read."""
        ...


class OperationCalls(Protocol):
    """Asks a served base for its operations, by whichever protocol."""

    @property
    def host(self) -> str:
        """Return whom it speaks to, for messages."""
        ...

    async def call(
        self, operation: str, params: Mapping[str, object], kind: type[Answer], *, timeout_ms: int, is_repeatable: bool = False
    ) -> Answer:
        """Return the answer; faults come back as the errors that a local base raises.

        `params` are given by name. What `is_repeatable` may be asked once more where the way was broken.
        """
        ...

    def stream(self, operation: str, params: Mapping[str, object], *, timeout_ms: int) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of an answer as they come; `timeout_ms` is how long each may take."""
        ...

    def governor(self) -> Governor:
        """Return who governs runs there."""
        ...

    async def close(self) -> None:
        """Give back the connections."""
        ...
