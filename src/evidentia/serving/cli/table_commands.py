"""`evidentia tables`: the tables of spreadsheets in a base, and questions that their rows answer."""

from typing import TYPE_CHECKING, Annotated

from evidentia.serving.cli.invocation import CommandResult, arg, command, command_group, opt

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.contracts.tables import TableAnswer, TableCard

group = command_group("List tables and query them in plain English (text-to-SQL).")

NO_TABLE = "there is no table; `evidentia ingest` finds them in .xlsx, .ods, .csv, .tsv and .parquet files"


@command(group, "list", has_caller=True)
def list_tables(base: "Base") -> "CommandResult[list[TableCard]]":
    """List the tables that you may see, ordered by document, with their columns.

    Each column is shown with its type and, where there is one, its unit. No cell is read.
    """
    from evidentia.serving.cli.tables_report import put_cards

    cards = base.tables()
    return CommandResult(cards, put_cards, notes=() if cards else [NO_TABLE])


@command(group, "ask", has_caller=True)
def ask(
    base: "Base",
    *,
    question: Annotated[str, arg("QUESTION", "A question in plain English.")],
    limit: Annotated[int, opt("--limit", "N", "Maximum number of rows.", low=1, high=10000)] = 200,
) -> "CommandResult[TableAnswer]":
    """Answer a question with table rows and their provenance (text-to-SQL).

    Below the rows are the SQL statement, the parse of the question, and the sheet rows behind the result.
    A question that the rules cannot parse is declined, and the exit code is 1.
    """
    from evidentia.serving.cli.tables_report import put_table_answer

    answer = base.ask_tables(question, limit=limit)
    return CommandResult(answer, put_table_answer, is_failed=bool(answer.declined) or not answer.has_tables)
