"""SciFact and the sample corpus as bases with vectors, and what tests ask of them.

Encoding all of SciFact takes minutes on a busy machine, so it is cut to 400 abstracts, among them every one that a test
query is about, and each test asks every sixth query, other tests the others; EVIDENTIA_SCIFACT=full takes all 5,183 and all 300.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from engine.known_vectors import give_vectors
from evidentia import connect
from evidentia.evaluation.datasets import load_dataset
from evidentia.serving.cli.demo_tour import SAMPLE_SOURCES, copy_samples
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evidentia import Base
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.vectors import VectorIdentity

AS_OF = "2026-01-01T00:00:00Z"
DEADLINE_MS = 600_000
"""Longer than any machine takes for all that is asked at once: who runs out of time gets another answer, and says so."""
SOURCE = "scifact"
IS_FULL = os.environ.get("EVIDENTIA_SCIFACT") == "full"
DOCUMENTS = 5_183 if IS_FULL else 400
QUERIES = 300
PARTS = 1 if IS_FULL else 6
DEMO_SETTINGS = "[ranking]\ncandidates = 6\n"


class SciFact(NamedTuple):
    """A base with SciFact as it comes, where that came from, and the test queries."""

    path: Path
    corpus: Path
    texts: list[str]

    def part(self, number: int) -> SciFact:
        """Return the same with one of the parts of the queries."""
        return self._replace(texts=self.texts[number % PARTS :: PARTS])


class Asked(NamedTuple):
    """The same with the hash of each query's answer."""

    path: Path
    corpus: Path
    texts: list[str]
    hashes: list[str]

    def part(self, number: int) -> Asked:
        """Return the same with one of the parts of the queries."""
        chosen = slice(number % PARTS, None, PARTS)
        return self._replace(texts=self.texts[chosen], hashes=self.hashes[chosen])


class DemoBase(NamedTuple):
    """The sample corpus with its chunks."""

    path: Path
    chunks: Mapping[ChunkId, StoredChunk]


def build_scifact(path: Path, folder: Path) -> None:
    """Take in SciFact and encode it."""
    path.mkdir()
    write_corpus(folder, path / "corpus.jsonl")
    ingest_scifact(path / "base", path / "corpus.jsonl", batch_documents=5_000)
    with connect(path / "base") as base:
        report = base.embed()
        assert sum(chunks for _, _, chunks in base.documents()) == report.embedded


def write_corpus(folder: Path, target: Path) -> None:
    """Write the abstracts that are taken in, in their order: those that test queries are about, and the first of the others."""
    lines = (folder / "corpus.jsonl").read_bytes().splitlines(keepends=True)
    relevant = {document for judged in load_dataset(folder, split="test").qrels.values() for document in judged}
    ids = [str(json.loads(line)["_id"]) for line in lines]
    others = [own_id for own_id in ids if own_id not in relevant][: DOCUMENTS - len(relevant)]
    kept = relevant.union(others)
    target.write_bytes(b"".join(line for line, own_id in zip(lines, ids, strict=True) if own_id in kept))


def build_demo(path: Path) -> None:
    """Take in the sample corpus and encode it."""
    copy_samples(path / "samples")
    connect(path, init=True).close()
    (path / "evidentia.toml").write_text(DEMO_SETTINGS)
    with connect(path) as base:
        for source in SAMPLE_SOURCES:
            base.ingest([path / "samples" / source.path], source=source.name, authority=source.authority)


def ingest_scifact(path: Path, corpus: Path, *, batch_documents: int, documents: int = DOCUMENTS) -> None:
    """Take in a corpus without encoding it."""
    connect(path, init=True).close()
    (path / "evidentia.toml").write_text(f"[ingest]\nbatch_documents = {batch_documents}\n")
    with connect(path) as base:
        assert documents == base.ingest([corpus], source=SOURCE, embed=False).added


def copy_vectors(origin: Path, target: Path, *, batch: int, limit: int | None = None, identity: VectorIdentity | None = None) -> int:
    """Give the chunks of one base the vectors that their texts have in another; `identity` passes them off as another encoder's."""
    first, second = open_parts(origin), open_parts(target)
    try:
        assert first.encoder is not None
        own = first.encoder.identity
        with closing(first.vectors()) as known, closing(second.vectors()) as lacking:
            pending = lacking.pending(identity or own, limit=limit or DOCUMENTS * 2)
            vectors = known.known(own, [chunk.content_hash for chunk in pending])
        wanted = {chunk.key for chunk in pending}
        return give_vectors(
            second, identity or own, lambda chunk: vectors.get(chunk.content_hash) if chunk.key in wanted else None, batch=batch
        )
    finally:
        first.close()
        second.close()


def hybrid_hash(base: Base, text: str) -> str:
    """Return the hash of an answer by words and vectors, without a receipt."""
    answer = base.retrieve(text, as_of=AS_OF, facets=["language"], receipt=False, latency_deadline_ms=DEADLINE_MS)
    assert all(fragment.scores.dense is not None for fragment in answer.fragments), answer.degraded
    return answer.result_hash


def hybrid_hashes(base: Base, texts: Sequence[str]) -> list[str]:
    """Return the hash of each answer."""
    return [hybrid_hash(base, text) for text in texts]


def differing(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return which of two runs' hashes are not the same."""
    return [number for number, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
