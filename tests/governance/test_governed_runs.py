"""A run in this process: order, judges, what the log holds, and what happens when the log takes nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from governed_parts import FACTS, FullLog, KnownTexts, SayingJudge, WaitingJudge, body, document, governor, new_log, records_of

from evidentia.contracts.errors import BaseFullError, BaseStateError, InvalidFieldError
from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.contracts.runs import CheckBypassed, GroundingEntry, LlmCall, RetrievedDocument, RunEnded, StepCall
from evidentia.governance.run_journal import MAX_HELD
from evidentia.testing.determinism import RepeatableEntropy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.decisions import LogEntry, LogRecord
    from evidentia.contracts.runs import RunId

JUDGED = body("Judged", "grounding", llm_grounding_check=True, llm_grounding_phase="both", action_on_violation="block")


def _full_log() -> FullLog:
    return FullLog(entropy=RepeatableEntropy())


def test_a_call_that_passes_is_one_compact_record() -> None:
    log = new_log()
    run = governor(log=log).start(FACTS, policies=[body()])

    assert () == run.record(document())

    entry = records_of(log)[-1].entry
    assert ((), 1) == (entry.verdicts, entry.count)


def test_decisions_are_those_of_this_run_with_their_place_in_the_chain() -> None:
    log = new_log()
    governing = governor(log=log)
    run = governing.start(FACTS, policies=[body()])
    governing.start(type(FACTS)(run_id=type(FACTS.run_id)("r-2"), agent_name="other"), policies=[body()])
    run.record(document())
    run.finish(RunEnded())

    decisions = run.decisions()
    assert [2, 4, 5] == [decision.seq for decision in decisions]
    assert {"r-1"} == {decision.run_id for decision in decisions}
    assert {record.hash for record in records_of(log)} >= {decision.hash for decision in decisions}


def test_a_verdict_that_stops_is_found_in_the_log() -> None:
    run = governor().start(FACTS, policies=[body(blocked_sources=["bad"])])
    run.record(document())

    first = run.decision_of(run.record(document(source="bad"))[0])
    run.record(document())
    second = run.decision_of(run.record(document(source="bad"))[0])

    assert first is not None
    assert second is not None
    assert (4, 6) == (first.seq, second.seq)
    assert [first, second] == [decision for decision in run.decisions() if decision.action == "block"]


class UnreadLog(FullLog):
    """A log that nobody may read."""

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Refuse."""
        raise AssertionError(run_id, after)


def test_a_verdict_that_stops_has_its_seal_without_reading_the_log() -> None:
    run = governor(log=UnreadLog(entropy=RepeatableEntropy())).start(FACTS, policies=[body(blocked_sources=["bad"])])

    found = run.decision_of(run.record(document(source="bad"))[0])

    assert found is not None
    assert 3 == found.seq
    assert found.hash.strip("0")


def test_what_does_not_stop_is_not_looked_for() -> None:
    run = governor().start(FACTS, policies=[body()])

    (warning,) = run.record(document(relevance_score=0.1))

    assert run.decision_of(warning) is None


def test_time_in_the_log_never_goes_back() -> None:
    log = new_log()
    run = governor(log=log).start(FACTS)
    for _ in range(5):
        run.record(document())
    run.finish(RunEnded())

    times = [record.entry.at_us for record in records_of(log)]
    assert sorted(times) == times
    assert all(record.entry.overhead_us >= 0 for record in records_of(log))


def test_nothing_is_recorded_after_the_end_but_a_bypass() -> None:
    run = governor().start(FACTS)
    run.finish(RunEnded())

    with pytest.raises(InvalidFieldError, match="has ended"):
        run.record(document())
    run.record(CheckBypassed(what="approval"))

    assert () == run.finish(RunEnded())
    assert "approval" == run.decisions()[-1].rule


def test_threads_record_in_the_order_in_which_they_are_counted() -> None:
    log = new_log()
    run = governor(log=log).start(FACTS, policies=[body(max_chunks=1_000)])

    def work() -> None:
        for _ in range(50):
            run.record(document())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    counts = [record.entry.count for record in records_of(log) if isinstance(record.entry.call, RetrievedDocument)]
    assert list(range(1, 401)) == counts


def test_the_judge_reads_the_latest_response_and_the_citations_of_the_call_and_then_all() -> None:
    judge = SayingJudge(0.9)
    run = governor(judge=judge, texts=KnownTexts({"a": "A.", "b": "B."})).start(FACTS, policies=[JUDGED])
    run.record(LlmCall(model="m"), text="first")
    run.record(GroundingEntry(citations=("a",)))
    run.record(LlmCall(model="m"), text="second")
    run.record(GroundingEntry(citations=("b", "b")))

    run.finish(RunEnded(), text="final")

    assert ["first", "second", "final"] == [request.output for request in judge.asked]
    assert [["a"], ["b"], ["a", "b"]] == [[source.citation for source in request.sources] for request in judge.asked]


def test_what_the_judge_said_stands_in_the_log_and_decides() -> None:
    log = new_log()
    run = governor(log=log, judge=SayingJudge(0.42), texts=KnownTexts({"a": "A."})).start(FACTS, policies=[JUDGED])

    (verdict,) = run.record(GroundingEntry(citations=("a",)), text="It is so.")

    assert verdict.stops
    assert "LLM grounding score (0.42) below threshold (0.7)" == verdict.decisive.reason
    call = records_of(log)[-1].entry.call
    assert isinstance(call, GroundingEntry)
    assert [0.42] == [judgement.score for judgement in call.judgements.values()]


@pytest.mark.parametrize(
    ("judge", "texts", "text", "status"),
    [
        (None, KnownTexts({"a": "A."}), "said", "not_configured"),
        (SayingJudge(), None, "said", "source_unavailable"),
        (SayingJudge(), KnownTexts({}), "said", "source_unavailable"),
        (SayingJudge(), KnownTexts({"a": "A."}), "", "source_unavailable"),
    ],
)
def test_what_keeps_a_judge_from_judging_is_a_recorded_bypass(
    judge: SayingJudge | None, texts: KnownTexts | None, text: str, status: str
) -> None:
    run = governor(judge=judge, texts=texts).start(FACTS, policies=[JUDGED])

    (verdict,) = run.record(GroundingEntry(citations=("a",)), text=text)

    assert not verdict.stops
    assert f"LLM grounding check skipped ({status})" in [evaluation.reason for evaluation in verdict.evaluations]
    assert "bypassed" == run.decisions()[-1].status.value
    assert judge is None or [] == judge.asked


def test_calls_of_other_threads_wait_while_the_judge_reads() -> None:
    log, judge = new_log(), WaitingJudge()
    run = governor(log=log, judge=judge, texts=KnownTexts({"a": "A."})).start(FACTS, policies=[JUDGED])
    first = threading.Thread(target=lambda: run.record(GroundingEntry(citations=("a",)), text="said"))
    first.start()
    assert judge.is_asked.wait(10)
    second = threading.Thread(target=lambda: run.record(StepCall(name="later")))
    second.start()

    judge.may_answer.set()
    first.join()
    second.join()

    assert [GroundingEntry, StepCall] == [type(record.entry.call) for record in records_of(log)[2:]]


def test_a_durable_log_that_is_full_stops_the_call() -> None:
    log = _full_log()
    run = governor(log=log, is_durable=True).start(FACTS, policies=[body()])
    log.is_full = True

    with pytest.raises(BaseFullError):
        run.record(document())


def test_a_buffered_log_that_is_full_lets_the_run_go_on_and_hears_of_it_later() -> None:
    log = _full_log()
    run = governor(log=log).start(FACTS, policies=[body(blocked_sources=["bad"])])
    log.is_full = True
    run.record(document())
    (verdict,) = run.record(document(source="bad"))
    unsealed = run.decision_of(verdict)
    log.is_full = False

    run.record(document())

    assert unsealed is not None
    assert 0 == unsealed.seq
    calls = [record.entry.call for record in records_of(log)][2:]
    assert [CheckBypassed, RetrievedDocument, RetrievedDocument, RetrievedDocument] == [type(call) for call in calls]
    assert isinstance(calls[0], CheckBypassed)
    assert ("decision_log", Posture.DEGRADE) == (calls[0].what, calls[0].posture)
    assert "no room left" in calls[0].problem
    assert ["allow", "warn", "allow", "block", "allow"] == [decision.action.value for decision in run.decisions()]


def test_what_is_held_back_is_shown_before_the_log_takes_it_and_sent_by_flush() -> None:
    log = _full_log()
    run = governor(log=log).start(FACTS, policies=[body()])
    log.is_full = True
    run.record(document())

    assert [2, 0] == [decision.seq for decision in run.decisions()]

    log.is_full = False
    run.flush()
    assert [2, 3, 4] == [decision.seq for decision in run.decisions()]


def test_a_policy_can_close_a_buffered_log_and_open_a_durable_one() -> None:
    closed = PolicyBody(name="Closed", category="retrieval", posture={"*": Posture.CLOSED})
    opened = PolicyBody(name="Open", category="retrieval", posture={"decision_log": Posture.OPEN})
    log, other = _full_log(), _full_log()
    strict = governor(log=log).start(FACTS, policies=[closed])
    loose = governor(log=other, is_durable=True).start(FACTS, policies=[opened])
    log.is_full = other.is_full = True

    with pytest.raises(BaseFullError):
        strict.record(document())
    assert ["allow"] == [verdict.decisive.action for verdict in loose.record(document())]


def test_a_run_that_is_held_back_too_long_drops_the_oldest_and_says_so() -> None:
    log = _full_log()
    run = governor(log=log).start(FACTS)
    log.is_full = True
    for _ in range(MAX_HELD + 2):
        run.record(document())
    log.is_full = False
    run.flush()

    bypass = records_of(log)[2].entry.call
    assert isinstance(bypass, CheckBypassed)
    assert "2 records were dropped" in bypass.problem
    assert MAX_HELD == len(records_of(log)) - 3


def test_a_run_without_policies_is_written_down_all_the_same() -> None:
    log = new_log()
    run = governor(log=log).start(FACTS)
    run.record(document())
    run.finish(RunEnded())

    assert ["policies", "run", "retrieval", "end"] == [type(record.entry.call).__struct_config__.tag for record in records_of(log)]
    assert () == run.decisions()


class RepeatingLog(FullLog):
    """A log that states the policies again before what comes next, as one does that begins another file."""

    is_new_file = False

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries, the policies first where a file begins."""
        self._repeat()
        super().append(entries)

    def append_now(self, entries: Sequence[LogEntry]) -> Sequence[LogRecord]:
        """Take entries, the policies first where a file begins."""
        self._repeat()
        return super().append_now(entries)

    def _repeat(self) -> None:
        if self.is_new_file:
            self.is_new_file = False
            super().append([next(self.records()).entry])


def test_a_verdict_is_found_in_a_log_that_repeats_the_policies() -> None:
    log = RepeatingLog(entropy=RepeatableEntropy())
    run = governor(log=log).start(FACTS, policies=[body(blocked_sources=["bad"], max_chunks=100)])
    found = []
    for _ in range(3):
        run.record(document())
        log.is_new_file = True
        run.record(document())
        found.append(run.decision_of(run.record(document(source="bad"))[0]))

    assert [6, 10, 14] == [decision.seq for decision in found if decision is not None]
    assert found == [decision for decision in run.decisions() if decision.action == "block"]


class TroubledLog(FullLog):
    """A log that takes everything and says that it cannot write it."""

    problem: str | None = None


@pytest.mark.parametrize("posture", [Posture.OPEN, Posture.DEGRADE])
def test_a_log_that_takes_and_cannot_write_is_told_of_once(posture: Posture) -> None:
    log = TroubledLog(entropy=RepeatableEntropy())
    given = PolicyBody(name="Guard", category="retrieval", posture={"decision_log_buffered": posture})
    run = governor(log=log).start(FACTS, policies=[given])
    log.problem = "no room"
    told = [[verdict.decisive.rule for verdict in run.record(document())] for _ in range(3)]
    log.problem = None
    run.record(document())
    log.problem = "no room again"
    told.append([verdict.decisive.rule for verdict in run.finish(RunEnded())])

    assert [["decision_log"], [], [], ["", "decision_log"]] == told
    bypasses = [record.entry.call for record in records_of(log) if isinstance(record.entry.call, CheckBypassed)]
    assert [("no room", posture), ("no room again", posture)] == [(call.problem, call.posture) for call in bypasses]


def test_a_log_that_takes_and_cannot_write_stops_calls_where_the_posture_is_closed() -> None:
    log = TroubledLog(entropy=RepeatableEntropy())
    given = PolicyBody(name="Guard", category="retrieval", posture={"*": Posture.CLOSED})
    run = governor(log=log).start(FACTS, policies=[given])
    log.problem = "no room"
    for _ in range(2):
        with pytest.raises(BaseStateError, match="no room"):
            run.record(document())
    log.problem = None

    assert () == run.record(document())
    assert ["retrieval", "bypass", "retrieval", "retrieval"] == [type(each.entry.call).__struct_config__.tag for each in records_of(log)][
        2:
    ]


def test_what_a_full_durable_log_did_not_take_is_written_when_it_does() -> None:
    log = _full_log()
    run = governor(log=log, is_durable=True).start(FACTS, policies=[body()])
    log.is_full = True
    with pytest.raises(BaseFullError):
        run.record(document())
    log.is_full = False
    run.record(document())

    assert [("bypass", 0), ("retrieval", 1), ("retrieval", 2)] == [
        (type(each.entry.call).__struct_config__.tag, each.entry.count) for each in records_of(log)
    ][2:]


def test_a_log_that_is_full_is_a_warning_for_the_agent() -> None:
    log = _full_log()
    run = governor(log=log).start(FACTS, policies=[body()])
    log.is_full = True

    told = [[verdict.decisive.reason for verdict in run.record(document())] for _ in range(2)]

    assert "Check bypassed: decision_log" in told[0][0]
    assert [] == told[1]
