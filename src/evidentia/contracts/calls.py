"""What every call that a run records has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NewType

import msgspec

SpanId = NewType("SpanId", str)

Metadata = Mapping[str, Any]  # Any: numbers, words and lists as the rule says; always JSON


class RunCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """One thing a run records."""

    is_ahead: ClassVar[bool] = False
    """Whether it is said before it happens: what stops it prevents it, and the run goes on."""

    span: SpanId | None = None
    """The open span it belongs under; None is the run itself."""
