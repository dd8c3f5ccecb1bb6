"""Every contract that has a message of its own, to its message and back.

Written by tools/write_proto.py; nothing here is changed by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.annotations import Annotation, AnnotationTarget
from evidentia.contracts.control import AuditEntry, AuditPage, CallResult, CallsReply, DecisionPage, EndReply, EventPage, GovernanceEvent, IssuedToken, NumberedCall, PolicyPage, PolicyTemplates, PolicyVersions, PushReply, PushResult, RunPage, SecretKept, SecretNames, StartReply, TokenFacts, TokenInfo, TokenLimits, TokenList
from evidentia.contracts.decisions import DecisionCounts, Evaluation, LogFault, LogHead, LogReport, PolicyDecision, RecordProof, Verdict
from evidentia.contracts.documents import ChangedDocument, ChangedDocuments, CommitSummary, DocumentMetadata, StoredChunk, VersionDiff, VersionSummary
from evidentia.contracts.doors import ChunkList, Count, DocumentEntry, DocumentPage, Done, FreshnessList, ImageView, LayoutView, NoteList, ReceiptView, SentDocument, SentFile, SourceList, TableList, TraceList, VersionList
from evidentia.contracts.evidence import Conflict, CoverageReport, Decision, DecomposedQuery, EvidenceFragment, EvidenceResponse, FinalResponse, GovernedFragment, ProvisionalFragments, QueryStep, RankingWeights, SignalScores, SourceFinished, StreamEvent, SubQuery, Task, TermScore, TimeWindow, Turn, WithheldFragment
from evidentia.contracts.judging import Judgement
from evidentia.contracts.layout import DocumentImage, DocumentLayout, FragmentImage
from evidentia.contracts.policies import Policy, PolicyBody, PolicyScope, StoredPolicy
from evidentia.contracts.policy_trials import Calibration, HistogramBar, ShadowChanges, ShadowExample, ShadowGroup, ShadowReport, TriggerRate
from evidentia.contracts.predicate_values import Number, Value
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or, Predicate
from evidentia.contracts.protocol import ReplyDrafted, ReplyFinding, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.provenance import BaseHead, BrokenLink, CommitRecord, ConsistencyProof, DocumentCustody, FragmentExport, InclusionProof, IngestEvent, OriginDescriptor, OriginEntry, ProvenanceEntry, ProvenanceRecord, RetrievalContext, SignedHead, SigningKey, ToolStamp, TransformationEntry, TransformationRecord, TrustMetadata, VerifyReport
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.reports import CacheStats, DoctorReport, Finding, GcReport, IngestReport, SkippedInput, TierStats
from evidentia.contracts.retrieval import ExternalCandidate, SourceTrial, WarmReport
from evidentia.contracts.runs import BatchClosed, CheckBypassed, GroundingEntry, LlmCall, RecordableCall, RetrievedDocument, RunFacts, RunSpan, RunSummary, RunTrace, SpanClosed, SpanOpened, StepCall, ToolCall
from evidentia.contracts.sources import FreshnessReport, Note, SchemaDefinition, SchemaField, SourceAccessPolicy, SourceConnection, SourceDescriptor, SourceHealth, SourcePolicy, SourceStatus
from evidentia.contracts.tables import CellValue, OpenTable, TableAnswer, TableCard, TableColumn, TableContent, TablePlan
from evidentia.contracts.telemetry import RequestTrace, TraceSpan
from evidentia.contracts.vectors import EmbedReport, VectorIdentity
from evidentia.contracts.decoding import convert
from evidentia.protobuf import reading, writing
from evidentia.protobuf.evidentia.v1 import types_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = tuple[Any, Any, "Callable[[Any], dict[str, Any]]", "Callable[[Any], Any]"]
"""A contract, the class of its message, and the functions that write and read it."""

CONVERSIONS: Final[Mapping[str, Row]] = {
    "AccessRule": (AccessRule, types_pb2.AccessRule, writing.write_access_rule, reading.read_access_rule),
    "And": (And, types_pb2.And, writing.write_and, reading.read_and),
    "Annotation": (Annotation, types_pb2.Annotation, writing.write_annotation, reading.read_annotation),
    "AnnotationTarget": (AnnotationTarget, types_pb2.AnnotationTarget, writing.write_annotation_target, reading.read_annotation_target),
    "AuditEntry": (AuditEntry, types_pb2.AuditEntry, writing.write_audit_entry, reading.read_audit_entry),
    "AuditPage": (AuditPage, types_pb2.AuditPage, writing.write_audit_page, reading.read_audit_page),
    "BaseHead": (BaseHead, types_pb2.BaseHead, writing.write_base_head, reading.read_base_head),
    "BatchClosed": (BatchClosed, types_pb2.BatchClosed, writing.write_batch_closed, reading.read_batch_closed),
    "BrokenLink": (BrokenLink, types_pb2.BrokenLink, writing.write_broken_link, reading.read_broken_link),
    "CacheStats": (CacheStats, types_pb2.CacheStats, writing.write_cache_stats, reading.read_cache_stats),
    "Calibration": (Calibration, types_pb2.Calibration, writing.write_calibration, reading.read_calibration),
    "CallResult": (CallResult, types_pb2.CallResult, writing.write_call_result, reading.read_call_result),
    "CallsReply": (CallsReply, types_pb2.CallsReply, writing.write_calls_reply, reading.read_calls_reply),
    "CellValue": (CellValue, types_pb2.CellValue, writing.write_cell_value, reading.read_cell_value),
    "ChangedDocument": (ChangedDocument, types_pb2.ChangedDocument, writing.write_changed_document, reading.read_changed_document),
    "ChangedDocuments": (ChangedDocuments, types_pb2.ChangedDocuments, writing.write_changed_documents, reading.read_changed_documents),
    "CheckBypassed": (CheckBypassed, types_pb2.CheckBypassed, writing.write_check_bypassed, reading.read_check_bypassed),
    "ChunkList": (ChunkList, types_pb2.ChunkList, writing.write_chunk_list, reading.read_chunk_list),
    "CommitRecord": (CommitRecord, types_pb2.CommitRecord, writing.write_commit_record, reading.read_commit_record),
    "CommitSummary": (CommitSummary, types_pb2.CommitSummary, writing.write_commit_summary, reading.read_commit_summary),
    "Compare": (Compare, types_pb2.Compare, writing.write_compare, reading.read_compare),
    "Conflict": (Conflict, types_pb2.Conflict, writing.write_conflict, reading.read_conflict),
    "ConsistencyProof": (ConsistencyProof, types_pb2.ConsistencyProof, writing.write_consistency_proof, reading.read_consistency_proof),
    "Contains": (Contains, types_pb2.Contains, writing.write_contains, reading.read_contains),
    "Count": (Count, types_pb2.Count, writing.write_count, reading.read_count),
    "CoverageReport": (CoverageReport, types_pb2.CoverageReport, writing.write_coverage_report, reading.read_coverage_report),
    "Decision": (Decision, types_pb2.Decision, writing.write_decision, reading.read_decision),
    "DecisionCounts": (DecisionCounts, types_pb2.DecisionCounts, writing.write_decision_counts, reading.read_decision_counts),
    "DecisionPage": (DecisionPage, types_pb2.DecisionPage, writing.write_decision_page, reading.read_decision_page),
    "DecomposedQuery": (DecomposedQuery, types_pb2.DecomposedQuery, writing.write_decomposed_query, reading.read_decomposed_query),
    "DoctorReport": (DoctorReport, types_pb2.DoctorReport, writing.write_doctor_report, reading.read_doctor_report),
    "DocumentCustody": (DocumentCustody, types_pb2.DocumentCustody, writing.write_document_custody, reading.read_document_custody),
    "DocumentEntry": (DocumentEntry, types_pb2.DocumentEntry, writing.write_document_entry, reading.read_document_entry),
    "DocumentImage": (DocumentImage, types_pb2.DocumentImage, writing.write_document_image, reading.read_document_image),
    "DocumentLayout": (DocumentLayout, types_pb2.DocumentLayout, writing.write_document_layout, reading.read_document_layout),
    "DocumentMetadata": (DocumentMetadata, types_pb2.DocumentMetadata, writing.write_document_metadata, reading.read_document_metadata),
    "DocumentPage": (DocumentPage, types_pb2.DocumentPage, writing.write_document_page, reading.read_document_page),
    "Done": (Done, types_pb2.Done, writing.write_done, reading.read_done),
    "EmbedReport": (EmbedReport, types_pb2.EmbedReport, writing.write_embed_report, reading.read_embed_report),
    "EndReply": (EndReply, types_pb2.EndReply, writing.write_end_reply, reading.read_end_reply),
    "Evaluation": (Evaluation, types_pb2.Evaluation, writing.write_evaluation, reading.read_evaluation),
    "EventPage": (EventPage, types_pb2.EventPage, writing.write_event_page, reading.read_event_page),
    "EvidenceFragment": (EvidenceFragment, types_pb2.EvidenceFragment, writing.write_evidence_fragment, reading.read_evidence_fragment),
    "EvidenceResponse": (EvidenceResponse, types_pb2.EvidenceResponse, writing.write_evidence_response, reading.read_evidence_response),
    "Exists": (Exists, types_pb2.Exists, writing.write_exists, reading.read_exists),
    "ExternalCandidate": (ExternalCandidate, types_pb2.ExternalCandidate, writing.write_external_candidate, reading.read_external_candidate),
    "FinalResponse": (FinalResponse, types_pb2.FinalResponse, writing.write_final_response, reading.read_final_response),
    "Finding": (Finding, types_pb2.Finding, writing.write_finding, reading.read_finding),
    "FragmentExport": (FragmentExport, types_pb2.FragmentExport, writing.write_fragment_export, reading.read_fragment_export),
    "FragmentImage": (FragmentImage, types_pb2.FragmentImage, writing.write_fragment_image, reading.read_fragment_image),
    "FreshnessList": (FreshnessList, types_pb2.FreshnessList, writing.write_freshness_list, reading.read_freshness_list),
    "FreshnessReport": (FreshnessReport, types_pb2.FreshnessReport, writing.write_freshness_report, reading.read_freshness_report),
    "GcReport": (GcReport, types_pb2.GcReport, writing.write_gc_report, reading.read_gc_report),
    "GovernanceEvent": (GovernanceEvent, types_pb2.GovernanceEvent, writing.write_governance_event, reading.read_governance_event),
    "GovernedFragment": (GovernedFragment, types_pb2.GovernedFragment, writing.write_governed_fragment, reading.read_governed_fragment),
    "GroundingEntry": (GroundingEntry, types_pb2.GroundingEntry, writing.write_grounding_entry, reading.read_grounding_entry),
    "HistogramBar": (HistogramBar, types_pb2.HistogramBar, writing.write_histogram_bar, reading.read_histogram_bar),
    "ImageView": (ImageView, types_pb2.ImageView, writing.write_image_view, reading.read_image_view),
    "In": (In, types_pb2.In, writing.write_in, reading.read_in),
    "InclusionProof": (InclusionProof, types_pb2.InclusionProof, writing.write_inclusion_proof, reading.read_inclusion_proof),
    "IngestEvent": (IngestEvent, types_pb2.IngestEvent, writing.write_ingest_event, reading.read_ingest_event),
    "IngestReport": (IngestReport, types_pb2.IngestReport, writing.write_ingest_report, reading.read_ingest_report),
    "IssuedToken": (IssuedToken, types_pb2.IssuedToken, writing.write_issued_token, reading.read_issued_token),
    "Judgement": (Judgement, types_pb2.Judgement, writing.write_judgement, reading.read_judgement),
    "LayoutView": (LayoutView, types_pb2.LayoutView, writing.write_layout_view, reading.read_layout_view),
    "LlmCall": (LlmCall, types_pb2.LlmCall, writing.write_llm_call, reading.read_llm_call),
    "LogFault": (LogFault, types_pb2.LogFault, writing.write_log_fault, reading.read_log_fault),
    "LogHead": (LogHead, types_pb2.LogHead, writing.write_log_head, reading.read_log_head),
    "LogReport": (LogReport, types_pb2.LogReport, writing.write_log_report, reading.read_log_report),
    "Not": (Not, types_pb2.Not, writing.write_not, reading.read_not),
    "NotIn": (NotIn, types_pb2.NotIn, writing.write_not_in, reading.read_not_in),
    "Note": (Note, types_pb2.Note, writing.write_note, reading.read_note),
    "NoteList": (NoteList, types_pb2.NoteList, writing.write_note_list, reading.read_note_list),
    "Number": (Number, types_pb2.Number, writing.write_number, reading.read_number),
    "NumberedCall": (NumberedCall, types_pb2.NumberedCall, writing.write_numbered_call, reading.read_numbered_call),
    "OpenTable": (OpenTable, types_pb2.OpenTable, writing.write_open_table, reading.read_open_table),
    "Or": (Or, types_pb2.Or, writing.write_or, reading.read_or),
    "OriginDescriptor": (OriginDescriptor, types_pb2.OriginDescriptor, writing.write_origin_descriptor, reading.read_origin_descriptor),
    "OriginEntry": (OriginEntry, types_pb2.OriginEntry, writing.write_origin_entry, reading.read_origin_entry),
    "Policy": (Policy, types_pb2.Policy, writing.write_policy, reading.read_policy),
    "PolicyBody": (PolicyBody, types_pb2.PolicyBody, writing.write_policy_body, reading.read_policy_body),
    "PolicyDecision": (PolicyDecision, types_pb2.PolicyDecision, writing.write_policy_decision, reading.read_policy_decision),
    "PolicyPage": (PolicyPage, types_pb2.PolicyPage, writing.write_policy_page, reading.read_policy_page),
    "PolicyScope": (PolicyScope, types_pb2.PolicyScope, writing.write_policy_scope, reading.read_policy_scope),
    "PolicyTemplates": (PolicyTemplates, types_pb2.PolicyTemplates, writing.write_policy_templates, reading.read_policy_templates),
    "PolicyVersions": (PolicyVersions, types_pb2.PolicyVersions, writing.write_policy_versions, reading.read_policy_versions),
    "Predicate": (Predicate, types_pb2.Predicate, writing.write_predicate, reading.read_predicate),
    "Principal": (Principal, types_pb2.Principal, writing.write_principal, reading.read_principal),
    "ProvenanceEntry": (ProvenanceEntry, types_pb2.ProvenanceEntry, writing.write_provenance_entry, reading.read_provenance_entry),
    "ProvenanceRecord": (ProvenanceRecord, types_pb2.ProvenanceRecord, writing.write_provenance_record, reading.read_provenance_record),
    "ProvisionalFragments": (ProvisionalFragments, types_pb2.ProvisionalFragments, writing.write_provisional_fragments, reading.read_provisional_fragments),
    "PushReply": (PushReply, types_pb2.PushReply, writing.write_push_reply, reading.read_push_reply),
    "PushResult": (PushResult, types_pb2.PushResult, writing.write_push_result, reading.read_push_result),
    "QueryStep": (QueryStep, types_pb2.QueryStep, writing.write_query_step, reading.read_query_step),
    "RankingWeights": (RankingWeights, types_pb2.RankingWeights, writing.write_ranking_weights, reading.read_ranking_weights),
    "ReceiptView": (ReceiptView, types_pb2.ReceiptView, writing.write_receipt_view, reading.read_receipt_view),
    "RecordProof": (RecordProof, types_pb2.RecordProof, writing.write_record_proof, reading.read_record_proof),
    "RecordableCall": (RecordableCall, types_pb2.RecordableCall, writing.write_recordable_call, reading.read_recordable_call),
    "ReplayReport": (ReplayReport, types_pb2.ReplayReport, writing.write_replay_report, reading.read_replay_report),
    "ReplyDrafted": (ReplyDrafted, types_pb2.ReplyDrafted, writing.write_reply_drafted, reading.read_reply_drafted),
    "ReplyFinding": (ReplyFinding, types_pb2.ReplyFinding, writing.write_reply_finding, reading.read_reply_finding),
    "RequestTrace": (RequestTrace, types_pb2.RequestTrace, writing.write_request_trace, reading.read_request_trace),
    "RetrievalContext": (RetrievalContext, types_pb2.RetrievalContext, writing.write_retrieval_context, reading.read_retrieval_context),
    "RetrievedDocument": (RetrievedDocument, types_pb2.RetrievedDocument, writing.write_retrieved_document, reading.read_retrieved_document),
    "RunFacts": (RunFacts, types_pb2.RunFacts, writing.write_run_facts, reading.read_run_facts),
    "RunPage": (RunPage, types_pb2.RunPage, writing.write_run_page, reading.read_run_page),
    "RunSpan": (RunSpan, types_pb2.RunSpan, writing.write_run_span, reading.read_run_span),
    "RunSummary": (RunSummary, types_pb2.RunSummary, writing.write_run_summary, reading.read_run_summary),
    "RunTrace": (RunTrace, types_pb2.RunTrace, writing.write_run_trace, reading.read_run_trace),
    "SchemaDefinition": (SchemaDefinition, types_pb2.SchemaDefinition, writing.write_schema_definition, reading.read_schema_definition),
    "SchemaField": (SchemaField, types_pb2.SchemaField, writing.write_schema_field, reading.read_schema_field),
    "SecretKept": (SecretKept, types_pb2.SecretKept, writing.write_secret_kept, reading.read_secret_kept),
    "SecretNames": (SecretNames, types_pb2.SecretNames, writing.write_secret_names, reading.read_secret_names),
    "SentDocument": (SentDocument, types_pb2.SentDocument, writing.write_sent_document, reading.read_sent_document),
    "SentFile": (SentFile, types_pb2.SentFile, writing.write_sent_file, reading.read_sent_file),
    "ShadowChanges": (ShadowChanges, types_pb2.ShadowChanges, writing.write_shadow_changes, reading.read_shadow_changes),
    "ShadowExample": (ShadowExample, types_pb2.ShadowExample, writing.write_shadow_example, reading.read_shadow_example),
    "ShadowGroup": (ShadowGroup, types_pb2.ShadowGroup, writing.write_shadow_group, reading.read_shadow_group),
    "ShadowReport": (ShadowReport, types_pb2.ShadowReport, writing.write_shadow_report, reading.read_shadow_report),
    "SignalScores": (SignalScores, types_pb2.SignalScores, writing.write_signal_scores, reading.read_signal_scores),
    "SignedHead": (SignedHead, types_pb2.SignedHead, writing.write_signed_head, reading.read_signed_head),
    "SigningKey": (SigningKey, types_pb2.SigningKey, writing.write_signing_key, reading.read_signing_key),
    "SkippedInput": (SkippedInput, types_pb2.SkippedInput, writing.write_skipped_input, reading.read_skipped_input),
    "SourceAccessPolicy": (SourceAccessPolicy, types_pb2.SourceAccessPolicy, writing.write_source_access_policy, reading.read_source_access_policy),
    "SourceConnection": (SourceConnection, types_pb2.SourceConnection, writing.write_source_connection, reading.read_source_connection),
    "SourceDescriptor": (SourceDescriptor, types_pb2.SourceDescriptor, writing.write_source_descriptor, reading.read_source_descriptor),
    "SourceFinished": (SourceFinished, types_pb2.SourceFinished, writing.write_source_finished, reading.read_source_finished),
    "SourceHealth": (SourceHealth, types_pb2.SourceHealth, writing.write_source_health, reading.read_source_health),
    "SourceList": (SourceList, types_pb2.SourceList, writing.write_source_list, reading.read_source_list),
    "SourcePolicy": (SourcePolicy, types_pb2.SourcePolicy, writing.write_source_policy, reading.read_source_policy),
    "SourceStatus": (SourceStatus, types_pb2.SourceStatus, writing.write_source_status, reading.read_source_status),
    "SourceTrial": (SourceTrial, types_pb2.SourceTrial, writing.write_source_trial, reading.read_source_trial),
    "SpanClosed": (SpanClosed, types_pb2.SpanClosed, writing.write_span_closed, reading.read_span_closed),
    "SpanOpened": (SpanOpened, types_pb2.SpanOpened, writing.write_span_opened, reading.read_span_opened),
    "StartReply": (StartReply, types_pb2.StartReply, writing.write_start_reply, reading.read_start_reply),
    "StepCall": (StepCall, types_pb2.StepCall, writing.write_step_call, reading.read_step_call),
    "StoredChunk": (StoredChunk, types_pb2.StoredChunk, writing.write_stored_chunk, reading.read_stored_chunk),
    "StoredPolicy": (StoredPolicy, types_pb2.StoredPolicy, writing.write_stored_policy, reading.read_stored_policy),
    "StreamEvent": (StreamEvent, types_pb2.StreamEvent, writing.write_stream_event, reading.read_stream_event),
    "SubQuery": (SubQuery, types_pb2.SubQuery, writing.write_sub_query, reading.read_sub_query),
    "TableAnswer": (TableAnswer, types_pb2.TableAnswer, writing.write_table_answer, reading.read_table_answer),
    "TableCard": (TableCard, types_pb2.TableCard, writing.write_table_card, reading.read_table_card),
    "TableColumn": (TableColumn, types_pb2.TableColumn, writing.write_table_column, reading.read_table_column),
    "TableContent": (TableContent, types_pb2.TableContent, writing.write_table_content, reading.read_table_content),
    "TableList": (TableList, types_pb2.TableList, writing.write_table_list, reading.read_table_list),
    "TablePlan": (TablePlan, types_pb2.TablePlan, writing.write_table_plan, reading.read_table_plan),
    "Task": (Task, types_pb2.Task, writing.write_task, reading.read_task),
    "TaskOpened": (TaskOpened, types_pb2.TaskOpened, writing.write_task_opened, reading.read_task_opened),
    "TermScore": (TermScore, types_pb2.TermScore, writing.write_term_score, reading.read_term_score),
    "TierStats": (TierStats, types_pb2.TierStats, writing.write_tier_stats, reading.read_tier_stats),
    "TimeWindow": (TimeWindow, types_pb2.TimeWindow, writing.write_time_window, reading.read_time_window),
    "TokenFacts": (TokenFacts, types_pb2.TokenFacts, writing.write_token_facts, reading.read_token_facts),
    "TokenInfo": (TokenInfo, types_pb2.TokenInfo, writing.write_token_info, reading.read_token_info),
    "TokenLimits": (TokenLimits, types_pb2.TokenLimits, writing.write_token_limits, reading.read_token_limits),
    "TokenList": (TokenList, types_pb2.TokenList, writing.write_token_list, reading.read_token_list),
    "ToolAnswered": (ToolAnswered, types_pb2.ToolAnswered, writing.write_tool_answered, reading.read_tool_answered),
    "ToolAsked": (ToolAsked, types_pb2.ToolAsked, writing.write_tool_asked, reading.read_tool_asked),
    "ToolCall": (ToolCall, types_pb2.ToolCall, writing.write_tool_call, reading.read_tool_call),
    "ToolStamp": (ToolStamp, types_pb2.ToolStamp, writing.write_tool_stamp, reading.read_tool_stamp),
    "TraceList": (TraceList, types_pb2.TraceList, writing.write_trace_list, reading.read_trace_list),
    "TraceSpan": (TraceSpan, types_pb2.TraceSpan, writing.write_trace_span, reading.read_trace_span),
    "TransformationEntry": (TransformationEntry, types_pb2.TransformationEntry, writing.write_transformation_entry, reading.read_transformation_entry),
    "TransformationRecord": (TransformationRecord, types_pb2.TransformationRecord, writing.write_transformation_record, reading.read_transformation_record),
    "TriggerRate": (TriggerRate, types_pb2.TriggerRate, writing.write_trigger_rate, reading.read_trigger_rate),
    "TrustMetadata": (TrustMetadata, types_pb2.TrustMetadata, writing.write_trust_metadata, reading.read_trust_metadata),
    "Turn": (Turn, types_pb2.Turn, writing.write_turn, reading.read_turn),
    "Value": (Value, types_pb2.Value, writing.write_value, reading.read_value),
    "VectorIdentity": (VectorIdentity, types_pb2.VectorIdentity, writing.write_vector_identity, reading.read_vector_identity),
    "Verdict": (Verdict, types_pb2.Verdict, writing.write_verdict, reading.read_verdict),
    "VerifyReport": (VerifyReport, types_pb2.VerifyReport, writing.write_verify_report, reading.read_verify_report),
    "VersionDiff": (VersionDiff, types_pb2.VersionDiff, writing.write_version_diff, reading.read_version_diff),
    "VersionList": (VersionList, types_pb2.VersionList, writing.write_version_list, reading.read_version_list),
    "VersionSummary": (VersionSummary, types_pb2.VersionSummary, writing.write_version_summary, reading.read_version_summary),
    "WarmReport": (WarmReport, types_pb2.WarmReport, writing.write_warm_report, reading.read_warm_report),
    "WhyReport": (WhyReport, types_pb2.WhyReport, writing.write_why_report, reading.read_why_report),
    "WithheldFragment": (WithheldFragment, types_pb2.WithheldFragment, writing.write_withheld_fragment, reading.read_withheld_fragment),
}


def to_message(name: str, it: object) -> Any:
    """Return the message of a contract, by its name."""
    _, message_class, write, _ = CONVERSIONS[name]
    return message_class(**write(it))


def from_message(name: str, message: Any) -> Any:
    """Return what a message says as its contract, checked as JSON is; raises msgspec.ValidationError."""
    contract, _, _, read = CONVERSIONS[name]
    return convert(read(message), contract)
