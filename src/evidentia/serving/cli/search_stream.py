"""An answer as it comes about: every source on stderr when it has finished, then the answer itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.evidence import FinalResponse, SourceFinished
from evidentia.serving.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.base.answers import EvidenceResponse
    from evidentia.contracts.evidence import CoverageReport, StreamEvent
    from evidentia.serving.cli.invocation import Invocation


def streamed(call: Invocation, events: Iterator[StreamEvent]) -> EvidenceResponse:
    """Tell of every source when it has finished, and return the answer."""
    for event in events:
        if isinstance(event, SourceFinished):
            note(call, f"{event.source_id}: {_account(event.report)}")
        elif isinstance(event, FinalResponse):
            return event.response  # type: ignore[return-value]  # a base answers with its own kind of response
    raise AssertionError  # the last event is the answer


def _account(report: CoverageReport) -> str:
    count = f"{report.candidates} {'candidate' if report.candidates == 1 else 'candidates'}"
    reason = f" ({report.reason})" if report.reason else ""
    return f"{report.state.value}, {count}, {report.elapsed_ms:.1f} ms{reason}"
