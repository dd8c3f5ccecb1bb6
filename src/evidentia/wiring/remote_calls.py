"""An address to what asks the base that is served there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.settings import OutboundSettings

if TYPE_CHECKING:
    from evidentia.contracts.ports import OperationCalls

TOKEN_VARIABLE: Final = "EVIDENTIA_TOKEN"  # noqa: S105 - the name of the variable
_HTTP: Final = ("http", "https")
_GRPC: Final = ("grpc", "grpcs")


VARIABLES: Final = {
    "authorities": "EVIDENTIA_AUTHORITIES",
    "certificate": "EVIDENTIA_CERTIFICATE",
    "private_key": "EVIDENTIA_PRIVATE_KEY",
    "proxy": "EVIDENTIA_PROXY",
}
"""How a client that has no base, and so no settings, is told how to reach one."""


def outbound_from_environment() -> OutboundSettings:
    """Return what the environment says about the way to a served base."""
    return msgspec.structs.replace(OutboundSettings(), **{name: os.environ.get(variable, "") for name, variable in VARIABLES.items()})


def open_calls(address: str, *, token: str | None, outbound: OutboundSettings | None = None) -> OperationCalls:
    """Return what asks the base at an address; what is not given, token and way, is what the environment says."""
    way = outbound_from_environment() if outbound is None else outbound
    shown = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not shown:
        raise InvalidFieldError("token", f"a served base asks for one; pass token=... or set {TOKEN_VARIABLE}")
    scheme = address.partition("://")[0].lower()
    if scheme in _HTTP:
        from evidentia.backends.remote.http_calls import HttpCalls

        return HttpCalls(address, token=shown, outbound=way)
    if scheme in _GRPC:
        from evidentia.backends.remote.grpc_calls import GrpcCalls

        return GrpcCalls(address, token=shown, outbound=way)
    known = ", ".join((*_HTTP, *_GRPC))
    raise InvalidFieldError("path", f"nothing here opens '{scheme}' addresses; write a directory, or an address with {known}")
