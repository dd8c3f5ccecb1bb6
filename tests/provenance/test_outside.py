"""Custody of what came from outside: it holds for what was taken in, and for nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.ids import ChunkId, DocumentId, SemanticVersion, SourceId
from evidentia.contracts.provenance import OriginEntry, ProvenanceEntry, TransformationEntry
from evidentia.contracts.retrieval import ExternalCandidate
from evidentia.contracts.vocabulary import AuthorityTier, SourceType
from evidentia.provenance.custody_chain import INTAKE_TOOL, chain_faults, outside_chain

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RECEIVED = "The crane\u200b is 40 m tall."
CONTENT = "The crane is 40 m tall."
CANDIDATE = ExternalCandidate(
    chunk_id=ChunkId(f"wiki:n-1#0@{sha256_hex(CONTENT.encode())[:16]}"),
    document_id=DocumentId("wiki:n-1"),
    source_id=SourceId("wiki"),
    content=CONTENT,
    content_hash=sha256_hex(CONTENT.encode()),
    received_hash=sha256_hex(RECEIVED.encode()),
    received_length=len(RECEIVED.encode()),
    rank=2,
    query="how tall is the crane?",
    origin="https://wiki/crane",
    retrieved_at=NOW,
    updated_at=NOW - timedelta(days=3),
    authority_tier=AuthorityTier.DERIVED,
    access=AccessRule(),
)


def chain(candidate: ExternalCandidate = CANDIDATE) -> tuple[ProvenanceEntry, ...]:
    return outside_chain(candidate, source_type=SourceType.API, version=SemanticVersion("1.2.0"))


def test_a_chain_from_outside_holds() -> None:
    assert [] == list(chain_faults(chain(), content=CONTENT.encode()))


def test_a_chain_says_what_came_and_what_was_done_to_it() -> None:
    origin, retrieved, cleaned = chain()

    assert isinstance(origin, OriginEntry)
    assert isinstance(retrieved, TransformationEntry)
    assert isinstance(cleaned, TransformationEntry)
    assert (CANDIDATE.received_hash, "retrieve", NOW) == (
        origin.record.content_hash,
        origin.record.extraction_method,
        origin.record.extraction_timestamp,
    )
    assert {
        "origin": "https://wiki/crane",
        "query": "how tall is the crane?",
        "rank": 2,
        "updated_at": "2026-02-26T00:00:00+00:00",
    } == retrieved.record.parameters
    assert ("wiki", "1.2.0") == (retrieved.record.tool_id, retrieved.record.tool_version)
    assert (INTAKE_TOOL, CANDIDATE.received_hash, CANDIDATE.content_hash) == (
        cleaned.record.tool_id,
        cleaned.record.input_hash,
        cleaned.record.output_hash,
    )


def test_without_a_date_none_is_claimed() -> None:
    origin, retrieved, _ = chain(msgspec.structs.replace(CANDIDATE, updated_at=None))

    assert isinstance(origin, OriginEntry)
    assert isinstance(retrieved, TransformationEntry)
    assert ("", False) == (origin.record.document_version, "updated_at" in retrieved.record.parameters)


@given(st.integers(0, len(CONTENT) - 1), st.characters(codec="utf-8"))
def test_another_content_breaks_the_chain(place: int, character: str) -> None:
    changed = CONTENT[:place] + character + CONTENT[place + 1 :]

    assert (changed == CONTENT) == (not list(chain_faults(chain(), content=changed.encode())))


@pytest.mark.parametrize(
    ("link", "changes"),
    [
        (0, {"document_version": "2020-01-01T00:00:00+00:00"}),
        (0, {"extraction_timestamp": NOW - timedelta(seconds=1)}),
        (0, {"document_id": DocumentId("wiki:n-2")}),
        (0, {"source_id": SourceId("web")}),
        (0, {"content_hash": sha256_hex(b"x")}),
        (0, {"content_length": 1}),
        (0, {"media_type": "text/html"}),
        (1, {"parameters": {"origin": "https://elsewhere", "query": CANDIDATE.query, "rank": 2}}),
        (1, {"timestamp": NOW - timedelta(seconds=1)}),
        (1, {"tool_version": SemanticVersion("9.0.0")}),
        (2, {"output_hash": sha256_hex(b"x")}),
        (2, {"timestamp": NOW + timedelta(seconds=1)}),
    ],
)
def test_another_record_breaks_the_chain(link: int, changes: dict[str, object]) -> None:
    entries = list(chain())
    entries[link] = msgspec.structs.replace(entries[link], record=msgspec.structs.replace(entries[link].record, **changes))

    assert [] != list(chain_faults(entries, content=CONTENT.encode()))


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "https://elsewhere"},
        {"query": "how old is the crane?"},
        {"rank": 1},
        {"updated_at": NOW},
        {"updated_at": None},
        {"retrieved_at": NOW + timedelta(seconds=1)},
        {"received_hash": sha256_hex(b"x")},
        {"flags": ("cut_by_intake",)},
    ],
)
def test_another_account_has_another_head(changes: dict[str, object]) -> None:
    assert chain()[-1].hash != chain(msgspec.structs.replace(CANDIDATE, **changes))[-1].hash


def test_no_link_can_be_left_out() -> None:
    entries = chain()

    for link in range(len(entries)):
        assert [] != list(chain_faults(entries[:link] + entries[link + 1 :], content=CONTENT.encode()))
