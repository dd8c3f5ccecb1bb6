"""A request once it was let in, and what an endpoint says about the requests it takes."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.rest.refusals import bad_field, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.contracts.control import Role, TokenInfo
    from evidentia.serving.rest.plane import Plane

MOST_LIMIT: Final = 500
_LONGEST_TEXT: Final = 500
_LONGEST_NUMBER: Final = 15
_TRUTHS: Final = {"true": True, "false": False}


class QueryField(NamedTuple):
    """One parameter that may stand after the question mark."""

    name: str
    about: str
    kind: type = str
    """str, int, bool, or the vocabulary whose words are taken."""
    default: int | None = None
    least: int = 1
    most: int = MOST_LIMIT


LIMIT: Final = QueryField("limit", "At most this many.", int, default=50)
CURSOR: Final = QueryField("cursor", "The `next_cursor` of the page before.")
MINUTES: Final = QueryField("minutes", "Only what happened in the last minutes.", int, least=1, most=60 * 24 * 366)


class Asked(NamedTuple):
    """What somebody wants, checked as far as its form goes."""

    token: TokenInfo
    path: Mapping[str, str]
    query: Mapping[str, Any]  # Any: each value has the kind of its field
    body: Any = None  # Any: the message that the endpoint names
    if_match: str | None = None

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


class Endpoint(NamedTuple):
    """One thing that can be asked: where, by whom, with what, and what comes back."""

    operation: str
    method: str
    path: str
    about: str
    roles: tuple[Role, ...]
    answer: Callable[[Plane, Asked], Reply]
    reply: object
    """The type of the answer; None for any JSON object."""
    body: object = None
    """The type of the request's body; None when there is none."""
    reads: object = None
    """What the body is read as, where that is looser than its type because a part checks it better."""
    query: tuple[QueryField, ...] = ()
    status: int = 200
    faults: tuple[int, ...] = ()
    has_version: bool = False
    """Whether the answer carries an ETag, and a change may name the version it replaces."""


def read_query(given: Sequence[tuple[str, str]], fields: Sequence[QueryField]) -> dict[str, Any]:  # Any: as in `Asked.query`
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


def encode_cursor(place: Sequence[object]) -> str:
    """Return a place in an order as one word."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


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
    if not text or len(text) > _LONGEST_TEXT:
        raise bad_field(field.name, f"write between 1 and {_LONGEST_TEXT} characters")
    return text


def _read_number(text: str, field: QueryField) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    number = int(text) if is_number else -1
    if not is_number or not field.least <= number <= field.most:
        raise bad_field(field.name, f"write a whole number between {field.least} and {field.most}")
    return number
