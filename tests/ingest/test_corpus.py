"""A corpus is streamed line by line, and a wrong line costs only itself."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from ingest_rig import Ingest

from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.jsonl_corpus import CorpusRecord, parse_record, read_corpus

if TYPE_CHECKING:
    from pathlib import Path

NOT_A_CORPUS = (
    "'corpus.jsonl' is no corpus: none of its first 100 lines is a record; "
    "line 1 of 'corpus.jsonl' has no usable '_id' (object missing required field `_id`)"
)
GOOD = b'{"_id": "1", "title": "T", "text": "one"}'


def write(folder: Path, *lines: bytes, name: str = "corpus.jsonl", end: bytes = b"\n") -> Path:
    path = folder / name
    path.write_bytes(end.join(lines) + end)
    return path


def test_a_record_is_title_blank_line_text(tmp_path: Path) -> None:
    ingest = Ingest()
    report = ingest(write(tmp_path, GOOD, b'{"_id": "2", "text": "two"}', b'{"_id": "3", "title": "only a title"}'))

    assert (3, 3, ()) == (report.seen, report.added, report.skipped)
    assert ["T\n\none", "two", "only a title"] == [ingest.store.text(own_id) for own_id in ("1", "2", "3")]


def test_the_original_of_a_record_is_its_line_without_the_newline(tmp_path: Path) -> None:
    for end in (b"\n", b"\r\n"):
        path = write(tmp_path, GOOD, b'{"_id": "2", "text": "x"}', end=end)
        records = list(read_corpus(str(path), name="c.jsonl", max_line_bytes=1_000))

        assert [GOOD, b'{"_id": "2", "text": "x"}'] == [record.original for record in records if isinstance(record, CorpusRecord)]


def test_neither_the_files_name_nor_its_place_is_in_a_document(tmp_path: Path) -> None:
    first, second = Ingest(), Ingest()
    (tmp_path / "elsewhere").mkdir()
    first(write(tmp_path, GOOD))
    second(write(tmp_path / "elsewhere", GOOD, name="other.jsonl"))

    assert first.store.documents == second.store.documents
    assert [""] == [document.root for document in first.store.documents.values()]


def test_metadata_finds_its_place(tmp_path: Path) -> None:
    metadata = {
        "author": "Ada",
        "created_at": "2024-05-01",
        "tags": ["b", "a"],
        "url": "https://x",
        "n": 3,
        "nested": {"a": [1]},
        "none": None,
    }
    ingest = Ingest()
    ingest(write(tmp_path, json.dumps({"_id": "1", "title": "T", "text": "x", "metadata": metadata}).encode()))
    document = ingest.store.documents["documents:1"]  # type: ignore[index]  # a literal id

    assert ("T", "Ada", ("a", "b")) == (document.metadata.title, document.metadata.author, document.metadata.tags)
    assert {"url": "https://x", "n": "3", "nested": '{"a":[1]}'} == dict(document.metadata.extra)
    assert document.metadata.created_at is not None


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b'{"_id": "2", "text": ', "bad_line", "is not a record (input data was truncated)"),
        (b"?", "bad_line", "is not a record (JSON is malformed: invalid character (byte 0))"),
        (b"[1, 2]", "bad_line", "is not a record (expected `object`, got `array`)"),
        (b'{"_id": "2", "text": 5}', "bad_line", "is not a record (expected `str | null`, got `int` - at `$.text`)"),
        (b'{"_id": "2", "text": "x", "metadata": []}', "bad_line", "is not a record (expected `object`, got `array`)"),
        (b'{"text": "x"}', "bad_id", "has no usable '_id' (object missing required field `_id`)"),
        (b'{"_id": 7, "text": "x"}', "bad_id", "has no usable '_id' (expected `str`, got `int` - at `$._id`)"),
        (b'{"_id": "", "text": "x"}', "bad_id", "has an '_id' that is empty, longer than 1000 characters or not printable"),
        (b'{"_id": "a\\nb", "text": "x"}', "bad_id", "has an '_id' that is empty, longer than 1000 characters or not printable"),
        (b'{"_id": "2", "text": " "}', "empty", "has neither title nor text"),
        (b'{"_id": "2", "text": "a\\u0000b"}', "nul_byte", "holds a NUL character, so it is no text"),
        (b'{"_id": "2", "text": "\\udc00"}', "bad_line", "is not a record (JSON is malformed: invalid utf-16 surrogate pair (byte 28))"),
        (b'{"_id": "2", "text": "\xff"}', "bad_encoding", "is not UTF-8"),
        (
            b'{"_id": "2", "text": "x", "y": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "nested_too_deep",
            "nests deeper than it can be read",
        ),
        (b'{"_id": "2", "metadata": ' + b'{"a":' * 40_000 + b"1" + b"}" * 40_001, "nested_too_deep", "nests deeper than it can be read"),
        (b'{"_id": "2", "text": "' + b"x" * 300_000 + b'"}', "line_too_long", "is longer than 250000 bytes; split the document"),
        (b'{"_id": "1", "text": "other"}', "duplicate_id", "repeats the id '1' with different content; the first one was kept"),
        (
            b'{"_id": "2", "text": "x", "metadata": {"classification": "hush"}}',
            "bad_claim",
            "limits access in words that are not understood: 'classification: hush' is none of public, internal, confidential, restricted",
        ),
    ],
)
def test_a_wrong_line_is_named_and_the_others_get_in(tmp_path: Path, line: bytes, reason: str, message: str) -> None:
    ingest = Ingest()
    path = write(tmp_path, GOOD, line, b'{"_id": "3", "text": "three"}')
    report = ingest(path, settings=IngestSettings(readers=0, max_file_bytes=250_000))

    assert ["1", "3"] == ingest.store.own_ids()
    assert [("corpus.jsonl:2", reason, f"line 2 of 'corpus.jsonl' {message}")] == [
        (entry.path, entry.reason, entry.message) for entry in report.skipped
    ]


def test_the_same_record_twice_is_unchanged_the_second_time(tmp_path: Path) -> None:
    report = Ingest()(write(tmp_path, GOOD, GOOD))

    assert (2, 1, 1, ()) == (report.seen, report.added, report.unchanged, report.skipped)


def test_blank_lines_and_a_byte_order_mark_are_nothing(tmp_path: Path) -> None:
    report = Ingest()(write(tmp_path, b"\xef\xbb\xbf" + GOOD, b"", b"  ", b'{"_id": "2", "text": "x"}'))

    assert (2, 2) == (report.seen, report.added)


def test_a_file_of_other_json_lines_gets_one_entry(tmp_path: Path) -> None:
    report = Ingest()(write(tmp_path, *[b'{"level": "info"}'] * 5_000))

    assert [
        (
            "corpus.jsonl",
            "not_a_corpus",
            NOT_A_CORPUS,
        )
    ] == [(entry.path, entry.reason, entry.message) for entry in report.skipped]


def test_wrong_lines_without_end_are_summed_up(tmp_path: Path) -> None:
    report = Ingest()(write(tmp_path, GOOD, *[b"x"] * 1_500))

    assert len(report.skipped) == 1_001
    assert report.skipped[-1].message == "'corpus.jsonl' has 500 more lines that are not records; correct it and ingest it again"


def test_an_id_of_a_file_is_not_taken_by_a_record(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The file.")
    write(tmp_path, b'{"_id": "a.md", "text": "The record."}')
    ingest = Ingest()
    report = ingest(tmp_path)

    assert [("corpus.jsonl:1", "duplicate_id")] == [(entry.path, entry.reason) for entry in report.skipped]
    assert ingest.store.text("a.md") == "The file."


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as corpus:
        corpus.writelines(b'{"_id": "%d", "text": "%s"}\n' % (number, b"word " * 200) for number in range(20_000))
    tracemalloc.start()
    count = sum(1 for _ in read_corpus(str(path), name="big.jsonl", max_line_bytes=10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 20_000
    assert peak < 1_000_000


def test_a_line_costs_microseconds() -> None:
    line = json.dumps({"_id": "12345", "title": "A title", "text": "word " * 80, "metadata": {}}).encode()
    best = min(_seconds(line) for _ in range(5))

    assert best / 2_000 < 20e-6


def _seconds(line: bytes) -> float:
    started = time.process_time()
    for number in range(2_000):
        parse_record(line, number, max_line_bytes=10_000)
    return time.process_time() - started
