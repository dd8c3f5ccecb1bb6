"""What a caller gets of a base's contents besides answers: documents, chunks, layouts, images, tables and notes, as one text each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.base import administration, visible_content
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.layout import ExtractedImage
from evidentia.contracts.sources import Note
from evidentia.provenance.layout_custody import decode_layout
from evidentia.testing.documents import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from engine.small_base import SmallBase
    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.ids import DocumentId, Sha256
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.tables import ExtractedTable, TableId
    from evidentia.wiring.components import BaseComponents

PICTURES = tuple(b"\x89PNG" + bytes([number]) for number in range(6))
SHEETS = ("Prices", "Cranes", "Tides")
QUESTIONS = ("which product has a price over 10", "how many products are there", "the tide of the crane", "sum of price by product")
_OF_THE_LOG = {"event_index", "custody", "custody_head"}


def drawn_layout(rng: Random) -> tuple[tuple[ExtractedImage, ...], tuple[ExtractedTable, ...]]:
    """Return pictures and tables for a document; most have none, and several documents share one."""
    if rng.random() > 0.4:
        return (), ()
    pictures = rng.sample(PICTURES, rng.randint(0, 2))
    images = tuple(ExtractedImage(content=each, media_type="image/png", name=f"picture {each[-1]}") for each in pictures)
    return images, tuple(msgspec.structs.replace(TABLE, sheet_name=each) for each in rng.sample(SHEETS, rng.randint(0, 2)))


def layout_of(document: PreparedDocument) -> DocumentLayout | None:
    """Return the layout that a document brings."""
    named = {each.content_hash: each.content for each in document.attachments}
    layout = document.metadata.layout
    return None if layout is None else decode_layout(named[layout])


def remember(base: SmallBase, people: Iterable[Principal]) -> None:
    """Have people write one note each."""
    for person in people:
        key = f"{person.tenant} {person.principal_id}"
        note = Note(
            note_id=key,
            tenant=person.tenant,
            owner=person.principal_id,
            agent_name="agent",
            session="",
            text=f"the pier of {key}",
            written_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        base.parts.notes.add(note)


def contents(
    base: SmallBase, person: Principal, *, documents: Iterable[DocumentId], tables: Iterable[TableId]
) -> Iterator[tuple[str, str]]:
    """Yield what is asked, and what the person gets or how it is refused."""
    parts = base.parts.components()
    yield "documents", _told(visible_content.documents, parts, person, after="", limit=None)
    yield "tables", _told(visible_content.tables, parts, person)
    for question in QUESTIONS:
        yield f"ask {question}", _told(visible_content.ask_tables, parts, person, question, limit=20)
    for table in tables:
        yield f"table {table}", _told(visible_content.open_table, parts, person, table)
    for document in documents:
        yield f"chunks {document}", _told(_chunks, parts, document, person)
        yield f"layout {document}", _told(visible_content.layout, parts, person, document)
    yield "notes", _told(administration.notes, parts, person, agent=None, session=None)


def shown_image(base: SmallBase, person: Principal, picture: Sha256) -> bool:
    """Tell whether a person gets an image."""
    try:
        visible_content.image(base.parts.components(), person, picture)
    except EvidentiaError:
        return False
    return True


def _chunks(parts: BaseComponents, document: DocumentId, person: Principal) -> list[dict[str, object]]:
    found = visible_content.chunks(parts, document, person)
    return [{name: getattr(each, name) for name in each.__struct_fields__ if name not in _OF_THE_LOG} for each in found]


def _told(ask: Callable[..., object], *given: Any, **named: Any) -> str:
    try:
        return msgspec.json.encode(ask(*given, **named)).decode()
    except EvidentiaError as error:
        return f"{type(error).__name__} {error.code}: {error}"
