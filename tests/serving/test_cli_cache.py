"""The cache from a terminal: asking ahead of time, once or at intervals, counting and dropping."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import WarmReport
from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.cache_report import keep_warm
from evidentia.serving.cli.invocation import Invocation
from serving.federated_bases import IN_TIME, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

COMMAND = [sys.executable, "-c", "import sys; from evidentia.serving.cli import main; sys.exit(main())"]
HOSTILE = "keys \x1b]0;owned\x07 \u202ereversed"


def test_question_that_was_asked_ahead_is_answered_from_what_is_kept(run: Run, federated: Path) -> None:
    warmed = run("cache", "warm", "archive keys", *IN_TIME, "--base", federated)
    answer = parsed(run("search", "archive keys", *IN_TIME, "--base", federated, "--json"))
    other = parsed(run("search", "archive keys", *IN_TIME, "--as", "alice", "--base", federated, "--json"))

    assert [
        "source   state     candidates  reason  question",
        "archive  searched           1  -       archive keys",
        "",
        "1 question, 1 answer of sources kept",
    ] == warmed.out.splitlines()
    assert ("cached", "precomputed") == tuple(answer["source_coverage"]["archive"][name] for name in ("state", "tier"))
    assert "searched" == other["source_coverage"]["archive"]["state"]


def test_questions_come_from_arguments_a_file_stdin_or_the_settings(
    run: Run, federated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "questions.txt").write_text("\ufeff one \n\n two\r\none\n", encoding="utf-8")

    def asked(*arguments: str) -> list[str]:
        return list(parsed(run("cache", "warm", *arguments, "--base", federated, "--json"))["coverage"])

    typed, from_file, both = asked("one"), asked("--file", "questions.txt"), asked("three", "one", "--file", "questions.txt")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"four\n")))
    from_stdin = asked("--file", "-")
    (federated / "evidentia.toml").write_text('[cache]\nwarm = ["five"]\n', encoding="utf-8")

    assert (["one"], ["one", "two"], ["one", "three", "two"], ["four"], ["five"]) == (
        typed,
        from_file,
        sorted(both),
        from_stdin,
        asked(),
    )


def test_warming_without_sources_says_so(run: Run, base: Path) -> None:
    outcome = run("cache", "warm", "keys", "--base", base)

    assert (0, "1 question, 0 answers of sources kept\n") == (outcome.exit_code, outcome.out)
    assert outcome.err == "note: no source outside the base was asked; `evidentia sources list` shows which there are\n"


MISTAKES = [
    (("warm",), "there is nothing to ask"),
    (("warm", "--file", "empty.txt"), "there is nothing to ask"),
    (("warm", "--file", "absent.txt"), "'absent.txt' cannot be read: no such file or directory"),
    (("warm", "--file", "."), "'.' cannot be read: is a directory"),
    (("warm", "--file", "binary.txt"), "'binary.txt' cannot be read: it is not UTF-8"),
    (("warm", "x", "--every", "soon"), "field 'every': 'soon' is not a span of time"),
    (("warm", "x", "--every", "0"), "field 'every': a pause is at least a second"),
    (("warm", "x", "--deadline-ms", "0"), "invalid value for '--deadline-ms'"),
    (("warm", " "), "field 'query': it is empty"),
    (("flush", "nobody"), "no source 'nobody'"),
    (("flush", HOSTILE), "no source 'keys \\x1b]0;owned\\x07 \\u202ereversed'"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(case[0]).encode("ascii", "replace").decode() for case in MISTAKES]
)
def test_mistake_is_told(run: Run, prepared: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")

    outcome = run("cache", *arguments, "--base", prepared / "base")

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert outcome.err.startswith(f"evidentia: {message}"), outcome.err


def test_stats_count_over_the_remembered_requests(run: Run, federated: Path) -> None:
    empty = parsed(run("cache", "stats", "--base", federated, "--json"))
    for query in ("archive keys", "archive keys", "something else", "archive keys"):
        run("search", query, *IN_TIME, "--base", federated)
    run("search", "archive keys", *IN_TIME, "--most-sources", "0", "--base", federated)

    counts = parsed(run("cache", "stats", "--base", federated, "--json"))
    table = run("cache", "stats", "--base", federated).out

    assert (0, 0, 0, 0.0) == tuple(empty[name] for name in ("requests", "finds", "entries", "hit_ratio"))
    assert (5, 4, 2, 0.5, 0, 2) == tuple(counts[name] for name in ("requests", "finds", "hits", "hit_ratio", "stale_hits", "entries"))
    assert [
        "tier         hits  ratio  stale  entries",
        "request         0     0%      0        0",
        "session         0     0%      0        0",
        "precomputed     0     0%      0        0",
        "global          2    50%      0        2",
        "",
        "4 answers of sources were needed by the last 5 requests: 2 were kept (50%), 0 stood in past their time",
    ] == table.splitlines()


def test_what_was_kept_is_dropped(run: Run, federated: Path) -> None:
    run("cache", "warm", "archive keys", "something else", *IN_TIME, "--base", federated)

    one = run("cache", "flush", "documents", "--base", federated)
    all_of_it = parsed(run("cache", "flush", "--base", federated, "--json"))
    again = run("cache", "flush", "--base", federated)

    assert "dropped 0 kept answers of documents\n" == one.out
    assert ({"dropped": 2}, "dropped 0 kept answers\n") == (all_of_it, again.out)


def warmed(pauses: int, *, is_json: bool = False) -> list[float]:
    report = CoverageReport(state=CoverageState.FAILED, reason=HOSTILE, candidates=0)
    said = WarmReport(questions=1, kept=0, coverage={HOSTILE: {SourceId("wiki"): report}})
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == pauses:
            raise KeyboardInterrupt

    call = Invocation(base=None, is_json=is_json)  # type: ignore[arg-type]  # nothing is opened
    with pytest.raises(KeyboardInterrupt):
        keep_warm(call, lambda: said, pause_s=3_600, pause=pause)
    return paused


def test_questions_are_asked_again_after_each_pause(capsys: pytest.CaptureFixture[str]) -> None:
    assert [3_600] * 3 == warmed(3, is_json=True)

    out, err = capsys.readouterr()
    assert [1] * 3 == [json.loads(line)["questions"] for line in out.splitlines()]
    assert ["note: asking again in 1h; press Ctrl-C to stop"] * 3 == err.splitlines()


def test_hostile_questions_and_reasons_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    warmed(1)

    out = capsys.readouterr().out
    assert not any(character in out for character in "\x1b\x07\u202e")
    assert 2 == out.count(r"keys \x1b]0;owned\x07 \u202ereversed")


def test_pause_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="every"):
        keep_warm(Invocation(base=None), pytest.fail, pause_s=0)  # type: ignore[arg-type]  # nothing is asked


def test_warming_goes_on_until_it_is_interrupted(federated: Path) -> None:
    arguments = [*COMMAND, "cache", "warm", "archive keys", *IN_TIME, "--every", "1h", "--json", "--base", str(federated)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        try:
            _, remarks = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    assert (1, 1) == (first["questions"], first["kept"])
    assert process.returncode == 130
    assert remarks in {b"", b"note: asking again in 1h; press Ctrl-C to stop\n"}
