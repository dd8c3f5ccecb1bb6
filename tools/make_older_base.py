"""Make the base that tests/base/test_older_bases.py opens with every later commit: a little of everything that a base may hold.

    python tools/make_older_base.py tests/fixtures/older_base.zip

It is made once, by the commit whose bases must stay readable, and never again by a later one: PYTHONPATH=OTHER/src
OTHER/.venv/bin/python tools/make_older_base.py FILE. Only the public API and the command line are used.

The file holds the folder `base`, the base `archive` beside it that is one of its sources, an answer and an exported fragment as the
command line writes them, and `expected.json`: what was asked, and which answers it had.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import zipfile
from base64 import b64decode
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, Final

import msgspec

from evidentia import AccessRule, Base, EvidenceResponse, Principal, connect
from evidentia.agents import Context, PolicyViolationError
from evidentia.serving.cli import main as run_command

ASKED: Final = {"as_of": "2026-01-01T00:00:00Z", "latency_deadline_ms": 60_000}
QUESTION: Final = "when are signing keys rotated?"
GREY: Final = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADElEQVR4nGNgoA4AAABIAAEuuDx+AAAAAElFTkSuQmCC")
DOCUMENTS: Final = {
    "handbook/keys.md": "# Keys\n\nSigning keys are rotated every 90 days.\n\nThe root key is never used online.\n",
    "handbook/pumps.md": "# Pumps\n\nTwo pumps run. The third pump waits.\n\n![the third pump](img/pump.png)\n",
    "handbook/prices.csv": "Service,Zone,Price (EUR)\nDinghy,Europe,9.80\nFrigate,Europe,58.00\nGalleon,World,120.50\n",
    "handbook/faq.html": "<h1>Questions</h1><p>Parcels travel for three days.</p><p>Keys are lent to nobody.</p>",
    "handbook/leaving.md": "# Leaving\n\nWhoever leaves hands in the keys on the last day.\n",
    "security/custody.md": "---\nupdated_at: 2025-06-01\n---\n# Custody\n\nThe root key lies in the safe of the harbour office.\n",
    "policies/old.md": "---\nupdated_at: 2020-01-01\n---\nSigning keys were rotated every year.\n",
    "archive/old.md": "# Archive\n\nSigning keys were once rotated by hand, on Mondays.\n",
}
SETTINGS: Final = """[access]
rules = ['classification != "restricted" OR author = "$caller.name"']
"""
RETRIEVAL: Final = {
    "name": "Fresh sources",
    "category": "retrieval",
    "rules": {"min_relevance_score": 0.0, "max_source_age_days": 365, "action_on_stale_source": "block"},
}
GROUNDING: Final = {
    "name": "Grounded answers",
    "category": "grounding",
    "rules": {"min_citations": 1, "min_grounding_score": 0.6, "action_on_violation": "warn"},
}


def main() -> None:
    """Make the base in a temporary folder and pack it."""
    target = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        _write_documents()
        expected = _make_base()
        Path("expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _pack(target)
    print(f"wrote {target.stat().st_size:,} bytes to {target.name}")


def _write_documents() -> None:
    for name, text in DOCUMENTS.items():
        path = Path("documents") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    Path("documents/handbook/img").mkdir()
    Path("documents/handbook/img/pump.png").write_bytes(GREY)


def _make_base() -> dict[str, Any]:
    with connect("archive", init=True) as archive:
        archive.ingest(["documents/archive"], source="old")
    connect("base", init=True).close()
    Path("base/evidentia.toml").write_text(SETTINGS, encoding="utf-8")
    with connect("base") as base:
        base.ingest(["documents/handbook"], source="handbook", authority="canonical", tags=["daily"])
        base.ingest(["documents/security"], source="security", classification="confidential", acl=["group:security"])
        base.ingest(["documents/policies"], source="policies")
        receipts = {
            "hybrid": base.retrieve("how often do we change the keys?", **ASKED),
            "lexical": base.retrieve("keys", mode="lexical", filter='tags = "daily"', facets=["source_id"], **ASKED),
        }
        receipts |= _ask_sources(base)
        receipts |= _ask_under_policies(base)
    alice = msgspec.convert({"principal_id": "alice", "clearance": "confidential", "groups": ["security"]}, Principal)
    with connect("base", principal=alice) as seen:
        receipts["somebody"] = seen.retrieve("where is the root key?", **ASKED)
    _run_agent()
    Path("answer.json").write_text(json.dumps(receipts["hybrid"].to_dict()), encoding="utf-8")
    _command("export", receipts["hybrid"].fragments[0].chunk_id, "--output", "fragment.json")
    with connect("base") as base:
        _change(base)
        return {
            "question": QUESTION,
            "result_hash": base.retrieve(QUESTION, receipt=False, **ASKED).result_hash,  # before the log is read, which it adds to
            "receipts": {name: _expected(base, answer) for name, answer in receipts.items()},
            "documents": [[document_id, access.classification.value, chunks] for document_id, access, chunks in base.documents()],
            "image": [each.image_hash for each in layout.images] if (layout := base.layout("handbook:pumps.md")) else [],
            "table": [list(row) for row in base.ask_tables("Which services cost less than 60 EUR?").rows],
            "notes": [note.text for note in base.notes()],
            "sources": sorted(each.descriptor.source_id for each in base.sources()),
            "policies": sorted(each.policy.body.name for each in base.policies()),
            "versions": len(base.versions()),
            "log": json.loads(_command("--json", "policy", "log", "verify")),
            "replayed": json.loads(_command("--json", "policy", "replay")),
        }


def _ask_sources(base: Base) -> dict[str, EvidenceResponse]:
    connection = {"kind": "base", "address": "../archive"}
    base.add_source({"source_id": "archive", "source_type": "api", "expected_p99_ms": 5_000, "connection": connection})
    base.add_source({"source_id": "memory", "source_type": "memory_layer", "expected_p99_ms": 5_000, "connection": {"kind": "memory"}})
    base.remember("The signing keys were rotated by hand on Monday.", title="Monday", agent="ops", session="s1")
    answer = base.retrieve("signing keys rotated", agent_name="ops", session_context="s1", **ASKED)
    if not {"archive", "memory", "handbook"} <= {fragment.source_id for fragment in answer.fragments}:
        sys.exit(f"a source was not heard: {answer.source_coverage}")
    return {"federated": answer}


def _ask_under_policies(base: Base) -> dict[str, EvidenceResponse]:
    base.add_policy(RETRIEVAL)
    base.add_policy(GROUNDING)
    asked = {"mode": "lexical", "agent_name": "ops", "session_context": "s1", **ASKED}
    return {
        "annotated": base.retrieve("signing keys rotated", governance="annotate", **asked),
        "filtered": base.retrieve("signing keys rotated", governance="filter", **asked),
    }


def _run_agent() -> None:
    """Record one run that passes with a warning and one that a policy stops."""
    with connect("base") as base:
        with Context(agent_name="ops", base=base) as run:
            run.record_retrieval_result(relevance_score=0.9, source="keys.md", collection="handbook", age_days=3)
            run.record_tool_call("calculator", {"term": "1+1"}, output="2", duration_ms=3)
            run.record_grounding(grounding_scores=[0.4, 0.9], citations=["keys.md"])
            run.set_result("Every 90 days.")
        try:
            with Context(agent_name="ops", base=base) as run:
                run.record_retrieval_result(relevance_score=0.9, source="old.md", collection="policies", age_days=2_000)
        except PolicyViolationError:
            return
    sys.exit("the policy did not stop the run")


def _change(base: Base) -> None:
    """Leave something behind every receipt: a document that changed, one that is gone, one that others may see."""
    Path("documents/handbook/keys.md").write_text("# Keys\n\nSigning keys are rotated every 30 days.\n", encoding="utf-8")
    base.ingest(["documents/handbook"], source="handbook", authority="canonical", tags=["daily"])
    base.remove(["handbook:leaving.md"])
    base.set_access(["handbook:faq.html"], AccessRule(acl=("group:support",)))


def _expected(base: Base, answer: EvidenceResponse) -> dict[str, Any]:
    if answer.receipt_id is None or not answer.fragments:
        sys.exit(f"no receipt or nothing found: {answer.degraded}")
    report = base.replay(answer.receipt_id)
    return {"receipt_id": answer.receipt_id, "result_hash": report.result_hash, "is_same": report.is_same, "hidden": report.hidden}


def _command(*arguments: str) -> str:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(printed):
        exit_code = run_command(["--base", "base", *arguments])
    printed.seek(0)
    if exit_code:
        sys.exit(f"{arguments} ended with {exit_code}")
    return printed.read()


def _pack(target: Path) -> None:
    """Pack everything but the documents, in the order of the names and without the moments at which files were written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(Path().rglob("*")):
            if path.parts[0] != "documents" and not path.name.endswith("-shm"):  # memory that processes share, made anew by the next
                entry = zipfile.ZipInfo(path.as_posix() + "/" * path.is_dir(), date_time=(2026, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(entry, b"" if path.is_dir() else path.read_bytes())


if __name__ == "__main__":
    main()
