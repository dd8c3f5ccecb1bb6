"""With all the weight on relevance, no diversity and no budget, an answer is the fused order of the two legs and nothing else."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.embedded_samples import AS_OF
from engine.leaky_snapshots import Leaky, LeakyIndex
from evidentia import connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, RankingWeights, Task
from evidentia.contracts.search import DenseQuery, LegScores
from evidentia.contracts.settings import QuerySettings, RankingSettings, SearchSettings
from evidentia.contracts.vocabulary import FusionMethod, QueryStepName
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.request_checks import request_from
from evidentia.policy.access import access_scope
from evidentia.query.understanding import understand
from evidentia.ranking import fusion
from evidentia.ranking.signals import task_weights
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.text.tokens import Tokeniser
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.embedded_samples import DemoBase, SciFact
    from evidentia.contracts.ports import EvidenceIndex
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.search import AccessScope, DenseHits, LexicalHits, LexicalQuery, SearchHit
    from evidentia.wiring.embedded import EmbeddedComponents

LIMIT = 20
PART_OF = {FusionMethod.LINEAR: 0, FusionMethod.RRF: 1}
RELEVANCE_ALONE = RankingWeights(relevance=1.0, authority=0.0, freshness=0.0, utility=0.0)
SETTINGS = RankingSettings()


class Legs:
    """What each leg says of one question, asked of the snapshot without the engine."""

    def __init__(self, parts: EmbeddedComponents, request: EvidenceRequest) -> None:
        assert parts.encoder is not None
        snapshot = parts.index.at(search=SearchSettings())
        scope = access_scope(local_owner(), acl_scope=None, rules=())
        understood = understand(request, tokeniser=Tokeniser("english"), lexicon=snapshot.lexicon(scope), settings=QuerySettings())
        vector = parts.encoder.encode_query(understood.text).astype("<i4").tobytes()
        query = DenseQuery(identity=parts.encoder.identity, vector=vector)
        words = snapshot.search(understood.lexical, scope=scope, narrowing=None, facets=(), limit=SETTINGS.candidates).hits
        near = snapshot.nearest(query, scope=scope, narrowing=None, phrases=(), limit=SETTINGS.candidates).hits
        hits = list({hit.chunk_id: hit for hit in (*near, *words)}.values())
        Random(request.query.text).shuffle(hits)
        self.ids = [hit.chunk_id for hit in hits]
        self.rankings = [[hit.chunk_id for hit in leg] for leg in (words, near)]
        self.scores = snapshot.scores(hits, query=understood.lexical, dense=query, scope=scope)

    def best(self, fused: Sequence[int]) -> list[tuple[str, int]]:
        """Return the best candidates with their scores."""
        return [(self.ids[index], fused[index]) for index in fusion.order(fused, self.ids)[:LIMIT]]


class Shuffled(Leaky):
    """Gives what each leg found in another order."""

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        found = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
        return msgspec.structs.replace(found, hits=_shuffled(found.hits))

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        found = super().nearest(query, scope=scope, narrowing=narrowing, phrases=phrases, preferred=preferred, limit=limit)
        return msgspec.structs.replace(found, hits=_shuffled(found.hits))


@pytest.mark.slow
@pytest.mark.parametrize("method", PART_OF)
def test_the_answer_is_the_fused_order(scifact: SciFact, method: FusionMethod) -> None:
    parts = open_parts(scifact.path)
    engine = parts.engine(parts.config)
    compared = 0
    texts = scifact.part(PART_OF[method]).texts
    for text in texts:
        request = _request(text, fusion=method, without=(QueryStepName.DECOMPOSE,))
        legs = Legs(parts, request)
        answer = engine.answer(request, principal=local_owner())

        assert legs.best(_fused(legs, method)) == [(fragment.chunk_id, fragment.score) for fragment in answer.fragments]
        assert legs.best(_fused_the_other_way_round(legs, method)) == legs.best(_fused(legs, method))
        compared += len(answer.fragments)
    parts.close()

    assert len(texts) * LIMIT == compared


@pytest.mark.slow
def test_the_order_in_which_a_leg_names_its_candidates_does_not_matter(scifact: SciFact) -> None:
    parts = open_parts(scifact.path)
    plain, shuffled = _engine(parts, parts.index), _engine(parts, LeakyIndex(parts.index, Shuffled))
    for text in scifact.part(2).texts:
        request = request_from(text, {"as_of": AS_OF, "receipt": False})
        first, second = (engine.answer(request, principal=local_owner()) for engine in (plain, shuffled))

        assert first.result_hash == second.result_hash
        assert [fragment.scores for fragment in first.fragments] == [fragment.scores for fragment in second.fragments]
    parts.close()


@pytest.mark.parametrize("kind", ["coding", "debugging", "operations", "configuration", "explanation"])
def test_weights_follow_from_the_task_unless_the_request_has_its_own(demo: DemoBase, kind: str) -> None:
    asked = {"as_of": AS_OF, "task": {"type": kind}}
    weights = task_weights(Task(type=kind))
    with connect(demo.path) as base:
        by_task, stated = (base.retrieve("signing key", **asked, **more) for more in ({}, {"ranking_weights": weights}))
        usual = base.retrieve("signing key", **asked, ranking_weights=RankingWeights())
        again = base.replay(by_task.receipt_id or "")

    assert RankingWeights() != weights
    assert 1 == sum(map(Fraction, map(str, msgspec.structs.astuple(weights))))
    assert stated.result_hash == by_task.result_hash == again.response.result_hash
    assert [each.score for each in usual.fragments] != [each.score for each in by_task.fragments]


@pytest.mark.parametrize("task", [None, Task(type="gardening")])
def test_without_a_task_that_is_known_the_usual_weights_hold(task: Task | None) -> None:
    assert RankingWeights() == task_weights(task)


def test_weight_on_anything_else_does_change_the_order(demo: DemoBase) -> None:
    with connect(demo.path) as base:
        orders = {
            tuple(fragment.chunk_id for fragment in base.retrieve("signing key", ranking_weights=weights, receipt=False).fragments)
            for weights in (RELEVANCE_ALONE, _weights(0.0, 1.0, 0.0, 0.0), _weights(0.0, 0.0, 1.0, 0.0), _weights(0.0, 0.0, 0.0, 1.0))
        }

    assert len(orders) > 2


@pytest.mark.parametrize(
    ("weights", "field"),
    [
        ((-0.1, 0.5, 0.3, 0.3), "ranking_weights.relevance"),
        ((0.5, -math.inf, 0.3, 0.2), "ranking_weights.authority"),
        ((0.5, 0.2, math.nan, 0.3), "ranking_weights.freshness"),
        ((0.0, 0.0, 0.0, 1.5), "ranking_weights.utility"),
        ((0.5, 0.2, 0.2, 0.2), "ranking_weights"),
        ((0.0, 0.0, 0.0, 0.0), "ranking_weights"),
        ((1.0, 0.0, 0.0, 1e-5), "ranking_weights"),
    ],
)
def test_weights_that_are_no_weights_are_refused_by_name(demo: DemoBase, weights: tuple[float, ...], field: str) -> None:
    made = _weights(*weights)
    given = dict(zip(RankingWeights.__struct_fields__, weights, strict=True))
    request = EvidenceRequest(query=DecomposedQuery(text="signing key"), ranking_weights=made)
    with connect(demo.path) as base:
        with pytest.raises(InvalidFieldError) as by_keyword:
            base.retrieve("signing key", ranking_weights=given)
        with pytest.raises(InvalidFieldError) as by_request:
            base.retrieve(request)

    assert (field, field) == (by_keyword.value.field, by_request.value.field)


def _fused(legs: Legs, method: FusionMethod) -> list[int]:
    if method is FusionMethod.RRF:
        return fusion.single(fusion.rrf(legs.rankings, legs.ids, kappa=SETTINGS.rrf_kappa))
    return fusion.linear(legs.scores, lexical_milli=SETTINGS.lexical_milli)


def _fused_the_other_way_round(legs: Legs, method: FusionMethod) -> list[int]:
    """Fuse with the vectors first; every candidate has one here."""
    if method is FusionMethod.RRF:
        return fusion.single(fusion.rrf(legs.rankings[::-1], legs.ids, kappa=SETTINGS.rrf_kappa))
    swapped = [LegScores(lexical=leg.dense, dense=leg.lexical) for leg in legs.scores if leg.dense is not None]
    return fusion.linear(swapped, lexical_milli=1_000 - SETTINGS.lexical_milli)


def _request(text: str, **fields: object) -> EvidenceRequest:
    asked = {"as_of": AS_OF, "limit": LIMIT, "ranking_weights": RELEVANCE_ALONE, "diversity_constraint": 1.0, "receipt": False}
    return request_from(text, asked | fields)


def _engine(parts: EmbeddedComponents, index: EvidenceIndex) -> Engine:
    models = Models(encoder=lambda: parts.encoder, reranker=lambda: None, rewriter=lambda: None, merger=lambda: None, synonyms=None)
    clock = SteppingClock(step_s=0)
    return Engine(index, receipts=parts.receipts, config=parts.config, models=models, clock=clock, entropy=RepeatableEntropy())


def _weights(*values: float) -> RankingWeights:
    return RankingWeights(**dict(zip(RankingWeights.__struct_fields__, values, strict=True)))


def _shuffled(hits: tuple[SearchHit, ...]) -> tuple[SearchHit, ...]:
    return tuple(Random(len(hits)).sample(hits, len(hits)))
