"""What a reply owes to a table result: counts when it was cut short, file names as given, no codes, its instructions followed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import ProtocolRule, ReplyFinding
from evidentia.contracts.tables import SOURCE_COLUMN
from evidentia.protocol.citations import TableCitation, quoted
from evidentia.protocol.reply_citations import valid_citations
from evidentia.protocol.sentence_roles import counts_in, is_about_counts
from evidentia.text.blocks import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.protocol.reply_layout import ReplyLayout, ReplyUnit
    from evidentia.protocol.table_rows import TableRow
    from evidentia.protocol.tool_results import ResultFacts

_CODE: Final = re.compile(r"(?<![A-Za-z0-9])F\d{1,6}S\d{1,6}R\d{1,9}(?![A-Za-z0-9])")
_ENDINGS: Final = (".xlsx", ".xlsm", ".xls", ".ods", ".csv", ".tsv", ".parquet", ".pdf", ".docx", ".pptx")
_NAME: Final = re.compile(r"[\w.()-]+")
_SEVERAL: Final = 2
_EDGES: Final = ".,;:!?()[]'\"-_"
_CITE_LINE: Final = re.compile(r"\[INSTRUCTION\] Cite what you use as <CITATION [^\n]*sheet=S")
_COUNT_LINE: Final = re.compile(r"\[EXTRA_INSTRUCTION\] The result is truncated\. Tell the user:")
_CITING: Final = frozenset(
    {
        ProtocolRule.CITATION_MISSING,
        ProtocolRule.CITATION_GRAMMAR,
        ProtocolRule.CITATION_PLACEMENT,
        ProtocolRule.CITATIONS_AT_END,
        ProtocolRule.SOURCE_CODES,
    }
)


def table_findings(layout: ReplyLayout, results: Sequence[ResultFacts], *, question: str, uses_evidence: bool) -> list[ReplyFinding]:
    """Return what is found against the table results of a run; empty where there was none."""
    tables = [result for result in results if result.is_table]
    if not tables:
        return []
    prose = layout.prose
    findings = _check_codes(layout, prose, (question, *(result.text for result in results)))
    findings += _check_names(layout, prose, results, tables, question=question)
    if uses_evidence:
        findings += [finding for table in tables if (finding := _check_counts(layout, table, tables)) is not None]
        findings += [finding for unit in layout.units if (finding := _check_merged(unit)) is not None]
        findings += [finding for table in tables if (finding := _check_sheets(layout, table)) is not None]
    return findings


def instruction_findings(results: Sequence[ResultFacts], findings: Sequence[ReplyFinding]) -> list[ReplyFinding]:
    """Return which lines of ours in table results were not followed, given all that was found; other lines bind no reply."""
    lines = [line for result in results if result.is_table for line in result.instructions]
    broken: list[ReplyFinding] = []
    for pattern, rules, about in (
        (_CITE_LINE, _CITING, "how to cite rows"),
        (_COUNT_LINE, frozenset({ProtocolRule.TRUNCATION_COUNTS}), "telling the counts"),
    ):
        against = sorted({finding.rule.value for finding in findings if finding.rule in rules})
        if against and any(pattern.match(line) for line in lines):
            reason = f"the result's line about {about} was not followed"
            broken.append(ReplyFinding(rule=ProtocolRule.INSTRUCTIONS, reason=reason, metadata={"rules": against}))
    return broken


def _check_codes(layout: ReplyLayout, prose: str, texts: Sequence[str]) -> list[ReplyFinding]:
    """Return what of `__src` the reply shows; the question comes first among the texts, then what was retrieved."""
    found = [SOURCE_COLUMN] if SOURCE_COLUMN in prose else []
    found += dict.fromkeys(_CODE.findall(prose))
    leaked = [code for code in found if code not in texts[0] and not _is_of_document(code, texts)]
    if not leaked:
        return []
    block = next((unit.number for unit in layout.units if leaked[0] in unit.raw), None)
    reason = f"{', '.join(leaked[:3])} reached the reply"
    return [ReplyFinding(rule=ProtocolRule.SOURCE_CODES, reason=reason, block=block, metadata={"codes": leaked[:20]})]


def _is_of_document(code: str, texts: Sequence[str]) -> bool:
    """Tell whether a document says the very same: there its first character is written as a reference."""
    written = f"&#{ord(code[0])};{code[1:]}"
    return any(written in text for text in texts)


def _check_names(
    layout: ReplyLayout, prose: str, results: Sequence[ResultFacts], tables: Sequence[ResultFacts], *, question: str
) -> list[ReplyFinding]:
    known = sorted({name for table in tables for _, name in table.files.values()})
    texts = [question.casefold(), *(result.text.casefold() for result in results), *(name.casefold() for name in known)]
    named: list[tuple[str, int | None]] = [(name, None) for name in _names_in(prose)]
    pieces = {piece.filename for result in results for piece in result.pieces}
    for unit in layout.units:
        cited = [citation.filename for citation in valid_citations(unit) if isinstance(citation, TableCitation)]
        named += [(name, unit.number) for name in cited if name not in known and name not in pieces]
    strange = {name: block for name, block in reversed(named) if not any(name.casefold() in text for text in texts)}
    return [
        ReplyFinding(
            rule=ProtocolRule.FILE_NAMES,
            reason=f"{quoted(name)} is not in file_ref_table, which has {', '.join(quoted(each) for each in known[:3])}",
            block=block,
        )
        for name, block in sorted(strange.items())
    ]


def _names_in(prose: str) -> list[str]:
    lowered = prose.lower()
    if not any(ending in lowered for ending in _ENDINGS):
        return []
    words = (word.strip(_EDGES) for word in _NAME.findall(prose))
    return [word for word in dict.fromkeys(words) if word.lower().endswith(_ENDINGS)]


def _check_counts(layout: ReplyLayout, table: ResultFacts, tables: Sequence[ResultFacts]) -> ReplyFinding | None:
    if not table.omitted or table.total is None or table.displayed is None or not _is_used(layout, table, tables):
        return None
    said = [unit.text for unit in layout.units if unit.kind is not BlockKind.TABLE]
    said += [line for line in layout.reply.split("\n") if line.lstrip().startswith("#")]
    told = [text for text in said if is_about_counts(text)]
    stated = frozenset().union(*(counts_in(text) for text in told)) if told else frozenset()
    wanted = {"total": table.total, "displayed": table.displayed, "omitted": table.omitted}
    missing = [f"{name} ({count})" for name, count in wanted.items() if count not in stated]
    if not missing:
        return None
    reason = f"the result was cut short and the reply does not tell {', '.join(missing)}"
    return ReplyFinding(rule=ProtocolRule.TRUNCATION_COUNTS, reason=reason, metadata=wanted)


def _is_used(layout: ReplyLayout, table: ResultFacts, tables: Sequence[ResultFacts]) -> bool:
    """Tell whether the reply draws on this table: it cites a sheet of it, or there is no other."""
    places = {
        (citation.file, citation.sheet)
        for unit in layout.units
        for citation in valid_citations(unit)
        if isinstance(citation, TableCitation)
    }
    return any(place in table.sheets for place in places) or all(other is table or not other.rows for other in tables)


def _check_sheets(layout: ReplyLayout, table: ResultFacts) -> ReplyFinding | None:
    """Return a finding for rows that are shown at a cited unit while their sheet is cited nowhere; each file and sheet has its own."""
    if len(table.sheets) < _SEVERAL:
        return None
    cited = {(one.file, one.sheet) for unit in layout.units for one in valid_citations(unit) if isinstance(one, TableCitation)}
    if not any(place in table.sheets for place in cited):
        return None
    shown = [unit for unit in layout.units if any(isinstance(one, TableCitation) for one in valid_citations(unit))]
    for row in table.rows:
        places = [(table.files.get(f"F{place.file}", ("", ""))[0], place.sheet) for place in row.places]
        if not places or any(place in cited for place in places):
            continue
        unit = next((unit for unit in shown if _shows(unit, row)), None)
        if unit is not None:
            file, sheet = places[0]
            reason = (
                f"the {unit.kind.value} shows rows of sheet {sheet} of {quoted(file)}, which is not cited; each file and sheet has its own"
            )
            return ReplyFinding(rule=ProtocolRule.INSTRUCTIONS, reason=reason, block=unit.number)
    return None


def _shows(unit: ReplyUnit, row: TableRow) -> bool:
    """Tell whether a unit shows a row: its first cell with words and one cell more, or its only cell."""
    cells = [cell for cell in row.cells if cell.strip()]
    named = next((cell for cell in cells if any(map(str.isalpha, cell))), None)
    text = f" {' '.join(_NAME.findall(unit.text))} ".casefold()
    found = [cell for cell in cells if f" {' '.join(_NAME.findall(cell))} ".casefold() in text]
    return named in found and len(found) >= min(_SEVERAL, len(cells))


def _check_merged(unit: ReplyUnit) -> ReplyFinding | None:
    seen: set[tuple[str, int]] = set()
    for citation in valid_citations(unit):
        if not isinstance(citation, TableCitation):
            continue
        place = (citation.file, citation.sheet)
        if place in seen:
            reason = f"sheet {citation.sheet} of {quoted(citation.filename)} is cited twice at one {unit.kind.value}; its rows go together"
            return ReplyFinding(rule=ProtocolRule.INSTRUCTIONS, reason=reason, block=unit.number)
        seen.add(place)
    return None
