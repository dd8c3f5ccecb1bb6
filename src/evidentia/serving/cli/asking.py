"""A base opened by whoever asks: its owner, or the principal after `--as`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.base.sync_base import connect
from evidentia.serving.cli.principals import principal_from

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.serving.cli.invocation import Invocation


def asking(call: Invocation, caller: str | None) -> Base:
    """Open the base of a call; a caller that cannot be understood is refused before anything is opened."""
    return connect(call.base, principal=None if caller is None else principal_from(caller))
