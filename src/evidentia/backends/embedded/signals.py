"""What ranks a chunk besides its match: facts of its document, and what its text is made of."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.backends.embedded.traits import features_of
from evidentia.contracts.search import ChunkSignals, ContentFeatures
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.text.features import FEATURE_COUNT, of_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.columns import Columns
    from evidentia.backends.embedded.segments import Segment

_REMEMBERED_FEATURES: Final = 1 << 12


class SignalTable:
    """The signals of a snapshot's chunks. Thread safe under the GIL.

    A segment keeps what the text alone says; what the document is for is read beside it, since it may change while the
    text stays.
    """

    def __init__(
        self, segments: Sequence[Segment], *, columns: Columns, document_of: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> None:
        self._segments = segments
        self._columns = columns
        self._document_of = document_of
        self._lengths = lengths
        self._features: NDArray[np.uint32] | None = None

    def of(self, places: Sequence[int]) -> list[ChunkSignals]:
        """Return the signals of the chunks at these places, which this version shows."""
        if not places:
            return []
        chosen = np.asarray(places, dtype=np.int64)
        documents = self._document_of[chosen]
        tier_column, kind_column, moments = map(self._columns.column, ("authority_tier", "content_type", "updated_at"))
        tiers = [AuthorityTier(str(value)) for value in tier_column.values]
        kinds = [ContentType(str(value)) for value in kind_column.values]
        return [
            ChunkSignals(
                authority_tier=tiers[tier],
                content_type=kinds[kind],
                updated_at=updated_at if isinstance(updated_at := moments.values[moment], datetime) else None,
                features=_features(measured, kinds[kind]),
                length=length,
            )
            for tier, kind, moment, length, measured in zip(
                tier_column.codes[documents].tolist(),
                kind_column.codes[documents].tolist(),
                moments.codes[documents].tolist(),
                self._lengths[chosen].tolist(),
                self._loaded()[chosen].tolist(),
                strict=True,
            )
        ]

    def _loaded(self) -> NDArray[np.uint32]:
        """Return the four features of every place as one number: texts that are alike share one."""
        if self._features is None:
            parts = [features_of(segment) for segment in self._segments]
            self._features = np.ascontiguousarray(np.concatenate(parts)).view("<u4").reshape(-1)
        return self._features


@lru_cache(maxsize=_REMEMBERED_FEATURES)
def _features(measured: int, kind: ContentType) -> ContentFeatures:
    code, commands, configuration, specificity = measured.to_bytes(FEATURE_COUNT, "little")
    return of_type(ContentFeatures(code=code, commands=commands, configuration=configuration, specificity=specificity), kind)
