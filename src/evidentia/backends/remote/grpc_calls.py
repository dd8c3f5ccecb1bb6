"""A served base over gRPC: the same operations as messages of `evidentia.v1`, for `grpc://` and `grpcs://` addresses.

The proxy is that of the settings and no other, certificates are checked, and a token travels encrypted, within this machine, or
not at all. Needs the extra `grpc`.
"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from evidentia.backends.remote.remote_faults import error_of, fault_in
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import (
    FieldProblem,
    InvalidFieldError,
    MissingExtraError,
    PolicyInvalidError,
    ServiceReplyError,
    ServiceUnavailableError,
)
from evidentia.contracts.evidence import StreamEvent
from evidentia.contracts.operations import OPERATION_BY_NAME
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.ports import Governor, OperationCalls
from evidentia.contracts.shapes import shape_fault
from evidentia.foundation.client_tls import handshake_fault, trusted_bytes
from evidentia.foundation.outbound_http import DIRECT, check_address, check_outbound, is_sendable_key, require_confidential, silent_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import grpc

    from evidentia.contracts.settings import OutboundSettings
    from evidentia.protobuf.methods import Method

Answer = TypeVar("Answer")

MAX_REPLY_BYTES: Final = 1 << 28
PIECE_BYTES: Final = 1 << 20
FAULT: Final = "evidentia-fault-bin"
"""Where the trailing metadata has the fault, as JSON."""
_AT_FAULT: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED", "INTERNAL", "ABORTED")
"""Statuses that say that a server cannot answer now, where it does not say more."""


class GrpcCalls(OperationCalls):
    """Implements `OperationCalls`. The channel belongs to the event loop that asks; another loop gets one of its own."""

    def __init__(self, address: str, *, token: str, outbound: OutboundSettings = DIRECT) -> None:
        scheme, separator, place = address.partition("://")
        web = "https" if scheme.lower() == "grpcs" else "http"
        checked = check_address(f"{web}{separator}{place}", field="path", unfit=_UNFIT, telling=_TELLING)
        require_confidential(checked, field="path", problem="a token is not sent in the clear; write the address with grpcs")
        self._host = checked.host
        self._address = checked
        if not is_sendable_key(token):
            raise InvalidFieldError("token", "there is none, or it holds characters that no token has")
        self._place = place.rstrip("/")
        self._is_encrypted = web == "https"
        self._way = check_outbound(outbound, host=checked.host)
        if self._way.proxy_key_variable and self._way.proxy:
            raise InvalidFieldError("outbound.proxy_key_variable", "gRPC goes by proxies without a password; connect with an https address")
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._channel: tuple[asyncio.AbstractEventLoop, grpc.aio.Channel] | None = None

    @property
    def host(self) -> str:
        """Return whom it speaks to, for messages."""
        return self._host

    async def call(
        self, operation: str, params: Mapping[str, object], kind: type[Answer], *, timeout_ms: int, is_repeatable: bool = False
    ) -> Answer:
        """Return the answer of an operation; see `HttpCalls.call` for what it raises."""
        import grpc

        method, message = _message(operation, params)
        channel = self._open()
        # A server takes messages of a few megabytes; what is longer comes in pieces, which it joins.
        ask: grpc.aio.StreamUnaryMultiCallable[bytes, Any]  # Any: as in `_message`
        ask = channel.stream_unary(method.path, response_deserializer=method.response.FromString)
        content = _serialised(message)
        pieces = [content[begin : begin + PIECE_BYTES] for begin in range(0, len(content), PIECE_BYTES)] or [b""]
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        try:
            reply = await ask(iter(pieces), timeout=timeout_ms / 1000, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            left_ms = int((until - loop.time()) * 1000)  # a second attempt happens within the same time
            is_passing = error.code() is grpc.StatusCode.UNAVAILABLE and _fault_of(error) is None
            if not is_repeatable or not is_passing or left_ms <= 0:
                await self._check_certificate(error)
                self._raise(error, timeout_ms=timeout_ms)
            return await self.call(operation, params, kind, timeout_ms=left_ms)
        answer: Answer = self._read(method, reply, kind)
        return answer

    async def stream(self, operation: str, params: Mapping[str, object], *, timeout_ms: int) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of an answer as they come; here `timeout_ms` is how long all of them may take."""
        import grpc

        method, message = _message(operation, params)
        channel = self._open()
        ask = channel.unary_stream(method.path, request_serializer=_serialised, response_deserializer=method.response.FromString)
        asked = ask(message, timeout=timeout_ms / 1000, metadata=self._metadata)
        try:
            async for part in asked:
                yield self._read(method, part, StreamEvent)
        except grpc.aio.AioRpcError as error:
            self._raise(error, timeout_ms=timeout_ms)
        finally:
            asked.cancel()

    def governor(self) -> Governor:
        """Refuse: runs are governed over HTTP."""
        raise InvalidFieldError("path", f"runs are governed over HTTP; connect to '{self._host}' with an http or https address for that")

    async def close(self) -> None:
        """Close the channel, if it belongs to this loop."""
        kept, self._channel = self._channel, None
        if kept is not None and kept[0] is asyncio.get_running_loop():
            await kept[1].close()

    async def _check_certificate(self, error: grpc.aio.AioRpcError) -> None:
        """Raise that the other side wants a certificate, where it ended a connection without a word."""
        fault = await silent_refusal(self._address, self._address.url, self._way) if error.code().name == "UNAVAILABLE" else None
        if fault is not None:
            raise fault from None

    def _read(self, method: Method, reply: object, kind: Any) -> Any:  # noqa: ANN401 - an answer of the kind, which may be a union
        try:
            return convert(method.read_response(reply), kind)
        except (msgspec.MsgspecError, RecursionError, KeyError) as error:
            # The reason alone: a message of the decoder quotes what was sent.
            raise ServiceReplyError(f"'{self._host}' replies with something that is no answer ({type(error).__name__})") from None

    def _raise(self, error: grpc.aio.AioRpcError, *, timeout_ms: int) -> NoReturn:
        fault = _fault_of(error)
        if fault is not None:
            told = fault_in(fault)
            if told is not None:
                raise error_of(told, host=self._host) from None
        told_by_grpc = handshake_fault(error.details() or "", host=self._host) if self._is_encrypted else None
        if told_by_grpc is not None:
            raise told_by_grpc from None
        status = error.code().name
        if status == "DEADLINE_EXCEEDED":
            raise ServiceUnavailableError(f"'{self._host}' gave no whole answer within {timeout_ms} ms") from None
        if status in _AT_FAULT:
            raise ServiceUnavailableError(f"'{self._host}' cannot be spoken to ({status})") from None
        raise ServiceReplyError(f"'{self._host}' refuses ({status}); check that an Evidentia listens for gRPC there") from None

    def _open(self) -> grpc.aio.Channel:
        loop = asyncio.get_running_loop()
        if self._channel is None or self._channel[0] is not loop:
            self._channel = (loop, self._new_channel())
        return self._channel[1]

    def _new_channel(self) -> grpc.aio.Channel:
        import grpc

        options = (
            ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_http_proxy", 1 if self._way.proxy else 0),
            *((("grpc.http_proxy", self._way.proxy),) if self._way.proxy else ()),
        )
        if not self._is_encrypted:
            return grpc.aio.insecure_channel(self._place, options=options)
        return grpc.aio.secure_channel(self._place, self._credentials(), options=options)

    def _credentials(self) -> grpc.ChannelCredentials:
        import grpc

        trusted, way = trusted_bytes(self._way), self._way
        if not way.certificate:
            return grpc.ssl_channel_credentials(trusted)
        key = Path(way.private_key or way.certificate).read_bytes()
        return grpc.ssl_channel_credentials(trusted, private_key=key, certificate_chain=Path(way.certificate).read_bytes())


class _Params:
    """Parameters as the attributes that a message is written from; what is not given is None, or what the contract has."""

    def __init__(self, given: Mapping[str, object], body: msgspec.Struct | None) -> None:
        self._given = given
        self._body = body

    def __getattr__(self, name: str) -> object:
        if self._body is not None and name in self._body.__struct_fields__:
            return getattr(self._body, name)
        return self._given.get(name)


_UNFIT: Final = "it is no address of a served base; write something like 'grpcs://host:8322'"
_TELLING: Final = "it holds a name, a key or a query; pass the token by itself"


def _message(operation: str, params: Mapping[str, object]) -> tuple[Method, Any]:
    """Return the method of an operation and the message that asks for it. Any: a class per operation, made by protoc."""
    method = _methods().get(operation)
    if method is None:
        raise ServiceReplyError(f"'{operation}' is not offered over gRPC; connect with an http or https address")
    kind = OPERATION_BY_NAME[operation].request
    body = _body(params, kind) if isinstance(kind, type) else None
    made = method.request(**method.write_request(_Params(params, body)))
    for name in () if body is None else body.__struct_fields__:
        if name not in params and name in made.DESCRIPTOR.fields_by_name:
            made.ClearField(name)  # what was not given is the server's to fill in, and no wish of the caller's
    return method, made


def _body(params: Mapping[str, object], kind: type[msgspec.Struct]) -> msgspec.Struct:
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    given = {name: value for name, value in params.items() if name in names}
    try:
        return convert(msgspec.to_builtins(given), kind)
    except msgspec.ValidationError as error:
        place, problem = shape_fault(error, kind)
        field = place or problem.rpartition(" `")[2].strip("`")
        if kind is PolicyBody:
            raise PolicyInvalidError([FieldProblem(field, problem)]) from None
        raise InvalidFieldError(field, problem) from None


@cache
def _methods() -> Mapping[str, Method]:
    try:
        from evidentia.protobuf.methods import METHODS
    except ImportError as error:
        raise MissingExtraError("grpc", needed_for="a base behind a grpc address") from error
    return {_operation(method.name): method for method in METHODS}


def _operation(name: str) -> str:
    """Return what a method's operation is called: `ListRuns` is `list_runs`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _serialised(message: Any) -> bytes:  # noqa: ANN401 - a message of whichever method
    content: bytes = message.SerializeToString()
    return content


def _fault_of(error: grpc.aio.AioRpcError) -> bytes | None:
    found = [value for name, value in error.trailing_metadata() or () if name == FAULT]
    return found[0] if found and isinstance(found[0], bytes) else None
