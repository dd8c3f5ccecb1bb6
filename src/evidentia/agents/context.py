"""The run context of the SDK: records what an agent does, enforces policies at the call, audits the run at its end. Sync and async."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from evidentia.agents.current_context import Entered, Span, current_span, enter, get_current_context, innermost_span, leave, open_span
from evidentia.agents.enforcement import VerdictEnforcer
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.governors import AnyBase, new_run_id
from evidentia.agents.record_values import (
    LARGEST,
    MAX_AGE_DAYS,
    age_since,
    checked_age,
    checked_count,
    checked_number,
    checked_numbers,
    checked_share,
    checked_text,
    checked_texts,
    filled,
    hash_of,
    output_text,
    plain,
    retrieves,
    source_count,
)
from evidentia.agents.recorded_run import RecordedRun
from evidentia.agents.retrieved_documents import cited_texts, described_documents, named_passages, texts_by_name
from evidentia.contracts.evidence import EvidenceResponse
from evidentia.contracts.judging import NO_TEXTS
from evidentia.contracts.policies import DEFAULT_TENANT, PolicyAction, PolicyBody
from evidentia.contracts.runs import (
    BatchClosed,
    BatchId,
    GroundingEntry,
    LlmCall,
    Phase,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunStatus,
    StepCall,
    ToolCall,
)
from evidentia.engine.answer_governance import recorded
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime
    from types import TracebackType

    from evidentia.agents.enforcement import OnPolicyBlock, PolicyCheck
    from evidentia.contracts.decisions import Evaluation, PolicyDecision, Verdict
    from evidentia.contracts.evidence import EvidenceFragment
    from evidentia.contracts.grounding import GroundingReport
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.protocol import SpanId
    from evidentia.contracts.runs import AnyCall

_MICRO: Final = 1_000_000


class Context:
    """One run of an agent, for `with` and `async with`. Thread safe while it is open; it is entered once.

    `base` is a path, a URL of a control plane, or an open base; without it EVIDENTIA_BASE counts, and without that only `policies`
    are in force. `enforce_policy=False` decides and writes down everything, and stops nothing.
    `mid_execution_governance=False` keeps what is recorded, and decides about it when the run ends.
    `on_abstain="replace"` puts the abstention response of a policy in the place of the result.
    `capture_content` keeps prompts, responses, inputs and outputs in the log; else their hashes.
    Every record method decides at the call and raises there.
    """

    def __init__(
        self,
        agent_name: str,
        workflow_name: str = "default",
        *,
        inputs: object = None,
        metadata: Mapping[str, object] | None = None,
        enforce_policy: bool = True,
        session_id: str = "",
        user_id: str = "",
        user_group: str = "",
        end_user_id: str = "",
        agent_type: str = "",
        agent_id: str = "",
        agent_group: str = "",
        team: str = "",
        tenant: str = DEFAULT_TENANT,
        base: AnyBase | None = None,
        policies: Iterable[PolicyBody | Mapping[str, Any]] = (),  # Any: bodies as an author writes them
        on_abstain: str = "keep",
        on_policy_block: OnPolicyBlock | None = None,
        mid_execution_governance: bool | None = None,
        auto_grounding: bool = False,
        durable: bool = False,
        capture_content: bool = False,
        _clock: Clock | None = None,
    ) -> None:
        if on_abstain not in {"keep", "replace"}:
            raise InvalidRecordError("on_abstain", f"'{on_abstain}' is neither 'keep' nor 'replace'")
        self.inputs = inputs
        self.result: object = None
        facts = RunFacts(
            run_id=new_run_id(),
            agent_name=checked_text(agent_name, "agent_name"),
            workflow_name=checked_text(workflow_name, "workflow_name"),
            agent_id=checked_text(agent_id, "agent_id"),
            agent_type=checked_text(agent_type, "agent_type"),
            agent_group=checked_text(agent_group, "agent_group"),
            user_id=checked_text(user_id, "user_id"),
            user_group=checked_text(user_group, "user_group"),
            end_user_id=checked_text(end_user_id, "end_user_id"),
            team=checked_text(team, "team"),
            tenant=checked_text(tenant, "tenant"),
            session_id=checked_text(session_id, "session_id"),
            metadata=plain(metadata or {}),
        )
        self._replaces = on_abstain == "replace"
        self._is_auto_grounding = auto_grounding
        self._is_capturing = capture_content
        self._clock = _clock or SystemClock()
        self._enforcement = VerdictEnforcer(is_enforced=enforce_policy, on_policy_block=on_policy_block)
        self._recorded = RecordedRun(
            facts,
            base=base,
            policies=tuple(policies),
            enforcement=self._enforcement,
            is_durable=durable,
            is_deferred=mid_execution_governance is False,
        )
        self._entered: Entered | None = None
        self._status = RunStatus.RUNNING
        self._output_text = ""
        self._latest_output = ""
        """The output as long as no model has responded since; a judge reads what was said last."""
        self._asked_to_stop = False
        self._next_batch = 0
        self._span_numbers = count(1)

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self._recorded.facts.run_id

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._recorded.facts

    @property
    def status(self) -> RunStatus:
        """Return `running`, `success`, `blocked` or `error`; a block that the agent caught stays a block."""
        if self._enforcement.violation is not None:
            return RunStatus.BLOCKED
        return self._status

    @property
    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order, as the log tells it."""
        return self._recorded.decisions()

    @property
    def should_stop(self) -> bool:
        """Tell whether the agent should stop: a policy blocked something, or `request_stop` was called."""
        return self._asked_to_stop or self._enforcement.violation is not None

    @property
    def stop_reason(self) -> str:
        """Return why it should; empty when it should not."""
        return self._enforcement.stop_reason

    @property
    def retry_feedback(self) -> str:
        """Return what policies want tried again, one reason per line; nothing is tried again by itself."""
        return "\n".join(self._enforcement.retry_reasons)

    @property
    def abstention_response(self) -> str | None:
        """Return what a policy wants said instead of an answer; None when none does."""
        return self._enforcement.abstention_response

    @property
    def is_over(self) -> bool:
        """Tell whether the run has ended."""
        return self._recorded.is_over

    @property
    def is_replaced(self) -> bool:
        """Tell whether an abstention response has taken the place of the result."""
        return self.is_over and self._replaces and self._enforcement.abstention_response is not None

    def __enter__(self) -> Self:
        """Begin the run: the policies of this moment are in force until it ends."""
        self._prepare()
        self._begin()
        self._entered = enter(self)
        return self

    async def __aenter__(self) -> Self:
        """Begin the run; what has to be opened, read or asked for does not hold up the event loop."""
        self._prepare()
        if self._recorded.is_quick:
            self._begin()
        else:
            await asyncio.to_thread(self._begin)
        self._entered = enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run and audit it; a block is raised unless an exception is on its way or something was blocked before."""
        self._leave()
        try:
            stopping = self._finish(error)
        except BaseException as problem:
            self._close(error or problem)
            raise
        self._close(error)
        self._raise_at_the_end(stopping, error)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run and audit it; a judge or a control plane does not hold up the event loop."""
        self._leave()
        try:
            stopping = self._finish(error) if self._recorded.is_quick else await asyncio.to_thread(self._finish, error)
        except BaseException as problem:
            self._close(error or problem)
            raise
        self._close(error)
        self._raise_at_the_end(stopping, error)

    def flush(self) -> None:
        """Wait until everything recorded so far is written; where calls are decided about at the end, that stays so."""
        self._recorded.flush()

    def request_stop(self, reason: str = "") -> None:
        """Ask the agent to stop; it reads `should_stop`."""
        self._asked_to_stop = True
        self._enforcement.stop_reason = self._enforcement.stop_reason or reason

    def set_result(self, result: object) -> None:
        """Say what the run gives back; the log keeps its hash."""
        self.result = result

    def set_output_text(self, text: str) -> None:
        """Say what the run tells its user, for a judge to read; without it the result is read."""
        self._output_text = self._latest_output = checked_text(text, "text")

    def record_retrieval_result(
        self,
        *,
        relevance_score: float = 0.0,
        source: str = "",
        collection: str = "",
        age_days: float | None = None,
        created_at: datetime | date | None = None,
        batch_id: str | None = None,
        query_id: str | None = None,
        chunk_id: str = "",
        title: str = "",
        text: str = "",
    ) -> None:
        """Record one document that was retrieved; the policies decide here, and a block is raised here.

        `text` is what it says, for a judge to read where the source, the chunk id or the title is cited; the log does not keep it.
        Without `age_days` or `created_at` the age is unknown, and recorded as such. With `batch_id` (or `query_id`, the same) the
        document counts in that batch, else in the run. Raises InvalidRecordError, a ValueError, for what cannot be compared.
        """
        # Each check is a comparison that a good value passes at once; what fails one is looked at again, and refused by name.
        if relevance_score.__class__ is not float or not -LARGEST <= relevance_score <= LARGEST:
            relevance_score = checked_number(relevance_score, "relevance_score")
        if source.__class__ is not str or not source.isascii():
            source = checked_text(source, "source")
        if collection.__class__ is not str or not collection.isascii():
            collection = checked_text(collection, "collection")
        if chunk_id.__class__ is not str or not chunk_id.isascii():
            chunk_id = checked_text(chunk_id, "chunk_id")
        if created_at is not None:
            age_days = _age_of(age_days, created_at, self._clock)
        elif age_days is not None and (type(age_days) is not int or not 0 <= age_days <= MAX_AGE_DAYS):
            age_days = checked_age(age_days)
        batch = query_id if batch_id is None else batch_id
        call = RetrievedDocument(
            span=None if current_span.get() is None else self._retrieval_span(),
            relevance_score=relevance_score,
            source=source,
            collection=collection,
            age_days=age_days,
            batch=None if batch is None else BatchId(checked_text(batch, "batch_id")),
            chunk_id=chunk_id,
        )
        run = self._recorded.live
        if run is None or text:
            self._recorded.record(call, texts=texts_by_name(text, (source, chunk_id, title)) if text else NO_TEXTS)
            return
        # As `RecordedRun.record` does it, without the call: documents are what an agent records most.
        verdicts = run.record(call)
        if verdicts:
            self._enforcement.enforce(run, verdicts)

    def record_retrieval_results(
        self, documents: object, batch_id: str | None = None, *, source: str = "", scores: Iterable[float] | None = None
    ) -> None:
        """Record documents as one batch, whose count is settled when all are in.

        A document is a mapping with the names of `record_retrieval_result`, an object with such attributes, a document of LangChain,
        LlamaIndex or Haystack, or a pair of one of these and its score; or all are what Chroma's `query` returned. `source` is for
        documents that do not name their own, `scores` are one relevance for each. Another shape is refused, and nothing is recorded.
        """
        described = described_documents(documents, source=source, scores=scores)
        with self.retrieval_batch(batch_id=batch_id) as batch:
            for each in described:
                batch.record(**each)

    def retrieval_batch(self, query: str = "", *, batch_id: str | None = None) -> RetrievalBatch:
        """Return a batch for `with`: documents recorded in it are counted together, and the count is settled at its end."""
        if batch_id is None:
            self._next_batch += 1
            batch_id = f"batch-{self._next_batch}"
        return RetrievalBatch(self, BatchId(checked_text(batch_id, "batch_id")), query=query)

    def close_batch(self, batch: BatchId) -> None:
        """Say that a batch gets no more documents; its count is settled."""
        self._recorded.record(BatchClosed(span=self._retrieval_span(), batch=batch))

    def record_retrieval(
        self,
        response: EvidenceResponse | object | None = None,
        *,
        query: str = "",
        documents: object = (),
        source: str = "",
        duration_ms: float = 0,
        top_k: int | None = None,
        scores: Iterable[float] | None = None,
    ) -> None:
        """Record what a retrieval gave: an answer of the engine, or documents as `record_retrieval_results` takes them.

        Of an answer each fragment is recorded: its confidence, document, source and age at `as_of`. What the engine has judged says by
        which policies, so that these do not judge it twice. `source` is for documents that do not name their own.
        """
        if isinstance(response, EvidenceResponse):
            self._record_response(response)
            return
        described = described_documents(documents if response is None else response, source=source, scores=scores)
        attributes = self._content(query=query or None) | ({} if top_k is None else {"top_k": top_k})
        length = checked_number(duration_ms, "duration_ms")
        self._recorded.record(
            ToolCall(
                span=self._span(), name="retrieval", is_retrieval=True, duration_ms=length, sources=len(described), attributes=attributes
            )
        )
        with self.retrieval_batch(query) as batch:
            for each in described:
                batch.record(**each)
        if self._is_auto_grounding:
            self.record_grounding(
                grounding_scores=[each.get("relevance_score", 0.0) for each in described], citations=[each["source"] for each in described]
            )

    def record_grounding(
        self,
        *,
        grounding_scores: Iterable[float] | None = None,
        citations: Iterable[str] | None = None,
        unsupported_claims: Iterable[str] | None = None,
        output_confidence: float | None = None,
        texts: Mapping[str, str] | Iterable[str] | None = None,
    ) -> None:
        """Say what the output rests on; several calls add up, and the scores of each are decided about at the call.

        A judge reads what a citation names: what the base shows to whoever runs, else `texts`, by citation or one for each in order,
        else the text of a recorded document; the log keeps none of it.
        One score that fails rejects the whole call; what it said is in the log all the same. Where a policy has a judge read the
        latest response, this waits for it.
        """
        confidence = None if output_confidence is None else checked_share(output_confidence, "output_confidence")
        cited = checked_texts(citations, "citations")
        entry = GroundingEntry(
            span=self._span(),
            grounding_scores=checked_numbers(grounding_scores, "grounding_scores"),
            citations=cited,
            unsupported_claims=checked_texts(unsupported_claims, "unsupported_claims"),
            output_confidence=confidence,
        )
        self._recorded.record_step(entry, self._latest_output, cited_texts(texts, cited))

    def ground(self, answer: str, evidence: EvidenceResponse | object) -> GroundingReport:
        """Check an answer claim by claim against the evidence, record the outcome, and return it; the policies decide here.

        The evidence is an answer of the engine, or passages: texts, texts by their names, or documents as `record_retrieval_results`
        takes them; a passage without a name is `passage-1` and so on. A judge reads the same passages.
        """
        from evidentia.grounding.score import ground_answer

        if isinstance(evidence, EvidenceResponse):
            passages = [(str(fragment.chunk_id), fragment.content) for fragment in evidence.fragments]
        else:
            passages = named_passages(evidence)
        report = ground_answer(answer, passages)
        self.set_output_text(answer)
        self.record_grounding(
            grounding_scores=[claim.score for claim in report.claims],
            citations=report.citations,
            unsupported_claims=report.unsupported,
            output_confidence=report.confidence_milli / 1_000,
            texts=dict(passages),
        )
        return report

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
            sources=source_count(sources),
            error=checked_text(error, "error"),
            attributes=self._content(inputs=inputs, output=output),
        )
        record = self._recorded.record if call.is_retrieval else self._recorded.record_step
        record(call)

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
        self._latest_output = "" if text else self._latest_output
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
        self._recorded.record_step(call, text)

    def record_step(self, name: str, output: object = None, *, kind: str = "", attributes: Mapping[str, object] | None = None) -> None:
        """Record a step of the agent's work; counts of documents are settled by it."""
        described = {**plain(attributes or {}), **self._content(output=output)}
        self._step(name, {**described, **({"kind": kind} if kind else {})})

    def record_call(self, call: AnyCall) -> None:
        """Record a call of the contract as it is."""
        self._recorded.record(call)

    def record_decision(
        self,
        name: str,
        *,
        options: Sequence[str] = (),
        chosen: str = "",
        reasoning: str = "",
        confidence: float | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Record a choice that the agent made."""
        known = None if confidence is None else checked_share(confidence, "confidence")
        said = self._content(reasoning=reasoning or None)
        self._step(name, filled(kind="decision", options=list(options), chosen=chosen, confidence=known, metadata=metadata, **said))

    def record_reasoning(self, step: str, *, thought: str = "", evidence: Sequence[str] = (), conclusion: str = "") -> None:
        """Record a thought; its words are kept when capturing, else their hash."""
        said = self._content(thought=thought or None, conclusion=conclusion or None)
        self._step(step, filled(kind="reasoning", evidence=list(evidence), **said))

    def record_retry(
        self,
        attempt: int,
        *,
        reason: str = "",
        strategy: str = "retry",
        original_error: str = "",
        fallback_to: str = "",
        max_attempts: int | None = None,
    ) -> None:
        """Record that something is tried again, or something else instead."""
        self._step(
            "retry",
            filled(
                kind="retry",
                attempt=checked_count(attempt, "attempt"),
                reason=reason,
                strategy=strategy,
                original_error=original_error,
                fallback_to=fallback_to,
                max_attempts=max_attempts,
            ),
        )

    def record_data_access(self, source: str, *, operation: str = "read", records: int = 0) -> None:
        """Record that a store was read or written."""
        self._step("data_access", filled(source=source, operation=operation, records=checked_count(records, "records")))

    def record_policy_check(
        self,
        policy_name: str,
        action: str = "allow",
        *,
        category: str = "",
        reason: str = "",
        duration_ms: float = 0,
        phase: str = "pre_execution",
        priority: int = 100,
    ) -> None:
        """Record what a policy outside of this system decided; it stands in the log and stops nothing here."""
        try:
            known = Phase(phase)
            what = PolicyAction(action)
        except ValueError as error:
            raise InvalidRecordError("phase" if action in PolicyAction.words() else "action", str(error)) from error
        described = filled(policy_name=policy_name, category=category, reason=reason, duration_ms=duration_ms, priority=priority)
        self._note("policy_check", {**described, "action": what.value, "phase": known.value})

    def record_score(self, name: str, value: float | str | bool, data_type: str = "", comment: str = "") -> None:  # noqa: FBT001 - a score may be yes or no
        """Record a score of the run, such as feedback of a user or an evaluator."""
        self._note("score", filled(name=checked_text(name, "name"), value=value, data_type=data_type, comment=comment))

    def set_tag(self, key: str, value: object) -> None:
        """Put a tag on the run."""
        self._note("tag", {checked_text(key, "key"): plain(value)})

    def set_metadata(self, key: str, value: object) -> None:
        """Put a value on the run."""
        self._note("metadata", {checked_text(key, "key"): plain(value)})

    def tool(self, name: str, *, retrieval: bool | None = None) -> Span:
        """Return a span for a tool, to be used with `with`: what is recorded inside belongs under it."""
        return Span(self, name, is_retrieval=retrieves(name, retrieval))

    def enter_span(self, name: str, *, retrieval: bool | None = None) -> Span:
        """Open a span that is not a block of code; give it to `exit_span`."""
        return open_span(self, name, is_retrieval=retrieves(name, retrieval))

    def exit_span(self, span: Span | None, *, sources: int | None = None, error: str = "") -> None:
        """Close a span; closing it twice, or None, does nothing."""
        if span is not None:
            span.close(sources=sources, error=error)

    def next_span_number(self) -> int:
        """Return the number of the next span of this run."""
        return next(self._span_numbers)

    def take_feedback(self) -> list[Evaluation]:
        """Return the warnings that came since the last call, each once; provisional counts are not among them."""
        return self._enforcement.take_feedback()

    def feedback_text(self) -> str:
        """Return the warnings that came since, for the agent's next prompt; empty when there are none."""
        taken = self.take_feedback()
        return "\n".join(
            f"- {warning.policy_name}: {warning.reason}" if warning.policy_name else f"- {warning.reason}" for warning in taken
        )

    def check_policy(self) -> PolicyCheck:
        """Return where the run stands: the strongest action that takes effect so far, and why."""
        return self._enforcement.check()

    def _prepare(self) -> None:
        around = get_current_context()
        self._recorded.prepare(parent=None if around is None else around.facts.run_id)

    def _begin(self) -> None:
        self._recorded.begin()
        if self.inputs is not None:
            self._note("inputs", self._content(inputs=self.inputs))

    def _leave(self) -> None:
        if self._entered is None or self.is_over:
            raise InvalidRecordError("context", "it is not entered")
        leave(self._entered)

    def _finish(self, error: BaseException | None) -> Sequence[Verdict]:
        """Decide about the run as a whole and return what stops it; never hides an exception that is on its way."""
        try:
            end = RunEnded(
                status=self._status_after(error), error_type="" if error is None else type(error).__name__, result_hash=hash_of(self.result)
            )
            return self._recorded.finish(end, text=self._output_text or output_text(self.result))
        except Exception as problem:
            if error is None:
                raise
            error.add_note(f"the run '{self.run_id}' could not be closed: {problem}")
            return ()

    def _close(self, error: BaseException | None) -> None:
        self._recorded.close()
        self._status = self._status_after(error)
        if self.is_replaced:
            self.result = self._enforcement.abstention_response

    def _raise_at_the_end(self, stopping: Sequence[Verdict], error: BaseException | None) -> None:
        if stopping and error is None and self._enforcement.violation is None:
            self._recorded.stop(stopping)

    def _status_after(self, error: BaseException | None) -> RunStatus:
        is_prevented = error is not None and error is self._enforcement.prevention  # the agent did not do otherwise
        if self._enforcement.violation is not None or is_prevented:
            return RunStatus.BLOCKED
        # A generator that its consumer leaves early has not failed.
        return RunStatus.SUCCESS if error is None or isinstance(error, GeneratorExit) else RunStatus.ERROR

    def _step(self, name: str, attributes: Mapping[str, object]) -> None:
        self._recorded.record_step(StepCall(span=self._span(), name=checked_text(name, "name"), attributes=attributes))

    def _note(self, name: str, attributes: Mapping[str, object]) -> None:
        self._recorded.note(StepCall(span=self._span(), name=name, attributes=attributes))

    def _record_response(self, response: EvidenceResponse) -> None:
        span = self._retrieval_span()
        batch = BatchId(f"request-{response.request_id}")
        for fragment in response.fragments:
            judged_by = response.policies if _is_judged(fragment, response) else ""
            document = recorded(fragment, as_of=response.as_of)
            names = (document.source, document.chunk_id, fragment.metadata.get("title"), fragment.metadata.get("origin"))
            self._recorded.record(
                msgspec.structs.replace(document, span=span, batch=batch, judged_by=judged_by), texts=texts_by_name(fragment.content, names)
            )
        self._recorded.record(BatchClosed(span=span, batch=batch))

    def _content(self, **said: object) -> dict[str, Any]:
        """Return what was said as it may stand in the log: itself when capturing, else its hash."""
        given = {name: value for name, value in said.items() if value is not None}
        if self._is_capturing:
            return {name: plain(value) for name, value in given.items()}
        return {f"{name}_hash": hash_of(value) for name, value in given.items()}

    def _span(self) -> SpanId | None:
        return innermost_span(self)

    def _retrieval_span(self) -> SpanId | None:
        return innermost_span(self, is_retrieval=True)


class RetrievalBatch:
    """Documents that are counted together. Left by an exception it stays open, and is settled with the run."""

    def __init__(self, context: Context, batch_id: BatchId, *, query: str) -> None:
        self._context = context
        self.batch_id = batch_id
        self.query = query

    def record(self, **document: Any) -> None:  # noqa: ANN401 - the arguments of record_retrieval_result
        """Record one document of the batch, by the names of `record_retrieval_result`."""
        self._context.record_retrieval_result(**document, batch_id=self.batch_id)

    def close(self) -> None:
        """Settle the count."""
        self._context.close_batch(self.batch_id)

    def __enter__(self) -> Self:
        """Begin it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Settle it, unless something went wrong on the way."""
        if kind is None:
            self.close()

    async def __aenter__(self) -> Self:
        """Begin it."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Settle it, unless something went wrong on the way."""
        self.__exit__(kind, error, trace)


def _is_judged(fragment: EvidenceFragment, response: EvidenceResponse) -> bool:
    """Tell whether the engine's word holds; what policies would have stopped, and only flagged, is for the run to decide."""
    return not any(remark.chunk_id == fragment.chunk_id and remark.action.stops for remark in response.governance)


def _age_of(age_days: object, created_at: object, clock: Clock) -> int:
    if age_days is not None:
        raise InvalidRecordError("created_at", "age_days is given as well; give one of the two")
    return age_since(created_at, now=clock.now())
