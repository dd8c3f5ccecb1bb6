"""`evidentia search` and what comes after an answer: documents, replay, and why a chunk is in it or not."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.contracts.vocabulary import FusionMethod, GovernanceMode, QueryStepName, RetrievalMode
from evidentia.serving.cli.invocation import BASE_UNUSABLE, AsOption, CommandResult, Invocation, arg, command, flag, opt
from evidentia.serving.cli.output import put_answer

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.receipts import ReplayReport, WhyReport

commands = typer.Typer()

MODES = ", ".join(RetrievalMode.words())
FUSIONS = ", ".join(FusionMethod.words())
STEPS = ", ".join(QueryStepName.words())
GOVERNANCE = ", ".join(GovernanceMode.words())
ModeOption = Annotated[str | None, opt("--mode", "M", f"{MODES}; default: hybrid.")]
ReceiptArgument = Annotated[str, arg("RECEIPT", "The receipt; `evidentia search` prints its id.")]


@command(commands, "documents")
def documents(
    base: "Base",
    *,
    limit: Annotated[int | None, opt("--limit", "N", "List at most this many; default: all.")] = None,
    after: Annotated[str, opt("--after", "DOC_ID", "Begin after this id, the last of the page before.")] = "",
) -> CommandResult[object]:
    """List the live documents, ordered by id."""
    from evidentia.serving.cli.search_report import put_documents

    found = base.documents(after=after, limit=limit)
    message = [
        {"document_id": document_id, "tenant": access.tenant, "classification": access.classification, "acl": access.acl, "chunks": count}
        for document_id, access, count in found
    ]
    if found:
        more = [f"there may be more; next: evidentia documents --limit {limit} --after {found[-1][0]}"] if len(found) == limit else []
        return CommandResult(message, lambda _: put_documents(found), notes=more)
    empty = f"there is no document after '{after}'" if after else "the base is empty; next: evidentia ingest PATH"
    return CommandResult(message, lambda _: put_documents(found), notes=[empty])


@command(commands, "show")
def show(
    base: "Base", *, document_id: Annotated[str, arg("DOC_ID", "The document; `evidentia documents` lists them.")]
) -> CommandResult[object]:
    """Show a document with its chunk ids and offsets."""
    from evidentia.serving.cli.search_report import put_document

    chunks = base.chunks(document_id)
    fields = ("chunk_id", "position", "start", "end", "content_hash", "content")
    message = {
        **{name: getattr(chunks[0], name) for name in ("document_id", "source_id", "metadata", "access")},
        "chunks": [{name: getattr(chunk, name) for name in fields} for chunk in chunks],
    }
    return CommandResult(message, lambda _: put_document(chunks))


@command(commands, "search", raw=("query",))
def search(
    call: Invocation,
    base: "Base",
    *,
    query: Annotated[str, arg("QUERY", 'The question; words in double quotes rank higher together, and +"..." requires them.')],
    limit: Annotated[int | None, opt("--limit", "N", "Maximum number of fragments; default: 10, or as many as --tokens holds.")] = None,
    token_budget: Annotated[int | None, opt("--tokens", "N", "Token budget for the content of all fragments.")] = None,
    deadline_ms: Annotated[int | None, opt("--deadline-ms", "N", "Latency deadline of the answer; default: 500.")] = None,
    mode: ModeOption = None,
    fusion: Annotated[str | None, opt("--fusion", "F", f"How lexical and dense results are fused: {FUSIONS}; default: linear.")] = None,
    weights: Annotated[
        str | None,
        opt("--weights", "R,A,F,U", "Weights of relevance, authority, freshness and utility, summing to 1; default: 0.45,0.25,0.15,0.15."),
    ] = None,
    diversity: Annotated[
        float | None, opt("--diversity", "D", "MMR trade-off: 1 ranks by score alone, 0 by novelty alone; default: 0.7.")
    ] = None,
    task: Annotated[
        str | None, opt("--task", "TYPE", "Task type for the utility signal: coding, debugging, operations and the like.")
    ] = None,
    without: Annotated[list[str] | None, opt("--without", "STEP", f"Skip a step of query understanding: {STEPS}; repeatable.")] = None,
    filter_: Annotated[str | None, opt("--filter", "EXPR", 'Metadata filter, such as \'language = "en" AND tags contains "ops"\'.')] = None,
    facets: Annotated[list[str] | None, opt("--facet", "F", "Facet: count matching documents by this field; repeatable.")] = None,
    source_policy: Annotated[list[str] | None, opt("--source", "S", "Search only this source; repeatable.")] = None,
    max_sources: Annotated[
        int | None, opt("--max-sources", "N", "Ask at most this many sources outside the base per part; default: 3.")
    ] = None,
    most_sources: Annotated[int | None, opt("--most-sources", "N", "The former name of --max-sources.", is_hidden=True)] = None,
    max_staleness_ms: Annotated[
        int | None, opt("--max-staleness-ms", "N", "Maximum age of cached responses; 0 bypasses the cache.")
    ] = None,
    early_stop: Annotated[
        bool, flag("--early-stop", "Stop waiting for sources once the results suffice; the answer then depends on response order.")
    ] = False,
    agent_name: Annotated[str | None, opt("--agent", "A", "The requesting agent; selects its memory and its policies.")] = None,
    governance: Annotated[
        str | None, opt("--governance", "G", f"Governance mode, what policies do to the answer: {GOVERNANCE}; default: annotate.")
    ] = None,
    session_context: Annotated[str | None, opt("--session", "S", "The session; selects its memory and its cached responses.")] = None,
    caller: AsOption = None,  # noqa: ARG001 - the base is opened as this principal
    as_of: Annotated[str | None, opt("--as-of", "TIME", "Reference time of the request; default: now.")] = None,
    corpus_version: Annotated[str | None, opt("--corpus-version", "V", "Search this version (snapshot) instead of the newest.")] = None,
    explain: Annotated[bool, flag("--explain", "Explain the score of each fragment term by term, and what each stage did.")] = False,
    stream: Annotated[bool, flag("--stream", "Report every source on stderr as it finishes.")] = False,
    no_receipt: Annotated[bool, flag("--no-receipt", "Write no receipt; the answer then cannot be replayed.")] = False,
) -> "CommandResult[EvidenceResponse]":
    """Answer a question with ranked fragments.

    Exit code 3 means that nothing was found before the search ran out of time.

    The caller sees only documents they are allowed to see; no other document influences the answer.
    """
    from evidentia.base.base_ingest import word
    from evidentia.serving.cli.search_report import put_response, streamed
    from evidentia.serving.cli.snippets import SnippetCutter

    sources = {"allowed_sources": source_policy or None, "most_sources": most_sources if max_sources is None else max_sources}
    fields = {
        "limit": limit,
        "token_budget": token_budget,
        "latency_deadline_ms": deadline_ms,
        "mode": None if mode is None else word(RetrievalMode, mode, field="mode"),
        "fusion": None if fusion is None else word(FusionMethod, fusion, field="fusion"),
        "ranking_weights": None if weights is None else _weights(weights),
        "diversity_constraint": diversity,
        "task": None if task is None else {"type": task},
        "without": None if without is None else [word(QueryStepName, step, field="without") for step in without],
        "filter": filter_,
        "facets": facets,
        "source_policy": {name: value for name, value in sources.items() if value is not None} or None,
        "max_staleness_ms": max_staleness_ms,
        "early_stop": early_stop,
        "agent_name": agent_name,
        "governance": None if governance is None else word(GovernanceMode, governance, field="governance"),
        "session_context": session_context,
        "as_of": as_of,
        "corpus_version": corpus_version,
        "explain": explain,
        "receipt": not no_receipt,
    }
    response = streamed(call, base.retrieve_stream(query, **fields)) if stream else base.retrieve(query, **fields)
    text, similarity = base.settings.text, base.settings.search.similarity

    def show(answer: "EvidenceResponse") -> None:
        put_response(call, answer, cutter=SnippetCutter(query, language=text.language), similarity=similarity, is_explained=explain)

    is_unknown = bool(response.unfinished) and not response.fragments
    return CommandResult(response, show, is_failed=is_unknown, exit_code=BASE_UNUSABLE, put_message=put_answer)


@command(commands, "replay", has_caller=True)
def replay(call: Invocation, base: "Base", *, receipt: ReceiptArgument) -> "CommandResult[ReplayReport]":
    """Replay the request of a receipt and compare the results.

    Exit code 1 means that the answer differs. The output is limited to what you may see today.
    """
    from evidentia.serving.cli.search_report import put_replay

    report = base.replay(receipt)
    show = partial(put_replay, call, language=base.settings.text.language)
    return CommandResult(report, show, is_failed=not report.is_same, put_message=put_answer)


@command(commands, "why", has_caller=True)
def why(
    base: "Base",
    *,
    receipt: ReceiptArgument,
    chunk: Annotated[str, arg("CHUNK", "The chunk; `search --explain` and `show` print the ids.")],
) -> "CommandResult[WhyReport]":
    """Explain why a chunk is, or is not, in an answer.

    A chunk that you may not see is reported as one that does not exist.
    """
    from evidentia.serving.cli.search_report import put_why

    return CommandResult(base.why(receipt, chunk), partial(put_why, similarity=base.settings.search.similarity))


def _weights(text: str) -> dict[str, float]:
    """Return four weights as typed, or name what cannot be read."""
    from evidentia.contracts.errors import InvalidFieldError

    names = ("relevance", "authority", "freshness", "utility")
    try:
        return dict(zip(names, map(float, text.split(",")), strict=True))
    except ValueError as error:
        raise InvalidFieldError("ranking_weights", f"'{text}' is not four numbers separated by commas") from error
