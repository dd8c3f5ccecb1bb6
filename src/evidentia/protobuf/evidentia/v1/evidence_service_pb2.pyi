from evidentia.protobuf.evidentia.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddSourceRequest(_message.Message):
    __slots__ = ("source_id", "source_type", "schema", "authority_tier", "freshness_sla_s", "latency_tier", "access_policy", "query_capabilities", "cost_per_query_micros", "max_qps", "version", "connection", "expected_p99_ms", "freshness_tau_s", "weight_milli")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_SLA_S_FIELD_NUMBER: _ClassVar[int]
    LATENCY_TIER_FIELD_NUMBER: _ClassVar[int]
    ACCESS_POLICY_FIELD_NUMBER: _ClassVar[int]
    QUERY_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    COST_PER_QUERY_MICROS_FIELD_NUMBER: _ClassVar[int]
    MAX_QPS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_P99_MS_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_TAU_S_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_MILLI_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    source_type: _types_pb2.SourceType
    schema: _types_pb2.SchemaDefinition
    authority_tier: _types_pb2.AuthorityTier
    freshness_sla_s: int
    latency_tier: _types_pb2.LatencyTier
    access_policy: _types_pb2.SourceAccessPolicy
    query_capabilities: _types_pb2.QueryCapabilityList
    cost_per_query_micros: int
    max_qps: int
    version: str
    connection: _types_pb2.SourceConnection
    expected_p99_ms: int
    freshness_tau_s: int
    weight_milli: int
    def __init__(self, source_id: _Optional[str] = ..., source_type: _Optional[_Union[_types_pb2.SourceType, str]] = ..., schema: _Optional[_Union[_types_pb2.SchemaDefinition, _Mapping[str, object]]] = ..., authority_tier: _Optional[_Union[_types_pb2.AuthorityTier, str]] = ..., freshness_sla_s: _Optional[int] = ..., latency_tier: _Optional[_Union[_types_pb2.LatencyTier, str]] = ..., access_policy: _Optional[_Union[_types_pb2.SourceAccessPolicy, _Mapping[str, object]]] = ..., query_capabilities: _Optional[_Union[_types_pb2.QueryCapabilityList, _Mapping[str, object]]] = ..., cost_per_query_micros: _Optional[int] = ..., max_qps: _Optional[int] = ..., version: _Optional[str] = ..., connection: _Optional[_Union[_types_pb2.SourceConnection, _Mapping[str, object]]] = ..., expected_p99_ms: _Optional[int] = ..., freshness_tau_s: _Optional[int] = ..., weight_milli: _Optional[int] = ...) -> None: ...

class AddSourceResponse(_message.Message):
    __slots__ = ("source_descriptor",)
    SOURCE_DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    source_descriptor: _types_pb2.SourceDescriptor
    def __init__(self, source_descriptor: _Optional[_Union[_types_pb2.SourceDescriptor, _Mapping[str, object]]] = ...) -> None: ...

class AskTablesRequest(_message.Message):
    __slots__ = ("question", "limit")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    question: str
    limit: int
    def __init__(self, question: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class AskTablesResponse(_message.Message):
    __slots__ = ("table_answer",)
    TABLE_ANSWER_FIELD_NUMBER: _ClassVar[int]
    table_answer: _types_pb2.TableAnswer
    def __init__(self, table_answer: _Optional[_Union[_types_pb2.TableAnswer, _Mapping[str, object]]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: str
    def __init__(self, chunk: _Optional[str] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("fragment_export",)
    FRAGMENT_EXPORT_FIELD_NUMBER: _ClassVar[int]
    fragment_export: _types_pb2.FragmentExport
    def __init__(self, fragment_export: _Optional[_Union[_types_pb2.FragmentExport, _Mapping[str, object]]] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("note_ids",)
    NOTE_IDS_FIELD_NUMBER: _ClassVar[int]
    note_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, note_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: _types_pb2.Count
    def __init__(self, count: _Optional[_Union[_types_pb2.Count, _Mapping[str, object]]] = ...) -> None: ...

class IngestRequest(_message.Message):
    __slots__ = ("documents", "files", "source", "authority", "classification", "acl", "tags", "embed")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    EMBED_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[_types_pb2.SentDocument]
    files: _containers.RepeatedCompositeFieldContainer[_types_pb2.SentFile]
    source: str
    authority: _types_pb2.AuthorityTier
    classification: _types_pb2.Classification
    acl: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    embed: bool
    def __init__(self, documents: _Optional[_Iterable[_Union[_types_pb2.SentDocument, _Mapping[str, object]]]] = ..., files: _Optional[_Iterable[_Union[_types_pb2.SentFile, _Mapping[str, object]]]] = ..., source: _Optional[str] = ..., authority: _Optional[_Union[_types_pb2.AuthorityTier, str]] = ..., classification: _Optional[_Union[_types_pb2.Classification, str]] = ..., acl: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., embed: bool = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("ingest_report",)
    INGEST_REPORT_FIELD_NUMBER: _ClassVar[int]
    ingest_report: _types_pb2.IngestReport
    def __init__(self, ingest_report: _Optional[_Union[_types_pb2.IngestReport, _Mapping[str, object]]] = ...) -> None: ...

class ListChunksRequest(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: str
    def __init__(self, document: _Optional[str] = ...) -> None: ...

class ListChunksResponse(_message.Message):
    __slots__ = ("chunk_list",)
    CHUNK_LIST_FIELD_NUMBER: _ClassVar[int]
    chunk_list: _types_pb2.ChunkList
    def __init__(self, chunk_list: _Optional[_Union[_types_pb2.ChunkList, _Mapping[str, object]]] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("cursor", "limit")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    limit: int
    def __init__(self, cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("document_page",)
    DOCUMENT_PAGE_FIELD_NUMBER: _ClassVar[int]
    document_page: _types_pb2.DocumentPage
    def __init__(self, document_page: _Optional[_Union[_types_pb2.DocumentPage, _Mapping[str, object]]] = ...) -> None: ...

class ListFreshnessRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListFreshnessResponse(_message.Message):
    __slots__ = ("freshness_list",)
    FRESHNESS_LIST_FIELD_NUMBER: _ClassVar[int]
    freshness_list: _types_pb2.FreshnessList
    def __init__(self, freshness_list: _Optional[_Union[_types_pb2.FreshnessList, _Mapping[str, object]]] = ...) -> None: ...

class ListNotesRequest(_message.Message):
    __slots__ = ("agent", "session")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    agent: str
    session: str
    def __init__(self, agent: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class ListNotesResponse(_message.Message):
    __slots__ = ("note_list",)
    NOTE_LIST_FIELD_NUMBER: _ClassVar[int]
    note_list: _types_pb2.NoteList
    def __init__(self, note_list: _Optional[_Union[_types_pb2.NoteList, _Mapping[str, object]]] = ...) -> None: ...

class ListSourcesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSourcesResponse(_message.Message):
    __slots__ = ("source_list",)
    SOURCE_LIST_FIELD_NUMBER: _ClassVar[int]
    source_list: _types_pb2.SourceList
    def __init__(self, source_list: _Optional[_Union[_types_pb2.SourceList, _Mapping[str, object]]] = ...) -> None: ...

class ListTablesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTablesResponse(_message.Message):
    __slots__ = ("table_list",)
    TABLE_LIST_FIELD_NUMBER: _ClassVar[int]
    table_list: _types_pb2.TableList
    def __init__(self, table_list: _Optional[_Union[_types_pb2.TableList, _Mapping[str, object]]] = ...) -> None: ...

class OpenTableRequest(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: str
    def __init__(self, table: _Optional[str] = ...) -> None: ...

class OpenTableResponse(_message.Message):
    __slots__ = ("open_table",)
    OPEN_TABLE_FIELD_NUMBER: _ClassVar[int]
    open_table: _types_pb2.OpenTable
    def __init__(self, open_table: _Optional[_Union[_types_pb2.OpenTable, _Mapping[str, object]]] = ...) -> None: ...

class RememberRequest(_message.Message):
    __slots__ = ("text", "title", "agent", "session", "authority", "ttl_s")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    text: str
    title: str
    agent: str
    session: str
    authority: _types_pb2.AuthorityTier
    ttl_s: int
    def __init__(self, text: _Optional[str] = ..., title: _Optional[str] = ..., agent: _Optional[str] = ..., session: _Optional[str] = ..., authority: _Optional[_Union[_types_pb2.AuthorityTier, str]] = ..., ttl_s: _Optional[int] = ...) -> None: ...

class RememberResponse(_message.Message):
    __slots__ = ("note",)
    NOTE_FIELD_NUMBER: _ClassVar[int]
    note: _types_pb2.Note
    def __init__(self, note: _Optional[_Union[_types_pb2.Note, _Mapping[str, object]]] = ...) -> None: ...

class RemoveDocumentsRequest(_message.Message):
    __slots__ = ("document_ids",)
    DOCUMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    document_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, document_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class RemoveDocumentsResponse(_message.Message):
    __slots__ = ("commit_summary",)
    COMMIT_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    commit_summary: _types_pb2.CommitSummary
    def __init__(self, commit_summary: _Optional[_Union[_types_pb2.CommitSummary, _Mapping[str, object]]] = ...) -> None: ...

class RemoveSourceRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RemoveSourceResponse(_message.Message):
    __slots__ = ("done",)
    DONE_FIELD_NUMBER: _ClassVar[int]
    done: _types_pb2.Done
    def __init__(self, done: _Optional[_Union[_types_pb2.Done, _Mapping[str, object]]] = ...) -> None: ...

class ReplayRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ReplayResponse(_message.Message):
    __slots__ = ("replay_report",)
    REPLAY_REPORT_FIELD_NUMBER: _ClassVar[int]
    replay_report: _types_pb2.ReplayReport
    def __init__(self, replay_report: _Optional[_Union[_types_pb2.ReplayReport, _Mapping[str, object]]] = ...) -> None: ...

class RetrieveRequest(_message.Message):
    __slots__ = ("query", "source_policy", "token_budget", "latency_deadline_ms", "ranking_weights", "diversity_constraint", "provenance_required", "session_context", "as_of", "corpus_version", "evidence_state", "principal", "agent_name", "turns", "task", "time_window", "filter", "facets", "mode", "fusion", "limit", "cost_budget_micros", "max_staleness_ms", "governance", "explain", "without", "early_stop", "rerank", "tokenizer", "receipt", "on_timeout")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_POLICY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    LATENCY_DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    RANKING_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DIVERSITY_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SESSION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TIME_WINDOW_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FUSION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    COST_BUDGET_MICROS_FIELD_NUMBER: _ClassVar[int]
    MAX_STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
    GOVERNANCE_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    EARLY_STOP_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ON_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    query: _types_pb2.DecomposedQueryOrText
    source_policy: _types_pb2.SourcePolicy
    token_budget: int
    latency_deadline_ms: int
    ranking_weights: _types_pb2.RankingWeights
    diversity_constraint: float
    provenance_required: bool
    session_context: str
    as_of: str
    corpus_version: str
    evidence_state: str
    principal: _types_pb2.Principal
    agent_name: str
    turns: _containers.RepeatedCompositeFieldContainer[_types_pb2.Turn]
    task: _types_pb2.Task
    time_window: _types_pb2.TimeWindow
    filter: _types_pb2.PredicateOrText
    facets: _containers.RepeatedScalarFieldContainer[str]
    mode: _types_pb2.RetrievalMode
    fusion: _types_pb2.FusionMethod
    limit: int
    cost_budget_micros: int
    max_staleness_ms: int
    governance: _types_pb2.GovernanceMode
    explain: bool
    without: _containers.RepeatedScalarFieldContainer[_types_pb2.QueryStepName]
    early_stop: bool
    rerank: bool
    tokenizer: str
    receipt: bool
    on_timeout: _types_pb2.OnTimeout
    def __init__(self, query: _Optional[_Union[_types_pb2.DecomposedQueryOrText, _Mapping[str, object]]] = ..., source_policy: _Optional[_Union[_types_pb2.SourcePolicy, _Mapping[str, object]]] = ..., token_budget: _Optional[int] = ..., latency_deadline_ms: _Optional[int] = ..., ranking_weights: _Optional[_Union[_types_pb2.RankingWeights, _Mapping[str, object]]] = ..., diversity_constraint: _Optional[float] = ..., provenance_required: bool = ..., session_context: _Optional[str] = ..., as_of: _Optional[str] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., principal: _Optional[_Union[_types_pb2.Principal, _Mapping[str, object]]] = ..., agent_name: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[_types_pb2.Turn, _Mapping[str, object]]]] = ..., task: _Optional[_Union[_types_pb2.Task, _Mapping[str, object]]] = ..., time_window: _Optional[_Union[_types_pb2.TimeWindow, _Mapping[str, object]]] = ..., filter: _Optional[_Union[_types_pb2.PredicateOrText, _Mapping[str, object]]] = ..., facets: _Optional[_Iterable[str]] = ..., mode: _Optional[_Union[_types_pb2.RetrievalMode, str]] = ..., fusion: _Optional[_Union[_types_pb2.FusionMethod, str]] = ..., limit: _Optional[int] = ..., cost_budget_micros: _Optional[int] = ..., max_staleness_ms: _Optional[int] = ..., governance: _Optional[_Union[_types_pb2.GovernanceMode, str]] = ..., explain: bool = ..., without: _Optional[_Iterable[_Union[_types_pb2.QueryStepName, str]]] = ..., early_stop: bool = ..., rerank: bool = ..., tokenizer: _Optional[str] = ..., receipt: bool = ..., on_timeout: _Optional[_Union[_types_pb2.OnTimeout, str]] = ...) -> None: ...

class RetrieveResponse(_message.Message):
    __slots__ = ("evidence_response",)
    EVIDENCE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    evidence_response: _types_pb2.EvidenceResponse
    def __init__(self, evidence_response: _Optional[_Union[_types_pb2.EvidenceResponse, _Mapping[str, object]]] = ...) -> None: ...

class RetrieveStreamRequest(_message.Message):
    __slots__ = ("query", "source_policy", "token_budget", "latency_deadline_ms", "ranking_weights", "diversity_constraint", "provenance_required", "session_context", "as_of", "corpus_version", "evidence_state", "principal", "agent_name", "turns", "task", "time_window", "filter", "facets", "mode", "fusion", "limit", "cost_budget_micros", "max_staleness_ms", "governance", "explain", "without", "early_stop", "rerank", "tokenizer", "receipt", "on_timeout")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_POLICY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    LATENCY_DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    RANKING_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DIVERSITY_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SESSION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TIME_WINDOW_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FUSION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    COST_BUDGET_MICROS_FIELD_NUMBER: _ClassVar[int]
    MAX_STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
    GOVERNANCE_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    EARLY_STOP_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ON_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    query: _types_pb2.DecomposedQueryOrText
    source_policy: _types_pb2.SourcePolicy
    token_budget: int
    latency_deadline_ms: int
    ranking_weights: _types_pb2.RankingWeights
    diversity_constraint: float
    provenance_required: bool
    session_context: str
    as_of: str
    corpus_version: str
    evidence_state: str
    principal: _types_pb2.Principal
    agent_name: str
    turns: _containers.RepeatedCompositeFieldContainer[_types_pb2.Turn]
    task: _types_pb2.Task
    time_window: _types_pb2.TimeWindow
    filter: _types_pb2.PredicateOrText
    facets: _containers.RepeatedScalarFieldContainer[str]
    mode: _types_pb2.RetrievalMode
    fusion: _types_pb2.FusionMethod
    limit: int
    cost_budget_micros: int
    max_staleness_ms: int
    governance: _types_pb2.GovernanceMode
    explain: bool
    without: _containers.RepeatedScalarFieldContainer[_types_pb2.QueryStepName]
    early_stop: bool
    rerank: bool
    tokenizer: str
    receipt: bool
    on_timeout: _types_pb2.OnTimeout
    def __init__(self, query: _Optional[_Union[_types_pb2.DecomposedQueryOrText, _Mapping[str, object]]] = ..., source_policy: _Optional[_Union[_types_pb2.SourcePolicy, _Mapping[str, object]]] = ..., token_budget: _Optional[int] = ..., latency_deadline_ms: _Optional[int] = ..., ranking_weights: _Optional[_Union[_types_pb2.RankingWeights, _Mapping[str, object]]] = ..., diversity_constraint: _Optional[float] = ..., provenance_required: bool = ..., session_context: _Optional[str] = ..., as_of: _Optional[str] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., principal: _Optional[_Union[_types_pb2.Principal, _Mapping[str, object]]] = ..., agent_name: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[_types_pb2.Turn, _Mapping[str, object]]]] = ..., task: _Optional[_Union[_types_pb2.Task, _Mapping[str, object]]] = ..., time_window: _Optional[_Union[_types_pb2.TimeWindow, _Mapping[str, object]]] = ..., filter: _Optional[_Union[_types_pb2.PredicateOrText, _Mapping[str, object]]] = ..., facets: _Optional[_Iterable[str]] = ..., mode: _Optional[_Union[_types_pb2.RetrievalMode, str]] = ..., fusion: _Optional[_Union[_types_pb2.FusionMethod, str]] = ..., limit: _Optional[int] = ..., cost_budget_micros: _Optional[int] = ..., max_staleness_ms: _Optional[int] = ..., governance: _Optional[_Union[_types_pb2.GovernanceMode, str]] = ..., explain: bool = ..., without: _Optional[_Iterable[_Union[_types_pb2.QueryStepName, str]]] = ..., early_stop: bool = ..., rerank: bool = ..., tokenizer: _Optional[str] = ..., receipt: bool = ..., on_timeout: _Optional[_Union[_types_pb2.OnTimeout, str]] = ...) -> None: ...

class RetrieveStreamResponse(_message.Message):
    __slots__ = ("stream_event",)
    STREAM_EVENT_FIELD_NUMBER: _ClassVar[int]
    stream_event: _types_pb2.StreamEvent
    def __init__(self, stream_event: _Optional[_Union[_types_pb2.StreamEvent, _Mapping[str, object]]] = ...) -> None: ...

class SetAccessRequest(_message.Message):
    __slots__ = ("document_ids", "classification", "acl")
    DOCUMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    document_ids: _containers.RepeatedScalarFieldContainer[str]
    classification: _types_pb2.Classification
    acl: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, document_ids: _Optional[_Iterable[str]] = ..., classification: _Optional[_Union[_types_pb2.Classification, str]] = ..., acl: _Optional[_Iterable[str]] = ...) -> None: ...

class SetAccessResponse(_message.Message):
    __slots__ = ("commit_summary",)
    COMMIT_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    commit_summary: _types_pb2.CommitSummary
    def __init__(self, commit_summary: _Optional[_Union[_types_pb2.CommitSummary, _Mapping[str, object]]] = ...) -> None: ...

class ShowImageRequest(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: str
    def __init__(self, hash: _Optional[str] = ...) -> None: ...

class ShowImageResponse(_message.Message):
    __slots__ = ("image_view",)
    IMAGE_VIEW_FIELD_NUMBER: _ClassVar[int]
    image_view: _types_pb2.ImageView
    def __init__(self, image_view: _Optional[_Union[_types_pb2.ImageView, _Mapping[str, object]]] = ...) -> None: ...

class ShowLayoutRequest(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: str
    def __init__(self, document: _Optional[str] = ...) -> None: ...

class ShowLayoutResponse(_message.Message):
    __slots__ = ("layout_view",)
    LAYOUT_VIEW_FIELD_NUMBER: _ClassVar[int]
    layout_view: _types_pb2.LayoutView
    def __init__(self, layout_view: _Optional[_Union[_types_pb2.LayoutView, _Mapping[str, object]]] = ...) -> None: ...

class ShowReceiptRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ShowReceiptResponse(_message.Message):
    __slots__ = ("receipt_view",)
    RECEIPT_VIEW_FIELD_NUMBER: _ClassVar[int]
    receipt_view: _types_pb2.ReceiptView
    def __init__(self, receipt_view: _Optional[_Union[_types_pb2.ReceiptView, _Mapping[str, object]]] = ...) -> None: ...

class SourceChangedRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class SourceChangedResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: _types_pb2.Count
    def __init__(self, count: _Optional[_Union[_types_pb2.Count, _Mapping[str, object]]] = ...) -> None: ...

class TestSourceRequest(_message.Message):
    __slots__ = ("id", "query", "limit")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    id: str
    query: str
    limit: int
    def __init__(self, id: _Optional[str] = ..., query: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class TestSourceResponse(_message.Message):
    __slots__ = ("source_trial",)
    SOURCE_TRIAL_FIELD_NUMBER: _ClassVar[int]
    source_trial: _types_pb2.SourceTrial
    def __init__(self, source_trial: _Optional[_Union[_types_pb2.SourceTrial, _Mapping[str, object]]] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ("response", "export", "target")
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    EXPORT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    response: _types_pb2.EvidenceResponse
    export: _types_pb2.FragmentExport
    target: str
    def __init__(self, response: _Optional[_Union[_types_pb2.EvidenceResponse, _Mapping[str, object]]] = ..., export: _Optional[_Union[_types_pb2.FragmentExport, _Mapping[str, object]]] = ..., target: _Optional[str] = ...) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("verify_report",)
    VERIFY_REPORT_FIELD_NUMBER: _ClassVar[int]
    verify_report: _types_pb2.VerifyReport
    def __init__(self, verify_report: _Optional[_Union[_types_pb2.VerifyReport, _Mapping[str, object]]] = ...) -> None: ...

class WhyRequest(_message.Message):
    __slots__ = ("id", "chunk")
    ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    id: str
    chunk: str
    def __init__(self, id: _Optional[str] = ..., chunk: _Optional[str] = ...) -> None: ...

class WhyResponse(_message.Message):
    __slots__ = ("why_report",)
    WHY_REPORT_FIELD_NUMBER: _ClassVar[int]
    why_report: _types_pb2.WhyReport
    def __init__(self, why_report: _Optional[_Union[_types_pb2.WhyReport, _Mapping[str, object]]] = ...) -> None: ...
