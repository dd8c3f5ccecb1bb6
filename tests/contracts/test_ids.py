"""Composite ids are spelt and read in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import connect
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import ChunkId, ChunkParts, DocumentId, Sha256, chunk_id_of, chunk_parts, document_of

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = Sha256("0123456789abcdef" * 4)


@pytest.mark.parametrize("document_id", ["a:b", "a:b#0@0123456789abcdef", "a:#", "s:ü/x y.md"])
def test_a_chunk_id_is_read_as_it_was_spelt(document_id: str) -> None:
    chunk_id = chunk_id_of(DocumentId(document_id), position=17, content_hash=DIGEST)

    assert ChunkParts(document_id=DocumentId(document_id), position=17, hash_prefix=DIGEST[:16]) == chunk_parts(chunk_id)
    assert document_id == document_of(chunk_id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:b",
        "a:b#",
        "a:b#0",
        "a:b#0@",
        "a:b#0@12",
        "#0@0123456789abcdef",
        "a:b#-1@0123456789abcdef",
        f"a:b#{'9' * 20}@0123456789abcdef",
    ],
)
def test_what_is_no_chunk_id_has_no_parts(text: str) -> None:
    assert chunk_parts(ChunkId(text)) is None


def test_a_position_that_no_document_has_is_no_crash_at_any_door(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The harbour.\n")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "a.md"], source="s")
        receipt = base.retrieve("harbour", mode="lexical").receipt_id
        assert receipt is not None
        absurd = f"s:a.md#{'9' * 25}@0123456789abcdef"
        for ask in (base.export, base.verify):
            with pytest.raises(NotFoundError):
                ask(absurd)
        assert "scope" == base.why(receipt, absurd).stage
