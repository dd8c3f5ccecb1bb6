"""Every way in which the plane says no: an HTTP status, and a body with a stable code, what happened and what to do."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import Fault, FieldFault, StoppedFault
from evidentia.contracts.errors import (
    BaseStateError,
    EvidentiaError,
    InputError,
    InvalidFieldError,
    NotAllowedError,
    NotFoundError,
    PolicyConflictError,
    PolicyInvalidError,
    PolicyViolationError,
    ServiceError,
)
from evidentia.contracts.shapes import shape_fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

MALFORMED: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
NOT_ALLOWED: Final = 405
CONFLICT: Final = 409
CHANGED: Final = 412
TOO_LARGE: Final = 413
WRONG_TYPE: Final = 415
UNPROCESSABLE: Final = 422
TOO_MANY: Final = 429
INTERNAL: Final = 500
BAD_GATEWAY: Final = 502
UNAVAILABLE: Final = 503

_MAX_LENGTH: Final = 500
_STATUS: Final[tuple[tuple[type[EvidentiaError], int], ...]] = (
    (PolicyInvalidError, UNPROCESSABLE),
    (InvalidFieldError, UNPROCESSABLE),
    (PolicyConflictError, CONFLICT),
    (NotFoundError, NOT_FOUND),
    (NotAllowedError, FORBIDDEN),
    (PolicyViolationError, FORBIDDEN),
    (InputError, UNPROCESSABLE),
    (BaseStateError, UNAVAILABLE),
    (ServiceError, BAD_GATEWAY),
)
"""The first that fits, so the special ones stand first."""


class ApiError(Exception):
    """A request that is answered with something other than what it asked for."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str,
        problems: Sequence[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.fault = Fault(code=code, message=_shortened(message), hint=hint, problems=tuple(problems))
        self.headers = dict(headers or {})


def refusal_of(error: EvidentiaError) -> ApiError:
    """Return what to answer when a part of the plane raises."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), INTERNAL)
    problems: Sequence[FieldFault] = ()
    if isinstance(error, PolicyInvalidError):
        problems = [FieldFault(path=each.path, problem=each.problem, suggestion=each.suggestion) for each in error.problems]
    elif isinstance(error, InvalidFieldError):
        problems = [FieldFault(path=error.field, problem=str(error))]
    headers = {"retry-after": "1"} if status == UNAVAILABLE else {}
    refusal = ApiError(status, error.code, str(error), hint=error.hint, problems=problems, headers=headers)
    if isinstance(error, PolicyViolationError):
        refusal.fault = StoppedFault(
            code=error.code, message=refusal.fault.message, hint=error.hint, decision=error.decision, decisions=error.decisions
        )
    return refusal


def bad_field(path: str, problem: str, *, suggestion: str = "") -> ApiError:
    """Return the refusal for one field that cannot be right."""
    fault = FieldFault(path=path, problem=problem, suggestion=suggestion)
    return ApiError(UNPROCESSABLE, "invalid_field", f"field '{path}': {problem}", hint="correct the field and try again", problems=(fault,))


def too_large(what: str, *, max_bytes: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the refusal for something that is sent and longer than is taken."""
    return ApiError(TOO_LARGE, "body_too_large", f"the {what} larger than {max_bytes} bytes", hint="send less at once", headers=headers)


def shape_refusal(error: msgspec.ValidationError, kind: object, *, names: Sequence[str], within: str = "") -> ApiError:
    """Return the refusal for JSON that does not have the shape of a message; `names` are those the message knows."""
    where, problem = shape_fault(error, kind)
    steps = [within, where]
    told = re.search(r"(unknown|missing required) field `([^`]*)`", problem)
    if told:
        steps.append(told[2])
    suggestion = nearest(told[2], names) if told and told[1] == "unknown" else ""
    return bad_field(".".join(step for step in steps if step), problem, suggestion=suggestion)


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the known word that is most like another; empty when none is."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), "")


def _shortened(message: str) -> str:
    return message if len(message) <= _MAX_LENGTH else f"{message[: _MAX_LENGTH - 1]}…"
