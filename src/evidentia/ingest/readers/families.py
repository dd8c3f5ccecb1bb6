"""Which family of formats a file belongs to, decided by its name alone; `sniffing` checks the bytes against it."""

from __future__ import annotations

from pathlib import PurePosixPath

from evidentia.contracts.vocabulary import Vocabulary


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
