"""What is there where nobody can do a piece of work beside whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import Aside

Answer = TypeVar("Answer")


class _InPlace:
    """Implements `Aside`: all work is done when it is waited for, by whoever waits."""

    def begin(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Return the work itself."""
        return work


IN_PLACE: Final[Aside] = _InPlace()
