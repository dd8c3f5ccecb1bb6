"""Ask for evidence, see what each fragment's place is made of, and ask receipts: again, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.evidence import SCORE_ONE, RankingWeights
from evidentia.contracts.vocabulary import GovernanceMode, RetrievalMode
from evidentia.serving.dashboard.answer_view import bar_of, terms_of, view_answer
from evidentia.serving.dashboard.dashboard_app import NavEntry, PageRoute, is_partial
from evidentia.serving.dashboard.headers import HEADERS
from evidentia.serving.dashboard.search_asking import problems_in_form, read_asking, request_fields
from evidentia.serving.operations.api_errors import ApiError, refusal_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.receipts import WhyReport
    from evidentia.serving.dashboard.answer_view import AnswerView, Segment
    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.dashboard.search_asking import Asking
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
    asking = read_asking(request.query_params)
    answer, fault, status = None, None, 200
    if asking.q.strip():
        try:
            answer = await _answered(app, app.signed_in(request).identity, asking)
        except (ApiError, EvidentiaError) as error:
            refusal = error if isinstance(error, ApiError) else refusal_of(error)
            fault, status = refusal.fault, refusal.status
    problems = {} if fault is None else problems_in_form(fault, asking)
    return app.render(
        request,
        "search/answer.html" if is_partial(request) else "search/search.html",
        status=status,
        asking=asking,
        answer=answer,
        fault=fault,
        problems=problems,
        modes=[(each, each.capitalize()) for each in RetrievalMode.words()],
        governances=[(each, each.capitalize()) for each in GovernanceMode.words()],
    )


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


def _bar_for(why: WhyReport) -> tuple[Segment, ...]:
    """Return what a score is made of; nothing when the request had weights of its own, which its receipt does not tell."""
    if why.scores is None:
        return ()
    bar = bar_of(why.scores, RankingWeights())
    return bar if abs(sum(each.gives for each in bar) - why.score / SCORE_ONE) < _ROUNDING else ()


async def _answered(app: DashboardApp, identity: Identity, asking: Asking) -> AnswerView:
    response: EvidenceResponse = await app.call(identity, "retrieve", **request_fields(asking))
    counts: dict[str, Mapping[str, int]] = dict(response.facets)
    for field in asking.chosen:
        counts[field] = await _alternatives(app, identity, asking, field)
    return view_answer(response, query=asking.q, settings=app.context.served_base.settings, chosen=asking.chosen, counts=counts)


async def _alternatives(app: DashboardApp, identity: Identity, asking: Asking, field: str) -> Mapping[str, int]:
    """Return what a field has when nothing of it is ticked, so that more of it can be ticked."""
    asked = request_fields(asking, facets=(field,), besides=field)
    asked |= {"limit": 1, "explain": False, "receipt": False, "governance": GovernanceMode.OFF.value, "token_budget": None}
    found: EvidenceResponse = await app.poll(identity, "retrieve", **asked)
    return found.facets.get(field, {})
