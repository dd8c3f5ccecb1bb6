"""Whether the caller's options can be followed, checked before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.access import is_acl_entry
from evidentia.contracts.errors import InvalidFieldError
from evidentia.ingest.claims import MAX_TAG_LENGTH
from evidentia.ingest.naming import legible
from evidentia.text.names import SOURCE_NAME_RULE, is_source_name

if TYPE_CHECKING:
    from evidentia.contracts.ingestion import IngestOptions
    from evidentia.contracts.settings import IngestSettings


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
