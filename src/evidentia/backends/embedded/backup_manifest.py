"""The manifest of a backup: how it is sealed and read back, and which names a file of a backup may have."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import Final

import msgspec

from evidentia.backends.embedded.writer_lock import LOCK_NAME
from evidentia.contracts.backups import BACKUP_FORMAT, BackupManifest
from evidentia.contracts.canonical import encode_struct, sha256_hex
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
        found = msgspec.json.decode(encoded, type=_Format).format
        if found != BACKUP_FORMAT and found.startswith(BACKUP_FORMAT.rpartition("/")[0]):
            raise BackupRefusedError(f"'{where}' has the format '{found}', and this Evidentia knows '{BACKUP_FORMAT}'")
        manifest = msgspec.json.decode(encoded, type=BackupManifest)
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
