"""What passes between the caller and a reader process: one job in, one answer out, each a length and that many bytes."""

from __future__ import annotations

from typing import IO

import msgspec

from evidentia.contracts.extraction import ExtractedText
from evidentia.ingest.readers.limits import ReadLimits

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
    """The text of a file."""

    extracted: ExtractedText


encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(ReadJob).decode
_decode_answer = msgspec.msgpack.Decoder(ReadFailure | ReadSuccess).decode


def decode_answer(frame: bytes) -> ExtractedText | ReadFailure:
    """Return what a reader process answered."""
    answer = _decode_answer(frame)
    return answer.extracted if isinstance(answer, ReadSuccess) else answer


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
