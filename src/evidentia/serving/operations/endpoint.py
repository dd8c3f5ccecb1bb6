"""A request once it was let in, and a declared operation bound to what answers it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from evidentia.contracts.operations import OPERATION_BY_NAME, Operation, QueryField
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.operations.api_errors import bad_field, nearest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import Role, TokenInfo
    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.operations.server_context import ServerContext


_MAX_NUMBER_LENGTH: Final = 15
_TRUTHS: Final = {"true": True, "false": False}


class OperationRequest(NamedTuple):
    """What somebody wants, checked as far as its form goes."""

    identity: Identity
    path: Mapping[str, str]
    query: Mapping[str, Any]  # Any: each value has the kind of its field
    body: Any = None  # Any: the message that the endpoint names
    if_match: str | None = None

    @property
    def token(self) -> TokenInfo:
        """Return the token that was shown."""
        return self.identity.token

    @property
    def principal(self) -> Principal:
        """Return who asks, as access is decided on."""
        return self.identity.principal

    @property
    def tenant(self) -> str:
        """Return whose policies, runs and secrets this is about."""
        return self.token.tenant

    @property
    def by(self) -> str:
        """Return who asks, as the audit calls them."""
        return f"{self.token.name} ({self.token.token_id})"


class Reply(NamedTuple):
    """What is answered: a message, and headers where they matter; the status is that of the endpoint unless it is given."""

    message: object
    headers: Mapping[str, str] = {}
    status: int | None = None


class Needs(Protocol):
    """What a token has to allow."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return the roles of which one is enough."""
        ...

    @property
    def is_base_wide(self) -> bool:
        """Tell whether it is about the whole base and not about one tenant."""
        ...


Answer: TypeAlias = "Callable[[ServerContext, OperationRequest], Reply | Awaitable[Reply] | AsyncGenerator[object, None]]"
"""Sync for work that blocks, async for the engine's, an async generator where the answer comes in parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint(Operation):
    """An operation together with what answers it."""

    answer: Answer = field(kw_only=True)
    reads: object = field(default=None, kw_only=True)
    """What the request is read as, where that is looser than its type because a part checks it better."""


def endpoint(name: str, *, reads: object = None) -> Callable[[Answer], Endpoint]:
    """Return what makes a function the answer of a declared operation."""
    return partial(bind, OPERATION_BY_NAME[name], reads=reads)


def bind(operation: Operation, answer: Answer, *, reads: object = None) -> Endpoint:
    """Return an operation with what answers it."""
    return Endpoint(**{each.name: getattr(operation, each.name) for each in fields(operation)}, answer=answer, reads=reads)


def read_query(given: Sequence[tuple[str, str]], fields: Sequence[QueryField]) -> dict[str, Any]:  # Any: as in `OperationRequest.query`
    """Return the parameters by name, each of its kind; unknown ones, and ones given twice, are refused."""
    known = {field.name: field for field in fields}
    values: dict[str, Any] = {field.name: field.default for field in fields}
    seen: list[str] = []
    for name, text in given:
        if name not in known:
            raise bad_field(name, "there is no such parameter", suggestion=nearest(name, sorted(known)))
        if name in seen:
            raise bad_field(name, "it is given twice")
        seen.append(name)
        values[name] = _read_value(text, known[name])
    return values


def decode_cursor(cursor: str | None, kinds: tuple[type, ...]) -> tuple[Any, ...] | None:  # Any: of the kinds
    """Return the place that a cursor names; None without one."""
    if cursor is None:
        return None
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        place = None
    is_place = isinstance(place, list) and tuple(type(each) for each in place) == kinds
    if not is_place:
        raise bad_field("cursor", "it is not one that a page before gave")
    return tuple(place)


def _read_value(text: str, field: QueryField) -> object:
    if field.kind is int:
        return _read_number(text, field)
    if field.kind is bool:
        if text not in _TRUTHS:
            raise bad_field(field.name, "write true or false")
        return _TRUTHS[text]
    if issubclass(field.kind, Vocabulary):
        if text not in field.kind.words():
            raise bad_field(field.name, f"write one of {', '.join(field.kind.words())}", suggestion=nearest(text, field.kind.words()))
        return field.kind(text)
    if not text or len(text) > field.most_chars:
        raise bad_field(field.name, f"write between 1 and {field.most_chars} characters")
    return text


def _read_number(text: str, field: QueryField) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_NUMBER_LENGTH
    number = int(text) if is_number else -1
    if not is_number or not field.least <= number <= field.most:
        raise bad_field(field.name, f"write a whole number between {field.least} and {field.most}")
    return number


def needed(request: OperationRequest, name: str) -> str:
    """Return a parameter that has to be there."""
    value: str | None = request.query[name]
    if value is None:
        raise bad_field(name, "it is missing")
    return value
