"""Why something did not get in, and what is worth a note although it did; docs/ingest.md explains every code."""

from __future__ import annotations

from evidentia.contracts.vocabulary import Vocabulary


class SkipReason(Vocabulary):
    """A stable code for each way in which a file or a line stays out."""

    ARCHIVE_BOMB = "archive_bomb"
    BAD_CLAIM = "bad_claim"
    BAD_ENCODING = "bad_encoding"
    BAD_ID = "bad_id"
    BAD_LINE = "bad_line"
    BAD_NAME = "bad_name"
    CALL_TIMEOUT = "call_timeout"
    DAMAGED = "damaged"
    DUPLICATE_ID = "duplicate_id"
    EMPTY = "empty"
    ENCRYPTED = "encrypted"
    IS_A_BASE = "is_a_base"
    LINE_TOO_LONG = "line_too_long"
    LINK_DANGLING = "link_dangling"
    LINK_LOOP = "link_loop"
    LINK_OUTSIDE_ROOT = "link_outside_root"
    LINK_REPEATED = "link_repeated"
    MORE_LINES = "more_lines"
    NESTED_TOO_DEEP = "nested_too_deep"
    NO_TEXT = "no_text"
    NOT_A_CORPUS = "not_a_corpus"
    NOT_A_FILE = "not_a_file"
    NUL_BYTE = "nul_byte"
    READER_CRASHED = "reader_crashed"
    READER_TIMEOUT = "reader_timeout"
    TEXT_TOO_LONG = "text_too_long"
    TOO_LARGE = "too_large"
    TYPE_MISMATCH = "type_mismatch"
    UNREADABLE = "unreadable"
    UNSUPPORTED_TYPE = "unsupported_type"
    XML_ENTITIES = "xml_entities"


class NoteReason(Vocabulary):
    """A stable code for each remark about something that did get in, or was left as it was."""

    CLAIM_IGNORED = "claim_ignored"
    CHARACTERS_REPLACED = "characters_replaced"
    FRONT_MATTER = "front_matter"
    IMAGES_LEFT_OUT = "images_left_out"
    MORE_NOTES = "more_notes"
    NOT_PRUNED = "not_pruned"
    TABLES_LEFT_OUT = "tables_left_out"
    REPLACED_RECORD = "replaced_record"
    UNKNOWN_KEY = "unknown_key"
    VECTORS_LATER = "vectors_later"
    VERSION_CONTROL = "version_control"


# --- naming ---
# File names as they may be shown to people: one line, no control characters, bounded; refuses to change what a name is.

MAX_SHOWN_LENGTH = 200


def legible(name: str) -> str:
    r"""Return `name` fit for a message: what cannot be printed is written as an escape such as `\x1b` or `\u202e`."""
    if name.isprintable() and len(name) <= MAX_SHOWN_LENGTH:
        return name
    shown = name if len(name) <= MAX_SHOWN_LENGTH else f"{name[: MAX_SHOWN_LENGTH - 1]}…"
    return "".join(_printable(character) for character in shown)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
