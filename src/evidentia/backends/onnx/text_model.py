"""A graph and its tokenizer, opened once per process and run so that the same text gives the same numbers every time.

What was hashed is what is run: a graph is opened from checked bytes, and one that keeps weights in other files is refused.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from evidentia.backends.onnx.model_folder import MODEL, TOKENIZER, read_named, unusable
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Encoding, Tokenizer

    from evidentia.contracts.ids import Sha256

    States = NDArray[np.float32]

INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_FIELDS: Final = dict(zip(INPUTS, ("ids", "attention_mask", "type_ids"), strict=True))
"""What the tokenizer calls them; each is made into a list when it is asked for."""
INTEGERS: Final[Mapping[str, np.dtype[Any]]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}
FLOATS: Final = ("tensor(float)", "tensor(float16)", "tensor(double)")

_ERRORS_ONLY: Final = 3
_ELSEWHERE: Final = "session.model_external_initializers_file_folder_path"

_opened: dict[_Key, TextModel] = {}
_opening: Final = threading.Lock()


class _Key(NamedTuple):
    folder: Path
    model_hash: Sha256
    tokenizer_hash: Sha256
    max_tokens: int


class TextModel:
    """A graph that reads token ids. Thread safe: neither graph nor tokenizer keeps anything between two texts."""

    def __init__(self, folder: Path, *, session: InferenceSession, tokenizer: Tokenizer) -> None:
        self.folder = folder
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = _inputs_of(session, folder=folder)
        self._outputs = {output.name: len(output.shape or ()) for output in session.get_outputs() if output.type in FLOATS}

    @property
    def outputs(self) -> Mapping[str, int]:
        """Return the graph's floating-point outputs with their number of axes, 0 where the graph does not say."""
        return self._outputs

    def tokens(self, text: str, *, pair: str | None = None) -> Encoding:
        """Return the tokens of a text, or of two that are read together."""
        try:
            return self._tokenizer.encode(text, pair)
        except TypeError as error:
            raise InvalidFieldError("text", "it holds an unpaired surrogate") from error

    def fields(self, tokens: Encoding) -> Mapping[str, list[int]]:
        """Return tokens under the names of the graph's inputs, those alone that it has."""
        return {name: getattr(tokens, _FIELDS[name]) for name in self._inputs}

    def run(self, tokens: Mapping[str, list[int]], *, output: str) -> States:
        """Run the graph on one row of tokens and return one of its outputs without the axis of the row."""
        feed = {name: np.array([tokens[name]], dtype=dtype) for name, dtype in self._inputs.items()}
        try:
            rows = self._session.run([output], feed)[0]
        except _refusals() as error:
            count = len(tokens["input_ids"])
            raise unusable(
                self.folder, f"its '{MODEL}' failed on {count} tokens; are max_tokens and '{TOKENIZER}' those of the model?"
            ) from error
        if rows.shape[:1] != (1,):
            raise unusable(
                self.folder, f"its '{MODEL}' gives '{output}' in the shape {rows.shape} for one text, where the first axis should be 1"
            )
        with np.errstate(over="ignore"):
            return np.asarray(rows[0], dtype=np.float32)


def open_model(folder: Path, *, model_hash: Sha256, tokenizer_hash: Sha256, max_tokens: int) -> TextModel:
    """Return the model of a folder, opened by whichever thread comes first and kept until the process ends."""
    key = _Key(folder=folder, model_hash=model_hash, tokenizer_hash=tokenizer_hash, max_tokens=max_tokens)
    with _opening:
        if key not in _opened:
            tokenizer = _open_tokenizer(folder, read_named(folder, TOKENIZER, sha256=tokenizer_hash), max_tokens=max_tokens)
            session = _open_session(folder, read_named(folder, MODEL, sha256=model_hash))
            _opened[key] = TextModel(folder, session=session, tokenizer=tokenizer)
        return _opened[key]


def _open_tokenizer(folder: Path, content: bytes, *, max_tokens: int) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(content)
    except ValueError as error:
        raise unusable(folder, f"its '{TOKENIZER}' is no tokenizer of the Hugging Face format ({error})") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _open_session(folder: Path, content: bytes) -> InferenceSession:
    from onnxruntime import InferenceSession

    try:
        return InferenceSession(content, _steady_options(folder), providers=["CPUExecutionProvider"])
    except _refusals() as error:
        problem = f"its '{MODEL}' cannot be opened ({_first_line(error)}); it has to be one ONNX file that holds its own weights"
        raise unusable(folder, problem) from error


def _steady_options(folder: Path) -> SessionOptions:
    from onnxruntime import ExecutionMode, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = _ERRORS_ONLY
    # A graph opened from bytes would look for further files in the working directory; below a file there are none.
    options.add_session_config_entry(_ELSEWHERE, str(folder / MODEL / "none"))
    return options


def _inputs_of(session: InferenceSession, *, folder: Path) -> Mapping[str, np.dtype[Any]]:
    """Return the inputs the graph wants with their integer types; Any, since there are two."""
    inputs = {entry.name: entry.type for entry in session.get_inputs()}
    unknown = [name for name in inputs if name not in INPUTS]
    if unknown or INPUTS[0] not in inputs:
        raise unusable(folder, f"its '{MODEL}' takes {_quoted(inputs)}, and a text model takes 'input_ids', maybe {_quoted(INPUTS[1:])}")
    wrong = [name for name, kind in inputs.items() if kind not in INTEGERS]
    if wrong:
        raise unusable(folder, f"its '{MODEL}' takes '{wrong[0]}' as {inputs[wrong[0]]}, and tokens are int64 or int32")
    return {name: INTEGERS[kind] for name, kind in inputs.items()}


def _refusals() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises; its exceptions have no base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state

    kinds = [kind for kind in vars(onnxruntime_pybind11_state).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return (*kinds, ValueError, RuntimeError)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _quoted(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
