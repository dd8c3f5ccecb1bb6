"""The toolbox: the retrieval tools over one base, as one principal, with results in the form that the protocol fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from evidentia.agents.tools.local_files import LocalFiles
from evidentia.agents.tools.results import ToolResult, failure
from evidentia.agents.tools.table_results import table_result
from evidentia.agents.tools.text_results import text_result
from evidentia.contracts.errors import EvidentiaError, InvalidFieldError
from evidentia.text.marks import NO_SPREADSHEET

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.base.async_base import AsyncBase

DEFAULT_TOP_K: Final = 100
MAX_TOP_K: Final = 200
MAX_QUERY_LENGTH: Final = 10_000


class Toolbox:
    """`rag_retrieve`, `table_rag_retrieve` and, below an allowed root, `local_file_retrieve`. Close it, or use it as a context manager.

    A query that cannot be right raises InvalidFieldError; what goes wrong on the way to an answer is a result that says so.
    """

    def __init__(
        self, base: AsyncBase, *, agent_name: str = "", root: Path | None = None, deadline_ms: int = 2_000, token_budget: int | None = None
    ) -> None:
        self._base = base
        self._agent_name = agent_name or None
        self._deadline_ms = deadline_ms
        self._token_budget = token_budget
        self._local = LocalFiles(root) if root is not None else None

    async def rag_retrieve(self, query: str, top_k: int = DEFAULT_TOP_K) -> ToolResult:
        """Return the pieces of documents that answer a query best, with pages, images, and how to cite them."""
        _check(query, top_k)
        try:
            response = await self._base.retrieve(
                query, limit=top_k, agent_name=self._agent_name, latency_deadline_ms=self._deadline_ms, token_budget=self._token_budget
            )
        except InvalidFieldError:
            raise
        except EvidentiaError as error:
            return failure(str(error))
        return msgspec.structs.replace(text_result(response.fragments, receipt_id=response.receipt_id), response=response)

    async def table_rag_retrieve(self, query: str) -> ToolResult:
        """Return the rows of spreadsheets that answer a question; where the caller can see none, what `rag_retrieve` finds."""
        _check(query, DEFAULT_TOP_K)
        try:
            answer = await self._base.ask_tables(query)
        except InvalidFieldError:
            raise
        except EvidentiaError as error:
            return failure(str(error))
        if answer.has_tables:
            return table_result(answer)
        found = await self.rag_retrieve(query)
        return msgspec.structs.replace(found, text=f"{NO_SPREADSHEET}\n{found.text}", answer=answer)

    async def local_file_retrieve(self, query: str, top_k: int = 10) -> ToolResult:
        """Return pieces of files below the allowed root."""
        _check(query, top_k)
        if self._local is None:
            raise InvalidFieldError("root", "local files may not be searched here; give the toolbox a directory that may")
        try:
            return text_result(await self._local.search(query, limit=top_k), receipt_id=None)
        except InvalidFieldError:
            raise
        except EvidentiaError as error:
            return failure(str(error))

    async def close(self) -> None:
        """Forget what was read of local files; the base stays open."""
        if self._local is not None:
            await self._local.close()

    async def __aenter__(self) -> Self:
        """Use the tools."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self.close()


def _check(query: object, top_k: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidFieldError("query", "expected a question or words to search for")
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidFieldError("query", f"has {len(query)} characters, and {MAX_QUERY_LENGTH} are the most")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise InvalidFieldError("top_k", f"expected a whole number from 1 to {MAX_TOP_K}, not {top_k!r:.50}")
