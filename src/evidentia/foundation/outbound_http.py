"""The one HTTP client for everything that leaves this process, and the rules that hold for all of it.

- A credential travels encrypted, within this machine, or not at all.
- Time is bounded as a whole, from looking a name up to the last byte, and a second attempt happens within the same time. Whoever
  answers a request with a deadline sets it for its context (`outbound_deadline`), and no blocking exchange goes beyond it.
- A reply is bounded while it is read, and one that is compressed is refused, since its size is not known before it is unpacked.
- Redirects, proxies of the environment and .netrc are not followed, and certificates are checked. A proxy is the operator's word
  (`OutboundSettings`): one of the environment would take what is sent, and the names that the SSRF guard looks up, somewhere else.
  Where that guard holds, the proxy is asked for the address that was checked; and this machine is reached without it.
- No problem repeats a key, a request or a reply: messages of the HTTP library may quote headers, so of its errors the name is told.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from evidentia.contracts.errors import InvalidFieldError, ServiceError, ServiceReplyError, ServiceUnavailableError, TlsFaultError
from evidentia.contracts.settings import OutboundSettings
from evidentia.foundation.client_tls import SEEMS_WANTED, causes_of, show_certificate, tls_fault, trusted_place, trusting
from evidentia.foundation.loop_thread import LoopThread
from evidentia.foundation.offload import outbound_left_ms
from evidentia.foundation.ssrf_guard import PrivateAddressError, Target, public_target

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Mapping

    import httpx2


_Spent = TypeVar("_Spent")

Reason = Literal["timeout", "unreachable", "busy", "failed", "refused", "too_large", "tls"]

PASSING: Final = frozenset({"timeout", "unreachable", "busy", "failed"})
"""Reasons that may be gone at the next attempt."""
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
"""This machine, to which a credential may go in the clear."""
BUSY: Final = 429
SERVER_FAULT: Final = 500
IN_THE_CLEAR: Final = "a key is not sent in the clear; write the address with https"

_PRIVATE: Final = "leads into the server's own network"
_NO_ADDRESS: Final = "has no address"
PROBE_S: Final = 1.0
_NO_CREDENTIALS: Final = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
"""Headers that hold no key; any other may be one, and goes encrypted."""
_MAX_WAIT_S: Final = 3600
_SECONDS_DIGITS: Final = 9
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
DIRECT: Final = OutboundSettings()
"""The list of the system, no client certificate and no proxy."""


# --- addresses and keys ---


class Address(NamedTuple):
    """A checked address: it holds no secret, and can be shown and logged."""

    url: str
    """Without a closing slash."""
    scheme: str
    host: str

    @property
    def is_confidential(self) -> bool:
        """Tell whether nobody on the way can read what is sent there."""
        return self.scheme == "https" or self.host in LOCAL_HOSTS


def check_address(url: str, *, field: str, unfit: str, telling: str) -> Address:
    """Return an address that can be called; `unfit` and `telling` say what to do about one that is none, and one that holds a secret."""
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_plain = False
    if not is_plain or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidFieldError(field, unfit)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidFieldError(field, telling)
    return Address(url.rstrip("/"), parts.scheme, parts.hostname or "")


def require_confidential(address: Address, *, field: str, problem: str = IN_THE_CLEAR) -> None:
    """Refuse an address to which a credential would travel in the clear."""
    if not address.is_confidential:
        raise InvalidFieldError(field, problem)


def is_sendable_key(key: str) -> bool:
    """Tell whether a key can stand in a header: text without blanks, line ends or anything beyond ASCII."""
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


def read_key(variable: str, *, field: str) -> str:
    """Return the key in an environment variable."""
    key = os.environ.get(variable, "")
    if not key:
        raise InvalidFieldError(field, f"the environment variable '{variable}' is not set")
    if not is_sendable_key(key):
        raise InvalidFieldError(field, f"the environment variable '{variable}' holds characters that no key has")
    return key


def bearer(key: str) -> dict[str, str]:
    """Return the header that shows a key."""
    return {"authorization": f"Bearer {key}"}


# --- exchanges ---


class Request(NamedTuple):
    """What is sent. The path begins with a slash and follows that of the address."""

    method: str
    path: str
    headers: Mapping[str, str] = _NONE
    body: bytes | None = None
    query: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        """Return it without the headers, which may hold a key."""
        return f"Request(method={self.method!r}, path={self.path!r})"


class Bounds(NamedTuple):
    """How much time an exchange has, and how much of a reply is read."""

    timeout_ms: int
    max_bytes: int
    max_refusal_bytes: int | None = None
    """Of a reply with a status other than 2xx; as much as of any when None, and nothing is read for 0."""
    attempts: int = 1
    """More than one only for what may be done twice: where the way broke, it is not known whether the request arrived."""


class Reply(NamedTuple):
    """What came back, whatever its status."""

    status: int
    body: bytes
    retry_after_s: int = 0

    @property
    def is_ok(self) -> bool:
        """Tell whether the status is one of 2xx."""
        return _is_ok(self.status)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no reply: `problem` is for people, `retry_after_s` what the other side asked for."""

    reason: Reason
    problem: str
    retry_after_s: int = 0

    def error(self) -> ServiceError:
        """Return it as an error, by whether it may be gone at the next attempt."""
        if self.reason == "tls":
            return TlsFaultError(self.problem)
        return ServiceUnavailableError(self.problem) if self.reason in PASSING else ServiceReplyError(self.problem)


class HttpClient:
    """Keeps the connections to one address, for the event loop that asks; another loop gets connections of its own.

    With `public_only` it speaks to public addresses alone, wherever the name of the host leads (see `ssrf_guard`).
    """

    def __init__(
        self,
        address: Address,
        *,
        field: str = "url",
        public_only: bool = False,
        connect_s: float | None = None,
        outbound: OutboundSettings = DIRECT,
    ) -> None:
        self.host = address.host
        self._way = check_outbound(outbound, host=address.host)
        self._address = address
        self._field = field
        self._public_only = public_only
        self._connect_s = connect_s
        self._client: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None

    async def exchange(self, request: Request, bounds: Bounds) -> Reply | Failure:
        """Send a request and return the whole reply, or why there is none.

        Raises:
            InvalidFieldError: A credential would travel in the clear.
        """
        self._check_credentials(request.headers)
        try:
            async with asyncio.timeout(max(bounds.timeout_ms, 0) / 1000):
                client = await self.open()
                for _ in range(bounds.attempts - 1):
                    tried = await self._try(client, request, bounds)
                    if isinstance(tried, Reply) or tried.reason != "unreachable":
                        return tried
                return await self._try(client, request, bounds)
        except TimeoutError:
            return self._late(bounds.timeout_ms)

    @asynccontextmanager
    async def stream(self, request: Request, bounds: Bounds) -> AsyncIterator[ReplyStream]:
        """Give a reply part by part; the time is that of all waiting for it, not that in which nobody reads.

        Raises:
            ServiceError: There is no reply, or none any more; the methods of what is given raise it too.
        """
        self._check_credentials(request.headers)
        time_left = _TimeLeft(bounds.timeout_ms / 1000, failure=self._late(bounds.timeout_ms), host=self.host, via=_via(self._way))
        client = await time_left.spend(self.open())
        target = await time_left.spend(self._target())
        built = client.build_request(
            request.method,
            target.url + request.path,
            content=request.body,
            headers={**_told(request.headers), **target.headers},
            params=request.query,
            extensions=target.extensions,
        )
        response = await time_left.spend(self._sent(client, built))
        try:
            yield ReplyStream(response, time_left, max_bytes=bounds.max_bytes, host=self.host)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections that belong to this loop; those of a loop that is gone went with it. Whoever asks later opens others."""
        kept, self._client = self._client, None
        if kept is not None and kept[0] is asyncio.get_running_loop():
            await kept[1].aclose()

    async def _try(self, client: httpx2.AsyncClient, request: Request, bounds: Bounds) -> Reply | Failure:
        import httpx2

        try:
            target = await self._target()
            return await self._exchange(client, request, bounds, target)
        except httpx2.TimeoutException:
            return self._late(bounds.timeout_ms)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            fault = tls_fault(error, host=self.host) or await self._silent_refusal(error)
            if fault is not None:
                return Failure(reason="tls", problem=str(fault))
            return self._failure("unreachable", f"cannot be spoken to{_via(self._way)} ({type(error).__name__})")
        except PrivateAddressError:
            return self._failure("refused", _PRIVATE)
        except (OSError, UnicodeError):
            return self._failure("unreachable", _NO_ADDRESS)

    async def _exchange(self, client: httpx2.AsyncClient, request: Request, bounds: Bounds, target: Target) -> Reply | Failure:
        max_refusal_bytes = bounds.max_bytes if bounds.max_refusal_bytes is None else bounds.max_refusal_bytes
        async with client.stream(
            request.method,
            target.url + request.path,
            content=request.body,
            headers={**_told(request.headers), **target.headers},
            params=request.query,
            extensions=target.extensions,
        ) as response:
            status = response.status_code
            retry_after_s = _seconds_of(response.headers.get("retry-after", ""))
            if not _is_ok(status) and not max_refusal_bytes:
                return Reply(status, b"", retry_after_s)
            if _is_ok(status) and response.headers.get("content-encoding", "identity") != "identity":
                return self._failure("refused", "compresses its reply although it was asked not to")
            max_bytes = bounds.max_bytes if _is_ok(status) else max_refusal_bytes
            parts = bytearray()
            async for part in response.aiter_raw():
                parts += part
                if len(parts) > max_bytes:
                    return self._failure("too_large", f"replies with more than {max_bytes} bytes")
            return Reply(status, bytes(parts), retry_after_s)

    async def _sent(self, client: httpx2.AsyncClient, built: httpx2.Request) -> httpx2.Response:
        import httpx2

        try:
            return await client.send(built, stream=True)
        except httpx2.TransportError as error:
            fault = await self._silent_refusal(error)
            if fault is not None:
                raise fault from None
            raise

    async def _silent_refusal(self, error: Exception) -> TlsFaultError | None:
        return await silent_refusal(self._address, (await self._target()).url, self._way, error=error)

    async def _target(self) -> Target:
        return await public_target(self._address.url) if self._public_only else Target(self._address.url, {}, {})

    def _check_credentials(self, headers: Mapping[str, str]) -> None:
        if any(name.lower() not in _NO_CREDENTIALS for name in headers):
            require_confidential(self._address, field=self._field)

    def _late(self, timeout_ms: int) -> Failure:
        return self._failure("timeout", f"gave no whole reply within {timeout_ms} ms")

    def _failure(self, reason: Reason, problem: str) -> Failure:
        return Failure(reason=reason, problem=f"'{self.host}' {problem}")

    async def open(self) -> httpx2.AsyncClient:
        """Return the client of this loop, made when it is first needed."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            # Reading the certificates takes tens of milliseconds, in which the loop has others to serve.
            client = await asyncio.to_thread(_new_client, self._connect_s, self._way)
            if self._client is None or self._client[0] is not loop:  # two that ask at once keep the first
                self._client = (loop, client)
        return self._client[1]


class ReplyStream:
    """A reply that comes part by part."""

    def __init__(self, response: httpx2.Response, time_left: _TimeLeft, *, max_bytes: int, host: str) -> None:
        self.status = response.status_code
        self._parts = response.aiter_raw()
        self._time_left = time_left
        self._max_bytes = max_bytes
        self._host = host

    async def read(self) -> bytes:
        """Return all of it."""
        parts = bytearray()
        while (part := await self._next()) is not None:
            parts += part
            self._check(parts)
        return bytes(parts)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield its lines; a bound on the bytes is one on a line that has not ended, and a reply that ends within a line is broken."""
        kept = bytearray()
        while (part := await self._next()) is not None:
            kept += part
            self._check(kept)
            if b"\n" in part:
                *whole, rest = bytes(kept).split(b"\n")
                kept = bytearray(rest)
                for line in whole:
                    yield line
        if kept:
            raise ServiceUnavailableError(f"'{self._host}' ended its answer too early")

    async def _next(self) -> bytes | None:
        return await self._time_left.spend(anext(self._parts, None))

    def _check(self, kept: bytearray) -> None:
        if len(kept) > self._max_bytes:
            raise ServiceReplyError(f"'{self._host}' replies with more than {self._max_bytes} bytes")


class BlockingHttpClient:
    """The same for callers without an event loop: their exchanges run on one thread of the process. Thread safe."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self.host = client.host

    def exchange(self, request: Request, bounds: Bounds) -> Reply | Failure:
        """Do what `HttpClient.exchange` does, and wait for it."""
        left_ms = outbound_left_ms()
        if left_ms is not None and left_ms < bounds.timeout_ms:
            bounds = bounds._replace(timeout_ms=left_ms)
        return _loop.run(self._client.exchange(request, bounds))

    def open(self) -> None:
        """Load what an exchange needs, without speaking to anybody."""
        _loop.run(self._client.open())

    def close(self) -> None:
        """Close the connections; whoever asks later opens others."""
        if _loop.is_running:
            _loop.run(self._client.aclose())


def sdk_client(
    address: str, *, field: str, key: str, connect_s: float, read_s: float, max_bytes: int, outbound: OutboundSettings = DIRECT
) -> httpx2.AsyncClient:
    """Return a client for a package that speaks HTTP by itself, under the same rules; its streams of events may go on without end.

    Raises:
        InvalidFieldError: The key would travel in the clear.
    """
    import httpx2

    parts = urlsplit(address)
    if key:
        require_confidential(Address(address, parts.scheme, parts.hostname or ""), field=field)

    async def bound(response: httpx2.Response) -> None:
        """Let a reply that is no stream of events be read up to a size only."""
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _bounded(response.stream, max_bytes=max_bytes, host=parts.hostname or "")

    timeout = httpx2.Timeout(connect_s, read=read_s)
    return httpx2.AsyncClient(
        headers=bearer(key) if key else {},
        timeout=timeout,
        follow_redirects=False,
        **_routed(check_outbound(outbound, host=parts.hostname or "")),
        event_hooks={"response": [bound]},
    )


def _bounded(stream: object, *, max_bytes: int, host: str) -> httpx2.AsyncByteStream:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """A stream that ends with an error when it is longer than a reply may be."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in stream:  # type: ignore[attr-defined]  # an asynchronous client has asynchronous streams
                read += len(part)
                if read > max_bytes:
                    raise ServiceReplyError(f"'{host}' replies with more than {max_bytes} bytes")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()  # type: ignore[attr-defined]  # likewise

    return Bounded()


class _TimeLeft:
    """What is left of the time for a stream: only waiting for it counts, so that a slow reader loses nothing."""

    def __init__(self, seconds: float, *, failure: Failure, host: str, via: str) -> None:
        self._left_s = seconds
        self._failure = failure
        self._host = host
        self._via = via

    async def spend(self, work: Awaitable[_Spent]) -> _Spent:
        import httpx2

        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(max(self._left_s, 0)):
                return await work
        except (TimeoutError, httpx2.TimeoutException):
            raise self._failure.error() from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            problem = f"'{self._host}' cannot be spoken to{self._via} ({type(error).__name__})"
            raise tls_fault(error, host=self._host) or ServiceUnavailableError(problem) from None
        except PrivateAddressError:
            raise ServiceReplyError(f"'{self._host}' {_PRIVATE}") from None
        except (OSError, UnicodeError):
            raise ServiceUnavailableError(f"'{self._host}' {_NO_ADDRESS}") from None
        finally:
            self._left_s -= loop.time() - began


_loop: Final = LoopThread("evidentia-http")
"""Shared by all blocking clients of the process; it starts with the first exchange and ends with the process."""


def _is_ok(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004 - RFC 9110, 15.3


def _told(headers: Mapping[str, str]) -> dict[str, str]:
    return {"accept-encoding": "identity", **headers}


def _seconds_of(header: str) -> int:
    """Return a wait in seconds; 0 for a date, which would need a clock, and for anything else."""
    return min(int(header[:_SECONDS_DIGITS]), _MAX_WAIT_S) if header.isascii() and header.isdigit() else 0


# --- the way to others ---


def check_outbound(outbound: OutboundSettings, *, host: str) -> OutboundSettings:
    """Return how a host is reached: its proxy is a plain address, or empty where it is not used for this host.

    Raises:
        InvalidFieldError: The proxy's address is none, its credential would travel in the clear, or a file is not what it should be.
    """
    if outbound.certificate or outbound.authorities:
        client_context(outbound)  # what is wrong with a file is told now, and not at the first request
    if not outbound.proxy:
        return outbound
    field = "outbound.proxy"
    unfit = "it is no address of a proxy; write something like 'http://host:3128'"
    proxy = check_address(
        outbound.proxy, field=field, unfit=unfit, telling="put 'name:password' into a variable named in proxy_key_variable"
    )
    if outbound.proxy_key_variable:
        require_confidential(proxy, field=field, problem="the proxy's password is not sent in the clear; write its address with https")
        read_key(outbound.proxy_key_variable, field="outbound.proxy_key_variable")
    is_direct = host in LOCAL_HOSTS or any(host == each or (each.startswith(".") and host.endswith(each)) for each in outbound.no_proxy)
    return msgspec.structs.replace(outbound, proxy="" if is_direct else proxy.url)


async def silent_refusal(
    address: Address, target: str, way: OutboundSettings, *, error: BaseException | None = None
) -> TlsFaultError | None:
    """Return that a server wants a client certificate, where it ended a connection without a word; through a proxy nobody can tell."""
    import httpx2

    broken = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
    is_silent = error is None or any(isinstance(each, broken) for each in causes_of(error))
    if not is_silent or address.scheme != "https" or way.certificate or way.proxy:
        return None
    where = urlsplit(target)
    return await _missing_certificate(address.host, (where.hostname or "", where.port or 443), client_context(way))


async def _missing_certificate(host: str, address: tuple[str, int], context: ssl.SSLContext) -> TlsFaultError | None:
    """Return that a server wants a client certificate; None where it does not, or cannot be asked.

    With TLS 1.3 a server refuses only after the handshake, and its alert is lost where the client has begun to speak, or is not sent:
    the connection just ends. So whoever met that listens once without speaking; a server that wants nothing more would wait.
    """
    try:
        async with asyncio.timeout(PROBE_S):
            reader, writer = await asyncio.open_connection(*address, ssl=context, server_hostname=host)
            try:
                is_ended = not await reader.read(1)
            finally:
                writer.close()
    except ConnectionResetError:
        is_ended = True
    except (OSError, TimeoutError) as error:
        return tls_fault(error, host=host)
    return TlsFaultError(f"'{host}' {SEEMS_WANTED}") if is_ended else None


def client_context(outbound: OutboundSettings) -> ssl.SSLContext:
    """Return what encrypts connections to others.

    Raises:
        InvalidFieldError: A file is missing or is not what it should be, or the key is not the certificate's.
    """
    place = trusted_place(outbound)
    if not outbound.certificate:
        return _shared_context(*place, _changed_at(place[1]))
    context = _shared_context.__wrapped__(*place, 0)  # of its own, since it shows a certificate
    show_certificate(context, outbound)
    return context


@lru_cache(maxsize=16)
def _shared_context(field: str, place: str, changed_at: int) -> ssl.SSLContext:
    """Return a list of authorities, which takes tens of milliseconds to read, once per process and change of its file."""
    del changed_at
    import httpx2

    return trusting(field, place) if place else httpx2.create_ssl_context(trust_env=False)


def _changed_at(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns if place else 0  # noqa: PTH116 - of a file or a folder
    except OSError:
        return 0


def _via(way: OutboundSettings) -> str:
    return f" through the proxy '{urlsplit(way.proxy).hostname}'" if way.proxy else ""


def _routed(way: OutboundSettings) -> dict[str, Any]:  # Any: whatever the HTTP library takes
    """Return the part of a client's options that says whom it trusts and by which way it goes."""
    import httpx2

    context = client_context(way)
    if not way.proxy:
        return {"verify": context, "trust_env": False}
    name, _, password = (
        read_key(way.proxy_key_variable, field="outbound.proxy_key_variable").partition(":") if way.proxy_key_variable else ("",) * 3
    )
    proxy = httpx2.Proxy(way.proxy, auth=(name, password) if name else None, ssl_context=context if way.proxy.startswith("https") else None)
    return {"verify": context, "trust_env": False, "proxy": proxy}


def _new_client(connect_s: float | None, way: OutboundSettings) -> httpx2.AsyncClient:
    import httpx2

    # Everything but connecting is bounded by the exchange as a whole.
    timeout = httpx2.Timeout(None, connect=connect_s)
    return httpx2.AsyncClient(follow_redirects=False, timeout=timeout, **_routed(way))
