"""Passages, vectors and questions for the hybrid benchmark: real ones as far as they go, then synthetic ones, the same on every machine.

Real passages are whole sentences of SciFact's abstracts, AttributionBench's references and responses and StrategyQA's facts, with
the vectors that the packaged encoder gives them. Synthetic passages are those of `passages`, and their vectors are mixtures
of two real ones with noise, at length one. Everything is kept in a folder, so that a second run begins at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from passages import passages

from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.contracts.vectors import UNIT_SCALE_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.backends.onnx.encoder import OnnxEncoder

SENTENCES_FROM, REST_FROM = 50, 20
"""A passage is closed at the first end of a sentence after this many words; a shorter rest than the second goes with the one before."""
ENCODED_AT_A_TIME = 1_000
NOISE = 0.5
"""How long the noise in a synthetic vector is, before scaling; the mixture of real vectors it is added to is about one long."""
SAMPLED_WORDS = 8
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class Answer(Protocol):
    """Answers a question with the texts of at most `limit` passages; each leg proposes `depth`, where a system lets one choose."""

    def __call__(self, question: str, *, limit: int, depth: int) -> list[str]:
        """Return texts, best first."""
        ...


class Handed(NamedTuple):
    """What every system is given, as files in a folder; each has a folder of its own for what it makes of them."""

    folder: Path
    own: Path

    @property
    def texts(self) -> list[str]:
        """Return the passages."""
        return list(json.loads((self.folder / "texts.json").read_text(encoding="utf-8")))

    @property
    def vectors(self) -> NDArray[np.int32]:
        """Return their vectors as integers at 2**-22."""
        return np.asarray(np.load(self.folder / "vectors.npy"))


class Corpus(NamedTuple):
    """What every system gets: texts and vectors in the same order, the real ones first."""

    texts: list[str]
    vectors: NDArray[np.int32]
    """Unit vectors as integers at 2**-22."""
    real: int


def as_floats(vectors: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return integers at 2**-22 as floats; 24 bits hold them without loss."""
    return np.ldexp(vectors.astype(np.float32), -UNIT_SCALE_BITS)


@cache
def question_encoder() -> OnnxEncoder:
    """Return the encoder that everybody uses."""
    return packaged_encoder()


def encode(question: str) -> NDArray[np.float32]:
    """Return the vector of a question as floats."""
    return as_floats(question_encoder().encode_query(question))


def build_corpus(size: int, *, data: Path, cache: Path) -> Corpus:
    """Return the first `size` passages with their vectors; what the encoder has done before is read from the cache."""
    known = real_passages(data)[:size]
    encoded = _encoded(known, cache=cache)
    made = size - len(known)
    synthetic = _mixed(encoded, made) if made else np.empty((0, encoded.shape[1]), dtype=np.int32)
    return Corpus([*known, *passages(made)], np.concatenate([encoded, synthetic]), len(known))


def real_passages(data: Path) -> list[str]:
    """Return the distinct passages, dealt by a fixed chance so that every beginning is a fair sample of all."""
    found = sorted(set(_all_passages(data)))
    return [found[place] for place in np.random.default_rng(1).permutation(len(found))]


def build_questions(texts: list[str], *, data: Path, count: int) -> list[str]:
    """Return SciFact's queries and samples of words that occur together in a passage, in turn."""
    chance = np.random.default_rng(2)
    asked = [line["text"] for line in _lines(data / "scifact" / "queries.jsonl")]
    made: list[str] = []
    for number, place in zip(range(count), chance.integers(len(texts), size=count), strict=True):
        words = texts[int(place)].split()
        drawn = np.sort(chance.permutation(len(words))[:SAMPLED_WORDS])
        made.append(asked[number // 2 % len(asked)] if number % 2 else " ".join(words[word] for word in drawn))
    return made


def _all_passages(data: Path) -> Iterator[str]:
    for line in _lines(data / "scifact" / "corpus.jsonl"):
        yield from _cut(f"{line['title']} {line['text']}")
    for name in ("dev_all_subset_balanced", "test_all_subset_balanced_sampled500"):
        for line in _lines(data / "attributionbench" / f"{name}.jsonl"):
            for text in (line["response"], *line["references"], *line["webpage_references"]):
                yield from _cut(text) if isinstance(text, str) else ()
    for name in ("train", "dev"):
        for entry in json.loads((data / "strategyqa" / f"{name}.json").read_text(encoding="utf-8")):
            yield from _cut(f"{entry['term']}: {entry['description']}. {' '.join(entry['facts'])}")


def _lines(path: Path) -> Iterator[dict[str, Any]]:  # Any: three data sets, each with fields of its own
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _cut(text: str) -> Iterator[str]:
    """Yield whole sentences together until there are enough words; spacing is made plain."""
    pieces: list[list[str]] = [[]]
    for sentence in _SENTENCE_END.split(" ".join(text.replace("\0", " ").split())):
        if len(pieces[-1]) >= SENTENCES_FROM:
            pieces.append([])
        pieces[-1] += sentence.split()
    if len(pieces) > 1 and len(pieces[-1]) < REST_FROM:
        rest = pieces.pop()
        pieces[-1] += rest
    return (" ".join(piece) for piece in pieces if piece)


def _encoded(texts: list[str], *, cache: Path) -> NDArray[np.int32]:
    encoder = question_encoder()
    folder = cache / f"vectors-{encoder.identity.model[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(texts), ENCODED_AT_A_TIME):
            some = texts[start : start + ENCODED_AT_A_TIME]
            path = folder / f"{_digest(some)}.npy"
            if not path.exists():
                unfinished = path.with_suffix(".part.npy")
                np.save(unfinished, np.stack(list(pool.map(encoder.encode_document, some))))
                unfinished.replace(path)
                print(f"{start + len(some)} of {len(texts)} encoded", flush=True)
            parts.append(np.load(path))
    return np.concatenate(parts)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def _mixed(real: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    chance = np.random.default_rng(3)
    known = as_floats(real)
    share = chance.uniform(0.5, 1, (count, 1)).astype(np.float32)
    noise = chance.standard_normal((count, real.shape[1]), dtype=np.float32) * np.float32(NOISE / np.sqrt(real.shape[1]))
    mixed = share * known[chance.integers(len(real), size=count)] + (1 - share) * known[chance.integers(len(real), size=count)]
    mixed = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True) + noise).astype(np.float64)
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.asarray(np.rint(mixed / lengths * (1 << UNIT_SCALE_BITS)), dtype=np.int32)
