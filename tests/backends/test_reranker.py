"""A cross-encoder from a folder: what it scores, how long it may take, and which folders it refuses."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from evidentia import connect
from evidentia.backends.onnx.reranker import LARGEST_LOGIT, OnnxReranker
from evidentia.contracts.errors import InvalidFieldError
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

WORDS = ("red", "green", "blue", "night", "morning", "rain")
ONE = 1 << 16
PLENTY_MS = 10**9


class ScriptedClock:
    """Says that each call between two readings took so many milliseconds; implements `Clock`."""

    def __init__(self, *durations_ms: int) -> None:
        self._readings = [0, *accumulate(duration * 1_000_000 for duration in durations_ms)]
        self.read = 0

    def now(self) -> datetime:
        return START

    def elapsed_ns(self) -> int:
        self.read += 1
        return self._readings[min(self.read, len(self._readings)) - 1]


def overlap_model(*, factor: float = 1.0, shift: float = 0.0, outputs: int = 1, name: str = "logits") -> bytes:
    """Return a graph that counts equal tokens of question and passage: count * factor + shift, behind -count when it has two outputs."""
    axes = [numpy_helper.from_array(np.array([axis], dtype=np.int64), f"axis_{axis}") for axis in (1, 2)]
    terms = [numpy_helper.from_array(np.array([value], dtype=np.float32), each) for each, value in (("factor", factor), ("shift", shift))]
    nodes = [
        helper.make_node("Unsqueeze", ["input_ids", "axis_1"], ["rows"]),
        helper.make_node("Unsqueeze", ["input_ids", "axis_2"], ["columns"]),
        helper.make_node("Equal", ["rows", "columns"], ["is_equal"]),
        helper.make_node("Cast", ["is_equal"], ["equal"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["in_passage"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["attended"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["attended", "in_passage"], ["in_question"]),
        helper.make_node("Einsum", ["in_question", "equal", "in_passage"], ["count"], equation="bi,bij,bj->b"),
        helper.make_node("Unsqueeze", ["count", "axis_1"], ["counts"]),
        helper.make_node("Mul", ["counts", "factor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "shift"], ["positive"]),
        helper.make_node("Neg", ["counts"], ["negative"]),
        helper.make_node("Concat", ["negative"] * (outputs - 1) + ["positive"], [name], axis=1),
    ]
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        nodes,
        "overlap",
        [helper.make_tensor_value_info(each, TensorProto.INT64, [1, "tokens"]) for each in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, outputs])],
        axes + terms,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def pair_tokenizer() -> str:
    unknown = "[UNK]"
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate((unknown, *WORDS))}, unk_token=unknown))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1", special_tokens=[])
    tokenizer.enable_padding(length=64)
    return tokenizer.to_str()


def write_folder(folder: Path, *, model: bytes | None = None, settings: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model or overlap_model())
    (folder / "tokenizer.json").write_text(pair_tokenizer(), encoding="utf-8")
    if settings is not None:
        (folder / "reranker.json").write_text(settings, encoding="utf-8")
    return folder


def open_folder(folder: Path) -> OnnxReranker:
    return OnnxReranker(folder, clock=ScriptedClock())


def scores_of(folder: Path, query: str, *passages: str) -> Sequence[int]:
    return open_folder(folder).rerank(query, passages, budget_ms=PLENTY_MS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("models") / "overlap")


# --- scores ---


def test_question_and_passage_are_read_together(folder: Path) -> None:
    assert (2 * ONE, 0, ONE) == scores_of(folder, "red night", "the RED NIGHT", "green morning", "blue night rain")


def test_of_two_logits_the_difference_counts(tmp_path: Path) -> None:
    two = write_folder(tmp_path / "two", model=overlap_model(outputs=2, shift=0.25))

    assert (4 * ONE + ONE // 4, ONE // 4) == scores_of(two, "red night", "red night", "rain")


def test_halves_are_rounded_to_the_even_neighbour(tmp_path: Path) -> None:
    halves = write_folder(tmp_path / "halves", model=overlap_model(factor=2.0**-17))

    assert (0, 2, 2, 4) == scores_of(halves, "red", "red", "red red red", "red " * 5, "red " * 7)


def test_logits_of_any_size_give_scores_of_32_bits(tmp_path: Path) -> None:
    steep = write_folder(tmp_path / "steep", model=overlap_model(factor=3e38, shift=-1e30))

    assert (LARGEST_LOGIT * ONE, -LARGEST_LOGIT * ONE) == scores_of(steep, "red", "red", "rain")


def test_longer_text_is_cut_to_the_tokens_allowed(tmp_path: Path) -> None:
    short = write_folder(tmp_path / "short", settings='{"max_tokens": 8}')

    assert (7 * ONE,) == scores_of(short, "red", "red " * 100)
    assert (16 * ONE,) == scores_of(short, "red " * 100, "red " * 100)


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=6))
def test_a_score_does_not_depend_on_the_other_passages(folder: Path, passages: list[str]) -> None:
    reranker = open_folder(folder)

    alone = tuple(reranker.rerank("red night rain", [passage], budget_ms=0)[0] for passage in passages)

    assert alone == reranker.rerank("red night rain", passages, budget_ms=PLENTY_MS)


# --- time ---


@pytest.mark.parametrize(
    ("durations_ms", "budget_ms", "scored"),
    [
        ((10, 10, 10, 10), 40, 4),
        ((10, 10, 10, 10), 39, 3),
        ((10, 10, 10, 10), 10, 1),
        ((500, 1, 1, 1), 10, 1),
        ((1, 1, 1, 1), 0, 1),
        ((1, 1, 1, 1), -5, 1),
        ((20, 1, 1, 1), 41, 3),
        ((1, 20, 1, 1), 40, 2),
        ((1, 20, 1, 1), 42, 4),
    ],
)
def test_goes_on_while_a_call_as_slow_as_the_slowest_still_fits(
    folder: Path, durations_ms: tuple[int, ...], budget_ms: int, scored: int
) -> None:
    reranker = OnnxReranker(folder, clock=ScriptedClock(*durations_ms))

    found = reranker.rerank("red", ["red", "rain", "red red", "blue"], budget_ms=budget_ms)

    assert (ONE, 0, 2 * ONE, 0)[:scored] == found


def test_nothing_to_score_is_an_answer(folder: Path) -> None:
    assert () == open_folder(folder).rerank("red", [], budget_ms=10)


# --- identity ---


def test_identity_names_the_folder_and_stays_the_same_elsewhere(tmp_path: Path) -> None:
    here, there = (open_folder(write_folder(tmp_path / place / "overlap")).identity for place in ("here", "there"))

    assert here == there
    assert here.startswith("overlap@")


def test_identity_changes_with_every_file_and_setting(tmp_path: Path) -> None:
    variants = {
        "plain": write_folder(tmp_path / "a" / "m"),
        "model": write_folder(tmp_path / "b" / "m", model=overlap_model(factor=2)),
        "tokens": write_folder(tmp_path / "c" / "m", settings='{"max_tokens": 100}'),
        "name": write_folder(tmp_path / "d" / "m", settings='{"name": "n"}'),
        "tokenizer": write_folder(tmp_path / "e" / "m"),
    }
    with (variants["tokenizer"] / "tokenizer.json").open("a", encoding="utf-8") as file:
        file.write("\n")

    assert len(variants) == len({open_folder(each).identity for each in variants.values()})


def test_settings_that_repeat_the_defaults_change_nothing(tmp_path: Path) -> None:
    said = write_folder(tmp_path / "said" / "m", settings=json.dumps({"name": "", "max_tokens": 512}))

    assert open_folder(write_folder(tmp_path / "unsaid" / "m")).identity == open_folder(said).identity


# --- folders that cannot be used ---


@pytest.mark.parametrize("settings", ["{", "[]", '{"max_tokens": 1}', '{"max_tokens": "9"}', '{"maximum": 9}', '{"name": "\\ud800"}'])
def test_malformed_settings_are_refused_by_name(tmp_path: Path, settings: str) -> None:
    broken = write_folder(tmp_path / "broken", settings=settings)

    with pytest.raises(InvalidFieldError, match=r"reranker\.json"):
        open_folder(broken)


def test_settings_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    broken = write_folder(tmp_path / "broken")
    (broken / "reranker.json").write_bytes(b'{"name": "\xff"}')

    with pytest.raises(InvalidFieldError, match=r"reranker\.json"):
        open_folder(broken)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_missing_or_malformed_file_is_named(tmp_path: Path, name: str) -> None:
    broken = write_folder(tmp_path / "broken")
    (broken / name).write_bytes(b"nothing of the kind")

    with pytest.raises(InvalidFieldError, match=name):
        open_folder(broken)

    (broken / name).unlink()

    with pytest.raises(InvalidFieldError, match=name):
        open_folder(broken)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_without_a_reranker_is_called_by_its_setting(tmp_path: Path, is_there: bool) -> None:  # noqa: FBT001
    if is_there:
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "model.onnx").write_bytes(b"nothing of the kind")
        (tmp_path / "models" / "tokenizer.json").write_bytes(b"{}")
    with connect(tmp_path / "base", init=True):
        (tmp_path / "base" / "evidentia.toml").write_text('[ranking]\nreranker = "../models"\n')

    expected = r"field 'ranking\.reranker': '.*models' cannot be used"
    with pytest.raises(InvalidFieldError, match=expected) as caught, connect(tmp_path / "base") as base:
        base.retrieve("keys")
    assert "encoder" not in str(caught.value)


def test_model_without_a_telling_output_is_refused(tmp_path: Path) -> None:
    model = onnx.load_from_string(overlap_model(name="one"))
    model.graph.node.append(helper.make_node("Identity", ["one"], ["other"]))
    model.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, [1, 1]))
    unclear = write_folder(tmp_path / "unclear", model=model.SerializeToString())

    with pytest.raises(InvalidFieldError, match="2 outputs"):
        open_folder(unclear)


def test_the_only_output_may_have_any_name(tmp_path: Path) -> None:
    other = write_folder(tmp_path / "other", model=overlap_model(name="relevance"))

    assert (ONE,) == scores_of(other, "red", "red")


def test_more_than_two_logits_are_refused(tmp_path: Path) -> None:
    three = write_folder(tmp_path / "three", model=overlap_model(outputs=3))

    with pytest.raises(InvalidFieldError, match="one or two logits"):
        scores_of(three, "red", "red")


def test_logits_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    broken = write_folder(tmp_path / "broken", model=overlap_model(factor=float("nan")))

    with pytest.raises(InvalidFieldError, match="no finite numbers"):
        scores_of(broken, "red", "red")
