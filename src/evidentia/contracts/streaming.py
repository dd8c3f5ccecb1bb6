"""What `retrieve_stream` yields, in the order in which it happens; the last event is the answer."""

from __future__ import annotations

import msgspec

from evidentia.contracts.evidence import CoverageReport, EvidenceFragment, EvidenceResponse
from evidentia.contracts.ids import SourceId


class SourceFinished(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="source_finished"):
    """A source has answered, or will not."""

    source_id: SourceId
    report: CoverageReport


class ProvisionalFragments(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="provisional_fragments"):
    """What the answer would be if nothing more came; not sealed, without a receipt, and replaced by whatever comes next."""

    fragments: tuple[EvidenceFragment, ...]
    sources: tuple[SourceId, ...]
    """The sources that had answered by then."""


class FinalResponse(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="final_response"):
    """The answer, the same as `retrieve` gives."""

    response: EvidenceResponse


StreamEvent = SourceFinished | ProvisionalFragments | FinalResponse
