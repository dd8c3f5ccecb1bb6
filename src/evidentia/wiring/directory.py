"""What asks each registered source in this process: objects that were attached, and whatever a descriptor's connection names."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import EvidentiaError, InvalidFieldError
from evidentia.contracts.ports import BlockingRetriever, NoteStore, Retriever, SourceAttachments
from evidentia.contracts.settings import OutboundSettings
from evidentia.contracts.sources import OUTBOUND, PUBLIC, REACH, SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, ConnectionKind
from evidentia.policy.floor import local_standing
from evidentia.sources.agent_notes import MemoryRetriever
from evidentia.sources.other_base import BaseRetriever
from evidentia.wiring.settings_file import beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.sources import SourceConnection
    from evidentia.wiring.embedded import EmbeddedComponents


class Directory(SourceAttachments):
    """Implements `SourceDirectory`. Thread safe; what a connection names is opened when it is first asked."""

    def __init__(
        self,
        directory: Path,
        *,
        notes: NoteStore,
        open_base: Callable[[Path], EmbeddedComponents],
        outbound: OutboundSettings | None = None,
    ) -> None:
        self._directory = directory
        self._outbound = outbound or OutboundSettings()
        self._notes = notes
        self._open_base = open_base
        self._lock = threading.Lock()
        self._attached: dict[SourceId, Retriever | BlockingRetriever] = {}
        self._made: dict[SourceId, tuple[SourceDescriptor, Retriever | BlockingRetriever]] = {}
        self._opened: dict[str, EmbeddedComponents] = {}
        self._dropped: list[Retriever | BlockingRetriever] = []

    def attach(self, source_id: SourceId, retriever: Retriever | BlockingRetriever) -> None:
        """Let an object answer for a source, in this process."""
        with self._lock:
            self._attached[source_id] = retriever

    def detach(self, source_id: SourceId) -> None:
        """Let nothing answer for a source any more."""
        with self._lock:
            self._attached.pop(source_id, None)
            self._drop(source_id)

    def retriever(self, descriptor: SourceDescriptor) -> Retriever | BlockingRetriever | None:
        """Return what asks a source; None when nothing is attached that could."""
        source = descriptor.source_id
        if descriptor.connection.kind in (ConnectionKind.PYTHON, ConnectionKind.OWN):
            return self._attached.get(source)
        with self._lock:
            made = self._made.get(source)
            if made is None or made[0] != descriptor:
                self._drop(source)
                made = self._made[source] = (descriptor, self._make(descriptor))
            return made[1]

    async def close(self) -> None:
        """Give back every connection."""
        with self._lock:
            made, opened = [*self._dropped, *(each for _, each in self._made.values())], list(self._opened.values())
            self._made, self._opened, self._attached, self._dropped = {}, {}, {}, []
        for retriever in made:
            closing = getattr(retriever, "aclose", None)
            if closing is not None:
                await closing()
        for parts in opened:
            parts.close()

    def _drop(self, source_id: SourceId) -> None:
        """Keep what nobody asks any more until it can be closed, on the loop that asked."""
        made = self._made.pop(source_id, None)
        if made is not None:
            self._dropped.append(made[1])

    def _make(self, descriptor: SourceDescriptor) -> Retriever | BlockingRetriever:
        connection = descriptor.connection
        if connection.kind is ConnectionKind.MEMORY:
            return MemoryRetriever(self._notes, authority_tier=AuthorityTier(connection.options.get("authority", "ephemeral")))
        if connection.kind is ConnectionKind.BASE:
            address = str(self._directory / connection.address)
            return BaseRetriever(partial(self._ask_base, address), version=partial(self._base_version, address))
        if connection.kind is ConnectionKind.REMOTE:
            from evidentia.backends.remote.remote_retriever import RemoteEvidentia

            is_public = connection.options.get(REACH) == PUBLIC
            outbound = self._outbound_of(connection)
            return RemoteEvidentia(connection.address, key_variable=connection.key_variable, is_public=is_public, outbound=outbound)
        from evidentia.backends.mcp.mcp_retriever import McpTool

        return McpTool(connection, outbound=self._outbound_of(connection))

    def _outbound_of(self, connection: SourceConnection) -> OutboundSettings:
        """Return how a source is reached: as its own options say, else as the settings do."""
        own = {name.removeprefix(OUTBOUND): value for name, value in connection.options.items() if name.startswith(OUTBOUND)}
        if not own:
            return self._outbound
        unknown = sorted(own.keys() - {"authorities", "certificate", "private_key", "proxy", "proxy_key_variable"})
        if unknown:
            raise InvalidFieldError("connection.options", f"there is no option '{OUTBOUND}{unknown[0]}'")
        return beside(msgspec.structs.replace(self._outbound, **own), directory=self._directory)

    async def _ask_base(self, address: str, request: EvidenceRequest) -> EvidenceResponse:
        """Ask another base for its own evidence; the sources it may ask in turn are not asked, so that nobody asks in circles."""
        parts = await asyncio.to_thread(self._other, address)
        principal = request.principal
        if principal is None:
            raise AssertionError
        floor = local_standing(parts.settings.governance, principal).floor(request.agent_name or "")
        if request.governance.rank < floor.rank:
            request = msgspec.structs.replace(request, governance=floor)
        return await parts.retrieve(request, principal=principal, local_only=True)

    def _base_version(self, address: str) -> str:
        with suppress(EvidentiaError):
            return self._other(address).reader.commit_record(is_public=True)[0].evidence_state
        return ""

    def _other(self, address: str) -> EmbeddedComponents:
        with self._lock:
            if address not in self._opened:
                self._opened[address] = self._open_base(Path(address))
            return self._opened[address]
