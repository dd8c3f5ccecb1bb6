"""Bases that look alike to one caller: with hidden documents, with others in their place that hold other words, and without any.

What is hidden holds words in every place from which something is looked up: texts, headings, names of files and sources, metadata, free
fields, definitions, tables, images and notes. The first two bases are of the same size, so that nothing but the words can differ.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import evidentia
from evidentia.contracts.access import Principal
from evidentia.contracts.control import Role, TokenFacts, TokenId, TokenInfo
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.operations import OPERATIONS
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.hosting.application import make_app
from evidentia.serving.identity.admission import Identity
from evidentia.serving.identity.callers import Grants
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.operations.endpoint import OperationRequest
from evidentia.serving.operations.execution import perform, perform_stream
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.wiring.governance_runtime import GovernanceRuntime
from evidentia.wiring.settings_file import SETTINGS_NAME
from serving.served_bases import picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evidentia.contracts.operations import Operation, QueryField
    from evidentia.serving.operations.endpoint import Endpoint
    from evidentia.serving.operations.server_context import ServerContext
    from work_counter import Work, WorkCounter

SETTINGS = """
[embedding]
encoder = "none"

[cache]
enabled = false

[access]
rules = ['NOT extra.embargo exists']
"""
NOWHERE = {
    "zorvak": "mildub", "brenlok": "grastup", "quimdat": "flonkir", "harbolt": "wickant", "lantern": "compass",
    "Zorvak": "Mildub", "Brenlok": "Grastup", "Quimdat": "Flonkir", "ZBQ": "MGF", "zbq": "mgf",
}  # fmt: skip
"""Words of the hidden documents, and those that stand in their place in the second base; `lantern` and `compass` are seen as well."""
HIDDEN = """---
title: The {zorvak} file {number}
author: {Brenlok}
tags: [{zorvak}, ship]
{quimdat}: {brenlok}
{access}
---
# {Zorvak} {lantern}

The {Zorvak} {Brenlok} {Quimdat} ({ZBQ}) pays for the {harbolt} of pier {number}. The {lantern} {lantern} of the {ZBQ} stands in {brenlok}.
"""
OPEN = """---
title: Pier {number}
author: Ada
tags: [ship, pier]
region: north
---
# Harbour {number}

The lantern and the compass of pier {number} stand by the harbour. The Port Authority Office (PAO) keeps {thing} there.
"""
THINGS = ("ropes", "charts", "anchors", "sails", "crates", "barrels")
TOKEN = TokenInfo(
    token_id=TokenId("000000000000"),
    name="reader",
    roles=(Role.READER, Role.AGENT),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    facts=TokenFacts(clearance=Classification.INTERNAL),
)
ME = Identity(TOKEN, Grants().principal_of(TOKEN))
OTHER = Principal(principal_id=PrincipalId("somebody"), clearance=Classification.RESTRICTED)


class Case(NamedTuple):
    """One request: which operation, and what stands in its path, its query and its body."""

    endpoint: Endpoint
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any = None

    def __str__(self) -> str:
        """Return what is asked in a line."""
        given = {name: each for name, each in {**self.path, **self.query}.items() if each is not None}
        return f"{self.endpoint.name} {given} {msgspec.json.encode(self.body).decode() if self.body is not None else ''}"


class Things(NamedTuple):
    """Ids by which something is asked for, each with what it names: hidden, visible and missing ones."""

    documents: tuple[str, ...]
    chunks: tuple[str, ...]
    tables: tuple[str, ...]
    images: tuple[str, ...]


class TwinBase:
    """One of the bases, asked as one caller who sees a part of it."""

    def __init__(self, directory: Path) -> None:
        self._stack = ExitStack()
        control = self._stack.enter_context(GovernanceRuntime(directory / "base", is_durable=False))
        self.context: ServerContext = make_app(control).state.context
        self._runner = self._stack.enter_context(asyncio.Runner())
        self.receipt = self.asked("lantern of the harbour")["receipt_id"]

    def ask(self, case: Case) -> object:
        """Return what a request answers, or how it is refused."""
        path = {name: each.replace("{receipt}", self.receipt) for name, each in case.path.items()}
        operation = OperationRequest(ME, path, case.query, case.body)
        try:
            return self._runner.run(_answered(self.context, case.endpoint, operation))
        except ApiError as error:
            return {"status": error.status, "error": str(error)}

    def asked(self, text: str) -> dict[str, Any]:
        """Ask for evidence."""
        found = self.ask(Case(_BY_NAME["retrieve"], {}, {}, {"query": text, "latency_deadline_ms": 60_000}))
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        """Give back what is held."""
        self._runner.run(self.context.served_base.close())
        self._stack.close()


SHADE = 77
FIRST = {word: word for word in NOWHERE}
SECOND = NOWHERE


def make(directory: Path, words: Mapping[str, str] | None) -> None:
    """Make a base; `words` stand in what is hidden, None for nothing hidden."""
    folder = directory / "shelf"
    folder.mkdir(parents=True)
    for number, thing in enumerate(THINGS):
        (folder / f"{2 * number:02}-pier.md").write_text(OPEN.format(number=number, thing=thing), encoding="utf-8")
        if words is not None:
            access = ("classification: restricted", "acl: [group:oncall]", "embargo: yes")[number % 3]
            text = HIDDEN.format(number=number, access=access, **words)
            (folder / f"{2 * number + 1:02}-{words['zorvak']}.md").write_text(text, encoding="utf-8")
    rich = directory / "rich"
    rich.mkdir()
    (rich / "prices.csv").write_text("item,price\nlantern,4\ncompass,7\nrope,9\n", encoding="utf-8")
    (rich / "drawing.md").write_text("# Drawing\n\n![a pier](plan.png)\n", encoding="utf-8")
    (rich / "plan.png").write_bytes(picture(1))
    with evidentia.connect(directory / "base", init=True):
        pass
    (directory / "base" / SETTINGS_NAME).write_text(SETTINGS, encoding="utf-8")
    with evidentia.connect(directory / "base") as base:
        base.ingest([folder], source="shelf")
        base.ingest([rich], source="rich")
        if words is not None:
            vault = directory / f"vault-{words['zorvak']}"
            vault.mkdir()
            rows = f"{words['zorvak']},{words['brenlok']}\n{words['quimdat']},4\n{words['lantern']},7\n"
            (vault / f"{words['zorvak']}.csv").write_text(rows, encoding="utf-8")
            (vault / "drawing.md").write_text(f"# {words['Zorvak']}\n\n![a plan](plan.png)\n", encoding="utf-8")
            (vault / "plan.png").write_bytes(picture(SHADE if words["zorvak"] == "zorvak" else SHADE + 1))
            base.ingest([vault], source=vault.name, classification="restricted")
    with evidentia.connect(directory / "base", principal=ME.principal) as base:
        base.remember("the lantern is mine", agent="rag-agent")
    with evidentia.connect(directory / "base", principal=OTHER) as base:
        if words is not None:
            base.remember(f"the {words['zorvak']} is {words['brenlok']}", agent="rag-agent")


def things_of(directory: Path) -> Things:
    """Return ids that a base holds, hidden ones among them, and ids that none does."""
    with evidentia.connect(directory / "base") as base:
        documents = [str(each[0]) for each in base.documents()]
        hidden = [each for each in documents if "zorvak" in each]
        chunks = [base.chunks(each)[0].chunk_id for each in (*hidden[:2], "shelf:00-pier.md")]
        tables = [str(card.table_id) for card in base.tables()]
    return Things(
        documents=(*hidden, "shelf:00-pier.md", "rich:drawing.md", "shelf:nothing.md"),
        chunks=(*chunks, "shelf:nothing.md#0@0000000000000000"),
        tables=(*tables, "shelf:nothing.csv#S1T1"),
        images=(hashlib.sha256(picture(SHADE)).hexdigest(), hashlib.sha256(picture(1)).hexdigest(), "0" * 64),
    )


OF_THE_BASE = frozenset(
    {"as_of", "commit", "commits", "corpus_version", "custody_head", "data_age_s", "elapsed_ms", "event", "event_index", "events",
    "evidence_state", "head", "health", "inclusion", "latency_ms", "note_id", "provenance_chain", "receipt_id", "request_id", "signed_by",
    "staleness_s"}
)  # fmt: skip
"""Fields that name a version of the whole base, a moment, or a machine's time; so do hashes, timestamps and what ends in `_at`."""


def seen_of(answer: Any) -> Any:
    """Return an answer without what names the whole base or a moment."""
    if isinstance(answer, dict):
        named = {name: each for name, each in answer.items() if not name.endswith(("_at", "timestamp", "_hash"))}
        seen = {name: seen_of(each) for name, each in named.items() if name not in OF_THE_BASE}
        return {name: sorted(each, key=str) if name == "notes" else each for name, each in seen.items()}  # their ids are drawn
    return [seen_of(each) for each in answer] if isinstance(answer, (list, tuple)) else answer


async def _answered(context: ServerContext, endpoint: Endpoint, operation: OperationRequest) -> object:
    if endpoint.is_stream:
        return [msgspec.to_builtins(part) async for part in perform_stream(context, endpoint, lambda: operation)]
    return msgspec.to_builtins((await perform(context, endpoint, lambda: operation)).message)


# --- requests ---

WORDS = (
    "zorvak", "brenlok", "mildub", "lantern", "compass", "zorvak lantern", "the zorvak of the harbour", "zorvek", "zorvka brenlock",
    "harbolt", "harbuor", "lantren", '"zorvak brenlok"', '+"zorvak brenlok" harbour', '"the lantern"', '+"lantern and the compass"',
    "ZBQ", "what is the ZBQ", "Zorvak Brenlok Quimdat", "PAO", "vault-zorvak", "01-zorvak.md", "compass or zorvak and lantern",
)  # fmt: skip
FILTERS = (
    'author = "Brenlok"', 'author = "Ada"', 'tags contains "zorvak"', 'tags contains "pier"', "extra.quimdat exists",
    'extra.quimdat = "brenlok"', 'extra.region = "north"', 'document_id contains "zorvak"', 'source_id = "vault-zorvak"',
    'NOT author = "Brenlok" AND tags contains "ship"', 'title contains "zorvak" OR author = "Ada"', 'classification = "restricted"',
)  # fmt: skip
QUESTIONS = (
    "what is the zorvak", "how many zorvak have a brenlok of 4", "which item has a price of 4", "sum of brenlok", "quimdat",
    "the price of the quimdat", "the price of the compass",
)  # fmt: skip
VARIANTS: tuple[dict[str, Any], ...] = (
    {"mode": "lexical", "explain": True},
    {"facets": ["author", "tags", "source_id", "extra.quimdat"]},
    {"source_policy": {"allowed_sources": ["vault-zorvak", "shelf"]}},
    {"source_policy": {"acl_scope": [], "denied_sources": ["memory"]}},
    {"token_budget": 200},
    {"query": {"text": "zorvak and lantern", "subqueries": [{"text": "zorvak"}, {"text": "lantern"}]}},
)


def cases_of(things: Things) -> Iterator[Case]:
    """Yield requests of every operation that a reader or an agent may ask and that changes nothing of the base."""
    for endpoint in ENDPOINTS:
        if is_asked(endpoint):
            yield from _cases(endpoint, things)


def is_asked(operation: Operation) -> bool:
    """Tell whether an operation is for readers or agents."""
    return bool({Role.READER, Role.AGENT} & set(operation.roles)) and not operation.is_writing and not operation.is_base_wide


def _cases(endpoint: Endpoint, things: Things) -> Iterator[Case]:
    paths = [dict.fromkeys(endpoint.path_names, value) for value in _path_values(endpoint, things)] if endpoint.path_names else [{}]
    plain = {each.name: each.default for each in endpoint.query}
    queries = [plain, *({**plain, each.name: value} for each in endpoint.query for value in _query_values(each, things))]
    for body in _bodies(endpoint, things):
        for path in paths:
            for query in queries:
                yield Case(endpoint, path, query, body)


def _path_values(endpoint: Endpoint, things: Things) -> tuple[str, ...]:
    if "hash" in endpoint.path_names:
        return things.images
    return ("{receipt}", "zorvak") if endpoint.path.startswith("/v1/receipts") else ("zorvak", "nothing")


def _query_values(each: QueryField, things: Things) -> tuple[Any, ...]:
    named = {"chunk": things.chunks, "table": things.tables, "document": things.documents, "cursor": ()}
    if each.name in named:
        return named[each.name]
    if each.kind is str:
        return ("zorvak", "1") if each.name in {"older", "newer"} else ("zorvak", "lantern")
    return (2,) if each.kind is int else (True,) if each.kind is bool else ()


def _bodies(endpoint: Endpoint, things: Things) -> Iterator[Any]:
    """Yield what is sent; an operation with a message that is not known here has to be added here."""
    name = getattr(endpoint.request, "__name__", "")
    # Of the base alone: when others are heard, and whether in time, is a matter of luck.
    patient: dict[str, Any] = {"latency_deadline_ms": 60_000, "source_policy": {"denied_sources": ["memory"]}}
    match name:
        case "":
            yield None
        case "EvidenceAsk":
            if endpoint.is_stream:
                yield from ({"query": text, **patient} for text in WORDS[:8])
                return
            yield from ({"query": text, **patient} for text in WORDS)
            yield from ({"query": "lantern harbour", "filter": each, **patient} for each in FILTERS)
            yield from ({"query": text, **patient, **each} for each in VARIANTS for text in ("zorvak lantern", "lantern harbour"))
        case "TableQuestion":
            yield from (msgspec.convert({"question": each}, endpoint.request) for each in QUESTIONS)
        case "VerifyRequest":
            yield from (msgspec.convert({"target": each}, endpoint.request) for each in (*things.documents, *things.chunks))
        case "NoteRequest":
            yield msgspec.convert({"text": "the zorvak of the harbour", "agent": "rag-agent"}, endpoint.request)
        case "NoteIds":
            yield msgspec.convert({"note_ids": ["zorvak"]}, endpoint.request)
        case _:
            raise AssertionError(f"say here how {endpoint.name} is asked, so that its work is compared")


_BY_NAME = {each.name: each for each in ENDPOINTS}
assert {each.name for each in OPERATIONS} >= set(_BY_NAME)


def counted(base: TwinBase, cases: list[Case], counter: WorkCounter) -> list[tuple[object, Work]]:
    """Return what every request answers, and the work it took, in order."""
    return [counter.count(lambda case=case: base.ask(case)) for case in cases]  # type: ignore[misc]  # a default binds the loop's value
