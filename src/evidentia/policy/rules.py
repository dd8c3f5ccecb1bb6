"""From what an author wrote to a policy that can be put in force, or to every problem that it has; and the schema of it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import FieldProblem, PolicyInvalidError
from evidentia.contracts.policies import ALL_RULES, DEFAULT_TENANT, Policy, PolicyBody, PolicyId, PolicyScope, Posture
from evidentia.policy.categories import categories, find_category
from evidentia.policy.categories import category as category_of
from evidentia.policy.posture import FAULTS
from evidentia.policy.rule_checks import field_problems, nearest, shown, unknown_name, value_problems

if TYPE_CHECKING:
    from evidentia.contracts.ids import Sha256
    from evidentia.policy.handlers import Category


_ID_DIGITS: Final = 16
_POSTURES: Final = inspect.type_info(Posture)
_canonical: Final = msgspec.json.Encoder(order="sorted")


def check_policy(
    body: PolicyBody | Mapping[str, Any],  # Any: as an author writes it
    *,
    policy_id: PolicyId | None = None,
    version: int = 1,
    tenant: str = DEFAULT_TENANT,
) -> Policy:
    """Return the policy with its rules complete, or raise PolicyInvalidError with every problem.

    1. the fields of the body, and their types
    2. the category, and its rules with their types
    3. what the category says about rules that fit together
    4. the scope and the postures
    """
    given = msgspec.to_builtins(body) if isinstance(body, PolicyBody) else body
    if not isinstance(given, Mapping):
        raise PolicyInvalidError([FieldProblem("", "expected a map with name, category and rules")])
    problems = _body_problems(given)
    if version < 1:
        problems.append(FieldProblem("version", f"{version} is less than 1"))
    category = find_category(given.get("category"))
    if category is not None:
        problems += _rules_problems(category, given.get("rules", {}))
        problems += _posture_problems(category, given.get("posture", {}))
    if problems or category is None:
        raise PolicyInvalidError(problems)
    checked = convert({**given, "rules": _complete(category, given.get("rules", {}))}, PolicyBody)
    return Policy(
        policy_id=policy_id or policy_id_of(checked.name, tenant=tenant),
        version=version,
        digest=_digest(checked, version),
        tenant=tenant,
        body=checked,
    )


def policy_id_of(name: str, *, tenant: str = DEFAULT_TENANT) -> PolicyId:
    """Return the id of a policy that was given none: the same for the same name in the same tenant."""
    return PolicyId(f"p-{sha256_hex(_canonical.encode([tenant, name]))[:_ID_DIGITS]}")


def rules_schema(category: str) -> dict[str, Any]:  # Any: JSON Schema
    """Return the JSON Schema of a category's rules, with titles, descriptions, defaults and words."""
    return struct_schema(category_of(category).rules)


def policy_schema() -> dict[str, Any]:  # Any: JSON Schema
    """Return the JSON Schema of a policy's body, whose rules depend on its category."""
    return body_schema({each.name: each.rules for each in categories()})


def _body_problems(given: Mapping[str, Any]) -> list[FieldProblem]:
    problems = field_problems(_without_inner(given), _Outer, within="", what="a field of a policy")
    name = given.get("category")
    if isinstance(name, str) and find_category(name) is None:
        near = nearest(name, [each.name for each in categories()])
        problems.append(FieldProblem("category", f"there is no category '{shown(name)}'", near))
    if "rules" in given and not isinstance(given["rules"], Mapping):
        problems.append(FieldProblem("rules", "expected a map of rules"))
    scope = given.get("scope", {})
    if isinstance(scope, Mapping):
        problems += field_problems(scope, PolicyScope, within="scope.", what="a facet of a scope")
    else:
        problems.append(FieldProblem("scope", "expected a map of facets"))
    if not isinstance(given.get("posture", {}), Mapping):
        problems.append(FieldProblem("posture", "expected a map from rules to postures"))
    return problems


_INNER: Final = ("rules", "scope", "posture")
_Outer: Final = msgspec.defstruct(
    "_Outer",
    [
        (field.name, field.type) if field.required else (field.name, field.type, None)
        for field in msgspec.structs.fields(PolicyBody)
        if field.name not in _INNER
    ],
    kw_only=True,
)
"""The fields of a body that hold no fields themselves."""


def _without_inner(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _INNER}


def _rules_problems(category: Category, given: object) -> list[FieldProblem]:
    if not isinstance(given, Mapping):
        return []
    problems = field_problems(given, category.rules, within="rules.", what=f"a rule of the category '{category.name}'")
    faulty = {problem.path.partition(".")[2].partition("[")[0] for problem in problems}
    fields = set(category.rules.__struct_fields__)
    sound = {name: value for name, value in given.items() if name in fields and name not in faulty}
    try:
        rules = convert(sound, category.rules)
    except msgspec.ValidationError as error:
        return problems or [FieldProblem("rules", str(error))]
    return problems + [problem._replace(path=f"rules.{problem.path}") for problem in category.check(rules) if problem.path not in faulty]


def _posture_problems(category: Category, given: object) -> list[FieldProblem]:
    if not isinstance(given, Mapping):
        return []
    known = [*category.rules.__struct_fields__, *FAULTS, ALL_RULES]
    problems: list[FieldProblem] = []
    for name, value in given.items():
        if name not in known:
            problems.append(unknown_name(name, known, within="posture.", what="a rule or fault that has a posture"))
        problems += value_problems(value, _POSTURES, path=f"posture.{shown(str(name))}")
    return problems


def _complete(category: Category, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every rule in the form that JSON gives back, defaults included."""
    complete: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(convert(given, category.rules)))
    return complete


def _digest(body: PolicyBody, version: int) -> Sha256:
    """Return a digest of everything that can change a decision: not of the description, nor of the order of a scope's names."""
    record = {
        "name": body.name,
        "category": body.category,
        "rules": body.rules,
        "scope": {facet: sorted(set(names)) for facet, names in msgspec.structs.asdict(body.scope).items() if names},
        "priority": body.priority,
        "compat": body.compat,
        "posture": body.posture,
        "enforcement": body.enforcement,
        "version": version,
    }
    return sha256_hex(_canonical.encode(record))


# --- schemas ---
# JSON Schema of policies, each message written out in place, so that a form can be drawn from one part of it.

Schema = dict[str, Any]  # Any: JSON Schema

_REFERENCE = "#/$defs/"


def struct_schema(message: type[msgspec.Struct]) -> Schema:
    """Return the schema of a message without references."""
    schema = msgspec.json.schema(message)
    definitions = schema.pop("$defs")
    written: Schema = _written_out(schema, definitions)
    return written


def body_schema(rules: Mapping[str, type[msgspec.Struct]]) -> Schema:
    """Return the schema of a policy's body; which rules it may hold follows from its category."""
    schema = struct_schema(PolicyBody)
    schema["properties"]["category"]["enum"] = list(rules)
    schema["allOf"] = [
        {
            "if": {"properties": {"category": {"const": name}}, "required": ["category"]},
            "then": {"properties": {"rules": struct_schema(message)}},
        }
        for name, message in rules.items()
    ]
    return schema


def _written_out(part: Any, definitions: Mapping[str, Schema]) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """Return a part with what it refers to in place; what the part says itself goes before what it refers to."""
    if isinstance(part, list):
        return [_written_out(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    own = {name: _written_out(each, definitions) for name, each in part.items() if name != "$ref"}
    if "$ref" not in part:
        return own
    return {**_written_out(definitions[part["$ref"].removeprefix(_REFERENCE)], definitions), **own}
