"""One endpoint of a model: a JSON request in, the bytes of the reply or the reason why there are none.

Nothing here reads a reply, and no reason holds the key, the request or what the endpoint said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.contracts.settings import OutboundSettings
from evidentia.foundation.outbound_http import (
    BUSY,
    SERVER_FAULT,
    BlockingHttpClient,
    Bounds,
    Failure,
    HttpClient,
    Reply,
    Request,
    bearer,
    check_address,
    read_key,
    require_confidential,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.foundation.outbound_http import Address, Reason

_OK: Final = 200


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an endpoint is and how it is spoken to."""

    url: str
    """The address before `/embeddings` and `/chat/completions`, usually ending in `/v1`."""
    model: Annotated[str, msgspec.Meta(min_length=1)]
    key_variable: str | None = None
    """The environment variable that holds the key; None when the endpoint wants none."""
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 30_000
    """For one attempt as a whole, from connecting to the last byte."""
    outbound: OutboundSettings = OutboundSettings()


class Endpoint:
    """Keeps the connections to one endpoint. Thread safe."""

    def __init__(self, settings: EndpointSettings) -> None:
        address = endpoint_address(settings.url)
        self._headers = {"content-type": "application/json"}
        if settings.key_variable is not None:
            self._headers |= bearer(read_key(settings.key_variable, field="key_variable"))
            require_confidential(address, field="url")
        self._client = BlockingHttpClient(HttpClient(address, outbound=settings.outbound))
        self._timeout_ms = settings.timeout_ms

    def post(
        self, path: str, body: bytes, *, max_bytes: int, timeout_ms: int | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes | Failure:
        """Send JSON and return the body of a reply with status 200, at most `max_bytes` long, within the time for all of it.

        `headers` go with this request alone: a key that differs from caller to caller belongs there.
        """
        allowed_ms = min(self._timeout_ms, timeout_ms if timeout_ms is not None else self._timeout_ms)
        request = Request("POST", f"/{path}", {**self._headers, **(headers or {})}, body)
        reply = self._client.exchange(request, Bounds(allowed_ms, max_bytes, max_refusal_bytes=0))
        if isinstance(reply, Failure):
            return reply
        return reply.body if reply.status == _OK else self._refusal(reply)

    def open(self) -> None:
        """Load what speaks HTTP, which takes tens of milliseconds; nobody is spoken to."""
        self._client.open()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _refusal(self, reply: Reply) -> Failure:
        answer = f"'{self._client.host}' answers with the HTTP status {reply.status}"
        if reply.status == BUSY or reply.status >= SERVER_FAULT:
            reason: Reason = "busy" if reply.status == BUSY else "failed"
            return Failure(reason=reason, problem=answer, retry_after_s=reply.retry_after_s)
        return Failure(reason="refused", problem=f"{answer}; check the url, the model and the key")


def endpoint_address(url: str) -> Address:
    """Return the address of an endpoint; one that carries a secret is refused, since addresses are shown and logged."""
    return check_address(
        url,
        field="url",
        unfit="it is no address of an endpoint; write something like 'https://host/v1'",
        telling="it holds a name, a key or a query; put the key into the environment and name it in 'key_variable'",
    )


# --- one turn of a chat in the dialect of OpenAI ---


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
    return decode_json(reply, _Reply).choices[0].message.content
