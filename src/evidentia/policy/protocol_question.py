"""What is remembered of one question: which sources were asked, what they lacked, and what is still under way.

A call that this category stopped is set aside: it never ran, so it counts for nothing. Should its answer come after all (in a run where
nothing is enforced), it counts from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.protocol import Shortfall, TaskOpened, ToolRole
from evidentia.policy.protocol_builtin import TOOL_NAMES
from evidentia.policy.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.protocol import ToolAnswered
    from evidentia.policy.protocol_rules import Terms

RAG: Final = frozenset({ToolRole.TABLE, ToolRole.TEXT})
RAISABLE: Final = frozenset({Shortfall.PARTIAL, Shortfall.TRUNCATED, Shortfall.MISSING_ENTITY})
"""What asking for more results may cure: there is something, and it is too little or too narrow."""


def tool_key(role: ToolRole, name: str) -> str:
    """Return what a tool is remembered by: the name of a skill's tool, the role of the others."""
    return f"skill {name}" if role is ToolRole.SKILL else role.value


class Asked(NamedTuple):
    """A call to a source."""

    call: int
    name: str
    """As a reason shows it."""
    tool: str
    """What makes two calls calls to the same tool."""
    role: ToolRole
    top_k: int | None
    """Of the text tool: what was asked for, or what an omitted one stands for."""
    query: str | None

    @property
    def label(self) -> str:
        """Return the call as a reason names it."""
        return f"{self.name} (call {self.call})"


class Question:
    """The state of one question under one set of terms. Its size grows with the number of queries and tools alone."""

    __slots__ = (
        "asked",
        "is_sufficient",
        "is_whole",
        "last",
        "last_is_faulty",
        "last_shortfalls",
        "last_text",
        "open",
        "queries",
        "reads_file",
        "replies",
        "set_aside",
        "task",
        "text_shortfalls",
        "tries",
    )

    def __init__(self, task: TaskOpened) -> None:
        self.task = task
        self.asked = 0
        """Calls to sources, whether or not they have answered."""
        self.open: dict[int, Asked] = {}
        self.set_aside: dict[int, Asked] = {}
        self.tries: dict[str, int] = {}
        """Calls by tool."""
        self.queries: dict[tuple[str, str], int] = {}
        """The largest top_k that a tool was asked a query with."""
        self.last: Asked | None = None
        """The call that answered last."""
        self.last_shortfalls: tuple[Shortfall, ...] = ()
        self.last_text: Asked | None = None
        self.text_shortfalls: tuple[Shortfall, ...] = ()
        self.is_sufficient = False
        """Whether some result sufficed."""
        self.is_whole = False
        """Whether some result lacked nothing at all."""
        self.reads_file = False
        """Whether the file was read that the user asked for."""
        self.replies = 0
        self.last_is_faulty = False
        """Whether the last reply broke a rule."""

    def ask(self, asked: Asked, *, is_stopped: bool) -> None:
        """Take a call to a source that was decided about."""
        if is_stopped:
            self.set_aside[asked.call] = asked
            return
        self.open[asked.call] = asked
        self._count(asked)

    def answer(self, answered: ToolAnswered, insufficient: Iterable[Shortfall]) -> None:
        """Take what came back; what answers no call to a source changes nothing."""
        asked = self.open.pop(answered.call, None)
        if asked is None:
            asked = self.set_aside.pop(answered.call, None)
            if asked is None:
                return
            self._count(asked)
        self.last, self.last_shortfalls = asked, answered.shortfalls
        if asked.role is ToolRole.TEXT:
            self.last_text, self.text_shortfalls = asked, answered.shortfalls
        self.is_sufficient = self.is_sufficient or not any(each in answered.shortfalls for each in insufficient)
        self.is_whole = self.is_whole or not answered.shortfalls

    def left(self, terms: Terms) -> list[str]:
        """Return the sources that suit and were not asked, as they are called, in their order."""
        tries = self.tries
        skills = self.task.skills if ToolRole.SKILL in terms.steps else ()
        unasked = (shown(name) for name in skills if tool_key(ToolRole.SKILL, name) not in tries)
        return [*unasked, *(TOOL_NAMES[role] for role in terms.sources if role.value not in tries)]

    def has_tried_skill(self) -> bool:
        """Tell whether a skill's tool that suits was asked."""
        return any(tool_key(ToolRole.SKILL, name) in self.tries for name in self.task.skills)

    def _count(self, asked: Asked) -> None:
        self.asked += 1
        self.tries[asked.tool] = self.tries.get(asked.tool, 0) + 1
        if asked.query is not None:
            key = (asked.tool, asked.query)
            self.queries[key] = max(self.queries.get(key, 0), asked.top_k or 0)
