"""Faithfulness of claims to passages by words alone (a hallucination check): the best passage, its sentences, and what is against it.

No model of a language, no input or output, no clock. The score of a claim is that of its best passage, so a further passage never
lowers it. Linear in the length of the passages.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec

from evidentia.contracts.canonical import hash_record
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingNote, GroundingReason, GroundingReport, GroundingScore, SupportingSentence
from evidentia.contracts.ports import ClaimScorer
from evidentia.grounding.claim_features import ONE, Features, PassageMatch, find
from evidentia.grounding.claim_terms import ClaimTerms, PassageTerms, read_claim, read_passage, terms_of
from evidentia.grounding.scorer_results import checked_pairs, checked_texts, outcome, unscored
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Similarity = Callable[[str, str], int]
    """Says how near a claim and a window are, in thousandths."""


UNLIMITED_MS: Final = 3_600_000


class _Judged(NamedTuple):
    sentence: SupportingSentence
    """Empty where the passage has no word of the claim."""
    finding: PassageMatch


class WordScorer(ClaimScorer):
    """Implements `ClaimScorer` with words alone. Thread safe; the same input gives the same score on every machine."""

    def __init__(self, model: GroundingModel | None = None) -> None:
        self._model = shipped_models().words if model is None else model
        self._identity = f"evidentia-words@{self._model.identity}"

    @property
    def identity(self) -> str:
        """Return the name and the hash of the model."""
        return self._identity

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order. The work is bounded by the texts and needs no clock, so the budget is not looked at."""
        del budget_ms
        return score_claims(claims, passages, model=self._model, identity=self._identity)


def ground(claim: str, passages: Sequence[str]) -> GroundingScore:
    """Return how well passages support a claim, which sentences do so, and what speaks against it."""
    if not isinstance(claim, str):
        raise InvalidFieldError("claim", f"it is a {type(claim).__name__}; pass the claim as text")
    return _shipped_scorer().score([claim], passages, budget_ms=UNLIMITED_MS)[0]


def ground_answer(answer: str, passages: Sequence[tuple[str, str]], *, scorer: ClaimScorer | None = None) -> GroundingReport:
    """Return an answer claim by claim; `passages` are pairs of an id and a text, and the citations name those ids."""
    claims = [claim.text for claim in split_claims(answer)]
    pairs = checked_pairs("passages", passages)
    scores = tuple((scorer or _shipped_scorer()).score(claims, [text for _, text in pairs], budget_ms=UNLIMITED_MS)) if claims else ()
    cited = [pairs[sentence.passage][0] for score in scores if score.supported for sentence in score.evidence]
    return GroundingReport(
        claims=scores,
        citations=tuple(dict.fromkeys(cited)),
        unsupported=tuple(score.claim for score in scores if not score.supported),
        confidence_milli=sum(score.score_milli for score in scores) // len(scores) if scores else 0,
    )


def score_claims(
    claims: Sequence[str], passages: Sequence[str], *, model: GroundingModel, identity: str, similarity: Similarity | None = None
) -> tuple[GroundingScore, ...]:
    """Return one score per claim by a given model; passages are read once for all claims."""
    texts = checked_texts("claims", claims)
    sources = checked_texts("passages", passages)
    read = [read_passage(text) for text in sources]
    return tuple(_score(text, sources, read, model=model, identity=identity, similarity=similarity) for text in texts)


@cache
def _shipped_scorer() -> WordScorer:
    return WordScorer()


def _score(
    text: str,
    texts: Sequence[str],
    read: Sequence[PassageTerms],
    *,
    model: GroundingModel,
    identity: str,
    similarity: Similarity | None,
) -> GroundingScore:
    claim = read_claim(text)
    if not any(passage.spans for passage in read):
        return unscored(text, identity=identity, reason=GroundingReason.NO_PASSAGES)
    if not claim.weights:
        return unscored(text, identity=identity, about=("no words with content",))
    judged = [
        _judge(place, text, claim, texts[place], passage, model=model, similarity=similarity)
        for place, passage in enumerate(read)
        if passage.spans
    ]
    best = max(judged, key=lambda each: (each.sentence.score_milli, -each.sentence.passage))
    place = best.sentence.passage
    return outcome(
        text,
        [each.sentence for each in judged],
        threshold_milli=model.threshold_milli,
        identity=identity,
        reasons=notes_of(claim, best.finding, text=texts[place], passage=read[place]),
    )


def _judge(
    place: int, text: str, claim: ClaimTerms, source: str, passage: PassageTerms, *, model: GroundingModel, similarity: Similarity | None
) -> _Judged:
    finding = find(claim, passage)
    window = finding.window
    start, end = passage.spans[window.first].start, passage.spans[window.last - 1].end
    near = 0 if similarity is None else similarity(text, source[start:end])
    score_milli = predict(model, finding.features, similarity_milli=near)
    if not window.coverage:
        start = end = 0
    sentence = SupportingSentence(passage=place, start=start, end=end, text=source[start:end], score_milli=score_milli)
    return _Judged(sentence, finding)


# --- model ---
# The fitted model: a logistic regression over the features, with integer weights that are data. Nothing here fits it.

SIMILARITY: Final = "similarity"
"""The one input that is no feature of the words: the encoder's, where there is one."""
INPUTS: Final = (*Features.__struct_fields__, SIMILARITY)
"""The names a model may weigh."""

_LARGEST_WEIGHT: Final = 1 << 24
_FILE: Final = "weights.json"
_STEP: Final = 250
_LOGISTIC: Final = (
    500, 562, 622, 679, 731, 777, 818, 852, 881, 905, 924, 940, 953, 963, 971, 977, 982, 986, 989, 991, 993, 995, 996, 997, 998,
)  # fmt: skip
"""1,000 / (1 + exp(-x)) for x from 0 to 6 in quarters; between them the line is straight, beyond them it is flat."""

Weight = Annotated[int, msgspec.Meta(ge=-_LARGEST_WEIGHT, le=_LARGEST_WEIGHT)]


class GroundingModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ln(supported / not) = intercept + the sum of weight * input, all in thousandths."""

    version: Literal[1] = 1
    basis: str = ""
    """What it was fitted on."""
    intercept: Weight = 0
    weights: dict[str, Weight] = {}
    threshold_milli: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 500
    """The least score of a claim that is supported."""

    @property
    def identity(self) -> str:
        """Return a hash that changes with every number of the model."""
        deciding = {"version": self.version, "intercept": self.intercept, "weights": self.weights, "threshold": self.threshold_milli}
        return hash_record(deciding)


class ShippedModels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of the package: one over words, one over words and an encoder's similarity, one over similarity alone."""

    words: GroundingModel
    with_encoder: GroundingModel
    similarity: GroundingModel


def read_models(content: bytes) -> ShippedModels:
    """Return the models that a JSON file holds; one that weighs an unknown input is refused."""
    try:
        models = decode_json(content, ShippedModels)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFieldError("weights", f"the models cannot be read ({error}); fit them again") from error
    for model in (models.words, models.with_encoder, models.similarity):
        unknown = sorted(set(model.weights) - set(INPUTS))
        if unknown:
            raise InvalidFieldError("weights", f"'{unknown[0]}' is not one of {', '.join(INPUTS)}")
    return models


@cache
def shipped_models() -> ShippedModels:
    """Return the models that come with the package, as `tools/fit_grounding.py` wrote them."""
    return read_models(files("evidentia.grounding").joinpath(_FILE).read_bytes())


def predict(model: GroundingModel, features: Features, *, similarity_milli: int = 0) -> int:
    """Return the score in thousandths, 2 to 998."""
    margin = model.intercept * ONE
    for name, weight in model.weights.items():
        margin += weight * (similarity_milli if name == SIMILARITY else getattr(features, name))
    return logistic(margin // ONE)


def logistic(margin_milli: int) -> int:
    """Return 1,000 / (1 + exp(-margin)) from a table, so that it is the same on every machine."""
    if margin_milli < 0:
        return ONE - logistic(-margin_milli)
    step, rest = divmod(margin_milli, _STEP)
    if step >= len(_LOGISTIC) - 1:
        return _LOGISTIC[-1]
    low, high = _LOGISTIC[step : step + 2]
    return low + (high - low) * rest // _STEP


# --- notes ---
# Why a claim has its score, in the words of the claim and of the passage.

MAX_NAMED: Final = 8
"""Words, numbers or names that one reason is about, at most."""
COVERED_MILLI: Final = 850


def notes_of(claim: ClaimTerms, finding: PassageMatch, *, text: str, passage: PassageTerms) -> tuple[GroundingNote, ...]:
    """Return the reasons in a fixed order: what is covered or missing, then numbers, units, names, negation and direction."""
    return tuple(_notes(claim, finding, text=text, passage=passage))


def _notes(claim: ClaimTerms, finding: PassageMatch, *, text: str, passage: PassageTerms) -> Iterator[GroundingNote]:
    if finding.window.coverage >= COVERED_MILLI:
        yield GroundingNote(reason=GroundingReason.COVERED)
    else:
        heaviest = sorted(finding.missing, key=lambda term: (-claim.weights[term], term))
        yield _note(GroundingReason.WORDS_MISSING, (claim.surfaces[term] for term in heaviest))
    if finding.numbers:
        yield _note(GroundingReason.NUMBER_MISMATCH, finding.numbers)
    if finding.units:
        yield _note(GroundingReason.UNIT_MISMATCH, finding.units)
    if finding.names:
        yield _note(GroundingReason.NAME_MISSING, finding.names)
    if finding.features.negation_lost:
        yield _note(GroundingReason.NEGATION_MISMATCH, (claim.surfaces[term] for term in claim.negations))
    elif finding.features.negation_added:
        yield _note(GroundingReason.NEGATION_MISMATCH, (_surface(term, text, passage, sentence) for term, sentence in finding.denials))
    if _is_turned(finding):
        yield _note(GroundingReason.DIRECTION_MISMATCH, _directions(claim, finding, text=text, passage=passage))


def _is_turned(finding: PassageMatch) -> bool:
    features = finding.features
    against, along = features.direction_against, features.direction_with
    return (against > 0 and against >= along) or (features.direction_turned > 0 and not along)


def _directions(claim: ClaimTerms, finding: PassageMatch, *, text: str, passage: PassageTerms) -> Iterator[str]:
    for word, opposite, sentence in finding.turns:
        yield f"{claim.surfaces[word]} / {_surface(opposite, text, passage, sentence)}"
    if not finding.turns:
        yield from (claim.surfaces[direction.word] for direction in claim.directions)


def _surface(term: str, text: str, passage: PassageTerms, sentence: int) -> str:
    """Return how a sentence writes a term."""
    span = passage.spans[sentence]
    for piece in text[span.start : span.end].split():
        if term in terms_of(piece):
            return piece.strip(".,;:!?()[]{}\"'")
    return term


def _note(reason: GroundingReason, about: Iterable[str]) -> GroundingNote:
    return GroundingNote(reason=reason, about=tuple(dict.fromkeys(islice(about, MAX_NAMED))))


# --- claims ---
# An answer cut into claims, by exact character spans. What asserts nothing is no claim: headings, questions, greetings, code, rules.
#
# A claim is a sentence, without its list mark. Refuses to rephrase: a pronoun stays a pronoun.

LEAST_WORDS: Final = 2
"""Words with content that a claim has at least."""

_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]{0,3}\1[`~]*+[ \t]*+$|\Z)", re.MULTILINE | re.DOTALL)
_MARK: Final = re.compile(r"\s*(?:[-*+\u2022>]\s+|\(?\d{1,3}[.)]\s+|\(?[a-zA-Z][.)]\s+)?(?:\[[ xX]\]\s+)?")
_RULE: Final = re.compile(r"[\W_]*")
_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|dear|greetings|good (?:morning|afternoon|evening)|thanks|thank you|you(?:'|\u2019)re welcome|welcome|sure|certainly"
    r"|of course|absolutely|great question|sorry|i apologi[sz]e|i hope (?:this|that)|i(?:'|\u2019)m (?:happy|glad|sorry)|let me know"
    r"|feel free|please (?:let|feel|note)|happy to help|best regards|kind regards|regards|sincerely|cheers"
    r"|here (?:is|are)|here(?:'|\u2019)s"
    r"|based on (?:the|these|your))\b",
    re.IGNORECASE,
)
_MAX_GREETING_LENGTH: Final = 12
_CLOSERS: Final = "\"')]}*_\u2019\u201d\u00bb"


class ClaimSpan(NamedTuple):
    """Characters `start` up to, not including, `end` of the answer, and what stands there."""

    start: int
    end: int
    text: str


def split_claims(answer: str) -> list[ClaimSpan]:
    """Return the claims of an answer in order, never overlapping; empty when it asserts nothing."""
    if not isinstance(answer, str):
        raise InvalidFieldError("answer", f"it is a {type(answer).__name__}; pass the answer as text")
    # Code is blanked, not cut, so that spans stay those of the answer.
    prose = _FENCE.sub(lambda found: re.sub(r"\S", " ", found[0]), answer) if "```" in answer or "~~~" in answer else answer
    claims: list[ClaimSpan] = []
    for span in split_sentences(prose):
        mark = _MARK.match(answer, span.start, span.end)
        start = mark.end() if mark else span.start
        text = answer[start : span.end]
        if is_claim(text):
            claims.append(ClaimSpan(start, span.end, text))
    return claims


def is_claim(sentence: str) -> bool:
    """Tell whether a sentence asserts something that evidence could support."""
    bare = sentence.strip()
    if _RULE.fullmatch(bare) or bare.startswith(("#", "|")):
        return False
    ending = bare.rstrip(_CLOSERS)
    if ending.endswith(("?", "\uff1f", ":")) or _is_heading(bare):
        return False
    if _GREETING.match(bare) and len(bare.split()) <= _MAX_GREETING_LENGTH:
        return False
    return len(read_claim(bare).weights) >= LEAST_WORDS


def _is_heading(sentence: str) -> bool:
    """Tell whether a line is all in emphasis without a full stop, as headings are written without a mark."""
    is_emphasised = sentence.startswith(("**", "__")) and sentence.endswith(("**", "__"))
    return is_emphasised and not sentence.strip("*_ ").endswith((".", "!", "\u3002"))
