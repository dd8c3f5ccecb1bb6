"""Before a policy is put in force: what it would have decided about recorded runs, and where its thresholds belong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.governance.calibration import MEASURES
from evidentia.serving.dashboard import plots
from evidentia.serving.dashboard.dashboard_app import PageRoute
from evidentia.serving.dashboard.guarding import form_of
from evidentia.serving.dashboard.pages.governance_editing import read_body, show_form
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.control import Fault
    from evidentia.contracts.policies import StoredPolicy
    from evidentia.contracts.policy_trials import Calibration, ShadowReport
    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

WEEK: Final = "10080"
MINUTES: Final = (("60", "last hour"), ("1440", "last day"), (WEEK, "last week"), ("43200", "last month"), ("527040", "last year"))
MAX_POLICIES: Final = 500
MAX_GROUPS: Final = 20
CHANGES: Final = (
    ("newly_blocked", "Newly blocked", "bad"),
    ("newly_allowed", "Newly allowed", "good"),
    ("newly_warned", "Newly warned", "warn"),
    ("no_longer_warned", "No longer warned", "good"),
    ("unchanged", "Unchanged", ""),
)


def routes(path: str) -> Sequence[PageRoute]:
    """Return the addresses of trials."""
    return [
        PageRoute(f"{path}/shadow", show_shadow),
        PageRoute(f"{path}/shadow", try_form, methods=("POST",)),
        PageRoute(f"{path}/calibrate", show_calibration),
    ]


async def show_shadow(app: DashboardApp, request: Request) -> Response:
    """Try a policy that is kept, or a template, over recorded runs."""
    identity = app.signed_in(request).identity
    kept = await _kept(app, identity)
    templates = (await app.call(identity, "list_templates")).templates
    name, minutes = request.query_params.get("policy", ""), request.query_params.get("minutes", WEEK)
    bodies = {f"template: {each}": body for each, body in templates.items()} | {each.policy.body.name: each.policy.body for each in kept}
    report, fault = None, None
    if name in bodies:
        try:
            report = await _tried(app, identity, msgspec.to_builtins(bodies[name]), minutes)
        except ApiError as refusal:
            fault = refusal.fault
    return _shadow_page(app, request, names=list(bodies), name=name, minutes=minutes, report=report, fault=fault)


async def try_form(app: DashboardApp, request: Request) -> Response:
    """Try what stands in the form of a policy; what is wrong with it is shown in the form."""
    identity = app.signed_in(request).identity
    form = await form_of(request)
    body = await read_body(app, request)
    minutes = str(form.get("minutes", WEEK))
    try:
        report = await _tried(app, identity, body, minutes)
    except ApiError as refusal:
        policy_id, version = str(form.get("policy_id", "")), str(form.get("version", ""))
        return await show_form(app, request, body=body, policy_id=policy_id, version=version, refusal=refusal)
    return _shadow_page(app, request, names=[], name=body["name"], minutes=minutes, report=report, fault=None)


async def show_calibration(app: DashboardApp, request: Request) -> Response:
    """Propose a threshold, with the values it rests on as plots and tables."""
    identity = app.signed_in(request).identity
    query = request.query_params
    wanted = {name: query.get(name, "").strip() for name in ("rule", "policy", "agent")}
    minutes = query.get("minutes", WEEK)
    kept = await _kept(app, identity)
    found: Calibration | None = None
    fault: Fault | None = None
    if wanted["rule"]:
        asked = {name: value or None for name, value in wanted.items()}
        try:
            found = await app.call(identity, "calibrate_rule", **asked, minutes=_whole(minutes))
        except ApiError as refusal:
            fault = refusal.fault
    own = next((each for each in kept if wanted["policy"] in (each.policy.body.name, each.policy.policy_id)), None)
    return app.render(
        request,
        "governance/calibrate.html",
        wanted=wanted,
        minutes=minutes,
        spans=MINUTES,
        measures=[(each.rule, f"{each.rule} ({each.category})") for each in MEASURES.values()],
        policies=[("", "defaults of the category"), *((each.policy.body.name, each.policy.body.name) for each in kept)],
        policy=own,
        found=found,
        fault=fault,
        histogram=None if found is None else plots.histogram(found),
        curve=None if found is None else plots.curve(found),
        caught=() if found is None else plots.caught_by(found.rule, found.histogram),
        size=(plots.PLOT_WIDTH, plots.PLOT_HEIGHT, plots.LEFT, plots.TOP, plots.BOTTOM, plots.RIGHT),
    )


async def _tried(app: DashboardApp, identity: Identity, body: dict[str, Any], minutes: str) -> ShadowReport:  # Any: a policy's body
    report: ShadowReport = await app.call(identity, "try_policy", policy=body, minutes=_whole(minutes))
    return report


async def _kept(app: DashboardApp, identity: Identity) -> tuple[StoredPolicy, ...]:
    found: tuple[StoredPolicy, ...] = (await app.call(identity, "list_policies", limit=MAX_POLICIES)).policies
    return found


def _shadow_page(
    app: DashboardApp, request: Request, *, names: Sequence[str], name: str, minutes: str, report: ShadowReport | None, fault: Fault | None
) -> Response:
    changes = [] if report is None else [(label, getattr(report.changes, field), tone) for field, label, tone in CHANGES]
    return app.render(
        request,
        "governance/shadow.html",
        names=names,
        name=name,
        minutes=minutes,
        spans=MINUTES,
        report=report,
        fault=fault,
        changes=changes,
        max_groups=MAX_GROUPS,
        bar=plots.time_bar,
        axis=plots.AXIS,
    )


def _whole(text: str) -> object:
    """Return a number that was typed; anything else as it is, to be refused with its name."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= len(MINUTES[-1][0]) else text
