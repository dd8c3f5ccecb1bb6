"""Which family of formats a file belongs to, decided by its name alone, and whether the first bytes agree."""

from __future__ import annotations

from pathlib import PurePosixPath

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.ingest.reasons import SkipReason


class Family(Vocabulary):
    """A group of formats that one reader reads."""

    CODE = "code"
    CONFIG = "config"
    CORPUS = "corpus"
    HTML = "html"
    LOG = "log"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    PDF = "pdf"
    SCHEMA = "schema"
    SHEETS = "sheets"
    SLIDES = "slides"
    TABLE = "table"
    TEXT = "text"
    UNKNOWN = "unknown"
    WORD = "word"


PARSED_FAMILIES = frozenset({Family.HTML, Family.PARQUET, Family.PDF, Family.SHEETS, Family.SLIDES, Family.WORD})
"""Families whose parsers may be made to hang or to swallow memory; they are read in separate processes."""
ZIPPED_FAMILIES = frozenset({Family.SHEETS, Family.SLIDES, Family.WORD})


def family_of(name: str) -> Family:
    """Return the family of a file called `name`; `UNKNOWN` is read as text if it is text."""
    path = PurePosixPath(name)
    ending = path.suffix[1:].lower()
    return _BY_ENDING.get(ending) or _BY_NAME.get(path.name.lower()) or Family.UNKNOWN


def ending_of(name: str) -> str:
    """Return the extension in lower case with its dot, empty when there is none."""
    return PurePosixPath(name).suffix.lower()


_ENDINGS = {
    Family.CODE: (
        "ada adb ads asm bash bat c cc clj cljs cmake cpp cs css cxx dart el elm erl ex exs f90 fish fs fsx gd go gradle groovy h hh hpp hs"
        " hxx java jl js jsx kt kts less lisp lua m mjs mk ml mli mm nim nix pas php pl pm proto3 ps1 psm1 py pyi pyx r rb rkt rs s sass"
        " scala scm scss sh sol sql svelte swift tcl tf ts tsx v vb vhd vhdl vim vue zig zsh"
    ),
    Family.CONFIG: "cfg cnf conf editorconfig env hcl ini json json5 jsonc lock plist properties toml xml yaml yml",
    Family.CORPUS: "jsonl ndjson",
    Family.HTML: "htm html xhtml",
    Family.LOG: "err log out",
    Family.MARKDOWN: "markdown md mdown mdx mkd qmd rmd",
    Family.PARQUET: "parquet pq",
    Family.PDF: "pdf",
    Family.SCHEMA: "avdl avsc gql graphql proto thrift wsdl xsd",
    Family.SHEETS: "ods xlsm xlsx",
    Family.SLIDES: "pptm pptx",
    Family.TABLE: "csv psv tab tsv",
    Family.TEXT: "adoc asc asciidoc org rst rtxt tex text txt",
    Family.WORD: "docm docx",
}
_BY_ENDING = {ending: family for family, endings in _ENDINGS.items() for ending in endings.split()}
_BY_NAME = {
    "changelog": Family.TEXT,
    "copying": Family.TEXT,
    "dockerfile": Family.CODE,
    "jenkinsfile": Family.CODE,
    "license": Family.TEXT,
    "makefile": Family.CODE,
    "notice": Family.TEXT,
    "readme": Family.TEXT,
    "vagrantfile": Family.CODE,
}


# --- sniffing ---
# What the first bytes of a file say it is, and whether its name agrees; refuses to guess beyond well-known signatures.

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
