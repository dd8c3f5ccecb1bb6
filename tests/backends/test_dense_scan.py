"""The scan finds exactly what multiplying everything out finds, whatever the data, the mask and the kernel."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.backends.embedded.vectors import dense_scan, vector_arithmetic, vector_file
from evidentia.backends.embedded.vectors.dense_scan import PACK_AFTER, DenseProbe, DenseRows
from evidentia.backends.embedded.vectors.vector_arithmetic import (
    COARSE_LEVELS,
    FINE_LEVELS,
    NumpyKernel,
    OnnxKernel,
    SimilarityMeasure,
    best_kernel,
    checked,
    farthest,
    is_exact,
    multiplication_graph,
    nearness,
    split,
)
from evidentia.backends.embedded.vectors.vector_file import FileRows, ScanRows, VectorFile, write_merged, write_vectors
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vectors import LARGEST_COMPONENT, VectorIdentity
from evidentia.contracts.vocabulary import Similarity
from soak import cases

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evidentia.backends.embedded.vectors.vector_arithmetic import Kernel

COSINE = SimilarityMeasure(Similarity.COSINE, 22)
PROBE = np.arange(16, dtype=np.uint8)
MEASURES = [
    COSINE,
    SimilarityMeasure(Similarity.DOT, 14),
    SimilarityMeasure(Similarity.EUCLIDEAN, 14),
    SimilarityMeasure(Similarity.EUCLIDEAN, 22),
]


@pytest.fixture(params=[False, True], ids=["many groups", "few groups"])
def groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal rows into so few groups that small tests take the way of large bases, too."""
    if request.param:
        monkeypatch.setattr(dense_scan, "PEAKS", 40)
        monkeypatch.setattr(dense_scan, "PEAKS_PER_RESULT", 3)


def unit(chance: np.random.Generator, count: int, dimension: int, *, clusters: int = 0) -> NDArray[np.int32]:
    """Return unit vectors at 2**-22, around some centres or everywhere."""
    real = chance.standard_normal((count, dimension))
    if clusters:
        real = chance.standard_normal((clusters, dimension))[chance.integers(0, clusters, count)] + 0.3 * real
    made: NDArray[np.int32] = np.rint(real / np.linalg.norm(real, axis=1, keepdims=True) * (1 << 22)).astype(np.int32)
    return made


def raw(chance: np.random.Generator, count: int, dimension: int) -> NDArray[np.int32]:
    """Return vectors of very different lengths, a few of them as large as they may be."""
    real = chance.standard_normal((count, dimension)) * np.exp2(chance.uniform(2, 20, (count, 1)))
    made = np.clip(np.rint(real), -LARGEST_COMPONENT, LARGEST_COMPONENT).astype(np.int32)
    made[0], made[-1] = LARGEST_COMPONENT, -LARGEST_COMPONENT
    return made


def rows_of(folder: Path, vectors: NDArray[np.int32], *, files: int = 1) -> DenseRows:
    parts = np.array_split(np.arange(len(vectors)), files)
    written = [
        write_vectors(folder / f"{number}.vec", vectors[part], chunk_keys=part.astype(np.int64), sequence=1)
        for number, part in enumerate(parts)
        if len(part)
    ]
    return DenseRows([ScanRows(VectorFile(each.path)) for each in written])


def expected(
    vectors: NDArray[np.int32], query: NDArray[np.int32], *, measure: SimilarityMeasure, allowed: NDArray[np.bool_] | None, limit: int
) -> list[tuple[int, int]]:
    """Multiply everything out, in float64 where that is exact, and order by score, then by number."""
    wide, asked = vectors.astype(np.int64), query.astype(np.int64)
    longest = math.sqrt(int((wide * wide).sum(axis=1).max())) * math.sqrt(int(asked @ asked))
    products = (vectors.astype(np.float64) @ query.astype(np.float64)).astype(np.int64) if longest < 2**53 else wide @ asked
    numbers = np.arange(len(vectors)) if allowed is None else np.flatnonzero(allowed)
    if measure.similarity is Similarity.EUCLIDEAN:
        squares = ((wide - asked) ** 2).sum(axis=1)
        scores = {number: nearness(int(squares[number]), bits=measure.scale_bits) for number in numbers.tolist()}
    else:
        scores = {number: int(products[number]) for number in numbers.tolist()}
    ordered = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    return ordered[:limit]


def found(
    rows: DenseRows, query: NDArray[np.int32], *, measure: SimilarityMeasure, allowed: NDArray[np.bool_] | None, limit: int, kernel: Kernel
) -> list[tuple[int, int]]:
    numbers, scores = rows.nearest(query, measure=measure, kernel=kernel, allowed=allowed, limit=limit)
    ordered = sorted(zip(numbers.tolist(), scores.tolist(), strict=True), key=lambda each: (-each[1], each[0]))
    assert len(ordered) == limit or limit > len(ordered) or ordered[limit - 1][1] == ordered[-1][1]
    return ordered[:limit]


@pytest.mark.parametrize("kernel", [NumpyKernel(), best_kernel()], ids=["numpy", "best"])
def test_what_is_scanned_often_is_copied_into_memory_and_found_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    monkeypatch.setattr(vector_file, "PACKED_ROWS", 1_100)
    vectors = unit(np.random.default_rng(5), 3_000, 16)
    written = write_vectors(tmp_path / "0.vec", vectors, chunk_keys=np.arange(3_000), sequence=1)
    scanned = ScanRows(VectorFile(written.path))
    rows = DenseRows([scanned])
    asked = PACK_AFTER + 4
    answers = [found(rows, vectors[7], measure=COSINE, allowed=None, limit=5, kernel=kernel) for _ in range(asked)]
    before, scanned.file.scan = scanned.multiply(PROBE, kernel), np.zeros_like(scanned.file.scan)

    assert np.array_equal(before, scanned.multiply(PROBE, kernel))  # the file is not read any more
    assert not scanned.pack(kernel)
    assert [expected(vectors, vectors[7], measure=COSINE, allowed=None, limit=5)] * asked == answers


# --- rows ---


@given(st.lists(st.integers(-LARGEST_COMPONENT, LARGEST_COMPONENT), min_size=1, max_size=40))
def test_a_split_row_is_joined_exactly(components: list[int]) -> None:
    vectors = np.asarray([components], dtype=np.int32)
    rows = split(vectors)

    assert vectors.tolist() == rows.join().tolist()
    assert 127 >= int(np.abs(rows.high.astype(int)).max())


def test_the_step_is_the_smallest_that_does() -> None:
    rows = split(np.asarray([[127, 0], [128, 1], [LARGEST_COMPONENT, -1], [0, 0]], dtype=np.int32))

    assert [1, 2, 33_027, 1] == rows.steps.tolist()


@pytest.mark.parametrize("vector", [np.zeros(2, dtype=np.int32), np.zeros(3, dtype=np.float32), np.full(3, LARGEST_COMPONENT + 1)])
def test_a_vector_that_does_not_belong_is_refused(vector: NDArray[np.int32]) -> None:
    identity = VectorIdentity(model=sha256_hex(b""), dimension=3, normalisation="unit", name="m")
    with pytest.raises(InvalidFieldError, match="vector"):
        checked([vector], identity=identity)


def test_a_merged_file_holds_the_chosen_rows_in_order_of_their_keys(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    vectors = raw(chance, 10_000, 5)
    keys = chance.permutation(10_000)
    first, second = np.sort(keys[:6_000]), np.sort(keys[6_000:])
    files = [
        VectorFile(write_vectors(tmp_path / f"{number}.vec", vectors[part], chunk_keys=part, sequence=number).path)
        for number, part in enumerate((first, second))
    ]
    merged = VectorFile(
        write_merged(tmp_path / "merged.vec", [FileRows(files[0], np.arange(0, 6_000, 2)), FileRows(files[1], np.arange(4_000))]).path
    )
    kept = np.sort(np.concatenate([first[::2], second]))

    assert kept.tolist() == merged.chunk_keys.tolist()
    assert vectors[kept].tolist() == merged.rows(slice(None)).join().tolist()
    assert [0 if key in set(first.tolist()) else 1 for key in kept.tolist()] == merged.added.tolist()
    assert np.array_equal(merged.scan.T, merged.high)
    assert ((vectors[kept].astype(np.int64) ** 2).sum(axis=1)).tolist() == merged.squares.tolist()


# --- kernels ---


def test_the_graph_is_what_onnx_understands() -> None:
    onnx.checker.check_model(onnx.load_from_string(multiplication_graph()))
    onnx.checker.check_model(onnx.load_from_string(multiplication_graph(np.ones((384, 200), dtype=np.int8))))


@pytest.mark.parametrize("kernel", [NumpyKernel(), OnnxKernel(levels=COARSE_LEVELS)], ids=["numpy", "onnxruntime"])
@pytest.mark.parametrize("dimension", [1, 3, 384, 1_500, 4_096])
def test_kernels_agree_with_plain_integers(kernel: Kernel, dimension: int) -> None:
    chance = np.random.default_rng(dimension)
    scan = chance.integers(-127, 128, (dimension, 77), dtype=np.int8)
    scan[:, 0], scan[:, 1] = 127, -127
    for query in (
        chance.integers(0, 2 * kernel.levels + 1, dimension).astype(np.uint8),
        np.full(dimension, 2 * kernel.levels, dtype=np.uint8),
    ):
        exact = (query.astype(np.int64) @ scan.astype(np.int64)).tolist()
        assert exact == kernel.multiply(query, scan).tolist() == kernel.packed(scan)(query).tolist()


def test_a_kernel_that_adds_in_16_bits_is_found_out() -> None:
    class Saturating(NumpyKernel):
        levels = FINE_LEVELS

        def multiply(self, query: NDArray[np.uint8], scan: NDArray[np.int8]) -> NDArray[np.int32]:
            products = query.astype(np.int32)[:, np.newaxis] * scan
            pairs = products[: len(products) // 2 * 2].reshape(-1, 2, scan.shape[1]).sum(axis=1)
            sums: NDArray[np.int32] = np.clip(pairs, -32768, 32767).sum(axis=0) + products[len(products) // 2 * 2 :].sum(axis=0)
            return sums

    assert not is_exact(Saturating())
    assert is_exact(NumpyKernel())
    assert is_exact(best_kernel())


def test_without_onnxruntime_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.capi", None)

    assert isinstance(vector_arithmetic._found_kernel.__wrapped__(), NumpyKernel)


def test_a_processor_that_cannot_take_8_bits_gets_7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_arithmetic, "is_exact", lambda kernel: kernel.levels == COARSE_LEVELS)
    kernel = vector_arithmetic._found_kernel.__wrapped__()

    assert (OnnxKernel, COARSE_LEVELS) == (type(kernel), kernel.levels)


# --- the bound ---


@pytest.mark.parametrize("levels", [COARSE_LEVELS, FINE_LEVELS])
def test_the_scan_is_never_further_off_than_its_bound(tmp_path: Path, levels: int) -> None:
    chance = np.random.default_rng(levels)
    for number, vectors in enumerate((unit(chance, 300, 17), raw(chance, 300, 64))):
        folder = tmp_path / str(number)
        folder.mkdir()
        scanned = ScanRows(VectorFile(write_vectors(folder / "a.vec", vectors, chunk_keys=np.arange(300), sequence=1).path))
        for query in vectors[:100]:
            probe = DenseProbe(query, levels=levels)
            coarse = probe.scanned.astype(np.int64) - levels
            for row in range(300):
                sums = int(coarse @ scanned.file.high[row].astype(np.int64))
                guess = Fraction(probe.sigma) * sums * int(scanned.file.steps[row])
                bound = Fraction(probe.rest) * Fraction(float(scanned.reach[row])) + Fraction(probe.length) * Fraction(
                    float(scanned.slack[row])
                )
                assert abs(int(query.astype(np.int64) @ vectors[row].astype(np.int64)) - guess) <= bound


# --- the search ---


@pytest.mark.slow
def test_random_questions_find_what_float64_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit vectors, everywhere and in clusters, with copies of rows, several files, and masks from nothing to everything."""
    chance = np.random.default_rng(7)
    asked, own, stored = 0, cases(300, of=1_500), cases(100, of=500)
    for number, (dimension, clusters) in enumerate([(384, 0), (384, 60), (64, 20), (3, 0), (768, 10)]):
        monkeypatch.setattr(dense_scan, "PEAKS", 4_096 if number % 2 else 40)
        monkeypatch.setattr(dense_scan, "PEAKS_PER_RESULT", 16 if number % 2 else 3)
        vectors = unit(chance, 3_000, dimension, clusters=clusters)
        vectors[1_000:1_300] = vectors[:300]
        vectors[2_000:2_150] = vectors[5]
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = rows_of(folder, vectors, files=number + 1)
        queries = np.concatenate([unit(chance, own, dimension, clusters=clusters), vectors[chance.integers(0, 3_000, stored)]])
        products = np.rint(queries.astype(np.float64) @ vectors.astype(np.float64).T)
        for query, scores in zip(queries, products, strict=True):
            share = chance.choice([0.0, 0.0005, 0.02, 0.3, 1.0])
            allowed = None if share == 1.0 else chance.random(3_000) < share
            numbers = np.arange(3_000) if allowed is None else np.flatnonzero(allowed)
            best = numbers[np.lexsort((numbers, -scores[numbers]))][:100]
            assert [(int(each), int(scores[each])) for each in best] == found(
                rows, query, measure=COSINE, allowed=allowed, limit=100, kernel=best_kernel()
            )
            asked += 1

    assert cases(2_000, of=10_000) == asked


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("dimension", [1, 5, 96, 600])
def test_every_measure_finds_what_multiplying_out_finds(tmp_path: Path, measure: SimilarityMeasure, dimension: int) -> None:
    chance = np.random.default_rng(dimension)
    made = unit if measure.scale_bits == 22 else raw
    vectors = made(chance, 1_500, dimension)
    vectors[50:90] = vectors[7]
    rows = rows_of(tmp_path, vectors, files=3)
    for query in (*made(chance, 3, dimension), vectors[7], np.zeros(dimension, dtype=np.int32)):
        for share, limit in ((1.0, 10), (1.0, 1_500), (0.5, 100), (0.01, 20), (0.0, 5)):
            allowed = None if share == 1.0 else chance.random(1_500) < share
            assert expected(vectors, query, measure=measure, allowed=allowed, limit=limit) == found(
                rows, query, measure=measure, allowed=allowed, limit=limit, kernel=best_kernel()
            )


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("allowed_rows", [[], [4_321], [0, 1, 4_999], list(range(0, 5_000, 3)), list(range(5_000))])
def test_masks_of_any_size_are_exact(tmp_path: Path, allowed_rows: list[int]) -> None:
    chance = np.random.default_rng(11)
    vectors = unit(chance, 5_000, 48)
    rows = rows_of(tmp_path, vectors, files=2)
    allowed = np.zeros(5_000, dtype=np.bool_)
    allowed[allowed_rows] = True
    for query in unit(chance, 20, 48):
        assert expected(vectors, query, measure=COSINE, allowed=allowed, limit=10) == found(
            rows, query, measure=COSINE, allowed=allowed, limit=10, kernel=best_kernel()
        )


def test_kernels_give_the_same_answers(tmp_path: Path) -> None:
    chance = np.random.default_rng(13)
    vectors = np.concatenate([unit(chance, 4_000, 384, clusters=30), raw(chance, 100, 384) // 2])
    rows = rows_of(tmp_path, vectors, files=2)
    for query in unit(chance, 50, 384, clusters=30):
        answers = [
            found(rows, query, measure=COSINE, allowed=None, limit=30, kernel=kernel)
            for kernel in (NumpyKernel(), OnnxKernel(levels=COARSE_LEVELS), best_kernel())
        ]

        assert answers[0] == answers[1] == answers[2]


def test_a_few_long_rows_among_many_are_found(tmp_path: Path) -> None:
    """Their bound is far wider than the one that serves all the others."""
    chance = np.random.default_rng(17)
    vectors = unit(chance, 9_000, 24) // 64
    vectors[chance.choice(9_000, 20, replace=False)] *= 60
    rows = rows_of(tmp_path, vectors)
    for measure in (SimilarityMeasure(Similarity.DOT, 14), SimilarityMeasure(Similarity.EUCLIDEAN, 14)):
        for query in unit(chance, 4, 24) // 64:
            assert expected(vectors, query, measure=measure, allowed=None, limit=40) == found(
                rows, query, measure=measure, allowed=None, limit=40, kernel=best_kernel()
            )


@pytest.mark.slow
def test_two_processors_give_the_same_bytes(tmp_path: Path) -> None:
    """The numpy path in child processes whose BLAS believes to run on different processors."""
    script = textwrap.dedent(f"""
        import sys; sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]!r}
        from pathlib import Path
        import numpy as np
        import test_dense_scan as t
        chance = np.random.default_rng(19)
        vectors = t.unit(chance, 3000, 384, clusters=20)
        rows = t.rows_of(Path(sys.argv[1]), vectors, files=2)
        answers = [
            t.found(rows, query, measure=measure, allowed=None, limit=50, kernel=t.NumpyKernel())
            for query in t.unit(chance, 20, 384, clusters=20) for measure in (t.COSINE, t.MEASURES[3])
        ]
        print(t.hashlib.sha256(repr(answers).encode()).hexdigest())
    """)
    digests = []
    for processor in ("Prescott", "Haswell"):
        folder = tmp_path / processor
        folder.mkdir()
        environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
        child = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True, env=environment)
        digests.append(child.stdout.strip())

    assert len(hashlib.sha256().hexdigest()) == len(digests[0])
    assert digests[0] == digests[1]


# --- euclidean scores ---


@given(st.integers(0, 2**62), st.sampled_from([14, 22]))
def test_a_euclidean_score_is_the_floor_of_the_real_one(square: int, bits: int) -> None:
    score = nearness(square, bits=bits)

    def is_reached(value: int) -> bool:  # value <= 2**44 / (1 + sqrt(square) / 2**bits), in integers
        left = (1 << (44 + bits)) - value * (1 << bits)
        return left >= 0 and value * value * square <= left * left

    assert is_reached(score)
    assert not is_reached(score + 1)
    assert score == nearness(farthest(score, bits=bits), bits=bits)
    assert score > nearness(farthest(score, bits=bits) + 1, bits=bits)
