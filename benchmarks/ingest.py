"""Ingest of 100,000 passages into a base, beside tantivy and bm25s indexing the same, each in a process of its own.

    make bench-ingest

Figures are CPU seconds (user + system) of the whole process minus its start-up, so that other load does not matter.
Evidentia also hashes, chains, logs and syncs what it stores; the other two only index.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from passages import passages

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 100_000
RESULTS = Path(__file__).parent / "results" / "ingest.json"


def cpu_s() -> float:
    """Return the CPU seconds this process and its finished children have used."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def resident_mb() -> int:
    """Return the memory resident now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def ingest_with_evidentia(corpus: Path, work: Path) -> dict[str, object]:
    from evidentia import connect

    memory: list[int] = []
    with connect(work / "base", init=True) as base:
        started = cpu_s()
        report = base.ingest(
            [corpus], source="bench", embed=False, on_progress=lambda progress: memory.append(resident_mb()) if progress.commit else None
        )
        spent = cpu_s() - started
        checked = cpu_s()
        assert base.verify().ok
        verified = cpu_s() - checked
    assert report.added == COUNT
    return {
        "cpu_s": spent,
        "verify_fragments_per_cpu_s": round(COUNT / verified),
        "resident_mb_after_quarters": [memory[len(memory) * quarter // 4 - 1] for quarter in range(1, 5)],
        "disk_mb": sum(path.stat().st_size for path in (work / "base").rglob("*") if path.is_file()) // 2**20,
    }


def index_with_tantivy(corpus: Path, work: Path) -> dict[str, object]:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem", index_option="position")
    (work / "index").mkdir()
    index = tantivy.Index(builder.build(), path=str(work / "index"))
    started = cpu_s()
    writer = index.writer(256_000_000, 1)
    with corpus.open() as lines:
        for line in lines:
            record = json.loads(line)
            writer.add_document(tantivy.Document(id=record["_id"], text=record["text"]))
    writer.commit()
    writer.wait_merging_threads()
    return {"cpu_s": cpu_s() - started}


def index_with_bm25s(corpus: Path, work: Path) -> dict[str, object]:
    import bm25s
    import Stemmer

    started = cpu_s()
    with corpus.open() as lines:
        texts = [json.loads(line)["text"] for line in lines]
    tokens = bm25s.tokenize(texts, stemmer=Stemmer.Stemmer("english"), stopwords=None, show_progress=False)
    retriever = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    retriever.index(tokens, show_progress=False)
    retriever.save(str(work / "bm25s"))
    return {"cpu_s": cpu_s() - started}


ENGINES: dict[str, Callable[[Path, Path], dict[str, object]]] = {
    "evidentia": ingest_with_evidentia,
    "tantivy": index_with_tantivy,
    "bm25s": index_with_bm25s,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        corpus = work / "corpus.jsonl"
        with corpus.open("w") as file:
            for number, text in enumerate(passages(COUNT)):
                file.write(json.dumps({"_id": f"p{number}", "text": text}) + "\n")
        figures = {}
        for name in ENGINES:
            (work / name).mkdir()
            run = subprocess.run(
                [sys.executable, __file__, name, str(corpus), str(work / name)], check=True, capture_output=True, text=True
            )
            figures[name] = json.loads(run.stdout)
    report = {"command": "make bench-ingest", "passages": COUNT, "python": platform.python_version(), "engines": figures}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        figures = ENGINES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        seconds = float(str(figures["cpu_s"]))
        print(json.dumps({**figures, "cpu_s": round(seconds, 2), "passages_per_cpu_s": round(COUNT / seconds), "peak_mb": peak_mb}))
    else:
        main()
