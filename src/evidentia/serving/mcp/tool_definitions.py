"""The tools as clients see them: constant words and small schemas. Nothing here comes from a document or a request.

Every definition is paid for in tokens by every conversation, so all of them together stay under `MAX_TOKENS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
from evidentia.contracts.vocabulary import FusionMethod, GovernanceMode, OnTimeout, QueryStepName, RetrievalMode
from evidentia.protocol.toolbox import DEFAULT_TOP_K, MAX_QUERY_LENGTH, MAX_TOP_K
from evidentia.serving.operations.api_errors import nearest, shape_refusal
from evidentia.serving.operations.request_decoding import read_request as operations_request

MAX_TOKENS: Final = 2_000
"""What all definitions together may cost, counted with o200k_base as JSON."""

RAG: Final = "rag_retrieve"
TABLE: Final = "table_rag_retrieve"
RETRIEVE: Final = "retrieve"
VERIFY: Final = "verify"
CHECK: Final = "check_reply"

Schema = Mapping[str, Any]  # Any: the values of a JSON schema


class ToolDefinition(NamedTuple):
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


def _words(vocabulary: type[RetrievalMode | FusionMethod | GovernanceMode | OnTimeout | QueryStepName]) -> list[str]:
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
    "on_timeout": {"enum": _words(OnTimeout)},
}
"""The fields of `EvidenceRequest`, except who asks: that is the connection's to say."""

DEFINITIONS: Final = (
    ToolDefinition(
        TABLE,
        "Ask tables",
        "Ask spreadsheets and tables. Use first by default: values, prices, quantities, lists, rankings, comparisons, "
        "specifications, names, history, and whenever unsure. Returns rows with codes to cite; without spreadsheets it "
        "returns text evidence.",
        _object({"query": _described("string", "Keep the entities, time scope and attributes asked for."), "session": _SESSION}, "query"),
        asks_outside=True,
    ),
    ToolDefinition(
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
    ToolDefinition(
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
    ToolDefinition(
        VERIFY,
        "Verify evidence",
        "Recompute custody: of a receipt (answered again and compared) or of a whole answer of retrieve. Give one of the two.",
        _object({"receipt_id": _TEXT, "response": _described("object", "Structured content of retrieve, unchanged.")}),
        {"type": "object", "properties": {"ok": {"type": "boolean"}, "broken": {"type": "array"}}, "required": ["ok"]},
    ),
    ToolDefinition(
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


def listed(definition: ToolDefinition) -> dict[str, Any]:  # Any: JSON
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


# What a tool is given, read strictly: an error names the argument and, for a name that is nearly right, the one that is meant.

MAX_REPLY_LENGTH: Final = 1_000_000

Query = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUERY_LENGTH)]
SessionName = Annotated[str, msgspec.Meta(max_length=200)]


class TextAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `rag_retrieve` takes."""

    query: Query
    top_k: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOP_K)] = DEFAULT_TOP_K
    session: SessionName = ""


class TableAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `table_rag_retrieve` takes."""

    query: Query
    session: SessionName = ""


class VerifyAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `verify` takes: one of the two."""

    receipt_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    response: Mapping[str, Any] | None = None  # Any: an answer as JSON, which is read with its own type


class CheckAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `check_reply` takes."""

    question: Query
    reply: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REPLY_LENGTH)]
    session: SessionName = ""


Message = TypeVar("Message", bound=msgspec.Struct)


def check_words(given: Mapping[str, object]) -> None:
    """Refuse what JSON can write and nothing can keep: halves of characters, and values nested without end."""
    for name, value in given.items():
        try:
            msgspec.json.encode((name, value))
        except (UnicodeEncodeError, RecursionError) as error:
            raise InvalidFieldError(name.encode(errors="replace").decode(), "it is not UTF-8, or nested too deeply") from error


def read(kind: type[Message], given: object, *, within: str = "") -> Message:
    """Return a message from arguments.

    Raises:
        InvalidFieldError: An argument is unknown, missing or of another kind; it is named.
    """
    try:
        return convert(given, kind)
    except msgspec.ValidationError as error:
        told = shape_refusal(error, kind, names=kind.__struct_fields__, within=within).fault.problems[0]
        meant = f"; did you mean '{told.suggestion}'?" if told.suggestion else ""
        raise InvalidFieldError(told.path or within or "arguments", f"{told.problem}{meant}") from error


def read_request(given: Mapping[str, object], *, agent_name: str) -> EvidenceRequest:
    """Return the request in the arguments of `retrieve`; without an agent in it, the client is the agent."""
    for name in given:
        if name == "principal":
            raise InvalidFieldError(name, "who asks is settled by the connection, not by an argument")
        if name not in REQUEST_FIELDS:
            meant = nearest(name, tuple(REQUEST_FIELDS))
            raise InvalidFieldError(name, "retrieve takes no such argument" + (f"; did you mean '{meant}'?" if meant else ""))
    return operations_request({"agent_name": agent_name or None} | dict(given))


def read_response(given: Mapping[str, object]) -> EvidenceResponse:
    """Return an answer of `retrieve` that a client hands back."""
    return read(EvidenceResponse, given, within="response")
