"""BEIR folders: what is read, and how what is wrong is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.datasets import CorpusDocument, JudgedQuery, available_splits, load_dataset

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = '{"_id": "d 1", "title": "One", "text": "first", "metadata": {}}\n\n{"_id": "d2", "text": "second"}\n'
QUERIES = '{"_id": "q2", "text": "two?", "metadata": {}}\n{"_id": "q1", "text": "one?"}\n{"_id": "q3", "text": "other split"}\n'
TEST_QRELS = HEADER + "q1\td 1\t2\nq2\td2\t1\nq1\td2\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "small"
    (root / "qrels").mkdir(parents=True)
    (root / "corpus.jsonl").write_text(CORPUS)
    (root / "queries.jsonl").write_text(QUERIES)
    (root / "qrels" / "test.tsv").write_text(TEST_QRELS)
    (root / "qrels" / "train.tsv").write_text(HEADER + "q3\td2\t1\n")
    return root


def refusal(folder: Path, *, split: str = "test") -> str:
    with pytest.raises(InvalidFieldError) as caught:
        list(load_dataset(folder, split=split).documents())
    return str(caught.value)


def test_a_split_holds_its_own_queries_in_the_order_of_the_file(folder: Path) -> None:
    dataset = load_dataset(folder)

    assert "small" == dataset.name
    assert (JudgedQuery(query_id="q2", text="two?"), JudgedQuery(query_id="q1", text="one?")) == dataset.queries
    assert {"q1": {"d 1": 2, "d2": 0}, "q2": {"d2": 1}} == dataset.qrels


def test_the_corpus_can_be_read_again_and_again(folder: Path) -> None:
    dataset = load_dataset(folder)
    expected = [CorpusDocument(document_id="d 1", title="One", text="first"), CorpusDocument(document_id="d2", text="second")]

    assert expected == list(dataset.documents())
    assert expected == list(dataset.documents())


def test_the_corpus_is_a_stream(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text(CORPUS + "broken\n")
    documents = load_dataset(folder).documents()

    assert ["d 1", "d2"] == [next(documents).document_id, next(documents).document_id]


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_the_values(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_bytes(b"\xef\xbb\xbf" + TEST_QRELS.replace("\n", "\r\n").encode())

    assert {"q1": {"d 1": 2, "d2": 0}, "q2": {"d2": 1}} == load_dataset(folder).qrels


def test_a_missing_split_lists_those_available(folder: Path) -> None:
    assert ("test", "train") == available_splits(folder)
    assert f"field 'split': 'dev' is not a split of '{folder}'; available: 'test', 'train'" == refusal(folder, split="dev")


def test_a_split_name_cannot_leave_the_folder(folder: Path) -> None:
    (folder / "secret.tsv").write_text(TEST_QRELS)

    assert "is not a split" in refusal(folder, split="../secret")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()

    assert f"field 'dataset': '{folder}' has no file '{name}'" == refusal(folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert f"field 'dataset': '{tmp_path / 'none'}' is not a folder" == refusal(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": 2, "text": "x"}\n', "line 2: expected `str`, got `int` - at `$._id`"),
        ("corpus.jsonl", '{"_id": "", "text": "x"}\n', "line 1: expected `str` of length >= 1 - at `$._id`"),
        ("corpus.jsonl", '{"_id": "d1"}\n', "line 1: object missing required field `text`"),
        ("corpus.jsonl", '\n\n{"_id": "d1",\n', "line 3: input data was truncated"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}\n{"_id": "q1", "text": "y"}\n', "line 2: query 'q1' is there twice"),
        ("qrels/test.tsv", "q1\td2\t1\n", "line 1: expected the header 'query-id corpus-id score' with tabs, found 'q1\td2\t1'"),
        ("qrels/test.tsv", "", "line 1: expected the header 'query-id corpus-id score' with tabs, found ''"),
        ("qrels/test.tsv", HEADER + "q1 d2 1\n", "line 2: expected 3 columns with tabs, found 1"),
        ("qrels/test.tsv", HEADER + "q1\t\t1\n", "line 2: an id is empty"),
        ("qrels/test.tsv", HEADER + "q1\td2\t0.5\n", "line 2: score '0.5' is not an integer"),
        ("qrels/test.tsv", HEADER + "q1\td2\t31\n", "line 2: score '31' is greater than 30"),
        ("qrels/test.tsv", HEADER + "q9\td2\t1\n", "line 2: query 'q9' is not in 'queries.jsonl'"),
        ("qrels/test.tsv", HEADER + "q1\td2\t1\nq1\td2\t2\n", "line 3: query 'q1', document 'd2': graded 2, before 1"),
    ],
)
def test_a_malformed_line_is_named_with_its_file(folder: Path, name: str, text: str, problem: str) -> None:
    (folder / name).write_text(text)

    assert f"field 'dataset': '{folder / name}', {problem}" == refusal(folder)


def test_bytes_that_are_not_text_are_named_with_their_line(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(QUERIES.encode() + b'{"_id": "\xff"}\n')

    assert f"field 'dataset': '{folder / 'queries.jsonl'}', line 4: byte 10 is not UTF-8" == refusal(folder)


def test_a_split_without_judgments_is_refused(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text(HEADER)

    assert f"field 'dataset': '{folder / 'qrels' / 'test.tsv'}' holds no judgments" == refusal(folder)


def test_a_file_that_is_a_folder_is_refused(folder: Path) -> None:
    dataset = load_dataset(folder)
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl").mkdir()

    with pytest.raises(InvalidFieldError, match="cannot be read: "):
        next(dataset.documents())
