"""The format of a backup: its sealed manifest, the names that a file may have, and its tar form."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import PurePosixPath
from typing import BinaryIO, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.records.database import LOCK_NAME
from evidentia.contracts.backups import BACKUP_FORMAT, BackupManifest
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import BackupDamagedError, BackupRefusedError

MANIFEST_NAME: Final = "manifest.json"
MAX_NAME_LENGTH: Final = 100
"""Bytes of a name: as many as the header of a tar file holds."""
LARGEST_MANIFEST: Final = 256 << 20
_RESERVED: Final = ("-wal", "-shm", "-journal", ".new")
"""What SQLite would take for unfinished work on the file beside it, and what a base calls a file before it is whole."""


class _Format(msgspec.Struct):
    format: str


def encode_manifest(manifest: BackupManifest) -> bytes:
    """Return the bytes of a manifest under its seal."""
    return encode_struct(sealed(manifest))


def sealed(manifest: BackupManifest) -> BackupManifest:
    """Return a manifest with the seal over everything else that it says."""
    blank = msgspec.structs.replace(manifest, seal="")
    return msgspec.structs.replace(blank, seal=sha256_hex(encode_struct(blank)))


def decode_manifest(encoded: bytes, *, where: str) -> BackupManifest:
    """Read a manifest; one that was changed is damaged, one of another format is refused."""
    try:
        found = decode_json(encoded, _Format).format
        if found != BACKUP_FORMAT and found.startswith(BACKUP_FORMAT.rpartition("/")[0]):
            raise BackupRefusedError(f"'{where}' has the format '{found}', and this Evidentia knows '{BACKUP_FORMAT}'")
        manifest = decode_json(encoded, BackupManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackupDamagedError(MANIFEST_NAME, f"it cannot be read ({error})") from error
    if encode_manifest(manifest) != encoded:
        raise BackupDamagedError(MANIFEST_NAME, "it is not what was written")
    _check_names(manifest)
    return manifest


def name_problem(name: str) -> str:
    """Return why a file of a backup cannot have this name; empty when it can."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or ":" in name:
        return "it does not stay inside the base"
    if not name.isprintable() or len(name.encode(errors="surrogatepass")) > MAX_NAME_LENGTH:
        return f"it is longer than {MAX_NAME_LENGTH} bytes, or not printable"
    if name in (MANIFEST_NAME, LOCK_NAME) or name.endswith(_RESERVED):
        return "it is kept for something else"
    return ""


def _check_names(manifest: BackupManifest) -> None:
    if manifest.format != BACKUP_FORMAT:
        raise BackupDamagedError(MANIFEST_NAME, f"'{manifest.format}' is no format of a backup")
    names = [file.name.casefold() for file in manifest.files]
    counts = Counter(names)
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    for file, name in zip(manifest.files, names, strict=True):
        problem = name_problem(file.name) or ("it is there twice" if counts[name] > 1 or name in folders else "")
        if problem:
            raise BackupDamagedError(MANIFEST_NAME, f"it names {file.name!a}: {problem}")


# --- backup tar ---
# The tar form of a backup: plain files only, every header and every filling byte as this module would write it.
#
#     header 512 bytes, content, zeros up to a multiple of 512; ...; two blocks of zeros
#
# Being so strict leaves no byte of the file without somebody who would notice that it changed.

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)


class TarMember(NamedTuple):
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


def read_members(file: BinaryIO, *, where: str) -> list[TarMember]:
    """Return the files of a tar in their order; whatever this module would not have written is damage."""
    length = file.seek(0, 2)
    members: list[TarMember] = []
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


def _member(header: bytes, offset: int, *, where: str) -> TarMember:
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
    return TarMember(found.name, offset + BLOCK, found.size)


def _read(file: BinaryIO, offset: int, size: int, *, where: str) -> bytes:
    file.seek(offset)
    content = file.read(size)
    if len(content) != size:
        raise BackupDamagedError(where, "it ends too early")
    return content
