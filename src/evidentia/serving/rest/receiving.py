"""From an HTTP request to what was asked: who asks, which parameters, and a body that is bounded while it is read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool

from evidentia.serving.rest.refusals import (
    FORBIDDEN,
    MALFORMED,
    TOO_LARGE,
    UNAUTHORIZED,
    WRONG_TYPE,
    Refusal,
    shape_refusal,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from evidentia.contracts.control import TokenInfo
    from evidentia.serving.rest.asking import Endpoint
    from evidentia.serving.rest.parts import TokenKeeper

MOST_BYTES: Final = 1 << 20
MOST_THROWN_AWAY: Final = 8
"""How many times the most a body may have is thrown away before the connection is closed."""
PATIENCE_S: Final = 2
_SCHEME: Final = "bearer"
_JSON: Final = "application/json"


async def admit(request: Request, endpoint: Endpoint, tokens: TokenKeeper) -> TokenInfo:
    """Return whose token a request carries, when that is one and lets its holder do this."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != _SCHEME or not token.strip():
        raise _unauthorized("missing_token", "there is no bearer token", challenge="")
    # What was verified a moment ago is at hand; anything else may take a slow hash, which is no work for the event loop.
    info = tokens.recall(token.strip()) or await run_in_threadpool(tokens.verify, token.strip())
    if info is None:
        raise _unauthorized("invalid_token", "the token is unknown, expired or revoked", challenge=', error="invalid_token"')
    if not set(info.roles) & set(endpoint.roles):
        needed = " or ".join(role.value for role in endpoint.roles)
        raise Refusal(FORBIDDEN, "wrong_role", f"this needs the role {needed}", hint="use a token that has the role")
    return info


async def read_body(request: Request, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the body of a request; more than is allowed is refused before it is read whole."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind != _JSON or encoding != "identity":
        message = "the body is not plain application/json"
        raise Refusal(WRONG_TYPE, "unsupported_media_type", message, hint=f"send JSON with 'content-type: {_JSON}', uncompressed")
    parts = bytearray()
    stream = request.stream()
    async for part in stream:
        parts += part
        if len(parts) > most_bytes:
            await _let_finish(stream, most_bytes=most_bytes)
            raise _too_large(most_bytes)
    return bytes(parts)


def decode_body(raw: bytes, endpoint: Endpoint) -> Any:  # noqa: ANN401 - the message that the endpoint names
    """Return the message in a body, or say what is wrong with it."""
    kind = endpoint.reads or endpoint.body
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        raise shape_refusal(error, names=_names(endpoint.body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body is not JSON ({type(error).__name__})"
        raise Refusal(MALFORMED, "malformed_json", message, hint="send one JSON object in UTF-8") from None


@cache
def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@cache
def _names(kind: object) -> tuple[str, ...]:
    """Return the names of all fields of a message and of what it holds."""
    (_, *_), components = msgspec.json.schema_components([kind])
    names = {name for schema in components.values() for name in schema.get("properties", {})}
    return tuple(sorted(names))


async def _let_finish(stream: AsyncIterator[bytes], *, most_bytes: int) -> None:
    """Throw away some more of what comes: a client that is still sending when the connection closes never reads the answer."""
    left = MOST_THROWN_AWAY * most_bytes
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            async for part in stream:
                left -= len(part)
                if left < 0:
                    return


def _unauthorized(code: str, message: str, *, challenge: str) -> Refusal:
    headers = {"www-authenticate": f'Bearer realm="evidentia"{challenge}'}
    hint = "send 'Authorization: Bearer TOKEN'; `evidentia tokens add` makes one"
    return Refusal(UNAUTHORIZED, code, message, hint=hint, headers=headers)


def _too_large(most_bytes: int) -> Refusal:
    hint = "send less at once"
    return Refusal(TOO_LARGE, "body_too_large", f"the body is larger than {most_bytes} bytes", hint=hint, headers={"connection": "close"})
