"""Another Evidentia behind HTTP as a source: `POST {address}/v1/evidence`, a request of the contract in, an answer of it out.

What comes back is bounded while it is read and checked before it is proposed. No error repeats the key, the question or the reply.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.control import FaultReply
from evidentia.contracts.decoding import decode_json, json_decoder
from evidentia.contracts.errors import ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.evidence import EvidenceResponse
from evidentia.contracts.ports import Retriever
from evidentia.foundation.outbound_http import (
    BUSY,
    DIRECT,
    SERVER_FAULT,
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
from evidentia.provenance.custody_exchange import candidates_of, request_of, unfinished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from evidentia.contracts.access import Principal
    from evidentia.contracts.retrieval import Candidate, SourceAsk
    from evidentia.contracts.settings import OutboundSettings

PATH: Final = "/v1/evidence"
_FIELD: Final = "connection.address"
MAX_REPLY_BYTES: Final = 1 << 24
LINGER_MS: Final = 5_000
"""How long after its caller left an answer may still come: whoever asks next finds it kept."""

_OK: Final = 200
_MAX_REFUSAL_BYTES: Final = 1 << 16
_ADVICE: Final = {
    "missing_token": "it wants a token: put one into the environment and name it in 'key_variable'",
    "invalid_token": "its token does not hold there any more; make another",
    "not_your_principal": "its token may not ask for others: make one with --delegate, in their tenant and up to their clearance",
}
"""By the code of a refusal."""
_HEADERS: Final = {"accept": "application/json", "content-type": "application/json"}
_SHARE_OF_WAY: Final = 10
_LEAST_WAY_MS: Final = 10

_decode = json_decoder(EvidenceResponse)


class RemoteEvidentia(Retriever):
    """Implements `Retriever`. The connections stay open between questions; `aclose`, on the loop that asked, closes them.

    `key_variable` names the environment variable that holds the bearer key; empty when that Evidentia wants none.
    `is_public` has it speak to public addresses alone, whatever the name of the host leads to.
    """

    def __init__(
        self,
        address: str,
        *,
        key_variable: str = "",
        max_reply_bytes: int = MAX_REPLY_BYTES,
        linger_ms: int = LINGER_MS,
        is_public: bool = False,
        outbound: OutboundSettings = DIRECT,
    ) -> None:
        self._address = check_address(
            address,
            field=_FIELD,
            unfit="it is no address of an Evidentia; write something like 'https://host:8080'",
            telling="it holds a name, a key or a query; put the key into the environment and name it in 'key_variable'",
        )
        self._client = HttpClient(self._address, field=_FIELD, public_only=is_public, outbound=outbound)
        self._key_variable = key_variable
        self._max_reply_bytes = max_reply_bytes
        self._linger_ms = linger_ms

    async def retrieve(self, ask: SourceAsk) -> AsyncGenerator[Candidate]:
        """Yield its fragments in its order; one whose custody does not hold is named as a fault instead.

        Raises:
            ServiceError: It gave no answer, or none that can be right.
        """
        reply = await self._post(_body(ask), timeout_ms=ask.budget_ms + self._linger_ms)
        # Decoding and checking a hundred fragments takes milliseconds in which the loop has other sources to serve.
        candidates, problem = await asyncio.to_thread(_read, reply, host=self._client.host, principal=ask.principal)
        for candidate in candidates:
            yield candidate
        if problem:
            raise ServiceUnavailableError(problem)

    async def aclose(self) -> None:
        """Close the connections; whoever asks afterwards opens new ones."""
        await self._client.aclose()

    async def _post(self, body: bytes, *, timeout_ms: int) -> bytes:
        request = Request("POST", PATH, {**_HEADERS, **self._key_header()}, body)
        reply = await self._client.exchange(request, Bounds(timeout_ms, self._max_reply_bytes, _MAX_REFUSAL_BYTES))
        if isinstance(reply, Failure):
            raise reply.error()
        if reply.status != _OK:
            raise self._refusal(reply)
        return reply.body

    def _key_header(self) -> dict[str, str]:
        """Return the header with the key, which is read for each question, so that a new one counts at once."""
        if not self._key_variable:
            return {}
        require_confidential(self._address, field=_FIELD)
        return bearer(read_key(self._key_variable, field="connection.key_variable"))

    def _refusal(self, reply: Reply) -> ServiceReplyError | ServiceUnavailableError:
        """Return what a refusal means: of what it says only the code is repeated, since the rest may be anything."""
        answer = f"'{self._client.host}' answers with the HTTP status {reply.status}"
        if reply.status == BUSY or reply.status >= SERVER_FAULT:
            return ServiceUnavailableError(answer)
        return ServiceReplyError(f"{answer}; {_ADVICE.get(_code_in(reply.body), 'check the address and the key')}")


def _body(ask: SourceAsk) -> bytes:
    """Return the request as JSON: it is given less time than there is, for the way, and nobody is the owner of another's base."""
    request = request_of(ask)
    way_ms = max(_LEAST_WAY_MS, ask.budget_ms // _SHARE_OF_WAY)
    principal = msgspec.structs.replace(ask.principal, is_owner=False)
    return msgspec.json.encode(
        msgspec.structs.replace(request, principal=principal, latency_deadline_ms=max(1, request.latency_deadline_ms - way_ms))
    )


def _code_in(reply: bytes) -> str:
    try:
        return decode_json(reply, FaultReply).error.code
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _read(reply: bytes, *, host: str, principal: Principal) -> tuple[list[Candidate], str]:
    try:
        response = _decode(reply)
        return list(candidates_of(response, principal=principal)), unfinished(response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The reason alone: a message of the decoder quotes what was sent.
        raise ServiceReplyError(f"'{host}' replies with something that is no answer ({type(error).__name__})") from None
