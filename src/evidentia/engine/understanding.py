"""Step 3: a checked request becomes a question: its words, its parts, and their vectors."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.answer_rules import rules_of
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import ServiceReplyError
from evidentia.contracts.receipts import EngineConfig, RecordedInputs
from evidentia.contracts.retrieval import Rewriting
from evidentia.contracts.search import AccessScope, DenseQuery
from evidentia.contracts.vocabulary import FusionMethod, QueryStepName, RetrievalMode
from evidentia.engine.model_calls import InlineModelCalls, ModelMissingError
from evidentia.engine.question import Models, Part, Question
from evidentia.federation.deadline import Stages
from evidentia.foundation.offload import check_abandoned, is_abandoned
from evidentia.query.understanding import WHOLE_WEIGHT, Understanding, understand
from evidentia.ranking.query_weights import QueryFeatures, query_features
from evidentia.text.weights import idf_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.evidence import EvidenceRequest
    from evidentia.contracts.ports import Encoder, Lexicon, QueryRewriter, SearchableSnapshot
    from evidentia.contracts.vectors import VectorIdentity
    from evidentia.engine.stage_log import StageLog
    from evidentia.policy.evaluator import PolicySet
    from evidentia.query import understanding as query_understanding
    from evidentia.text.tokens import Tokeniser

NO_VECTORS = "dense: this base holds no vectors, so only words were searched; `evidentia embed` makes them"
NO_ENCODER = "dense: the settings name no encoder, so only words were searched"
OTHER_VECTORS = (
    "dense: the vectors are of another encoder than the settings name, so only words were searched; `evidentia embed` renews them"
)
NONE_RECORDED = "dense: the answer was found by words alone, and so it is again"
_BYTES_PER_COMPONENT = 4
AS_WRITTEN = "understand: it took longer than its share of the deadline, so the question was searched by words, as it is written"


class Understander:
    """Understands requests under one configuration. Thread safe."""

    def __init__(self, config: EngineConfig, *, models: Models, tokeniser: Tokeniser, calls: InlineModelCalls) -> None:
        self._settings = config.query
        self._rules = rules_of(config.engine)
        self._by_query = config.ranking.weights == "by_query"
        self._models = models
        self._tokeniser = tokeniser
        self._calls = calls

    def question(
        self,
        request: EvidenceRequest,
        *,
        scope: AccessScope,
        snapshot: SearchableSnapshot,
        policies: PolicySet,
        log: StageLog,
        recorded: RecordedInputs | None,
        as_written: bool = False,
    ) -> Question:
        """Return what is searched for; what models say on the way is part of it.

        The text is encoded while its words are still being understood. One that is searched `as_written` asks no model and no lexicon.
        """
        as_written = as_written or (recorded is not None and "understand" in recorded.left_out)
        asked = msgspec.structs.replace(request, without=tuple(QueryStepName)) if as_written else request
        rewritten = self._rewritten(asked, recorded, log)
        lexicon = snapshot.lexicon(scope)
        encoding = _Encoding(self._models, self._calls, log)
        is_encoded = request.mode is not RetrievalMode.LEXICAL and snapshot.vectors is not None and recorded is None and not as_written
        understood = understand(
            asked,
            tokeniser=self._tokeniser,
            lexicon=lexicon,
            settings=self._settings,
            rules=self._rules,
            synonyms=self._models.synonyms,
            rewritten=rewritten,
            on_text=partial(encoding.submit, identity=snapshot.vectors) if is_encoded else None,
        )
        texts = [understood.text, *(part.text for part in _divided(understood))]
        if as_written:
            log.degrade(AS_WRITTEN)
            vectors: list[DenseQuery | None] = [None] * len(texts)
        else:
            vectors = self._vectors(request, texts, encoding=encoding, snapshot=snapshot, log=log, recorded=recorded)
        log.mark("understand", _note(understood))
        return Question(
            request=request,
            scope=scope,
            snapshot=snapshot,
            parts=_parts(understood, vectors),
            steps=understood.steps,
            features=features_of(understood, lexicon) if self._needs_features(request) else None,
            uses_words=request.mode is not RetrievalMode.DENSE or vectors[0] is None,
            inputs=RecordedInputs(
                query_vectors=tuple(each.vector for each in vectors if each is not None),
                rewritten=rewritten,
                reranked=recorded.reranked if recorded else None,
                replies=recorded.replies if recorded else (),
                reads_replies=recorded.reads_replies if recorded else True,
                hides_conflicts=recorded.hides_conflicts if recorded else True,
                own_missing=recorded.own_missing if recorded else "",
                policies=recorded.policies if recorded else policies.policies,
                left_out=recorded.left_out if recorded else ("understand",) if as_written else (),
            ),
            policies=policies,
            rules=self._rules,
        )

    def _needs_features(self, request: EvidenceRequest) -> bool:
        return self._by_query or request.fusion is FusionMethod.LEARNED

    def _rewritten(self, request: EvidenceRequest, recorded: RecordedInputs | None, log: StageLog) -> str | None:
        """Return what the rewriter makes of the question; a replay asks nobody."""
        if recorded is not None:
            return recorded.rewritten
        if QueryStepName.REWRITE in request.without:
            return None
        rewriter = self._models.rewriter()
        if rewriter is None:
            return None
        wait_ms = log.left_until_ms(Stages(request.latency_deadline_ms).rewriting_ends_ms)
        work = partial(_rewrite, rewriter, request, budget_ms=max(1, int(wait_ms)))
        try:
            rewriting = self._calls.begin("rewriter", work, wait_ms=wait_ms)()
        except ModelMissingError as error:
            log.degrade(f"rewrite: the question was searched as it is ({error})")
            return None
        if rewriting.problem:
            log.degrade(f"rewrite: the question was searched as it is ({rewriting.problem})")
        return rewriting.query if rewriting.query != request.query.text else None

    def _vectors(
        self,
        request: EvidenceRequest,
        texts: Sequence[str],
        *,
        encoding: _Encoding,
        snapshot: SearchableSnapshot,
        log: StageLog,
        recorded: RecordedInputs | None,
    ) -> list[DenseQuery | None]:
        """Return one vector per text, or none at all with the reason in the answer."""
        if request.mode is RetrievalMode.LEXICAL:
            return [None] * len(texts)
        identity = snapshot.vectors
        if identity is None or (recorded is not None and not recorded.query_vectors):
            log.degrade(NO_VECTORS if identity is None else NONE_RECORDED)
            return [None] * len(texts)
        if recorded is not None and len(recorded.query_vectors) == len(texts):
            return [DenseQuery(identity=identity, vector=vector) for vector in recorded.query_vectors]
        if encoding.identity != identity:
            log.degrade(NO_ENCODER if encoding.identity is None else OTHER_VECTORS)
            return [None] * len(texts)
        try:
            return [DenseQuery(identity=identity, vector=vector) for vector in encoding.vectors(texts)]
        except ModelMissingError as error:
            log.degrade(f"dense: {error}, so only words were searched")
            return [None] * len(texts)


class _Encoding:
    """Encodes the texts of one question; one that is known early is begun beside what else there is to do."""

    def __init__(self, models: Models, calls: InlineModelCalls, log: StageLog) -> None:
        self._models = models
        self._calls = calls
        self._log = log
        self._begun: dict[str, Callable[[], list[bytes]]] = {}

    @property
    def identity(self) -> VectorIdentity | None:
        """Return the space of the vectors; None where there is no encoder."""
        return None if self._encoder is None else self._encoder.identity

    def submit(self, text: str, *, identity: VectorIdentity | None) -> None:
        """Begin to encode a text, if that gives a vector of this space."""
        if self.identity == identity:
            self._begun[text] = self._begin([text])

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of texts as they are recorded, or raise ModelMissingError; the time for all of them runs from the first."""
        rest = [text for text in texts if text not in self._begun]
        found = [waiting() for text, waiting in self._begun.items() if text in texts]
        check_abandoned()
        known = {text: each[0] for text, each in zip([text for text in self._begun if text in texts], found, strict=True)}
        if rest:
            encoded = self._begin(rest)()
            check_abandoned()
            known |= zip(rest, encoded, strict=True)
        return [known[text] for text in texts]

    @cached_property
    def _encoder(self) -> Encoder | None:
        return self._models.encoder()

    @cached_property
    def _ends_ms(self) -> float:
        return Stages(self._log.deadline_ms).encoding_ends_ms(0 if self._log.no_deadline else self._log.elapsed_ms())

    def _begin(self, texts: Sequence[str]) -> Callable[[], list[bytes]]:
        """Begin to encode texts. That many take longer than there is time is no fault of the encoder, and breaks it for nobody."""
        wait_ms = self._log.left_until_ms(self._ends_ms)
        return self._calls.begin("encoder", partial(self._encode, texts), wait_ms=wait_ms, breaks=len(texts) == 1)

    def _encode(self, texts: Sequence[str]) -> list[bytes]:
        if self._encoder is None:
            raise AssertionError  # whoever encodes has compared the spaces
        vectors: list[bytes] = []
        for text in texts:
            if is_abandoned():  # nobody hears what is said here, and a fault would be held against the encoder
                return vectors
            vectors.append(self._encoder.encode_query(text).astype("<i4").tobytes())
        if any(len(vector) != _BYTES_PER_COMPONENT * self._encoder.identity.dimension for vector in vectors):
            raise ServiceReplyError(f"the encoder gives vectors of another length than {self._encoder.identity.dimension}")
        return vectors


def _rewrite(rewriter: QueryRewriter, request: EvidenceRequest, *, budget_ms: int) -> Rewriting:
    """Ask the rewriter; a reply of another type raises here, where it is heard."""
    reply = rewriter.rewrite(request.query.text, request.turns, budget_ms=budget_ms)
    return convert(msgspec.to_builtins(reply), Rewriting)


def _parts(understood: Understanding, vectors: Sequence[DenseQuery | None]) -> tuple[Part, ...]:
    """Return the question as a whole, and its parts if it has any: they share the half of the weight that the whole leaves them."""
    divided = _divided(understood)
    total = sum(part.weight for part in divided)
    shares = [WHOLE_WEIGHT // 2 * part.weight // total for part in divided] if total else [0] * len(divided)
    weight = WHOLE_WEIGHT - sum(shares)
    whole = Part(text=understood.text, words=understood.lexical, vector=vectors[0], weight=weight, asked=understood.asked)
    parts = (
        Part(text=part.text, words=part.lexical, vector=vector, weight=share, asked=part.asked)
        for part, vector, share in zip(divided, vectors[1:], shares, strict=True)
    )
    return (whole, *parts)


def _divided(understood: Understanding) -> tuple[query_understanding.Part, ...]:
    """Return the parts of a question that was divided; one that was not is its own only part."""
    is_whole = len(understood.parts) == 1 and understood.parts[0].lexical == understood.lexical
    return () if is_whole else understood.parts


def features_of(understood: Understanding, lexicon: Lexicon) -> QueryFeatures:
    """Return what a question looks like; how rare its words are is counted within what the caller may see."""
    documents, words = max(1, lexicon.chunks), understood.lexical
    rarities = {term: idf_fixed("lucene", documents=documents, containing=lexicon.chunks_with(term)) for term in words.terms}
    return query_features(words, understood.text, rarities, identifiers=len(understood.verbatim.identifiers))


def _note(understood: Understanding) -> str:
    words = understood.lexical
    parts = f", {len(understood.parts)} parts" if len(understood.parts) > 1 else ""
    added = f", {len(words.expansions)} added" if words.expansions else ""
    return f"{len(words.terms)} terms{added}, {len(words.phrases) + len(words.preferred)} phrases{parts}"
