"""One HTTP exchange with a control plane: messages in and out, within a time and a size, tried once more when the way was broken.

Redirects and proxies are not followed, and a token travels encrypted, within this machine, or not at all.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from evidentia.backends.remote.addresses import checked_parts
from evidentia.contracts.control import FaultReply
from evidentia.contracts.errors import (
    FieldProblem,
    InvalidFieldError,
    MissingExtraError,
    PolicyInvalidError,
    RunForgottenError,
    ServiceReplyError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from evidentia.contracts.errors import EvidentiaError

Message = TypeVar("Message")

CONNECT_S: Final = 3.0
READ_S: Final = 60.0
"""A judge may take its time before a call is answered."""
MAX_REPLY_BYTES: Final = 1 << 26
_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_BUSY: Final = 429
_UNPROCESSABLE: Final = 422
_SERVER_FAULT: Final = 500
_ATTEMPTS: Final = 2


class PlaneWire:
    """The connections to one plane. Thread safe; they stay open between requests until `close`."""

    def __init__(self, address: str, *, token: str, read_s: float = READ_S, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        scheme, self.host = _checked_parts(address)
        if token and scheme != "https" and self.host not in _LOCAL_HOSTS:
            raise InvalidFieldError("url", "a token is not sent in the clear; write the address of the plane with https")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidFieldError("token", "it holds characters that no token has")
        self._address = address.rstrip("/")
        self._token = token
        self._read_s = read_s
        self._most_reply_bytes = max_reply_bytes
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    def post(self, path: str, body: object, kind: type[Message], *, is_repeatable: bool = True) -> Message:
        """Send a message and return the answer."""
        return self._ask("POST", path, kind, content=msgspec.json.encode(body), is_repeatable=is_repeatable)

    def get(self, path: str, kind: type[Message], *, query: Mapping[str, str] | None = None) -> Message:
        """Return what is at a path."""
        return self._ask("GET", path, kind, query=query)

    def close(self) -> None:
        """Close the connections; whoever asks afterwards opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[Message],
        *,
        content: bytes | None = None,
        query: Mapping[str, str] | None = None,
        is_repeatable: bool = True,
    ) -> Message:
        """Return the answer.

        Raises:
            ServiceUnavailableError: There was no answer, the plane is busy or broken, or what was asked about is gone.
            ServiceReplyError: The plane refuses whoever asks, or answers with something else.
            InputError: What was sent is wrong, as the plane says.
        """
        status, reply = self._send(method, path, content=content, query=query, attempts=_ATTEMPTS if is_repeatable else 1)
        if status not in _OK:
            raise self._refusal(status, reply)
        try:
            return msgspec.json.decode(reply, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # The reason alone: a message of the decoder quotes what was sent.
            raise ServiceReplyError(f"'{self.host}' replies with something that is no answer ({type(error).__name__})") from None

    def _send(self, method: str, path: str, *, content: bytes | None, query: Mapping[str, str] | None, attempts: int) -> tuple[int, bytes]:
        client = self._open()
        import httpx2

        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if content is not None:
            headers["content-type"] = "application/json"
        problem = ""
        for _ in range(attempts):
            try:
                return self._exchange(client.stream(method, self._address + path, content=content, headers=headers, params=query))
            except httpx2.TimeoutException:
                raise ServiceUnavailableError(f"'{self.host}' gave no answer in time") from None
            except (httpx2.HTTPError, httpx2.StreamError) as error:
                problem = type(error).__name__  # the name alone: messages of the HTTP library may quote headers
        raise ServiceUnavailableError(f"'{self.host}' cannot be spoken to ({problem})")

    def _exchange(self, exchange: Any) -> tuple[int, bytes]:  # noqa: ANN401 - the library's own context manager
        with exchange as response:
            parts = bytearray()
            for part in response.iter_raw():
                parts += part
                if len(parts) > self._most_reply_bytes:
                    raise ServiceReplyError(f"'{self.host}' replies with more than {self._most_reply_bytes} bytes")
            return response.status_code, bytes(parts)

    def _refusal(self, status: int, reply: bytes) -> EvidentiaError:
        if status == _BUSY or status >= _SERVER_FAULT:
            return ServiceUnavailableError(f"'{self.host}' answers with the HTTP status {status}")
        try:
            fault = msgspec.json.decode(reply, type=FaultReply).error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ServiceReplyError(f"'{self.host}' answers with the HTTP status {status}; check the address and the token")
        if status == _UNPROCESSABLE and fault.code == PolicyInvalidError.code:
            return PolicyInvalidError([FieldProblem(each.path, each.problem, each.suggestion) for each in fault.problems])
        if status == _UNPROCESSABLE and fault.problems:
            return InvalidFieldError(fault.problems[0].path, fault.problems[0].problem)
        if status == _NOT_FOUND or fault.code == "run_ended":
            kind = RunForgottenError if status == _NOT_FOUND else ServiceUnavailableError
            return kind(f"'{self.host}' does not know this any more: {fault.message}")
        return ServiceReplyError(f"'{self.host}' refuses ({fault.code}): {fault.message}")

    def _open(self) -> httpx2.Client:
        with self._lock:
            if self._client is None:
                self._client = _new_client(self._read_s)
            return self._client


def _new_client(read_s: float) -> httpx2.Client:
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtraError("remote", needed_for="a control plane behind a URL") from error
    timeout = httpx2.Timeout(read_s, connect=CONNECT_S)
    verify = httpx2.create_ssl_context(trust_env=False)
    return httpx2.Client(verify=verify, trust_env=False, follow_redirects=False, timeout=timeout)


def _checked_parts(address: str) -> tuple[str, str]:
    return checked_parts(
        address,
        field="url",
        unfit="it is no address of a control plane; write something like 'https://host:8321'",
        telling="it holds a name, a key or a query; pass the token by itself",
    )
