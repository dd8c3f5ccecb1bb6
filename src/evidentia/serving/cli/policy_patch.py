"""JSON merge patches for policies (RFC 7396), and everything that is wrong with a body."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import FieldProblem, PolicyInvalidError
from evidentia.policy.rules import check_policy
from evidentia.serving.cli.cli_errors import UsageError

if TYPE_CHECKING:
    from evidentia.contracts.policies import PolicyBody

HINT = 'write an object such as {"rules": {"min_chunks": 2}}'


def parse_patch(text: str) -> dict[str, object]:
    """Return a patch as it was typed, or as stdin has it."""
    try:
        patch = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the patch is not JSON", hint=HINT) from error
    if not isinstance(patch, dict):
        raise UsageError("the patch is not an object", hint=HINT)
    return patch


def with_patch(body: PolicyBody, patch: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a body with a patch applied."""
    fields: dict[str, object] = msgspec.to_builtins(body)
    return _merged(fields, patch)


def problems_of(body: object) -> tuple[FieldProblem, ...]:
    """Return everything that is wrong with a body; empty when it can be put in force."""
    if not isinstance(body, Mapping):
        return (FieldProblem("policies", "expected a policy with name, category and rules"),)
    try:
        check_policy(body)
    except PolicyInvalidError as error:
        return error.problems
    return ()


def _merged(target: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            known = merged.get(name)
            merged[name] = _merged(known if isinstance(known, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged
