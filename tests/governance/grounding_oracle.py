"""The rows of the category `grounding`, read word by word."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Fields = dict[str, Any]  # JSON: rules, a call, or what one rule says

DEFAULTS: Fields = {
    "require_source_grounding": False,
    "min_grounding_score": 0.7,
    "min_citations": 1,
    "max_unsupported_claims": None,
    "factual_consistency_check": False,
    "abstention_threshold": None,
    "abstention_response": None,
    "action_on_violation": "warn",
    "score_relevance_floor": None,
    "score_eval_mode": "all",
    "score_top_n": 3,
    "llm_grounding_check": False,
    "llm_grounding_model": "gpt-4o-mini",
    "llm_grounding_threshold": 0.7,
    "llm_grounding_criteria": "",
    "llm_grounding_phase": "mid_execution",
    "unique_citations": False,
    "confidence_mode": "last",
}
NEUTRAL = 0.5
BY_POSTURE = {"open": "allow", "degrade": "warn", "closed": "block"}
NOTHING_ABOVE = "No grounding scores above relevance floor — all retrieved results appear irrelevant"


def said(rules: Fields, trace: Sequence[Fields], *, judgement: Fields | None, posture: str) -> list[Fields] | None:
    """Return what the rules say of the last call: None without a say, nothing on a pass."""
    call = trace[-1]
    if call["kind"] == "grounding":
        heard = _heard_judge(rules, judgement, posture=posture) if asks(rules, call) else []
        return _scored(rules, call["scores"]) + heard
    if call["kind"] == "end":
        if rules["llm_grounding_check"] and rules["llm_grounding_phase"] == "mid_execution" and not _entries(trace):
            judgement = {"status": "nothing_to_judge"}
            return _audited(rules, trace, _heard_judge(rules, judgement, posture=posture))
        heard = _heard_judge(rules, judgement, posture=posture) if asks(rules, call) else []
        return _audited(rules, trace, heard)
    return None


def asks(rules: Fields, call: Fields) -> bool:
    """Tell whether a judge is asked at this call."""
    phases = {"grounding": {"mid_execution", "both"}, "end": {"after_workflow", "both"}}.get(call["kind"], set())
    return rules["llm_grounding_check"] and rules["llm_grounding_phase"] in phases


def passed(rules: Fields, trace: Sequence[Fields], *, judgement: Fields | None) -> Fields:
    """Return how a pass is told: with the scores of the call, at the end with the citations of the run, and with a judge's score."""
    call = trace[-1]
    if call["kind"] == "end":
        reason, metadata = f"Grounding audit passed ({_citation_count(rules, trace)} citations)", _citation_metadata(rules, trace)
    else:
        count = len(call["scores"])
        reason, metadata = f"Grounding scores within policy ({count} scores)", {"score_count": count}
    score = (judgement or {}).get("score")
    if asks(rules, call) and judgement is not None and judgement["status"] == "judged" and score is not None and 0 <= score <= 1:
        least = rules["llm_grounding_threshold"]
        reason += f"; LLM grounding score ({score!r}) meets threshold ({least!r})"
        metadata |= {"llm_score": score, "threshold": least, "model": rules["llm_grounding_model"]}
    return _finding("", "allow", reason, metadata)


def _finding(rule: str, action: str, reason: str, metadata: Fields, status: str = "evaluated") -> Fields:
    return {"rule": rule, "action": action, "reason": reason, "metadata": metadata, "status": status}


def _entries(trace: Sequence[Fields]) -> list[Fields]:
    return [call for call in trace if call["kind"] == "grounding"]


def _scored(rules: Fields, scores: Sequence[float]) -> list[Fields]:
    if not scores:
        return []
    floor, least, action = rules["score_relevance_floor"], rules["min_grounding_score"], rules["action_on_violation"]
    kept = [score for score in scores if floor is None or score >= floor]
    if not kept:
        metadata = {"score_count": len(scores), "max_score": max(scores), "floor": floor}
        return [_finding("score_relevance_floor", action, NOTHING_ABOVE, metadata)]
    if rules["score_eval_mode"] == "average":
        mean = round(math.fsum(kept) / len(kept), 10)
        reason = f"Average grounding score ({mean!r}) below threshold ({least!r})"
        metadata = {"score": mean, "threshold": least, "score_count": len(kept)}
        return [_finding("min_grounding_score", action, reason, metadata)] if mean < least else []
    if rules["score_eval_mode"] == "top_n":
        kept = sorted(kept, reverse=True)[: rules["score_top_n"]]
    low = [score for score in kept if score < least][:1]
    reasons = [f"Grounding score ({score!r}) below threshold ({least!r})" for score in low]
    return [
        _finding("min_grounding_score", action, reason, {"score": score, "threshold": least})
        for score, reason in zip(low, reasons, strict=True)
    ]


def _heard_judge(rules: Fields, judgement: Fields | None, *, posture: str) -> list[Fields]:
    told = judgement or {"status": "not_configured", "score": None}
    status, score, least = told["status"], told.get("score"), rules["llm_grounding_threshold"]
    if status == "judged" and score is not None and 0 <= score <= 1:
        metadata = {"llm_score": score, "threshold": least, "model": rules["llm_grounding_model"]}
        reason = f"LLM grounding score ({score!r}) below threshold ({least!r})"
        return [_finding("llm_grounding_check", rules["action_on_violation"], reason, metadata)] if score < least else []
    if status in {"judged", "unparseable"}:
        metadata = {"llm_score": NEUTRAL, "threshold": least, "model": rules["llm_grounding_model"], "judge_status": "unparseable"}
        is_low = least > NEUTRAL
        reason = f"LLM grounding score ({NEUTRAL}) below threshold ({least!r})" if is_low else "LLM grounding check skipped (unparseable)"
        return [_finding("llm_grounding_check", "warn" if is_low else "allow", reason, metadata, "bypassed")]
    metadata = {"llm_score": None, "threshold": least, "model": rules["llm_grounding_model"], "judge_status": status}
    return [_finding("llm_grounding_check", BY_POSTURE[posture], f"LLM grounding check skipped ({status})", metadata, "bypassed")]


def _citation_count(rules: Fields, trace: Sequence[Fields]) -> int:
    citations = [each for call in _entries(trace) for each in call["citations"]]
    return len(set(citations)) if rules["unique_citations"] else len(citations)


def _citation_metadata(rules: Fields, trace: Sequence[Fields]) -> Fields:
    """Return the count, and beside it how many are different where some are not."""
    counted = _citation_count(rules, trace)
    different = len({each for call in _entries(trace) for each in call["citations"]})
    return {"citation_count": counted} | ({"unique_citation_count": different} if different != counted else {})


def _audited(rules: Fields, trace: Sequence[Fields], heard: list[Fields]) -> list[Fields]:
    """Return every violation of the audit of a whole run, in order, the judge last."""
    return _broken(rules, trace) + heard


def joined(rules: Fields, trace: Sequence[Fields], found: Sequence[Fields]) -> Fields:
    """Return the violations of one policy's audit as the one that is told: in order, with the number of citations."""
    warnings = [each["reason"] for each in found if each["action"] != "allow" and each["status"] == "evaluated"]
    if not warnings:
        return dict(found[0])
    judged: Fields = next(
        (each["metadata"] for each in found if each["rule"] == "llm_grounding_check" and each["status"] == "evaluated"), {}
    )
    metadata = {"warnings": warnings, **_citation_metadata(rules, trace), **judged}
    return {**found[0], "reason": "; ".join(warnings), "metadata": metadata}


def _broken(rules: Fields, trace: Sequence[Fields]) -> list[Fields]:
    entries, action = _entries(trace), rules["action_on_violation"]
    citations = sum(len(call["citations"]) for call in entries)
    counted = _citation_count(rules, trace)
    unsupported = sum(len(call["unsupported"]) for call in entries)
    confidences = [call["confidence"] for call in entries if call["confidence"] is not None]
    broken = []
    if counted < rules["min_citations"]:
        reason = f"Citations ({counted}) below minimum ({rules['min_citations']})"
        broken.append(_finding("min_citations", action, reason, {"citation_count": counted, "limit": rules["min_citations"]}))
    if rules["require_source_grounding"] and citations == 0:
        reason = "No source citations provided (grounding required)"
        broken.append(_finding("require_source_grounding", action, reason, {"citation_count": 0}))
    most = rules["max_unsupported_claims"]
    if most is not None and unsupported > most:
        reason = f"Unsupported claims ({unsupported}) exceeds max ({most})"
        broken.append(_finding("max_unsupported_claims", action, reason, {"unsupported_count": unsupported, "limit": most}))
    threshold = rules["abstention_threshold"]
    if threshold is not None and confidences:
        confidence = min(confidences) if rules["confidence_mode"] == "min" else confidences[-1]
        reason = f"Output confidence ({confidence!r}) below abstention threshold ({threshold!r})"
        metadata = {"output_confidence": confidence, "threshold": threshold}
        broken += [_finding("abstention_threshold", action, reason, metadata)] if confidence < threshold else []
    return broken
