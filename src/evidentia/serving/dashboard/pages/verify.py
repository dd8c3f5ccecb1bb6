"""Recompute custody: of an answer or an exported fragment that is pasted or sent as a file, or of what the base holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from evidentia.contracts.ids import ChunkId, chunk_parts
from evidentia.contracts.provenance import BrokenLink, FragmentExport, OriginDescriptor, ProvenanceEntry, VerifyReport
from evidentia.engine.answer_verification import exported
from evidentia.provenance.custody_chain import chain_faults
from evidentia.provenance.verification import UNREADABLE, verify_export
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.proof_files import checked_counts, parse_proof
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute, problems_of
from evidentia.serving.dashboard.form_guard import form_of
from evidentia.serving.operations.api_errors import ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.control import Fault
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse
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
        checked="" if report is None else checked_counts(report),
        problems={} if fault is None else problems_of(fault),
        max_drawn=MAX_DRAWN,
    )


# Custody link by link, as its page draws it: what each link says, whether it holds, and the first that does not.

MAX_DRAWN: Final = 50
"""Chains of an answer that are drawn; the report is about all of them."""
_IDENTITY: Final = ("format", "identity", "layout", "log")


class Link(NamedTuple):
    """One link: its name, what it says, its hash, and what is wrong with it."""

    name: str
    about: str
    hash: str
    faults: tuple[str, ...]


class Chain(NamedTuple):
    """The custody of one fragment."""

    title: str
    links: tuple[Link, ...]

    @property
    def first_broken(self) -> int | None:
        """Return the number of the first link that does not hold, from 0; None when all do."""
        return next((number for number, link in enumerate(self.links) if link.faults), None)


def chains_of(proof: FragmentExport | EvidenceResponse, report: VerifyReport) -> list[Chain]:
    """Return the chain of a fragment, or of each of an answer's first fragments."""
    if isinstance(proof, FragmentExport):
        return [_drawn(proof, report.broken)]
    return [_fragment(each, proof, report) for each in proof.fragments[:MAX_DRAWN]]


def _fragment(fragment: EvidenceFragment, response: EvidenceResponse, report: VerifyReport) -> Chain:
    own = f"fragment '{fragment.chunk_id}'"
    told = [each for each in report.broken if each.where == own]
    if fragment.event is None or fragment.inclusion is None:
        return _outside(fragment, told)
    export = exported(fragment, response, event=fragment.event, inclusion=fragment.inclusion)
    try:
        found = verify_export(export).broken
    except UNREADABLE:
        found = report.broken
    return _drawn(export, [*found, *told])


def _drawn(export: FragmentExport, broken: Sequence[BrokenLink]) -> Chain:
    event, commit = export.event, export.commit
    return Chain(
        export.chunk_id,
        (
            Link("Identity", f"{export.document_id}, position {export.position}", "", _faults(broken, *_IDENTITY)),
            *_chain_links(export.provenance_chain, [(each.where, each.problem) for each in broken if each.check == "chain"]),
            Link("Log entry", f"{event.kind.value} as entry {event.index}", event.custody_head, _faults(broken, "event")),
            Link(
                "In the log",
                f"{len(export.inclusion.hashes)} hashes lead to the root of {export.inclusion.tree_size} entries",
                export.inclusion.root,
                _faults(broken, "inclusion"),
            ),
            Link("Version", f"version {commit.sequence} of the base vouches for that root", export.commit_hash, _faults(broken, "commit")),
        ),
    )


def _outside(fragment: EvidenceFragment, told: Sequence[BrokenLink]) -> Chain:
    content = (fragment.content + fragment.cut_off).encode()
    identity = Link("Identity", f"{fragment.document_id}, said by a source outside the base", "", _faults(told, *_IDENTITY))
    faults = list(chain_faults(fragment.provenance_chain, content=content))
    return Chain(fragment.chunk_id, (identity, *_chain_links(fragment.provenance_chain, faults)))


def _chain_links(entries: Iterable[ProvenanceEntry], faults: Sequence[tuple[str, str]]) -> list[Link]:
    links = []
    for number, entry in enumerate(entries):
        record = entry.record
        told = tuple(problem for where, problem in faults if where == f"link {number}" or where.startswith(f"link {number} "))
        if isinstance(record, OriginDescriptor):
            about = f"{record.document_id}, {record.media_type}, {record.content_length} bytes"
            links.append(Link("Origin", about, entry.hash, told))
        else:
            links.append(Link(record.step.capitalize(), f"{record.tool_id} {record.tool_version}", entry.hash, told))
    if not links and faults:
        links.append(Link("Origin", "there is none", "", tuple(problem for _, problem in faults)))
    return links


def _faults(broken: Iterable[BrokenLink], *checks: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.problem for each in broken if each.check in checks))
