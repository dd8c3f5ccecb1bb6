"""A base of an earlier commit, with a little of everything in it, opens, verifies, replays, answers and is written to.

tools/make_older_base.py made it (tests/fixtures/older_base.zip), and says by which answers it is known.
"""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evidentia import EvidenceResponse, Principal, connect
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli import main

PACKED = Path(__file__).resolve().parents[1] / "fixtures" / "older_base.zip"
MOMENT = ("--as-of", "2026-01-01T00:00:00Z", "--deadline-ms", "60000")
OWN_FRAGMENTS = (
    "handbook:keys.md#0@42c9edbc05831af4",
    "handbook:prices.csv#0@189221f74f81fc4b",
    "handbook:pumps.md#0@c0b6cb9fd26d7633",
    "handbook:faq.html#0@a968c6e9bd658f0e",
    "policies:old.md#0@7d95ea746bed5ccc",
    "security:custody.md#0@3ae30ac9a03d7534",
)
"""What the release that made the base found for its question among the base's own documents, in its order."""
OUTSIDE = "archive:old:old.md#0@e7b6ba1f2b61d2ac#0@e7b6ba1f2b61d2ac"
"""What it found in the source beside the base."""
RECEIPTS = ("annotated", "federated", "filtered", "hybrid", "lexical", "somebody")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return a folder with the base, the one beside it, and what was written down about them."""
    with zipfile.ZipFile(PACKED) as packed:
        packed.extractall(tmp_path)
    return tmp_path


def expected_of(older: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((older / "expected.json").read_text(encoding="utf-8"))
    return expected


def command(older: Path, *arguments: str) -> Any:
    """Return what a command that ends well prints as JSON."""
    printed, remarks = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(remarks):
        exit_code = main(["--json", "--base", str(older / "base"), *arguments])
    printed.seek(0)
    assert 0 == exit_code, remarks.getvalue()
    return json.loads(printed.read())


def test_it_opens_with_all_it_holds(older: Path) -> None:
    expected = expected_of(older)
    with connect(older / "base") as base:
        layout = base.layout("handbook:pumps.md")
        found: dict[str, Any] = {
            "documents": [[document_id, access.classification.value, chunks] for document_id, access, chunks in base.documents()],
            "image": [image.image_hash for image in layout.images] if layout else [],
            "table": [list(row) for row in base.ask_tables("Which services cost less than 60 EUR?").rows],
            "notes": [note.text for note in base.notes()],
            "sources": sorted(each.descriptor.source_id for each in base.sources()),
            "policies": sorted(each.policy.body.name for each in base.policies()),
            "versions": len(base.versions()),
        }
        kinds = [base.image(image_hash)[0] for image_hash in found["image"]]

    assert {name: expected[name] for name in found} == found
    assert ["image/png"] == kinds


def test_it_verifies_and_needs_no_care(older: Path) -> None:
    with connect(older / "base") as base:
        assert base.verify().ok
        assert base.doctor().ok
    with connect(older / "archive") as archive:
        assert archive.verify().ok


@pytest.mark.parametrize("name", RECEIPTS)
def test_its_receipts_verify_and_replay_to_the_same_hash(older: Path, name: str) -> None:
    expected = expected_of(older)["receipts"][name]
    with connect(older / "base") as base:
        report = base.replay(expected["receipt_id"])

    assert command(older, "verify", expected["receipt_id"])["ok"]
    assert (expected["is_same"], expected["hidden"], expected["result_hash"]) == (report.is_same, report.hidden, report.result_hash)


def test_every_receipt_that_was_written_down_is_looked_at(older: Path) -> None:
    assert list(RECEIPTS) == sorted(expected_of(older)["receipts"])


def test_its_decision_log_verifies_against_the_heads_and_replays(older: Path) -> None:
    expected = expected_of(older)
    (older / "heads.json").write_text(json.dumps(expected["log"]), encoding="utf-8")

    assert expected["log"] == command(older, "policy", "log", "verify", "--heads", str(older / "heads.json"))
    assert expected["replayed"] == command(older, "policy", "replay")


def test_what_was_taken_out_of_it_verifies_without_it(older: Path, tmp_path: Path) -> None:
    for name in ("answer.json", "fragment.json"):
        report = command(tmp_path / "elsewhere", "verify", str(older / name))
        assert (True, 1, "") == (report["ok"], report["custody_format"], report["signed_by"])


def test_its_answer_is_compared_with_its_receipt(older: Path) -> None:
    answer = msgspec.json.decode((older / "answer.json").read_bytes(), type=EvidenceResponse)
    with connect(older / "base") as base:
        assert base.verify(answer).ok
        assert not base.verify(msgspec.structs.replace(answer, custody_format=2)).ok


def test_it_gets_its_keys_with_the_first_write(older: Path, tmp_path: Path) -> None:
    """Before that nothing is signed or keyed; what was answered then is replayed as it was."""
    (tmp_path / "later.md").write_text("Signing keys are rotated every day from now on.\n", encoding="utf-8")
    somebody = Principal(principal_id=PrincipalId("somebody"), clearance=Classification.INTERNAL)
    moment = {"as_of": "2026-01-01T00:00:00Z", "latency_deadline_ms": 60_000}
    with connect(older / "base") as base, connect(older / "base", principal=somebody) as other:
        plain = other.retrieve("signing keys", **moment)
        assert plain.evidence_state == base.head().evidence_state
        with pytest.raises(NotFoundError):
            base.signed_head()
        assert base.export(plain.fragments[0].chunk_id).head is None
        base.ingest([tmp_path / "later.md"], source="handbook", embed=False)
        since = base.signed_head().keys[0].sequence
        keyed = other.retrieve("signing keys", **moment)

        assert base.head().sequence == since
        assert keyed.evidence_state != base.head().evidence_state
        assert [True, True] == [other.replay(each.receipt_id or "").is_same for each in (plain, keyed)]
        assert base.verify().signed_by


def test_a_question_of_its_own_documents_finds_the_same_fragments(older: Path) -> None:
    """Scores and order follow the rules of today's engine, those of the older one are left to its receipts."""
    narrowed = [word for source in ("handbook", "policies", "security") for word in ("--source", source)]
    found = [fragment["chunk_id"] for fragment in command(older, "search", expected_of(older)["question"], *MOMENT, *narrowed)["fragments"]]

    assert sorted(OWN_FRAGMENTS) == sorted(found)
    assert OWN_FRAGMENTS[0] == found[0]


def test_a_question_of_all_its_sources_finds_the_same_fragments(older: Path) -> None:
    """What a source outside says is scored like a text of the base since, on one scale, which moves the fragments behind the first."""
    answer = command(older, "search", expected_of(older)["question"], *MOMENT)
    found = [fragment["chunk_id"] for fragment in answer["fragments"]]

    assert sorted([OUTSIDE, *OWN_FRAGMENTS]) == sorted(found)
    assert OWN_FRAGMENTS[0] == found[0]


def test_it_is_written_to_and_its_receipts_still_replay(older: Path, tmp_path: Path) -> None:
    (tmp_path / "later.md").write_text("Signing keys are rotated every day from now on.\n", encoding="utf-8")
    with connect(older / "base") as base:
        assert 1 == base.ingest([tmp_path / "later.md"], source="handbook").added
        base.remember("Rotated once more.", agent="ops", session="s1")
        answer = base.retrieve("signing keys", agent_name="ops", session_context="s1", latency_deadline_ms=60_000)
        replayed = [base.replay(each["receipt_id"]).is_same for each in expected_of(older)["receipts"].values()]

        assert "handbook:later.md" in {fragment.document_id for fragment in answer.fragments}
        assert base.replay(answer.receipt_id or "").is_same
        assert base.verify().ok
    assert all(replayed)
