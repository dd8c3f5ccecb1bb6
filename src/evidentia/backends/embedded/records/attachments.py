"""What documents hold besides their text, by hash: layouts, images and the cells of tables.

A layout is found through the metadata of a version, everything else through a layout. What no version that is left leads to
goes with a collection.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.database import select_in
from evidentia.backends.embedded.records.document_list import RowFilter
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.ids import DocumentId, Sha256
from evidentia.contracts.ports import LayoutCatalogue
from evidentia.contracts.tables import OpenTable, TableCard, TableContent, TableId
from evidentia.foundation.lru import LruCache, SharedLruCache
from evidentia.provenance.layout_custody import decode_content, decode_layout, named_hashes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.backends.embedded.records.reader import EmbeddedReader
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.search import AccessScope


WITH_LAYOUT = """instr(v.metadata, CAST('"layout":"' AS BLOB)) > 0"""
"""Holds for every version with a layout, and for few others: a key of the same name may stand in `extra`."""
_LIVE = "SELECT metadata FROM versions WHERE document_id = ? AND removed_seq IS NULL"
_BODIES = "SELECT content_hash, body FROM attachments WHERE content_hash IN (%s)"
_VERSIONS = f"""SELECT v.document_id, v.metadata, a.rule, l.metadata, b.rule, v.removed_seq IS NULL
    FROM versions v JOIN access_rules a USING (access_key)
    JOIN versions l ON l.version_key = (SELECT max(version_key) FROM versions o WHERE o.document_id = v.document_id)
    JOIN access_rules b ON b.access_key = l.access_key
    WHERE {WITH_LAYOUT} ORDER BY v.removed_seq IS NULL DESC, v.document_id, v.version_key DESC"""


class LaidOutVersion(NamedTuple):
    """A version of a document that has a layout, as stored, with the metadata and rule that its document had last."""

    document_id: DocumentId
    metadata: bytes
    rule: bytes
    last_metadata: bytes
    last_rule: bytes
    is_live: bool
    layout: DocumentLayout


def check_complete(document: PreparedDocument) -> None:
    """Refuse a document whose attachments are not its layout and exactly what that names."""
    given = {each.content_hash: each.content for each in document.attachments}
    layout = document.metadata.layout
    if layout is None and not given:
        return
    if layout is None or layout not in given:
        raise InvalidFieldError("attachments", f"they do not hold the layout that the metadata of '{document.document_id}' names")
    wanted = {layout, *named_hashes(decoded_layout(given[layout], layout))}
    if wanted != given.keys():
        raise InvalidFieldError("attachments", f"they are not what the layout of '{document.document_id}' names")


def live_layout(database: sqlite3.Connection, document_id: DocumentId) -> DocumentLayout | None:
    """Return the layout of a live document; None where it has none."""
    row = database.execute(_LIVE, (document_id,)).fetchone()
    return None if row is None else layout_named(database, schema.decode_metadata(row[0]).layout, where=document_id)


def layout_named(database: sqlite3.Connection, layout: Sha256 | None, *, where: str) -> DocumentLayout | None:
    """Return the layout that has a hash; one that should be there and is not is damage."""
    if layout is None:
        return None
    encoded = schema.attachment(database, layout)
    if encoded is None:
        raise BaseDamagedError(f"document '{where}'", "its layout is missing")
    return decoded_layout(encoded, layout)


def decoded_layout(encoded: bytes, layout: Sha256) -> DocumentLayout:
    """Return a layout from its bytes, which have to be those that its hash names: what is read decides who is shown what."""
    if sha256_hex(encoded) != layout:
        raise BaseDamagedError(f"layout '{layout[:16]}'", "its bytes do not have the hash that names them")
    try:
        return decode_layout(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BaseDamagedError(f"layout '{layout[:16]}'", f"it cannot be read ({error})") from error


def layouts_named(database: sqlite3.Connection, layouts: Iterable[Sha256]) -> dict[Sha256, DocumentLayout]:
    """Return those of the layouts that are there."""
    found = select_in(database, _BODIES, [schema.attachment_key(each) for each in dict.fromkeys(layouts)])
    return {name: decoded_layout(bytes(body), name) for key, body in found for name in (Sha256(key.hex()),)}


def laid_out_versions(database: sqlite3.Connection) -> list[LaidOutVersion]:
    """Return every stored version that has a layout: live ones first, by document, the newest first."""
    if not schema.holds_attachments(database):
        return []
    found = [(row, schema.decode_metadata(row[1]).layout) for row in database.execute(_VERSIONS)]
    layouts = layouts_named(database, [named for _, named in found if named is not None])
    return [
        LaidOutVersion(document_id, metadata, rule, last_metadata, last_rule, bool(is_live), layouts[named])
        for (document_id, metadata, rule, last_metadata, last_rule, is_live), named in found
        if named in layouts
    ]


def delete_unnamed(database: sqlite3.Connection) -> None:
    """Remove what no version that is left leads to, in the transaction that is open."""
    database.executemany("DELETE FROM attachments WHERE content_hash = ?", [(key,) for key in unnamed(database)])


def unnamed(database: sqlite3.Connection) -> list[bytes]:
    """Return the hashes of what no version leads to, in order."""
    if not schema.holds_attachments(database):
        return []
    stored = [bytes(key) for (key,) in database.execute("SELECT content_hash FROM attachments ORDER BY content_hash")]
    named = set(_named(database)) if stored else set()
    return [key for key in stored if key not in named]


def _named(database: sqlite3.Connection) -> Iterator[bytes]:
    found = database.execute(f"SELECT DISTINCT v.metadata FROM versions v WHERE {WITH_LAYOUT}")
    wanted = [named for (metadata,) in found if (named := schema.decode_metadata(metadata).layout) is not None]
    for name, layout in layouts_named(database, wanted).items():
        yield schema.attachment_key(name)
        yield from map(schema.attachment_key, named_hashes(layout))


# --- layout catalogue ---
# Which tables and images a caller may see, over all documents of the newest version.
#
# The list is read once per state of the documents, without a single cell; cells are read when a table is opened, and a bounded number of
# them is kept. An image can also be had from an older version that is still readable, as the answers can that show it.

KEPT_SCOPES = 16
KEPT_CELLS = 2_000_000
"""How many cells are kept of tables that were opened; a larger table is read each time."""


class _SeenLayouts(NamedTuple):
    """The tables of live documents, what kind of image has which hash, and the documents that show it."""

    cards: tuple[TableCard, ...]
    media_types: dict[Sha256, str]
    showing: dict[Sha256, tuple[DocumentId, ...]]


class _Listing:
    """What the versions that can be read hold, and what each scope sees of it."""

    def __init__(self, versions: Sequence[LaidOutVersion]) -> None:
        self._versions = versions
        self._seen: LruCache[str, _SeenLayouts] = LruCache(KEPT_SCOPES)

    def seen(self, scope: AccessScope | None) -> _SeenLayouts:
        """Return what a scope sees, found once: what is looked for afterwards is looked for among that alone."""
        key = "" if scope is None else scope.fingerprint
        found = self._seen.get(key)
        if found is None:
            found = self._see(RowFilter(scope))
            self._seen.put(key, found)
        return found

    def _see(self, shown: RowFilter) -> _SeenLayouts:
        visible = [version for version in self._versions if _shows(version, shown)]
        media_types: dict[Sha256, str] = {}
        showing: dict[Sha256, dict[DocumentId, None]] = {}
        for version in visible:  # live documents come first
            for image in version.layout.images:
                media_types.setdefault(image.image_hash, image.media_type)
                showing.setdefault(image.image_hash, {})[version.document_id] = None
        cards = tuple(card for version in visible if version.is_live for card in version.layout.tables)
        return _SeenLayouts(cards, media_types, {name: tuple(found) for name, found in showing.items()})


class EmbeddedLayouts(LayoutCatalogue):
    """Lists tables and finds images and cells; a scope of None sees everything. Thread safe."""

    def __init__(self, reader: EmbeddedReader, *, kept_cells: int = KEPT_CELLS) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._newest: tuple[tuple[Sha256, int], _Listing] | None = None
        self._most_cells = kept_cells
        self._kept: SharedLruCache[Sha256, TableContent] = SharedLruCache(max_weight=kept_cells, weigh=_cells)

    def cards(self, scope: AccessScope | None) -> tuple[TableCard, ...]:
        """Return the tables of live documents that a scope shows, by document, and within it in the order of the file."""
        with self._lock:
            return self._listing().seen(scope).cards

    def table(self, table_id: TableId, scope: AccessScope | None) -> OpenTable:
        """Return a table that a scope shows with its cells, or raise NotFoundError."""
        card = next((card for card in self.cards(scope) if card.table_id == table_id), None)
        if card is None:
            raise NotFoundError("table", table_id)
        return OpenTable(card=card, content=self.content(card))

    def content(self, card: TableCard) -> TableContent:
        """Return the cells of a table; whoever has its card may see them."""
        kept = self._kept.get(card.content)
        if kept is not None:
            return kept
        content = self._read(card)
        if _cells(content) <= self._most_cells:
            self._kept.put(card.content, content)
        return content

    def image(self, image_hash: Sha256, scope: AccessScope | None) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image that a scope shows, or raise NotFoundError."""
        with self._lock:
            media_type = self._listing().seen(scope).media_types.get(image_hash)
        content = None if media_type is None else self._reader.attachment(image_hash)
        if media_type is None or content is None:
            raise NotFoundError("image", image_hash)
        if sha256_hex(content) != image_hash:
            raise BaseDamagedError(f"image '{image_hash[:16]}'", "its bytes do not have the hash that names them")
        return media_type, content

    def showing(self, image_hash: Sha256, scope: AccessScope | None) -> Sequence[DocumentId]:
        """Return the documents that show an image within a scope, live ones first."""
        with self._lock:
            return self._listing().seen(scope).showing.get(image_hash, ())

    def _listing(self) -> _Listing:
        """Return the present list; every change of a document is in the log, and a collection moves the oldest readable version."""
        record, _ = self._reader.commit_record()
        if self._newest is None or self._newest[0] != (record.log_root, record.oldest_readable):
            record, versions = self._reader.laid_out()
            self._newest = (record.log_root, record.oldest_readable), _Listing(versions)
        return self._newest[1]

    def _read(self, card: TableCard) -> TableContent:
        where = f"table '{card.table_id}'"
        encoded = self._reader.attachment(card.content)
        if encoded is None:  # its version may have been collected since it was listed
            raise NotFoundError("table", card.table_id)
        if sha256_hex(encoded) != card.content:
            raise BaseDamagedError(where, "its cells do not have the hash that names them")
        try:
            return decode_content(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BaseDamagedError(where, f"its cells cannot be read ({error})") from error


def _cells(content: TableContent) -> int:
    return len(content.rows) * (1 + len(content.columns))


def _shows(version: LaidOutVersion, shown: RowFilter) -> bool:
    """Tell whether a version is shown: by the rule it was stored under, and by the last one its document had."""
    sides = {(version.metadata, version.rule), (version.last_metadata, version.last_rule)}
    return all(shown.shows(version.document_id, metadata, rule) for metadata, rule in sides)
