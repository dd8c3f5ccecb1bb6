"""A request once it was let in, and what an endpoint says about the requests it takes."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from evidentia.contracts.control import Role
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.operations.api_errors import bad_field, nearest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import TokenInfo
    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.operations.server_context import ServerContext


MAX_LIMIT: Final = 500
MAX_BYTES: Final = 1 << 20
_MAX_NUMBER_LENGTH: Final = 15
_IN_BRACES: Final = re.compile(r"{(\w+)}")
_TRUTHS: Final = {"true": True, "false": False}


class QueryField(NamedTuple):
    """One parameter that may stand after the question mark."""

    name: str
    about: str
    kind: type = str
    """str, int, bool, or the vocabulary whose words are taken."""
    default: int | None = None
    least: int = 1
    most: int = MAX_LIMIT
    most_chars: int = 500


LIMIT: Final = QueryField("limit", "At most this many.", int, default=50)
CURSOR: Final = QueryField("cursor", "The `next_cursor` of the page before.")
MINUTES: Final = QueryField("minutes", "Only what happened in the last minutes.", int, least=1, most=60 * 24 * 366)


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


class Group(Vocabulary):
    """What an operation is about."""

    EVIDENCE = "evidence"
    GOVERNANCE = "governance"
    ADMINISTRATION = "administration"


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


class Endpoint(NamedTuple):
    """One thing that can be asked: where, by whom, with what, and what comes back."""

    operation: str
    method: str
    path: str
    about: str
    roles: tuple[Role, ...]
    answer: Callable[[ServerContext, OperationRequest], Reply | Awaitable[Reply] | AsyncGenerator[object, None]]
    """Sync for work that blocks, async for the engine's, an async generator where the answer comes in parts."""
    reply: object
    """The type of the answer, or of each part of it; None for any JSON object."""
    body: object = None
    """The type of the request's body; None when there is none."""
    reads: object = None
    """What the body is read as, where that is looser than its type because a part checks it better."""
    query: tuple[QueryField, ...] = ()
    status: int = 200
    faults: tuple[int, ...] = ()
    has_version: bool = False
    """Whether the answer carries an ETag, and a change may name the version it replaces."""
    group: Group = Group.GOVERNANCE
    is_writing: bool = False
    """Whether it belongs to the one process that writes: it changes something, or lives in memory as open runs do."""
    is_base_wide: bool = False
    """Whether it is about the whole base, which only tokens of the operator's tenant are for."""
    is_stream: bool = False
    max_bytes: int = MAX_BYTES
    """Of a body."""

    @property
    def path_names(self) -> tuple[str, ...]:
        """Return what stands in the path in braces, in order."""
        return tuple(_IN_BRACES.findall(self.path))


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
    if not text or len(text) > field.most_chars:
        raise bad_field(field.name, f"write between 1 and {field.most_chars} characters")
    return text


def _read_number(text: str, field: QueryField) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_NUMBER_LENGTH
    number = int(text) if is_number else -1
    if not is_number or not field.least <= number <= field.most:
        raise bad_field(field.name, f"write a whole number between {field.least} and {field.most}")
    return number


# --- roles ---
# Which roles an operation is for; of those that are named, one is enough.

READERS: Final = tuple(Role)
"""Everybody with a token."""
AGENTS: Final = (Role.AGENT, Role.ADMIN)
AUDITORS: Final = (Role.AUDITOR, Role.ADMIN)
"""Who sees what others asked and did; their questions about receipts are answered as the owner of their tenant."""
WRITERS: Final = (Role.ADMIN,)
