"""The one outbound client against servers that are slow, large, broken or curious."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError, ServiceReplyError, ServiceUnavailableError
from evidentia.foundation import ssrf_guard
from evidentia.foundation.offload import outbound_deadline, outbound_left_ms
from evidentia.foundation.outbound_http import (
    Address,
    BlockingHttpClient,
    Bounds,
    Failure,
    HttpClient,
    Reply,
    Request,
    bearer,
    check_address,
    is_sendable_key,
    read_key,
    sdk_client,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    Serve = Callable[["Talk"], Coroutine[None, None, None]]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
SHORT_MS = 150
LONG_MS = 10_000


class Talk:
    """One connection, as a server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def say(self, *parts: bytes, every_s: float = 0) -> None:
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()
            await asyncio.sleep(every_s)


@contextmanager
def serving(serve: Serve) -> Iterator[Address]:
    """Give the address of a server that does what it is told with each connection."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    places: list[int] = []

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        places.append(server.sockets[0].getsockname()[1])
        ready.set()
        async with server:
            await asyncio.Event().wait()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(Talk(reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            for left in asyncio.all_tasks(loop):
                left.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    task = loop.create_task(run())
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield address_of(f"http://127.0.0.1:{places[0]}")
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def address_of(url: str) -> Address:
    return check_address(url, field="url", unfit="unfit", telling="telling")


def ask(address: Address, request: Request | None = None, bounds: Bounds | None = None, *, public_only: bool = False) -> Reply | Failure:
    """Return what comes of one exchange."""
    client = BlockingHttpClient(HttpClient(address, public_only=public_only))
    try:
        return client.exchange(request or Request("GET", "/"), bounds or Bounds(LONG_MS, 1_000))
    finally:
        client.close()


def reason_of(outcome: Reply | Failure) -> str:
    assert isinstance(outcome, Failure)
    return outcome.reason


# --- replies ---


def test_a_reply_comes_back_whole() -> None:
    heads: list[str] = []

    async def serve(talk: Talk) -> None:
        heads.append(await talk.head())
        await talk.say(OK)

    with serving(serve) as address:
        reply = ask(address, Request("GET", "/path", {"accept": "application/json"}, query={"limit": "1"}))

    assert Reply(200, b"{}") == reply
    assert reply.is_ok
    assert heads[0].startswith("GET /path?limit=1 HTTP/1.1")
    assert "accept-encoding: identity" in heads[0].lower()


def test_a_refusal_is_a_reply_with_the_wait_that_it_asks_for() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy")

    with serving(serve) as address:
        assert Reply(429, b"busy", 7) == ask(address)
        assert Reply(429, b"", 7) == ask(address, bounds=Bounds(LONG_MS, 1_000, max_refusal_bytes=0))


def test_a_redirect_is_not_followed() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(b"HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n")

    with serving(serve) as address:
        assert Reply(307, b"") == ask(address, Request("GET", "/", bearer("k")))


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(OK)

    with serving(serve) as address:
        assert Reply(200, b"{}") == ask(address)


def test_a_connection_is_used_again() -> None:
    count = 0

    async def serve(talk: Talk) -> None:
        nonlocal count
        count += 1
        while True:
            await talk.head()
            await talk.say(OK)

    with serving(serve) as address:
        client = BlockingHttpClient(HttpClient(address))
        for _ in range(3):
            client.exchange(Request("GET", "/"), Bounds(LONG_MS, 10))
        client.close()

    assert 1 == count


def test_each_event_loop_has_connections_of_its_own() -> None:
    async def serve(talk: Talk) -> None:
        while True:
            await talk.head()
            await talk.say(OK)

    with serving(serve) as address:
        client = HttpClient(address)

        async def once() -> Reply | Failure:
            reply = await client.exchange(Request("GET", "/"), Bounds(LONG_MS, 10))
            await client.aclose()
            return reply

        assert [Reply(200, b"{}")] * 2 == [asyncio.run(once()) for _ in range(2)]


# --- bounds ---


@pytest.mark.parametrize("every_byte_of", ["head", "body"])
def test_the_time_is_that_of_the_whole_however_fast_a_byte_follows_the_other(every_byte_of: str) -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        slow = OK if every_byte_of == "head" else b"x" * 1_000
        if every_byte_of == "body":
            await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        await talk.say(*(bytes([byte]) for byte in slow), every_s=0.02)

    with serving(serve) as address:
        began = time.monotonic()
        outcome = ask(address, bounds=Bounds(SHORT_MS, 10_000))
        took_ms = (time.monotonic() - began) * 1000

    assert "timeout" == reason_of(outcome)
    assert took_ms < 10 * SHORT_MS


def test_no_time_is_a_timeout_and_nothing_is_sent() -> None:
    heads: list[str] = []

    async def serve(talk: Talk) -> None:
        heads.append(await talk.head())

    with serving(serve) as address:
        assert "timeout" == reason_of(ask(address, bounds=Bounds(0, 10)))
        assert "timeout" == reason_of(ask(address, bounds=Bounds(-5, 10)))

    assert [] == heads


@pytest.mark.parametrize("status", [200, 400])
def test_a_reply_is_read_up_to_its_bound(status: int) -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(f"HTTP/1.1 {status} x\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        while True:
            await talk.say(b"400\r\n" + b"x" * 1024 + b"\r\n")

    with serving(serve) as address:
        outcome = ask(address, bounds=Bounds(LONG_MS, 5_000))

    assert "too_large" == reason_of(outcome)
    assert isinstance(outcome, Failure)
    assert isinstance(outcome.error(), ServiceReplyError)


def test_a_compressed_reply_is_refused() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}")

    with serving(serve) as address:
        assert "refused" == reason_of(ask(address))


# --- attempts ---


@pytest.mark.parametrize(("attempts", "found"), [(1, "unreachable"), (2, "")])
def test_only_what_may_be_done_twice_is_tried_again(attempts: int, found: str) -> None:
    heads: list[str] = []

    async def serve(talk: Talk) -> None:
        heads.append(await talk.head())
        if len(heads) > 1:
            await talk.say(OK)

    with serving(serve) as address:
        outcome = ask(address, bounds=Bounds(LONG_MS, 10, attempts=attempts))

    assert attempts == len(heads)
    assert found == (reason_of(outcome) if found else "")


def test_attempts_share_the_time() -> None:
    heads: list[str] = []

    async def serve(talk: Talk) -> None:
        heads.append(await talk.head())
        await asyncio.sleep(SHORT_MS / 1000 * 0.8)

    with serving(serve) as address:
        began = time.monotonic()
        outcome = ask(address, bounds=Bounds(SHORT_MS, 10, attempts=5))
        took_ms = (time.monotonic() - began) * 1000

    assert "timeout" == reason_of(outcome)
    assert len(heads) <= 2
    assert took_ms < 4 * SHORT_MS


def test_no_blocking_exchange_goes_beyond_the_deadline_of_its_context() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await asyncio.sleep(LONG_MS / 1000)

    with serving(serve) as address:
        began = time.monotonic()
        with outbound_deadline(SHORT_MS / 1000):
            outcome = ask(address)
        took_ms = (time.monotonic() - began) * 1000

    assert "timeout" == reason_of(outcome)
    assert took_ms < 10 * SHORT_MS


def test_a_deadline_within_another_never_ends_later() -> None:
    assert outbound_left_ms() is None
    with outbound_deadline(1):
        for inner_s in (100, None):
            with outbound_deadline(inner_s):
                assert 0 < (outbound_left_ms() or 0) <= 1_000
        with outbound_deadline(-1):
            assert 0 == outbound_left_ms()
        assert 0 < (outbound_left_ms() or 0) <= 1_000
    assert outbound_left_ms() is None


def test_nobody_at_the_other_end_is_unavailable() -> None:
    outcome = ask(address_of("http://127.0.0.1:9"))

    assert "unreachable" == reason_of(outcome)
    assert isinstance(outcome, Failure)
    assert isinstance(outcome.error(), ServiceUnavailableError)


# --- credentials ---


@pytest.mark.parametrize(
    "header", ["authorization", "Authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"]
)
def test_no_credential_is_sent_in_the_clear_to_another_machine(header: str) -> None:
    with pytest.raises(InvalidFieldError, match="in the clear"):
        ask(address_of("http://192.0.2.1"), Request("GET", "/", {header: "secret"}))


@pytest.mark.parametrize("url", ["https://192.0.2.1", "http://localhost:9", "http://127.0.0.1:9", "http://[::1]:9"])
def test_an_address_is_confidential_when_it_is_encrypted_or_of_this_machine(url: str) -> None:
    assert address_of(url).is_confidential


@pytest.mark.parametrize(
    "url", ["http://host", "http://127.0.0.1.example", "http://localhost.example", "http://0.0.0.0", "http://127.0.0.2"]
)
def test_no_other_address_is_confidential(url: str) -> None:
    assert not address_of(url).is_confidential


def test_a_client_for_a_package_holds_the_same_rule() -> None:
    options = {"field": "address", "connect_s": 1.0, "read_s": 1.0, "max_bytes": 10}

    with pytest.raises(InvalidFieldError, match="in the clear"):
        sdk_client("http://192.0.2.1/mcp", key="secret", **options)  # type: ignore[arg-type] # each is of its kind

    asyncio.run(sdk_client("http://192.0.2.1/mcp", key="", **options).aclose())  # type: ignore[arg-type] # likewise


def test_a_request_is_shown_without_its_headers() -> None:
    assert "secret" not in repr(Request("GET", "/", bearer("secret")))


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://host", "http://", "http://host:0", "http://host:x", "http://a b", "http://ö", "http://[::1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidFieldError, match="unfit"):
        address_of(url)


@pytest.mark.parametrize("url", ["http://name:secret@host", "http://host?key=secret", "http://host#secret"])
def test_an_address_that_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(InvalidFieldError, match="telling"):
        address_of(url)


@given(st.text(max_size=20))
def test_a_sendable_key_fits_into_a_header(key: str) -> None:
    if is_sendable_key(key):
        assert key.encode("ascii").decode("latin-1").strip() == key
        assert not set(key) & set("\r\n\t \x00")


def test_a_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "abc")
    monkeypatch.setenv("BAD_KEY", "a b")

    assert "abc" == read_key("SOME_KEY", field="key")
    with pytest.raises(InvalidFieldError, match="characters"):
        read_key("BAD_KEY", field="key")
    with pytest.raises(InvalidFieldError, match="not set"):
        read_key("NO_KEY_OF_THIS_NAME", field="key")


# --- the SSRF guard ---


def test_a_name_that_leads_into_the_own_network_is_refused() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(OK)

    with serving(serve) as address:
        assert "refused" == reason_of(ask(address, public_only=True))


def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[str] = []

    async def serve(talk: Talk) -> None:
        heads.append(await talk.head())
        await talk.say(OK)

    # The name does not exist, so that only the address which was looked up and checked can have been connected to.
    async def looked_up(host: str, port: int | None = None) -> list[str]:
        assert ("name.invalid", int(address.url.rpartition(":")[2])) == (host, port)
        return ["127.0.0.1"]

    monkeypatch.setattr(ssrf_guard, "public_addresses", looked_up)
    with serving(serve) as address:
        port = address.url.rpartition(":")[2]
        reply = ask(address_of(f"http://name.invalid:{port}"), public_only=True)

    assert Reply(200, b"{}") == reply
    assert f"host: name.invalid:{port}" in heads[0].lower()


def test_a_stream_is_guarded_like_any_exchange() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(OK)

    async def read(address: Address) -> None:
        async with HttpClient(address, public_only=True).stream(Request("GET", "/"), Bounds(5_000, 100)) as reply:
            await reply.read()

    with serving(serve) as address, pytest.raises(ServiceReplyError, match="own network"):
        asyncio.run(read(address))


# --- streams ---


def test_lines_come_as_they_are_said_and_a_slow_reader_loses_nothing() -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\none\ntw", b"o\nthree\n")

    async def read(address: Address) -> list[bytes]:
        client = HttpClient(address)
        lines = []
        async with client.stream(Request("GET", "/"), Bounds(SHORT_MS, 100)) as reply:
            async for line in reply.lines():
                lines.append(line)
                await asyncio.sleep(SHORT_MS / 1000)
        await client.aclose()
        return lines

    with serving(serve) as address:
        assert [b"one", b"two", b"three"] == asyncio.run(read(address))


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        ((b"one\ntw",), ServiceUnavailableError, "too early"),
        ((b"x" * 200,), ServiceReplyError, "more than 100 bytes"),
        ((b"one\n",) * 100, ServiceUnavailableError, "no whole reply within"),
    ],
)
def test_a_stream_that_breaks_swells_or_drips_is_an_error(said: tuple[bytes, ...], kind: type[Exception], told: str) -> None:
    async def serve(talk: Talk) -> None:
        await talk.head()
        await talk.say(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        await talk.say(*said, every_s=0.01)

    async def read(address: Address) -> None:
        client = HttpClient(address)
        try:
            async with client.stream(Request("GET", "/"), Bounds(SHORT_MS, 100)) as reply:
                async for _ in reply.lines():
                    pass
        finally:
            await client.aclose()

    with serving(serve) as address, pytest.raises(kind, match=told):
        asyncio.run(read(address))
