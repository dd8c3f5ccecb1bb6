"""Governance: policies, what they decided, and what other policies would have decided."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.policies import PolicyAction, PolicyBody, PolicyScope, StoredPolicy
from evidentia.governance.calibration import MEASURES
from evidentia.serving.dashboard import plots
from evidentia.serving.dashboard.dashboard_app import DashboardApp, NavEntry, PageRoute
from evidentia.serving.dashboard.form_guard import form_of
from evidentia.serving.dashboard.live import Pace, stream
from evidentia.serving.dashboard.pages import policy_forms
from evidentia.serving.dashboard.pages.policy_forms import read_body, show_form, shown
from evidentia.serving.dashboard.pages.traces_view import facts_of
from evidentia.serving.operations.api_errors import NOT_FOUND, ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.control import Fault
    from evidentia.contracts.decisions import DecisionCounts, PolicyDecision
    from evidentia.contracts.policy_trials import Calibration, ShadowReport
    from evidentia.serving.identity.admission import Identity


NAV: Final = NavEntry("governance", "Governance", "/dashboard/governance", "list_policies")
POLICIES: Final = f"{NAV.path}/policies"
PAGE: Final = 100


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, list_policies),
        *policy_forms.form_routes(POLICIES),
        *event_routes(f"{NAV.path}/events"),
        *trial_routes(NAV.path),
        PageRoute(f"{POLICIES}/{{id}}", show_policy),
        PageRoute(f"{POLICIES}/{{id}}/enabled", enable, methods=("POST",)),
        PageRoute(f"{POLICIES}/{{id}}/remove", ask_to_remove),
        PageRoute(f"{POLICIES}/{{id}}/remove", remove, methods=("POST",)),
    ]


async def list_policies(app: DashboardApp, request: Request) -> Response:
    """Show every policy by priority and name."""
    cursor = request.query_params.get("cursor") or None
    page = await app.call(app.signed_in(request).identity, "list_policies", limit=PAGE, cursor=cursor)
    return app.render(
        request,
        "governance/policies.html",
        page=page,
        cursor=cursor,
        scope_in_words=scope_in_words,
        actions_of=actions_of,
        tone_of=tone_of,
    )


async def show_policy(app: DashboardApp, request: Request) -> Response:
    """Show a policy, its versions, and what differs between two of them."""
    identity = app.signed_in(request).identity
    policy_id = request.path_params["id"]
    versions = (await app.call(identity, "list_policy_versions", id=policy_id)).versions
    if not versions:
        raise ApiError(NOT_FOUND, "not_found", "there is no such policy", hint="see the list of policies")
    newest = versions[-1]
    older, newer = (_version(request, versions, name) for name in ("older", "newer"))
    schema = await app.call(identity, "show_rules_schema", category=newest.policy.body.category)
    found = None if older is None or newer is None else differences(older.policy.body, newer.policy.body)
    return app.render(
        request,
        "governance/policy.html",
        stored=newest,
        versions=versions[::-1],
        rules=rule_lines(newest.policy.body, schema),
        older=older,
        newer=newer,
        differences=found,
        scope_in_words=scope_in_words,
    )


async def enable(app: DashboardApp, request: Request) -> Response:
    """Enable or disable a policy, as a new version."""
    form = await form_of(request)
    is_enabled = form.get("enabled") == "true"
    version = str(form.get("version", ""))
    stored = await app.call(
        app.signed_in(request).identity,
        "change_policy",
        id=request.path_params["id"],
        enabled=is_enabled,
        if_match=f'"{version}"' if version.isdecimal() else None,
    )
    body = stored.policy.body
    word = "enabled" if is_enabled else "disabled"
    return app.redirect(request, NAV.path, done=f"'{body.name}' is {word}, as version {stored.policy.version}")


async def ask_to_remove(app: DashboardApp, request: Request) -> Response:
    """Ask whether a policy is really to be removed."""
    stored = await app.call(app.signed_in(request).identity, "show_policy", id=request.path_params["id"])
    return app.render(request, "governance/remove.html", stored=stored, scope_in_words=scope_in_words)


async def remove(app: DashboardApp, request: Request) -> Response:
    """Take a policy out of force."""
    form = await form_of(request)
    if form.get("confirm") != "yes":
        raise bad_field("confirm", "say that the policy is to be removed")
    removed = await app.call(app.signed_in(request).identity, "remove_policy", id=request.path_params["id"])
    return app.redirect(request, NAV.path, done=f"'{removed.policy.body.name}' is removed; its versions stay readable")


def _version(request: Request, versions: Sequence[StoredPolicy], name: str) -> StoredPolicy | None:
    wanted = request.query_params.get(name, "")
    return next((each for each in versions if str(each.policy.version) == wanted), None)


# What policies decided lately, newest first, and as it happens.

EVENT_PAGE: Final = 50
DEFAULT_MINUTES: Final = 60
EVENT_MINUTES: Final = (
    ("15", "last 15 minutes"),
    ("60", "last hour"),
    ("1440", "last day"),
    ("10080", "last week"),
    ("527040", "last year"),
)
ACTIONS: Final = (("", "any action"), *((word, word) for word in PolicyAction.words()))
_FILTERS: Final = ("agent", "policy", "action", "run")


class EventFilter(NamedTuple):
    """Which events are looked for."""

    minutes: int
    filters: Mapping[str, str]
    cursor: str


class ShownEvents(NamedTuple):
    """Some events, and where those that follow begin."""

    shown: tuple[PolicyDecision, ...]
    next_cursor: str | None
    counts: DecisionCounts
    """Of all that fit, on this page and on others."""


def event_routes(path: str) -> Sequence[PageRoute]:
    """Return the addresses of the events."""
    return [PageRoute(path, show_events), PageRoute(f"{path}/live", live_events)]


async def show_events(app: DashboardApp, request: Request) -> Response:
    """Show events, page by page; the first page keeps itself up to date."""
    wanted = event_filter(request.query_params)
    identity = app.signed_in(request).identity
    events = await _read(app, app.call, identity, wanted, await _counted(app.call, identity, wanted))
    return app.render(
        request,
        "governance/events.html",
        wanted=wanted,
        minutes=EVENT_MINUTES,
        actions=ACTIONS,
        **_told(events),
    )


async def live_events(app: DashboardApp, request: Request) -> Response:
    """Send the newest events again whenever there is another; a look at the end of the log tells."""
    wanted = event_filter(request.query_params)._replace(cursor="")
    kept: dict[tuple[object, ...], str] = {}
    pace = Pace(app.context.parts.clock, at_least_ns=0)
    counted: list[DecisionCounts] = []

    async def part(identity: Identity) -> str:
        newest = (await app.poll(identity, "list_decisions", limit=1)).decisions
        minute = app.context.parts.clock.now().replace(second=0, microsecond=0)
        mark = (minute, *((each.log, each.seq, each.part) for each in newest))
        if mark not in kept:
            kept.clear()
            if not counted or pace.is_due():
                counted[:] = [await pace.timed(lambda: _counted(app.poll, identity, wanted))]
            events = await _read(app, app.poll, identity, wanted, counted[0])
            kept[mark] = app.part("governance/events_table.html", identity, wanted=wanted, **_told(events))
        return kept[mark]

    return stream(app, request, part)


def event_filter(query: Mapping[str, str]) -> EventFilter:
    """Return which events an address asks for."""
    minutes = query.get("minutes", "")
    is_number = minutes.isascii() and minutes.isdecimal() and len(minutes) <= len(EVENT_MINUTES[-1][0])
    number = int(minutes) if is_number else DEFAULT_MINUTES
    filters = {name: query.get(name, "").strip() for name in _FILTERS}
    return EventFilter(min(max(1, number), int(EVENT_MINUTES[-1][0])), filters, query.get("cursor", ""))


async def _counted(ask: Callable[..., Awaitable[Any]], identity: Identity, wanted: EventFilter) -> DecisionCounts:
    """Return how many events fit, on all pages together; Any: as `DashboardApp.call`."""
    filters = {name: value or None for name, value in wanted.filters.items()}
    counts: DecisionCounts = await ask(identity, "count_decisions", **filters, minutes=wanted.minutes)
    return counts


async def _read(
    app: DashboardApp, ask: Callable[..., Awaitable[Any]], identity: Identity, wanted: EventFilter, counts: DecisionCounts
) -> ShownEvents:  # Any: as `DashboardApp.call`
    """Return events from the newest on, up to the time that is asked for: that never reads further back than a page."""
    filters = {name: value or None for name, value in wanted.filters.items()}
    page = await ask(identity, "list_decisions", **filters, limit=EVENT_PAGE, cursor=wanted.cursor or None)
    since = app.context.parts.clock.now() - timedelta(minutes=wanted.minutes)
    shown = tuple(each for each in page.decisions if each.at >= since)
    is_over = len(shown) < len(page.decisions)
    return ShownEvents(shown, None if is_over else page.next_cursor, counts)


def _told(events: ShownEvents) -> dict[str, Any]:  # Any: whatever a template takes
    return {"events": events, "facts_of": facts_of, "tone_of": tone_of}


# Before a policy is put in force: what it would have decided about recorded runs, and where its thresholds belong.

WEEK: Final = "10080"
TRIAL_MINUTES: Final = (("60", "last hour"), ("1440", "last day"), (WEEK, "last week"), ("43200", "last month"), ("527040", "last year"))
MAX_POLICIES: Final = 500
MAX_GROUPS: Final = 20
CHANGES: Final = (
    ("newly_blocked", "Newly blocked", "bad"),
    ("newly_allowed", "Newly allowed", "good"),
    ("newly_warned", "Newly warned", "warn"),
    ("no_longer_warned", "No longer warned", "good"),
    ("unchanged", "Unchanged", ""),
)


def trial_routes(path: str) -> Sequence[PageRoute]:
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
        spans=TRIAL_MINUTES,
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
        spans=TRIAL_MINUTES,
        report=report,
        fault=fault,
        changes=changes,
        max_groups=MAX_GROUPS,
        bar=plots.time_bar,
        axis=plots.AXIS,
    )


def _whole(text: str) -> object:
    """Return a number that was typed; anything else as it is, to be refused with its name."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= len(TRIAL_MINUTES[-1][0]) else text


# Policies as pages show them: what they are for, what they do, and what differs between two versions. Pure.

EVERYBODY: Final = "every run"
TONES: Final = {"allow": "good", "warn": "warn", "block": "bad", "skip": "bad", "throttle": "bad"}
"""Beside the word, never instead of it."""
_INNER: Final = ("rules", "scope", "posture")


class Difference(NamedTuple):
    """One field that is not the same in two versions."""

    field: str
    before: str
    after: str


class RuleLine(NamedTuple):
    """One rule of a policy."""

    name: str
    label: str
    value: str
    is_default: bool
    about: str


def scope_in_words(scope: PolicyScope) -> str:
    """Return which runs a policy is for."""
    given = msgspec.to_builtins(scope)
    return "; ".join(f"{facet.replace('_', ' ')}: {', '.join(names)}" for facet, names in given.items() if names) or EVERYBODY


def actions_of(body: PolicyBody) -> tuple[str, ...]:
    """Return what a policy may do about a violation, in words, each once."""
    words = {str(value) for name, value in body.rules.items() if name.startswith("action_on_")} - {"allow"}
    return tuple(sorted(words))


def tone_of(action: PolicyAction | str) -> str:
    """Return the tone of an action."""
    return TONES.get(str(getattr(action, "value", action)), "warn")


def rule_lines(body: PolicyBody, schema: Mapping[str, Any]) -> list[RuleLine]:  # Any: JSON Schema
    """Return every rule with its value, in the order of the schema."""
    lines = []
    for name, part in schema["properties"].items():
        value = body.rules.get(name, part.get("default"))
        is_default = shown(value) == shown(part.get("default"))
        lines.append(RuleLine(name, part.get("title", name), shown(value), is_default, part.get("description", "")))
    return lines


def differences(before: PolicyBody, after: PolicyBody) -> list[Difference]:
    """Return every field that differs, by its path, in order."""
    old, new = _flat(before), _flat(after)
    return [Difference(path, shown(old.get(path)), shown(new.get(path))) for path in sorted({*old, *new}) if old.get(path) != new.get(path)]


def _flat(body: PolicyBody) -> dict[str, Any]:  # Any: JSON
    given: dict[str, Any] = msgspec.to_builtins(body)
    flat = {name: value for name, value in given.items() if name not in _INNER}
    for name in _INNER:
        flat |= {f"{name}.{inner}": value for inner, value in given[name].items()}
    return flat
