"""A category from three small functions: how a call changes what is remembered, what a call violates, and what a run violates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from evidentia.contracts.runs import Phase
from evidentia.policy.handling import Category, Outcome, no_problems, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import msgspec

    from evidentia.contracts.calls import RunCall
    from evidentia.contracts.decisions import JudgeAsk
    from evidentia.contracts.errors import FieldProblem
    from evidentia.contracts.runs import RunEnded
    from evidentia.policy.handling import TypedPolicy, Violation

S = TypeVar("S")


class Handlers(NamedTuple, Generic[S]):
    """Pure functions over rules and a state; a state is replaced, never changed."""

    start: S
    """What is remembered before the first call."""
    remember: Callable[[S, RunCall], S]
    judge: Callable[[Any, S, RunCall], Sequence[Violation]]  # Any: the rules of the category
    """Is asked after the call was remembered."""
    judge_end: Callable[[Any, S], Sequence[Violation]]  # Any: likewise


def plain_category(
    name: str,
    *,
    title: str,
    rules: type[msgspec.Struct],
    listens_to: Sequence[type[RunCall]],
    handlers: Handlers[S],
    check: Callable[[Any], Iterable[FieldProblem]] = no_problems,  # Any: the rules of the category
) -> Category:
    """Return a category whose policies are asked one after the other about every call that it listens to."""

    def compiled(policies: Sequence[TypedPolicy]) -> _CompiledPlain[S]:
        return _CompiledPlain(title, tuple(policies), tuple(listens_to), handlers)

    return Category(name=name, title=title, rules=rules, compile=compiled, check=check)


class _CompiledPlain(Generic[S]):
    def __init__(self, title: str, policies: tuple[TypedPolicy, ...], listens_to: tuple[type[RunCall], ...], handlers: Handlers[S]) -> None:
        self.title = title
        self.policies = policies
        self.listens_to = listens_to
        self.handlers = handlers

    def start(self) -> _PlainRun[S]:
        return _PlainRun(self)

    def begin(self) -> Outcome:
        return stored(self.title)

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        del call
        return ()

    def passed(self, call: RunCall, *, count: int) -> Outcome | None:
        del count
        return self.outcome(Phase.MID_EXECUTION, {}) if type(call) in self.listens_to else None

    def outcome(self, phase: Phase, found: dict[int, Sequence[Violation]]) -> Outcome:
        return Outcome(phase=phase, found=found, reason=f"{self.title} within policy", metadata={})


class _PlainRun(Generic[S]):
    def __init__(self, compiled: _CompiledPlain[S]) -> None:
        self._compiled = compiled
        self._state = compiled.handlers.start
        self.count = 0

    def record(self, call: RunCall) -> Outcome | None:
        handlers = self._compiled.handlers
        self._state = handlers.remember(self._state, call)
        found = self._found(lambda rules: handlers.judge(rules, self._state, call))
        return self._compiled.outcome(Phase.MID_EXECUTION, found) if found else None

    def finish(self, end: RunEnded) -> Outcome:
        del end
        found = self._found(lambda rules: self._compiled.handlers.judge_end(rules, self._state))
        return self._compiled.outcome(Phase.AFTER_WORKFLOW, found)

    def _found(self, judge: Callable[[Any], Sequence[Violation]]) -> dict[int, Sequence[Violation]]:  # Any: rules, as above
        judged = ((place, judge(each.rules)) for place, each in enumerate(self._compiled.policies))
        return {place: violations for place, violations in judged if violations}
