"""Structs as what the constructors of messages take: dicts all the way down, None for what is left out.

Written by tools/write_proto.py; nothing here is changed by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from evidentia.contracts.evidence import DecomposedQuery, FinalResponse, ProvisionalFragments, SourceFinished
from evidentia.contracts.predicate_values import Number
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or
from evidentia.contracts.protocol import ReplyDrafted, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.provenance import OriginEntry, TransformationEntry
from evidentia.contracts.runs import BatchClosed, CheckBypassed, GroundingEntry, LlmCall, RetrievedDocument, SpanClosed, SpanOpened, StepCall, ToolCall
from evidentia.protobuf.words import (
    ANNOTATION_TARGET_TYPE_NUMBERS,
    ANNOTATION_TYPE_NUMBERS,
    AUDIT_KIND_NUMBERS,
    AUTHORITY_TIER_NUMBERS,
    BREADTH_NUMBERS,
    BREAKER_STATE_NUMBERS,
    CACHE_TIER_NUMBERS,
    CHANGE_NUMBERS,
    CLASSIFICATION_NUMBERS,
    COLUMN_KIND_NUMBERS,
    COMPAT_NUMBERS,
    CONNECTION_KIND_NUMBERS,
    CONTENT_TYPE_NUMBERS,
    COVERAGE_STATE_NUMBERS,
    DECISION_STATUS_NUMBERS,
    DEPRECATION_STATUS_NUMBERS,
    ENFORCEMENT_NUMBERS,
    EVENT_KIND_NUMBERS,
    EXPERTISE_LEVEL_NUMBERS,
    FUSION_METHOD_NUMBERS,
    GOVERNANCE_MODE_NUMBERS,
    JUDGE_STATUS_NUMBERS,
    LATENCY_TIER_NUMBERS,
    ON_TIMEOUT_NUMBERS,
    PHASE_NUMBERS,
    POLICY_ACTION_NUMBERS,
    POSTURE_NUMBERS,
    PROTOCOL_RULE_NUMBERS,
    PUSH_ACTION_NUMBERS,
    QUERY_CAPABILITY_NUMBERS,
    QUERY_STEP_NAME_NUMBERS,
    QUESTION_TYPE_NUMBERS,
    RETRIEVAL_MODE_NUMBERS,
    ROLE_NUMBERS,
    RUN_STATUS_NUMBERS,
    SHORTFALL_NUMBERS,
    SOURCE_TYPE_NUMBERS,
    TASK_KIND_NUMBERS,
    TOOL_ROLE_NUMBERS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.annotations import Annotation, AnnotationTarget
    from evidentia.contracts.control import AuditEntry, AuditPage, CallResult, CallsReply, DecisionPage, EndReply, EventPage, GovernanceEvent, IssuedToken, NumberedCall, PolicyPage, PolicyTemplates, PolicyVersions, PushReply, PushResult, RunPage, SecretKept, SecretNames, StartReply, TokenFacts, TokenInfo, TokenLimits, TokenList
    from evidentia.contracts.decisions import DecisionCounts, Evaluation, LogFault, LogHead, LogReport, PolicyDecision, RecordProof, Verdict
    from evidentia.contracts.documents import ChangedDocument, ChangedDocuments, CommitSummary, DocumentMetadata, StoredChunk, VersionDiff, VersionSummary
    from evidentia.contracts.doors import ChunkList, Count, DocumentEntry, DocumentPage, Done, FreshnessList, ImageView, LayoutView, NoteList, ReceiptView, SentDocument, SentFile, SourceList, TableList, TraceList, VersionList
    from evidentia.contracts.evidence import Conflict, CoverageReport, Decision, EvidenceFragment, EvidenceResponse, GovernedFragment, QueryStep, RankingWeights, SignalScores, StreamEvent, SubQuery, Task, TermScore, TimeWindow, Turn, WithheldFragment
    from evidentia.contracts.judging import Judgement
    from evidentia.contracts.layout import DocumentImage, DocumentLayout, FragmentImage
    from evidentia.contracts.policies import Policy, PolicyBody, PolicyScope, StoredPolicy
    from evidentia.contracts.policy_trials import Calibration, HistogramBar, ShadowChanges, ShadowExample, ShadowGroup, ShadowReport, TriggerRate
    from evidentia.contracts.predicate_values import Value
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.protocol import ReplyFinding
    from evidentia.contracts.provenance import BaseHead, BrokenLink, CommitRecord, ConsistencyProof, DocumentCustody, FragmentExport, InclusionProof, IngestEvent, OriginDescriptor, ProvenanceEntry, ProvenanceRecord, RetrievalContext, SignedHead, SigningKey, ToolStamp, TransformationRecord, TrustMetadata, VerifyReport
    from evidentia.contracts.receipts import ReplayReport, WhyReport
    from evidentia.contracts.reports import CacheStats, DoctorReport, Finding, GcReport, IngestReport, SkippedInput, TierStats
    from evidentia.contracts.retrieval import ExternalCandidate, SourceTrial, WarmReport
    from evidentia.contracts.runs import RecordableCall, RunFacts, RunSpan, RunSummary, RunTrace
    from evidentia.contracts.sources import FreshnessReport, Note, SchemaDefinition, SchemaField, SourceAccessPolicy, SourceConnection, SourceDescriptor, SourceHealth, SourcePolicy, SourceStatus
    from evidentia.contracts.tables import CellValue, OpenTable, TableAnswer, TableCard, TableColumn, TableContent, TablePlan
    from evidentia.contracts.telemetry import RequestTrace, TraceSpan
    from evidentia.contracts.vectors import EmbedReport, VectorIdentity

Fields = dict[str, Any]  # Any: numbers, texts, and more of these

moment = msgspec.to_builtins
_encode = msgspec.json.Encoder(order="deterministic").encode


def dumps(it: object) -> str:
    """Return JSON text."""
    return _encode(it).decode()


def write_access_rule(it: AccessRule) -> Fields:
    """Return the fields of the message."""
    return {
        "tenant": it.tenant,
        "classification": CLASSIFICATION_NUMBERS[it.classification],
        "acl": it.acl,
    }


def write_and(it: And, room: int = 60) -> Fields:
    """Return the fields of the message."""
    return {
        "clauses": [write_predicate(each, room - 1) for each in it.clauses],
    }


def write_annotation(it: Annotation) -> Fields:
    """Return the fields of the message."""
    return {
        "annotation_id": it.annotation_id,
        "target": write_annotation_target(it.target),
        "annotation_type": ANNOTATION_TYPE_NUMBERS[it.annotation_type],
        "content": it.content,
        "author": it.author,
        "author_expertise": EXPERTISE_LEVEL_NUMBERS[it.author_expertise],
        "created_at": moment(it.created_at),
        "expires_at": None if (expires_at_ := it.expires_at) is None else moment(expires_at_),
        "confidence": it.confidence,
        "supersedes": it.supersedes,
        "provenance": None if (provenance_ := it.provenance) is None else write_provenance_record(provenance_),
    }


def write_annotation_target(it: AnnotationTarget) -> Fields:
    """Return the fields of the message."""
    return {
        "target_type": ANNOTATION_TARGET_TYPE_NUMBERS[it.target_type],
        "target_id": it.target_id,
        "target_version": it.target_version,
    }


def write_audit_entry(it: AuditEntry) -> Fields:
    """Return the fields of the message."""
    return {
        "seq": it.seq,
        "at": moment(it.at),
        "by": it.by,
        "kind": AUDIT_KIND_NUMBERS[it.kind],
        "change": it.change,
        "subject": it.subject,
        "name": it.name,
        "version": it.version,
        "digest": it.digest,
    }


def write_audit_page(it: AuditPage) -> Fields:
    """Return the fields of the message."""
    return {
        "changes": [write_audit_entry(each) for each in it.changes],
        "next_cursor": it.next_cursor,
    }


def write_base_head(it: BaseHead) -> Fields:
    """Return the fields of the message."""
    return {
        "custody_format": it.custody_format,
        "base_id": it.base_id,
        "sequence": it.sequence,
        "committed_at": moment(it.committed_at),
        "evidence_state": it.evidence_state,
        "log_size": it.log_size,
        "log_root": it.log_root,
        "commit_hash": it.commit_hash,
        "public_key": it.public_key,
    }


def write_batch_closed(it: BatchClosed) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "batch": it.batch,
    }


def write_broken_link(it: BrokenLink) -> Fields:
    """Return the fields of the message."""
    return {
        "check": it.check,
        "where": it.where,
        "problem": it.problem,
    }


def write_cache_stats(it: CacheStats) -> Fields:
    """Return the fields of the message."""
    return {
        "finds": it.finds,
        "hits": it.hits,
        "stale_hits": it.stale_hits,
        "entries": it.entries,
        "tiers": [write_tier_stats(each) for each in it.tiers],
    }


def write_calibration(it: Calibration) -> Fields:
    """Return the fields of the message."""
    return {
        "rule": it.rule,
        "category": it.category,
        "unit": it.unit,
        "percentile": it.percentile,
        "threshold": it.threshold,
        "observed": it.observed,
        "confidence_percent": it.confidence_percent,
        "low": it.low,
        "high": it.high,
        "good_runs": it.good_runs,
        "good_values": it.good_values,
        "effective_values": it.effective_values,
        "predicted": write_trigger_rate(it.predicted),
        "current": None if (current_ := it.current) is None else write_trigger_rate(current_),
        "histogram": [write_histogram_bar(each) for each in it.histogram],
        "patch_json": dumps(it.patch),
        "command": it.command,
        "notes": it.notes,
    }


def write_call_result(it: CallResult) -> Fields:
    """Return the fields of the message."""
    return {
        "seq": it.seq,
        "verdicts": [write_verdict(each) for each in it.verdicts],
        "decisions": [write_policy_decision(each) for each in it.decisions],
        "is_repeated": it.is_repeated,
    }


def write_calls_reply(it: CallsReply) -> Fields:
    """Return the fields of the message."""
    return {
        "run_id": it.run_id,
        "status": RUN_STATUS_NUMBERS[it.status],
        "results": [write_call_result(each) for each in it.results],
        "stopped_at": it.stopped_at,
    }


def write_cell_value(it: CellValue) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, bool):
        return {"truth": it}
    if isinstance(it, int):
        return {"integer": it}
    if isinstance(it, float):
        return {"real": it}
    if isinstance(it, str):
        return {"text": it}
    return {}


def write_cell_value_list(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"values": [write_cell_value(each) for each in it]}


def write_changed_document(it: ChangedDocument) -> Fields:
    """Return the fields of the message."""
    return {
        "document_id": it.document_id,
        "source_id": it.source_id,
    }


def write_changed_documents(it: ChangedDocuments) -> Fields:
    """Return the fields of the message."""
    return {
        "total": it.total,
        "documents": [write_changed_document(each) for each in it.documents],
    }


def write_check_bypassed(it: CheckBypassed) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "what": it.what,
        "problem": it.problem,
        "posture": POSTURE_NUMBERS[it.posture],
    }


def write_chunk_list(it: ChunkList) -> Fields:
    """Return the fields of the message."""
    return {
        "chunks": [write_stored_chunk(each) for each in it.chunks],
    }


def write_commit_record(it: CommitRecord) -> Fields:
    """Return the fields of the message."""
    return {
        "sequence": it.sequence,
        "parent": it.parent,
        "base_id": it.base_id,
        "committed_at": moment(it.committed_at),
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "log_size": it.log_size,
        "log_root": it.log_root,
        "oldest_readable": it.oldest_readable,
        "segments_hash": it.segments_hash,
        "sources_hash": it.sources_hash,
        "roots_hash": it.roots_hash,
        "vectors": it.vectors,
        "vector_files_hash": it.vector_files_hash,
        "keys_hash": it.keys_hash,
        "contexts": it.contexts,
    }


def write_commit_summary(it: CommitSummary) -> Fields:
    """Return the fields of the message."""
    return {
        "sequence": it.sequence,
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "log_size": it.log_size,
        "log_root": it.log_root,
        "committed_at": moment(it.committed_at),
        "added": it.added,
        "changed": it.changed,
        "removed": it.removed,
        "access_changed": it.access_changed,
    }


def write_compare(it: Compare) -> Fields:
    """Return the fields of the message."""
    return {
        "field": it.field,
        "operator": it.operator,
        "value": write_value(it.value),
    }


def write_conflict(it: Conflict) -> Fields:
    """Return the fields of the message."""
    return {
        "subject": it.subject,
        "attribute": it.attribute,
        "winner": it.winner,
        "value": it.value,
        "losers": it.losers,
        "losing_values": it.losing_values,
        "decided_by": it.decided_by,
    }


def write_consistency_proof(it: ConsistencyProof) -> Fields:
    """Return the fields of the message."""
    return {
        "first_size": it.first_size,
        "second_size": it.second_size,
        "hashes": it.hashes,
        "first_root": it.first_root,
        "second_root": it.second_root,
    }


def write_contains(it: Contains) -> Fields:
    """Return the fields of the message."""
    return {
        "field": it.field,
        "value": write_value(it.value),
    }


def write_count(it: Count) -> Fields:
    """Return the fields of the message."""
    return {
        "count": it.count,
    }


def write_coverage_report(it: CoverageReport) -> Fields:
    """Return the fields of the message."""
    return {
        "state": COVERAGE_STATE_NUMBERS[it.state],
        "reason": it.reason,
        "candidates": it.candidates,
        "searched_share": it.searched_share,
        "embedded_share": it.embedded_share,
        "data_age_s": it.data_age_s,
        "elapsed_ms": it.elapsed_ms,
        "tier": None if (tier_ := it.tier) is None else CACHE_TIER_NUMBERS[tier_],
        "faults": it.faults,
    }


def write_coverage_report_map(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"entries": {key: write_coverage_report(each) for key, each in it.items()}}


def write_decision(it: Decision) -> Fields:
    """Return the fields of the message."""
    return {
        "stage": it.stage,
        "note": it.note,
        "remaining": it.remaining,
    }


def write_decision_counts(it: DecisionCounts) -> Fields:
    """Return the fields of the message."""
    return {
        "decisions": it.decisions,
        "allowed": it.allowed,
        "warned": it.warned,
        "stopped": it.stopped,
        "not_enforced": it.not_enforced,
        "bypassed": it.bypassed,
    }


def write_decision_page(it: DecisionPage) -> Fields:
    """Return the fields of the message."""
    return {
        "decisions": [write_policy_decision(each) for each in it.decisions],
        "next_cursor": it.next_cursor,
    }


def write_decomposed_query(it: DecomposedQuery) -> Fields:
    """Return the fields of the message."""
    return {
        "text": it.text,
        "subqueries": [write_sub_query(each) for each in it.subqueries],
    }


def write_decomposed_query_or_text(it: Any) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, str):
        return {"text": it}
    return {"decomposed_query": write_decomposed_query(it)}


def write_doctor_report(it: DoctorReport) -> Fields:
    """Return the fields of the message."""
    return {
        "ok": it.ok,
        "findings": [write_finding(each) for each in it.findings],
    }


def write_document_custody(it: DocumentCustody) -> Fields:
    """Return the fields of the message."""
    return {
        "origin": write_origin_descriptor(it.origin),
        "transformations": [write_transformation_record(each) for each in it.transformations],
        "cut_by": write_tool_stamp(it.cut_by),
    }


def write_document_entry(it: DocumentEntry) -> Fields:
    """Return the fields of the message."""
    return {
        "document_id": it.document_id,
        "access": write_access_rule(it.access),
        "chunks": it.chunks,
    }


def write_document_image(it: DocumentImage) -> Fields:
    """Return the fields of the message."""
    return {
        "image_hash": it.image_hash,
        "media_type": it.media_type,
        "byte_count": it.byte_count,
        "name": it.name,
        "alt": it.alt,
        "start": it.start,
        "end": it.end,
    }


def write_document_layout(it: DocumentLayout) -> Fields:
    """Return the fields of the message."""
    return {
        "pages": it.pages,
        "images": [write_document_image(each) for each in it.images],
        "tables": [write_table_card(each) for each in it.tables],
    }


def write_document_metadata(it: DocumentMetadata) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "title": it.title,
        "path": it.path,
        "media_type": it.media_type,
        "content_type": CONTENT_TYPE_NUMBERS[it.content_type],
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "language": it.language,
        "created_at": None if (created_at_ := it.created_at) is None else moment(created_at_),
        "updated_at": None if (updated_at_ := it.updated_at) is None else moment(updated_at_),
        "author": it.author,
        "tags": it.tags,
        "version": it.version,
        "deprecation_status": DEPRECATION_STATUS_NUMBERS[it.deprecation_status],
        "extra": it.extra,
        "layout": it.layout,
        "remarks": {key: write_integer_list(each) for key, each in it.remarks.items()},
    }


def write_document_page(it: DocumentPage) -> Fields:
    """Return the fields of the message."""
    return {
        "documents": [write_document_entry(each) for each in it.documents],
        "next_cursor": it.next_cursor,
    }


def write_done(it: Done) -> Fields:
    """Return the fields of the message."""
    return {
        "subject": it.subject,
    }


def write_embed_report(it: EmbedReport) -> Fields:
    """Return the fields of the message."""
    return {
        "identity": None if (identity_ := it.identity) is None else write_vector_identity(identity_),
        "embedded": it.embedded,
        "reused": it.reused,
        "remaining": it.remaining,
        "evidence_state": it.evidence_state,
        "sequence": it.sequence,
    }


def write_end_reply(it: EndReply) -> Fields:
    """Return the fields of the message."""
    return {
        "run_id": it.run_id,
        "status": RUN_STATUS_NUMBERS[it.status],
        "verdicts": [write_verdict(each) for each in it.verdicts],
        "decisions": [write_policy_decision(each) for each in it.decisions],
    }


def write_evaluation(it: Evaluation) -> Fields:
    """Return the fields of the message."""
    return {
        "policy_id": it.policy_id,
        "policy_name": it.policy_name,
        "version": it.version,
        "digest": it.digest,
        "category": it.category,
        "rule": it.rule,
        "action": POLICY_ACTION_NUMBERS[it.action],
        "reason": it.reason,
        "metadata_json": dumps(metadata_) if (metadata_ := it.metadata) else None,
        "status": DECISION_STATUS_NUMBERS[it.status],
    }


def write_event_page(it: EventPage) -> Fields:
    """Return the fields of the message."""
    return {
        "events": [write_governance_event(each) for each in it.events],
        "minutes": it.minutes,
        "next_cursor": it.next_cursor,
    }


def write_evidence_fragment(it: EvidenceFragment) -> Fields:
    """Return the fields of the message."""
    return {
        "content": it.content,
        "source_id": it.source_id,
        "document_id": it.document_id,
        "chunk_id": it.chunk_id,
        "content_hash": it.content_hash,
        "position": it.position,
        "start": it.start,
        "end": it.end,
        "score": it.score,
        "scores": write_signal_scores(it.scores),
        "extraction_timestamp": moment(it.extraction_timestamp),
        "confidence": it.confidence,
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "relevance_score": it.relevance_score,
        "provenance_chain": [write_provenance_entry(each) for each in it.provenance_chain],
        "retrieval_context": None if (retrieval_context_ := it.retrieval_context) is None else write_retrieval_context(retrieval_context_),
        "trust_metadata": None if (trust_metadata_ := it.trust_metadata) is None else write_trust_metadata(trust_metadata_),
        "annotations": [write_annotation(each) for each in it.annotations],
        "metadata": it.metadata,
        "event": None if (event_ := it.event) is None else write_ingest_event(event_),
        "inclusion": None if (inclusion_ := it.inclusion) is None else write_inclusion_proof(inclusion_),
        "is_live": it.is_live,
        "explanation": [write_term_score(each) for each in it.explanation],
        "token_count": it.token_count,
        "is_truncated": it.is_truncated,
        "cut_off": it.cut_off,
        "flags": it.flags,
        "pages": it.pages,
        "images": [write_fragment_image(each) for each in it.images],
    }


def write_evidence_response(it: EvidenceResponse) -> Fields:
    """Return the fields of the message."""
    return {
        "request_id": it.request_id,
        "fragments": [write_evidence_fragment(each) for each in it.fragments],
        "total_candidates": it.total_candidates,
        "latency_ms": it.latency_ms,
        "source_coverage": {key: write_coverage_report(each) for key, each in it.source_coverage.items()},
        "truncation_applied": it.truncation_applied,
        "cache_hit_ratio": it.cache_hit_ratio,
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "config_hash": it.config_hash,
        "result_hash": it.result_hash,
        "receipt_id": it.receipt_id,
        "request_hash": it.request_hash,
        "as_of": moment(it.as_of),
        "commit": write_commit_record(it.commit),
        "commit_hash": it.commit_hash,
        "decisions": [write_decision(each) for each in it.decisions],
        "understanding": [write_query_step(each) for each in it.understanding],
        "facets": {key: write_integer_map(each) for key, each in it.facets.items()},
        "conflicts": [write_conflict(each) for each in it.conflicts],
        "withheld": [write_withheld_fragment(each) for each in it.withheld],
        "policies": it.policies,
        "governance": [write_governed_fragment(each) for each in it.governance],
        "degraded": it.degraded,
        "is_approximate": it.is_approximate,
        "stage_latencies_ms": it.stage_latencies_ms,
        "tokens_used": it.tokens_used,
        "custody_format": it.custody_format,
        "response_hash": it.response_hash,
    }


def write_exists(it: Exists) -> Fields:
    """Return the fields of the message."""
    return {
        "field": it.field,
    }


def write_external_candidate(it: ExternalCandidate) -> Fields:
    """Return the fields of the message."""
    return {
        "chunk_id": it.chunk_id,
        "document_id": it.document_id,
        "source_id": it.source_id,
        "content": it.content,
        "content_hash": it.content_hash,
        "received_hash": it.received_hash,
        "received_length": it.received_length,
        "rank": it.rank,
        "query": it.query,
        "origin": it.origin,
        "retrieved_at": moment(it.retrieved_at),
        "updated_at": None if (updated_at_ := it.updated_at) is None else moment(updated_at_),
        "title": it.title,
        "media_type": it.media_type,
        "content_type": CONTENT_TYPE_NUMBERS[it.content_type],
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "access": write_access_rule(it.access),
        "confidence_millionths": it.confidence_millionths,
        "metadata": it.metadata,
        "flags": it.flags,
    }


def write_final_response(it: FinalResponse) -> Fields:
    """Return the fields of the message."""
    return {
        "response": write_evidence_response(it.response),
    }


def write_finding(it: Finding) -> Fields:
    """Return the fields of the message."""
    return {
        "check": it.check,
        "ok": it.ok,
        "detail": it.detail,
        "hint": it.hint,
    }


def write_fragment_export(it: FragmentExport) -> Fields:
    """Return the fields of the message."""
    return {
        "format": it.format,
        "chunk_id": it.chunk_id,
        "document_id": it.document_id,
        "source_id": it.source_id,
        "position": it.position,
        "start": it.start,
        "end": it.end,
        "content": it.content,
        "provenance_chain": [write_provenance_entry(each) for each in it.provenance_chain],
        "event": write_ingest_event(it.event),
        "inclusion": write_inclusion_proof(it.inclusion),
        "commit": write_commit_record(it.commit),
        "commit_hash": it.commit_hash,
        "is_live": it.is_live,
        "head": None if (head_ := it.head) is None else write_signed_head(head_),
        "export_hash": it.export_hash,
    }


def write_fragment_image(it: FragmentImage) -> Fields:
    """Return the fields of the message."""
    return {
        "image_hash": it.image_hash,
        "media_type": it.media_type,
        "name": it.name,
        "alt": it.alt,
        "nearest_text": it.nearest_text,
    }


def write_freshness_list(it: FreshnessList) -> Fields:
    """Return the fields of the message."""
    return {
        "sources": [write_freshness_report(each) for each in it.sources],
    }


def write_freshness_report(it: FreshnessReport) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "freshness_sla_s": it.freshness_sla_s,
        "age_s": it.age_s,
        "is_fresh": it.is_fresh,
        "newest_at": None if (newest_at_ := it.newest_at) is None else moment(newest_at_),
    }


def write_gc_report(it: GcReport) -> Fields:
    """Return the fields of the message."""
    return {
        "versions_removed": it.versions_removed,
        "chunks_removed": it.chunks_removed,
        "segments_removed": it.segments_removed,
        "bytes_before": it.bytes_before,
        "bytes_after": it.bytes_after,
    }


def write_governance_event(it: GovernanceEvent) -> Fields:
    """Return the fields of the message."""
    return {
        "at": moment(it.at),
        "run_id": it.run_id,
        "agent_name": it.agent_name,
        "policy_id": it.policy_id,
        "policy_name": it.policy_name,
        "policy_version": it.policy_version,
        "phase": PHASE_NUMBERS[it.phase],
        "action": POLICY_ACTION_NUMBERS[it.action],
        "category": it.category,
        "rule": it.rule,
        "reason": it.reason,
        "metadata_json": dumps(it.metadata),
        "status": DECISION_STATUS_NUMBERS[it.status],
        "is_enforced": it.is_enforced,
        "log": it.log,
        "seq": it.seq,
        "part": it.part,
    }


def write_governed_fragment(it: GovernedFragment) -> Fields:
    """Return the fields of the message."""
    return {
        "chunk_id": it.chunk_id,
        "action": POLICY_ACTION_NUMBERS[it.action],
        "policy_id": it.policy_id,
        "policy_name": it.policy_name,
        "policy_digest": it.policy_digest,
        "rule": it.rule,
        "reason": it.reason,
        "metadata_json": dumps(metadata_) if (metadata_ := it.metadata) else None,
        "status": DECISION_STATUS_NUMBERS[it.status],
    }


def write_grounding_entry(it: GroundingEntry) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "grounding_scores": it.grounding_scores,
        "citations": it.citations,
        "unsupported_claims": it.unsupported_claims,
        "output_confidence": it.output_confidence,
        "judgements": {key: write_judgement(each) for key, each in it.judgements.items()},
    }


def write_histogram_bar(it: HistogramBar) -> Fields:
    """Return the fields of the message."""
    return {
        "low": it.low,
        "high": it.high,
        "good": it.good,
        "other": it.other,
    }


def write_image_view(it: ImageView) -> Fields:
    """Return the fields of the message."""
    return {
        "media_type": it.media_type,
        "content": it.content,
    }


def write_in(it: In) -> Fields:
    """Return the fields of the message."""
    return {
        "field": it.field,
        "values": [write_value(each) for each in it.values],
    }


def write_inclusion_proof(it: InclusionProof) -> Fields:
    """Return the fields of the message."""
    return {
        "leaf_index": it.leaf_index,
        "tree_size": it.tree_size,
        "hashes": it.hashes,
        "root": it.root,
    }


def write_ingest_event(it: IngestEvent) -> Fields:
    """Return the fields of the message."""
    return {
        "index": it.index,
        "kind": EVENT_KIND_NUMBERS[it.kind],
        "source_id": it.source_id,
        "document_id": it.document_id,
        "chunk_id": it.chunk_id,
        "custody_head": it.custody_head,
        "fingerprint": it.fingerprint,
        "access_hash": it.access_hash,
        "root": it.root,
        "recorded_at": moment(it.recorded_at),
        "salt": it.salt,
    }


def write_ingest_report(it: IngestReport) -> Fields:
    """Return the fields of the message."""
    return {
        "seen": it.seen,
        "added": it.added,
        "changed": it.changed,
        "unchanged": it.unchanged,
        "access_changed": it.access_changed,
        "removed": it.removed,
        "chunks": it.chunks,
        "skipped": [write_skipped_input(each) for each in it.skipped],
        "notes": [write_skipped_input(each) for each in it.notes],
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "sequence": it.sequence,
    }


def write_integer_list(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"values": it}


def write_integer_map(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"entries": it}


def write_integer_or_real(it: Any) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, int):
        return {"integer": it}
    if isinstance(it, float):
        return {"real": it}
    return {}


def write_integer_or_text(it: Any) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, int):
        return {"integer": it}
    if isinstance(it, str):
        return {"text": it}
    return {}


def write_issued_token(it: IssuedToken) -> Fields:
    """Return the fields of the message."""
    return {
        "token": it.token,
        "info": write_token_info(it.info),
    }


def write_judgement(it: Judgement) -> Fields:
    """Return the fields of the message."""
    return {
        "status": JUDGE_STATUS_NUMBERS[it.status],
        "score": it.score,
        "model": it.model,
        "problem": it.problem,
        "notes": it.notes,
        "input_tokens": it.input_tokens,
        "output_tokens": it.output_tokens,
        "cost_micro": it.cost_micro,
        "latency_ms": it.latency_ms,
    }


def write_layout_view(it: LayoutView) -> Fields:
    """Return the fields of the message."""
    return {
        "layout": None if (layout_ := it.layout) is None else write_document_layout(layout_),
    }


def write_llm_call(it: LlmCall) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "model": it.model,
        "input_tokens": it.input_tokens,
        "output_tokens": it.output_tokens,
        "cost_micro": it.cost_micro,
        "duration_ms": it.duration_ms,
        "response_hash": it.response_hash,
        "attributes_json": dumps(attributes_) if (attributes_ := it.attributes) else None,
    }


def write_log_fault(it: LogFault) -> Fields:
    """Return the fields of the message."""
    return {
        "log": it.log,
        "line": it.line,
        "problem": it.problem,
    }


def write_log_head(it: LogHead) -> Fields:
    """Return the fields of the message."""
    return {
        "log": it.log,
        "size": it.size,
        "hash": it.hash,
        "root": it.root,
    }


def write_log_report(it: LogReport) -> Fields:
    """Return the fields of the message."""
    return {
        "ok": it.ok,
        "logs": it.logs,
        "records": it.records,
        "redacted": it.redacted,
        "retired": it.retired,
        "faults": [write_log_fault(each) for each in it.faults],
        "heads": [write_log_head(each) for each in it.heads],
    }


def write_not(it: Not, room: int = 60) -> Fields:
    """Return the fields of the message."""
    return {
        "clause": write_predicate(it.clause, room - 1),
    }


def write_not_in(it: NotIn) -> Fields:
    """Return the fields of the message."""
    return {
        "field": it.field,
        "values": [write_value(each) for each in it.values],
    }


def write_note(it: Note) -> Fields:
    """Return the fields of the message."""
    return {
        "note_id": it.note_id,
        "text": it.text,
        "title": it.title,
        "agent_name": it.agent_name,
        "session": it.session,
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "owner": it.owner,
        "tenant": it.tenant,
        "written_at": moment(it.written_at),
        "expires_at": None if (expires_at_ := it.expires_at) is None else moment(expires_at_),
    }


def write_note_list(it: NoteList) -> Fields:
    """Return the fields of the message."""
    return {
        "notes": [write_note(each) for each in it.notes],
    }


def write_number(it: Number) -> Fields:
    """Return the fields of the message."""
    return {
        "number": it.number,
    }


def write_numbered_call(it: NumberedCall) -> Fields:
    """Return the fields of the message."""
    return {
        "seq": it.seq,
        "call": write_recordable_call(it.call),
        "text": it.text,
        "texts": it.texts,
    }


def write_open_table(it: OpenTable) -> Fields:
    """Return the fields of the message."""
    return {
        "card": write_table_card(it.card),
        "content": write_table_content(it.content),
    }


def write_or(it: Or, room: int = 60) -> Fields:
    """Return the fields of the message."""
    return {
        "clauses": [write_predicate(each, room - 1) for each in it.clauses],
    }


def write_origin_descriptor(it: OriginDescriptor) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "source_type": SOURCE_TYPE_NUMBERS[it.source_type],
        "document_id": it.document_id,
        "document_version": it.document_version,
        "extraction_method": it.extraction_method,
        "extraction_timestamp": moment(it.extraction_timestamp),
        "content_hash": it.content_hash,
        "content_length": it.content_length,
        "media_type": it.media_type,
    }


def write_origin_entry(it: OriginEntry) -> Fields:
    """Return the fields of the message."""
    return {
        "record": write_origin_descriptor(it.record),
        "hash": it.hash,
    }


def write_policy(it: Policy) -> Fields:
    """Return the fields of the message."""
    return {
        "policy_id": it.policy_id,
        "version": it.version,
        "digest": it.digest,
        "tenant": it.tenant,
        "body": write_policy_body(it.body),
    }


def write_policy_body(it: PolicyBody) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "category": it.category,
        "rules_json": dumps(rules_) if (rules_ := it.rules) else None,
        "scope": write_policy_scope(it.scope),
        "enabled": it.enabled,
        "priority": it.priority,
        "description": it.description,
        "compat": COMPAT_NUMBERS[it.compat],
        "posture": {key: POSTURE_NUMBERS[each] for key, each in it.posture.items()},
        "enforcement": ENFORCEMENT_NUMBERS[it.enforcement],
    }


def write_policy_decision(it: PolicyDecision) -> Fields:
    """Return the fields of the message."""
    return {
        "seq": it.seq,
        "part": it.part,
        "log": it.log,
        "previous": it.previous,
        "hash": it.hash,
        "at": moment(it.at),
        "run_id": it.run_id,
        "agent_name": it.agent_name,
        "tenant": it.tenant,
        "phase": PHASE_NUMBERS[it.phase],
        "kind": it.kind,
        "policy_id": it.policy_id,
        "policy_name": it.policy_name,
        "policy_version": it.policy_version,
        "policy_digest": it.policy_digest,
        "policies": it.policies,
        "category": it.category,
        "rule": it.rule,
        "action": POLICY_ACTION_NUMBERS[it.action],
        "reason": it.reason,
        "metadata_json": dumps(it.metadata),
        "inputs_json": dumps(it.inputs),
        "evaluations": [write_evaluation(each) for each in it.evaluations],
        "status": DECISION_STATUS_NUMBERS[it.status],
        "is_enforced": it.is_enforced,
        "abstention_response": it.abstention_response,
        "overhead_us": it.overhead_us,
        "is_redacted": it.is_redacted,
    }


def write_policy_page(it: PolicyPage) -> Fields:
    """Return the fields of the message."""
    return {
        "policies": [write_stored_policy(each) for each in it.policies],
        "next_cursor": it.next_cursor,
    }


def write_policy_scope(it: PolicyScope) -> Fields:
    """Return the fields of the message."""
    return {
        "agents": it.agents,
        "agent_ids": it.agent_ids,
        "agent_groups": it.agent_groups,
        "agent_types": it.agent_types,
        "workflows": it.workflows,
        "users": it.users,
        "user_groups": it.user_groups,
        "teams": it.teams,
        "tenants": it.tenants,
        "tools": it.tools,
        "models": it.models,
        "exclude_agents": it.exclude_agents,
        "exclude_users": it.exclude_users,
        "exclude_tools": it.exclude_tools,
        "exclude_models": it.exclude_models,
    }


def write_policy_templates(it: PolicyTemplates) -> Fields:
    """Return the fields of the message."""
    return {
        "templates": {key: write_policy_body(each) for key, each in it.templates.items()},
    }


def write_policy_versions(it: PolicyVersions) -> Fields:
    """Return the fields of the message."""
    return {
        "versions": [write_stored_policy(each) for each in it.versions],
    }


def write_posture_map(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"entries": {key: POSTURE_NUMBERS[each] for key, each in it.items()}}


def write_predicate(it: Predicate, room: int = 60) -> Fields:
    """Return the fields of the message."""
    if room <= 0:
        return {"json": dumps(it)}
    arm, write = _PREDICATE[type(it)]
    return {arm: write(it, room - 1)}


def write_predicate_or_text(it: Any) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, str):
        return {"text": it}
    return {"predicate": write_predicate(it)}


def write_principal(it: Principal) -> Fields:
    """Return the fields of the message."""
    return {
        "principal_id": it.principal_id,
        "tenant": it.tenant,
        "clearance": CLASSIFICATION_NUMBERS[it.clearance],
        "roles": it.roles,
        "groups": it.groups,
        "attributes": it.attributes,
        "is_owner": it.is_owner,
    }


def write_provenance_entry(it: ProvenanceEntry) -> Fields:
    """Return the fields of the message."""
    arm, write = _PROVENANCE_ENTRY[type(it)]
    return {arm: write(it)}


def write_provenance_record(it: ProvenanceRecord) -> Fields:
    """Return the fields of the message."""
    return {
        "origin": write_origin_descriptor(it.origin),
        "transformations": [write_transformation_record(each) for each in it.transformations],
        "retrieval_context": None if (retrieval_context_ := it.retrieval_context) is None else write_retrieval_context(retrieval_context_),
        "trust_metadata": None if (trust_metadata_ := it.trust_metadata) is None else write_trust_metadata(trust_metadata_),
    }


def write_provisional_fragments(it: ProvisionalFragments) -> Fields:
    """Return the fields of the message."""
    return {
        "fragments": [write_evidence_fragment(each) for each in it.fragments],
        "sources": it.sources,
    }


def write_push_reply(it: PushReply) -> Fields:
    """Return the fields of the message."""
    return {
        "results": [write_push_result(each) for each in it.results],
        "dry_run": it.dry_run,
    }


def write_push_result(it: PushResult) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "action": PUSH_ACTION_NUMBERS[it.action],
        "policy_id": it.policy_id,
        "version": it.version,
    }


def write_query_capability_list(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"values": [QUERY_CAPABILITY_NUMBERS[each] for each in it]}


def write_query_step(it: QueryStep) -> Fields:
    """Return the fields of the message."""
    return {
        "step": QUERY_STEP_NAME_NUMBERS[it.step],
        "note": it.note,
        "added": it.added,
    }


def write_ranking_weights(it: RankingWeights) -> Fields:
    """Return the fields of the message."""
    return {
        "relevance": it.relevance,
        "authority": it.authority,
        "freshness": it.freshness,
        "utility": it.utility,
    }


def write_receipt_view(it: ReceiptView) -> Fields:
    """Return the fields of the message."""
    return {
        "receipt_id": it.receipt_id,
        "answered_at": moment(it.answered_at),
        "query": it.query,
        "principal_id": it.principal_id,
        "agent_name": it.agent_name,
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "config_hash": it.config_hash,
        "result_hash": it.result_hash,
        "fragments": it.fragments,
        "custody_format": it.custody_format,
        "response_hash": it.response_hash,
    }


def write_record_proof(it: RecordProof) -> Fields:
    """Return the fields of the message."""
    return {
        "log": it.log,
        "seq": it.seq,
        "size": it.size,
        "root": it.root,
        "line": it.line,
        "path": it.path,
    }


def write_recordable_call(it: RecordableCall) -> Fields:
    """Return the fields of the message."""
    arm, write = _RECORDABLE_CALL[type(it)]
    return {arm: write(it)}


def write_replay_report(it: ReplayReport) -> Fields:
    """Return the fields of the message."""
    return {
        "receipt_id": it.receipt_id,
        "is_same": it.is_same,
        "recorded_hash": it.recorded_hash,
        "result_hash": it.result_hash,
        "hidden": it.hidden,
        "response": write_evidence_response(it.response),
    }


def write_reply_drafted(it: ReplyDrafted) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "reply_hash": it.reply_hash,
        "says_not_found": it.says_not_found,
        "uses_evidence": it.uses_evidence,
        "has_supplement": it.has_supplement,
        "findings": [write_reply_finding(each) for each in it.findings],
        "is_checked": it.is_checked,
    }


def write_reply_finding(it: ReplyFinding) -> Fields:
    """Return the fields of the message."""
    return {
        "rule": PROTOCOL_RULE_NUMBERS[it.rule],
        "reason": it.reason,
        "block": it.block,
        "count": it.count,
        "metadata_json": dumps(metadata_) if (metadata_ := it.metadata) else None,
    }


def write_request_trace(it: RequestTrace) -> Fields:
    """Return the fields of the message."""
    return {
        "request_id": it.request_id,
        "receipt_id": it.receipt_id,
        "started_at": moment(it.started_at),
        "latency_ms": it.latency_ms,
        "deadline_ms": it.deadline_ms,
        "principal_fingerprint": it.principal_fingerprint,
        "tenant": it.tenant,
        "agent_name": it.agent_name,
        "mode": it.mode,
        "limit": it.limit,
        "fragments": it.fragments,
        "candidates": it.candidates,
        "tokens_used": it.tokens_used,
        "cache_hit_ratio": it.cache_hit_ratio,
        "degraded": it.degraded,
        "result_hash": it.result_hash,
        "spans": [write_trace_span(each) for each in it.spans],
    }


def write_retrieval_context(it: RetrievalContext) -> Fields:
    """Return the fields of the message."""
    return {
        "query_hash": it.query_hash,
        "retriever_type": it.retriever_type,
        "retrieval_timestamp": moment(it.retrieval_timestamp),
        "rank_position": it.rank_position,
        "relevance_score": it.relevance_score,
        "fusion_method": None if (fusion_method_ := it.fusion_method) is None else FUSION_METHOD_NUMBERS[fusion_method_],
        "final_rank": it.final_rank,
        "encoder": it.encoder,
        "relevance_signal": it.relevance_signal,
        "leg_ranks": None if (leg_ranks_ := it.leg_ranks) is None else write_integer_map(leg_ranks_),
    }


def write_retrieved_document(it: RetrievedDocument) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "relevance_score": it.relevance_score,
        "source": it.source,
        "collection": it.collection,
        "age_days": None if (age_days_ := it.age_days) is None else write_integer_or_real(age_days_),
        "batch": it.batch,
        "chunk_id": it.chunk_id,
        "judged_by": it.judged_by,
    }


def write_run_facts(it: RunFacts) -> Fields:
    """Return the fields of the message."""
    return {
        "run_id": it.run_id,
        "agent_name": it.agent_name,
        "workflow_name": it.workflow_name,
        "agent_id": it.agent_id,
        "agent_type": it.agent_type,
        "agent_group": it.agent_group,
        "user_id": it.user_id,
        "user_group": it.user_group,
        "end_user_id": it.end_user_id,
        "team": it.team,
        "tenant": it.tenant,
        "session_id": it.session_id,
        "model": it.model,
        "tool": it.tool,
        "parent_run_id": it.parent_run_id,
        "metadata_json": dumps(metadata_) if (metadata_ := it.metadata) else None,
        "owner": it.owner,
        "token_id": it.token_id,
        "clearance": it.clearance,
    }


def write_run_page(it: RunPage) -> Fields:
    """Return the fields of the message."""
    return {
        "runs": [write_run_summary(each) for each in it.runs],
        "next_cursor": it.next_cursor,
    }


def write_run_span(it: RunSpan) -> Fields:
    """Return the fields of the message."""
    return {
        "span_id": it.span_id,
        "parent": it.parent,
        "name": it.name,
        "kind": it.kind,
        "start_us": it.start_us,
        "duration_us": it.duration_us,
        "attributes_json": dumps(attributes_) if (attributes_ := it.attributes) else None,
        "decisions": it.decisions,
    }


def write_run_summary(it: RunSummary) -> Fields:
    """Return the fields of the message."""
    return {
        "facts": write_run_facts(it.facts),
        "status": RUN_STATUS_NUMBERS[it.status],
        "started_at": moment(it.started_at),
        "ended_at": None if (ended_at_ := it.ended_at) is None else moment(ended_at_),
        "calls": it.calls,
        "documents": it.documents,
        "warnings": it.warnings,
        "blocks": it.blocks,
        "bypasses": it.bypasses,
        "policies": it.policies,
        "not_enforced": it.not_enforced,
    }


def write_run_trace(it: RunTrace) -> Fields:
    """Return the fields of the message."""
    return {
        "summary": write_run_summary(it.summary),
        "spans": [write_run_span(each) for each in it.spans],
    }


def write_schema_definition(it: SchemaDefinition) -> Fields:
    """Return the fields of the message."""
    return {
        "fields": [write_schema_field(each) for each in it.fields],
        "tables": {key: write_schema_field_list(each) for key, each in it.tables.items()},
    }


def write_schema_field(it: SchemaField) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "type": it.type,
        "is_indexed": it.is_indexed,
        "description": it.description,
    }


def write_schema_field_list(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"values": [write_schema_field(each) for each in it]}


def write_secret_kept(it: SecretKept) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "updated_at": moment(it.updated_at),
        "updated_by": it.updated_by,
    }


def write_secret_names(it: SecretNames) -> Fields:
    """Return the fields of the message."""
    return {
        "names": it.names,
    }


def write_sent_document(it: SentDocument) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "text": it.text,
        "title": it.title,
        "metadata": {key: write_text_or_text_list(each) for key, each in it.metadata.items()},
    }


def write_sent_file(it: SentFile) -> Fields:
    """Return the fields of the message."""
    return {
        "path": it.path,
        "content": it.content,
    }


def write_shadow_changes(it: ShadowChanges) -> Fields:
    """Return the fields of the message."""
    return {
        "calls": it.calls,
        "newly_blocked": it.newly_blocked,
        "newly_allowed": it.newly_allowed,
        "newly_warned": it.newly_warned,
        "no_longer_warned": it.no_longer_warned,
        "unchanged": it.unchanged,
        "rules": [write_shadow_group(each) for each in it.rules],
        "agents": [write_shadow_group(each) for each in it.agents],
        "sources": [write_shadow_group(each) for each in it.sources],
    }


def write_shadow_example(it: ShadowExample) -> Fields:
    """Return the fields of the message."""
    return {
        "log": it.log,
        "seq": it.seq,
        "run_id": it.run_id,
        "change": CHANGE_NUMBERS[it.change],
    }


def write_shadow_group(it: ShadowGroup) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "newly_blocked": it.newly_blocked,
        "newly_allowed": it.newly_allowed,
        "newly_warned": it.newly_warned,
        "no_longer_warned": it.no_longer_warned,
        "examples": [write_shadow_example(each) for each in it.examples],
    }


def write_shadow_report(it: ShadowReport) -> Fields:
    """Return the fields of the message."""
    return {
        "candidates": it.candidates,
        "changes": write_shadow_changes(it.changes),
        "runs": it.runs,
        "runs_newly_blocked": it.runs_newly_blocked,
        "runs_newly_allowed": it.runs_newly_allowed,
        "after_stop": it.after_stop,
        "truncated_runs": it.truncated_runs,
        "unfinished_runs": it.unfinished_runs,
        "given_up_runs": it.given_up_runs,
        "unknown_runs": it.unknown_runs,
        "redacted": it.redacted,
        "unjudged": it.unjudged,
    }


def write_signal_scores(it: SignalScores) -> Fields:
    """Return the fields of the message."""
    return {
        "relevance": it.relevance,
        "authority": it.authority,
        "freshness": it.freshness,
        "utility": it.utility,
        "fused": it.fused,
        "reranked": it.reranked,
        "lexical": it.lexical,
        "dense": it.dense,
    }


def write_signed_head(it: SignedHead) -> Fields:
    """Return the fields of the message."""
    return {
        "head": write_base_head(it.head),
        "signature": it.signature,
        "keys": [write_signing_key(each) for each in it.keys],
    }


def write_signing_key(it: SigningKey) -> Fields:
    """Return the fields of the message."""
    return {
        "base_id": it.base_id,
        "sequence": it.sequence,
        "public_key": it.public_key,
        "previous": it.previous,
        "signature": it.signature,
    }


def write_skipped_input(it: SkippedInput) -> Fields:
    """Return the fields of the message."""
    return {
        "path": it.path,
        "reason": it.reason,
        "message": it.message,
    }


def write_source_access_policy(it: SourceAccessPolicy) -> Fields:
    """Return the fields of the message."""
    return {
        "tenants": write_text_list(it.tenants),
        "roles": it.roles,
        "groups": it.groups,
        "principals": it.principals,
        "minimum_clearance": CLASSIFICATION_NUMBERS[it.minimum_clearance],
        "predicate": it.predicate,
    }


def write_source_connection(it: SourceConnection) -> Fields:
    """Return the fields of the message."""
    return {
        "kind": CONNECTION_KIND_NUMBERS[it.kind],
        "address": it.address,
        "tool": it.tool,
        "key_variable": it.key_variable,
        "options": it.options,
    }


def write_source_descriptor(it: SourceDescriptor) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "source_type": SOURCE_TYPE_NUMBERS[it.source_type],
        "schema": write_schema_definition(it.schema),
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "freshness_sla_s": it.freshness_sla_s,
        "latency_tier": LATENCY_TIER_NUMBERS[it.latency_tier],
        "access_policy": write_source_access_policy(it.access_policy),
        "query_capabilities": write_query_capability_list(it.query_capabilities),
        "cost_per_query_micros": it.cost_per_query_micros,
        "max_qps": it.max_qps,
        "version": it.version,
        "connection": write_source_connection(it.connection),
        "expected_p99_ms": it.expected_p99_ms,
        "freshness_tau_s": it.freshness_tau_s,
        "weight_milli": it.weight_milli,
    }


def write_source_finished(it: SourceFinished) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "report": write_coverage_report(it.report),
    }


def write_source_health(it: SourceHealth) -> Fields:
    """Return the fields of the message."""
    return {
        "calls": it.calls,
        "failures": it.failures,
        "timeouts": it.timeouts,
        "p50_ms": it.p50_ms,
        "p99_ms": it.p99_ms,
        "last_success_at": None if (last_success_at_ := it.last_success_at) is None else moment(last_success_at_),
        "last_failure_at": None if (last_failure_at_ := it.last_failure_at) is None else moment(last_failure_at_),
        "last_problem": it.last_problem,
        "breaker": BREAKER_STATE_NUMBERS[it.breaker],
    }


def write_source_list(it: SourceList) -> Fields:
    """Return the fields of the message."""
    return {
        "sources": [write_source_status(each) for each in it.sources],
    }


def write_source_policy(it: SourcePolicy) -> Fields:
    """Return the fields of the message."""
    return {
        "allowed_sources": None if (allowed_sources_ := it.allowed_sources) is None else write_text_list(allowed_sources_),
        "denied_sources": it.denied_sources,
        "minimum_authority": AUTHORITY_TIER_NUMBERS[it.minimum_authority],
        "most_sources": it.most_sources,
        "acl_scope": None if (acl_scope_ := it.acl_scope) is None else write_text_list(acl_scope_),
    }


def write_source_status(it: SourceStatus) -> Fields:
    """Return the fields of the message."""
    return {
        "descriptor": write_source_descriptor(it.descriptor),
        "health": write_source_health(it.health),
        "is_attached": it.is_attached,
        "documents": it.documents,
    }


def write_source_trial(it: SourceTrial) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "report": write_coverage_report(it.report),
        "candidates": [write_external_candidate(each) for each in it.candidates],
    }


def write_span_closed(it: SpanClosed) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "closed": it.closed,
        "sources": it.sources,
        "error": it.error,
    }


def write_span_opened(it: SpanOpened) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "opened": it.opened,
        "name": it.name,
        "is_retrieval": it.is_retrieval,
    }


def write_start_reply(it: StartReply) -> Fields:
    """Return the fields of the message."""
    return {
        "run_id": it.run_id,
        "is_enforced": it.is_enforced,
        "policies": [write_policy(each) for each in it.policies],
    }


def write_step_call(it: StepCall) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "name": it.name,
        "attributes_json": dumps(attributes_) if (attributes_ := it.attributes) else None,
    }


def write_stored_chunk(it: StoredChunk) -> Fields:
    """Return the fields of the message."""
    return {
        "chunk_id": it.chunk_id,
        "document_id": it.document_id,
        "source_id": it.source_id,
        "position": it.position,
        "start": it.start,
        "end": it.end,
        "content": it.content,
        "content_hash": it.content_hash,
        "text_hash": it.text_hash,
        "custody_head": it.custody_head,
        "event_index": it.event_index,
        "metadata": write_document_metadata(it.metadata),
        "access": write_access_rule(it.access),
        "custody": write_document_custody(it.custody),
        "is_live": it.is_live,
    }


def write_stored_policy(it: StoredPolicy) -> Fields:
    """Return the fields of the message."""
    return {
        "policy": write_policy(it.policy),
        "created_at": moment(it.created_at),
        "updated_at": moment(it.updated_at),
        "updated_by": it.updated_by,
        "is_removed": it.is_removed,
    }


def write_stream_event(it: StreamEvent) -> Fields:
    """Return the fields of the message."""
    arm, write = _STREAM_EVENT[type(it)]
    return {arm: write(it)}


def write_sub_query(it: SubQuery) -> Fields:
    """Return the fields of the message."""
    return {
        "text": it.text,
        "required_capabilities": [QUERY_CAPABILITY_NUMBERS[each] for each in it.required_capabilities],
        "weight": it.weight,
    }


def write_table_answer(it: TableAnswer) -> Fields:
    """Return the fields of the message."""
    return {
        "question": it.question,
        "tables": [write_table_card(each) for each in it.tables],
        "plan": None if (plan_ := it.plan) is None else write_table_plan(plan_),
        "declined": it.declined,
        "columns": it.columns,
        "rows": [write_cell_value_list(each) for each in it.rows],
        "sources": [write_text_list(each) for each in it.sources],
        "files": [write_text_text_tuple(each) for each in it.files],
        "total": it.total,
        "omitted": it.omitted,
        "has_tables": it.has_tables,
    }


def write_table_card(it: TableCard) -> Fields:
    """Return the fields of the message."""
    return {
        "table_id": it.table_id,
        "document_id": it.document_id,
        "source_id": it.source_id,
        "file_name": it.file_name,
        "sheet": it.sheet,
        "sheet_name": it.sheet_name,
        "title": it.title,
        "sql_name": it.sql_name,
        "header_rows": it.header_rows,
        "first_row": it.first_row,
        "last_row": it.last_row,
        "row_count": it.row_count,
        "total_rows": it.total_rows,
        "columns": [write_table_column(each) for each in it.columns],
        "content": it.content,
        "notes": it.notes,
    }


def write_table_column(it: TableColumn) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "sql_name": it.sql_name,
        "kind": COLUMN_KIND_NUMBERS[it.kind],
        "unit": it.unit,
        "position": it.position,
        "distinct": it.distinct,
        "missing": it.missing,
        "samples": it.samples,
    }


def write_table_content(it: TableContent) -> Fields:
    """Return the fields of the message."""
    return {
        "rows": it.rows,
        "columns": [write_cell_value_list(each) for each in it.columns],
    }


def write_table_list(it: TableList) -> Fields:
    """Return the fields of the message."""
    return {
        "tables": [write_table_card(each) for each in it.tables],
    }


def write_table_plan(it: TablePlan) -> Fields:
    """Return the fields of the message."""
    return {
        "statement": it.statement,
        "parameters": [write_cell_value(each) for each in it.parameters],
        "tables": it.tables,
        "support": it.support,
        "reading": it.reading,
        "confidence": it.confidence,
        "planner": it.planner,
    }


def write_task(it: Task) -> Fields:
    """Return the fields of the message."""
    return {
        "type": it.type,
        "text": it.text,
    }


def write_task_opened(it: TaskOpened) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "task": TASK_KIND_NUMBERS[it.task],
        "question_type": QUESTION_TYPE_NUMBERS[it.question_type],
        "breadth": BREADTH_NUMBERS[it.breadth],
        "question_hash": it.question_hash,
        "skills": it.skills,
        "has_self_knowledge": it.has_self_knowledge,
    }


def write_term_score(it: TermScore) -> Fields:
    """Return the fields of the message."""
    return {
        "term": it.term,
        "score": it.score,
        "frequency": it.frequency,
        "containing": it.containing,
        "documents": it.documents,
        "length": it.length,
        "idf": it.idf,
        "in_context": it.in_context,
    }


def write_text_list(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"values": it}


def write_text_or_text_list(it: Any) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, str):
        return {"text": it}
    if isinstance(it, (tuple, list)):
        return {"list": write_text_list(it)}
    return {}


def write_text_text_tuple(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "first": it[0],
        "second": it[1],
    }


def write_tier_stats(it: TierStats) -> Fields:
    """Return the fields of the message."""
    return {
        "tier": CACHE_TIER_NUMBERS[it.tier],
        "finds": it.finds,
        "hits": it.hits,
        "reused": it.reused,
        "stale_hits": it.stale_hits,
        "entries": it.entries,
    }


def write_time_window(it: TimeWindow) -> Fields:
    """Return the fields of the message."""
    return {
        "start": None if (start_ := it.start) is None else moment(start_),
        "end": None if (end_ := it.end) is None else moment(end_),
    }


def write_token_facts(it: TokenFacts) -> Fields:
    """Return the fields of the message."""
    return {
        "clearance": CLASSIFICATION_NUMBERS[it.clearance],
        "groups": it.groups,
        "attributes": it.attributes,
        "is_delegate": it.is_delegate,
        "limits": write_token_limits(it.limits),
        "floor": GOVERNANCE_MODE_NUMBERS[it.floor],
        "agents": it.agents,
    }


def write_token_info(it: TokenInfo) -> Fields:
    """Return the fields of the message."""
    return {
        "token_id": it.token_id,
        "name": it.name,
        "roles": [ROLE_NUMBERS[each] for each in it.roles],
        "tenant": it.tenant,
        "created_at": moment(it.created_at),
        "created_by": it.created_by,
        "expires_at": None if (expires_at_ := it.expires_at) is None else moment(expires_at_),
        "revoked_at": None if (revoked_at_ := it.revoked_at) is None else moment(revoked_at_),
        "facts": write_token_facts(it.facts),
    }


def write_token_limits(it: TokenLimits) -> Fields:
    """Return the fields of the message."""
    return {
        "requests_per_minute": it.requests_per_minute,
        "requests_per_day": it.requests_per_day,
        "request_mb": it.request_mb,
    }


def write_token_list(it: TokenList) -> Fields:
    """Return the fields of the message."""
    return {
        "tokens": [write_token_info(each) for each in it.tokens],
    }


def write_tool_answered(it: ToolAnswered) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "call": it.call,
        "results": it.results,
        "shortfalls": [SHORTFALL_NUMBERS[each] for each in it.shortfalls],
        "total": it.total,
        "displayed": it.displayed,
        "omitted": it.omitted,
        "images": it.images,
    }


def write_tool_asked(it: ToolAsked) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "call": it.call,
        "name": it.name,
        "role": TOOL_ROLE_NUMBERS[it.role],
        "is_knowledge": it.is_knowledge,
        "top_k": it.top_k,
        "query_hash": it.query_hash,
        "is_raw": it.is_raw,
        "works_raw": it.works_raw,
        "containment": it.containment,
        "strays": it.strays,
        "is_explicit_file": it.is_explicit_file,
    }


def write_tool_call(it: ToolCall) -> Fields:
    """Return the fields of the message."""
    return {
        "span": it.span,
        "name": it.name,
        "is_retrieval": it.is_retrieval,
        "duration_ms": it.duration_ms,
        "sources": it.sources,
        "error": it.error,
        "attributes_json": dumps(attributes_) if (attributes_ := it.attributes) else None,
    }


def write_tool_stamp(it: ToolStamp) -> Fields:
    """Return the fields of the message."""
    return {
        "tool_id": it.tool_id,
        "tool_version": it.tool_version,
        "timestamp": moment(it.timestamp),
    }


def write_trace_list(it: TraceList) -> Fields:
    """Return the fields of the message."""
    return {
        "traces": [write_request_trace(each) for each in it.traces],
    }


def write_trace_span(it: TraceSpan) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "kind": it.kind,
        "start_ms": it.start_ms,
        "duration_ms": it.duration_ms,
        "note": it.note,
        "state": None if (state_ := it.state) is None else COVERAGE_STATE_NUMBERS[state_],
        "attributes": {key: write_cell_value(each) for key, each in it.attributes.items()},
    }


def write_transformation_entry(it: TransformationEntry) -> Fields:
    """Return the fields of the message."""
    return {
        "record": write_transformation_record(it.record),
        "hash": it.hash,
    }


def write_transformation_record(it: TransformationRecord) -> Fields:
    """Return the fields of the message."""
    return {
        "step": it.step,
        "tool_id": it.tool_id,
        "tool_version": it.tool_version,
        "timestamp": moment(it.timestamp),
        "input_hash": it.input_hash,
        "output_hash": it.output_hash,
        "parameters": {key: write_integer_or_text(each) for key, each in it.parameters.items()},
    }


def write_trigger_rate(it: TriggerRate) -> Fields:
    """Return the fields of the message."""
    return {
        "threshold": it.threshold,
        "values": it.values,
        "value_triggers": it.value_triggers,
        "runs": it.runs,
        "run_triggers": it.run_triggers,
    }


def write_trust_metadata(it: TrustMetadata) -> Fields:
    """Return the fields of the message."""
    return {
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "confidence": it.confidence,
        "verified_by": it.verified_by,
        "last_verification": None if (last_verification_ := it.last_verification) is None else moment(last_verification_),
        "staleness_s": it.staleness_s,
        "conflict_flag": it.conflict_flag,
    }


def write_turn(it: Turn) -> Fields:
    """Return the fields of the message."""
    return {
        "role": it.role,
        "text": it.text,
    }


def write_value(it: Value) -> Fields:
    """Return the fields of the message."""
    if isinstance(it, bool):
        return {"truth": it}
    if isinstance(it, int):
        return {"integer": it}
    if isinstance(it, str):
        return {"text": it}
    return {"number": write_number(it)}


def write_vector_identity(it: VectorIdentity) -> Fields:
    """Return the fields of the message."""
    return {
        "model": it.model,
        "dimension": it.dimension,
        "normalisation": it.normalisation,
        "name": it.name,
    }


def write_verdict(it: Verdict) -> Fields:
    """Return the fields of the message."""
    return {
        "phase": PHASE_NUMBERS[it.phase],
        "decisive": write_evaluation(it.decisive),
        "evaluations": [write_evaluation(each) for each in it.evaluations],
        "is_enforced": it.is_enforced,
        "abstention_response": it.abstention_response,
    }


def write_verify_report(it: VerifyReport) -> Fields:
    """Return the fields of the message."""
    return {
        "ok": it.ok,
        "target": it.target,
        "fragments": it.fragments,
        "documents": it.documents,
        "events": it.events,
        "commits": it.commits,
        "broken": [write_broken_link(each) for each in it.broken],
        "custody_format": it.custody_format,
        "signed_by": it.signed_by,
    }


def write_version_diff(it: VersionDiff) -> Fields:
    """Return the fields of the message."""
    return {
        "older": write_version_summary(it.older),
        "newer": write_version_summary(it.newer),
        "added": write_changed_documents(it.added),
        "removed": write_changed_documents(it.removed),
        "changed": write_changed_documents(it.changed),
        "metadata_changed": write_changed_documents(it.metadata_changed),
        "access_changed": write_changed_documents(it.access_changed),
        "note": it.note,
    }


def write_version_list(it: VersionList) -> Fields:
    """Return the fields of the message."""
    return {
        "versions": [write_version_summary(each) for each in it.versions],
    }


def write_version_summary(it: VersionSummary) -> Fields:
    """Return the fields of the message."""
    return {
        "sequence": it.sequence,
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "at": moment(it.at),
        "is_kept": it.is_kept,
        "documents": it.documents,
        "chunks": it.chunks,
    }


def write_warm_report(it: WarmReport) -> Fields:
    """Return the fields of the message."""
    return {
        "questions": it.questions,
        "kept": it.kept,
        "coverage": {key: write_coverage_report_map(each) for key, each in it.coverage.items()},
    }


def write_why_report(it: WhyReport) -> Fields:
    """Return the fields of the message."""
    return {
        "receipt_id": it.receipt_id,
        "chunk_id": it.chunk_id,
        "stage": it.stage,
        "rank": it.rank,
        "score": it.score,
        "scores": None if (scores_ := it.scores) is None else write_signal_scores(scores_),
        "confidence": it.confidence,
        "terms": [write_term_score(each) for each in it.terms],
        "reason": it.reason,
        "smallest_change": it.smallest_change,
    }


def write_withheld_fragment(it: WithheldFragment) -> Fields:
    """Return the fields of the message."""
    return {
        "chunk_id": it.chunk_id,
        "reason": it.reason,
    }


def write_collect_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "keep_versions": it.keep_versions,
    }


def write_collect_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"gc_report": write_gc_report(it)}


def write_doctor_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_doctor_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"doctor_report": write_doctor_report(it)}


def write_embed_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_embed_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"embed_report": write_embed_report(it)}


def write_flush_cache_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
    }


def write_flush_cache_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"count": write_count(it)}


def write_issue_token_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "roles": [ROLE_NUMBERS[each] for each in it.roles],
        "expires_at": None if (expires_at_ := it.expires_at) is None else moment(expires_at_),
        "facts": write_token_facts(it.facts),
    }


def write_issue_token_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"issued_token": write_issued_token(it)}


def write_list_changes_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_changes_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"audit_page": write_audit_page(it)}


def write_list_secrets_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_secrets_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"secret_names": write_secret_names(it)}


def write_list_tokens_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_tokens_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"token_list": write_token_list(it)}


def write_list_traces_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "limit": it.limit,
    }


def write_list_traces_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"trace_list": write_trace_list(it)}


def write_list_versions_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "limit": it.limit,
    }


def write_list_versions_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"version_list": write_version_list(it)}


def write_put_secret_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
        "value": it.value,
    }


def write_put_secret_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"secret_kept": write_secret_kept(it)}


def write_remove_secret_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
    }


def write_remove_secret_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"secret_kept": write_secret_kept(it)}


def write_revoke_token_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_revoke_token_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"token_info": write_token_info(it)}


def write_show_cache_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_show_cache_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"cache_stats": write_cache_stats(it)}


def write_show_consistency_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "first_size": it.first_size,
    }


def write_show_consistency_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"consistency_proof": write_consistency_proof(it)}


def write_show_diff_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "older": it.older,
        "newer": it.newer,
        "limit": it.limit,
    }


def write_show_diff_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"version_diff": write_version_diff(it)}


def write_show_head_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_show_head_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"commit_summary": write_commit_summary(it)}


def write_show_request_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_show_request_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"request_trace": write_request_trace(it)}


def write_show_secret_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "name": it.name,
    }


def write_show_secret_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"secret_kept": write_secret_kept(it)}


def write_show_signed_head_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "sequence": it.sequence,
    }


def write_show_signed_head_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"signed_head": write_signed_head(it)}


def write_verify_base_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_verify_base_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"verify_report": write_verify_report(it)}


def write_warm_cache_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "questions": it.questions,
    }


def write_warm_cache_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"warm_report": write_warm_report(it)}


def write_add_source_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "source_id": it.source_id,
        "source_type": SOURCE_TYPE_NUMBERS[it.source_type],
        "schema": write_schema_definition(it.schema),
        "authority_tier": AUTHORITY_TIER_NUMBERS[it.authority_tier],
        "freshness_sla_s": it.freshness_sla_s,
        "latency_tier": LATENCY_TIER_NUMBERS[it.latency_tier],
        "access_policy": write_source_access_policy(it.access_policy),
        "query_capabilities": write_query_capability_list(it.query_capabilities),
        "cost_per_query_micros": it.cost_per_query_micros,
        "max_qps": it.max_qps,
        "version": it.version,
        "connection": write_source_connection(it.connection),
        "expected_p99_ms": it.expected_p99_ms,
        "freshness_tau_s": it.freshness_tau_s,
        "weight_milli": it.weight_milli,
    }


def write_add_source_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"source_descriptor": write_source_descriptor(it)}


def write_ask_tables_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "question": it.question,
        "limit": it.limit,
    }


def write_ask_tables_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"table_answer": write_table_answer(it)}


def write_export_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "chunk": it.chunk,
    }


def write_export_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"fragment_export": write_fragment_export(it)}


def write_forget_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "note_ids": it.note_ids,
    }


def write_forget_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"count": write_count(it)}


def write_ingest_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "documents": [write_sent_document(each) for each in it.documents],
        "files": [write_sent_file(each) for each in it.files],
        "source": it.source,
        "authority": AUTHORITY_TIER_NUMBERS[it.authority],
        "classification": CLASSIFICATION_NUMBERS[it.classification],
        "acl": it.acl,
        "tags": it.tags,
        "embed": it.embed,
    }


def write_ingest_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"ingest_report": write_ingest_report(it)}


def write_list_chunks_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "document": it.document,
    }


def write_list_chunks_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"chunk_list": write_chunk_list(it)}


def write_list_documents_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_documents_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"document_page": write_document_page(it)}


def write_list_freshness_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_freshness_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"freshness_list": write_freshness_list(it)}


def write_list_notes_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "agent": it.agent,
        "session": it.session,
    }


def write_list_notes_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"note_list": write_note_list(it)}


def write_list_sources_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_sources_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"source_list": write_source_list(it)}


def write_list_tables_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_tables_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"table_list": write_table_list(it)}


def write_open_table_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "table": it.table,
    }


def write_open_table_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"open_table": write_open_table(it)}


def write_remember_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "text": it.text,
        "title": it.title,
        "agent": it.agent,
        "session": it.session,
        "authority": AUTHORITY_TIER_NUMBERS[it.authority],
        "ttl_s": it.ttl_s,
    }


def write_remember_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"note": write_note(it)}


def write_remove_documents_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "document_ids": it.document_ids,
    }


def write_remove_documents_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"commit_summary": write_commit_summary(it)}


def write_remove_source_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_remove_source_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"done": write_done(it)}


def write_replay_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_replay_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"replay_report": write_replay_report(it)}


def write_retrieve_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "query": write_decomposed_query_or_text(it.query),
        "source_policy": write_source_policy(it.source_policy),
        "token_budget": it.token_budget,
        "latency_deadline_ms": it.latency_deadline_ms,
        "ranking_weights": None if (ranking_weights_ := it.ranking_weights) is None else write_ranking_weights(ranking_weights_),
        "diversity_constraint": it.diversity_constraint,
        "provenance_required": it.provenance_required,
        "session_context": it.session_context,
        "as_of": None if (as_of_ := it.as_of) is None else moment(as_of_),
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "principal": None if (principal_ := it.principal) is None else write_principal(principal_),
        "agent_name": it.agent_name,
        "turns": [write_turn(each) for each in it.turns],
        "task": None if (task_ := it.task) is None else write_task(task_),
        "time_window": None if (time_window_ := it.time_window) is None else write_time_window(time_window_),
        "filter": None if (filter_ := it.filter) is None else write_predicate_or_text(filter_),
        "facets": it.facets,
        "mode": RETRIEVAL_MODE_NUMBERS[it.mode],
        "fusion": FUSION_METHOD_NUMBERS[it.fusion],
        "limit": it.limit,
        "cost_budget_micros": it.cost_budget_micros,
        "max_staleness_ms": it.max_staleness_ms,
        "governance": GOVERNANCE_MODE_NUMBERS[it.governance],
        "explain": it.explain,
        "without": [QUERY_STEP_NAME_NUMBERS[each] for each in it.without],
        "early_stop": it.early_stop,
        "rerank": it.rerank,
        "tokenizer": it.tokenizer,
        "receipt": it.receipt,
        "on_timeout": ON_TIMEOUT_NUMBERS[it.on_timeout],
    }


def write_retrieve_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"evidence_response": write_evidence_response(it)}


def write_retrieve_stream_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "query": write_decomposed_query_or_text(it.query),
        "source_policy": write_source_policy(it.source_policy),
        "token_budget": it.token_budget,
        "latency_deadline_ms": it.latency_deadline_ms,
        "ranking_weights": None if (ranking_weights_ := it.ranking_weights) is None else write_ranking_weights(ranking_weights_),
        "diversity_constraint": it.diversity_constraint,
        "provenance_required": it.provenance_required,
        "session_context": it.session_context,
        "as_of": None if (as_of_ := it.as_of) is None else moment(as_of_),
        "corpus_version": it.corpus_version,
        "evidence_state": it.evidence_state,
        "principal": None if (principal_ := it.principal) is None else write_principal(principal_),
        "agent_name": it.agent_name,
        "turns": [write_turn(each) for each in it.turns],
        "task": None if (task_ := it.task) is None else write_task(task_),
        "time_window": None if (time_window_ := it.time_window) is None else write_time_window(time_window_),
        "filter": None if (filter_ := it.filter) is None else write_predicate_or_text(filter_),
        "facets": it.facets,
        "mode": RETRIEVAL_MODE_NUMBERS[it.mode],
        "fusion": FUSION_METHOD_NUMBERS[it.fusion],
        "limit": it.limit,
        "cost_budget_micros": it.cost_budget_micros,
        "max_staleness_ms": it.max_staleness_ms,
        "governance": GOVERNANCE_MODE_NUMBERS[it.governance],
        "explain": it.explain,
        "without": [QUERY_STEP_NAME_NUMBERS[each] for each in it.without],
        "early_stop": it.early_stop,
        "rerank": it.rerank,
        "tokenizer": it.tokenizer,
        "receipt": it.receipt,
        "on_timeout": ON_TIMEOUT_NUMBERS[it.on_timeout],
    }


def write_retrieve_stream_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stream_event": write_stream_event(it)}


def write_set_access_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "document_ids": it.document_ids,
        "classification": CLASSIFICATION_NUMBERS[it.classification],
        "acl": it.acl,
    }


def write_set_access_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"commit_summary": write_commit_summary(it)}


def write_show_image_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "hash": it.hash,
    }


def write_show_image_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"image_view": write_image_view(it)}


def write_show_layout_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "document": it.document,
    }


def write_show_layout_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"layout_view": write_layout_view(it)}


def write_show_receipt_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_show_receipt_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"receipt_view": write_receipt_view(it)}


def write_source_changed_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_source_changed_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"count": write_count(it)}


def write_test_source_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "query": it.query,
        "limit": it.limit,
    }


def write_test_source_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"source_trial": write_source_trial(it)}


def write_verify_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "response": None if (response_ := it.response) is None else write_evidence_response(response_),
        "export": None if (export_ := it.export) is None else write_fragment_export(export_),
        "target": it.target,
    }


def write_verify_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"verify_report": write_verify_report(it)}


def write_why_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "chunk": it.chunk,
    }


def write_why_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"why_report": write_why_report(it)}


def write_calibrate_rule_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "rule": it.rule,
        "policy": it.policy,
        "agent": it.agent,
        "minutes": it.minutes,
    }


def write_calibrate_rule_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"calibration": write_calibration(it)}


def write_change_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "if_match": it.if_match,
        "name": None if (name_ := it.name) is UNSET else name_,
        "category": None if (category_ := it.category) is UNSET else category_,
        "rules_json": None if (rules_ := it.rules) is UNSET else dumps(rules_),
        "scope": None if (scope_ := it.scope) is UNSET else write_policy_scope(scope_),
        "enabled": None if (enabled_ := it.enabled) is UNSET else enabled_,
        "priority": None if (priority_ := it.priority) is UNSET else priority_,
        "description": None if (description_ := it.description) is UNSET else description_,
        "compat": None if (compat_ := it.compat) is UNSET else COMPAT_NUMBERS[compat_],
        "posture": None if (posture_ := it.posture) is UNSET else write_posture_map(posture_),
        "enforcement": None if (enforcement_ := it.enforcement) is UNSET else ENFORCEMENT_NUMBERS[enforcement_],
    }


def write_change_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stored_policy": write_stored_policy(it)}


def write_count_decisions_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "minutes": it.minutes,
        "agent": it.agent,
        "action": None if (action_ := it.action) is None else POLICY_ACTION_NUMBERS[action_],
        "category": it.category,
        "policy": it.policy,
        "phase": None if (phase_ := it.phase) is None else PHASE_NUMBERS[phase_],
        "status": None if (status_ := it.status) is None else DECISION_STATUS_NUMBERS[status_],
        "run": it.run,
    }


def write_count_decisions_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"decision_counts": write_decision_counts(it)}


def write_create_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "if_match": it.if_match,
        "name": it.name,
        "category": it.category,
        "rules_json": dumps(rules_) if (rules_ := it.rules) else None,
        "scope": write_policy_scope(it.scope),
        "enabled": it.enabled,
        "priority": it.priority,
        "description": it.description,
        "compat": COMPAT_NUMBERS[it.compat],
        "posture": {key: POSTURE_NUMBERS[each] for key, each in it.posture.items()},
        "enforcement": ENFORCEMENT_NUMBERS[it.enforcement],
    }


def write_create_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stored_policy": write_stored_policy(it)}


def write_end_run_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "status": RUN_STATUS_NUMBERS[it.status],
        "error_type": it.error_type,
        "result_hash": it.result_hash,
        "text": it.text,
    }


def write_end_run_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"end_reply": write_end_reply(it)}


def write_list_decisions_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "minutes": it.minutes,
        "agent": it.agent,
        "action": None if (action_ := it.action) is None else POLICY_ACTION_NUMBERS[action_],
        "category": it.category,
        "policy": it.policy,
        "phase": None if (phase_ := it.phase) is None else PHASE_NUMBERS[phase_],
        "status": None if (status_ := it.status) is None else DECISION_STATUS_NUMBERS[status_],
        "run": it.run,
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_decisions_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"decision_page": write_decision_page(it)}


def write_list_events_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "minutes": it.minutes,
        "agent": it.agent,
        "action": None if (action_ := it.action) is None else POLICY_ACTION_NUMBERS[action_],
        "category": it.category,
        "policy": it.policy,
        "phase": None if (phase_ := it.phase) is None else PHASE_NUMBERS[phase_],
        "status": None if (status_ := it.status) is None else DECISION_STATUS_NUMBERS[status_],
        "run": it.run,
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_events_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"event_page": write_event_page(it)}


def write_list_policies_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "category": it.category,
        "enabled": it.enabled,
        "enforcement": None if (enforcement_ := it.enforcement) is None else ENFORCEMENT_NUMBERS[enforcement_],
        "name": it.name,
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_policies_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"policy_page": write_policy_page(it)}


def write_list_policy_versions_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_list_policy_versions_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"policy_versions": write_policy_versions(it)}


def write_list_run_decisions_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_run_decisions_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"decision_page": write_decision_page(it)}


def write_list_runs_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "agent": it.agent,
        "status": None if (status_ := it.status) is None else RUN_STATUS_NUMBERS[status_],
        "minutes": it.minutes,
        "cursor": it.cursor,
        "limit": it.limit,
    }


def write_list_runs_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"run_page": write_run_page(it)}


def write_list_templates_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_list_templates_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"policy_templates": write_policy_templates(it)}


def write_push_policies_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "policies": [write_policy_body(each) for each in it.policies],
        "dry_run": it.dry_run,
    }


def write_push_policies_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"push_reply": write_push_reply(it)}


def write_record_calls_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "calls": [write_numbered_call(each) for each in it.calls],
    }


def write_record_calls_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"calls_reply": write_calls_reply(it)}


def write_remove_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "if_match": it.if_match,
    }


def write_remove_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stored_policy": write_stored_policy(it)}


def write_replace_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "if_match": it.if_match,
        "name": it.name,
        "category": it.category,
        "rules_json": dumps(rules_) if (rules_ := it.rules) else None,
        "scope": write_policy_scope(it.scope),
        "enabled": it.enabled,
        "priority": it.priority,
        "description": it.description,
        "compat": COMPAT_NUMBERS[it.compat],
        "posture": {key: POSTURE_NUMBERS[each] for key, each in it.posture.items()},
        "enforcement": ENFORCEMENT_NUMBERS[it.enforcement],
    }


def write_replace_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stored_policy": write_stored_policy(it)}


def write_show_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
        "version": it.version,
    }


def write_show_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"stored_policy": write_stored_policy(it)}


def write_show_policy_schema_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_show_policy_schema_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"reply_json": dumps(it)}


def write_show_proof_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "log": it.log,
        "seq": it.seq,
    }


def write_show_proof_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"record_proof": write_record_proof(it)}


def write_show_rules_schema_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "category": it.category,
    }


def write_show_rules_schema_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"reply_json": dumps(it)}


def write_show_run_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_show_run_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"run_summary": write_run_summary(it)}


def write_show_trace_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "id": it.id,
    }


def write_show_trace_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"run_trace": write_run_trace(it)}


def write_start_run_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "facts": write_run_facts(it.facts),
        "policies": [write_policy_body(each) for each in it.policies],
        "is_enforced": it.is_enforced,
    }


def write_start_run_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"start_reply": write_start_reply(it)}


def write_try_policy_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
        "policy": write_policy_body(it.policy),
        "minutes": it.minutes,
        "is_whole": it.is_whole,
    }


def write_try_policy_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"shadow_report": write_shadow_report(it)}


def write_verify_log_request(it: Any) -> Fields:
    """Return the fields of the message."""
    return {
    }


def write_verify_log_response(it: Any) -> Fields:
    """Return the fields of the message."""
    return {"log_report": write_log_report(it)}


_PREDICATE: Final[Mapping[type, tuple[str, Any]]] = {
    And: ("and_node", write_and),
    Or: ("or_node", write_or),
    Not: ("not_node", write_not),
    Compare: ("compare", lambda it, _: write_compare(it)),
    In: ("in_node", lambda it, _: write_in(it)),
    NotIn: ("not_in", lambda it, _: write_not_in(it)),
    Contains: ("contains", lambda it, _: write_contains(it)),
    Exists: ("exists", lambda it, _: write_exists(it)),
}


_PROVENANCE_ENTRY: Final[Mapping[type, tuple[str, Any]]] = {
    OriginEntry: ("origin", write_origin_entry),
    TransformationEntry: ("transformation", write_transformation_entry),
}


_RECORDABLE_CALL: Final[Mapping[type, tuple[str, Any]]] = {
    RetrievedDocument: ("retrieval", write_retrieved_document),
    BatchClosed: ("batch", write_batch_closed),
    GroundingEntry: ("grounding", write_grounding_entry),
    ToolCall: ("tool", write_tool_call),
    LlmCall: ("llm", write_llm_call),
    StepCall: ("step", write_step_call),
    SpanOpened: ("span", write_span_opened),
    SpanClosed: ("span_end", write_span_closed),
    CheckBypassed: ("bypass", write_check_bypassed),
    TaskOpened: ("task", write_task_opened),
    ToolAsked: ("ask", write_tool_asked),
    ToolAnswered: ("answer", write_tool_answered),
    ReplyDrafted: ("reply", write_reply_drafted),
}


_STREAM_EVENT: Final[Mapping[type, tuple[str, Any]]] = {
    SourceFinished: ("source_finished", write_source_finished),
    ProvisionalFragments: ("provisional_fragments", write_provisional_fragments),
    FinalResponse: ("final_response", write_final_response),
}
