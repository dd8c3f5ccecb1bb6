"""What tests of contexts share: a run that a policy stops, and what its log holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia.agents import Context, PolicyViolationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.runs import AnyCall


def violation_of(work: Callable[[Context], object], **fields: Any) -> tuple[PolicyViolationError, Context]:
    """Return what a run raises in which this is done, and the run."""
    ctx = Context("a", **fields)
    with pytest.raises(PolicyViolationError) as caught, ctx:
        work(ctx)
    return caught.value, ctx


def calls_of(ctx: Context) -> list[AnyCall]:
    """Return what stands in the log of a run in memory, after its beginning."""
    log = ctx._recorded._run._log  # type: ignore[union-attr]  # a run in memory has a log
    return [record.entry.call for record in log.records()][2:]
