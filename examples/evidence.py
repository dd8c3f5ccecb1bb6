"""What the agent was shown, and what follows from it: passages to ground an answer in, and proof that they are what is stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evidentia import EvidenceResponse
from evidentia.grounding.score import ground_answer
from evidentia.protocol.citations import DocumentCitation, TableCitation, find_citations
from evidentia.protocol.table_rows import read_code

if TYPE_CHECKING:
    from evidentia import AsyncBase
    from evidentia.contracts.grounding import GroundingReport
    from evidentia.contracts.tables import TableAnswer
    from evidentia.protocol.toolbox import ToolResult

_NOT_PROSE = re.compile(r"<CITATION[^>]*>|!\[[^\]]*\]\([^)]*\)")


class Evidence:
    """Collects what the tools returned to one run."""

    def __init__(self, base: AsyncBase) -> None:
        self._base = base
        self.passages: dict[str, str] = {}
        """By chunk id, or by document, sheet and row."""
        self.receipts: list[str] = []

    async def add(self, result: ToolResult) -> list[dict[str, object]]:
        """Keep what a tool returned, and return it as documents to be recorded."""
        if result.receipt_id:
            self.receipts.append(result.receipt_id)
        documents: list[dict[str, object]] = []
        for fragment in result.fragments:
            self.passages[fragment.chunk_id] = fragment.content
            documents.append({"source": fragment.document_id, "relevance_score": fragment.confidence, "chunk_id": fragment.chunk_id})
        if result.answer is not None:
            rows = await self._rows(result.answer)
            self.passages |= rows
            documents += [{"source": place, "relevance_score": 1.0} for place in rows]
        return documents

    async def _rows(self, answer: TableAnswer) -> dict[str, str]:
        """Return each row of a sheet that an answer rests on, whole: the answer may show one cell of it, and not whose it is."""
        found: dict[str, str] = {}
        for code in (read_code(text) for codes in answer.sources for text in codes):
            if code is None:
                continue
            document_id = answer.files[code.file - 1][0]
            for card in answer.tables:
                if (card.document_id, card.sheet) == (document_id, code.sheet) and card.first_row <= code.row <= card.last_row:
                    content = (await self._base.open_table(card.table_id)).content
                    place = content.rows.index(code.row)
                    cells = [f"{column.name}: {cells[place]}" for column, cells in zip(card.columns, content.columns, strict=True)]
                    found[f"{document_id} sheet {code.sheet} row {code.row}"] = "; ".join(cells) + "."
        return found

    def ground(self, reply: str) -> GroundingReport:
        """Score every sentence of a reply against all passages; tags and images say nothing."""
        return ground_answer(_NOT_PROSE.sub("", reply), list(self.passages.items()))

    async def verify(self, reply: str) -> list[str]:
        """Return what does not hold: answers that differ today, changed fragments, and cited documents whose custody is broken."""
        problems = []
        for receipt_id in self.receipts:
            replay = await self._base.replay(receipt_id)
            report = await self._base.verify(EvidenceResponse.of(replay.response))
            if not replay.is_same or not report.ok:
                problems.append(f"receipt {receipt_id} does not verify: {report.first_broken or 'the answer differs'}")
        for document_id in dict.fromkeys(citation.file for citation in citations_of(reply)):
            report = await self._base.verify(document_id)
            if not report.ok:
                problems.append(f"'{document_id}' does not verify: {report.first_broken}")
        return problems


def citations_of(reply: str) -> list[DocumentCitation | TableCitation]:
    """Return the documents and rows that a reply cites, in order."""
    found = (tag.citation for tag in find_citations(reply))
    return [citation for citation in found if isinstance(citation, DocumentCitation | TableCitation)]
