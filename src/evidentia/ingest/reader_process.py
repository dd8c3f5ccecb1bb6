"""The loop of a reader process: a job, an answer, the next job, until the pipe closes.

Refuses to outlive its caller or its limits: the memory is capped, and an alarm ends a job the caller no longer waits for.
"""

from __future__ import annotations

import os
import signal
from typing import IO

import msgspec

from evidentia.contracts.decoding import msgpack_decoder
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.layout import ExtractedText
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document
from evidentia.ingest.reasons import SkipReason

NICENESS = 10
"""Reading yields to whoever answers requests on the same machine."""
GRACE_S = 5
"""The caller kills a slow reader itself; the alarm is for a caller that died."""


def serve(*, memory_mb: int) -> None:
    """Answer jobs from standard input on what was standard output; anything a parser prints goes nowhere."""
    _cap_memory(memory_mb)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    while (frame := read_frame(jobs)) is not None:
        if not _answer(answers, decode_job(frame)):
            return


def _answer(answers: IO[bytes], job: ReadJob) -> bool:
    """Answer one job; False when the process should end because it ran out of memory."""
    _set_alarm(job.timeout_s + GRACE_S)
    try:
        answer: ReadSuccess | ReadFailure = ReadSuccess.of(read_document(job.content, name=job.name, limits=job.limits))
    except DocumentUnreadableError as error:
        answer = ReadFailure(reason=str(error.reason), problem=error.problem, is_last=error.reason == SkipReason.READER_CRASHED)
    _set_alarm(0)
    write_frame(answers, encode(answer))
    return not (isinstance(answer, ReadFailure) and answer.is_last)


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def _cap_memory(memory_mb: int) -> None:
    try:
        import resource
    except ImportError:
        return
    limit = memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


# --- wire ---
# What passes between the caller and a reader process: one job in, one answer out, each a length and that many bytes.

_LENGTH_BYTES = 8


class ReadJob(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read."""

    name: str
    content: bytes
    limits: ReadLimits
    timeout_s: int


class ReadFailure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """Why a file could not be read; `is_last` says that the process gives up with it."""

    reason: str
    problem: str
    is_last: bool = False


class ReadSuccess(msgspec.Struct, frozen=True, kw_only=True, tag="success"):
    """The text of a file; the bytes of its images go once each, however often an image is shown."""

    extracted: ExtractedText
    contents: tuple[bytes, ...] = ()
    content_of: tuple[int, ...] = ()
    """For each image of `extracted`, the place of its bytes in `contents`."""

    @classmethod
    def of(cls, extracted: ExtractedText) -> ReadSuccess:
        """Return the answer that carries a file."""
        if not extracted.images:
            return cls(extracted=extracted)
        places: dict[bytes, int] = {}
        content_of = tuple(places.setdefault(image.content, len(places)) for image in extracted.images)
        bare = tuple(msgspec.structs.replace(image, content=b"") for image in extracted.images)
        return cls(extracted=msgspec.structs.replace(extracted, images=bare), contents=tuple(places), content_of=content_of)

    def whole(self) -> ExtractedText:
        """Return the file as it was read."""
        pairs = zip(self.extracted.images, self.content_of, strict=bool(self.content_of))
        images = tuple(msgspec.structs.replace(image, content=self.contents[place]) for image, place in pairs)
        return msgspec.structs.replace(self.extracted, images=images) if images else self.extracted


encode = msgspec.msgpack.Encoder().encode
decode_job = msgpack_decoder(ReadJob)
_decode_answer = msgpack_decoder(ReadFailure | ReadSuccess)


def decode_answer(frame: bytes) -> ExtractedText | ReadFailure:
    """Return what a reader process answered."""
    answer = _decode_answer(frame)
    return answer.whole() if isinstance(answer, ReadSuccess) else answer


def write_frame(stream: IO[bytes], frame: bytes) -> None:
    """Write one message and hand it over."""
    stream.write(len(frame).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(frame)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next message, or None when the other side is gone."""
    header = stream.read(_LENGTH_BYTES)
    if len(header) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(header, "big")
    frame = stream.read(length)
    return frame if len(frame) == length else None
