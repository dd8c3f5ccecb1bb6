"""What documents hold besides their text, by hash: layouts, images and the cells of tables.

A layout is found through the metadata of a version, everything else through a layout. What no version that is left leads to
goes with a collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.backends.embedded import rows, schema
from evidentia.backends.embedded.database import select_in
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError
from evidentia.contracts.ids import DocumentId, Sha256
from evidentia.provenance.layouts import decode_layout, named_hashes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.layout import DocumentLayout

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


def read(database: sqlite3.Connection, content_hash: Sha256) -> bytes | None:
    """Return what has a hash; None where nothing has."""
    if not schema.holds_attachments(database):
        return None
    row = database.execute("SELECT body FROM attachments WHERE content_hash = ?", (_key(content_hash),)).fetchone()
    return None if row is None else bytes(row[0])


def live_layout(database: sqlite3.Connection, document_id: DocumentId) -> DocumentLayout | None:
    """Return the layout of a live document; None where it has none."""
    row = database.execute(_LIVE, (document_id,)).fetchone()
    return None if row is None else layout_named(database, rows.decode_metadata(row[0]).layout, where=document_id)


def layout_named(database: sqlite3.Connection, layout: Sha256 | None, *, where: str) -> DocumentLayout | None:
    """Return the layout that has a hash; one that should be there and is not is damage."""
    if layout is None:
        return None
    encoded = read(database, layout)
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
    found = select_in(database, _BODIES, [_key(each) for each in dict.fromkeys(layouts)])
    return {name: decoded_layout(bytes(body), name) for key, body in found for name in (Sha256(key.hex()),)}


def laid_out_versions(database: sqlite3.Connection) -> list[LaidOutVersion]:
    """Return every stored version that has a layout: live ones first, by document, the newest first."""
    if not schema.holds_attachments(database):
        return []
    found = [(row, rows.decode_metadata(row[1]).layout) for row in database.execute(_VERSIONS)]
    layouts = layouts_named(database, [named for _, named in found if named is not None])
    return [
        LaidOutVersion(document_id, metadata, rule, last_metadata, last_rule, bool(is_live), layouts[named])
        for (document_id, metadata, rule, last_metadata, last_rule, is_live), named in found
        if named in layouts
    ]


def sweep(database: sqlite3.Connection) -> None:
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
    wanted = [named for (metadata,) in found if (named := rows.decode_metadata(metadata).layout) is not None]
    for name, layout in layouts_named(database, wanted).items():
        yield _key(name)
        yield from map(_key, named_hashes(layout))


def _key(content_hash: str) -> bytes:
    """Return the key of a row; what is no hash names none."""
    try:
        return bytes.fromhex(content_hash)
    except ValueError:
        return b""
