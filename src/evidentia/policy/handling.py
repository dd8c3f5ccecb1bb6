"""What a category of policies is made of: typed rules, checks, and a factory of what follows a run.

A category is data and functions; nothing here knows the rules of any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from evidentia.contracts.calls import Metadata, RunCall
from evidentia.contracts.decisions import DecisionStatus, JudgeAsk
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.runs import Phase, RunEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.errors import FieldProblem

_NO_METADATA: Metadata = {}


class Violation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one rule found; with the action `allow` it is a notice, such as a check that was skipped."""

    rule: str
    action: PolicyAction
    reason: str
    metadata: Metadata = _NO_METADATA
    status: DecisionStatus = DecisionStatus.EVALUATED
    abstention_response: str | None = None


class TypedPolicy(NamedTuple):
    """A policy with its rules in the type of its category."""

    policy: Policy
    rules: Any  # Any: the struct that the category declares


class Outcome(NamedTuple):
    """What the policies of one category found about one call, by their position; those not named passed."""

    phase: Phase
    found: Mapping[int, Sequence[Violation]]
    reason: str
    """What a policy without a violation says."""
    metadata: Metadata
    joined: Mapping[int, Violation] = {}
    """What stands for all violations of a policy when it decides."""
    own: Mapping[int, tuple[str, Metadata]] = {}
    """The reason and metadata of policies that, without a violation, say something else than `reason`."""


class CategoryRun(Protocol):
    """Follows one run for the policies of one category. Not thread safe."""

    @property
    def count(self) -> int:
        """Return the number that belongs to the last call: documents of its batch, or scores."""
        ...

    def record(self, call: RunCall) -> Outcome | None:
        """Take a call; None when it passes everything, or when there is nothing to say about it."""
        ...

    def finish(self, end: RunEnded) -> Outcome:
        """Decide about the run as a whole."""
        ...


class CompiledCategory(Protocol):
    """The policies of one category, made ready once and shared by many runs. Immutable."""

    @property
    def listens_to(self) -> Sequence[type[RunCall]]:
        """Return the types of calls that are handed to `record`."""
        ...

    def start(self) -> CategoryRun:
        """Return what follows a new run."""
        ...

    def begin(self) -> Outcome:
        """Return what is said before anything was recorded."""
        ...

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return the judgements that policies want before they evaluate a call."""
        ...

    def passed(self, call: RunCall, *, count: int) -> Outcome | None:
        """Return what a call that passed stands for; None when nothing is said about such calls."""
        ...


def no_problems(rules: Any) -> Iterable[FieldProblem]:  # noqa: ANN401 - the struct that the category declares
    """Return no problem: the types say everything."""
    del rules
    return ()


class Category(NamedTuple):
    """A kind of policy: what its rules are, what types cannot say about them, and what becomes of them."""

    name: str
    title: str
    rules: type[msgspec.Struct]
    compile: Callable[[Sequence[TypedPolicy]], CompiledCategory]
    check: Callable[[Any], Iterable[FieldProblem]] = no_problems
    """Is asked only about rules whose every field has an acceptable value; paths are names of rules."""


def stored(title: str, *, notices: Mapping[int, Sequence[Violation]] | None = None) -> Outcome:
    """Return what is said before a run: the rules are pinned, and nothing is stopped."""
    return Outcome(phase=Phase.BEFORE_WORKFLOW, found=notices or {}, reason=f"{title} rules stored", metadata={})
