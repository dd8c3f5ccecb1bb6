"""Answers as tables: marks, conflicts, signals, and terminals that are too narrow for them."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evidentia import connect
from evidentia.contracts.evidence import SignalScores
from evidentia.contracts.vocabulary import Similarity
from evidentia.serving.cli.output import Figure, put_table
from evidentia.serving.cli.search_report import SignalRow, put_signals

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

AS_OF = ("--as-of", "2026-06-01T00:00:00Z")
LONG = "a sentence that is too long to stand in the last column of a narrow terminal"


@pytest.fixture(scope="module")
def disagreeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base in which a handbook and a wiki give different periods, and a third page has nothing to do with it."""
    directory = tmp_path_factory.mktemp("disagreeing")
    pages = {
        "handbook/keys.md": "---\ntitle: Signing keys\nupdated: 2026-03-01\n---\n\nSigning keys are rotated every 30 days.\n",
        "wiki/keys.md": "---\ntitle: Signing keys\nupdated: 2026-05-01\n---\n\nSigning keys are rotated every 90 days.\n",
        "wiki/lunch.md": "# Lunch\n\nThe canteen opens at noon. It closes at two. On Fridays there is fish, and soup.\n",
    }
    for name, text in pages.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    with connect(directory / "base", init=True) as base:
        base.ingest([directory / "handbook"], source="handbook", authority="canonical")
        base.ingest([directory / "wiki"], source="wiki", authority="user")
    return directory / "base"


def test_conflict_is_a_table_and_both_sides_are_marked(run: Run, disagreeing: Path) -> None:
    out = run("search", "How often are signing keys rotated?", "--base", disagreeing, *AS_OF).out

    assert re.search(r"^# +confidence +source +authority +age +mark +snippet\n", out)
    assert re.search(r"\n\d +0\.\d\d [a-z ]+  handbook:keys\.md +canonical +\S+ \w+ +holds ", out)
    assert re.search(r"\n\d +0\.\d\d [a-z ]+  wiki:keys\.md +user +\S+ \w+ +contradicted ", out)
    expected = "Signing keys rotated every  30 days (handbook:keys.md)  90 days (wiki:keys.md)  authority"
    assert f"\nconflict                    holds                       against                 decided by\n{expected}\n" in out


def test_replay_shows_the_conflict_again(run: Run, disagreeing: Path) -> None:
    answer = json.loads(run("search", "signing keys rotated", "--base", disagreeing, *AS_OF, "--json").out)

    assert "  30 days (handbook:keys.md)  90 days (wiki:keys.md)  " in run("replay", answer["receipt_id"], "--base", disagreeing).out


def test_fragment_that_was_cut_is_marked(run: Run, disagreeing: Path) -> None:
    out = run("search", "canteen", "--base", disagreeing, *AS_OF, "--mode", "lexical", "--tokens", "55").out

    assert re.search(r"\n1 +[01]\.\d\d [a-z ]+  wiki:lunch\.md  user +unknown  cut   # Lunch The canteen opens at noon\.", out)


def test_marks_have_no_column_where_there_are_none(run: Run, disagreeing: Path) -> None:
    out = run("search", "canteen", "--base", disagreeing, *AS_OF, "--mode", "lexical").out

    assert "mark" not in out


def test_ranking_options_reach_the_request(run: Run, disagreeing: Path) -> None:
    def ask(*options: str) -> list[dict[str, Any]]:  # JSON
        answer: dict[str, Any] = json.loads(run("search", "signing keys", "--base", disagreeing, *AS_OF, "--json", *options).out)
        return list(answer["fragments"])

    for weights, signal in (("0,1,0,0", "authority"), ("0,0,1,0", "freshness"), ("0,0,0,1", "utility")):
        assert all(fragment["scores"][signal] == fragment["score"] for fragment in ask("--weights", weights))
    assert "wiki:lunch.md" == ask("--diversity", "1")[2]["document_id"]
    assert "wiki:lunch.md" == ask("--diversity", "0")[1]["document_id"]
    assert "rrf" == ask("--fusion", "rrf")[0]["retrieval_context"]["fusion_method"]
    assert ask("--task", "explanation")[0]["scores"]["utility"] != ask()[0]["scores"]["utility"]


def test_steps_that_were_left_out_are_not_among_those_done(run: Run, disagreeing: Path) -> None:
    def steps(*options: str) -> list[str]:
        return [
            each["step"]
            for each in json.loads(run("search", "signing keys", "--base", disagreeing, "--json", *options).out)["understanding"]
        ]

    assert {"context", "normalise"} <= set(steps())
    assert set(steps()) - {"context", "normalise"} == set(steps("--without", "context", "--without", "normalise"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weights", "0.5,0.5"), "field 'ranking_weights': '0.5,0.5' is not four numbers separated by commas"),
        (("--weights", "a,b,c,d"), "field 'ranking_weights': 'a,b,c,d' is not four numbers separated by commas"),
        (("--weights", "1,1,0,0"), "field 'ranking_weights': they sum to 2, not to 1"),
        (("--weights", "nan,0,0,0"), "field 'ranking_weights.relevance': expected `float` >= 0.0"),
        (("--diversity", "2"), "field 'diversity_constraint': expected `float` <= 1.0"),
        (("--fusion", "magic"), "field 'fusion': 'magic' is not one of linear, rrf, learned"),
        (("--without", "magic"), "field 'without': 'magic' is not one of context, normalise"),
        (("--fusion", "learned"), "field 'fusion': 'learned' needs a model"),
    ],
)
def test_wrong_ranking_option_names_its_field(run: Run, disagreeing: Path, options: tuple[str, ...], message: str) -> None:
    outcome = run("search", "keys", "--base", disagreeing, *options)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert outcome.err.startswith(f"evidentia: {message}")


def row(dense: int | None, *, reranked: int | None = None) -> SignalRow:
    one = 1 << 32
    scores = SignalScores(relevance=one, authority=one, freshness=one // 2, utility=0, fused=one, reranked=reranked, dense=dense)
    return SignalRow("1", one, scores, 0.5)


@pytest.mark.parametrize(
    ("similarity", "dense", "shown"),
    [
        (Similarity.COSINE, 3 << 42, ("cosine", "0.75")),
        (Similarity.DOT, 3 << 28, ("product", "3.00")),
        (Similarity.EUCLIDEAN, 1 << 43, ("nearness", "0.50")),
    ],
)
def test_score_of_vectors_is_read_at_the_scale_of_their_space(
    capsys: pytest.CaptureFixture[str], similarity: Similarity, dense: int, shown: tuple[str, str]
) -> None:
    put_signals([row(dense), row(None)], similarity=similarity)

    header, first, second = capsys.readouterr().out.splitlines()
    assert ("confidence", shown[0]) == (header.split()[1], header.split()[-1])
    assert ("0.50", "likely", shown[1]) == (*first.split()[1:3], first.split()[-1])
    assert ("0.50", "likely", "-") == (*second.split()[1:3], second.split()[-1])


def test_reranker_has_its_columns_where_it_took_part(capsys: pytest.CaptureFixture[str]) -> None:
    put_signals([row(0, reranked=1 << 30), row(0)], similarity=Similarity.COSINE)

    header, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header[7:9] == ["fused", "reranker"]
    assert (["1.000", "0.250"], ["1.000", "-"]) == (first[8:10], second[8:10])


def drawn(monkeypatch: pytest.MonkeyPatch, header: tuple[str, ...], rows: list[tuple[object, ...]], *, columns: int) -> list[str]:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "25")  # without it, a dumb terminal counts as 80 columns wide
    monkeypatch.setenv("TERM", "dumb")
    put_table(header, rows)
    return [line.rstrip() for line in terminal.getvalue().splitlines()]


def test_long_text_stands_below_its_row_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[object, ...]] = [(1, Figure("0.50"), "handbook:a-rather-long-name.md", LONG)]

    narrow = drawn(monkeypatch, ("#", "score", "source", "snippet"), rows, columns=60)
    wide = drawn(monkeypatch, ("#", "score", "source", "snippet"), rows, columns=200)

    assert ["#  score  source", "1   0.50  handbook:a-rather-long-name.md"] == [narrow[0], narrow[2]]
    assert LONG == " ".join(line.strip() for line in narrow[3:])
    assert all(re.match(r"   \S", line) for line in narrow[3:])
    assert wide[-1] == f"1   0.50  handbook:a-rather-long-name.md  {LONG}"


def test_numbers_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    header, values = tuple(f"signal{number}" for number in range(9)), tuple(Figure(f"0.{number}00") for number in range(9))

    narrow = drawn(monkeypatch, header, [values], columns=40)

    assert " ".join(f"{name} {value}" for name, value in zip(header, values, strict=True)) == " ".join(" ".join(narrow).split())
