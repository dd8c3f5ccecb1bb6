"""SciFact's 300 test queries give the same result_hash over everything that must not matter, and every receipt replays."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evidentia import AccessRule, aconnect, connect
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.vocabulary import Classification
from evidentia.evaluation.datasets import load_dataset

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia import Base

pytestmark = pytest.mark.slow

AS_OF = "2026-01-01T00:00:00Z"
QUERIES = 300
SOURCE = "scifact"

ASK = f"""
    import json, sys
    from concurrent.futures import ThreadPoolExecutor
    from evidentia import connect
    path, queries, threads = sys.argv[1:]
    with connect(path) as base:
        print(base.head().corpus_version)
        def ask(text):
            return base.retrieve(text, as_of="{AS_OF}", facets=["language"], explain=False, receipt=False).result_hash
        with ThreadPoolExecutor(int(threads)) as pool:
            print("\\n".join(pool.map(ask, json.load(open(queries)))))
"""


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    """Return SciFact's folder."""
    if not (shared_data / "scifact" / "corpus.jsonl").is_file():
        pytest.skip(f"SciFact is not in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds it")
    return shared_data / "scifact"


class Original(NamedTuple):
    """A base with SciFact as it comes, the test queries, and the hashes of one plain run over them."""

    path: Path
    texts: list[str]
    hashes: list[str]


@pytest.fixture(scope="module")
def original(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Original:
    """Return what every run is compared with; no test changes its base."""
    path = tmp_path_factory.mktemp("repeatability") / "base"
    texts = [query.text for query in load_dataset(folder, split="test").queries]
    _ingest(path, folder / "corpus.jsonl", batch_documents=5_000)
    with connect(path) as base:
        hashes = _hashes(base, texts)

    assert QUERIES == len(texts) == len(set(hashes))
    return Original(path, texts, hashes)


@pytest.mark.parametrize(("batch_documents", "order"), [(5_000, 1), (700, None), (700, 2), (37, 3)])
def test_ingest_order_and_batches_leave_no_trace(
    original: Original, folder: Path, tmp_path: Path, batch_documents: int, order: int | None
) -> None:
    corpus = _shuffled(folder / "corpus.jsonl", tmp_path / "corpus.jsonl", order=order)
    _ingest(tmp_path / "base", corpus, batch_documents=batch_documents)
    with connect(original.path) as first, connect(tmp_path / "base") as second:
        assert first.head().corpus_version == second.head().corpus_version
        assert first.head().evidence_state == second.head().evidence_state
        differing = _differing(original.hashes, _hashes(second, original.texts))

    assert [] == differing


@pytest.mark.parametrize(("hash_seed", "threads"), [(0, 1), (1, 2), (4711, 8)])
def test_a_new_process_another_hash_seed_and_threads_leave_no_trace(
    original: Original, tmp_path: Path, hash_seed: int, threads: int
) -> None:
    (tmp_path / "queries.json").write_text(json.dumps(original.texts))
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ASK), str(original.path), str(tmp_path / "queries.json"), str(threads)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == run.returncode, run.stderr[-2000:]
    version, *hashes = run.stdout.split()

    with connect(original.path) as base:
        assert base.head().corpus_version == version
    assert [] == _differing(original.hashes, hashes)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_concurrent_callers_of_one_base_get_the_same_answers(original: Original, threads: int) -> None:
    """Each query is asked by several callers at once, in another order each, on a base that has answered nothing before."""
    numbers = list(range(QUERIES)) * 2
    random.Random(threads).shuffle(numbers)
    with connect(original.path) as base, ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda number: _hash(base, original.texts[number]), numbers))

    assert [] == _differing([original.hashes[number] for number in numbers], answers)


def test_gathered_callers_of_an_async_base_get_the_same_answers(original: Original) -> None:
    async def ask() -> list[str]:
        async with await aconnect(original.path) as base:
            asked = (base.retrieve(text, as_of=AS_OF, facets=["language"], receipt=False) for text in original.texts)
            return [answer.result_hash for answer in await asyncio.gather(*asked)]

    assert [] == _differing(original.hashes, asyncio.run(ask()))


def test_naming_the_version_or_spelling_the_time_otherwise_changes_nothing(original: Original) -> None:
    with connect(original.path) as base:
        head = base.head()
        named = [
            base.retrieve(
                text,
                as_of="2026-01-01T01:00:00+01:00",
                facets={"language"},
                corpus_version=head.corpus_version,
                evidence_state=head.evidence_state,
                receipt=False,
            ).result_hash
            for text in original.texts
        ]

    assert [] == _differing(original.hashes, named)


def test_every_receipt_replays_after_the_base_has_moved_on(original: Original, folder: Path, tmp_path: Path) -> None:
    """1,000 documents are added, 500 removed and 100 get another access; then versions are collected around the old one."""
    shutil.copytree(original.path, tmp_path / "base", ignore=shutil.ignore_patterns("receipts"))
    with connect(tmp_path / "base") as base:
        answers = [base.retrieve(text, as_of=AS_OF, facets=["language"]) for text in original.texts]
        receipts = [answer.receipt_id or "" for answer in answers]

        assert [] == _differing(original.hashes, [answer.result_hash for answer in answers])
        assert QUERIES == len(set(receipts))
        assert QUERIES == _replayed(base, receipts)

        _move_on(base, folder / "corpus.jsonl", tmp_path)
        changed = _hashes(base, original.texts)
        assert len(_differing(original.hashes, changed)) == QUERIES
        assert QUERIES == _replayed(base, receipts)

    with connect(tmp_path / "base") as reopened:
        assert QUERIES == _replayed(reopened, receipts)
        reopened.gc(keep_versions=reopened.head().sequence)
        assert QUERIES == _replayed(reopened, receipts)
        assert [] == _differing(changed, _hashes(reopened, original.texts))

        reopened.gc(keep_versions=1)
        for receipt in receipts:
            with pytest.raises(VersionCollectedError, match="was removed by gc"):
                reopened.replay(receipt)
        assert [] == _differing(changed, _hashes(reopened, original.texts))
        assert reopened.verify().ok


def _move_on(base: Base, corpus: Path, folder: Path) -> None:
    lines = corpus.read_bytes().splitlines()
    copies = [{**json.loads(line), "_id": f"again-{number}"} for number, line in enumerate(lines[:1_000])]
    (folder / "more.jsonl").write_text("".join(json.dumps(record) + "\n" for record in copies))
    added = base.ingest([folder / "more.jsonl"], source="more").added
    ids = [document_id for document_id, _, _ in base.documents() if document_id.startswith(SOURCE)]
    chosen = random.Random(7).sample(ids, 600)
    removed = base.remove(chosen[:500]).removed
    narrowed = base.set_access(chosen[500:], AccessRule(classification=Classification.RESTRICTED, acl=("group:nobody",))).access_changed

    assert (1_000, 500, 100) == (added, removed, narrowed)


def _ingest(path: Path, corpus: Path, *, batch_documents: int) -> None:
    connect(path, init=True).close()
    (path / "evidentia.toml").write_text(f"[ingest]\nbatch_documents = {batch_documents}\n")
    with connect(path) as base:
        report = base.ingest([corpus], source=SOURCE)
        assert 5_183 == report.added


def _shuffled(corpus: Path, copy: Path, *, order: int | None) -> Path:
    lines = corpus.read_bytes().splitlines(keepends=True)
    if order is not None:
        random.Random(order).shuffle(lines)
    copy.write_bytes(b"".join(lines))
    return copy


def _hash(base: Base, text: str) -> str:
    return base.retrieve(text, as_of=AS_OF, facets=["language"], receipt=False).result_hash


def _hashes(base: Base, texts: Sequence[str]) -> list[str]:
    return [_hash(base, text) for text in texts]


def _differing(first: Sequence[str], second: Sequence[str]) -> list[int]:
    return [number for number, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]


def _replayed(base: Base, receipts: Sequence[str]) -> int:
    """Return how many receipts gave the recorded answer again."""
    return sum(base.replay(receipt).is_same for receipt in receipts)
