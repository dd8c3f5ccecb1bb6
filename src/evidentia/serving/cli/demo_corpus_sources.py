"""Which part of the sample corpus belongs to which source, and how much its word weighs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple


class SampleSource(NamedTuple):
    """One source of the sample corpus."""

    name: str
    path: str
    authority: str


SAMPLE_SOURCES = (
    SampleSource("handbook", "handbook", "canonical"),
    SampleSource("api", "api", "canonical"),
    SampleSource("runbooks", "runbooks", "curated"),
    SampleSource("incidents", "incidents", "curated"),
    SampleSource("security", "security", "curated"),
    SampleSource("changelog", "CHANGELOG.md", "curated"),
    SampleSource("help", "help", "curated"),
    SampleSource("clients", "clients", "curated"),
    SampleSource("tables", "tables", "curated"),
    SampleSource("tickets", "tickets/support-tickets.jsonl", "user"),
)


def copy_samples(target: Path) -> None:
    """Copy the sample corpus; a source that is there stays as it is, so that a reader can change it and run the demo again."""
    packaged = Path(__file__).with_name("demo_corpus")
    for source in SAMPLE_SOURCES:
        origin, copy = packaged / source.path, target / source.path
        if copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(origin, copy)
