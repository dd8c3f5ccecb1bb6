"""Which addresses a source may have that was registered over the network: none that only this machine or its network can reach.

Whoever registers a source makes the server speak to it, and a server stands where its callers do not. What runs a command or reads
a directory is for whoever sits at the machine.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from evidentia.contracts.vocabulary import ConnectionKind
from evidentia.serving.operations.api_errors import bad_field
from evidentia.text.ssrf_guard import PUBLIC, REACH, is_public_address

if TYPE_CHECKING:
    from evidentia.contracts.settings import Settings
    from evidentia.contracts.sources import SourceDescriptor

OVER_THE_NETWORK: Final = (ConnectionKind.REMOTE, ConnectionKind.MEMORY)
KEY_PREFIX: Final = "EVIDENTIA_SOURCE_"
"""How variables begin that hold keys which may be sent to a source that was registered over the network."""
_FIELD: Final = "connection.address"


async def reachable(settings: Settings, descriptor: SourceDescriptor) -> SourceDescriptor:
    """Return a source as it may be registered over the network, or refuse it.

    One at a public address is bound to such addresses, wherever its name leads later; hosts in `server.source_hosts` are
    allowed as they are.
    """
    connection = descriptor.connection
    if connection.kind not in OVER_THE_NETWORK:
        words = " or ".join(kind.value for kind in OVER_THE_NETWORK)
        raise bad_field("connection.kind", f"a source of kind '{connection.kind.value}' is added at the machine; here write {words}")
    if connection.kind is ConnectionKind.MEMORY:
        return descriptor
    if connection.key_variable and not connection.key_variable.startswith(KEY_PREFIX):
        raise bad_field("connection.key_variable", f"over the network, keys are in variables that begin with {KEY_PREFIX}")
    host = _host(connection.address)
    options = {name: value for name, value in connection.options.items() if name != REACH}
    if host not in {each.lower() for each in settings.server.source_hosts}:
        await _require_public(host)
        options[REACH] = PUBLIC
    return msgspec.structs.replace(descriptor, connection=msgspec.structs.replace(connection, options=options))


def _host(address: str) -> str:
    """Return the host of an address that has nothing beside scheme, host, port and path."""
    try:
        parts = urlsplit(address)
        is_plain = parts.scheme in {"http", "https"} and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:
        is_plain = False
    if not is_plain or not parts.hostname or "@" in parts.netloc or not address.isascii() or not address.isprintable() or " " in address:
        raise bad_field(_FIELD, "it is no plain address; write something like 'https://host:8080/path'")
    return parts.hostname


async def _require_public(host: str) -> None:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise bad_field(_FIELD, "the host has no address") from error
    if not found or not all(is_public_address(str(each[4][0])) for each in found):
        problem = "it leads into the server's own network; whoever runs the server can allow the host in 'server.source_hosts'"
        raise bad_field(_FIELD, problem)
