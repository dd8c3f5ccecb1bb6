"""`evidentia search`: a question to ranked fragments, with their custody in `--json`."""

from typing import Annotated

import typer

from evidentia.contracts.vocabulary import FusionMethod, GovernanceMode, QueryStepName, RetrievalMode
from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation

MODES = ", ".join(RetrievalMode.words())
FUSIONS = ", ".join(FusionMethod.words())
STEPS = ", ".join(QueryStepName.words())
GOVERNANCE = ", ".join(GovernanceMode.words())

QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="The question; words in double quotes must stand together.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Maximum number of fragments; default: 10.", show_default=False)
]
TokensOption = Annotated[
    int | None, typer.Option("--tokens", metavar="N", help="Token budget for the content of all fragments.", show_default=False)
]
DeadlineOption = Annotated[
    int | None, typer.Option("--deadline-ms", metavar="N", help="Latency deadline of the answer; default: 500.", show_default=False)
]
ModeOption = Annotated[str | None, typer.Option("--mode", metavar="M", help=f"{MODES}; default: hybrid.", show_default=False)]
FusionOption = Annotated[
    str | None,
    typer.Option("--fusion", metavar="F", help=f"How lexical and dense results are fused: {FUSIONS}; default: linear.", show_default=False),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="R,A,F,U",
        help="Weights of relevance, authority, freshness and utility, summing to 1; default: 0.45,0.25,0.15,0.15.",
        show_default=False,
    ),
]
DiversityOption = Annotated[
    float | None,
    typer.Option(
        "--diversity", metavar="D", help="MMR trade-off: 1 ranks by score alone, 0 by novelty alone; default: 0.7.", show_default=False
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="TYPE", help="Task type for the utility signal: coding, debugging, operations and the like.", show_default=False
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="STEP", help=f"Skip a step of query understanding: {STEPS}; repeatable.", show_default=False),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="EXPR",
        help='Metadata filter, such as \'language = "en" AND tags contains "ops"\'.',
        show_default=False,
    ),
]
FacetOption = Annotated[
    list[str] | None,
    typer.Option("--facet", metavar="F", help="Facet: count matching documents by this field; repeatable.", show_default=False),
]
SourceOption = Annotated[
    list[str] | None, typer.Option("--source", metavar="S", help="Search only this source; repeatable.", show_default=False)
]
MostSourcesOption = Annotated[
    int | None,
    typer.Option(
        "--most-sources", metavar="N", help="Ask at most this many sources outside the base per part; default: 3.", show_default=False
    ),
]
StalenessOption = Annotated[
    int | None,
    typer.Option("--max-staleness-ms", metavar="N", help="Maximum age of cached responses; 0 bypasses the cache.", show_default=False),
]
EarlyStopOption = Annotated[
    bool, typer.Option("--early-stop", help="Stop waiting for sources once the results suffice; the answer then depends on response order.")
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="A", help="The requesting agent; selects its memory and its policies.", show_default=False),
]
GovernanceOption = Annotated[
    str | None,
    typer.Option(
        "--governance",
        metavar="G",
        help=f"Governance mode, what policies do to the answer: {GOVERNANCE}; default: annotate.",
        show_default=False,
    ),
]
SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="S", help="The session; selects its memory and its cached responses.", show_default=False)
]
StreamOption = Annotated[bool, typer.Option("--stream", help="Report every source on stderr as it finishes.")]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Reference time of the request; default: now.", show_default=False),
]
VersionOption = Annotated[
    str | None,
    typer.Option("--corpus-version", metavar="V", help="Search this version (snapshot) instead of the newest.", show_default=False),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Explain the score of each fragment term by term, and what each stage did.")]
NoReceiptOption = Annotated[bool, typer.Option("--no-receipt", help="Write no receipt; the answer then cannot be replayed.")]


def search(
    context: typer.Context,
    *,
    query: QueryArgument,
    limit: LimitOption = None,
    tokens: TokensOption = None,
    deadline_ms: DeadlineOption = None,
    mode: ModeOption = None,
    fusion: FusionOption = None,
    weights: WeightsOption = None,
    diversity: DiversityOption = None,
    task: TaskOption = None,
    without: WithoutOption = None,
    narrowing: FilterOption = None,
    facet: FacetOption = None,
    source: SourceOption = None,
    most_sources: MostSourcesOption = None,
    max_staleness_ms: StalenessOption = None,
    early_stop: EarlyStopOption = False,
    agent: AgentOption = None,
    governance: GovernanceOption = None,
    session: SessionOption = None,
    caller: AsOption = None,
    as_of: AsOfOption = None,
    corpus_version: VersionOption = None,
    explain: ExplainOption = False,
    stream: StreamOption = False,
    no_receipt: NoReceiptOption = False,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Answer a question with ranked fragments.

    The caller sees only documents they are allowed to see; no other document influences the answer.
    """
    from evidentia.base.base_ingest import word
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import flush, put_answer
    from evidentia.serving.cli.search_report import put_response
    from evidentia.serving.cli.search_stream import streamed
    from evidentia.serving.cli.snippets import SnippetCutter

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(
        filter=narrowing, facets=facet, source_policy=source, corpus_version=corpus_version, agent_name=agent, session_context=session
    )
    fields = {
        "limit": limit,
        "token_budget": tokens,
        "latency_deadline_ms": deadline_ms,
        "mode": None if mode is None else word(RetrievalMode, mode, field="mode"),
        "fusion": None if fusion is None else word(FusionMethod, fusion, field="fusion"),
        "ranking_weights": None if weights is None else _weights(weights),
        "diversity_constraint": diversity,
        "task": None if task is None else {"type": task},
        "without": None if without is None else [word(QueryStepName, step, field="without") for step in without],
        "filter": narrowing,
        "facets": facet,
        "source_policy": _policy(source, most_sources),
        "max_staleness_ms": max_staleness_ms,
        "early_stop": early_stop,
        "agent_name": agent,
        "governance": None if governance is None else word(GovernanceMode, governance, field="governance"),
        "session_context": session,
        "as_of": as_of,
        "corpus_version": corpus_version,
        "explain": explain,
        "receipt": not no_receipt,
    }
    with asking(call, caller) as opened:
        response = streamed(call, opened.retrieve_stream(query, **fields)) if stream else opened.retrieve(query, **fields)
        if call.is_json:
            put_answer(response)
        else:
            settings = opened.settings
            cutter = SnippetCutter(query, language=settings.text.language)
            put_response(call, response, cutter=cutter, similarity=settings.search.similarity, is_explained=explain)
        flush()  # before the base is closed, which may wait for a source that is slow to let go


def _policy(sources: list[str] | None, most_sources: int | None) -> dict[str, object] | None:
    """Return what was typed of a source policy; None when nothing was."""
    typed = {"allowed_sources": sources or None, "most_sources": most_sources}
    return {name: value for name, value in typed.items() if value is not None} or None


def _weights(text: str) -> dict[str, float]:
    """Return four weights as typed, or name what cannot be read."""
    from evidentia.contracts.errors import InvalidFieldError

    names = ("relevance", "authority", "freshness", "utility")
    try:
        return dict(zip(names, map(float, text.split(",")), strict=True))
    except ValueError as error:
        raise InvalidFieldError("ranking_weights", f"'{text}' is not four numbers separated by commas") from error
