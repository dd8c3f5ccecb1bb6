"""The nearest 100 abstracts of SciFact's test queries are those that multiplying everything out in float64 finds."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine.embedded_samples import DOCUMENTS
from evidentia.contracts.access import local_owner
from evidentia.contracts.search import DenseQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.policy.access import access_scope
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from engine.embedded_samples import SciFact

pytestmark = pytest.mark.slow

NEAREST = 100


def test_the_scan_finds_what_multiplying_everything_out_finds(scifact: SciFact) -> None:
    parts = open_parts(scifact.path)
    encoder = parts.encoder
    assert encoder is not None
    snapshot = parts.index.at(search=SearchSettings())
    scope = access_scope(local_owner(), acl_scope=None, rules=())
    chunks = [chunk for document_id, _, _ in parts.reader.documents() for chunk in parts.reader.chunks_of(document_id)]
    chunks.sort(key=lambda chunk: chunk.chunk_id)
    with closing(parts.vectors()) as store:
        known = store.known(encoder.identity, [chunk.content_hash for chunk in chunks])
    matrix = np.stack([known[chunk.content_hash] for chunk in chunks]).astype(np.float64)
    assert len(chunks) >= DOCUMENTS

    compared = 0
    texts = scifact.part(3).texts
    for text in texts:
        vector = encoder.encode_query(text)
        products = matrix @ vector.astype(np.float64)  # exact: unit vectors at 2**-22 give at most 2**44
        best = np.argsort(-products, kind="stable")[:NEAREST]  # stable, over chunks in the order of their ids
        query = DenseQuery(identity=encoder.identity, vector=vector.astype("<i4").tobytes())
        found = snapshot.nearest(query, scope=scope, narrowing=None, phrases=(), limit=NEAREST)

        assert [(chunks[index].chunk_id, int(products[index])) for index in best] == [(hit.chunk_id, hit.score) for hit in found.hits]
        assert (len(chunks), len(chunks)) == (found.embedded, found.visible)
        compared += len(found.hits)
    parts.close()

    assert len(texts) * NEAREST == compared
