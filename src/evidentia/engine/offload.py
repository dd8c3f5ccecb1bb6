"""What is there where nobody can do a piece of work beside whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import Offloader

Answer = TypeVar("Answer")


class InlineOffloader:
    """Implements `Offloader`: all work is done when it is waited for, by whoever waits."""

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Return the work itself."""
        return work


INLINE: Final[Offloader] = InlineOffloader()
