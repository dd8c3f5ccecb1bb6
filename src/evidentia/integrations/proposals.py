"""What a framework's retriever returns, as candidates of a source.

Nothing is checked or cut here: that is done by the intake, which also says what it refused.
"""

from __future__ import annotations

from datetime import date, datetime
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.contracts.retrieval import Candidate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

ORIGIN_KEYS = ("source", "url", "uri", "link", "file_path", "path", "file_name")
TITLE_KEYS = ("title", "file_name")
UPDATED_KEYS = ("updated_at", "last_modified", "last_modified_date", "modified_at")
_MILLION = 1_000_000


class Proposal(NamedTuple):
    """One document of a framework."""

    content: str
    own_id: str
    score: object
    metadata: Mapping[Any, object]  # Any: frameworks promise texts as names, and do not check


class AsyncSource:
    """A source whose retriever is asked on the event loop."""

    def __init__(self, find: Callable[[str, int], Awaitable[Iterable[Proposal]]]) -> None:
        self._find = find

    async def retrieve(self, query: str, *, limit: int) -> list[Candidate]:
        """Return what the retriever finds, best first; it may return more than `limit`."""
        return candidates_of(await self._find(query, limit))


class BlockingSource:
    """A source whose retriever blocks, so that it is asked on a thread."""

    def __init__(self, find: Callable[[str, int], Iterable[Proposal]]) -> None:
        self._find = find

    def retrieve(self, query: str, *, limit: int) -> list[Candidate]:
        """Return what the retriever finds, best first; it may return more than `limit`."""
        return candidates_of(self._find(query, limit))


def candidates_of(proposals: Iterable[Proposal]) -> list[Candidate]:
    """Return candidates in the order of the proposals.

    Scores are kept when all of them are from 0 to 1 and none is higher than the one before. Others are distances, or logits, or of
    several kinds, and the order of the reply says more.
    """
    found = list(proposals)
    scores = _scores(found)
    return [_candidate(proposal, score) for proposal, score in zip(found, scores, strict=True)]


def _scores(proposals: Sequence[Proposal]) -> list[float | None]:
    read = [_score(proposal.score) for proposal in proposals]
    millionths = [round(score * _MILLION) for score in read if score is not None]
    if len(millionths) < len(read) or millionths != sorted(millionths, reverse=True):
        return [None] * len(read)
    return read


def _score(given: object) -> float | None:
    score = float(given) if isinstance(given, Real) else -1.0
    return score if 0 <= score <= 1 else None


def _candidate(proposal: Proposal, score: float | None) -> Candidate:
    metadata = _texts(proposal.metadata)
    return Candidate(
        content=proposal.content,
        own_id=proposal.own_id,
        score=score,
        origin=_first(metadata, ORIGIN_KEYS),
        title=_first(metadata, TITLE_KEYS),
        updated_at=_moment(metadata),
        metadata=metadata,
    )


def _texts(metadata: Mapping[Any, object]) -> dict[str, str]:  # Any: as in a proposal
    """Return the metadata that can be said in one word or line, ordered by name; lists and trees are left out."""
    texts = {name: text for name, value in metadata.items() if isinstance(name, str) and (text := _text(value)) is not None}
    return dict(sorted(texts.items()))


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    return None


def _first(metadata: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((metadata[key] for key in keys if metadata.get(key)), "")


def _moment(metadata: Mapping[str, str]) -> datetime | None:
    """Return when it was changed, if it says so with a time zone: without one it could be another day."""
    for key in UPDATED_KEYS:
        try:
            moment = datetime.fromisoformat(metadata.get(key, ""))
        except ValueError:
            continue
        if moment.tzinfo is not None:
            return moment
    return None
