"""Searching files below one allowed directory, for the last step of a protocol that knows one.

What is below the root is read as an ingest reads it: links that lead out are not followed, ignored files are left alone, parsers run
in processes of their own. It comes into a base of its own in a temporary directory, which goes when the search is closed.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evidentia.base.async_base import AsyncBase, aconnect
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import DocumentId
from evidentia.contracts.vocabulary import RetrievalMode

if TYPE_CHECKING:
    from evidentia.contracts.evidence import EvidenceFragment

SOURCE = "local"


class LocalFiles:
    """Finds text in the files below a root; files that changed since are read again."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        if not self._root.is_dir():
            raise InvalidFieldError("root", f"'{root}' is no directory; name the one whose files may be searched")
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._base: AsyncBase | None = None
        self._lock = asyncio.Lock()

    async def search(self, query: str, *, limit: int) -> tuple[EvidenceFragment, ...]:
        """Return the best pieces of files below the root, each named by its path below it."""
        async with self._lock:
            base = await self._opened()
            await base.ingest([self._root], source=SOURCE, authority="user", prune=True, embed=False)
        response = await base.retrieve(query, limit=limit, mode=RetrievalMode.LEXICAL, receipt=False)
        return tuple(_below_root(fragment) for fragment in response.fragments)

    async def close(self) -> None:
        """Forget everything that was read."""
        if self._base is not None:
            await self._base.close()
            self._base = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    async def _opened(self) -> AsyncBase:
        if self._base is None:
            self._directory = tempfile.TemporaryDirectory(prefix="evidentia-local-")
            self._base = await aconnect(Path(self._directory.name) / "base", init=True)
        return self._base


def _below_root(fragment: EvidenceFragment) -> EvidenceFragment:
    return msgspec.structs.replace(fragment, document_id=DocumentId(fragment.document_id.removeprefix(f"{SOURCE}:")))
