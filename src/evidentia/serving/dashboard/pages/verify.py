"""Recompute custody: of an answer or an exported fragment that is pasted or sent as a file, or of what the base holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from evidentia.contracts.ids import ChunkId, chunk_parts
from evidentia.contracts.provenance import FragmentExport
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.proof_files import parse_proof
from evidentia.serving.cli.verify_report import checked
from evidentia.serving.dashboard.chain_view import MAX_DRAWN, chains_of
from evidentia.serving.dashboard.dashboard_app import NavEntry, PageRoute, problems_of
from evidentia.serving.dashboard.guarding import form_of
from evidentia.serving.operations.api_errors import ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.control import Fault
    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.provenance import VerifyReport
    from evidentia.serving.dashboard.chain_view import Chain
    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

NAV: Final = NavEntry("verify", "Verify", "/dashboard/verify", "verify")
MAX_BYTES: Final = 16 << 20
"""Of a form with a file: as much as the operation takes."""
MAX_SHOWN_CHARS: Final = 100_000
"""Of a pasted text that is shown again."""
MAX_TARGET_LENGTH: Final = 2_000
_GIVEN: Final = Path("what was given")


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, show),
        PageRoute(NAV.path, check, methods=("POST",), max_bytes=MAX_BYTES),
        PageRoute(f"{NAV.path}/base", check_base, methods=("POST",)),
    ]


async def show(app: DashboardApp, request: Request) -> Response:
    """Show the form, and the custody of a document or chunk when one is named."""
    target = request.query_params.get("target", "").strip()[:MAX_TARGET_LENGTH]
    if not target:
        return _page(app, request)
    return await _checked(app, request, text="", target=target)


async def check(app: DashboardApp, request: Request) -> Response:
    """Check what was pasted or sent."""
    form = await form_of(request)
    file = form.get("file")
    stored = await file.read() if isinstance(file, UploadFile) and file.filename else b""
    text = str(form.get("text", "")).strip()
    return await _checked(app, request, text=text, stored=stored, target=str(form.get("target", "")).strip()[:MAX_TARGET_LENGTH])


async def check_base(app: DashboardApp, request: Request) -> Response:
    """Check the whole base."""
    report = await app.call(app.signed_in(request).identity, "verify_base")
    return _page(app, request, report=report)


async def _checked(app: DashboardApp, request: Request, *, text: str, target: str, stored: bytes = b"") -> Response:
    identity = app.signed_in(request).identity
    try:
        given = sum(map(bool, (text, stored, target)))
        if given != 1:
            raise bad_field("text", "give one of the three alone" if given else "paste something, choose a file, or write an id")
        if target or not (stored or text.startswith("{")):
            report, chains = await _of_target(app, identity, target or text)
        else:
            report, chains = await _of_proof(app, identity, stored or text.encode())
    except ApiError as refusal:
        return _page(app, request, status=refusal.status, text=text, target=target, fault=refusal.fault)
    return _page(app, request, text=text, target=target, report=report, chains=chains)


async def _of_target(app: DashboardApp, identity: Identity, target: str) -> tuple[VerifyReport, list[Chain]]:
    report = await app.call(identity, "verify", target=target)
    if chunk_parts(ChunkId(target)) is None:
        return report, []
    return report, chains_of(await app.call(identity, "export", chunk=target), report)


async def _of_proof(app: DashboardApp, identity: Identity, stored: bytes) -> tuple[VerifyReport, list[Chain]]:
    proof = await run_in_threadpool(_parsed, stored)
    name = "export" if isinstance(proof, FragmentExport) else "response"
    report = await app.call(identity, "verify", **{name: proof})
    return report, await run_in_threadpool(chains_of, proof, report)


def _parsed(stored: bytes) -> FragmentExport | EvidenceResponse:
    """Return what was given, read as strictly as a file: what no hash speaks of could be taken for proved."""
    try:
        return parse_proof(_GIVEN, stored)
    except UsageError as error:
        raise bad_field("text", str(error).partition("cannot be verified: ")[2] or str(error)) from error


def _page(
    app: DashboardApp,
    request: Request,
    *,
    status: int = 200,
    text: str = "",
    target: str = "",
    report: VerifyReport | None = None,
    chains: Sequence[Chain] = (),
    fault: Fault | None = None,
) -> Response:
    return app.render(
        request,
        "verify/verify.html",
        status=status,
        text=text[:MAX_SHOWN_CHARS],
        target=target,
        report=report,
        chains=chains,
        fault=fault,
        checked="" if report is None else checked(report),
        problems={} if fault is None else problems_of(fault),
        max_drawn=MAX_DRAWN,
    )
