"""What a category of policies is made of: typed rules, checks, and a factory of what follows a run.

A category is data and functions; nothing here knows the rules of any.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.decisions import DecisionStatus, JudgeAsk
from evidentia.contracts.errors import FieldProblem, InvalidFieldError
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.protocol import Metadata, RunCall
from evidentia.contracts.runs import GroundingEntry, Phase, RetrievedDocument, RunEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.ids import Sha256


_NO_METADATA: Metadata = {}
_WITHIN: Final = " within policy"
_AFTER_BLOCK: Final = " recorded after a block"


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


class CategoryOutcome(NamedTuple):
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
    since: Mapping[int, tuple[str, Metadata]] = {}
    """The same for what is told since edition 1 of the evaluator."""

    def in_full(self, *, after_block: bool) -> CategoryOutcome:
        """Return it with everything that is told since edition 1; after a block nothing is within policy any more."""
        own = {**self.own, **self.since} if self.since else self.own
        if not after_block:
            return self._replace(own=own) if self.since else self
        late = {place: (reason.replace(_WITHIN, _AFTER_BLOCK), metadata) for place, (reason, metadata) in own.items()}
        return self._replace(reason=self.reason.replace(_WITHIN, _AFTER_BLOCK), own=late)


class CategoryRun(Protocol):
    """Follows one run for the policies of one category. Not thread safe."""

    @property
    def count(self) -> int:
        """Return the number that belongs to the last call: documents of its batch, or scores."""
        ...

    def record(self, call: RunCall) -> CategoryOutcome | None:
        """Take a call; None when it passes everything, or when there is nothing to say about it."""
        ...

    def finish(self, end: RunEnded) -> CategoryOutcome:
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

    def begin(self) -> CategoryOutcome:
        """Return what is said before anything was recorded."""
        ...

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return the judgements that policies want before they evaluate a call."""
        ...

    def passed(self, call: RunCall, *, count: int) -> CategoryOutcome | None:
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


def stored(title: str, *, notices: Mapping[int, Sequence[Violation]] | None = None) -> CategoryOutcome:
    """Return what is said before a run: the rules are pinned, and nothing is stopped."""
    return CategoryOutcome(phase=Phase.BEFORE_WORKFLOW, found=notices or {}, reason=f"{title} rules stored", metadata={})


# --- checks of calls ---
# Is a call fit to be decided about? Numbers that compare with nothing are refused, so that none passes for want of an order.


def check_call(call: RunCall) -> None:
    """Raise InvalidFieldError for a document or grounding entry that no rule can be asked about; other calls are fit."""
    if isinstance(call, RetrievedDocument):
        _check_document(call)
    elif isinstance(call, GroundingEntry):
        _check_entry(call)


OUT_OF_RANGE: Final = "is not between 0 and 1"


def is_out_of_range(score: float) -> bool:
    """Tell whether a score lies outside 0 to 1; such a score is compared as it is, and flagged."""
    return not 0 <= score <= 1


def _check_document(document: RetrievedDocument) -> None:
    _check_number("relevance_score", document.relevance_score)
    for name, value in (("source", document.source), ("collection", document.collection)):
        _check_text(name, value)
    if document.age_days is not None:
        _check_number("age_days", document.age_days)
        if document.age_days < 0:
            raise InvalidFieldError("age_days", f"{document.age_days} is negative; give the days since the source was made, or None")


def _check_entry(entry: GroundingEntry) -> None:
    for number, score in enumerate(entry.grounding_scores):
        _check_number(f"grounding_scores[{number}]", score)
    for number, citation in enumerate(entry.citations):
        _check_text(f"citations[{number}]", citation)
    for number, claim in enumerate(entry.unsupported_claims):
        _check_text(f"unsupported_claims[{number}]", claim)
    if entry.output_confidence is not None:
        _check_number("output_confidence", entry.output_confidence)


def check_ranges(call: RunCall) -> None:
    """Raise InvalidFieldError for a number outside its range, where it enters; calls in the log are decided about as they stand."""
    if isinstance(call, GroundingEntry) and call.output_confidence is not None:
        check_call(call)
        if is_out_of_range(call.output_confidence):
            raise InvalidFieldError("output_confidence", f"{call.output_confidence} {OUT_OF_RANGE}")


def _check_number(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidFieldError(field, f"expected a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise InvalidFieldError(field, f"{value} is not a finite number")


def _check_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidFieldError(field, f"expected text, not {type(value).__name__}")


# --- digest ---
# The digest that stands for a set of policies.


def set_digest(policies: Iterable[Policy]) -> Sha256:
    """Return the digest of policies in their order: of each its id, its version and its own digest."""
    return sha256_hex(msgspec.json.encode([(each.policy_id, each.version, each.digest) for each in policies]))


# --- plain categories ---
# A category from three small functions: how a call changes what is remembered, what a call violates, and what a run violates.

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


class Unjudged:
    """Implements the part of `CompiledCategory` that is the same wherever no judge is asked."""

    title: str

    def begin(self) -> CategoryOutcome:
        """Return what is said before anything was recorded."""
        return stored(self.title)

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return nothing."""
        del call
        return ()


class _CompiledPlain(Unjudged, Generic[S]):
    def __init__(self, title: str, policies: tuple[TypedPolicy, ...], listens_to: tuple[type[RunCall], ...], handlers: Handlers[S]) -> None:
        self.title = title
        self.policies = policies
        self.listens_to = listens_to
        self.handlers = handlers

    def start(self) -> _PlainRun[S]:
        return _PlainRun(self)

    def passed(self, call: RunCall, *, count: int) -> CategoryOutcome | None:
        del count
        return self.outcome(Phase.MID_EXECUTION, {}) if type(call) in self.listens_to else None

    def outcome(self, phase: Phase, found: dict[int, Sequence[Violation]]) -> CategoryOutcome:
        return CategoryOutcome(phase=phase, found=found, reason=f"{self.title} within policy", metadata={})


class _PlainRun(Generic[S]):
    def __init__(self, compiled: _CompiledPlain[S]) -> None:
        self._compiled = compiled
        self._state = compiled.handlers.start
        self.count = 0

    def record(self, call: RunCall) -> CategoryOutcome | None:
        handlers = self._compiled.handlers
        self._state = handlers.remember(self._state, call)
        found = self._found(lambda rules: handlers.judge(rules, self._state, call))
        return self._compiled.outcome(Phase.MID_EXECUTION, found) if found else None

    def finish(self, end: RunEnded) -> CategoryOutcome:
        del end
        found = self._found(lambda rules: self._compiled.handlers.judge_end(rules, self._state))
        return self._compiled.outcome(Phase.AFTER_WORKFLOW, found)

    def _found(self, judge: Callable[[Any], Sequence[Violation]]) -> dict[int, Sequence[Violation]]:  # Any: rules, as above
        judged = ((place, judge(each.rules)) for place, each in enumerate(self._compiled.policies))
        return {place: violations for place, violations in judged if violations}
