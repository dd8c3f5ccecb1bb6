"""Steps 7 and 8: what the legs say becomes one order: fuse, rerank, and weigh with what else speaks for a fragment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.evidence import SignalScores
from evidentia.contracts.vocabulary import AuthorityTier, ContentType, FusionMethod
from evidentia.engine.external_candidates import UNMATCHED
from evidentia.query.understanding import WHOLE_WEIGHT
from evidentia.ranking import fusion, signals
from evidentia.ranking.merge_features import MergeCandidate, feature_rows
from evidentia.ranking.query_weights import lexical_milli, shipped_weights
from evidentia.ranking.signals import composites, normalise_reranked, weights_of, with_reranker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.search import ChunkSignals, LegScores, SearchHit
    from evidentia.contracts.settings import RankingSettings
    from evidentia.engine.external_candidates import Admitted, ExternalMatch
    from evidentia.engine.legs import CandidateSet, PartScores
    from evidentia.engine.question import Question

    Merge = Callable[[Sequence[Sequence[int]]], Sequence[int]]
    """What a fitted model makes of rows of features: one score for each."""
    Read = Callable[[str, Sequence[str]], tuple[int, ...]]
    """What a reranker says of a question and passages: scores for as many as it had time."""

UNDATED = "freshness_unknown"


class RankedCandidate(NamedTuple):
    """A candidate with its composite score and what that is made of: relevance, authority, freshness and utility."""

    hit: SearchHit
    score: int
    signals: tuple[int, int, int, int]
    flags: tuple[str, ...]
    fused: int
    reranked: int | None
    legs: LegScores
    external: ExternalMatch | None = None
    """Set for what came from outside the base."""

    @property
    def scores(self) -> SignalScores:
        """Return everything that decided the place, as it is told."""
        relevance, authority, freshness, utility = self.signals
        return SignalScores(
            relevance=relevance,
            authority=authority,
            freshness=freshness,
            utility=utility,
            fused=self.fused,
            reranked=self.reranked,
            lexical=self.legs.lexical,
            dense=self.legs.dense,
        )


class Reranking(NamedTuple):
    """Relevance after reranking; the reranker's scores, normalised, by candidate; and as it gave them, best candidate first."""

    relevance: Sequence[int]
    normalised: Mapping[int, int]
    given: tuple[int, ...] | None


def fuse(question: Question, found: CandidateSet, *, settings: RankingSettings, merge: Merge) -> list[int]:
    """Return one score per candidate, in their order; the whole question and its parts add up by their weights.

    Of parts that the rules found, each asks for something else, so the one that a candidate answers best has the weight of all.
    """
    fused = [_fuse_part(question, found, part, settings=settings, merge=merge) for part in found.parts]
    if len(fused) == 1:
        return fused[0]
    weights = [part.weight for part in found.parts]
    if question.rules.splits_questions and not question.request.query.subqueries:
        fused, weights = [fused[0], [max(scores) for scores in zip(*fused[1:], strict=True)]], [weights[0], sum(weights[1:])]
    return [
        sum(score * weight for score, weight in zip(scores, weights, strict=True)) // WHOLE_WEIGHT for scores in zip(*fused, strict=True)
    ]


def rerank(
    question: Question,
    found: CandidateSet,
    admitted: Admitted,
    fused: Sequence[int],
    *,
    settings: RankingSettings,
    read: Read | None,
) -> Reranking:
    """Have the best candidates read, as many as there is time for; a replay takes what was recorded."""
    given = question.inputs.reranked
    if given is None and (read is None or not (question.request.rerank and fused)):
        return Reranking(relevance=fused, normalised={}, given=None)
    ids = [hit.chunk_id for hit in found.hits] + [each.candidate.chunk_id for each in admitted.externals]
    best = fusion.order(fused, ids)[: settings.rerank_candidates]
    if given is None and read is not None:
        given = read(question.parts[0].text, _passages(question, found, admitted, best))
    scored = dict(zip(best, given or (), strict=False))
    return Reranking(relevance=with_reranker(fused, scored), normalised=normalise_reranked(scored), given=given)


def weigh(
    question: Question, found: CandidateSet, admitted: Admitted, fused: Sequence[int], reranking: Reranking, *, settings: RankingSettings
) -> list[RankedCandidate]:
    """Return the candidates in the order of their composite scores, ties by id."""
    hits = [*found.hits, *[each.hit for each in admitted.externals]]
    legs = [*found.parts[0].legs, *(admitted.legs if admitted.externals else ())]
    externals = [*[None] * len(found.hits), *admitted.externals]
    given, flags = _Weigher(question, settings).weighed(found.hits, admitted.externals, reranking.relevance)
    scores = composites(given, weights_of(question.request.ranking_weights or signals.task_weights(question.request.task)))
    reranked = reranking.normalised.get
    return [
        RankedCandidate(
            hits[index], scores[index], given[index], flags[index], fused[index], reranked(index), legs[index], externals[index]
        )
        for index in fusion.order(scores, [hit.chunk_id for hit in hits])
    ]


def _passages(question: Question, found: CandidateSet, admitted: Admitted, best: Sequence[int]) -> list[str]:
    """Return the texts of candidates by their numbers; those from outside come after the base's own."""
    own = [index for index in best if index < len(found.hits)]
    stored = question.snapshot.chunks([found.hits[index] for index in own])
    texts = {index: chunk.content for index, chunk in zip(own, stored, strict=True)}
    return [texts[index] if index in texts else admitted.externals[index - len(found.hits)].candidate.content for index in best]


class _Weighed(NamedTuple):
    """What is worth the same for every candidate of which the same is known, whatever its relevance."""

    authority: int
    freshness: int
    utility: int
    flags: tuple[str, ...]


class _Weigher:
    """The signals of one request's candidates; what several of them share is worked out once."""

    def __init__(self, question: Question, settings: RankingSettings) -> None:
        self._settings = settings
        self._needs = signals.needs_of(question.request.task)
        self._as_of = _as_of(question)
        self._of_document: dict[tuple[AuthorityTier, bool, ContentType, datetime | None, int | None], tuple[int, int, tuple[str, ...]]] = {}
        descriptors = question.snapshot.descriptors()
        self._taus = {source: each.freshness_tau_s for source, each in descriptors.items() if each.freshness_tau_s is not None}
        """How soon a source's word ages, where its descriptor says."""
        self._about = question.snapshot.signals

    def weighed(
        self, hits: Sequence[SearchHit], externals: Sequence[ExternalMatch], relevance: Sequence[int]
    ) -> tuple[list[tuple[int, int, int, int]], list[tuple[str, ...]]]:
        """Return relevance, authority, freshness and utility of each candidate, and what has to be said about them."""
        abouts = [*self._about(hits), *[each.signals for each in externals]]
        taus = [*self._own_taus(hits), *[each.reply.freshness_tau_s for each in externals]]
        known: dict[tuple[int, int | None], _Weighed] = {}
        rows: list[_Weighed] = []
        for key in zip(map(id, abouts), taus, strict=True):  # those that are alike mostly share one object, and `abouts` holds on to all
            weighed = known.get(key)
            if weighed is None:
                weighed = known[key] = self._weighed(abouts[len(rows)], key[1])
            rows.append(weighed)
        given = [(relevant, row[0], row[1], row[2]) for relevant, row in zip(relevance, rows, strict=True)]
        remarks = [row[3] for row in rows]
        for index, external in enumerate(externals, start=len(hits)):
            remarks[index] = (*external.flags, *remarks[index])
            if UNMATCHED in external.flags:
                given[index] = (relevance[index], 0, 0, 0)  # nothing speaks for what has nothing to do with the question
        return given, remarks

    def _own_taus(self, hits: Sequence[SearchHit]) -> list[int | None]:
        """Return how soon each hit's source ages; nearly always nobody says."""
        tau_of = self._taus.get
        return [tau_of(hit.source_id) for hit in hits] if self._taus else [None] * len(hits)

    def _weighed(self, about: ChunkSignals, tau_s: int | None) -> _Weighed:
        key = (about.authority_tier, about.is_annotated, about.content_type, about.updated_at, tau_s)
        known = self._of_document.get(key)
        if known is None:
            known = self._of_document[key] = self._document_signals(about, tau_s)
        authority, freshness, flags = known
        return _Weighed(authority, freshness, signals.utility_of(about.features, about.content_type, self._needs), flags)

    def _document_signals(self, about: ChunkSignals, tau_s: int | None) -> tuple[int, int, tuple[str, ...]]:
        if tau_s is None:
            tau_s = signals.tau_of(self._settings, content_type=about.content_type, tier=about.authority_tier)
        freshness = signals.freshness(about.updated_at, self._as_of, tau_s=tau_s)
        authority = signals.authority(about.authority_tier, is_annotated=about.is_annotated)
        return authority, freshness.score, () if freshness.is_dated else (UNDATED,)


def _fuse_part(question: Question, found: CandidateSet, part: PartScores, *, settings: RankingSettings, merge: Merge) -> list[int]:
    if not question.uses_vectors:
        return fusion.single([leg.lexical for leg in part.legs])
    if not question.uses_words:
        return fusion.single([leg.dense or 0 for leg in part.legs])
    method = question.request.fusion
    if method is FusionMethod.RRF:
        return fusion.single(fusion.rrf(part.rankings, [hit.chunk_id for hit in found.hits], kappa=settings.rrf_kappa))
    if method is FusionMethod.LEARNED and "merge" not in question.inputs.left_out:
        return fusion.single(merge(merge_features(question, found, part, settings=settings)))
    share = settings.lexical_milli if question.features is None else lexical_milli(question.features, shipped_weights())
    return fusion.linear(part.legs, lexical_milli=share)


def _as_of(question: Question) -> datetime:
    """Return the request's now, which checking has filled in."""
    if question.request.as_of is None:
        raise AssertionError
    return question.request.as_of


def merge_features(question: Question, found: CandidateSet, part: PartScores, *, settings: RankingSettings) -> list[tuple[int, ...]]:
    """Return the rows of features by which a fitted model merges the legs, one per candidate."""
    if question.features is None:
        raise AssertionError  # whoever merges by a model has asked for them
    words, near = ({chunk_id: rank for rank, chunk_id in enumerate(ranking, start=1)} for ranking in part.rankings)
    candidates = [
        MergeCandidate(legs=legs, lexical_rank=words.get(hit.chunk_id), dense_rank=near.get(hit.chunk_id), signals=signal, length=length)
        for hit, legs, signal, length in zip(
            found.hits, part.legs, question.snapshot.signals(found.hits), question.snapshot.lengths(found.hits), strict=True
        )
    ]
    return feature_rows(candidates, query=question.features, as_of=_as_of(question), settings=settings)
