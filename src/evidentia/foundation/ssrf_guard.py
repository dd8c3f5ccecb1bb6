"""The guard against server-side request forgery (SSRF): a name is looked up once, checked, and connected to as the address it had then.

A name that was public when it was registered can lead elsewhere later (DNS rebinding). So the address that is checked is the address
that is connected to, while the certificate and the host header stay those of the name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_SPECIAL_V4: Final = ipaddress.IPv4Network("192.0.0.0/24")
"""Of protocols between routers; clouds answer there, and older versions of Python take part of it for public."""


class PrivateAddressError(Exception):
    """A name leads to this machine, into a private network, or through a tunnel into one."""


class Target(NamedTuple):
    """What to connect to, and what to say there."""

    url: str
    headers: dict[str, str]
    extensions: dict[str, Any]  # Any: what the HTTP library knows under a name


def is_public_address(text: str) -> bool:
    """Tell whether an IP address is public; addresses that hold another one, as tunnels and mapped ones do, are not."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        holds_another = address.sixtofour is not None or address.teredo is not None
        return address in _GLOBAL_V6 and address.is_global and not holds_another
    return address.is_global and not address.is_multicast and not address.is_reserved and address not in _SPECIAL_V4


async def public_addresses(host: str, port: int | None = None) -> list[str]:
    """Return the IP addresses of a host, all of which are public.

    Raises:
        PrivateAddressError: One of them is not, or there is none.
        OSError: The name cannot be looked up.
        UnicodeError: The name is none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in found]
    if not addresses or not all(map(is_public_address, addresses)):
        raise PrivateAddressError(host)
    return addresses


async def public_target(url: str) -> Target:
    """Return a URL with its host replaced by a public IP address that it has now; see `public_addresses` for what it raises."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = (await public_addresses(host, port))[0]
    pinned = f"[{address}]" if ":" in address else address
    return Target(f"{parts.scheme}://{pinned}:{port}{parts.path}", {"host": parts.netloc}, {"sni_hostname": host})
