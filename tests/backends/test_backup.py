"""A copy of a base that others use meanwhile is whole, restores to a base that verifies, and no changed byte of it gets through."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia import Base, Principal, connect
from evidentia.backends.embedded.backup.backup_format import END, encode_manifest, filling, header_of
from evidentia.backends.embedded.backup.hot_backup import BaseFiles, EmbeddedBackup
from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.backends.embedded.records.archive import EmbeddedArchive
from evidentia.base.maintenance import restore
from evidentia.contracts.backups import BackupFile, BackupManifest
from evidentia.contracts.errors import (
    BackupDamagedError,
    BackupRefusedError,
    BaseBusyError,
    BaseDamagedError,
    BaseFullError,
    BaseStateError,
    EvidentiaError,
    NotAllowedError,
    VersionCollectedError,
)
from evidentia.contracts.ids import PrincipalId, Sha256
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId
from evidentia.contracts.settings import Settings
from evidentia.governance.log_maintenance import redact, verify
from evidentia.testing.determinism import START, SteppingClock
from evidentia.wiring import embedded
from evidentia.wiring.system import SystemClock, SystemEntropy
from soak import IS_SOAKED, cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.backups import BackupProgress

RIG = Path(__file__).with_name("backup_rig.py")
FILES = BaseFiles(settings=("evidentia.toml",), synonyms="synonyms", databases=("governance.db", "notes.db"), rebuilt=("runtime.db",))


def write_pages(folder: Path, *, edition: int, count: int = 4) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nKeys of edition {edition} expire after {number} days.\n")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base with something of everything; tests that change one take `base`."""
    work = tmp_path_factory.mktemp("made")
    with connect(work / "base", init=True) as base:
        base.ingest([write_pages(work / "corpus", edition=1)], source="rig")
        base.retrieve("keys", mode="lexical")
        base.ingest([write_pages(work / "corpus", edition=2)], source="rig")
        base.retrieve("keys of page 3")
        base.remember("a note")
        base.add_policy(PolicyBody(name="guard", category="retrieval", rules={"max_source_age_days": 30}))
        run = base.governor(durable=True).start(RunFacts(run_id=RunId("run-1"), agent_name="rig"))
        run.record(RetrievedDocument(source="0.md", relevance_score=0.9, age_days=3))
    return work / "base"


@pytest.fixture
def base(made: Path, tmp_path: Path) -> Iterator[Base]:
    """Return a copy of it, open."""
    shutil.copytree(made, tmp_path / "base")
    with connect(tmp_path / "base") as opened:
        yield opened


@pytest.fixture(scope="module")
def taken(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a backup in either form."""
    work = tmp_path_factory.mktemp("taken")
    with connect(made) as opened:
        opened.backup(work / "folder")
        opened.backup(work / "file.tar")
    return work


def receipts_in(directory: Path) -> list[str]:
    logs = sorted((directory / "receipts").glob("*.jsonl"))
    return [f"r-{log.stem}-{json.loads(line)['mark']}" for log in logs for line in log.read_bytes().splitlines()]


def commits_of(directory: Path) -> dict[int, tuple[str, str]]:
    with closing(EmbeddedArchive(directory)) as archive:
        return {record.sequence: (record.corpus_version, record.evidence_state) for record, _ in archive.commits()}


def decisions_of(directory: Path) -> int:
    with closing(EmbeddedDecisionLog(directory, clock=SystemClock(), entropy=SystemEntropy())) as log:
        report = verify(log)
    assert report.ok, report.faults
    return report.records


def check_whole(restored: Path, *, live: Path) -> tuple[int, int]:
    """Check a restored base against the one it came from; return how many receipts were replayed and how many were too old."""
    with connect(restored) as base:
        report = base.verify()
        assert report.ok, report.first_broken
        head = base.head()
        assert (head.corpus_version, head.evidence_state) == commits_of(live)[head.sequence]
        replayed = too_old = 0
        for receipt in receipts_in(restored):
            try:
                assert base.replay(receipt).is_same
                replayed += 1
            except VersionCollectedError:
                too_old += 1
    return replayed, too_old


# --- what is in it ---


@pytest.mark.parametrize("name", ["folder", "file.tar"])
def test_a_restored_base_is_the_one_that_was_copied(made: Path, taken: Path, tmp_path: Path, name: str) -> None:
    report = restore(taken / name, tmp_path / "restored")
    question: dict[str, Any] = {"query": "keys", "receipt": False, "as_of": START}

    assert decisions_of(tmp_path / "restored") > 0
    with connect(made) as old, connect(tmp_path / "restored") as new:
        assert report.evidence_state == old.head().evidence_state
        assert old.head() == new.head()
        assert old.documents() == new.documents()
        assert old.notes() == new.notes()
        assert old.policies() == new.policies()
        assert old.retrieve(**question).result_hash == new.retrieve(**question).result_hash
    assert (2, 0) == check_whole(tmp_path / "restored", live=made)
    assert 0o600 == (tmp_path / "restored" / "governance.db").stat().st_mode & 0o777


def test_both_forms_hold_the_same_bytes_and_any_tar_can_unpack_them(taken: Path, tmp_path: Path) -> None:
    with tarfile.open(taken / "file.tar") as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has no filters, and no argument for one
        tar.extractall(tmp_path / "unpacked")  # noqa: S202  # filtered where Python can, and of our own making
        names = tar.getnames()
    folder = {each.relative_to(taken / "folder").as_posix() for each in (taken / "folder").rglob("*") if each.is_file()}

    assert folder == set(names)
    assert "manifest.json" == names[-1]
    assert [
        each.name for each in msgspec.json.decode((taken / "folder" / "manifest.json").read_bytes(), type=BackupManifest).files
    ] == names[:-1]
    assert restore(tmp_path / "unpacked", tmp_path / "restored").files == len(names) - 1


def test_a_backup_says_what_is_not_in_it(base: Base, tmp_path: Path) -> None:
    (base.path / "thoughts.txt").write_text("mine")
    (base.path / "words.txt").write_text("key, token\n")
    (base.path / "evidentia.toml").write_text('[query]\nsynonyms = "words.txt"\n[ranking]\nreranker = "../elsewhere"\n')
    with pytest.raises(EvidentiaError), connect(base.path) as other:
        other.retrieve("keys")  # the reranker is not there, which is no reason to have no backup
    with connect(base.path) as other:
        report = other.backup(tmp_path / "copy")

    assert (tmp_path / "copy" / "words.txt").is_file()
    assert {"../elsewhere", "thoughts.txt"} <= {each.name for each in report.left_out}
    assert not (tmp_path / "copy" / "thoughts.txt").exists()


def test_synonyms_that_answers_were_made_with_come_along(base: Base, tmp_path: Path) -> None:
    (base.path / "words.txt").write_text("key, token\n")
    (base.path / "evidentia.toml").write_text('[query]\nsynonyms = "words.txt"\n')
    with connect(base.path) as other:
        other.retrieve("token", mode="lexical")
        other.backup(tmp_path / "copy.tar")
    restore(tmp_path / "copy.tar", tmp_path / "restored")
    (base.path / "words.txt").unlink()

    assert (3, 0) == check_whole(tmp_path / "restored", live=base.path)


def test_a_base_of_which_nothing_was_asked_yet_can_be_copied(tmp_path: Path) -> None:
    with connect(tmp_path / "empty", init=True) as opened:
        report = opened.backup(tmp_path / "copy.tar")
    restore(tmp_path / "copy.tar", tmp_path / "restored")

    assert (0, 0, 0) == (report.sequence, report.receipts, report.decisions)
    assert (0, 0) == check_whole(tmp_path / "restored", live=tmp_path / "empty")


def test_secrets_stay_sealed(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_SECRET_KEY", "a key that is long enough to be one")
    from evidentia.wiring.governance_runtime import GovernanceRuntime

    with GovernanceRuntime(base.path) as control:
        control.secrets.put("OPENAI_API_KEY", "the-plain-value", tenant="default", by="ann")
    base.backup(tmp_path / "copy.tar")

    assert b"the-plain-value" not in (tmp_path / "copy.tar").read_bytes()


# --- where it goes ---


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_what_exists_is_refused_and_left_alone(base: Base, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(BackupRefusedError, match="exists already"):
        base.backup(tmp_path / name)

    assert "precious" == (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("name", "problem"), [("base/copy", "inside the base"), ("copy.tar.gz", "ends in '.gz'"), ("nowhere/copy", "make it first")]
)
def test_a_place_that_cannot_hold_one_is_refused(base: Base, tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(BackupRefusedError, match=problem):
        base.backup(tmp_path / name)


def test_only_the_owner_takes_backups(made: Path, tmp_path: Path) -> None:
    with connect(made, principal=Principal(principal_id=PrincipalId("ann"))) as opened, pytest.raises(NotAllowedError):
        opened.backup(tmp_path / "copy")


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_a_place_that_somebody_took_meanwhile_is_left_to_them(base: Base, tmp_path: Path, name: str) -> None:
    def take_it(_: BackupProgress) -> None:
        (tmp_path / name).write_text("precious")

    with pytest.raises(BackupRefusedError, match="exists already"):
        base.backup(tmp_path / name, on_progress=take_it)

    assert "precious" == (tmp_path / name).read_text()
    assert not (tmp_path / f"{name}.partial").exists()


@pytest.mark.parametrize("content", ["mine.txt", "files/mine.txt"])
def test_a_folder_that_no_backup_made_is_never_cleared_away(base: Base, tmp_path: Path, content: str) -> None:
    mine = tmp_path / "copy.partial" / content
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    with pytest.raises(BackupRefusedError, match="in the way"):
        base.backup(tmp_path / "copy")

    assert "precious" == mine.read_text()


def test_two_backups_to_one_place_do_not_mix(base: Base, tmp_path: Path) -> None:
    def also(progress: BackupProgress) -> None:
        if progress.current == "evidentia.sqlite":
            with pytest.raises(BaseBusyError), connect(base.path) as other:
                other.backup(tmp_path / "copy")

    base.backup(tmp_path / "copy", on_progress=also)

    assert restore(tmp_path / "copy", tmp_path / "restored").files > 0


def test_a_backup_that_is_given_up_leaves_nothing(base: Base, tmp_path: Path) -> None:
    backup = EmbeddedBackup(base.path, files=FILES, settings=Settings(), clock=SteppingClock())
    with pytest.raises(BaseStateError, match="given up"):
        backup.take(tmp_path / "copy", is_stopped=lambda: True)

    assert [] == sorted(each.name for each in tmp_path.iterdir() if each.name.startswith("copy"))


# --- while others work ---


def when(name: str, act: Callable[[], object]) -> Callable[[BackupProgress], None]:
    """Return what does something once, when a file of that name is being copied."""
    done: list[bool] = []

    def watch(progress: BackupProgress) -> None:
        if name in progress.current and not done:
            done.append(True)
            act()

    return watch


def test_files_that_a_collection_removes_meanwhile_are_still_copied(base: Base, tmp_path: Path) -> None:
    named = sorted(path.name for path in (base.path / "segments").iterdir())

    def collect() -> None:
        with connect(base.path) as other:
            other.gc(keep_versions=1)

    base.backup(tmp_path / "copy", on_progress=when("segments/", collect))
    restore(tmp_path / "copy", tmp_path / "restored")

    assert named == sorted(path.name for path in (tmp_path / "copy" / "segments").iterdir())
    assert not set(named) <= {path.name for path in (base.path / "segments").iterdir()}
    assert (2, 0) == check_whole(tmp_path / "restored", live=base.path)


def test_a_commit_between_two_pages_is_not_in_the_copy(base: Base, tmp_path: Path) -> None:
    before = base.head()
    parts = embedded.open_parts(base.path)
    writer = parts.writer()

    def commit() -> None:
        from evidentia.contracts.documents import ChangeSet
        from evidentia.contracts.ids import DocumentId

        writer.commit(ChangeSet(removals=(DocumentId("rig:0.md"),)))

    backup = EmbeddedBackup(base.path, files=FILES, settings=Settings(), clock=SteppingClock(), pages_at_once=1)
    report = backup.take(tmp_path / "copy", watch=when("evidentia.sqlite", commit))
    writer.close()
    parts.close()
    restore(tmp_path / "copy", tmp_path / "restored")

    assert before.evidence_state == report.evidence_state != base.head().evidence_state
    assert (2, 0) == check_whole(tmp_path / "restored", live=base.path)


def test_receipts_of_answers_that_came_too_late_are_not_in_the_copy(base: Base, tmp_path: Path) -> None:
    def answer() -> None:
        with connect(base.path) as other:
            other.remove(["rig:0.md"])
            other.retrieve("keys", mode="lexical")

    report = base.backup(tmp_path / "copy", on_progress=when("segments/", answer))
    restore(tmp_path / "copy", tmp_path / "restored")

    assert 3 == len(receipts_in(base.path))
    assert 2 == report.receipts
    assert (2, 0) == check_whole(tmp_path / "restored", live=base.path)


def test_a_line_that_is_still_being_written_is_left_to_its_writer(base: Base, tmp_path: Path) -> None:
    for path in (*(base.path / "receipts").iterdir(), *(base.path / "decisions").iterdir()):
        with path.open("ab") as file:
            file.write(b'{"hash":"half of')
    report = base.backup(tmp_path / "copy.tar")
    restore(tmp_path / "copy.tar", tmp_path / "restored")

    assert 2 == report.receipts
    assert report.decisions == decisions_of(tmp_path / "restored")
    assert (2, 0) == check_whole(tmp_path / "restored", live=base.path)


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_decisions_that_are_redacted_meanwhile_come_with_the_word_that_they_were(base: Base, tmp_path: Path, name: str) -> None:
    def take_out() -> None:
        with closing(EmbeddedDecisionLog(base.path, clock=SystemClock(), entropy=SystemEntropy(), is_durable=True)) as log:
            assert redact(log, run_id=RunId("run-1"), by="dpo", why="asked for", clock=SystemClock()).records > 0

    base.backup(tmp_path / name, on_progress=when("decisions/", take_out))
    restore(tmp_path / name, tmp_path / "restored")

    assert decisions_of(base.path) == decisions_of(tmp_path / "restored")


def test_decisions_that_wait_in_this_process_are_written_first(base: Base, tmp_path: Path) -> None:
    before = decisions_of(base.path)
    run = base.governor().start(RunFacts(run_id=RunId("run-2"), agent_name="rig"))
    run.record(RetrievedDocument(source="0.md", relevance_score=0.9))
    report = base.backup(tmp_path / "copy")

    assert report.decisions > before


@pytest.mark.parametrize("folder", ["receipts", "decisions", "segments", "vectors"])
def test_a_base_that_is_damaged_is_not_copied(base: Base, tmp_path: Path, folder: str) -> None:
    path = next(iter((base.path / folder).iterdir()))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BaseDamagedError, match=path.stem):
        base.backup(tmp_path / "copy")

    assert not (tmp_path / "copy").exists()


def test_a_segment_that_is_missing_is_named(base: Base, tmp_path: Path) -> None:
    path = next(iter((base.path / "segments").iterdir()))
    path.unlink()
    with pytest.raises(BaseDamagedError, match=path.name):
        base.backup(tmp_path / "copy")


# --- real processes ---


@contextmanager
def at_work(directory: Path, *roles: str) -> Iterator[None]:
    """Let processes work on a base until the end; each has to have come round at least once."""
    stop = directory.with_name("stop")
    stop.unlink(missing_ok=True)
    processes = [
        subprocess.Popen([sys.executable, str(RIG), role, str(directory), str(stop)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for role in roles
    ]
    try:
        waited = time.monotonic() + 120
        while not all(directory.with_name(f"{role}.rounds").exists() for role in roles):
            assert time.monotonic() < waited, "a process does not get to work"
            assert [] == [process.communicate() for process in processes if process.poll() is not None]
            time.sleep(0.02)
        yield
    finally:
        stop.touch()
        ended = [process.communicate(timeout=120) for process in processes]
    assert [(0, b"")] * len(processes) == [(process.returncode, err) for process, (_, err) in zip(processes, ended, strict=True)]


def test_a_backup_is_whole_while_others_ingest_retrieve_decide_and_collect(base: Base, tmp_path: Path) -> None:
    with at_work(base.path, "ingest", "retrieve", "decide", "gc"):
        for number in range(4):
            base.backup(tmp_path / (f"copy-{number}.tar" if number % 2 else f"copy-{number}"))
    for number in range(4):
        restore(tmp_path / (f"copy-{number}.tar" if number % 2 else f"copy-{number}"), tmp_path / f"restored-{number}")
        replayed, too_old = check_whole(tmp_path / f"restored-{number}", live=base.path)

        assert replayed > 0
        assert 0 == too_old
        assert decisions_of(tmp_path / f"restored-{number}") > 0


@pytest.mark.slow
def test_many_backups_are_whole_while_versions_go_too(base: Base, tmp_path: Path) -> None:
    states: set[str] = set()
    with at_work(base.path, "ingest", "retrieve", "decide", "gc-hard"):
        for number in range(cases(6, of=30)):
            copy = tmp_path / (f"copy-{number}.tar" if number % 2 else f"copy-{number}")
            states.add(base.backup(copy).evidence_state)
    for copy in sorted(tmp_path.glob("copy-*")):
        restore(copy, tmp_path / f"restored-{copy.name}")
        check_whole(tmp_path / f"restored-{copy.name}", live=base.path)
        decisions_of(tmp_path / f"restored-{copy.name}")
        shutil.rmtree(tmp_path / f"restored-{copy.name}")

    assert len(states) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["killed", "killed.tar"])
def test_a_backup_that_is_killed_leaves_nothing_that_restores_to_half_a_base(base: Base, tmp_path: Path, name: str) -> None:
    """The process kills itself when it has come so far; how far there is to go shows when it no longer dies."""
    refusals = 0
    for calls in range(1, 100, 2 if IS_SOAKED else 3):
        child = subprocess.run([sys.executable, str(RIG), "killed", str(base.path), name, str(calls)], check=False, capture_output=True)
        left = tmp_path / f"{name}.partial" / ("files.tar" if name.endswith(".tar") else "files")
        if child.returncode == 0:
            break
        assert -signal.SIGKILL == child.returncode, child.stderr
        assert not (tmp_path / name).exists()
        refusals += not is_restored(left, tmp_path / "half", live=base.path)
    restore(tmp_path / name, tmp_path / "restored")

    assert refusals > 3
    assert not left.parent.exists()
    assert (2, 0) == check_whole(tmp_path / "restored", live=base.path)


@pytest.mark.slow
def test_a_backup_that_is_killed_at_any_moment_is_there_whole_or_not_at_all(base: Base, tmp_path: Path) -> None:
    for number in range(8) if IS_SOAKED else (0, 3, 4, 7):
        copy = tmp_path / (f"copy-{number}.tar" if number % 2 else f"copy-{number}")
        child = subprocess.Popen([sys.executable, str(RIG), "killed", str(base.path), copy.name, "0"], stdout=subprocess.PIPE)
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.008 * number)
            child.kill()
        if not copy.exists():
            base.backup(copy)
        restore(copy, tmp_path / f"restored-{number}")

        assert (2, 0) == check_whole(tmp_path / f"restored-{number}", live=base.path)


def is_restored(left: Path, directory: Path, *, live: Path) -> bool:
    """Tell whether what a killed backup left was all there but for its name; then it makes a whole base, and otherwise none."""
    try:
        restore(left, directory)
    except (BackupRefusedError, BackupDamagedError):
        assert not directory.exists()
        return False
    check_whole(directory, live=live)
    shutil.rmtree(directory)
    return True


# --- what is refused ---


def refused(backup: Path, directory: Path) -> None:
    with pytest.raises((BackupDamagedError, BackupRefusedError)):
        restore(backup, directory)
    assert not directory.exists()


@settings(max_examples=cases(100, of=300))
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_tar_gets_through(taken: Path, tmp_path_factory: pytest.TempPathFactory, place: float, bit: int) -> None:
    content = bytearray((taken / "file.tar").read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    work = tmp_path_factory.mktemp("flipped")
    (work / "file.tar").write_bytes(content)

    refused(work / "file.tar", work / "restored")
    shutil.rmtree(work)


def test_no_flipped_byte_of_any_header_filling_or_manifest_gets_through(taken: Path, tmp_path: Path) -> None:
    content = (taken / "file.tar").read_bytes()
    manifest = content.rindex(b'{"base_id"')
    with tarfile.open(taken / "file.tar") as tar:
        starts = [member.offset for member in tar.getmembers()]
    places = [start + each for start in starts for each in range(0, 512, 31)] + list(range(manifest, len(content), 11))
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1
        (tmp_path / "file.tar").write_bytes(flipped)

        refused(tmp_path / "file.tar", tmp_path / "restored")


@pytest.mark.parametrize("kept", [0, 1, 511, 512, 5_000, -1, -512, -1_024, -1_500])
def test_a_tar_that_is_cut_short_or_goes_on_is_refused(taken: Path, tmp_path: Path, kept: int) -> None:
    content = (taken / "file.tar").read_bytes()
    (tmp_path / "short.tar").write_bytes(content[:kept])
    (tmp_path / "long.tar").write_bytes(content + bytes(512))

    refused(tmp_path / "short.tar", tmp_path / "restored")
    refused(tmp_path / "long.tar", tmp_path / "restored")


def test_no_changed_file_of_a_folder_gets_through(taken: Path, tmp_path: Path) -> None:
    shutil.copytree(taken / "folder", tmp_path / "copy")
    for path in sorted(each for each in (tmp_path / "copy").rglob("*") if each.is_file()):
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            flipped = bytearray(content)
            flipped[place] ^= 0x20
            path.write_bytes(flipped)
            refused(tmp_path / "copy", tmp_path / "restored")
        for other in (content[:-1], content + b"\n"):
            path.write_bytes(other)
            refused(tmp_path / "copy", tmp_path / "restored")
        path.unlink()
        refused(tmp_path / "copy", tmp_path / "restored")
        path.symlink_to(taken / "folder" / path.relative_to(tmp_path / "copy"))
        refused(tmp_path / "copy", tmp_path / "restored")
        path.unlink()
        path.write_bytes(content)
    (tmp_path / "copy" / "more.txt").write_text("more")
    refused(tmp_path / "copy", tmp_path / "restored")
    (tmp_path / "copy" / "more.txt").unlink()

    assert restore(tmp_path / "copy", tmp_path / "restored").files > 0


def test_a_file_of_more_than_eight_gibibytes_has_a_header_too() -> None:
    header = header_of("evidentia.sqlite", 9 << 30)

    assert 512 == len(header)
    assert 9 << 30 == tarfile.TarInfo.frombuf(header, "utf-8", "strict").size


@pytest.mark.parametrize("current", ["evidentia.sqlite", "segments/"])
def test_a_restore_that_fails_halfway_leaves_nothing(taken: Path, tmp_path: Path, current: str) -> None:
    def fail(progress: BackupProgress) -> None:
        is_copied = progress.done_bytes > progress.total_bytes // 2  # the first half is checking
        if is_copied and current in progress.current:
            raise OSError(errno.ENOSPC, "no room", "somewhere")

    with pytest.raises(BaseFullError):
        restore(taken / "folder", tmp_path / "restored", on_progress=fail)

    assert [] == list(tmp_path.iterdir())


def manifest_of(taken: Path) -> BackupManifest:
    return msgspec.json.decode((taken / "folder" / "manifest.json").read_bytes(), type=BackupManifest)


def hostile_tar(path: Path, taken: Path, name: str, content: bytes) -> None:
    """Write a tar in the strict form, under a manifest with a good seal, that holds one more file."""
    sha256 = hashlib.sha256(content).hexdigest()
    manifest = manifest_of(taken)
    files = [(each.name, (taken / "folder" / each.name).read_bytes()) for each in manifest.files] + [(name, content)]
    added = BackupFile(name=name, size=len(content), sha256=Sha256(sha256))
    sealed = encode_manifest(msgspec.structs.replace(manifest, files=(*manifest.files, added)))
    with path.open("wb") as file:
        for each, body in [*files, ("manifest.json", sealed)]:
            file.write(header_of(each, len(body)) + body + filling(len(body)))
        file.write(END)


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/outside",
        "segments/../../outside",
        "segments//x",
        "./x",
        "C:evil",
        "a\\b",
        "evidentia.sqlite-wal",
        "writer.lock",
        "segments",
        "Evidentia.sqlite",
        "notes.db/x",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(taken: Path, tmp_path: Path, name: str) -> None:
    hostile_tar(tmp_path / "hostile.tar", taken, name, b"hostile")

    with pytest.raises(BackupDamagedError):
        restore(tmp_path / "hostile.tar", tmp_path / "deep" / "restored")
    assert {"hostile.tar"} == {each.name for each in tmp_path.iterdir()}


def test_one_more_harmless_file_under_a_good_seal_is_restored(taken: Path, tmp_path: Path) -> None:
    hostile_tar(tmp_path / "harmless.tar", taken, "models/words.txt", b"harmless")
    restore(tmp_path / "harmless.tar", tmp_path / "restored")

    assert b"harmless" == (tmp_path / "restored" / "models" / "words.txt").read_bytes()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_link_or_device_in_a_tar_is_refused(taken: Path, tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "hostile.tar", "w") as tar:
        member = tarfile.TarInfo("segments/x")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
        body = (taken / "folder" / "manifest.json").read_bytes()
        last = tarfile.TarInfo("manifest.json")
        last.size = len(body)
        tar.addfile(last, io.BytesIO(body))

    with pytest.raises(BackupDamagedError, match="no file"):
        restore(tmp_path / "hostile.tar", tmp_path / "restored")


def test_a_format_from_the_future_is_refused(taken: Path, tmp_path: Path) -> None:
    shutil.copytree(taken / "folder", tmp_path / "copy")
    newer = encode_manifest(msgspec.structs.replace(manifest_of(taken), format="evidentia-backup/2"))
    (tmp_path / "copy" / "manifest.json").write_bytes(newer)

    with pytest.raises(BackupRefusedError, match="evidentia-backup/2"):
        restore(tmp_path / "copy", tmp_path / "restored")


def test_a_manifest_that_speaks_of_another_version_is_refused_and_nothing_is_left(taken: Path, tmp_path: Path) -> None:
    shutil.copytree(taken / "folder", tmp_path / "copy")
    other = encode_manifest(msgspec.structs.replace(manifest_of(taken), sequence=99))
    (tmp_path / "copy" / "manifest.json").write_bytes(other)

    refused(tmp_path / "copy", tmp_path / "restored")


def test_a_directory_that_is_not_empty_is_refused_and_an_empty_one_is_filled(taken: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("precious")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BackupRefusedError, match="not empty"):
        restore(taken / "folder", tmp_path / "full")

    assert ["x"] == [each.name for each in (tmp_path / "full").iterdir()]
    assert restore(taken / "folder", tmp_path / "empty").files > 0


def test_the_manifest_is_readable_and_names_the_version(taken: Path, made: Path) -> None:
    stored = json.loads((taken / "folder" / "manifest.json").read_text())

    with connect(made) as opened:
        head = opened.head()
    assert (head.corpus_version, head.evidence_state) == (stored["corpus_version"], stored["evidence_state"])
