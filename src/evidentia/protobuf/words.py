"""The words of every vocabulary and their numbers on the wire.

Written by tools/write_proto.py; nothing here is changed by hand.
"""

from __future__ import annotations

from typing import Final


class Words(dict[int, str]):
    """The word of every number; one that nobody knows stays a number, and is refused as a word that nobody knows."""

    def __missing__(self, number: int) -> str:
        """Return the number itself."""
        return str(number)


ANNOTATION_TARGET_TYPE_NUMBERS: Final = {
    "document": 1,
    "code_symbol": 2,
    "config_key": 3,
    "service": 4,
    "incident": 5,
}
ANNOTATION_TARGET_TYPE_WORDS: Final = Words({number: word for word, number in ANNOTATION_TARGET_TYPE_NUMBERS.items()})

ANNOTATION_TYPE_NUMBERS: Final = {
    "correction": 1,
    "label": 2,
    "knowledge": 3,
    "review": 4,
    "deprecation_notice": 5,
}
ANNOTATION_TYPE_WORDS: Final = Words({number: word for word, number in ANNOTATION_TYPE_NUMBERS.items()})

AUDIT_KIND_NUMBERS: Final = {
    "policy": 1,
    "token": 2,
    "secret": 3,
    "document": 4,
    "source": 5,
    "base": 6,
    "session": 7,
}
AUDIT_KIND_WORDS: Final = Words({number: word for word, number in AUDIT_KIND_NUMBERS.items()})

AUTHORITY_TIER_NUMBERS: Final = {
    "ephemeral": 1,
    "user": 2,
    "derived": 3,
    "curated": 4,
    "canonical": 5,
}
AUTHORITY_TIER_WORDS: Final = Words({number: word for word, number in AUTHORITY_TIER_NUMBERS.items()})

BREADTH_NUMBERS: Final = {
    "lookup": 1,
    "moderate": 2,
    "broad": 3,
    "unsure": 4,
}
BREADTH_WORDS: Final = Words({number: word for word, number in BREADTH_NUMBERS.items()})

BREAKER_STATE_NUMBERS: Final = {
    "closed": 1,
    "open": 2,
    "half_open": 3,
}
BREAKER_STATE_WORDS: Final = Words({number: word for word, number in BREAKER_STATE_NUMBERS.items()})

CACHE_TIER_NUMBERS: Final = {
    "request": 1,
    "session": 2,
    "global": 3,
    "precomputed": 4,
}
CACHE_TIER_WORDS: Final = Words({number: word for word, number in CACHE_TIER_NUMBERS.items()})

CHANGE_NUMBERS: Final = {
    "newly_blocked": 1,
    "newly_allowed": 2,
    "newly_warned": 3,
    "no_longer_warned": 4,
    "unchanged": 5,
}
CHANGE_WORDS: Final = Words({number: word for word, number in CHANGE_NUMBERS.items()})

CLASSIFICATION_NUMBERS: Final = {
    "public": 1,
    "internal": 2,
    "confidential": 3,
    "restricted": 4,
}
CLASSIFICATION_WORDS: Final = Words({number: word for word, number in CLASSIFICATION_NUMBERS.items()})

COLUMN_KIND_NUMBERS: Final = {
    "text": 1,
    "integer": 2,
    "number": 3,
    "boolean": 4,
    "date": 5,
    "datetime": 6,
    "time": 7,
}
COLUMN_KIND_WORDS: Final = Words({number: word for word, number in COLUMN_KIND_NUMBERS.items()})

COMPAT_NUMBERS: Final = {
    "resolved": 1,
    "literal": 2,
}
COMPAT_WORDS: Final = Words({number: word for word, number in COMPAT_NUMBERS.items()})

CONNECTION_KIND_NUMBERS: Final = {
    "own": 1,
    "python": 2,
    "base": 3,
    "remote": 4,
    "mcp": 5,
    "memory": 6,
}
CONNECTION_KIND_WORDS: Final = Words({number: word for word, number in CONNECTION_KIND_NUMBERS.items()})

CONTENT_TYPE_NUMBERS: Final = {
    "code": 1,
    "documentation": 2,
    "config": 3,
    "log": 4,
    "annotation": 5,
    "schema": 6,
    "runbook": 7,
}
CONTENT_TYPE_WORDS: Final = Words({number: word for word, number in CONTENT_TYPE_NUMBERS.items()})

COVERAGE_STATE_NUMBERS: Final = {
    "searched": 1,
    "cached": 2,
    "stale": 3,
    "timed_out": 4,
    "failed": 5,
    "breaker_open": 6,
    "skipped": 7,
    "denied": 8,
}
COVERAGE_STATE_WORDS: Final = Words({number: word for word, number in COVERAGE_STATE_NUMBERS.items()})

DECISION_STATUS_NUMBERS: Final = {
    "evaluated": 1,
    "provisional": 2,
    "bypassed": 3,
    "shadow": 4,
}
DECISION_STATUS_WORDS: Final = Words({number: word for word, number in DECISION_STATUS_NUMBERS.items()})

DEPRECATION_STATUS_NUMBERS: Final = {
    "active": 1,
    "deprecated": 2,
    "archived": 3,
}
DEPRECATION_STATUS_WORDS: Final = Words({number: word for word, number in DEPRECATION_STATUS_NUMBERS.items()})

ENFORCEMENT_NUMBERS: Final = {
    "enforce": 1,
    "shadow": 2,
}
ENFORCEMENT_WORDS: Final = Words({number: word for word, number in ENFORCEMENT_NUMBERS.items()})

EVENT_KIND_NUMBERS: Final = {
    "added": 1,
    "changed": 2,
    "removed": 3,
    "access_changed": 4,
}
EVENT_KIND_WORDS: Final = Words({number: word for word, number in EVENT_KIND_NUMBERS.items()})

EXPERTISE_LEVEL_NUMBERS: Final = {
    "domain_expert": 1,
    "senior_engineer": 2,
    "team_lead": 3,
    "contributor": 4,
    "unknown": 5,
}
EXPERTISE_LEVEL_WORDS: Final = Words({number: word for word, number in EXPERTISE_LEVEL_NUMBERS.items()})

FUSION_METHOD_NUMBERS: Final = {
    "linear": 1,
    "rrf": 2,
    "learned": 3,
}
FUSION_METHOD_WORDS: Final = Words({number: word for word, number in FUSION_METHOD_NUMBERS.items()})

GOVERNANCE_MODE_NUMBERS: Final = {
    "off": 1,
    "annotate": 2,
    "filter": 3,
    "enforce": 4,
}
GOVERNANCE_MODE_WORDS: Final = Words({number: word for word, number in GOVERNANCE_MODE_NUMBERS.items()})

JUDGE_STATUS_NUMBERS: Final = {
    "judged": 1,
    "unparseable": 2,
    "no_key": 3,
    "unavailable": 4,
    "timed_out": 5,
    "source_unavailable": 6,
    "nothing_to_judge": 7,
    "not_configured": 8,
}
JUDGE_STATUS_WORDS: Final = Words({number: word for word, number in JUDGE_STATUS_NUMBERS.items()})

LATENCY_TIER_NUMBERS: Final = {
    "hot": 1,
    "warm": 2,
    "cold": 3,
    "archive": 4,
}
LATENCY_TIER_WORDS: Final = Words({number: word for word, number in LATENCY_TIER_NUMBERS.items()})

ON_TIMEOUT_NUMBERS: Final = {
    "degrade": 1,
    "wait": 2,
    "refuse": 3,
}
ON_TIMEOUT_WORDS: Final = Words({number: word for word, number in ON_TIMEOUT_NUMBERS.items()})

PHASE_NUMBERS: Final = {
    "before_workflow": 1,
    "mid_execution": 2,
    "after_workflow": 3,
}
PHASE_WORDS: Final = Words({number: word for word, number in PHASE_NUMBERS.items()})

POLICY_ACTION_NUMBERS: Final = {
    "allow": 1,
    "warn": 2,
    "redact": 3,
    "retry": 4,
    "skip": 5,
    "throttle": 6,
    "block": 7,
}
POLICY_ACTION_WORDS: Final = Words({number: word for word, number in POLICY_ACTION_NUMBERS.items()})

POSTURE_NUMBERS: Final = {
    "open": 1,
    "degrade": 2,
    "closed": 3,
}
POSTURE_WORDS: Final = Words({number: word for word, number in POSTURE_NUMBERS.items()})

PROTOCOL_RULE_NUMBERS: Final = {
    "allowed_tools": 1,
    "filesystem_tools": 2,
    "code_portion": 3,
    "skill_first": 4,
    "sequential": 5,
    "answer_before_retrieval": 6,
    "source_order": 7,
    "tool_choice": 8,
    "raw_query": 9,
    "lost_entity": 10,
    "foreign_topic": 11,
    "top_k_tool": 12,
    "top_k_value": 13,
    "needless_call": 14,
    "stopped_early": 15,
    "call_cap": 16,
    "retry_order": 17,
    "repeated_query": 18,
    "early_not_found": 19,
    "truncation_counts": 20,
    "file_names": 21,
    "source_codes": 22,
    "instructions": 23,
    "image_ignored": 24,
    "image_misplaced": 25,
    "images_at_end": 26,
    "citation_missing": 27,
    "citation_grammar": 28,
    "citation_unresolved": 29,
    "citation_placement": 30,
    "citation_count": 31,
    "citations_at_end": 32,
    "self_knowledge_off": 33,
    "self_knowledge_needless": 34,
    "self_knowledge_mixed": 35,
    "self_knowledge_scope": 36,
    "self_knowledge_cited": 37,
    "uncertainty_unstated": 38,
    "self_check": 39,
}
PROTOCOL_RULE_WORDS: Final = Words({number: word for word, number in PROTOCOL_RULE_NUMBERS.items()})

PUSH_ACTION_NUMBERS: Final = {
    "created": 1,
    "updated": 2,
    "unchanged": 3,
}
PUSH_ACTION_WORDS: Final = Words({number: word for word, number in PUSH_ACTION_NUMBERS.items()})

QUERY_CAPABILITY_NUMBERS: Final = {
    "exact_match": 1,
    "semantic": 2,
    "structured": 3,
    "graph_traversal": 4,
}
QUERY_CAPABILITY_WORDS: Final = Words({number: word for word, number in QUERY_CAPABILITY_NUMBERS.items()})

QUERY_STEP_NAME_NUMBERS: Final = {
    "context": 1,
    "normalise": 2,
    "spelling": 3,
    "abbreviations": 4,
    "synonyms": 5,
    "decompose": 6,
    "rewrite": 7,
}
QUERY_STEP_NAME_WORDS: Final = Words({number: word for word, number in QUERY_STEP_NAME_NUMBERS.items()})

QUESTION_TYPE_NUMBERS: Final = {
    "value": 1,
    "price": 2,
    "quantity": 3,
    "inventory": 4,
    "specification": 5,
    "ranking": 6,
    "comparison": 7,
    "summary": 8,
    "extraction": 9,
    "list": 10,
    "table": 11,
    "name_lookup": 12,
    "history": 13,
    "mixed": 14,
    "unclear": 15,
    "concept": 16,
    "definition": 17,
    "workflow": 18,
    "policy": 19,
    "explanation": 20,
}
QUESTION_TYPE_WORDS: Final = Words({number: word for word, number in QUESTION_TYPE_NUMBERS.items()})

RETRIEVAL_MODE_NUMBERS: Final = {
    "hybrid": 1,
    "lexical": 2,
    "dense": 3,
}
RETRIEVAL_MODE_WORDS: Final = Words({number: word for word, number in RETRIEVAL_MODE_NUMBERS.items()})

ROLE_NUMBERS: Final = {
    "reader": 1,
    "agent": 2,
    "auditor": 3,
    "admin": 4,
}
ROLE_WORDS: Final = Words({number: word for word, number in ROLE_NUMBERS.items()})

RUN_STATUS_NUMBERS: Final = {
    "running": 1,
    "success": 2,
    "blocked": 3,
    "error": 4,
}
RUN_STATUS_WORDS: Final = Words({number: word for word, number in RUN_STATUS_NUMBERS.items()})

SHORTFALL_NUMBERS: Final = {
    "empty": 1,
    "error": 2,
    "no_spreadsheet": 3,
    "off_topic": 4,
    "missing_entity": 5,
    "no_evidence": 6,
    "partial": 7,
    "truncated": 8,
}
SHORTFALL_WORDS: Final = Words({number: word for word, number in SHORTFALL_NUMBERS.items()})

SOURCE_TYPE_NUMBERS: Final = {
    "inverted_index": 1,
    "vector_store": 2,
    "relational_db": 3,
    "knowledge_graph": 4,
    "api": 5,
    "log_store": 6,
    "code_index": 7,
    "human_annotation_store": 8,
    "memory_layer": 9,
}
SOURCE_TYPE_WORDS: Final = Words({number: word for word, number in SOURCE_TYPE_NUMBERS.items()})

TASK_KIND_NUMBERS: Final = {
    "knowledge": 1,
    "code": 2,
    "mixed": 3,
    "uncertain": 4,
}
TASK_KIND_WORDS: Final = Words({number: word for word, number in TASK_KIND_NUMBERS.items()})

TOOL_ROLE_NUMBERS: Final = {
    "skill": 1,
    "table": 2,
    "text": 3,
    "local": 4,
    "filesystem": 5,
    "other": 6,
}
TOOL_ROLE_WORDS: Final = Words({number: word for word, number in TOOL_ROLE_NUMBERS.items()})
