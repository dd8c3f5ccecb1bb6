"""What asks sources outside the base, and another base that is served somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.evidence import StreamEvent
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.ports.governance import Governor
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceDescriptor

Answer = TypeVar("Answer")


class Retriever(Protocol):
    """Finds candidate fragments in one source outside the base, without blocking."""

    def retrieve(self, ask: SourceAsk) -> AsyncIterator[object]:
        """Yield what the source proposes, best first, as `Candidate` or whatever it has; nothing it yields is believed as it is."""
        ...


class BlockingRetriever(Protocol):
    """Finds candidate fragments in one source outside the base, on a thread of its own."""

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
        """Yield what the source proposes, best first, as `Candidate` or whatever it has; nothing it yields is believed as it is."""
        ...


@runtime_checkable
class SupportsDataVersion(Protocol):
    """Can tell cheaply whether a source's data has changed, so that what was kept is not used after it has."""

    def data_version(self) -> str:
        """Return a word that is another one whenever an answer may be."""
        ...


class SourceDirectory(Protocol):
    """Knows what asks each registered source in this process."""

    def retriever(self, descriptor: SourceDescriptor) -> Retriever | BlockingRetriever | None:
        """Return what asks a source; None when nothing is attached that could."""
        ...


class SourceAttachments(SourceDirectory, Protocol):
    """A directory of sources to which objects of this process can be attached."""

    def attach(self, source_id: SourceId, retriever: Retriever | BlockingRetriever) -> None:
        """Let an object answer for a source, in this process."""
        ...

    def detach(self, source_id: SourceId) -> None:
        """Let nothing answer for a source any more."""
        ...


class SourceRegistry(Protocol):
    """Keeps the descriptors of sources in the base; every change is a new version of it."""

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, ordered by id."""
        ...

    def register(self, descriptor: SourceDescriptor) -> CommitSummary:
        """Add a source or replace its descriptor."""
        ...

    def remove(self, source_id: SourceId) -> CommitSummary:
        """Forget a source; one that has documents is refused."""
        ...


class OperationCalls(Protocol):
    """Asks a served base for its operations, by whichever protocol."""

    @property
    def host(self) -> str:
        """Return whom it speaks to, for messages."""
        ...

    async def call(
        self, operation: str, params: Mapping[str, object], kind: type[Answer], *, timeout_ms: int, is_repeatable: bool = False
    ) -> Answer:
        """Return the answer; faults come back as the errors that a local base raises.

        `params` are given by name. What `is_repeatable` may be asked once more where the way was broken.
        """
        ...

    def stream(self, operation: str, params: Mapping[str, object], *, timeout_ms: int) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of an answer as they come; `timeout_ms` is how long each may take."""
        ...

    def governor(self) -> Governor:
        """Return who governs runs there."""
        ...

    async def close(self) -> None:
        """Give back the connections."""
        ...
