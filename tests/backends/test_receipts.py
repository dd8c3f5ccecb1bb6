"""Receipts on disk: durable before they are named, sealed line by line, one file per writer, never in the way of an answer."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia import connect
from evidentia.backends.embedded.logs.receipt_log import EmbeddedReceipts
from evidentia.contracts.errors import BaseDamagedError, BaseFullError, BaseStateError, NotFoundError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.ids import ChunkId, CorpusVersion, EvidenceState, ReceiptId, Sha256
from evidentia.contracts.receipts import EngineConfig, Receipt, RecordedInputs
from evidentia.contracts.settings import AccessSettings, QuerySettings, RankingSettings, SearchSettings, TextSettings
from evidentia.testing.determinism import START, RepeatableEntropy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY = 65534
READ_ELSEWHERE = """
    import sys
    from pathlib import Path
    from evidentia.backends.embedded.logs.receipt_log import EmbeddedReceipts
    from evidentia.testing.determinism import RepeatableEntropy
    log = EmbeddedReceipts(Path(sys.argv[1]), entropy=RepeatableEntropy(9))
    print(log.read(sys.argv[2]).request.query.text)
"""
ANSWER_ELSEWHERE = """
    import os, sys
    from evidentia import connect
    with connect(sys.argv[1]) as base:
        base.retrieve("keys", receipt=False)
        os.seteuid(int(sys.argv[2]))
        answer = base.retrieve("keys")
        print(answer.receipt_id, len(answer.fragments), "|".join(answer.degraded))
"""


def _receipt(text: str) -> Receipt:
    config = EngineConfig(
        engine="test/1",
        text=TextSettings(),
        search=SearchSettings(),
        access=AccessSettings(),
        query=QuerySettings(),
        ranking=RankingSettings(),
    )
    return Receipt(
        request=EvidenceRequest(query=DecomposedQuery(text=text), as_of=START, filter=None),
        principal_fingerprint=Sha256("0" * 64),
        corpus_version=CorpusVersion("1" * 64),
        evidence_state=EvidenceState("2" * 64),
        access_state=EvidenceState("2" * 64),
        config=config,
        config_hash=Sha256("3" * 64),
        decisions=(),
        fragments=(ChunkId("a:b#0@00"),),
        inputs=RecordedInputs(query_vectors=(bytes(range(256)),), rewritten=text, reranked=(3, -1)),
        result_hash=Sha256("4" * 64),
        answered_at=START,
    )


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedReceipts]:
    """Return an empty log of receipts."""
    made = EmbeddedReceipts(tmp_path, entropy=RepeatableEntropy(1))
    yield made
    made.close()


def _python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script), *arguments], capture_output=True, text=True, check=False)


def test_what_was_appended_is_read_back(log: EmbeddedReceipts) -> None:
    receipts = [_receipt(f'naïve ☃ "{number}"\n') for number in range(5)]
    names = [log.append(receipt) for receipt in receipts]

    assert receipts == [log.read(name) for name in names]
    assert 5 == len(set(names))


def test_the_name_of_a_receipt_says_nothing_about_the_others(log: EmbeddedReceipts, tmp_path: Path) -> None:
    names = [log.append(_receipt(str(number))) for number in range(3)]
    (file,) = (tmp_path / "receipts").iterdir()

    assert 3 == len({name.rpartition("-")[2] for name in names})
    assert all(re.fullmatch(rf"r-{file.stem}-[0-9a-f]{{32}}", name) for name in names)
    for number in range(5):
        with pytest.raises(NotFoundError):
            log.read(ReceiptId(f"r-{file.stem}-{number}"))


def test_a_receipt_of_an_older_release_is_read_by_its_number(log: EmbeddedReceipts, tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    previous, lines = "", b""
    for number in range(3):
        receipt = msgspec.json.encode(_receipt(str(number)), order="sorted")
        digest = hashlib.sha256(previous.encode() + receipt).hexdigest()
        lines += b'{"hash":"%b","previous":"%b","receipt":%b}\n' % (digest.encode(), previous.encode(), receipt)
        previous = digest
    (tmp_path / "receipts" / "0123456789ab.jsonl").write_bytes(lines)

    assert ["0", "1", "2"] == [log.read(ReceiptId(f"r-0123456789ab-{number}")).request.query.text for number in (1, 2, 3)]


def test_a_changed_mark_is_found(log: EmbeddedReceipts, tmp_path: Path) -> None:
    name = log.append(_receipt("marked"))
    (file,) = (tmp_path / "receipts").iterdir()
    other = "0" * 32
    file.write_bytes(file.read_bytes().replace(name.rpartition("-")[2].encode(), other.encode()))

    with pytest.raises(BaseDamagedError):
        log.read(ReceiptId(f"r-{file.stem}-{other}"))


def test_a_receipt_can_be_read_by_another_process_once_it_has_a_name(log: EmbeddedReceipts, tmp_path: Path) -> None:
    name = log.append(_receipt("durable"))
    run = _python(READ_ELSEWHERE, str(tmp_path), name)

    assert (0, "durable\n") == (run.returncode, run.stdout), run.stderr[-2000:]


def test_the_line_and_both_directories_are_synced_before_the_name_is_given(
    log: EmbeddedReceipts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is synced is looked up by its handle; the line must be in the file by then."""
    synced: list[tuple[str, int]] = []
    sync = os.fsync

    def watch(handle: int) -> None:
        synced.append((os.path.realpath(f"/proc/self/fd/{handle}"), os.fstat(handle).st_size))
        sync(handle)

    monkeypatch.setattr(os, "fsync", watch)
    log.append(_receipt("first"))
    (path,) = (tmp_path / "receipts").iterdir()

    assert {str(tmp_path), str(tmp_path / "receipts")} <= {name for name, _ in synced}
    assert (str(path), path.stat().st_size) == synced[-1]


def test_many_threads_append_to_one_chain(log: EmbeddedReceipts) -> None:
    with ThreadPoolExecutor(8) as pool:
        named = list(pool.map(lambda number: (number, log.append(_receipt(str(number)))), range(60)))

    assert [str(number) for number, _ in named] == [log.read(name).request.query.text for _, name in named]


def test_those_who_wait_for_the_disk_are_synced_at_once(log: EmbeddedReceipts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is held in its sync until all others have written their lines; one more sync then serves them all."""
    first = log.append(_receipt("0"))
    is_held, may_go = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        if len(syncs) == 1:
            is_held.set()
            assert may_go.wait(10)

    monkeypatch.setattr("evidentia.foundation.disk.os.fsync", sync)
    with ThreadPoolExecutor(8) as pool:
        held = pool.submit(log.append, _receipt("1"))
        assert is_held.wait(10)
        waiting = [pool.submit(log.append, _receipt(str(number))) for number in range(2, 8)]
        while log._log is not None and log._log.lines < 8:
            time.sleep(0.001)
        may_go.set()
        names = [first, held.result(), *(each.result() for each in waiting)]

    assert 2 == len(syncs)
    assert {str(number) for number in range(8)} == {log.read(name).request.query.text for name in names}


def test_a_sync_that_fails_fails_for_all_who_waited_for_it(log: EmbeddedReceipts, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = log.append(_receipt("kept"))
    is_held, may_go = threading.Event(), threading.Event()

    def fail(_: int) -> None:
        is_held.set()
        assert may_go.wait(10)
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr("evidentia.foundation.disk.os.fsync", fail)
        lost = [pool.submit(log.append, _receipt("lost"))]
        assert is_held.wait(10)
        lost.append(pool.submit(log.append, _receipt("lost too")))
        while log._log is not None and log._log.lines < 3:
            time.sleep(0.001)
        may_go.set()
        errors = [each.exception() for each in lost]

    assert all(isinstance(error, (OSError, BaseStateError)) for error in errors), errors
    assert "kept" == log.read(kept).request.query.text
    assert "next" == log.read(log.append(_receipt("next"))).request.query.text


@pytest.mark.parametrize(
    "name", ["", "r-", "r-000000000000-1", "r-{log}-4", "r-{log}-0", "r-{log}-99999999999", "../x", "r-{log}-1x", "R-{log}-1"]
)
def test_an_unknown_receipt_is_not_found(log: EmbeddedReceipts, name: str) -> None:
    known = [log.append(_receipt(str(number))) for number in range(3)]
    wanted = ReceiptId(name.format(log=known[0].split("-")[1]))

    with pytest.raises(NotFoundError, match="no receipt"):
        log.read(wanted)


def _tamper(path: Path, number: int, **changes: object) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[number] |= changes
    path.write_text("".join(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("change", ["text", "previous", "hash", "gone", "swapped", "garbage"])
def test_a_changed_log_is_found_out(log: EmbeddedReceipts, tmp_path: Path, number: int, change: str) -> None:
    names = [log.append(_receipt(str(each))) for each in range(4)]
    (path,) = (tmp_path / "receipts").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "gone":
        path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    elif change == "swapped":
        lines[number], lines[number + 1] = lines[number + 1], lines[number]
        path.write_bytes(b"".join(lines))
    elif change == "garbage":
        path.write_bytes(b"".join([*lines[:number], b"{}\n", *lines[number + 1 :]]))
    elif change == "text":
        path.write_bytes(path.read_bytes().replace(f'"text":"{number}"'.encode(), b'"text":"9"'))
    else:
        _tamper(path, number, **{change: "0" * 64})

    with pytest.raises(BaseDamagedError, match=f"receipt {number + 1} of '{path.name}'"):
        log.read(names[number])
    with pytest.raises(BaseDamagedError):
        log.read(names[2 if number < 2 else 3])
    assert [str(each) for each in range(number)] == [log.read(name).request.query.text for name in names[:number]]


def test_a_flipped_byte_of_a_line_is_found_out(log: EmbeddedReceipts, tmp_path: Path) -> None:
    name = log.append(_receipt("flip"))
    (path,) = (tmp_path / "receipts").iterdir()
    original, receipt = path.read_bytes(), log.read(name)
    missed = []
    for position in range(0, len(original) - 1, 7):
        path.write_bytes(original[:position] + bytes([original[position] ^ 1]) + original[position + 1 :])
        try:
            if log.read(name) != receipt:
                missed.append(position)
        except BaseDamagedError:
            continue

    assert [] == missed


def test_two_writers_have_a_log_each(tmp_path: Path) -> None:
    """Each opens its own file, so neither can tear the other's lines; either reads both."""
    first, second = EmbeddedReceipts(tmp_path, entropy=RepeatableEntropy(1)), EmbeddedReceipts(tmp_path, entropy=RepeatableEntropy(2))
    names = [log.append(_receipt(str(number))) for number, log in enumerate([first, second] * 5)]

    assert 2 == len(list((tmp_path / "receipts").iterdir()))
    assert [str(number) for number in range(10)] == [first.read(name).request.query.text for name in names]
    assert [str(number) for number in range(10)] == [second.read(name).request.query.text for name in names]
    first.close()
    second.close()


def test_two_processes_answer_one_base_with_a_log_each(tmp_path: Path) -> None:
    path = _base(tmp_path)
    runs = [_python(ANSWER_ELSEWHERE, str(path), "0") for _ in range(2)]
    names = [run.stdout.split()[0] for run in runs]

    assert 2 == len(list((path / "receipts").iterdir()))
    with connect(path) as base:
        assert all(base.replay(name).is_same for name in names)


def test_after_a_failed_write_the_next_receipt_begins_a_file_that_holds(log: EmbeddedReceipts, tmp_path: Path) -> None:
    """A full disk tears a line; what was named before and after it stays readable, and no name is given twice."""
    before = [log.append(_receipt(f"before-{number}")) for number in range(3)]
    (path,) = (tmp_path / "receipts").iterdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        with pytest.raises(BaseFullError):
            log.append(_receipt("torn"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = [log.append(_receipt(f"after-{number}")) for number in range(3)]

    assert [f"before-{number}" for number in range(3)] == [log.read(name).request.query.text for name in before]
    assert [f"after-{number}" for number in range(3)] == [log.read(name).request.query.text for name in after]
    assert 6 == len({*before, *after})


def _base(folder: Path) -> Path:
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text("# Keys\n\nKeys are rotated.\n")
    with connect(folder / "base", init=True) as base:
        base.ingest([folder / "docs"])
    return folder / "base"


def test_a_receipt_that_cannot_be_written_is_missed_not_the_answer(tmp_path: Path) -> None:
    """The directory belongs to someone else; the answer comes, and says what it lacks."""
    if os.getuid():
        pytest.skip("becoming another user needs root")
    path = _base(tmp_path)
    run = _python(ANSWER_ELSEWHERE, str(path), str(NOBODY))
    assert 0 == run.returncode, run.stderr[-2000:]
    name, fragments, degraded = run.stdout.rstrip("\n").split(" ", 2)

    assert ("None", "1") == (name, fragments)
    assert f"receipt: '{path}' cannot be written; the last committed version is intact" in degraded.split("|")


def test_a_full_disk_costs_the_receipt_not_the_answer(tmp_path: Path) -> None:
    path = _base(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with connect(path) as base:
        base.retrieve("keys", receipt=False)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            answer = base.retrieve("keys")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        later = base.retrieve("keys")

        assert (None, 1) == (answer.receipt_id, len(answer.fragments))
        assert answer.degraded[-1].startswith("receipt: no room left to write")
        assert base.verify(answer).ok
        assert later.receipt_id is not None
        assert base.replay(later.receipt_id).is_same


def test_a_request_that_asks_for_none_leaves_none(tmp_path: Path) -> None:
    path = _base(tmp_path)
    with connect(path) as base:
        answer = base.retrieve("keys", receipt=False)

    assert answer.receipt_id is None
    assert not (path / "receipts").exists()


def test_a_log_that_was_copied_away_and_back_still_holds(log: EmbeddedReceipts, tmp_path: Path) -> None:
    name = log.append(_receipt("kept"))
    shutil.copytree(tmp_path / "receipts", tmp_path / "elsewhere" / "receipts")
    copied = EmbeddedReceipts(tmp_path / "elsewhere", entropy=RepeatableEntropy(3))

    assert log.read(name) == copied.read(name)
    assert msgspec.json.encode(log.read(name)) == msgspec.json.encode(copied.read(name))
