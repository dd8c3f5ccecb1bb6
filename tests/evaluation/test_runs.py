"""Run files: exact, deterministic, and readable by the usual tools."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import ir_measures
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.runs import Run, ScoredDocument, read_run, render_run, write_run

NAMES = st.text(min_size=1, max_size=6)
SCORES = st.integers(-(1 << 62), 1 << 62)
RANKINGS = st.lists(st.tuples(NAMES, SCORES), min_size=1, max_size=5, unique_by=lambda pair: pair[0]).map(
    lambda pairs: tuple(ScoredDocument(*pair) for pair in pairs)
)
SMALL = Run(
    tag="demo",
    rankings={"q2": (ScoredDocument("Geneva Durben", 3 << 15), ScoredDocument("d2", -1)), "q1": (ScoredDocument("d2", 0),), "q3": ()},
)
SMALL_LINES = ["q1 Q0 d2 1 0.0 demo", "q2 Q0 Geneva%20Durben 1 1.5 demo", "q2 Q0 d2 2 -0.0000152587890625 demo"]


def reading(folder: Path, text: str) -> Run:
    path = folder / "run.txt"
    path.write_text(text)
    return read_run(path)


def test_lines_are_sorted_by_query_and_scores_are_exact() -> None:
    assert SMALL_LINES == list(render_run(SMALL))


def test_the_file_ends_every_line_with_a_line_feed(tmp_path: Path) -> None:
    write_run(SMALL, tmp_path / "run.txt")

    assert "".join(f"{line}\n" for line in SMALL_LINES).encode() == (tmp_path / "run.txt").read_bytes()


def test_ranked_ids_are_the_documents_in_order() -> None:
    assert {"q1": ("d2",), "q2": ("Geneva Durben", "d2"), "q3": ()} == SMALL.ranked_ids()


@given(tag=NAMES, rankings=st.dictionaries(NAMES, RANKINGS, min_size=1, max_size=3), score_bits=st.integers(0, 40))
@example(tag="%", rankings={"a%20b": (ScoredDocument("a%20b", 0), ScoredDocument("a b", 0), ScoredDocument("a%2520b", 0))}, score_bits=16)
def test_what_was_written_is_read_back_unchanged(tag: str, rankings: dict[str, tuple[ScoredDocument, ...]], score_bits: int) -> None:
    run = Run(tag=tag, rankings=rankings, score_bits=score_bits)
    with TemporaryDirectory() as folder:
        write_run(run, Path(folder) / "run.txt")

        assert run == read_run(Path(folder) / "run.txt", score_bits=score_bits)


@given(score=SCORES, score_bits=st.integers(0, 60))
def test_a_printed_score_is_the_fixed_point_number_itself(score: int, score_bits: int) -> None:
    (line,) = render_run(Run(tag="t", rankings={"q": (ScoredDocument("d", score),)}, score_bits=score_bits))

    assert Fraction(score, 1 << score_bits) == Fraction(line.split()[4])


def test_other_tools_read_the_file(tmp_path: Path) -> None:
    write_run(SMALL, tmp_path / "run.txt")
    expected = [("q1", "d2", 0.0), ("q2", "Geneva%20Durben", 1.5), ("q2", "d2", -(2.0**-16))]

    found = list(ir_measures.read_trec_run(str(tmp_path / "run.txt")))  # type: ignore[no-untyped-call] # ir-measures has no annotation here

    assert expected == [tuple(scored) for scored in found]


def test_the_rank_column_decides_and_not_the_order_of_lines_nor_the_score(tmp_path: Path) -> None:
    run = reading(tmp_path, "q Q0 a 7 1.0 x\nq\tQ0\tb\t0\t-2.5e1\tx\r\n\nq Q0 c 3 99 x\n")

    assert {"q": ("b", "c", "a")} == run.ranked_ids()
    assert -25 << 16 == run.rankings["q"][0].score


@pytest.mark.parametrize("name", ["50%", "a%2Fb", "%", "%zz", "%C3", "%e2%80%a8", "%41"])
def test_ids_of_other_tools_with_a_percent_sign_stay_as_they_stand(tmp_path: Path, name: str) -> None:
    assert {"q": (name,)} == reading(tmp_path, f"q Q0 {name} 1 1 x\n").ranked_ids()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q Q0 a 1 1 x\nq Q0 a b 2 1 x\n", "line 2: expected the 6 columns 'query Q0 document rank score tag', found 7; "),
        ("q Q0 a one 1 x\n", "line 1: rank 'one' is not a number from 0"),
        ("q Q0 a -1 1 x\n", "line 1: rank '-1' is not a number from 0"),
        ("q Q0 a 1 nan x\n", "line 1: score 'nan' is not a finite decimal"),
        ("q Q0 a 1 1e9999 x\n", "line 1: score '1e9999' is not a finite decimal"),
        ("q Q0 a 1 2 x\nq Q0 b 1 1 x\n", "line 2: query 'q' has rank 1 twice"),
        ("q Q0 a 1 2 x\n\nq Q0 a 2 1 x\n", "line 3: query 'q' ranks document 'a' twice"),
        ("q Q0 a 1 2 x\nq Q0 b 2 1 y\n", "line 2: tag 'y' is not 'x' as on the lines before"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        reading(tmp_path, text)

    assert str(caught.value).startswith(f"field 'run': '{tmp_path / 'run.txt'}', {problem}")


def test_an_empty_file_is_refused_rather_than_scored_as_zero(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="holds no results"):
        reading(tmp_path, "\n")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="cannot be read: No such file"):
        read_run(tmp_path / "none.txt")


def test_a_run_with_a_document_twice_cannot_be_written() -> None:
    run = Run(tag="t", rankings={"q": (ScoredDocument("d", 2), ScoredDocument("d", 1))})

    with pytest.raises(InvalidFieldError, match="query 'q' ranks document 'd' twice"):
        list(render_run(run))


def test_an_empty_id_cannot_be_written() -> None:
    with pytest.raises(InvalidFieldError, match="empty id or tag"):
        list(render_run(Run(tag="", rankings={})))
