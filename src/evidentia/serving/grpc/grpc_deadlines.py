"""How long a caller still waits, given to whatever takes a deadline.

The engine is told to answer a little before the caller leaves: an answer that says what is missing beats none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.evidence import EvidenceRequest
from evidentia.serving.operations.request_decoding import flat_of

if TYPE_CHECKING:
    from evidentia.serving.operations.endpoint import Endpoint

DEADLINE: Final = "latency_deadline_ms"
USUAL_MS: Final = next(field.default for field in msgspec.structs.fields(EvidenceRequest) if field.name == DEADLINE)
WAY_SHARE: Final = 10
"""Of the time that is left, one part in so many is for the way back."""
LEAST_WAY_MS: Final = 5


def within(endpoint: Endpoint, fields: dict[str, Any], *, left_s: float | None) -> dict[str, Any]:
    """Return the fields of a request with a deadline that ends before the caller's; None is a caller who waits for ever."""
    if left_s is None or not takes_deadline(endpoint):
        return fields
    left_ms = int(left_s * 1_000)
    allowed_ms = max(1, left_ms - max(LEAST_WAY_MS, left_ms // WAY_SHARE))
    asked_ms = fields.get(DEADLINE, USUAL_MS)
    if isinstance(asked_ms, int) and asked_ms > allowed_ms:
        return {**fields, DEADLINE: allowed_ms}
    return fields


def takes_deadline(endpoint: Endpoint) -> bool:
    """Tell whether an operation can be told how long it may take."""
    return DEADLINE in flat_of(endpoint).message.__struct_fields__
