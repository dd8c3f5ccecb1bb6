"""The same material gives the same version and the same chunk ids, however it comes in.

Neither depends on vectors, so none are made here; that those are the same too is shown in `engine/test_repeatability.py`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
    import sys
    from evidentia import connect
    work, batch, *given = sys.argv[1:]
    connect(work, init=True).close()
    with open(f"{work}/evidentia.toml", "w") as file:
        file.write(f"[ingest]\\nbatch_documents = {batch}\\n")
    with connect(work) as base:
        for path in given:
            base.ingest([path], source="corpus" if path.endswith("jsonl") else "files", tags=["b", "a"], embed=False)
        print(base.head().corpus_version)
        for document_id, _, _ in base.documents():
            for chunk in base.chunks(document_id):
                print(chunk.chunk_id)
        assert base.verify().ok
"""


def _material(folder: Path, *, order: int, parts: int) -> list[str]:
    """Write the same documents in another order and into another number of corpus files."""
    files = folder / "files"
    numbers = list(range(60))
    random.Random(order).shuffle(numbers)
    for number in numbers:
        path = files / f"chapter-{number % 5}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        paragraphs = "\n\n".join(f"## Part {each}\n\nPage {number} says {each * number} about the harbour." * 4 for each in range(30))
        path.write_text(
            f"---\ntitle: Page {number}\nupdated: 2026-01-{number % 28 + 1:02d}\ntags: [x, y]\n---\n# Page {number}\n\n{paragraphs}\n"
        )
    records = [
        {"_id": f"r{number}", "title": f"T {number}", "text": f"Text {number} naïve ☃", "metadata": {"n": str(number)}}
        for number in range(90)
    ]
    random.Random(order + 1).shuffle(records)
    given = [str(files)]
    for part in range(parts):
        path = folder / f"part-{order}-{part}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records[part::parts]))
        given.append(str(path))
    random.Random(order + 2).shuffle(given)
    return given


def _ingest(work: Path, given: list[str], *, batch: int, hash_seed: int) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(work), str(batch), *given],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == run.returncode, run.stderr[-2000:]
    return run.stdout.splitlines()


def test_order_batches_directory_time_and_hash_seed_leave_no_trace(tmp_path: Path) -> None:
    answers = []
    for number, (order, parts, batch, hash_seed) in enumerate([(1, 1, 5_000, 0), (2, 1, 7, 1), (3, 3, 20, 2), (1, 2, 1, 77)]):
        folder = tmp_path / f"{'here' if number % 2 else 'there'}-{number}" / "material"
        folder.mkdir(parents=True)
        answers.append(_ingest(tmp_path / f"base-{number}", _material(folder, order=order, parts=parts), batch=batch, hash_seed=hash_seed))

    assert len(answers[0]) > 60 * 2 + 90
    assert [answers[0]] * len(answers) == answers
