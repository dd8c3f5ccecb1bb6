"""Settings to the encoder they name, made once per process; errors name the setting. No model is ever downloaded."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.settings import EmbeddingSettings
from evidentia.contracts.vocabulary import Similarity

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.ports import Encoder

_made: dict[tuple[EmbeddingSettings, bool, Path | None], Encoder] = {}
_making = threading.Lock()


def encoder_of(settings: EmbeddingSettings, *, similarity: Similarity, directory: Path) -> Encoder | None:
    """Return the encoder of a base in a directory; None when it is to have no vectors.

    Cosine wants vectors of length one; the other similarities keep the length that the encoder gives.
    """
    if settings.encoder == "none":
        return None
    normalise = similarity is Similarity.COSINE
    # How many texts are encoded at a time makes no other encoder, and the base only matters where folders start at it.
    deciding = msgspec.structs.replace(settings, threads=0, batch_chunks=EmbeddingSettings().batch_chunks)
    key = (deciding, normalise, directory.resolve() if settings.encoder == "folder" else None)
    with _making:
        if key not in _made:
            _made[key] = _make(deciding, normalise=normalise, directory=directory.resolve())
        return _made[key]


def encoding_threads(settings: EmbeddingSettings) -> int:
    """Return how many texts are encoded at a time: what the settings say, else one for each processor this process may use."""
    if settings.threads:
        return settings.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make(settings: EmbeddingSettings, *, normalise: bool, directory: Path) -> Encoder:
    if settings.encoder == "folder":
        return _folder(settings, normalise=normalise, directory=directory)
    if settings.encoder == "endpoint":
        return _endpoint(settings, normalise=normalise)
    from evidentia.backends.onnx.encoder import packaged_encoder

    return packaged_encoder(normalise=normalise)


def _folder(settings: EmbeddingSettings, *, normalise: bool, directory: Path) -> Encoder:
    from evidentia.backends.onnx.encoder import folder_encoder

    _require(settings, "folder")
    queries = directory / settings.query_folder if settings.query_folder else None
    try:
        return folder_encoder(directory / settings.folder, query_folder=queries, normalise=normalise)
    except InvalidFieldError as error:
        problem = _problem_of(error)
        is_about_queries = queries is not None and problem.startswith(f"'{queries.resolve()}'")
        raise InvalidFieldError("embedding.query_folder" if is_about_queries else "embedding.folder", problem) from error


def _endpoint(settings: EmbeddingSettings, *, normalise: bool) -> Encoder:
    from evidentia.backends.llm import embeddings
    from evidentia.backends.llm.endpoint import EndpointSettings

    _require(settings, "endpoint", "model", "dimension")
    endpoint = EndpointSettings(url=settings.endpoint, model=settings.model, key_variable=settings.key_variable or None)
    asked = embeddings.EmbeddingSettings(endpoint=endpoint, dimension=settings.dimension, normalisation="unit" if normalise else "none")
    try:
        return embeddings.EndpointEncoder(asked)
    except InvalidFieldError as error:
        name = "endpoint" if error.field == "url" else error.field
        raise InvalidFieldError(f"embedding.{name}", _problem_of(error)) from error


def _require(settings: EmbeddingSettings, *names: str) -> None:
    for name in names:
        if not getattr(settings, name):
            problem = f"it is needed when embedding.encoder is '{settings.encoder}'; set it in evidentia.toml"
            raise InvalidFieldError(f"embedding.{name}", problem)


def _problem_of(error: InvalidFieldError) -> str:
    return str(error).removeprefix(f"field '{error.field}': ")
