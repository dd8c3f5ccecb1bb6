"""Governance: policies, what they decided, and what other policies would have decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.serving.dashboard.dashboard_app import NavEntry, PageRoute
from evidentia.serving.dashboard.guarding import form_of
from evidentia.serving.dashboard.pages import governance_editing, governance_events, governance_trials
from evidentia.serving.dashboard.pages.governance_view import actions_of, differences, rule_lines, scope_in_words, tone_of
from evidentia.serving.operations.api_errors import NOT_FOUND, ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.policies import StoredPolicy
    from evidentia.serving.dashboard.dashboard_app import DashboardApp

NAV: Final = NavEntry("governance", "Governance", "/dashboard/governance", "list_policies")
POLICIES: Final = f"{NAV.path}/policies"
PAGE: Final = 100


def routes(_: DashboardApp) -> Sequence[PageRoute]:
    """Return what this page answers."""
    return [
        PageRoute(NAV.path, list_policies),
        *governance_editing.routes(POLICIES),
        *governance_events.routes(f"{NAV.path}/events"),
        *governance_trials.routes(NAV.path),
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
