"""Sentence encoders: a text becomes a row of integers, one text per call, so that no text depends on its neighbours.

Activations are quantised by the range they have in a call; in a batch, that range and with it every vector would be shared.
"""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.backends.onnx.model_folder import MODEL, SETTINGS, TOKENIZER, EncoderFolder, Pooling, read_encoder_folder, unusable
from evidentia.backends.onnx.text_model import INPUTS, TextModel, open_model
from evidentia.contracts.canonical import hash_record
from evidentia.contracts.ports import Encoder, SupportsOpening
from evidentia.contracts.vectors import LARGEST_COMPONENT, SCALE_BITS, VectorIdentity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.onnx.text_model import States
    from evidentia.contracts.errors import InvalidFieldError

PACKAGED: Final = Path(__file__).resolve().parent / "minilm"
SENTENCE_OUTPUTS: Final = ("sentence_embedding", "sentence_embeddings", "pooler_output")
TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
PROBE: Final = {name: [value] for name, value in zip(INPUTS, (0, 1, 0), strict=True)}
"""One token, the first of the vocabulary."""


class _OpenFolder(NamedTuple):
    """A folder with its model, and the output of that which is read."""

    folder: EncoderFolder
    model: TextModel
    output: str


class OnnxEncoder(Encoder, SupportsOpening):
    """Encodes with one model folder, or with one for documents and one for queries. Thread safe; models are opened on first use."""

    def __init__(self, documents: EncoderFolder, *, queries: EncoderFolder, normalise: bool) -> None:
        dimension = dimension_of(documents)
        if dimension != dimension_of(queries):
            raise unusable(queries.path, f"it gives {dimension_of(queries)} components and '{documents.path}' gives {dimension}")
        self._documents = documents
        self._queries = queries
        self._identity = VectorIdentity(
            model=hash_record(
                {
                    "documents": _deciding(documents, prefix=documents.settings.document_prefix),
                    "queries": _deciding(queries, prefix=queries.settings.query_prefix),
                    "normalise": normalise,
                }
            ),
            dimension=dimension,
            normalisation="unit" if normalise else "none",
            name=documents.settings.name or documents.path.name,
        )

    @property
    def identity(self) -> VectorIdentity:
        """Return the space its vectors live in; any changed byte or setting is another space."""
        return self._identity

    def open(self) -> None:
        """Open the model of questions and run it once, since the first run takes longer than others."""
        self.encode_query("")

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question; zeros for a text without a single token."""
        return self._encode(self._open_queries, self._queries.settings.query_prefix + text)

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage; zeros for a text without a single token."""
        return self._encode(self._open_documents, self._documents.settings.document_prefix + text)

    @cached_property
    def _open_queries(self) -> _OpenFolder:
        return _open(self._queries)

    @cached_property
    def _open_documents(self) -> _OpenFolder:
        return _open(self._documents)

    def _encode(self, opened: _OpenFolder, text: str) -> NDArray[np.int32]:
        tokens = opened.model.fields(opened.model.tokens(text))
        if not tokens[INPUTS[0]]:
            return np.zeros(self._identity.dimension, dtype=np.int32)
        states = opened.model.run(tokens, output=opened.output)
        return _rounded(_pooled(states, folder=opened.folder), identity=self._identity, folder=opened.folder)


def packaged_encoder(*, normalise: bool = True) -> OnnxEncoder:
    """Return the encoder that comes with Evidentia: all-MiniLM-L6-v2, 384 components, English, 256 tokens."""
    folder = read_encoder_folder(PACKAGED)
    return OnnxEncoder(folder, queries=folder, normalise=normalise)


def folder_encoder(folder: Path, *, query_folder: Path | None = None, normalise: bool | None = None) -> OnnxEncoder:
    """Return the encoder of a folder; with `query_folder`, questions are encoded by the model there.

    `normalise` goes before what the folders say. A folder without a manifest is opened at once, so that mistakes show here.
    """
    documents = read_encoder_folder(folder.resolve())
    queries = documents if query_folder is None else read_encoder_folder(query_folder.resolve())
    if normalise is None and documents.settings.normalise != queries.settings.normalise:
        raise unusable(queries.path, f"its '{SETTINGS}' says another 'normalise' than that of '{documents.path}'; make them equal")
    return OnnxEncoder(documents, queries=queries, normalise=documents.settings.normalise if normalise is None else normalise)


def dimension_of(folder: EncoderFolder) -> int:
    """Return how many components a folder's vectors have: what its manifest says, else what one token gives."""
    if folder.dimension is not None:
        return folder.dimension
    opened = _open(folder)
    vector = _pooled(opened.model.run(PROBE, output=opened.output), folder=folder)
    if not len(vector):
        raise unusable(folder.path, f"its '{MODEL}' gives vectors without components")
    return len(vector)


def _open(folder: EncoderFolder) -> _OpenFolder:
    model = open_model(
        folder.path, model_hash=folder.model_hash, tokenizer_hash=folder.tokenizer_hash, max_tokens=folder.settings.max_tokens
    )
    return _OpenFolder(folder, model, _output_of(model, pooling=folder.settings.pooling))


def _deciding(folder: EncoderFolder, *, prefix: str) -> dict[str, object]:
    """Return everything that decides a vector."""
    return {
        "files": {MODEL: folder.model_hash, TOKENIZER: folder.tokenizer_hash},
        "max_tokens": folder.settings.max_tokens,
        "pooling": folder.settings.pooling,
        "prefix": prefix,
    }


def _output_of(model: TextModel, *, pooling: Pooling) -> str:
    """Return the output to read: one of the usual name, else the first, among those with as many axes as pooling needs."""
    axes, usual = (2, SENTENCE_OUTPUTS) if pooling == "none" else (3, TOKEN_OUTPUTS)
    fitting = [name for name, count in model.outputs.items() if count in {0, axes}]
    if not fitting:
        other = "mean" if pooling == "none" else "none"
        problem = f"its '{MODEL}' gives no floating-point output with {axes} axes, which the pooling '{pooling}' needs"
        raise unusable(model.folder, f'{problem}; should \'{SETTINGS}\' say {{"pooling": "{other}"}}?')
    return next((name for name in usual if name in fitting), fitting[0])


def _pooled(states: States, *, folder: EncoderFolder) -> NDArray[np.float64]:
    pooling = folder.settings.pooling
    if states.ndim != (1 if pooling == "none" else 2):
        raise unusable(folder.path, f"its '{MODEL}' gives {states.ndim + 1} axes, which does not go with the pooling '{pooling}'")
    exact = states.astype(np.float64)
    if pooling == "mean":
        return np.asarray(exact.sum(axis=0) / len(exact))
    return np.asarray(exact[0]) if pooling == "cls" else exact


def _rounded(values: NDArray[np.float64], *, identity: VectorIdentity, folder: EncoderFolder) -> NDArray[np.int32]:
    """Scale to length one where the identity asks for it, and round half to even; fsum, so that no order of adding matters."""
    if len(values) != identity.dimension:
        raise unusable(folder.path, f"its '{MODEL}' gives {len(values)} components instead of {identity.dimension}")
    if identity.normalisation == "unit":
        return np.rint(_at_length_one(values, folder=folder) * (1 << SCALE_BITS[identity.normalisation])).astype(np.int32)
    if not np.isfinite(values).all():
        raise _not_finite(folder)
    scaled = np.rint(values * (1 << SCALE_BITS[identity.normalisation]))
    if np.abs(scaled).max() > LARGEST_COMPONENT:
        bound = LARGEST_COMPONENT >> SCALE_BITS[identity.normalisation]
        raise unusable(folder.path, f"its '{MODEL}' gives components beyond {bound}; set 'normalise' to true")
    return scaled.astype(np.int32)


def _at_length_one(values: NDArray[np.float64], *, folder: EncoderFolder) -> NDArray[np.float64]:
    length = math.sqrt(math.fsum((values * values).tolist()))
    if not math.isfinite(length):  # it is finite as long as every component is: they come from 32 bits
        raise _not_finite(folder)
    return values / length if length > 0 else values


def _not_finite(folder: EncoderFolder) -> InvalidFieldError:
    return unusable(folder.path, f"its '{MODEL}' gives components that are no finite numbers")
