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
decode_job = msgspec.msgpack.Decoder(ReadJob).decode
_decode_answer = msgspec.msgpack.Decoder(ReadFailure | ReadSuccess).decode


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
