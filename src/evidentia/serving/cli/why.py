"""`evidentia why`: at which stage a chunk left an answer, or its place in it."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation
from evidentia.serving.cli.replay import ReceiptArgument

if TYPE_CHECKING:
    from evidentia.contracts.receipts import WhyReport

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
    """Say why a chunk is, or is not, in an answer.

    A chunk that you may not see is treated like one that does not exist.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.complaints import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(receipt=receipt, chunk=chunk)
    with asking(call, caller) as opened:
        report = opened.why(receipt, chunk)
    if call.is_json:
        put_json(report)
    else:
        _put(report)


def _put(report: "WhyReport") -> None:
    from evidentia.serving.cli.output import put, put_facts
    from evidentia.serving.cli.search_report import SCORE_ONE, put_terms

    put_facts(
        [
            ("chunk", report.chunk_id),
            ("stage", report.stage),
            ("rank", report.rank or "-"),
            ("score", f"{report.score / SCORE_ONE:.2f}"),
            ("reason", report.reason),
            *([("smallest change", report.smallest_change)] if report.smallest_change else []),
        ]
    )
    if report.terms:
        put()
        put_terms(report.terms)
