"""Every setting, with its default and its bounds; `evidentia.toml` is this tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from evidentia.contracts.vocabulary import GovernanceMode, Similarity


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How documents are ingested."""

    chunk_chars: Annotated[int, msgspec.Meta(ge=200, le=100_000)] = 2_000
    """A chunk is closed at the first structural boundary after this many characters."""
    chunk_max_chars: Annotated[int, msgspec.Meta(ge=200, le=200_000)] = 4_000
    """No chunk is longer; a document this short stays whole."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1)] = 64 * 1024 * 1024
    """Larger files are skipped with a reason."""
    max_text_chars: Annotated[int, msgspec.Meta(ge=1)] = 50_000_000
    """More extracted text than this from one file is refused, which stops decompression bombs."""
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
    """How text is tokenised and stemmed."""

    language: str = "english"
    """The Snowball stemmer, or `none`."""


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Storage, locking and compaction of a base."""

    writer_wait_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long a second writer waits before it gives up."""
    keep_versions: Annotated[int, msgspec.Meta(ge=1)] = 10
    """How many versions `gc` leaves readable."""
    segments_per_size: Annotated[int, msgspec.Meta(ge=2, le=100)] = 4
    """Compaction: more segments than this of about the same size are merged at the end of an ingest."""


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lexical and dense scoring; part of `config_hash`."""

    weighting: Literal["bm25", "tfidf"] = "bm25"
    """BM25, or plain tf-idf."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """The idf of BM25: `lucene` is never negative, `robertson` is for terms in more than half of the documents."""
    k1_milli: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1_500
    """BM25's k1 (term-frequency saturation), in thousandths."""
    b_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 750
    """BM25's b (length normalisation), in thousandths."""
    max_query_chars: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 32_768
    """Longer queries are refused."""
    similarity: Similarity = Similarity.COSINE
    """The similarity of two vectors; `cosine` stores unit vectors, the others keep the length the encoder gives."""
    dense_index: Literal["exact", "hnsw"] = "exact"
    """How vectors are searched; `hnsw` needs the extra `hnsw`, may miss a better fragment, and the answer says so."""


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The encoder (embedding model)."""

    encoder: Literal["packaged", "folder", "endpoint", "none"] = "packaged"
    """The packaged all-MiniLM-L6-v2, a folder with an ONNX encoder, an OpenAI-compatible embeddings endpoint, or no vectors."""
    folder: str = ""
    """The folder with `model.onnx` and `tokenizer.json`; a relative path starts at the base."""
    query_folder: str = ""
    """A second folder with a separate encoder for queries."""
    endpoint: str = ""
    """The address of the embeddings endpoint, up to and including `/v1`."""
    model: str = ""
    """The model to ask the endpoint for."""
    dimension: Annotated[int, msgspec.Meta(ge=0, le=8_192)] = 0
    """The dimension the endpoint's vectors have; it has to be stated for an endpoint."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the endpoint's key; the key itself is never stored."""
    threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    """Encoder threads; 0 is one per processor."""
    batch_chunks: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_024
    """How many vectors become durable in one commit."""


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where models run."""

    isolate: tuple[Literal["encoder", "reranker"], ...] = ()
    """Models that run in a process of their own while they answer requests: one that crashes or never lets go of the interpreter
    then holds up no answer."""


class QuerySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Query understanding; part of `config_hash`."""

    context: bool = True
    """Conversational queries: a follow-up question takes its subject from the earlier turns."""
    normalise: bool = True
    """Unicode forms, dashes, quotes and spacing are normalised."""
    spelling: bool = True
    """A word that occurs nowhere is also searched as the nearest one that does."""
    abbreviations: bool = False
    """Abbreviation expansion: short and long forms that the corpus itself explains are searched together."""
    synonyms: str = ""
    """A file of synonyms, one group per line, separated by commas; `a => b, c` works one way. A relative path starts at the base."""
    decompose: bool = True
    """Query decomposition: compound questions and comparisons are also searched part by part."""
    rewriter: str = ""
    """The model that rewrites questions through the endpoint of `[llm]`; empty for none."""


class RankingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fusion, signals and reranking; part of `config_hash`."""

    candidates: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """Candidates per leg (lexical, dense); the limit of the request if that is higher."""
    lexical_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 520
    """The weight of lexical scores in linear fusion, in thousandths; dense scores have the rest."""
    weights: Literal["fixed", "by_query"] = "fixed"
    """Whether that weight is fixed or predicted for each query by the fitted model."""
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
    """Selection of external sources and limits on their replies; part of `config_hash`."""

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
    """Fan-out to external sources: threads, timeouts and circuit breakers."""

    blocking_threads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """Bulkhead: at most this many threads per blocking source; while all are busy the source is skipped."""
    background_ms: Annotated[int, msgspec.Meta(ge=0)] = 5_000
    """How long a call may continue after its caller timed out, so that its response still reaches the cache."""
    background_calls: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 16
    """At most this many such background calls per source."""
    breaker_failures: Annotated[int, msgspec.Meta(ge=1)] = 5
    """The circuit breaker of a source opens after this many failures in a row."""
    breaker_open_ms: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """How long the circuit breaker stays open at first; it doubles with each further failure, up to 32 times as long."""


class CacheSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cache of source responses."""

    enabled: bool = True
    """Whether responses of external sources are cached."""
    semantic: bool = False
    """Semantic cache: candidates cached for a similar question are used and ranked anew. It saves calls and may miss candidates."""
    similarity_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 950
    """The minimum cosine similarity of two questions for the semantic cache, in thousandths."""
    session_ttl_s: Annotated[int, msgspec.Meta(ge=1)] = 3_600
    """TTL of the session tier."""
    global_ttl_s: Annotated[int, msgspec.Meta(ge=1)] = 86_400
    """TTL of the global tier."""
    stale_ttl_s: Annotated[int, msgspec.Meta(ge=0)] = 604_800
    """Stale-if-error: how long an expired entry may replace a source that fails, marked as stale."""
    most_entries: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """The maximum number of entries; the least recently used go first (LRU)."""
    warm: tuple[str, ...] = ()
    """Questions that `evidentia cache warm` precomputes."""


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Traces, metrics and logs of requests; never their content."""

    traces: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1_000
    """How many request traces a base stores for `evidentia trace`; 0 for none."""
    opentelemetry: bool = False
    """Whether spans are exported to OpenTelemetry; needs the extra `otel`."""
    metrics: bool = False
    """Whether Prometheus metrics are counted; needs the extra `otel`."""
    logs: bool = False
    """Whether every request is logged as one line: under `serve` to stderr, elsewhere to the logger `evidentia.requests`."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What a server logs at least: `warning` leaves out requests that were answered, `debug` adds probes of its health."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """How a server writes its lines: `auto` is text on a terminal and JSON anywhere else."""


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text-to-SQL over tables."""

    planner: str = ""
    """The LLM that plans an SQL statement when the rules decline, through the endpoint of `[llm]`; empty for none."""
    budget_ms: int = 2_000
    """The time limit of planning, and again of execution."""


class LlmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The OpenAI-compatible endpoint of the LLM."""

    endpoint: str = ""
    """Its address, up to and including `/v1`."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds its key; the key itself is never stored."""


class OutboundSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS and proxy of every connection to others: served bases, sources, MCP servers and model endpoints."""

    authorities: str = ""
    """A file or folder of certificate authorities (PEM) that are trusted, and no others; empty for `SSL_CERT_FILE`, `SSL_CERT_DIR`, or
    the list of the system. A relative path starts at the base."""
    certificate: str = ""
    """The file of the client certificate that is shown to servers that ask for one (mTLS)."""
    private_key: str = ""
    """The file of its key, unencrypted; empty when it is in the file of the certificate."""
    proxy: str = ""
    """A forward proxy, such as `http://proxy.internal:3128`; proxies of the environment are not used, and this machine never goes by it."""
    proxy_key_variable: str = ""
    """The environment variable that holds `name:password` for the proxy, which is then at an https address or on this machine."""
    no_proxy: tuple[str, ...] = ()
    """Hosts that are reached without the proxy; `.internal` stands for all below it."""


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signed tokens (JWT) of an identity provider; they are accepted once `keys` is set."""

    keys: str = ""
    """A file beside the settings with the provider's public keys: a JWK set, or PEM; empty accepts no such tokens."""
    issuer: str = ""
    """The required issuer (`iss`)."""
    audience: str = ""
    """The required audience (`aud`)."""
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    """The accepted signature algorithms."""
    leeway_s: Annotated[int, msgspec.Meta(ge=0, le=600)] = 30
    """The accepted clock skew of the provider."""
    principal_claim: str = "sub"
    """The claim that names the principal."""
    tenant_claim: str = "tenant"
    """The claim that names the tenant; a token without it is refused."""
    roles_claim: str = "roles"
    """The claim that lists roles: reader, agent, auditor, admin; other words are ignored."""
    groups_claim: str = "groups"
    """The claim that lists groups."""
    clearance_claim: str = "clearance"
    """The claim with the clearance of the principal; without it `public`."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts, TLS, limits and authentication of `evidentia serve`."""

    hosts: tuple[str, ...] = ()
    """Accepted `Host` names besides those of this machine; requests for others are refused."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of trusted reverse proxies that end TLS: from them, `X-Forwarded-Proto` and `X-Forwarded-For` are believed."""
    certificate: str = ""
    """The file of the TLS certificate chain; empty serves without TLS."""
    private_key: str = ""
    """The file of its key."""
    client_certificates: str = ""
    """A file of certificate authorities; clients then need a certificate of one of them (mTLS)."""
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 6_000
    """The rate limit of a token without its own; 0 for no limit."""
    requests_per_day: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The quota of a token that has none of its own; 0 for none."""
    request_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300
    """The timeout of a request, its body included."""
    most_connections: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1_000
    """The maximum number of open connections; more get 503 with `retry-after`."""
    address_percent: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    """The share of `most_connections` that one address may hold; behind a reverse proxy, 100."""
    share_percent: Annotated[int, msgspec.Meta(ge=1, le=100)] = 25
    """The share of each pool (requests, their bytes, worker threads, streams, MCP sessions, open runs) that one token may hold."""
    session_s: Annotated[int, msgspec.Meta(ge=60, le=30 * 86_400)] = 43_200
    """The lifetime of a dashboard session."""
    source_hosts: tuple[str, ...] = ()
    """SSRF allowlist: internal hosts that a source registered over the network may connect to."""
    jwt: JwtSettings = JwtSettings()
    """A table of its own, `[server.jwt]`."""


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one request may cost; one that may hold more is refused before any work."""

    request_mb: Annotated[int, msgspec.Meta(ge=16, le=1 << 20)] = 4_096
    """The memory that a request of this process may hold at most, as estimated from its fields, in megabytes."""
    served_request_mb: Annotated[int, msgspec.Meta(ge=16, le=1 << 20)] = 96
    """The same for requests to a server: of each, and of all that one caller has open at a time; a token may have less."""
    ingest_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 240
    """How long one ingest over the network may read; what is not read by then is skipped with a reason."""
    ingests: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    """How many tenants may ingest over the network at a time; each tenant has one turn at a time, with `ingest.readers` processes."""


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attribute rules (ABAC), beyond tenant, clearance and ACL; part of `config_hash`."""

    rules: tuple[str, ...] = ()
    """Filters every document has to pass for a caller; `"$caller.NAME"` stands for the caller's attribute, and its absence denies."""


class GovernanceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The governance floor: the least that policies do to what is handed out, whatever a request asks for; the strictest applies."""

    floor: GovernanceMode = GovernanceMode.OFF
    """The floor of the base: `off` leaves it to each request, then `annotate`, `filter` and `enforce`."""
    tenants: Mapping[str, GovernanceMode] = msgspec.field(default_factory=dict)
    """The floors of tenants, by name."""
    agents: Mapping[str, GovernanceMode] = msgspec.field(default_factory=dict)
    """The floors of agents, by name; a name may be a pattern such as `support-*`."""
    any_agent: bool = False
    """Whether a token that lists no agents may name any agent where a floor is set; otherwise the agent has the token's name."""
    binds_owner: bool = False
    """Whether the floor also binds the local owner, who opens the base in a process of their own."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a base."""

    ingest: IngestSettings = IngestSettings()
    text: TextSettings = TextSettings()
    search: SearchSettings = SearchSettings()
    access: AccessSettings = AccessSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    models: ModelSettings = ModelSettings()
    query: QuerySettings = QuerySettings()
    ranking: RankingSettings = RankingSettings()
    tables: TableSettings = TableSettings()
    llm: LlmSettings = LlmSettings()
    outbound: OutboundSettings = OutboundSettings()
    sources: SourceSettings = SourceSettings()
    fanout: FanoutSettings = FanoutSettings()
    cache: CacheSettings = CacheSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    governance: GovernanceSettings = GovernanceSettings()
    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    storage: StorageSettings = StorageSettings()
