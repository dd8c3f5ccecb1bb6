"""A served base over HTTP: operations as JSON-RPC calls, answers that come in parts as lines of JSON.

Redirects and proxies are not followed, certificates are checked, and a token travels encrypted, within this machine, or not at all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import msgspec

from evidentia.backends.remote.addresses import checked_parts
from evidentia.backends.remote.exchange import LOCAL_HOSTS, new_client
from evidentia.backends.remote.remote_faults import WireFault, error_of, fault_in
from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.contracts.errors import InvalidFieldError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.evidence import StreamEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    import httpx2

Answer = TypeVar("Answer")

RPC: Final = "/rpc"
STREAMS: Final[Mapping[str, str]] = {"retrieve_stream": "/v1/evidence/stream"}
MAX_REPLY_BYTES: Final = 1 << 28
_OK: Final = 200
_BUSY: Final = 429
_SERVER_FAULT: Final = 500
_decode_event: Callable[[bytes], StreamEvent] = msgspec.json.Decoder(StreamEvent).decode
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


class HttpCalls:
    """Implements `OperationCalls`. The connections belong to the event loop that asks; another loop gets connections of its own."""

    def __init__(self, address: str, *, token: str, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        scheme, self._host = _checked_parts(address)
        if scheme != "https" and self._host not in LOCAL_HOSTS:
            raise InvalidFieldError("path", "a token is not sent in the clear; write the address with https")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidFieldError("token", "there is none, or it holds characters that no token has")
        self._address = address.rstrip("/")
        self._token = token
        self._most_reply_bytes = max_reply_bytes
        self._client: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None
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
        status, reply = await self._post(RPC, body, timeout_ms=timeout_ms, is_repeatable=is_repeatable)
        return self._result(status, reply, kind)

    async def stream(self, operation: str, params: Mapping[str, object], *, timeout_ms: int) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of an answer as they come."""
        client = await self._open()
        import httpx2

        request = client.build_request(
            "POST",
            self._address + STREAMS[operation],
            content=msgspec.json.encode(params),
            headers=self._headers("application/x-ndjson"),
            timeout=httpx2.Timeout(timeout_ms / 1000),
        )
        try:
            response = await client.send(request, stream=True)
            try:
                if response.status_code != _OK:
                    self._refuse(response.status_code, await self._whole(response))
                async for line in self._lines(response):
                    yield self._event(line)
            finally:
                await response.aclose()
        except httpx2.TimeoutException:
            raise self._late(timeout_ms) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise self._broken(error) from None

    def governor(self) -> RemoteGovernor:
        """Return who governs runs there; it is closed with the rest."""
        if self._governor is None:
            self._governor = RemoteGovernor(self._address, token=self._token)
        return self._governor

    async def close(self) -> None:
        """Close the connections that belong to this loop; those of a loop that is gone went with it."""
        if self._governor is not None:
            self._governor.close()
        kept, self._client = self._client, None
        if kept is not None and kept[0] is asyncio.get_running_loop():
            await kept[1].aclose()

    async def _post(self, path: str, body: bytes, *, timeout_ms: int, is_repeatable: bool) -> tuple[int, bytes]:
        """Return status and body; where the way broke it is not known whether the question arrived, so only a question is asked again."""
        client = await self._open()
        import httpx2

        try:
            async with (
                asyncio.timeout(timeout_ms / 1000),
                client.stream("POST", self._address + path, content=body, headers=self._headers("application/json")) as response,
            ):
                return response.status_code, await self._whole(response)
        except (TimeoutError, httpx2.TimeoutException):
            raise self._late(timeout_ms) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            if not is_repeatable:
                raise self._broken(error) from None
        return await self._post(path, body, timeout_ms=timeout_ms, is_repeatable=False)

    async def _whole(self, response: httpx2.Response) -> bytes:
        parts = bytearray()
        async for part in response.aiter_raw():
            parts += part
            if len(parts) > self._most_reply_bytes:
                raise ServiceReplyError(f"'{self._host}' replies with more than {self._most_reply_bytes} bytes")
        return bytes(parts)

    async def _lines(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        kept = bytearray()
        async for part in response.aiter_raw():
            kept += part
            if len(kept) > self._most_reply_bytes:
                raise ServiceReplyError(f"'{self._host}' replies with more than {self._most_reply_bytes} bytes")
            if b"\n" in part:
                *whole, rest = bytes(kept).split(b"\n")
                kept = bytearray(rest)
                for line in whole:
                    yield line
        if kept:
            raise ServiceUnavailableError(f"'{self._host}' ended its answer too early")

    def _event(self, line: bytes) -> StreamEvent:
        try:
            return _decode_event(line)
        except _NO_JSON as error:
            try:
                fault = msgspec.json.decode(line, type=_FaultReply).error
            except _NO_JSON:
                raise self._no_answer(error) from None
            raise error_of(fault, host=self._host) from None

    def _result(self, status: int, reply: bytes, kind: type[Answer]) -> Answer:
        try:
            told = msgspec.json.decode(reply, type=_RpcReply)
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
            return msgspec.json.decode(told.result, type=kind)
        except _NO_JSON as error:
            raise self._no_answer(error) from None

    def _refuse(self, status: int, reply: bytes) -> NoReturn:
        """Raise what an answer means that is none: what the plane says, or what its status says."""
        try:
            fault = msgspec.json.decode(reply, type=_FaultReply).error
        except _NO_JSON:
            answer = f"'{self._host}' answers with the HTTP status {status}"
            if status == _BUSY or status >= _SERVER_FAULT:
                raise ServiceUnavailableError(answer) from None
            raise ServiceReplyError(f"{answer}; check that an Evidentia is served at this address") from None
        raise error_of(fault, host=self._host)

    def _no_answer(self, error: Exception) -> ServiceReplyError:
        # The reason alone: a message of the decoder quotes what was sent.
        return ServiceReplyError(f"'{self._host}' replies with something that is no answer ({type(error).__name__})")

    def _late(self, timeout_ms: int) -> ServiceUnavailableError:
        return ServiceUnavailableError(f"'{self._host}' gave no whole answer within {timeout_ms} ms")

    def _broken(self, error: Exception) -> ServiceUnavailableError:
        # The name alone: messages of the HTTP library may quote headers.
        return ServiceUnavailableError(f"'{self._host}' cannot be spoken to ({type(error).__name__})")

    def _headers(self, accepted: str) -> dict[str, str]:
        return {
            "accept": accepted,
            "accept-encoding": "identity",
            "authorization": f"Bearer {self._token}",
            "content-type": "application/json",
        }

    async def _open(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            client = await asyncio.to_thread(new_client, "a base behind a URL")
            if self._client is None or self._client[0] is not loop:  # two that ask at once keep the first
                self._client = (loop, client)
        return self._client[1]


def _checked_parts(address: str) -> tuple[str, str]:
    return checked_parts(
        address,
        field="path",
        unfit="it is no address of a served base; write something like 'https://host:8321'",
        telling="it holds a name, a key or a query; pass the token by itself",
    )
