"""The base behind the door: opened once, and asked as whoever is connected."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import msgspec

from evidentia.base.async_base import AsyncBase
from evidentia.base.base_ingest import ingest_into
from evidentia.base.visible_content import hidden_ids
from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ReceiptId, TenantId
from evidentia.policy.protocol_profiles import profile_of
from evidentia.wiring.embedded import open_base

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import IngestOptions
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.protocol import Profile
    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.reports import IngestReport
    from evidentia.contracts.settings import Settings
    from evidentia.wiring.components import BaseComponents
    from evidentia.wiring.governance_runtime import GovernanceRuntime

DEFAULT_PROFILE = "first_call"
_MASK_DIGITS = 16


class ServedBase:
    """One open base for any number of principals."""

    def __init__(self, parts: BaseComponents, *, profile: Profile | None = None) -> None:
        self.profile = profile or profile_of(DEFAULT_PROFILE)
        """What replies are checked against."""
        self._parts = parts
        self._is_closing = threading.Event()
        self._owner = AsyncBase(parts, principal=local_owner())

    @classmethod
    def open(cls, directory: Path, *, profile: Profile | None = None, control: GovernanceRuntime | None = None) -> ServedBase:
        """Open the base in a directory, governed by what is open already where that is given; whoever asks for it closes it."""
        if control is None:
            return cls(open_base(directory), profile=profile)
        return cls(open_base(directory, clock=control.clock, entropy=control.entropy, control=control), profile=profile)

    def base_for(self, principal: Principal) -> AsyncBase:
        """Return the base as a principal sees it; it shares everything that is open, so nobody closes it."""
        return AsyncBase(self._parts, principal=principal)

    def base_of(self, tenant: str) -> AsyncBase:
        """Return the base as the owner of one tenant sees it, for what admins and auditors do; nobody closes it either."""
        return AsyncBase(self._parts, principal=self.owner_of(tenant))

    def owner_of(self, tenant: str) -> Principal:
        """Return the owner of one tenant."""
        return msgspec.structs.replace(local_owner(), tenant=TenantId(tenant))

    @property
    def settings(self) -> Settings:
        """Return the settings of the base."""
        return self._parts.settings

    @property
    def directory(self) -> Path:
        """Return where the base is."""
        return self._parts.directory

    async def version(self) -> str:
        """Return what names the newest corpus version."""
        return (await self._owner.head()).corpus_version

    def warm(self) -> None:
        """Load what requests need; it blocks until it is there."""
        self._parts.warm()

    def now(self) -> datetime:
        """Return the present moment by the base's clock."""
        return self._parts.clock.now()

    async def receipt(self, receipt_id: str, *, asker: Principal, sees_others: bool = False) -> Receipt:
        """Return a receipt to whom it was given, to the owner of that tenant, and to who sees others' of the tenant.

        Raises:
            NotFoundError: There is none, or it is somebody else's: the two are not told apart.
        """
        receipt = await asyncio.to_thread(self._parts.receipts.read, ReceiptId(receipt_id))
        caller = receipt.request.principal
        is_others = (sees_others or asker.is_owner) and caller is not None and caller.tenant == asker.tenant
        if caller is None or not (caller == asker or is_others):
            raise NotFoundError("receipt", receipt_id)
        return receipt

    def keyed(self, value: str) -> str:
        """Return what stands for a hash or an id before those who may not know it; it blocks."""
        return self._parts.reader.keyed(value)

    def masks(self, names: Collection[str], *, principal: Principal) -> dict[str, str]:
        """Return what stands for those of the names that are ids of documents or chunks which a principal may not see; it blocks."""
        return {name: f"hidden-{self.keyed(name)[:_MASK_DIGITS]}" for name in hidden_ids(self._parts, principal, names)}

    def access_of(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, AccessRule]:
        """Return the access rules of those of the documents that are live, whoever may see them; it blocks."""
        return self._parts.reader.access_of(document_ids)

    def ingest(self, paths: list[Path], options: IngestOptions, *, is_embedding: bool) -> IngestReport:
        """Take in what lies below paths; it blocks, and closing ends the embedding with what is encoded by then."""
        return ingest_into(
            self._parts,
            paths,
            options,
            is_embedding=is_embedding,
            on_progress=None,
            on_embedding=None,
            is_stopped=self._is_closing.is_set,
        )

    async def close(self) -> None:
        """Give back what is held."""
        self._is_closing.set()
        await self._owner.close()
