"""A claim model from a folder: how its logits become scores, how long it may take, and which folders it refuses."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from evidentia.backends.onnx.onnx_claim_scorer import OnnxClaimScorer
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingReason
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

WORDS = ("red", "green", "blue", "night", "morning", "rain")
UNKNOWN = "[UNK]"
PLENTY_MS = 10**9


class ScriptedClock:
    """Says that each call between two readings took so many milliseconds; implements `Clock`."""

    def __init__(self, *durations_ms: int) -> None:
        self._readings = [0, *accumulate(duration * 1_000_000 for duration in durations_ms)]
        self._read = 0

    def now(self) -> datetime:
        return START

    def elapsed_ns(self) -> int:
        self._read += 1
        return self._readings[min(self._read, len(self._readings)) - 1]


def first_minus_second(factors: Sequence[float]) -> bytes:
    """Return a graph with one logit per factor: the factor times (tokens of the first text - tokens of the second)."""
    axis = numpy_helper.from_array(np.array([1], dtype=np.int64), "axis")
    factor = numpy_helper.from_array(np.array([factors], dtype=np.float32), "factors")
    nodes = [
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["both"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["both", "second"], ["first"]),
        helper.make_node("Sub", ["first", "second"], ["difference"]),
        helper.make_node("ReduceSum", ["difference", "axis"], ["sum"], keepdims=1),
        helper.make_node("Mul", ["sum", "factors"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "lengths",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, len(factors)])],
        [axis, factor],
    )
    # The ids are an input that the graph does not use, which ONNX allows.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def write_folder(folder: Path, *, factors: Sequence[float] = (1.0,), settings: object = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate((UNKNOWN, *WORDS))}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1", special_tokens=[])
    (folder / "model.onnx").write_bytes(first_minus_second(factors))
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    if settings is not None:
        (folder / "claims.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def open_folder(folder: Path, *durations_ms: int) -> OnnxClaimScorer:
    return OnnxClaimScorer(folder, clock=ScriptedClock(*durations_ms))


@pytest.mark.parametrize(
    ("factors", "settings", "score_milli"),
    [
        ((1.0,), None, 881),  # 1 / (1 + exp(-2))
        ((-1.0,), None, 119),
        ((0.0, 1.0), None, 881),
        ((1.0, 0.0, 0.0), {"entailment": 0}, 787),  # exp(2) / (exp(2) + 2)
        ((1.0, 0.0, 0.0), {"entailment": 2}, 107),
        ((1e30,), None, 1000),
    ],
)
def test_logits_become_thousandths(tmp_path: Path, factors: Sequence[float], settings: object, score_milli: int) -> None:
    scorer = open_folder(write_folder(tmp_path, factors=factors, settings=settings))
    (score,) = scorer.score(["red"], ["red green blue"], budget_ms=PLENTY_MS)

    assert (score_milli, score_milli >= 500) == (score.score_milli, score.supported)
    assert scorer.identity == score.scorer


def test_best_passage_is_the_evidence_and_blank_ones_are_not_read(tmp_path: Path) -> None:
    scorer = open_folder(write_folder(tmp_path))
    (score,) = scorer.score(["red blue"], [" ", "red", "red green blue night", "rain rain"], budget_ms=PLENTY_MS)

    assert [(2, "red green blue night"), (3, "rain rain")] == [(each.passage, each.text) for each in score.evidence]
    assert (0, 20) == (score.evidence[0].start, score.evidence[0].end)


def test_without_passages_there_is_nothing_to_read(tmp_path: Path) -> None:
    (score,) = open_folder(write_folder(tmp_path)).score(["red"], ["", "\n"], budget_ms=PLENTY_MS)

    assert (0, False, GroundingReason.NO_PASSAGES) == (score.score_milli, score.supported, score.reasons[0].reason)


def test_claims_that_do_not_fit_the_budget_are_unscored(tmp_path: Path) -> None:
    scores = open_folder(write_folder(tmp_path), 40, 30, 30).score(["red", "green", "blue"], ["rain rain"], budget_ms=100)

    assert [731, 731, 0] == [score.score_milli for score in scores]
    assert (GroundingReason.UNSCORED, ("no time",)) == (scores[2].reasons[0].reason, scores[2].reasons[0].about)


def test_without_time_nothing_is_judged(tmp_path: Path) -> None:
    (score,) = open_folder(write_folder(tmp_path)).score(["red"], ["rain"], budget_ms=0)

    assert GroundingReason.UNSCORED == score.reasons[0].reason


def test_threshold_is_the_folder_s(tmp_path: Path) -> None:
    scorer = open_folder(write_folder(tmp_path, settings={"threshold_milli": 900}))

    assert not scorer.score(["red"], ["red green blue"], budget_ms=PLENTY_MS)[0].supported


def test_identity_changes_with_the_model_and_the_settings_but_not_with_the_name(tmp_path: Path) -> None:
    settings = [None, {"name": "other"}, {"threshold_milli": 900}, {"max_tokens": 99}, {"entailment": 0}]
    identities = [open_folder(write_folder(tmp_path / str(place), settings=each)).identity for place, each in enumerate(settings)]
    other = open_folder(write_folder(tmp_path / "model", factors=(2.0,))).identity
    hashes = [identity.partition("@")[2] for identity in (*identities, other)]

    assert hashes[0] == hashes[1]
    assert 5 == len(set(hashes))
    assert identities[1].startswith("other@")


@pytest.mark.parametrize("settings", [None, {"entailment": 3}])
def test_several_classes_need_to_be_told_which_one_is_support(tmp_path: Path, settings: object) -> None:
    scorer = open_folder(write_folder(tmp_path, factors=(1.0, 0.0, 0.0), settings=settings))

    with pytest.raises(InvalidFieldError, match="'entailment'"):
        scorer.score(["red"], ["red"], budget_ms=PLENTY_MS)


@pytest.mark.parametrize("settings", [{"limit": 1}, {"threshold_milli": 0}, []])
def test_settings_that_are_wrong_are_refused(tmp_path: Path, settings: object) -> None:
    with pytest.raises(InvalidFieldError, match=r"claims\.json"):
        open_folder(write_folder(tmp_path, settings=settings))


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match=r"model\.onnx"):
        open_folder(tmp_path)


def test_wrong_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="'passages'"):
        open_folder(write_folder(tmp_path)).score(["red"], "text", budget_ms=PLENTY_MS)
