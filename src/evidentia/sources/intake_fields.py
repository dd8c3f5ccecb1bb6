"""The fields of a proposal, each read from whatever the source put there into a plain value that is safe to keep.

Every function here may be given an object whose methods lie or raise; what it raises is for the intake to catch. Whatever is not
what it should be is left out and noted in `faults`, except where leaving it out would show somebody more than the source meant.
"""

from __future__ import annotations

import codecs
import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import islice, pairwise
from numbers import Integral, Real
from typing import Final
from uuid import UUID

from evidentia.contracts.access import AccessRule, is_acl_entry
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.ids import TenantId
from evidentia.contracts.vocabulary import Classification, ContentType
from evidentia.text.counting import truncate

PLAIN_TEXT: Final = "text/plain"
MAX_ID_CHARS: Final = 200
MAX_TITLE_CHARS: Final = 300
MAX_ORIGIN_CHARS: Final = 2_000
MAX_ACL_ENTRIES: Final = 256

_UTF8_BYTES: Final = 4
_HASHED_ID_CHARS: Final = 65_536
_ID_STEM_CHARS: Final = 100
_MAX_ID_BITS: Final = 256
_MAX_DATE_CHARS: Final = 64
_MAX_WORD_CHARS: Final = 100
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_ACCESS_FIELDS: Final = tuple(AccessRule.__struct_fields__)


def read_content(value: object, *, most: int) -> tuple[str, bool]:
    """Return the first `most` characters of a content and whether there are more; bytes are read as UTF-8."""
    if isinstance(value, str):
        return exact_text(value, most=most), str.__len__(value) > most
    if not isinstance(value, (bytes, bytearray)):
        raise RefusedError(Fault.NOT_TEXT)
    is_whole = len(value) <= most * _UTF8_BYTES
    try:
        text, _ = codecs.utf_8_decode(bytes(memoryview(value)[: most * _UTF8_BYTES]), "strict", is_whole)
    except UnicodeDecodeError as error:
        raise RefusedError(Fault.NOT_TEXT) from error
    return text[:most], not is_whole or len(text) > most


def read_id(value: object, faults: list[Fault]) -> str:
    """Return an id as one line of at most `MAX_ID_CHARS`; empty when there is none. A longer one ends in its hash."""
    if value is None:
        return ""
    if isinstance(value, str) and is_clean_line(value, most=MAX_ID_CHARS):
        return value
    if isinstance(value, UUID):
        value = UUID.__str__(value)
    elif not isinstance(value, bool) and isinstance(value, Integral):
        value = _digits(value)
    if not isinstance(value, str):
        faults.append(Fault.BAD_ID)
        return ""
    own_id = clean_line(value, most=MAX_ID_CHARS + 1)
    if not own_id or (len(own_id) <= MAX_ID_CHARS and str.__len__(value) <= MAX_ID_CHARS):
        return own_id
    whole = exact_text(value, most=_HASHED_ID_CHARS).encode("utf-8", "surrogatepass")
    return f"{own_id[:_ID_STEM_CHARS]}~{sha256_hex(whole)}"


def read_share(value: object, *, scale: int, fault: Fault, faults: list[Fault]) -> int | None:
    """Return a number from 0 to 1 as an integer that counts in `scale`; None when there is none."""
    if value is None:
        return None
    share = _number(value)
    if 0 <= share <= 1:
        return round(share * scale)
    faults.append(fault)
    return None


def read_moment(value: object, *, latest: datetime, faults: list[Fault]) -> datetime | None:
    """Return a moment in UTC; one without a zone, or after `latest`, is none."""
    if _is_absent(value):
        return None
    moment = value if type(value) is datetime and value.tzinfo is UTC else _moment(value)
    if moment is None:
        faults.append(Fault.BAD_DATE)
        return None
    if moment > latest:
        faults.append(Fault.FUTURE_DATE)
        return None
    return moment


def read_line(value: object, *, most: int, fault: Fault, faults: list[Fault]) -> str:
    """Return a text as one line, cut after `most` characters; empty when there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        faults.append(fault)
        return ""
    if is_clean_line(value, most=most):
        return value
    line = clean_line(value, most=most + 1)
    if len(line) > most:
        faults.append(fault)
    return clean_line(line, most=most)


def read_media_type(value: object, faults: list[Fault]) -> str:
    """Return a media type without its parameters, in lower case; plain text when there is none."""
    if (type(value) is str and value == PLAIN_TEXT) or _is_absent(value):
        return PLAIN_TEXT
    if isinstance(value, str):
        word = exact_text(value, most=_MAX_WORD_CHARS * 2).partition(";")[0].strip().lower()
        if _MEDIA_TYPE.fullmatch(word):
            return word
    faults.append(Fault.BAD_MEDIA_TYPE)
    return PLAIN_TEXT


def read_content_type(value: object, faults: list[Fault]) -> ContentType:
    """Return what a document is for, by its word; documentation when there is none."""
    if type(value) is ContentType:
        return value
    if _is_absent(value):
        return ContentType.DOCUMENTATION
    if isinstance(value, str):
        try:
            return ContentType(exact_text(value, most=_MAX_WORD_CHARS))
        except ValueError:
            pass
    faults.append(Fault.BAD_CONTENT_TYPE)
    return ContentType.DOCUMENTATION


def read_access(value: object, *, least: AccessRule) -> AccessRule:
    """Return an access rule that is `least` or stricter; one that is not understood is refused, since unknown is denied."""
    if value is None:
        return least
    if isinstance(value, AccessRule):
        fields: dict[object, object] = {name: getattr(value, name) for name in _ACCESS_FIELDS}
    elif isinstance(value, Mapping):
        fields = dict(islice(value.items(), len(_ACCESS_FIELDS) + 1))
    else:
        raise RefusedError(Fault.BAD_ACCESS)
    if any(name not in _ACCESS_FIELDS for name in fields):
        raise RefusedError(Fault.BAD_ACCESS)
    stated = {name: field for name, field in fields.items() if field is not None}
    tenant = _tenant(stated.get("tenant", least.tenant))
    classification = _classification(stated.get("classification", least.classification))
    return AccessRule(
        tenant=tenant,
        classification=max(classification, least.classification, key=lambda each: each.rank),
        acl=_acl(stated.get("acl", ())),
    )


def _digits(value: Integral) -> str | None:
    """Return a number that names something in digits; None when it is absurdly long."""
    whole = int(value)
    return str(whole) if whole.bit_length() <= _MAX_ID_BITS else None


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and str.__len__(value) == 0)


def _number(value: object) -> float:
    """Return a number; infinity for what is none, and for truth values, which are none either."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.inf
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            if str.__len__(value) > _MAX_DATE_CHARS:
                return None
            value = datetime.fromisoformat(exact_text(value, most=_MAX_DATE_CHARS).strip())
        if not isinstance(value, datetime) or value.utcoffset() is None:
            return None
        moment = value.astimezone(UTC)
        # A subclass of datetime, as data frames have it, becomes a plain one.
        return datetime.combine(moment.date(), moment.time(), tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _tenant(value: object) -> TenantId:
    if isinstance(value, str):
        tenant = exact_text(value, most=MAX_ID_CHARS + 1)
        if 0 < len(tenant) <= MAX_ID_CHARS and tenant.isprintable():
            return TenantId(tenant)
    raise RefusedError(Fault.BAD_ACCESS)


def _classification(value: object) -> Classification:
    if not isinstance(value, str):
        raise RefusedError(Fault.BAD_ACCESS)
    try:
        return Classification(exact_text(value, most=_MAX_WORD_CHARS))
    except ValueError as error:
        raise RefusedError(Fault.BAD_ACCESS) from error


def _acl(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise RefusedError(Fault.BAD_ACCESS)
    entries = list(islice(value, MAX_ACL_ENTRIES + 1))
    if len(entries) > MAX_ACL_ENTRIES:
        raise RefusedError(Fault.BAD_ACCESS)
    return tuple(sorted({_acl_entry(each) for each in entries}))


def _acl_entry(value: object) -> str:
    if isinstance(value, str):
        entry = exact_text(value, most=MAX_ID_CHARS)
        if is_acl_entry(entry, is_written=False):
            return entry
    raise RefusedError(Fault.BAD_ACCESS)


# --- intake faults ---
# What can be wrong with what a source proposes, in the words that coverage reports use.


class Fault(StrEnum):
    """Something that was refused, cut or put right."""

    NOT_A_CANDIDATE = "not_a_candidate"
    """Refused: it has none of the shapes that are read."""
    UNREADABLE = "unreadable"
    """Refused: it raises when it is read."""
    NOT_TEXT = "not_text"
    """Refused: its content is no text."""
    EMPTY = "empty"
    """Refused: nothing is left of its content once it is clean."""
    BAD_ACCESS = "bad_access"
    """Refused: it limits access in words that are not understood."""
    BROKEN_CUSTODY = "broken_custody"
    """Refused: the custody chain it came with does not hold."""
    DUPLICATE_ID = "duplicate_id"
    """Refused: another candidate of the reply has its id."""
    TOO_MANY = "too_many"
    """Not read: as many candidates as are taken had come."""
    REPLY_TOO_LARGE = "reply_too_large"
    """Not read any further: as many characters as are taken had come."""
    TOO_LONG = "too_long"
    """Cut: its content was longer than a candidate's may be."""
    BAD_ID = "bad_id"
    """Put right: its id is no name; the hash of its content stands in."""
    BAD_SCORE = "bad_score"
    """Left out: its score is no number from 0 to 1, so the order of the reply holds."""
    BAD_CONFIDENCE = "bad_confidence"
    """Left out: its confidence is no number from 0 to 1."""
    BAD_DATE = "bad_date"
    """Left out: its date cannot be read, or has no time zone."""
    FUTURE_DATE = "future_date"
    """Left out: it says it was changed after the moment that was asked about."""
    BAD_MEDIA_TYPE = "bad_media_type"
    """Put right: its media type is none; plain text stands in."""
    BAD_CONTENT_TYPE = "bad_content_type"
    """Put right: its kind of content is not known; documentation stands in."""
    BAD_TITLE = "bad_title"
    """Left out or cut: its title is no text, or too long."""
    BAD_ORIGIN = "bad_origin"
    """Left out or cut: its origin is no text, or too long."""
    BAD_METADATA = "bad_metadata"
    """Left out: some of its metadata is not what names and short values are."""
    RESERVED_METADATA = "reserved_metadata"
    """Left out: some of its metadata claims what only the registry or the engine says."""
    METADATA_CUT = "metadata_cut"
    """Left out: it has more metadata than is kept, or longer values."""


CUT_FLAG = "cut_by_intake"
"""On a candidate whose content was cut."""
NO_ORIGIN_FLAG = "no_origin"
"""On a candidate that does not say where it can be found."""


class RefusedError(Exception):
    """A proposal is not taken; never leaves the intake."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


# --- intake metadata ---
# The metadata of a proposal: short names with short values, and nothing that only the registry or the engine may say.

OWN_PREFIX: Final = "evidentia."
"""Names that begin so are between parts of the engine."""
READ_ELSEWHERE: Final = frozenset({"content_type", "media_type", "title", "updated_at"})
"""Names that fields of a candidate have; fragments show those, so metadata of that name is dropped without a word."""
RESERVED: Final = frozenset(
    {
        *("acl", "authority_tier", "chunk_id", "classification", "confidence_basis", "document_id", "origin"),
        *("retrieved_at", "source_id", "tenant", "token_count_basis"),
    }
)
"""Names under which only the registry and the engine speak."""
MAX_ENTRIES: Final = 32
MAX_VALUE_CHARS: Final = 1_000

_MAX_READ: Final = 256
_MAX_NUMBER_BITS: Final = 256
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_NAME_LENGTH: Final = 64


def read_metadata(value: object, faults: list[Fault]) -> dict[str, str]:
    """Return what is kept, ordered by name: the first 32. Of a mapping with more than 256 entries nothing is, whatever their order."""
    if value is None or (type(value) is dict and not value):
        return {}
    entries = list(islice(value.items(), _MAX_READ + 1)) if isinstance(value, Mapping) else None
    if entries is None or len(entries) > _MAX_READ:
        faults.append(Fault.BAD_METADATA)
        return {}
    noted: set[Fault] = set()
    kept = sorted(entry for each in entries if (entry := _read_entry(each, noted)) is not None)
    if len(kept) > MAX_ENTRIES:
        noted.add(Fault.METADATA_CUT)
    faults += sorted(noted)
    return dict(kept[:MAX_ENTRIES])


def _read_entry(entry: object, noted: set[Fault]) -> tuple[str, str] | None:
    if not isinstance(entry, tuple) or len(entry) != len(("name", "value")):
        noted.add(Fault.BAD_METADATA)
        return None
    name = exact_text(entry[0], most=_MAX_NAME_LENGTH + 1) if isinstance(entry[0], str) else ""
    if not _NAME.fullmatch(name):
        noted.add(Fault.BAD_METADATA)
        return None
    if name in READ_ELSEWHERE or entry[1] is None:
        return None
    if name in RESERVED or name.startswith(OWN_PREFIX):
        noted.add(Fault.RESERVED_METADATA)
        return None
    return _with_value(name, entry[1], noted)


def _with_value(name: str, value: object, noted: set[Fault]) -> tuple[str, str] | None:
    text = _value_text(value)
    if text is None:
        noted.add(Fault.BAD_METADATA)
        return None
    line = clean_line(text, most=MAX_VALUE_CHARS + 1)
    if len(line) > MAX_VALUE_CHARS:
        noted.add(Fault.METADATA_CUT)
    return name, clean_line(line, most=MAX_VALUE_CHARS)


def _value_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and int(value).bit_length() <= _MAX_NUMBER_BITS:
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, date):
        return value.isoformat()
    return None


# --- intake text ---
# Text from outside made safe to keep: bounded, in one form, and showing a reader all that it holds.
#
# Removed is what hides or reorders what a reader sees: control characters, unpaired surrogates, marks that override the direction of
# writing, zero-width characters, tags. A joiner stays where it shapes letters of a script that joins or an emoji, and a variation
# selector where it is the only one. Nothing here costs more than a small multiple of the length that it is allowed to read.

_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
# What is not printable by Python's own measure covers all else that is removed, and is found much sooner.
_UNSEEN_YET_PRINTABLE: Final = re.compile(f"[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0{_SELECTORS}]")
_REPEATED_SELECTORS: Final = re.compile(f"([{_SELECTORS}])[{_SELECTORS}]+")
# Latin letters and their marks never join, so a joiner beside one only hides a word from a search for it.
_LOOSE_JOINERS: Final = re.compile(
    f"(?<![^\x00-\u036f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u036f\u200c\u200d{_SELECTORS}])"
)
_JOINERS: Final = "\u200c\u200d"
_BEYOND_LATIN: Final = re.compile("[\u0300-\U0010ffff]")
# The only characters that are no marks and yet decompose into nothing but marks.
_DOUBLE_MARKS: Final = (("\u0f73", "\u0f71\u0f72"), ("\u0f75", "\u0f71\u0f74"), ("\u0f81", "\u0f71\u0f80"))
_MAX_MARKS: Final = 30
"""As many marks may follow a letter as in the stream-safe form of Unicode (UAX 15); sorting them costs the square of their number."""
_LONG_MARK_RUN: Final = re.compile(rb"[^\x00]{%d,}" % (_MAX_MARKS + 1))
_LOOK_BACK: Final = 2_000
_LOOK_AHEAD: Final = 256
_SLACK: Final = 4
"""Of a line, this many times its allowed length is read, since cleaning makes it shorter."""


def exact_text(value: str, *, most: int) -> str:
    """Return the first characters of a text as a plain `str`; a subclass has no say in it, and a longer text costs nothing."""
    if type(value) is str and len(value) <= most:
        return value
    return str.__getitem__(value, slice(0, max(0, most)))


def is_clean_line(value: object, *, most: int) -> bool:
    """Tell, soon and for most lines, that a value is a text which cleaning would leave as it is; False says nothing."""
    return (
        type(value) is str
        and len(value) <= most
        and value.isascii()
        and value.isprintable()
        and "  " not in value
        and value[:1] != " "
        and value[-1:] != " "
    )


def clean_text(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), with lines that end in a line feed and without what is not to be seen."""
    if text.isascii() and text.isprintable():
        return text
    if text.replace("\n", " ").replace("\t", " ").isprintable() and not _UNSEEN_YET_PRINTABLE.search(text):
        return _composed(text)
    seen = _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))
    composed = _composed(_REPEATED_SELECTORS.sub(r"\1", seen))
    joined = _LOOSE_JOINERS.sub("", composed)
    # What stood on both sides of a joiner may compose, and selectors may meet.
    return composed if joined == composed else _composed(_REPEATED_SELECTORS.sub(r"\1", joined))


def clean_line(value: str, *, most: int) -> str:
    """Return the first `most` characters of a text as one clean line."""
    if is_clean_line(value, most=most):
        return value
    line = " ".join(clean_text(exact_text(value, most=most * _SLACK)).split())
    return line[:most].rstrip(f" {_JOINERS}")


def cut_text(text: str, *, most: int) -> str:
    """Return at most `most` characters of a clean text: up to a sentence end near their end, else up to the last one."""
    if len(text) <= most:
        return text
    start = max(most // 2, most - _LOOK_BACK)
    ending = truncate(text[start : most + _LOOK_AHEAD], tokens=most - start, count=len)
    return text[: start + len(ending)] if ending else text[:most].rstrip(_JOINERS)


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", _without_towers(text))


def _without_towers(text: str) -> str:
    """Return a text in which no letter carries more marks than `_MAX_MARKS`."""
    if not _BEYOND_LATIN.search(text):
        return text
    for double, single in _DOUBLE_MARKS:
        text = text.replace(double, single)
    classes = bytes(map(unicodedata.combining, text))
    runs = [found.span() for found in _LONG_MARK_RUN.finditer(classes)]
    if not runs:
        return text
    edges = [0, *(edge for start, end in runs for edge in (start + _MAX_MARKS, end)), len(text)]
    return "".join(text[start:end] for start, end in list(pairwise(edges))[::2])
