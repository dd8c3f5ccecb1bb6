"""An encoder behind an endpoint (`/embeddings`): texts go out in batches, vectors come back checked and as integers."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from evidentia.backends.llm.model_endpoint import Endpoint, EndpointSettings
from evidentia.contracts.canonical import hash_record
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import InvalidFieldError, ServiceError, ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.ports import Encoder, SupportsBatches, SupportsOpening
from evidentia.contracts.vectors import LARGEST_COMPONENT, SCALE_BITS, Normalisation, VectorIdentity
from evidentia.foundation.offload import outbound_left_ms
from evidentia.foundation.outbound_http import PASSING, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


MAX_WAIT_S: Final = 60.0
"""Between two attempts, whatever the endpoint asks for."""

_FORM: Final = 1
"""Raised when the same reply would give other integers."""
_BYTES_PER_COMPONENT: Final = 40
_BYTES_BESIDE: Final = 1 << 16


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which vectors are asked for, and how patiently."""

    endpoint: EndpointSettings
    dimension: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    normalisation: Normalisation = "unit"
    revision: str = ""
    """To be changed by hand when the model behind the name has changed."""
    query_prefix: str = ""
    document_prefix: str = ""
    batch_texts: Annotated[int, msgspec.Meta(ge=1, le=2_048)] = 64
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    backoff_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = 500
    """Before the second attempt; doubled for each further one."""


class EndpointEncoder(Encoder, SupportsBatches, SupportsOpening):
    """Implements `Encoder`, `SupportsBatches` and `SupportsOpening`. Thread safe.

    An endpoint cannot be hashed. Its identity is made of what is known of it: model name, revision, dimension, normalisation
    and prefixes, and not its address. Whoever runs the endpoint can change the model behind the name, and nothing here would
    notice; pin the model there, or change `revision`. Whether a batch changes a vector's last bits is up to the endpoint too.
    """

    def __init__(self, settings: EmbeddingSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._endpoint = Endpoint(settings.endpoint)
        self._identity = _identity_of(settings)

    @property
    def identity(self) -> VectorIdentity:
        """Return the space its vectors live in, as far as an endpoint can be known."""
        return self._identity

    def open(self) -> None:
        """Make ready to ask; nobody is asked yet."""
        self._endpoint.open()

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question."""
        return self._encode([self._settings.query_prefix + text])[0]

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage."""
        return self._encode([self._settings.document_prefix + text])[0]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
        """Return one vector per text, in the order given, from one request per batch."""
        size = self._settings.batch_texts
        prefixed = [self._settings.document_prefix + text for text in texts]
        return tuple(row for start in range(0, len(prefixed), size) for row in self._encode(prefixed[start : start + size]))

    def close(self) -> None:
        """Close the connections; the encoder cannot be used afterwards."""
        self._endpoint.close()

    def _encode(self, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
        rows = _read_rows(self._ask(texts), count=len(texts))
        return [_rounded(row, identity=self._identity) for row in rows]

    def _ask(self, texts: Sequence[str]) -> bytes:
        """Return the reply of the first attempt that has one; only what may pass is tried again, and not beyond the request's deadline."""
        body = self._body(texts)
        max_bytes = len(texts) * self._settings.dimension * _BYTES_PER_COMPONENT + _BYTES_BESIDE
        attempt = 1
        while True:
            reply = self._endpoint.post("embeddings", body, max_bytes=max_bytes)
            if isinstance(reply, bytes):
                return reply
            if reply.reason not in PASSING or attempt == self._settings.attempts:
                raise _error_of(reply, attempts=attempt)
            doubled_s = self._settings.backoff_ms * 2 ** (attempt - 1) / 1000
            wait_s = min(max(doubled_s, reply.retry_after_s), MAX_WAIT_S)
            left_ms = outbound_left_ms()
            if left_ms is not None and wait_s * 1000 >= left_ms:
                raise _error_of(reply, attempts=attempt)
            self._sleep(wait_s)
            attempt += 1

    def _body(self, texts: Sequence[str]) -> bytes:
        try:
            return msgspec.json.encode({"model": self._settings.endpoint.model, "input": texts, "encoding_format": "float"})
        except UnicodeEncodeError:
            raise InvalidFieldError("text", "it holds an unpaired surrogate") from None


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Row]


def _read_rows(content: bytes, *, count: int) -> Sequence[list[float]]:
    """Return the rows in the order of the texts: `index` says which is which, and replies may come in any order."""
    try:
        rows = decode_json(content, _Reply).data
    except (ValueError, RecursionError):
        raise _wrong_reply("is no JSON of the form {'data': [{'index', 'embedding'}]}; check the url") from None
    if sorted(row.index for row in rows) != list(range(count)):
        raise _wrong_reply(f"does not hold exactly one vector for each of {count} texts")
    return [row.embedding for row in sorted(rows, key=lambda row: row.index)]


def _rounded(row: Sequence[float], *, identity: VectorIdentity) -> NDArray[np.int32]:
    """Scale to length one where the identity asks for it, and round half to even; a row of zeros stays one."""
    if len(row) != identity.dimension:
        raise _wrong_reply(f"holds a vector of {len(row)} components instead of {identity.dimension}; correct 'dimension'")
    values = np.array(row, dtype=np.float64)
    length = math.hypot(*row)
    if not math.isfinite(length):
        raise _wrong_reply("holds a vector without a finite length")
    if identity.normalisation == "unit" and length > 0:
        values = values / length
    scaled = np.rint(values * (1 << SCALE_BITS[identity.normalisation]))
    if np.abs(scaled).max() > LARGEST_COMPONENT:
        bound = LARGEST_COMPONENT >> SCALE_BITS[identity.normalisation]
        raise _wrong_reply(f"holds components beyond {bound}; set 'normalisation' to 'unit'")
    return scaled.astype(np.int32)


def _identity_of(settings: EmbeddingSettings) -> VectorIdentity:
    known = {
        "form": _FORM,
        "model": settings.endpoint.model,
        "revision": settings.revision,
        "dimension": settings.dimension,
        "normalisation": settings.normalisation,
        "query_prefix": settings.query_prefix,
        "document_prefix": settings.document_prefix,
    }
    return VectorIdentity(
        model=hash_record(known), dimension=settings.dimension, normalisation=settings.normalisation, name=settings.endpoint.model
    )


def _error_of(failure: Failure, *, attempts: int) -> ServiceError:
    if failure.reason in PASSING:
        times = "once" if attempts == 1 else f"{attempts} times"
        return ServiceUnavailableError(f"the endpoint {failure.problem} (tried {times})")
    return ServiceReplyError(f"the endpoint {failure.problem}")


def _wrong_reply(problem: str) -> ServiceReplyError:
    return ServiceReplyError(f"the reply of the endpoint {problem}")
