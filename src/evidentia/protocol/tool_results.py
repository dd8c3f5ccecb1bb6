"""What a retrieval tool gave back, read from its text: pieces of evidence, rows, files, counts, images and addresses.

Our own results are read by their marks, which stand at the start of the text; document text inside them cannot form a mark. What another
tool returns is one piece without a file, whatever it holds further down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from evidentia.contracts.layout import IMAGE_SCHEME
from evidentia.protocol.citations import unescape
from evidentia.protocol.sentence_roles import Terms, read_terms
from evidentia.protocol.table_rows import TableRow, TableText, read_table
from evidentia.text.blocks import image_spans
from evidentia.text.marks import ERROR, EXTRA_INSTRUCTION, FILE_TABLE, INSTRUCTION, NO_SPREADSHEET, RAG_BEGIN, RAG_END, TABLE_BEGIN

_OWN_TOOLS: Final = frozenset({"rag_retrieve", "table_rag_retrieve", "local_file_retrieve"})
_INSTRUCTION: Final = re.compile(r"^\[(?:EXTRA_)?INSTRUCTION\][^\n]*+", re.MULTILINE)
_OPENINGS: Final = (RAG_BEGIN, TABLE_BEGIN, FILE_TABLE, INSTRUCTION, EXTRA_INSTRUCTION, ERROR)
_HEADING: Final = re.compile(
    r'^### \[(\d{1,6})\] file="([^"\n]*+)" filename="([^"\n]*+)" page=(\d{1,9})(?: pages=\[([\d, ]*+)\])?(?: flags="([^"\n]*+)")?[ \t]*+$',
    re.MULTILINE,
)
_IMAGE: Final = re.compile(re.escape(IMAGE_SCHEME) + r"([0-9a-f]{1,64})(?![0-9a-z])")
_URL: Final = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]++")
_URL_TAIL: Final = ".,;:!?)*_"


class EvidencePiece(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One piece of text evidence: where it stands, what it says, and the hashes of the images in it."""

    file: str = ""
    """The document id; empty where the tool is not ours and named none."""
    filename: str = ""
    pages: tuple[int, ...] = ()
    """From 0; never empty for a piece with a file."""
    text: str = ""
    images: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def is_citable(self) -> bool:
        """Tell whether there is anything to cite it by: a file, an address, or what another tool calls a file."""
        return bool(self.file) or "://" in self.text or "file" in self.text

    @cached_property
    def terms(self) -> Terms:
        """Return the content of the text as terms, read once."""
        return read_terms(unescape(self.text))

    @cached_property
    def nearest(self) -> Mapping[str, Terms]:
        """Return the text that each image belongs to: the paragraph before it, else the one behind it; images in a row share it."""
        return {image: read_terms(unescape(text)) for image, text in nearest_texts(self.text).items()}


class ResultFacts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one tool call returned."""

    text: str = ""
    pieces: tuple[EvidencePiece, ...] = ()
    rows: tuple[TableRow, ...] = ()
    columns: tuple[str, ...] = ()
    """Without `__src`."""
    files: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """The file and the file name that each F stands for."""
    total: int | None = None
    displayed: int | None = None
    omitted: int | None = None
    instructions: tuple[str, ...] = ()
    """The lines of instruction at the start, with their marks."""
    is_error: bool = False
    has_no_spreadsheet: bool = False
    """The caller can see no spreadsheet; what follows is a text result."""
    urls: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        """Tell whether it is the result of a question to tables."""
        return bool(self.files or self.rows)

    @property
    def has_evidence(self) -> bool:
        """Tell whether there is anything to answer from."""
        return bool(self.rows or any(piece.text.strip() for piece in self.pieces))

    @property
    def is_citable(self) -> bool:
        """Tell whether there is anything to cite it by."""
        return bool(self.rows) or any(piece.is_citable for piece in self.pieces)

    @cached_property
    def sheets(self) -> Mapping[tuple[str, int], tuple[frozenset[int], Terms]]:
        """Return the rows shown and what they say, for each file and sheet."""
        return _gather_sheets(self)


def read_result(tool_name: str, text: str) -> ResultFacts:
    """Return what a tool's result holds; text that is not in our format is one piece without a file."""
    first, _, rest = text.partition("\n")
    if first.strip() == NO_SPREADSHEET:
        found = _read_own(rest)
        return msgspec.structs.replace(found, text=text, has_no_spreadsheet=True)
    if _is_own(tool_name) or text.startswith(_OPENINGS):
        return _read_own(text)
    return _read_foreign(text)


def nearest_texts(text: str) -> dict[str, str]:
    """Return for each image of a text the paragraph it stands next to: before it, or behind it where nothing stands before."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    nearest = ""
    end = 0
    for start, stop, target in [*image_spans(text), (len(text), len(text), "")]:
        between = text[end:start].strip()
        if between and waiting:
            found.update(dict.fromkeys(waiting, between.partition("\n\n")[0]))
            waiting = []
        nearest = between.rpartition("\n\n")[2] or nearest
        image = _IMAGE.fullmatch(target)
        if image and nearest:
            found.setdefault(image[1], nearest)
        elif image:
            waiting.append(image[1])
        end = stop
    found.update(dict.fromkeys(waiting, ""))
    return found


def _is_own(tool_name: str) -> bool:
    """Tell whether a tool is one of ours, also under the prefix that a client puts before it."""
    return re.split(r"__|[./:]", tool_name)[-1] in _OWN_TOOLS


def _read_foreign(text: str) -> ResultFacts:
    if not text.strip():
        return ResultFacts(text=text)
    return ResultFacts(text=text, pieces=(EvidencePiece(text=text, images=_images_in(text)),), urls=_urls_in(text))


def _read_own(text: str) -> ResultFacts:
    has_text, has_table = RAG_BEGIN in text, TABLE_BEGIN in text
    if text.startswith(ERROR) or not text.strip():
        return ResultFacts(text=text, is_error=bool(text.strip()))
    if not has_text and not has_table:
        return _read_foreign(text)
    is_table = has_table and (not has_text or text.index(TABLE_BEGIN) < text.index(RAG_BEGIN))
    begin = text.index(TABLE_BEGIN if is_table else RAG_BEGIN)
    table = read_table(text, begin) if is_table else TableText()
    files = {code: (unescape(file), unescape(name)) for code, (file, name) in table.files.items()}
    return ResultFacts(
        text=text,
        pieces=() if is_table else _read_pieces(text, begin + len(RAG_BEGIN)),
        rows=table.rows,
        columns=table.columns,
        files=files,
        total=table.total,
        displayed=table.displayed,
        omitted=table.omitted,
        instructions=tuple(_INSTRUCTION.findall(text, 0, begin)),
        urls=_urls_in(text),
    )


def _read_pieces(text: str, begin: int) -> tuple[EvidencePiece, ...]:
    end = text.rfind(RAG_END)
    body = text[begin : end if end > begin else len(text)]
    headings = list(_HEADING.finditer(body))
    if not headings:
        return ()
    stops = [heading.start() for heading in headings[1:]] + [len(body)]
    return tuple(_read_piece(heading, body[heading.end() : stop].strip()) for heading, stop in zip(headings, stops, strict=True))


def _read_piece(heading: re.Match[str], text: str) -> EvidencePiece:
    pages = tuple(int(page) for page in re.findall(r"\d{1,9}", heading[5] or "")) or (int(heading[4]),)
    return EvidencePiece(
        file=unescape(heading[2]),
        filename=unescape(heading[3]),
        pages=pages,
        text=text,
        images=_images_in(text),
        flags=tuple((heading[6] or "").replace(",", " ").split()),
    )


def _images_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_IMAGE.findall(text))) if IMAGE_SCHEME in text else ()


def _urls_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url.rstrip(_URL_TAIL) for url in _URL.findall(text))) if "://" in text else ()


def _gather_sheets(facts: ResultFacts) -> Mapping[tuple[str, int], tuple[frozenset[int], Terms]]:
    rows: dict[tuple[str, int], set[int]] = {}
    texts: dict[tuple[str, int], list[str]] = {}
    for row in facts.rows:
        said = " ".join(row.cells)
        for code in row.places:
            file = facts.files.get(f"F{code.file}", ("", ""))[0]
            place = (file, code.sheet)
            rows.setdefault(place, set()).add(code.row)
            lines = texts.setdefault(place, [])
            if not lines or lines[-1] is not said:
                lines.append(said)
    names = " ".join(facts.columns)
    return {place: (frozenset(found), read_terms(unescape("\n".join((names, *texts[place]))))) for place, found in rows.items()}
