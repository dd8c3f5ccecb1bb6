"""One endpoint: a JSON request in, the bytes of the reply or the reason why there are none.

Nothing here reads a reply, and no reason holds the key, the request or what the endpoint said.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec

from evidentia.contracts.errors import InvalidFieldError, MissingExtraError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import httpx2


Reason = Literal["timeout", "unreachable", "busy", "failed", "refused", "too_large"]

PASSING: Final = frozenset({"timeout", "unreachable", "busy", "failed"})
"""Reasons that may be gone at the next attempt."""

_OK: Final = 200
_BUSY: Final = 429
_SERVER_FAULT: Final = 500
_MAX_WAIT_S: Final = 3600
_SECONDS_DIGITS: Final = 9


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an endpoint is and how it is spoken to."""

    url: str
    """The address before `/embeddings` and `/chat/completions`, usually ending in `/v1`."""
    model: Annotated[str, msgspec.Meta(min_length=1)]
    key_variable: str | None = None
    """The environment variable that holds the key; None when the endpoint wants none."""
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 30_000
    """For one attempt as a whole, from connecting to the last byte."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no reply: `problem` is for people, `retry_after_s` what the endpoint asked for."""

    reason: Reason
    problem: str
    retry_after_s: int = 0


class Endpoint:
    """Keeps the connections to one endpoint. Thread safe; redirects, proxies and .netrc are not followed."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._client = _open_client(checked_address(settings.url), key=_read_key(settings.key_variable))
        self._host = self._client.base_url.host
        self._timeout_ms = settings.timeout_ms

    def post(
        self, path: str, body: bytes, *, max_bytes: int, timeout_ms: int | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes | Failure:
        """Send JSON and return the body of a reply with status 200, at most `max_bytes` long, within the time for all of it.

        `headers` go with this request alone: a key that differs from caller to caller belongs there.
        The exchange runs in a thread of its own: a reply that trickles in would outlive the timeouts of a socket.
        """
        allowed_ms = min(self._timeout_ms, timeout_ms if timeout_ms is not None else self._timeout_ms)
        late = Failure(reason="timeout", problem=f"'{self._host}' gave no whole reply within {allowed_ms} ms")
        exchange = _Exchange(self._client, host=self._host, late=late)
        request = _Request(path=path, body=body, headers=headers or {}, max_bytes=max_bytes, timeout_s=allowed_ms / 1000)
        thread = threading.Thread(target=exchange.run, args=(request,), daemon=True)
        thread.start()
        thread.join(max(allowed_ms, 0) / 1000)
        return exchange.give_up()

    def close(self) -> None:
        """Close the connections; the endpoint cannot be used afterwards."""
        self._client.close()


class _Request(NamedTuple):
    """What is sent, and how much may come back in which time."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    max_bytes: int
    timeout_s: float


class _Exchange:
    """One request and its reply; whoever is first, the reply or the end of the time, decides the outcome."""

    def __init__(self, client: httpx2.Client, *, host: str, late: Failure) -> None:
        self._client = client
        self._host = host
        self._late = late
        self._outcome: bytes | Failure | None = None
        self._is_over = threading.Event()

    def run(self, request: _Request) -> None:
        import httpx2

        try:
            self._outcome = self._exchange(request)
        except httpx2.TimeoutException:
            self._outcome = self._late
        except (httpx2.HTTPError, httpx2.StreamError, RuntimeError) as error:
            # The name alone: messages of the HTTP library may quote headers.
            self._outcome = self._failure("unreachable", f"cannot be spoken to ({type(error).__name__})")

    def give_up(self) -> bytes | Failure:
        """Return the outcome, and stop the exchange if it still goes on."""
        self._is_over.set()
        return self._late if self._outcome is None else self._outcome

    def _exchange(self, request: _Request) -> bytes | Failure:
        with self._client.stream(
            "POST", request.path, content=request.body, headers=request.headers, timeout=request.timeout_s
        ) as response:
            if response.status_code != _OK:
                return self._refusal(response)
            if response.headers.get("content-encoding", "identity") != "identity":
                return self._failure("refused", "compresses its reply although it was asked not to")
            parts = bytearray()
            for part in response.iter_raw():
                parts += part
                if len(parts) > request.max_bytes:
                    return self._failure("too_large", f"replies with more than {request.max_bytes} bytes")
                if self._is_over.is_set():
                    return self._late
            return bytes(parts)

    def _refusal(self, response: httpx2.Response) -> Failure:
        status = response.status_code
        answer = f"answers with the HTTP status {status}"
        if status == _BUSY or status >= _SERVER_FAULT:
            wait_s = _seconds_of(response.headers.get("retry-after", ""))
            return self._failure("busy" if status == _BUSY else "failed", answer, retry_after_s=wait_s)
        return self._failure("refused", f"{answer}; check the url, the model and the key")

    def _failure(self, reason: Reason, problem: str, *, retry_after_s: int = 0) -> Failure:
        return Failure(reason=reason, problem=f"'{self._host}' {problem}", retry_after_s=retry_after_s)


def _seconds_of(header: str) -> int:
    """Return a wait in seconds; 0 for a date, which would need a clock, and for anything else."""
    return min(int(header[:_SECONDS_DIGITS]), _MAX_WAIT_S) if header.isascii() and header.isdigit() else 0


def _open_client(address: str, *, key: str | None) -> httpx2.Client:
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtraError("llm", needed_for="an endpoint") from error
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return httpx2.Client(base_url=address, headers=headers, verify=_trusted(), trust_env=False, follow_redirects=False)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that are trusted, which take tens of milliseconds to read, once per process."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def checked_address(url: str) -> str:
    """Return the address without a closing slash; one that carries a secret is refused, since addresses are shown and logged."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_plain = False
    if not is_plain or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidFieldError("url", "it is no address of an endpoint; write something like 'https://host/v1'")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidFieldError("url", "it holds a name, a key or a query; put the key into the environment and name it in 'key_variable'")
    return url.rstrip("/")


def _read_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "")
    if not key:
        raise InvalidFieldError("key_variable", f"the environment variable '{variable}' is not set")
    if not is_sendable_key(key):
        raise InvalidFieldError("key_variable", f"the environment variable '{variable}' holds characters that no key has")
    return key


def is_sendable_key(key: str) -> bool:
    """Tell whether a key can stand in a header: text without blanks, line ends or anything beyond ASCII."""
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


# --- chat ---
# One turn of a chat in the dialect of OpenAI: instructions and material go in, the words of the first choice come out.


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Reply(msgspec.Struct):
    choices: list[_Choice]


def chat_body(model: str, *, instructions: str, material: object) -> bytes:
    """Return the body of a request at temperature 0; the material is shown as one JSON text. UnicodeEncodeError when it has none."""
    shown = msgspec.json.encode(material).decode()
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": shown}]
    return msgspec.json.encode({"model": model, "messages": messages, "temperature": 0, "stream": False})


def chat_content(reply: bytes) -> str:
    """Return what the model said; ValueError, IndexError or RecursionError when the reply has another form."""
    return msgspec.json.decode(reply, type=_Reply).choices[0].message.content
