"""The rows of the category `retrieval`, read word by word."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Fields = dict[str, Any]  # JSON: rules, a call, or what one rule says

DEFAULTS: Fields = {
    "min_relevance_score": 0.7,
    "max_source_age_days": 90,
    "min_chunks": 1,
    "max_chunks": 10,
    "allowed_collections": [],
    "blocked_sources": [],
    "require_source_diversity": False,
    "max_single_source_ratio": 0.6,
    "action_on_low_relevance": "warn",
    "action_on_stale_source": "block",
    "action_on_chunk_violation": "warn",
    "action_on_unknown_age": "allow",
}
DIVERSITY = "max_single_source_ratio"


def said(rules: Fields, trace: Sequence[Fields], *, is_literal: bool) -> list[Fields] | None:
    """Return what the rules say of the last call: None without a say, nothing on a pass."""
    call = trace[-1]
    if call["kind"] == "retrieval":
        found = [*_counted(rules, trace, is_literal=is_literal), *_judged(rules, call)]
        return found[:1] if is_literal else _up_to_a_block(found)
    settled = [each for each in _settled(rules, trace) if not is_literal or each["metadata"]["chunk_count"] == 0]
    if call["kind"] == "end":
        return settled + _dominated(rules, trace)
    return settled or None


def passed(rules: Fields, trace: Sequence[Fields]) -> Fields:
    """Return how a pass is told: with the count of the call's batch, at the end with that of the run; over the maximum, as that."""
    call = trace[-1]
    count, largest, most = _told_count(trace), _largest_count(trace), rules["max_chunks"]
    metadata: Fields = {"chunk_count": count}
    reason = f"Retrieval quality within policy ({count} chunks)"
    if largest > most:
        reason, metadata = f"Retrieved chunks ({largest}) exceeds max ({most})", {"chunk_count": largest, "limit": most}
    if call["kind"] == "retrieval" and call["age"] is None:
        metadata |= {"age_days": None, "unknown_age": True}
    if call["kind"] == "retrieval" and not 0 <= call["score"] <= 1:
        metadata["score_out_of_range"] = True
    return _finding("", "allow", reason, metadata)


def _told_count(trace: Sequence[Fields]) -> int:
    """Return what a pass tells: the count of the call's batch, of all that the call settles, or at the end of the run."""
    return sum(_batch_counts(trace))


def _largest_count(trace: Sequence[Fields]) -> int:
    """Return the largest count among the batches that a pass is about."""
    return max(_batch_counts(trace), default=0)


def _batch_counts(trace: Sequence[Fields]) -> list[int]:
    call, documents = trace[-1], _documents(trace)
    batches = list(dict.fromkeys(each["batch"] for each in documents))
    if call["kind"] != "end":
        batches = [call["batch"]] if call["kind"] in {"retrieval", "batch"} else _settles(call, trace[:-1])
    return [len(_of_batch(documents, batch)) for batch in batches]


def _finding(rule: str, action: str, reason: str, metadata: Fields, status: str = "evaluated") -> Fields:
    return {"rule": rule, "action": action, "reason": reason, "metadata": metadata, "status": status}


def _up_to_a_block(found: list[Fields]) -> list[Fields]:
    kept: list[Fields] = []
    for each in found:
        kept.append(each)
        if each["action"] == "block":
            break
    return kept


def _documents(trace: Sequence[Fields]) -> list[Fields]:
    return [call for call in trace if call["kind"] == "retrieval"]


def _of_batch(documents: Sequence[Fields], batch: str | None) -> list[Fields]:
    return [each for each in documents if each["batch"] == batch]


def _counted(rules: Fields, trace: Sequence[Fields], *, is_literal: bool) -> list[Fields]:
    count = len(_of_batch(_documents(trace), trace[-1]["batch"]))
    action = rules["action_on_chunk_violation"]
    if count > rules["max_chunks"] and (is_literal or action == "block" or count == rules["max_chunks"] + 1):
        metadata = {"chunk_count": count, "limit": rules["max_chunks"]}
        return [_finding("max_chunks", action, f"Retrieved chunks ({count}) exceeds max ({rules['max_chunks']})", metadata)]
    if count < rules["min_chunks"]:
        return [_too_few(rules, count, action, "evaluated") if is_literal else _too_few(rules, count, "warn", "provisional")]
    return []


def _too_few(rules: Fields, count: int, action: str, status: str) -> Fields:
    metadata = {"chunk_count": count, "limit": rules["min_chunks"]}
    return _finding("min_chunks", action, f"Retrieved chunks ({count}) below minimum ({rules['min_chunks']})", metadata, status)


def _judged(rules: Fields, call: Fields) -> list[Fields]:
    found = []
    score, least = call["score"], rules["min_relevance_score"]
    if score < least:
        reason = f"Retrieval relevance ({score:.2f}) below threshold ({least:.2f})"
        metadata = {"relevance_score": score, "threshold": least}
        found.append(_finding("min_relevance_score", rules["action_on_low_relevance"], reason, metadata))
    if call["source"] in rules["blocked_sources"]:
        reason = f"Retrieved from blocked source '{call['source']}'"
        found.append(_finding("blocked_sources", "block", reason, {"blocked_source": call["source"]}))
    if rules["allowed_collections"] and call["collection"] not in rules["allowed_collections"]:
        metadata = {"collection": call["collection"], "allowed": list(rules["allowed_collections"])}
        reason = f"Collection '{call['collection']}' not in allowed list"
        found.append(_finding("allowed_collections", "block", reason, metadata))
    flag = {} if 0 <= score <= 1 else {"score_out_of_range": True}
    return [{**each, "metadata": each["metadata"] | flag} for each in found + _aged(rules, call["age"])]


def _aged(rules: Fields, age: float | None) -> list[Fields]:
    most = rules["max_source_age_days"]
    metadata = {"age_days": age, "max_age": most}
    if age is None:
        if rules["action_on_unknown_age"] == "allow":
            return []
        reason = f"Source age is unknown (max {most} days)"
        return [_finding("max_source_age_days", rules["action_on_unknown_age"], reason, metadata, "bypassed")]
    if age > most:
        reason = f"Source age ({age} days) exceeds max ({most} days)"
        return [_finding("max_source_age_days", rules["action_on_stale_source"], reason, metadata)]
    return []


def _settled(rules: Fields, trace: Sequence[Fields]) -> list[Fields]:
    """Return the batches that this call settles and that hold too few."""
    before = trace[:-1]
    found = []
    for batch in _settles(trace[-1], before):
        count = len(_of_batch(_documents(before), batch))
        if count < rules["min_chunks"]:
            found.append(_too_few(rules, count, rules["action_on_chunk_violation"], "evaluated"))
    return found


def _settles(call: Fields, before: Sequence[Fields]) -> list[str | None]:
    seen = list(dict.fromkeys(each["batch"] for each in _documents(before)))
    is_open = [batch for batch in seen if not _was_settled(batch, before)]
    if call["kind"] == "batch":
        return [] if _was_settled(call["batch"], before) else [call["batch"]]
    if call["kind"] == "end":
        was_anything = bool(seen) or any(each["kind"] == "batch" for each in before)
        return is_open if was_anything else [None]
    return is_open if _is_other_work(call) else []


def _was_settled(batch: str | None, before: Sequence[Fields]) -> bool:
    """Tell whether a batch was closed, or other work began after a document of it."""
    is_begun = False
    for each in before:
        is_begun = is_begun or (each["kind"] == "retrieval" and each["batch"] == batch)
        if each["kind"] == "batch" and each["batch"] == batch:
            return True
        if is_begun and _is_other_work(each):
            return True
    return False


def _is_other_work(call: Fields) -> bool:
    return call["kind"] in {"llm", "grounding", "step"} or (call["kind"] == "tool" and not call["is_retrieval"])


def _dominated(rules: Fields, trace: Sequence[Fields]) -> list[Fields]:
    documents = _documents(trace)
    if not rules["require_source_diversity"] or not documents:
        return []
    most = Fraction(repr(rules["max_single_source_ratio"]))
    counts = {source: sum(each["source"] == source for each in documents) for source in {each["source"] for each in documents}}
    over = sorted((-Fraction(count, len(documents)), source) for source, count in counts.items())
    warnings = [f"Source '{source}' dominates at {_percent(-share)}% (max {_percent(most)}%)" for share, source in over if -share > most]
    return [_finding(DIVERSITY, "warn", "; ".join(warnings), {"warnings": warnings})] if warnings else []


def _percent(share: Fraction) -> int:
    hundredfold = Decimal(share.numerator * 100) / Decimal(share.denominator)
    return int(hundredfold.quantize(Decimal(1), rounding=ROUND_HALF_UP))
