"""A checker of exported fragments and of answers written from docs/custody.md alone; it uses nothing but the standard library."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def canonical(record: Any) -> bytes:  # Any: JSON as parsed
    """RFC 8785 for records without floats; Python's own encoder follows it once keys are sorted by code point."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def problems(export: dict[str, Any]) -> list[str]:
    """Return what is wrong with an exported fragment."""
    content = export["content"].encode()
    checks = {
        "format": export["format"] == "evidentia-fragment/1",
        "chunk id": export["chunk_id"] == f"{export['document_id']}#{export['position']}@{sha256(content).hex()[:16]}",
        "chain": chain_holds(export["provenance_chain"], content),
        "origin": origin_agrees(export),
        "event": event_agrees(export),
        "inclusion": inclusion_holds(export["event"], export["inclusion"]),
        "commit": commit_agrees(export),
    }
    return [name for name, holds in checks.items() if not holds]


def answer_problems(answer: dict[str, Any]) -> list[str]:
    """Return what is wrong with an answer."""
    found = []
    for number, fragment in enumerate(answer["fragments"]):
        whole = fragment["content"] + fragment["cut_off"]
        export = fragment | {"format": "evidentia-fragment/1", "commit": answer["commit"], "commit_hash": answer["commit_hash"]}
        check = problems if fragment["event"] and fragment["inclusion"] else outside_problems
        found += [f"fragment {number}: {problem}" for problem in check(export | {"content": whole})]
        if fragment["content_hash"] != sha256(whole.encode()).hex():
            found.append(f"fragment {number}: content hash")
        if fragment["is_truncated"] != bool(fragment["cut_off"]):
            found.append(f"fragment {number}: truncation")
    commit = answer["commit"]
    checks = {
        "commit": sha256(canonical(commit)).hex() == answer["commit_hash"],
        "state": (commit["corpus_version"], commit["evidence_state"]) == (answer["corpus_version"], answer["evidence_state"]),
        "result": sha256(canonical(result_record(answer))).hex() == answer["result_hash"],
    }
    return found + [name for name, holds in checks.items() if not holds]


def outside_problems(fragment: dict[str, Any]) -> list[str]:
    """Return what is wrong with a fragment that a source outside the base gave during the request."""
    content, chain = fragment["content"].encode(), fragment["provenance_chain"]
    origin = chain[0]["record"] if chain else {}
    checks = {
        "chunk id": fragment["chunk_id"] == f"{fragment['document_id']}#0@{sha256(content).hex()[:16]}",
        "whole": (fragment["position"], fragment["start"], fragment["end"]) == (0, 0, len(fragment["content"])),
        "chain": chain_holds(chain, content),
        "origin": (origin.get("document_id"), origin.get("source_id")) == (fragment["document_id"], fragment["source_id"]),
        "outside": origin.get("extraction_method") == "retrieve" and "outside" in fragment["flags"],
        "log": fragment["event"] is None and fragment["inclusion"] is None,
    }
    return [name for name, holds in checks.items() if not holds]


def result_record(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the record whose hash is `result_hash`."""
    sealed = ("authority_tier", "chunk_id", "content_hash", "flags", "is_truncated", "score")
    told = ("attribute", "decided_by", "losers", "losing_values", "subject", "value", "winner")
    given = {name: answer[name] for name in ("config_hash", "evidence_state", "policies", "request_hash", "truncation_applied")}
    return given | {
        "conflicts": [{name: conflict[name] for name in told} for conflict in answer["conflicts"]],
        "coverage": [[source, state_of(report)] for source, report in sorted(answer["source_coverage"].items())],
        "facets": [[field, in_order(counts)] for field, counts in sorted(answer["facets"].items())],
        "fragments": [{name: each[name] for name in sealed} | {"cut_off": len(each["cut_off"])} for each in answer["fragments"]],
        "withheld": [[each["chunk_id"], each["reason"]] for each in answer["withheld"]],
    }


def state_of(report: dict[str, Any]) -> str:
    return "searched" if report["state"] == "cached" else str(report["state"])


def in_order(counts: dict[str, int]) -> list[list[Any]]:
    return [[value, counts[value]] for value in sorted(counts, key=lambda value: (-counts[value], value))]


def chain_holds(chain: list[dict[str, Any]], content: bytes) -> bool:
    if not chain or chain[0]["kind"] != "origin":
        return False
    digest = sha256(canonical(chain[0]["record"]) + content)
    flowing = chain[0]["record"]["content_hash"]
    if digest.hex() != chain[0]["hash"]:
        return False
    for entry in chain[1:]:
        record = entry["record"]
        digest = sha256(digest + canonical(record))
        if entry["kind"] != "transformation" or digest.hex() != entry["hash"] or record["input_hash"] != flowing:
            return False
        flowing = record["output_hash"]
    return bool(flowing == sha256(content).hex())


def origin_agrees(export: dict[str, Any]) -> bool:
    origin, last = export["provenance_chain"][0]["record"], export["provenance_chain"][-1]["record"]
    named = (origin.get("document_id"), origin.get("source_id")) == (export["document_id"], export["source_id"])
    return named and last.get("parameters") == {key: export[key] for key in ("position", "start", "end")}


def event_agrees(export: dict[str, Any]) -> bool:
    event = export["event"]
    named = all(event[key] == export[key] for key in ("document_id", "source_id", "chunk_id"))
    return named and event["custody_head"] == export["provenance_chain"][-1]["hash"]


def inclusion_holds(event: dict[str, Any], proof: dict[str, Any]) -> bool:
    index, last = proof["leaf_index"], proof["tree_size"] - 1
    if index != event["index"] or not 0 <= index <= last:
        return False
    current = sha256(b"\x00" + canonical(event))
    for sibling in map(bytes.fromhex, proof["hashes"]):
        if last == 0:
            return False
        if index % 2 or index == last:
            current = sha256(b"\x01" + sibling + current)
            while index % 2 == 0 and index:
                index, last = index // 2, last // 2
        else:
            current = sha256(b"\x01" + current + sibling)
        index, last = index // 2, last // 2
    return last == 0 and bool(current.hex() == proof["root"])


def commit_agrees(export: dict[str, Any]) -> bool:
    commit, proof = export["commit"], export["inclusion"]
    same_log = (commit["log_size"], commit["log_root"]) == (proof["tree_size"], proof["root"])
    return same_log and sha256(canonical(commit)).hex() == export["commit_hash"]
