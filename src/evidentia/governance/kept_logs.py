"""What care, reading and replay of the decision log need beyond appending to it: the lines of every log, and a way to change them."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ports import DecisionLog
from evidentia.provenance.decision_chain import record_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.provenance.decision_chain import LogPart


class KeptLogs(DecisionLog, Protocol):
    """Gives the lines of every log in a base. Thread safe."""

    def parts(self) -> Sequence[LogPart]:
        """Return the parts of all logs, the oldest log first."""
        ...

    def blocks(self, part: LogPart) -> Iterator[bytes]:
        """Yield a part in pieces of whole lines; only the last may lack its end."""
        ...

    def rewrite(self, part: LogPart, change: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Put a changed copy in the place of a part, at once or not at all; BaseBusyError while another process writes to it.

        Parts before one that then opens with a checkpoint are removed.
        """
        ...


def logs_with_parts(logs: KeptLogs) -> list[tuple[str, tuple[LogPart, ...]]]:
    """Return every log with its parts, the oldest first."""
    return [(log, tuple(parts)) for log, parts in groupby(logs.parts(), key=attrgetter("log"))]


@contextmanager
def readable(log: str) -> Iterator[None]:
    """Say of which log a line could not be read."""
    try:
        yield
    except ValueError as error:  # a MsgspecError is one
        raise BaseDamagedError(f"decision log '{log}'", f"a line cannot be read ({error}); verify the log to see which") from error


def lines_of(logs: KeptLogs, parts: Iterable[LogPart]) -> Iterator[bytes]:
    """Yield the lines of parts of one log, without their ends."""
    return record_lines(block for part in parts for block in logs.blocks(part))
