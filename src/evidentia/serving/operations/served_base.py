"""The base behind the door: opened once, and asked as whoever is connected."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import msgspec

from evidentia.base.async_base import AsyncBase
from evidentia.base.base_ingest import ingest_into
from evidentia.base.enforcement_point import EnforcementPoint
from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ReceiptId, TenantId
from evidentia.policy.floor import Standing, local_standing, token_standing
from evidentia.policy.protocol_profiles import profile_of
from evidentia.wiring.embedded import open_base

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.control import TokenInfo
    from evidentia.contracts.documents import IngestOptions
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.protocol import Profile
    from evidentia.contracts.receipts import Receipt
    from evidentia.contracts.reports import IngestReport
    from evidentia.contracts.settings import Settings
    from evidentia.wiring.components import BaseComponents
    from evidentia.wiring.governance_runtime import GovernanceRuntime

DEFAULT_PROFILE = "first_call"


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

    def base_for(self, principal: Principal, token: TokenInfo | None, *, names_mode: bool = False) -> AsyncBase:
        """Return the base as a principal sees it under the floor of a token; it shares everything that is open, so nobody closes it.

        `names_mode` says that the request names how it wants to be governed.
        """
        return AsyncBase(self._parts, principal=principal, standing=self.standing(principal, token), names_mode=names_mode)

    def base_of(self, tenant: str, token: TokenInfo | None = None) -> AsyncBase:
        """Return the base as the owner of one tenant sees it, for what admins and auditors do; nobody closes it either."""
        settings = self.settings.governance
        standing = Standing(settings, tenant) if token is None else token_standing(settings, token)
        return AsyncBase(self._parts, principal=self.owner_of(tenant), standing=standing)

    def standing(self, principal: Principal, token: TokenInfo | None) -> Standing:
        """Return under which floor somebody asks; without a token, the principal that the server was started as."""
        settings = self.settings.governance
        return local_standing(settings, principal) if token is None else token_standing(settings, token)

    def enforcement_point(self, principal: Principal, token: TokenInfo) -> EnforcementPoint:
        """Return where what somebody asks for and is handed passes the policies, for what no method of a base answers."""
        return EnforcementPoint(self._parts, principal, self.standing(principal, token))

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

    async def receipt(self, receipt_id: str, *, asker: Principal) -> Receipt:
        """Return a receipt to whom it was given, or to the owner of that tenant.

        Raises:
            NotFoundError: There is none, or it is somebody else's: the two are not told apart.
        """
        receipt = await asyncio.to_thread(self._parts.receipts.read, ReceiptId(receipt_id))
        caller = receipt.request.principal
        is_own = caller is not None and (caller == asker or (asker.is_owner and asker.tenant == caller.tenant))
        if not is_own:
            raise NotFoundError("receipt", receipt_id)
        return receipt

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
