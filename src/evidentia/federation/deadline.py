"""How the deadline of one request is divided among its stages; whole milliseconds, and never more than there are.

Seed 8.12.2 gives the shares. What a stage does not use falls to the later ones; what comes after the sources is kept back for
them always.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SHARES: Final = {
    "decompose": 4,
    "select": 1,
    "fan_out": 70,
    "fuse": 2,
    "rerank": 16,
    "diversify": 3,
    "provenance": 2,
    "margin": 2,
}
"""Each stage's share of the deadline, in percent and in the order of the stages."""
LEAST_MARGIN_MS: Final = 10
"""A wait for a source ends at least this long before the deadline, however short the deadline is."""
REWRITE_PERCENT: Final = 50
"""Until then a rewriter may take; a language model takes most of what it is given."""
_AFTER_SOURCES: Final = sum(map(SHARES.__getitem__, ("fuse", "rerank", "diversify", "provenance", "margin")))


class Stages(NamedTuple):
    """The budgets of one request; shares are rounded down, what is kept back for later stages is rounded up."""

    deadline_ms: int

    def share_ms(self, stage: str) -> int:
        """Return what a stage of `SHARES` may take."""
        return self.deadline_ms * SHARES[stage] // 100

    @property
    def fan_out_ms(self) -> int:
        """Return what asking the sources may take; at least 1."""
        return max(1, self.share_ms("fan_out"))

    @property
    def margin_ms(self) -> int:
        """Return how long before the deadline every wait for a source has ended: its share, and at least `LEAST_MARGIN_MS`."""
        return max(LEAST_MARGIN_MS, self.share_ms("margin"))

    @property
    def post_retrieval_ms(self) -> int:
        """Return what is kept back for all that comes after the sources."""
        return -(-self.deadline_ms * _AFTER_SOURCES // 100)

    @property
    def fan_out_ends_ms(self) -> int:
        """Return when the sources are given up, in milliseconds since the request began; at least 1, at most the deadline."""
        return max(1, self.deadline_ms - self.post_retrieval_ms)

    @property
    def rewriting_ends_ms(self) -> int:
        """Return when the rewriter is given up, in milliseconds since the request began; at least 1."""
        return max(1, self.deadline_ms * REWRITE_PERCENT // 100)

    @property
    def plain_begins_ms(self) -> int:
        """Return when a question that nobody has understood yet is searched as it is written, beside: a third of the search is left."""
        return max(1, self.fan_out_ends_ms * 2 // 3)

    def encoding_ends_ms(self, elapsed_ms: float) -> float:
        """Return when the encoder is given up that is asked now: half of the time until then is for searching."""
        return (self.fan_out_ends_ms + elapsed_ms) / 2

    def ends_ms(self, stage: str) -> int:
        """Return when a stage after the sources ends: what comes later keeps its shares, and at least `LEAST_MARGIN_MS`."""
        names = list(SHARES)
        later = sum(SHARES[name] for name in names[names.index(stage) + 1 :])
        return max(1, self.deadline_ms - max(LEAST_MARGIN_MS, -(-self.deadline_ms * later // 100)))

    def room_ms(self, remaining_ms: int) -> int:
        """Return how much of the fan-out's share is left when so much of the deadline is; 0 only when nothing is."""
        return max(0, min(remaining_ms, max(1, min(self.fan_out_ms, self._before_reserve(remaining_ms)))))

    def wait_ms(self, p99_ms: int, remaining_ms: int) -> int:
        """Return how long a source is waited for: 1.5 times its p99, but no longer than until the sources are given up.

        At least 1 and never past the deadline; 0 only when nothing of the deadline is left.
        """
        return max(0, min(remaining_ms, max(1, min(-(-3 * p99_ms // 2), self._before_reserve(remaining_ms)))))

    def _before_reserve(self, remaining_ms: int) -> int:
        return remaining_ms - max(self.margin_ms, self.post_retrieval_ms)
