"""What a tool is given, read strictly: an error names the argument and, for a name that is nearly right, the one that is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
from evidentia.protocol.toolbox import DEFAULT_TOP_K, MAX_QUERY_LENGTH, MAX_TOP_K
from evidentia.serving.mcp.definitions import REQUEST_FIELDS
from evidentia.serving.operations.api_errors import nearest, shape_refusal
from evidentia.serving.operations.request_decoding import read_request as operations_request

MAX_REPLY_LENGTH: Final = 1_000_000

Query = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUERY_LENGTH)]
SessionName = Annotated[str, msgspec.Meta(max_length=200)]


class TextAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `rag_retrieve` takes."""

    query: Query
    top_k: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOP_K)] = DEFAULT_TOP_K
    session: SessionName = ""


class TableAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `table_rag_retrieve` takes."""

    query: Query
    session: SessionName = ""


class VerifyAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `verify` takes: one of the two."""

    receipt_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    response: Mapping[str, Any] | None = None  # Any: an answer as JSON, which is read with its own type


class CheckAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `check_reply` takes."""

    question: Query
    reply: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REPLY_LENGTH)]
    session: SessionName = ""


Message = TypeVar("Message", bound=msgspec.Struct)


def check_words(given: Mapping[str, object]) -> None:
    """Refuse what JSON can write and nothing can keep: halves of characters, and values nested without end."""
    for name, value in given.items():
        try:
            msgspec.json.encode((name, value))
        except (UnicodeEncodeError, RecursionError) as error:
            raise InvalidFieldError(name.encode(errors="replace").decode(), "it is not UTF-8, or nested too deeply") from error


def read(kind: type[Message], given: object, *, within: str = "") -> Message:
    """Return a message from arguments.

    Raises:
        InvalidFieldError: An argument is unknown, missing or of another kind; it is named.
    """
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        told = shape_refusal(error, names=kind.__struct_fields__, within=within).fault.problems[0]
        meant = f"; did you mean '{told.suggestion}'?" if told.suggestion else ""
        raise InvalidFieldError(told.path or within or "arguments", f"{told.problem}{meant}") from error


def read_request(given: Mapping[str, object], *, agent_name: str) -> EvidenceRequest:
    """Return the request in the arguments of `retrieve`; without an agent in it, the client is the agent."""
    for name in given:
        if name == "principal":
            raise InvalidFieldError(name, "who asks is settled by the connection, not by an argument")
        if name not in REQUEST_FIELDS:
            meant = nearest(name, tuple(REQUEST_FIELDS))
            raise InvalidFieldError(name, "retrieve takes no such argument" + (f"; did you mean '{meant}'?" if meant else ""))
    return operations_request({"agent_name": agent_name or None} | dict(given))


def read_response(given: Mapping[str, object]) -> EvidenceResponse:
    """Return an answer of `retrieve` that a client hands back."""
    return read(EvidenceResponse, given, within="response")
