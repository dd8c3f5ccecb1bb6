"""What a caller typed to what the rooms below take, with errors that name the argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from evidentia.contracts.access import AccessRule
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import SourceId, TenantId
from evidentia.contracts.ingestion import IngestOptions
from evidentia.contracts.vocabulary import AuthorityTier, Classification, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

Word = TypeVar("Word", bound=Vocabulary)


def ingest_options(
    *, source: str, authority: str, classification: str, tenant: str, acl: Iterable[str], tags: Iterable[str], prune: bool
) -> IngestOptions:
    """Return the options of an ingest."""
    access = AccessRule(
        tenant=TenantId(tenant),
        classification=word(Classification, classification, field="classification"),
        acl=tuple(sorted(set(acl))),
    )
    return IngestOptions(
        source=SourceId(source),
        authority=word(AuthorityTier, authority, field="authority"),
        access=access,
        tags=tuple(sorted(set(tags))),
        prune=prune,
    )


def word(vocabulary: type[Word], text: str, *, field: str) -> Word:
    """Return the member of a vocabulary that a word names."""
    try:
        return vocabulary(text)
    except ValueError as error:
        raise InvalidFieldError(field, f"'{text}' is not one of {', '.join(vocabulary.words())}") from error
