"""Where a request goes whose source may only be at a public address: the name is looked up, checked and connected to as one.

A name that was public when its source was registered can lead elsewhere later; so the address that is checked is the address that
is connected to, while the certificate and the host header stay those of the name.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from evidentia.contracts.errors import ServiceReplyError, ServiceUnavailableError
from evidentia.text.ssrf_guard import is_public_address


class Target(NamedTuple):
    """What to connect to, and what to say there."""

    address: str
    headers: dict[str, str]
    extensions: dict[str, Any]  # Any: what the HTTP library knows under a name


async def public_target(address: str) -> Target:
    """Return an address with its host replaced by the public IP address that it has now.

    Raises:
        ServiceReplyError: It leads into this network.
        ServiceUnavailableError: The host has no address.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ServiceUnavailableError(f"'{host}' has no address") from None
    addresses = [str(each[4][0]) for each in found]
    if not addresses or not all(map(is_public_address, addresses)):
        raise ServiceReplyError(f"'{host}' leads into the server's own network")
    pinned = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    return Target(f"{parts.scheme}://{pinned}:{port}{parts.path}", {"host": parts.netloc}, {"sni_hostname": host})
