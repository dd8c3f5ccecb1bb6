from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnnotationTargetType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANNOTATION_TARGET_TYPE_UNSPECIFIED: _ClassVar[AnnotationTargetType]
    ANNOTATION_TARGET_TYPE_DOCUMENT: _ClassVar[AnnotationTargetType]
    ANNOTATION_TARGET_TYPE_CODE_SYMBOL: _ClassVar[AnnotationTargetType]
    ANNOTATION_TARGET_TYPE_CONFIG_KEY: _ClassVar[AnnotationTargetType]
    ANNOTATION_TARGET_TYPE_SERVICE: _ClassVar[AnnotationTargetType]
    ANNOTATION_TARGET_TYPE_INCIDENT: _ClassVar[AnnotationTargetType]

class AnnotationType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANNOTATION_TYPE_UNSPECIFIED: _ClassVar[AnnotationType]
    ANNOTATION_TYPE_CORRECTION: _ClassVar[AnnotationType]
    ANNOTATION_TYPE_LABEL: _ClassVar[AnnotationType]
    ANNOTATION_TYPE_KNOWLEDGE: _ClassVar[AnnotationType]
    ANNOTATION_TYPE_REVIEW: _ClassVar[AnnotationType]
    ANNOTATION_TYPE_DEPRECATION_NOTICE: _ClassVar[AnnotationType]

class AuditKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_KIND_UNSPECIFIED: _ClassVar[AuditKind]
    AUDIT_KIND_POLICY: _ClassVar[AuditKind]
    AUDIT_KIND_TOKEN: _ClassVar[AuditKind]
    AUDIT_KIND_SECRET: _ClassVar[AuditKind]
    AUDIT_KIND_DOCUMENT: _ClassVar[AuditKind]
    AUDIT_KIND_SOURCE: _ClassVar[AuditKind]
    AUDIT_KIND_BASE: _ClassVar[AuditKind]
    AUDIT_KIND_SESSION: _ClassVar[AuditKind]

class AuthorityTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTHORITY_TIER_UNSPECIFIED: _ClassVar[AuthorityTier]
    AUTHORITY_TIER_EPHEMERAL: _ClassVar[AuthorityTier]
    AUTHORITY_TIER_USER: _ClassVar[AuthorityTier]
    AUTHORITY_TIER_DERIVED: _ClassVar[AuthorityTier]
    AUTHORITY_TIER_CURATED: _ClassVar[AuthorityTier]
    AUTHORITY_TIER_CANONICAL: _ClassVar[AuthorityTier]

class Breadth(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BREADTH_UNSPECIFIED: _ClassVar[Breadth]
    BREADTH_LOOKUP: _ClassVar[Breadth]
    BREADTH_MODERATE: _ClassVar[Breadth]
    BREADTH_BROAD: _ClassVar[Breadth]
    BREADTH_UNSURE: _ClassVar[Breadth]

class BreakerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BREAKER_STATE_UNSPECIFIED: _ClassVar[BreakerState]
    BREAKER_STATE_CLOSED: _ClassVar[BreakerState]
    BREAKER_STATE_OPEN: _ClassVar[BreakerState]
    BREAKER_STATE_HALF_OPEN: _ClassVar[BreakerState]

class CacheTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_TIER_UNSPECIFIED: _ClassVar[CacheTier]
    CACHE_TIER_REQUEST: _ClassVar[CacheTier]
    CACHE_TIER_SESSION: _ClassVar[CacheTier]
    CACHE_TIER_GLOBAL: _ClassVar[CacheTier]
    CACHE_TIER_PRECOMPUTED: _ClassVar[CacheTier]

class Change(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_UNSPECIFIED: _ClassVar[Change]
    CHANGE_NEWLY_BLOCKED: _ClassVar[Change]
    CHANGE_NEWLY_ALLOWED: _ClassVar[Change]
    CHANGE_NEWLY_WARNED: _ClassVar[Change]
    CHANGE_NO_LONGER_WARNED: _ClassVar[Change]
    CHANGE_UNCHANGED: _ClassVar[Change]

class Classification(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLASSIFICATION_UNSPECIFIED: _ClassVar[Classification]
    CLASSIFICATION_PUBLIC: _ClassVar[Classification]
    CLASSIFICATION_INTERNAL: _ClassVar[Classification]
    CLASSIFICATION_CONFIDENTIAL: _ClassVar[Classification]
    CLASSIFICATION_RESTRICTED: _ClassVar[Classification]

class ColumnKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLUMN_KIND_UNSPECIFIED: _ClassVar[ColumnKind]
    COLUMN_KIND_TEXT: _ClassVar[ColumnKind]
    COLUMN_KIND_INTEGER: _ClassVar[ColumnKind]
    COLUMN_KIND_NUMBER: _ClassVar[ColumnKind]
    COLUMN_KIND_BOOLEAN: _ClassVar[ColumnKind]
    COLUMN_KIND_DATE: _ClassVar[ColumnKind]
    COLUMN_KIND_DATETIME: _ClassVar[ColumnKind]
    COLUMN_KIND_TIME: _ClassVar[ColumnKind]

class Compat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPAT_UNSPECIFIED: _ClassVar[Compat]
    COMPAT_RESOLVED: _ClassVar[Compat]
    COMPAT_LITERAL: _ClassVar[Compat]

class ConnectionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONNECTION_KIND_UNSPECIFIED: _ClassVar[ConnectionKind]
    CONNECTION_KIND_OWN: _ClassVar[ConnectionKind]
    CONNECTION_KIND_PYTHON: _ClassVar[ConnectionKind]
    CONNECTION_KIND_BASE: _ClassVar[ConnectionKind]
    CONNECTION_KIND_REMOTE: _ClassVar[ConnectionKind]
    CONNECTION_KIND_MCP: _ClassVar[ConnectionKind]
    CONNECTION_KIND_MEMORY: _ClassVar[ConnectionKind]

class ContentType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTENT_TYPE_UNSPECIFIED: _ClassVar[ContentType]
    CONTENT_TYPE_CODE: _ClassVar[ContentType]
    CONTENT_TYPE_DOCUMENTATION: _ClassVar[ContentType]
    CONTENT_TYPE_CONFIG: _ClassVar[ContentType]
    CONTENT_TYPE_LOG: _ClassVar[ContentType]
    CONTENT_TYPE_ANNOTATION: _ClassVar[ContentType]
    CONTENT_TYPE_SCHEMA: _ClassVar[ContentType]
    CONTENT_TYPE_RUNBOOK: _ClassVar[ContentType]

class CoverageState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COVERAGE_STATE_UNSPECIFIED: _ClassVar[CoverageState]
    COVERAGE_STATE_SEARCHED: _ClassVar[CoverageState]
    COVERAGE_STATE_CACHED: _ClassVar[CoverageState]
    COVERAGE_STATE_STALE: _ClassVar[CoverageState]
    COVERAGE_STATE_TIMED_OUT: _ClassVar[CoverageState]
    COVERAGE_STATE_FAILED: _ClassVar[CoverageState]
    COVERAGE_STATE_BREAKER_OPEN: _ClassVar[CoverageState]
    COVERAGE_STATE_SKIPPED: _ClassVar[CoverageState]
    COVERAGE_STATE_DENIED: _ClassVar[CoverageState]

class DecisionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_STATUS_UNSPECIFIED: _ClassVar[DecisionStatus]
    DECISION_STATUS_EVALUATED: _ClassVar[DecisionStatus]
    DECISION_STATUS_PROVISIONAL: _ClassVar[DecisionStatus]
    DECISION_STATUS_BYPASSED: _ClassVar[DecisionStatus]
    DECISION_STATUS_SHADOW: _ClassVar[DecisionStatus]

class DeprecationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEPRECATION_STATUS_UNSPECIFIED: _ClassVar[DeprecationStatus]
    DEPRECATION_STATUS_ACTIVE: _ClassVar[DeprecationStatus]
    DEPRECATION_STATUS_DEPRECATED: _ClassVar[DeprecationStatus]
    DEPRECATION_STATUS_ARCHIVED: _ClassVar[DeprecationStatus]

class Enforcement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENFORCEMENT_UNSPECIFIED: _ClassVar[Enforcement]
    ENFORCEMENT_ENFORCE: _ClassVar[Enforcement]
    ENFORCEMENT_SHADOW: _ClassVar[Enforcement]

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_ADDED: _ClassVar[EventKind]
    EVENT_KIND_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_REMOVED: _ClassVar[EventKind]
    EVENT_KIND_ACCESS_CHANGED: _ClassVar[EventKind]

class ExpertiseLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPERTISE_LEVEL_UNSPECIFIED: _ClassVar[ExpertiseLevel]
    EXPERTISE_LEVEL_DOMAIN_EXPERT: _ClassVar[ExpertiseLevel]
    EXPERTISE_LEVEL_SENIOR_ENGINEER: _ClassVar[ExpertiseLevel]
    EXPERTISE_LEVEL_TEAM_LEAD: _ClassVar[ExpertiseLevel]
    EXPERTISE_LEVEL_CONTRIBUTOR: _ClassVar[ExpertiseLevel]
    EXPERTISE_LEVEL_UNKNOWN: _ClassVar[ExpertiseLevel]

class FusionMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FUSION_METHOD_UNSPECIFIED: _ClassVar[FusionMethod]
    FUSION_METHOD_LINEAR: _ClassVar[FusionMethod]
    FUSION_METHOD_RRF: _ClassVar[FusionMethod]
    FUSION_METHOD_LEARNED: _ClassVar[FusionMethod]

class GovernanceMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GOVERNANCE_MODE_UNSPECIFIED: _ClassVar[GovernanceMode]
    GOVERNANCE_MODE_OFF: _ClassVar[GovernanceMode]
    GOVERNANCE_MODE_ANNOTATE: _ClassVar[GovernanceMode]
    GOVERNANCE_MODE_FILTER: _ClassVar[GovernanceMode]
    GOVERNANCE_MODE_ENFORCE: _ClassVar[GovernanceMode]

class JudgeStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JUDGE_STATUS_UNSPECIFIED: _ClassVar[JudgeStatus]
    JUDGE_STATUS_JUDGED: _ClassVar[JudgeStatus]
    JUDGE_STATUS_UNPARSEABLE: _ClassVar[JudgeStatus]
    JUDGE_STATUS_NO_KEY: _ClassVar[JudgeStatus]
    JUDGE_STATUS_UNAVAILABLE: _ClassVar[JudgeStatus]
    JUDGE_STATUS_TIMED_OUT: _ClassVar[JudgeStatus]
    JUDGE_STATUS_SOURCE_UNAVAILABLE: _ClassVar[JudgeStatus]
    JUDGE_STATUS_NOTHING_TO_JUDGE: _ClassVar[JudgeStatus]
    JUDGE_STATUS_NOT_CONFIGURED: _ClassVar[JudgeStatus]

class LatencyTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATENCY_TIER_UNSPECIFIED: _ClassVar[LatencyTier]
    LATENCY_TIER_HOT: _ClassVar[LatencyTier]
    LATENCY_TIER_WARM: _ClassVar[LatencyTier]
    LATENCY_TIER_COLD: _ClassVar[LatencyTier]
    LATENCY_TIER_ARCHIVE: _ClassVar[LatencyTier]

class OnTimeout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_TIMEOUT_UNSPECIFIED: _ClassVar[OnTimeout]
    ON_TIMEOUT_DEGRADE: _ClassVar[OnTimeout]
    ON_TIMEOUT_WAIT: _ClassVar[OnTimeout]
    ON_TIMEOUT_REFUSE: _ClassVar[OnTimeout]

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    PHASE_BEFORE_WORKFLOW: _ClassVar[Phase]
    PHASE_MID_EXECUTION: _ClassVar[Phase]
    PHASE_AFTER_WORKFLOW: _ClassVar[Phase]

class PolicyAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_ACTION_UNSPECIFIED: _ClassVar[PolicyAction]
    POLICY_ACTION_ALLOW: _ClassVar[PolicyAction]
    POLICY_ACTION_WARN: _ClassVar[PolicyAction]
    POLICY_ACTION_REDACT: _ClassVar[PolicyAction]
    POLICY_ACTION_RETRY: _ClassVar[PolicyAction]
    POLICY_ACTION_SKIP: _ClassVar[PolicyAction]
    POLICY_ACTION_THROTTLE: _ClassVar[PolicyAction]
    POLICY_ACTION_BLOCK: _ClassVar[PolicyAction]

class Posture(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POSTURE_UNSPECIFIED: _ClassVar[Posture]
    POSTURE_OPEN: _ClassVar[Posture]
    POSTURE_DEGRADE: _ClassVar[Posture]
    POSTURE_CLOSED: _ClassVar[Posture]

class ProtocolRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTOCOL_RULE_UNSPECIFIED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_ALLOWED_TOOLS: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_FILESYSTEM_TOOLS: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CODE_PORTION: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SKILL_FIRST: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SEQUENTIAL: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_ANSWER_BEFORE_RETRIEVAL: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SOURCE_ORDER: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_TOOL_CHOICE: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_RAW_QUERY: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_LOST_ENTITY: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_FOREIGN_TOPIC: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_TOP_K_TOOL: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_TOP_K_VALUE: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_NEEDLESS_CALL: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_STOPPED_EARLY: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CALL_CAP: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_RETRY_ORDER: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_REPEATED_QUERY: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_EARLY_NOT_FOUND: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_TRUNCATION_COUNTS: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_FILE_NAMES: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SOURCE_CODES: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_INSTRUCTIONS: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_IMAGE_IGNORED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_IMAGE_MISPLACED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_IMAGES_AT_END: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATION_MISSING: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATION_GRAMMAR: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATION_UNRESOLVED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATION_PLACEMENT: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATION_COUNT: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_CITATIONS_AT_END: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_KNOWLEDGE_OFF: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_KNOWLEDGE_NEEDLESS: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_KNOWLEDGE_MIXED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_KNOWLEDGE_SCOPE: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_KNOWLEDGE_CITED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_UNCERTAINTY_UNSTATED: _ClassVar[ProtocolRule]
    PROTOCOL_RULE_SELF_CHECK: _ClassVar[ProtocolRule]

class PushAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUSH_ACTION_UNSPECIFIED: _ClassVar[PushAction]
    PUSH_ACTION_CREATED: _ClassVar[PushAction]
    PUSH_ACTION_UPDATED: _ClassVar[PushAction]
    PUSH_ACTION_UNCHANGED: _ClassVar[PushAction]

class QueryCapability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_CAPABILITY_UNSPECIFIED: _ClassVar[QueryCapability]
    QUERY_CAPABILITY_EXACT_MATCH: _ClassVar[QueryCapability]
    QUERY_CAPABILITY_SEMANTIC: _ClassVar[QueryCapability]
    QUERY_CAPABILITY_STRUCTURED: _ClassVar[QueryCapability]
    QUERY_CAPABILITY_GRAPH_TRAVERSAL: _ClassVar[QueryCapability]

class QueryStepName(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_STEP_NAME_UNSPECIFIED: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_CONTEXT: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_NORMALISE: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_SPELLING: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_ABBREVIATIONS: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_SYNONYMS: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_DECOMPOSE: _ClassVar[QueryStepName]
    QUERY_STEP_NAME_REWRITE: _ClassVar[QueryStepName]

class QuestionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUESTION_TYPE_UNSPECIFIED: _ClassVar[QuestionType]
    QUESTION_TYPE_VALUE: _ClassVar[QuestionType]
    QUESTION_TYPE_PRICE: _ClassVar[QuestionType]
    QUESTION_TYPE_QUANTITY: _ClassVar[QuestionType]
    QUESTION_TYPE_INVENTORY: _ClassVar[QuestionType]
    QUESTION_TYPE_SPECIFICATION: _ClassVar[QuestionType]
    QUESTION_TYPE_RANKING: _ClassVar[QuestionType]
    QUESTION_TYPE_COMPARISON: _ClassVar[QuestionType]
    QUESTION_TYPE_SUMMARY: _ClassVar[QuestionType]
    QUESTION_TYPE_EXTRACTION: _ClassVar[QuestionType]
    QUESTION_TYPE_LIST: _ClassVar[QuestionType]
    QUESTION_TYPE_TABLE: _ClassVar[QuestionType]
    QUESTION_TYPE_NAME_LOOKUP: _ClassVar[QuestionType]
    QUESTION_TYPE_HISTORY: _ClassVar[QuestionType]
    QUESTION_TYPE_MIXED: _ClassVar[QuestionType]
    QUESTION_TYPE_UNCLEAR: _ClassVar[QuestionType]
    QUESTION_TYPE_CONCEPT: _ClassVar[QuestionType]
    QUESTION_TYPE_DEFINITION: _ClassVar[QuestionType]
    QUESTION_TYPE_WORKFLOW: _ClassVar[QuestionType]
    QUESTION_TYPE_POLICY: _ClassVar[QuestionType]
    QUESTION_TYPE_EXPLANATION: _ClassVar[QuestionType]

class RetrievalMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRIEVAL_MODE_UNSPECIFIED: _ClassVar[RetrievalMode]
    RETRIEVAL_MODE_HYBRID: _ClassVar[RetrievalMode]
    RETRIEVAL_MODE_LEXICAL: _ClassVar[RetrievalMode]
    RETRIEVAL_MODE_DENSE: _ClassVar[RetrievalMode]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_READER: _ClassVar[Role]
    ROLE_AGENT: _ClassVar[Role]
    ROLE_AUDITOR: _ClassVar[Role]
    ROLE_ADMIN: _ClassVar[Role]

class RunStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATUS_UNSPECIFIED: _ClassVar[RunStatus]
    RUN_STATUS_RUNNING: _ClassVar[RunStatus]
    RUN_STATUS_SUCCESS: _ClassVar[RunStatus]
    RUN_STATUS_BLOCKED: _ClassVar[RunStatus]
    RUN_STATUS_ERROR: _ClassVar[RunStatus]

class Shortfall(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHORTFALL_UNSPECIFIED: _ClassVar[Shortfall]
    SHORTFALL_EMPTY: _ClassVar[Shortfall]
    SHORTFALL_ERROR: _ClassVar[Shortfall]
    SHORTFALL_NO_SPREADSHEET: _ClassVar[Shortfall]
    SHORTFALL_OFF_TOPIC: _ClassVar[Shortfall]
    SHORTFALL_MISSING_ENTITY: _ClassVar[Shortfall]
    SHORTFALL_NO_EVIDENCE: _ClassVar[Shortfall]
    SHORTFALL_PARTIAL: _ClassVar[Shortfall]
    SHORTFALL_TRUNCATED: _ClassVar[Shortfall]

class SourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_TYPE_UNSPECIFIED: _ClassVar[SourceType]
    SOURCE_TYPE_INVERTED_INDEX: _ClassVar[SourceType]
    SOURCE_TYPE_VECTOR_STORE: _ClassVar[SourceType]
    SOURCE_TYPE_RELATIONAL_DB: _ClassVar[SourceType]
    SOURCE_TYPE_KNOWLEDGE_GRAPH: _ClassVar[SourceType]
    SOURCE_TYPE_API: _ClassVar[SourceType]
    SOURCE_TYPE_LOG_STORE: _ClassVar[SourceType]
    SOURCE_TYPE_CODE_INDEX: _ClassVar[SourceType]
    SOURCE_TYPE_HUMAN_ANNOTATION_STORE: _ClassVar[SourceType]
    SOURCE_TYPE_MEMORY_LAYER: _ClassVar[SourceType]

class TaskKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_KIND_UNSPECIFIED: _ClassVar[TaskKind]
    TASK_KIND_KNOWLEDGE: _ClassVar[TaskKind]
    TASK_KIND_CODE: _ClassVar[TaskKind]
    TASK_KIND_MIXED: _ClassVar[TaskKind]
    TASK_KIND_UNCERTAIN: _ClassVar[TaskKind]

class ToolRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_ROLE_UNSPECIFIED: _ClassVar[ToolRole]
    TOOL_ROLE_SKILL: _ClassVar[ToolRole]
    TOOL_ROLE_TABLE: _ClassVar[ToolRole]
    TOOL_ROLE_TEXT: _ClassVar[ToolRole]
    TOOL_ROLE_LOCAL: _ClassVar[ToolRole]
    TOOL_ROLE_FILESYSTEM: _ClassVar[ToolRole]
    TOOL_ROLE_OTHER: _ClassVar[ToolRole]
ANNOTATION_TARGET_TYPE_UNSPECIFIED: AnnotationTargetType
ANNOTATION_TARGET_TYPE_DOCUMENT: AnnotationTargetType
ANNOTATION_TARGET_TYPE_CODE_SYMBOL: AnnotationTargetType
ANNOTATION_TARGET_TYPE_CONFIG_KEY: AnnotationTargetType
ANNOTATION_TARGET_TYPE_SERVICE: AnnotationTargetType
ANNOTATION_TARGET_TYPE_INCIDENT: AnnotationTargetType
ANNOTATION_TYPE_UNSPECIFIED: AnnotationType
ANNOTATION_TYPE_CORRECTION: AnnotationType
ANNOTATION_TYPE_LABEL: AnnotationType
ANNOTATION_TYPE_KNOWLEDGE: AnnotationType
ANNOTATION_TYPE_REVIEW: AnnotationType
ANNOTATION_TYPE_DEPRECATION_NOTICE: AnnotationType
AUDIT_KIND_UNSPECIFIED: AuditKind
AUDIT_KIND_POLICY: AuditKind
AUDIT_KIND_TOKEN: AuditKind
AUDIT_KIND_SECRET: AuditKind
AUDIT_KIND_DOCUMENT: AuditKind
AUDIT_KIND_SOURCE: AuditKind
AUDIT_KIND_BASE: AuditKind
AUDIT_KIND_SESSION: AuditKind
AUTHORITY_TIER_UNSPECIFIED: AuthorityTier
AUTHORITY_TIER_EPHEMERAL: AuthorityTier
AUTHORITY_TIER_USER: AuthorityTier
AUTHORITY_TIER_DERIVED: AuthorityTier
AUTHORITY_TIER_CURATED: AuthorityTier
AUTHORITY_TIER_CANONICAL: AuthorityTier
BREADTH_UNSPECIFIED: Breadth
BREADTH_LOOKUP: Breadth
BREADTH_MODERATE: Breadth
BREADTH_BROAD: Breadth
BREADTH_UNSURE: Breadth
BREAKER_STATE_UNSPECIFIED: BreakerState
BREAKER_STATE_CLOSED: BreakerState
BREAKER_STATE_OPEN: BreakerState
BREAKER_STATE_HALF_OPEN: BreakerState
CACHE_TIER_UNSPECIFIED: CacheTier
CACHE_TIER_REQUEST: CacheTier
CACHE_TIER_SESSION: CacheTier
CACHE_TIER_GLOBAL: CacheTier
CACHE_TIER_PRECOMPUTED: CacheTier
CHANGE_UNSPECIFIED: Change
CHANGE_NEWLY_BLOCKED: Change
CHANGE_NEWLY_ALLOWED: Change
CHANGE_NEWLY_WARNED: Change
CHANGE_NO_LONGER_WARNED: Change
CHANGE_UNCHANGED: Change
CLASSIFICATION_UNSPECIFIED: Classification
CLASSIFICATION_PUBLIC: Classification
CLASSIFICATION_INTERNAL: Classification
CLASSIFICATION_CONFIDENTIAL: Classification
CLASSIFICATION_RESTRICTED: Classification
COLUMN_KIND_UNSPECIFIED: ColumnKind
COLUMN_KIND_TEXT: ColumnKind
COLUMN_KIND_INTEGER: ColumnKind
COLUMN_KIND_NUMBER: ColumnKind
COLUMN_KIND_BOOLEAN: ColumnKind
COLUMN_KIND_DATE: ColumnKind
COLUMN_KIND_DATETIME: ColumnKind
COLUMN_KIND_TIME: ColumnKind
COMPAT_UNSPECIFIED: Compat
COMPAT_RESOLVED: Compat
COMPAT_LITERAL: Compat
CONNECTION_KIND_UNSPECIFIED: ConnectionKind
CONNECTION_KIND_OWN: ConnectionKind
CONNECTION_KIND_PYTHON: ConnectionKind
CONNECTION_KIND_BASE: ConnectionKind
CONNECTION_KIND_REMOTE: ConnectionKind
CONNECTION_KIND_MCP: ConnectionKind
CONNECTION_KIND_MEMORY: ConnectionKind
CONTENT_TYPE_UNSPECIFIED: ContentType
CONTENT_TYPE_CODE: ContentType
CONTENT_TYPE_DOCUMENTATION: ContentType
CONTENT_TYPE_CONFIG: ContentType
CONTENT_TYPE_LOG: ContentType
CONTENT_TYPE_ANNOTATION: ContentType
CONTENT_TYPE_SCHEMA: ContentType
CONTENT_TYPE_RUNBOOK: ContentType
COVERAGE_STATE_UNSPECIFIED: CoverageState
COVERAGE_STATE_SEARCHED: CoverageState
COVERAGE_STATE_CACHED: CoverageState
COVERAGE_STATE_STALE: CoverageState
COVERAGE_STATE_TIMED_OUT: CoverageState
COVERAGE_STATE_FAILED: CoverageState
COVERAGE_STATE_BREAKER_OPEN: CoverageState
COVERAGE_STATE_SKIPPED: CoverageState
COVERAGE_STATE_DENIED: CoverageState
DECISION_STATUS_UNSPECIFIED: DecisionStatus
DECISION_STATUS_EVALUATED: DecisionStatus
DECISION_STATUS_PROVISIONAL: DecisionStatus
DECISION_STATUS_BYPASSED: DecisionStatus
DECISION_STATUS_SHADOW: DecisionStatus
DEPRECATION_STATUS_UNSPECIFIED: DeprecationStatus
DEPRECATION_STATUS_ACTIVE: DeprecationStatus
DEPRECATION_STATUS_DEPRECATED: DeprecationStatus
DEPRECATION_STATUS_ARCHIVED: DeprecationStatus
ENFORCEMENT_UNSPECIFIED: Enforcement
ENFORCEMENT_ENFORCE: Enforcement
ENFORCEMENT_SHADOW: Enforcement
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_ADDED: EventKind
EVENT_KIND_CHANGED: EventKind
EVENT_KIND_REMOVED: EventKind
EVENT_KIND_ACCESS_CHANGED: EventKind
EXPERTISE_LEVEL_UNSPECIFIED: ExpertiseLevel
EXPERTISE_LEVEL_DOMAIN_EXPERT: ExpertiseLevel
EXPERTISE_LEVEL_SENIOR_ENGINEER: ExpertiseLevel
EXPERTISE_LEVEL_TEAM_LEAD: ExpertiseLevel
EXPERTISE_LEVEL_CONTRIBUTOR: ExpertiseLevel
EXPERTISE_LEVEL_UNKNOWN: ExpertiseLevel
FUSION_METHOD_UNSPECIFIED: FusionMethod
FUSION_METHOD_LINEAR: FusionMethod
FUSION_METHOD_RRF: FusionMethod
FUSION_METHOD_LEARNED: FusionMethod
GOVERNANCE_MODE_UNSPECIFIED: GovernanceMode
GOVERNANCE_MODE_OFF: GovernanceMode
GOVERNANCE_MODE_ANNOTATE: GovernanceMode
GOVERNANCE_MODE_FILTER: GovernanceMode
GOVERNANCE_MODE_ENFORCE: GovernanceMode
JUDGE_STATUS_UNSPECIFIED: JudgeStatus
JUDGE_STATUS_JUDGED: JudgeStatus
JUDGE_STATUS_UNPARSEABLE: JudgeStatus
JUDGE_STATUS_NO_KEY: JudgeStatus
JUDGE_STATUS_UNAVAILABLE: JudgeStatus
JUDGE_STATUS_TIMED_OUT: JudgeStatus
JUDGE_STATUS_SOURCE_UNAVAILABLE: JudgeStatus
JUDGE_STATUS_NOTHING_TO_JUDGE: JudgeStatus
JUDGE_STATUS_NOT_CONFIGURED: JudgeStatus
LATENCY_TIER_UNSPECIFIED: LatencyTier
LATENCY_TIER_HOT: LatencyTier
LATENCY_TIER_WARM: LatencyTier
LATENCY_TIER_COLD: LatencyTier
LATENCY_TIER_ARCHIVE: LatencyTier
ON_TIMEOUT_UNSPECIFIED: OnTimeout
ON_TIMEOUT_DEGRADE: OnTimeout
ON_TIMEOUT_WAIT: OnTimeout
ON_TIMEOUT_REFUSE: OnTimeout
PHASE_UNSPECIFIED: Phase
PHASE_BEFORE_WORKFLOW: Phase
PHASE_MID_EXECUTION: Phase
PHASE_AFTER_WORKFLOW: Phase
POLICY_ACTION_UNSPECIFIED: PolicyAction
POLICY_ACTION_ALLOW: PolicyAction
POLICY_ACTION_WARN: PolicyAction
POLICY_ACTION_REDACT: PolicyAction
POLICY_ACTION_RETRY: PolicyAction
POLICY_ACTION_SKIP: PolicyAction
POLICY_ACTION_THROTTLE: PolicyAction
POLICY_ACTION_BLOCK: PolicyAction
POSTURE_UNSPECIFIED: Posture
POSTURE_OPEN: Posture
POSTURE_DEGRADE: Posture
POSTURE_CLOSED: Posture
PROTOCOL_RULE_UNSPECIFIED: ProtocolRule
PROTOCOL_RULE_ALLOWED_TOOLS: ProtocolRule
PROTOCOL_RULE_FILESYSTEM_TOOLS: ProtocolRule
PROTOCOL_RULE_CODE_PORTION: ProtocolRule
PROTOCOL_RULE_SKILL_FIRST: ProtocolRule
PROTOCOL_RULE_SEQUENTIAL: ProtocolRule
PROTOCOL_RULE_ANSWER_BEFORE_RETRIEVAL: ProtocolRule
PROTOCOL_RULE_SOURCE_ORDER: ProtocolRule
PROTOCOL_RULE_TOOL_CHOICE: ProtocolRule
PROTOCOL_RULE_RAW_QUERY: ProtocolRule
PROTOCOL_RULE_LOST_ENTITY: ProtocolRule
PROTOCOL_RULE_FOREIGN_TOPIC: ProtocolRule
PROTOCOL_RULE_TOP_K_TOOL: ProtocolRule
PROTOCOL_RULE_TOP_K_VALUE: ProtocolRule
PROTOCOL_RULE_NEEDLESS_CALL: ProtocolRule
PROTOCOL_RULE_STOPPED_EARLY: ProtocolRule
PROTOCOL_RULE_CALL_CAP: ProtocolRule
PROTOCOL_RULE_RETRY_ORDER: ProtocolRule
PROTOCOL_RULE_REPEATED_QUERY: ProtocolRule
PROTOCOL_RULE_EARLY_NOT_FOUND: ProtocolRule
PROTOCOL_RULE_TRUNCATION_COUNTS: ProtocolRule
PROTOCOL_RULE_FILE_NAMES: ProtocolRule
PROTOCOL_RULE_SOURCE_CODES: ProtocolRule
PROTOCOL_RULE_INSTRUCTIONS: ProtocolRule
PROTOCOL_RULE_IMAGE_IGNORED: ProtocolRule
PROTOCOL_RULE_IMAGE_MISPLACED: ProtocolRule
PROTOCOL_RULE_IMAGES_AT_END: ProtocolRule
PROTOCOL_RULE_CITATION_MISSING: ProtocolRule
PROTOCOL_RULE_CITATION_GRAMMAR: ProtocolRule
PROTOCOL_RULE_CITATION_UNRESOLVED: ProtocolRule
PROTOCOL_RULE_CITATION_PLACEMENT: ProtocolRule
PROTOCOL_RULE_CITATION_COUNT: ProtocolRule
PROTOCOL_RULE_CITATIONS_AT_END: ProtocolRule
PROTOCOL_RULE_SELF_KNOWLEDGE_OFF: ProtocolRule
PROTOCOL_RULE_SELF_KNOWLEDGE_NEEDLESS: ProtocolRule
PROTOCOL_RULE_SELF_KNOWLEDGE_MIXED: ProtocolRule
PROTOCOL_RULE_SELF_KNOWLEDGE_SCOPE: ProtocolRule
PROTOCOL_RULE_SELF_KNOWLEDGE_CITED: ProtocolRule
PROTOCOL_RULE_UNCERTAINTY_UNSTATED: ProtocolRule
PROTOCOL_RULE_SELF_CHECK: ProtocolRule
PUSH_ACTION_UNSPECIFIED: PushAction
PUSH_ACTION_CREATED: PushAction
PUSH_ACTION_UPDATED: PushAction
PUSH_ACTION_UNCHANGED: PushAction
QUERY_CAPABILITY_UNSPECIFIED: QueryCapability
QUERY_CAPABILITY_EXACT_MATCH: QueryCapability
QUERY_CAPABILITY_SEMANTIC: QueryCapability
QUERY_CAPABILITY_STRUCTURED: QueryCapability
QUERY_CAPABILITY_GRAPH_TRAVERSAL: QueryCapability
QUERY_STEP_NAME_UNSPECIFIED: QueryStepName
QUERY_STEP_NAME_CONTEXT: QueryStepName
QUERY_STEP_NAME_NORMALISE: QueryStepName
QUERY_STEP_NAME_SPELLING: QueryStepName
QUERY_STEP_NAME_ABBREVIATIONS: QueryStepName
QUERY_STEP_NAME_SYNONYMS: QueryStepName
QUERY_STEP_NAME_DECOMPOSE: QueryStepName
QUERY_STEP_NAME_REWRITE: QueryStepName
QUESTION_TYPE_UNSPECIFIED: QuestionType
QUESTION_TYPE_VALUE: QuestionType
QUESTION_TYPE_PRICE: QuestionType
QUESTION_TYPE_QUANTITY: QuestionType
QUESTION_TYPE_INVENTORY: QuestionType
QUESTION_TYPE_SPECIFICATION: QuestionType
QUESTION_TYPE_RANKING: QuestionType
QUESTION_TYPE_COMPARISON: QuestionType
QUESTION_TYPE_SUMMARY: QuestionType
QUESTION_TYPE_EXTRACTION: QuestionType
QUESTION_TYPE_LIST: QuestionType
QUESTION_TYPE_TABLE: QuestionType
QUESTION_TYPE_NAME_LOOKUP: QuestionType
QUESTION_TYPE_HISTORY: QuestionType
QUESTION_TYPE_MIXED: QuestionType
QUESTION_TYPE_UNCLEAR: QuestionType
QUESTION_TYPE_CONCEPT: QuestionType
QUESTION_TYPE_DEFINITION: QuestionType
QUESTION_TYPE_WORKFLOW: QuestionType
QUESTION_TYPE_POLICY: QuestionType
QUESTION_TYPE_EXPLANATION: QuestionType
RETRIEVAL_MODE_UNSPECIFIED: RetrievalMode
RETRIEVAL_MODE_HYBRID: RetrievalMode
RETRIEVAL_MODE_LEXICAL: RetrievalMode
RETRIEVAL_MODE_DENSE: RetrievalMode
ROLE_UNSPECIFIED: Role
ROLE_READER: Role
ROLE_AGENT: Role
ROLE_AUDITOR: Role
ROLE_ADMIN: Role
RUN_STATUS_UNSPECIFIED: RunStatus
RUN_STATUS_RUNNING: RunStatus
RUN_STATUS_SUCCESS: RunStatus
RUN_STATUS_BLOCKED: RunStatus
RUN_STATUS_ERROR: RunStatus
SHORTFALL_UNSPECIFIED: Shortfall
SHORTFALL_EMPTY: Shortfall
SHORTFALL_ERROR: Shortfall
SHORTFALL_NO_SPREADSHEET: Shortfall
SHORTFALL_OFF_TOPIC: Shortfall
SHORTFALL_MISSING_ENTITY: Shortfall
SHORTFALL_NO_EVIDENCE: Shortfall
SHORTFALL_PARTIAL: Shortfall
SHORTFALL_TRUNCATED: Shortfall
SOURCE_TYPE_UNSPECIFIED: SourceType
SOURCE_TYPE_INVERTED_INDEX: SourceType
SOURCE_TYPE_VECTOR_STORE: SourceType
SOURCE_TYPE_RELATIONAL_DB: SourceType
SOURCE_TYPE_KNOWLEDGE_GRAPH: SourceType
SOURCE_TYPE_API: SourceType
SOURCE_TYPE_LOG_STORE: SourceType
SOURCE_TYPE_CODE_INDEX: SourceType
SOURCE_TYPE_HUMAN_ANNOTATION_STORE: SourceType
SOURCE_TYPE_MEMORY_LAYER: SourceType
TASK_KIND_UNSPECIFIED: TaskKind
TASK_KIND_KNOWLEDGE: TaskKind
TASK_KIND_CODE: TaskKind
TASK_KIND_MIXED: TaskKind
TASK_KIND_UNCERTAIN: TaskKind
TOOL_ROLE_UNSPECIFIED: ToolRole
TOOL_ROLE_SKILL: ToolRole
TOOL_ROLE_TABLE: ToolRole
TOOL_ROLE_TEXT: ToolRole
TOOL_ROLE_LOCAL: ToolRole
TOOL_ROLE_FILESYSTEM: ToolRole
TOOL_ROLE_OTHER: ToolRole

class AccessRule(_message.Message):
    __slots__ = ("tenant", "classification", "acl")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    classification: Classification
    acl: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., classification: _Optional[_Union[Classification, str]] = ..., acl: _Optional[_Iterable[str]] = ...) -> None: ...

class And(_message.Message):
    __slots__ = ("clauses",)
    CLAUSES_FIELD_NUMBER: _ClassVar[int]
    clauses: _containers.RepeatedCompositeFieldContainer[Predicate]
    def __init__(self, clauses: _Optional[_Iterable[_Union[Predicate, _Mapping[str, object]]]] = ...) -> None: ...

class Annotation(_message.Message):
    __slots__ = ("annotation_id", "target", "annotation_type", "content", "author", "author_expertise", "created_at", "expires_at", "confidence", "supersedes", "provenance")
    ANNOTATION_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ANNOTATION_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_EXPERTISE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    annotation_id: str
    target: AnnotationTarget
    annotation_type: AnnotationType
    content: str
    author: str
    author_expertise: ExpertiseLevel
    created_at: str
    expires_at: str
    confidence: float
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    provenance: ProvenanceRecord
    def __init__(self, annotation_id: _Optional[str] = ..., target: _Optional[_Union[AnnotationTarget, _Mapping[str, object]]] = ..., annotation_type: _Optional[_Union[AnnotationType, str]] = ..., content: _Optional[str] = ..., author: _Optional[str] = ..., author_expertise: _Optional[_Union[ExpertiseLevel, str]] = ..., created_at: _Optional[str] = ..., expires_at: _Optional[str] = ..., confidence: _Optional[float] = ..., supersedes: _Optional[_Iterable[str]] = ..., provenance: _Optional[_Union[ProvenanceRecord, _Mapping[str, object]]] = ...) -> None: ...

class AnnotationTarget(_message.Message):
    __slots__ = ("target_type", "target_id", "target_version")
    TARGET_TYPE_FIELD_NUMBER: _ClassVar[int]
    TARGET_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_VERSION_FIELD_NUMBER: _ClassVar[int]
    target_type: AnnotationTargetType
    target_id: str
    target_version: str
    def __init__(self, target_type: _Optional[_Union[AnnotationTargetType, str]] = ..., target_id: _Optional[str] = ..., target_version: _Optional[str] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("seq", "at", "by", "kind", "change", "subject", "name", "version", "digest")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at: str
    by: str
    kind: AuditKind
    change: str
    subject: str
    name: str
    version: int
    digest: str
    def __init__(self, seq: _Optional[int] = ..., at: _Optional[str] = ..., by: _Optional[str] = ..., kind: _Optional[_Union[AuditKind, str]] = ..., change: _Optional[str] = ..., subject: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class AuditPage(_message.Message):
    __slots__ = ("changes", "next_cursor")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_cursor: str
    def __init__(self, changes: _Optional[_Iterable[_Union[AuditEntry, _Mapping[str, object]]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class BaseHead(_message.Message):
    __slots__ = ("custody_format", "base_id", "sequence", "committed_at", "evidence_state", "log_size", "log_root", "commit_hash", "public_key")
    CUSTODY_FORMAT_FIELD_NUMBER: _ClassVar[int]
    BASE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    LOG_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOG_ROOT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_HASH_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    custody_format: int
    base_id: str
    sequence: int
    committed_at: str
    evidence_state: str
    log_size: int
    log_root: str
    commit_hash: str
    public_key: str
    def __init__(self, custody_format: _Optional[int] = ..., base_id: _Optional[str] = ..., sequence: _Optional[int] = ..., committed_at: _Optional[str] = ..., evidence_state: _Optional[str] = ..., log_size: _Optional[int] = ..., log_root: _Optional[str] = ..., commit_hash: _Optional[str] = ..., public_key: _Optional[str] = ...) -> None: ...

class BatchClosed(_message.Message):
    __slots__ = ("span", "batch")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    span: str
    batch: str
    def __init__(self, span: _Optional[str] = ..., batch: _Optional[str] = ...) -> None: ...

class BrokenLink(_message.Message):
    __slots__ = ("check", "where", "problem")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    check: str
    where: str
    problem: str
    def __init__(self, check: _Optional[str] = ..., where: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class CacheStats(_message.Message):
    __slots__ = ("finds", "hits", "stale_hits", "entries", "tiers")
    FINDS_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    STALE_HITS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    finds: int
    hits: int
    stale_hits: int
    entries: int
    tiers: _containers.RepeatedCompositeFieldContainer[TierStats]
    def __init__(self, finds: _Optional[int] = ..., hits: _Optional[int] = ..., stale_hits: _Optional[int] = ..., entries: _Optional[int] = ..., tiers: _Optional[_Iterable[_Union[TierStats, _Mapping[str, object]]]] = ...) -> None: ...

class Calibration(_message.Message):
    __slots__ = ("rule", "category", "unit", "percentile", "threshold", "observed", "confidence_percent", "low", "high", "good_runs", "good_values", "effective_values", "predicted", "current", "histogram", "patch_json", "command", "notes")
    RULE_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    PERCENTILE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    GOOD_RUNS_FIELD_NUMBER: _ClassVar[int]
    GOOD_VALUES_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_VALUES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    PATCH_JSON_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    rule: str
    category: str
    unit: str
    percentile: int
    threshold: float
    observed: float
    confidence_percent: int
    low: float
    high: float
    good_runs: int
    good_values: int
    effective_values: int
    predicted: TriggerRate
    current: TriggerRate
    histogram: _containers.RepeatedCompositeFieldContainer[HistogramBar]
    patch_json: str
    command: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rule: _Optional[str] = ..., category: _Optional[str] = ..., unit: _Optional[str] = ..., percentile: _Optional[int] = ..., threshold: _Optional[float] = ..., observed: _Optional[float] = ..., confidence_percent: _Optional[int] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., good_runs: _Optional[int] = ..., good_values: _Optional[int] = ..., effective_values: _Optional[int] = ..., predicted: _Optional[_Union[TriggerRate, _Mapping[str, object]]] = ..., current: _Optional[_Union[TriggerRate, _Mapping[str, object]]] = ..., histogram: _Optional[_Iterable[_Union[HistogramBar, _Mapping[str, object]]]] = ..., patch_json: _Optional[str] = ..., command: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class CallResult(_message.Message):
    __slots__ = ("seq", "verdicts", "decisions", "is_repeated")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    seq: int
    verdicts: _containers.RepeatedCompositeFieldContainer[Verdict]
    decisions: _containers.RepeatedCompositeFieldContainer[PolicyDecision]
    is_repeated: bool
    def __init__(self, seq: _Optional[int] = ..., verdicts: _Optional[_Iterable[_Union[Verdict, _Mapping[str, object]]]] = ..., decisions: _Optional[_Iterable[_Union[PolicyDecision, _Mapping[str, object]]]] = ..., is_repeated: bool = ...) -> None: ...

class CallsReply(_message.Message):
    __slots__ = ("run_id", "status", "results", "stopped_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    STOPPED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: RunStatus
    results: _containers.RepeatedCompositeFieldContainer[CallResult]
    stopped_at: int
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[RunStatus, str]] = ..., results: _Optional[_Iterable[_Union[CallResult, _Mapping[str, object]]]] = ..., stopped_at: _Optional[int] = ...) -> None: ...

class CellValue(_message.Message):
    __slots__ = ("truth", "integer", "real", "text")
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    truth: bool
    integer: int
    real: float
    text: str
    def __init__(self, truth: bool = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ...) -> None: ...

class CellValueList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[CellValue]
    def __init__(self, values: _Optional[_Iterable[_Union[CellValue, _Mapping[str, object]]]] = ...) -> None: ...

class ChangedDocument(_message.Message):
    __slots__ = ("document_id", "source_id")
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    document_id: str
    source_id: str
    def __init__(self, document_id: _Optional[str] = ..., source_id: _Optional[str] = ...) -> None: ...

class ChangedDocuments(_message.Message):
    __slots__ = ("total", "documents")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    total: int
    documents: _containers.RepeatedCompositeFieldContainer[ChangedDocument]
    def __init__(self, total: _Optional[int] = ..., documents: _Optional[_Iterable[_Union[ChangedDocument, _Mapping[str, object]]]] = ...) -> None: ...

class CheckBypassed(_message.Message):
    __slots__ = ("span", "what", "problem", "posture")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    POSTURE_FIELD_NUMBER: _ClassVar[int]
    span: str
    what: str
    problem: str
    posture: Posture
    def __init__(self, span: _Optional[str] = ..., what: _Optional[str] = ..., problem: _Optional[str] = ..., posture: _Optional[_Union[Posture, str]] = ...) -> None: ...

class ChunkList(_message.Message):
    __slots__ = ("chunks",)
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[StoredChunk]
    def __init__(self, chunks: _Optional[_Iterable[_Union[StoredChunk, _Mapping[str, object]]]] = ...) -> None: ...

class CommitRecord(_message.Message):
    __slots__ = ("sequence", "parent", "base_id", "committed_at", "corpus_version", "evidence_state", "log_size", "log_root", "oldest_readable", "segments_hash", "sources_hash", "roots_hash", "vectors", "vector_files_hash", "keys_hash", "contexts")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    BASE_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    LOG_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOG_ROOT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READABLE_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_HASH_FIELD_NUMBER: _ClassVar[int]
    SOURCES_HASH_FIELD_NUMBER: _ClassVar[int]
    ROOTS_HASH_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FILES_HASH_FIELD_NUMBER: _ClassVar[int]
    KEYS_HASH_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    parent: str
    base_id: str
    committed_at: str
    corpus_version: str
    evidence_state: str
    log_size: int
    log_root: str
    oldest_readable: int
    segments_hash: str
    sources_hash: str
    roots_hash: str
    vectors: str
    vector_files_hash: str
    keys_hash: str
    contexts: str
    def __init__(self, sequence: _Optional[int] = ..., parent: _Optional[str] = ..., base_id: _Optional[str] = ..., committed_at: _Optional[str] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., log_size: _Optional[int] = ..., log_root: _Optional[str] = ..., oldest_readable: _Optional[int] = ..., segments_hash: _Optional[str] = ..., sources_hash: _Optional[str] = ..., roots_hash: _Optional[str] = ..., vectors: _Optional[str] = ..., vector_files_hash: _Optional[str] = ..., keys_hash: _Optional[str] = ..., contexts: _Optional[str] = ...) -> None: ...

class CommitSummary(_message.Message):
    __slots__ = ("sequence", "corpus_version", "evidence_state", "log_size", "log_root", "committed_at", "added", "changed", "removed", "access_changed")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    LOG_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOG_ROOT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    corpus_version: str
    evidence_state: str
    log_size: int
    log_root: str
    committed_at: str
    added: int
    changed: int
    removed: int
    access_changed: int
    def __init__(self, sequence: _Optional[int] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., log_size: _Optional[int] = ..., log_root: _Optional[str] = ..., committed_at: _Optional[str] = ..., added: _Optional[int] = ..., changed: _Optional[int] = ..., removed: _Optional[int] = ..., access_changed: _Optional[int] = ...) -> None: ...

class Compare(_message.Message):
    __slots__ = ("field", "operator", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    operator: str
    value: Value
    def __init__(self, field: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping[str, object]]] = ...) -> None: ...

class Conflict(_message.Message):
    __slots__ = ("subject", "attribute", "winner", "value", "losers", "losing_values", "decided_by")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    WINNER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOSERS_FIELD_NUMBER: _ClassVar[int]
    LOSING_VALUES_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    subject: str
    attribute: str
    winner: str
    value: str
    losers: _containers.RepeatedScalarFieldContainer[str]
    losing_values: _containers.RepeatedScalarFieldContainer[str]
    decided_by: str
    def __init__(self, subject: _Optional[str] = ..., attribute: _Optional[str] = ..., winner: _Optional[str] = ..., value: _Optional[str] = ..., losers: _Optional[_Iterable[str]] = ..., losing_values: _Optional[_Iterable[str]] = ..., decided_by: _Optional[str] = ...) -> None: ...

class ConsistencyProof(_message.Message):
    __slots__ = ("first_size", "second_size", "hashes", "first_root", "second_root")
    FIRST_SIZE_FIELD_NUMBER: _ClassVar[int]
    SECOND_SIZE_FIELD_NUMBER: _ClassVar[int]
    HASHES_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROOT_FIELD_NUMBER: _ClassVar[int]
    SECOND_ROOT_FIELD_NUMBER: _ClassVar[int]
    first_size: int
    second_size: int
    hashes: _containers.RepeatedScalarFieldContainer[str]
    first_root: str
    second_root: str
    def __init__(self, first_size: _Optional[int] = ..., second_size: _Optional[int] = ..., hashes: _Optional[_Iterable[str]] = ..., first_root: _Optional[str] = ..., second_root: _Optional[str] = ...) -> None: ...

class Contains(_message.Message):
    __slots__ = ("field", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: Value
    def __init__(self, field: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping[str, object]]] = ...) -> None: ...

class Count(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class CoverageReport(_message.Message):
    __slots__ = ("state", "reason", "candidates", "searched_share", "embedded_share", "data_age_s", "elapsed_ms", "tier", "faults")
    class FaultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_SHARE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_SHARE_FIELD_NUMBER: _ClassVar[int]
    DATA_AGE_S_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    state: CoverageState
    reason: str
    candidates: int
    searched_share: float
    embedded_share: float
    data_age_s: int
    elapsed_ms: float
    tier: CacheTier
    faults: _containers.ScalarMap[str, int]
    def __init__(self, state: _Optional[_Union[CoverageState, str]] = ..., reason: _Optional[str] = ..., candidates: _Optional[int] = ..., searched_share: _Optional[float] = ..., embedded_share: _Optional[float] = ..., data_age_s: _Optional[int] = ..., elapsed_ms: _Optional[float] = ..., tier: _Optional[_Union[CacheTier, str]] = ..., faults: _Optional[_Mapping[str, int]] = ...) -> None: ...

class CoverageReportMap(_message.Message):
    __slots__ = ("entries",)
    class EntriesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: CoverageReport
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CoverageReport, _Mapping[str, object]]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.MessageMap[str, CoverageReport]
    def __init__(self, entries: _Optional[_Mapping[str, CoverageReport]] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("stage", "note", "remaining")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    stage: str
    note: str
    remaining: int
    def __init__(self, stage: _Optional[str] = ..., note: _Optional[str] = ..., remaining: _Optional[int] = ...) -> None: ...

class DecisionCounts(_message.Message):
    __slots__ = ("decisions", "allowed", "warned", "stopped", "not_enforced", "bypassed")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    WARNED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    NOT_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_FIELD_NUMBER: _ClassVar[int]
    decisions: int
    allowed: int
    warned: int
    stopped: int
    not_enforced: int
    bypassed: int
    def __init__(self, decisions: _Optional[int] = ..., allowed: _Optional[int] = ..., warned: _Optional[int] = ..., stopped: _Optional[int] = ..., not_enforced: _Optional[int] = ..., bypassed: _Optional[int] = ...) -> None: ...

class DecisionPage(_message.Message):
    __slots__ = ("decisions", "next_cursor")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[PolicyDecision]
    next_cursor: str
    def __init__(self, decisions: _Optional[_Iterable[_Union[PolicyDecision, _Mapping[str, object]]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class DecomposedQuery(_message.Message):
    __slots__ = ("text", "subqueries")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SUBQUERIES_FIELD_NUMBER: _ClassVar[int]
    text: str
    subqueries: _containers.RepeatedCompositeFieldContainer[SubQuery]
    def __init__(self, text: _Optional[str] = ..., subqueries: _Optional[_Iterable[_Union[SubQuery, _Mapping[str, object]]]] = ...) -> None: ...

class DecomposedQueryOrText(_message.Message):
    __slots__ = ("decomposed_query", "text")
    DECOMPOSED_QUERY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    decomposed_query: DecomposedQuery
    text: str
    def __init__(self, decomposed_query: _Optional[_Union[DecomposedQuery, _Mapping[str, object]]] = ..., text: _Optional[str] = ...) -> None: ...

class DoctorReport(_message.Message):
    __slots__ = ("ok", "findings")
    OK_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, ok: bool = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping[str, object]]]] = ...) -> None: ...

class DocumentCustody(_message.Message):
    __slots__ = ("origin", "transformations", "cut_by")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMATIONS_FIELD_NUMBER: _ClassVar[int]
    CUT_BY_FIELD_NUMBER: _ClassVar[int]
    origin: OriginDescriptor
    transformations: _containers.RepeatedCompositeFieldContainer[TransformationRecord]
    cut_by: ToolStamp
    def __init__(self, origin: _Optional[_Union[OriginDescriptor, _Mapping[str, object]]] = ..., transformations: _Optional[_Iterable[_Union[TransformationRecord, _Mapping[str, object]]]] = ..., cut_by: _Optional[_Union[ToolStamp, _Mapping[str, object]]] = ...) -> None: ...

class DocumentEntry(_message.Message):
    __slots__ = ("document_id", "access", "chunks")
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    document_id: str
    access: AccessRule
    chunks: int
    def __init__(self, document_id: _Optional[str] = ..., access: _Optional[_Union[AccessRule, _Mapping[str, object]]] = ..., chunks: _Optional[int] = ...) -> None: ...

class DocumentImage(_message.Message):
    __slots__ = ("image_hash", "media_type", "byte_count", "name", "alt", "start", "end")
    IMAGE_HASH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    BYTE_COUNT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    image_hash: str
    media_type: str
    byte_count: int
    name: str
    alt: str
    start: int
    end: int
    def __init__(self, image_hash: _Optional[str] = ..., media_type: _Optional[str] = ..., byte_count: _Optional[int] = ..., name: _Optional[str] = ..., alt: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class DocumentLayout(_message.Message):
    __slots__ = ("pages", "images", "tables")
    PAGES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    pages: _containers.RepeatedScalarFieldContainer[int]
    images: _containers.RepeatedCompositeFieldContainer[DocumentImage]
    tables: _containers.RepeatedCompositeFieldContainer[TableCard]
    def __init__(self, pages: _Optional[_Iterable[int]] = ..., images: _Optional[_Iterable[_Union[DocumentImage, _Mapping[str, object]]]] = ..., tables: _Optional[_Iterable[_Union[TableCard, _Mapping[str, object]]]] = ...) -> None: ...

class DocumentMetadata(_message.Message):
    __slots__ = ("source_id", "title", "path", "media_type", "content_type", "authority_tier", "language", "created_at", "updated_at", "author", "tags", "version", "deprecation_status", "extra", "layout", "remarks")
    class ExtraEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RemarksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: IntegerList
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[IntegerList, _Mapping[str, object]]] = ...) -> None: ...
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DEPRECATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    REMARKS_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    title: str
    path: str
    media_type: str
    content_type: ContentType
    authority_tier: AuthorityTier
    language: str
    created_at: str
    updated_at: str
    author: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    version: str
    deprecation_status: DeprecationStatus
    extra: _containers.ScalarMap[str, str]
    layout: str
    remarks: _containers.MessageMap[str, IntegerList]
    def __init__(self, source_id: _Optional[str] = ..., title: _Optional[str] = ..., path: _Optional[str] = ..., media_type: _Optional[str] = ..., content_type: _Optional[_Union[ContentType, str]] = ..., authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., language: _Optional[str] = ..., created_at: _Optional[str] = ..., updated_at: _Optional[str] = ..., author: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., version: _Optional[str] = ..., deprecation_status: _Optional[_Union[DeprecationStatus, str]] = ..., extra: _Optional[_Mapping[str, str]] = ..., layout: _Optional[str] = ..., remarks: _Optional[_Mapping[str, IntegerList]] = ...) -> None: ...

class DocumentPage(_message.Message):
    __slots__ = ("documents", "next_cursor")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[DocumentEntry]
    next_cursor: str
    def __init__(self, documents: _Optional[_Iterable[_Union[DocumentEntry, _Mapping[str, object]]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("subject",)
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    subject: str
    def __init__(self, subject: _Optional[str] = ...) -> None: ...

class EmbedReport(_message.Message):
    __slots__ = ("identity", "embedded", "reused", "remaining", "evidence_state", "sequence")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    identity: VectorIdentity
    embedded: int
    reused: int
    remaining: int
    evidence_state: str
    sequence: int
    def __init__(self, identity: _Optional[_Union[VectorIdentity, _Mapping[str, object]]] = ..., embedded: _Optional[int] = ..., reused: _Optional[int] = ..., remaining: _Optional[int] = ..., evidence_state: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class EndReply(_message.Message):
    __slots__ = ("run_id", "status", "verdicts", "decisions")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: RunStatus
    verdicts: _containers.RepeatedCompositeFieldContainer[Verdict]
    decisions: _containers.RepeatedCompositeFieldContainer[PolicyDecision]
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[RunStatus, str]] = ..., verdicts: _Optional[_Iterable[_Union[Verdict, _Mapping[str, object]]]] = ..., decisions: _Optional[_Iterable[_Union[PolicyDecision, _Mapping[str, object]]]] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ("policy_id", "policy_name", "version", "digest", "category", "rule", "action", "reason", "metadata_json", "status")
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    policy_id: str
    policy_name: str
    version: int
    digest: str
    category: str
    rule: str
    action: PolicyAction
    reason: str
    metadata_json: str
    status: DecisionStatus
    def __init__(self, policy_id: _Optional[str] = ..., policy_name: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ..., category: _Optional[str] = ..., rule: _Optional[str] = ..., action: _Optional[_Union[PolicyAction, str]] = ..., reason: _Optional[str] = ..., metadata_json: _Optional[str] = ..., status: _Optional[_Union[DecisionStatus, str]] = ...) -> None: ...

class EventPage(_message.Message):
    __slots__ = ("events", "minutes", "next_cursor")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MINUTES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[GovernanceEvent]
    minutes: int
    next_cursor: str
    def __init__(self, events: _Optional[_Iterable[_Union[GovernanceEvent, _Mapping[str, object]]]] = ..., minutes: _Optional[int] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class EvidenceFragment(_message.Message):
    __slots__ = ("content", "source_id", "document_id", "chunk_id", "content_hash", "position", "start", "end", "score", "scores", "extraction_timestamp", "confidence", "authority_tier", "relevance_score", "provenance_chain", "retrieval_context", "trust_metadata", "annotations", "metadata", "event", "inclusion", "is_live", "explanation", "token_count", "is_truncated", "cut_off", "flags", "pages", "images")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_SCORE_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_CHAIN_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRUST_METADATA_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    INCLUSION_FIELD_NUMBER: _ClassVar[int]
    IS_LIVE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    IS_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    content: str
    source_id: str
    document_id: str
    chunk_id: str
    content_hash: str
    position: int
    start: int
    end: int
    score: int
    scores: SignalScores
    extraction_timestamp: str
    confidence: float
    authority_tier: AuthorityTier
    relevance_score: float
    provenance_chain: _containers.RepeatedCompositeFieldContainer[ProvenanceEntry]
    retrieval_context: RetrievalContext
    trust_metadata: TrustMetadata
    annotations: _containers.RepeatedCompositeFieldContainer[Annotation]
    metadata: _containers.ScalarMap[str, str]
    event: IngestEvent
    inclusion: InclusionProof
    is_live: bool
    explanation: _containers.RepeatedCompositeFieldContainer[TermScore]
    token_count: int
    is_truncated: bool
    cut_off: str
    flags: _containers.RepeatedScalarFieldContainer[str]
    pages: _containers.RepeatedScalarFieldContainer[int]
    images: _containers.RepeatedCompositeFieldContainer[FragmentImage]
    def __init__(self, content: _Optional[str] = ..., source_id: _Optional[str] = ..., document_id: _Optional[str] = ..., chunk_id: _Optional[str] = ..., content_hash: _Optional[str] = ..., position: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., score: _Optional[int] = ..., scores: _Optional[_Union[SignalScores, _Mapping[str, object]]] = ..., extraction_timestamp: _Optional[str] = ..., confidence: _Optional[float] = ..., authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., relevance_score: _Optional[float] = ..., provenance_chain: _Optional[_Iterable[_Union[ProvenanceEntry, _Mapping[str, object]]]] = ..., retrieval_context: _Optional[_Union[RetrievalContext, _Mapping[str, object]]] = ..., trust_metadata: _Optional[_Union[TrustMetadata, _Mapping[str, object]]] = ..., annotations: _Optional[_Iterable[_Union[Annotation, _Mapping[str, object]]]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., event: _Optional[_Union[IngestEvent, _Mapping[str, object]]] = ..., inclusion: _Optional[_Union[InclusionProof, _Mapping[str, object]]] = ..., is_live: bool = ..., explanation: _Optional[_Iterable[_Union[TermScore, _Mapping[str, object]]]] = ..., token_count: _Optional[int] = ..., is_truncated: bool = ..., cut_off: _Optional[str] = ..., flags: _Optional[_Iterable[str]] = ..., pages: _Optional[_Iterable[int]] = ..., images: _Optional[_Iterable[_Union[FragmentImage, _Mapping[str, object]]]] = ...) -> None: ...

class EvidenceResponse(_message.Message):
    __slots__ = ("request_id", "fragments", "total_candidates", "latency_ms", "source_coverage", "truncation_applied", "cache_hit_ratio", "corpus_version", "evidence_state", "config_hash", "result_hash", "receipt_id", "request_hash", "as_of", "commit", "commit_hash", "decisions", "understanding", "facets", "conflicts", "withheld", "policies", "governance", "degraded", "is_approximate", "stage_latencies_ms", "tokens_used", "custody_format", "response_hash")
    class SourceCoverageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: CoverageReport
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CoverageReport, _Mapping[str, object]]] = ...) -> None: ...
    class FacetsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: IntegerMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[IntegerMap, _Mapping[str, object]]] = ...) -> None: ...
    class StageLatenciesMsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATION_APPLIED_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_RATIO_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_HASH_FIELD_NUMBER: _ClassVar[int]
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_HASH_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_HASH_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    UNDERSTANDING_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    GOVERNANCE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    IS_APPROXIMATE_FIELD_NUMBER: _ClassVar[int]
    STAGE_LATENCIES_MS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_FORMAT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_HASH_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    fragments: _containers.RepeatedCompositeFieldContainer[EvidenceFragment]
    total_candidates: int
    latency_ms: float
    source_coverage: _containers.MessageMap[str, CoverageReport]
    truncation_applied: bool
    cache_hit_ratio: float
    corpus_version: str
    evidence_state: str
    config_hash: str
    result_hash: str
    receipt_id: str
    request_hash: str
    as_of: str
    commit: CommitRecord
    commit_hash: str
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    understanding: _containers.RepeatedCompositeFieldContainer[QueryStep]
    facets: _containers.MessageMap[str, IntegerMap]
    conflicts: _containers.RepeatedCompositeFieldContainer[Conflict]
    withheld: _containers.RepeatedCompositeFieldContainer[WithheldFragment]
    policies: str
    governance: _containers.RepeatedCompositeFieldContainer[GovernedFragment]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    is_approximate: bool
    stage_latencies_ms: _containers.ScalarMap[str, float]
    tokens_used: int
    custody_format: int
    response_hash: str
    def __init__(self, request_id: _Optional[str] = ..., fragments: _Optional[_Iterable[_Union[EvidenceFragment, _Mapping[str, object]]]] = ..., total_candidates: _Optional[int] = ..., latency_ms: _Optional[float] = ..., source_coverage: _Optional[_Mapping[str, CoverageReport]] = ..., truncation_applied: bool = ..., cache_hit_ratio: _Optional[float] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., config_hash: _Optional[str] = ..., result_hash: _Optional[str] = ..., receipt_id: _Optional[str] = ..., request_hash: _Optional[str] = ..., as_of: _Optional[str] = ..., commit: _Optional[_Union[CommitRecord, _Mapping[str, object]]] = ..., commit_hash: _Optional[str] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping[str, object]]]] = ..., understanding: _Optional[_Iterable[_Union[QueryStep, _Mapping[str, object]]]] = ..., facets: _Optional[_Mapping[str, IntegerMap]] = ..., conflicts: _Optional[_Iterable[_Union[Conflict, _Mapping[str, object]]]] = ..., withheld: _Optional[_Iterable[_Union[WithheldFragment, _Mapping[str, object]]]] = ..., policies: _Optional[str] = ..., governance: _Optional[_Iterable[_Union[GovernedFragment, _Mapping[str, object]]]] = ..., degraded: _Optional[_Iterable[str]] = ..., is_approximate: bool = ..., stage_latencies_ms: _Optional[_Mapping[str, float]] = ..., tokens_used: _Optional[int] = ..., custody_format: _Optional[int] = ..., response_hash: _Optional[str] = ...) -> None: ...

class Exists(_message.Message):
    __slots__ = ("field",)
    FIELD_FIELD_NUMBER: _ClassVar[int]
    field: str
    def __init__(self, field: _Optional[str] = ...) -> None: ...

class ExternalCandidate(_message.Message):
    __slots__ = ("chunk_id", "document_id", "source_id", "content", "content_hash", "received_hash", "received_length", "rank", "query", "origin", "retrieved_at", "updated_at", "title", "media_type", "content_type", "authority_tier", "access", "confidence_millionths", "metadata", "flags")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_HASH_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_LENGTH_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    RETRIEVED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_MILLIONTHS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    chunk_id: str
    document_id: str
    source_id: str
    content: str
    content_hash: str
    received_hash: str
    received_length: int
    rank: int
    query: str
    origin: str
    retrieved_at: str
    updated_at: str
    title: str
    media_type: str
    content_type: ContentType
    authority_tier: AuthorityTier
    access: AccessRule
    confidence_millionths: int
    metadata: _containers.ScalarMap[str, str]
    flags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, chunk_id: _Optional[str] = ..., document_id: _Optional[str] = ..., source_id: _Optional[str] = ..., content: _Optional[str] = ..., content_hash: _Optional[str] = ..., received_hash: _Optional[str] = ..., received_length: _Optional[int] = ..., rank: _Optional[int] = ..., query: _Optional[str] = ..., origin: _Optional[str] = ..., retrieved_at: _Optional[str] = ..., updated_at: _Optional[str] = ..., title: _Optional[str] = ..., media_type: _Optional[str] = ..., content_type: _Optional[_Union[ContentType, str]] = ..., authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., access: _Optional[_Union[AccessRule, _Mapping[str, object]]] = ..., confidence_millionths: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., flags: _Optional[_Iterable[str]] = ...) -> None: ...

class FinalResponse(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: EvidenceResponse
    def __init__(self, response: _Optional[_Union[EvidenceResponse, _Mapping[str, object]]] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("check", "ok", "detail", "hint")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    check: str
    ok: bool
    detail: str
    hint: str
    def __init__(self, check: _Optional[str] = ..., ok: bool = ..., detail: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class FragmentExport(_message.Message):
    __slots__ = ("format", "chunk_id", "document_id", "source_id", "position", "start", "end", "content", "provenance_chain", "event", "inclusion", "commit", "commit_hash", "is_live", "head", "export_hash")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_CHAIN_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    INCLUSION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_HASH_FIELD_NUMBER: _ClassVar[int]
    IS_LIVE_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    EXPORT_HASH_FIELD_NUMBER: _ClassVar[int]
    format: str
    chunk_id: str
    document_id: str
    source_id: str
    position: int
    start: int
    end: int
    content: str
    provenance_chain: _containers.RepeatedCompositeFieldContainer[ProvenanceEntry]
    event: IngestEvent
    inclusion: InclusionProof
    commit: CommitRecord
    commit_hash: str
    is_live: bool
    head: SignedHead
    export_hash: str
    def __init__(self, format: _Optional[str] = ..., chunk_id: _Optional[str] = ..., document_id: _Optional[str] = ..., source_id: _Optional[str] = ..., position: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., content: _Optional[str] = ..., provenance_chain: _Optional[_Iterable[_Union[ProvenanceEntry, _Mapping[str, object]]]] = ..., event: _Optional[_Union[IngestEvent, _Mapping[str, object]]] = ..., inclusion: _Optional[_Union[InclusionProof, _Mapping[str, object]]] = ..., commit: _Optional[_Union[CommitRecord, _Mapping[str, object]]] = ..., commit_hash: _Optional[str] = ..., is_live: bool = ..., head: _Optional[_Union[SignedHead, _Mapping[str, object]]] = ..., export_hash: _Optional[str] = ...) -> None: ...

class FragmentImage(_message.Message):
    __slots__ = ("image_hash", "media_type", "name", "alt", "nearest_text")
    IMAGE_HASH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALT_FIELD_NUMBER: _ClassVar[int]
    NEAREST_TEXT_FIELD_NUMBER: _ClassVar[int]
    image_hash: str
    media_type: str
    name: str
    alt: str
    nearest_text: str
    def __init__(self, image_hash: _Optional[str] = ..., media_type: _Optional[str] = ..., name: _Optional[str] = ..., alt: _Optional[str] = ..., nearest_text: _Optional[str] = ...) -> None: ...

class FreshnessList(_message.Message):
    __slots__ = ("sources",)
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[FreshnessReport]
    def __init__(self, sources: _Optional[_Iterable[_Union[FreshnessReport, _Mapping[str, object]]]] = ...) -> None: ...

class FreshnessReport(_message.Message):
    __slots__ = ("source_id", "freshness_sla_s", "age_s", "is_fresh", "newest_at")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_SLA_S_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    IS_FRESH_FIELD_NUMBER: _ClassVar[int]
    NEWEST_AT_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    freshness_sla_s: int
    age_s: int
    is_fresh: bool
    newest_at: str
    def __init__(self, source_id: _Optional[str] = ..., freshness_sla_s: _Optional[int] = ..., age_s: _Optional[int] = ..., is_fresh: bool = ..., newest_at: _Optional[str] = ...) -> None: ...

class GcReport(_message.Message):
    __slots__ = ("versions_removed", "chunks_removed", "segments_removed", "bytes_before", "bytes_after")
    VERSIONS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    BYTES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    BYTES_AFTER_FIELD_NUMBER: _ClassVar[int]
    versions_removed: int
    chunks_removed: int
    segments_removed: int
    bytes_before: int
    bytes_after: int
    def __init__(self, versions_removed: _Optional[int] = ..., chunks_removed: _Optional[int] = ..., segments_removed: _Optional[int] = ..., bytes_before: _Optional[int] = ..., bytes_after: _Optional[int] = ...) -> None: ...

class GovernanceEvent(_message.Message):
    __slots__ = ("at", "run_id", "agent_name", "policy_id", "policy_name", "policy_version", "phase", "action", "category", "rule", "reason", "metadata_json", "status", "is_enforced", "log", "seq", "part")
    AT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    at: str
    run_id: str
    agent_name: str
    policy_id: str
    policy_name: str
    policy_version: int
    phase: Phase
    action: PolicyAction
    category: str
    rule: str
    reason: str
    metadata_json: str
    status: DecisionStatus
    is_enforced: bool
    log: str
    seq: int
    part: int
    def __init__(self, at: _Optional[str] = ..., run_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., policy_id: _Optional[str] = ..., policy_name: _Optional[str] = ..., policy_version: _Optional[int] = ..., phase: _Optional[_Union[Phase, str]] = ..., action: _Optional[_Union[PolicyAction, str]] = ..., category: _Optional[str] = ..., rule: _Optional[str] = ..., reason: _Optional[str] = ..., metadata_json: _Optional[str] = ..., status: _Optional[_Union[DecisionStatus, str]] = ..., is_enforced: bool = ..., log: _Optional[str] = ..., seq: _Optional[int] = ..., part: _Optional[int] = ...) -> None: ...

class GovernedFragment(_message.Message):
    __slots__ = ("chunk_id", "action", "policy_id", "policy_name", "policy_digest", "rule", "reason", "metadata_json", "status")
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    chunk_id: str
    action: PolicyAction
    policy_id: str
    policy_name: str
    policy_digest: str
    rule: str
    reason: str
    metadata_json: str
    status: DecisionStatus
    def __init__(self, chunk_id: _Optional[str] = ..., action: _Optional[_Union[PolicyAction, str]] = ..., policy_id: _Optional[str] = ..., policy_name: _Optional[str] = ..., policy_digest: _Optional[str] = ..., rule: _Optional[str] = ..., reason: _Optional[str] = ..., metadata_json: _Optional[str] = ..., status: _Optional[_Union[DecisionStatus, str]] = ...) -> None: ...

class GroundingEntry(_message.Message):
    __slots__ = ("span", "grounding_scores", "citations", "unsupported_claims", "output_confidence", "judgements")
    class JudgementsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Judgement
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Judgement, _Mapping[str, object]]] = ...) -> None: ...
    SPAN_FIELD_NUMBER: _ClassVar[int]
    GROUNDING_SCORES_FIELD_NUMBER: _ClassVar[int]
    CITATIONS_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_CLAIMS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    JUDGEMENTS_FIELD_NUMBER: _ClassVar[int]
    span: str
    grounding_scores: _containers.RepeatedScalarFieldContainer[float]
    citations: _containers.RepeatedScalarFieldContainer[str]
    unsupported_claims: _containers.RepeatedScalarFieldContainer[str]
    output_confidence: float
    judgements: _containers.MessageMap[str, Judgement]
    def __init__(self, span: _Optional[str] = ..., grounding_scores: _Optional[_Iterable[float]] = ..., citations: _Optional[_Iterable[str]] = ..., unsupported_claims: _Optional[_Iterable[str]] = ..., output_confidence: _Optional[float] = ..., judgements: _Optional[_Mapping[str, Judgement]] = ...) -> None: ...

class HistogramBar(_message.Message):
    __slots__ = ("low", "high", "good", "other")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    GOOD_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    low: float
    high: float
    good: int
    other: int
    def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ..., good: _Optional[int] = ..., other: _Optional[int] = ...) -> None: ...

class ImageView(_message.Message):
    __slots__ = ("media_type", "content")
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    content: bytes
    def __init__(self, media_type: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class In(_message.Message):
    __slots__ = ("field", "values")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    field: str
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, field: _Optional[str] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping[str, object]]]] = ...) -> None: ...

class InclusionProof(_message.Message):
    __slots__ = ("leaf_index", "tree_size", "hashes", "root")
    LEAF_INDEX_FIELD_NUMBER: _ClassVar[int]
    TREE_SIZE_FIELD_NUMBER: _ClassVar[int]
    HASHES_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    leaf_index: int
    tree_size: int
    hashes: _containers.RepeatedScalarFieldContainer[str]
    root: str
    def __init__(self, leaf_index: _Optional[int] = ..., tree_size: _Optional[int] = ..., hashes: _Optional[_Iterable[str]] = ..., root: _Optional[str] = ...) -> None: ...

class IngestEvent(_message.Message):
    __slots__ = ("index", "kind", "source_id", "document_id", "chunk_id", "custody_head", "fingerprint", "access_hash", "root", "recorded_at", "salt")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_HEAD_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ACCESS_HASH_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    index: int
    kind: EventKind
    source_id: str
    document_id: str
    chunk_id: str
    custody_head: str
    fingerprint: str
    access_hash: str
    root: int
    recorded_at: str
    salt: str
    def __init__(self, index: _Optional[int] = ..., kind: _Optional[_Union[EventKind, str]] = ..., source_id: _Optional[str] = ..., document_id: _Optional[str] = ..., chunk_id: _Optional[str] = ..., custody_head: _Optional[str] = ..., fingerprint: _Optional[str] = ..., access_hash: _Optional[str] = ..., root: _Optional[int] = ..., recorded_at: _Optional[str] = ..., salt: _Optional[str] = ...) -> None: ...

class IngestReport(_message.Message):
    __slots__ = ("seen", "added", "changed", "unchanged", "access_changed", "removed", "chunks", "skipped", "notes", "corpus_version", "evidence_state", "sequence")
    SEEN_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    seen: int
    added: int
    changed: int
    unchanged: int
    access_changed: int
    removed: int
    chunks: int
    skipped: _containers.RepeatedCompositeFieldContainer[SkippedInput]
    notes: _containers.RepeatedCompositeFieldContainer[SkippedInput]
    corpus_version: str
    evidence_state: str
    sequence: int
    def __init__(self, seen: _Optional[int] = ..., added: _Optional[int] = ..., changed: _Optional[int] = ..., unchanged: _Optional[int] = ..., access_changed: _Optional[int] = ..., removed: _Optional[int] = ..., chunks: _Optional[int] = ..., skipped: _Optional[_Iterable[_Union[SkippedInput, _Mapping[str, object]]]] = ..., notes: _Optional[_Iterable[_Union[SkippedInput, _Mapping[str, object]]]] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class IntegerList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class IntegerMap(_message.Message):
    __slots__ = ("entries",)
    class EntriesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.ScalarMap[str, int]
    def __init__(self, entries: _Optional[_Mapping[str, int]] = ...) -> None: ...

class IntegerOrReal(_message.Message):
    __slots__ = ("integer", "real")
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    integer: int
    real: float
    def __init__(self, integer: _Optional[int] = ..., real: _Optional[float] = ...) -> None: ...

class IntegerOrText(_message.Message):
    __slots__ = ("integer", "text")
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    integer: int
    text: str
    def __init__(self, integer: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class IssuedToken(_message.Message):
    __slots__ = ("token", "info")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    token: str
    info: TokenInfo
    def __init__(self, token: _Optional[str] = ..., info: _Optional[_Union[TokenInfo, _Mapping[str, object]]] = ...) -> None: ...

class Judgement(_message.Message):
    __slots__ = ("status", "score", "model", "problem", "notes", "input_tokens", "output_tokens", "cost_micro", "latency_ms")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    status: JudgeStatus
    score: float
    model: str
    problem: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    input_tokens: int
    output_tokens: int
    cost_micro: int
    latency_ms: int
    def __init__(self, status: _Optional[_Union[JudgeStatus, str]] = ..., score: _Optional[float] = ..., model: _Optional[str] = ..., problem: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ..., latency_ms: _Optional[int] = ...) -> None: ...

class LayoutView(_message.Message):
    __slots__ = ("layout",)
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    layout: DocumentLayout
    def __init__(self, layout: _Optional[_Union[DocumentLayout, _Mapping[str, object]]] = ...) -> None: ...

class LlmCall(_message.Message):
    __slots__ = ("span", "model", "input_tokens", "output_tokens", "cost_micro", "duration_ms", "response_hash", "attributes_json")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_HASH_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_JSON_FIELD_NUMBER: _ClassVar[int]
    span: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_micro: int
    duration_ms: float
    response_hash: str
    attributes_json: str
    def __init__(self, span: _Optional[str] = ..., model: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ..., duration_ms: _Optional[float] = ..., response_hash: _Optional[str] = ..., attributes_json: _Optional[str] = ...) -> None: ...

class LogFault(_message.Message):
    __slots__ = ("log", "line", "problem")
    LOG_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    log: str
    line: int
    problem: str
    def __init__(self, log: _Optional[str] = ..., line: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class LogHead(_message.Message):
    __slots__ = ("log", "size", "hash", "root")
    LOG_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    log: str
    size: int
    hash: str
    root: str
    def __init__(self, log: _Optional[str] = ..., size: _Optional[int] = ..., hash: _Optional[str] = ..., root: _Optional[str] = ...) -> None: ...

class LogReport(_message.Message):
    __slots__ = ("ok", "logs", "records", "redacted", "retired", "faults", "heads")
    OK_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    logs: int
    records: int
    redacted: int
    retired: int
    faults: _containers.RepeatedCompositeFieldContainer[LogFault]
    heads: _containers.RepeatedCompositeFieldContainer[LogHead]
    def __init__(self, ok: bool = ..., logs: _Optional[int] = ..., records: _Optional[int] = ..., redacted: _Optional[int] = ..., retired: _Optional[int] = ..., faults: _Optional[_Iterable[_Union[LogFault, _Mapping[str, object]]]] = ..., heads: _Optional[_Iterable[_Union[LogHead, _Mapping[str, object]]]] = ...) -> None: ...

class Not(_message.Message):
    __slots__ = ("clause",)
    CLAUSE_FIELD_NUMBER: _ClassVar[int]
    clause: Predicate
    def __init__(self, clause: _Optional[_Union[Predicate, _Mapping[str, object]]] = ...) -> None: ...

class NotIn(_message.Message):
    __slots__ = ("field", "values")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    field: str
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, field: _Optional[str] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping[str, object]]]] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("note_id", "text", "title", "agent_name", "session", "authority_tier", "owner", "tenant", "written_at", "expires_at")
    NOTE_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    note_id: str
    text: str
    title: str
    agent_name: str
    session: str
    authority_tier: AuthorityTier
    owner: str
    tenant: str
    written_at: str
    expires_at: str
    def __init__(self, note_id: _Optional[str] = ..., text: _Optional[str] = ..., title: _Optional[str] = ..., agent_name: _Optional[str] = ..., session: _Optional[str] = ..., authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., owner: _Optional[str] = ..., tenant: _Optional[str] = ..., written_at: _Optional[str] = ..., expires_at: _Optional[str] = ...) -> None: ...

class NoteList(_message.Message):
    __slots__ = ("notes",)
    NOTES_FIELD_NUMBER: _ClassVar[int]
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    def __init__(self, notes: _Optional[_Iterable[_Union[Note, _Mapping[str, object]]]] = ...) -> None: ...

class Number(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: str
    def __init__(self, number: _Optional[str] = ...) -> None: ...

class NumberedCall(_message.Message):
    __slots__ = ("seq", "call", "text", "texts")
    class TextsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SEQ_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    call: RecordableCall
    text: str
    texts: _containers.ScalarMap[str, str]
    def __init__(self, seq: _Optional[int] = ..., call: _Optional[_Union[RecordableCall, _Mapping[str, object]]] = ..., text: _Optional[str] = ..., texts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class OpenTable(_message.Message):
    __slots__ = ("card", "content")
    CARD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    card: TableCard
    content: TableContent
    def __init__(self, card: _Optional[_Union[TableCard, _Mapping[str, object]]] = ..., content: _Optional[_Union[TableContent, _Mapping[str, object]]] = ...) -> None: ...

class Or(_message.Message):
    __slots__ = ("clauses",)
    CLAUSES_FIELD_NUMBER: _ClassVar[int]
    clauses: _containers.RepeatedCompositeFieldContainer[Predicate]
    def __init__(self, clauses: _Optional[_Iterable[_Union[Predicate, _Mapping[str, object]]]] = ...) -> None: ...

class OriginDescriptor(_message.Message):
    __slots__ = ("source_id", "source_type", "document_id", "document_version", "extraction_method", "extraction_timestamp", "content_hash", "content_length", "media_type")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_METHOD_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    source_type: SourceType
    document_id: str
    document_version: str
    extraction_method: str
    extraction_timestamp: str
    content_hash: str
    content_length: int
    media_type: str
    def __init__(self, source_id: _Optional[str] = ..., source_type: _Optional[_Union[SourceType, str]] = ..., document_id: _Optional[str] = ..., document_version: _Optional[str] = ..., extraction_method: _Optional[str] = ..., extraction_timestamp: _Optional[str] = ..., content_hash: _Optional[str] = ..., content_length: _Optional[int] = ..., media_type: _Optional[str] = ...) -> None: ...

class OriginEntry(_message.Message):
    __slots__ = ("record", "hash")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    record: OriginDescriptor
    hash: str
    def __init__(self, record: _Optional[_Union[OriginDescriptor, _Mapping[str, object]]] = ..., hash: _Optional[str] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("policy_id", "version", "digest", "tenant", "body")
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    policy_id: str
    version: int
    digest: str
    tenant: str
    body: PolicyBody
    def __init__(self, policy_id: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ..., tenant: _Optional[str] = ..., body: _Optional[_Union[PolicyBody, _Mapping[str, object]]] = ...) -> None: ...

class PolicyBody(_message.Message):
    __slots__ = ("name", "category", "rules_json", "scope", "enabled", "priority", "description", "compat", "posture", "enforcement")
    class PostureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Posture
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Posture, str]] = ...) -> None: ...
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
    name: str
    category: str
    rules_json: str
    scope: PolicyScope
    enabled: bool
    priority: int
    description: str
    compat: Compat
    posture: _containers.ScalarMap[str, Posture]
    enforcement: Enforcement
    def __init__(self, name: _Optional[str] = ..., category: _Optional[str] = ..., rules_json: _Optional[str] = ..., scope: _Optional[_Union[PolicyScope, _Mapping[str, object]]] = ..., enabled: bool = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., compat: _Optional[_Union[Compat, str]] = ..., posture: _Optional[_Mapping[str, Posture]] = ..., enforcement: _Optional[_Union[Enforcement, str]] = ...) -> None: ...

class PolicyDecision(_message.Message):
    __slots__ = ("seq", "part", "log", "previous", "hash", "at", "run_id", "agent_name", "tenant", "phase", "kind", "policy_id", "policy_name", "policy_version", "policy_digest", "policies", "category", "rule", "action", "reason", "metadata_json", "inputs_json", "evaluations", "status", "is_enforced", "abstention_response", "overhead_us", "is_redacted")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    INPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    ABSTENTION_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    OVERHEAD_US_FIELD_NUMBER: _ClassVar[int]
    IS_REDACTED_FIELD_NUMBER: _ClassVar[int]
    seq: int
    part: int
    log: str
    previous: str
    hash: str
    at: str
    run_id: str
    agent_name: str
    tenant: str
    phase: Phase
    kind: str
    policy_id: str
    policy_name: str
    policy_version: int
    policy_digest: str
    policies: str
    category: str
    rule: str
    action: PolicyAction
    reason: str
    metadata_json: str
    inputs_json: str
    evaluations: _containers.RepeatedCompositeFieldContainer[Evaluation]
    status: DecisionStatus
    is_enforced: bool
    abstention_response: str
    overhead_us: float
    is_redacted: bool
    def __init__(self, seq: _Optional[int] = ..., part: _Optional[int] = ..., log: _Optional[str] = ..., previous: _Optional[str] = ..., hash: _Optional[str] = ..., at: _Optional[str] = ..., run_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., tenant: _Optional[str] = ..., phase: _Optional[_Union[Phase, str]] = ..., kind: _Optional[str] = ..., policy_id: _Optional[str] = ..., policy_name: _Optional[str] = ..., policy_version: _Optional[int] = ..., policy_digest: _Optional[str] = ..., policies: _Optional[str] = ..., category: _Optional[str] = ..., rule: _Optional[str] = ..., action: _Optional[_Union[PolicyAction, str]] = ..., reason: _Optional[str] = ..., metadata_json: _Optional[str] = ..., inputs_json: _Optional[str] = ..., evaluations: _Optional[_Iterable[_Union[Evaluation, _Mapping[str, object]]]] = ..., status: _Optional[_Union[DecisionStatus, str]] = ..., is_enforced: bool = ..., abstention_response: _Optional[str] = ..., overhead_us: _Optional[float] = ..., is_redacted: bool = ...) -> None: ...

class PolicyPage(_message.Message):
    __slots__ = ("policies", "next_cursor")
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[StoredPolicy]
    next_cursor: str
    def __init__(self, policies: _Optional[_Iterable[_Union[StoredPolicy, _Mapping[str, object]]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class PolicyScope(_message.Message):
    __slots__ = ("agents", "agent_ids", "agent_groups", "agent_types", "workflows", "users", "user_groups", "teams", "tenants", "tools", "models", "exclude_agents", "exclude_users", "exclude_tools", "exclude_models")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    AGENT_IDS_FIELD_NUMBER: _ClassVar[int]
    AGENT_GROUPS_FIELD_NUMBER: _ClassVar[int]
    AGENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    USER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    TEAMS_FIELD_NUMBER: _ClassVar[int]
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_AGENTS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_USERS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_MODELS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedScalarFieldContainer[str]
    agent_ids: _containers.RepeatedScalarFieldContainer[str]
    agent_groups: _containers.RepeatedScalarFieldContainer[str]
    agent_types: _containers.RepeatedScalarFieldContainer[str]
    workflows: _containers.RepeatedScalarFieldContainer[str]
    users: _containers.RepeatedScalarFieldContainer[str]
    user_groups: _containers.RepeatedScalarFieldContainer[str]
    teams: _containers.RepeatedScalarFieldContainer[str]
    tenants: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    models: _containers.RepeatedScalarFieldContainer[str]
    exclude_agents: _containers.RepeatedScalarFieldContainer[str]
    exclude_users: _containers.RepeatedScalarFieldContainer[str]
    exclude_tools: _containers.RepeatedScalarFieldContainer[str]
    exclude_models: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agents: _Optional[_Iterable[str]] = ..., agent_ids: _Optional[_Iterable[str]] = ..., agent_groups: _Optional[_Iterable[str]] = ..., agent_types: _Optional[_Iterable[str]] = ..., workflows: _Optional[_Iterable[str]] = ..., users: _Optional[_Iterable[str]] = ..., user_groups: _Optional[_Iterable[str]] = ..., teams: _Optional[_Iterable[str]] = ..., tenants: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., models: _Optional[_Iterable[str]] = ..., exclude_agents: _Optional[_Iterable[str]] = ..., exclude_users: _Optional[_Iterable[str]] = ..., exclude_tools: _Optional[_Iterable[str]] = ..., exclude_models: _Optional[_Iterable[str]] = ...) -> None: ...

class PolicyTemplates(_message.Message):
    __slots__ = ("templates",)
    class TemplatesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PolicyBody
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PolicyBody, _Mapping[str, object]]] = ...) -> None: ...
    TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    templates: _containers.MessageMap[str, PolicyBody]
    def __init__(self, templates: _Optional[_Mapping[str, PolicyBody]] = ...) -> None: ...

class PolicyVersions(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[StoredPolicy]
    def __init__(self, versions: _Optional[_Iterable[_Union[StoredPolicy, _Mapping[str, object]]]] = ...) -> None: ...

class PostureMap(_message.Message):
    __slots__ = ("entries",)
    class EntriesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Posture
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Posture, str]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.ScalarMap[str, Posture]
    def __init__(self, entries: _Optional[_Mapping[str, Posture]] = ...) -> None: ...

class Predicate(_message.Message):
    __slots__ = ("and_node", "or_node", "not_node", "compare", "in_node", "not_in", "contains", "exists", "json")
    AND_NODE_FIELD_NUMBER: _ClassVar[int]
    OR_NODE_FIELD_NUMBER: _ClassVar[int]
    NOT_NODE_FIELD_NUMBER: _ClassVar[int]
    COMPARE_FIELD_NUMBER: _ClassVar[int]
    IN_NODE_FIELD_NUMBER: _ClassVar[int]
    NOT_IN_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    and_node: And
    or_node: Or
    not_node: Not
    compare: Compare
    in_node: In
    not_in: NotIn
    contains: Contains
    exists: Exists
    json: str
    def __init__(self, and_node: _Optional[_Union[And, _Mapping[str, object]]] = ..., or_node: _Optional[_Union[Or, _Mapping[str, object]]] = ..., not_node: _Optional[_Union[Not, _Mapping[str, object]]] = ..., compare: _Optional[_Union[Compare, _Mapping[str, object]]] = ..., in_node: _Optional[_Union[In, _Mapping[str, object]]] = ..., not_in: _Optional[_Union[NotIn, _Mapping[str, object]]] = ..., contains: _Optional[_Union[Contains, _Mapping[str, object]]] = ..., exists: _Optional[_Union[Exists, _Mapping[str, object]]] = ..., json: _Optional[str] = ...) -> None: ...

class PredicateOrText(_message.Message):
    __slots__ = ("predicate", "text")
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    predicate: Predicate
    text: str
    def __init__(self, predicate: _Optional[_Union[Predicate, _Mapping[str, object]]] = ..., text: _Optional[str] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ("principal_id", "tenant", "clearance", "roles", "groups", "attributes", "is_owner")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    CLEARANCE_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    IS_OWNER_FIELD_NUMBER: _ClassVar[int]
    principal_id: str
    tenant: str
    clearance: Classification
    roles: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    attributes: _containers.ScalarMap[str, str]
    is_owner: bool
    def __init__(self, principal_id: _Optional[str] = ..., tenant: _Optional[str] = ..., clearance: _Optional[_Union[Classification, str]] = ..., roles: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., attributes: _Optional[_Mapping[str, str]] = ..., is_owner: bool = ...) -> None: ...

class ProvenanceEntry(_message.Message):
    __slots__ = ("origin", "transformation")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMATION_FIELD_NUMBER: _ClassVar[int]
    origin: OriginEntry
    transformation: TransformationEntry
    def __init__(self, origin: _Optional[_Union[OriginEntry, _Mapping[str, object]]] = ..., transformation: _Optional[_Union[TransformationEntry, _Mapping[str, object]]] = ...) -> None: ...

class ProvenanceRecord(_message.Message):
    __slots__ = ("origin", "transformations", "retrieval_context", "trust_metadata")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMATIONS_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRUST_METADATA_FIELD_NUMBER: _ClassVar[int]
    origin: OriginDescriptor
    transformations: _containers.RepeatedCompositeFieldContainer[TransformationRecord]
    retrieval_context: RetrievalContext
    trust_metadata: TrustMetadata
    def __init__(self, origin: _Optional[_Union[OriginDescriptor, _Mapping[str, object]]] = ..., transformations: _Optional[_Iterable[_Union[TransformationRecord, _Mapping[str, object]]]] = ..., retrieval_context: _Optional[_Union[RetrievalContext, _Mapping[str, object]]] = ..., trust_metadata: _Optional[_Union[TrustMetadata, _Mapping[str, object]]] = ...) -> None: ...

class ProvisionalFragments(_message.Message):
    __slots__ = ("fragments", "sources")
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedCompositeFieldContainer[EvidenceFragment]
    sources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, fragments: _Optional[_Iterable[_Union[EvidenceFragment, _Mapping[str, object]]]] = ..., sources: _Optional[_Iterable[str]] = ...) -> None: ...

class PushReply(_message.Message):
    __slots__ = ("results", "dry_run")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PushResult]
    dry_run: bool
    def __init__(self, results: _Optional[_Iterable[_Union[PushResult, _Mapping[str, object]]]] = ..., dry_run: bool = ...) -> None: ...

class PushResult(_message.Message):
    __slots__ = ("name", "action", "policy_id", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    action: PushAction
    policy_id: str
    version: int
    def __init__(self, name: _Optional[str] = ..., action: _Optional[_Union[PushAction, str]] = ..., policy_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class QueryCapabilityList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[QueryCapability]
    def __init__(self, values: _Optional[_Iterable[_Union[QueryCapability, str]]] = ...) -> None: ...

class QueryStep(_message.Message):
    __slots__ = ("step", "note", "added")
    STEP_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    step: QueryStepName
    note: str
    added: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[_Union[QueryStepName, str]] = ..., note: _Optional[str] = ..., added: _Optional[_Iterable[str]] = ...) -> None: ...

class RankingWeights(_message.Message):
    __slots__ = ("relevance", "authority", "freshness", "utility")
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    UTILITY_FIELD_NUMBER: _ClassVar[int]
    relevance: float
    authority: float
    freshness: float
    utility: float
    def __init__(self, relevance: _Optional[float] = ..., authority: _Optional[float] = ..., freshness: _Optional[float] = ..., utility: _Optional[float] = ...) -> None: ...

class ReceiptView(_message.Message):
    __slots__ = ("receipt_id", "answered_at", "query", "principal_id", "agent_name", "corpus_version", "evidence_state", "config_hash", "result_hash", "fragments", "custody_format", "response_hash")
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_AT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_HASH_FIELD_NUMBER: _ClassVar[int]
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_FORMAT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_HASH_FIELD_NUMBER: _ClassVar[int]
    receipt_id: str
    answered_at: str
    query: str
    principal_id: str
    agent_name: str
    corpus_version: str
    evidence_state: str
    config_hash: str
    result_hash: str
    fragments: _containers.RepeatedScalarFieldContainer[str]
    custody_format: int
    response_hash: str
    def __init__(self, receipt_id: _Optional[str] = ..., answered_at: _Optional[str] = ..., query: _Optional[str] = ..., principal_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., config_hash: _Optional[str] = ..., result_hash: _Optional[str] = ..., fragments: _Optional[_Iterable[str]] = ..., custody_format: _Optional[int] = ..., response_hash: _Optional[str] = ...) -> None: ...

class RecordProof(_message.Message):
    __slots__ = ("log", "seq", "size", "root", "line", "path")
    LOG_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    log: str
    seq: int
    size: int
    root: str
    line: str
    path: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, log: _Optional[str] = ..., seq: _Optional[int] = ..., size: _Optional[int] = ..., root: _Optional[str] = ..., line: _Optional[str] = ..., path: _Optional[_Iterable[str]] = ...) -> None: ...

class RecordableCall(_message.Message):
    __slots__ = ("retrieval", "batch", "grounding", "tool", "llm", "step", "span", "span_end", "bypass", "task", "ask", "answer", "reply")
    RETRIEVAL_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    GROUNDING_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    LLM_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    SPAN_END_FIELD_NUMBER: _ClassVar[int]
    BYPASS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    retrieval: RetrievedDocument
    batch: BatchClosed
    grounding: GroundingEntry
    tool: ToolCall
    llm: LlmCall
    step: StepCall
    span: SpanOpened
    span_end: SpanClosed
    bypass: CheckBypassed
    task: TaskOpened
    ask: ToolAsked
    answer: ToolAnswered
    reply: ReplyDrafted
    def __init__(self, retrieval: _Optional[_Union[RetrievedDocument, _Mapping[str, object]]] = ..., batch: _Optional[_Union[BatchClosed, _Mapping[str, object]]] = ..., grounding: _Optional[_Union[GroundingEntry, _Mapping[str, object]]] = ..., tool: _Optional[_Union[ToolCall, _Mapping[str, object]]] = ..., llm: _Optional[_Union[LlmCall, _Mapping[str, object]]] = ..., step: _Optional[_Union[StepCall, _Mapping[str, object]]] = ..., span: _Optional[_Union[SpanOpened, _Mapping[str, object]]] = ..., span_end: _Optional[_Union[SpanClosed, _Mapping[str, object]]] = ..., bypass: _Optional[_Union[CheckBypassed, _Mapping[str, object]]] = ..., task: _Optional[_Union[TaskOpened, _Mapping[str, object]]] = ..., ask: _Optional[_Union[ToolAsked, _Mapping[str, object]]] = ..., answer: _Optional[_Union[ToolAnswered, _Mapping[str, object]]] = ..., reply: _Optional[_Union[ReplyDrafted, _Mapping[str, object]]] = ...) -> None: ...

class ReplayReport(_message.Message):
    __slots__ = ("receipt_id", "is_same", "recorded_hash", "result_hash", "hidden", "response")
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    IS_SAME_FIELD_NUMBER: _ClassVar[int]
    RECORDED_HASH_FIELD_NUMBER: _ClassVar[int]
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    receipt_id: str
    is_same: bool
    recorded_hash: str
    result_hash: str
    hidden: int
    response: EvidenceResponse
    def __init__(self, receipt_id: _Optional[str] = ..., is_same: bool = ..., recorded_hash: _Optional[str] = ..., result_hash: _Optional[str] = ..., hidden: _Optional[int] = ..., response: _Optional[_Union[EvidenceResponse, _Mapping[str, object]]] = ...) -> None: ...

class ReplyDrafted(_message.Message):
    __slots__ = ("span", "reply_hash", "says_not_found", "uses_evidence", "has_supplement", "findings", "is_checked")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    REPLY_HASH_FIELD_NUMBER: _ClassVar[int]
    SAYS_NOT_FOUND_FIELD_NUMBER: _ClassVar[int]
    USES_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    HAS_SUPPLEMENT_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    IS_CHECKED_FIELD_NUMBER: _ClassVar[int]
    span: str
    reply_hash: str
    says_not_found: bool
    uses_evidence: bool
    has_supplement: bool
    findings: _containers.RepeatedCompositeFieldContainer[ReplyFinding]
    is_checked: bool
    def __init__(self, span: _Optional[str] = ..., reply_hash: _Optional[str] = ..., says_not_found: bool = ..., uses_evidence: bool = ..., has_supplement: bool = ..., findings: _Optional[_Iterable[_Union[ReplyFinding, _Mapping[str, object]]]] = ..., is_checked: bool = ...) -> None: ...

class ReplyFinding(_message.Message):
    __slots__ = ("rule", "reason", "block", "count", "metadata_json")
    RULE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    rule: ProtocolRule
    reason: str
    block: int
    count: int
    metadata_json: str
    def __init__(self, rule: _Optional[_Union[ProtocolRule, str]] = ..., reason: _Optional[str] = ..., block: _Optional[int] = ..., count: _Optional[int] = ..., metadata_json: _Optional[str] = ...) -> None: ...

class RequestTrace(_message.Message):
    __slots__ = ("request_id", "receipt_id", "started_at", "latency_ms", "deadline_ms", "principal_fingerprint", "tenant", "agent_name", "mode", "limit", "fragments", "candidates", "tokens_used", "cache_hit_ratio", "degraded", "result_hash", "spans")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_RATIO_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    receipt_id: str
    started_at: str
    latency_ms: float
    deadline_ms: int
    principal_fingerprint: str
    tenant: str
    agent_name: str
    mode: str
    limit: int
    fragments: int
    candidates: int
    tokens_used: int
    cache_hit_ratio: float
    degraded: _containers.RepeatedScalarFieldContainer[str]
    result_hash: str
    spans: _containers.RepeatedCompositeFieldContainer[TraceSpan]
    def __init__(self, request_id: _Optional[str] = ..., receipt_id: _Optional[str] = ..., started_at: _Optional[str] = ..., latency_ms: _Optional[float] = ..., deadline_ms: _Optional[int] = ..., principal_fingerprint: _Optional[str] = ..., tenant: _Optional[str] = ..., agent_name: _Optional[str] = ..., mode: _Optional[str] = ..., limit: _Optional[int] = ..., fragments: _Optional[int] = ..., candidates: _Optional[int] = ..., tokens_used: _Optional[int] = ..., cache_hit_ratio: _Optional[float] = ..., degraded: _Optional[_Iterable[str]] = ..., result_hash: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[TraceSpan, _Mapping[str, object]]]] = ...) -> None: ...

class RetrievalContext(_message.Message):
    __slots__ = ("query_hash", "retriever_type", "retrieval_timestamp", "rank_position", "relevance_score", "fusion_method", "final_rank", "encoder", "relevance_signal", "leg_ranks")
    QUERY_HASH_FIELD_NUMBER: _ClassVar[int]
    RETRIEVER_TYPE_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    RANK_POSITION_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_SCORE_FIELD_NUMBER: _ClassVar[int]
    FUSION_METHOD_FIELD_NUMBER: _ClassVar[int]
    FINAL_RANK_FIELD_NUMBER: _ClassVar[int]
    ENCODER_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    LEG_RANKS_FIELD_NUMBER: _ClassVar[int]
    query_hash: str
    retriever_type: str
    retrieval_timestamp: str
    rank_position: int
    relevance_score: float
    fusion_method: FusionMethod
    final_rank: int
    encoder: str
    relevance_signal: float
    leg_ranks: IntegerMap
    def __init__(self, query_hash: _Optional[str] = ..., retriever_type: _Optional[str] = ..., retrieval_timestamp: _Optional[str] = ..., rank_position: _Optional[int] = ..., relevance_score: _Optional[float] = ..., fusion_method: _Optional[_Union[FusionMethod, str]] = ..., final_rank: _Optional[int] = ..., encoder: _Optional[str] = ..., relevance_signal: _Optional[float] = ..., leg_ranks: _Optional[_Union[IntegerMap, _Mapping[str, object]]] = ...) -> None: ...

class RetrievedDocument(_message.Message):
    __slots__ = ("span", "relevance_score", "source", "collection", "age_days", "batch", "chunk_id", "judged_by")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_SCORE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    AGE_DAYS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    JUDGED_BY_FIELD_NUMBER: _ClassVar[int]
    span: str
    relevance_score: float
    source: str
    collection: str
    age_days: IntegerOrReal
    batch: str
    chunk_id: str
    judged_by: str
    def __init__(self, span: _Optional[str] = ..., relevance_score: _Optional[float] = ..., source: _Optional[str] = ..., collection: _Optional[str] = ..., age_days: _Optional[_Union[IntegerOrReal, _Mapping[str, object]]] = ..., batch: _Optional[str] = ..., chunk_id: _Optional[str] = ..., judged_by: _Optional[str] = ...) -> None: ...

class RunFacts(_message.Message):
    __slots__ = ("run_id", "agent_name", "workflow_name", "agent_id", "agent_type", "agent_group", "user_id", "user_group", "end_user_id", "team", "tenant", "session_id", "model", "tool", "parent_run_id", "metadata_json", "owner", "token_id", "clearance")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    AGENT_GROUP_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    USER_GROUP_FIELD_NUMBER: _ClassVar[int]
    END_USER_ID_FIELD_NUMBER: _ClassVar[int]
    TEAM_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    CLEARANCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    agent_name: str
    workflow_name: str
    agent_id: str
    agent_type: str
    agent_group: str
    user_id: str
    user_group: str
    end_user_id: str
    team: str
    tenant: str
    session_id: str
    model: str
    tool: str
    parent_run_id: str
    metadata_json: str
    owner: str
    token_id: str
    clearance: str
    def __init__(self, run_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., workflow_name: _Optional[str] = ..., agent_id: _Optional[str] = ..., agent_type: _Optional[str] = ..., agent_group: _Optional[str] = ..., user_id: _Optional[str] = ..., user_group: _Optional[str] = ..., end_user_id: _Optional[str] = ..., team: _Optional[str] = ..., tenant: _Optional[str] = ..., session_id: _Optional[str] = ..., model: _Optional[str] = ..., tool: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., metadata_json: _Optional[str] = ..., owner: _Optional[str] = ..., token_id: _Optional[str] = ..., clearance: _Optional[str] = ...) -> None: ...

class RunPage(_message.Message):
    __slots__ = ("runs", "next_cursor")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunSummary]
    next_cursor: str
    def __init__(self, runs: _Optional[_Iterable[_Union[RunSummary, _Mapping[str, object]]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class RunSpan(_message.Message):
    __slots__ = ("span_id", "parent", "name", "kind", "start_us", "duration_us", "attributes_json", "decisions")
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    START_US_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_JSON_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    span_id: str
    parent: str
    name: str
    kind: str
    start_us: int
    duration_us: int
    attributes_json: str
    decisions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, span_id: _Optional[str] = ..., parent: _Optional[str] = ..., name: _Optional[str] = ..., kind: _Optional[str] = ..., start_us: _Optional[int] = ..., duration_us: _Optional[int] = ..., attributes_json: _Optional[str] = ..., decisions: _Optional[_Iterable[int]] = ...) -> None: ...

class RunSummary(_message.Message):
    __slots__ = ("facts", "status", "started_at", "ended_at", "calls", "documents", "warnings", "blocks", "bypasses", "policies", "not_enforced")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    BYPASSES_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    NOT_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    facts: RunFacts
    status: RunStatus
    started_at: str
    ended_at: str
    calls: int
    documents: int
    warnings: int
    blocks: int
    bypasses: int
    policies: str
    not_enforced: int
    def __init__(self, facts: _Optional[_Union[RunFacts, _Mapping[str, object]]] = ..., status: _Optional[_Union[RunStatus, str]] = ..., started_at: _Optional[str] = ..., ended_at: _Optional[str] = ..., calls: _Optional[int] = ..., documents: _Optional[int] = ..., warnings: _Optional[int] = ..., blocks: _Optional[int] = ..., bypasses: _Optional[int] = ..., policies: _Optional[str] = ..., not_enforced: _Optional[int] = ...) -> None: ...

class RunTrace(_message.Message):
    __slots__ = ("summary", "spans")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    summary: RunSummary
    spans: _containers.RepeatedCompositeFieldContainer[RunSpan]
    def __init__(self, summary: _Optional[_Union[RunSummary, _Mapping[str, object]]] = ..., spans: _Optional[_Iterable[_Union[RunSpan, _Mapping[str, object]]]] = ...) -> None: ...

class SchemaDefinition(_message.Message):
    __slots__ = ("fields", "tables")
    class TablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: SchemaFieldList
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[SchemaFieldList, _Mapping[str, object]]] = ...) -> None: ...
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[SchemaField]
    tables: _containers.MessageMap[str, SchemaFieldList]
    def __init__(self, fields: _Optional[_Iterable[_Union[SchemaField, _Mapping[str, object]]]] = ..., tables: _Optional[_Mapping[str, SchemaFieldList]] = ...) -> None: ...

class SchemaField(_message.Message):
    __slots__ = ("name", "type", "is_indexed", "description")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    IS_INDEXED_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    is_indexed: bool
    description: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., is_indexed: bool = ..., description: _Optional[str] = ...) -> None: ...

class SchemaFieldList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[SchemaField]
    def __init__(self, values: _Optional[_Iterable[_Union[SchemaField, _Mapping[str, object]]]] = ...) -> None: ...

class SecretKept(_message.Message):
    __slots__ = ("name", "updated_at", "updated_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    updated_at: str
    updated_by: str
    def __init__(self, name: _Optional[str] = ..., updated_at: _Optional[str] = ..., updated_by: _Optional[str] = ...) -> None: ...

class SecretNames(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class SentDocument(_message.Message):
    __slots__ = ("id", "text", "title", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TextOrTextList
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TextOrTextList, _Mapping[str, object]]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    title: str
    metadata: _containers.MessageMap[str, TextOrTextList]
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., title: _Optional[str] = ..., metadata: _Optional[_Mapping[str, TextOrTextList]] = ...) -> None: ...

class SentFile(_message.Message):
    __slots__ = ("path", "content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class ShadowChanges(_message.Message):
    __slots__ = ("calls", "newly_blocked", "newly_allowed", "newly_warned", "no_longer_warned", "unchanged", "rules", "agents", "sources")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    NEWLY_BLOCKED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_WARNED_FIELD_NUMBER: _ClassVar[int]
    NO_LONGER_WARNED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    calls: int
    newly_blocked: int
    newly_allowed: int
    newly_warned: int
    no_longer_warned: int
    unchanged: int
    rules: _containers.RepeatedCompositeFieldContainer[ShadowGroup]
    agents: _containers.RepeatedCompositeFieldContainer[ShadowGroup]
    sources: _containers.RepeatedCompositeFieldContainer[ShadowGroup]
    def __init__(self, calls: _Optional[int] = ..., newly_blocked: _Optional[int] = ..., newly_allowed: _Optional[int] = ..., newly_warned: _Optional[int] = ..., no_longer_warned: _Optional[int] = ..., unchanged: _Optional[int] = ..., rules: _Optional[_Iterable[_Union[ShadowGroup, _Mapping[str, object]]]] = ..., agents: _Optional[_Iterable[_Union[ShadowGroup, _Mapping[str, object]]]] = ..., sources: _Optional[_Iterable[_Union[ShadowGroup, _Mapping[str, object]]]] = ...) -> None: ...

class ShadowExample(_message.Message):
    __slots__ = ("log", "seq", "run_id", "change")
    LOG_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    log: str
    seq: int
    run_id: str
    change: Change
    def __init__(self, log: _Optional[str] = ..., seq: _Optional[int] = ..., run_id: _Optional[str] = ..., change: _Optional[_Union[Change, str]] = ...) -> None: ...

class ShadowGroup(_message.Message):
    __slots__ = ("name", "newly_blocked", "newly_allowed", "newly_warned", "no_longer_warned", "examples")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEWLY_BLOCKED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_WARNED_FIELD_NUMBER: _ClassVar[int]
    NO_LONGER_WARNED_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    newly_blocked: int
    newly_allowed: int
    newly_warned: int
    no_longer_warned: int
    examples: _containers.RepeatedCompositeFieldContainer[ShadowExample]
    def __init__(self, name: _Optional[str] = ..., newly_blocked: _Optional[int] = ..., newly_allowed: _Optional[int] = ..., newly_warned: _Optional[int] = ..., no_longer_warned: _Optional[int] = ..., examples: _Optional[_Iterable[_Union[ShadowExample, _Mapping[str, object]]]] = ...) -> None: ...

class ShadowReport(_message.Message):
    __slots__ = ("candidates", "changes", "runs", "runs_newly_blocked", "runs_newly_allowed", "after_stop", "truncated_runs", "unfinished_runs", "given_up_runs", "unknown_runs", "redacted", "unjudged")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    RUNS_NEWLY_BLOCKED_FIELD_NUMBER: _ClassVar[int]
    RUNS_NEWLY_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    AFTER_STOP_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_RUNS_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_RUNS_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_RUNS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RUNS_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    UNJUDGED_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedScalarFieldContainer[str]
    changes: ShadowChanges
    runs: int
    runs_newly_blocked: int
    runs_newly_allowed: int
    after_stop: int
    truncated_runs: int
    unfinished_runs: int
    given_up_runs: int
    unknown_runs: int
    redacted: int
    unjudged: int
    def __init__(self, candidates: _Optional[_Iterable[str]] = ..., changes: _Optional[_Union[ShadowChanges, _Mapping[str, object]]] = ..., runs: _Optional[int] = ..., runs_newly_blocked: _Optional[int] = ..., runs_newly_allowed: _Optional[int] = ..., after_stop: _Optional[int] = ..., truncated_runs: _Optional[int] = ..., unfinished_runs: _Optional[int] = ..., given_up_runs: _Optional[int] = ..., unknown_runs: _Optional[int] = ..., redacted: _Optional[int] = ..., unjudged: _Optional[int] = ...) -> None: ...

class SignalScores(_message.Message):
    __slots__ = ("relevance", "authority", "freshness", "utility", "fused", "reranked", "lexical", "dense")
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    UTILITY_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    RERANKED_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    DENSE_FIELD_NUMBER: _ClassVar[int]
    relevance: int
    authority: int
    freshness: int
    utility: int
    fused: int
    reranked: int
    lexical: int
    dense: int
    def __init__(self, relevance: _Optional[int] = ..., authority: _Optional[int] = ..., freshness: _Optional[int] = ..., utility: _Optional[int] = ..., fused: _Optional[int] = ..., reranked: _Optional[int] = ..., lexical: _Optional[int] = ..., dense: _Optional[int] = ...) -> None: ...

class SignedHead(_message.Message):
    __slots__ = ("head", "signature", "keys")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    head: BaseHead
    signature: str
    keys: _containers.RepeatedCompositeFieldContainer[SigningKey]
    def __init__(self, head: _Optional[_Union[BaseHead, _Mapping[str, object]]] = ..., signature: _Optional[str] = ..., keys: _Optional[_Iterable[_Union[SigningKey, _Mapping[str, object]]]] = ...) -> None: ...

class SigningKey(_message.Message):
    __slots__ = ("base_id", "sequence", "public_key", "previous", "signature")
    BASE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    base_id: str
    sequence: int
    public_key: str
    previous: str
    signature: str
    def __init__(self, base_id: _Optional[str] = ..., sequence: _Optional[int] = ..., public_key: _Optional[str] = ..., previous: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class SkippedInput(_message.Message):
    __slots__ = ("path", "reason", "message")
    PATH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    path: str
    reason: str
    message: str
    def __init__(self, path: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class SourceAccessPolicy(_message.Message):
    __slots__ = ("tenants", "roles", "groups", "principals", "minimum_clearance", "predicate")
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_CLEARANCE_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    tenants: TextList
    roles: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    principals: _containers.RepeatedScalarFieldContainer[str]
    minimum_clearance: Classification
    predicate: str
    def __init__(self, tenants: _Optional[_Union[TextList, _Mapping[str, object]]] = ..., roles: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., principals: _Optional[_Iterable[str]] = ..., minimum_clearance: _Optional[_Union[Classification, str]] = ..., predicate: _Optional[str] = ...) -> None: ...

class SourceConnection(_message.Message):
    __slots__ = ("kind", "address", "tool", "key_variable", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    KEY_VARIABLE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    kind: ConnectionKind
    address: str
    tool: str
    key_variable: str
    options: _containers.ScalarMap[str, str]
    def __init__(self, kind: _Optional[_Union[ConnectionKind, str]] = ..., address: _Optional[str] = ..., tool: _Optional[str] = ..., key_variable: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SourceDescriptor(_message.Message):
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
    source_type: SourceType
    schema: SchemaDefinition
    authority_tier: AuthorityTier
    freshness_sla_s: int
    latency_tier: LatencyTier
    access_policy: SourceAccessPolicy
    query_capabilities: QueryCapabilityList
    cost_per_query_micros: int
    max_qps: int
    version: str
    connection: SourceConnection
    expected_p99_ms: int
    freshness_tau_s: int
    weight_milli: int
    def __init__(self, source_id: _Optional[str] = ..., source_type: _Optional[_Union[SourceType, str]] = ..., schema: _Optional[_Union[SchemaDefinition, _Mapping[str, object]]] = ..., authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., freshness_sla_s: _Optional[int] = ..., latency_tier: _Optional[_Union[LatencyTier, str]] = ..., access_policy: _Optional[_Union[SourceAccessPolicy, _Mapping[str, object]]] = ..., query_capabilities: _Optional[_Union[QueryCapabilityList, _Mapping[str, object]]] = ..., cost_per_query_micros: _Optional[int] = ..., max_qps: _Optional[int] = ..., version: _Optional[str] = ..., connection: _Optional[_Union[SourceConnection, _Mapping[str, object]]] = ..., expected_p99_ms: _Optional[int] = ..., freshness_tau_s: _Optional[int] = ..., weight_milli: _Optional[int] = ...) -> None: ...

class SourceFinished(_message.Message):
    __slots__ = ("source_id", "report")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    report: CoverageReport
    def __init__(self, source_id: _Optional[str] = ..., report: _Optional[_Union[CoverageReport, _Mapping[str, object]]] = ...) -> None: ...

class SourceHealth(_message.Message):
    __slots__ = ("calls", "failures", "timeouts", "p50_ms", "p99_ms", "last_success_at", "last_failure_at", "last_problem", "breaker")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    P50_MS_FIELD_NUMBER: _ClassVar[int]
    P99_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_SUCCESS_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    BREAKER_FIELD_NUMBER: _ClassVar[int]
    calls: int
    failures: int
    timeouts: int
    p50_ms: float
    p99_ms: float
    last_success_at: str
    last_failure_at: str
    last_problem: str
    breaker: BreakerState
    def __init__(self, calls: _Optional[int] = ..., failures: _Optional[int] = ..., timeouts: _Optional[int] = ..., p50_ms: _Optional[float] = ..., p99_ms: _Optional[float] = ..., last_success_at: _Optional[str] = ..., last_failure_at: _Optional[str] = ..., last_problem: _Optional[str] = ..., breaker: _Optional[_Union[BreakerState, str]] = ...) -> None: ...

class SourceList(_message.Message):
    __slots__ = ("sources",)
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[SourceStatus]
    def __init__(self, sources: _Optional[_Iterable[_Union[SourceStatus, _Mapping[str, object]]]] = ...) -> None: ...

class SourcePolicy(_message.Message):
    __slots__ = ("allowed_sources", "denied_sources", "minimum_authority", "most_sources", "acl_scope")
    ALLOWED_SOURCES_FIELD_NUMBER: _ClassVar[int]
    DENIED_SOURCES_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    MOST_SOURCES_FIELD_NUMBER: _ClassVar[int]
    ACL_SCOPE_FIELD_NUMBER: _ClassVar[int]
    allowed_sources: TextList
    denied_sources: _containers.RepeatedScalarFieldContainer[str]
    minimum_authority: AuthorityTier
    most_sources: int
    acl_scope: TextList
    def __init__(self, allowed_sources: _Optional[_Union[TextList, _Mapping[str, object]]] = ..., denied_sources: _Optional[_Iterable[str]] = ..., minimum_authority: _Optional[_Union[AuthorityTier, str]] = ..., most_sources: _Optional[int] = ..., acl_scope: _Optional[_Union[TextList, _Mapping[str, object]]] = ...) -> None: ...

class SourceStatus(_message.Message):
    __slots__ = ("descriptor", "health", "is_attached", "documents")
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    IS_ATTACHED_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    descriptor: SourceDescriptor
    health: SourceHealth
    is_attached: bool
    documents: int
    def __init__(self, descriptor: _Optional[_Union[SourceDescriptor, _Mapping[str, object]]] = ..., health: _Optional[_Union[SourceHealth, _Mapping[str, object]]] = ..., is_attached: bool = ..., documents: _Optional[int] = ...) -> None: ...

class SourceTrial(_message.Message):
    __slots__ = ("source_id", "report", "candidates")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    report: CoverageReport
    candidates: _containers.RepeatedCompositeFieldContainer[ExternalCandidate]
    def __init__(self, source_id: _Optional[str] = ..., report: _Optional[_Union[CoverageReport, _Mapping[str, object]]] = ..., candidates: _Optional[_Iterable[_Union[ExternalCandidate, _Mapping[str, object]]]] = ...) -> None: ...

class SpanClosed(_message.Message):
    __slots__ = ("span", "closed", "sources", "error")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    span: str
    closed: str
    sources: int
    error: str
    def __init__(self, span: _Optional[str] = ..., closed: _Optional[str] = ..., sources: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class SpanOpened(_message.Message):
    __slots__ = ("span", "opened", "name", "is_retrieval")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_RETRIEVAL_FIELD_NUMBER: _ClassVar[int]
    span: str
    opened: str
    name: str
    is_retrieval: bool
    def __init__(self, span: _Optional[str] = ..., opened: _Optional[str] = ..., name: _Optional[str] = ..., is_retrieval: bool = ...) -> None: ...

class StartReply(_message.Message):
    __slots__ = ("run_id", "is_enforced", "policies")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    is_enforced: bool
    policies: _containers.RepeatedCompositeFieldContainer[Policy]
    def __init__(self, run_id: _Optional[str] = ..., is_enforced: bool = ..., policies: _Optional[_Iterable[_Union[Policy, _Mapping[str, object]]]] = ...) -> None: ...

class StepCall(_message.Message):
    __slots__ = ("span", "name", "attributes_json")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_JSON_FIELD_NUMBER: _ClassVar[int]
    span: str
    name: str
    attributes_json: str
    def __init__(self, span: _Optional[str] = ..., name: _Optional[str] = ..., attributes_json: _Optional[str] = ...) -> None: ...

class StoredChunk(_message.Message):
    __slots__ = ("chunk_id", "document_id", "source_id", "position", "start", "end", "content", "content_hash", "text_hash", "custody_head", "event_index", "metadata", "access", "custody", "is_live")
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    TEXT_HASH_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_HEAD_FIELD_NUMBER: _ClassVar[int]
    EVENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_FIELD_NUMBER: _ClassVar[int]
    IS_LIVE_FIELD_NUMBER: _ClassVar[int]
    chunk_id: str
    document_id: str
    source_id: str
    position: int
    start: int
    end: int
    content: str
    content_hash: str
    text_hash: str
    custody_head: str
    event_index: int
    metadata: DocumentMetadata
    access: AccessRule
    custody: DocumentCustody
    is_live: bool
    def __init__(self, chunk_id: _Optional[str] = ..., document_id: _Optional[str] = ..., source_id: _Optional[str] = ..., position: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., content: _Optional[str] = ..., content_hash: _Optional[str] = ..., text_hash: _Optional[str] = ..., custody_head: _Optional[str] = ..., event_index: _Optional[int] = ..., metadata: _Optional[_Union[DocumentMetadata, _Mapping[str, object]]] = ..., access: _Optional[_Union[AccessRule, _Mapping[str, object]]] = ..., custody: _Optional[_Union[DocumentCustody, _Mapping[str, object]]] = ..., is_live: bool = ...) -> None: ...

class StoredPolicy(_message.Message):
    __slots__ = ("policy", "created_at", "updated_at", "updated_by", "is_removed")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    IS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    policy: Policy
    created_at: str
    updated_at: str
    updated_by: str
    is_removed: bool
    def __init__(self, policy: _Optional[_Union[Policy, _Mapping[str, object]]] = ..., created_at: _Optional[str] = ..., updated_at: _Optional[str] = ..., updated_by: _Optional[str] = ..., is_removed: bool = ...) -> None: ...

class StreamEvent(_message.Message):
    __slots__ = ("source_finished", "provisional_fragments", "final_response")
    SOURCE_FINISHED_FIELD_NUMBER: _ClassVar[int]
    PROVISIONAL_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    FINAL_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    source_finished: SourceFinished
    provisional_fragments: ProvisionalFragments
    final_response: FinalResponse
    def __init__(self, source_finished: _Optional[_Union[SourceFinished, _Mapping[str, object]]] = ..., provisional_fragments: _Optional[_Union[ProvisionalFragments, _Mapping[str, object]]] = ..., final_response: _Optional[_Union[FinalResponse, _Mapping[str, object]]] = ...) -> None: ...

class SubQuery(_message.Message):
    __slots__ = ("text", "required_capabilities", "weight")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    text: str
    required_capabilities: _containers.RepeatedScalarFieldContainer[QueryCapability]
    weight: float
    def __init__(self, text: _Optional[str] = ..., required_capabilities: _Optional[_Iterable[_Union[QueryCapability, str]]] = ..., weight: _Optional[float] = ...) -> None: ...

class TableAnswer(_message.Message):
    __slots__ = ("question", "tables", "plan", "declined", "columns", "rows", "sources", "files", "total", "omitted", "has_tables")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    HAS_TABLES_FIELD_NUMBER: _ClassVar[int]
    question: str
    tables: _containers.RepeatedCompositeFieldContainer[TableCard]
    plan: TablePlan
    declined: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    rows: _containers.RepeatedCompositeFieldContainer[CellValueList]
    sources: _containers.RepeatedCompositeFieldContainer[TextList]
    files: _containers.RepeatedCompositeFieldContainer[TextTextTuple]
    total: int
    omitted: int
    has_tables: bool
    def __init__(self, question: _Optional[str] = ..., tables: _Optional[_Iterable[_Union[TableCard, _Mapping[str, object]]]] = ..., plan: _Optional[_Union[TablePlan, _Mapping[str, object]]] = ..., declined: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., rows: _Optional[_Iterable[_Union[CellValueList, _Mapping[str, object]]]] = ..., sources: _Optional[_Iterable[_Union[TextList, _Mapping[str, object]]]] = ..., files: _Optional[_Iterable[_Union[TextTextTuple, _Mapping[str, object]]]] = ..., total: _Optional[int] = ..., omitted: _Optional[int] = ..., has_tables: bool = ...) -> None: ...

class TableCard(_message.Message):
    __slots__ = ("table_id", "document_id", "source_id", "file_name", "sheet", "sheet_name", "title", "sql_name", "header_rows", "first_row", "last_row", "row_count", "total_rows", "columns", "content", "notes")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    FILE_NAME_FIELD_NUMBER: _ClassVar[int]
    SHEET_FIELD_NUMBER: _ClassVar[int]
    SHEET_NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SQL_NAME_FIELD_NUMBER: _ClassVar[int]
    HEADER_ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    LAST_ROW_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    table_id: str
    document_id: str
    source_id: str
    file_name: str
    sheet: int
    sheet_name: str
    title: str
    sql_name: str
    header_rows: _containers.RepeatedScalarFieldContainer[int]
    first_row: int
    last_row: int
    row_count: int
    total_rows: _containers.RepeatedScalarFieldContainer[int]
    columns: _containers.RepeatedCompositeFieldContainer[TableColumn]
    content: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, table_id: _Optional[str] = ..., document_id: _Optional[str] = ..., source_id: _Optional[str] = ..., file_name: _Optional[str] = ..., sheet: _Optional[int] = ..., sheet_name: _Optional[str] = ..., title: _Optional[str] = ..., sql_name: _Optional[str] = ..., header_rows: _Optional[_Iterable[int]] = ..., first_row: _Optional[int] = ..., last_row: _Optional[int] = ..., row_count: _Optional[int] = ..., total_rows: _Optional[_Iterable[int]] = ..., columns: _Optional[_Iterable[_Union[TableColumn, _Mapping[str, object]]]] = ..., content: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class TableColumn(_message.Message):
    __slots__ = ("name", "sql_name", "kind", "unit", "position", "distinct", "missing", "samples")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SQL_NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    sql_name: str
    kind: ColumnKind
    unit: str
    position: int
    distinct: int
    missing: int
    samples: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., sql_name: _Optional[str] = ..., kind: _Optional[_Union[ColumnKind, str]] = ..., unit: _Optional[str] = ..., position: _Optional[int] = ..., distinct: _Optional[int] = ..., missing: _Optional[int] = ..., samples: _Optional[_Iterable[str]] = ...) -> None: ...

class TableContent(_message.Message):
    __slots__ = ("rows", "columns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    columns: _containers.RepeatedCompositeFieldContainer[CellValueList]
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., columns: _Optional[_Iterable[_Union[CellValueList, _Mapping[str, object]]]] = ...) -> None: ...

class TableList(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[TableCard]
    def __init__(self, tables: _Optional[_Iterable[_Union[TableCard, _Mapping[str, object]]]] = ...) -> None: ...

class TablePlan(_message.Message):
    __slots__ = ("statement", "parameters", "tables", "support", "reading", "confidence", "planner")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PLANNER_FIELD_NUMBER: _ClassVar[int]
    statement: str
    parameters: _containers.RepeatedCompositeFieldContainer[CellValue]
    tables: _containers.RepeatedScalarFieldContainer[str]
    support: str
    reading: _containers.RepeatedScalarFieldContainer[str]
    confidence: float
    planner: str
    def __init__(self, statement: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[CellValue, _Mapping[str, object]]]] = ..., tables: _Optional[_Iterable[str]] = ..., support: _Optional[str] = ..., reading: _Optional[_Iterable[str]] = ..., confidence: _Optional[float] = ..., planner: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("type", "text")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    type: str
    text: str
    def __init__(self, type: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class TaskOpened(_message.Message):
    __slots__ = ("span", "task", "question_type", "breadth", "question_hash", "skills", "has_self_knowledge")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUESTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    BREADTH_FIELD_NUMBER: _ClassVar[int]
    QUESTION_HASH_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    HAS_SELF_KNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    span: str
    task: TaskKind
    question_type: QuestionType
    breadth: Breadth
    question_hash: str
    skills: _containers.RepeatedScalarFieldContainer[str]
    has_self_knowledge: bool
    def __init__(self, span: _Optional[str] = ..., task: _Optional[_Union[TaskKind, str]] = ..., question_type: _Optional[_Union[QuestionType, str]] = ..., breadth: _Optional[_Union[Breadth, str]] = ..., question_hash: _Optional[str] = ..., skills: _Optional[_Iterable[str]] = ..., has_self_knowledge: bool = ...) -> None: ...

class TermScore(_message.Message):
    __slots__ = ("term", "score", "frequency", "containing", "documents", "length", "idf", "in_context")
    TERM_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_FIELD_NUMBER: _ClassVar[int]
    CONTAINING_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    IDF_FIELD_NUMBER: _ClassVar[int]
    IN_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    term: str
    score: int
    frequency: int
    containing: int
    documents: int
    length: int
    idf: int
    in_context: int
    def __init__(self, term: _Optional[str] = ..., score: _Optional[int] = ..., frequency: _Optional[int] = ..., containing: _Optional[int] = ..., documents: _Optional[int] = ..., length: _Optional[int] = ..., idf: _Optional[int] = ..., in_context: _Optional[int] = ...) -> None: ...

class TextList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class TextOrTextList(_message.Message):
    __slots__ = ("text", "list")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    text: str
    list: TextList
    def __init__(self, text: _Optional[str] = ..., list: _Optional[_Union[TextList, _Mapping[str, object]]] = ...) -> None: ...

class TextTextTuple(_message.Message):
    __slots__ = ("first", "second")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ...) -> None: ...

class TierStats(_message.Message):
    __slots__ = ("tier", "finds", "hits", "reused", "stale_hits", "entries")
    TIER_FIELD_NUMBER: _ClassVar[int]
    FINDS_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    STALE_HITS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    tier: CacheTier
    finds: int
    hits: int
    reused: int
    stale_hits: int
    entries: int
    def __init__(self, tier: _Optional[_Union[CacheTier, str]] = ..., finds: _Optional[int] = ..., hits: _Optional[int] = ..., reused: _Optional[int] = ..., stale_hits: _Optional[int] = ..., entries: _Optional[int] = ...) -> None: ...

class TimeWindow(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: str
    end: str
    def __init__(self, start: _Optional[str] = ..., end: _Optional[str] = ...) -> None: ...

class TokenFacts(_message.Message):
    __slots__ = ("clearance", "groups", "attributes", "is_delegate", "limits", "floor", "agents")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLEARANCE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    IS_DELEGATE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    clearance: Classification
    groups: _containers.RepeatedScalarFieldContainer[str]
    attributes: _containers.ScalarMap[str, str]
    is_delegate: bool
    limits: TokenLimits
    floor: GovernanceMode
    agents: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, clearance: _Optional[_Union[Classification, str]] = ..., groups: _Optional[_Iterable[str]] = ..., attributes: _Optional[_Mapping[str, str]] = ..., is_delegate: bool = ..., limits: _Optional[_Union[TokenLimits, _Mapping[str, object]]] = ..., floor: _Optional[_Union[GovernanceMode, str]] = ..., agents: _Optional[_Iterable[str]] = ...) -> None: ...

class TokenInfo(_message.Message):
    __slots__ = ("token_id", "name", "roles", "tenant", "created_at", "created_by", "expires_at", "revoked_at", "facts")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    name: str
    roles: _containers.RepeatedScalarFieldContainer[Role]
    tenant: str
    created_at: str
    created_by: str
    expires_at: str
    revoked_at: str
    facts: TokenFacts
    def __init__(self, token_id: _Optional[str] = ..., name: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., tenant: _Optional[str] = ..., created_at: _Optional[str] = ..., created_by: _Optional[str] = ..., expires_at: _Optional[str] = ..., revoked_at: _Optional[str] = ..., facts: _Optional[_Union[TokenFacts, _Mapping[str, object]]] = ...) -> None: ...

class TokenLimits(_message.Message):
    __slots__ = ("requests_per_minute", "requests_per_day", "request_mb")
    REQUESTS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_MB_FIELD_NUMBER: _ClassVar[int]
    requests_per_minute: int
    requests_per_day: int
    request_mb: int
    def __init__(self, requests_per_minute: _Optional[int] = ..., requests_per_day: _Optional[int] = ..., request_mb: _Optional[int] = ...) -> None: ...

class TokenList(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[TokenInfo]
    def __init__(self, tokens: _Optional[_Iterable[_Union[TokenInfo, _Mapping[str, object]]]] = ...) -> None: ...

class ToolAnswered(_message.Message):
    __slots__ = ("span", "call", "results", "shortfalls", "total", "displayed", "omitted", "images")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SHORTFALLS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DISPLAYED_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    span: str
    call: int
    results: int
    shortfalls: _containers.RepeatedScalarFieldContainer[Shortfall]
    total: int
    displayed: int
    omitted: int
    images: int
    def __init__(self, span: _Optional[str] = ..., call: _Optional[int] = ..., results: _Optional[int] = ..., shortfalls: _Optional[_Iterable[_Union[Shortfall, str]]] = ..., total: _Optional[int] = ..., displayed: _Optional[int] = ..., omitted: _Optional[int] = ..., images: _Optional[int] = ...) -> None: ...

class ToolAsked(_message.Message):
    __slots__ = ("span", "call", "name", "role", "is_knowledge", "top_k", "query_hash", "is_raw", "works_raw", "containment", "strays", "is_explicit_file")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    IS_KNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    QUERY_HASH_FIELD_NUMBER: _ClassVar[int]
    IS_RAW_FIELD_NUMBER: _ClassVar[int]
    WORKS_RAW_FIELD_NUMBER: _ClassVar[int]
    CONTAINMENT_FIELD_NUMBER: _ClassVar[int]
    STRAYS_FIELD_NUMBER: _ClassVar[int]
    IS_EXPLICIT_FILE_FIELD_NUMBER: _ClassVar[int]
    span: str
    call: int
    name: str
    role: ToolRole
    is_knowledge: bool
    top_k: int
    query_hash: str
    is_raw: bool
    works_raw: bool
    containment: float
    strays: int
    is_explicit_file: bool
    def __init__(self, span: _Optional[str] = ..., call: _Optional[int] = ..., name: _Optional[str] = ..., role: _Optional[_Union[ToolRole, str]] = ..., is_knowledge: bool = ..., top_k: _Optional[int] = ..., query_hash: _Optional[str] = ..., is_raw: bool = ..., works_raw: bool = ..., containment: _Optional[float] = ..., strays: _Optional[int] = ..., is_explicit_file: bool = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("span", "name", "is_retrieval", "duration_ms", "sources", "error", "attributes_json")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_RETRIEVAL_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_JSON_FIELD_NUMBER: _ClassVar[int]
    span: str
    name: str
    is_retrieval: bool
    duration_ms: float
    sources: int
    error: str
    attributes_json: str
    def __init__(self, span: _Optional[str] = ..., name: _Optional[str] = ..., is_retrieval: bool = ..., duration_ms: _Optional[float] = ..., sources: _Optional[int] = ..., error: _Optional[str] = ..., attributes_json: _Optional[str] = ...) -> None: ...

class ToolStamp(_message.Message):
    __slots__ = ("tool_id", "tool_version", "timestamp")
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    tool_id: str
    tool_version: str
    timestamp: str
    def __init__(self, tool_id: _Optional[str] = ..., tool_version: _Optional[str] = ..., timestamp: _Optional[str] = ...) -> None: ...

class TraceList(_message.Message):
    __slots__ = ("traces",)
    TRACES_FIELD_NUMBER: _ClassVar[int]
    traces: _containers.RepeatedCompositeFieldContainer[RequestTrace]
    def __init__(self, traces: _Optional[_Iterable[_Union[RequestTrace, _Mapping[str, object]]]] = ...) -> None: ...

class TraceSpan(_message.Message):
    __slots__ = ("name", "kind", "start_ms", "duration_ms", "note", "state", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: CellValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CellValue, _Mapping[str, object]]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    START_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    start_ms: float
    duration_ms: float
    note: str
    state: CoverageState
    attributes: _containers.MessageMap[str, CellValue]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., start_ms: _Optional[float] = ..., duration_ms: _Optional[float] = ..., note: _Optional[str] = ..., state: _Optional[_Union[CoverageState, str]] = ..., attributes: _Optional[_Mapping[str, CellValue]] = ...) -> None: ...

class TransformationEntry(_message.Message):
    __slots__ = ("record", "hash")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    record: TransformationRecord
    hash: str
    def __init__(self, record: _Optional[_Union[TransformationRecord, _Mapping[str, object]]] = ..., hash: _Optional[str] = ...) -> None: ...

class TransformationRecord(_message.Message):
    __slots__ = ("step", "tool_id", "tool_version", "timestamp", "input_hash", "output_hash", "parameters")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: IntegerOrText
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[IntegerOrText, _Mapping[str, object]]] = ...) -> None: ...
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOOL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    INPUT_HASH_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_HASH_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    step: str
    tool_id: str
    tool_version: str
    timestamp: str
    input_hash: str
    output_hash: str
    parameters: _containers.MessageMap[str, IntegerOrText]
    def __init__(self, step: _Optional[str] = ..., tool_id: _Optional[str] = ..., tool_version: _Optional[str] = ..., timestamp: _Optional[str] = ..., input_hash: _Optional[str] = ..., output_hash: _Optional[str] = ..., parameters: _Optional[_Mapping[str, IntegerOrText]] = ...) -> None: ...

class TriggerRate(_message.Message):
    __slots__ = ("threshold", "values", "value_triggers", "runs", "run_triggers")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    RUN_TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    threshold: float
    values: int
    value_triggers: int
    runs: int
    run_triggers: int
    def __init__(self, threshold: _Optional[float] = ..., values: _Optional[int] = ..., value_triggers: _Optional[int] = ..., runs: _Optional[int] = ..., run_triggers: _Optional[int] = ...) -> None: ...

class TrustMetadata(_message.Message):
    __slots__ = ("authority_tier", "confidence", "verified_by", "last_verification", "staleness_s", "conflict_flag")
    AUTHORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_BY_FIELD_NUMBER: _ClassVar[int]
    LAST_VERIFICATION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_S_FIELD_NUMBER: _ClassVar[int]
    CONFLICT_FLAG_FIELD_NUMBER: _ClassVar[int]
    authority_tier: AuthorityTier
    confidence: float
    verified_by: _containers.RepeatedScalarFieldContainer[str]
    last_verification: str
    staleness_s: int
    conflict_flag: bool
    def __init__(self, authority_tier: _Optional[_Union[AuthorityTier, str]] = ..., confidence: _Optional[float] = ..., verified_by: _Optional[_Iterable[str]] = ..., last_verification: _Optional[str] = ..., staleness_s: _Optional[int] = ..., conflict_flag: bool = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("role", "text")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    role: str
    text: str
    def __init__(self, role: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("number", "truth", "integer", "text")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    number: Number
    truth: bool
    integer: int
    text: str
    def __init__(self, number: _Optional[_Union[Number, _Mapping[str, object]]] = ..., truth: bool = ..., integer: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class VectorIdentity(_message.Message):
    __slots__ = ("model", "dimension", "normalisation", "name")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    NORMALISATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    model: str
    dimension: int
    normalisation: str
    name: str
    def __init__(self, model: _Optional[str] = ..., dimension: _Optional[int] = ..., normalisation: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("phase", "decisive", "evaluations", "is_enforced", "abstention_response")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    DECISIVE_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    ABSTENTION_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    phase: Phase
    decisive: Evaluation
    evaluations: _containers.RepeatedCompositeFieldContainer[Evaluation]
    is_enforced: bool
    abstention_response: str
    def __init__(self, phase: _Optional[_Union[Phase, str]] = ..., decisive: _Optional[_Union[Evaluation, _Mapping[str, object]]] = ..., evaluations: _Optional[_Iterable[_Union[Evaluation, _Mapping[str, object]]]] = ..., is_enforced: bool = ..., abstention_response: _Optional[str] = ...) -> None: ...

class VerifyReport(_message.Message):
    __slots__ = ("ok", "target", "fragments", "documents", "events", "commits", "broken", "custody_format", "signed_by")
    OK_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    CUSTODY_FORMAT_FIELD_NUMBER: _ClassVar[int]
    SIGNED_BY_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    target: str
    fragments: int
    documents: int
    events: int
    commits: int
    broken: _containers.RepeatedCompositeFieldContainer[BrokenLink]
    custody_format: int
    signed_by: str
    def __init__(self, ok: bool = ..., target: _Optional[str] = ..., fragments: _Optional[int] = ..., documents: _Optional[int] = ..., events: _Optional[int] = ..., commits: _Optional[int] = ..., broken: _Optional[_Iterable[_Union[BrokenLink, _Mapping[str, object]]]] = ..., custody_format: _Optional[int] = ..., signed_by: _Optional[str] = ...) -> None: ...

class VersionDiff(_message.Message):
    __slots__ = ("older", "newer", "added", "removed", "changed", "metadata_changed", "access_changed", "note")
    OLDER_FIELD_NUMBER: _ClassVar[int]
    NEWER_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    METADATA_CHANGED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    older: VersionSummary
    newer: VersionSummary
    added: ChangedDocuments
    removed: ChangedDocuments
    changed: ChangedDocuments
    metadata_changed: ChangedDocuments
    access_changed: ChangedDocuments
    note: str
    def __init__(self, older: _Optional[_Union[VersionSummary, _Mapping[str, object]]] = ..., newer: _Optional[_Union[VersionSummary, _Mapping[str, object]]] = ..., added: _Optional[_Union[ChangedDocuments, _Mapping[str, object]]] = ..., removed: _Optional[_Union[ChangedDocuments, _Mapping[str, object]]] = ..., changed: _Optional[_Union[ChangedDocuments, _Mapping[str, object]]] = ..., metadata_changed: _Optional[_Union[ChangedDocuments, _Mapping[str, object]]] = ..., access_changed: _Optional[_Union[ChangedDocuments, _Mapping[str, object]]] = ..., note: _Optional[str] = ...) -> None: ...

class VersionList(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[VersionSummary]
    def __init__(self, versions: _Optional[_Iterable[_Union[VersionSummary, _Mapping[str, object]]]] = ...) -> None: ...

class VersionSummary(_message.Message):
    __slots__ = ("sequence", "corpus_version", "evidence_state", "at", "is_kept", "documents", "chunks")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CORPUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_STATE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    IS_KEPT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    corpus_version: str
    evidence_state: str
    at: str
    is_kept: bool
    documents: int
    chunks: int
    def __init__(self, sequence: _Optional[int] = ..., corpus_version: _Optional[str] = ..., evidence_state: _Optional[str] = ..., at: _Optional[str] = ..., is_kept: bool = ..., documents: _Optional[int] = ..., chunks: _Optional[int] = ...) -> None: ...

class WarmReport(_message.Message):
    __slots__ = ("questions", "kept", "coverage")
    class CoverageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: CoverageReportMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CoverageReportMap, _Mapping[str, object]]] = ...) -> None: ...
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    questions: int
    kept: int
    coverage: _containers.MessageMap[str, CoverageReportMap]
    def __init__(self, questions: _Optional[int] = ..., kept: _Optional[int] = ..., coverage: _Optional[_Mapping[str, CoverageReportMap]] = ...) -> None: ...

class WhyReport(_message.Message):
    __slots__ = ("receipt_id", "chunk_id", "stage", "rank", "score", "scores", "confidence", "terms", "reason", "smallest_change")
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_CHANGE_FIELD_NUMBER: _ClassVar[int]
    receipt_id: str
    chunk_id: str
    stage: str
    rank: int
    score: int
    scores: SignalScores
    confidence: float
    terms: _containers.RepeatedCompositeFieldContainer[TermScore]
    reason: str
    smallest_change: str
    def __init__(self, receipt_id: _Optional[str] = ..., chunk_id: _Optional[str] = ..., stage: _Optional[str] = ..., rank: _Optional[int] = ..., score: _Optional[int] = ..., scores: _Optional[_Union[SignalScores, _Mapping[str, object]]] = ..., confidence: _Optional[float] = ..., terms: _Optional[_Iterable[_Union[TermScore, _Mapping[str, object]]]] = ..., reason: _Optional[str] = ..., smallest_change: _Optional[str] = ...) -> None: ...

class WithheldFragment(_message.Message):
    __slots__ = ("chunk_id", "reason")
    CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    chunk_id: str
    reason: str
    def __init__(self, chunk_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
