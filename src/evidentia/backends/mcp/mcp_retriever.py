"""A tool of an MCP server as a source: a command that is started, or an address that is called over streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.backends.mcp.mcp_session import Session, server_name
from evidentia.contracts.errors import InvalidFieldError, ServiceReplyError
from evidentia.contracts.ports import Retriever, SupportsDataVersion
from evidentia.foundation.loop_thread import LoopThread
from evidentia.foundation.outbound_http import DIRECT

if TYPE_CHECKING:
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.settings import OutboundSettings
    from evidentia.contracts.sources import SourceConnection


LINGER_MS: Final = 5_000
"""How long after its caller left an answer may still come: whoever asks next finds it kept."""


class McpTool(Retriever, SupportsDataVersion):
    """Implements `Retriever` and `SupportsDataVersion`. One session is kept open per process until `aclose`.

    `connection.address` is a command or an address, `connection.tool` the tool. The environment variable that `key_variable` names is
    handed to the command, or sent as a bearer key. Options: `query_argument` and `limit_argument` name the tool's arguments,
    `argument.NAME` sets another one, `resources` lists resources whose changes matter, and `protocol` may be `legacy`.
    """

    def __init__(self, connection: SourceConnection, *, linger_ms: int = LINGER_MS, outbound: OutboundSettings = DIRECT) -> None:
        if not connection.tool:
            raise InvalidFieldError("connection.tool", "name the tool that is asked")
        self._connection = connection
        self._linger_ms = linger_ms
        self._origin = f"mcp:{server_name(connection.address)}/{connection.tool}"
        self._loop = LoopThread(f"evidentia-mcp-{connection.tool}")
        self._session = Session(connection, outbound=outbound)

    def data_version(self) -> str:
        """Return a word that is another one after every change that the server tells of; empty as long as none can be heard of."""
        return self._session.version

    async def retrieve(self, ask: SourceAsk) -> AsyncGenerator[object]:
        """Yield what the tool proposes.

        Raises:
            ServiceError: It gave no answer, or its answer is an error.
        """

        def arguments(schema: Mapping[str, object]) -> dict[str, object]:
            return arguments_of(schema, ask, tool=self._connection.tool, options=self._connection.options)

        reply = await self._loop.run_async(self._session.call(arguments, timeout_ms=ask.budget_ms + self._linger_ms))
        for proposed in proposals_of(reply.structured, reply.blocks, origin=self._origin):
            yield proposed

    async def aclose(self) -> None:
        """Close the session and stop the server that was started for it; whoever asks afterwards opens another."""
        if self._loop.is_running:
            await self._loop.run_async(self._session.aclose())
            await self._loop.aclose()


# --- what a tool is given and what it gives back, without the MCP package ---
# Structured content comes before text, which only repeats it. A text that is itself JSON with fragments in it is read as those fragments.

QUERY_OPTION: Final = "query_argument"
LIMIT_OPTION: Final = "limit_argument"
CONSTANT_PREFIX: Final = "argument."
"""An option `argument.NAME` gives the tool's argument NAME the same value every time."""

_LISTS: Final = ("results", "documents", "fragments", "result")
_CONTENTS: Final = ("content", "text", "page_content", "body")
_ORIGINS: Final = ("origin", "source", "url", "uri")
_MAX_JSON_CHARS: Final = 4_000_000


def arguments_of(schema: Mapping[str, object], ask: SourceAsk, *, tool: str, options: Mapping[str, str]) -> dict[str, object]:
    """Return the arguments of one question, as far as the tool's input schema has them.

    Raises:
        ServiceReplyError: The tool takes no argument of the name under which it is to be given the question.
    """
    properties = schema.get("properties")
    named: Mapping[object, object] = properties if isinstance(properties, Mapping) else {}
    query, limit = options.get(QUERY_OPTION, "query"), options.get(LIMIT_OPTION, "limit")
    if named and query not in named:
        raise ServiceReplyError(f"the tool '{tool}' takes no argument '{query}'; name the right one in the option '{QUERY_OPTION}'")
    arguments: dict[str, object] = {
        name.removeprefix(CONSTANT_PREFIX): value for name, value in options.items() if name.startswith(CONSTANT_PREFIX)
    }
    if limit in named:
        arguments[limit] = ask.limit
    return {**arguments, query: ask.query.text}


def proposals_of(structured: object, blocks: Sequence[object], *, origin: str) -> Iterator[object]:
    """Yield what a tool's result proposes; what names no origin of its own is attributed to the tool."""
    found = _listed(structured)
    if found is None:
        found = [proposed for block in blocks for proposed in _block_proposals(block)]
    for proposed in found:
        yield _attributed(proposed, origin)


def _listed(value: object) -> list[object] | None:
    """Return the fragments in a value; None when it has none of the shapes that hold fragments."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return None
    for name in _LISTS:
        listed = value.get(name)
        if isinstance(listed, list):
            return listed
    return [dict(value)] if any(isinstance(value.get(name), str) for name in _CONTENTS) else None


def _block_proposals(block: object) -> list[object]:
    """Return what one content item holds: its text, or the text of the resource inside it; an image is no candidate."""
    text = getattr(block, "text", None)
    if isinstance(text, str):
        listed = _listed(_json_in(text))
        return [text] if listed is None else listed
    resource = getattr(block, "resource", None)
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        named = {"origin": str(getattr(resource, "uri", "")), "media_type": getattr(resource, "mime_type", None)}
        return [{"content": text, **named}]
    return [None]


def _json_in(text: str) -> object:
    if len(text) > _MAX_JSON_CHARS or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _attributed(proposed: object, origin: str) -> object:
    if isinstance(proposed, str):
        return {"content": proposed, "origin": origin}
    if not isinstance(proposed, Mapping):
        return proposed
    metadata = proposed.get("metadata")
    places = (proposed, metadata) if isinstance(metadata, Mapping) else (proposed,)
    is_named = any(place.get(name) is not None for place in places for name in _ORIGINS)
    return dict(proposed) if is_named else {**proposed, "origin": origin}
