"""Embeds a base and tells each step on stdout; run as a program by test_embed.py.

A line `e` for each text that is about to be encoded, a line `c` for each batch that has become durable. With `wait`, it
stands still after each batch until it reads a byte.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.ingest.embedding import embed
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.ports import Encoder
    from evidentia.contracts.vectors import EmbedProgress, VectorIdentity


class Telling:
    """Passes everything on to an encoder and tells of each text."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner

    @property
    def identity(self) -> VectorIdentity:
        return self._inner.identity

    def encode_query(self, text: str) -> NDArray[np.int32]:
        return self._inner.encode_query(text)

    def encode_document(self, text: str) -> NDArray[np.int32]:
        os.write(1, b"e\n")
        return self._inner.encode_document(text)


def main(base: Path, *, batch_chunks: int, is_waiting: bool) -> None:
    parts = open_parts(base)
    encoder = parts.encoder
    assert encoder is not None

    def tell(progress: EmbedProgress) -> None:
        if progress.commit is None:
            return
        os.write(1, b"c\n")
        if is_waiting:
            os.read(0, 1)

    with closing(parts.vectors()) as store:
        embed(store, Telling(encoder), batch_chunks=batch_chunks, threads=2, on_progress=tell)
    parts.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), batch_chunks=int(sys.argv[2]), is_waiting="wait" in sys.argv[3:])
