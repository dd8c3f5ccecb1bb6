"""A way to break a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from trace_plans import Plan

    from evidentia.contracts.protocol import ProtocolRule


@dataclass(frozen=True)
class Way:
    """A way to break one rule in one profile."""

    rule: ProtocolRule
    name: str
    profile: str
    write: Callable[[Random, str], Plan]
    instead: tuple[ProtocolRule, ...] = ()
    """Rules one of which may be named in place of it, where the written rules overlap."""
    also: tuple[ProtocolRule, ...] = ()
    """Rules that are broken along with it."""


def ways(
    rule: ProtocolRule,
    name: str,
    write: Callable[[Random, str], Plan],
    *,
    profiles: tuple[str, ...] = ("first_call", "thorough"),
    instead: tuple[ProtocolRule, ...] = (),
    also: tuple[ProtocolRule, ...] = (),
) -> tuple[Way, ...]:
    """Return the same way for each profile."""
    return tuple(Way(rule=rule, name=name, profile=profile, write=write, instead=instead, also=also) for profile in profiles)
