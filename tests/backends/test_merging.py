"""Segments are merged before they are too many, and no chunk is rewritten too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from evidentia.backends.embedded.lexical.postings import PostingsBuilder, merge
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.backends.embedded.records.collector import _surplus
from evidentia.contracts.documents import ChangeSet
from evidentia.provenance.verification import verify_base
from evidentia.testing.store_kit import many_documents
from evidentia.text.tokens import Tokeniser
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [f"harbour {number % 3} pier_{number} naïve keys rotate keys" for number in range(40)]


def _segment(path: Path, texts: list[str], *, first_key: int) -> Segment:
    builder = PostingsBuilder(Tokeniser())
    keys = list(range(first_key, first_key + len(texts)))
    write_segment(path, tokeniser="t", chunk_count=len(texts), arrays=builder.build(texts, chunk_keys=keys))
    return Segment(path)


def test_merged_segments_equal_one_that_was_built_at_once(tmp_path: Path) -> None:
    whole = _segment(tmp_path / "whole", TEXTS, first_key=1)
    parts = [_segment(tmp_path / f"part-{start}", TEXTS[start : start + 13], first_key=start + 1) for start in range(0, 40, 13)]
    merged = merge(parts, keep=[np.ones(part.header.chunk_count, dtype=np.bool_) for part in parts])

    assert set(whole.header.arrays) == set(merged)
    for name, array in merged.items():
        assert whole.array(name).tolist() == array.tolist(), name


def test_dropped_chunks_leave_no_trace_in_a_merged_segment(tmp_path: Path) -> None:
    kept = [text for number, text in enumerate(TEXTS) if number % 2]
    expected = _segment(tmp_path / "expected", kept, first_key=1)
    mask = np.arange(len(TEXTS)) % 2 == 1
    merged = merge([_segment(tmp_path / "whole", TEXTS, first_key=1)], keep=[mask])

    for name in ("term_bytes", "posting_offsets", "ordinals", "counts", "positions", "lengths"):
        assert expected.array(name).tolist() == merged[name].tolist(), name


@pytest.mark.parametrize("most", [2, 4, 8])
def test_many_small_commits_leave_few_segments_and_rewrite_each_chunk_a_few_times(most: int) -> None:
    sizes: dict[int, int] = {}
    written = 0
    commits = 20_000
    for number in range(commits):
        sizes[number] = 1
        chosen = _surplus(sizes, most=most)
        if chosen:
            total = sum(sizes.pop(key) for key in chosen)
            sizes[commits + number] = total
            written += total
        assert len(sizes) <= most * 8  # 4 ** 8 > commits

    assert written < commits * 16


def test_an_ingest_leaves_few_segments_and_a_whole_base(tmp_path: Path) -> None:
    embedded.create(tmp_path)
    parts = embedded.open_parts(tmp_path)
    writer = parts.writer()
    for number in range(12):
        writer.commit(ChangeSet(documents=many_documents(3, prefix=f"{number}-")))
    writer.close()
    before = parts.reader.head()
    report = parts.collector().compact()

    assert report.segments_removed > 0
    assert len(list((tmp_path / "segments").iterdir())) <= 8
    assert (before.corpus_version, before.evidence_state) == (parts.reader.head().corpus_version, parts.reader.head().evidence_state)
    assert verify_base(parts.archive()).ok
    assert 0 == parts.collector().compact().segments_removed
    parts.close()
