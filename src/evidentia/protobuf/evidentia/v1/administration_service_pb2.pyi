from evidentia.protobuf.evidentia.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CollectRequest(_message.Message):
    __slots__ = ("keep_versions",)
    KEEP_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    keep_versions: int
    def __init__(self, keep_versions: _Optional[int] = ...) -> None: ...

class CollectResponse(_message.Message):
    __slots__ = ("gc_report",)
    GC_REPORT_FIELD_NUMBER: _ClassVar[int]
    gc_report: _types_pb2.GcReport
    def __init__(self, gc_report: _Optional[_Union[_types_pb2.GcReport, _Mapping[str, object]]] = ...) -> None: ...

class DoctorRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DoctorResponse(_message.Message):
    __slots__ = ("doctor_report",)
    DOCTOR_REPORT_FIELD_NUMBER: _ClassVar[int]
    doctor_report: _types_pb2.DoctorReport
    def __init__(self, doctor_report: _Optional[_Union[_types_pb2.DoctorReport, _Mapping[str, object]]] = ...) -> None: ...

class EmbedRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EmbedResponse(_message.Message):
    __slots__ = ("embed_report",)
    EMBED_REPORT_FIELD_NUMBER: _ClassVar[int]
    embed_report: _types_pb2.EmbedReport
    def __init__(self, embed_report: _Optional[_Union[_types_pb2.EmbedReport, _Mapping[str, object]]] = ...) -> None: ...

class FlushCacheRequest(_message.Message):
    __slots__ = ("source_id",)
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    def __init__(self, source_id: _Optional[str] = ...) -> None: ...

class FlushCacheResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: _types_pb2.Count
    def __init__(self, count: _Optional[_Union[_types_pb2.Count, _Mapping[str, object]]] = ...) -> None: ...

class IssueTokenRequest(_message.Message):
    __slots__ = ("name", "roles", "expires_at", "facts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[_types_pb2.Role]
    expires_at: str
    facts: _types_pb2.TokenFacts
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[_types_pb2.Role, str]]] = ..., expires_at: _Optional[str] = ..., facts: _Optional[_Union[_types_pb2.TokenFacts, _Mapping[str, object]]] = ...) -> None: ...

class IssueTokenResponse(_message.Message):
    __slots__ = ("issued_token",)
    ISSUED_TOKEN_FIELD_NUMBER: _ClassVar[int]
    issued_token: _types_pb2.IssuedToken
    def __init__(self, issued_token: _Optional[_Union[_types_pb2.IssuedToken, _Mapping[str, object]]] = ...) -> None: ...

class ListChangesRequest(_message.Message):
    __slots__ = ("cursor", "limit")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    limit: int
    def __init__(self, cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListChangesResponse(_message.Message):
    __slots__ = ("audit_page",)
    AUDIT_PAGE_FIELD_NUMBER: _ClassVar[int]
    audit_page: _types_pb2.AuditPage
    def __init__(self, audit_page: _Optional[_Union[_types_pb2.AuditPage, _Mapping[str, object]]] = ...) -> None: ...

class ListSecretsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSecretsResponse(_message.Message):
    __slots__ = ("secret_names",)
    SECRET_NAMES_FIELD_NUMBER: _ClassVar[int]
    secret_names: _types_pb2.SecretNames
    def __init__(self, secret_names: _Optional[_Union[_types_pb2.SecretNames, _Mapping[str, object]]] = ...) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ("token_list",)
    TOKEN_LIST_FIELD_NUMBER: _ClassVar[int]
    token_list: _types_pb2.TokenList
    def __init__(self, token_list: _Optional[_Union[_types_pb2.TokenList, _Mapping[str, object]]] = ...) -> None: ...

class ListTracesRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListTracesResponse(_message.Message):
    __slots__ = ("trace_list",)
    TRACE_LIST_FIELD_NUMBER: _ClassVar[int]
    trace_list: _types_pb2.TraceList
    def __init__(self, trace_list: _Optional[_Union[_types_pb2.TraceList, _Mapping[str, object]]] = ...) -> None: ...

class ListVersionsRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("version_list",)
    VERSION_LIST_FIELD_NUMBER: _ClassVar[int]
    version_list: _types_pb2.VersionList
    def __init__(self, version_list: _Optional[_Union[_types_pb2.VersionList, _Mapping[str, object]]] = ...) -> None: ...

class PutSecretRequest(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PutSecretResponse(_message.Message):
    __slots__ = ("secret_kept",)
    SECRET_KEPT_FIELD_NUMBER: _ClassVar[int]
    secret_kept: _types_pb2.SecretKept
    def __init__(self, secret_kept: _Optional[_Union[_types_pb2.SecretKept, _Mapping[str, object]]] = ...) -> None: ...

class RemoveSecretRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveSecretResponse(_message.Message):
    __slots__ = ("secret_kept",)
    SECRET_KEPT_FIELD_NUMBER: _ClassVar[int]
    secret_kept: _types_pb2.SecretKept
    def __init__(self, secret_kept: _Optional[_Union[_types_pb2.SecretKept, _Mapping[str, object]]] = ...) -> None: ...

class RevokeTokenRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RevokeTokenResponse(_message.Message):
    __slots__ = ("token_info",)
    TOKEN_INFO_FIELD_NUMBER: _ClassVar[int]
    token_info: _types_pb2.TokenInfo
    def __init__(self, token_info: _Optional[_Union[_types_pb2.TokenInfo, _Mapping[str, object]]] = ...) -> None: ...

class ShowCacheRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShowCacheResponse(_message.Message):
    __slots__ = ("cache_stats",)
    CACHE_STATS_FIELD_NUMBER: _ClassVar[int]
    cache_stats: _types_pb2.CacheStats
    def __init__(self, cache_stats: _Optional[_Union[_types_pb2.CacheStats, _Mapping[str, object]]] = ...) -> None: ...

class ShowConsistencyRequest(_message.Message):
    __slots__ = ("first_size",)
    FIRST_SIZE_FIELD_NUMBER: _ClassVar[int]
    first_size: int
    def __init__(self, first_size: _Optional[int] = ...) -> None: ...

class ShowConsistencyResponse(_message.Message):
    __slots__ = ("consistency_proof",)
    CONSISTENCY_PROOF_FIELD_NUMBER: _ClassVar[int]
    consistency_proof: _types_pb2.ConsistencyProof
    def __init__(self, consistency_proof: _Optional[_Union[_types_pb2.ConsistencyProof, _Mapping[str, object]]] = ...) -> None: ...

class ShowDiffRequest(_message.Message):
    __slots__ = ("older", "newer", "limit")
    OLDER_FIELD_NUMBER: _ClassVar[int]
    NEWER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    older: str
    newer: str
    limit: int
    def __init__(self, older: _Optional[str] = ..., newer: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ShowDiffResponse(_message.Message):
    __slots__ = ("version_diff",)
    VERSION_DIFF_FIELD_NUMBER: _ClassVar[int]
    version_diff: _types_pb2.VersionDiff
    def __init__(self, version_diff: _Optional[_Union[_types_pb2.VersionDiff, _Mapping[str, object]]] = ...) -> None: ...

class ShowHeadRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShowHeadResponse(_message.Message):
    __slots__ = ("commit_summary",)
    COMMIT_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    commit_summary: _types_pb2.CommitSummary
    def __init__(self, commit_summary: _Optional[_Union[_types_pb2.CommitSummary, _Mapping[str, object]]] = ...) -> None: ...

class ShowRequestRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ShowRequestResponse(_message.Message):
    __slots__ = ("request_trace",)
    REQUEST_TRACE_FIELD_NUMBER: _ClassVar[int]
    request_trace: _types_pb2.RequestTrace
    def __init__(self, request_trace: _Optional[_Union[_types_pb2.RequestTrace, _Mapping[str, object]]] = ...) -> None: ...

class ShowSecretRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ShowSecretResponse(_message.Message):
    __slots__ = ("secret_kept",)
    SECRET_KEPT_FIELD_NUMBER: _ClassVar[int]
    secret_kept: _types_pb2.SecretKept
    def __init__(self, secret_kept: _Optional[_Union[_types_pb2.SecretKept, _Mapping[str, object]]] = ...) -> None: ...

class ShowSignedHeadRequest(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class ShowSignedHeadResponse(_message.Message):
    __slots__ = ("signed_head",)
    SIGNED_HEAD_FIELD_NUMBER: _ClassVar[int]
    signed_head: _types_pb2.SignedHead
    def __init__(self, signed_head: _Optional[_Union[_types_pb2.SignedHead, _Mapping[str, object]]] = ...) -> None: ...

class VerifyBaseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyBaseResponse(_message.Message):
    __slots__ = ("verify_report",)
    VERIFY_REPORT_FIELD_NUMBER: _ClassVar[int]
    verify_report: _types_pb2.VerifyReport
    def __init__(self, verify_report: _Optional[_Union[_types_pb2.VerifyReport, _Mapping[str, object]]] = ...) -> None: ...

class WarmCacheRequest(_message.Message):
    __slots__ = ("questions",)
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    questions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, questions: _Optional[_Iterable[str]] = ...) -> None: ...

class WarmCacheResponse(_message.Message):
    __slots__ = ("warm_report",)
    WARM_REPORT_FIELD_NUMBER: _ClassVar[int]
    warm_report: _types_pb2.WarmReport
    def __init__(self, warm_report: _Optional[_Union[_types_pb2.WarmReport, _Mapping[str, object]]] = ...) -> None: ...
