"""SciFact's 300 test queries, by words and vectors, give the same result_hash over everything that must not matter.

Each way asks another sixth of them, so that together they ask all; EVIDENTIA_SCIFACT=full lets each ask all.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest

from engine.embedded_samples import (
    AS_OF,
    DEADLINE_MS,
    DOCUMENTS,
    IS_FULL,
    SOURCE,
    copy_vectors,
    differing,
    hybrid_hash,
    hybrid_hashes,
    ingest_scifact,
)
from evidentia import aconnect, connect

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded_samples import Asked

pytestmark = pytest.mark.slow

ENCODED = 60 if IS_FULL else 20

ASK = f"""
    import json, sys
    from concurrent.futures import ThreadPoolExecutor
    import onnxruntime.capi
    from evidentia import connect
    from evidentia.backends.embedded.vectors.vector_arithmetic import best_kernel
    path, queries, threads, kernel = sys.argv[1:]
    if kernel == "NumpyKernel":  # it is taken where onnxruntime is missing, as it is while the choice is made
        there, sys.modules["onnxruntime.capi"] = sys.modules["onnxruntime.capi"], None
        best_kernel()
        sys.modules["onnxruntime.capi"] = there
    with connect(path) as base:
        print(type(best_kernel()).__name__, base.head().evidence_state)
        def ask(text):
            answer = base.retrieve(text, as_of="{AS_OF}", facets=["language"], receipt=False, latency_deadline_ms={DEADLINE_MS})
            assert all(fragment.scores.dense is not None for fragment in answer.fragments), answer.degraded
            return answer.result_hash
        with ThreadPoolExecutor(int(threads)) as pool:
            print("\\n".join(pool.map(ask, json.load(open(queries)))))
"""


class Intake(NamedTuple):
    """How the abstracts come in, and which part of the queries is asked then."""

    part: int
    batch_documents: int
    order: int | None
    batch_vectors: int


@pytest.mark.parametrize(
    "intake",
    [Intake(0, 5_000, 1, 10_000), Intake(1, 300, None, 512), Intake(2, 300, 2, 100), Intake(3, 37, 3, 1_000)],
    ids=lambda intake: "-".join(str(each) for each in intake),
)
def test_ingest_order_and_batches_leave_no_trace(asked: Asked, tmp_path: Path, intake: Intake) -> None:
    corpus = _shuffled(asked.corpus, tmp_path / "corpus.jsonl", order=intake.order)
    ingest_scifact(tmp_path / "base", corpus, batch_documents=intake.batch_documents)
    copy_vectors(asked.path, tmp_path / "base", batch=intake.batch_vectors)

    _assert_same(asked.part(intake.part), tmp_path / "base")


def test_ingest_and_embedding_may_take_turns(asked: Asked, tmp_path: Path) -> None:
    lines = _shuffled(asked.corpus, tmp_path / "corpus.jsonl", order=4).read_bytes().splitlines(keepends=True)
    cuts = [0, DOCUMENTS // 3, DOCUMENTS // 2, DOCUMENTS]
    connect(tmp_path / "base", init=True).close()
    for first, last in pairwise(cuts):
        (tmp_path / "part.jsonl").write_bytes(b"".join(lines[first:last]))
        with connect(tmp_path / "base") as base:
            assert last - first == base.ingest([tmp_path / "part.jsonl"], source=SOURCE, embed=False).added
        copy_vectors(asked.path, tmp_path / "base", batch=400)

    _assert_same(asked.part(4), tmp_path / "base")


class Surroundings(NamedTuple):
    """What a process finds around it; empty where it takes what suits the machine."""

    part: int
    hash_seed: int
    threads: int
    kernel: str = ""
    processor: str = ""


@pytest.mark.parametrize(
    "around",
    [
        Surroundings(0, 0, 1),
        Surroundings(1, 1, 2),
        Surroundings(2, 4711, 8),
        Surroundings(3, 2, 1, "NumpyKernel", "Prescott"),
        Surroundings(4, 3, 2, "NumpyKernel", "Haswell"),
    ],
    ids=lambda around: "-".join(str(each) for each in around if each != ""),
)
def test_a_new_process_another_hash_seed_threads_and_kernels_leave_no_trace(asked: Asked, tmp_path: Path, around: Surroundings) -> None:
    asked = asked.part(around.part)
    (tmp_path / "queries.json").write_text(json.dumps(asked.texts))
    environment = {**os.environ, "PYTHONHASHSEED": str(around.hash_seed)}
    if around.processor:
        environment["OPENBLAS_CORETYPE"] = around.processor
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ASK), str(asked.path), str(tmp_path / "queries.json"), str(around.threads), around.kernel],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == run.returncode, run.stderr[-2000:]
    used, state, *hashes = run.stdout.split()

    assert used == (around.kernel or used)
    with connect(asked.path) as base:
        assert base.head().evidence_state == state
    assert [] == differing(asked.hashes, hashes)


@pytest.mark.parametrize(("part", "threads"), [(3, 1), (4, 2), (5, 8)])
def test_concurrent_callers_of_one_base_get_the_same_answers(asked: Asked, part: int, threads: int) -> None:
    """Each query is asked by several callers at once, in another order each, on a base that has answered nothing before."""
    asked = asked.part(part)
    numbers = list(range(len(asked.texts))) * 2
    random.Random(threads).shuffle(numbers)
    with connect(asked.path) as base, ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda number: hybrid_hash(base, asked.texts[number]), numbers))

    assert [] == differing([asked.hashes[number] for number in numbers], answers)


def test_gathered_callers_of_an_async_base_get_the_same_answers(asked: Asked) -> None:
    asked = asked.part(5)

    async def ask() -> list[str]:
        async with await aconnect(asked.path) as base:
            fields = {"as_of": AS_OF, "facets": ["language"], "receipt": False, "latency_deadline_ms": DEADLINE_MS}
            calls = (base.retrieve(text, **fields) for text in asked.texts)
            return [answer.result_hash for answer in await asyncio.gather(*calls)]

    assert [] == differing(asked.hashes, asyncio.run(ask()))


def test_naming_the_version_or_spelling_the_time_otherwise_changes_nothing(asked: Asked) -> None:
    asked = asked.part(1)
    with connect(asked.path) as base:
        head = base.head()
        named = [
            base.retrieve(
                text,
                as_of="2026-01-01T01:00:00+01:00",
                facets={"language"},
                corpus_version=head.corpus_version,
                evidence_state=head.evidence_state,
                receipt=False,
                latency_deadline_ms=DEADLINE_MS,
            ).result_hash
            for text in asked.texts
        ]

    assert [] == differing(asked.hashes, named)


def test_encoding_threads_and_batches_leave_no_trace(asked: Asked, tmp_path: Path) -> None:
    """The same abstracts are encoded again, in other company; what was stored by the long run is the third opinion."""
    lines = asked.corpus.read_bytes().splitlines(keepends=True)[:ENCODED]
    (tmp_path / "few.jsonl").write_bytes(b"".join(lines))
    for threads, batch in ((1, 7), (2, 32)):
        ingest_scifact(tmp_path / f"{threads}", tmp_path / "few.jsonl", batch_documents=50, documents=ENCODED)
        (tmp_path / f"{threads}" / "evidentia.toml").write_text(f"[embedding]\nthreads = {threads}\nbatch_chunks = {batch}\n")
        with connect(tmp_path / f"{threads}") as base:
            assert ENCODED <= base.embed().embedded
    ingest_scifact(tmp_path / "copied", tmp_path / "few.jsonl", batch_documents=50, documents=ENCODED)
    assert ENCODED <= copy_vectors(asked.path, tmp_path / "copied", batch=1_000)
    runs = []
    for name in ("1", "2", "copied"):
        with connect(tmp_path / name) as base:
            runs.append((base.head().evidence_state, hybrid_hashes(base, asked.texts[:ENCODED])))

    assert runs[0] == runs[1] == runs[2]


def _assert_same(asked: Asked, path: Path) -> None:
    with connect(asked.path) as first, connect(path) as second:
        assert first.head().corpus_version == second.head().corpus_version
        assert first.head().evidence_state == second.head().evidence_state
        assert [] == differing(asked.hashes, hybrid_hashes(second, asked.texts))


def _shuffled(corpus: Path, copy: Path, *, order: int | None) -> Path:
    lines = corpus.read_bytes().splitlines(keepends=True)
    if order is not None:
        random.Random(order).shuffle(lines)
    copy.write_bytes(b"".join(lines))
    return copy
