"""What one caller has open at a time is bounded; who asks for more waits for its own requests, and nobody else does."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.served_base import HEAVY_MB, OpenCosts

MOST, ORDINARY = 128, 4
PATIENCE_S = 60.0


def held(costs: OpenCosts, caller: str, cost: int, *, wait_s: float = PATIENCE_S) -> AbstractAsyncContextManager[None]:
    return costs.hold(caller, cost, most=MOST, wait_s=wait_s)


async def count_that_fit(costs: OpenCosts, stack: AsyncExitStack, caller: str, cost: int) -> int:
    """Hold as often as there is room, and return how often that was."""
    for count in range(1_000):
        try:
            await stack.enter_async_context(held(costs, caller, cost, wait_s=0))
        except ApiError:
            return count
    raise AssertionError


def test_who_waits_too_long_is_told_to_come_back() -> None:
    async def run() -> ApiError:
        costs = OpenCosts()
        async with held(costs, "a", MOST):
            with pytest.raises(ApiError) as refusal:
                await held(costs, "a", ORDINARY, wait_s=0).__aenter__()
            return refusal.value

    refusal = asyncio.run(run())

    assert (429, "too_much_at_once", {"retry-after": "1"}) == (refusal.status, refusal.fault.code, refusal.headers)


@pytest.mark.parametrize(("cost", "fits"), [(ORDINARY, 32), (HEAVY_MB, 1), (MOST, 1), (10 * MOST, 1)])
def test_so_many_fit_and_others_are_not_held_up(cost: int, fits: int) -> None:
    async def run() -> tuple[int, int, int]:
        costs = OpenCosts()
        async with AsyncExitStack() as stack:
            first = await count_that_fit(costs, stack, "a", cost)
            other = await count_that_fit(costs, stack, "b", cost)
        async with AsyncExitStack() as stack:
            return first, other, await count_that_fit(costs, stack, "a", cost)

    assert (fits, fits, fits) == asyncio.run(run())


def test_beside_a_heavy_request_there_is_room_for_ordinary_ones() -> None:
    async def run() -> tuple[int, int]:
        costs = OpenCosts()
        async with AsyncExitStack() as stack:
            return await count_that_fit(costs, stack, "a", HEAVY_MB), await count_that_fit(costs, stack, "a", ORDINARY)

    assert (1, 8) == asyncio.run(run())


def test_who_waits_gets_what_is_given_back_and_who_leaves_takes_nothing_along() -> None:
    async def run() -> list[str]:
        costs, done = OpenCosts(), list[str]()

        async def ask(name: str) -> None:
            async with held(costs, "a", HEAVY_MB):
                done.append(name)

        async with held(costs, "a", HEAVY_MB):
            waiting = [asyncio.ensure_future(ask(name)) for name in ("first", "leaves", "third")]
            await asyncio.sleep(0)
            waiting[1].cancel()
            await asyncio.sleep(0)
            assert [] == done
        await asyncio.gather(*waiting, return_exceptions=True)
        async with AsyncExitStack() as stack:
            assert 1 == await count_that_fit(costs, stack, "a", HEAVY_MB)
        return done

    assert ["first", "third"] == asyncio.run(run())
