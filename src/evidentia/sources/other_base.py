"""Another base as a source: asked with the same question, caller and time, its fragments proposed with its own custody beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.contracts.ports import Retriever
from evidentia.provenance.custody_exchange import candidates_of, request_of, unfinished
from evidentia.sources.objects import Versioned

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import Candidate, SourceAsk


class BaseRetriever(Versioned, Retriever):
    """Implements `Retriever` for a base in this process.

    `retrieve` answers a request of that base, and keeps a receipt there, which the candidates name. `version` returns its newest
    `evidence_state`. Unless `asks_others`, that base answers with what it holds itself and asks no source of its own.
    """

    def __init__(
        self,
        retrieve: Callable[[EvidenceRequest], Awaitable[EvidenceResponse]],
        *,
        version: Callable[[], str] | None = None,
        asks_others: bool = False,
    ) -> None:
        super().__init__(version)
        self._retrieve = retrieve
        self._asks_others = asks_others

    async def retrieve(self, ask: SourceAsk) -> AsyncGenerator[Candidate]:
        """Yield its fragments in its order; one whose custody does not hold is named as a fault instead.

        Raises:
            ServiceUnavailableError: After what it found, when it ran out of time before it had looked everywhere.
        """
        response = await self._retrieve(request_of(ask, asks_others=self._asks_others))
        for candidate in candidates_of(response, principal=ask.principal):
            yield candidate
        if problem := unfinished(response):
            raise ServiceUnavailableError(problem)
