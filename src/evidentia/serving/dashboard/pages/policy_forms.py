"""The form of a policy: fields from the JSON Schema of its category, and from what was typed to the body that is sent.

Nothing is checked here: what is wrong goes to the server as it was typed, which says what is wrong with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.policies import ALL_RULES, DEFAULT_PRIORITY, Compat, Enforcement, PolicyBody, PolicyScope, Posture
from evidentia.policy.categories import categories
from evidentia.serving.dashboard.dashboard_app import OPERATIONS, DashboardApp, PageRoute
from evidentia.serving.dashboard.form_guard import form_of
from evidentia.serving.operations.api_errors import UNPROCESSABLE, ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.identity.admission import Identity


Json = Any  # Any: JSON Schema, and values as JSON has them

SCOPE_FACETS: Final = tuple(field.name for field in msgspec.structs.fields(PolicyScope))
ENFORCEMENTS: Final = (
    (Enforcement.ENFORCE.value, "enforce: actions take effect"),
    (Enforcement.SHADOW.value, "shadow: decided and written down, never enforced"),
)
POSTURES: Final = (
    ("", "as by default"),
    (Posture.OPEN.value, "open: the call goes on"),
    (Posture.DEGRADE.value, "degrade: the call goes on with a warning"),
    (Posture.CLOSED.value, "closed: the call is blocked"),
)
COMPATS: Final = ((Compat.RESOLVED.value, "resolved"), (Compat.LITERAL.value, "literal"))
_INDEX: Final = re.compile(r"\[\d+\].*$")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_CHARS: Final = 40


class FormField(NamedTuple):
    """One field of the form."""

    name: str
    """The path of what it sets, such as `rules.min_chunks`."""
    label: str
    kind: str
    """`number`, `flag`, `choice`, `lines`, `text` or `json`."""
    value: str
    help: str = ""
    options: tuple[tuple[str, str], ...] = ()
    least: str = ""
    most: str = ""
    step: str = ""


def rule_fields(schema: Mapping[str, Json], rules: Mapping[str, Json]) -> list[FormField]:
    """Return a field for every rule of a category, in the order of the schema; those that are not given have their defaults."""
    return [_rule_field(name, part, rules.get(name, part.get("default"))) for name, part in schema["properties"].items()]


def scope_fields(scope: Mapping[str, Sequence[str]]) -> list[FormField]:
    """Return a field for every facet of a scope; the agents come first."""
    return [
        FormField(f"scope.{name}", name.replace("_", " ").capitalize(), "lines", "\n".join(scope.get(name, ()))) for name in SCOPE_FACETS
    ]


def body_of_form(form: Mapping[str, Json], schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return the body that a form stands for; a threshold that is left empty takes its default."""
    rules: dict[str, Json] = {}
    for name, part in schema["properties"].items():
        text = _text(form, f"rules.{name}")
        if _kind(part) == "flag":
            rules[name] = f"rules.{name}" in form
        elif text or _kind(part) == "lines" or (_is_nullable(part) and f"rules.{name}" in form):
            rules[name] = _value(text, part)
    scope = {name: lines for name in SCOPE_FACETS if (lines := _lines(_text(form, f"scope.{name}")))}
    return {
        "name": _text(form, "name"),
        "category": _text(form, "category"),
        "rules": rules,
        "scope": scope,
        "enabled": "enabled" in form,
        "priority": _number(_text(form, "priority") or str(DEFAULT_PRIORITY)),
        "description": _text(form, "description"),
        "compat": _text(form, "compat") or Compat.RESOLVED.value,
        "posture": _posture(form),
        "enforcement": _text(form, "enforcement") or Enforcement.ENFORCE.value,
    }


def posture_lines(posture: Mapping[str, Json]) -> str:
    """Return the postures of single rules as the form has them."""
    return "\n".join(f"{rule} = {_word(word)}" for rule, word in sorted(posture.items()) if rule != ALL_RULES)


def field_of(path: str) -> str:
    """Return the field of the form in which something is wrong: a place within a list belongs to the list, a posture to its box."""
    bare = _INDEX.sub("", path)
    if bare.startswith("posture."):
        return "posture_all" if bare == f"posture.{ALL_RULES}" else "posture_rules"
    parts = bare.split(".")
    return ".".join(parts[:2])


def problems_by_field(faults: Iterable[Json], known: Iterable[str]) -> tuple[dict[str, str], list[Json]]:
    """Return what is wrong with each field of the form, and what belongs to none of them."""
    names = set(known)
    said: dict[str, str] = {}
    rest: list[Json] = []
    for each in faults:
        field = field_of(each.path)
        if field not in names:
            rest.append(each)
            continue
        told = f"{each.problem}; did you mean '{each.suggestion}'?" if each.suggestion else each.problem
        said[field] = f"{said[field]}; {told}" if field in said else told
    return said, rest


def shown(value: Json) -> str:
    """Return a value of a rule as text."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(each) for each in value) or "none"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _rule_field(name: str, part: Mapping[str, Json], value: Json) -> FormField:
    kind = _kind(part)
    core = _core(part)
    options: tuple[tuple[str, str], ...] = ()
    if kind == "choice":
        words = core.get("enum") or [True, False]
        none = (("", "none"),) if _is_nullable(part) else ()
        options = (*none, *((_typed(word), shown(word)) for word in words))
    return FormField(
        name=f"rules.{name}",
        label=part.get("title", name),
        kind=kind,
        value=_typed(value, is_list=kind == "lines"),
        help=_help(part),
        options=options,
        least=_bound(core, "minimum"),
        most=_bound(core, "maximum"),
        step="1" if core.get("type") == "integer" else "any",
    )


def _core(part: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return what a rule takes apart from null."""
    kinds = [each for each in part.get("anyOf", ()) if each.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else part


def _is_nullable(part: Mapping[str, Json]) -> bool:
    return any(each.get("type") == "null" for each in part.get("anyOf", ()))


def _kind(part: Mapping[str, Json]) -> str:
    core = _core(part)
    kind = core.get("type")
    if "enum" in core or (kind == "boolean" and _is_nullable(part)):
        return "choice"
    return {"number": "number", "integer": "number", "boolean": "flag", "array": "lines", "string": "text"}.get(str(kind), "json")


def _help(part: Mapping[str, Json]) -> str:
    """Return what a rule does, which words or range it takes, and its default."""
    core = _core(part)
    least, most = _bound(core, "minimum"), _bound(core, "maximum")
    said = [part.get("description", "")]
    if least and most:
        said.append(f"From {least} to {most}.")
    elif least:
        said.append(f"At least {least}.")
    if _kind(part) == "lines":
        said.append("One in a line.")
    if _is_nullable(part) and _kind(part) != "choice":
        said.append("Leave it empty for none.")
    said.append(f"Default: {shown(part.get('default'))}.")
    return " ".join(each for each in said if each)


def _bound(part: Mapping[str, Json], name: str) -> str:
    return "" if part.get(name) is None else f"{part[name]:g}"


def _typed(value: Json, *, is_list: bool = False) -> str:
    """Return a value as somebody would type it into its field."""
    if value is None:
        return ""
    if is_list and isinstance(value, (list, tuple)):
        return "\n".join(str(each) for each in value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _value(text: str, part: Mapping[str, Json]) -> Json:
    kind = _kind(part)
    if kind == "lines":
        return _lines(text)
    if not text and _is_nullable(part):
        return None
    if kind == "number":
        return _number(text)
    is_json = (kind == "choice" and text in {"true", "false"}) or (kind == "json" and text.startswith(("{", "[")))
    return _json(text) if is_json else text


def _json(text: str) -> Json:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _number(text: str) -> Json:
    """Return a number that was typed; anything else as it stands, so that the server can say what is wrong with it."""
    if not _NUMBER.fullmatch(text) or len(text) > _MAX_CHARS:
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _posture(form: Mapping[str, Json]) -> dict[str, str]:
    found = {ALL_RULES: word} if (word := _text(form, "posture_all")) else {}
    for line in _lines(_text(form, "posture_rules")):
        rule, _, word = line.partition("=")
        found[rule.strip()] = word.strip()
    return found


def _text(form: Mapping[str, Json], name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _word(word: object) -> str:
    return str(getattr(word, "value", word))


# A policy is made or changed: pick a category or a template, fill in the form, and see beside each field what is wrong with it.

Body = dict[str, Any]  # Any: a policy's body as JSON has it

_FIELDS: Final = ("name", "category", "description", "priority", "compat", "enforcement", "posture_all", "posture_rules")
TABS_HERE: Final = "/dashboard/governance"


def form_routes(path: str) -> Sequence[PageRoute]:
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
    return body_of_form(form, schema)


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
    rules, scope = rule_fields(schema, body.get("rules", {})), scope_fields(body.get("scope", {}))
    posture = body.get("posture", {})
    faults = () if refusal is None else refusal.fault.problems
    problems, rest = problems_by_field(faults, [*_FIELDS, *(each.name for each in (*rules, *scope))])
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
        posture_rules=posture_lines(posture),
        enforcements=ENFORCEMENTS,
        postures=POSTURES,
        compats=COMPATS,
        problems=problems,
        other_problems=rest,
        fault=None if refusal is None else refusal.fault,
    )


def _require(app: DashboardApp, identity: Identity, operation: str) -> None:
    """Refuse the form to whoever may not send it."""
    app.context.admission.check(identity, OPERATIONS[operation])


def _address(policy_id: str) -> str:
    return f"{TABS_HERE}/policies/{policy_id}"
