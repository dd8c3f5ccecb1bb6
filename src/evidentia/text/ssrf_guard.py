"""Which addresses of the network are for everybody: none of this machine, of a private network, or of a tunnel into one."""

from __future__ import annotations

import ipaddress
from typing import Final

REACH: Final = "reach"
"""The option of a connection that says how far it may reach."""
PUBLIC: Final = "public"
"""The value of that option for a connection that leads nowhere but to public addresses."""
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")


def is_public_address(text: str) -> bool:
    """Tell whether an IP address is public; addresses that hold another one, as tunnels and mapped ones do, are not."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        holds_another = address.sixtofour is not None or address.teredo is not None
        return address in _GLOBAL_V6 and address.is_global and not holds_another
    return address.is_global and not address.is_multicast and not address.is_reserved
