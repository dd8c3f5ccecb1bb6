"""From paths to files in one fixed order, with what was left out and why.

Refuses to open what it finds: a walk looks at names and kinds only, apart from ignore files.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from evidentia.contracts.canonical import has_utf8
from evidentia.contracts.errors import DocumentUnreadableError, DuplicateDocumentError, InvalidFieldError
from evidentia.contracts.reports import SkippedInput
from evidentia.ingest.ignore import IgnoreRules, is_ignored_name, parse_patterns
from evidentia.ingest.reasons import SkipReason, legible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


BASE_MARKER = "evidentia.sqlite"
IGNORE_FILES = (".gitignore", ".evidentiaignore")
LARGEST_IGNORE_FILE = 1024 * 1024


class WalkedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read: its own id within the source, where it is, and the root it belongs to."""

    own_id: str
    root: str
    path: str
    is_named: bool = False
    """Given by name rather than found in a directory."""


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk found, ordered by own id.

    `roots` are the directories that were walked as a whole; `unwalked` are prefixes of own ids, each with its root, of
    directories that could not be listed, so that nothing below them is mistaken for gone.
    """

    files: tuple[WalkedFile, ...]
    skipped: tuple[SkippedInput, ...]
    roots: tuple[str, ...]
    unwalked: tuple[tuple[str, str], ...] = ()


def walk_paths(paths: Sequence[str | Path], *, ignore: Sequence[str] = ()) -> Walk:
    """Return the files below `paths`; a missing path or two roots that give one id are errors before anything is read."""
    found: list[WalkedFile] = []
    skipped: list[SkippedInput] = []
    unwalked: list[tuple[str, str]] = []
    roots: list[str] = []
    for path in _existing(paths):
        if not path.is_dir():
            found.extend(_named_file(path, skipped))
            continue
        walker = _TreeWalker(path.resolve(), ignore=ignore)
        found.extend(walker.files())
        skipped.extend(walker.skipped)
        unwalked.extend((str(walker.root), prefix) for prefix in walker.unwalked)
        roots.append(str(walker.root))
    files = _without_repeats(sorted(found, key=lambda file: (file.own_id, file.root, file.path)), skipped)
    return Walk(
        files=tuple(files),
        skipped=tuple(sorted(skipped, key=lambda entry: (entry.path, entry.reason))),
        roots=tuple(sorted(set(roots))),
        unwalked=tuple(sorted(unwalked)),
    )


def _existing(paths: Sequence[str | Path]) -> list[Path]:
    given = [Path(path) for path in paths]
    for path in given:
        try:
            path.stat()
        except (OSError, ValueError) as error:
            raise InvalidFieldError("paths", f"there is no file or directory '{legible(str(path))}'") from error
    return given


def _named_file(path: Path, skipped: list[SkippedInput]) -> Iterator[WalkedFile]:
    """Yield a file given by name; whoever names a file means it, so links are followed and patterns do not apply."""
    own_id = unicodedata.normalize("NFC", path.name)
    if not stat.S_ISREG(path.stat().st_mode):
        skipped.append(_skip(own_id, SkipReason.NOT_A_FILE, "is not a regular file"))
        return
    if not has_utf8(own_id):
        skipped.append(_bad_name(own_id))
        return
    root = path.parent.resolve()
    yield WalkedFile(own_id=own_id, root=str(root), path=str(root / path.name), is_named=True)


def _without_repeats(files: Iterable[WalkedFile], skipped: list[SkippedInput]) -> Iterator[WalkedFile]:
    last: WalkedFile | None = None
    for file in files:
        if last is None or file.own_id != last.own_id:
            yield file
            last = file
        elif file.root != last.root:
            raise DuplicateDocumentError(legible(file.own_id), first=legible(last.root), second=legible(file.root))
        elif file.path != last.path:
            problem = "has the same name as another file once accents are composed; rename one of them"
            skipped.append(_skip(file.own_id, SkipReason.DUPLICATE_ID, problem))


class _TreeWalker:
    """Walks one root without recursion; each real directory is entered at most once directly and once by links."""

    def __init__(self, root: Path, *, ignore: Sequence[str]) -> None:
        self.root = root
        self.skipped: list[SkippedInput] = []
        self.unwalked: list[str] = []
        self._linked: set[str] = set()
        self._rules = IgnoreRules().extended(parse_patterns(ignore), depth=0)

    def files(self) -> Iterator[WalkedFile]:
        """Yield the files of the tree; order is made by the caller."""
        if (self.root / BASE_MARKER).exists():
            self.skipped.append(_skip(".", SkipReason.IS_A_BASE, "is a base, not material for one; name the directory of the documents"))
            return
        waiting: list[tuple[str, tuple[str, ...], IgnoreRules, bool]] = [(str(self.root), (), self._rules, False)]
        while waiting:
            directory, parts, rules, is_linked = waiting.pop()
            for entry, rules_here in self._entries(directory, parts, rules):
                own_parts = (*parts, entry.name)
                target, is_directory, by_link = self._resolve(entry, own_parts)
                if target is None or self._is_ignored(target, own_parts, rules_here, is_directory=is_directory):
                    continue
                if not is_directory:
                    yield from self._file(own_parts, entry.path)
                elif not (by_link or is_linked) or self._enter_by_link(target, directory, own_parts):
                    waiting.append((target, own_parts, rules_here, by_link or is_linked))

    def _entries(self, directory: str, parts: tuple[str, ...], rules: IgnoreRules) -> Iterator[tuple[os.DirEntry[str], IgnoreRules]]:
        try:
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self.unwalked.append("/".join(parts))
            self.skipped.append(_unreadable("/".join(parts) or ".", error))
            return
        names = {entry.name for entry in entries}
        if BASE_MARKER in names:
            return
        for name in IGNORE_FILES:
            if name in names:
                rules = rules.extended(parse_patterns(_ignore_lines(Path(directory) / name)), depth=len(parts))
        for entry in entries:
            if not is_ignored_name(entry.name):
                yield entry, rules

    def _resolve(self, entry: os.DirEntry[str], parts: tuple[str, ...]) -> tuple[str | None, bool, bool]:
        """Return where an entry leads (None: nowhere to go), whether to a directory, and whether by a link."""
        try:
            if not entry.is_symlink():
                return entry.path, entry.is_dir(follow_symlinks=False), False
            target = Path(entry.path).resolve(strict=True)
            is_directory = target.is_dir()
        except (OSError, RuntimeError) as error:
            self.skipped.append(_broken_link("/".join(parts), error))
            return None, False, True
        if not target.is_relative_to(self.root):
            problem = "is a link out of the tree; name its target on the command line to ingest it"
            self.skipped.append(_skip("/".join(parts), SkipReason.LINK_OUTSIDE_ROOT, problem))
            return None, is_directory, True
        return str(target), is_directory, True

    def _is_ignored(self, target: str, parts: tuple[str, ...], rules: IgnoreRules, *, is_directory: bool) -> bool:
        if rules.ignores(parts, is_directory=is_directory):
            return True
        # A link must not lend a harmless name to what is never ingested, such as `notes.txt -> .git/config`.
        return any(is_ignored_name(part) for part in Path(target).relative_to(self.root).parts)

    def _enter_by_link(self, target: str, directory: str, parts: tuple[str, ...]) -> bool:
        if Path(directory).is_relative_to(target):
            self.skipped.append(_skip("/".join(parts), SkipReason.LINK_LOOP, "is a link to a directory that holds it; nothing is lost"))
            return False
        if target in self._linked:
            problem = "is a link to a directory that another link already leads to; nothing is lost"
            self.skipped.append(_skip("/".join(parts), SkipReason.LINK_REPEATED, problem))
            return False
        self._linked.add(target)
        return True

    def _file(self, parts: tuple[str, ...], path: str) -> Iterator[WalkedFile]:
        own_id = unicodedata.normalize("NFC", "/".join(parts))
        if not has_utf8(own_id):
            self.skipped.append(_bad_name(own_id))
            return
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116  # one call per file; building a Path for it doubles the walk
        except OSError as error:
            self.skipped.append(_unreadable(own_id, error))
            return
        if not stat.S_ISREG(mode):
            self.skipped.append(_skip(own_id, SkipReason.NOT_A_FILE, "is not a regular file but a pipe, socket or device"))
            return
        yield WalkedFile(own_id=own_id, root=str(self.root), path=path)


def _ignore_lines(path: Path) -> list[str]:
    try:
        if path.is_symlink() or not path.is_file():
            return []
        with path.open("rb") as lines:
            return lines.read(LARGEST_IGNORE_FILE).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _skip(own_id: str, reason: SkipReason, problem: str) -> SkippedInput:
    shown = legible(own_id)
    return SkippedInput(path=shown, reason=reason.value, message=f"'{shown}' {problem}")


def _bad_name(own_id: str) -> SkippedInput:
    return _skip(own_id, SkipReason.BAD_NAME, "has a name that is not UTF-8; rename it")


def _unreadable(own_id: str, error: OSError) -> SkippedInput:
    cause = os.strerror(error.errno).lower() if error.errno else "unknown cause"
    return _skip(own_id, SkipReason.UNREADABLE, f"cannot be read: {cause}")


def _broken_link(own_id: str, error: OSError | RuntimeError) -> SkippedInput:
    if isinstance(error, RuntimeError) or error.errno == errno.ELOOP:
        return _skip(own_id, SkipReason.LINK_LOOP, "is a link that leads back to itself")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return _skip(own_id, SkipReason.LINK_DANGLING, "is a link to something that does not exist")
    return _unreadable(own_id, error)


# --- originals ---
# The bytes of a file as they are on disk, read once and bounded; refuses to wait for pipes or to follow a file that changed its kind.

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
            raise _originals_unreadable(error) from error
    if len(content) > max_bytes:
        raise _too_large(len(content), max_bytes)
    return content


def open_original(path: str) -> BinaryIO:
    """Open a regular file without ever blocking, so that a pipe put in its place cannot stop the run."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        raise _originals_unreadable(error) from error
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


def _originals_unreadable(error: OSError) -> DocumentUnreadableError:
    cause = os.strerror(error.errno).lower() if error.errno else "unknown cause"
    return DocumentUnreadableError(SkipReason.UNREADABLE, f"cannot be read: {cause}")


def _too_large(size: int, limit: int) -> DocumentUnreadableError:
    problem = f"is too large ({size} bytes, at most {limit} are read); split it, or raise ingest.max_file_bytes"
    return DocumentUnreadableError(SkipReason.TOO_LARGE, problem)
