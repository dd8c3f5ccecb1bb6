"""A plane at work: its parts, and the runs that are open in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evidentia.serving.rest.open_runs import OpenRuns
    from evidentia.serving.rest.parts import ControlParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """What every endpoint is handed."""

    parts: ControlParts
    runs: OpenRuns
