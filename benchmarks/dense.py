"""The nearest 100 of 100,000 and 1,000,000 vectors of 384 dimensions, exactly, beside faiss over the same vectors, in one run.

    make bench-dense

Vectors are random (the hardest case: nothing is near) or lie around 2,000 centres, as those of texts do. Figures are CPU
milliseconds per question on one thread, from the question's integers to the exact scores of the best, selection and
rescoring included. Evidentia's rows are memory maps of its vector files, as a collection leaves them; "packed" is a reader
that stayed open and has copied what it scans into memory. Masks stand for callers who see 30 % and 1 % of the rows.
"Multiply" is the scan's kernel alone. faiss IndexFlatIP multiplies float32, so its order may differ where two products
differ by less than it can tell.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import platform
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evidentia.backends.embedded.records.collector import LARGEST_FILE
from evidentia.backends.embedded.vectors import dense_scan
from evidentia.backends.embedded.vectors.dense_scan import DenseProbe, DenseRows
from evidentia.backends.embedded.vectors.vector_arithmetic import NumpyKernel, SimilarityMeasure, best_kernel
from evidentia.backends.embedded.vectors.vector_file import FileRows, ScanRows, VectorFile, write_merged, write_vectors
from evidentia.contracts.vectors import UNIT_SCALE_BITS
from evidentia.contracts.vocabulary import Similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from evidentia.backends.embedded.vectors.vector_arithmetic import Kernel

dense_scan.PACK_AFTER = sys.maxsize  # what is memory mapped stays so
SIZES = (100_000, 1_000_000)
DIMENSION = 384
LIMIT = 100
QUERIES = 60
WARM_UP = 6
BATCH = 1 << 15
CENTRES = 2_000
MEASURE = SimilarityMeasure(Similarity.COSINE, UNIT_SCALE_BITS)
MAX_SEEN, LEAST_SEEN = 0.3, 0.01
RESULTS = Path(__file__).parent / "results" / "dense.json"


def batches(kind: str, count: int, *, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield unit vectors, a batch at a time."""
    centres = np.random.default_rng(0).standard_normal((CENTRES, DIMENSION), dtype=np.float32)
    chance = np.random.default_rng(seed)
    for start in range(0, count, BATCH):
        made = chance.standard_normal((min(BATCH, count - start), DIMENSION), dtype=np.float32)
        if kind == "clustered":
            made = centres[chance.integers(0, CENTRES, len(made))] + np.float32(0.5) * made
        yield made / np.linalg.norm(made, axis=1, keepdims=True)


def fixed(vectors: NDArray[np.float32]) -> NDArray[np.int32]:
    made: NDArray[np.int32] = np.rint(vectors.astype(np.float64) * (1 << UNIT_SCALE_BITS)).astype(np.int32)
    return made


def write_files(work: Path, kind: str, size: int) -> list[VectorFile]:
    """Write the vectors as embedding does, then merge them as a collection does."""
    files: list[VectorFile] = []
    first = 0
    for number, batch in enumerate(batches(kind, size, seed=1)):
        keys = np.arange(first, first + len(batch))
        files.append(VectorFile(write_vectors(work / f"{number}.vec", fixed(batch), chunk_keys=keys, sequence=1).path))
        first += len(batch)
    merged = []
    per_file = LARGEST_FILE // BATCH
    for start in range(0, len(files), per_file):
        group = files[start : start + per_file]
        written = write_merged(work / f"merged-{start}.vec", [FileRows(each, np.arange(each.count)) for each in group])
        merged.append(VectorFile(written.path))
        for each in group:
            (work / each.name).unlink()
    return merged


def build_faiss(kind: str, size: int) -> Any:  # noqa: ANN401 - the package has no types
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIMENSION)
    for batch in batches(kind, size, seed=1):
        index.add(batch)
    return index


def timed(searches: dict[str, Callable[[int], object]]) -> dict[str, dict[str, float]]:
    """Ask every engine each question in turn, so that whatever else the machine does falls on all alike."""
    spent: dict[str, list[int]] = {name: [] for name in searches}
    for number in range(QUERIES + WARM_UP):
        for name, search in searches.items():
            started = time.process_time_ns()
            search(number)
            spent[name].append(time.process_time_ns() - started)
    found = {name: np.percentile(each[WARM_UP:], [50, 99]) / 1e6 for name, each in spent.items()}
    return {name: {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2)} for name, (p50, p99) in found.items()}


def measure(kind: str, size: int, work: Path) -> dict[str, Any]:
    files = write_files(work, kind, size)
    started = time.process_time_ns()
    mapped, packed = (DenseRows([ScanRows(file) for file in files]) for _ in range(2))
    kernel = best_kernel()
    while packed.pack(kernel):
        pass
    open_ms = (time.process_time_ns() - started) / 1e6
    real = next(batches(kind, QUERIES + WARM_UP, seed=2))
    queries = fixed(real)
    chance = np.random.default_rng(3)
    probes = [DenseProbe(query, levels=kernel.levels).scanned for query in queries]
    index = build_faiss(kind, size)

    def nearest(
        number: int, *, kernel: Kernel, allowed: NDArray[np.bool_] | None = None, rows: DenseRows = mapped
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return rows.nearest(queries[number], measure=MEASURE, kernel=kernel, allowed=allowed, limit=LIMIT)

    def peer(number: int) -> NDArray[np.int64]:
        found: NDArray[np.int64] = index.search(real[number : number + 1], LIMIT)[1][0]
        return found

    searches: dict[str, Callable[[int], object]] = {
        "evidentia": partial(nearest, kernel=kernel),
        "evidentia, packed": partial(nearest, kernel=kernel, rows=packed),
        "faiss IndexFlatIP": peer,
        "evidentia, 30 % seen": partial(nearest, kernel=kernel, allowed=chance.random(size) < MAX_SEEN),
        "evidentia, 1 % seen": partial(nearest, kernel=kernel, allowed=chance.random(size) < LEAST_SEEN),
        "evidentia, multiply": lambda number: [kernel.multiply(probes[number], file.scan) for file in files],
    }
    if size == SIZES[0]:
        searches["evidentia, without onnxruntime"] = partial(nearest, kernel=NumpyKernel())
    figures = timed(searches)
    common = [set(nearest(number, kernel=kernel)[0].tolist()) & set(peer(number).tolist()) for number in range(QUERIES)]
    return {
        "vectors": kind,
        "rows": size,
        "files": len(files),
        "open_ms": round(open_ms, 1),
        "figures": figures,
        "share_of_faiss": round(figures["evidentia"]["p50_ms"] / figures["faiss IndexFlatIP"]["p50_ms"], 3),
        "packed_share_of_faiss": round(figures["evidentia, packed"]["p50_ms"] / figures["faiss IndexFlatIP"]["p50_ms"], 3),
        "found_by_both": round(sum(map(len, common)) / (QUERIES * LIMIT), 4),
    }


def main(sizes: Iterable[int]) -> None:
    measured = []
    for size in sizes:
        for kind in ("random", "clustered"):
            with tempfile.TemporaryDirectory() as folder:
                measured.append(measure(kind, size, Path(folder)))
                print(json.dumps(measured[-1], indent=1), flush=True)
    if tuple(sizes) == SIZES:
        report = {
            "command": "make bench-dense",
            "python": platform.python_version(),
            "queries": QUERIES,
            "dimension": DIMENSION,
            "top": LIMIT,
            "measured": measured,
        }
        RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(tuple(int(each) for each in sys.argv[1:]) or SIZES)
