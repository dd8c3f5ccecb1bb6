"""The gRPC server: its port, its limits, health and reflection, and an orderly end.

Nothing of a message is read before its caller is let in: gRPC reads the message of a unary method first and asks who sent it then, so
every method is served as a stream of messages, of which the metadata is here before the first.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import unquote

import grpc
import msgspec
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from evidentia.contracts.evidence import EvidenceRequest
from evidentia.foundation.rate_limit import Shares
from evidentia.protobuf.methods import METHODS, Method
from evidentia.serving.grpc.call_log import CallLogInterceptor
from evidentia.serving.identity.admission import network_of
from evidentia.serving.identity.pools import HOLD_BACK_S, MAX_REQUESTS
from evidentia.serving.operations.api_errors import (
    BAD_GATEWAY,
    CHANGED,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    MALFORMED,
    NOT_FOUND,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNPROCESSABLE,
    ApiError,
    too_large,
)
from evidentia.serving.operations.execution import perform, perform_stream
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, decode_flat, flat_of
from evidentia.serving.operations.request_facts import HEADER, current_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from google.protobuf.message import Message

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.identity.pools import Holding
    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest
    from evidentia.serving.operations.server_context import ServerContext

    Context = grpc.aio.ServicerContext[Any, Any]  # Any: the messages of whichever method
    Handler = grpc.RpcMethodHandler[Any, Any]


MAX_OPEN: Final = 24
"""Calls without a token, to health and reflection, at once."""
MAX_OPEN_OF_ONE: Final = 6
"""Of them, those from one address."""
MAX_AT_ONCE: Final = MAX_REQUESTS + 4 * MAX_OPEN
"""More calls than this are told to come back, before it is known whose they are."""
MAX_METADATA_BYTES: Final = 16 << 10
MAX_MESSAGE_BYTES: Final = (2 << 20) + (64 << 10)
"""Of one message: more is refused by its length alone. What an operation takes beyond that comes as several messages, which are joined."""
READ_S: Final = 60
"""How long a caller may take to send the next message of a call."""
_WINDOW_BYTES: Final = 64 << 10
"""How much of a call may be on its way, unread, before its caller is known."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 200),
    ("grpc.http2.lookahead_bytes", _WINDOW_BYTES),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.experimental.tcp_read_chunk_size", 8 << 10),
    ("grpc.experimental.tcp_max_read_chunk_size", _WINDOW_BYTES),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
)


class GrpcDoor:
    """A gRPC server over a plane, on the event loop that starts it."""

    def __init__(
        self,
        context: ServerContext,
        *,
        credentials: grpc.ServerCredentials | None = None,
        is_shared: bool = False,
        max_connections: int = 1_000,
    ) -> None:
        options = (*_OPTIONS, ("grpc.so_reuseport", int(is_shared)), ("grpc.max_allowed_incoming_connections", max_connections))
        interceptors = (CallLogInterceptor(context), _OpenCalls())
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MAX_AT_ONCE, interceptors=interceptors)
        self._credentials = credentials
        self._health = health.aio.HealthServicer()
        for handler in handlers(context):
            self._server.add_generic_rpc_handlers((handler,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*service_names(), health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, address: str) -> int:
        """Listen at `host:port` and return the port; an address that is taken or not ours is an OSError."""
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen for gRPC at '{address}'") from error
        await self._server.start()
        for name in ("", *service_names()):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self, *, grace_s: float) -> None:
        """Say that no more is taken, let calls under way finish, and end."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)


def credentials_of(*, certificate: bytes, private_key: bytes, authorities: bytes | None = None) -> grpc.ServerCredentials:
    """Return what a server shows; with `authorities`, clients have to show a certificate too."""
    return grpc.ssl_server_credentials(
        [(private_key, certificate)], root_certificates=authorities, require_client_auth=authorities is not None
    )


# --- methods ---
# One handler per operation: who asks, what exactly, by when; then the work itself, and the answer as a message.

AUTHORIZATION: Final = "authorization"
FAULT: Final = "evidentia-fault-bin"
"""Where the fault stands: JSON of `Fault`, the same as in the body of a refusal over HTTP."""
RETRY_AFTER: Final = "retry-after"
CODES: Final[Mapping[int, grpc.StatusCode]] = {
    MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    CHANGED: grpc.StatusCode.ABORTED,
    TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UNPROCESSABLE: grpc.StatusCode.INVALID_ARGUMENT,
    TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    INTERNAL: grpc.StatusCode.INTERNAL,
    BAD_GATEWAY: grpc.StatusCode.UNAVAILABLE,
    UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}
"""By the status that the same refusal has over HTTP."""
DEADLINE: Final = "latency_deadline_ms"
USUAL_MS: Final = next(field.default for field in msgspec.structs.fields(EvidenceRequest) if field.name == DEADLINE)
WAY_SHARE: Final = 10
"""Of the time that is left, one part in so many is for the way back."""
LEAST_WAY_MS: Final = 5
_LATE: Final = "the deadline of the call has passed"

_by_name: Final = {camel(endpoint.name): endpoint for endpoint in ENDPOINTS}


def handlers(server_context: ServerContext) -> list[grpc.GenericRpcHandler]:
    """Return the handlers of every service."""
    services: dict[str, dict[str, Handler]] = {}
    for method in METHODS:
        services.setdefault(method.full_service, {})[method.name] = _handler(server_context, method, _by_name[method.name])
    return [grpc.method_handlers_generic_handler(service, methods) for service, methods in services.items()]


def service_names() -> list[str]:
    """Return what the services are called, in order."""
    return sorted({method.full_service for method in METHODS})


def _handler(server_context: ServerContext, method: Method, endpoint: Endpoint) -> Handler:
    write = method.response.SerializeToString
    if method.is_stream:
        return grpc.stream_stream_rpc_method_handler(_streaming(server_context, method, endpoint), None, write)
    return grpc.stream_unary_rpc_method_handler(_single(server_context, method, endpoint), None, write)


def _single(server_context: ServerContext, method: Method, endpoint: Endpoint) -> Callable[..., Any]:
    async def answer(_: object, context: Context) -> Message:
        try:
            async with asyncio.timeout(context.time_remaining()), _entered(server_context, endpoint, context) as (identity, body):
                read = await _request_reader(method, endpoint, context, identity=identity, body=body)
                reply = await perform(server_context, endpoint, read)
            made: Message = method.response(**method.write_response(reply.message))
        except ApiError as refusal:
            await refuse(context, refusal)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, _LATE)
        return made

    return answer


def _streaming(server_context: ServerContext, method: Method, endpoint: Endpoint) -> Callable[..., Any]:
    async def answer(_: object, context: Context) -> AsyncIterator[Message]:
        try:
            async with asyncio.timeout(context.time_remaining()), _entered(server_context, endpoint, context) as (identity, body):
                read = await _request_reader(method, endpoint, context, identity=identity, body=body)
                async for part in perform_stream(server_context, endpoint, read):
                    yield method.response(**method.write_response(part))
        except ApiError as refusal:
            await refuse(context, refusal)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, _LATE)

    return answer


@asynccontextmanager
async def _entered(server_context: ServerContext, endpoint: Endpoint, context: Context) -> AsyncIterator[tuple[Identity, Holding]]:
    """Let a caller in by the metadata of a call, before any of its messages is read, and hold its place meanwhile."""
    identity = await server_context.admission.admit(_authorization(context), endpoint, client=_client(context.peer()))
    async with server_context.admission.pools.entered(identity.token.token_id) as body:
        yield identity, body


async def _request_reader(
    method: Method, endpoint: Endpoint, context: Context, *, identity: Identity, body: Holding
) -> Callable[[], OperationRequest]:
    """Return what reads the rest of a request."""
    sent = await _read(context, max_bytes=endpoint.max_bytes, body=body)
    if endpoint.is_writing:
        # A message beyond the limit ends the messages like the caller does, but the call with it, and nothing can be sent any more: what
        # came before it is not the whole, and nothing is done about it.
        await context.send_initial_metadata(())
    try:
        fields = within(endpoint, method.read_request(method.request.FromString(sent)), left_s=context.time_remaining())
    except DecodeError:
        raise ApiError(MALFORMED, "malformed_message", "these bytes are no message of the method", hint="use the schemas") from None
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        problem = f"the message holds JSON that cannot be read ({type(error).__name__})"
        raise ApiError(MALFORMED, "malformed_json", problem, hint="see the fields whose names end in _json") from None
    raw = msgspec.json.encode(fields)
    return lambda: decode_flat(endpoint, raw, identity)


async def _read(context: Context, *, max_bytes: int, body: Holding) -> bytes:
    """Return the messages of a call, joined: in protobuf, messages behind each other are one, whose lists are joined too.

    They are read from the context and not from gRPC's iterator, and let go of before anything is raised: both the iterator and a trace
    are kept alive by the call that failed, until Python collects its cycles.
    """
    parts: list[Any] = []  # Any: bytes, or the mark of the end, which their type does not have
    try:
        while True:
            async with asyncio.timeout(READ_S):
                parts.append(await context.read())
            if parts[-1] is grpc.aio.EOF:
                parts.pop()
                break
            _count(body, len(parts[-1]), max_bytes=max_bytes)
    except BaseException:
        parts.clear()
        raise
    if not parts:
        raise ApiError(MALFORMED, "missing_message", "the call ended before its message", hint="send one message, then end the call")
    return b"".join(parts)


def _count(body: Holding, amount: int, *, max_bytes: int) -> None:
    body.grow(amount)
    if body.amount > max_bytes:
        raise too_large("message is", max_bytes=max_bytes)


class _OpenCalls(grpc.aio.ServerInterceptor):
    """Bounds the calls that need no token, in all and for each address; they too are read only once they have a place."""

    def __init__(self) -> None:
        self._shares = Shares[str](MAX_OPEN, of_one=MAX_OPEN_OF_ONE)

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as gRPC has it
        """Return the handler of a method, bounded unless it is one of ours, which let nobody in without a token."""
        handler = await continuation(details)
        if handler is None or str(details.method).startswith("/evidentia."):
            return handler
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.unary_unary is not None:
            return grpc.stream_unary_rpc_method_handler(self._single(handler.unary_unary), read, write)
        return grpc.stream_stream_rpc_method_handler(self._streaming(handler), read, write)

    def _single(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        async def bounded(messages: AsyncIterator[Any], context: Context) -> Any:  # noqa: ANN401 - likewise
            async with self._place(context):
                return await answer(await anext(messages), context)

        return bounded

    def _streaming(self, handler: Any) -> Callable[..., Any]:  # noqa: ANN401 - likewise
        async def bounded(messages: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async with self._place(context):
                is_single = handler.unary_stream is not None
                parts = handler.unary_stream(await anext(messages), context) if is_single else handler.stream_stream(messages, context)
                if inspect.isawaitable(parts):
                    await parts  # it writes its parts itself
                    return
                async for part in parts:
                    yield part

        return bounded

    @asynccontextmanager
    async def _place(self, context: Context) -> AsyncIterator[None]:
        address = network_of(_client(context.peer()))
        if not self._shares.take(address):
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls without a token", ((RETRY_AFTER, "1"),))
        try:
            yield
        finally:
            self._shares.give_back(address)


def _authorization(context: Context) -> str:
    """Return the one credential of a call; two are none."""
    given = [value for name, value in context.invocation_metadata() or () if name == AUTHORIZATION]
    return str(given[0]) if len(given) == 1 else ""


def _client(peer: str) -> str | None:
    """Return the address in what gRPC calls a peer, such as `ipv4:127.0.0.1:50000` or `ipv6:%5B::1%5D:50000`."""
    family, _, address = peer.partition(":")
    if family not in {"ipv4", "ipv6"}:
        return None
    return unquote(address.rpartition(":")[0]).strip("[]") or None


# The whole fault travels as JSON in the trailing metadata: a status code of gRPC says too little.
async def refuse(context: Context, refusal: ApiError) -> NoReturn:
    """End a call with a refusal."""
    trailing: list[tuple[str, str | bytes]] = [(FAULT, msgspec.json.encode(refusal.fault))]
    facts = current_facts()
    if facts is not None:
        trailing.append((HEADER, facts.request_id))
    if RETRY_AFTER in refusal.headers:
        trailing.append((RETRY_AFTER, refusal.headers[RETRY_AFTER]))
    if refusal.status == TOO_MANY:
        await asyncio.sleep(HOLD_BACK_S)
    code = CODES.get(refusal.status, grpc.StatusCode.UNKNOWN)
    await context.abort(code, refusal.fault.message, tuple(trailing))


# The engine is told to answer a little before the caller leaves: an answer that says what is missing beats none.
def within(endpoint: Endpoint, fields: dict[str, Any], *, left_s: float | None) -> dict[str, Any]:
    """Return the fields of a request with a deadline that ends before the caller's; None is a caller who waits for ever."""
    if left_s is None or not takes_deadline(endpoint):
        return fields
    left_ms = int(left_s * 1_000)
    allowed_ms = max(1, left_ms - max(LEAST_WAY_MS, left_ms // WAY_SHARE))
    asked_ms = fields.get(DEADLINE, USUAL_MS)
    if isinstance(asked_ms, int) and asked_ms > allowed_ms:
        return {**fields, DEADLINE: allowed_ms}
    return fields


def takes_deadline(endpoint: Endpoint) -> bool:
    """Tell whether an operation can be told how long it may take."""
    return DEADLINE in flat_of(endpoint).message.__struct_fields__
