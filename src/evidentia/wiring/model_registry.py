"""The models that the settings of a base name, each opened when it is first needed, and the synonyms its receipts were answered with."""

from __future__ import annotations

import os
import threading
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.records.database import storage_errors
from evidentia.contracts.answer_rules import ENGINE
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.receipts import ConfidenceCalibration, EngineConfig
from evidentia.contracts.settings import EmbeddingSettings, OutboundSettings, Settings
from evidentia.contracts.vocabulary import Similarity
from evidentia.engine.question import Models
from evidentia.foundation.disk import make_private_directory, open_private
from evidentia.query.synonyms import MAX_FILE_LENGTH, Synonyms, parse_synonyms
from evidentia.ranking.merge_features import FEATURES, FEATURES_IDENTITY
from evidentia.text.tokens import Tokeniser
from evidentia.wiring.settings_file import outbound_of
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evidentia.contracts.ports import Clock, Encoder, Merger, QueryRewriter, Reranker


SYNONYMS_NAME = "synonyms"
"""The folder in which a base keeps every version of the synonyms that it answered with, by hash."""
CALIBRATION_NAME = "calibration.json"
"""The file in which a base keeps its own calibration of the confidence; a receipt holds the one that it was answered with."""


def read_calibration(directory: Path) -> ConfidenceCalibration | None:
    """Return the calibration of a base; None where the shipped confidence holds."""
    try:
        return decode_json((directory / CALIBRATION_NAME).read_bytes(), ConfidenceCalibration)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise BaseDamagedError(CALIBRATION_NAME, f"it cannot be read ({error}); calibrate again, or remove it") from error


def write_calibration(directory: Path, calibration: ConfidenceCalibration | None) -> None:
    """Keep a calibration with a base, in place of one that was there; None goes back to the shipped confidence."""
    path = directory / CALIBRATION_NAME
    with storage_errors(directory):
        if calibration is None:
            path.unlink(missing_ok=True)
            return
        unfinished = path.with_suffix(".new")
        with open_private(unfinished, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n")
        unfinished.replace(path)


class AttachedModels(NamedTuple):
    """Models that stand in the place of those that the settings name. One that may hold the interpreter's lock belongs in a process."""

    encoder: Encoder | None = None
    reranker: Reranker | None = None
    rewriter: QueryRewriter | None = None
    merger: Merger | None = None


NONE_ATTACHED: Final = AttachedModels()


class ModelRegistry:
    """What one base's settings name besides its index. Thread safe."""

    def __init__(self, directory: Path, *, settings: Settings, clock: Clock, attached: AttachedModels = NONE_ATTACHED) -> None:
        self._attached = attached
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._lock = threading.RLock()

    @cached_property
    def config(self) -> EngineConfig:
        """Return the settings that shape an answer, with the identity of every model that takes part."""
        with self._lock:
            reranker, merger = self.reranker(), self.merger()
            return EngineConfig(
                engine=ENGINE,
                text=self._settings.text,
                search=self._settings.search,
                access=self._settings.access,
                query=self._settings.query,
                ranking=self._settings.ranking,
                sources=self._settings.sources,
                synonyms=self._keep_synonyms(),
                reranker=reranker.identity if reranker else "",
                merger=merger.identity if merger else "",
                calibration=read_calibration(self._directory),
            )

    def models_for(self, config: EngineConfig) -> Models:
        """Return the models of a configuration, which may be that of an old receipt."""
        return Models(
            encoder=self._query_encoder,
            reranker=self.reranker,
            rewriter=self.rewriter,
            merger=partial(self._merger_of, config.merger),
            synonyms=self._synonyms(config.synonyms, language=config.text.language),
        )

    def encoder(self) -> Encoder | None:
        """Return what makes vectors; None when this base is to have none."""
        return self._attached.encoder or self._make_encoder()

    def _query_encoder(self) -> Encoder | None:
        """Return what encodes questions: the same, in a process of its own where the settings say so."""
        encoder = self.encoder()
        if encoder is None or self._attached.encoder is not None or "encoder" not in self._settings.models.isolate:
            return encoder
        with self._lock:
            return self._isolated_encoder

    @cached_property
    def _isolated_encoder(self) -> Encoder:
        from evidentia.wiring.isolated_models import IsolatedEncoder

        return IsolatedEncoder(self._make_encoder)

    @property
    def _make_encoder(self) -> Callable[[], Encoder | None]:
        return partial(
            encoder_of,
            self._settings.embedding,
            similarity=self._settings.search.similarity,
            directory=self._directory.resolve(),
            outbound=outbound_of(self._settings, directory=self._directory),
        )

    def reranker(self) -> Reranker | None:
        """Return what reads the best candidates together with the question."""
        with self._lock:
            return self._attached.reranker or self._reranker

    def rewriter(self) -> QueryRewriter | None:
        """Return what rewrites questions."""
        with self._lock:
            return self._attached.rewriter or self._rewriter

    def merger(self) -> Merger | None:
        """Return what merges the legs for `fusion = learned`."""
        with self._lock:
            return self._attached.merger or self._merger

    def close(self) -> None:
        """End the processes of models that have one."""
        from evidentia.wiring.isolated_models import IsolatedEncoder, IsolatedReranker

        for name in ("_isolated_encoder", "_reranker"):
            model = self.__dict__.get(name)
            if isinstance(model, (IsolatedEncoder, IsolatedReranker)):
                model.close()

    def _merger_of(self, identity: str) -> Merger | None:
        """Return the merging model of a configuration, if it is still the one that the settings name."""
        merger = self.merger()
        if identity and (merger is None or merger.identity != identity):
            raise NotFoundError("merging model", identity)
        return merger

    @cached_property
    def _reranker(self) -> Reranker | None:
        if not self._settings.ranking.reranker:
            return None
        folder = self._directory.resolve() / self._settings.ranking.reranker
        if "reranker" in self._settings.models.isolate:
            from evidentia.wiring.isolated_models import IsolatedReranker

            return IsolatedReranker(partial(_reranker_of, folder))
        return _reranker_of(folder, clock=self._clock)

    @cached_property
    def _rewriter(self) -> QueryRewriter | None:
        if not self._settings.query.rewriter:
            return None
        if not self._settings.llm.endpoint:
            raise InvalidFieldError("llm.endpoint", "query.rewriter names a model; say where it is")
        from evidentia.backends.llm.model_endpoint import EndpointSettings
        from evidentia.backends.llm.query_rewriter import ChatRewriter, RewriterSettings

        llm = self._settings.llm
        outbound = outbound_of(self._settings, directory=self._directory)
        endpoint = EndpointSettings(
            url=llm.endpoint, model=self._settings.query.rewriter, key_variable=llm.key_variable or None, outbound=outbound
        )
        return ChatRewriter(RewriterSettings(endpoint=endpoint))

    @cached_property
    def _merger(self) -> Merger | None:
        if not self._settings.ranking.merging_model:
            return None
        from evidentia.backends.lightgbm.lightgbm_merger import LightGbmMerger

        path = self._directory / self._settings.ranking.merging_model
        return LightGbmMerger(path, features=FEATURES, fitted_on=FEATURES_IDENTITY)

    def _keep_synonyms(self) -> str:
        """Read the synonyms that the settings name, keep a copy under their hash, and return it; replays read the copy."""
        if not self._settings.query.synonyms:
            return ""
        path = self._directory / self._settings.query.synonyms
        try:
            with path.open("rb") as file:
                content = file.read(4 * MAX_FILE_LENGTH)  # a character has four bytes at most
            parse_synonyms(content.decode(), file=path.name, tokeniser=Tokeniser(self._settings.text.language))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFieldError("query.synonyms", f"'{path}' cannot be read ({error})") from error
        digest = sha256_hex(content)
        kept = self._directory / SYNONYMS_NAME / digest
        if not kept.exists():
            with storage_errors(self._directory):
                make_private_directory(kept.parent)
                with open_private(kept, "wb") as target:
                    target.write(content)
        return digest

    def _synonyms(self, digest: str, *, language: str) -> Synonyms | None:
        if not digest:
            return None
        kept = self._directory / SYNONYMS_NAME / digest
        try:
            content = kept.read_bytes()
        except OSError as error:
            raise BaseDamagedError(f"synonyms '{digest[:16]}'", "the copy is missing") from error
        if sha256_hex(content) != digest:
            raise BaseDamagedError(f"synonyms '{digest[:16]}'", "the copy does not have its hash")
        return parse_synonyms(content.decode(), file=kept.name, tokeniser=Tokeniser(language))


def _reranker_of(folder: Path, *, clock: Clock | None = None) -> Reranker:
    from evidentia.backends.onnx.reranker import OnnxReranker

    try:
        return OnnxReranker(folder, clock=clock or SystemClock())
    except InvalidFieldError as error:
        raise InvalidFieldError("ranking.reranker", _problem_of(error)) from error


# --- encoders: made once per process; errors name the setting, and no model is ever downloaded ---

_made: dict[tuple[EmbeddingSettings, bool, Path | None, OutboundSettings], Encoder] = {}
_DIRECT: Final = OutboundSettings()
_making = threading.Lock()


def encoder_of(
    settings: EmbeddingSettings, *, similarity: Similarity, directory: Path, outbound: OutboundSettings = _DIRECT
) -> Encoder | None:
    """Return the encoder of a base in a directory; None when it is to have no vectors.

    Cosine wants vectors of length one; the other similarities keep the length that the encoder gives.
    """
    if settings.encoder == "none":
        return None
    normalise = similarity is Similarity.COSINE
    # How many texts are encoded at a time makes no other encoder, and the base only matters where folders start at it.
    deciding = msgspec.structs.replace(settings, threads=0, batch_chunks=EmbeddingSettings().batch_chunks)
    way = outbound if settings.encoder == "endpoint" else _DIRECT
    key = (deciding, normalise, directory.resolve() if settings.encoder == "folder" else None, way)
    with _making:
        if key not in _made:
            _made[key] = _make(deciding, normalise=normalise, directory=directory.resolve(), outbound=way)
        return _made[key]


def encoding_threads(settings: EmbeddingSettings) -> int:
    """Return how many texts are encoded at a time: what the settings say, else one for each processor this process may use."""
    if settings.threads:
        return settings.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make(settings: EmbeddingSettings, *, normalise: bool, directory: Path, outbound: OutboundSettings) -> Encoder:
    if settings.encoder == "folder":
        return _folder(settings, normalise=normalise, directory=directory)
    if settings.encoder == "endpoint":
        return _endpoint(settings, normalise=normalise, outbound=outbound)
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


def _endpoint(settings: EmbeddingSettings, *, normalise: bool, outbound: OutboundSettings) -> Encoder:
    from evidentia.backends.llm import endpoint_encoder
    from evidentia.backends.llm.model_endpoint import EndpointSettings

    _require(settings, "endpoint", "model", "dimension")
    endpoint = EndpointSettings(url=settings.endpoint, model=settings.model, key_variable=settings.key_variable or None, outbound=outbound)
    asked = endpoint_encoder.EmbeddingSettings(
        endpoint=endpoint, dimension=settings.dimension, normalisation="unit" if normalise else "none"
    )
    try:
        return endpoint_encoder.EndpointEncoder(asked)
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
