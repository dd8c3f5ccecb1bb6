"""A chat endpoint in the form of OpenAI's `/chat/completions`, with the standard library alone."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

Message = dict[str, Any]  # Any: a message is JSON
MAX_SHOWN_LENGTH = 200


class EndpointError(Exception):
    """The endpoint gave no answer that could be read."""


class ToolCall(NamedTuple):
    """A call that the model asks for."""

    call_id: str
    name: str
    arguments: dict[str, Any]  # Any: whatever the model writes


class ChatEndpoint:
    """Asks a model; `url` is what stands before `/chat/completions`."""

    def __init__(self, url: str, *, model: str, key: str = "", timeout_s: float = 60) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise EndpointError(f"'{url}' is no address; write http://HOST:PORT/v1")
        self.url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self._headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        self._timeout_s = timeout_s
        self._opener = _opener(is_local=parts.hostname in {"127.0.0.1", "localhost", "::1"})

    def complete(self, messages: list[Message], tools: list[Message]) -> Message:
        """Return the model's next message; raises EndpointError when there is none."""
        body = json.dumps({"model": self.model, "messages": messages, "tools": tools, "temperature": 0}).encode()
        request = Request(self.url, data=body, headers=self._headers, method="POST")  # noqa: S310 - the scheme was checked
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                said = json.load(response)
        except HTTPError as error:
            raise EndpointError(f"{self.url} answered {error.code}: {_shown(error.read())}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EndpointError(f"{self.url} gave no answer: {error}") from error
        try:
            message = said["choices"][0]["message"]
        except (KeyError, IndexError, TypeError):
            message = None
        if not isinstance(message, dict):
            raise EndpointError(f"{self.url} answered in another form: {_shown(json.dumps(said).encode())}")
        return message


def calls_of(message: Message) -> list[ToolCall]:
    """Return the calls that a message asks for; raises EndpointError where that is not in the provider's form."""
    try:
        return [_call_of(asked) for asked in message.get("tool_calls") or ()]
    except (AttributeError, KeyError, TypeError) as error:
        raise EndpointError(f"the model asks for tools in another form: {_shown(json.dumps(message).encode())}") from error


def _call_of(asked: Message) -> ToolCall:
    """Read one call; arguments that are no JSON object are none, and the tool will say what it lacks."""
    function = asked["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {}
    return ToolCall(str(asked["id"]), str(function["name"]), arguments if isinstance(arguments, dict) else {})


def _opener(*, is_local: bool) -> OpenerDirector:
    """Return what opens addresses; a proxy of the environment would not find this machine."""
    return build_opener(ProxyHandler({})) if is_local else build_opener()


def _shown(content: bytes) -> str:
    return " ".join(content.decode("utf-8", "replace").split())[:MAX_SHOWN_LENGTH]
