"""A base's own calibration of the confidence, from questions whose relevant documents are known.

The base is asked each of them as a default request; what the shipped model says of the fragments is moved along its logistic curve until
it agrees with the judgments (Platt 1999). Two numbers are fitted, and both are held towards no change, so that 20 questions are enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec
import numpy as np

from evidentia.base.sync_base import Base, connect
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.receipts import ConfidenceCalibration
from evidentia.evaluation.datasets import load_dataset
from evidentia.evaluation.runs import line_error, numbered_lines
from evidentia.ranking.confidence import FEATURE_BITS, calibrated
from evidentia.wiring.model_registry import read_calibration, write_calibration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FEWEST_QUESTIONS: Final = 20
DEADLINE_MS: Final = 60_000
_FIELD: Final = "questions"
_ONE: Final = 1 << FEATURE_BITS
_MILLION: Final = 1_000_000
_FOLDS: Final = 5
_FIRST_WEIGHT: Final = 3.0
"""What the first fragment of an answer counts beside another: it is the one that people act on."""
_HELD_SCALE, _HELD_SHIFT = 60.0, 3.0
"""How firmly scale and shift are held to 1 and 0, as precisions of their priors; looser was worse from 20 questions of each judged set."""
_LEAST_SCALE: Final = 0.1
_MAX_SHIFT: Final = 20.0


class JudgedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with the ids of the documents that are relevant to it; none where nothing in the base answers it."""

    question: Annotated[str, msgspec.Meta(min_length=1)]
    relevant: tuple[str, ...]


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """How far a confidence can be taken as a probability."""

    calibration_error: float
    """The expected calibration error over ten bins of equal mass."""
    brier: float


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was fitted and what it is worth: `after` is said of questions by fits that had not seen them."""

    calibration: ConfidenceCalibration
    questions: int
    fragments: int
    relevant: float
    """The share of fragments that are relevant."""
    before: Reliability
    after: Reliability
    constant_brier: float
    """The Brier score of always saying that share."""
    is_stored: bool


class _Pair(NamedTuple):
    """A fragment of an answer: what the shipped model says of it, as a point of the curve and in millionths, and the judgment."""

    question: int
    point: float
    chance: int
    is_relevant: bool
    weight: float


def read_questions(path: Path, *, split: str = "test") -> list[JudgedQuestion]:
    """Return the judged questions of a folder in the layout of BEIR, or of a file with a JSON object per line."""
    if path.is_dir():
        dataset = load_dataset(path, split=split, needs_corpus=False)
        grades = dataset.qrels
        return [
            JudgedQuestion(question=each.text, relevant=tuple(sorted(name for name, grade in grades[each.query_id].items() if grade > 0)))
            for each in dataset.queries
        ]
    decode = json_decoder(JudgedQuestion)
    found = []
    for number, line in numbered_lines(path, field=_FIELD):
        try:
            found.append(decode(line))
        except msgspec.DecodeError as error:
            problem = str(error)
            raise line_error(path, number, problem[:1].lower() + problem[1:], field=_FIELD) from error
    return found


def calibrate(
    directory: Path, questions: Sequence[JudgedQuestion], *, store: bool = True, on_answer: Callable[[int, int], None] | None = None
) -> CalibrationReport:
    """Fit the calibration of the base in a directory and store it there; answers use it once the base is opened anew."""
    if len(questions) < FEWEST_QUESTIONS:
        raise InvalidFieldError(_FIELD, f"there are {len(questions)}, and at least {FEWEST_QUESTIONS} are needed")
    present = read_calibration(directory)
    with connect(directory) as base:  # opened here, so that it answers with the calibration just read
        pairs = _ask(base, questions, present=present, on_answer=on_answer)
    if not any(each.is_relevant for each in pairs):
        raise InvalidFieldError(_FIELD, "no fragment that was found belongs to a relevant document; are the ids those of the base?")
    basis = f"{len(questions)} judged questions of this base"
    calibration = _fit(pairs, basis=basis)
    if store:
        write_calibration(directory, calibration)
    outcomes = np.array([each.is_relevant for each in pairs], dtype=np.float64)
    share = float(outcomes.mean())
    return CalibrationReport(
        calibration=calibration,
        questions=len(questions),
        fragments=len(pairs),
        relevant=share,
        before=_reliability([each.chance for each in pairs], outcomes),
        after=_reliability(_cross_validated(pairs, basis=basis), outcomes),
        constant_brier=share * (1 - share),
        is_stored=store,
    )


def _ask(
    base: Base,
    questions: Sequence[JudgedQuestion],
    *,
    present: ConfidenceCalibration | None,
    on_answer: Callable[[int, int], None] | None,
) -> list[_Pair]:
    """Return what the shipped model says of each fragment, beside the judgment; what the present calibration did is undone."""
    scale, shift = (1.0, 0.0) if present is None else (present.scale / _ONE, present.shift / _ONE)
    pairs = []
    for number, asked in enumerate(questions):
        response = base.retrieve(asked.question, receipt=False, latency_deadline_ms=DEADLINE_MS)
        own = [each for each in response.fragments if each.event is not None]  # a source outside says for itself how sure it is
        for place, fragment in enumerate(own):
            known = {fragment.document_id, fragment.document_id.partition(":")[2]}
            chance = min(max(fragment.confidence, 1 / _MILLION), 1 - 1 / _MILLION)
            point = (math.log(chance / (1 - chance)) - shift) / scale
            shipped = round(_MILLION / (1 + math.exp(-point)))
            pairs.append(_Pair(number, point, shipped, not known.isdisjoint(asked.relevant), 1.0 if place else _FIRST_WEIGHT))
        if on_answer is not None:
            on_answer(number + 1, len(questions))
    return pairs


def _fit(pairs: Sequence[_Pair], *, basis: str) -> ConfidenceCalibration:
    """Return scale and shift by Newton's method on the likelihood and the priors."""
    design = np.array([(each.point, 1.0) for each in pairs])
    labels, masses = np.array([each.is_relevant for each in pairs], dtype=np.float64), np.array([each.weight for each in pairs])
    held, prior = np.array([_HELD_SCALE, _HELD_SHIFT]), np.array([1.0, 0.0])
    found = prior.copy()
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        gradient = design.T @ (masses * (labels - chance)) - held * (found - prior)
        curvature = (design * (masses * chance * (1 - chance))[:, None]).T @ design + np.diag(held)
        found = found + np.clip(np.linalg.solve(curvature, gradient), -1, 1)
    scale, shift = max(_LEAST_SCALE, float(found[0])), min(max(float(found[1]), -_MAX_SHIFT), _MAX_SHIFT)
    return ConfidenceCalibration(basis=basis, scale=round(scale * _ONE), shift=round(shift * _ONE))


def _cross_validated(pairs: Sequence[_Pair], *, basis: str) -> list[int]:
    """Return what is said of each fragment by a fit to the questions of the other folds."""
    fits = [_fit([each for each in pairs if each.question % _FOLDS != fold], basis=basis) for fold in range(_FOLDS)]
    return [calibrated(each.chance, fits[each.question % _FOLDS]) for each in pairs]


def _reliability(said: Sequence[int], outcomes: NDArray[np.float64]) -> Reliability:
    chances = np.array(said, dtype=np.float64) / _MILLION
    order = np.argsort(chances, kind="stable")
    gaps = [abs(float(part.sum())) for part in np.array_split((chances - outcomes)[order], 10)]
    return Reliability(calibration_error=sum(gaps) / len(chances), brier=float(np.mean((chances - outcomes) ** 2)))
