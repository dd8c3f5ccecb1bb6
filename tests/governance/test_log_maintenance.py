"""Care of the log: what is taken out is taken out for good, is written down first, and leaves a chain that holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import Policy, PolicyBody, PolicyId
from evidentia.contracts.runs import PoliciesRecorded, RetrievedDocument, RunId, StepCall
from evidentia.governance.log_maintenance import prove, prove_growth, redact, retire, verify
from evidentia.governance.memory_log import MemoryLog
from evidentia.provenance.decision_chain import CHECKPOINT, redact_line, split_line
from evidentia.provenance.decision_proofs import verify_growth, verify_record
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.runs import AnyCall
    from evidentia.governance.log_scan import KeptLogs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGEST = Sha256("d" * 64)
POLICIES = PoliciesRecorded(
    policies=(Policy(policy_id=PolicyId("p"), digest=DIGEST, body=PolicyBody(name="n", category="retrieval")),),
)
PRIVATE = "a private name"


@pytest.fixture(params=["memory", "embedded", "parts"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeptLogs]:
    """Return a log with policies at 0 s and a document every second from 1 to 40, of runs r0 to r3 in turn."""
    made: MemoryLog | EmbeddedDecisionLog
    if request.param == "memory":
        made = MemoryLog(entropy=RepeatableEntropy(1))
    else:
        max_bytes = 3_000 if request.param == "parts" else 1 << 20
        made = EmbeddedDecisionLog(
            tmp_path, clock=SteppingClock(), entropy=RepeatableEntropy(1), flush_ms=3_600_000, is_durable=True, max_bytes=max_bytes
        )
    made.append([_entry(0, POLICIES)])
    for second in range(1, 41):
        made.append([_entry(second, RetrievedDocument(source=f"{PRIVATE} {second}"), run=f"r{second % 4}")])
    yield made
    made.close()


def _entry(second: int, call: AnyCall, *, run: str = "r") -> LogEntry:
    return LogEntry(at_us=second * 1_000_000, run_id=RunId(run), policies=DIGEST, call=call)


def _at(second: int) -> datetime:
    return EPOCH + timedelta(seconds=second)


def _redacted(logs: KeptLogs) -> list[int]:
    return [record.seq for record in logs.records() if record.is_redacted]


def _acts(logs: KeptLogs) -> list[LogRecord]:
    return [record for record in logs.records() if "admin" == record.entry.run_id]


def _bytes(logs: KeptLogs) -> bytes:
    return b"".join(block for part in logs.parts() for block in logs.blocks(part))


def test_one_record_is_redacted_and_the_chain_holds(logs: KeptLogs) -> None:
    head = logs.head()
    before = {record.seq: record for record in logs.records()}
    report = redact(logs, record=(head.log, 8), by="dpo", why="request 7", clock=SteppingClock())
    after = {record.seq: record for record in logs.records()}
    (act,) = _acts(logs)

    assert (1, (head.log,)) == (report.records, report.logs)
    assert [8] == _redacted(logs)
    assert PRIVATE.encode() + b" 7" not in _bytes(logs)
    assert (before[8].hash, before[8].previous, before[8].entry.run_id) == (after[8].hash, after[8].previous, after[8].entry.run_id)
    assert {seq: record for seq, record in before.items() if seq != 8} == {seq: after[seq] for seq in before if seq != 8}
    assert isinstance(act.entry.call, StepCall)
    assert "redaction" == act.entry.call.name
    assert {"by": "dpo", "why": "request 7", "log": head.log, "seqs": [[8, 9]]} == act.entry.call.attributes
    assert (True, 1, 42) == ((checked := verify(logs, heads=[head, logs.head()])).ok, checked.redacted, checked.records)


def test_a_run_is_redacted(logs: KeptLogs) -> None:
    report = redact(logs, run_id=RunId("r2"), by="dpo", why="left", clock=SteppingClock())

    assert (10, list(range(3, 42, 4))) == (report.records, _redacted(logs))
    assert verify(logs).ok


def test_what_is_older_is_redacted_without_the_policies(logs: KeptLogs) -> None:
    report = redact(logs, before=_at(10), by="dpo", why="age", clock=SteppingClock())

    assert (9, list(range(2, 11))) == (report.records, _redacted(logs))
    assert POLICIES == next(logs.records()).entry.call
    assert verify(logs).ok


def test_several_conditions_must_all_be_true_and_what_is_redacted_stays_so(logs: KeptLogs) -> None:
    first = redact(logs, before=_at(10), run_id=RunId("r1"), by="dpo", why="age", clock=SteppingClock())
    again = redact(logs, before=_at(14), run_id=RunId("r1"), by="dpo", why="age", clock=SteppingClock())
    nothing = redact(logs, before=_at(14), run_id=RunId("r1"), by="dpo", why="age", clock=SteppingClock())

    assert (3, 1, 0) == (first.records, again.records, nothing.records)
    assert [2, 6, 10, 14] == _redacted(logs)
    assert verify(logs).ok


def test_acts_cannot_be_redacted(logs: KeptLogs) -> None:
    redact(logs, run_id=RunId("r1"), by="dpo", why="age", clock=SteppingClock())
    seq = _acts(logs)[0].seq

    assert 0 == redact(logs, record=(logs.head().log, seq), by="x", why="y", clock=SteppingClock()).records
    assert 0 == redact(logs, run_id=RunId("admin"), by="x", why="y", clock=SteppingClock()).records


@pytest.mark.parametrize(("field", "given"), [("by", {"by": " ", "why": "w"}), ("why", {"by": "b", "why": ""})])
def test_who_and_why_must_be_said(logs: KeptLogs, field: str, given: dict[str, str]) -> None:
    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        redact(logs, run_id=RunId("r1"), clock=SteppingClock(), **given)  # type: ignore[arg-type]  # by and why only
    with pytest.raises(InvalidFieldError, match=f"field '{field}'"):
        retire(logs, before=_at(5), clock=SteppingClock(), **given)
    with pytest.raises(InvalidFieldError, match="name a record, a run or a date"):
        redact(logs, by="b", why="w", clock=SteppingClock())
    assert [] == _acts(logs)


def test_details_taken_out_without_a_word_are_located(logs: KeptLogs) -> None:
    part = logs.parts()[0]

    def change(blocks: Iterator[bytes]) -> list[bytes]:
        lines = b"".join(blocks).splitlines(keepends=True)
        lines[1] = redact_line(split_line(lines[1][:-1]))
        return lines

    logs.rewrite(part, change)
    report = verify(logs)

    assert (False, [(str(part), 2)]) == (report.ok, [(fault.log, fault.line) for fault in report.faults])
    assert "no record says by whom" in report.faults[0].problem


def test_what_is_old_is_retired_and_the_rest_still_adds_up(logs: KeptLogs) -> None:
    kept = logs.head()
    rest = [record for record in logs.records() if record.seq > 20]
    report = retire(logs, before=_at(20), by="dpo", why="retention", clock=SteppingClock())
    checked = verify(logs, heads=[kept, logs.head()])

    assert (20, (kept.log,)) == (report.records, report.logs)
    assert rest == [record for record in logs.records() if record.seq <= kept.size]
    assert (True, 20, 22, 42) == (checked.ok, checked.retired, checked.records, checked.heads[0].size)
    assert PRIVATE.encode() + b" 19" not in _bytes(logs)
    assert ["retention"] == [record.entry.call.name for record in _acts(logs) if isinstance(record.entry.call, StepCall)]
    assert verify_record(prove(logs, kept.log, 30, size=kept.size), kept)


def test_a_log_can_be_retired_again_and_as_a_whole(logs: KeptLogs) -> None:
    for until in (8, 20, 33, 100):
        retire(logs, before=_at(until), by="dpo", why="retention", clock=SteppingClock(EPOCH + timedelta(days=9)))

        assert verify(logs, heads=[logs.head()]).ok
    logs.append([_entry(1_000_000, StepCall(name="next"))])
    checked = verify(logs, heads=[logs.head()])

    assert (True, 41, 46) == (checked.ok, checked.retired, checked.heads[0].size)
    assert ["retention"] * 4 + ["next"] == [record.entry.call.name for record in logs.records() if isinstance(record.entry.call, StepCall)]
    assert 0 == retire(logs, before=_at(100), by="dpo", why="retention", clock=SteppingClock()).records


def test_acts_and_policies_outlast_their_records(logs: KeptLogs) -> None:
    """Redactions stay explained when the record that explains them is retired."""
    redact(logs, record=(logs.head().log, 41), by="dpo", why="one", clock=SteppingClock(_at(41)))
    logs.append([_entry(50, StepCall(name="between")), _entry(60, StepCall(name="last"))])
    retire(logs, before=_at(39), by="dpo", why="age", clock=SteppingClock(_at(70)))
    assert verify(logs).ok
    retire(logs, before=_at(40), by="dpo", why="age", clock=SteppingClock(_at(80)))
    checked = verify(logs)

    assert (True, 1, 40) == (checked.ok, checked.redacted, checked.retired)
    assert b'"policies":{"' in _bytes(logs)


def test_every_flipped_byte_of_a_log_that_was_cut_is_located(tmp_path: Path) -> None:
    """A checkpoint is no record; what was written down about it holds it."""
    logs = EmbeddedDecisionLog(tmp_path, clock=SteppingClock(), entropy=RepeatableEntropy(1), is_durable=True)
    logs.append([_entry(0, POLICIES), *(_entry(second, RetrievedDocument(source=str(second))) for second in range(1, 6))])
    retire(logs, before=_at(4), by="dpo", why="age", clock=SteppingClock())
    path = tmp_path / "decisions" / f"{logs.parts()[0]}.log"
    content = path.read_bytes()
    line_of = [number for number, line in enumerate(content.splitlines(keepends=True), start=1) for _ in line]
    missed = []
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        if [(path.stem, line_of[position])] != [(fault.log, fault.line) for fault in verify(logs).faults]:
            missed.append(position)
    path.write_bytes(content)

    assert content.startswith(CHECKPOINT)
    assert [] == missed
    assert verify(logs).ok
    logs.close()


def test_a_crash_between_checkpoint_and_removal_leaves_a_log_that_holds(tmp_path: Path) -> None:
    logs = EmbeddedDecisionLog(tmp_path, clock=SteppingClock(), entropy=RepeatableEntropy(1), is_durable=True, max_bytes=1_000)
    for second in range(20):
        logs.append([_entry(second, RetrievedDocument(source=str(second)))])
    old = {path: path.read_bytes() for path in sorted((tmp_path / "decisions").iterdir())[:3]}
    retire(logs, before=_at(17), by="dpo", why="age", clock=SteppingClock())
    gone = [path for path in old if not path.exists()]
    for path in gone[1:]:
        path.write_bytes(old[path])

    assert 3 == len(gone)
    assert (True, 17) == ((report := verify(logs)).ok, report.retired)
    assert list(range(18, 22)) == [record.seq for record in logs.records()]
    logs.close()


def test_what_another_process_writes_is_left_for_later_and_named(tmp_path: Path) -> None:
    """Retention goes on with the others; a redaction that cannot be done is an error."""
    first, second = (
        EmbeddedDecisionLog(tmp_path, clock=SteppingClock(), entropy=RepeatableEntropy(seed), is_durable=True) for seed in (1, 2)
    )
    for log in (first, second):
        log.append([_entry(second, RetrievedDocument(source=str(second))) for second in range(6)])
    own, other = first.head().log, second.head().log
    report = retire(first, before=_at(3), by="dpo", why="age", clock=SteppingClock())

    assert (3, (own,), (other,)) == (report.records, report.logs, report.busy)
    with pytest.raises(BaseBusyError):
        redact(first, record=(other, 5), by="dpo", why="request", clock=SteppingClock())
    assert (True, 0, 3) == ((checked := verify(first)).ok, checked.redacted, checked.retired)
    second.close()
    assert (other,) == retire(first, before=_at(3), by="dpo", why="age", clock=SteppingClock()).logs
    assert (True, 6) == ((checked := verify(first)).ok, checked.retired)
    first.close()


def test_a_log_that_is_gone_shows_against_its_head(logs: KeptLogs) -> None:
    other = msgspec.structs.replace(logs.head(), log="other")
    report = verify(logs, heads=[logs.head(), other])

    assert (False, [("other", 1, "the log is missing")]) == (report.ok, [(each.log, each.line, each.problem) for each in report.faults])


def test_a_damaged_log_is_not_changed(tmp_path: Path) -> None:
    logs = EmbeddedDecisionLog(tmp_path, clock=SteppingClock(), entropy=RepeatableEntropy(1), is_durable=True)
    logs.append([_entry(second, RetrievedDocument(source=str(second))) for second in range(6)])
    path = tmp_path / "decisions" / f"{logs.parts()[0]}.log"
    damaged = path.read_bytes().replace(b'"s":"3"', b'"s":"4"')
    path.write_bytes(damaged)

    with pytest.raises(BaseDamagedError, match="line 4"):
        redact(logs, run_id=RunId("r"), by="dpo", why="age", clock=SteppingClock())
    with pytest.raises(BaseDamagedError, match="line 4"):
        retire(logs, before=_at(2), by="dpo", why="age", clock=SteppingClock())
    assert damaged == path.read_bytes()
    logs.close()


def test_a_proof_holds_against_the_head_of_its_time(logs: KeptLogs) -> None:
    first = logs.head()
    logs.append([_entry(60, StepCall(name="later"))])
    second = logs.head()

    assert verify_record(prove(logs, first.log, 3, size=first.size), first)
    assert verify_record(prove(logs, first.log, 3), second)
    assert not verify_record(prove(logs, first.log, 3), first)
    assert verify_growth(prove_growth(logs, first, second))
    with pytest.raises(NotFoundError):
        prove(logs, first.log, 99)
    with pytest.raises(NotFoundError):
        prove(logs, "nobody", 1)
