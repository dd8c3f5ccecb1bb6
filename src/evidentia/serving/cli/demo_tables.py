"""The part of the tour that asks a table: rows, and where each of them stands in its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.serving.cli.output import put
from evidentia.serving.cli.tables_report import put_table_answer

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base

TABLE_QUESTION: Final = "Which services to Europe cost less than 20 EUR?"


def ask_a_table(base: Base) -> None:
    """Ask a question that no sentence answers and rows of a table do."""
    put()
    put(f'  evidentia tables ask "{TABLE_QUESTION}"')
    put()
    answer = base.ask_tables(TABLE_QUESTION)
    put_table_answer(answer)
    put()
    if answer.rows:
        put("No model was asked: each word was found in the table, and the rows can be looked up where they stand.")
    else:
        put("The table with the prices is gone or has changed, and nothing is guessed.")
