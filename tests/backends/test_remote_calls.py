"""A served base over HTTP when things go wrong: nobody there, gone in the middle, slow, endless, lying, or somebody else altogether."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import evidentia
from evidentia.backends.remote.http_calls import HttpCalls
from evidentia.backends.remote.remote_faults import KINDS, error_of, fault_in
from evidentia.base.remote_base import RemoteBase
from evidentia.contracts import errors
from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.errors import (
    EvidentiaError,
    FieldProblem,
    InvalidFieldError,
    NotAllowedError,
    ServiceReplyError,
    ServiceUnavailableError,
)
from evidentia.serving.operations.api_errors import refusal_of
from evidentia.serving.rest.http_exchange import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

TOKEN = "-".join(["t0ken", "that", "nobody", "may", "see"])
SERVING = Path(__file__).resolve().parents[2] / "src" / "evidentia" / "serving"
FULL = {"jsonrpc": "2.0", "id": 1}


class Handler(BaseHTTPRequestHandler):
    """Lets the server's script answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, dict(self.headers.items()), body))  # type: ignore[attr-defined]
        try:
            self.server.script(self)  # type: ignore[attr-defined]
        except OSError:
            self.close_connection = True

    def reply(self, body: bytes, *, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Scripted:
    """A server that does what its script says, and what it was asked."""

    def __init__(self, script: Callable[[Handler], None]) -> None:
        self.released = threading.Event()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.asked = self.asked  # type: ignore[attr-defined]
        self.server.script = script  # type: ignore[attr-defined]
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def scripted(script: Callable[[Handler], None]) -> Iterator[Scripted]:
    made = Scripted(script)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.released.set()
        made.server.shutdown()
        made.server.server_close()
        thread.join()


def called(address: str, *, timeout_ms: int = 20_000, is_repeatable: bool = False, **options: Any) -> CommitSummary:
    async def scene() -> CommitSummary:
        calls = HttpCalls(address, token=TOKEN, **options)
        try:
            return await calls.call("show_head", {}, CommitSummary, timeout_ms=timeout_ms, is_repeatable=is_repeatable)
        finally:
            await calls.close()

    return asyncio.run(scene())


def refusal(script: Callable[[Handler], None], **options: Any) -> EvidentiaError:
    with scripted(script) as server, pytest.raises(EvidentiaError) as caught:
        called(server.address, **options)
    assert TOKEN not in str(caught.value)
    return caught.value


def answer(**members: object) -> bytes:
    return json.dumps({**FULL, **members}).encode()


REPLIES: list[tuple[str, Callable[[Handler], None], type[EvidentiaError]]] = [
    ("hangs up", lambda handler: handler.hang_up(), ServiceUnavailableError),
    ("hangs up in the middle", lambda handler: handler.reply(b'{"jsonrpc"', length=1_000, connection="close"), ServiceUnavailableError),
    ("is a page", lambda handler: handler.reply(b"<html>"), ServiceReplyError),
    ("is not found", lambda handler: handler.reply(b"nothing here", status=404), ServiceReplyError),
    ("is a redirect", lambda handler: handler.reply(b"", status=302, location="http://127.0.0.1:1/"), ServiceReplyError),
    ("is a proxy that has nobody behind it", lambda handler: handler.reply(b"<html>", status=502), ServiceUnavailableError),
    ("is busy", lambda handler: handler.reply(b"", status=429), ServiceUnavailableError),
    ("is of another kind", lambda handler: handler.reply(answer(result={"x": 1})), ServiceReplyError),
    ("has no result", lambda handler: handler.reply(answer()), ServiceReplyError),
    ("is null", lambda handler: handler.reply(b"null"), ServiceReplyError),
    ("is an error without data", lambda handler: handler.reply(answer(error={"code": -32601, "message": "x"})), ServiceReplyError),
    ("is an error nobody knows", lambda handler: handler.reply(answer(error={"data": {"code": "new", "message": "x"}})), ServiceReplyError),
    ("is a deep nest", lambda handler: handler.reply(b"[" * 100_000), ServiceReplyError),
]


@pytest.mark.parametrize(("script", "kind"), [pytest.param(script, kind, id=name) for name, script, kind in REPLIES])
def test_an_answer_that_is_none_is_an_error_of_the_service(script: Callable[[Handler], None], kind: type[EvidentiaError]) -> None:
    assert kind is type(refusal(script)) or issubclass(type(refusal(script)), kind)


def test_a_question_is_repeated_once_when_the_way_broke_and_a_change_is_not() -> None:
    for is_repeatable, times in ((True, 2), (False, 1)):
        with scripted(lambda handler: handler.hang_up()) as server, pytest.raises(ServiceUnavailableError):
            called(server.address, is_repeatable=is_repeatable)
        assert times == len(server.asked)


def test_a_slow_server_is_left_after_the_deadline_and_the_margin() -> None:
    def wait(_: Handler) -> None:
        server.released.wait(20)

    with scripted(wait) as server:

        async def scene() -> None:
            async with RemoteBase(HttpCalls(server.address, token=TOKEN), margin_ms=100) as base:
                with pytest.raises(ServiceUnavailableError, match="within 150 ms"):
                    await base.retrieve("x", latency_deadline_ms=50)
                with pytest.raises(ServiceUnavailableError, match="within 150 ms"):
                    _ = [event async for event in base.retrieve_stream("x", latency_deadline_ms=50)]

        asyncio.run(scene())


def test_more_than_is_read_is_refused() -> None:
    error = refusal(lambda handler: handler.reply(answer(result={"x": "y" * 5_000})), max_reply_bytes=2_000)

    assert isinstance(error, ServiceReplyError)
    assert "more than 2000 bytes" in str(error)


STREAMS: list[tuple[str, bytes, type[EvidentiaError]]] = [
    ("ends too early", b'{"event": "final_', ServiceUnavailableError),
    ("is something else", b'{"event": "other"}\n', ServiceReplyError),
    ("ends with a fault", b'{"event": "error", "error": {"code": "base_busy", "message": "busy", "hint": "wait"}}\n', errors.BaseBusyError),
]


@pytest.mark.parametrize(("content", "kind"), [pytest.param(content, kind, id=name) for name, content, kind in STREAMS])
def test_a_stream_that_goes_wrong_is_an_error(content: bytes, kind: type[EvidentiaError]) -> None:
    with scripted(lambda handler: handler.reply(content)) as server:

        async def scene() -> None:
            async with RemoteBase(HttpCalls(server.address, token=TOKEN)) as base:
                _ = [event async for event in base.retrieve_stream("x")]

        with pytest.raises(kind):
            asyncio.run(scene())


def test_the_token_is_shown_in_the_header_and_nowhere_else() -> None:
    with scripted(lambda handler: handler.reply(b"null")) as server, pytest.raises(ServiceReplyError):
        called(server.address)
    path, headers, body = server.asked[0]

    assert ("/rpc", f"Bearer {TOKEN}") == (path, headers["authorization"])
    assert TOKEN.encode() not in body


# --- what is refused before anything is sent ---


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("http://evidence.example:8321", "path"),
        ("http://", "path"),
        ("https://ann:secret@host", "path"),
        ("https://host/?token=x", "path"),
        ("https://ho st/", "path"),
        ("ftp://host/base", "path"),
        ("postgresql://host/base", "path"),
    ],
)
def test_an_address_that_cannot_be_right_is_refused(address: str, field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        evidentia.connect(address, token=TOKEN)

    assert field == caught.value.field
    assert "secret" not in str(caught.value)


def test_a_token_is_needed_and_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVIDENTIA_TOKEN", raising=False)
    with pytest.raises(InvalidFieldError, match="EVIDENTIA_TOKEN"):
        evidentia.connect("http://127.0.0.1:1")
    with pytest.raises(InvalidFieldError, match="characters"):
        evidentia.connect("http://127.0.0.1:1", token=f"{TOKEN} {TOKEN}")
    monkeypatch.setenv("EVIDENTIA_TOKEN", TOKEN)
    with pytest.raises(ServiceUnavailableError, match=r"'127\.0\.0\.1' cannot be spoken to"):
        evidentia.connect("http://127.0.0.1:1")


def test_what_only_a_directory_takes_is_refused_and_the_other_way_round(tmp_path: Path) -> None:
    for options in ({"init": True}, {"principal": evidentia.Principal(principal_id="ann")}):  # type: ignore[arg-type]  # as people write it
        with pytest.raises(InvalidFieldError, match=next(iter(options))):
            evidentia.connect("http://127.0.0.1:1", token=TOKEN, **options)
    with pytest.raises(InvalidFieldError, match="token"):
        evidentia.connect(tmp_path / "base", init=True, token=TOKEN)


# --- faults ---

SAMPLES: list[EvidentiaError] = [
    errors.InvalidFieldError("limit", "it is 0"),
    errors.InvalidRecordError("age_days", "it is no number"),
    errors.FilterSyntaxError("expected a value", text="", column=7),
    errors.DuplicateDocumentError("a.md", first="/x", second="/y"),
    errors.NotAllowedError("ingest"),
    errors.NotFoundError("chunk", "c1"),
    errors.BackupRefusedError("no"),
    errors.StatementRefusedError("two statements"),
    errors.PolicyInvalidError([FieldProblem("rules.x", "no", "y"), FieldProblem("name", "empty")]),
    errors.PolicyConflictError("Guard", "version 3 is in force"),
    errors.MissingExtraError("models", needed_for="a reranker"),
    errors.BaseMissingError("/x"),
    errors.BaseDamagedError("segment 3", "its hash is not what it was: x"),
    errors.BackupDamagedError("manifest", "it is cut"),
    errors.BaseVersionError(9, known=3),
    errors.BaseBusyError("/x", waited_ms=3),
    errors.BaseFullError("/x"),
    errors.BaseReadOnlyError("/x"),
    errors.BaseForbiddenError("/x"),
    errors.VersionCollectedError("abc"),
    errors.ServiceUnavailableError("'host' gave no answer"),
    errors.ServiceReplyError("'host' refuses"),
    errors.RunForgottenError("no run"),
    errors.ModelDamagedError("encoder", "its hash is another"),
    errors.UnknownSettingError("x", file="evidentia.toml"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_at_the_other_end_as_it_went_in(error: EvidentiaError) -> None:
    fault = fault_in(encode(refusal_of(error).fault))
    assert fault is not None
    arrived = error_of(fault, host="host")

    assert (type(error), str(error), vars(error)) == (type(arrived), str(arrived), vars(arrived))


def test_every_code_that_a_server_may_send_has_a_class_here() -> None:
    rooms = [SERVING / "operations", SERVING / "identity", SERVING / "rest"]
    sources = "".join(path.read_text(encoding="utf-8") for room in rooms for path in room.glob("*.py"))
    codes = set(re.findall(r'(?:ApiError\(\s*\w+, |unauthorized\(|_too_many\()"(\w+)"', sources))
    of_other_doors = {"invalid_link", "method_not_allowed", "unsupported_media_type"}

    assert len(codes) > 10
    assert [] == sorted(codes - set(KINDS) - of_other_doors)


def test_a_refused_token_is_not_allowed_with_the_hint_of_the_server() -> None:
    told = json.dumps({"error": {"code": "invalid_token", "message": "the token is unknown", "hint": "make another"}}).encode()
    error = refusal(lambda handler: handler.reply(told, status=401))

    assert (NotAllowedError, "the token is unknown", "make another") == (type(error), str(error), error.hint)
