"""Messages as plain objects, as JSON would give them: what was left out is left out, and the contract checks the rest.

Written by tools/write_proto.py; nothing here is changed by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.protobuf.words import (
    ANNOTATION_TARGET_TYPE_WORDS,
    ANNOTATION_TYPE_WORDS,
    AUDIT_KIND_WORDS,
    AUTHORITY_TIER_WORDS,
    BREADTH_WORDS,
    BREAKER_STATE_WORDS,
    CACHE_TIER_WORDS,
    CHANGE_WORDS,
    CLASSIFICATION_WORDS,
    COLUMN_KIND_WORDS,
    COMPAT_WORDS,
    CONNECTION_KIND_WORDS,
    CONTENT_TYPE_WORDS,
    COVERAGE_STATE_WORDS,
    DECISION_STATUS_WORDS,
    DEPRECATION_STATUS_WORDS,
    ENFORCEMENT_WORDS,
    EVENT_KIND_WORDS,
    EXPERTISE_LEVEL_WORDS,
    FUSION_METHOD_WORDS,
    GOVERNANCE_MODE_WORDS,
    JUDGE_STATUS_WORDS,
    LATENCY_TIER_WORDS,
    ON_TIMEOUT_WORDS,
    PHASE_WORDS,
    POLICY_ACTION_WORDS,
    POSTURE_WORDS,
    PROTOCOL_RULE_WORDS,
    PUSH_ACTION_WORDS,
    QUERY_CAPABILITY_WORDS,
    QUERY_STEP_NAME_WORDS,
    QUESTION_TYPE_WORDS,
    RETRIEVAL_MODE_WORDS,
    ROLE_WORDS,
    RUN_STATUS_WORDS,
    SHORTFALL_WORDS,
    SOURCE_TYPE_WORDS,
    TASK_KIND_WORDS,
    TOOL_ROLE_WORDS,
)

if TYPE_CHECKING:
    from evidentia.protobuf.evidentia.v1 import administration_service_pb2, evidence_service_pb2, governance_service_pb2, types_pb2

Fields = dict[str, Any]  # Any: numbers, texts, and more of these

loads = msgspec.json.Decoder().decode


def read_access_rule(it: types_pb2.AccessRule) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (classification_ := it.classification):
        fields["classification"] = CLASSIFICATION_WORDS[classification_]
    if it.acl:
        fields["acl"] = [*it.acl]
    return fields


def read_and(it: types_pb2.And) -> Fields:
    """Return what the message says."""
    return {
        "clauses": [read_predicate(each) for each in it.clauses],
    }


def read_annotation(it: types_pb2.Annotation) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (annotation_id_ := it.annotation_id) or it.HasField("annotation_id"):
        fields["annotation_id"] = annotation_id_
    if it.HasField("target"):
        fields["target"] = read_annotation_target(it.target)
    if (annotation_type_ := it.annotation_type):
        fields["annotation_type"] = ANNOTATION_TYPE_WORDS[annotation_type_]
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if (author_ := it.author) or it.HasField("author"):
        fields["author"] = author_
    if (author_expertise_ := it.author_expertise):
        fields["author_expertise"] = EXPERTISE_LEVEL_WORDS[author_expertise_]
    if (created_at_ := it.created_at) or it.HasField("created_at"):
        fields["created_at"] = created_at_
    if (expires_at_ := it.expires_at) or it.HasField("expires_at"):
        fields["expires_at"] = expires_at_
    if (confidence_ := it.confidence) or it.HasField("confidence"):
        fields["confidence"] = confidence_
    if it.supersedes:
        fields["supersedes"] = [*it.supersedes]
    if it.HasField("provenance"):
        fields["provenance"] = read_provenance_record(it.provenance)
    return fields


def read_annotation_target(it: types_pb2.AnnotationTarget) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (target_type_ := it.target_type):
        fields["target_type"] = ANNOTATION_TARGET_TYPE_WORDS[target_type_]
    if (target_id_ := it.target_id) or it.HasField("target_id"):
        fields["target_id"] = target_id_
    if (target_version_ := it.target_version) or it.HasField("target_version"):
        fields["target_version"] = target_version_
    return fields


def read_audit_entry(it: types_pb2.AuditEntry) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if (at_ := it.at) or it.HasField("at"):
        fields["at"] = at_
    if (by_ := it.by) or it.HasField("by"):
        fields["by"] = by_
    if (kind_ := it.kind):
        fields["kind"] = AUDIT_KIND_WORDS[kind_]
    if (change_ := it.change) or it.HasField("change"):
        fields["change"] = change_
    if (subject_ := it.subject) or it.HasField("subject"):
        fields["subject"] = subject_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    if (digest_ := it.digest) or it.HasField("digest"):
        fields["digest"] = digest_
    return fields


def read_audit_page(it: types_pb2.AuditPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "changes": [read_audit_entry(each) for each in it.changes],
    }
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_base_head(it: types_pb2.BaseHead) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (custody_format_ := it.custody_format) or it.HasField("custody_format"):
        fields["custody_format"] = custody_format_
    if (base_id_ := it.base_id) or it.HasField("base_id"):
        fields["base_id"] = base_id_
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    if (committed_at_ := it.committed_at) or it.HasField("committed_at"):
        fields["committed_at"] = committed_at_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (log_size_ := it.log_size) or it.HasField("log_size"):
        fields["log_size"] = log_size_
    if (log_root_ := it.log_root) or it.HasField("log_root"):
        fields["log_root"] = log_root_
    if (commit_hash_ := it.commit_hash) or it.HasField("commit_hash"):
        fields["commit_hash"] = commit_hash_
    if (public_key_ := it.public_key) or it.HasField("public_key"):
        fields["public_key"] = public_key_
    return fields


def read_batch_closed(it: types_pb2.BatchClosed) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (batch_ := it.batch) or it.HasField("batch"):
        fields["batch"] = batch_
    return fields


def read_broken_link(it: types_pb2.BrokenLink) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (check_ := it.check) or it.HasField("check"):
        fields["check"] = check_
    if (where_ := it.where) or it.HasField("where"):
        fields["where"] = where_
    if (problem_ := it.problem) or it.HasField("problem"):
        fields["problem"] = problem_
    return fields


def read_cache_stats(it: types_pb2.CacheStats) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "tiers": [read_tier_stats(each) for each in it.tiers],
    }
    if (finds_ := it.finds) or it.HasField("finds"):
        fields["finds"] = finds_
    if (hits_ := it.hits) or it.HasField("hits"):
        fields["hits"] = hits_
    if (stale_hits_ := it.stale_hits) or it.HasField("stale_hits"):
        fields["stale_hits"] = stale_hits_
    if (entries_ := it.entries) or it.HasField("entries"):
        fields["entries"] = entries_
    return fields


def read_calibration(it: types_pb2.Calibration) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "histogram": [read_histogram_bar(each) for each in it.histogram],
    }
    if (rule_ := it.rule) or it.HasField("rule"):
        fields["rule"] = rule_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (unit_ := it.unit) or it.HasField("unit"):
        fields["unit"] = unit_
    if (percentile_ := it.percentile) or it.HasField("percentile"):
        fields["percentile"] = percentile_
    if (threshold_ := it.threshold) or it.HasField("threshold"):
        fields["threshold"] = threshold_
    if (observed_ := it.observed) or it.HasField("observed"):
        fields["observed"] = observed_
    if (confidence_percent_ := it.confidence_percent) or it.HasField("confidence_percent"):
        fields["confidence_percent"] = confidence_percent_
    if (low_ := it.low) or it.HasField("low"):
        fields["low"] = low_
    else:
        fields["low"] = None
    if (high_ := it.high) or it.HasField("high"):
        fields["high"] = high_
    else:
        fields["high"] = None
    if (good_runs_ := it.good_runs) or it.HasField("good_runs"):
        fields["good_runs"] = good_runs_
    if (good_values_ := it.good_values) or it.HasField("good_values"):
        fields["good_values"] = good_values_
    if (effective_values_ := it.effective_values) or it.HasField("effective_values"):
        fields["effective_values"] = effective_values_
    if it.HasField("predicted"):
        fields["predicted"] = read_trigger_rate(it.predicted)
    if it.HasField("current"):
        fields["current"] = read_trigger_rate(it.current)
    if (patch_ := it.patch_json):
        fields["patch"] = loads(patch_)
    if (command_ := it.command) or it.HasField("command"):
        fields["command"] = command_
    if it.notes:
        fields["notes"] = [*it.notes]
    return fields


def read_call_result(it: types_pb2.CallResult) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if it.verdicts:
        fields["verdicts"] = [read_verdict(each) for each in it.verdicts]
    if it.decisions:
        fields["decisions"] = [read_policy_decision(each) for each in it.decisions]
    if (is_repeated_ := it.is_repeated):
        fields["is_repeated"] = is_repeated_
    return fields


def read_calls_reply(it: types_pb2.CallsReply) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "results": [read_call_result(each) for each in it.results],
    }
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (status_ := it.status):
        fields["status"] = RUN_STATUS_WORDS[status_]
    if (stopped_at_ := it.stopped_at) or it.HasField("stopped_at"):
        fields["stopped_at"] = stopped_at_
    return fields


def read_cell_value(it: types_pb2.CellValue) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "truth":
        return it.truth
    if arm == "integer":
        return it.integer
    if arm == "real":
        return it.real
    if arm == "text":
        return it.text
    return None


def read_cell_value_list(it: types_pb2.CellValueList) -> Any:
    """Return what the message says."""
    return [read_cell_value(each) for each in it.values]


def read_changed_document(it: types_pb2.ChangedDocument) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    return fields


def read_changed_documents(it: types_pb2.ChangedDocuments) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (total_ := it.total) or it.HasField("total"):
        fields["total"] = total_
    if it.documents:
        fields["documents"] = [read_changed_document(each) for each in it.documents]
    return fields


def read_check_bypassed(it: types_pb2.CheckBypassed) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (what_ := it.what):
        fields["what"] = what_
    if (problem_ := it.problem):
        fields["problem"] = problem_
    if (posture_ := it.posture):
        fields["posture"] = POSTURE_WORDS[posture_]
    return fields


def read_chunk_list(it: types_pb2.ChunkList) -> Fields:
    """Return what the message says."""
    return {
        "chunks": [read_stored_chunk(each) for each in it.chunks],
    }


def read_commit_record(it: types_pb2.CommitRecord) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    if (parent_ := it.parent) or it.HasField("parent"):
        fields["parent"] = parent_
    if (base_id_ := it.base_id) or it.HasField("base_id"):
        fields["base_id"] = base_id_
    if (committed_at_ := it.committed_at) or it.HasField("committed_at"):
        fields["committed_at"] = committed_at_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (log_size_ := it.log_size) or it.HasField("log_size"):
        fields["log_size"] = log_size_
    if (log_root_ := it.log_root) or it.HasField("log_root"):
        fields["log_root"] = log_root_
    if (oldest_readable_ := it.oldest_readable) or it.HasField("oldest_readable"):
        fields["oldest_readable"] = oldest_readable_
    if (segments_hash_ := it.segments_hash) or it.HasField("segments_hash"):
        fields["segments_hash"] = segments_hash_
    if (sources_hash_ := it.sources_hash) or it.HasField("sources_hash"):
        fields["sources_hash"] = sources_hash_
    if (roots_hash_ := it.roots_hash) or it.HasField("roots_hash"):
        fields["roots_hash"] = roots_hash_
    if (vectors_ := it.vectors):
        fields["vectors"] = vectors_
    if (vector_files_hash_ := it.vector_files_hash):
        fields["vector_files_hash"] = vector_files_hash_
    if (keys_hash_ := it.keys_hash):
        fields["keys_hash"] = keys_hash_
    if (contexts_ := it.contexts):
        fields["contexts"] = contexts_
    return fields


def read_commit_summary(it: types_pb2.CommitSummary) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "added": it.added,
        "changed": it.changed,
        "removed": it.removed,
        "access_changed": it.access_changed,
    }
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (log_size_ := it.log_size) or it.HasField("log_size"):
        fields["log_size"] = log_size_
    if (log_root_ := it.log_root) or it.HasField("log_root"):
        fields["log_root"] = log_root_
    if (committed_at_ := it.committed_at) or it.HasField("committed_at"):
        fields["committed_at"] = committed_at_
    return fields


def read_compare(it: types_pb2.Compare) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (field_ := it.field) or it.HasField("field"):
        fields["field"] = field_
    if (operator_ := it.operator) or it.HasField("operator"):
        fields["operator"] = operator_
    if it.HasField("value"):
        fields["value"] = read_value(it.value)
    return fields


def read_conflict(it: types_pb2.Conflict) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "losers": [*it.losers],
        "losing_values": [*it.losing_values],
    }
    if (subject_ := it.subject) or it.HasField("subject"):
        fields["subject"] = subject_
    if (attribute_ := it.attribute) or it.HasField("attribute"):
        fields["attribute"] = attribute_
    if (winner_ := it.winner) or it.HasField("winner"):
        fields["winner"] = winner_
    if (value_ := it.value) or it.HasField("value"):
        fields["value"] = value_
    if (decided_by_ := it.decided_by) or it.HasField("decided_by"):
        fields["decided_by"] = decided_by_
    return fields


def read_consistency_proof(it: types_pb2.ConsistencyProof) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "hashes": [*it.hashes],
    }
    if (first_size_ := it.first_size) or it.HasField("first_size"):
        fields["first_size"] = first_size_
    if (second_size_ := it.second_size) or it.HasField("second_size"):
        fields["second_size"] = second_size_
    if (first_root_ := it.first_root) or it.HasField("first_root"):
        fields["first_root"] = first_root_
    if (second_root_ := it.second_root) or it.HasField("second_root"):
        fields["second_root"] = second_root_
    return fields


def read_contains(it: types_pb2.Contains) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (field_ := it.field) or it.HasField("field"):
        fields["field"] = field_
    if it.HasField("value"):
        fields["value"] = read_value(it.value)
    return fields


def read_count(it: types_pb2.Count) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (count_ := it.count) or it.HasField("count"):
        fields["count"] = count_
    return fields


def read_coverage_report(it: types_pb2.CoverageReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "reason": it.reason,
        "candidates": it.candidates,
        "elapsed_ms": it.elapsed_ms,
    }
    if (state_ := it.state):
        fields["state"] = COVERAGE_STATE_WORDS[state_]
    if (searched_share_ := it.searched_share) or it.HasField("searched_share"):
        fields["searched_share"] = searched_share_
    if (embedded_share_ := it.embedded_share) or it.HasField("embedded_share"):
        fields["embedded_share"] = embedded_share_
    if (data_age_s_ := it.data_age_s) or it.HasField("data_age_s"):
        fields["data_age_s"] = data_age_s_
    if (tier_ := it.tier):
        fields["tier"] = CACHE_TIER_WORDS[tier_]
    if it.faults:
        fields["faults"] = dict(it.faults)
    return fields


def read_coverage_report_map(it: types_pb2.CoverageReportMap) -> Any:
    """Return what the message says."""
    return {key: read_coverage_report(each) for key, each in it.entries.items()}


def read_decision(it: types_pb2.Decision) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (stage_ := it.stage) or it.HasField("stage"):
        fields["stage"] = stage_
    if (note_ := it.note) or it.HasField("note"):
        fields["note"] = note_
    if (remaining_ := it.remaining) or it.HasField("remaining"):
        fields["remaining"] = remaining_
    return fields


def read_decision_counts(it: types_pb2.DecisionCounts) -> Fields:
    """Return what the message says."""
    return {
        "decisions": it.decisions,
        "allowed": it.allowed,
        "warned": it.warned,
        "stopped": it.stopped,
        "not_enforced": it.not_enforced,
        "bypassed": it.bypassed,
    }


def read_decision_page(it: types_pb2.DecisionPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "decisions": [read_policy_decision(each) for each in it.decisions],
    }
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_decomposed_query(it: types_pb2.DecomposedQuery) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (text_ := it.text) or it.HasField("text"):
        fields["text"] = text_
    if it.subqueries:
        fields["subqueries"] = [read_sub_query(each) for each in it.subqueries]
    return fields


def read_decomposed_query_or_text(it: types_pb2.DecomposedQueryOrText) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "decomposed_query":
        return read_decomposed_query(it.decomposed_query)
    if arm == "text":
        return it.text
    return None


def read_doctor_report(it: types_pb2.DoctorReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "findings": [read_finding(each) for each in it.findings],
    }
    if (ok_ := it.ok) or it.HasField("ok"):
        fields["ok"] = ok_
    return fields


def read_document_custody(it: types_pb2.DocumentCustody) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "transformations": [read_transformation_record(each) for each in it.transformations],
    }
    if it.HasField("origin"):
        fields["origin"] = read_origin_descriptor(it.origin)
    if it.HasField("cut_by"):
        fields["cut_by"] = read_tool_stamp(it.cut_by)
    return fields


def read_document_entry(it: types_pb2.DocumentEntry) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if it.HasField("access"):
        fields["access"] = read_access_rule(it.access)
    if (chunks_ := it.chunks) or it.HasField("chunks"):
        fields["chunks"] = chunks_
    return fields


def read_document_image(it: types_pb2.DocumentImage) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (image_hash_ := it.image_hash) or it.HasField("image_hash"):
        fields["image_hash"] = image_hash_
    if (media_type_ := it.media_type) or it.HasField("media_type"):
        fields["media_type"] = media_type_
    if (byte_count_ := it.byte_count) or it.HasField("byte_count"):
        fields["byte_count"] = byte_count_
    if (name_ := it.name):
        fields["name"] = name_
    if (alt_ := it.alt):
        fields["alt"] = alt_
    if (start_ := it.start):
        fields["start"] = start_
    if (end_ := it.end):
        fields["end"] = end_
    return fields


def read_document_layout(it: types_pb2.DocumentLayout) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.pages:
        fields["pages"] = [*it.pages]
    if it.images:
        fields["images"] = [read_document_image(each) for each in it.images]
    if it.tables:
        fields["tables"] = [read_table_card(each) for each in it.tables]
    return fields


def read_document_metadata(it: types_pb2.DocumentMetadata) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (title_ := it.title):
        fields["title"] = title_
    if (path_ := it.path):
        fields["path"] = path_
    if (media_type_ := it.media_type) != 'text/plain' and (media_type_ or it.HasField("media_type")):
        fields["media_type"] = media_type_
    if (content_type_ := it.content_type):
        fields["content_type"] = CONTENT_TYPE_WORDS[content_type_]
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (language_ := it.language) != 'en' and (language_ or it.HasField("language")):
        fields["language"] = language_
    if (created_at_ := it.created_at) or it.HasField("created_at"):
        fields["created_at"] = created_at_
    if (updated_at_ := it.updated_at) or it.HasField("updated_at"):
        fields["updated_at"] = updated_at_
    if (author_ := it.author) or it.HasField("author"):
        fields["author"] = author_
    if it.tags:
        fields["tags"] = [*it.tags]
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    if (deprecation_status_ := it.deprecation_status):
        fields["deprecation_status"] = DEPRECATION_STATUS_WORDS[deprecation_status_]
    if it.extra:
        fields["extra"] = dict(it.extra)
    if (layout_ := it.layout) or it.HasField("layout"):
        fields["layout"] = layout_
    if it.remarks:
        fields["remarks"] = {key: read_integer_list(each) for key, each in it.remarks.items()}
    return fields


def read_document_page(it: types_pb2.DocumentPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "documents": [read_document_entry(each) for each in it.documents],
    }
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_done(it: types_pb2.Done) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (subject_ := it.subject) or it.HasField("subject"):
        fields["subject"] = subject_
    return fields


def read_embed_report(it: types_pb2.EmbedReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("identity"):
        fields["identity"] = read_vector_identity(it.identity)
    else:
        fields["identity"] = None
    if (embedded_ := it.embedded) or it.HasField("embedded"):
        fields["embedded"] = embedded_
    if (reused_ := it.reused) or it.HasField("reused"):
        fields["reused"] = reused_
    if (remaining_ := it.remaining) or it.HasField("remaining"):
        fields["remaining"] = remaining_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    return fields


def read_end_reply(it: types_pb2.EndReply) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (status_ := it.status):
        fields["status"] = RUN_STATUS_WORDS[status_]
    if it.verdicts:
        fields["verdicts"] = [read_verdict(each) for each in it.verdicts]
    if it.decisions:
        fields["decisions"] = [read_policy_decision(each) for each in it.decisions]
    return fields


def read_evaluation(it: types_pb2.Evaluation) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (policy_name_ := it.policy_name) or it.HasField("policy_name"):
        fields["policy_name"] = policy_name_
    if (version_ := it.version) != 1 and (version_ or it.HasField("version")):
        fields["version"] = version_
    if (digest_ := it.digest) or it.HasField("digest"):
        fields["digest"] = digest_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rule_ := it.rule):
        fields["rule"] = rule_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    return fields


def read_event_page(it: types_pb2.EventPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "events": [read_governance_event(each) for each in it.events],
    }
    if (minutes_ := it.minutes) or it.HasField("minutes"):
        fields["minutes"] = minutes_
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_evidence_fragment(it: types_pb2.EvidenceFragment) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "provenance_chain": [read_provenance_entry(each) for each in it.provenance_chain],
        "token_count": it.token_count,
        "is_truncated": it.is_truncated,
        "cut_off": it.cut_off,
    }
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (content_hash_ := it.content_hash) or it.HasField("content_hash"):
        fields["content_hash"] = content_hash_
    if (position_ := it.position) or it.HasField("position"):
        fields["position"] = position_
    if (start_ := it.start) or it.HasField("start"):
        fields["start"] = start_
    if (end_ := it.end) or it.HasField("end"):
        fields["end"] = end_
    if (score_ := it.score) or it.HasField("score"):
        fields["score"] = score_
    if it.HasField("scores"):
        fields["scores"] = read_signal_scores(it.scores)
    if (extraction_timestamp_ := it.extraction_timestamp) or it.HasField("extraction_timestamp"):
        fields["extraction_timestamp"] = extraction_timestamp_
    if (confidence_ := it.confidence) or it.HasField("confidence"):
        fields["confidence"] = confidence_
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (relevance_score_ := it.relevance_score) or it.HasField("relevance_score"):
        fields["relevance_score"] = relevance_score_
    if it.HasField("retrieval_context"):
        fields["retrieval_context"] = read_retrieval_context(it.retrieval_context)
    if it.HasField("trust_metadata"):
        fields["trust_metadata"] = read_trust_metadata(it.trust_metadata)
    if it.annotations:
        fields["annotations"] = [read_annotation(each) for each in it.annotations]
    if it.metadata:
        fields["metadata"] = dict(it.metadata)
    if it.HasField("event"):
        fields["event"] = read_ingest_event(it.event)
    if it.HasField("inclusion"):
        fields["inclusion"] = read_inclusion_proof(it.inclusion)
    if (is_live_ := it.is_live) or it.HasField("is_live"):
        fields["is_live"] = is_live_
    if it.explanation:
        fields["explanation"] = [read_term_score(each) for each in it.explanation]
    if it.flags:
        fields["flags"] = [*it.flags]
    if it.pages:
        fields["pages"] = [*it.pages]
    if it.images:
        fields["images"] = [read_fragment_image(each) for each in it.images]
    return fields


def read_evidence_response(it: types_pb2.EvidenceResponse) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "fragments": [read_evidence_fragment(each) for each in it.fragments],
        "source_coverage": {key: read_coverage_report(each) for key, each in it.source_coverage.items()},
        "policies": it.policies,
        "is_approximate": it.is_approximate,
        "tokens_used": it.tokens_used,
        "response_hash": it.response_hash,
    }
    if (request_id_ := it.request_id) or it.HasField("request_id"):
        fields["request_id"] = request_id_
    if (total_candidates_ := it.total_candidates) or it.HasField("total_candidates"):
        fields["total_candidates"] = total_candidates_
    if (latency_ms_ := it.latency_ms) or it.HasField("latency_ms"):
        fields["latency_ms"] = latency_ms_
    if (truncation_applied_ := it.truncation_applied) or it.HasField("truncation_applied"):
        fields["truncation_applied"] = truncation_applied_
    if (cache_hit_ratio_ := it.cache_hit_ratio) or it.HasField("cache_hit_ratio"):
        fields["cache_hit_ratio"] = cache_hit_ratio_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (config_hash_ := it.config_hash) or it.HasField("config_hash"):
        fields["config_hash"] = config_hash_
    if (result_hash_ := it.result_hash) or it.HasField("result_hash"):
        fields["result_hash"] = result_hash_
    if (receipt_id_ := it.receipt_id) or it.HasField("receipt_id"):
        fields["receipt_id"] = receipt_id_
    else:
        fields["receipt_id"] = None
    if (request_hash_ := it.request_hash) or it.HasField("request_hash"):
        fields["request_hash"] = request_hash_
    if (as_of_ := it.as_of) or it.HasField("as_of"):
        fields["as_of"] = as_of_
    if it.HasField("commit"):
        fields["commit"] = read_commit_record(it.commit)
    if (commit_hash_ := it.commit_hash) or it.HasField("commit_hash"):
        fields["commit_hash"] = commit_hash_
    if it.decisions:
        fields["decisions"] = [read_decision(each) for each in it.decisions]
    if it.understanding:
        fields["understanding"] = [read_query_step(each) for each in it.understanding]
    if it.facets:
        fields["facets"] = {key: read_integer_map(each) for key, each in it.facets.items()}
    if it.conflicts:
        fields["conflicts"] = [read_conflict(each) for each in it.conflicts]
    if it.withheld:
        fields["withheld"] = [read_withheld_fragment(each) for each in it.withheld]
    if it.governance:
        fields["governance"] = [read_governed_fragment(each) for each in it.governance]
    if it.degraded:
        fields["degraded"] = [*it.degraded]
    if it.stage_latencies_ms:
        fields["stage_latencies_ms"] = dict(it.stage_latencies_ms)
    if (custody_format_ := it.custody_format) or it.HasField("custody_format"):
        fields["custody_format"] = custody_format_
    return fields


def read_exists(it: types_pb2.Exists) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (field_ := it.field) or it.HasField("field"):
        fields["field"] = field_
    return fields


def read_external_candidate(it: types_pb2.ExternalCandidate) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "title": it.title,
    }
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if (content_hash_ := it.content_hash) or it.HasField("content_hash"):
        fields["content_hash"] = content_hash_
    if (received_hash_ := it.received_hash) or it.HasField("received_hash"):
        fields["received_hash"] = received_hash_
    if (received_length_ := it.received_length) or it.HasField("received_length"):
        fields["received_length"] = received_length_
    if (rank_ := it.rank) or it.HasField("rank"):
        fields["rank"] = rank_
    if (query_ := it.query) or it.HasField("query"):
        fields["query"] = query_
    if (origin_ := it.origin) or it.HasField("origin"):
        fields["origin"] = origin_
    if (retrieved_at_ := it.retrieved_at) or it.HasField("retrieved_at"):
        fields["retrieved_at"] = retrieved_at_
    if (updated_at_ := it.updated_at) or it.HasField("updated_at"):
        fields["updated_at"] = updated_at_
    if (media_type_ := it.media_type) or it.HasField("media_type"):
        fields["media_type"] = media_type_
    if (content_type_ := it.content_type):
        fields["content_type"] = CONTENT_TYPE_WORDS[content_type_]
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if it.HasField("access"):
        fields["access"] = read_access_rule(it.access)
    if (confidence_millionths_ := it.confidence_millionths) or it.HasField("confidence_millionths"):
        fields["confidence_millionths"] = confidence_millionths_
    if it.metadata:
        fields["metadata"] = dict(it.metadata)
    if it.flags:
        fields["flags"] = [*it.flags]
    return fields


def read_final_response(it: types_pb2.FinalResponse) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("response"):
        fields["response"] = read_evidence_response(it.response)
    return fields


def read_finding(it: types_pb2.Finding) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "hint": it.hint,
    }
    if (check_ := it.check) or it.HasField("check"):
        fields["check"] = check_
    if (ok_ := it.ok) or it.HasField("ok"):
        fields["ok"] = ok_
    if (detail_ := it.detail) or it.HasField("detail"):
        fields["detail"] = detail_
    return fields


def read_fragment_export(it: types_pb2.FragmentExport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "provenance_chain": [read_provenance_entry(each) for each in it.provenance_chain],
        "export_hash": it.export_hash,
    }
    if (format_ := it.format) or it.HasField("format"):
        fields["format"] = format_
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (position_ := it.position) or it.HasField("position"):
        fields["position"] = position_
    if (start_ := it.start) or it.HasField("start"):
        fields["start"] = start_
    if (end_ := it.end) or it.HasField("end"):
        fields["end"] = end_
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if it.HasField("event"):
        fields["event"] = read_ingest_event(it.event)
    if it.HasField("inclusion"):
        fields["inclusion"] = read_inclusion_proof(it.inclusion)
    if it.HasField("commit"):
        fields["commit"] = read_commit_record(it.commit)
    if (commit_hash_ := it.commit_hash) or it.HasField("commit_hash"):
        fields["commit_hash"] = commit_hash_
    if (is_live_ := it.is_live) or it.HasField("is_live"):
        fields["is_live"] = is_live_
    if it.HasField("head"):
        fields["head"] = read_signed_head(it.head)
    return fields


def read_fragment_image(it: types_pb2.FragmentImage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "name": it.name,
        "alt": it.alt,
        "nearest_text": it.nearest_text,
    }
    if (image_hash_ := it.image_hash) or it.HasField("image_hash"):
        fields["image_hash"] = image_hash_
    if (media_type_ := it.media_type) or it.HasField("media_type"):
        fields["media_type"] = media_type_
    return fields


def read_freshness_list(it: types_pb2.FreshnessList) -> Fields:
    """Return what the message says."""
    return {
        "sources": [read_freshness_report(each) for each in it.sources],
    }


def read_freshness_report(it: types_pb2.FreshnessReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (freshness_sla_s_ := it.freshness_sla_s) or it.HasField("freshness_sla_s"):
        fields["freshness_sla_s"] = freshness_sla_s_
    else:
        fields["freshness_sla_s"] = None
    if (age_s_ := it.age_s) or it.HasField("age_s"):
        fields["age_s"] = age_s_
    else:
        fields["age_s"] = None
    if (is_fresh_ := it.is_fresh) or it.HasField("is_fresh"):
        fields["is_fresh"] = is_fresh_
    else:
        fields["is_fresh"] = None
    if (newest_at_ := it.newest_at) or it.HasField("newest_at"):
        fields["newest_at"] = newest_at_
    return fields


def read_gc_report(it: types_pb2.GcReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (versions_removed_ := it.versions_removed) or it.HasField("versions_removed"):
        fields["versions_removed"] = versions_removed_
    if (chunks_removed_ := it.chunks_removed) or it.HasField("chunks_removed"):
        fields["chunks_removed"] = chunks_removed_
    if (segments_removed_ := it.segments_removed) or it.HasField("segments_removed"):
        fields["segments_removed"] = segments_removed_
    if (bytes_before_ := it.bytes_before) or it.HasField("bytes_before"):
        fields["bytes_before"] = bytes_before_
    if (bytes_after_ := it.bytes_after) or it.HasField("bytes_after"):
        fields["bytes_after"] = bytes_after_
    return fields


def read_governance_event(it: types_pb2.GovernanceEvent) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (at_ := it.at) or it.HasField("at"):
        fields["at"] = at_
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (agent_name_ := it.agent_name) or it.HasField("agent_name"):
        fields["agent_name"] = agent_name_
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (policy_name_ := it.policy_name) or it.HasField("policy_name"):
        fields["policy_name"] = policy_name_
    if (policy_version_ := it.policy_version) or it.HasField("policy_version"):
        fields["policy_version"] = policy_version_
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rule_ := it.rule) or it.HasField("rule"):
        fields["rule"] = rule_
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    if (is_enforced_ := it.is_enforced) or it.HasField("is_enforced"):
        fields["is_enforced"] = is_enforced_
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if (part_ := it.part) or it.HasField("part"):
        fields["part"] = part_
    return fields


def read_governed_fragment(it: types_pb2.GovernedFragment) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (policy_name_ := it.policy_name) or it.HasField("policy_name"):
        fields["policy_name"] = policy_name_
    if (policy_digest_ := it.policy_digest) or it.HasField("policy_digest"):
        fields["policy_digest"] = policy_digest_
    if (rule_ := it.rule) or it.HasField("rule"):
        fields["rule"] = rule_
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    return fields


def read_grounding_entry(it: types_pb2.GroundingEntry) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if it.grounding_scores:
        fields["grounding_scores"] = [*it.grounding_scores]
    if it.citations:
        fields["citations"] = [*it.citations]
    if it.unsupported_claims:
        fields["unsupported_claims"] = [*it.unsupported_claims]
    if (output_confidence_ := it.output_confidence) or it.HasField("output_confidence"):
        fields["output_confidence"] = output_confidence_
    if it.judgements:
        fields["judgements"] = {key: read_judgement(each) for key, each in it.judgements.items()}
    return fields


def read_histogram_bar(it: types_pb2.HistogramBar) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (low_ := it.low) or it.HasField("low"):
        fields["low"] = low_
    if (high_ := it.high) or it.HasField("high"):
        fields["high"] = high_
    if (good_ := it.good) or it.HasField("good"):
        fields["good"] = good_
    if (other_ := it.other) or it.HasField("other"):
        fields["other"] = other_
    return fields


def read_image_view(it: types_pb2.ImageView) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (media_type_ := it.media_type) or it.HasField("media_type"):
        fields["media_type"] = media_type_
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    return fields


def read_in(it: types_pb2.In) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "values": [read_value(each) for each in it.values],
    }
    if (field_ := it.field) or it.HasField("field"):
        fields["field"] = field_
    return fields


def read_inclusion_proof(it: types_pb2.InclusionProof) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "hashes": [*it.hashes],
    }
    if (leaf_index_ := it.leaf_index) or it.HasField("leaf_index"):
        fields["leaf_index"] = leaf_index_
    if (tree_size_ := it.tree_size) or it.HasField("tree_size"):
        fields["tree_size"] = tree_size_
    if (root_ := it.root) or it.HasField("root"):
        fields["root"] = root_
    return fields


def read_ingest_event(it: types_pb2.IngestEvent) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (index_ := it.index) or it.HasField("index"):
        fields["index"] = index_
    if (kind_ := it.kind):
        fields["kind"] = EVENT_KIND_WORDS[kind_]
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (custody_head_ := it.custody_head) or it.HasField("custody_head"):
        fields["custody_head"] = custody_head_
    if (fingerprint_ := it.fingerprint) or it.HasField("fingerprint"):
        fields["fingerprint"] = fingerprint_
    if (access_hash_ := it.access_hash) or it.HasField("access_hash"):
        fields["access_hash"] = access_hash_
    if (root_ := it.root) or it.HasField("root"):
        fields["root"] = root_
    if (recorded_at_ := it.recorded_at) or it.HasField("recorded_at"):
        fields["recorded_at"] = recorded_at_
    if (salt_ := it.salt) or it.HasField("salt"):
        fields["salt"] = salt_
    return fields


def read_ingest_report(it: types_pb2.IngestReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "skipped": [read_skipped_input(each) for each in it.skipped],
        "notes": [read_skipped_input(each) for each in it.notes],
    }
    if (seen_ := it.seen) or it.HasField("seen"):
        fields["seen"] = seen_
    if (added_ := it.added) or it.HasField("added"):
        fields["added"] = added_
    if (changed_ := it.changed) or it.HasField("changed"):
        fields["changed"] = changed_
    if (unchanged_ := it.unchanged) or it.HasField("unchanged"):
        fields["unchanged"] = unchanged_
    if (access_changed_ := it.access_changed) or it.HasField("access_changed"):
        fields["access_changed"] = access_changed_
    if (removed_ := it.removed) or it.HasField("removed"):
        fields["removed"] = removed_
    if (chunks_ := it.chunks) or it.HasField("chunks"):
        fields["chunks"] = chunks_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    return fields


def read_integer_list(it: types_pb2.IntegerList) -> Any:
    """Return what the message says."""
    return [*it.values]


def read_integer_map(it: types_pb2.IntegerMap) -> Any:
    """Return what the message says."""
    return dict(it.entries)


def read_integer_or_real(it: types_pb2.IntegerOrReal) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "integer":
        return it.integer
    if arm == "real":
        return it.real
    return None


def read_integer_or_text(it: types_pb2.IntegerOrText) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "integer":
        return it.integer
    if arm == "text":
        return it.text
    return None


def read_issued_token(it: types_pb2.IssuedToken) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (token_ := it.token) or it.HasField("token"):
        fields["token"] = token_
    if it.HasField("info"):
        fields["info"] = read_token_info(it.info)
    return fields


def read_judgement(it: types_pb2.Judgement) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "problem": it.problem,
        "input_tokens": it.input_tokens,
        "output_tokens": it.output_tokens,
        "cost_micro": it.cost_micro,
        "latency_ms": it.latency_ms,
    }
    if (status_ := it.status):
        fields["status"] = JUDGE_STATUS_WORDS[status_]
    if (score_ := it.score) or it.HasField("score"):
        fields["score"] = score_
    if (model_ := it.model) or it.HasField("model"):
        fields["model"] = model_
    if it.notes:
        fields["notes"] = [*it.notes]
    return fields


def read_layout_view(it: types_pb2.LayoutView) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("layout"):
        fields["layout"] = read_document_layout(it.layout)
    else:
        fields["layout"] = None
    return fields


def read_llm_call(it: types_pb2.LlmCall) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (model_ := it.model):
        fields["model"] = model_
    if (input_tokens_ := it.input_tokens):
        fields["input_tokens"] = input_tokens_
    if (output_tokens_ := it.output_tokens):
        fields["output_tokens"] = output_tokens_
    if (cost_micro_ := it.cost_micro):
        fields["cost_micro"] = cost_micro_
    if (duration_ms_ := it.duration_ms):
        fields["duration_ms"] = duration_ms_
    if (response_hash_ := it.response_hash) or it.HasField("response_hash"):
        fields["response_hash"] = response_hash_
    if (attributes_ := it.attributes_json):
        fields["attributes"] = loads(attributes_)
    return fields


def read_log_fault(it: types_pb2.LogFault) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (line_ := it.line) or it.HasField("line"):
        fields["line"] = line_
    if (problem_ := it.problem) or it.HasField("problem"):
        fields["problem"] = problem_
    return fields


def read_log_head(it: types_pb2.LogHead) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (size_ := it.size) or it.HasField("size"):
        fields["size"] = size_
    if (hash_ := it.hash) or it.HasField("hash"):
        fields["hash"] = hash_
    if (root_ := it.root) or it.HasField("root"):
        fields["root"] = root_
    return fields


def read_log_report(it: types_pb2.LogReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "redacted": it.redacted,
        "retired": it.retired,
    }
    if (ok_ := it.ok) or it.HasField("ok"):
        fields["ok"] = ok_
    if (logs_ := it.logs) or it.HasField("logs"):
        fields["logs"] = logs_
    if (records_ := it.records) or it.HasField("records"):
        fields["records"] = records_
    if it.faults:
        fields["faults"] = [read_log_fault(each) for each in it.faults]
    if it.heads:
        fields["heads"] = [read_log_head(each) for each in it.heads]
    return fields


def read_not(it: types_pb2.Not) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("clause"):
        fields["clause"] = read_predicate(it.clause)
    return fields


def read_not_in(it: types_pb2.NotIn) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "values": [read_value(each) for each in it.values],
    }
    if (field_ := it.field) or it.HasField("field"):
        fields["field"] = field_
    return fields


def read_note(it: types_pb2.Note) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "title": it.title,
        "agent_name": it.agent_name,
        "session": it.session,
    }
    if (note_id_ := it.note_id) or it.HasField("note_id"):
        fields["note_id"] = note_id_
    if (text_ := it.text) or it.HasField("text"):
        fields["text"] = text_
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (owner_ := it.owner) or it.HasField("owner"):
        fields["owner"] = owner_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (written_at_ := it.written_at) or it.HasField("written_at"):
        fields["written_at"] = written_at_
    if (expires_at_ := it.expires_at) or it.HasField("expires_at"):
        fields["expires_at"] = expires_at_
    return fields


def read_note_list(it: types_pb2.NoteList) -> Fields:
    """Return what the message says."""
    return {
        "notes": [read_note(each) for each in it.notes],
    }


def read_number(it: types_pb2.Number) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (number_ := it.number) or it.HasField("number"):
        fields["number"] = number_
    return fields


def read_numbered_call(it: types_pb2.NumberedCall) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "text": it.text,
    }
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if it.HasField("call"):
        fields["call"] = read_recordable_call(it.call)
    if it.texts:
        fields["texts"] = dict(it.texts)
    return fields


def read_open_table(it: types_pb2.OpenTable) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("card"):
        fields["card"] = read_table_card(it.card)
    if it.HasField("content"):
        fields["content"] = read_table_content(it.content)
    return fields


def read_or(it: types_pb2.Or) -> Fields:
    """Return what the message says."""
    return {
        "clauses": [read_predicate(each) for each in it.clauses],
    }


def read_origin_descriptor(it: types_pb2.OriginDescriptor) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (source_type_ := it.source_type):
        fields["source_type"] = SOURCE_TYPE_WORDS[source_type_]
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (document_version_ := it.document_version) or it.HasField("document_version"):
        fields["document_version"] = document_version_
    if (extraction_method_ := it.extraction_method) or it.HasField("extraction_method"):
        fields["extraction_method"] = extraction_method_
    if (extraction_timestamp_ := it.extraction_timestamp) or it.HasField("extraction_timestamp"):
        fields["extraction_timestamp"] = extraction_timestamp_
    if (content_hash_ := it.content_hash) or it.HasField("content_hash"):
        fields["content_hash"] = content_hash_
    if (content_length_ := it.content_length) or it.HasField("content_length"):
        fields["content_length"] = content_length_
    if (media_type_ := it.media_type) or it.HasField("media_type"):
        fields["media_type"] = media_type_
    return fields


def read_origin_entry(it: types_pb2.OriginEntry) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("record"):
        fields["record"] = read_origin_descriptor(it.record)
    if (hash_ := it.hash) or it.HasField("hash"):
        fields["hash"] = hash_
    return fields


def read_policy(it: types_pb2.Policy) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    if (digest_ := it.digest) or it.HasField("digest"):
        fields["digest"] = digest_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if it.HasField("body"):
        fields["body"] = read_policy_body(it.body)
    return fields


def read_policy_body(it: types_pb2.PolicyBody) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "description": it.description,
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rules_ := it.rules_json):
        fields["rules"] = loads(rules_)
    if it.HasField("scope"):
        fields["scope"] = read_policy_scope(it.scope)
    if (enabled_ := it.enabled) or it.HasField("enabled"):
        fields["enabled"] = enabled_
    if (priority_ := it.priority) or it.HasField("priority"):
        fields["priority"] = priority_
    if (compat_ := it.compat):
        fields["compat"] = COMPAT_WORDS[compat_]
    if it.posture:
        fields["posture"] = {key: POSTURE_WORDS[each] for key, each in it.posture.items()}
    if (enforcement_ := it.enforcement):
        fields["enforcement"] = ENFORCEMENT_WORDS[enforcement_]
    return fields


def read_policy_decision(it: types_pb2.PolicyDecision) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "part": it.part,
        "log": it.log,
        "agent_name": it.agent_name,
        "evaluations": [read_evaluation(each) for each in it.evaluations],
        "overhead_us": it.overhead_us,
        "is_redacted": it.is_redacted,
    }
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if (previous_ := it.previous) or it.HasField("previous"):
        fields["previous"] = previous_
    if (hash_ := it.hash) or it.HasField("hash"):
        fields["hash"] = hash_
    if (at_ := it.at) or it.HasField("at"):
        fields["at"] = at_
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if (kind_ := it.kind) or it.HasField("kind"):
        fields["kind"] = kind_
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (policy_name_ := it.policy_name) or it.HasField("policy_name"):
        fields["policy_name"] = policy_name_
    if (policy_version_ := it.policy_version) or it.HasField("policy_version"):
        fields["policy_version"] = policy_version_
    if (policy_digest_ := it.policy_digest) or it.HasField("policy_digest"):
        fields["policy_digest"] = policy_digest_
    if (policies_ := it.policies) or it.HasField("policies"):
        fields["policies"] = policies_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rule_ := it.rule) or it.HasField("rule"):
        fields["rule"] = rule_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    if (inputs_ := it.inputs_json):
        fields["inputs"] = loads(inputs_)
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    if (is_enforced_ := it.is_enforced) or it.HasField("is_enforced"):
        fields["is_enforced"] = is_enforced_
    if (abstention_response_ := it.abstention_response) or it.HasField("abstention_response"):
        fields["abstention_response"] = abstention_response_
    return fields


def read_policy_page(it: types_pb2.PolicyPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "policies": [read_stored_policy(each) for each in it.policies],
    }
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_policy_scope(it: types_pb2.PolicyScope) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.agents:
        fields["agents"] = [*it.agents]
    if it.agent_ids:
        fields["agent_ids"] = [*it.agent_ids]
    if it.agent_groups:
        fields["agent_groups"] = [*it.agent_groups]
    if it.agent_types:
        fields["agent_types"] = [*it.agent_types]
    if it.workflows:
        fields["workflows"] = [*it.workflows]
    if it.users:
        fields["users"] = [*it.users]
    if it.user_groups:
        fields["user_groups"] = [*it.user_groups]
    if it.teams:
        fields["teams"] = [*it.teams]
    if it.tenants:
        fields["tenants"] = [*it.tenants]
    if it.tools:
        fields["tools"] = [*it.tools]
    if it.models:
        fields["models"] = [*it.models]
    if it.exclude_agents:
        fields["exclude_agents"] = [*it.exclude_agents]
    if it.exclude_users:
        fields["exclude_users"] = [*it.exclude_users]
    if it.exclude_tools:
        fields["exclude_tools"] = [*it.exclude_tools]
    if it.exclude_models:
        fields["exclude_models"] = [*it.exclude_models]
    return fields


def read_policy_templates(it: types_pb2.PolicyTemplates) -> Fields:
    """Return what the message says."""
    return {
        "templates": {key: read_policy_body(each) for key, each in it.templates.items()},
    }


def read_policy_versions(it: types_pb2.PolicyVersions) -> Fields:
    """Return what the message says."""
    return {
        "versions": [read_stored_policy(each) for each in it.versions],
    }


def read_posture_map(it: types_pb2.PostureMap) -> Any:
    """Return what the message says."""
    return {key: POSTURE_WORDS[each] for key, each in it.entries.items()}


def read_predicate(it: types_pb2.Predicate) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "and_node":
        return {"op": "and", **read_and(it.and_node)}
    if arm == "or_node":
        return {"op": "or", **read_or(it.or_node)}
    if arm == "not_node":
        return {"op": "not", **read_not(it.not_node)}
    if arm == "compare":
        return {"op": "compare", **read_compare(it.compare)}
    if arm == "in_node":
        return {"op": "in", **read_in(it.in_node)}
    if arm == "not_in":
        return {"op": "not_in", **read_not_in(it.not_in)}
    if arm == "contains":
        return {"op": "contains", **read_contains(it.contains)}
    if arm == "exists":
        return {"op": "exists", **read_exists(it.exists)}
    if arm == "json":
        return loads(it.json)
    return None


def read_predicate_or_text(it: types_pb2.PredicateOrText) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "predicate":
        return read_predicate(it.predicate)
    if arm == "text":
        return it.text
    return None


def read_principal(it: types_pb2.Principal) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "is_owner": it.is_owner,
    }
    if (principal_id_ := it.principal_id) or it.HasField("principal_id"):
        fields["principal_id"] = principal_id_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (clearance_ := it.clearance):
        fields["clearance"] = CLASSIFICATION_WORDS[clearance_]
    if it.roles:
        fields["roles"] = [*it.roles]
    if it.groups:
        fields["groups"] = [*it.groups]
    if it.attributes:
        fields["attributes"] = dict(it.attributes)
    return fields


def read_provenance_entry(it: types_pb2.ProvenanceEntry) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "origin":
        return {"kind": "origin", **read_origin_entry(it.origin)}
    if arm == "transformation":
        return {"kind": "transformation", **read_transformation_entry(it.transformation)}
    return None


def read_provenance_record(it: types_pb2.ProvenanceRecord) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "transformations": [read_transformation_record(each) for each in it.transformations],
    }
    if it.HasField("origin"):
        fields["origin"] = read_origin_descriptor(it.origin)
    if it.HasField("retrieval_context"):
        fields["retrieval_context"] = read_retrieval_context(it.retrieval_context)
    if it.HasField("trust_metadata"):
        fields["trust_metadata"] = read_trust_metadata(it.trust_metadata)
    return fields


def read_provisional_fragments(it: types_pb2.ProvisionalFragments) -> Fields:
    """Return what the message says."""
    return {
        "fragments": [read_evidence_fragment(each) for each in it.fragments],
        "sources": [*it.sources],
    }


def read_push_reply(it: types_pb2.PushReply) -> Fields:
    """Return what the message says."""
    return {
        "results": [read_push_result(each) for each in it.results],
        "dry_run": it.dry_run,
    }


def read_push_result(it: types_pb2.PushResult) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (action_ := it.action):
        fields["action"] = PUSH_ACTION_WORDS[action_]
    if (policy_id_ := it.policy_id) or it.HasField("policy_id"):
        fields["policy_id"] = policy_id_
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    return fields


def read_query_capability_list(it: types_pb2.QueryCapabilityList) -> Any:
    """Return what the message says."""
    return [QUERY_CAPABILITY_WORDS[each] for each in it.values]


def read_query_step(it: types_pb2.QueryStep) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (step_ := it.step):
        fields["step"] = QUERY_STEP_NAME_WORDS[step_]
    if (note_ := it.note) or it.HasField("note"):
        fields["note"] = note_
    if it.added:
        fields["added"] = [*it.added]
    return fields


def read_ranking_weights(it: types_pb2.RankingWeights) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (relevance_ := it.relevance) or it.HasField("relevance"):
        fields["relevance"] = relevance_
    if (authority_ := it.authority) or it.HasField("authority"):
        fields["authority"] = authority_
    if (freshness_ := it.freshness) or it.HasField("freshness"):
        fields["freshness"] = freshness_
    if (utility_ := it.utility) or it.HasField("utility"):
        fields["utility"] = utility_
    return fields


def read_receipt_view(it: types_pb2.ReceiptView) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "fragments": [*it.fragments],
        "response_hash": it.response_hash,
    }
    if (receipt_id_ := it.receipt_id) or it.HasField("receipt_id"):
        fields["receipt_id"] = receipt_id_
    if (answered_at_ := it.answered_at) or it.HasField("answered_at"):
        fields["answered_at"] = answered_at_
    if (query_ := it.query) or it.HasField("query"):
        fields["query"] = query_
    if (principal_id_ := it.principal_id) or it.HasField("principal_id"):
        fields["principal_id"] = principal_id_
    if (agent_name_ := it.agent_name) or it.HasField("agent_name"):
        fields["agent_name"] = agent_name_
    else:
        fields["agent_name"] = None
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (config_hash_ := it.config_hash) or it.HasField("config_hash"):
        fields["config_hash"] = config_hash_
    if (result_hash_ := it.result_hash) or it.HasField("result_hash"):
        fields["result_hash"] = result_hash_
    if (custody_format_ := it.custody_format) or it.HasField("custody_format"):
        fields["custody_format"] = custody_format_
    return fields


def read_record_proof(it: types_pb2.RecordProof) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "path": [*it.path],
    }
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if (size_ := it.size) or it.HasField("size"):
        fields["size"] = size_
    if (root_ := it.root) or it.HasField("root"):
        fields["root"] = root_
    if (line_ := it.line) or it.HasField("line"):
        fields["line"] = line_
    return fields


def read_recordable_call(it: types_pb2.RecordableCall) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "retrieval":
        return {"kind": "retrieval", **read_retrieved_document(it.retrieval)}
    if arm == "batch":
        return {"kind": "batch", **read_batch_closed(it.batch)}
    if arm == "grounding":
        return {"kind": "grounding", **read_grounding_entry(it.grounding)}
    if arm == "tool":
        return {"kind": "tool", **read_tool_call(it.tool)}
    if arm == "llm":
        return {"kind": "llm", **read_llm_call(it.llm)}
    if arm == "step":
        return {"kind": "step", **read_step_call(it.step)}
    if arm == "span":
        return {"kind": "span", **read_span_opened(it.span)}
    if arm == "span_end":
        return {"kind": "span_end", **read_span_closed(it.span_end)}
    if arm == "bypass":
        return {"kind": "bypass", **read_check_bypassed(it.bypass)}
    if arm == "task":
        return {"kind": "task", **read_task_opened(it.task)}
    if arm == "ask":
        return {"kind": "ask", **read_tool_asked(it.ask)}
    if arm == "answer":
        return {"kind": "answer", **read_tool_answered(it.answer)}
    if arm == "reply":
        return {"kind": "reply", **read_reply_drafted(it.reply)}
    return None


def read_replay_report(it: types_pb2.ReplayReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (receipt_id_ := it.receipt_id) or it.HasField("receipt_id"):
        fields["receipt_id"] = receipt_id_
    if (is_same_ := it.is_same) or it.HasField("is_same"):
        fields["is_same"] = is_same_
    if (recorded_hash_ := it.recorded_hash) or it.HasField("recorded_hash"):
        fields["recorded_hash"] = recorded_hash_
    if (result_hash_ := it.result_hash) or it.HasField("result_hash"):
        fields["result_hash"] = result_hash_
    if (hidden_ := it.hidden) or it.HasField("hidden"):
        fields["hidden"] = hidden_
    if it.HasField("response"):
        fields["response"] = read_evidence_response(it.response)
    return fields


def read_reply_drafted(it: types_pb2.ReplyDrafted) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (reply_hash_ := it.reply_hash) or it.HasField("reply_hash"):
        fields["reply_hash"] = reply_hash_
    if (says_not_found_ := it.says_not_found):
        fields["says_not_found"] = says_not_found_
    if (uses_evidence_ := it.uses_evidence):
        fields["uses_evidence"] = uses_evidence_
    if (has_supplement_ := it.has_supplement):
        fields["has_supplement"] = has_supplement_
    if it.findings:
        fields["findings"] = [read_reply_finding(each) for each in it.findings]
    if (is_checked_ := it.is_checked) != True and (is_checked_ or it.HasField("is_checked")):
        fields["is_checked"] = is_checked_
    return fields


def read_reply_finding(it: types_pb2.ReplyFinding) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (rule_ := it.rule):
        fields["rule"] = PROTOCOL_RULE_WORDS[rule_]
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (block_ := it.block) or it.HasField("block"):
        fields["block"] = block_
    if (count_ := it.count) or it.HasField("count"):
        fields["count"] = count_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    return fields


def read_request_trace(it: types_pb2.RequestTrace) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "agent_name": it.agent_name,
        "fragments": it.fragments,
        "candidates": it.candidates,
        "tokens_used": it.tokens_used,
        "cache_hit_ratio": it.cache_hit_ratio,
    }
    if (request_id_ := it.request_id) or it.HasField("request_id"):
        fields["request_id"] = request_id_
    if (receipt_id_ := it.receipt_id) or it.HasField("receipt_id"):
        fields["receipt_id"] = receipt_id_
    else:
        fields["receipt_id"] = None
    if (started_at_ := it.started_at) or it.HasField("started_at"):
        fields["started_at"] = started_at_
    if (latency_ms_ := it.latency_ms) or it.HasField("latency_ms"):
        fields["latency_ms"] = latency_ms_
    if (deadline_ms_ := it.deadline_ms) or it.HasField("deadline_ms"):
        fields["deadline_ms"] = deadline_ms_
    if (principal_fingerprint_ := it.principal_fingerprint) or it.HasField("principal_fingerprint"):
        fields["principal_fingerprint"] = principal_fingerprint_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (mode_ := it.mode) or it.HasField("mode"):
        fields["mode"] = mode_
    if (limit_ := it.limit) or it.HasField("limit"):
        fields["limit"] = limit_
    if it.degraded:
        fields["degraded"] = [*it.degraded]
    if (result_hash_ := it.result_hash) or it.HasField("result_hash"):
        fields["result_hash"] = result_hash_
    if it.spans:
        fields["spans"] = [read_trace_span(each) for each in it.spans]
    return fields


def read_retrieval_context(it: types_pb2.RetrievalContext) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (query_hash_ := it.query_hash) or it.HasField("query_hash"):
        fields["query_hash"] = query_hash_
    if (retriever_type_ := it.retriever_type) or it.HasField("retriever_type"):
        fields["retriever_type"] = retriever_type_
    if (retrieval_timestamp_ := it.retrieval_timestamp) or it.HasField("retrieval_timestamp"):
        fields["retrieval_timestamp"] = retrieval_timestamp_
    if (rank_position_ := it.rank_position) or it.HasField("rank_position"):
        fields["rank_position"] = rank_position_
    if (relevance_score_ := it.relevance_score) or it.HasField("relevance_score"):
        fields["relevance_score"] = relevance_score_
    if (fusion_method_ := it.fusion_method):
        fields["fusion_method"] = FUSION_METHOD_WORDS[fusion_method_]
    else:
        fields["fusion_method"] = None
    if (final_rank_ := it.final_rank) or it.HasField("final_rank"):
        fields["final_rank"] = final_rank_
    if (encoder_ := it.encoder) or it.HasField("encoder"):
        fields["encoder"] = encoder_
    if (relevance_signal_ := it.relevance_signal) or it.HasField("relevance_signal"):
        fields["relevance_signal"] = relevance_signal_
    if it.HasField("leg_ranks"):
        fields["leg_ranks"] = read_integer_map(it.leg_ranks)
    return fields


def read_retrieved_document(it: types_pb2.RetrievedDocument) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (relevance_score_ := it.relevance_score):
        fields["relevance_score"] = relevance_score_
    if (source_ := it.source):
        fields["source"] = source_
    if (collection_ := it.collection):
        fields["collection"] = collection_
    if it.HasField("age_days"):
        fields["age_days"] = read_integer_or_real(it.age_days)
    if (batch_ := it.batch) or it.HasField("batch"):
        fields["batch"] = batch_
    if (chunk_id_ := it.chunk_id):
        fields["chunk_id"] = chunk_id_
    if (judged_by_ := it.judged_by):
        fields["judged_by"] = judged_by_
    return fields


def read_run_facts(it: types_pb2.RunFacts) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (agent_name_ := it.agent_name) or it.HasField("agent_name"):
        fields["agent_name"] = agent_name_
    if (workflow_name_ := it.workflow_name) != 'default' and (workflow_name_ or it.HasField("workflow_name")):
        fields["workflow_name"] = workflow_name_
    if (agent_id_ := it.agent_id):
        fields["agent_id"] = agent_id_
    if (agent_type_ := it.agent_type):
        fields["agent_type"] = agent_type_
    if (agent_group_ := it.agent_group):
        fields["agent_group"] = agent_group_
    if (user_id_ := it.user_id):
        fields["user_id"] = user_id_
    if (user_group_ := it.user_group):
        fields["user_group"] = user_group_
    if (end_user_id_ := it.end_user_id):
        fields["end_user_id"] = end_user_id_
    if (team_ := it.team):
        fields["team"] = team_
    if (tenant_ := it.tenant) != 'default' and (tenant_ or it.HasField("tenant")):
        fields["tenant"] = tenant_
    if (session_id_ := it.session_id):
        fields["session_id"] = session_id_
    if (model_ := it.model):
        fields["model"] = model_
    if (tool_ := it.tool):
        fields["tool"] = tool_
    if (parent_run_id_ := it.parent_run_id) or it.HasField("parent_run_id"):
        fields["parent_run_id"] = parent_run_id_
    if (metadata_ := it.metadata_json):
        fields["metadata"] = loads(metadata_)
    if (owner_ := it.owner):
        fields["owner"] = owner_
    if (token_id_ := it.token_id):
        fields["token_id"] = token_id_
    if (clearance_ := it.clearance):
        fields["clearance"] = clearance_
    return fields


def read_run_page(it: types_pb2.RunPage) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "runs": [read_run_summary(each) for each in it.runs],
    }
    if (next_cursor_ := it.next_cursor) or it.HasField("next_cursor"):
        fields["next_cursor"] = next_cursor_
    return fields


def read_run_span(it: types_pb2.RunSpan) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_id_ := it.span_id) or it.HasField("span_id"):
        fields["span_id"] = span_id_
    if (parent_ := it.parent) or it.HasField("parent"):
        fields["parent"] = parent_
    else:
        fields["parent"] = None
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (kind_ := it.kind) or it.HasField("kind"):
        fields["kind"] = kind_
    if (start_us_ := it.start_us) or it.HasField("start_us"):
        fields["start_us"] = start_us_
    if (duration_us_ := it.duration_us) or it.HasField("duration_us"):
        fields["duration_us"] = duration_us_
    if (attributes_ := it.attributes_json):
        fields["attributes"] = loads(attributes_)
    if it.decisions:
        fields["decisions"] = [*it.decisions]
    return fields


def read_run_summary(it: types_pb2.RunSummary) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "calls": it.calls,
        "documents": it.documents,
        "warnings": it.warnings,
        "blocks": it.blocks,
        "bypasses": it.bypasses,
        "not_enforced": it.not_enforced,
    }
    if it.HasField("facts"):
        fields["facts"] = read_run_facts(it.facts)
    if (status_ := it.status):
        fields["status"] = RUN_STATUS_WORDS[status_]
    if (started_at_ := it.started_at) or it.HasField("started_at"):
        fields["started_at"] = started_at_
    if (ended_at_ := it.ended_at) or it.HasField("ended_at"):
        fields["ended_at"] = ended_at_
    if (policies_ := it.policies) or it.HasField("policies"):
        fields["policies"] = policies_
    return fields


def read_run_trace(it: types_pb2.RunTrace) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "spans": [read_run_span(each) for each in it.spans],
    }
    if it.HasField("summary"):
        fields["summary"] = read_run_summary(it.summary)
    return fields


def read_schema_definition(it: types_pb2.SchemaDefinition) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.fields:
        fields["fields"] = [read_schema_field(each) for each in it.fields]
    if it.tables:
        fields["tables"] = {key: read_schema_field_list(each) for key, each in it.tables.items()}
    return fields


def read_schema_field(it: types_pb2.SchemaField) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "is_indexed": it.is_indexed,
        "description": it.description,
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (type_ := it.type) or it.HasField("type"):
        fields["type"] = type_
    return fields


def read_schema_field_list(it: types_pb2.SchemaFieldList) -> Any:
    """Return what the message says."""
    return [read_schema_field(each) for each in it.values]


def read_secret_kept(it: types_pb2.SecretKept) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "updated_by": it.updated_by,
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (updated_at_ := it.updated_at) or it.HasField("updated_at"):
        fields["updated_at"] = updated_at_
    return fields


def read_secret_names(it: types_pb2.SecretNames) -> Fields:
    """Return what the message says."""
    return {
        "names": [*it.names],
    }


def read_sent_document(it: types_pb2.SentDocument) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "text": it.text,
        "title": it.title,
    }
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if it.metadata:
        fields["metadata"] = {key: read_text_or_text_list(each) for key, each in it.metadata.items()}
    return fields


def read_sent_file(it: types_pb2.SentFile) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (path_ := it.path) or it.HasField("path"):
        fields["path"] = path_
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    return fields


def read_shadow_changes(it: types_pb2.ShadowChanges) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "calls": it.calls,
        "newly_blocked": it.newly_blocked,
        "newly_allowed": it.newly_allowed,
        "newly_warned": it.newly_warned,
        "no_longer_warned": it.no_longer_warned,
        "unchanged": it.unchanged,
    }
    if it.rules:
        fields["rules"] = [read_shadow_group(each) for each in it.rules]
    if it.agents:
        fields["agents"] = [read_shadow_group(each) for each in it.agents]
    if it.sources:
        fields["sources"] = [read_shadow_group(each) for each in it.sources]
    return fields


def read_shadow_example(it: types_pb2.ShadowExample) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (change_ := it.change):
        fields["change"] = CHANGE_WORDS[change_]
    return fields


def read_shadow_group(it: types_pb2.ShadowGroup) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "newly_blocked": it.newly_blocked,
        "newly_allowed": it.newly_allowed,
        "newly_warned": it.newly_warned,
        "no_longer_warned": it.no_longer_warned,
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if it.examples:
        fields["examples"] = [read_shadow_example(each) for each in it.examples]
    return fields


def read_shadow_report(it: types_pb2.ShadowReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "candidates": [*it.candidates],
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
    if it.HasField("changes"):
        fields["changes"] = read_shadow_changes(it.changes)
    return fields


def read_signal_scores(it: types_pb2.SignalScores) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "lexical": it.lexical,
    }
    if (relevance_ := it.relevance) or it.HasField("relevance"):
        fields["relevance"] = relevance_
    if (authority_ := it.authority) or it.HasField("authority"):
        fields["authority"] = authority_
    if (freshness_ := it.freshness) or it.HasField("freshness"):
        fields["freshness"] = freshness_
    if (utility_ := it.utility) or it.HasField("utility"):
        fields["utility"] = utility_
    if (fused_ := it.fused) or it.HasField("fused"):
        fields["fused"] = fused_
    if (reranked_ := it.reranked) or it.HasField("reranked"):
        fields["reranked"] = reranked_
    if (dense_ := it.dense) or it.HasField("dense"):
        fields["dense"] = dense_
    return fields


def read_signed_head(it: types_pb2.SignedHead) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "keys": [read_signing_key(each) for each in it.keys],
    }
    if it.HasField("head"):
        fields["head"] = read_base_head(it.head)
    if (signature_ := it.signature) or it.HasField("signature"):
        fields["signature"] = signature_
    return fields


def read_signing_key(it: types_pb2.SigningKey) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (base_id_ := it.base_id) or it.HasField("base_id"):
        fields["base_id"] = base_id_
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    if (public_key_ := it.public_key) or it.HasField("public_key"):
        fields["public_key"] = public_key_
    if (previous_ := it.previous) or it.HasField("previous"):
        fields["previous"] = previous_
    if (signature_ := it.signature) or it.HasField("signature"):
        fields["signature"] = signature_
    return fields


def read_skipped_input(it: types_pb2.SkippedInput) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (path_ := it.path) or it.HasField("path"):
        fields["path"] = path_
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (message_ := it.message) or it.HasField("message"):
        fields["message"] = message_
    return fields


def read_source_access_policy(it: types_pb2.SourceAccessPolicy) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "predicate": it.predicate,
    }
    if it.HasField("tenants"):
        fields["tenants"] = read_text_list(it.tenants)
    if it.roles:
        fields["roles"] = [*it.roles]
    if it.groups:
        fields["groups"] = [*it.groups]
    if it.principals:
        fields["principals"] = [*it.principals]
    if (minimum_clearance_ := it.minimum_clearance):
        fields["minimum_clearance"] = CLASSIFICATION_WORDS[minimum_clearance_]
    return fields


def read_source_connection(it: types_pb2.SourceConnection) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "address": it.address,
        "tool": it.tool,
        "key_variable": it.key_variable,
    }
    if (kind_ := it.kind):
        fields["kind"] = CONNECTION_KIND_WORDS[kind_]
    if it.options:
        fields["options"] = dict(it.options)
    return fields


def read_source_descriptor(it: types_pb2.SourceDescriptor) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "cost_per_query_micros": it.cost_per_query_micros,
    }
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (source_type_ := it.source_type):
        fields["source_type"] = SOURCE_TYPE_WORDS[source_type_]
    if it.HasField("schema"):
        fields["schema"] = read_schema_definition(it.schema)
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (freshness_sla_s_ := it.freshness_sla_s) or it.HasField("freshness_sla_s"):
        fields["freshness_sla_s"] = freshness_sla_s_
    if (latency_tier_ := it.latency_tier):
        fields["latency_tier"] = LATENCY_TIER_WORDS[latency_tier_]
    if it.HasField("access_policy"):
        fields["access_policy"] = read_source_access_policy(it.access_policy)
    if it.HasField("query_capabilities"):
        fields["query_capabilities"] = read_query_capability_list(it.query_capabilities)
    if (max_qps_ := it.max_qps) or it.HasField("max_qps"):
        fields["max_qps"] = max_qps_
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    if it.HasField("connection"):
        fields["connection"] = read_source_connection(it.connection)
    if (expected_p99_ms_ := it.expected_p99_ms) or it.HasField("expected_p99_ms"):
        fields["expected_p99_ms"] = expected_p99_ms_
    if (freshness_tau_s_ := it.freshness_tau_s) or it.HasField("freshness_tau_s"):
        fields["freshness_tau_s"] = freshness_tau_s_
    if (weight_milli_ := it.weight_milli) or it.HasField("weight_milli"):
        fields["weight_milli"] = weight_milli_
    return fields


def read_source_finished(it: types_pb2.SourceFinished) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if it.HasField("report"):
        fields["report"] = read_coverage_report(it.report)
    return fields


def read_source_health(it: types_pb2.SourceHealth) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "calls": it.calls,
        "failures": it.failures,
        "timeouts": it.timeouts,
        "last_problem": it.last_problem,
    }
    if (p50_ms_ := it.p50_ms) or it.HasField("p50_ms"):
        fields["p50_ms"] = p50_ms_
    if (p99_ms_ := it.p99_ms) or it.HasField("p99_ms"):
        fields["p99_ms"] = p99_ms_
    if (last_success_at_ := it.last_success_at) or it.HasField("last_success_at"):
        fields["last_success_at"] = last_success_at_
    if (last_failure_at_ := it.last_failure_at) or it.HasField("last_failure_at"):
        fields["last_failure_at"] = last_failure_at_
    if (breaker_ := it.breaker):
        fields["breaker"] = BREAKER_STATE_WORDS[breaker_]
    return fields


def read_source_list(it: types_pb2.SourceList) -> Fields:
    """Return what the message says."""
    return {
        "sources": [read_source_status(each) for each in it.sources],
    }


def read_source_policy(it: types_pb2.SourcePolicy) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("allowed_sources"):
        fields["allowed_sources"] = read_text_list(it.allowed_sources)
    if it.denied_sources:
        fields["denied_sources"] = [*it.denied_sources]
    if (minimum_authority_ := it.minimum_authority):
        fields["minimum_authority"] = AUTHORITY_TIER_WORDS[minimum_authority_]
    if (most_sources_ := it.most_sources) or it.HasField("most_sources"):
        fields["most_sources"] = most_sources_
    if it.HasField("acl_scope"):
        fields["acl_scope"] = read_text_list(it.acl_scope)
    return fields


def read_source_status(it: types_pb2.SourceStatus) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("descriptor"):
        fields["descriptor"] = read_source_descriptor(it.descriptor)
    if it.HasField("health"):
        fields["health"] = read_source_health(it.health)
    if (is_attached_ := it.is_attached) or it.HasField("is_attached"):
        fields["is_attached"] = is_attached_
    if (documents_ := it.documents) or it.HasField("documents"):
        fields["documents"] = documents_
    return fields


def read_source_trial(it: types_pb2.SourceTrial) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "candidates": [read_external_candidate(each) for each in it.candidates],
    }
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if it.HasField("report"):
        fields["report"] = read_coverage_report(it.report)
    return fields


def read_span_closed(it: types_pb2.SpanClosed) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (closed_ := it.closed):
        fields["closed"] = closed_
    if (sources_ := it.sources) or it.HasField("sources"):
        fields["sources"] = sources_
    if (error_ := it.error):
        fields["error"] = error_
    return fields


def read_span_opened(it: types_pb2.SpanOpened) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (opened_ := it.opened):
        fields["opened"] = opened_
    if (name_ := it.name):
        fields["name"] = name_
    if (is_retrieval_ := it.is_retrieval):
        fields["is_retrieval"] = is_retrieval_
    return fields


def read_start_reply(it: types_pb2.StartReply) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "policies": [read_policy(each) for each in it.policies],
    }
    if (run_id_ := it.run_id) or it.HasField("run_id"):
        fields["run_id"] = run_id_
    if (is_enforced_ := it.is_enforced) or it.HasField("is_enforced"):
        fields["is_enforced"] = is_enforced_
    return fields


def read_step_call(it: types_pb2.StepCall) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (name_ := it.name):
        fields["name"] = name_
    if (attributes_ := it.attributes_json):
        fields["attributes"] = loads(attributes_)
    return fields


def read_stored_chunk(it: types_pb2.StoredChunk) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (position_ := it.position) or it.HasField("position"):
        fields["position"] = position_
    if (start_ := it.start) or it.HasField("start"):
        fields["start"] = start_
    if (end_ := it.end) or it.HasField("end"):
        fields["end"] = end_
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if (content_hash_ := it.content_hash) or it.HasField("content_hash"):
        fields["content_hash"] = content_hash_
    if (text_hash_ := it.text_hash) or it.HasField("text_hash"):
        fields["text_hash"] = text_hash_
    if (custody_head_ := it.custody_head) or it.HasField("custody_head"):
        fields["custody_head"] = custody_head_
    if (event_index_ := it.event_index) or it.HasField("event_index"):
        fields["event_index"] = event_index_
    if it.HasField("metadata"):
        fields["metadata"] = read_document_metadata(it.metadata)
    if it.HasField("access"):
        fields["access"] = read_access_rule(it.access)
    if it.HasField("custody"):
        fields["custody"] = read_document_custody(it.custody)
    if (is_live_ := it.is_live) or it.HasField("is_live"):
        fields["is_live"] = is_live_
    return fields


def read_stored_policy(it: types_pb2.StoredPolicy) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "updated_by": it.updated_by,
        "is_removed": it.is_removed,
    }
    if it.HasField("policy"):
        fields["policy"] = read_policy(it.policy)
    if (created_at_ := it.created_at) or it.HasField("created_at"):
        fields["created_at"] = created_at_
    if (updated_at_ := it.updated_at) or it.HasField("updated_at"):
        fields["updated_at"] = updated_at_
    return fields


def read_stream_event(it: types_pb2.StreamEvent) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "source_finished":
        return {"event": "source_finished", **read_source_finished(it.source_finished)}
    if arm == "provisional_fragments":
        return {"event": "provisional_fragments", **read_provisional_fragments(it.provisional_fragments)}
    if arm == "final_response":
        return {"event": "final_response", **read_final_response(it.final_response)}
    return None


def read_sub_query(it: types_pb2.SubQuery) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (text_ := it.text) or it.HasField("text"):
        fields["text"] = text_
    if it.required_capabilities:
        fields["required_capabilities"] = [QUERY_CAPABILITY_WORDS[each] for each in it.required_capabilities]
    if (weight_ := it.weight) or it.HasField("weight"):
        fields["weight"] = weight_
    return fields


def read_table_answer(it: types_pb2.TableAnswer) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "declined": it.declined,
        "total": it.total,
        "omitted": it.omitted,
    }
    if (question_ := it.question) or it.HasField("question"):
        fields["question"] = question_
    if it.tables:
        fields["tables"] = [read_table_card(each) for each in it.tables]
    if it.HasField("plan"):
        fields["plan"] = read_table_plan(it.plan)
    if it.columns:
        fields["columns"] = [*it.columns]
    if it.rows:
        fields["rows"] = [read_cell_value_list(each) for each in it.rows]
    if it.sources:
        fields["sources"] = [read_text_list(each) for each in it.sources]
    if it.files:
        fields["files"] = [read_text_text_tuple(each) for each in it.files]
    if (has_tables_ := it.has_tables) or it.HasField("has_tables"):
        fields["has_tables"] = has_tables_
    return fields


def read_table_card(it: types_pb2.TableCard) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (table_id_ := it.table_id) or it.HasField("table_id"):
        fields["table_id"] = table_id_
    if (document_id_ := it.document_id) or it.HasField("document_id"):
        fields["document_id"] = document_id_
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (file_name_ := it.file_name) or it.HasField("file_name"):
        fields["file_name"] = file_name_
    if (sheet_ := it.sheet) != 1 and (sheet_ or it.HasField("sheet")):
        fields["sheet"] = sheet_
    if (sheet_name_ := it.sheet_name):
        fields["sheet_name"] = sheet_name_
    if (title_ := it.title):
        fields["title"] = title_
    if (sql_name_ := it.sql_name) or it.HasField("sql_name"):
        fields["sql_name"] = sql_name_
    if it.header_rows:
        fields["header_rows"] = [*it.header_rows]
    if (first_row_ := it.first_row):
        fields["first_row"] = first_row_
    if (last_row_ := it.last_row):
        fields["last_row"] = last_row_
    if (row_count_ := it.row_count):
        fields["row_count"] = row_count_
    if it.total_rows:
        fields["total_rows"] = [*it.total_rows]
    if it.columns:
        fields["columns"] = [read_table_column(each) for each in it.columns]
    if (content_ := it.content) or it.HasField("content"):
        fields["content"] = content_
    if it.notes:
        fields["notes"] = [*it.notes]
    return fields


def read_table_column(it: types_pb2.TableColumn) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (sql_name_ := it.sql_name) or it.HasField("sql_name"):
        fields["sql_name"] = sql_name_
    if (kind_ := it.kind):
        fields["kind"] = COLUMN_KIND_WORDS[kind_]
    if (unit_ := it.unit):
        fields["unit"] = unit_
    if (position_ := it.position):
        fields["position"] = position_
    if (distinct_ := it.distinct):
        fields["distinct"] = distinct_
    if (missing_ := it.missing):
        fields["missing"] = missing_
    if it.samples:
        fields["samples"] = [*it.samples]
    return fields


def read_table_content(it: types_pb2.TableContent) -> Fields:
    """Return what the message says."""
    return {
        "rows": [*it.rows],
        "columns": [read_cell_value_list(each) for each in it.columns],
    }


def read_table_list(it: types_pb2.TableList) -> Fields:
    """Return what the message says."""
    return {
        "tables": [read_table_card(each) for each in it.tables],
    }


def read_table_plan(it: types_pb2.TablePlan) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "support": it.support,
        "planner": it.planner,
    }
    if (statement_ := it.statement) or it.HasField("statement"):
        fields["statement"] = statement_
    if it.parameters:
        fields["parameters"] = [read_cell_value(each) for each in it.parameters]
    if it.tables:
        fields["tables"] = [*it.tables]
    if it.reading:
        fields["reading"] = [*it.reading]
    if (confidence_ := it.confidence) or it.HasField("confidence"):
        fields["confidence"] = confidence_
    return fields


def read_task(it: types_pb2.Task) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "text": it.text,
    }
    if (type_ := it.type) or it.HasField("type"):
        fields["type"] = type_
    return fields


def read_task_opened(it: types_pb2.TaskOpened) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (task_ := it.task):
        fields["task"] = TASK_KIND_WORDS[task_]
    if (question_type_ := it.question_type):
        fields["question_type"] = QUESTION_TYPE_WORDS[question_type_]
    if (breadth_ := it.breadth):
        fields["breadth"] = BREADTH_WORDS[breadth_]
    if (question_hash_ := it.question_hash) or it.HasField("question_hash"):
        fields["question_hash"] = question_hash_
    if it.skills:
        fields["skills"] = [*it.skills]
    if (has_self_knowledge_ := it.has_self_knowledge) or it.HasField("has_self_knowledge"):
        fields["has_self_knowledge"] = has_self_knowledge_
    return fields


def read_term_score(it: types_pb2.TermScore) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (term_ := it.term) or it.HasField("term"):
        fields["term"] = term_
    if (score_ := it.score) or it.HasField("score"):
        fields["score"] = score_
    if (frequency_ := it.frequency) or it.HasField("frequency"):
        fields["frequency"] = frequency_
    if (containing_ := it.containing) or it.HasField("containing"):
        fields["containing"] = containing_
    if (documents_ := it.documents) or it.HasField("documents"):
        fields["documents"] = documents_
    if (length_ := it.length) or it.HasField("length"):
        fields["length"] = length_
    if (idf_ := it.idf) or it.HasField("idf"):
        fields["idf"] = idf_
    if (in_context_ := it.in_context):
        fields["in_context"] = in_context_
    return fields


def read_text_list(it: types_pb2.TextList) -> Any:
    """Return what the message says."""
    return [*it.values]


def read_text_or_text_list(it: types_pb2.TextOrTextList) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "text":
        return it.text
    if arm == "list":
        return read_text_list(it.list)
    return None


def read_text_text_tuple(it: types_pb2.TextTextTuple) -> Any:
    """Return what the message says."""
    return [it.first, it.second]


def read_tier_stats(it: types_pb2.TierStats) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "finds": it.finds,
        "hits": it.hits,
        "reused": it.reused,
        "stale_hits": it.stale_hits,
        "entries": it.entries,
    }
    if (tier_ := it.tier):
        fields["tier"] = CACHE_TIER_WORDS[tier_]
    return fields


def read_time_window(it: types_pb2.TimeWindow) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (start_ := it.start) or it.HasField("start"):
        fields["start"] = start_
    if (end_ := it.end) or it.HasField("end"):
        fields["end"] = end_
    return fields


def read_token_facts(it: types_pb2.TokenFacts) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (clearance_ := it.clearance):
        fields["clearance"] = CLASSIFICATION_WORDS[clearance_]
    if it.groups:
        fields["groups"] = [*it.groups]
    if it.attributes:
        fields["attributes"] = dict(it.attributes)
    if (is_delegate_ := it.is_delegate):
        fields["is_delegate"] = is_delegate_
    if it.HasField("limits") and (limits_ := read_token_limits(it.limits)):
        fields["limits"] = limits_
    if (floor_ := it.floor):
        fields["floor"] = GOVERNANCE_MODE_WORDS[floor_]
    if it.agents:
        fields["agents"] = [*it.agents]
    return fields


def read_token_info(it: types_pb2.TokenInfo) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "roles": [ROLE_WORDS[each] for each in it.roles],
        "created_by": it.created_by,
    }
    if (token_id_ := it.token_id) or it.HasField("token_id"):
        fields["token_id"] = token_id_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (tenant_ := it.tenant) or it.HasField("tenant"):
        fields["tenant"] = tenant_
    if (created_at_ := it.created_at) or it.HasField("created_at"):
        fields["created_at"] = created_at_
    if (expires_at_ := it.expires_at) or it.HasField("expires_at"):
        fields["expires_at"] = expires_at_
    if (revoked_at_ := it.revoked_at) or it.HasField("revoked_at"):
        fields["revoked_at"] = revoked_at_
    if it.HasField("facts"):
        fields["facts"] = read_token_facts(it.facts)
    return fields


def read_token_limits(it: types_pb2.TokenLimits) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (requests_per_minute_ := it.requests_per_minute) or it.HasField("requests_per_minute"):
        fields["requests_per_minute"] = requests_per_minute_
    if (requests_per_day_ := it.requests_per_day) or it.HasField("requests_per_day"):
        fields["requests_per_day"] = requests_per_day_
    if (request_mb_ := it.request_mb) or it.HasField("request_mb"):
        fields["request_mb"] = request_mb_
    return fields


def read_token_list(it: types_pb2.TokenList) -> Fields:
    """Return what the message says."""
    return {
        "tokens": [read_token_info(each) for each in it.tokens],
    }


def read_tool_answered(it: types_pb2.ToolAnswered) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (call_ := it.call):
        fields["call"] = call_
    if (results_ := it.results):
        fields["results"] = results_
    if it.shortfalls:
        fields["shortfalls"] = [SHORTFALL_WORDS[each] for each in it.shortfalls]
    if (total_ := it.total) or it.HasField("total"):
        fields["total"] = total_
    if (displayed_ := it.displayed) or it.HasField("displayed"):
        fields["displayed"] = displayed_
    if (omitted_ := it.omitted) or it.HasField("omitted"):
        fields["omitted"] = omitted_
    if (images_ := it.images):
        fields["images"] = images_
    return fields


def read_tool_asked(it: types_pb2.ToolAsked) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (call_ := it.call):
        fields["call"] = call_
    if (name_ := it.name):
        fields["name"] = name_
    if (role_ := it.role):
        fields["role"] = TOOL_ROLE_WORDS[role_]
    if (is_knowledge_ := it.is_knowledge) != True and (is_knowledge_ or it.HasField("is_knowledge")):
        fields["is_knowledge"] = is_knowledge_
    if (top_k_ := it.top_k) or it.HasField("top_k"):
        fields["top_k"] = top_k_
    if (query_hash_ := it.query_hash) or it.HasField("query_hash"):
        fields["query_hash"] = query_hash_
    if (is_raw_ := it.is_raw):
        fields["is_raw"] = is_raw_
    if (works_raw_ := it.works_raw):
        fields["works_raw"] = works_raw_
    if (containment_ := it.containment) != 1.0 and (containment_ or it.HasField("containment")):
        fields["containment"] = containment_
    if (strays_ := it.strays):
        fields["strays"] = strays_
    if (is_explicit_file_ := it.is_explicit_file):
        fields["is_explicit_file"] = is_explicit_file_
    return fields


def read_tool_call(it: types_pb2.ToolCall) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (span_ := it.span) or it.HasField("span"):
        fields["span"] = span_
    if (name_ := it.name):
        fields["name"] = name_
    if (is_retrieval_ := it.is_retrieval):
        fields["is_retrieval"] = is_retrieval_
    if (duration_ms_ := it.duration_ms):
        fields["duration_ms"] = duration_ms_
    if (sources_ := it.sources) or it.HasField("sources"):
        fields["sources"] = sources_
    if (error_ := it.error):
        fields["error"] = error_
    if (attributes_ := it.attributes_json):
        fields["attributes"] = loads(attributes_)
    return fields


def read_tool_stamp(it: types_pb2.ToolStamp) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (tool_id_ := it.tool_id) or it.HasField("tool_id"):
        fields["tool_id"] = tool_id_
    if (tool_version_ := it.tool_version) or it.HasField("tool_version"):
        fields["tool_version"] = tool_version_
    if (timestamp_ := it.timestamp) or it.HasField("timestamp"):
        fields["timestamp"] = timestamp_
    return fields


def read_trace_list(it: types_pb2.TraceList) -> Fields:
    """Return what the message says."""
    return {
        "traces": [read_request_trace(each) for each in it.traces],
    }


def read_trace_span(it: types_pb2.TraceSpan) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "note": it.note,
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (kind_ := it.kind) or it.HasField("kind"):
        fields["kind"] = kind_
    if (start_ms_ := it.start_ms) or it.HasField("start_ms"):
        fields["start_ms"] = start_ms_
    if (duration_ms_ := it.duration_ms) or it.HasField("duration_ms"):
        fields["duration_ms"] = duration_ms_
    if (state_ := it.state):
        fields["state"] = COVERAGE_STATE_WORDS[state_]
    if it.attributes:
        fields["attributes"] = {key: read_cell_value(each) for key, each in it.attributes.items()}
    return fields


def read_transformation_entry(it: types_pb2.TransformationEntry) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("record"):
        fields["record"] = read_transformation_record(it.record)
    if (hash_ := it.hash) or it.HasField("hash"):
        fields["hash"] = hash_
    return fields


def read_transformation_record(it: types_pb2.TransformationRecord) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (step_ := it.step) or it.HasField("step"):
        fields["step"] = step_
    if (tool_id_ := it.tool_id) or it.HasField("tool_id"):
        fields["tool_id"] = tool_id_
    if (tool_version_ := it.tool_version) or it.HasField("tool_version"):
        fields["tool_version"] = tool_version_
    if (timestamp_ := it.timestamp) or it.HasField("timestamp"):
        fields["timestamp"] = timestamp_
    if (input_hash_ := it.input_hash) or it.HasField("input_hash"):
        fields["input_hash"] = input_hash_
    if (output_hash_ := it.output_hash) or it.HasField("output_hash"):
        fields["output_hash"] = output_hash_
    if it.parameters:
        fields["parameters"] = {key: read_integer_or_text(each) for key, each in it.parameters.items()}
    return fields


def read_trigger_rate(it: types_pb2.TriggerRate) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (threshold_ := it.threshold) or it.HasField("threshold"):
        fields["threshold"] = threshold_
    if (values_ := it.values) or it.HasField("values"):
        fields["values"] = values_
    if (value_triggers_ := it.value_triggers) or it.HasField("value_triggers"):
        fields["value_triggers"] = value_triggers_
    if (runs_ := it.runs) or it.HasField("runs"):
        fields["runs"] = runs_
    if (run_triggers_ := it.run_triggers) or it.HasField("run_triggers"):
        fields["run_triggers"] = run_triggers_
    return fields


def read_trust_metadata(it: types_pb2.TrustMetadata) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "conflict_flag": it.conflict_flag,
    }
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (confidence_ := it.confidence) or it.HasField("confidence"):
        fields["confidence"] = confidence_
    if it.verified_by:
        fields["verified_by"] = [*it.verified_by]
    if (last_verification_ := it.last_verification) or it.HasField("last_verification"):
        fields["last_verification"] = last_verification_
    if (staleness_s_ := it.staleness_s) or it.HasField("staleness_s"):
        fields["staleness_s"] = staleness_s_
    return fields


def read_turn(it: types_pb2.Turn) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (role_ := it.role) or it.HasField("role"):
        fields["role"] = role_
    if (text_ := it.text) or it.HasField("text"):
        fields["text"] = text_
    return fields


def read_value(it: types_pb2.Value) -> Any:
    """Return what the message says."""
    arm = it.WhichOneof("kind")
    if arm == "number":
        return read_number(it.number)
    if arm == "truth":
        return it.truth
    if arm == "integer":
        return it.integer
    if arm == "text":
        return it.text
    return None


def read_vector_identity(it: types_pb2.VectorIdentity) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (model_ := it.model) or it.HasField("model"):
        fields["model"] = model_
    if (dimension_ := it.dimension) or it.HasField("dimension"):
        fields["dimension"] = dimension_
    if (normalisation_ := it.normalisation) or it.HasField("normalisation"):
        fields["normalisation"] = normalisation_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    return fields


def read_verdict(it: types_pb2.Verdict) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "evaluations": [read_evaluation(each) for each in it.evaluations],
    }
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if it.HasField("decisive"):
        fields["decisive"] = read_evaluation(it.decisive)
    if (is_enforced_ := it.is_enforced) or it.HasField("is_enforced"):
        fields["is_enforced"] = is_enforced_
    if (abstention_response_ := it.abstention_response) or it.HasField("abstention_response"):
        fields["abstention_response"] = abstention_response_
    return fields


def read_verify_report(it: types_pb2.VerifyReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "fragments": it.fragments,
        "documents": it.documents,
        "events": it.events,
        "commits": it.commits,
        "signed_by": it.signed_by,
    }
    if (ok_ := it.ok) or it.HasField("ok"):
        fields["ok"] = ok_
    if (target_ := it.target) or it.HasField("target"):
        fields["target"] = target_
    if it.broken:
        fields["broken"] = [read_broken_link(each) for each in it.broken]
    if (custody_format_ := it.custody_format) or it.HasField("custody_format"):
        fields["custody_format"] = custody_format_
    return fields


def read_version_diff(it: types_pb2.VersionDiff) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "note": it.note,
    }
    if it.HasField("older"):
        fields["older"] = read_version_summary(it.older)
    if it.HasField("newer"):
        fields["newer"] = read_version_summary(it.newer)
    if it.HasField("added"):
        fields["added"] = read_changed_documents(it.added)
    if it.HasField("removed"):
        fields["removed"] = read_changed_documents(it.removed)
    if it.HasField("changed"):
        fields["changed"] = read_changed_documents(it.changed)
    if it.HasField("metadata_changed"):
        fields["metadata_changed"] = read_changed_documents(it.metadata_changed)
    if it.HasField("access_changed"):
        fields["access_changed"] = read_changed_documents(it.access_changed)
    return fields


def read_version_list(it: types_pb2.VersionList) -> Fields:
    """Return what the message says."""
    return {
        "versions": [read_version_summary(each) for each in it.versions],
    }


def read_version_summary(it: types_pb2.VersionSummary) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if (at_ := it.at) or it.HasField("at"):
        fields["at"] = at_
    if (is_kept_ := it.is_kept) or it.HasField("is_kept"):
        fields["is_kept"] = is_kept_
    if (documents_ := it.documents) or it.HasField("documents"):
        fields["documents"] = documents_
    if (chunks_ := it.chunks) or it.HasField("chunks"):
        fields["chunks"] = chunks_
    return fields


def read_warm_report(it: types_pb2.WarmReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "coverage": {key: read_coverage_report_map(each) for key, each in it.coverage.items()},
    }
    if (questions_ := it.questions) or it.HasField("questions"):
        fields["questions"] = questions_
    if (kept_ := it.kept) or it.HasField("kept"):
        fields["kept"] = kept_
    return fields


def read_why_report(it: types_pb2.WhyReport) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "terms": [read_term_score(each) for each in it.terms],
    }
    if (receipt_id_ := it.receipt_id) or it.HasField("receipt_id"):
        fields["receipt_id"] = receipt_id_
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (stage_ := it.stage) or it.HasField("stage"):
        fields["stage"] = stage_
    if (rank_ := it.rank) or it.HasField("rank"):
        fields["rank"] = rank_
    else:
        fields["rank"] = None
    if (score_ := it.score) or it.HasField("score"):
        fields["score"] = score_
    if it.HasField("scores"):
        fields["scores"] = read_signal_scores(it.scores)
    else:
        fields["scores"] = None
    if (confidence_ := it.confidence) or it.HasField("confidence"):
        fields["confidence"] = confidence_
    else:
        fields["confidence"] = None
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    if (smallest_change_ := it.smallest_change) or it.HasField("smallest_change"):
        fields["smallest_change"] = smallest_change_
    return fields


def read_withheld_fragment(it: types_pb2.WithheldFragment) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (chunk_id_ := it.chunk_id) or it.HasField("chunk_id"):
        fields["chunk_id"] = chunk_id_
    if (reason_ := it.reason) or it.HasField("reason"):
        fields["reason"] = reason_
    return fields


def read_collect_request(it: administration_service_pb2.CollectRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (keep_versions_ := it.keep_versions) or it.HasField("keep_versions"):
        fields["keep_versions"] = keep_versions_
    return fields


def read_collect_response(it: administration_service_pb2.CollectResponse) -> Any:
    """Return what the message says."""
    return read_gc_report(it.gc_report)


def read_doctor_request(it: administration_service_pb2.DoctorRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_doctor_response(it: administration_service_pb2.DoctorResponse) -> Any:
    """Return what the message says."""
    return read_doctor_report(it.doctor_report)


def read_embed_request(it: administration_service_pb2.EmbedRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_embed_response(it: administration_service_pb2.EmbedResponse) -> Any:
    """Return what the message says."""
    return read_embed_report(it.embed_report)


def read_flush_cache_request(it: administration_service_pb2.FlushCacheRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    return fields


def read_flush_cache_response(it: administration_service_pb2.FlushCacheResponse) -> Any:
    """Return what the message says."""
    return read_count(it.count)


def read_issue_token_request(it: administration_service_pb2.IssueTokenRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "roles": [ROLE_WORDS[each] for each in it.roles],
    }
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (expires_at_ := it.expires_at) or it.HasField("expires_at"):
        fields["expires_at"] = expires_at_
    if it.HasField("facts") and (facts_ := read_token_facts(it.facts)):
        fields["facts"] = facts_
    return fields


def read_issue_token_response(it: administration_service_pb2.IssueTokenResponse) -> Any:
    """Return what the message says."""
    return read_issued_token(it.issued_token)


def read_list_changes_request(it: administration_service_pb2.ListChangesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_changes_response(it: administration_service_pb2.ListChangesResponse) -> Any:
    """Return what the message says."""
    return read_audit_page(it.audit_page)


def read_list_secrets_request(it: administration_service_pb2.ListSecretsRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_secrets_response(it: administration_service_pb2.ListSecretsResponse) -> Any:
    """Return what the message says."""
    return read_secret_names(it.secret_names)


def read_list_tokens_request(it: administration_service_pb2.ListTokensRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_tokens_response(it: administration_service_pb2.ListTokensResponse) -> Any:
    """Return what the message says."""
    return read_token_list(it.token_list)


def read_list_traces_request(it: administration_service_pb2.ListTracesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_traces_response(it: administration_service_pb2.ListTracesResponse) -> Any:
    """Return what the message says."""
    return read_trace_list(it.trace_list)


def read_list_versions_request(it: administration_service_pb2.ListVersionsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_versions_response(it: administration_service_pb2.ListVersionsResponse) -> Any:
    """Return what the message says."""
    return read_version_list(it.version_list)


def read_put_secret_request(it: administration_service_pb2.PutSecretRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (value_ := it.value) or it.HasField("value"):
        fields["value"] = value_
    return fields


def read_put_secret_response(it: administration_service_pb2.PutSecretResponse) -> Any:
    """Return what the message says."""
    return read_secret_kept(it.secret_kept)


def read_remove_secret_request(it: administration_service_pb2.RemoveSecretRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    return fields


def read_remove_secret_response(it: administration_service_pb2.RemoveSecretResponse) -> Any:
    """Return what the message says."""
    return read_secret_kept(it.secret_kept)


def read_revoke_token_request(it: administration_service_pb2.RevokeTokenRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_revoke_token_response(it: administration_service_pb2.RevokeTokenResponse) -> Any:
    """Return what the message says."""
    return read_token_info(it.token_info)


def read_show_cache_request(it: administration_service_pb2.ShowCacheRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_show_cache_response(it: administration_service_pb2.ShowCacheResponse) -> Any:
    """Return what the message says."""
    return read_cache_stats(it.cache_stats)


def read_show_consistency_request(it: administration_service_pb2.ShowConsistencyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (first_size_ := it.first_size) != 0 and (first_size_ or it.HasField("first_size")):
        fields["first_size"] = first_size_
    return fields


def read_show_consistency_response(it: administration_service_pb2.ShowConsistencyResponse) -> Any:
    """Return what the message says."""
    return read_consistency_proof(it.consistency_proof)


def read_show_diff_request(it: administration_service_pb2.ShowDiffRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (older_ := it.older) or it.HasField("older"):
        fields["older"] = older_
    if (newer_ := it.newer) or it.HasField("newer"):
        fields["newer"] = newer_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_show_diff_response(it: administration_service_pb2.ShowDiffResponse) -> Any:
    """Return what the message says."""
    return read_version_diff(it.version_diff)


def read_show_head_request(it: administration_service_pb2.ShowHeadRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_show_head_response(it: administration_service_pb2.ShowHeadResponse) -> Any:
    """Return what the message says."""
    return read_commit_summary(it.commit_summary)


def read_show_request_request(it: administration_service_pb2.ShowRequestRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_show_request_response(it: administration_service_pb2.ShowRequestResponse) -> Any:
    """Return what the message says."""
    return read_request_trace(it.request_trace)


def read_show_secret_request(it: administration_service_pb2.ShowSecretRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    return fields


def read_show_secret_response(it: administration_service_pb2.ShowSecretResponse) -> Any:
    """Return what the message says."""
    return read_secret_kept(it.secret_kept)


def read_show_signed_head_request(it: administration_service_pb2.ShowSignedHeadRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (sequence_ := it.sequence) or it.HasField("sequence"):
        fields["sequence"] = sequence_
    return fields


def read_show_signed_head_response(it: administration_service_pb2.ShowSignedHeadResponse) -> Any:
    """Return what the message says."""
    return read_signed_head(it.signed_head)


def read_verify_base_request(it: administration_service_pb2.VerifyBaseRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_verify_base_response(it: administration_service_pb2.VerifyBaseResponse) -> Any:
    """Return what the message says."""
    return read_verify_report(it.verify_report)


def read_warm_cache_request(it: administration_service_pb2.WarmCacheRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.questions:
        fields["questions"] = [*it.questions]
    return fields


def read_warm_cache_response(it: administration_service_pb2.WarmCacheResponse) -> Any:
    """Return what the message says."""
    return read_warm_report(it.warm_report)


def read_add_source_request(it: evidence_service_pb2.AddSourceRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (source_id_ := it.source_id) or it.HasField("source_id"):
        fields["source_id"] = source_id_
    if (source_type_ := it.source_type):
        fields["source_type"] = SOURCE_TYPE_WORDS[source_type_]
    if it.HasField("schema"):
        fields["schema"] = read_schema_definition(it.schema)
    if (authority_tier_ := it.authority_tier):
        fields["authority_tier"] = AUTHORITY_TIER_WORDS[authority_tier_]
    if (freshness_sla_s_ := it.freshness_sla_s) or it.HasField("freshness_sla_s"):
        fields["freshness_sla_s"] = freshness_sla_s_
    if (latency_tier_ := it.latency_tier):
        fields["latency_tier"] = LATENCY_TIER_WORDS[latency_tier_]
    if it.HasField("access_policy"):
        fields["access_policy"] = read_source_access_policy(it.access_policy)
    if it.HasField("query_capabilities"):
        fields["query_capabilities"] = read_query_capability_list(it.query_capabilities)
    if (cost_per_query_micros_ := it.cost_per_query_micros):
        fields["cost_per_query_micros"] = cost_per_query_micros_
    if (max_qps_ := it.max_qps) or it.HasField("max_qps"):
        fields["max_qps"] = max_qps_
    if (version_ := it.version) != '1.0.0' and (version_ or it.HasField("version")):
        fields["version"] = version_
    if it.HasField("connection"):
        fields["connection"] = read_source_connection(it.connection)
    if (expected_p99_ms_ := it.expected_p99_ms) or it.HasField("expected_p99_ms"):
        fields["expected_p99_ms"] = expected_p99_ms_
    if (freshness_tau_s_ := it.freshness_tau_s) or it.HasField("freshness_tau_s"):
        fields["freshness_tau_s"] = freshness_tau_s_
    if (weight_milli_ := it.weight_milli) != 1000 and (weight_milli_ or it.HasField("weight_milli")):
        fields["weight_milli"] = weight_milli_
    return fields


def read_add_source_response(it: evidence_service_pb2.AddSourceResponse) -> Any:
    """Return what the message says."""
    return read_source_descriptor(it.source_descriptor)


def read_ask_tables_request(it: evidence_service_pb2.AskTablesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (question_ := it.question) or it.HasField("question"):
        fields["question"] = question_
    if (limit_ := it.limit) != 200 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_ask_tables_response(it: evidence_service_pb2.AskTablesResponse) -> Any:
    """Return what the message says."""
    return read_table_answer(it.table_answer)


def read_export_request(it: evidence_service_pb2.ExportRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (chunk_ := it.chunk) or it.HasField("chunk"):
        fields["chunk"] = chunk_
    return fields


def read_export_response(it: evidence_service_pb2.ExportResponse) -> Any:
    """Return what the message says."""
    return read_fragment_export(it.fragment_export)


def read_forget_request(it: evidence_service_pb2.ForgetRequest) -> Fields:
    """Return what the message says."""
    return {
        "note_ids": [*it.note_ids],
    }


def read_forget_response(it: evidence_service_pb2.ForgetResponse) -> Any:
    """Return what the message says."""
    return read_count(it.count)


def read_ingest_request(it: evidence_service_pb2.IngestRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.documents:
        fields["documents"] = [read_sent_document(each) for each in it.documents]
    if it.files:
        fields["files"] = [read_sent_file(each) for each in it.files]
    if (source_ := it.source) != 'documents' and (source_ or it.HasField("source")):
        fields["source"] = source_
    if (authority_ := it.authority):
        fields["authority"] = AUTHORITY_TIER_WORDS[authority_]
    if (classification_ := it.classification):
        fields["classification"] = CLASSIFICATION_WORDS[classification_]
    if it.acl:
        fields["acl"] = [*it.acl]
    if it.tags:
        fields["tags"] = [*it.tags]
    if (embed_ := it.embed) != True and (embed_ or it.HasField("embed")):
        fields["embed"] = embed_
    return fields


def read_ingest_response(it: evidence_service_pb2.IngestResponse) -> Any:
    """Return what the message says."""
    return read_ingest_report(it.ingest_report)


def read_list_chunks_request(it: evidence_service_pb2.ListChunksRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (document_ := it.document) or it.HasField("document"):
        fields["document"] = document_
    return fields


def read_list_chunks_response(it: evidence_service_pb2.ListChunksResponse) -> Any:
    """Return what the message says."""
    return read_chunk_list(it.chunk_list)


def read_list_documents_request(it: evidence_service_pb2.ListDocumentsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_documents_response(it: evidence_service_pb2.ListDocumentsResponse) -> Any:
    """Return what the message says."""
    return read_document_page(it.document_page)


def read_list_freshness_request(it: evidence_service_pb2.ListFreshnessRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_freshness_response(it: evidence_service_pb2.ListFreshnessResponse) -> Any:
    """Return what the message says."""
    return read_freshness_list(it.freshness_list)


def read_list_notes_request(it: evidence_service_pb2.ListNotesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (session_ := it.session) or it.HasField("session"):
        fields["session"] = session_
    return fields


def read_list_notes_response(it: evidence_service_pb2.ListNotesResponse) -> Any:
    """Return what the message says."""
    return read_note_list(it.note_list)


def read_list_sources_request(it: evidence_service_pb2.ListSourcesRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_sources_response(it: evidence_service_pb2.ListSourcesResponse) -> Any:
    """Return what the message says."""
    return read_source_list(it.source_list)


def read_list_tables_request(it: evidence_service_pb2.ListTablesRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_tables_response(it: evidence_service_pb2.ListTablesResponse) -> Any:
    """Return what the message says."""
    return read_table_list(it.table_list)


def read_open_table_request(it: evidence_service_pb2.OpenTableRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (table_ := it.table) or it.HasField("table"):
        fields["table"] = table_
    return fields


def read_open_table_response(it: evidence_service_pb2.OpenTableResponse) -> Any:
    """Return what the message says."""
    return read_open_table(it.open_table)


def read_remember_request(it: evidence_service_pb2.RememberRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (text_ := it.text) or it.HasField("text"):
        fields["text"] = text_
    if (title_ := it.title):
        fields["title"] = title_
    if (agent_ := it.agent):
        fields["agent"] = agent_
    if (session_ := it.session):
        fields["session"] = session_
    if (authority_ := it.authority):
        fields["authority"] = AUTHORITY_TIER_WORDS[authority_]
    if (ttl_s_ := it.ttl_s) or it.HasField("ttl_s"):
        fields["ttl_s"] = ttl_s_
    return fields


def read_remember_response(it: evidence_service_pb2.RememberResponse) -> Any:
    """Return what the message says."""
    return read_note(it.note)


def read_remove_documents_request(it: evidence_service_pb2.RemoveDocumentsRequest) -> Fields:
    """Return what the message says."""
    return {
        "document_ids": [*it.document_ids],
    }


def read_remove_documents_response(it: evidence_service_pb2.RemoveDocumentsResponse) -> Any:
    """Return what the message says."""
    return read_commit_summary(it.commit_summary)


def read_remove_source_request(it: evidence_service_pb2.RemoveSourceRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_remove_source_response(it: evidence_service_pb2.RemoveSourceResponse) -> Any:
    """Return what the message says."""
    return read_done(it.done)


def read_replay_request(it: evidence_service_pb2.ReplayRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_replay_response(it: evidence_service_pb2.ReplayResponse) -> Any:
    """Return what the message says."""
    return read_replay_report(it.replay_report)


def read_retrieve_request(it: evidence_service_pb2.RetrieveRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("query"):
        fields["query"] = read_decomposed_query_or_text(it.query)
    if it.HasField("source_policy"):
        fields["source_policy"] = read_source_policy(it.source_policy)
    if (token_budget_ := it.token_budget) or it.HasField("token_budget"):
        fields["token_budget"] = token_budget_
    if (latency_deadline_ms_ := it.latency_deadline_ms) != 500 and (latency_deadline_ms_ or it.HasField("latency_deadline_ms")):
        fields["latency_deadline_ms"] = latency_deadline_ms_
    if it.HasField("ranking_weights"):
        fields["ranking_weights"] = read_ranking_weights(it.ranking_weights)
    if (diversity_constraint_ := it.diversity_constraint) != 0.7 and (diversity_constraint_ or it.HasField("diversity_constraint")):
        fields["diversity_constraint"] = diversity_constraint_
    if (provenance_required_ := it.provenance_required) != True and (provenance_required_ or it.HasField("provenance_required")):
        fields["provenance_required"] = provenance_required_
    if (session_context_ := it.session_context) or it.HasField("session_context"):
        fields["session_context"] = session_context_
    if (as_of_ := it.as_of) or it.HasField("as_of"):
        fields["as_of"] = as_of_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if it.HasField("principal"):
        fields["principal"] = read_principal(it.principal)
    if (agent_name_ := it.agent_name) or it.HasField("agent_name"):
        fields["agent_name"] = agent_name_
    if it.turns:
        fields["turns"] = [read_turn(each) for each in it.turns]
    if it.HasField("task"):
        fields["task"] = read_task(it.task)
    if it.HasField("time_window"):
        fields["time_window"] = read_time_window(it.time_window)
    if it.HasField("filter"):
        fields["filter"] = read_predicate_or_text(it.filter)
    if it.facets:
        fields["facets"] = [*it.facets]
    if (mode_ := it.mode):
        fields["mode"] = RETRIEVAL_MODE_WORDS[mode_]
    if (fusion_ := it.fusion):
        fields["fusion"] = FUSION_METHOD_WORDS[fusion_]
    if (limit_ := it.limit) or it.HasField("limit"):
        fields["limit"] = limit_
    if (cost_budget_micros_ := it.cost_budget_micros) or it.HasField("cost_budget_micros"):
        fields["cost_budget_micros"] = cost_budget_micros_
    if (max_staleness_ms_ := it.max_staleness_ms) or it.HasField("max_staleness_ms"):
        fields["max_staleness_ms"] = max_staleness_ms_
    if (governance_ := it.governance):
        fields["governance"] = GOVERNANCE_MODE_WORDS[governance_]
    if (explain_ := it.explain):
        fields["explain"] = explain_
    if it.without:
        fields["without"] = [QUERY_STEP_NAME_WORDS[each] for each in it.without]
    if (early_stop_ := it.early_stop):
        fields["early_stop"] = early_stop_
    if (rerank_ := it.rerank) != True and (rerank_ or it.HasField("rerank")):
        fields["rerank"] = rerank_
    if (tokenizer_ := it.tokenizer) != 'o200k_base' and (tokenizer_ or it.HasField("tokenizer")):
        fields["tokenizer"] = tokenizer_
    if (receipt_ := it.receipt) != True and (receipt_ or it.HasField("receipt")):
        fields["receipt"] = receipt_
    if (on_timeout_ := it.on_timeout):
        fields["on_timeout"] = ON_TIMEOUT_WORDS[on_timeout_]
    return fields


def read_retrieve_response(it: evidence_service_pb2.RetrieveResponse) -> Any:
    """Return what the message says."""
    return read_evidence_response(it.evidence_response)


def read_retrieve_stream_request(it: evidence_service_pb2.RetrieveStreamRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("query"):
        fields["query"] = read_decomposed_query_or_text(it.query)
    if it.HasField("source_policy"):
        fields["source_policy"] = read_source_policy(it.source_policy)
    if (token_budget_ := it.token_budget) or it.HasField("token_budget"):
        fields["token_budget"] = token_budget_
    if (latency_deadline_ms_ := it.latency_deadline_ms) != 500 and (latency_deadline_ms_ or it.HasField("latency_deadline_ms")):
        fields["latency_deadline_ms"] = latency_deadline_ms_
    if it.HasField("ranking_weights"):
        fields["ranking_weights"] = read_ranking_weights(it.ranking_weights)
    if (diversity_constraint_ := it.diversity_constraint) != 0.7 and (diversity_constraint_ or it.HasField("diversity_constraint")):
        fields["diversity_constraint"] = diversity_constraint_
    if (provenance_required_ := it.provenance_required) != True and (provenance_required_ or it.HasField("provenance_required")):
        fields["provenance_required"] = provenance_required_
    if (session_context_ := it.session_context) or it.HasField("session_context"):
        fields["session_context"] = session_context_
    if (as_of_ := it.as_of) or it.HasField("as_of"):
        fields["as_of"] = as_of_
    if (corpus_version_ := it.corpus_version) or it.HasField("corpus_version"):
        fields["corpus_version"] = corpus_version_
    if (evidence_state_ := it.evidence_state) or it.HasField("evidence_state"):
        fields["evidence_state"] = evidence_state_
    if it.HasField("principal"):
        fields["principal"] = read_principal(it.principal)
    if (agent_name_ := it.agent_name) or it.HasField("agent_name"):
        fields["agent_name"] = agent_name_
    if it.turns:
        fields["turns"] = [read_turn(each) for each in it.turns]
    if it.HasField("task"):
        fields["task"] = read_task(it.task)
    if it.HasField("time_window"):
        fields["time_window"] = read_time_window(it.time_window)
    if it.HasField("filter"):
        fields["filter"] = read_predicate_or_text(it.filter)
    if it.facets:
        fields["facets"] = [*it.facets]
    if (mode_ := it.mode):
        fields["mode"] = RETRIEVAL_MODE_WORDS[mode_]
    if (fusion_ := it.fusion):
        fields["fusion"] = FUSION_METHOD_WORDS[fusion_]
    if (limit_ := it.limit) or it.HasField("limit"):
        fields["limit"] = limit_
    if (cost_budget_micros_ := it.cost_budget_micros) or it.HasField("cost_budget_micros"):
        fields["cost_budget_micros"] = cost_budget_micros_
    if (max_staleness_ms_ := it.max_staleness_ms) or it.HasField("max_staleness_ms"):
        fields["max_staleness_ms"] = max_staleness_ms_
    if (governance_ := it.governance):
        fields["governance"] = GOVERNANCE_MODE_WORDS[governance_]
    if (explain_ := it.explain):
        fields["explain"] = explain_
    if it.without:
        fields["without"] = [QUERY_STEP_NAME_WORDS[each] for each in it.without]
    if (early_stop_ := it.early_stop):
        fields["early_stop"] = early_stop_
    if (rerank_ := it.rerank) != True and (rerank_ or it.HasField("rerank")):
        fields["rerank"] = rerank_
    if (tokenizer_ := it.tokenizer) != 'o200k_base' and (tokenizer_ or it.HasField("tokenizer")):
        fields["tokenizer"] = tokenizer_
    if (receipt_ := it.receipt) != True and (receipt_ or it.HasField("receipt")):
        fields["receipt"] = receipt_
    if (on_timeout_ := it.on_timeout):
        fields["on_timeout"] = ON_TIMEOUT_WORDS[on_timeout_]
    return fields


def read_retrieve_stream_response(it: evidence_service_pb2.RetrieveStreamResponse) -> Any:
    """Return what the message says."""
    return read_stream_event(it.stream_event)


def read_set_access_request(it: evidence_service_pb2.SetAccessRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "document_ids": [*it.document_ids],
    }
    if (classification_ := it.classification):
        fields["classification"] = CLASSIFICATION_WORDS[classification_]
    if it.acl:
        fields["acl"] = [*it.acl]
    return fields


def read_set_access_response(it: evidence_service_pb2.SetAccessResponse) -> Any:
    """Return what the message says."""
    return read_commit_summary(it.commit_summary)


def read_show_image_request(it: evidence_service_pb2.ShowImageRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (hash_ := it.hash) or it.HasField("hash"):
        fields["hash"] = hash_
    return fields


def read_show_image_response(it: evidence_service_pb2.ShowImageResponse) -> Any:
    """Return what the message says."""
    return read_image_view(it.image_view)


def read_show_layout_request(it: evidence_service_pb2.ShowLayoutRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (document_ := it.document) or it.HasField("document"):
        fields["document"] = document_
    return fields


def read_show_layout_response(it: evidence_service_pb2.ShowLayoutResponse) -> Any:
    """Return what the message says."""
    return read_layout_view(it.layout_view)


def read_show_receipt_request(it: evidence_service_pb2.ShowReceiptRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_show_receipt_response(it: evidence_service_pb2.ShowReceiptResponse) -> Any:
    """Return what the message says."""
    return read_receipt_view(it.receipt_view)


def read_source_changed_request(it: evidence_service_pb2.SourceChangedRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_source_changed_response(it: evidence_service_pb2.SourceChangedResponse) -> Any:
    """Return what the message says."""
    return read_count(it.count)


def read_test_source_request(it: evidence_service_pb2.TestSourceRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (query_ := it.query) or it.HasField("query"):
        fields["query"] = query_
    if (limit_ := it.limit) != 10 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_test_source_response(it: evidence_service_pb2.TestSourceResponse) -> Any:
    """Return what the message says."""
    return read_source_trial(it.source_trial)


def read_verify_request(it: evidence_service_pb2.VerifyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("response"):
        fields["response"] = read_evidence_response(it.response)
    if it.HasField("export"):
        fields["export"] = read_fragment_export(it.export)
    if (target_ := it.target) or it.HasField("target"):
        fields["target"] = target_
    return fields


def read_verify_response(it: evidence_service_pb2.VerifyResponse) -> Any:
    """Return what the message says."""
    return read_verify_report(it.verify_report)


def read_why_request(it: evidence_service_pb2.WhyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (chunk_ := it.chunk) or it.HasField("chunk"):
        fields["chunk"] = chunk_
    return fields


def read_why_response(it: evidence_service_pb2.WhyResponse) -> Any:
    """Return what the message says."""
    return read_why_report(it.why_report)


def read_calibrate_rule_request(it: governance_service_pb2.CalibrateRuleRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (rule_ := it.rule) or it.HasField("rule"):
        fields["rule"] = rule_
    if (policy_ := it.policy) or it.HasField("policy"):
        fields["policy"] = policy_
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (minutes_ := it.minutes) != 10080 and (minutes_ or it.HasField("minutes")):
        fields["minutes"] = minutes_
    return fields


def read_calibrate_rule_response(it: governance_service_pb2.CalibrateRuleResponse) -> Any:
    """Return what the message says."""
    return read_calibration(it.calibration)


def read_change_policy_request(it: governance_service_pb2.ChangePolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (if_match_ := it.if_match) or it.HasField("if_match"):
        fields["if_match"] = if_match_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rules_ := it.rules_json):
        fields["rules"] = loads(rules_)
    if it.HasField("scope"):
        fields["scope"] = read_policy_scope(it.scope)
    if (enabled_ := it.enabled) or it.HasField("enabled"):
        fields["enabled"] = enabled_
    if (priority_ := it.priority) or it.HasField("priority"):
        fields["priority"] = priority_
    if (description_ := it.description) or it.HasField("description"):
        fields["description"] = description_
    if (compat_ := it.compat):
        fields["compat"] = COMPAT_WORDS[compat_]
    if it.HasField("posture"):
        fields["posture"] = read_posture_map(it.posture)
    if (enforcement_ := it.enforcement):
        fields["enforcement"] = ENFORCEMENT_WORDS[enforcement_]
    return fields


def read_change_policy_response(it: governance_service_pb2.ChangePolicyResponse) -> Any:
    """Return what the message says."""
    return read_stored_policy(it.stored_policy)


def read_count_decisions_request(it: governance_service_pb2.CountDecisionsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (minutes_ := it.minutes) or it.HasField("minutes"):
        fields["minutes"] = minutes_
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (policy_ := it.policy) or it.HasField("policy"):
        fields["policy"] = policy_
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    if (run_ := it.run) or it.HasField("run"):
        fields["run"] = run_
    return fields


def read_count_decisions_response(it: governance_service_pb2.CountDecisionsResponse) -> Any:
    """Return what the message says."""
    return read_decision_counts(it.decision_counts)


def read_create_policy_request(it: governance_service_pb2.CreatePolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (if_match_ := it.if_match) or it.HasField("if_match"):
        fields["if_match"] = if_match_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rules_ := it.rules_json):
        fields["rules"] = loads(rules_)
    if it.HasField("scope") and (scope_ := read_policy_scope(it.scope)):
        fields["scope"] = scope_
    if (enabled_ := it.enabled) != True and (enabled_ or it.HasField("enabled")):
        fields["enabled"] = enabled_
    if (priority_ := it.priority) != 100 and (priority_ or it.HasField("priority")):
        fields["priority"] = priority_
    if (description_ := it.description):
        fields["description"] = description_
    if (compat_ := it.compat):
        fields["compat"] = COMPAT_WORDS[compat_]
    if it.posture:
        fields["posture"] = {key: POSTURE_WORDS[each] for key, each in it.posture.items()}
    if (enforcement_ := it.enforcement):
        fields["enforcement"] = ENFORCEMENT_WORDS[enforcement_]
    return fields


def read_create_policy_response(it: governance_service_pb2.CreatePolicyResponse) -> Any:
    """Return what the message says."""
    return read_stored_policy(it.stored_policy)


def read_end_run_request(it: governance_service_pb2.EndRunRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (status_ := it.status):
        fields["status"] = RUN_STATUS_WORDS[status_]
    if (error_type_ := it.error_type):
        fields["error_type"] = error_type_
    if (result_hash_ := it.result_hash) or it.HasField("result_hash"):
        fields["result_hash"] = result_hash_
    if (text_ := it.text):
        fields["text"] = text_
    return fields


def read_end_run_response(it: governance_service_pb2.EndRunResponse) -> Any:
    """Return what the message says."""
    return read_end_reply(it.end_reply)


def read_list_decisions_request(it: governance_service_pb2.ListDecisionsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (minutes_ := it.minutes) or it.HasField("minutes"):
        fields["minutes"] = minutes_
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (policy_ := it.policy) or it.HasField("policy"):
        fields["policy"] = policy_
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    if (run_ := it.run) or it.HasField("run"):
        fields["run"] = run_
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_decisions_response(it: governance_service_pb2.ListDecisionsResponse) -> Any:
    """Return what the message says."""
    return read_decision_page(it.decision_page)


def read_list_events_request(it: governance_service_pb2.ListEventsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (minutes_ := it.minutes) != 60 and (minutes_ or it.HasField("minutes")):
        fields["minutes"] = minutes_
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (action_ := it.action):
        fields["action"] = POLICY_ACTION_WORDS[action_]
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (policy_ := it.policy) or it.HasField("policy"):
        fields["policy"] = policy_
    if (phase_ := it.phase):
        fields["phase"] = PHASE_WORDS[phase_]
    if (status_ := it.status):
        fields["status"] = DECISION_STATUS_WORDS[status_]
    if (run_ := it.run) or it.HasField("run"):
        fields["run"] = run_
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_events_response(it: governance_service_pb2.ListEventsResponse) -> Any:
    """Return what the message says."""
    return read_event_page(it.event_page)


def read_list_policies_request(it: governance_service_pb2.ListPoliciesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (enabled_ := it.enabled) or it.HasField("enabled"):
        fields["enabled"] = enabled_
    if (enforcement_ := it.enforcement):
        fields["enforcement"] = ENFORCEMENT_WORDS[enforcement_]
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_policies_response(it: governance_service_pb2.ListPoliciesResponse) -> Any:
    """Return what the message says."""
    return read_policy_page(it.policy_page)


def read_list_policy_versions_request(it: governance_service_pb2.ListPolicyVersionsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_list_policy_versions_response(it: governance_service_pb2.ListPolicyVersionsResponse) -> Any:
    """Return what the message says."""
    return read_policy_versions(it.policy_versions)


def read_list_run_decisions_request(it: governance_service_pb2.ListRunDecisionsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_run_decisions_response(it: governance_service_pb2.ListRunDecisionsResponse) -> Any:
    """Return what the message says."""
    return read_decision_page(it.decision_page)


def read_list_runs_request(it: governance_service_pb2.ListRunsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (agent_ := it.agent) or it.HasField("agent"):
        fields["agent"] = agent_
    if (status_ := it.status):
        fields["status"] = RUN_STATUS_WORDS[status_]
    if (minutes_ := it.minutes) or it.HasField("minutes"):
        fields["minutes"] = minutes_
    if (cursor_ := it.cursor) or it.HasField("cursor"):
        fields["cursor"] = cursor_
    if (limit_ := it.limit) != 50 and (limit_ or it.HasField("limit")):
        fields["limit"] = limit_
    return fields


def read_list_runs_response(it: governance_service_pb2.ListRunsResponse) -> Any:
    """Return what the message says."""
    return read_run_page(it.run_page)


def read_list_templates_request(it: governance_service_pb2.ListTemplatesRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_list_templates_response(it: governance_service_pb2.ListTemplatesResponse) -> Any:
    """Return what the message says."""
    return read_policy_templates(it.policy_templates)


def read_push_policies_request(it: governance_service_pb2.PushPoliciesRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "policies": [read_policy_body(each) for each in it.policies],
    }
    if (dry_run_ := it.dry_run):
        fields["dry_run"] = dry_run_
    return fields


def read_push_policies_response(it: governance_service_pb2.PushPoliciesResponse) -> Any:
    """Return what the message says."""
    return read_push_reply(it.push_reply)


def read_record_calls_request(it: governance_service_pb2.RecordCallsRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {
        "calls": [read_numbered_call(each) for each in it.calls],
    }
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_record_calls_response(it: governance_service_pb2.RecordCallsResponse) -> Any:
    """Return what the message says."""
    return read_calls_reply(it.calls_reply)


def read_remove_policy_request(it: governance_service_pb2.RemovePolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (if_match_ := it.if_match) or it.HasField("if_match"):
        fields["if_match"] = if_match_
    return fields


def read_remove_policy_response(it: governance_service_pb2.RemovePolicyResponse) -> Any:
    """Return what the message says."""
    return read_stored_policy(it.stored_policy)


def read_replace_policy_request(it: governance_service_pb2.ReplacePolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (if_match_ := it.if_match) or it.HasField("if_match"):
        fields["if_match"] = if_match_
    if (name_ := it.name) or it.HasField("name"):
        fields["name"] = name_
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    if (rules_ := it.rules_json):
        fields["rules"] = loads(rules_)
    if it.HasField("scope") and (scope_ := read_policy_scope(it.scope)):
        fields["scope"] = scope_
    if (enabled_ := it.enabled) != True and (enabled_ or it.HasField("enabled")):
        fields["enabled"] = enabled_
    if (priority_ := it.priority) != 100 and (priority_ or it.HasField("priority")):
        fields["priority"] = priority_
    if (description_ := it.description):
        fields["description"] = description_
    if (compat_ := it.compat):
        fields["compat"] = COMPAT_WORDS[compat_]
    if it.posture:
        fields["posture"] = {key: POSTURE_WORDS[each] for key, each in it.posture.items()}
    if (enforcement_ := it.enforcement):
        fields["enforcement"] = ENFORCEMENT_WORDS[enforcement_]
    return fields


def read_replace_policy_response(it: governance_service_pb2.ReplacePolicyResponse) -> Any:
    """Return what the message says."""
    return read_stored_policy(it.stored_policy)


def read_show_policy_request(it: governance_service_pb2.ShowPolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    if (version_ := it.version) or it.HasField("version"):
        fields["version"] = version_
    return fields


def read_show_policy_response(it: governance_service_pb2.ShowPolicyResponse) -> Any:
    """Return what the message says."""
    return read_stored_policy(it.stored_policy)


def read_show_policy_schema_request(it: governance_service_pb2.ShowPolicySchemaRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_show_policy_schema_response(it: governance_service_pb2.ShowPolicySchemaResponse) -> Any:
    """Return what the message says."""
    return loads(it.reply_json)


def read_show_proof_request(it: governance_service_pb2.ShowProofRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (log_ := it.log) or it.HasField("log"):
        fields["log"] = log_
    if (seq_ := it.seq) or it.HasField("seq"):
        fields["seq"] = seq_
    return fields


def read_show_proof_response(it: governance_service_pb2.ShowProofResponse) -> Any:
    """Return what the message says."""
    return read_record_proof(it.record_proof)


def read_show_rules_schema_request(it: governance_service_pb2.ShowRulesSchemaRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (category_ := it.category) or it.HasField("category"):
        fields["category"] = category_
    return fields


def read_show_rules_schema_response(it: governance_service_pb2.ShowRulesSchemaResponse) -> Any:
    """Return what the message says."""
    return loads(it.reply_json)


def read_show_run_request(it: governance_service_pb2.ShowRunRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_show_run_response(it: governance_service_pb2.ShowRunResponse) -> Any:
    """Return what the message says."""
    return read_run_summary(it.run_summary)


def read_show_trace_request(it: governance_service_pb2.ShowTraceRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if (id_ := it.id) or it.HasField("id"):
        fields["id"] = id_
    return fields


def read_show_trace_response(it: governance_service_pb2.ShowTraceResponse) -> Any:
    """Return what the message says."""
    return read_run_trace(it.run_trace)


def read_start_run_request(it: governance_service_pb2.StartRunRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("facts"):
        fields["facts"] = read_run_facts(it.facts)
    if it.policies:
        fields["policies"] = [read_policy_body(each) for each in it.policies]
    if (is_enforced_ := it.is_enforced) != True and (is_enforced_ or it.HasField("is_enforced")):
        fields["is_enforced"] = is_enforced_
    return fields


def read_start_run_response(it: governance_service_pb2.StartRunResponse) -> Any:
    """Return what the message says."""
    return read_start_reply(it.start_reply)


def read_try_policy_request(it: governance_service_pb2.TryPolicyRequest) -> Fields:
    """Return what the message says."""
    fields: Fields = {}
    if it.HasField("policy"):
        fields["policy"] = read_policy_body(it.policy)
    if (minutes_ := it.minutes) != 10080 and (minutes_ or it.HasField("minutes")):
        fields["minutes"] = minutes_
    if (is_whole_ := it.is_whole):
        fields["is_whole"] = is_whole_
    return fields


def read_try_policy_response(it: governance_service_pb2.TryPolicyResponse) -> Any:
    """Return what the message says."""
    return read_shadow_report(it.shadow_report)


def read_verify_log_request(it: governance_service_pb2.VerifyLogRequest) -> Fields:
    """Return what the message says."""
    del it
    return {}


def read_verify_log_response(it: governance_service_pb2.VerifyLogResponse) -> Any:
    """Return what the message says."""
    return read_log_report(it.log_report)
