"""Traces in a terminal: a table, and bars on a time axis that can be read at any width, without colours, whatever a source is called."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from engine.trace_samples import trace
from evidentia.contracts.telemetry import TraceSpan
from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.trace_report import ASCII, BLOCKS, glyphs_for, put_trace, put_traces, waterfall

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.telemetry import RequestTrace
    from serving.cli_runs import Run

HOSTILE = "\x1b[2J[red]wiki[/red]\n\u202e\x07:boom:"


def drawn(each: RequestTrace, *, width: int, is_plain: bool = False) -> list[str]:
    return [line.plain for line in waterfall(each, width=width, glyphs=ASCII if is_plain else BLOCKS)]


def source(name: str = "wiki", state: CoverageState = CoverageState.SEARCHED, *, note: str = "") -> TraceSpan:
    return TraceSpan(name=name, kind="source", start_ms=10.0, duration_ms=20.0, state=state, note=note, attributes={"candidates": 1})


def test_table_of_requests(capsys: pytest.CaptureFixture[str]) -> None:
    put_traces([trace("id-2", after_s=61, latency_ms=300.0, degraded=("sources", "deadline")), trace("id-1", receipt_id=None)])

    assert (
        "time                 id            latency  sources  fragments  cache  degraded\n"
        "2026-03-01 12:01:01  id-2  300.0 of 250 ms  2 of 5           2    25%  late, sources, deadline\n"
        "2026-03-01 12:00:00  id-1  228.5 of 250 ms  2 of 5           2    25%  -\n"
    ) == capsys.readouterr().out


def test_waterfall_of_a_request() -> None:
    expected = """\
             0 ms               deadline 250 ms |
request      ################################   |    228.5 ms  answered
 check       #                                  |      0.2 ms
 scope       #                                  |      0.5 ms
 understand  ##                                 |     12.0 ms  3 terms, 0 phrases
 cache        #                                 |      0.2 ms
 sources      #                                 |      0.5 ms
 search       #############################     |    200.0 ms
 fuse                                     ##    |      3.0 ms
 rerank                                    #    |      0.5 ms
 conflicts                                 ##   |      8.0 ms
 diversify                                  #   |      1.0 ms
 budget                                     #   |      0.5 ms
 govern                                     #   |      0.0 ms
 seal                                       #   |      2.0 ms
 > handbook   #######                           |     40.0 ms  searched, 12 candidates, 1 fault
 > slack      .............................     |    200.0 ms  timed_out: not finished within 200 ms; nothing had come
 > tickets    ==                                |      1.0 ms  cached, from session, 4 candidates: kept for 30 s
 > vault                                        |      0.0 ms  denied: you may not ask it
 > wiki       ..                                |      5.0 ms  failed: ConnectionError"""

    assert expected.splitlines() == drawn(trace(), width=118, is_plain=True)


def test_remarks_stand_below_where_there_is_no_room_beside() -> None:
    lines = drawn(trace(spans=(source(note="nothing new"),)), width=60)

    assert [
        "         0 ms                  deadline 250 ms │",
        "request  ███████████████████████████████████   │    228.5 ms",
        "         answered",
        " > wiki   ████                                 │     20.0 ms",
        "         searched, 1 candidate: nothing new",
    ] == lines


def test_mark_of_the_deadline_is_within_when_the_answer_is_late() -> None:
    lines = drawn(trace(latency_ms=500.0, spans=(source(),)), width=60)

    assert [
        "         0 ms               │",
        "request  ███████████████████┼███████████████████    500.0 ms",
        "         answered late",
        " > wiki  ███                │                        20.0 ms",
        "         searched, 1 candidate",
    ] == lines


def test_what_was_done_in_time_has_a_cell_before_a_deadline_that_is_all_but_at_once() -> None:
    before = TraceSpan(name="check", kind="stage", start_ms=0.0, duration_ms=1.0)
    after = TraceSpan(name="search", kind="stage", start_ms=2.0, duration_ms=1.0)

    lines = drawn(trace(latency_ms=5_000.0, deadline_ms=2, spans=(before, after)), width=60)

    assert [
        " check   █│                                           1.0 ms",
        " search   │█                                          1.0 ms",
    ] == lines[-2:]


def test_notes_of_stages_give_way_first() -> None:
    stage = TraceSpan(name="search", kind="stage", start_ms=0.0, duration_ms=9.0, note="a long story about candidates that were found")
    each = trace(spans=(stage, source(note="cut")))

    wide, narrow = drawn(each, width=100), drawn(each, width=75)

    assert wide[2].endswith(f"9.0 ms  {stage.note}")
    assert (4, "9.0 ms", "20.0 ms  searched, 1 candidate: cut") == (len(narrow), narrow[2][-6:], narrow[3][-35:].lstrip())


def test_bar_that_ends_in_the_cell_of_the_deadline_does_not_cross_it() -> None:
    span = TraceSpan(name="search", kind="stage", start_ms=0.0, duration_ms=249.0)

    lines = drawn(trace(latency_ms=400.0, spans=(span,)), width=60)

    assert [
        "request  ███████████████████████┼███████████████    400.0 ms",
        " search  ███████████████████████│                   249.0 ms",
    ] == [lines[1], lines[3]]


def test_state_is_told_without_colours() -> None:
    states = (CoverageState.SEARCHED, CoverageState.STALE, CoverageState.TIMED_OUT, CoverageState.SKIPPED)

    lines = drawn(trace(spans=tuple(source(state.value, state) for state in states)), width=120)

    assert ["█", "▒", "░", " "] == [line[18] for line in lines[2:]]
    assert all(state.value in line.rpartition(" ms")[2] for state, line in zip(states, lines[2:], strict=True))


def test_colours_tell_states_apart() -> None:
    late, searched = source("a", CoverageState.TIMED_OUT), source("b")

    _, _, first, second = waterfall(trace(spans=(late, searched)), width=120, glyphs=BLOCKS)

    assert "red" in {str(span.style) for span in first.spans}
    assert "green" in {str(span.style) for span in second.spans}


@given(st.text(), st.text(), st.integers(30, 200), st.floats(0, 1e9), st.floats(0, 1e9))
def test_no_name_and_no_note_breaks_the_lines(name: str, note: str, width: int, start_ms: float, duration_ms: float) -> None:
    span = TraceSpan(name=name, kind="source", start_ms=start_ms, duration_ms=duration_ms, state=CoverageState.FAILED, note=note)
    stage = TraceSpan(name=name, kind="stage", start_ms=start_ms, duration_ms=duration_ms, note=note)

    lines = drawn(trace(spans=(span, stage)), width=width)

    assert all(cell_len(line) <= width for line in lines)
    assert all(character.isprintable() or character.isspace() for line in lines for character in line)
    assert not any(character in line for line in lines for character in "\x1b\n\r\x07\x9b\u202e\u2028")


def test_hostile_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    put_trace(trace(spans=(source(HOSTILE, note="[bold]loud[/bold] \x1b]0;owned\x07"),)))

    out = capsys.readouterr().out
    assert not any(character in out for character in "\x1b\x07\u202e")
    assert r" > \x1b[2J[red]wiki[/re" in out
    assert r"[bold]loud[/bold] \x1b]0;owned\x07" in " ".join(out.split())


def test_plain_characters_where_blocks_cannot_be_written() -> None:
    assert [BLOCKS, BLOCKS, ASCII, ASCII, ASCII] == [glyphs_for(name) for name in ("utf-8", "UTF8", "ascii", "cp1252", None)]


def test_facts_of_a_request_stand_above_its_bars(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    put_trace(trace(latency_ms=260.0, degraded=("deadline",)))

    facts = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert [
        "request    0123456789abcdef",
        "receipt    r-0123456789ab-7",
        "time       2026-03-01 12:00:00.250000",
        "latency    260.0 of 250 ms, late",
        "caller     ffffffffffffffff in tenant default",
        "agent      planner",
        "mode       hybrid",
        "fragments  2 of 40 candidates, at most 10; 321 tokens",
        "sources    2 of 5 answered, 25% from the cache",
        "degraded   deadline",
        "result     aaaaaaaaaaaaaaaa",
    ] == facts


def test_terminal_gets_colours_and_nothing_else_from_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    put_trace(trace(spans=(source(HOSTILE),)))

    shown = terminal.getvalue()
    assert "\x1b[32m" in shown
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown


def test_requests_are_listed_and_shown(run: Run, base: Path) -> None:
    answer = json.loads(run("search", "keys", "--base", base, "--json").out)

    listed = json.loads(run("trace", "list", "--base", base, "--json").out)
    shown = json.loads(run("trace", "show", answer["receipt_id"], "--base", base, "--json").out)
    as_text = run("trace", "show", answer["request_id"][:8], "--base", base).out

    assert [answer["request_id"]] == [each["request_id"] for each in listed]
    assert listed[0] == shown
    assert list(answer["stage_latencies_ms"]) == [span["name"] for span in shown["spans"] if span["kind"] == "stage"]
    assert answer["request_id"] in as_text
    assert "deadline 500 ms" in as_text
    assert "keys" not in msgspec.json.encode(shown).decode().lower()


def test_no_more_are_listed_than_asked_for(run: Run, base: Path) -> None:
    for query in ("keys", "word", "part"):
        assert 0 == run("search", query, "--base", base, "--quiet").exit_code

    assert 3 == len(json.loads(run("trace", "list", "--base", base, "--json").out))
    assert 2 == len(run("trace", "list", "--limit", "1", "--base", base).out.splitlines())


def test_what_is_not_remembered_is_said(run: Run, base: Path) -> None:
    empty, missing = run("trace", "list", "--base", base), run("trace", "show", "0123456789abcdef", "--base", base)

    assert (0, "note: no request is remembered; telemetry.traces says how many are\n") == (empty.exit_code, empty.err)
    assert (2, "") == (missing.exit_code, missing.out)
    assert missing.err.startswith("evidentia: no trace '0123456789abcdef'\n")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_wrong_limit_is_refused(run: Run, base: Path, limit: str) -> None:
    outcome = run("trace", "list", "--limit", limit, "--base", base)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert "--limit" in outcome.err
