"""Facet values are spelt as the contract spells them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evidentia.contracts.access import local_owner
from evidentia.contracts.documents import ChangeSet, DocumentMetadata
from evidentia.contracts.ids import SourceId
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.policy.access import access_scope
from evidentia.testing.documents import make_document
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from pathlib import Path


def test_times_are_counted_in_their_written_form(tmp_path: Path) -> None:
    embedded.create(tmp_path)
    parts = embedded.open_parts(tmp_path)
    metadata = DocumentMetadata(source_id=SourceId("test"), updated_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    writer = parts.writer()
    writer.commit(ChangeSet(documents=tuple(make_document(name, "harbour", metadata=metadata) for name in "ab")))
    writer.close()
    scope = access_scope(local_owner(), acl_scope=None, rules=())
    snapshot = parts.index.at(search=SearchSettings())
    found = snapshot.search(LexicalQuery(terms={"harbour": 1}), scope=scope, narrowing=None, facets=("updated_at",), limit=1)
    parts.close()

    assert {"updated_at": {"2026-01-02T03:04:05+00:00": 2}} == found.facets
