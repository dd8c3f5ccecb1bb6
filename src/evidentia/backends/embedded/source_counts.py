"""How much of each source is in a base, and how new the newest of it is."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.backends.embedded.database import open_for_reading, storage_errors
from evidentia.contracts.ids import SourceId

if TYPE_CHECKING:
    from pathlib import Path


class SourceCount(NamedTuple):
    """The live documents of a source, and when the newest of them was changed, as far as they say."""

    documents: int
    newest_at: datetime | None


def source_counts(directory: Path) -> dict[SourceId, SourceCount]:
    """Return what is live in the newest version, by source."""
    with storage_errors(directory):
        database = open_for_reading(directory)
        try:
            rows = database.execute(
                "SELECT source_id, COUNT(*), MAX(json_extract(metadata, '$.updated_at')) FROM versions WHERE removed_seq IS NULL "
                "GROUP BY source_id ORDER BY source_id"
            ).fetchall()
        finally:
            database.close()
    return {SourceId(source): SourceCount(count, None if newest is None else _moment(newest)) for source, count, newest in rows}


def _moment(text: str) -> datetime:
    return msgspec.convert(text, datetime, strict=False)
