"""What sources outside the base said, as far as this caller may use it: admitted one by one, then ranked among the base's own.

Nothing here asks anybody: it works on replies that are part of the question's recorded inputs, so a replay does the same.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.evidence import CoverageReport, EvidenceRequest, WithheldFragment
from evidentia.contracts.predicates import And, Compare, Matcher, Predicate, matcher_of
from evidentia.contracts.search import ChunkSignals, LegScores, SearchHit
from evidentia.contracts.vocabulary import CoverageState
from evidentia.federation.federated_search import CandidateAccess, filter_record
from evidentia.ranking import fusion
from evidentia.ranking.external_scores import OwnStatistics, order_for, scores_for
from evidentia.text.features import content_features

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.ids import ChunkId, SourceId
    from evidentia.contracts.retrieval import ExternalCandidate, SourceReply
    from evidentia.contracts.settings import SearchSettings
    from evidentia.engine.legs import CandidateSet
    from evidentia.engine.question import Question
    from evidentia.text.tokens import Tokeniser

OUTSIDE = "outside"
"""Said by a source outside the base during this request."""
STALE = "stale"
INADMISSIBLE = "inadmissible"
UNMATCHED = "unmatched"
"""Holds no word of the question: only its source says that it has to do with it."""
NO_ORIGIN = "it comes without an origin, and the request asks for provenance"
_OWN_WEIGHT = 1_000_000
"""The base's own order counts once: a source's weight and its part's, both in thousandths, multiply to this."""
_BY_SOURCE = attrgetter("source_id", "part")
_BY_RANK = attrgetter("rank", "chunk_id")
_TROUBLES = (
    CoverageState.FAILED,
    CoverageState.TIMED_OUT,
    CoverageState.BREAKER_OPEN,
    CoverageState.SKIPPED,
    CoverageState.STALE,
    CoverageState.SEARCHED,
    CoverageState.CACHED,
)


class ExternalMatch(NamedTuple):
    """A fragment from outside that the caller may use, and the reply it came with."""

    candidate: ExternalCandidate
    reply: SourceReply
    flags: tuple[str, ...]

    @property
    def hit(self) -> SearchHit:
        """Return it in the form in which the base's own candidates are ranked; it has no place in the base."""
        each = self.candidate
        return SearchHit(chunk_id=each.chunk_id, document_id=each.document_id, source_id=each.source_id, score=0, place=-1)

    @property
    def signals(self) -> ChunkSignals:
        """Return what ranks it besides its match."""
        each = self.candidate
        return ChunkSignals(
            authority_tier=each.authority_tier,
            content_type=each.content_type,
            updated_at=each.updated_at,
            features=content_features(each.content, each.content_type),
        )


class Admitted(NamedTuple):
    """The fragments from outside, each once and ordered by id; every source's order with its weight; and what was kept back."""

    externals: tuple[ExternalMatch, ...] = ()
    rankings: tuple[tuple[ChunkId, ...], ...] = ()
    weights: tuple[int, ...] = ()
    withheld: tuple[WithheldFragment, ...] = ()
    words: tuple[int, ...] = ()
    """What the words of the question say of each fragment, at 2^-16."""

    @property
    def legs(self) -> list[LegScores]:
        """Return what our own legs say of each fragment; vectors of what comes from outside are not made."""
        return [LegScores(lexical=score, dense=None) for score in self.words or [0] * len(self.externals)]


NONE_ADMITTED = Admitted()
"""Stands for a question of which nobody outside said anything."""


def admit(question: Question, *, tokeniser: Tokeniser) -> Admitted:
    """Return what the replies hold for this caller: access first, then what the request wants."""
    replies = question.inputs.replies
    admission = _Admission(question)
    admitted: dict[ChunkId, ExternalMatch] = {}
    withheld: dict[ChunkId, WithheldFragment] = {}
    rankings, weights = [], []
    for reply in sorted(replies, key=_BY_SOURCE):
        order = []
        seen = [candidate for candidate in reply.candidates if admission.shows(candidate)]
        told = _told_of(reply)
        for candidate in admission.wanted(_in_order(reply, seen, question, tokeniser)):
            if admission.wants_origin and not candidate.origin:
                withheld[candidate.chunk_id] = WithheldFragment(chunk_id=candidate.chunk_id, reason=NO_ORIGIN)
                continue
            if candidate.chunk_id not in admitted:
                admitted[candidate.chunk_id] = ExternalMatch(candidate, reply, _flags(candidate, told))
            order.append(candidate.chunk_id)
        if order:
            rankings.append(tuple(order))
            weights.append(reply.weight_milli * reply.part_weight_milli)
    return Admitted(
        externals=tuple(admitted[chunk_id] for chunk_id in sorted(admitted)),
        rankings=tuple(rankings),
        weights=tuple(weights),
        withheld=tuple(withheld[chunk_id] for chunk_id in sorted(withheld)),
    )


def scored_by_words(
    question: Question, found: CandidateSet, admitted: Admitted, *, tokeniser: Tokeniser, search: SearchSettings
) -> Admitted:
    """Return what was admitted with what the words of the question say of each, by the statistics of what the caller may see."""
    if not question.inputs.reads_replies:
        return admitted
    lexicon = question.snapshot.lexicon(question.scope)
    own = OwnStatistics(lexicon.chunks, lexicon.chunks_with, question.snapshot.lengths(found.hits) if found.hits else ())
    candidates = [each.candidate for each in admitted.externals]
    scores = scores_for(question.words, candidates, tokeniser=tokeniser, k1_milli=search.k1_milli, b_milli=search.b_milli, own=own)
    externals = admitted.externals
    if question.words.terms:  # a question without words matches nothing, which says nothing of anybody
        unmatched = [() if score else (UNMATCHED,) for score in scores]
        externals = tuple(each._replace(flags=each.flags + flag) for each, flag in zip(externals, unmatched, strict=True))
    return admitted._replace(externals=externals, words=scores)


def fuse_external(own: Sequence[int], found: CandidateSet, admitted: Admitted, *, kappa: int) -> list[int]:
    """Return one score per candidate, the base's own first: scores of different sources cannot be compared, so their orders are.

    The words of the question order all of them once more, wherever they come from: what holds none of them has its source's word alone.
    """
    own_ids = [hit.chunk_id for hit in found.hits]
    ids = [*own_ids, *[each.candidate.chunk_id for each in admitted.externals]]
    orders = [tuple(own_ids[index] for index in fusion.order(own, own_ids))]
    if admitted.words:
        scores = [*[each.lexical for each in found.parts[0].legs], *admitted.words]
        orders.append(tuple(ids[index] for index in fusion.order(scores, ids) if scores[index] > 0))
    weights = (*[_OWN_WEIGHT] * len(orders), *admitted.weights)
    return fusion.single(fusion.rrf((*orders, *admitted.rankings), ids, kappa=kappa, weights=weights))


def coverage_of(replies: Sequence[SourceReply]) -> dict[SourceId, CoverageReport]:
    """Return one account per source: where it was asked several parts, the worst state with every reason, and the sums."""
    accounts: dict[SourceId, CoverageReport] = {}
    for reply in sorted(replies, key=_BY_SOURCE):
        known = accounts.get(reply.source_id)
        accounts[reply.source_id] = reply.report if known is None else _joined(known, reply.report)
    return accounts


class _Admission:
    """Who comes in, decided for one request; what several candidates share is worked out once."""

    def __init__(self, question: Question) -> None:
        self.wants_origin = question.request.provenance_required
        self.shows = CandidateAccess(question.scope).admits
        """Tells whether the caller may see a candidate; one that is hidden has no influence on the order of the others."""
        wanted = tuple(_wanted(question.request))
        self._wanted: Matcher | None = matcher_of(And(wanted)) if wanted else None

    def wanted(self, seen: Sequence[ExternalCandidate]) -> Sequence[ExternalCandidate]:
        """Return those of the candidates that the caller may see which the request wants."""
        wanted = self._wanted
        return seen if wanted is None else [candidate for candidate in seen if wanted(filter_record(candidate))]


def _wanted(request: EvidenceRequest) -> Iterator[Predicate]:
    """Yield what a request wants of a fragment wherever it comes from."""
    window = request.time_window
    if window and window.start:
        yield Compare("updated_at", ">=", msgspec.to_builtins(window.start))
    if window and window.end:
        yield Compare("updated_at", "<=", msgspec.to_builtins(window.end))
    if request.filter is not None and not isinstance(request.filter, str):
        yield request.filter


def _in_order(
    reply: SourceReply, seen: Sequence[ExternalCandidate], question: Question, tokeniser: Tokeniser
) -> Sequence[ExternalCandidate]:
    """Return those of a reply's candidates that are seen, best first; what was found for another question is put in order for this one."""
    if not reply.is_reused:
        return sorted(seen, key=_BY_RANK)
    return order_for(question.words, seen, tokeniser=tokeniser)


def _told_of(reply: SourceReply) -> tuple[str, ...]:
    """Return what is said of every fragment of a reply."""
    return (OUTSIDE, STALE) if reply.report.state is CoverageState.STALE else (OUTSIDE,)


def _flags(candidate: ExternalCandidate, told: tuple[str, ...]) -> tuple[str, ...]:
    if candidate.origin:
        return told + candidate.flags if candidate.flags else told
    return (*told, INADMISSIBLE, *candidate.flags)


def _joined(first: CoverageReport, second: CoverageReport) -> CoverageReport:
    faults = dict(first.faults)
    for kind, count in second.faults.items():
        faults[kind] = faults.get(kind, 0) + count
    worst = min((first, second), key=lambda each: _TROUBLES.index(each.state))
    ages = [each.data_age_s for each in (first, second) if each.data_age_s is not None]
    return msgspec.structs.replace(
        worst,
        reason="; ".join(dict.fromkeys(each.reason for each in (first, second) if each.reason)),
        candidates=first.candidates + second.candidates,
        searched_share=min(first.searched_share, second.searched_share),
        data_age_s=min(ages, default=None),
        elapsed_ms=max(first.elapsed_ms, second.elapsed_ms),
        faults=dict(sorted(faults.items())),
    )
