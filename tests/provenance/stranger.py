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
    checks = {
        "format": export["format"] == "evidentia-fragment/2",
        "export": sha256(canonical(export | {"export_hash": ""})).hex() == export["export_hash"],
        "head": head_agrees(export),
    }
    return [name for name, holds in checks.items() if not holds] + fragment_problems(export)


def fragment_problems(export: dict[str, Any]) -> list[str]:
    """Return what is wrong with a fragment, exported or in an answer."""
    content = export["content"].encode()
    checks = {
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
        export = fragment | {"commit": answer["commit"], "commit_hash": answer["commit_hash"]}
        check = fragment_problems if fragment["event"] and fragment["inclusion"] else outside_problems
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
        "format": answer["custody_format"] == 2,
        "response": sha256(canonical(response_record(answer))).hex() == answer["response_hash"],
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


FRACTIONS = {"cache_hit_ratio", "confidence", "elapsed_ms", "embedded_share", "relevance_score", "relevance_signal", "searched_share"}
LEFT_OUT = {"latency_ms", "receipt_id", "response_hash"}


def response_record(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the record whose hash is `response_hash`."""
    said: dict[str, Any] = counted(answer) | dict.fromkeys(LEFT_OUT)
    said["stage_latencies_ms"] = {stage: millionths(spent) for stage, spent in answer["stage_latencies_ms"].items()}
    said["fragments"] = [counted(each) | {"metadata": each["metadata"]} for each in answer["fragments"]]
    said["facets"] = answer["facets"]
    said["source_coverage"] = {name: counted(each) | {"faults": each["faults"]} for name, each in answer["source_coverage"].items()}
    said["governance"] = [each | {"metadata": counted_freely(each["metadata"])} for each in answer["governance"]]
    return said


def counted(value: Any) -> Any:
    """Return a value whose fractions are counted in millionths; which they are is known by name, since 1 may be written for 1.0."""
    if isinstance(value, dict):
        return {key: millionths(inner) if key in FRACTIONS and inner is not None else counted(inner) for key, inner in value.items()}
    return [counted(each) for each in value] if isinstance(value, list) else value


def counted_freely(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: counted_freely(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [counted_freely(each) for each in value]
    return {"millionths": millionths(value)} if isinstance(value, float) else value


def millionths(value: Any) -> Any:
    return round(value * 1_000_000) if isinstance(value, int | float) else value


def state_of(report: dict[str, Any]) -> str:
    return "searched" if report["state"] == "cached" else str(report["state"])


def in_order(counts: dict[str, int]) -> list[list[Any]]:
    return [[value, counts[value]] for value in sorted(counts, key=lambda value: (-counts[value], value))]


def logged(chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return chain[:-1] if chain[-1]["record"].get("step") == "embed" else chain


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
    chain = logged(export["provenance_chain"])
    origin, last = chain[0]["record"], chain[-1]["record"]
    named = (origin.get("document_id"), origin.get("source_id")) == (export["document_id"], export["source_id"])
    return named and last.get("parameters") == {key: export[key] for key in ("position", "start", "end")}


def event_agrees(export: dict[str, Any]) -> bool:
    event = export["event"]
    named = all(event[key] == export[key] for key in ("document_id", "source_id", "chunk_id"))
    return named and event["custody_head"] == logged(export["provenance_chain"])[-1]["hash"]


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


# --- signed heads ---


def head_agrees(export: dict[str, Any]) -> bool:
    """Tell whether the signed head of an export is that of its commit; one of a base without a key has none."""
    signed, commit = export["head"], export["commit"]
    if signed is None:
        return True
    head = signed["head"]
    same = all(head[name] == commit[name] for name in ("base_id", "sequence", "committed_at", "evidence_state", "log_size", "log_root"))
    return same and head["commit_hash"] == export["commit_hash"] and not head_problems(signed)


def head_problems(signed: dict[str, Any]) -> list[str]:
    """Return what is wrong with a signed head."""
    head, keys = signed["head"], signed["keys"]
    in_force = [key for key in keys if key["sequence"] <= head["sequence"]]
    checks = {
        "format": head["custody_format"] == 2,
        "signature": is_signed(b"evidentia head\n" + canonical(head), signed["signature"], head["public_key"]),
        "key": bool(in_force) and in_force[-1]["public_key"] == head["public_key"],
        "keys": keys_follow(keys, head["base_id"]),
    }
    return [name for name, holds in checks.items() if not holds]


def keys_follow(keys: list[dict[str, Any]], base_id: str) -> bool:
    previous, since = "", -1
    for key in keys:
        if (key["base_id"], key["previous"]) != (base_id, previous) or key["sequence"] <= since:
            return False
        message = b"evidentia key\n" + canonical(key | {"signature": ""})
        if (key["signature"] or not previous) and not is_signed(message, key["signature"], previous or key["public_key"]):
            return False
        previous, since = key["public_key"], key["sequence"]
    return True


# Ed25519 as RFC 8032 section 5.1 writes it down, with lower-case names.
p = 2**255 - 19
group_order = 2**252 + 27742317777372353535851937790883648493
d = -121665 * pow(121666, -1, p) % p
Point = tuple[int, int, int, int]


def is_signed(message: bytes, signature: str, public_key: str) -> bool:
    try:
        key, signed = bytes.fromhex(public_key), bytes.fromhex(signature)
    except ValueError:
        return False
    if len(key) != 32 or len(signed) != 64:
        return False
    a, r, s = decompressed(key), decompressed(signed[:32]), int.from_bytes(signed[32:], "little")
    if a is None or r is None or s >= group_order:
        return False
    k = int.from_bytes(hashlib.sha512(signed[:32] + key + message).digest(), "little") % group_order
    left, right = times(s, base_point()), added(r, times(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % p == 0 and (left[1] * right[2] - right[1] * left[2]) % p == 0


def base_point() -> Point:
    x = 15112221349535400772501151409588531511454012693041857206046113283949847762202
    y = 4 * pow(5, -1, p) % p
    return x, y, 1, x * y % p


def decompressed(encoded: bytes) -> Point | None:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= p:
        return None
    x2 = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
    x = pow(x2, (p + 3) // 8, p)
    if (x * x - x2) % p:
        x = x * pow(2, (p - 1) // 4, p) % p
    if (x * x - x2) % p or (x == 0 and sign):
        return None
    x = p - x if x & 1 != sign else x
    return x, y, 1, x * y % p


def added(one: Point, other: Point) -> Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % p, (one[1] + one[0]) * (other[1] + other[0]) % p
    c, e = 2 * one[3] * other[3] * d % p, 2 * one[2] * other[2] % p
    return (b - a) * (e - c) % p, (e + c) * (b + a) % p, (e - c) * (e + c) % p, (b - a) * (b + a) % p


def times(count: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while count:
        if count & 1:
            total = added(total, point)
        point, count = added(point, point), count >> 1
    return total
