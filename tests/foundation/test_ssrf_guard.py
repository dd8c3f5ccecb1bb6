"""Which addresses are for everybody."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.foundation.ssrf_guard import PrivateAddressError, is_public_address, public_addresses, public_target

PRIVATE = [
    ipaddress.ip_network(each)
    for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24")
]


@given(st.sampled_from(PRIVATE).flatmap(lambda network: st.integers(int(network[0]), int(network[-1]))))
def test_no_private_address_is_public_in_any_spelling(number: int) -> None:
    address = ipaddress.IPv4Address(number)

    assert not is_public_address(str(address))
    assert not is_public_address(f"::ffff:{address}")
    assert not is_public_address(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))))
    assert not is_public_address(f"64:ff9b::{address}")


@given(st.ip_addresses())
def test_what_is_public_is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public_address(str(address)):
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "10.0.0.1", "localhost"])
def test_a_host_of_this_network_is_refused(host: str) -> None:
    with pytest.raises(PrivateAddressError):
        asyncio.run(public_addresses(host, 80))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://8.8.8.8/a", "https://8.8.8.8:443/a"),
        ("http://8.8.8.8:81", "http://8.8.8.8:81"),
        ("https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]:443/"),
    ],
)
def test_a_target_keeps_scheme_port_and_path(url: str, target: str) -> None:
    found = asyncio.run(public_target(url))

    assert target == found.url
    assert url.partition("://")[2].partition("/")[0] == found.headers["host"]
