"""Step 1: a request that can be answered, or an error that names the field.

Field ranges stand on the types; here is what spans fields or needs another reading: weights, filters, times, sizes, and what a request
may cost as a whole.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.canonical import SAFE_INTEGER
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError, RequestTooCostlyError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicate_values import METADATA_FIELDS
from evidentia.contracts.predicates import Exists, check_fields, count_parts
from evidentia.contracts.shapes import shape_fault
from evidentia.ranking.signals import task_weights
from evidentia.text.counting import TOKENIZER_BASES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.settings import SearchSettings

WEIGHT_TOLERANCE = 1e-6
_UNSET = object()
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(EvidenceRequest) if field.default is not msgspec.NODEFAULT}
"""Values that a request has unless it says otherwise; one that is such a value needs no reading."""
MAX_FACETS = 16
_TIMES = frozenset({"as_of", "time_window"})
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DEFAULT_LIMIT = 10
BUDGETED_LIMIT = 100
"""How many fragments are ranked where a token budget decides how many there are: the same for every budget, so that all share one order."""


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
    return _read({"query": {"text": query}} | {name: value for name, value in fields.items() if value is not None})


def check_request(request: EvidenceRequest, *, search: SearchSettings, now: datetime) -> EvidenceRequest:
    """Return the request in the form in which it is answered and hashed: filter as a tree, `as_of`, `limit` and weights filled in.

    A request that was made as an object was never checked, so its fields are read again.
    """
    given = {name: getattr(request, name) for name in request.__struct_fields__}
    request = _read({name: value for name, value in given.items() if value is not _DEFAULTS.get(name, _UNSET)})
    _check_query(request.query, search=search)
    _check_weights(request)
    _check_times(request)
    if request.tokenizer not in TOKENIZER_BASES:
        raise InvalidFieldError("tokenizer", f"'{request.tokenizer}' is not one of {', '.join(TOKENIZER_BASES)}")
    if len(request.facets) > MAX_FACETS:
        raise InvalidFieldError("facets", f"{len(request.facets)} facets are more than {MAX_FACETS}")
    for field in request.facets:
        try:
            check_fields(Exists(field), fields=METADATA_FIELDS)
        except InvalidFieldError as error:
            raise InvalidFieldError("facets", str(error)) from error
    narrowing = parse(request.filter) if isinstance(request.filter, str) else request.filter
    if narrowing is not None:
        check_fields(narrowing)
    weights = request.ranking_weights or task_weights(request.task)
    limit = request.limit or (DEFAULT_LIMIT if request.token_budget is None else BUDGETED_LIMIT)
    return msgspec.structs.replace(request, filter=narrowing, as_of=request.as_of or now, ranking_weights=weights, limit=limit)


def _read(fields: Mapping[str, object]) -> EvidenceRequest:
    """Return a request from values of any kind, or name the first field that has no place in one."""
    plain = {name: _plain(name, value) for name, value in fields.items()}
    for name in plain.keys() & _TIMES:
        plain[name] = _with_instants(plain[name])
    try:
        request = convert(plain, EvidenceRequest, strict=True)
    except msgspec.ValidationError as error:
        place, problem = shape_fault(error, EvidenceRequest)
        raise InvalidFieldError(place or "request", problem) from error
    except RecursionError as error:
        raise InvalidFieldError("filter", "it is nested too deeply") from error
    for name, value in plain.items():
        if name != "filter":  # a filter's own types refuse what they do not know
            _refuse_unknown(value, msgspec.to_builtins(getattr(request, name)), place=name)
    return request


def _plain(name: str, value: object) -> object:
    """Return a value in the terms of JSON, if it has such a form."""
    try:
        plain: object = msgspec.to_builtins(value, order="deterministic")  # a set has no order of its own
        msgspec.json.encode(plain)
    except UnicodeEncodeError as error:
        raise InvalidFieldError(name, "it holds an unpaired surrogate") from error
    except RecursionError as error:
        raise InvalidFieldError(name, "it is nested too deeply") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidFieldError(name, f"a request cannot hold it ({error})") from error
    if isinstance(plain, int) and abs(plain) > SAFE_INTEGER:
        raise InvalidFieldError(name, f"{plain} is more than {SAFE_INTEGER}")
    return plain


def _with_instants(value: object) -> object:
    """Return a time, or an object of times, with every date as its first instant in UTC, as in filters."""
    if isinstance(value, dict):
        return {name: _with_instants(each) for name, each in value.items()}
    return f"{value}T00:00:00Z" if isinstance(value, str) and _DATE.fullmatch(value) else value


def _refuse_unknown(given: object, known: object, *, place: str) -> None:
    """Refuse a name that reading would have passed over: a misspelt restriction must not be none."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            if name not in known:
                raise InvalidFieldError(f"{place}.{name}", "a request has no such field")
            _refuse_unknown(value, known[name], place=f"{place}.{name}")
    elif isinstance(given, list | tuple) and isinstance(known, list | tuple):
        for index, (value, inner) in enumerate(zip(given, known, strict=True)):
            _refuse_unknown(value, inner, place=f"{place}[{index}]")


def _check_query(query: DecomposedQuery, *, search: SearchSettings) -> None:
    if not query.text.strip():
        raise InvalidFieldError("query", "it is empty")
    most = search.max_query_chars
    if len(query.text) > most:
        raise InvalidFieldError("query", f"{len(query.text)} characters are more than search.max_query_chars, {most}")
    for place, part in enumerate(query.subqueries):
        if len(part.text) > most:
            problem = f"{len(part.text)} characters are more than search.max_query_chars, {most}"
            raise InvalidFieldError(f"query.subqueries[{place}].text", problem)


def _check_weights(request: EvidenceRequest) -> None:
    values = {} if request.ranking_weights is None else msgspec.structs.asdict(request.ranking_weights)
    for name, value in values.items():
        if not math.isfinite(value) or not 0 <= value <= 1:
            raise InvalidFieldError(f"ranking_weights.{name}", f"'{value}' is not a number from 0 to 1")
    if values and abs(sum(values.values()) - 1) > WEIGHT_TOLERANCE:
        raise InvalidFieldError("ranking_weights", f"they sum to {sum(values.values()):g}, not to 1")
    if not math.isfinite(request.diversity_constraint) or not 0 <= request.diversity_constraint <= 1:
        raise InvalidFieldError("diversity_constraint", f"'{request.diversity_constraint}' is not a number from 0 to 1")


def _check_times(request: EvidenceRequest) -> None:
    window = request.time_window
    times = {"as_of": request.as_of} | ({"time_window.start": window.start, "time_window.end": window.end} if window else {})
    for name, moment in times.items():
        if moment is None:
            continue
        if moment.tzinfo is None:
            raise InvalidFieldError(name, f"'{moment.isoformat()}' has no time zone; add Z for UTC")
        try:
            moment.astimezone(UTC)
        except OverflowError as error:
            raise InvalidFieldError(name, f"'{moment.isoformat()}' is not within the years 1 to 9999 in UTC") from error
    if window and window.start and window.end and window.start > window.end:
        raise InvalidFieldError("time_window", "it ends before it starts")


# --- cost ---
# What answering a request may hold, from its fields alone: an upper estimate in bytes, by the field that asks for it.
#
# The figures were measured with tracemalloc over 6,000 passages with vectors (tests/engine/test_request_cost.py holds them to it), and are
# what a thing takes at most and not on average. How long a request takes grows with the same products, so one bound serves for both.

MB: Final = 1_000_000
FRAGMENT_BYTES: Final = 24_000
"""A fragment with its custody and proof, and as it is sent."""
PAIR_BYTES: Final = 48
"""Of two fragments that are compared."""
READ_BEYOND: Final = 210
"""So many more than are wanted are read and compared at most."""
CANDIDATE_BYTES: Final = 500
SCORE_BYTES: Final = 112
"""What one part of a question says of one candidate."""
EXPLAINED_BYTES: Final = 300
"""What one word gave to one fragment."""
WORD_BYTES: Final = 10_000
"""A word that is looked up, corrected and searched: it takes a tenth of that, and as much time as ten of the others."""
CALL_BYTES: Final = 16_000
"""Asking one source outside the base one part; what it says is bounded where it is read."""
FILTER_BYTES: Final = 1_000
CHAR_BYTES: Final = 8
LEGS: Final = 2
_WORDS: Final = re.compile(r"\w+")
_ADVICE: Final = {
    "query": "ask a shorter question",
    "query.subqueries": "send fewer parts, or lower 'limit'",
    "limit": "lower it, and ask again with a narrower filter for more",
    "explain": "leave it out, lower 'limit', or ask a shorter question",
    "turns": "send the last turns only",
    "filter": "send a shorter one",
    "source_policy": "lower 'most_sources', or send fewer parts",
}


def request_cost(request: EvidenceRequest, *, candidates: int = 100, sources: int = 3) -> dict[str, int]:
    """Return how many bytes answering a request may take at most, by the field that asks for them.

    `candidates` and `sources` are what the settings say where the request does not: `ranking.candidates`, `sources.most_per_part`.
    """
    texts = [request.query.text, *(part.text for part in request.query.subqueries)]
    parts = len(texts)
    limit = request.limit or (DEFAULT_LIMIT if request.token_budget is None else BUDGETED_LIMIT)
    depth = max(candidates, limit)
    policy = request.source_policy
    asked = sources if policy.most_sources is None else policy.most_sources
    words = _count_words(texts[0])
    others = sum(map(_count_words, texts[1:]))
    scored = LEGS * depth * (parts * (CANDIDATE_BYTES + SCORE_BYTES * parts) - (CANDIDATE_BYTES + SCORE_BYTES))
    return {
        "query": WORD_BYTES * words,
        "query.subqueries": WORD_BYTES * others + scored,
        "limit": FRAGMENT_BYTES * limit + PAIR_BYTES * (limit + READ_BEYOND) ** 2 + LEGS * depth * (CANDIDATE_BYTES + SCORE_BYTES),
        "explain": EXPLAINED_BYTES * limit * words if request.explain else 0,
        "turns": CHAR_BYTES * sum(len(turn.text) for turn in request.turns),
        "filter": FILTER_BYTES * _count_conditions(request.filter),
        "source_policy": CALL_BYTES * parts * asked,
    }


def check_cost(request: EvidenceRequest, *, max_mb: int, limit: str, candidates: int = 100, sources: int = 3) -> int:
    """Return what a request may cost in megabytes, or raise RequestTooCostlyError; `limit` is what the bound is called."""
    shares = request_cost(request, candidates=candidates, sources=sources)
    cost_mb = sum(shares.values()) // MB
    if cost_mb <= max_mb:
        return cost_mb
    field = max(shares, key=lambda name: (shares[name], name))
    raise RequestTooCostlyError(field, cost_mb=cost_mb, share_mb=shares[field] // MB, limit=f"{limit}, {max_mb} MB", advice=_ADVICE[field])


def _count_words(text: str) -> int:
    """Return how many different words a text has, in scripts without spaces about one for each four characters."""
    return sum(1 if word.isascii() else 1 + len(word) // 4 for word in set(_WORDS.findall(text)))


def _count_conditions(narrowing: Predicate | str | None) -> int:
    """Return how many conditions a filter has at most."""
    if isinstance(narrowing, str):
        return 1 + len(narrowing) // 8
    return 0 if narrowing is None else count_parts(narrowing)
