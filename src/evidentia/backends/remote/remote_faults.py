"""From a fault that came over the wire to the error that a local base would have raised: same class, same message, same fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts import errors
from evidentia.contracts.control import Fault, FieldFault
from evidentia.contracts.decisions import PolicyDecision  # noqa: TC001 - msgspec reads the annotation of the field
from evidentia.contracts.decoding import decode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.errors import EvidentiaError


class WireFault(Fault, frozen=True, kw_only=True):
    """A fault as it came; a plane of another version may leave out what it does not know."""

    hint: str = ""
    problems: tuple[FieldFault, ...] = ()
    decision: PolicyDecision | None = None
    decisions: tuple[PolicyDecision, ...] = ()


def error_of(fault: WireFault, *, host: str) -> EvidentiaError:
    """Return the error of a fault; one of a code that nobody here knows is what the service said."""
    kind = KINDS.get(fault.code)
    if kind is None or (kind is errors.PolicyViolationError and fault.decision is None):
        return errors.ServiceReplyError(f"'{host}' refuses ({fault.code}): {fault.message}")
    error = _made(kind, fault)
    if fault.hint and fault.hint != error.hint:
        vars(error)["hint"] = fault.hint  # the server knows better what to do than the class does
    return error


def fault_in(raw: bytes | msgspec.Raw) -> WireFault | None:
    """Return the fault in some JSON; None where there is none."""
    try:
        return decode_json(raw, WireFault)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _made(kind: type[EvidentiaError], fault: WireFault) -> EvidentiaError:
    if kind is errors.PolicyInvalidError and fault.problems:
        return errors.PolicyInvalidError([errors.FieldProblem(each.path, each.problem, each.suggestion) for each in fault.problems])
    if kind is errors.PolicyViolationError and fault.decision is not None:
        return errors.PolicyViolationError(fault.message, fault.decision, fault.decisions)
    if kind is errors.FilterSyntaxError:
        told = re.fullmatch(r"filter, column (\d+): (.*)", fault.message, re.DOTALL)
        return errors.FilterSyntaxError(told[2] if told else fault.message, text="", column=int(told[1]) if told else 0)
    # The message is the one that the same error had over there, so it is not put together again from its parts.
    error = kind.__new__(kind, fault.message)
    Exception.__init__(error, fault.message)
    if issubclass(kind, errors.InvalidFieldError):
        vars(error)["field"] = fault.problems[0].path if fault.problems else ""
    if kind in _PARTS:
        found = _PARTS[kind].fullmatch(fault.message)
        vars(error).update(found.groupdict() if found else dict.fromkeys(_PARTS[kind].groupindex, fault.message))
    return error


_PARTS: Final[Mapping[type[EvidentiaError], re.Pattern[str]]] = {
    errors.PolicyConflictError: re.compile(r"policy '(?P<name>.*?)': .*", re.DOTALL),
    errors.BaseDamagedError: re.compile(r"(?P<where>.*?): (?P<problem>.*)", re.DOTALL),
    errors.BackupDamagedError: re.compile(r"backup, (?P<where>.*?): (?P<problem>.*)", re.DOTALL),
    errors.StatementRefusedError: re.compile(r"the statement is refused: (?P<problem>.*)", re.DOTALL),
}
"""Where the fields of an error stand in its message."""


def _by_code(kind: type[EvidentiaError]) -> dict[str, type[EvidentiaError]]:
    known = {kind.code: kind}
    for each in kind.__subclasses__():
        known |= _by_code(each) if each.__module__ == errors.__name__ else {}
    return known


KINDS: Final[Mapping[str, type[EvidentiaError]]] = {
    **_by_code(errors.EvidentiaError),
    "missing_token": errors.NotAllowedError,
    "invalid_token": errors.NotAllowedError,
    "wrong_role": errors.NotAllowedError,
    "wrong_tenant": errors.NotAllowedError,
    "not_your_principal": errors.NotAllowedError,
    "not_yours_to_give": errors.NotAllowedError,
    "wrong_host": errors.NotAllowedError,
    "wrong_origin": errors.NotAllowedError,
    "version_changed": errors.PolicyConflictError,
    "document_elsewhere": errors.DuplicateDocumentError,
    "secrets_unavailable": errors.InputError,
    "body_too_large": errors.InputError,
    "malformed_json": errors.InputError,
    "incomplete_body": errors.ServiceUnavailableError,
    "request_timed_out": errors.ServiceUnavailableError,
    "request_too_slow": errors.ServiceUnavailableError,
    "too_many_connections": errors.ServiceUnavailableError,
    "rate_limited": errors.ServiceUnavailableError,
    "quota_exceeded": errors.ServiceUnavailableError,
    "too_many_attempts": errors.ServiceUnavailableError,
    "too_many_runs": errors.ServiceUnavailableError,
    "too_much_at_once": errors.ServiceUnavailableError,
    "too_many_values": errors.InputError,
    "client_left": errors.ServiceUnavailableError,
    "internal": errors.ServiceUnavailableError,
}
"""By the code of the fault: those of the errors themselves, and those that only a served base has."""
