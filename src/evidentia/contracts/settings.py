"""Every setting, with its default and its bounds; `evidentia.toml` is this tree."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from evidentia.contracts.vocabulary import Similarity


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How material comes in."""

    chunk_chars: Annotated[int, msgspec.Meta(ge=200, le=100_000)] = 2_000
    """A chunk is closed at the first structural boundary after this many characters."""
    chunk_max_chars: Annotated[int, msgspec.Meta(ge=200, le=200_000)] = 4_000
    """No chunk is longer; a document this short stays whole."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1)] = 64 * 1024 * 1024
    """Larger files are skipped with a reason."""
    max_text_chars: Annotated[int, msgspec.Meta(ge=1)] = 50_000_000
    """More extracted text than this from one file is refused, which stops archives that unfold without end."""
    batch_documents: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 5_000
    """At most this many documents become durable in one commit."""
    batch_bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 * 1024 * 1024
    """A commit is also made when this much text has gathered."""
    readers: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
    """Processes that read PDF and office files; 0 reads them in the calling process."""
    reader_timeout_s: Annotated[int, msgspec.Meta(ge=1)] = 60
    """A file that takes longer to read is skipped with a reason."""
    reader_memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 2_048
    """A reader process that needs more memory than this is stopped and its file skipped."""
    ignore: tuple[str, ...] = ()
    """Patterns in the manner of .gitignore, besides the built-in ones and the .gitignore and .evidentiaignore files found."""


class TextSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How text becomes terms."""

    language: str = "english"
    """The Snowball stemmer, or `none`."""


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a base keeps what it holds."""

    writer_wait_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long a second writer waits before it gives up."""
    keep_versions: Annotated[int, msgspec.Meta(ge=1)] = 10
    """How many versions `gc` leaves readable."""
    segments_per_size: Annotated[int, msgspec.Meta(ge=2, le=100)] = 4
    """More segments than this of about the same size are merged at the end of an ingest."""


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How terms become scores; part of `config_hash`."""

    weighting: Literal["bm25", "tfidf"] = "bm25"
    """BM25, or plain tf-idf."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """The idf of BM25: `lucene` is never negative, `robertson` is for terms in more than half of the documents."""
    k1_milli: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1_500
    """BM25's k1 in thousandths: how soon more occurrences stop counting."""
    b_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 750
    """BM25's b in thousandths: how much long passages are discounted."""
    max_query_chars: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 32_768
    """Longer queries are refused."""
    similarity: Similarity = Similarity.COSINE
    """How near two vectors are; `cosine` stores unit vectors, the others keep the length the encoder gives."""
    dense_index: Literal["exact", "hnsw"] = "exact"
    """How vectors are searched; `hnsw` needs the extra `hnsw`, may miss a better fragment, and the answer says so."""


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What turns text into vectors."""

    encoder: Literal["packaged", "folder", "endpoint", "none"] = "packaged"
    """The packaged all-MiniLM-L6-v2, a folder with an ONNX encoder, an OpenAI-compatible embeddings endpoint, or no vectors."""
    folder: str = ""
    """The folder with `model.onnx` and `tokenizer.json`; a relative path starts at the base."""
    query_folder: str = ""
    """A second folder where questions have an encoder of their own."""
    endpoint: str = ""
    """The address of the embeddings endpoint, up to and including `/v1`."""
    model: str = ""
    """The model to ask the endpoint for."""
    dimension: Annotated[int, msgspec.Meta(ge=0, le=8_192)] = 0
    """The dimension the endpoint's vectors have; it has to be stated for an endpoint."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the endpoint's key; the key itself is never stored."""
    threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    """How many texts are encoded at a time; 0 is one per processor."""
    batch_chunks: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_024
    """How many vectors become durable in one commit."""


class QuerySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a question is understood; part of `config_hash`."""

    context: bool = True
    """A question that leans on the conversation takes its subject from the earlier turns."""
    normalise: bool = True
    """Unicode forms, dashes, quotes and spacing are made alike."""
    spelling: bool = True
    """A word that occurs nowhere is also searched as the nearest one that does."""
    abbreviations: bool = False
    """Short and long forms that the corpus itself explains are searched together."""
    synonyms: str = ""
    """A file of synonyms, one group per line, separated by commas; `a => b, c` works one way. A relative path starts at the base."""
    decompose: bool = False
    """Compound questions and comparisons are also searched part by part."""
    rewriter: str = ""
    """The model that rewrites questions through the endpoint of `[llm]`; empty for none."""


class RankingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How found fragments become an order; part of `config_hash`."""

    candidates: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """How many fragments each leg proposes, or as many as the request asks for if that is more."""
    lexical_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 520
    """The words' share in linear fusion, in thousandths; the vectors have the rest."""
    weights: Literal["fixed", "by_query"] = "fixed"
    """Whether that share is the same for every question or predicted from the question by the fitted model."""
    rrf_kappa: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 60
    """The constant of reciprocal rank fusion."""
    freshness_log_h: Annotated[int, msgspec.Meta(ge=1)] = 24
    """After this many hours the freshness of a log has fallen to 1/e."""
    freshness_documentation_h: Annotated[int, msgspec.Meta(ge=1)] = 30 * 24
    """The same for documentation and runbooks."""
    freshness_canonical_h: Annotated[int, msgspec.Meta(ge=1)] = 365 * 24
    """The same for whatever is canonical."""
    freshness_other_h: Annotated[int, msgspec.Meta(ge=1)] = 90 * 24
    """The same for everything else."""
    reranker: str = ""
    """A folder with an ONNX cross-encoder; empty for none. A relative path starts at the base."""
    rerank_candidates: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50
    """At most this many candidates are reranked, best first, as far as the time allows."""
    merging_model: str = ""
    """A model file for `fusion = learned`, fitted on judged questions; needs the extra `learned`."""


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of sources outside the base, and how much of it is taken; part of `config_hash`."""

    most_per_part: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 3
    """At most this many sources are asked per part of a question, unless the request names another number or the sources."""
    most_candidates: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """More candidates than this from one source are not read."""
    most_chars: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 20_000
    """A candidate's content is cut after this many characters, and says so."""
    most_reply_chars: Annotated[int, msgspec.Meta(ge=1)] = 2_000_000
    """A source's reply is not read any further after this many characters."""
    stop_confidence_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 850
    """With `early_stop`: enough has come when every fragment of the answer is this likely to be relevant, in thousandths."""
    stop_gain_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 20
    """With `early_stop`: enough has come when the last source added less than this to the sum of their probabilities."""


class FanoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How sources outside the base are asked."""

    blocking_threads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """At most this many threads are given to one source that blocks; when all are taken it is not asked."""
    background_ms: Annotated[int, msgspec.Meta(ge=0)] = 5_000
    """How long a source that is late for its caller may go on, so that the next caller finds its answer kept."""
    background_calls: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 16
    """At most this many calls of one source go on after their callers left."""
    breaker_failures: Annotated[int, msgspec.Meta(ge=1)] = 5
    """After so many failures in a row a source is not asked for a while."""
    breaker_open_ms: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """How long that is at first; it doubles every time the source fails again, up to 32 times as long."""


class CacheSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of what sources outside the base said."""

    enabled: bool = True
    """Whether anything is kept."""
    semantic: bool = False
    """Whether candidates found for a similar question are used for this one, ranked anew. It spares calls and may miss something."""
    similarity_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 950
    """How alike two questions are, by the cosine of their vectors in thousandths, for that."""
    session_ttl_s: Annotated[int, msgspec.Meta(ge=1)] = 3_600
    """How long what was found in a session is kept."""
    global_ttl_s: Annotated[int, msgspec.Meta(ge=1)] = 86_400
    """How long what was found outside a session is kept."""
    stale_ttl_s: Annotated[int, msgspec.Meta(ge=0)] = 604_800
    """For how long after that it may stand in, marked as stale, where a source gives no answer."""
    most_entries: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """More entries than this are not kept; the ones that were not used for longest go first."""
    warm: tuple[str, ...] = ()
    """Questions that `evidentia cache warm` asks ahead of time."""


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told about requests; never their content."""

    traces: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1_000
    """How many requests are remembered for `evidentia trace`; 0 for none."""
    opentelemetry: bool = False
    """Whether spans are given to OpenTelemetry; needs the extra `otel`."""
    metrics: bool = False
    """Whether Prometheus metrics are counted; needs the extra `otel`."""
    logs: bool = False
    """Whether every request is logged as one line of JSON, to the logger `evidentia.requests`."""


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How questions about tables are answered."""

    planner: str = ""
    """The model that plans a statement where the rules decline to, through the endpoint of `[llm]`; empty for none."""
    budget_ms: int = 2_000
    """How long planning, and then running, may take."""


class LlmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An OpenAI-compatible endpoint for what a language model does here."""

    endpoint: str = ""
    """Its address, up to and including `/v1`."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds its key; the key itself is never stored."""


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signed tokens of an identity provider, beside the base's own; they are taken once keys are named."""

    keys: str = ""
    """A file beside the settings with the provider's public keys: a JWK set, or PEM; empty takes no such tokens."""
    issuer: str = ""
    """Who has to have signed (`iss`)."""
    audience: str = ""
    """For whom it has to be (`aud`)."""
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    """What a signature may be made with."""
    leeway_s: Annotated[int, msgspec.Meta(ge=0, le=600)] = 30
    """How far the provider's clock may be off."""
    principal_claim: str = "sub"
    """The claim that names the principal."""
    tenant_claim: str = "tenant"
    """The claim that names the tenant; a token without it is refused."""
    roles_claim: str = "roles"
    """The claim that lists roles: reader, agent, auditor, admin; other words are passed over."""
    groups_claim: str = "groups"
    """The claim that lists groups."""
    clearance_claim: str = "clearance"
    """The claim that says how far the principal is cleared; without it `public`."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `evidentia serve` treats those who come over the network."""

    hosts: tuple[str, ...] = ()
    """Names under which the server is reached beside this machine's own; requests for others are refused."""
    certificate: str = ""
    """The file of the TLS certificate chain; empty serves in the clear."""
    private_key: str = ""
    """The file of its key."""
    client_certificates: str = ""
    """A file of authorities; clients then have to show a certificate that one of them signed."""
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 6_000
    """What a token may ask that has no limit of its own; 0 for as much as it likes."""
    requests_per_day: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The quota of a token that has none of its own; 0 for none."""
    request_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300
    """How long a request may take, its body included, before it is given up."""
    most_connections: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1_000
    """More at once are told to come back."""
    session_s: Annotated[int, msgspec.Meta(ge=60, le=30 * 86_400)] = 43_200
    """How long somebody stays signed in to the dashboard."""
    source_hosts: tuple[str, ...] = ()
    """Hosts of this network that a source registered over the network may be at."""
    jwt: JwtSettings = JwtSettings()
    """A table of its own, `[server.jwt]`."""


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may see what, beyond tenant, clearance and ACL; part of `config_hash`."""

    rules: tuple[str, ...] = ()
    """Filters every document has to pass for a caller; `"$caller.NAME"` stands for the caller's attribute, and its absence denies."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a base."""

    ingest: IngestSettings = IngestSettings()
    text: TextSettings = TextSettings()
    search: SearchSettings = SearchSettings()
    access: AccessSettings = AccessSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    query: QuerySettings = QuerySettings()
    ranking: RankingSettings = RankingSettings()
    tables: TableSettings = TableSettings()
    llm: LlmSettings = LlmSettings()
    sources: SourceSettings = SourceSettings()
    fanout: FanoutSettings = FanoutSettings()
    cache: CacheSettings = CacheSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    server: ServerSettings = ServerSettings()
    storage: StorageSettings = StorageSettings()
