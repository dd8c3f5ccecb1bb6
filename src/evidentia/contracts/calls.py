"""What every call that a run records has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

import msgspec

SpanId = NewType("SpanId", str)

Metadata = Mapping[str, Any]  # Any: numbers, words and lists as the rule says; always JSON


class RunCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """One thing a run records."""

    span: SpanId | None = None
    """The open span it belongs under; None is the run itself."""
