"""This process among those of one server: alone, one that writes, or one that reads and has another write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.serving.hosting.forwarding import Forwarder, OwnWriter

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.serving.hosting.forwarding import Writers
    from evidentia.serving.operations.server_context import ServerContext


class ProcessRole(NamedTuple):
    """How many processes there are, where the writing ones are, and whether this is one of them."""

    workers: int = 1
    writers: Writers | None = None
    """None for a process that is alone."""
    own: Path | None = None
    """Where this process is asked, when it is one that writes."""

    @property
    def is_reader(self) -> bool:
        """Tell whether another process writes."""
        return self.writers is not None and self.own is None

    def writer_for(self, context: ServerContext, *, timeout_s: float) -> Forwarder | OwnWriter | None:
        """Return who does what changes something on a plane; None when that is simply done."""
        if self.writers is None:
            return None
        if self.own is None:
            return Forwarder(self.writers, timeout_s=timeout_s)
        return OwnWriter(context, self.writers, own=self.own, timeout_s=timeout_s)


ALONE: Final = ProcessRole()
