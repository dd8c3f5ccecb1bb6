"""The bytes of a file as they are on disk, read once and bounded; refuses to wait for pipes or to follow a file that changed its kind."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.reasons import SkipReason

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_original(path: str, *, max_bytes: int) -> bytes:
    """Return the content of a regular file, or raise DocumentUnreadableError; the size is checked before anything is read."""
    with open_original(path) as original:
        size = os.fstat(original.fileno()).st_size
        if size > max_bytes:
            raise _too_large(size, max_bytes)
        try:
            content = original.read(max_bytes + 1)
        except OSError as error:
            raise _unreadable(error) from error
    if len(content) > max_bytes:
        raise _too_large(len(content), max_bytes)
    return content


def open_original(path: str) -> BinaryIO:
    """Open a regular file without ever blocking, so that a pipe put in its place cannot stop the run."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        raise _unreadable(error) from error
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise DocumentUnreadableError(SkipReason.NOT_A_FILE, "is not a regular file but a pipe, socket or device")


def is_file(root: str, own_id: str) -> bool:
    """Tell whether a root still holds a file under this own id."""
    try:
        return (Path(root) / own_id).is_file()
    except (OSError, ValueError):
        return False


def _unreadable(error: OSError) -> DocumentUnreadableError:
    cause = os.strerror(error.errno).lower() if error.errno else "unknown cause"
    return DocumentUnreadableError(SkipReason.UNREADABLE, f"cannot be read: {cause}")


def _too_large(size: int, limit: int) -> DocumentUnreadableError:
    problem = f"is too large ({size} bytes, at most {limit} are read); split it, or raise ingest.max_file_bytes"
    return DocumentUnreadableError(SkipReason.TOO_LARGE, problem)
