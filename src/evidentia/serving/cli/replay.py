"""`evidentia replay`: the same question on the same version again, and whether the answer is the same."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.receipts import ReplayReport

CHECK_FAILED = 1

ReceiptArgument = Annotated[str, typer.Argument(metavar="RECEIPT", help="The receipt; `evidentia search` prints its id.")]


def replay(
    context: typer.Context,
    *,
    receipt: ReceiptArgument,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Replay the request of a receipt and compare the results.

    Exit code 1 means that the answer differs. The output is limited to what you may see today.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_answer

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(receipt=receipt)
    with asking(call, caller) as opened:
        report = opened.replay(receipt)
        language = opened.settings.text.language
    if call.is_json:
        put_answer(report)
    else:
        _put(call, report, language=language)
    if not report.is_same:
        raise typer.Exit(CHECK_FAILED)


def _put(call: Invocation, report: "ReplayReport", *, language: str) -> None:
    from evidentia.serving.cli.output import note, put, put_facts
    from evidentia.serving.cli.search_report import put_conflicts, put_fragments
    from evidentia.serving.cli.snippets import SnippetCutter

    put(f"receipt {report.receipt_id}: {'the same answer' if report.is_same else 'ANOTHER ANSWER'}")
    put_facts([("recorded", report.recorded_hash), ("computed", report.result_hash)])
    put()
    # A receipt's question belongs to whoever asked it, so the report does not repeat it and nothing is marked.
    put_fragments(report.response, cutter=SnippetCutter("", language=language))
    put_conflicts(report.response)
    if report.hidden:
        count = f"{report.hidden} {'fragment is' if report.hidden == 1 else 'fragments are'}"
        note(call, f"{count} not shown: not for you to see today")
