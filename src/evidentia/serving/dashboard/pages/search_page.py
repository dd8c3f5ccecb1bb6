"""Ask for evidence, see what each fragment's place is made of, and ask receipts: again, and why not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response

from evidentia.contracts.errors import EvidentiaError, FilterSyntaxError
from evidentia.contracts.evidence import SCORE_ONE, EvidenceResponse, RankingWeights
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import And, In, Predicate
from evidentia.contracts.vocabulary import GovernanceMode, RetrievalMode
from evidentia.serving.dashboard.answer_view import AnswerView, ScoreSegment, bar_of, terms_of, view_answer
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute, is_partial, problems_of
from evidentia.serving.dashboard.http_headers import HEADERS
from evidentia.serving.operations.api_errors import ApiError, bad_field, refusal_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from evidentia.contracts.control import Fault
    from evidentia.contracts.receipts import WhyReport
    from evidentia.serving.identity.admission import Identity


NAV: Final = NavEntry("search", "Search", "/dashboard/search", "retrieve")
RECEIPTS: Final = "/dashboard/receipts"
MAX_DOCUMENTS: Final = 500
"""Documents that the form for `why` offers."""
_UNPROCESSABLE: Final = 422
_ROUNDING: Final = 0.000_01


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, search),
        PageRoute(f"{NAV.path}/export", export),
        PageRoute(f"{RECEIPTS}/{{id}}", show_receipt),
        PageRoute(f"{RECEIPTS}/{{id}}/replay", replay, methods=("POST",)),
    ]


async def search(app: DashboardApp, request: Request) -> Response:
    """Show the form, and the answer when something was asked."""
    form = read_form(request.query_params)
    answer, fault, status = None, None, 200
    if form.q.strip():
        try:
            answer = await _answered(app, app.signed_in(request).identity, form)
        except (ApiError, EvidentiaError) as error:
            refusal = error if isinstance(error, ApiError) else refusal_of(error)
            fault, status = refusal.fault, refusal.status
    problems = {} if fault is None else problems_in_form(fault, form)
    return app.render(
        request,
        "search/answer.html" if is_partial(request) else "search/search.html",
        status=status,
        search_form=form,
        answer=answer,
        wait_longer=_longer(request.query_params, form),
        fault=fault,
        problems=problems,
        modes=[(each, each.capitalize()) for each in RetrievalMode.words()],
        governances=[(each, each.capitalize()) for each in GovernanceMode.words()],
    )


def _longer(params: QueryParams, form: SearchForm) -> str:
    """Return the address of the same question with more time."""
    asked = int(form.deadline_ms) if form.deadline_ms.isdecimal() and len(form.deadline_ms) <= _MAX_NUMBER_LENGTH else DEADLINE_MS
    given = [(name, value) for name, value in params.multi_items() if name != "deadline_ms"]
    return f"{NAV.path}?{urlencode([*given, ('deadline_ms', str(_LONGER * asked))])}"


async def export(app: DashboardApp, request: Request) -> Response:
    """Send a fragment as a file that anybody can check."""
    found = await app.call(app.signed_in(request).identity, "export", chunk=request.query_params.get("chunk"))
    headers = {**HEADERS, "content-disposition": 'attachment; filename="fragment.json"'}
    return Response(msgspec.json.encode(found), headers=headers, media_type="application/json")


async def show_receipt(app: DashboardApp, request: Request) -> Response:
    """Show what a receipt says, and why a chunk is or is not in its answer when that was asked."""
    identity = app.signed_in(request).identity
    receipt_id = request.path_params["id"]
    receipt = await app.call(identity, "show_receipt", id=receipt_id)
    document = request.query_params.get("document", "").strip()
    chunk = request.query_params.get("chunk", "").strip()
    chunks, why, fault = (), None, None
    try:
        if document:
            chunks = (await app.call(identity, "list_chunks", document=document)).chunks
        if chunk:
            why = await app.call(identity, "why", id=receipt_id, chunk=chunk)
    except ApiError as refusal:
        fault = refusal.fault
    documents = await app.call(identity, "list_documents", limit=MAX_DOCUMENTS)
    return app.render(
        request,
        "search/receipt.html",
        status=200 if fault is None else _UNPROCESSABLE,
        receipt=receipt,
        documents=documents.documents,
        document=document,
        chunk=chunk,
        chunks=chunks,
        why=why,
        bar=() if why is None else _bar_for(why),
        terms=() if why is None else terms_of(why.terms),
        fault=fault,
    )


async def replay(app: DashboardApp, request: Request) -> Response:
    """Answer a receipt again, and show whether it is the same."""
    receipt_id = request.path_params["id"]
    report = await app.call(app.signed_in(request).identity, "replay", id=receipt_id)
    answer = view_answer(report.response, query="", settings=app.context.served_base.settings, chosen={}, counts={})
    template = "search/replayed_part.html" if is_partial(request) else "search/replayed.html"
    return app.render(request, template, report=report, answer=answer, address_of_receipt=f"{RECEIPTS}/{quote(receipt_id, safe='')}")


def _bar_for(why: WhyReport) -> tuple[ScoreSegment, ...]:
    """Return what a score is made of; nothing when the request had weights of its own, which its receipt does not tell."""
    if why.scores is None:
        return ()
    bar = bar_of(why.scores, RankingWeights())
    return bar if abs(sum(each.gives for each in bar) - why.score / SCORE_ONE) < _ROUNDING else ()


async def _answered(app: DashboardApp, identity: Identity, form: SearchForm) -> AnswerView:
    response: EvidenceResponse = await app.call(identity, "retrieve", **request_fields(form))
    counts: dict[str, Mapping[str, int]] = dict(response.facets)
    for field in form.chosen:
        counts[field] = await _alternatives(app, identity, form, field)
    return view_answer(response, query=form.q, settings=app.context.served_base.settings, chosen=form.chosen, counts=counts)


async def _alternatives(app: DashboardApp, identity: Identity, form: SearchForm, field: str) -> Mapping[str, int]:
    """Return what a field has when nothing of it is ticked, so that more of it can be ticked."""
    asked = request_fields(form, facets=(field,), besides=field)
    asked |= {"limit": 1, "explain": False, "receipt": False, "governance": None, "token_budget": None}
    found: EvidenceResponse = await app.poll(identity, "retrieve", **asked)
    return found.facets.get(field, {})


# A search as the form of its page says it: read from an address, and made into a request for evidence.

FACETS: Final = ("source_id", "authority_tier", "content_type", "classification", "language", "tags")
"""What the checkboxes beside an answer are about."""
DEADLINE_MS: Final = 2_000
_LONGER: Final = 5
"""How many times as long a search may take that is asked again because it did not finish."""
LIMIT: Final = 10
MAX_LENGTH: Final = 10_000
_MAX_NUMBER_LENGTH: Final = 10
NAMES: Final = {"latency_deadline_ms": "deadline_ms", "query": "q", "query.text": "q"}
"""What a field of the request is called in the form."""


class SearchForm(NamedTuple):
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


def read_form(params: QueryParams) -> SearchForm:
    """Return what an address says; nothing is checked yet."""
    chosen: dict[str, list[str]] = {}
    for ticked in params.getlist("f"):
        field, found, value = ticked.partition(":")
        if found and field in FACETS and value not in chosen.setdefault(field, []):
            chosen[field].append(value)
    return SearchForm(
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


def problems_in_form(fault: Fault, form: SearchForm) -> dict[str, str]:
    """Return what is wrong by the field of the form; what the form does not have, the filter names."""
    if fault.code == FilterSyntaxError.code:
        return {"filter": fault.message}
    names = {path: NAMES.get(path, path) for path in problems_of(fault)}
    return {
        "filter" if names[path] not in SearchForm._fields and form.filter else names[path]: said
        for path, said in problems_of(fault).items()
    }


def request_fields(form: SearchForm, *, facets: tuple[str, ...] = FACETS, besides: str = "") -> dict[str, Any]:  # Any: whatever JSON holds
    """Return the request for evidence; the ticked values of the field `besides` are left out, to see what else it has."""
    return {
        "query": {"text": form.q},
        "filter": _narrowed(form, besides=besides),
        "facets": facets,
        "mode": form.mode,
        "governance": None if form.governance == GovernanceMode.ANNOTATE else form.governance,  # what nobody chose is not asked for
        "limit": _number("limit", form.limit) or LIMIT,
        "token_budget": _number("token_budget", form.token_budget),
        "latency_deadline_ms": _number("deadline_ms", form.deadline_ms) or DEADLINE_MS,
        "as_of": _moment(form.as_of),
        "explain": form.explain,
    }


def _narrowed(form: SearchForm, *, besides: str) -> Predicate | str | None:
    ticked = [In(field, values) for field, values in form.chosen.items() if field != besides]
    if not ticked:
        return form.filter or None
    return And((*((parse(form.filter),) if form.filter else ()), *ticked))


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
