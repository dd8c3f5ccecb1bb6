#!/usr/bin/env python3
"""A small client for reading shipments from Harbour.

It signs a request with the partner's current key and retries what the API reference says may be retried. It refuses to
post scans: depots use their own client for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

RETRYABLE_CODES = frozenset({"HRB-4290", "HRB-5031", "HRB-5041"})
"""Every other code is final: trying again cannot change the answer."""

EXPIRED_KEY_CODE = "HRB-4012"

Sign = Callable[[bytes], str]
Send = Callable[[str, dict[str, str]], dict[str, object]]


class HarbourRefusedError(Exception):
    """Harbour answered with an error code that the client may not retry."""

    def __init__(self, code: str) -> None:
        hint = "load the newest signing key" if code == EXPIRED_KEY_CODE else "see the table of error codes"
        super().__init__(f"Harbour refused the request with {code}: {hint}")
        self.code = code


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """How the client behaves; the defaults suit the standard plan."""

    key_id: str
    max_retry_count: int = 3
    """Retries of a read. The setting of the same name on a webhook subscription is a different one."""
    initial_delay_ms: int = 200
    clock_skew_seconds: int = 300


def retry_delays_ms(settings: ClientSettings) -> Iterator[int]:
    """Yield the delay before each retry; it doubles every time."""
    for attempt in range(settings.max_retry_count):
        yield settings.initial_delay_ms * 2**attempt


def signed_headers(path: str, *, at: str, settings: ClientSettings, sign: Sign) -> dict[str, str]:
    """Return the three headers of a signed GET; `at` is RFC 3339 in UTC."""
    body_digest = hashlib.sha256(b"").hexdigest()
    lines = "\n".join(("GET", path, at, body_digest))
    return {"Harbour-Key": settings.key_id, "Harbour-Time": at, "Harbour-Signature": sign(lines.encode())}


def get_shipment_status(
    shipment_id: str, *, at: str, settings: ClientSettings, sign: Sign, send: Send, wait_ms: Callable[[int], None]
) -> dict[str, object]:
    """Call `getShipmentStatus`, waiting between retries; raise when the last answer is still a refusal."""
    path = f"/v4/shipments/{shipment_id}"
    headers = signed_headers(path, at=at, settings=settings, sign=sign)
    answer = send(path, headers)
    for delay_ms in retry_delays_ms(settings):
        if answer.get("code") not in RETRYABLE_CODES:
            break
        wait_ms(delay_ms)
        answer = send(path, headers)
    if "code" in answer:
        raise HarbourRefusedError(str(answer["code"]))
    return answer
