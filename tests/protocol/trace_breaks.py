"""Ways to break one rule of the protocol in a correct trace; each says what has to be found and what may be found besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trace_breaks_calls import CALL_WAYS
from trace_breaks_reply import REPLY_WAYS
from trace_generator import Case

from evidentia.contracts.protocol import ProtocolRule

if TYPE_CHECKING:
    from random import Random

    from trace_way import Way

WAYS: Final[tuple[Way, ...]] = (*CALL_WAYS, *REPLY_WAYS)
"""Every way to break a rule, once for each profile that has the rule."""


def break_one(way: Way, rng: Random, *, name: str) -> Case:
    """Return a trace that breaks the rule of a way and no other, but for what the way allows."""
    plan = way.write(rng, way.profile)
    expected = frozenset({way.rule, *way.instead})
    # A reply that goes out although a question of the self-check would be answered with no is also released against it.
    also = {*way.also, ProtocolRule.SELF_CHECK} if way.profile == "first_call" else {*way.also}
    return Case(
        trace=plan.trace(name), expected=expected, also=frozenset(also) - expected, way=f"{way.profile}/{way.rule.value}/{way.name}"
    )
