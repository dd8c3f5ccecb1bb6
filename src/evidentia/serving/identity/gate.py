"""The way in to a served base, made from its settings: one admission for all doors, with limits and signed tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from evidentia.serving.identity.admission import Admission
from evidentia.serving.identity.limits import Limiter
from evidentia.wiring.identity import open_usage, signed_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import ServerSettings
    from evidentia.serving.identity.callers import Grants
    from evidentia.serving.operations.parts import TokenKeeper


class GateParts(Protocol):
    """What a way in is made of."""

    @property
    def directory(self) -> Path:
        """Return where the base is."""
        ...

    @property
    def tokens(self) -> TokenKeeper:
        """Return what knows tokens."""
        ...

    @property
    def clock(self) -> Clock:
        """Return what tells the time."""
        ...


class LooseParts(NamedTuple):
    """The parts of a way in, where there is no control that has them."""

    directory: Path
    tokens: TokenKeeper
    clock: Clock


def make_admission(parts: GateParts, settings: ServerSettings, *, workers: int = 1, grants: Grants | None = None) -> Admission:
    """Return who lets in, in one of so many processes; whoever asks for it closes it when the last request was answered.

    Raises:
        InvalidFieldError: The settings about signed tokens are not complete.
    """
    signed = signed_tokens(settings.jwt, directory=parts.directory, clock=parts.clock)
    limiter = Limiter(
        clock=parts.clock,
        requests_per_minute=settings.requests_per_minute,
        requests_per_day=settings.requests_per_day,
        usage=open_usage(parts.directory, clock=parts.clock),
        workers=workers,
    )
    return Admission(parts.tokens, grants=grants, limiter=limiter, signed=signed)
