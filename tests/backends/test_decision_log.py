"""The decision log on disk: order is kept, nothing is lost silently, what was acknowledged stays, and one process has one chain."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError, BaseFullError, BaseReadOnlyError, BaseStateError, NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import Policy, PolicyBody, PolicyId
from evidentia.contracts.runs import PoliciesRecorded, RetrievedDocument, RunFacts, RunId, RunStarted, StepCall
from evidentia.governance.log_maintenance import verify
from evidentia.governance.memory_log import MemoryLog
from evidentia.provenance.decision_chain import LogPart
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.runs import AnyCall

DIGEST = Sha256("d" * 64)
NOBODY = 65534
NEVER_MS = 3_600_000
READ_ONLY = """
    import os, sys
    from pathlib import Path
    from evidentia.contracts.errors import BaseReadOnlyError
    from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
    from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
    from evidentia.contracts.decisions import LogEntry
    from evidentia.contracts.runs import StepCall
    log = EmbeddedDecisionLog(Path(sys.argv[1]), clock=SteppingClock(), entropy=RepeatableEntropy(1), is_durable=sys.argv[2] == "durable")
    os.seteuid(int(sys.argv[3]))
    entry = LogEntry(at_us=1, run_id="r", policies="d" * 64, call=StepCall(name="one"))
    try:
        log.append([entry])
        log.flush()
    except BaseReadOnlyError as error:
        print(type(error).__name__, log.problem is not None)
    os.seteuid(0)
    log.close()
"""
REWRITE_ELSEWHERE = """
    import sys
    from pathlib import Path
    from evidentia.contracts.errors import BaseBusyError
    from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
    from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
    log = EmbeddedDecisionLog(Path(sys.argv[1]), clock=SteppingClock(), entropy=RepeatableEntropy(7))
    try:
        log.rewrite(log.parts()[0], lambda blocks: blocks)
    except BaseBusyError:
        print("busy")
    else:
        print("rewritten")
"""


def _log(
    directory: Path,
    *,
    seed: int = 1,
    is_durable: bool = False,
    flush_ms: int = NEVER_MS,
    max_pending: int = 10_000,
    max_bytes: int = 1 << 30,
) -> EmbeddedDecisionLog:
    return EmbeddedDecisionLog(
        directory,
        clock=SteppingClock(),
        entropy=RepeatableEntropy(seed),
        is_durable=is_durable,
        flush_ms=flush_ms,
        max_pending=max_pending,
        max_bytes=max_bytes,
    )


@pytest.fixture(params=[False, True], ids=["buffered", "durable"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedDecisionLog]:
    """Return an empty log."""
    made = _log(tmp_path, is_durable=request.param)
    yield made
    made.close()


def _entry(name: str, *, run: str = "r", call: AnyCall | None = None) -> LogEntry:
    return LogEntry(at_us=1, run_id=RunId(run), policies=DIGEST, call=call or StepCall(name=name))


def _names(records: Iterator[LogRecord]) -> list[str]:
    return [record.entry.call.name for record in records if isinstance(record.entry.call, StepCall)]


def _append_each(log: EmbeddedDecisionLog, names: Sequence[str], *, run: str = "r") -> None:
    for name in names:
        log.append([_entry(name, run=run)])


def _python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script), *arguments], capture_output=True, text=True, check=False)


def test_entries_are_read_back_in_order_and_the_chain_holds(log: EmbeddedDecisionLog) -> None:
    names = [str(number) for number in range(700)]
    _append_each(log, names[:300])
    log.append([_entry(name) for name in names[300:]])
    report = verify(log, heads=[log.head()])

    assert names == _names(log.records())
    assert list(range(1, 701)) == [record.seq for record in log.records()]
    assert (True, 1, 700, (log.head(),)) == (report.ok, report.logs, report.records, report.heads)


def test_append_returns_the_seals_that_the_log_reads_back(log: EmbeddedDecisionLog) -> None:
    known = PoliciesRecorded(policies=())
    taken = [log.append_now([_entry("", call=known), _entry("first")]), log.append_now([_entry("second"), _entry("third")])]
    nothing = log.append_now([])

    assert list(log.records()) == [record for records in taken for record in records or ()]
    assert () == nothing


def test_a_seal_is_that_of_the_entry_where_another_chain_states_the_policies_again(tmp_path: Path) -> None:
    log = _log(tmp_path, max_bytes=1)
    log.append([_entry("", call=PoliciesRecorded(policies=()))])
    log.flush()
    log._appender.break_off()  # as after a torn write: the next entries begin another chain, which states the policies first
    taken = log.append_now([_entry("first"), _entry("second")]) or ()
    log.close()

    assert [("first", 2), ("second", 3)] == [
        (record.entry.call.name, record.seq) for record in taken if isinstance(record.entry.call, StepCall)
    ]
    assert taken == tuple(log.records())[-2:]


def test_records_of_a_run_and_after_a_seq(log: EmbeddedDecisionLog) -> None:
    for number in range(20):
        run = f"r{number % 2}"
        call: AnyCall = RunStarted(facts=RunFacts(run_id=RunId(run), agent_name="a")) if number < 2 else StepCall(name=str(number))
        log.append([_entry("", run=run, call=call)])

    assert [str(number) for number in range(3, 20, 2)] == _names(log.records(run_id=RunId("r1")))
    assert [16, 18, 20] == [record.seq for record in log.records(run_id=RunId("r1"), after=15)]
    assert list(log.records(run_id=RunId("r1"))) == [record for record in log.records() if "r1" == record.entry.run_id]
    assert [] == list(log.records(run_id=RunId("r2")))


def test_a_run_that_began_in_an_earlier_part_is_found_whole(tmp_path: Path) -> None:
    log = _log(tmp_path, is_durable=True, max_bytes=2_000)
    log.append([_entry("", run="r1", call=RunStarted(facts=RunFacts(run_id=RunId("r1"), agent_name="a")))])
    _append_each(log, [str(number) for number in range(40)], run="r1")

    assert len(log.parts()) > 2
    assert [str(number) for number in range(40)] == _names(log.records(run_id=RunId("r1")))
    log.close()


def test_nothing_is_made_before_the_first_entry(log: EmbeddedDecisionLog, tmp_path: Path) -> None:
    assert ([], 0, "") == (list(log.records()), log.head().size, log.head().log)
    assert not (tmp_path / "decisions").exists()


def test_buffered_entries_are_written_by_themselves(tmp_path: Path) -> None:
    log = _log(tmp_path, flush_ms=1)
    _append_each(log, ["a", "b"])
    reader = _log(tmp_path, seed=2)
    deadline = time.monotonic() + 10
    while len(_names(reader.records())) < 2 and time.monotonic() < deadline:
        time.sleep(0.002)

    assert ["a", "b"] == _names(reader.records())
    log.close()


def test_what_is_buffered_is_written_when_the_process_ends(tmp_path: Path) -> None:
    run = _python(
        """
        import sys
        from pathlib import Path
        from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
        from evidentia.contracts.decisions import LogEntry
        from evidentia.contracts.runs import StepCall
        from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
        log = EmbeddedDecisionLog(Path(sys.argv[1]), clock=SteppingClock(), entropy=RepeatableEntropy(1), flush_ms=3_600_000)
        log.append([LogEntry(at_us=1, run_id="r", policies="d" * 64, call=StepCall(name="last"))])
        """,
        str(tmp_path),
    )

    assert 0 == run.returncode, run.stderr[-2000:]
    assert ["last"] == _names(_log(tmp_path).records())


def test_a_writer_that_cannot_keep_up_makes_callers_write(tmp_path: Path) -> None:
    log = _log(tmp_path, max_pending=8)
    _append_each(log, [str(number) for number in range(100)])
    waiting = len(log._pending)

    assert waiting <= 8
    assert [str(number) for number in range(100)] == _names(log.records())
    log.close()


def test_many_threads_append_to_one_chain_each_in_its_order(log: EmbeddedDecisionLog) -> None:
    def write(thread: int) -> None:
        _append_each(log, [f"{thread}:{number}" for number in range(60)], run=f"r{thread}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    found = _names(log.records())

    assert 480 == len(found)
    assert all([f"{thread}:{number}" for number in range(60)] == _names(log.records(run_id=RunId(f"r{thread}"))) for thread in range(8))
    assert verify(log).ok


def test_durable_entries_are_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, int]] = []
    sync = os.fsync

    def watch(handle: int) -> None:
        synced.append((os.path.realpath(f"/proc/self/fd/{handle}"), os.fstat(handle).st_size))
        sync(handle)

    monkeypatch.setattr(os, "fsync", watch)
    log = _log(tmp_path, is_durable=True)
    log.append([_entry("first")])
    (path,) = (tmp_path / "decisions").iterdir()

    assert {str(tmp_path), str(tmp_path / "decisions")} <= {name for name, _ in synced}
    assert (str(path), path.stat().st_size) == synced[-1]
    log.close()


def test_durable_callers_who_wait_together_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(tmp_path, is_durable=True)
    log.append([_entry("0")])
    is_held, may_go = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        if len(syncs) == 1:
            is_held.set()
            assert may_go.wait(10)

    monkeypatch.setattr(os, "fsync", sync)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(log.append, [_entry("1")])
        assert is_held.wait(10)
        waiting = [pool.submit(log.append, [_entry(str(number))]) for number in range(2, 8)]
        while len(log._pending) < 6:
            time.sleep(0.001)
        may_go.set()
        for each in (first, *waiting):
            each.result()

    assert 2 == len(syncs)
    assert {str(number) for number in range(8)} == set(_names(log.records()))
    log.close()


def test_a_sync_that_fails_fails_for_all_who_waited_and_breaks_the_chain_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what reached the disk, so nothing follows it: the next entry begins another log, which states its policies."""
    log = _log(tmp_path, is_durable=True)
    policies = PoliciesRecorded(policies=(Policy(policy_id=PolicyId("p"), digest=DIGEST, body=PolicyBody(name="n", category="retrieval")),))
    log.append([_entry("", call=policies), _entry("kept")])

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(BaseDamagedError):
            log.append([_entry("lost")])
    log.append([_entry("next")])
    records = [record for record in log.records() if record.log == log.head().log]

    assert 2 == len(log.parts()) == len({part.log for part in log.parts()})
    assert ["kept", "lost", "next"] == _names(log.records())
    assert (policies, "admin") == (records[0].entry.call, records[0].entry.run_id)
    assert verify(log).ok
    log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 256 kilobytes."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def _append_until_refused(log: EmbeddedDecisionLog, taken: list[str], *, together: int) -> None:
    for number in range(100_000):
        names = [f"{number}:{part}" for part in range(together)]
        log.append([_entry(name) for name in names])
        taken += names


def test_a_full_disk_is_raised_in_durable_mode_and_nothing_half_written_is_left(small_disk: Path) -> None:
    log = _log(small_disk, is_durable=True)
    written: list[str] = []
    with pytest.raises(BaseFullError):
        _append_until_refused(log, written, together=5)
    before = list(_names(log.records()))
    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    log.append([_entry("after")])

    assert written == before
    assert [*written, "after"] == _names(log.records())
    assert (True, 1, ()) == ((report := verify(log, heads=[log.head()])).ok, report.logs, report.faults)
    log.close()


def test_a_full_disk_keeps_buffered_entries_until_there_is_room(small_disk: Path) -> None:
    """They are kept and told of; at the bound they are refused; once there is room all that were taken are written, in order."""
    log = _log(small_disk, max_pending=4_000)
    taken: list[str] = []
    with pytest.raises(BaseFullError):
        _append_until_refused(log, taken, together=1)
    problem = log.problem
    with pytest.raises(BaseFullError):
        log.flush()
    with pytest.raises(BaseFullError):
        log.close()
    on_disk = _names(log.records())
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    log.append([_entry("after")])
    log.flush()

    assert problem is not None
    assert "no room left" in problem
    assert taken[: len(on_disk)] == on_disk
    assert 4_000 <= len(taken) - len(on_disk)
    assert [*taken, "after"] == _names(log.records())
    assert (None, True, 1) == (log.problem, verify(log).ok, len(log.parts()))
    log.close()


def test_a_quota_tears_no_line(tmp_path: Path) -> None:
    log = _log(tmp_path, is_durable=True)
    _append_each(log, ["a", "b"])
    (path,) = (tmp_path / "decisions").iterdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        with pytest.raises(BaseFullError):
            log.append([_entry("torn")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append([_entry("c")])

    assert ["a", "b", "c"] == _names(log.records())
    assert (True, ()) == ((report := verify(log)).ok, report.faults)
    log.close()


@pytest.mark.parametrize("mode", ["buffered", "durable"])
def test_a_directory_of_somebody_else_is_named(tmp_path: Path, mode: str) -> None:
    if os.getuid():
        pytest.skip("becoming another user needs root")
    run = _python(READ_ONLY, str(tmp_path), mode, str(NOBODY))

    assert (0, f"{BaseReadOnlyError.__name__} True\n") == (run.returncode, run.stdout), run.stderr[-2000:]
    assert (["one"] if mode == "buffered" else []) == _names(_log(tmp_path).records())


def test_two_processes_have_a_log_each_and_read_both(tmp_path: Path) -> None:
    first, second = _log(tmp_path, seed=1), _log(tmp_path, seed=2)
    for number in range(5):
        first.append([_entry(f"a{number}")])
        second.append([_entry(f"b{number}")])
    first.flush()
    second.flush()

    assert 2 == len(first.parts())
    assert {f"{log}{number}" for log in "ab" for number in range(5)} == set(_names(first.records()))
    assert _names(first.records()) == _names(second.records())
    assert (True, 2, 10) == ((report := verify(first)).ok, report.logs, report.records)
    first.close()
    second.close()


def test_a_log_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """Whatever is read is a beginning of what is written, with a chain that holds."""
    writer, reader = _log(tmp_path, flush_ms=1, max_bytes=50_000), _log(tmp_path, seed=2)
    names = [str(number) for number in range(3_000)]
    thread = threading.Thread(target=_append_each, args=(writer, names))
    thread.start()
    seen = []
    while thread.is_alive():
        seen.append(_names(reader.records()))
        assert verify(reader).ok
    writer.close()

    assert all(names[: len(each)] == each for each in seen)
    assert names == _names(reader.records())
    thread.join()


def test_a_child_process_begins_its_own_log_and_writes_nothing_twice(tmp_path: Path) -> None:
    run = _python(
        """
        import os, sys
        from pathlib import Path
        from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
        from evidentia.contracts.decisions import LogEntry
        from evidentia.contracts.runs import StepCall
        from evidentia.wiring.system import SystemClock, SystemEntropy
        def entry(name):
            return LogEntry(at_us=1, run_id="r", policies="d" * 64, call=StepCall(name=name))
        log = EmbeddedDecisionLog(Path(sys.argv[1]), clock=SystemClock(), entropy=SystemEntropy(), flush_ms=3_600_000)
        log.append([entry("before")])
        log.flush()
        log.append([entry("parent waits")])
        if not os.fork():
            log.append([entry("child")])
            log.close()
            os._exit(0)
        os.wait()
        log.append([entry("parent")])
        log.close()
        """,
        str(tmp_path),
    )
    log = _log(tmp_path)

    assert 0 == run.returncode, run.stderr[-2000:]
    assert ["before", "child", "parent", "parent waits"] == sorted(_names(log.records()))
    assert (True, 2) == ((report := verify(log)).ok, report.logs)


def test_a_large_log_goes_on_in_another_file_with_the_same_chain(tmp_path: Path) -> None:
    log = _log(tmp_path, max_bytes=3_000)
    names = [str(number) for number in range(2_000)]
    _append_each(log, names)
    log.flush()
    reader = _log(tmp_path, seed=2)

    assert len(log.parts()) > 3
    assert 1 == len({part.log for part in log.parts()})
    assert names == _names(reader.records())
    assert (True, (log.head(),)) == ((report := verify(reader, heads=[log.head()])).ok, report.heads)
    log.close()


def test_an_unfinished_last_line_is_left_out_and_told_of(tmp_path: Path) -> None:
    log = _log(tmp_path)
    _append_each(log, ["a", "b", "c"])
    log.close()
    (path,) = (tmp_path / "decisions").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    reader = _log(tmp_path, seed=2)
    reader.append([_entry("d")])
    report = verify(reader)

    assert ["a", "b", "d"] == sorted(_names(reader.records()))
    assert (True, [(path.stem, 3)]) == (report.ok, [(fault.log, fault.line) for fault in report.faults])
    assert "torn" in report.faults[0].problem
    reader.close()


def test_a_line_that_is_no_record_is_damage(tmp_path: Path) -> None:
    log = _log(tmp_path)
    _append_each(log, ["a", "b"])
    log.close()
    (path,) = (tmp_path / "decisions").iterdir()
    path.write_bytes(path.read_bytes() + b"x\n")

    with pytest.raises(BaseDamagedError, match="verify the log"):
        list(_log(tmp_path, seed=2).records())
    assert [(path.stem, 3)] == [(fault.log, fault.line) for fault in verify(_log(tmp_path, seed=2)).faults]


def test_foreign_files_in_the_folder_are_none_of_its_business(log: EmbeddedDecisionLog, tmp_path: Path) -> None:
    (tmp_path / "decisions").mkdir()
    for name in ("x.log", "x.000001.new", ".x.000001.log", "x.1.log", "notes.txt"):
        (tmp_path / "decisions" / name).write_text("x")
    log.append([_entry("a")])

    assert ["a"] == _names(log.records())
    assert verify(log).ok


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_closed_log_takes_nothing(tmp_path: Path, *, is_durable: bool) -> None:
    log = _log(tmp_path, is_durable=is_durable)
    log.append([_entry("a")])
    log.close()
    log.close()

    with pytest.raises(BaseStateError, match="closed"):
        log.append([_entry("b")])
    assert ["a"] == _names(log.records())


def test_a_log_that_another_process_writes_is_not_rewritten(tmp_path: Path) -> None:
    log = _log(tmp_path, is_durable=True)
    log.append([_entry("a")])
    busy = _python(REWRITE_ELSEWHERE, str(tmp_path))
    log.close()
    free = _python(REWRITE_ELSEWHERE, str(tmp_path))

    assert ("busy\n", "rewritten\n") == (busy.stdout, free.stdout), busy.stderr[-1000:] + free.stderr[-1000:]
    assert ["a"] == _names(_log(tmp_path, seed=2).records())


def test_a_part_that_is_rewritten_is_left_and_the_chain_goes_on(log: EmbeddedDecisionLog, tmp_path: Path) -> None:
    log.append([_entry("a")])
    log.flush()
    log.rewrite(log.parts()[0], lambda blocks: blocks)
    log.append([_entry("b")])

    assert ["a", "b"] == _names(log.records())
    assert (True, 1, 2) == ((report := verify(log)).ok, report.logs, len(log.parts()))
    with pytest.raises(NotFoundError):
        log.rewrite(LogPart("nobody", 1), lambda blocks: blocks)
    with pytest.raises(NotFoundError):
        list(log.blocks(LogPart("nobody", 1)))
    assert not list((tmp_path / "decisions").glob("*.new"))


def test_a_rewrite_that_fails_leaves_the_log_as_it_was(log: EmbeddedDecisionLog, tmp_path: Path) -> None:
    log.append([_entry("a")])
    log.flush()

    def fail(blocks: Iterator[bytes]) -> Iterator[bytes]:
        yield next(blocks)[:10]
        raise BaseBusyError("x", waited_ms=0)

    with pytest.raises(BaseBusyError):
        log.rewrite(log.parts()[0], fail)

    assert ["a"] == _names(log.records())
    assert verify(log).ok
    assert not list((tmp_path / "decisions").glob("*.new"))


def test_the_log_in_memory_has_the_same_bytes(tmp_path: Path) -> None:
    entries = [_entry(str(number)) for number in range(600)]
    entries += [_entry("", call=RetrievedDocument(source=str(number))) for number in range(600)]
    log = _log(tmp_path, seed=5)
    log.append(entries)
    log.flush()
    entropy = RepeatableEntropy(5)
    entropy.take(6)
    memory = MemoryLog(entropy=entropy, name=log.head().log)
    memory.append(entries)

    assert b"".join(log.blocks(log.parts()[0])) == b"".join(memory.blocks(memory.parts()[0]))
    assert log.head() == memory.head()
    assert list(log.records()) == list(memory.records())
    log.close()
