"""Bases of the judged sets, built once and kept: by corpus, by the code that reads, cuts, encodes and indexes, and by encoder.

A change to that code builds them anew, with the vectors that equal texts have already; a change to anything else does not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import evidentia
from evidentia import connect
from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.base.base_ingest import embed_into
from evidentia.contracts.ports import Encoder
from evidentia.wiring.embedded import open_parts
from evidentia.wiring.model_registry import AttachedModels

if TYPE_CHECKING:
    from judged_sets import JudgedSet
    from numpy.typing import NDArray

    from evidentia.contracts.vectors import VectorIdentity

SOURCE = "corpus"
CACHE = Path(os.environ.get("EVIDENTIA_BENCH_CACHE", Path(tempfile.gettempdir()) / "evidentia-judged"))
STORED_BY = ("ingest", "text", "tables", "backends/embedded", "backends/onnx", "contracts/documents.py", "contracts/settings.py")
"""What decides the stored bytes of a base; a base is kept for each state of these files."""


class RememberedEncoder(Encoder):
    """The packaged encoder, which encodes no text twice in the life of a cache. Thread safe."""

    def __init__(self, cache_folder: Path) -> None:
        self._inner = packaged_encoder()
        self._lock = threading.Lock()
        path = cache_folder / f"vectors-{self._inner.identity.model[:16]}.sqlite"
        self._known = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
        self._known.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def identity(self) -> VectorIdentity:
        """Return the space of the packaged encoder."""
        return self._inner.identity

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage."""
        key = hashlib.sha256(text.encode()).digest()
        with self._lock:
            found = self._known.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        if found is not None:
            return np.frombuffer(found[0], dtype=np.int32)
        vector = self._inner.encode_document(text)
        with self._lock:
            self._known.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?)", (key, vector.astype(np.int32).tobytes()))
        return vector

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question."""
        return self._inner.encode_query(text)

    def close(self) -> None:
        """Close the file."""
        self._known.close()


def base_of(judged: JudgedSet, *, cache_folder: Path = CACHE) -> Path:
    """Return the folder of the set's base, built when it is not there yet."""
    key = hashlib.sha256(f"{judged.corpus_digest} {stored_by()} {packaged_encoder().identity.model}".encode()).hexdigest()[:16]
    folder = cache_folder / "bases" / f"{judged.folder.name}-{key}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"unfinished-{judged.folder.name}-", dir=folder.parent))
    try:
        _build(judged, unfinished / "base", cache_folder=cache_folder)
        (unfinished / "base").rename(folder)
    except OSError:
        if not folder.exists():  # another process built the same at the same time
            raise
    finally:
        shutil.rmtree(unfinished)
    return folder


@cache
def stored_by() -> str:
    """Return the digest of the code that decides the stored bytes of a base."""
    package = Path(evidentia.__file__).parent
    digest = hashlib.sha256()
    for name in STORED_BY:
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _build(judged: JudgedSet, folder: Path, *, cache_folder: Path) -> None:
    with connect(folder, init=True) as base:
        report = base.ingest([judged.corpus], source=SOURCE, embed=False)
    refused = [entry.message for entry in report.skipped if entry.reason != "empty"]
    if refused:
        raise ValueError(f"set '{judged.name}': {refused[0]}")
    embed(folder, cache_folder=cache_folder)


def embed(folder: Path, *, cache_folder: Path = CACHE) -> None:
    """Give every chunk of a base its vector, from the cache where the text was encoded before."""
    encoder = RememberedEncoder(cache_folder)
    parts = open_parts(folder, attached=AttachedModels(encoder=encoder)).components()
    try:
        embed_into(parts, on_progress=None, is_stopped=lambda: False)
    finally:
        parts.close()
        encoder.close()
