"""Who asks, as typed after `--as`: a name with words such as `groups=oncall`, or a JSON object. Refuses what it does not understand.

A typed name is nobody's proof of anything: whoever can run a command on a base can read its files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT, Principal
from evidentia.contracts.decoding import convert, decode_json
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.shapes import shape_fault
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli.cli_errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

USUAL_CLEARANCE = Classification.INTERNAL
"""The clearance of a name without one: that of an ordinary colleague."""
HINT = 'write a name, a name with words ("alice clearance=confidential groups=security,oncall"), or a JSON object'
MAX_SHOWN = 60
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def principal_from(text: str) -> Principal:
    """Return the principal that a text names; an error names the word that is wrong."""
    _refuse_surrogates(text)
    if text.lstrip().startswith("{"):
        return _from_json(text)
    words = text.split()
    if not words:
        raise _mistake("it names nobody")
    name, *facts = words
    if "=" in name:
        raise _mistake(f"it begins with {_shown(name)}, and the first word is the name")
    return _from_facts(name, _read_facts(facts))


def _from_facts(name: str, facts: dict[str, str]) -> Principal:
    return Principal(
        principal_id=PrincipalId(name),
        tenant=TenantId(facts.pop("tenant", DEFAULT_TENANT)),
        clearance=_clearance(facts.pop("clearance", USUAL_CLEARANCE.value)),
        roles=_members("roles", facts.pop("roles", None)),
        groups=_members("groups", facts.pop("groups", None)),
        attributes=dict(sorted(facts.items())),
    )


def _read_facts(words: Iterable[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise _mistake(f"{_shown(word)} is not of the form key=value; a name has no spaces")
        if not _KEY.fullmatch(key):
            raise _mistake(f"{_shown(word)} has no usable key before '='")
        if not value:
            raise _mistake(f"{_shown(word)} has no value after '='")
        if key in facts:
            raise _mistake(f"{_shown(word)} gives '{key}' a second time")
        facts[key] = value
    return facts


def _clearance(level: str) -> Classification:
    try:
        return Classification(level)
    except ValueError as error:
        raise _mistake(f"{_shown(f'clearance={level}')} is not one of {', '.join(Classification.words())}") from error


def _members(key: str, listed: str | None) -> tuple[str, ...]:
    members = [] if listed is None else listed.split(",")
    if not all(members):
        raise _mistake(f"{_shown(f'{key}={listed}')} has an empty name between its commas")
    return tuple(sorted(set(members)))


def _from_json(text: str) -> Principal:
    try:
        fields = decode_json(text, dict[str, object])
        unknown = sorted(fields.keys() - set(Principal.__struct_fields__))
        if unknown:
            raise _mistake(f"{_shown(unknown[0])} is not a field of a principal")
        principal = convert(fields, Principal)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _mistake(f"the JSON object is no principal: {_cause(error)}") from error
    if not principal.principal_id:
        raise _mistake("'principal_id' is empty")
    return principal


def _cause(error: Exception) -> str:
    place, problem = shape_fault(error, Principal)
    return f"{problem}, at '{place}'" if place else problem


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _mistake(f"{_shown(text)} is not UTF-8") from error


def _shown(word: str) -> str:
    return f"'{word}'" if len(word) <= MAX_SHOWN else f"'{word[: MAX_SHOWN - 1]}…'"


def _mistake(problem: str) -> UsageError:
    return UsageError(f"field 'principal' (--as): {problem}", hint=HINT)
