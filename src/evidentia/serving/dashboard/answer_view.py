"""An answer as its page shows it: snippets with the words that were found, what a score is made of, and who said what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.evidence import SCORE_ONE, RankingWeights
from evidentia.contracts.ids import document_of
from evidentia.contracts.vocabulary import CoverageState
from evidentia.ranking.order_notes import order_notes
from evidentia.serving.cli.search_report import MARKS, NEARNESS, NO_VECTOR, TERM_ONE, age_of, near_of, place_of
from evidentia.serving.cli.snippets import SnippetCutter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.evidence import (
        Conflict,
        EvidenceFragment,
        EvidenceResponse,
        GovernedFragment,
        SignalScores,
        TermScore,
    )
    from evidentia.contracts.settings import Settings

SIGNALS: Final = ("relevance", "authority", "freshness", "utility")
BAR_WIDTH: Final = 400
"""What a score of 1 is wide, in the units of the drawing."""
MAX_VALUES: Final = 12
"""Values of a facet that are shown."""
_COVERAGE: Final = {
    CoverageState.SEARCHED: "good",
    CoverageState.CACHED: "good",
    CoverageState.STALE: "warn",
    CoverageState.SKIPPED: "",
}
_BAD_MARKS: Final = ("policy_block", "conflict_lost", "inadmissible")
_GOOD_MARKS: Final = ("conflict_won",)


class ScoreSegment(NamedTuple):
    """What one signal gives to a score: its value from 0 to 1, its weight, their product, and its place in the drawing."""

    name: str
    value: float
    weight: float
    gives: float
    x: float
    width: float


class TermView(NamedTuple):
    """What one word gave."""

    term: TermScore
    score: float
    width: float


class FragmentMark(NamedTuple):
    """A word about a fragment."""

    text: str
    kind: str


class FragmentView(NamedTuple):
    """One fragment of an answer."""

    rank: int
    fragment: EvidenceFragment
    place: str
    age: str
    marks: tuple[FragmentMark, ...]
    order: str
    """Why it stands behind one with less confidence; empty where it does not."""
    snippet: tuple[tuple[str, bool], ...]
    bar: tuple[ScoreSegment, ...]
    words: str
    nearness: tuple[str, str]
    terms: tuple[TermView, ...]
    said: tuple[GovernedFragment, ...]


class FacetValue(NamedTuple):
    """One checkbox."""

    value: str
    documents: int
    is_chosen: bool


class AnswerView(NamedTuple):
    """A whole answer."""

    response: EvidenceResponse
    fragments: tuple[FragmentView, ...]
    facets: tuple[tuple[str, tuple[FacetValue, ...], int], ...]
    """Each field with its values and how many more there are."""
    withheld: tuple[tuple[str, int], ...]
    """Reasons, and how many fragments each kept back."""
    said_elsewhere: tuple[GovernedFragment, ...]
    """What policies said of fragments that are not in the answer."""

    def coverage_kind(self, state: CoverageState) -> str:
        """Return how the state of a source looks."""
        return _COVERAGE.get(state, "bad")

    def losers(self, conflict: Conflict) -> Sequence[tuple[str, str]]:
        """Return what was said against, and by which document."""
        return [(value, document_of(loser)) for value, loser in zip(conflict.losing_values, conflict.losers, strict=False)]

    def document_of(self, chunk_id: str) -> str:
        """Return the document of a chunk."""
        return document_of(chunk_id)  # type: ignore[arg-type] # templates hand over what the answer holds


def view_answer(
    response: EvidenceResponse,
    *,
    query: str,
    settings: Settings,
    chosen: Mapping[str, tuple[str, ...]],
    counts: Mapping[str, Mapping[str, int]],
    weights: RankingWeights | None = None,
) -> AnswerView:
    """Return an answer in the form in which it is shown; `counts` are those of the facets."""
    cutter = SnippetCutter(query, language=settings.text.language)
    kept = {fragment.chunk_id for fragment in response.fragments}
    reasons = [each.reason for each in response.withheld]
    return AnswerView(
        response=response,
        fragments=tuple(
            _view(rank, response, order=order, cutter=cutter, settings=settings, weights=weights or RankingWeights())
            for rank, order in enumerate(order_notes(response.fragments), start=1)
        ),
        facets=tuple(_facet(field, values, chosen.get(field, ())) for field, values in counts.items() if values or chosen.get(field)),
        withheld=tuple((reason, reasons.count(reason)) for reason in dict.fromkeys(reasons)),
        said_elsewhere=tuple(each for each in response.governance if each.chunk_id not in kept),
    )


def bar_of(scores: SignalScores, weights: RankingWeights) -> tuple[ScoreSegment, ...]:
    """Return what the four signals give to a score, side by side."""
    segments, x = [], 0.0
    for name in SIGNALS:
        value, weight = getattr(scores, name) / SCORE_ONE, getattr(weights, name)
        width = round(value * weight * BAR_WIDTH, 2)
        segments.append(ScoreSegment(name, value, weight, value * weight, round(x, 2), width))
        x += width
    return tuple(segments)


def terms_of(terms: Sequence[TermScore]) -> tuple[TermView, ...]:
    """Return what each word gave, beside the word that gave most."""
    most = max((term.score for term in terms), default=0) or 1
    return tuple(TermView(term, term.score / TERM_ONE, round(100 * term.score / most, 1)) for term in terms)


def _view(
    rank: int, response: EvidenceResponse, *, order: str, cutter: SnippetCutter, settings: Settings, weights: RankingWeights
) -> FragmentView:
    fragment = response.fragments[rank - 1]
    nearness = NEARNESS[settings.search.similarity]
    near = str(near_of(fragment.scores, nearness))
    return FragmentView(
        rank=rank,
        fragment=fragment,
        place=place_of(fragment),
        age=age_of(fragment, as_of=response.as_of),
        marks=tuple(dict.fromkeys(FragmentMark(text, _kind(flag)) for flag, text in MARKS.items() if flag in fragment.flags)),
        order=order,
        snippet=cutter.cut(fragment.content).pieces,
        bar=bar_of(fragment.scores, weights),
        words=f"{fragment.scores.lexical / TERM_ONE:.2f}",
        nearness=(nearness.name, "" if near == NO_VECTOR else near),
        terms=terms_of(fragment.explanation),
        said=tuple(each for each in response.governance if each.chunk_id == fragment.chunk_id),
    )


def _kind(flag: str) -> str:
    if flag in _BAD_MARKS:
        return "bad"
    return "good" if flag in _GOOD_MARKS else "warn"


def _facet(field: str, counts: Mapping[str, int], chosen: tuple[str, ...]) -> tuple[str, tuple[FacetValue, ...], int]:
    missing = {value: 0 for value in chosen if value not in counts}
    ordered = sorted({**counts, **missing}.items(), key=lambda each: (each[0] not in chosen, -each[1], each[0]))
    shown = [FacetValue(value, count, value in chosen) for value, count in ordered]
    return field, tuple(shown[:MAX_VALUES]), max(0, len(shown) - MAX_VALUES)
