"""A search as the form of its page says it: read from an address, and made into a request for evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.contracts.errors import FilterSyntaxError
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import And, In
from evidentia.contracts.vocabulary import GovernanceMode, RetrievalMode
from evidentia.serving.dashboard.dashboard_app import problems_of
from evidentia.serving.operations.api_errors import bad_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import QueryParams

    from evidentia.contracts.control import Fault
    from evidentia.contracts.predicates import Predicate

FACETS: Final = ("source_id", "authority_tier", "content_type", "classification", "language", "tags")
"""What the checkboxes beside an answer are about."""
DEADLINE_MS: Final = 2_000
LIMIT: Final = 10
MAX_LENGTH: Final = 10_000
_MAX_NUMBER_LENGTH: Final = 10
NAMES: Final = {"latency_deadline_ms": "deadline_ms", "query": "q", "query.text": "q"}
"""What a field of the request is called in the form."""


class Asking(NamedTuple):
    """What somebody typed and ticked, as they typed it."""

    q: str
    filter: str
    mode: str
    governance: str
    limit: str
    token_budget: str
    deadline_ms: str
    as_of: str
    explain: bool
    chosen: Mapping[str, tuple[str, ...]]
    """The facet values that were ticked, by field."""

    @property
    def has_options(self) -> bool:
        """Tell whether anything but the question differs from what it is without saying so."""
        plain = (self.mode, self.limit, self.token_budget, self.deadline_ms, self.as_of, self.filter, self.governance)
        return plain != (RetrievalMode.HYBRID, str(LIMIT), "", str(DEADLINE_MS), "", "", GovernanceMode.ANNOTATE)


def read_asking(params: QueryParams) -> Asking:
    """Return what an address says; nothing is checked yet."""
    chosen: dict[str, list[str]] = {}
    for ticked in params.getlist("f"):
        field, found, value = ticked.partition(":")
        if found and field in FACETS and value not in chosen.setdefault(field, []):
            chosen[field].append(value)
    return Asking(
        q=params.get("q", "")[:MAX_LENGTH],
        filter=params.get("filter", "").strip()[:MAX_LENGTH],
        mode=params.get("mode", RetrievalMode.HYBRID),
        governance=params.get("governance", GovernanceMode.ANNOTATE),
        limit=params.get("limit", str(LIMIT)),
        token_budget=params.get("token_budget", ""),
        deadline_ms=params.get("deadline_ms", str(DEADLINE_MS)),
        as_of=params.get("as_of", ""),
        explain=params.get("explain", "on" if "q" not in params or "mode" not in params else "") == "on",
        chosen={field: tuple(values) for field, values in chosen.items()},
    )


def problems_in_form(fault: Fault, asking: Asking) -> dict[str, str]:
    """Return what is wrong by the field of the form; what the form does not have, the filter names."""
    if fault.code == FilterSyntaxError.code:
        return {"filter": fault.message}
    names = {path: NAMES.get(path, path) for path in problems_of(fault)}
    return {
        "filter" if names[path] not in Asking._fields and asking.filter else names[path]: said for path, said in problems_of(fault).items()
    }


def request_fields(asking: Asking, *, facets: tuple[str, ...] = FACETS, besides: str = "") -> dict[str, Any]:  # Any: whatever JSON holds
    """Return the request for evidence; the ticked values of the field `besides` are left out, to see what else it has."""
    return {
        "query": {"text": asking.q},
        "filter": _narrowed(asking, besides=besides),
        "facets": facets,
        "mode": asking.mode,
        "governance": asking.governance,
        "limit": _number("limit", asking.limit) or LIMIT,
        "token_budget": _number("token_budget", asking.token_budget),
        "latency_deadline_ms": _number("deadline_ms", asking.deadline_ms) or DEADLINE_MS,
        "as_of": _moment(asking.as_of),
        "explain": asking.explain,
    }


def _narrowed(asking: Asking, *, besides: str) -> Predicate | str | None:
    ticked = [In(field, values) for field, values in asking.chosen.items() if field != besides]
    if not ticked:
        return asking.filter or None
    return And((*((parse(asking.filter),) if asking.filter else ()), *ticked))


def _number(name: str, text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_NUMBER_LENGTH):
        raise bad_field(name, "write a whole number")
    return int(text)


def _moment(text: str) -> datetime | None:
    """Return a moment; without a zone it is UTC."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise bad_field("as_of", "write a moment such as 2026-06-01T12:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
