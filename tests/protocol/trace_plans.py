"""A trace while it is being written: calls with what they return, and a reply in blocks; nothing here reads Evidentia's own tools.

The results follow the written format of the tools to the letter; the renderer is a second one on purpose, so that the format has
two independent writers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from evidentia.contracts.protocol import AgentTrace, Breadth, QuestionType, SkillTool, TaskKind, TracedCall

if TYPE_CHECKING:
    from random import Random

    from trace_domains import World

CITE_TEXT = (
    '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" page=N /> directly after the paragraph or list that uses it: '
    "one or two each, never collected at the end. FILE, NAME and N are those of the piece of evidence."
)
SHOW_IMAGES = "[INSTRUCTION] Show each image next to the text it belongs to, as it stands here."
CITE_TABLE = (
    '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" sheet=S rows=[R, ...] /> on a line of its own after the list '
    "or table: one for each file and sheet, its rows together. FILE and NAME stand in file_ref_table under the F of the code in __src "
    "(F<file>S<sheet>R<row>). Never show __src."
)
TRUNCATED = "[EXTRA_INSTRUCTION] The result is truncated. Tell the user: {} in total, {} displayed, {} omitted."
NOTHING = "Error: no relevant evidence was found"


@dataclass
class Fragment:
    """A piece of evidence of a document."""

    file: str
    page: int
    text: str
    images: list[str] = field(default_factory=list)
    pages: tuple[int, ...] = ()

    @property
    def filename(self) -> str:
        return self.file.rsplit("/", 1)[-1].rsplit(":", 1)[-1]

    def citation(self) -> str:
        return f'<CITATION file="{self.file}" filename="{self.filename}" page={self.page} />'


@dataclass
class Row:
    """A row of a table result: where it stands, and its cells."""

    file: int
    sheet: int
    row: int
    cells: tuple[str, ...]

    @property
    def code(self) -> str:
        return f"F{self.file}S{self.sheet}R{self.row}"


@dataclass
class Table:
    """What `table_rag_retrieve` found."""

    files: list[str]
    header: tuple[str, ...]
    rows: list[Row]
    omitted: int = 0

    @property
    def total(self) -> int:
        return len(self.rows) + self.omitted

    def filename(self, file: int) -> str:
        return self.files[file - 1].rsplit("/", 1)[-1].rsplit(":", 1)[-1]

    def citations(self, rows: list[Row]) -> list[str]:
        """Return one citation for each file and sheet, its rows together."""
        places = sorted({(row.file, row.sheet) for row in rows})
        return [self.citation(place, sorted(row.row for row in rows if (row.file, row.sheet) == place)) for place in places]

    def citation(self, place: tuple[int, int], numbers: list[int]) -> str:
        file, sheet = place
        told = ", ".join(str(number) for number in numbers)
        return f'<CITATION file="{self.files[file - 1]}" filename="{self.filename(file)}" sheet={sheet} rows=[{told}] />'


def image(world: World, rng: Random) -> str:
    """Return a picture as a result shows it."""
    alt = rng.choice([f"{world.term} sketch", f"photo of a {world.one}", f"{world.one}", "figure", f"diagram: {world.term}"])
    return f"![{alt}](evidentia-image:{sha256(str(rng.random()).encode()).hexdigest()})"


def render_text(fragments: list[Fragment]) -> str:
    """Return the result of `rag_retrieve`."""
    lines = [CITE_TEXT]
    if any(fragment.images for fragment in fragments):
        lines.append(SHOW_IMAGES)
    lines.append("RAG_KNOWLEDGE BEGIN")
    for number, fragment in enumerate(fragments, start=1):
        several = f" pages=[{', '.join(map(str, fragment.pages))}]" if fragment.pages else ""
        lines.append(f'### [{number}] file="{fragment.file}" filename="{fragment.filename}" page={fragment.page}{several}')
        lines += [fragment.text, *fragment.images]
    lines.append("RAG_KNOWLEDGE END")
    return "\n".join(lines)


def render_table(table: Table) -> str:
    """Return the result of `table_rag_retrieve`."""
    lines = [CITE_TABLE]
    if table.omitted:
        lines.append(TRUNCATED.format(table.total, len(table.rows), table.omitted))
    lines += ["file_ref_table:", "| code | file | filename |"]
    lines += [f"| F{number} | {file} | {table.filename(number)} |" for number, file in enumerate(table.files, start=1)]
    lines += ["TABLE_KNOWLEDGE BEGIN", _line(("__src", *table.header)), _line(("---",) * (len(table.header) + 1))]
    lines += [_line((row.code, *row.cells)) for row in table.rows]
    lines += ["TABLE_KNOWLEDGE END", f"total={table.total} displayed={len(table.rows)} omitted={table.omitted}"]
    return "\n".join(lines)


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


@dataclass
class Call:
    """One call of a trace in the making."""

    name: str
    query: str = ""
    top_k: int | None = None
    result: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    portion: TaskKind | None = None
    is_good: bool = True

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {"query": self.query} if self.query else {}
        if self.top_k is not None:
            given["top_k"] = self.top_k
        return given | self.extra


@dataclass
class Block:
    """One block of a reply: its text, its pictures, its citations, and how they are set."""

    text: str
    kind: str = "paragraph"
    citations: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    setting: str = "below"

    def render(self) -> str:
        """Return the block; pictures stand right below the text, citations behind it on the line, below it, or after a free line."""
        if self.kind == "table" or (self.kind == "tabular" and self.setting == "behind"):
            return "\n\n".join([self.text, *(["\n".join(self.citations)] if self.citations else []), *self.images])
        if self.setting == "behind" and not self.images:
            return " ".join([self.text, *self.citations])
        if self.setting == "free" and self.citations:
            return "\n".join([self.text, *self.images, "", *self.citations])
        if self.setting == "after" and self.images:
            return "\n".join([self.text, *self.citations, "", *self.images])
        return "\n".join([self.text, *self.images, *self.citations])


@dataclass
class Plan:
    """A whole trace in the making."""

    world: World
    profile: str
    question: str
    entities: tuple[str, ...] = ()
    calls: list[Call] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    skills: list[SkillTool] = field(default_factory=list)
    task: TaskKind | None = None
    question_type: QuestionType | None = None
    breadth: Breadth | None = None
    explicit_file: str | None = None
    raw_query_works: bool | None = None
    has_self_knowledge: bool | None = None
    is_self_checked: bool = True
    spans: list[tuple[float, float]] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    table: Table | None = None
    used: list[Row] = field(default_factory=list)
    """The rows of the table that the reply rests on."""

    def trace(self, name: str) -> AgentTrace:
        """Return the trace."""
        spans: list[tuple[float, float] | None] = [*self.spans] or [None] * len(self.calls)
        calls = tuple(
            TracedCall(
                name=call.name,
                arguments=call.arguments(),
                result=call.result,
                start=None if span is None else span[0],
                end=None if span is None else span[1],
                portion=call.portion,
            )
            for call, span in zip(self.calls, spans, strict=True)
        )
        return AgentTrace(
            name=name,
            question=self.question,
            profile=self.profile,
            calls=calls,
            reply="\n\n".join(block.render() for block in self.blocks),
            skills=tuple(self.skills),
            task=self.task,
            question_type=self.question_type,
            breadth=self.breadth,
            explicit_file=self.explicit_file,
            raw_query_works=self.raw_query_works,
            has_self_knowledge=self.has_self_knowledge,
            is_self_checked=self.is_self_checked,
        )
