"""What a tool hands to an agent: text in the form that the protocol fixes, and what it was made from."""

from __future__ import annotations

import msgspec

from evidentia.base.answers import EvidenceResponse
from evidentia.contracts.evidence import EvidenceFragment
from evidentia.contracts.layout import FragmentImage
from evidentia.contracts.tables import TableAnswer
from evidentia.text.marks import ERROR, neutral_line

NOTHING_FOUND = "no relevant evidence was found"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result: `text` is for the agent, the rest for whoever checks it."""

    text: str
    response: EvidenceResponse | None = None
    """The answer it was made from, for `record_retrieval` and `verify`; tables and local files have none."""
    fragments: tuple[EvidenceFragment, ...] = ()
    answer: TableAnswer | None = None
    receipt_id: str | None = None
    images: tuple[FragmentImage, ...] = ()
    is_error: bool = False


def failure(reason: str) -> ToolResult:
    """Return a result that is nothing but a message."""
    return ToolResult(text=f"{ERROR} {neutral_line(reason)}", is_error=True)
