"""The role of a process among those of one server: alone, the writer, or a reader that forwards what changes something to the writer.

While a server is renewed there are two writers for a while: the new one, and the one before it, until its last run has ended.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import h11
import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.control import Fault, TokenInfo
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.identity.admission import Identity
from evidentia.serving.operations.api_errors import NOT_FOUND, UNAVAILABLE, ApiError
from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
from evidentia.serving.operations.execution import perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import decode_body
from evidentia.serving.operations.request_facts import RequestFacts, current_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from evidentia.serving.operations.server_context import ServerContext


class ProcessRole(NamedTuple):
    """How many processes there are, where the writing ones are, and whether this is one of them."""

    workers: int = 1
    writers: Writers | None = None
    """None for a process that is alone."""
    own: Path | None = None
    """Where this process is asked, when it is one that writes."""

    @property
    def is_reader(self) -> bool:
        """Tell whether another process writes."""
        return self.writers is not None and self.own is None

    def writer_for(self, context: ServerContext, *, timeout_s: float) -> RemoteWriter | LocalWriter | None:
        """Return who does what changes something on a plane; None when that is simply done."""
        if self.writers is None:
            return None
        if self.own is None:
            return RemoteWriter(self.writers, timeout_s=timeout_s)
        return LocalWriter(context, self.writers, own=self.own, timeout_s=timeout_s)


ALONE: Final = ProcessRole()


# --- who writes ---

FORWARD: Final = "/-/forward"
PING: Final = "/-/ping"
REACH_S: Final = 5
OF_A_RUN: Final = ("record_calls", "end_run")
"""The operations that are done where the run is open."""


class Writers:
    """Where the writing processes are, the present one first. Belongs to its event loop."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self._clients = [UnixSocketClient(path) for path in paths]

    def replace(self, paths: Sequence[Path]) -> None:
        """Take others; connections to those that stay are kept."""
        known = {client.path: client for client in self._clients}
        self._clients = [known.pop(path) if path in known else UnixSocketClient(path) for path in paths]
        for client in known.values():
            client.close()

    @property
    def present(self) -> UnixSocketClient:
        """Return the one that takes what is new."""
        if not self._clients:
            raise writer_away()
        return self._clients[0]

    def besides(self, path: Path | None = None) -> list[UnixSocketClient]:
        """Return all of them but one, in order."""
        return [client for client in self._clients if client.path != path]

    def close(self) -> None:
        """Let go of all connections."""
        self.replace(())


class RemoteWriter:
    """Implements `Forwarding` in a process that only reads."""

    def __init__(self, writers: Writers, *, timeout_s: float) -> None:
        self._writers = writers
        self._timeout_s = timeout_s

    async def forward(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Return what the writing process answers; a run that it does not know may be open in one before it."""
        return await ask_in_turn(self._writers.besides(), endpoint, asked, timeout_s=self._timeout_s)

    async def reach(self) -> None:
        """Return once the writing process has answered."""
        try:
            await self._writers.present.ask("GET", PING, timeout_s=REACH_S)
        except TimeoutError:
            raise writer_away() from None


class LocalWriter:
    """Implements `Forwarding` in a process that writes: it does the work itself, and what it says was done is written down by then."""

    def __init__(self, context: ServerContext, writers: Writers, *, own: Path, timeout_s: float) -> None:
        self._context = context
        self._writers = writers
        self._own = own
        self._timeout_s = timeout_s

    async def forward(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Return what is answered here; of runs that are open in another process, what that one answers."""
        others = self._writers.besides(self._own)
        is_of_a_run = endpoint.name in OF_A_RUN
        is_retired = bool(others) and self._writers.present.path != self._own
        if is_retired and not is_of_a_run:
            return await ask_in_turn(others[:1], endpoint, asked, timeout_s=self._timeout_s)
        try:
            return await self.do(endpoint, asked)
        except ApiError as refusal:
            if not (others and is_of_a_run and refusal.status == NOT_FOUND):
                raise
        return await ask_in_turn(others, endpoint, asked, timeout_s=self._timeout_s)

    async def do(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Do it here; other processes see all of it once this returns, and none of it is lost when this one is killed."""
        return await perform(self._context, endpoint, lambda: asked)

    async def reach(self) -> None:
        """Return at once: the writing process is this one."""


async def ask_in_turn(clients: Sequence[UnixSocketClient], endpoint: Endpoint, asked: OperationRequest, *, timeout_s: float) -> Reply:
    """Return what the first answers; for what is done where a run is open, the first that knows the run."""
    body = encode_operation(endpoint, asked)
    unknown: ApiError | None = None
    for client in clients:
        try:
            return await _ask(client, endpoint, body, timeout_s=timeout_s)
        except ApiError as refusal:
            is_unknown = endpoint.name in OF_A_RUN and refusal.status == NOT_FOUND
            is_gone = unknown is not None and refusal.fault.code == AWAY
            if not is_unknown and not is_gone:
                raise
            unknown = unknown or refusal
    raise unknown or writer_away()


async def _ask(client: UnixSocketClient, endpoint: Endpoint, body: bytes, *, timeout_s: float) -> Reply:
    try:
        return decode_reply(await client.ask("POST", FORWARD, body=body, timeout_s=timeout_s), endpoint)
    except (TimeoutError, msgspec.MsgspecError) as error:
        raise writer_lost() from error


# --- forwarded operations, as JSON: they were admitted by the process that forwards them ---

_BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class ForwardedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, and who asks for it with what. Whoever hands it over has let them in."""

    operation: str
    token: TokenInfo
    principal: Principal
    path: dict[str, str]
    query: dict[str, Any]  # Any: each value has the kind of its field
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    if_match: str | None = None
    request_id: str = ""
    """Under which the process that forwards it logs it."""


class ForwardedReply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it: a message, or a fault with the status of the refusal."""

    status: int | None = None
    headers: dict[str, str] = {}
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    fault: Fault | None = None


def encode_operation(endpoint: Endpoint, asked: OperationRequest) -> bytes:
    """Return what is handed over."""
    facts = current_facts()
    return msgspec.json.encode(
        ForwardedOperation(
            operation=endpoint.name,
            token=asked.identity.token,
            principal=asked.identity.principal,
            path=dict(asked.path),
            query=dict(asked.query),
            body=msgspec.UNSET if endpoint.request is None else msgspec.Raw(msgspec.json.encode(asked.body)),
            if_match=asked.if_match,
            request_id="" if facts is None else facts.request_id,
        )
    )


def decode_operation(raw: bytes) -> tuple[Endpoint, OperationRequest, RequestFacts]:
    """Return what was handed over, and under which id it is logged."""
    message = decode_json(raw, ForwardedOperation)
    endpoint = _BY_NAME[message.operation]
    query = dict(message.query)
    for field in endpoint.query:
        if issubclass(field.kind, Vocabulary) and query.get(field.name) is not None:
            query[field.name] = field.kind(query[field.name])
    body = None if message.body is msgspec.UNSET else decode_body(bytes(message.body), endpoint)
    asked = OperationRequest(Identity(message.token, message.principal), message.path, query, body, message.if_match)
    return endpoint, asked, RequestFacts(message.request_id, door="writer")


def encode_reply(reply: Reply) -> bytes:
    """Return what goes back when it was done."""
    message = msgspec.Raw(msgspec.json.encode(reply.message))
    return msgspec.json.encode(ForwardedReply(status=reply.status, headers=dict(reply.headers), message=message))


def encode_refusal(refusal: ApiError) -> bytes:
    """Return what goes back when it was refused."""
    return msgspec.json.encode(ForwardedReply(status=refusal.status, headers=refusal.headers, fault=refusal.fault))


def decode_reply(raw: bytes, endpoint: Endpoint) -> Reply:
    """Return the reply, or raise the refusal."""
    message = decode_json(raw, ForwardedReply)
    if message.fault is not None:
        fault = message.fault
        raise ApiError(
            message.status or NOT_FOUND, fault.code, fault.message, hint=fault.hint, problems=fault.problems, headers=message.headers
        )
    kind = Any if endpoint.reply is None else endpoint.reply
    content = decode_json(b"null" if message.message is msgspec.UNSET else bytes(message.message), kind)
    return Reply(content, message.headers, message.status)


# --- HTTP over a Unix socket, from one process of a server to another ---
# On h11 rather than httpx2: every write of a reading process goes this way, and an exchange of 500 bytes measured 0.35 ms of CPU
# with this client and 0.9 ms with httpx2 over the same socket. A request may also be answered before its body has ended.

CONNECT_S: Final = 5
MAX_RESTING: Final = 64
AWAY: Final = "writer_restarting"
_BLOCK: Final = 64 << 10
_HOST: Final = (b"host", b"localhost")


class UnixSocketConnection:
    """One connection, which carries one exchange at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.CLIENT)

    async def send(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        """Send a part of a request."""
        self._writer.write(self._state.send(event) or b"")
        await self._writer.drain()

    async def next_event(self) -> h11.Response | h11.Data | h11.EndOfMessage:
        """Return the next part of the answer; a connection that ends before it does is an error."""
        while True:
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(_BLOCK))
            elif isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                return event
            elif not isinstance(event, h11.InformationalResponse):
                raise ConnectionResetError

    def rest(self) -> bool:
        """Get ready for the next exchange; False when there can be none."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    @property
    def is_usable(self) -> bool:
        """Tell whether the other side is still there, as far as is known."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        """Let go of it."""
        self._writer.close()


class UnixSocketClient:
    """The connections to one process. Belongs to its event loop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._resting: list[UnixSocketConnection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[UnixSocketConnection]:
        """Give a connection, which is kept when its exchange came to its end.

        Raises:
            ApiError: 503, there is nobody at the other end, or it went away before it had answered.
        """
        connection = await self._take()
        is_kept = False
        try:
            yield connection
            is_kept = connection.rest() and len(self._resting) < MAX_RESTING
        except (OSError, h11.ProtocolError) as error:
            raise writer_lost() from error
        finally:
            if is_kept:
                self._resting.append(connection)
            else:
                connection.close()

    async def ask(self, method: str, target: str, *, body: bytes = b"", timeout_s: float) -> bytes:
        """Return the body of an answer."""
        async with asyncio.timeout(timeout_s), self.connection() as connection:
            headers = [_HOST, (b"content-length", str(len(body)).encode())]
            await connection.send(h11.Request(method=method, target=target, headers=headers))
            if body:
                await connection.send(h11.Data(data=body))
            await connection.send(h11.EndOfMessage())
            content = bytearray()
            while not isinstance(event := await connection.next_event(), h11.EndOfMessage):
                content += event.data if isinstance(event, h11.Data) else b""
        return bytes(content)

    def close(self) -> None:
        """Let go of what rests."""
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.close()

    async def _take(self) -> UnixSocketConnection:
        while self._resting:
            connection = self._resting.pop()
            if connection.is_usable:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_S):
                return UnixSocketConnection(*await asyncio.open_unix_connection(str(self.path)))
        except (OSError, TimeoutError) as error:
            raise writer_away() from error


def writer_away() -> ApiError:
    """Return the refusal while the writing process is not there: nothing was done."""
    message = "the process that writes is starting again; nothing was done"
    return ApiError(UNAVAILABLE, AWAY, message, hint="ask again in a second", headers={"retry-after": "1"})


def writer_lost() -> ApiError:
    """Return the refusal when the writing process went away in the middle."""
    hint = "it may have been done all the same, so look before you ask again"
    message = "the process that writes went away before it had answered"
    return ApiError(UNAVAILABLE, "writer_lost", message, hint=hint, headers={"retry-after": "1"})
