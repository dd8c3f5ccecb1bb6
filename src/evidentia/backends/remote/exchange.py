"""One HTTP exchange with another Evidentia: JSON in, the bytes of the reply out, within a time and a size.

Redirects and proxies are not followed, certificates are checked, and a key travels encrypted or not at all.
"""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.backends.remote.addresses import checked_parts
from evidentia.backends.remote.pinning import Target, public_target
from evidentia.contracts.control import FaultReply
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError, ServiceReplyError, ServiceUnavailableError

if TYPE_CHECKING:
    import ssl

    import httpx2

_OK: Final = 200
_BUSY: Final = 429
_SERVER_FAULT: Final = 500
_MAX_REFUSAL_BYTES: Final = 1 << 16
_ADVICE: Final = {
    "missing_token": "it wants a token: put one into the environment and name it in 'key_variable'",
    "invalid_token": "its token does not hold there any more; make another",
    "not_your_principal": "its token may not ask for others: make one with --delegate, in their tenant and up to their clearance",
}
"""By the code of a refusal."""
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
"""Where a key may go in the clear."""


class Exchange:
    """Keeps the connections to one address, for the event loop that asks; another loop gets connections of its own."""

    def __init__(self, address: str, *, key_variable: str, max_bytes: int, is_public: bool = False) -> None:
        parts = _checked_parts(address)
        self._is_public = is_public
        self.host = parts[1]
        self._is_safe = parts[0] == "https" or self.host in LOCAL_HOSTS
        self._address = address.rstrip("/")
        self._key_variable = key_variable
        self._most_bytes = max_bytes
        self._client: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None

    async def post(self, path: str, body: bytes, *, timeout_ms: int) -> bytes:
        """Send JSON and return the body of a reply with status 200.

        Raises:
            ServiceUnavailableError: There was no whole reply in time.
            ServiceReplyError: The reply is a refusal, or larger than is read.
        """
        late = ServiceUnavailableError(f"'{self.host}' gave no whole reply within {timeout_ms} ms")
        headers = self._headers()
        client = await self._open()
        import httpx2

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._exchange(client, path, body, headers)
        except (TimeoutError, httpx2.TimeoutException):
            raise late from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            # The name alone: messages of the HTTP library may quote headers.
            raise ServiceUnavailableError(f"'{self.host}' cannot be spoken to ({type(error).__name__})") from None

    async def aclose(self) -> None:
        """Close the connections that belong to this loop; those of a loop that is gone went with it."""
        kept, self._client = self._client, None
        if kept is not None and kept[0] is asyncio.get_running_loop():
            await kept[1].aclose()

    async def _exchange(self, client: httpx2.AsyncClient, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        target = await public_target(self._address) if self._is_public else Target(self._address, {}, {})
        told = {**headers, **target.headers}
        async with client.stream("POST", target.address + path, content=body, headers=told, extensions=target.extensions) as response:
            if response.status_code != _OK:
                raise self._refusal(response.status_code, await self._whole(response, max_bytes=_MAX_REFUSAL_BYTES))
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ServiceReplyError(f"'{self.host}' compresses its reply although it was asked not to")
            return await self._whole(response, max_bytes=self._most_bytes)

    async def _whole(self, response: httpx2.Response, *, max_bytes: int) -> bytes:
        parts = bytearray()
        async for part in response.aiter_raw():
            parts += part
            if len(parts) > max_bytes:
                raise ServiceReplyError(f"'{self.host}' replies with more than {max_bytes} bytes")
        return bytes(parts)

    def _refusal(self, status: int, reply: bytes) -> ServiceReplyError | ServiceUnavailableError:
        """Return what a refusal means: of what it says only the code is repeated, since the rest may be anything."""
        answer = f"'{self.host}' answers with the HTTP status {status}"
        if status == _BUSY or status >= _SERVER_FAULT:
            return ServiceUnavailableError(answer)
        return ServiceReplyError(f"{answer}; {_ADVICE.get(_code_in(reply), 'check the address and the key')}")

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._key_variable:
            headers["authorization"] = f"Bearer {self._key()}"
        return headers

    def _key(self) -> str:
        if not self._is_safe:
            raise InvalidFieldError("connection.address", "a key is not sent in the clear; write the address with https")
        key = os.environ.get(self._key_variable, "")
        if not key:
            raise InvalidFieldError("connection.key_variable", f"the environment variable '{self._key_variable}' is not set")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise InvalidFieldError(
                "connection.key_variable", f"the environment variable '{self._key_variable}' holds characters that no key has"
            )
        return key

    async def _open(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            client = await asyncio.to_thread(new_client, "a remote source")
            if self._client is None or self._client[0] is not loop:  # two that ask at once keep the first
                self._client = (loop, client)
        return self._client[1]


def _code_in(reply: bytes) -> str:
    try:
        return msgspec.json.decode(reply, type=FaultReply).error.code
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def new_client(needed_for: str) -> httpx2.AsyncClient:
    """Return connections to be kept; whoever asks for them closes them."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtraError("remote", needed_for=needed_for) from error
    return httpx2.AsyncClient(verify=_trusted(), trust_env=False, follow_redirects=False, timeout=None)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that are trusted, which take tens of milliseconds to read, once per process."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def _checked_parts(address: str) -> tuple[str, str]:
    return checked_parts(
        address,
        field="connection.address",
        unfit="it is no address of an Evidentia; write something like 'https://host:8080'",
        telling="it holds a name, a key or a query; put the key into the environment and name it in 'key_variable'",
    )
