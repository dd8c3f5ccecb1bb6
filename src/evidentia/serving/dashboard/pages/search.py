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
from evidentia.serving.dashboard.desk import NavEntry, PageRoute, is_partial
from evidentia.serving.dashboard.headers import HEADERS
from evidentia.serving.dashboard.search_asking import problems_in_form, read_asking, request_fields
from evidentia.serving.operations.refusals import Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.receipts import WhyReport
    from evidentia.serving.dashboard.answer_view import AnswerView, Segment
    from evidentia.serving.dashboard.desk import Desk
    from evidentia.serving.dashboard.search_asking import Asking
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("search", "Search", "/dashboard/search", "retrieve")
RECEIPTS: Final = "/dashboard/receipts"
MOST_DOCUMENTS: Final = 500
"""Documents that the form for `why` offers."""
_UNPROCESSABLE: Final = 422
_ROUNDING: Final = 0.000_01


def routes(_: Desk) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, search),
        PageRoute(f"{NAV.path}/export", export),
        PageRoute(f"{RECEIPTS}/{{id}}", show_receipt),
        PageRoute(f"{RECEIPTS}/{{id}}/replay", replay, methods=("POST",)),
    ]


async def search(desk: Desk, request: Request) -> Response:
    """Show the form, and the answer when something was asked."""
    asking = read_asking(request.query_params)
    answer, fault, status = None, None, 200
    if asking.q.strip():
        try:
            answer = await _answered(desk, desk.signed_in(request).identity, asking)
        except (Refusal, EvidentiaError) as error:
            refusal = error if isinstance(error, Refusal) else refusal_of(error)
            fault, status = refusal.fault, refusal.status
    problems = {} if fault is None else problems_in_form(fault, asking)
    return desk.render(
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


async def export(desk: Desk, request: Request) -> Response:
    """Send a fragment as a file that anybody can check."""
    found = await desk.call(desk.signed_in(request).identity, "export", chunk=request.query_params.get("chunk"))
    headers = {**HEADERS, "content-disposition": 'attachment; filename="fragment.json"'}
    return Response(msgspec.json.encode(found), headers=headers, media_type="application/json")


async def show_receipt(desk: Desk, request: Request) -> Response:
    """Show what a receipt says, and why a chunk is or is not in its answer when that was asked."""
    identity = desk.signed_in(request).identity
    receipt_id = request.path_params["id"]
    receipt = await desk.call(identity, "show_receipt", id=receipt_id)
    document = request.query_params.get("document", "").strip()
    chunk = request.query_params.get("chunk", "").strip()
    chunks, why, fault = (), None, None
    try:
        if document:
            chunks = (await desk.call(identity, "list_chunks", document=document)).chunks
        if chunk:
            why = await desk.call(identity, "why", id=receipt_id, chunk=chunk)
    except Refusal as refusal:
        fault = refusal.fault
    documents = await desk.call(identity, "list_documents", limit=MOST_DOCUMENTS)
    return desk.render(
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


async def replay(desk: Desk, request: Request) -> Response:
    """Answer a receipt again, and show whether it is the same."""
    receipt_id = request.path_params["id"]
    report = await desk.call(desk.signed_in(request).identity, "replay", id=receipt_id)
    answer = view_answer(report.response, query="", settings=desk.plane.office.settings, chosen={}, counts={})
    template = "search/replayed_part.html" if is_partial(request) else "search/replayed.html"
    return desk.render(request, template, report=report, answer=answer, address_of_receipt=f"{RECEIPTS}/{quote(receipt_id, safe='')}")


def _bar_for(why: WhyReport) -> tuple[Segment, ...]:
    """Return what a score is made of; nothing when the request had weights of its own, which its receipt does not tell."""
    if why.scores is None:
        return ()
    bar = bar_of(why.scores, RankingWeights())
    return bar if abs(sum(each.gives for each in bar) - why.score / SCORE_ONE) < _ROUNDING else ()


async def _answered(desk: Desk, identity: Identity, asking: Asking) -> AnswerView:
    response: EvidenceResponse = await desk.call(identity, "retrieve", **request_fields(asking))
    counts: dict[str, Mapping[str, int]] = dict(response.facets)
    for field in asking.chosen:
        counts[field] = await _alternatives(desk, identity, asking, field)
    return view_answer(response, query=asking.q, settings=desk.plane.office.settings, chosen=asking.chosen, counts=counts)


async def _alternatives(desk: Desk, identity: Identity, asking: Asking, field: str) -> Mapping[str, int]:
    """Return what a field has when nothing of it is ticked, so that more of it can be ticked."""
    asked = request_fields(asking, facets=(field,), besides=field)
    asked |= {"limit": 1, "explain": False, "receipt": False, "governance": GovernanceMode.OFF.value, "token_budget": None}
    found: EvidenceResponse = await desk.poll(identity, "retrieve", **asked)
    return found.facets.get(field, {})
