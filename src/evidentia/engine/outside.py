"""The models an engine may ask, each made when it is first needed; what they say is recorded in the receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.ports import Encoder, Merger, QueryRewriter, Reranker
    from evidentia.query.synonym_file import Synonyms


class Models(NamedTuple):
    """What the settings name besides the index; without a setting there is none."""

    encoder: Callable[[], Encoder | None]
    reranker: Callable[[], Reranker | None]
    rewriter: Callable[[], QueryRewriter | None]
    merger: Callable[[], Merger | None]
    synonyms: Synonyms | None
