"""The tar form of a backup: plain files only, every header and every filling byte as this module would write it.

    header 512 bytes, content, zeros up to a multiple of 512; ...; two blocks of zeros

Being so strict leaves no byte of the file without somebody who would notice that it changed.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded.backup_manifest import MANIFEST_NAME, name_problem
from evidentia.contracts.errors import BackupDamagedError

if TYPE_CHECKING:
    from typing import BinaryIO

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)


class Member(NamedTuple):
    """Where the content of a file lies."""

    name: str
    offset: int
    size: int


def header_of(name: str, size: int) -> bytes:
    """Return the header of a plain file; names are short enough for one block."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def filling(size: int) -> bytes:
    """Return the zeros between a content and the next header."""
    return bytes(-size % BLOCK)


def read_members(file: BinaryIO, *, where: str) -> list[Member]:
    """Return the files of a tar in their order; whatever this module would not have written is damage."""
    length = file.seek(0, 2)
    members: list[Member] = []
    offset = 0
    while (header := _read(file, offset, BLOCK, where=where)) != END[:BLOCK]:
        member = _member(header, offset, where=where)
        stop = member.offset + member.size
        end = stop + len(filling(member.size))
        if end > length or _read(file, stop, end - stop, where=where) != filling(member.size):
            raise BackupDamagedError(where, f"it ends within {member.name!a}, or what fills it up is not zeros")
        members.append(member)
        offset = end
    if length != offset + len(END) or _read(file, offset, len(END), where=where) != END:
        raise BackupDamagedError(where, "it does not end where its last file does")
    return members


def _member(header: bytes, offset: int, *, where: str) -> Member:
    try:
        found = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
    except tarfile.TarError as error:
        problem = f"at byte {offset}, there is no header of a tar ({error}); it is damaged, or no backup"
        raise BackupDamagedError(where, problem) from error
    if not found.isreg():
        raise BackupDamagedError(where, f"{found.name!a} is a link or another thing that is no file")
    problem = "" if found.name == MANIFEST_NAME else name_problem(found.name)
    if problem:
        raise BackupDamagedError(where, f"it holds {found.name!a}: {problem}")
    if header_of(found.name, found.size) != header:
        raise BackupDamagedError(
            where, f"the header of {found.name!a} is not the one that was written; unpack a tar that you packed yourself"
        )
    return Member(found.name, offset + BLOCK, found.size)


def _read(file: BinaryIO, offset: int, size: int, *, where: str) -> bytes:
    file.seek(offset)
    content = file.read(size)
    if len(content) != size:
        raise BackupDamagedError(where, "it ends too early")
    return content
