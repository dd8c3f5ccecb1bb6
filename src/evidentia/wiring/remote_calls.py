"""An address to what asks the base that is served there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from evidentia.contracts.ports import OperationCalls

TOKEN_VARIABLE: Final = "EVIDENTIA_TOKEN"  # noqa: S105 - the name of the variable
_HTTP: Final = ("http", "https")
_GRPC: Final = ("grpc", "grpcs")


def open_calls(address: str, *, token: str | None) -> OperationCalls:
    """Return what asks the base at an address; without a token, the one in the environment is shown."""
    shown = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not shown:
        raise InvalidFieldError("token", f"a served base asks for one; pass token=... or set {TOKEN_VARIABLE}")
    scheme = address.partition("://")[0].lower()
    if scheme in _HTTP:
        from evidentia.backends.remote.http_calls import HttpCalls

        return HttpCalls(address, token=shown)
    if scheme in _GRPC:
        from evidentia.backends.remote.grpc_calls import GrpcCalls

        return GrpcCalls(address, token=shown)
    known = ", ".join((*_HTTP, *_GRPC))
    raise InvalidFieldError("path", f"nothing here opens '{scheme}' addresses; write a directory, or an address with {known}")
