"""The orders of sources outside are summed up exactly as any other orders are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.cached_answers import candidate
from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.ids import ChunkId, SourceId
from evidentia.contracts.retrieval import SourceReply
from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.outsiders import Admitted, Outsider, fuse_outsiders
from evidentia.ranking import fusion

OUTSIDERS = tuple(sorted((candidate(f"text {number}", rank=number + 1) for number in range(6)), key=lambda each: each.chunk_id))
REPLY = SourceReply(source_id=SourceId("wiki"), report=CoverageReport(state=CoverageState.SEARCHED))
IDS = tuple(each.chunk_id for each in OUTSIDERS)
OWN = (ChunkId("own:a#0@0"), ChunkId("own:b#0@0"))


@given(
    rankings=st.lists(st.lists(st.sampled_from([*IDS, *OWN]), min_size=1, max_size=8), max_size=5),
    weights=st.lists(st.integers(0, 10**7), min_size=5, max_size=5),
    own=st.lists(st.integers(0, 100), max_size=2),
    kappa=st.integers(1, 100),
)
def test_orders_from_outside_add_up_as_any_orders_do(rankings: list[list[ChunkId]], weights: list[int], own: list[int], kappa: int) -> None:
    own_ids = OWN[: len(own)]
    admitted = Admitted(
        outsiders=tuple(Outsider(each, REPLY, ()) for each in OUTSIDERS),
        rankings=tuple(map(tuple, rankings)),
        weights=tuple(weights[: len(rankings)]),
    )
    own_order = [own_ids[index] for index in fusion.order(own, own_ids)]

    expected = fusion.rrf([own_order, *rankings], [*own_ids, *IDS], kappa=kappa, weights=[1_000_000, *weights[: len(rankings)]])
    assert fusion.single(expected) == fuse_outsiders(own, own_ids, admitted, kappa=kappa)
