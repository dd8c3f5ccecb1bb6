"""The form of a policy: fields from the JSON Schema of its category, and from what was typed to the body that is sent.

Nothing is checked here: what is wrong goes to the server as it was typed, which says what is wrong with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.policies import ALL_RULES, DEFAULT_PRIORITY, Compat, Enforcement, PolicyScope, Posture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
