"""The fields of a proposal, each read from whatever the source put there into a plain value that is safe to keep.

Every function here may be given an object whose methods lie or raise; what it raises is for the intake to catch. Whatever is not
what it should be is left out and noted in `faults`, except where leaving it out would show somebody more than the source meant.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from numbers import Integral, Real
from typing import Final
from uuid import UUID

from evidentia.contracts.access import AccessRule, is_acl_entry
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.ids import TenantId
from evidentia.contracts.vocabulary import Classification, ContentType
from evidentia.sources.intake_faults import Fault, RefusedError
from evidentia.sources.intake_text import clean_line, exact_text, is_clean_line

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
