"""What an agent records besides documents: grounding, tools, models and steps; and how a call reaches the run."""

from __future__ import annotations

from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.agents.checks import checked_count, checked_number, checked_numbers, checked_text, checked_texts, plain
from evidentia.agents.current import innermost_span
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.spans import Span, open_span
from evidentia.agents.tool_names import retrieves
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import GroundingEntry, LlmCall, StepCall, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.agents.context import Context
    from evidentia.agents.enforcement import Heeding, PolicyCheck
    from evidentia.contracts.calls import SpanId
    from evidentia.contracts.decisions import Evaluation
    from evidentia.contracts.ports import GovernedRun
    from evidentia.contracts.runs import AnyCall

_MICRO: Final = 1_000_000
_NOT_RUNNING: Final = "nothing is recorded outside of it; use it with `with` or `async with`, and record inside"


class Recorder:
    """The recording half of a context; every method decides at the call and raises there."""

    _run: GovernedRun | None
    _live: GovernedRun | None
    """The run while calls are decided about at once; None before, after, and while they are deferred."""
    _deferred: list[tuple[AnyCall, str]] | None
    _heeding: Heeding
    _is_capturing: bool
    _is_over: bool

    def __init__(self) -> None:
        self._notes: list[StepCall] = []
        self._span_numbers = count(1)

    def record_grounding(
        self,
        *,
        grounding_scores: Iterable[float] | None = None,
        citations: Iterable[str] | None = None,
        unsupported_claims: Iterable[str] | None = None,
        output_confidence: float | None = None,
    ) -> None:
        """Say what the output rests on; several calls add up, and the scores of each are decided about at the call.

        One score that fails rejects the whole call; what it said is in the log all the same. Where a policy has a judge read the
        latest response, this waits for it.
        """
        confidence = None if output_confidence is None else checked_number(output_confidence, "output_confidence")
        entry = GroundingEntry(
            span=self._span(),
            grounding_scores=checked_numbers(grounding_scores, "grounding_scores"),
            citations=checked_texts(citations, "citations"),
            unsupported_claims=checked_texts(unsupported_claims, "unsupported_claims"),
            output_confidence=confidence,
        )
        self._record_step(entry)

    def record_tool_call(
        self,
        name: str,
        inputs: object = None,
        output: object = None,
        duration_ms: float = 0,
        *,
        sources: int | Sequence[object] | None = None,
        error: str = "",
        retrieval: bool | None = None,
    ) -> None:
        """Record a tool that was called; `sources` is how many it found, or the list of them.

        A tool that retrieves, by its name or by `retrieval`, leaves the counts of documents open.
        """
        call = ToolCall(
            span=self._span(),
            name=checked_text(name, "name"),
            is_retrieval=retrieves(name, retrieval),
            duration_ms=checked_number(duration_ms, "duration_ms"),
            sources=_number_of(sources),
            error=checked_text(error, "error"),
            attributes=self._content(inputs=inputs, output=output),
        )
        if call.is_retrieval:
            self._record(call)
        else:
            self._record_step(call)

    def record_llm_call(
        self,
        model: str = "",
        *,
        prompt: object = None,
        response: object = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float = 0.0,
        duration_ms: float = 0,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        """Record a model that was called. Its response stays in memory for a judge; the log keeps its hash, or all when capturing."""
        text = response if isinstance(response, str) else ""
        call = LlmCall(
            span=self._span(),
            model=checked_text(model, "model"),
            input_tokens=checked_count(input_tokens, "input_tokens"),
            output_tokens=checked_count(output_tokens, "output_tokens"),
            cost_micro=checked_count(round(checked_number(cost, "cost") * _MICRO), "cost"),
            duration_ms=checked_number(duration_ms, "duration_ms"),
            response_hash=hash_of(response),
            attributes={**plain(attributes or {}), **self._content(prompt=prompt, response=response)},
        )
        self._record_step(call, text)

    def record_step(self, name: str, output: object = None, *, kind: str = "", attributes: Mapping[str, object] | None = None) -> None:
        """Record a step of the agent's work; counts of documents are settled by it."""
        described = {**plain(attributes or {}), **self._content(output=output)}
        self._step(name, {**described, **({"kind": kind} if kind else {})})

    def tool(self, name: str, *, retrieval: bool | None = None) -> Span:
        """Return a span for a tool, to be used with `with`: what is recorded inside belongs under it."""
        return Span(self._owner(), name, is_retrieval=retrieves(name, retrieval))

    def enter_span(self, name: str, *, retrieval: bool | None = None) -> Span:
        """Open a span that is not a block of code; give it to `exit_span`."""
        return open_span(self._owner(), name, is_retrieval=retrieves(name, retrieval))

    def exit_span(self, span: Span | None, *, sources: int | None = None, error: str = "") -> None:
        """Close a span; closing it twice, or None, does nothing."""
        if span is not None:
            span.close(sources=sources, error=error)

    def take_feedback(self) -> list[Evaluation]:
        """Return the warnings that came since the last call, each once; provisional counts are not among them."""
        return self._heeding.take_feedback()

    def feedback_text(self) -> str:
        """Return the warnings that came since, for the agent's next prompt; empty when there are none."""
        taken = self.take_feedback()
        return "\n".join(
            f"- {warning.policy_name}: {warning.reason}" if warning.policy_name else f"- {warning.reason}" for warning in taken
        )

    def check_policy(self) -> PolicyCheck:
        """Return where the run stands: the strongest action that takes effect so far, and why."""
        return self._heeding.check()

    def _record(self, call: AnyCall, text: str = "") -> None:
        run = self._live
        if run is None:
            self._defer(call, text)
            return
        verdicts = run.record(call, text=text)
        if verdicts:
            self._heeding.heed(run, verdicts, is_ahead=call.is_ahead)

    def _defer(self, call: AnyCall, text: str) -> None:
        if self._run is None or self._is_over or self._deferred is None:
            raise InvalidRecordError("context", _NOT_RUNNING)
        self._deferred.append((call, text))

    def _record_step(self, call: AnyCall, text: str = "") -> None:
        """Record a call that settles counts, after what was noted since the last one."""
        notes, self._notes = self._notes, []
        for note in notes:
            self._record(note)
        self._record(call, text)

    def _step(self, name: str, attributes: Mapping[str, object]) -> None:
        self._record_step(StepCall(span=self._span(), name=checked_text(name, "name"), attributes=attributes))

    def _note(self, name: str, attributes: Mapping[str, object]) -> None:
        """Keep what belongs to the run as a whole until the next step: a step would settle the counts of documents too early."""
        if self._run is None or self._is_over:
            raise InvalidRecordError("context", _NOT_RUNNING)
        self._notes.append(StepCall(span=self._span(), name=name, attributes=attributes))

    def _content(self, **said: object) -> dict[str, Any]:
        """Return what was said as it may stand in the log: itself when capturing, else its hash."""
        given = {name: value for name, value in said.items() if value is not None}
        if self._is_capturing:
            return {name: plain(value) for name, value in given.items()}
        return {f"{name}_hash": hash_of(value) for name, value in given.items()}

    def _span(self) -> SpanId | None:
        return innermost_span(self._owner())

    def _owner(self) -> Context:
        return self  # type: ignore[return-value]  # the only class that records is the context


def hash_of(value: object) -> Sha256 | None:
    """Return the hash of a text, or of the JSON of anything else; None for nothing."""
    if value is None:
        return None
    content = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else _encode(plain(value))
    return Sha256(sha256(content).hexdigest())


_encode = msgspec.json.Encoder(order="deterministic").encode


def _number_of(sources: int | Sequence[object] | None) -> int | None:
    if sources is None:
        return None
    return checked_count(sources, "sources") if isinstance(sources, int) else len(sources)
