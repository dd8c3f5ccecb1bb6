"""Is a call fit to be decided about? Numbers that compare with nothing are refused, so that none passes for want of an order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument

if TYPE_CHECKING:
    from evidentia.contracts.calls import RunCall


def check_call(call: RunCall) -> None:
    """Raise InvalidFieldError for a document or grounding entry that no rule can be asked about; other calls are fit."""
    if isinstance(call, RetrievedDocument):
        _check_document(call)
    elif isinstance(call, GroundingEntry):
        _check_entry(call)


def is_out_of_range(score: float) -> bool:
    """Tell whether a score lies outside 0 to 1; such a score is compared as it is, and flagged."""
    return not 0 <= score <= 1


def _check_document(document: RetrievedDocument) -> None:
    _check_number("relevance_score", document.relevance_score)
    for name, value in (("source", document.source), ("collection", document.collection)):
        _check_text(name, value)
    if document.age_days is not None:
        _check_number("age_days", document.age_days)
        if document.age_days < 0:
            raise InvalidFieldError("age_days", f"{document.age_days} is negative; give the days since the source was made, or None")


def _check_entry(entry: GroundingEntry) -> None:
    for number, score in enumerate(entry.grounding_scores):
        _check_number(f"grounding_scores[{number}]", score)
    for number, citation in enumerate(entry.citations):
        _check_text(f"citations[{number}]", citation)
    for number, claim in enumerate(entry.unsupported_claims):
        _check_text(f"unsupported_claims[{number}]", claim)
    if entry.output_confidence is not None:
        _check_number("output_confidence", entry.output_confidence)


def _check_number(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidFieldError(field, f"expected a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise InvalidFieldError(field, f"{value} is not a finite number")


def _check_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidFieldError(field, f"expected text, not {type(value).__name__}")
