"""The journal of one run: entries on their way to the decision log, held back while the log takes none, and the records of stops."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from evidentia.contracts.decisions import DecisionStatus, Evaluation, LogEntry, LogRecord, Verdict
from evidentia.contracts.errors import BaseStateError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import PolicyId, Posture
from evidentia.contracts.runs import AnyCall, CheckBypassed, Phase, PoliciesRecorded, RunStarted
from evidentia.policy.posture import DECISION_LOG, action_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import DecisionLog

MAX_HELD: Final = 10_000
"""How many entries a run holds back while its log takes none; the oldest are dropped first, and the bypass counts them."""

_UNSEALED: Final = Sha256("0" * 64)
_MAX_STOPS: Final = 64


@runtime_checkable
class SupportsProblem(Protocol):
    """A log that takes entries at once and writes them later, and says when it cannot."""

    @property
    def problem(self) -> str | None:
        """Return why entries wait that could not be written; None when all is well."""
        ...


class RunJournal:
    """The entries of one run on their way to a log. Not thread safe; the run holds a lock.

    Under a closed posture a log that takes nothing, or cannot write what it took, is an error at the call. Else the run goes on with
    an alert. As soon as the log takes something again it gets a bypass, and then everything that was held back.
    """

    def __init__(self, log: DecisionLog, *, posture: Posture, write: Callable[[AnyCall], LogEntry]) -> None:
        self._append = log.append
        self._append_now = log.append_now
        self._watched = log if isinstance(log, SupportsProblem) else None
        self._posture = posture
        self._write = write
        self._held: list[LogEntry] = []
        self._problem = ""
        self._is_told = False
        self._dropped = 0
        self._stops: dict[int, tuple[Verdict, LogRecord, int]] = {}
        """The records of verdicts that stop, and their parts in them; a verdict is kept with them so that its id stays its own."""
        self.alerts: list[Verdict] = []
        """What the agent is to hear of the log's trouble; empty as long as all is well."""

    def add(self, entry: LogEntry) -> None:
        """Hand one entry to the log."""
        if self._held or entry.verdicts:
            self.extend((entry,))
            return
        try:
            self._append((entry,))
        except (BaseStateError, OSError) as error:
            self._hold((entry,), error)
            return
        watched = self._watched
        if watched is not None and (watched.problem is not None or self._is_told):
            self._watch(watched.problem)

    def extend(self, entries: Sequence[LogEntry]) -> None:
        """Hand entries to the log, after those that it did not take before and the bypass that tells of them."""
        try:
            if self._held:
                self._hand_over()
            self._give(entries)
        except (BaseStateError, OSError) as error:
            self._hold(entries, error)
            return
        if self._watched is not None:
            self._watch(self._watched.problem)

    def take_alerts(self) -> tuple[Verdict, ...]:
        """Return the alerts that were not taken yet."""
        alerts, self.alerts = tuple(self.alerts), []
        return alerts

    def retry(self) -> None:
        """Try again to hand over what is held back."""
        if self._held:
            self.extend(())

    @property
    def is_behind(self) -> bool:
        """Tell whether the log has not taken everything."""
        return bool(self._held)

    def held(self) -> list[LogRecord]:
        """Return what the log has not taken, as records without a place."""
        return [unsealed(entry) for entry in self._held]

    def record_of(self, verdict: Verdict) -> tuple[LogRecord, int] | None:
        """Return the record of a verdict that stops, and its part in it; None for any other, and for one long ago."""
        noted = self._stops.get(id(verdict))
        return None if noted is None else noted[1:]

    def _hand_over(self) -> None:
        """Hand over what is held back, behind the bypass that tells of it; the beginning of a run stands before everything.

        The beginning and the bypass go first and alone, so that a log which still takes nothing costs the same however much is held.
        """
        beginning = tuple(takewhile(lambda entry: isinstance(entry.call, PoliciesRecorded | RunStarted), self._held))
        self._give((*beginning, self._bypass_entry(self._problem)))
        del self._held[: len(beginning)]
        self._dropped, self._problem = 0, ""
        self._give(self._held)
        self._held.clear()

    def _give(self, entries: Sequence[LogEntry]) -> None:
        if not entries:
            return
        if not any(verdict.stops for entry in entries for verdict in entry.verdicts):
            self._append(tuple(entries))
            return
        # The violation that is raised shows its record: sealed now, it need not be read back from the log.
        records = self._append_now(tuple(entries)) or (None,) * len(entries)
        for entry, record in zip(entries, records, strict=True):
            self._note_stops(entry, record)

    def _hold(self, entries: Sequence[LogEntry], error: Exception) -> None:
        """Keep what the log did not take, also where the call does not go on: it was counted, so the log has to tell of it."""
        self._held.extend(entries)
        for entry in entries:
            self._note_stops(entry, None)
        overflow = max(0, len(self._held) - MAX_HELD)
        self._dropped += overflow
        del self._held[:overflow]
        if self._posture is Posture.CLOSED:
            self._problem = self._problem or str(error)
            raise error
        if not self._problem:
            self._problem = str(error)
            self.alerts.append(bypass_verdict(self._bypass_call(self._problem)))

    def _watch(self, problem: str | None) -> None:
        """Tell once of a log that takes entries and cannot write them at present; where the posture is closed, every call stops."""
        if problem is None:
            self._is_told = False
            return
        if not self._is_told:
            self._is_told = True
            self._append((self._bypass_entry(problem),))
            if self._posture is not Posture.CLOSED:
                self.alerts.append(bypass_verdict(self._bypass_call(problem)))
        if self._posture is Posture.CLOSED:
            raise BaseStateError(problem)

    def _bypass_call(self, problem: str) -> CheckBypassed:
        lost = f"; {self._dropped} records were dropped" if self._dropped else ""
        return CheckBypassed(what=DECISION_LOG, problem=problem + lost, posture=self._posture)

    def _bypass_entry(self, problem: str) -> LogEntry:
        return self._write(self._bypass_call(problem))

    def _note_stops(self, entry: LogEntry, record: LogRecord | None) -> None:
        """Remember the record of a verdict that stops, so that the violation that is raised can show it.

        Of an entry that the log has not taken, or could only spell otherwise, the record has no place.
        """
        is_entry = record is not None and (record.entry.at_us, record.entry.call) == (entry.at_us, entry.call)
        stands = record if record is not None and is_entry else unsealed(entry)
        for part, verdict in enumerate(entry.verdicts):
            if verdict.stops:
                while len(self._stops) >= _MAX_STOPS:
                    del self._stops[next(iter(self._stops))]
                self._stops[id(verdict)] = (verdict, stands, part)


def bypass_verdict(call: CheckBypassed, *, is_enforced: bool = True) -> Verdict:
    """Return what a check that could not be made comes to by its posture: nothing, a warning, or a stop."""
    said = Evaluation(
        policy_id=PolicyId(""),
        policy_name="",
        digest=_UNSEALED,
        category="",
        rule=call.what,
        action=action_of(call.posture),
        reason=f"Check bypassed: {call.what} ({call.problem})",
        status=DecisionStatus.BYPASSED,
    )
    return Verdict(
        phase=Phase.MID_EXECUTION, decisive=said, evaluations=(said,), is_enforced=is_enforced and call.posture is Posture.CLOSED
    )


def unsealed(entry: LogEntry) -> LogRecord:
    """Return an entry as a record that has no place in a log."""
    return LogRecord(log="", seq=0, previous=_UNSEALED, hash=_UNSEALED, entry=entry)
