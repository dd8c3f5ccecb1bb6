"""What the first bytes of a file say it is, and whether its name agrees; refuses to guess beyond well-known signatures."""

from __future__ import annotations

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.families import ZIPPED_FAMILIES, Family, ending_of
from evidentia.ingest.reasons import SkipReason

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"PK\x07\x08", "a zip archive"),
    (b"\x7fELF", "an ELF program"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xca\xfe\xba\xbe", "a compiled program"),
    (b"\xcf\xfa\xed\xfe", "a compiled program"),
    (b"\x00asm", "a compiled program"),
    (b"MZ\x90\x00", "a Windows program"),
)
_PARQUET_MARK = b"PAR1"
_PDF_MARK = b"%PDF-"
_PDF_MARK_WITHIN = 1024
"""Readers of PDF accept junk before the mark up to here."""
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")


def sniff(content: bytes) -> str | None:
    """Return what well-known binary thing `content` is, with its article, or None for anything that may be text."""
    if content[257:262] == b"ustar":
        return "a tar archive"
    if content.startswith(_PARQUET_MARK) and content.endswith(_PARQUET_MARK) and len(content) > 2 * len(_PARQUET_MARK):
        return "a Parquet file"
    return next((thing for signature, thing in _SIGNATURES if content.startswith(signature)), None)


def check_type(content: bytes, *, family: Family, name: str) -> None:
    """Refuse content that contradicts the name; what passes may still be damaged."""
    thing = sniff(content)
    if family is Family.PDF:
        if _PDF_MARK not in content[:_PDF_MARK_WITHIN]:
            raise _mismatch(name, thing or "no PDF")
    elif family is Family.PARQUET:
        if thing != "a Parquet file":
            raise _mismatch(name, thing or "no Parquet file, or one cut short")
    elif family in ZIPPED_FAMILIES:
        if thing == "an old Office file" and _ENCRYPTED_OFFICE in content:
            raise DocumentUnreadableError(SkipReason.ENCRYPTED, "is encrypted; save it without a password and ingest it again")
        if thing != "a zip archive":
            raise _mismatch(name, thing or "no Office file")
    elif thing is not None and family is Family.UNKNOWN:
        raise DocumentUnreadableError(SkipReason.UNSUPPORTED_TYPE, f"is {thing}, which is not read; convert it to text or PDF")
    elif thing is not None:
        raise _mismatch(name, thing)


def _mismatch(name: str, thing: str) -> DocumentUnreadableError:
    problem = f"is named {ending_of(name) or 'like text'} but is {thing}; give it the right extension or convert it"
    return DocumentUnreadableError(SkipReason.TYPE_MISMATCH, problem)
