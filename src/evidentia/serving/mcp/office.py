"""The base behind the door: opened once, and asked as whoever is connected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evidentia.base.async_base import AsyncBase
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ReceiptId
from evidentia.policy.protocol_profiles import profile_of
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.access import Principal
    from evidentia.contracts.protocol import Profile
    from evidentia.contracts.receipts import Receipt
    from evidentia.wiring.embedded import EmbeddedParts

DEFAULT_PROFILE = "first_call"


class Office:
    """One open base for any number of principals."""

    def __init__(self, parts: EmbeddedParts, *, profile: Profile | None = None) -> None:
        self.profile = profile or profile_of(DEFAULT_PROFILE)
        """What replies are checked against."""
        self._parts = parts
        self._owner = AsyncBase(parts, principal=local_owner())

    @classmethod
    def open(cls, directory: Path, *, profile: Profile | None = None) -> Office:
        """Open the base in a directory; whoever asks for it closes it."""
        return cls(open_parts(directory), profile=profile)

    def base_for(self, principal: Principal) -> AsyncBase:
        """Return the base as a principal sees it; it shares everything that is open, so nobody closes it."""
        return AsyncBase(self._parts, principal=principal)

    async def version(self) -> str:
        """Return what names the newest corpus version."""
        return (await self._owner.head()).corpus_version

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

    async def close(self) -> None:
        """Give back what is held."""
        await self._owner.close()
