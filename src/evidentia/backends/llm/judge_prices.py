"""What a judgement costs: list prices per million tokens, in millionths of a dollar, so that costs are integers.

Providers change their prices; whoever needs exact costs passes a table of their own. A model without a price costs 0 here.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKENS_PER_PRICE: Final = 1_000_000
_RELEASE: Final = re.compile(r"-(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|latest)\Z")

_Micro = Annotated[int, msgspec.Meta(ge=0)]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Millionths of a dollar for a million tokens in and a million tokens out."""

    input_micro: _Micro
    output_micro: _Micro


PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "gpt-4o-mini": Price(input_micro=150_000, output_micro=600_000),
        "gpt-4o": Price(input_micro=2_500_000, output_micro=10_000_000),
        "gpt-4.1-mini": Price(input_micro=400_000, output_micro=1_600_000),
        "gpt-4.1": Price(input_micro=2_000_000, output_micro=8_000_000),
        "claude-3-5-haiku": Price(input_micro=800_000, output_micro=4_000_000),
        "claude-sonnet-4": Price(input_micro=3_000_000, output_micro=15_000_000),
        "llama-3.1-8b-instant": Price(input_micro=50_000, output_micro=80_000),
        "llama-3.3-70b-versatile": Price(input_micro=590_000, output_micro=790_000),
        "mixtral-8x7b-32768": Price(input_micro=240_000, output_micro=240_000),
    }
)
"""List prices of the summer of 2025, by the name without the date of a release."""


def price_of(model: str, *, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a model, else that of the model whose release it is; None where neither has one."""
    return prices.get(model) or prices.get(_RELEASE.sub("", model))


def cost_micro(model: str, *, input_tokens: int, output_tokens: int, prices: Mapping[str, Price]) -> int:
    """Return the cost in millionths of a dollar, rounded up; 0 where no price is known."""
    price = price_of(model, prices=prices)
    if price is None:
        return 0
    return -(-(input_tokens * price.input_micro + output_tokens * price.output_micro) // _TOKENS_PER_PRICE)
