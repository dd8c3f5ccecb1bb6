"""Definitions and features survive merging exactly, and segments from before them are as good as empty of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.lexical.postings import PostingsBuilder, definitions_of, merge
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.text.features import measure
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.backends.embedded.lexical.segments import Array

TRAITS = ("definition_bytes", "definition_offsets", "definition_ordinals", "features", "marks")
KINDS = ["plain words", "the service level agreement (SLA)", "x = f(1)\nRTO: recovery time objective", "naïve Köln (K)", "$ ls -l", ""]
TEXTS = [f"{KINDS[number % len(KINDS)]} {number}" for number in range(30)]


def _arrays(texts: list[str], *, first_key: int = 1) -> dict[str, Array]:
    return PostingsBuilder(Tokeniser()).build(texts, chunk_keys=list(range(first_key, first_key + len(texts))))


def _written(path: Path, arrays: dict[str, Array]) -> Segment:
    write_segment(path, tokeniser="t", chunk_count=len(arrays["chunk_keys"]), arrays=arrays)
    return Segment(path)


def _older(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if name not in TRAITS}


def test_a_segment_keeps_the_traits_of_its_texts(tmp_path: Path) -> None:
    segment = _written(tmp_path / "segment", _arrays(TEXTS))

    assert [list(measure(text)) for text in TEXTS] == segment.features().tolist()
    assert ("SLA", "service level agreement", 1) == definitions_of(segment)[0]
    assert 10 == len(definitions_of(segment))


def test_merged_traits_are_byte_for_byte_those_of_a_segment_that_was_built_at_once(tmp_path: Path) -> None:
    keep = np.arange(len(TEXTS)) % 7 != 3
    expected = _arrays([text for text, is_kept in zip(TEXTS, keep, strict=True) if is_kept])
    parts = [_written(tmp_path / str(start), _arrays(TEXTS[start : start + 11])) for start in range(0, 30, 11)]
    merged = merge(parts, keep=[keep[start : start + 11] for start in range(0, 30, 11)])

    for name in TRAITS:
        assert expected[name].dtype == merged[name].dtype, name
        assert expected[name].tobytes() == merged[name].tobytes(), name


def test_a_segment_from_before_opens_and_has_none(tmp_path: Path) -> None:
    segment = _written(tmp_path / "older", _older(_arrays(TEXTS)))

    assert [] == definitions_of(segment)
    assert [[0] * 4] * len(TEXTS) == segment.features().tolist()


def test_a_segment_from_before_merges_with_others(tmp_path: Path) -> None:
    older, newer = _written(tmp_path / "older", _older(_arrays(TEXTS[:12]))), _written(tmp_path / "newer", _arrays(TEXTS[12:]))
    merged = _written(tmp_path / "merged", merge([older, newer], keep=[np.ones(12, dtype=np.bool_), np.ones(18, dtype=np.bool_)]))

    assert [[0] * 4] * 12 + [list(measure(text)) for text in TEXTS[12:]] == merged.features().tolist()
    assert [(short, long, ordinal + 12) for short, long, ordinal in definitions_of(newer)] == definitions_of(merged)


def test_segments_from_before_merge_into_one_without_traits_of_its_chunks(tmp_path: Path) -> None:
    older = _written(tmp_path / "older", _older(_arrays(TEXTS)))
    merged = _written(tmp_path / "merged", merge([older], keep=[np.arange(len(TEXTS)) < 5]))

    assert [] == definitions_of(merged)
    assert [[0] * 4] * 5 == merged.features().tolist()


def test_hostile_texts_make_a_segment(tmp_path: Path) -> None:
    texts = ["(" * 100_000, "(AB)" * 20_000, "a\tb (A\tB) \x00 b\x85c (BC)", "\ud7ff (\N{COMBINING ACUTE ACCENT})", "\t", "AB: \tb\n" * 999]
    segment = _written(tmp_path / "segment", _arrays(texts))

    assert all("\t" not in short + long for short, long, _ in definitions_of(segment))
    assert (len(texts), 4) == segment.features().shape
