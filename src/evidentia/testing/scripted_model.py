"""A chat model with a script on a real socket of this machine: it speaks OpenAI's `/chat/completions` with tool calls.

It keeps nothing between requests. What it does next follows from the messages it is sent alone, so a client that leaves a result or a
reason out gets another reply. Its answers are sentences and rows of the tool results, word by word. Nothing in it is random.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from evidentia.testing.scripted_turns import SCRIPTS, Conversation, Say

if TYPE_CHECKING:
    from types import TracebackType

    from evidentia.testing.scripted_turns import Call, Script

CHAT_PATH = "/chat/completions"
MODEL = "scripted"


class ScriptedModel:
    """A server to be used in a `with` block. `script` is a name of SCRIPTS, or a function from a conversation to a turn."""

    def __init__(self, script: str | Script = "good") -> None:
        self._script = SCRIPTS[script] if isinstance(script, str) else script
        self._lock = threading.Lock()
        self.asked: list[dict[str, Any]] = []  # Any: the bodies of the requests, as JSON
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("ScriptHandler", (_Handler,), {"model": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """Return the address before `/chat/completions`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request in the provider's form; raises ValueError for what is no request."""
        conversation = Conversation.of(body)
        with self._lock:
            self.asked.append(body)
        turn = self._script(conversation)
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        if isinstance(turn, Say):
            message["content"] = turn.text
        else:
            message["tool_calls"] = [_called(turn, number=len(conversation.messages))]
        ends_by = "stop" if isinstance(turn, Say) else "tool_calls"
        return {
            "object": "chat.completion",
            "model": body.get("model", MODEL),
            "choices": [{"index": 0, "message": message, "finish_reason": ends_by}],
            "usage": {"prompt_tokens": 500, "completion_tokens": 10, "total_tokens": 510},
        }

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _called(call: Call, *, number: int) -> dict[str, Any]:
    """Return a tool call in the provider's form; its arguments are JSON in a string there."""
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


class _Handler(BaseHTTPRequestHandler):
    """Reads a request, has the script answer it, and says what is wrong with one that it cannot read."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes, and the second would wait for the first
    model: ScriptedModel

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if not self.path.endswith(CHAT_PATH):
            self._send(404, {"error": {"message": f"there is nothing at {self.path}"}})
            return
        try:
            answer = self.model.reply(json.loads(content))
        except (KeyError, TypeError, ValueError) as problem:
            self._send(400, {"error": {"message": f"this is no request: {problem}"}})
            return
        self._send(200, answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
