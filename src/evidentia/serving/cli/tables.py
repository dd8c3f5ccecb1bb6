"""`evidentia tables`: the tables of spreadsheets in a base, and questions that their rows answer."""

from typing import Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation

group = typer.Typer(rich_markup_mode=None, help="List tables and query them in plain English (text-to-SQL).", no_args_is_help=False)

QuestionArgument = Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain English.")]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Maximum number of rows.")]

NOT_ANSWERED = 1


@group.command("list")
def list_tables(
    context: typer.Context, *, caller: AsOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """List the tables that you may see, ordered by document, with their columns.

    Each column is shown with its type and, where there is one, its unit. No cell is read.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.output import note, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with asking(call, caller) as opened:
        cards = opened.tables()
    if call.is_json:
        put_json(cards)
        return
    from evidentia.serving.cli.tables_report import put_cards

    put_cards(cards)
    if not cards:
        note(call, "there is no table; `evidentia ingest` finds them in .xlsx, .ods, .csv, .tsv and .parquet files")


@group.command("ask")
def ask(
    context: typer.Context,
    *,
    question: QuestionArgument,
    limit: LimitOption = 200,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Answer a question with table rows and their provenance (text-to-SQL).

    Below the rows are the SQL statement, the parse of the question, and the sheet rows behind the result.
    A question that the rules cannot parse is declined, and the exit code is 1.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(question=question)
    with asking(call, caller) as opened:
        answer = opened.ask_tables(question, limit=limit)
    if call.is_json:
        put_json(answer)
    else:
        from evidentia.serving.cli.tables_report import put_table_answer

        put_table_answer(answer)
    if answer.declined or not answer.has_tables:
        raise typer.Exit(NOT_ANSWERED)
