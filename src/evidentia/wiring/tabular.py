"""What answers questions about tables: the rules, a model where the settings name one, and SQLite behind its guard."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from evidentia.backends.sqlite.table_engine import SqliteTables
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.tables import OpenTable, TableCard, TableContent
from evidentia.sources.sql_guard import FUNCTIONS, check_statement
from evidentia.tables.asker import TableAsker
from evidentia.tables.planner import SchemaPlanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import TablePlanner
    from evidentia.contracts.settings import OutboundSettings, Settings


class TableParts:
    """The parts of one base that answer questions about tables; the rules are asked before the model."""

    def __init__(self, settings: Settings, *, open_content: Callable[[TableCard], TableContent], outbound: OutboundSettings) -> None:
        self._settings = settings
        self._outbound = outbound
        self._open_content = open_content
        self._engine = SqliteTables(guard=check_statement, functions=FUNCTIONS)
        self._closing = ExitStack()

    @cached_property
    def asker(self) -> TableAsker:
        """Return what asks."""
        return TableAsker(
            planners=self._planners(),
            engine=self._engine,
            open_table=lambda card: OpenTable(card=card, content=self._open_content(card)),
            budget_ms=self._settings.tables.budget_ms,
        )

    def close(self) -> None:
        """Give back the databases in memory and the connections to the model."""
        self._closing.close()
        self._engine.close()

    def _planners(self) -> list[TablePlanner]:
        planners: list[TablePlanner] = [SchemaPlanner()]
        if self._settings.tables.planner:
            planners.append(self._model(self._settings.tables.planner))
        return planners

    def _model(self, name: str) -> TablePlanner:
        llm = self._settings.llm
        if not llm.endpoint:
            raise InvalidFieldError("llm.endpoint", "tables.planner names a model; say where it is")
        from evidentia.backends.llm.model_endpoint import EndpointSettings
        from evidentia.backends.llm.table_planner import LlmPlanner, PlannerSettings

        endpoint = EndpointSettings(url=llm.endpoint, model=name, key_variable=llm.key_variable or None, outbound=self._outbound)
        planner = LlmPlanner(PlannerSettings(endpoint=endpoint))
        self._closing.callback(planner.close)
        return planner
