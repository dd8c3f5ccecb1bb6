"""A run under policies that were pinned when it began: every call is evaluated and written down, in one order.

Nothing else happens on the way of a call: spans, counts and decisions as people read them are derived from the log.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.decisions import JudgeAsk, LogEntry, LogRecord, PolicyDecision, Verdict
from evidentia.contracts.errors import BaseStateError, EvidentiaError, InvalidFieldError
from evidentia.contracts.judging import NO_TEXTS, JudgedSource, Judgement, JudgeRequest, JudgeStatus
from evidentia.contracts.policies import PolicyId, Posture
from evidentia.contracts.ports import Clock, DecisionLog, GovernedRun, GroundingJudge, SourceTexts
from evidentia.contracts.runs import (
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    PoliciesRecorded,
    RetrievedDocument,
    RunFacts,
    RunStarted,
    RunStatus,
)
from evidentia.governance.decision_expansion import Expander
from evidentia.governance.run_journal import RunJournal, unsealed
from evidentia.policy.evaluator import EDITION, PolicySet, RunEvaluator
from evidentia.policy.handlers import check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.runs import AnyCall, RunEnded


APPROVAL: Final = "approval"
"""The name of the bypass that an approval writes: a stopped call was let go on."""

_ENDED: Final = "the run has ended, so nothing more is recorded in it; record before leaving its context"


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is held to from beginning to end."""

    facts: RunFacts
    principal: Principal
    """Whoever opened it: citations name what this principal may read."""
    policies: PolicySet
    is_enforced: bool
    log_posture: Posture
    at_us: int
    """When it began: microseconds since 1970, UTC."""


class LocalRun(GovernedRun):
    """Implements `GovernedRun` in this process. Thread safe: records stand in the log in the order in which they were evaluated.

    A judge is asked while the run is held, since its answer belongs to the call: other threads' calls of the same run wait for it.
    """

    def __init__(
        self,
        pinned: Pinned,
        *,
        evaluator: RunEvaluator,
        log: DecisionLog,
        clock: Clock,
        judging: ConfiguredJudge,
        keep: Callable[[LocalRun], object] = lambda _: None,
    ) -> None:
        self._pinned = pinned
        self._keep = keep
        """Called with a run that has ended before its log took everything."""
        self._evaluator = evaluator
        self._evaluate = evaluator.record
        self._log = log
        self._judging = judging
        self._elapsed_ns: Callable[[], int] = clock.elapsed_ns
        # Reentrant, so that a source of texts or a judge that records something in its own run does not wait for itself.
        self._lock = threading.RLock()
        self._run_id = pinned.facts.run_id
        self._digest = pinned.policies.digest
        # One reading of the steady clock per call says both when it came and what it cost.
        self._zero_us = pinned.at_us - clock.elapsed_ns() // 1_000
        self._journal = RunJournal(log, posture=pinned.log_posture, write=self._entry)
        self._add = self._journal.add
        self.alerts: Sequence[Verdict] = ()
        """Faults that were met at the beginning."""
        self._stopped_calls = 0
        self._citations: list[str] = []
        self._given = GivenTexts() if pinned.policies.asks_judge else None
        self._latest_text = ""
        self._is_over = False

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._pinned.facts

    @property
    def policies(self) -> PolicySet:
        """Return the policies that were in scope when the run began; they stay in force until it ends."""
        return self._pinned.policies

    def begin(self, *, is_known: bool) -> Sequence[Verdict]:
        """Write down who runs, after the policies unless the log holds them already, and decide about the beginning."""
        with self._lock:
            began = self._elapsed_ns()
            verdicts = self._evaluator.begin()
            first = () if is_known else (self._entry(self._policies_recorded()),)
            self._journal.extend((*first, self._entry(self._started(), verdicts, began_ns=began)))
            self.alerts = self._journal.take_alerts()
        return verdicts

    def record(self, call: AnyCall, *, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> Sequence[Verdict]:
        """Decide about a call; empty when everything passed.

        For a judge to read: `text` is what a model or the agent said, `texts` what sources say, by the names they are cited by.
        After the end only a bypass is taken: the approval of a run that was stopped at its end. Raises BaseStateError when the
        decision cannot be written down and the posture of the log is closed.
        """
        elapsed_ns = self._elapsed_ns
        with self._lock:
            if self._is_over and type(call) is not CheckBypassed:
                raise InvalidFieldError("run", _ENDED)
            began = elapsed_ns()
            if texts and self._given is not None:
                self._given.add(texts)
            waited = 0
            if type(call) is not RetrievedDocument:
                # What a judge takes is not the evaluation's, and how long texts are looked for would tell what is hidden.
                asked = elapsed_ns()
                call = self._prepared(call, text)
                waited = elapsed_ns() - asked
            verdicts = self._evaluate(call)
            if verdicts:
                self._stopped_calls += not call.is_announced and any(verdict.stops for verdict in verdicts)
            self._add(
                LogEntry(
                    at_us=self._zero_us + began // 1_000,
                    run_id=self._run_id,
                    policies=self._digest,
                    call=call,
                    verdicts=verdicts,
                    count=self._evaluator.count,
                    overhead_us=(elapsed_ns() - began - waited) / 1_000,
                )
            )
            if self._journal.alerts:
                return (*verdicts, *self._journal.take_alerts())
        return verdicts

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Decide about the whole run and close it; `text` is its final output."""
        with self._lock:
            if self._is_over:
                return ()
            asks = self._evaluator.asks(end)
            if asks:
                end = msgspec.structs.replace(end, judgements=self._judgements(asks, text, self._citations))
            began = self._elapsed_ns()
            verdicts = self._evaluator.finish(end)
            if any(verdict.stops for verdict in verdicts):
                self._stopped_calls += 1
                end = msgspec.structs.replace(end, status=RunStatus.BLOCKED)
            self._is_over = True
            try:
                self._journal.extend((self._entry(end, verdicts, began_ns=began),))
            finally:
                if self._journal.is_behind:
                    self._keep(self)
            return (*verdicts, *self._journal.take_alerts())

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order; one that the log has not taken yet has the seq 0."""
        with self._lock:
            held = self._journal.held()
        return self._expanded([*self._log.records(run_id=self._run_id), *held])

    def decision_of(self, verdict: Verdict) -> PolicyDecision | None:
        """Return the decision as it stands in the log, for a verdict of this run that stops; None for any other."""
        with self._lock:
            found = self._journal.record_of(verdict)
        if found is None:
            return None
        record, part = found
        return next((decision for decision in self._expanded([record]) if decision.part == part), None)

    def retry(self) -> bool:
        """Try again to hand over what the log did not take, and tell whether it has everything now."""
        with self._lock, suppress(BaseStateError, OSError):
            self._journal.retry()
        return not self._journal.is_behind

    def flush(self) -> None:
        """Wait until everything recorded so far is written, what was held back included."""
        with self._lock:
            self._journal.retry()
        self._log.flush()

    def _prepared(self, call: AnyCall, text: str) -> AnyCall:
        """Keep what a judge will need, and ask it where a policy wants to know now; take a stop back that an approval lifted."""
        if type(call) is LlmCall:
            self._latest_text = text or self._latest_text
        elif type(call) is CheckBypassed and call.what == APPROVAL:
            self._lift_stop()
        if type(call) is not GroundingEntry:
            return call
        check_ranges(call)
        if self._given is None:
            return call
        self._citations.extend(call.citations)
        asks = self._evaluator.asks(call)
        return msgspec.structs.replace(call, judgements=self._judgements(asks, text, call.citations)) if asks else call

    def _judgements(self, asks: Sequence[JudgeAsk], text: str, citations: Sequence[str]) -> Mapping[PolicyId, Judgement]:
        given = NO_TEXTS if self._given is None else self._given.texts
        return self._judging.judgements(
            asks, output=text or self._latest_text, citations=citations, given=given, principal=self._pinned.principal
        )

    def _lift_stop(self) -> None:
        """Take one stop back; once all are, what comes is enforced as if nothing had stopped the run."""
        self._stopped_calls = max(0, self._stopped_calls - 1)
        if not self._stopped_calls:
            self._evaluator.is_stopped = False

    def _entry(self, call: AnyCall, verdicts: tuple[Verdict, ...] = (), *, began_ns: int | None = None) -> LogEntry:
        now = self._elapsed_ns()
        began = now if began_ns is None else began_ns
        return LogEntry(
            at_us=self._zero_us + began // 1_000,
            run_id=self._run_id,
            policies=self._digest,
            call=call,
            verdicts=verdicts,
            overhead_us=(now - began) / 1_000,
        )

    def _policies_recorded(self) -> PoliciesRecorded:
        return PoliciesRecorded(policies=self._pinned.policies.policies)

    def _started(self) -> RunStarted:
        return RunStarted(facts=self._pinned.facts, is_enforced=self._pinned.is_enforced, edition=EDITION)

    def _expanded(self, records: Iterable[LogRecord]) -> Sequence[PolicyDecision]:
        """Expand records under this run's policies, which may stand in the log under an earlier run."""
        expander = Expander()
        for call in (self._policies_recorded(), self._started()):
            expander.learn(unsealed(self._entry(call)))
        return tuple(decision for record in records for decision in expander.expand(record))


# --- judge ---
# Asks the judge what policies want judged; whatever keeps it from judging becomes a status, so that a run goes on.

JUDGE_BUDGET_MS: Final = 20_000
"""How long one judgement may take by default."""

MAX_GIVEN_CHARS: Final = 400_000
"""How much text of sources a run keeps for its judge: more than a model is ever shown; beyond that the oldest is dropped."""

_NO_OUTPUT: Final = "the text of the output is not at hand: give it to record_llm_call, set_output_text or set_result"
_NO_JUDGE: Final = "no judge is configured"
_NAMED_MISSING: Final = 3


class GivenTexts:
    """The texts of sources that came with a run's calls, by name; texts of one name add up. Not thread safe."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._chars = 0

    def add(self, texts: Mapping[str, str]) -> None:
        """Keep texts, and drop the oldest beyond the limit."""
        for name, text in texts.items():
            known = self._take(name) if name in self.texts else ""
            joined = known if text in known else f"{known}\n{text}" if known else text
            self.texts[name] = joined[: max(0, MAX_GIVEN_CHARS - len(name))]
            self._chars += len(name) + len(self.texts[name])
        while self._chars > MAX_GIVEN_CHARS:
            self._take(next(iter(self.texts)))

    def _take(self, name: str) -> str:
        text = self.texts.pop(name)
        self._chars -= len(name) + len(text)
        return text


class ConfiguredJudge:
    """The judge of a governor with the texts it needs. Thread safe as long as its parts are."""

    def __init__(self, judge: GroundingJudge | None, texts: SourceTexts | None, *, budget_ms: int = JUDGE_BUDGET_MS) -> None:
        self._judge = judge
        self._texts = texts
        self._budget_ms = budget_ms

    def judgements(
        self, asks: Sequence[JudgeAsk], *, output: str, citations: Sequence[str], principal: Principal, given: Mapping[str, str] = NO_TEXTS
    ) -> Mapping[PolicyId, Judgement]:
        """Return a judgement for each policy that asks; policies that ask the same are answered by one.

        A citation is what the base shows to the principal, else a text that was given; what is neither has no text, whatever the reason.
        """
        stored = {each: self._stored_text(each, principal) for each in citations}
        sources = tuple(JudgedSource(citation=each, text=given.get(each) if text is None else text) for each, text in stored.items())
        notes = _source_notes(sources, given=sum(text is None and each in given for each, text in stored.items()))
        said: dict[tuple[str, str], Judgement] = {}
        for ask in asks:
            question = (ask.model, ask.criteria)
            if question not in said:
                request = JudgeRequest(output=output, sources=sources, model=ask.model, criteria=ask.criteria)
                judged = self._judged(request)
                said[question] = msgspec.structs.replace(judged, notes=(*notes, *judged.notes))
        return {ask.policy_id: said[ask.model, ask.criteria] for ask in asks}

    def _judged(self, request: JudgeRequest) -> Judgement:
        if self._judge is None:
            return _without(request, JudgeStatus.NOT_CONFIGURED, _NO_JUDGE)
        if not request.output:
            return _without(request, JudgeStatus.SOURCE_UNAVAILABLE, _NO_OUTPUT)
        if request.sources and all(source.text is None for source in request.sources):
            return _without(request, JudgeStatus.SOURCE_UNAVAILABLE, _missing_texts([source.citation for source in request.sources]))
        try:
            return self._judge.judge(request, budget_ms=self._budget_ms)
        except (EvidentiaError, OSError) as error:
            return _without(request, JudgeStatus.UNAVAILABLE, type(error).__name__)

    def _stored_text(self, citation: str, principal: Principal) -> str | None:
        try:
            return None if self._texts is None else self._texts.text_of(citation, principal=principal)
        except (EvidentiaError, OSError):
            # A store that cannot be read is as good as one that does not hold the text.
            return None


def _source_notes(sources: Sequence[JudgedSource], *, given: int) -> tuple[str, ...]:
    """Return what a reader of the score should know of the sources; what is hidden and what does not exist are one."""
    missing = sum(source.text is None for source in sources)
    counts = ((given, "texts came with the run"), (missing, "citations name nothing that can be read"))
    return tuple(f"{count} of {len(sources)} {what}" for count, what in counts if count)


def _without(request: JudgeRequest, status: JudgeStatus, problem: str) -> Judgement:
    return Judgement(status=status, model=request.model, problem=problem)


def _missing_texts(missing: Sequence[str]) -> str:
    named = ", ".join(f"'{citation}'" for citation in missing[:_NAMED_MISSING])
    more = len(missing) - _NAMED_MISSING
    return f"no text is at hand for {named}" + (f" and {more} more" if more > 0 else "")
