"""Step 1: a request that can be answered, or an error that names the field.

Field ranges stand on the types; here is what spans fields or needs another reading: weights, filters, times, sizes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import METADATA_FIELDS, Exists, check_fields
from evidentia.text.counting import TOKENIZER_BASES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from evidentia.contracts.settings import SearchSettings

WEIGHT_TOLERANCE = 1e-6
MOST_FACETS = 16


def request_from(query: str | EvidenceRequest, fields: Mapping[str, object]) -> EvidenceRequest:
    """Return a request from a question and keywords; times may be ISO 8601 strings, words may stand for members."""
    if isinstance(query, EvidenceRequest):
        if fields:
            raise InvalidFieldError(sorted(fields)[0], "a request that is already made takes no further fields")
        return query
    if not isinstance(query, str):
        raise InvalidFieldError("query", f"expected a text, got {type(query).__name__}")
    for name in fields:
        if name not in EvidenceRequest.__struct_fields__ or name == "query":
            raise InvalidFieldError(name, "a request has no such field")
    plain = {name: msgspec.to_builtins(value) for name, value in fields.items() if value is not None}
    try:
        return msgspec.convert({"query": {"text": query}, **plain}, EvidenceRequest, strict=True)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise InvalidFieldError(place.strip("`.") or "request", f"{problem[:1].lower()}{problem[1:]}") from error


def check_request(request: EvidenceRequest, *, search: SearchSettings, now: datetime) -> EvidenceRequest:
    """Return the request in the form in which it is answered and hashed: filter as a tree, `as_of` filled in."""
    _check_query(request.query, search=search)
    _check_weights(request)
    _check_times(request)
    if request.tokenizer not in TOKENIZER_BASES:
        raise InvalidFieldError("tokenizer", f"'{request.tokenizer}' is not one of {', '.join(TOKENIZER_BASES)}")
    if len(request.facets) > MOST_FACETS:
        raise InvalidFieldError("facets", f"{len(request.facets)} facets are more than {MOST_FACETS}")
    for field in request.facets:
        try:
            check_fields(Exists(field), fields=METADATA_FIELDS)
        except InvalidFieldError as error:
            raise InvalidFieldError("facets", str(error)) from error
    narrowing = parse(request.filter) if isinstance(request.filter, str) else request.filter
    if narrowing is not None:
        check_fields(narrowing)
    return msgspec.structs.replace(request, filter=narrowing, as_of=request.as_of or now)


def _check_query(query: DecomposedQuery, *, search: SearchSettings) -> None:
    if not query.text.strip():
        raise InvalidFieldError("query", "it is empty")
    if len(query.text) > search.max_query_chars:
        raise InvalidFieldError("query", f"{len(query.text)} characters are more than search.max_query_chars, {search.max_query_chars}")
    try:
        query.text.encode()
    except UnicodeEncodeError as error:
        raise InvalidFieldError("query", "it holds an unpaired surrogate") from error


def _check_weights(request: EvidenceRequest) -> None:
    weights = request.ranking_weights
    values = {name: getattr(weights, name) for name in weights.__struct_fields__}
    for name, value in values.items():
        if not math.isfinite(value) or not 0 <= value <= 1:
            raise InvalidFieldError(f"ranking_weights.{name}", f"'{value}' is not a number from 0 to 1")
    if abs(sum(values.values()) - 1) > WEIGHT_TOLERANCE:
        raise InvalidFieldError("ranking_weights", f"they sum to {sum(values.values()):g}, not to 1")
    if not math.isfinite(request.diversity_constraint) or not 0 <= request.diversity_constraint <= 1:
        raise InvalidFieldError("diversity_constraint", f"'{request.diversity_constraint}' is not a number from 0 to 1")


def _check_times(request: EvidenceRequest) -> None:
    window = request.time_window
    times = {"as_of": request.as_of} | ({"time_window.start": window.start, "time_window.end": window.end} if window else {})
    for name, moment in times.items():
        if moment is not None and moment.tzinfo is None:
            raise InvalidFieldError(name, f"'{moment.isoformat()}' has no time zone; add Z for UTC")
    if window and window.start and window.end and window.start > window.end:
        raise InvalidFieldError("time_window", "it ends before it starts")
