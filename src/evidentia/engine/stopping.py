"""When enough has come: sources that are still out are given up, if the request allows it.

Enough is when every fragment of the answer is likely enough to be relevant, or when the last source added next to nothing.
Both depend on who answers first, so a request has to ask for it, and the answer says when it happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.assemble import PRIOR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.settings import SourceSettings

_MILLI = 1_000
_MILLION = 1_000_000


class EarlyStop:
    """Decides for one request, each time a source has finished."""

    def __init__(
        self, settings: SourceSettings, *, limit: int, own: Callable[[], Sequence[float] | None], known: Sequence[SourceReply] = ()
    ) -> None:
        self._settings = settings
        self._limit = limit
        self._own = own
        self._known = known
        self._sum_before: int | None = None
        self._answered = 0
        self.reason = ""
        """Why no more was waited for; empty while it is."""

    def __call__(self, replies: Sequence[SourceReply]) -> str:
        """Return why no more is waited for; empty to go on."""
        self.reason = self._decide(replies)
        return self.reason

    def _decide(self, replies: Sequence[SourceReply]) -> str:
        best = self._best(replies)
        if len(best) == self._limit and best[-1] >= self._settings.stop_confidence_milli * _MILLI:
            return (
                f"early stop: {self._limit} fragments are at least {self._settings.stop_confidence_milli / _MILLI:g} likely to be relevant"
            )
        answered = sum(1 for reply in replies if reply.report.state is CoverageState.SEARCHED)
        if not best or answered == self._answered:
            return ""  # a source that failed has added nothing, and says nothing of the others
        self._answered = answered
        before, self._sum_before = self._sum_before, sum(best)
        if before is not None and self._sum_before - before < self._settings.stop_gain_milli * _MILLI:
            return f"early stop: the last source added less than {self._settings.stop_gain_milli / _MILLI:g}"
        return ""

    def _best(self, replies: Sequence[SourceReply]) -> list[int]:
        """Return the probabilities of the best fragments so far, in millionths, highest first."""
        own = [round(each * _MILLION) for each in self._own() or ()]
        told = [
            round(PRIOR * _MILLION) if each.confidence_millionths is None else each.confidence_millionths
            for reply in (*self._known, *replies)
            for each in reply.candidates
        ]
        return sorted([*own, *told], reverse=True)[: self._limit]
