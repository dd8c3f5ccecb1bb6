"""Policies as pages show them: what they are for, what they do, and what differs between two versions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.serving.dashboard.pages.governance_forms import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.policies import PolicyAction, PolicyBody, PolicyScope

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
