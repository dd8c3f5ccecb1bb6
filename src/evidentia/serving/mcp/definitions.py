"""The tools as clients see them: constant words and small schemas. Nothing here comes from a document or a request.

Every definition is paid for in tokens by every conversation, so all of them together stay under `MAX_TOKENS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from evidentia.contracts.vocabulary import FusionMethod, GovernanceMode, QueryStepName, RetrievalMode
from evidentia.protocol.toolbox import DEFAULT_TOP_K, MAX_TOP_K

MAX_TOKENS: Final = 2_000
"""What all definitions together may cost, counted with o200k_base as JSON."""

RAG: Final = "rag_retrieve"
TABLE: Final = "table_rag_retrieve"
RETRIEVE: Final = "retrieve"
VERIFY: Final = "verify"
CHECK: Final = "check_reply"

Schema = Mapping[str, Any]  # Any: the values of a JSON schema


class Definition(NamedTuple):
    """One tool: what it is called, what it is for, what goes in and, where that is structured, what comes out."""

    name: str
    title: str
    description: str
    takes: Schema
    gives: Schema | None = None
    asks_outside: bool = False
    """Whether it may ask sources outside the base."""


def _described(kind: str, description: str = "", **more: object) -> Schema:
    return {"type": kind, **({"description": description} if description else {}), **more}


def _either(first: str, second: str, description: str = "") -> Schema:
    """Return a schema of two types, spelt so that clients with a single-type dialect can read it."""
    return {"anyOf": [{"type": first}, {"type": second}], **({"description": description} if description else {})}


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _words(vocabulary: type[RetrievalMode | FusionMethod | GovernanceMode | QueryStepName]) -> list[str]:
    return list(vocabulary.words())


_TEXT: Final = _described("string")
_SESSION: Final = _described("string", "Names a conversation; only for clients that keep no MCP session.")
_MOMENT: Final = _described("string", format="date-time")

REQUEST_FIELDS: Final[Schema] = {
    "query": _either("string", "object", "The question, or {text, subqueries}."),
    "limit": _described("integer", minimum=1),
    "token_budget": _described("integer", "Most tokens of all fragments together.", minimum=1),
    "latency_deadline_ms": _described("integer", minimum=1),
    "filter": _either("string", "object", 'Such as: source_id = "handbook" AND updated_at >= "2026-01-01".'),
    "facets": _described("array", items=_TEXT),
    "mode": {"enum": _words(RetrievalMode)},
    "fusion": {"enum": _words(FusionMethod)},
    "as_of": _MOMENT,
    "time_window": _described("object", "{start, end}"),
    "source_policy": _described("object", "Which sources may be asked."),
    "ranking_weights": _described("object", "{relevance, authority, freshness, utility}, sum 1"),
    "diversity_constraint": _described("number", minimum=0, maximum=1),
    "provenance_required": _described("boolean"),
    "session_context": _TEXT,
    "corpus_version": _TEXT,
    "evidence_state": _TEXT,
    "agent_name": _TEXT,
    "turns": _described("array", "Earlier {role, text}.", items={"type": "object"}),
    "task": _described("object", "{type, text}"),
    "cost_budget_micros": _described("integer", minimum=0),
    "max_staleness_ms": _described("integer", minimum=0),
    "governance": {"enum": _words(GovernanceMode)},
    "explain": _described("boolean"),
    "without": _described("array", items={"enum": _words(QueryStepName)}),
    "early_stop": _described("boolean"),
    "rerank": _described("boolean"),
    "tokenizer": _TEXT,
    "receipt": _described("boolean"),
}
"""The fields of `EvidenceRequest`, except who asks: that is the connection's to say."""

DEFINITIONS: Final = (
    Definition(
        TABLE,
        "Ask tables",
        "Ask spreadsheets and tables. Use first by default: values, prices, quantities, lists, rankings, comparisons, "
        "specifications, names, history, and whenever unsure. Returns rows with codes to cite; without spreadsheets it "
        "returns text evidence.",
        _object({"query": _described("string", "Keep the entities, time scope and attributes asked for."), "session": _SESSION}, "query"),
        asks_outside=True,
    ),
    Definition(
        RAG,
        "Ask documents",
        "Search documents. Use first only for pure concept questions (definition, workflow, policy, explanation), else after "
        "table_rag_retrieve. Returns text with pages, images and the citation rules.",
        _object(
            {
                "query": _described("string", "Keep the entities, time scope and attributes asked for."),
                "top_k": _described(
                    "integer", "50 for a lookup, 100 for broad questions.", minimum=1, maximum=MAX_TOP_K, default=DEFAULT_TOP_K
                ),
                "session": _SESSION,
            },
            "query",
        ),
        asks_outside=True,
    ),
    Definition(
        RETRIEVE,
        "Retrieve with all options",
        "The full evidence contract: ranked fragments with custody, coverage of every source, and a receipt.",
        _object(REQUEST_FIELDS, "query"),
        {
            "type": "object",
            "properties": {
                "fragments": {"type": "array", "items": {"type": "object"}},
                "receipt_id": _either("string", "null"),
                "result_hash": _TEXT,
            },
            "required": ["fragments", "receipt_id", "result_hash"],
        },
        asks_outside=True,
    ),
    Definition(
        VERIFY,
        "Verify evidence",
        "Recompute custody: of a receipt (answered again and compared) or of a whole answer of retrieve. Give one of the two.",
        _object({"receipt_id": _TEXT, "response": _described("object", "Structured content of retrieve, unchanged.")}),
        {"type": "object", "properties": {"ok": {"type": "boolean"}, "broken": {"type": "array"}}, "required": ["ok"]},
    ),
    Definition(
        CHECK,
        "Check a reply",
        "Check a drafted reply against what this session retrieved, before it is sent: citations, placement, tables, images, "
        "self-check. When ok is false, put right what text lists and check again.",
        _object(
            {
                "question": _described("string", "What the user asked."),
                "reply": _described("string", "The whole reply with its citations."),
                "session": _SESSION,
            },
            "question",
            "reply",
        ),
        {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "findings": {"type": "array"}, "text": _TEXT},
            "required": ["ok", "findings", "text"],
        },
    ),
)


def listed(definition: Definition) -> dict[str, Any]:  # Any: JSON
    """Return a definition as it stands on the wire."""
    wire: dict[str, Any] = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "inputSchema": dict(definition.takes),
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": definition.asks_outside,
        },
    }
    return wire if definition.gives is None else {**wire, "outputSchema": dict(definition.gives)}
