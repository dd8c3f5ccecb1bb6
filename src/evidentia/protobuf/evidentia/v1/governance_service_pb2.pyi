from evidentia.protobuf.evidentia.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CalibrateRuleRequest(_message.Message):
    __slots__ = ("rule", "policy", "agent", "minutes")
    RULE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    rule: str
    policy: str
    agent: str
    minutes: int
    def __init__(self, rule: _Optional[str] = ..., policy: _Optional[str] = ..., agent: _Optional[str] = ..., minutes: _Optional[int] = ...) -> None: ...

class CalibrateRuleResponse(_message.Message):
    __slots__ = ("calibration",)
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    calibration: _types_pb2.Calibration
    def __init__(self, calibration: _Optional[_Union[_types_pb2.Calibration, _Mapping[str, object]]] = ...) -> None: ...

class ChangePolicyRequest(_message.Message):
    __slots__ = ("id", "if_match", "name", "category", "rules_json", "scope", "enabled", "priority", "description", "compat", "posture", "enforcement")
    ID_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULES_JSON_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    COMPAT_FIELD_NUMBER: _ClassVar[int]
    POSTURE_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    if_match: str
    name: str
    category: str
    rules_json: str
    scope: _types_pb2.PolicyScope
    enabled: bool
    priority: int
    description: str
    compat: _types_pb2.Compat
    posture: _types_pb2.PostureMap
    enforcement: _types_pb2.Enforcement
    def __init__(self, id: _Optional[str] = ..., if_match: _Optional[str] = ..., name: _Optional[str] = ..., category: _Optional[str] = ..., rules_json: _Optional[str] = ..., scope: _Optional[_Union[_types_pb2.PolicyScope, _Mapping[str, object]]] = ..., enabled: bool = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., compat: _Optional[_Union[_types_pb2.Compat, str]] = ..., posture: _Optional[_Union[_types_pb2.PostureMap, _Mapping[str, object]]] = ..., enforcement: _Optional[_Union[_types_pb2.Enforcement, str]] = ...) -> None: ...

class ChangePolicyResponse(_message.Message):
    __slots__ = ("stored_policy",)
    STORED_POLICY_FIELD_NUMBER: _ClassVar[int]
    stored_policy: _types_pb2.StoredPolicy
    def __init__(self, stored_policy: _Optional[_Union[_types_pb2.StoredPolicy, _Mapping[str, object]]] = ...) -> None: ...

class CountDecisionsRequest(_message.Message):
    __slots__ = ("minutes", "agent", "action", "category", "policy", "phase", "status", "run")
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    minutes: int
    agent: str
    action: _types_pb2.PolicyAction
    category: str
    policy: str
    phase: _types_pb2.Phase
    status: _types_pb2.DecisionStatus
    run: str
    def __init__(self, minutes: _Optional[int] = ..., agent: _Optional[str] = ..., action: _Optional[_Union[_types_pb2.PolicyAction, str]] = ..., category: _Optional[str] = ..., policy: _Optional[str] = ..., phase: _Optional[_Union[_types_pb2.Phase, str]] = ..., status: _Optional[_Union[_types_pb2.DecisionStatus, str]] = ..., run: _Optional[str] = ...) -> None: ...

class CountDecisionsResponse(_message.Message):
    __slots__ = ("decision_counts",)
    DECISION_COUNTS_FIELD_NUMBER: _ClassVar[int]
    decision_counts: _types_pb2.DecisionCounts
    def __init__(self, decision_counts: _Optional[_Union[_types_pb2.DecisionCounts, _Mapping[str, object]]] = ...) -> None: ...

class CreatePolicyRequest(_message.Message):
    __slots__ = ("if_match", "name", "category", "rules_json", "scope", "enabled", "priority", "description", "compat", "posture", "enforcement")
    class PostureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _types_pb2.Posture
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_types_pb2.Posture, str]] = ...) -> None: ...
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULES_JSON_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    COMPAT_FIELD_NUMBER: _ClassVar[int]
    POSTURE_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    if_match: str
    name: str
    category: str
    rules_json: str
    scope: _types_pb2.PolicyScope
    enabled: bool
    priority: int
    description: str
    compat: _types_pb2.Compat
    posture: _containers.ScalarMap[str, _types_pb2.Posture]
    enforcement: _types_pb2.Enforcement
    def __init__(self, if_match: _Optional[str] = ..., name: _Optional[str] = ..., category: _Optional[str] = ..., rules_json: _Optional[str] = ..., scope: _Optional[_Union[_types_pb2.PolicyScope, _Mapping[str, object]]] = ..., enabled: bool = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., compat: _Optional[_Union[_types_pb2.Compat, str]] = ..., posture: _Optional[_Mapping[str, _types_pb2.Posture]] = ..., enforcement: _Optional[_Union[_types_pb2.Enforcement, str]] = ...) -> None: ...

class CreatePolicyResponse(_message.Message):
    __slots__ = ("stored_policy",)
    STORED_POLICY_FIELD_NUMBER: _ClassVar[int]
    stored_policy: _types_pb2.StoredPolicy
    def __init__(self, stored_policy: _Optional[_Union[_types_pb2.StoredPolicy, _Mapping[str, object]]] = ...) -> None: ...

class EndRunRequest(_message.Message):
    __slots__ = ("id", "status", "error_type", "result_hash", "text")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: _types_pb2.RunStatus
    error_type: str
    result_hash: str
    text: str
    def __init__(self, id: _Optional[str] = ..., status: _Optional[_Union[_types_pb2.RunStatus, str]] = ..., error_type: _Optional[str] = ..., result_hash: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class EndRunResponse(_message.Message):
    __slots__ = ("end_reply",)
    END_REPLY_FIELD_NUMBER: _ClassVar[int]
    end_reply: _types_pb2.EndReply
    def __init__(self, end_reply: _Optional[_Union[_types_pb2.EndReply, _Mapping[str, object]]] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ("minutes", "agent", "action", "category", "policy", "phase", "status", "run", "cursor", "limit")
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    minutes: int
    agent: str
    action: _types_pb2.PolicyAction
    category: str
    policy: str
    phase: _types_pb2.Phase
    status: _types_pb2.DecisionStatus
    run: str
    cursor: str
    limit: int
    def __init__(self, minutes: _Optional[int] = ..., agent: _Optional[str] = ..., action: _Optional[_Union[_types_pb2.PolicyAction, str]] = ..., category: _Optional[str] = ..., policy: _Optional[str] = ..., phase: _Optional[_Union[_types_pb2.Phase, str]] = ..., status: _Optional[_Union[_types_pb2.DecisionStatus, str]] = ..., run: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListDecisionsResponse(_message.Message):
    __slots__ = ("decision_page",)
    DECISION_PAGE_FIELD_NUMBER: _ClassVar[int]
    decision_page: _types_pb2.DecisionPage
    def __init__(self, decision_page: _Optional[_Union[_types_pb2.DecisionPage, _Mapping[str, object]]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("minutes", "agent", "action", "category", "policy", "phase", "status", "run", "cursor", "limit")
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    minutes: int
    agent: str
    action: _types_pb2.PolicyAction
    category: str
    policy: str
    phase: _types_pb2.Phase
    status: _types_pb2.DecisionStatus
    run: str
    cursor: str
    limit: int
    def __init__(self, minutes: _Optional[int] = ..., agent: _Optional[str] = ..., action: _Optional[_Union[_types_pb2.PolicyAction, str]] = ..., category: _Optional[str] = ..., policy: _Optional[str] = ..., phase: _Optional[_Union[_types_pb2.Phase, str]] = ..., status: _Optional[_Union[_types_pb2.DecisionStatus, str]] = ..., run: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("event_page",)
    EVENT_PAGE_FIELD_NUMBER: _ClassVar[int]
    event_page: _types_pb2.EventPage
    def __init__(self, event_page: _Optional[_Union[_types_pb2.EventPage, _Mapping[str, object]]] = ...) -> None: ...

class ListPoliciesRequest(_message.Message):
    __slots__ = ("category", "enabled", "enforcement", "name", "cursor", "limit")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    category: str
    enabled: bool
    enforcement: _types_pb2.Enforcement
    name: str
    cursor: str
    limit: int
    def __init__(self, category: _Optional[str] = ..., enabled: bool = ..., enforcement: _Optional[_Union[_types_pb2.Enforcement, str]] = ..., name: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListPoliciesResponse(_message.Message):
    __slots__ = ("policy_page",)
    POLICY_PAGE_FIELD_NUMBER: _ClassVar[int]
    policy_page: _types_pb2.PolicyPage
    def __init__(self, policy_page: _Optional[_Union[_types_pb2.PolicyPage, _Mapping[str, object]]] = ...) -> None: ...

class ListPolicyVersionsRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListPolicyVersionsResponse(_message.Message):
    __slots__ = ("policy_versions",)
    POLICY_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    policy_versions: _types_pb2.PolicyVersions
    def __init__(self, policy_versions: _Optional[_Union[_types_pb2.PolicyVersions, _Mapping[str, object]]] = ...) -> None: ...

class ListRunDecisionsRequest(_message.Message):
    __slots__ = ("id", "cursor", "limit")
    ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    id: str
    cursor: str
    limit: int
    def __init__(self, id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListRunDecisionsResponse(_message.Message):
    __slots__ = ("decision_page",)
    DECISION_PAGE_FIELD_NUMBER: _ClassVar[int]
    decision_page: _types_pb2.DecisionPage
    def __init__(self, decision_page: _Optional[_Union[_types_pb2.DecisionPage, _Mapping[str, object]]] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("agent", "status", "minutes", "cursor", "limit")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    status: _types_pb2.RunStatus
    minutes: int
    cursor: str
    limit: int
    def __init__(self, agent: _Optional[str] = ..., status: _Optional[_Union[_types_pb2.RunStatus, str]] = ..., minutes: _Optional[int] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("run_page",)
    RUN_PAGE_FIELD_NUMBER: _ClassVar[int]
    run_page: _types_pb2.RunPage
    def __init__(self, run_page: _Optional[_Union[_types_pb2.RunPage, _Mapping[str, object]]] = ...) -> None: ...

class ListTemplatesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTemplatesResponse(_message.Message):
    __slots__ = ("policy_templates",)
    POLICY_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    policy_templates: _types_pb2.PolicyTemplates
    def __init__(self, policy_templates: _Optional[_Union[_types_pb2.PolicyTemplates, _Mapping[str, object]]] = ...) -> None: ...

class PushPoliciesRequest(_message.Message):
    __slots__ = ("policies", "dry_run")
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[_types_pb2.PolicyBody]
    dry_run: bool
    def __init__(self, policies: _Optional[_Iterable[_Union[_types_pb2.PolicyBody, _Mapping[str, object]]]] = ..., dry_run: bool = ...) -> None: ...

class PushPoliciesResponse(_message.Message):
    __slots__ = ("push_reply",)
    PUSH_REPLY_FIELD_NUMBER: _ClassVar[int]
    push_reply: _types_pb2.PushReply
    def __init__(self, push_reply: _Optional[_Union[_types_pb2.PushReply, _Mapping[str, object]]] = ...) -> None: ...

class RecordCallsRequest(_message.Message):
    __slots__ = ("id", "calls")
    ID_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    id: str
    calls: _containers.RepeatedCompositeFieldContainer[_types_pb2.NumberedCall]
    def __init__(self, id: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[_types_pb2.NumberedCall, _Mapping[str, object]]]] = ...) -> None: ...

class RecordCallsResponse(_message.Message):
    __slots__ = ("calls_reply",)
    CALLS_REPLY_FIELD_NUMBER: _ClassVar[int]
    calls_reply: _types_pb2.CallsReply
    def __init__(self, calls_reply: _Optional[_Union[_types_pb2.CallsReply, _Mapping[str, object]]] = ...) -> None: ...

class RemovePolicyRequest(_message.Message):
    __slots__ = ("id", "if_match")
    ID_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    id: str
    if_match: str
    def __init__(self, id: _Optional[str] = ..., if_match: _Optional[str] = ...) -> None: ...

class RemovePolicyResponse(_message.Message):
    __slots__ = ("stored_policy",)
    STORED_POLICY_FIELD_NUMBER: _ClassVar[int]
    stored_policy: _types_pb2.StoredPolicy
    def __init__(self, stored_policy: _Optional[_Union[_types_pb2.StoredPolicy, _Mapping[str, object]]] = ...) -> None: ...

class ReplacePolicyRequest(_message.Message):
    __slots__ = ("id", "if_match", "name", "category", "rules_json", "scope", "enabled", "priority", "description", "compat", "posture", "enforcement")
    class PostureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _types_pb2.Posture
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_types_pb2.Posture, str]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULES_JSON_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    COMPAT_FIELD_NUMBER: _ClassVar[int]
    POSTURE_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    if_match: str
    name: str
    category: str
    rules_json: str
    scope: _types_pb2.PolicyScope
    enabled: bool
    priority: int
    description: str
    compat: _types_pb2.Compat
    posture: _containers.ScalarMap[str, _types_pb2.Posture]
    enforcement: _types_pb2.Enforcement
    def __init__(self, id: _Optional[str] = ..., if_match: _Optional[str] = ..., name: _Optional[str] = ..., category: _Optional[str] = ..., rules_json: _Optional[str] = ..., scope: _Optional[_Union[_types_pb2.PolicyScope, _Mapping[str, object]]] = ..., enabled: bool = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., compat: _Optional[_Union[_types_pb2.Compat, str]] = ..., posture: _Optional[_Mapping[str, _types_pb2.Posture]] = ..., enforcement: _Optional[_Union[_types_pb2.Enforcement, str]] = ...) -> None: ...

class ReplacePolicyResponse(_message.Message):
    __slots__ = ("stored_policy",)
    STORED_POLICY_FIELD_NUMBER: _ClassVar[int]
    stored_policy: _types_pb2.StoredPolicy
    def __init__(self, stored_policy: _Optional[_Union[_types_pb2.StoredPolicy, _Mapping[str, object]]] = ...) -> None: ...

class ShowPolicyRequest(_message.Message):
    __slots__ = ("id", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class ShowPolicyResponse(_message.Message):
    __slots__ = ("stored_policy",)
    STORED_POLICY_FIELD_NUMBER: _ClassVar[int]
    stored_policy: _types_pb2.StoredPolicy
    def __init__(self, stored_policy: _Optional[_Union[_types_pb2.StoredPolicy, _Mapping[str, object]]] = ...) -> None: ...

class ShowPolicySchemaRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShowPolicySchemaResponse(_message.Message):
    __slots__ = ("reply_json",)
    REPLY_JSON_FIELD_NUMBER: _ClassVar[int]
    reply_json: str
    def __init__(self, reply_json: _Optional[str] = ...) -> None: ...

class ShowProofRequest(_message.Message):
    __slots__ = ("log", "seq")
    LOG_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    log: str
    seq: int
    def __init__(self, log: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class ShowProofResponse(_message.Message):
    __slots__ = ("record_proof",)
    RECORD_PROOF_FIELD_NUMBER: _ClassVar[int]
    record_proof: _types_pb2.RecordProof
    def __init__(self, record_proof: _Optional[_Union[_types_pb2.RecordProof, _Mapping[str, object]]] = ...) -> None: ...

class ShowRulesSchemaRequest(_message.Message):
    __slots__ = ("category",)
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    category: str
    def __init__(self, category: _Optional[str] = ...) -> None: ...

class ShowRulesSchemaResponse(_message.Message):
    __slots__ = ("reply_json",)
    REPLY_JSON_FIELD_NUMBER: _ClassVar[int]
    reply_json: str
    def __init__(self, reply_json: _Optional[str] = ...) -> None: ...

class ShowRunRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ShowRunResponse(_message.Message):
    __slots__ = ("run_summary",)
    RUN_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    run_summary: _types_pb2.RunSummary
    def __init__(self, run_summary: _Optional[_Union[_types_pb2.RunSummary, _Mapping[str, object]]] = ...) -> None: ...

class ShowTraceRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ShowTraceResponse(_message.Message):
    __slots__ = ("run_trace",)
    RUN_TRACE_FIELD_NUMBER: _ClassVar[int]
    run_trace: _types_pb2.RunTrace
    def __init__(self, run_trace: _Optional[_Union[_types_pb2.RunTrace, _Mapping[str, object]]] = ...) -> None: ...

class StartRunRequest(_message.Message):
    __slots__ = ("facts", "policies", "is_enforced")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    facts: _types_pb2.RunFacts
    policies: _containers.RepeatedCompositeFieldContainer[_types_pb2.PolicyBody]
    is_enforced: bool
    def __init__(self, facts: _Optional[_Union[_types_pb2.RunFacts, _Mapping[str, object]]] = ..., policies: _Optional[_Iterable[_Union[_types_pb2.PolicyBody, _Mapping[str, object]]]] = ..., is_enforced: bool = ...) -> None: ...

class StartRunResponse(_message.Message):
    __slots__ = ("start_reply",)
    START_REPLY_FIELD_NUMBER: _ClassVar[int]
    start_reply: _types_pb2.StartReply
    def __init__(self, start_reply: _Optional[_Union[_types_pb2.StartReply, _Mapping[str, object]]] = ...) -> None: ...

class TryPolicyRequest(_message.Message):
    __slots__ = ("policy", "minutes", "is_whole")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    policy: _types_pb2.PolicyBody
    minutes: int
    is_whole: bool
    def __init__(self, policy: _Optional[_Union[_types_pb2.PolicyBody, _Mapping[str, object]]] = ..., minutes: _Optional[int] = ..., is_whole: bool = ...) -> None: ...

class TryPolicyResponse(_message.Message):
    __slots__ = ("shadow_report",)
    SHADOW_REPORT_FIELD_NUMBER: _ClassVar[int]
    shadow_report: _types_pb2.ShadowReport
    def __init__(self, shadow_report: _Optional[_Union[_types_pb2.ShadowReport, _Mapping[str, object]]] = ...) -> None: ...

class VerifyLogRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyLogResponse(_message.Message):
    __slots__ = ("log_report",)
    LOG_REPORT_FIELD_NUMBER: _ClassVar[int]
    log_report: _types_pb2.LogReport
    def __init__(self, log_report: _Optional[_Union[_types_pb2.LogReport, _Mapping[str, object]]] = ...) -> None: ...
