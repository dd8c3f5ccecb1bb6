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

    def __init__(self, segments: Sequence[Segment], *, columns: Columns, document_of: NDArray[np.int32]) -> None:
        self._segments = segments
        self._columns = columns
        self._document_of = document_of
        self._features: NDArray[np.uint32] | None = None

    def of(self, places: Sequence[int]) -> list[ChunkSignals]:
        """Return the signals of the chunks at these places, which this version shows; those that are alike share one object."""
        if not places:
            return []
        chosen = np.asarray(places, dtype=np.int64)
        documents = self._document_of.take(chosen)
        tiers, kinds, moments = (self._columns.column(name) for name in ("authority_tier", "content_type", "updated_at"))
        codes = zip(
            tiers.codes.take(documents).tolist(),
            kinds.codes.take(documents).tolist(),
            moments.codes.take(documents).tolist(),
            self._loaded().take(chosen).tolist(),
            strict=True,
        )
        known: dict[tuple[int, int, int, int], ChunkSignals] = {}
        found = []
        for key in codes:
            signals = known.get(key)
            if signals is None:
                tier, kind, moment, measured = key
                signals = known[key] = _signals(tiers.values[tier], kinds.values[kind], moments.values[moment], measured)
            found.append(signals)
        return found

    def _loaded(self) -> NDArray[np.uint32]:
        """Return the four features of every place as one number: texts that are alike share one."""
        if self._features is None:
            parts = [features_of(segment) for segment in self._segments]
            self._features = np.ascontiguousarray(np.concatenate(parts)).view("<u4").reshape(-1)
        return self._features


def _signals(tier: object, kind: object, moment: object, measured: int) -> ChunkSignals:
    content_type = ContentType(str(kind))
    return ChunkSignals(
        authority_tier=AuthorityTier(str(tier)),
        content_type=content_type,
        updated_at=moment if isinstance(moment, datetime) else None,
        features=_features(measured, content_type),
    )


@lru_cache(maxsize=_REMEMBERED_FEATURES)
def _features(measured: int, kind: ContentType) -> ContentFeatures:
    code, commands, configuration, specificity = measured.to_bytes(FEATURE_COUNT, "little")
    return of_type(ContentFeatures(code=code, commands=commands, configuration=configuration, specificity=specificity), kind)
