"""Which tables and images a caller may see, over all documents of the newest version.

The list is read once per state of the documents, without a single cell; cells are read when a table is opened, and a bounded number of
them is kept. An image can also be had from an older version that is still readable, as the answers can that show it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded import rows
from evidentia.backends.embedded.columns import record_of
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import BaseDamagedError, NotFoundError
from evidentia.contracts.predicates import matches
from evidentia.contracts.tables import OpenTable
from evidentia.policy.access import is_allowed
from evidentia.provenance.layouts import decode_content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.backends.embedded.attachments import LaidOutVersion
    from evidentia.backends.embedded.reader import EmbeddedReader
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.tables import TableCard, TableContent, TableId

KEPT_SCOPES = 16
KEPT_CELLS = 2_000_000
"""How many cells are kept of tables that were opened; a larger table is read each time."""


class _Listing:
    """What the versions that can be read hold, and what each scope sees of it."""

    def __init__(self, versions: Sequence[LaidOutVersion]) -> None:
        self._versions = versions
        self._images: dict[Sha256, list[tuple[int, str]]] = {}
        for number, version in enumerate(versions):
            for image in version.layout.images:
                self._images.setdefault(image.image_hash, []).append((number, image.media_type))
        self._cards: OrderedDict[str, tuple[TableCard, ...]] = OrderedDict()

    def cards(self, scope: AccessScope | None) -> tuple[TableCard, ...]:
        key = "" if scope is None else scope.fingerprint
        found = self._cards.get(key)
        if found is None:
            found = self._cards[key] = tuple(self._visible_cards(scope))
            while len(self._cards) > KEPT_SCOPES:
                self._cards.popitem(last=False)
        self._cards.move_to_end(key)
        return found

    def media_type(self, image_hash: Sha256, scope: AccessScope | None) -> str | None:
        """Return what a visible document says an image is; None where none shows it. Live documents come first."""
        places = self._images.get(image_hash, ())
        return next((media_type for number, media_type in places if _shows(self._versions[number], scope)), None)

    def _visible_cards(self, scope: AccessScope | None) -> Iterator[TableCard]:
        for version in self._versions:
            if version.is_live and version.layout.tables and _shows(version, scope):
                yield from version.layout.tables


class LayoutCatalogue:
    """Lists tables and finds images and cells; a scope of None sees everything. Thread safe."""

    def __init__(self, reader: EmbeddedReader, *, kept_cells: int = KEPT_CELLS) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._newest: tuple[tuple[Sha256, int], _Listing] | None = None
        self._most_cells = kept_cells
        self._kept: OrderedDict[Sha256, TableContent] = OrderedDict()
        self._kept_cells = 0

    def cards(self, scope: AccessScope | None) -> tuple[TableCard, ...]:
        """Return the tables of live documents that a scope shows, by document, and within it in the order of the file."""
        with self._lock:
            return self._listing().cards(scope)

    def table(self, table_id: TableId, scope: AccessScope | None) -> OpenTable:
        """Return a table that a scope shows with its cells, or raise NotFoundError."""
        card = next((card for card in self.cards(scope) if card.table_id == table_id), None)
        if card is None:
            raise NotFoundError("table", table_id)
        return OpenTable(card=card, content=self.content(card))

    def content(self, card: TableCard) -> TableContent:
        """Return the cells of a table; whoever has its card may see them."""
        with self._lock:
            kept = self._kept.get(card.content)
            if kept is not None:
                self._kept.move_to_end(card.content)
                return kept
        content = self._read(card)
        with self._lock:
            self._keep(card.content, content)
        return content

    def image(self, image_hash: Sha256, scope: AccessScope | None) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image that a scope shows, or raise NotFoundError."""
        with self._lock:
            media_type = self._listing().media_type(image_hash, scope)
        content = None if media_type is None else self._reader.attachment(image_hash)
        if media_type is None or content is None:
            raise NotFoundError("image", image_hash)
        if sha256_hex(content) != image_hash:
            raise BaseDamagedError(f"image '{image_hash[:16]}'", "its bytes do not have the hash that names them")
        return media_type, content

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

    def _keep(self, key: Sha256, content: TableContent) -> None:
        if key in self._kept or _cells(content) > self._most_cells:
            return
        self._kept[key] = content
        self._kept_cells += _cells(content)
        while self._kept_cells > self._most_cells:
            _, dropped = self._kept.popitem(last=False)
            self._kept_cells -= _cells(dropped)


def _cells(content: TableContent) -> int:
    return len(content.rows) * (1 + len(content.columns))


def _shows(version: LaidOutVersion, scope: AccessScope | None) -> bool:
    """Tell whether a scope shows a version: by the rule it was stored under, and by the last one its document had."""
    if scope is None:
        return True
    sides = {(version.metadata, version.rule), (version.last_metadata, version.last_rule)}
    return all(
        is_allowed(rows.decode_access(rule), scope)
        and all(matches(each, record_of(version.document_id, metadata, rule)) for each in scope.rules)
        for metadata, rule in sides
    )
