"""The base behind the door: opened once, and asked as whoever is connected."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.base.async_base import AsyncBase
from evidentia.base.base_ingest import ingest_into
from evidentia.base.enforcement_point import EnforcementPoint
from evidentia.base.visible_content import hidden_ids
from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ReceiptId, TenantId
from evidentia.engine.request_checks import check_cost
from evidentia.foundation.offload import ThreadPoolBlockingExecutor, on_behalf_of
from evidentia.policy.floor import Standing, local_standing, token_standing
from evidentia.policy.protocol_profiles import profile_of
from evidentia.serving.operations.api_errors import TOO_MANY, ApiError
from evidentia.wiring.embedded import open_base

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.control import TokenInfo
    from evidentia.contracts.documents import IngestOptions
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse, StreamEvent
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
        self._retrieve = parts.retrieve
        self._open_costs = OpenCosts()
        self._parts = dataclasses.replace(parts, retrieve=partial(self._retrieve_bounded, None))
        """Whichever door asks, and whatever it asks through: what a request may cost is bounded here."""
        self._is_closing = threading.Event()
        self.ingest_places = threading.BoundedSemaphore(parts.settings.limits.ingests)
        """Taken by each tenant that ingests, so that no more than so many read at a time."""
        self.ingest_threads = ThreadPoolBlockingExecutor(max_threads=parts.settings.limits.ingests)
        """Threads of their own: an ingest takes minutes, and those that answer are few."""
        self._owner = AsyncBase(parts, principal=local_owner())

    @classmethod
    def open(cls, directory: Path, *, profile: Profile | None = None, control: GovernanceRuntime | None = None) -> ServedBase:
        """Open the base in a directory, governed by what is open already where that is given; whoever asks for it closes it."""
        if control is None:
            return cls(open_base(directory), profile=profile)
        return cls(open_base(directory, clock=control.clock, entropy=control.entropy, control=control), profile=profile)

    def base_for(self, principal: Principal, token: TokenInfo | None, *, names_mode: bool = False) -> AsyncBase:
        """Return the base as a principal sees it under the floor of a token; it shares everything that is open, so nobody closes it.

        `names_mode` says that the request names how it wants to be governed. A token's own bound on what a request may cost is never above
        that of the server.
        """
        request_mb = None if token is None else token.facts.limits.request_mb
        parts = self._parts
        if request_mb is not None:
            parts = dataclasses.replace(parts, retrieve=partial(self._retrieve_bounded, request_mb))
        return AsyncBase(parts, principal=principal, standing=self.standing(principal, token), names_mode=names_mode)

    async def _retrieve_bounded(
        self,
        request_mb: int | None,
        request: EvidenceRequest,
        *,
        principal: Principal,
        watch: Callable[[StreamEvent], None] | None = None,
        prefetch: bool = False,
        remarks: Sequence[str] = (),
    ) -> EvidenceResponse:
        """Answer a request whose cost is within bounds, once what the same caller has asked for leaves room for it."""
        settings = self.settings
        max_mb = settings.limits.served_request_mb
        is_own = request_mb is not None and request_mb < max_mb
        max_mb, limit = (request_mb or max_mb, "the token's request_mb") if is_own else (max_mb, "limits.served_request_mb")
        cost_mb = check_cost(
            request, max_mb=max_mb, limit=limit, candidates=settings.ranking.candidates, sources=settings.sources.most_per_part
        )
        wait_s = request.latency_deadline_ms / 1000
        caller = f"{principal.tenant}/{principal.principal_id}"
        async with self._open_costs.hold(caller, cost_mb + 1, most=max_mb, wait_s=wait_s):
            with on_behalf_of(caller):
                return await self._retrieve(request, principal=principal, watch=watch, prefetch=prefetch, remarks=remarks)

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
        """Take in what lies below paths, beside others; it blocks, and closing ends the embedding with what is encoded by then."""
        return ingest_into(
            self._parts,
            paths,
            options,
            is_embedding=is_embedding,
            on_progress=None,
            on_embedding=None,
            is_stopped=self._is_closing.is_set,
            max_s=self.settings.limits.ingest_s,
        )

    async def close(self) -> None:
        """Give back what is held."""
        self._is_closing.set()
        await self.ingest_threads.close()
        await self._owner.close()


class OpenCosts:
    """What the open requests of each caller may hold together; whoever asks for more waits for its own requests, and nobody else's.

    A heavy request counts for three quarters of all that a caller may hold, so that there is one at a time, and room for ordinary ones.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, list[tuple[int, asyncio.Future[None]]]] = {}

    @asynccontextmanager
    async def hold(self, caller: str, cost: int, *, most: int, wait_s: float) -> AsyncIterator[None]:
        """Hold so much for a caller, who waits for room as long as its request may take; more than all of it counts as all of it."""
        cost = min(most, cost if cost < HEAVY_MB else max(cost, most * 3 // 4))
        if self._held[caller] + cost <= most:
            self._held[caller] += cost
        else:
            await self._room(caller, cost, wait_s=wait_s)
        try:
            yield
        finally:
            self._give_back(caller, cost, most=most)

    async def _room(self, caller: str, cost: int, *, wait_s: float) -> None:
        """Wait until so much is held for a caller."""
        queue = self._waiting.setdefault(caller, [])
        if len(queue) >= MAX_WAITING:
            raise _too_much()
        turn = (cost, asyncio.get_running_loop().create_future())
        queue.append(turn)
        try:
            async with asyncio.timeout(wait_s):
                await turn[1]
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn in queue:
                queue.remove(turn)
            else:  # it was given what it will not use
                self._held[caller] -= cost
            if isinstance(error, TimeoutError):
                raise _too_much() from None
            raise

    def _give_back(self, caller: str, cost: int, *, most: int) -> None:
        """Give back what was held to those who wait and for whom it is enough, in their order."""
        self._held[caller] -= cost
        queue = self._waiting.get(caller, [])
        for turn in list(queue):
            if self._held[caller] + turn[0] <= most:
                self._held[caller] += turn[0]
                queue.remove(turn)
                turn[1].set_result(None)
        if not queue:
            self._waiting.pop(caller, None)
        if not self._held[caller]:
            del self._held[caller]


HEAVY_MB: Final = 24
"""From here on a request takes seconds; 100 fragments for 16 parts, or 50 that are explained, stay below."""
MAX_WAITING: Final = 100
"""More requests than this of one caller do not wait for each other."""


def _too_much() -> ApiError:
    message = "other requests of this caller are still being answered, and hold all that one caller may"
    hint = "wait for their answers, or ask for less in each; see limits.served_request_mb"
    return ApiError(TOO_MANY, "too_much_at_once", message, hint=hint, headers={"retry-after": "1"})
