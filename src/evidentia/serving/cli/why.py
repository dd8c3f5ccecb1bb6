"""`evidentia why`: at which stage a chunk left an answer, or its place in it."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation
from evidentia.serving.cli.replay import ReceiptArgument

if TYPE_CHECKING:
    from evidentia.contracts.receipts import WhyReport
    from evidentia.contracts.vocabulary import Similarity

ChunkArgument = Annotated[str, typer.Argument(metavar="CHUNK", help="The chunk; `search --explain` and `show` print the ids.")]


def why(
    context: typer.Context,
    *,
    receipt: ReceiptArgument,
    chunk: ChunkArgument,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Explain why a chunk is, or is not, in an answer.

    A chunk that you may not see is reported as one that does not exist.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(receipt=receipt, chunk=chunk)
    with asking(call, caller) as opened:
        report = opened.why(receipt, chunk)
        similarity = opened.settings.search.similarity
    if call.is_json:
        put_json(report)
    else:
        _put(report, similarity=similarity)


def _put(report: "WhyReport", *, similarity: "Similarity") -> None:
    from evidentia.contracts.evidence import SCORE_ONE
    from evidentia.serving.cli.explain_report import SignalRow, put_signals, put_terms
    from evidentia.serving.cli.output import put, put_facts

    put_facts(
        [
            ("chunk", report.chunk_id),
            ("stage", report.stage),
            ("rank", report.rank or "-"),
            ("score", f"{report.score / SCORE_ONE:.2f}"),
            *([("confidence", f"{report.confidence:.0%}")] if report.confidence is not None else []),
            ("reason", report.reason),
            *([("smallest change", report.smallest_change)] if report.smallest_change else []),
        ]
    )
    if report.scores is not None:
        put()
        row = SignalRow(str(report.rank or "-"), report.score, report.scores, report.confidence or 0.0)
        put_signals([row], similarity=similarity)
    if report.terms:
        put()
        put_terms(report.terms)
