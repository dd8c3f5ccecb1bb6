"""How a process that serves stands: whether it still takes requests, and what has to end before it can stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Readiness:
    """Whether this process is stopping. Belongs to its event loop."""

    def __init__(self) -> None:
        self._before_waiting: list[Callable[[], None]] = []
        self.is_stopping = False
        """From then on it is not ready for more, while it still answers what comes."""

    def before_waiting(self, act: Callable[[], None]) -> None:
        """Have something done before requests under way are waited for, such as ending streams that never end by themselves."""
        self._before_waiting.append(act)

    def stop(self) -> None:
        """Say that no more is wanted; said twice it counts once."""
        self.is_stopping = True

    def end_streams(self) -> None:
        """Do what has to be done before requests under way are waited for."""
        self.is_stopping = True
        acts, self._before_waiting = self._before_waiting, []
        for act in acts:
            act()
