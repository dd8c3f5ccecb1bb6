"""What identifies those who come over the network, and counts what they ask for: the parts behind `[server]` in the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.backends.embedded.usage import EmbeddedUsage
from evidentia.contracts.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.backends.jwt.verifier import JwtVerifier
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import JwtSettings


def open_usage(directory: Path, *, clock: Clock) -> EmbeddedUsage:
    """Return what counts requests by the day; whoever asks for it closes it."""
    return EmbeddedUsage(directory, clock=clock)


def signed_tokens(settings: JwtSettings, *, directory: Path, clock: Clock) -> JwtVerifier | None:
    """Return what verifies signed tokens; None when the settings name no keys.

    Raises:
        InvalidFieldError: The settings would let in the wrong people, or nobody.
    """
    if not settings.keys:
        return None
    try:
        from evidentia.backends.jwt.verifier import JwtVerifier
    except ImportError as error:
        raise MissingExtraError("server", needed_for="server.jwt") from error
    return JwtVerifier(settings, keys_file=directory / settings.keys, clock=clock)
