"""The event log in tiles proves exactly what the plain tree proves, at every size."""

from __future__ import annotations

import random
import sqlite3

import pytest

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import EventLogReader, EventLogWriter
from evidentia.provenance import merkle
from evidentia.provenance.merkle import Frontier


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    """Return a log of 70,000 leaves, which fills tiles of two levels, appended in uneven batches."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute(schema.TABLES["events"])
    made.execute(schema.TABLES["log_tiles"])
    writer = EventLogWriter(made, size=0)
    chance = random.Random(1)
    while writer.size < 70_000:
        count = min(70_000 - writer.size, chance.choice([1, 3, 255, 256, 257, 5_000, 20_000]))
        writer.append([b"leaf %d" % number for number in range(writer.size, writer.size + count)])
        if chance.random() < 0.3:
            writer = EventLogWriter(made, size=writer.size)
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 255, 256, 257, 511, 512, 513, 1_000, 65_535, 65_536, 65_537, 69_999, 70_000])
def test_every_proof_of_every_size_holds(database: sqlite3.Connection, size: int) -> None:
    log = EventLogReader(database, size=size)
    frontier = Frontier()
    for number in range(size):
        frontier.append(merkle.leaf_hash(b"leaf %d" % number))
    indexes = range(size) if size <= 600 else [*random.Random(size).sample(range(size), 200), 0, size - 1]

    assert frontier.root() == log.root()
    for index in indexes:
        proof = log.inclusion(index)
        assert merkle.verify_inclusion(
            merkle.leaf_hash(b"leaf %d" % index),
            index=index,
            size=size,
            path=[bytes.fromhex(each) for each in proof.hashes],
            root=frontier.root(),
        ), index


@pytest.mark.parametrize(
    ("first", "second"), [(1, 2), (3, 7), (255, 256), (256, 70_000), (65_537, 70_000), (69_999, 70_000), (70_000, 70_000)]
)
def test_an_earlier_log_is_a_prefix_of_a_later_one(database: sqlite3.Connection, first: int, second: int) -> None:
    proof = EventLogReader(database, size=second).consistency(first)

    assert EventLogReader(database, size=first).root().hex() == proof.first_root
    assert merkle.verify_consistency(
        first=first,
        second=second,
        path=[bytes.fromhex(each) for each in proof.hashes],
        first_root=bytes.fromhex(proof.first_root),
        second_root=bytes.fromhex(proof.second_root),
    )
