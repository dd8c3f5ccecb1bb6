"""Tool results and replies in their exact form, for tests of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.contracts.protocol import AgentTrace, TracedCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTHING = "Error: no relevant evidence was found"
_TEXT_RULE = (
    '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" page=N /> directly after the paragraph or list that uses it: '
    "one or two each, never collected at the end. FILE, NAME and N are those of the piece of evidence."
)
_TABLE_RULE = (
    '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" sheet=S rows=[R, ...] /> on a line of its own after the list '
    "or table: one for each file and sheet, its rows together. FILE and NAME stand in file_ref_table under the F of the code in __src "
    "(F<file>S<sheet>R<row>). Never show __src."
)


def text_result(*texts: str) -> str:
    """Return a result of rag_retrieve with these fragments."""
    pieces = [
        f'### [{number}] file="handbook:doc{number}.md" filename="doc{number}.md" page=0\n{text}'
        for number, text in enumerate(texts, start=1)
    ]
    return "\n".join((_TEXT_RULE, "RAG_KNOWLEDGE BEGIN", *pieces, "RAG_KNOWLEDGE END"))


def table_result(columns: Sequence[str], rows: Sequence[Sequence[str]], *, omitted: int = 0, filename: str = "prices.xlsx") -> str:
    """Return a result of table_rag_retrieve with these rows."""
    total = len(rows) + omitted
    told = f"[EXTRA_INSTRUCTION] The result is truncated. Tell the user: {total} in total, {len(rows)} displayed, {omitted} omitted."
    return "\n".join(
        (
            _TABLE_RULE,
            *([told] if omitted else []),
            "file_ref_table:",
            "| code | file | filename |",
            f"| F1 | handbook:{filename} | {filename} |",
            "TABLE_KNOWLEDGE BEGIN",
            f"| __src | {' | '.join(columns)} |",
            f"| {' | '.join(['---'] * (len(columns) + 1))} |",
            *(f"| F1S1R{number} | {' | '.join(row)} |" for number, row in enumerate(rows, start=2)),
            "TABLE_KNOWLEDGE END",
            f"total={total} displayed={len(rows)} omitted={omitted}",
        )
    )


def ask(name: str, query: str, result: str, **more: Any) -> TracedCall:
    """Return a call of a retrieval tool."""
    arguments: Mapping[str, Any] = {"query": query, **more}
    return TracedCall(name=name, arguments=arguments, result=result)


PRICE = "How much does the Falcon plan cost per month?"
PRICES = table_result(("plan", "price per month"), [("Falcon", "20 EUR")])
PRICE_REPLY = 'The Falcon plan costs 20 EUR per month.\n<CITATION file="handbook:prices.xlsx" filename="prices.xlsx" sheet=1 rows=[2] />'
KEYS = "How do I rotate the signing keys?"
KEYS_RESULT = text_result("Signing keys are rotated with `vault rotate` after 30 days. Restart the signer afterwards.")
KEYS_REPLY = 'Signing keys are rotated with `vault rotate` after 30 days.\n<CITATION file="handbook:doc1.md" filename="doc1.md" page=0 />'


def price_trace(**changes: Any) -> AgentTrace:
    """Return a correct trace about a price."""
    fields = {"calls": (ask("table_rag_retrieve", "Falcon plan price per month", PRICES),), "reply": PRICE_REPLY, **changes}
    return AgentTrace(question=PRICE, **fields)


def keys_trace(**changes: Any) -> AgentTrace:
    """Return a correct trace about a procedure."""
    fields = {"calls": (ask("rag_retrieve", "signing key rotation steps", KEYS_RESULT, top_k=50),), "reply": KEYS_REPLY, **changes}
    return AgentTrace(question=KEYS, **fields)
