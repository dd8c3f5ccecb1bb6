"""Bases that several tests ask and none of them changes, each made once per run, by whichever process needs it first."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from engine.embedded_samples import QUERIES, Asked, DemoBase, SciFact, build_demo, build_scifact, hybrid_hashes
from evidentia import connect
from evidentia.evaluation.datasets import load_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def scifact(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> SciFact:
    """Return a base with SciFact, every abstract with its vector, and the test queries."""
    folder = shared_data / "scifact"
    if not (folder / "corpus.jsonl").is_file():
        pytest.skip(f"SciFact is not in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds it")
    made = _made_once(tmp_path_factory, "scifact", lambda target: build_scifact(target, folder))
    texts = [query.text for query in load_dataset(folder, split="test").queries]
    assert QUERIES == len(texts)
    return SciFact(made / "base", made / "corpus.jsonl", texts)


@pytest.fixture(scope="session")
def asked(scifact: SciFact, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Return the hashes of one plain run over the test queries, which every other run is compared with."""
    made = _made_once(tmp_path_factory, "asked", lambda target: _write_hashes(target, scifact))
    hashes = json.loads((made / "hashes.json").read_text(encoding="utf-8"))

    assert QUERIES == len(set(hashes))
    return Asked(scifact.path, scifact.corpus, scifact.texts, hashes)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoBase:
    """Return a base with the sample corpus, whose legs propose few enough candidates that some chunks are none."""
    path = _made_once(tmp_path_factory, "demo", build_demo)
    with connect(path) as base:
        chunks = {chunk.chunk_id: chunk for document_id, _, _ in base.documents() for chunk in base.chunks(document_id)}
    return DemoBase(path, chunks)


def _write_hashes(target: Path, scifact: SciFact) -> None:
    target.mkdir()
    with connect(scifact.path) as base:
        (target / "hashes.json").write_text(json.dumps(hybrid_hashes(base, scifact.texts)), encoding="utf-8")


def _made_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """Return a folder that one of the processes of this run fills, while the others wait."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    target = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / f"{name}.done").exists():
            shutil.rmtree(target, ignore_errors=True)
            build(target)
            (shared / f"{name}.done").touch()
    return target
