"""A checked request with everything that follows from it before anything is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.answer_rules import TODAY, AnswerRules
from evidentia.contracts.evidence import SubQuery
from evidentia.federation.source_plan import SourcePlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.evidence import EvidenceRequest, QueryStep
    from evidentia.contracts.ports import Encoder, Merger, QueryRewriter, Reranker, SearchableSnapshot
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.receipts import RecordedInputs
    from evidentia.contracts.search import AccessScope, DenseQuery, LexicalQuery
    from evidentia.policy.evaluator import PolicySet
    from evidentia.query.synonyms import Synonyms
    from evidentia.ranking.query_weights import QueryFeatures


NO_PLAN = SourcePlan(searched=(), skipped={}, narrowing=None)


class Part(NamedTuple):
    """One thing to search for: its words, its vector if vectors take part, and its weight among the parts."""

    text: str
    words: LexicalQuery
    vector: DenseQuery | None
    weight: int
    asked: str = ""
    """What a source outside the base is asked for it."""


class Question(NamedTuple):
    """Who may see what, what is asked, and of which version; `parts` begins with the question as a whole."""

    request: EvidenceRequest
    scope: AccessScope
    snapshot: SearchableSnapshot
    parts: tuple[Part, ...]
    steps: tuple[QueryStep, ...]
    features: QueryFeatures | None
    uses_words: bool
    inputs: RecordedInputs
    policies: PolicySet
    """Those in scope for whoever asks."""
    rules: AnswerRules = TODAY
    """Those of the engine version that answers, which is an older one where a receipt is replayed."""
    plan: SourcePlan = NO_PLAN
    """Which sources take part; filled in when the question is understood."""

    @property
    def limit(self) -> int:
        """Return how many fragments are wanted at most, which checking has filled in."""
        if self.request.limit is None:
            raise AssertionError
        return self.request.limit

    @property
    def words(self) -> LexicalQuery:
        """Return the words of the question as a whole."""
        return self.parts[0].words

    @property
    def asked(self) -> tuple[SubQuery, ...]:
        """Return what sources outside the base are asked: the parts that the request brings, else those that were found, else the whole."""
        return self.request.query.subqueries or tuple(SubQuery(text=part.asked) for part in self.parts[1:] or self.parts)

    @property
    def narrowing(self) -> Predicate | None:
        """Return what the request wants of what the caller may see."""
        return self.plan.narrowing

    @property
    def is_owners(self) -> bool:
        """Tell whether the owner asks."""
        return self.request.principal is not None and self.request.principal.is_owner

    @property
    def uses_vectors(self) -> bool:
        """Tell whether vectors take part."""
        return self.parts[0].vector is not None

    @property
    def weighs_authority(self) -> bool:
        """Tell whether authority counts; whoever gives it no weight wants the order of the match itself."""
        weights = self.request.ranking_weights
        return weights is None or bool(weights.authority)

    def without_vectors(self) -> Question:
        """Return the question as it is where there are no vectors."""
        return self._replace(parts=tuple(part._replace(vector=None) for part in self.parts), uses_words=True)


# --- outside ---
# The models an engine may ask, each made when it is first needed; what they say is recorded in the receipt.


class Models(NamedTuple):
    """What the settings name besides the index; without a setting there is none."""

    encoder: Callable[[], Encoder | None]
    reranker: Callable[[], Reranker | None]
    rewriter: Callable[[], QueryRewriter | None]
    merger: Callable[[], Merger | None]
    synonyms: Synonyms | None
