"""A policy is made or changed: pick a category or a template, fill in the form, and see beside each field what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.policies import ALL_RULES, PolicyBody
from evidentia.policy.categories import categories
from evidentia.serving.dashboard.dashboard_app import OPERATIONS, PageRoute
from evidentia.serving.dashboard.guarding import form_of
from evidentia.serving.dashboard.pages import governance_forms as forms
from evidentia.serving.operations.api_errors import UNPROCESSABLE, ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

Body = dict[str, Any]  # Any: a policy's body as JSON has it

_FIELDS: Final = ("name", "category", "description", "priority", "compat", "enforcement", "posture_all", "posture_rules")
TABS_HERE: Final = "/dashboard/governance"


def routes(path: str) -> Sequence[PageRoute]:
    """Return the addresses of the form."""
    return [
        PageRoute(f"{path}/new", begin),
        PageRoute(f"{path}/new", create, methods=("POST",)),
        PageRoute(f"{path}/{{id}}/edit", edit),
        PageRoute(f"{path}/{{id}}/edit", replace, methods=("POST",)),
    ]


async def begin(app: DashboardApp, request: Request) -> Response:
    """Show what there is to begin with, or the form of a category or template."""
    identity = app.signed_in(request).identity
    _require(app, identity, "create_policy")
    templates: Mapping[str, PolicyBody] = (await app.call(identity, "list_templates")).templates
    named, category = request.query_params.get("template", ""), request.query_params.get("category", "")
    if named in templates:
        return await show_form(app, request, body=msgspec.to_builtins(templates[named]), template=named)
    if category:
        return await show_form(app, request, body={"name": "", "category": category, "rules": {}, "enabled": True})
    told = [(each.name, (each.rules.__doc__ or "").strip()) for each in categories()]
    return app.render(request, "governance/begin.html", categories=told, templates=templates)


async def create(app: DashboardApp, request: Request) -> Response:
    """Put a new policy in force, or show what is wrong with it."""
    identity = app.signed_in(request).identity
    body = await read_body(app, request)
    try:
        stored = await app.call(identity, "create_policy", **body)
    except ApiError as refusal:
        return await show_form(app, request, body=body, refusal=refusal)
    return app.redirect(request, _address(stored.policy.policy_id), done=f"'{stored.policy.body.name}' is in force")


async def edit(app: DashboardApp, request: Request) -> Response:
    """Show the form of a policy, with a threshold that was proposed when one is given."""
    identity = app.signed_in(request).identity
    _require(app, identity, "replace_policy")
    stored = await app.call(identity, "show_policy", id=request.path_params["id"])
    body: Body = msgspec.to_builtins(stored.policy.body)
    rule, value = request.query_params.get("rule", ""), request.query_params.get("value", "")
    if rule in body["rules"] and value:
        body["rules"] = {**body["rules"], rule: value}
    return await show_form(app, request, body=body, policy_id=stored.policy.policy_id, version=stored.policy.version)


async def replace(app: DashboardApp, request: Request) -> Response:
    """Put the next version of a policy in force, or show what is wrong with it."""
    identity = app.signed_in(request).identity
    policy_id = request.path_params["id"]
    body = await read_body(app, request)
    version = str((await form_of(request)).get("version", ""))
    if_match = f'"{version}"' if version.isdecimal() else None
    try:
        stored = await app.call(identity, "replace_policy", id=policy_id, **body, if_match=if_match)
    except ApiError as refusal:
        return await show_form(app, request, body=body, policy_id=policy_id, version=version, refusal=refusal)
    return app.redirect(request, _address(stored.policy.policy_id), done=f"version {stored.policy.version} is in force")


async def read_body(app: DashboardApp, request: Request) -> Body:
    """Return the body that a form stands for."""
    form = await form_of(request)
    category = str(form.get("category", ""))
    schema = await app.call(app.signed_in(request).identity, "show_rules_schema", category=category)
    return forms.body_of_form(form, schema)


async def show_form(
    app: DashboardApp,
    request: Request,
    *,
    body: Body,
    policy_id: str = "",
    version: int | str = "",
    template: str = "",
    refusal: ApiError | None = None,
) -> Response:
    """Show the form of a policy with its fields filled in, and what is wrong beside them."""
    schema = await app.call(app.signed_in(request).identity, "show_rules_schema", category=body["category"])
    rules, scope = forms.rule_fields(schema, body.get("rules", {})), forms.scope_fields(body.get("scope", {}))
    posture = body.get("posture", {})
    faults = () if refusal is None else refusal.fault.problems
    problems, rest = forms.problems_by_field(faults, [*_FIELDS, *(each.name for each in (*rules, *scope))])
    return app.render(
        request,
        "governance/form.html",
        status=200 if refusal is None else refusal.status or UNPROCESSABLE,
        body=body,
        rules=rules,
        scope=scope,
        policy_id=policy_id,
        policy_version=version,
        from_template=template,
        posture_all=posture.get(ALL_RULES, ""),
        posture_rules=forms.posture_lines(posture),
        enforcements=forms.ENFORCEMENTS,
        postures=forms.POSTURES,
        compats=forms.COMPATS,
        problems=problems,
        other_problems=rest,
        fault=None if refusal is None else refusal.fault,
    )


def _require(app: DashboardApp, identity: Identity, operation: str) -> None:
    """Refuse the form to whoever may not send it."""
    app.context.admission.check(identity, OPERATIONS[operation])


def _address(policy_id: str) -> str:
    return f"{TABS_HERE}/policies/{policy_id}"
