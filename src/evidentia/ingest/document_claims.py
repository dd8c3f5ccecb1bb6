"""From what a document says about itself to its metadata and access: claims may lower trust and tighten access, never the opposite.

Refuses an access claim it cannot understand: a document that wants to be closed must not come in open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.access import AccessRule, is_acl_entry
from evidentia.contracts.documents import DocumentMetadata, IngestOptions
from evidentia.contracts.errors import DocumentUnreadableError, InvalidFieldError
from evidentia.contracts.ids import PrincipalId, SemanticVersion
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType, DeprecationStatus, Vocabulary
from evidentia.ingest.reasons import NoteReason, SkipReason, legible
from evidentia.ingest.version_control import FileHistory, parse_moment
from evidentia.text.edits import distance
from evidentia.text.names import SOURCE_NAME_RULE, is_source_name

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.settings import IngestSettings


MAX_VALUE_LENGTH = 500
MAX_TAG_LENGTH = 100
MAX_KEY_LENGTH = 64
MAX_WORD_LENGTH = 40
MAX_TAGS = 64
MAX_EXTRA_KEYS = 32

_KEY_PART = re.compile(r"[^a-z0-9_.-]+")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_KNOWN = (
    *("title", "author", "created", "created_at", "updated", "updated_at", "date", "tags", "version", "language"),
    *("content_type", "status", "deprecation_status", "classification", "authority", "authority_tier", "acl"),
)
_LONG_KEY = 8
"""In a key of so many letters two may be wrong, in a shorter one one."""
_SHORT_KEY = 5
"""A key of fewer is another word as soon as a letter differs: `data` is no `date`."""

_Word = TypeVar("_Word", bound=Vocabulary)

Declared = Mapping[str, str | tuple[str, ...]]


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a document's claims."""

    metadata: DocumentMetadata
    access: AccessRule
    notes: tuple[str, ...] = ()


def apply_claims(declared: Declared, *, defaults: DocumentMetadata, options: IngestOptions, history: FileHistory | None = None) -> Claims:
    """Return metadata and access from the options, the document's claims and its version control, in that order of power over trust.

    Raises:
        DocumentUnreadableError: The document limits access in words that are not understood.
    """
    reader = _ClaimReader(declared)
    metadata = msgspec.structs.replace(
        defaults,
        title=reader.text("title") or defaults.title,
        content_type=reader.word("content_type", ContentType) or defaults.content_type,
        authority_tier=reader.authority(options.authority),
        language=(reader.text("language") or defaults.language)[:MAX_WORD_LENGTH],
        created_at=reader.moment("created", "created_at") or (history.created_at if history else None),
        updated_at=reader.moment("updated", "updated_at", "date") or (history.updated_at if history else None),
        author=_principal(reader.text("author") or (history.author if history else "")),
        tags=reader.tags(options.tags),
        version=_version(reader.text("version")),
        deprecation_status=reader.word("status", DeprecationStatus)
        or reader.word("deprecation_status", DeprecationStatus)
        or defaults.deprecation_status,
        extra={**defaults.extra, **reader.extra()},
    )
    return Claims(metadata=metadata, access=reader.access(options.access), notes=tuple(reader.notes))


class _ClaimReader:
    """Reads claims one by one and remembers what was not followed."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self.notes: list[str] = []

    def text(self, key: str) -> str:
        value = self._declared.get(key, "")
        return _clean(", ".join(value) if isinstance(value, tuple) else value)

    def entries(self, key: str) -> tuple[str, ...]:
        value = self._declared.get(key, ())
        listed = value.split(",") if isinstance(value, str) else value
        return tuple(entry for entry in (_clean(one) for one in listed) if entry)

    def word(self, key: str, vocabulary: type[_Word]) -> _Word | None:
        text = self.text(key)
        try:
            return vocabulary(text) if text else None
        except ValueError:
            self._ignored(f"'{key}: {_shown(text)}' is none of {', '.join(vocabulary.words())}")
            return None

    def moment(self, *keys: str) -> datetime | None:
        for key in keys:
            text = self.text(key)
            moment = parse_moment(text) if text else None
            if moment is not None:
                return moment
            if text:
                self._ignored(f"'{key}: {_shown(text)}' is no ISO 8601 date")
        return None

    def authority(self, allowed: AuthorityTier) -> AuthorityTier:
        lowest = allowed
        for key in ("authority", "authority_tier"):
            claimed = self.word(key, AuthorityTier)
            if claimed is not None and claimed.rank > allowed.rank:
                self._ignored(f"'{key}: {claimed.value}' would raise it above '{allowed.value}'")
            elif claimed is not None and claimed.rank < lowest.rank:
                lowest = claimed
        return lowest

    def tags(self, given: tuple[str, ...]) -> tuple[str, ...]:
        claimed = sorted({tag[:MAX_TAG_LENGTH] for tag in self.entries("tags")})[:MAX_TAGS]
        return tuple(sorted({*given, *claimed}))

    def access(self, allowed: AccessRule) -> AccessRule:
        classification = self._classification(allowed.classification)
        claimed = self.entries("acl")
        if wrong := [entry for entry in claimed if not is_acl_entry(entry)]:
            raise _bad_claim(f"'acl' entry '{_shown(wrong[0])}' is not of the form user:name, group:name or role:name")
        if claimed and allowed.acl:
            self._ignored("'acl' is set by the options already")
            claimed = ()
        acl = allowed.acl or tuple(sorted(set(claimed)))
        if classification is allowed.classification and acl == allowed.acl:
            return allowed
        return AccessRule(tenant=allowed.tenant, classification=classification, acl=acl)

    def _classification(self, allowed: Classification) -> Classification:
        text = self.text("classification")
        if not text:
            return allowed
        try:
            claimed = Classification(text)
        except ValueError as error:
            raise _bad_claim(f"'classification: {_shown(text)}' is none of {', '.join(Classification.words())}") from error
        if claimed.rank < allowed.rank:
            self._ignored(f"'classification: {claimed.value}' would lower it below '{allowed.value}'")
            return allowed
        return claimed

    def extra(self) -> dict[str, str]:
        extra: dict[str, str] = {}
        for key in sorted(self._declared):
            name = _KEY_PART.sub("_", key.lower()).strip("_")[:MAX_KEY_LENGTH]
            if key in _KNOWN or not name or name in extra:
                continue
            if len(extra) == MAX_EXTRA_KEYS:
                self._ignored(f"it has more than {MAX_EXTRA_KEYS} keys of its own; the rest was left out")
                break
            if value := self.text(key):
                extra[name] = value
                if known := nearly_known(name):
                    problem = f"has the key '{_shown(name)}', which says nothing to us and is kept as an extra field"
                    self.notes.append(f"{NoteReason.UNKNOWN_KEY.value}: {problem}; write '{known}' if you mean that")
        return extra

    def _ignored(self, problem: str) -> None:
        self.notes.append(f"{NoteReason.CLAIM_IGNORED.value}: makes a claim that was not followed: {problem}")


@lru_cache(maxsize=1024)
def nearly_known(name: str) -> str:
    """Return the key that an unknown one may be a misspelling of, or an empty string."""
    for known in _KNOWN:
        if name in (f"{known}s", known.removesuffix("s")):
            return known
        if len(name) >= _SHORT_KEY and distance(name, known) <= (2 if len(name) >= _LONG_KEY else 1):
            return known
    return ""


def _clean(value: str) -> str:
    return _UNSTORABLE.sub("\ufffd", value.strip()[:MAX_VALUE_LENGTH])


def _shown(value: str) -> str:
    return legible(value[:MAX_WORD_LENGTH])


def _principal(name: str) -> PrincipalId | None:
    return PrincipalId(name) if name else None


def _version(text: str) -> SemanticVersion | None:
    return SemanticVersion(text[:MAX_TAG_LENGTH]) if text else None


def _bad_claim(problem: str) -> DocumentUnreadableError:
    return DocumentUnreadableError(SkipReason.BAD_CLAIM, f"limits access in words that are not understood: {problem}")


# --- options ---
# Whether the caller's options can be followed, checked before anything is read.


def check_options(options: IngestOptions) -> IngestOptions:
    """Return the options with ACL and tags sorted and without repeats, or raise InvalidFieldError naming the field."""
    if not is_source_name(options.source):
        raise InvalidFieldError("source", f"'{legible(options.source)}' is not {SOURCE_NAME_RULE}")
    if not options.access.tenant:
        raise InvalidFieldError("tenant", "it is empty")
    for entry in options.access.acl:
        if not is_acl_entry(entry):
            raise InvalidFieldError("acl", f"'{legible(entry)}' is not of the form user:name, group:name or role:name")
    for tag in options.tags:
        if not tag.strip() or not tag.isprintable() or len(tag) > MAX_TAG_LENGTH:
            raise InvalidFieldError(
                "tags", f"'{legible(tag)}' is empty, longer than {MAX_TAG_LENGTH} characters or holds control characters"
            )
    access = msgspec.structs.replace(options.access, acl=tuple(sorted(set(options.access.acl))))
    return msgspec.structs.replace(options, access=access, tags=tuple(sorted({tag.strip() for tag in options.tags})))


def check_settings(settings: IngestSettings) -> None:
    """Refuse settings that contradict each other."""
    if settings.chunk_chars > settings.chunk_max_chars:
        problem = f"{settings.chunk_chars} is more than ingest.chunk_max_chars ({settings.chunk_max_chars})"
        raise InvalidFieldError("ingest.chunk_chars", problem)
