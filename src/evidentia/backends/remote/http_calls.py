"""A served base over HTTP: operations as JSON-RPC calls, answers that come in parts as lines of JSON.

How requests travel is up to `foundation.outbound_http`; a token goes encrypted, within this machine, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import msgspec

from evidentia.backends.remote.remote_faults import WireFault, error_of, fault_in
from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.contracts.decoding import decode_json, json_decoder
from evidentia.contracts.errors import InvalidFieldError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.evidence import StreamEvent
from evidentia.contracts.operations import OPERATION_BY_NAME
from evidentia.contracts.ports import OperationCalls
from evidentia.foundation.outbound_http import (
    BUSY,
    DIRECT,
    SERVER_FAULT,
    Bounds,
    Failure,
    HttpClient,
    Request,
    bearer,
    check_address,
    is_sendable_key,
    require_confidential,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from evidentia.contracts.settings import OutboundSettings

Answer = TypeVar("Answer")

RPC: Final = "/rpc"
MAX_REPLY_BYTES: Final = 1 << 28
_OK: Final = 200
_decode_event: Callable[[bytes], StreamEvent] = json_decoder(StreamEvent)
_NO_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _RpcError(msgspec.Struct):
    code: int = 0
    message: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")


class _RpcReply(msgspec.Struct):
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _RpcError | None = None


class _FaultReply(msgspec.Struct):
    error: WireFault
    event: str = ""


class HttpCalls(OperationCalls):
    """Implements `OperationCalls`."""

    def __init__(self, address: str, *, token: str, max_reply_bytes: int = MAX_REPLY_BYTES, outbound: OutboundSettings = DIRECT) -> None:
        checked = check_address(
            address,
            field="path",
            unfit="it is no address of a served base; write something like 'https://host:8321'",
            telling="it holds a name, a key or a query; pass the token by itself",
        )
        require_confidential(checked, field="path", problem="a token is not sent in the clear; write the address with https")
        if not is_sendable_key(token):
            raise InvalidFieldError("token", "there is none, or it holds characters that no token has")
        self._host = checked.host
        self._address = checked.url
        self._token = token
        self._max_reply_bytes = max_reply_bytes
        self._outbound = outbound
        self._client = HttpClient(checked, field="path", outbound=outbound)
        self._governor: RemoteGovernor | None = None

    @property
    def host(self) -> str:
        """Return whom it speaks to, for messages."""
        return self._host

    async def call(
        self, operation: str, params: Mapping[str, object], kind: type[Answer], *, timeout_ms: int, is_repeatable: bool = False
    ) -> Answer:
        """Return the answer of an operation.

        Raises:
            ServiceUnavailableError: There was no whole answer in time, or the server cannot answer now.
            EvidentiaError: What a local base raises.
        """
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": operation, "params": params})
        # Where the way broke it is not known whether the request arrived, so only a question is asked again.
        bounds = Bounds(timeout_ms, self._max_reply_bytes, attempts=2 if is_repeatable else 1)
        reply = await self._client.exchange(self._request(RPC, body, accept="application/json"), bounds)
        if isinstance(reply, Failure):
            raise reply.error()
        return self._result(reply.status, reply.body, kind)

    async def stream(self, operation: str, params: Mapping[str, object], *, timeout_ms: int) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of an answer as they come; `timeout_ms` is how long all of them may be waited for."""
        request = self._request(OPERATION_BY_NAME[operation].path, msgspec.json.encode(params), accept="application/x-ndjson")
        async with self._client.stream(request, Bounds(timeout_ms, self._max_reply_bytes)) as reply:
            if reply.status != _OK:
                self._refuse(reply.status, await reply.read())
            async for line in reply.lines():
                yield self._event(line)

    def governor(self) -> RemoteGovernor:
        """Return who governs runs there; it is closed with the rest."""
        if self._governor is None:
            self._governor = RemoteGovernor(self._address, token=self._token, outbound=self._outbound)
        return self._governor

    async def close(self) -> None:
        """Close the connections."""
        if self._governor is not None:
            self._governor.close()
        await self._client.aclose()

    def _request(self, path: str, body: bytes, *, accept: str) -> Request:
        return Request("POST", path, {"accept": accept, "content-type": "application/json", **bearer(self._token)}, body)

    def _event(self, line: bytes) -> StreamEvent:
        try:
            return _decode_event(line)
        except _NO_JSON as error:
            try:
                fault = decode_json(line, _FaultReply).error
            except _NO_JSON:
                raise self._no_answer(error) from None
            raise error_of(fault, host=self._host) from None

    def _result(self, status: int, reply: bytes, kind: type[Answer]) -> Answer:
        try:
            told = decode_json(reply, _RpcReply)
        except _NO_JSON as error:
            if status != _OK:
                self._refuse(status, reply)
            raise self._no_answer(error) from None
        if told.error is not None:
            fault = fault_in(told.error.data)
            if fault is None:
                raise ServiceReplyError(f"'{self._host}' refuses ({told.error.code}): {told.error.message[:500]}")
            raise error_of(fault, host=self._host)
        if status != _OK or told.result is msgspec.UNSET:
            self._refuse(status, reply)
        try:
            return decode_json(told.result, kind)
        except _NO_JSON as error:
            raise self._no_answer(error) from None

    def _refuse(self, status: int, reply: bytes) -> NoReturn:
        """Raise what an answer means that is none: what the plane says, or what its status says."""
        try:
            fault = decode_json(reply, _FaultReply).error
        except _NO_JSON:
            answer = f"'{self._host}' answers with the HTTP status {status}"
            if status == BUSY or status >= SERVER_FAULT:
                raise ServiceUnavailableError(answer) from None
            raise ServiceReplyError(f"{answer}; check that an Evidentia is served at this address") from None
        raise error_of(fault, host=self._host)

    def _no_answer(self, error: Exception) -> ServiceReplyError:
        # The reason alone: a message of the decoder quotes what was sent.
        return ServiceReplyError(f"'{self._host}' replies with something that is no answer ({type(error).__name__})")
