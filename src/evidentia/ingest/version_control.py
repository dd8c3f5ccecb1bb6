"""What git knows about the files below a root: when each was made and last changed, by whom, and in which commit.

One `git log` per root. Refuses to run anything a repository configures (hooks, filters, pagers, monitors), because the
repository may be hostile: whether a file is as committed is found by hashing it, not by asking git.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO

import msgspec

TIMEOUT_S = 30
MAX_AUTHOR_LENGTH = 200
SHA1_DIGITS = 40
_PIECE = 1024 * 1024
_MARK = b"\x1e"
_CHANGE_FIELDS = 5
"""Old mode, new mode, old blob, new blob, kind of change; the path follows as a field of its own."""
_FORMAT = "%x1e%H%x1f%at%x1f%an%x1f%D"
_SAFE = (
    *("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "core.attributesFile=/dev/null"),
    *("-c", "log.showSignature=false", "-c", "log.follow=false", "-c", "log.mailmap=false", "-c", "protocol.allow=never"),
    *("--no-pager", "--no-replace-objects", "--literal-pathspecs"),
)
_LOG = (
    *("log", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-merges", "--root", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-show-signature", "--no-notes", "--encoding=UTF-8", "--relative", f"--format={_FORMAT}", "--"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""The whole environment: nothing of the caller's, so that the same tree gives the same facts everywhere."""


class FileHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What git knows about one file as of its last commit; unknown is None or empty."""

    blob: str
    commit: str
    author: str
    created_at: datetime | None
    updated_at: datetime | None

    def holds(self, content: bytes) -> bool:
        """Tell whether `content` is what was committed, byte for byte."""
        header = b"blob %d\0" % len(content)
        digest = hashlib.sha1(usedforsecurity=False) if len(self.blob) == SHA1_DIGITS else hashlib.sha256()
        digest.update(header)
        digest.update(content)
        return digest.hexdigest() == self.blob


class RootHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The histories of the files below one root, by path relative to it; `problem` says why there are none although git is used."""

    files: Mapping[str, FileHistory] = msgspec.field(default_factory=dict)
    problem: str = ""


def read_history(root: str, *, names: Sequence[str] = (".",), timeout_s: int = TIMEOUT_S) -> RootHistory:
    """Return what git knows of `names` below `root`; without git, or outside a work tree, nothing is known and nothing is wrong."""
    executable = shutil.which("git")
    if executable is None:
        return RootHistory()
    command = (executable, "-C", root, *_SAFE, *_LOG, *names)
    try:
        process = subprocess.Popen(  # noqa: S603  # a fixed command without a shell; `root` follows -C and cannot become an option
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_ENVIRONMENT
        )
    except OSError:
        return RootHistory()
    return _read(process, timeout_s=timeout_s)


def _read(process: subprocess.Popen[bytes], *, timeout_s: int) -> RootHistory:
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    alarm = threading.Timer(timeout_s, expire)
    alarm.start()
    try:
        with process:
            files = _histories(process.stdout) if process.stdout is not None else {}
    finally:
        alarm.cancel()
    if expired.is_set():
        return RootHistory(problem=f"git gave no answer within {timeout_s} s; dates and authors are unknown")
    return RootHistory(files=files if process.returncode == 0 else {})


def _histories(log: IO[bytes]) -> dict[str, FileHistory]:
    """Gather the newest and the oldest commit of each path; git lists commits newest first."""
    files: dict[str, FileHistory] = {}
    commit = author = ""
    moment: datetime | None = None
    is_boundary = False
    fields = _fields(log)
    for field in fields:
        if field.startswith(_MARK):
            commit, author, moment, is_boundary = _commit(field[len(_MARK) :])
            continue
        change = field.lstrip(b"\n").split(b" ")
        if len(change) != _CHANGE_FIELDS:
            continue
        blob = change[3].decode("ascii", errors="replace")
        path = next(fields, b"").decode("utf-8", errors="surrogateescape")
        if is_boundary:
            continue  # where a shallow clone was cut off, every file looks as if that commit had made it
        known = files.get(path)
        if known is None:
            files[path] = FileHistory(blob=blob, commit=commit, author=author, created_at=moment, updated_at=moment)
        else:
            files[path] = msgspec.structs.replace(known, created_at=moment)
    return files


def _commit(header: bytes) -> tuple[str, str, datetime | None, bool]:
    commit, second, author, decoration = (*header.decode("utf-8", errors="replace").split("\x1f", 3), "", "", "", "")[:4]
    moment = moment_of_second(int(second)) if second.isascii() and second.isdigit() and len(second) < SHA1_DIGITS else None
    return commit, author[:MAX_AUTHOR_LENGTH], moment, "grafted" in decoration


def _fields(log: IO[bytes]) -> Iterator[bytes]:
    tail = b""
    while piece := log.read(_PIECE):
        *whole, tail = (tail + piece).split(b"\0")
        yield from whole
    if tail:
        yield tail


# --- moments ---
# Dates as documents write them; refuses to guess at anything but ISO 8601 and whole seconds since 1970.

LATEST_SECOND = 253_402_214_400
"""The end of the year 9999, less a day for time zones."""


def parse_moment(text: str) -> datetime | None:
    """Return the moment in UTC, or None when `text` is no ISO 8601 date or time; without a zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def moment_of_second(second: int) -> datetime | None:
    """Return the moment `second` seconds after 1970 began, or None outside the years a datetime holds."""
    if not 0 <= second <= LATEST_SECOND:
        return None
    return datetime.fromtimestamp(second, tz=UTC)
