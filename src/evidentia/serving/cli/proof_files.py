"""Files that carry their own proof, from anywhere: exported fragments and saved answers, told apart by their fields.

Whatever is not exactly such a message is refused: what the proof does not speak about could be taken for proved.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.contracts.evidence import EvidenceResponse
from evidentia.contracts.provenance import CUSTODY_FORMAT, BrokenLink, FragmentExport, SignedHead, VerifyReport
from evidentia.provenance.verification import OLDER_EXPORT_FORMAT
from evidentia.serving.cli.cli_errors import UsageError, os_problem
from evidentia.serving.cli.output import counted, printable_json, put, put_facts

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path


LARGEST_PROOF_BYTES = 256 * 1024 * 1024
MAX_SHOWN = 200
"""Characters of a parser's message that are shown; some repeat what they could not parse."""
ANSWER_FIELDS = frozenset({"fragments", "result_hash", "request_hash", "source_coverage"})
"""Fields of an answer that no exported fragment has."""
SINCE_FORMAT_2 = frozenset({"custody_format", "export_hash", "head", "leg_ranks", "relevance_signal", "response_hash"})
"""Fields that answers and exports of the first format may lack; whatever else is missing was taken out."""
FRAGMENT_NAME = "an exported fragment"
ANSWER_NAME = "an answer"

_Proof = TypeVar("_Proof", FragmentExport, EvidenceResponse, SignedHead)


def read_proof(path: Path) -> FragmentExport | EvidenceResponse:
    """Read an exported fragment or a saved answer."""
    return parse_proof(path, _read(path))


def parse_proof(path: Path, stored: bytes) -> FragmentExport | EvidenceResponse:
    """Return the exported fragment or saved answer in the bytes of a file; `path` is what refusals call it."""
    found = _parsed(path, stored)
    if isinstance(found, dict) and ANSWER_FIELDS & found.keys():
        return _strictly(path, stored, found, kind=EvidenceResponse, name=ANSWER_NAME)
    return _strictly(path, stored, found, kind=FragmentExport, name=FRAGMENT_NAME)


def read_export(path: Path) -> FragmentExport:
    """Read an exported fragment."""
    stored = _read(path)
    return _strictly(path, stored, _parsed(path, stored), kind=FragmentExport, name=FRAGMENT_NAME)


def _parsed(path: Path, stored: bytes) -> object:
    try:
        return json.loads(stored, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise _malformed(path, f"it is not JSON: {error}") from error


def _strictly(path: Path, stored: bytes, found: object, *, kind: type[_Proof], name: str) -> _Proof:
    try:
        proof = decode_json(stored, kind)
        expected = msgspec.json.decode(msgspec.json.encode(proof))
    except msgspec.ValidationError as error:
        raise _malformed(path, f"it is not {name}: {error}") from error
    except (ValueError, msgspec.MsgspecError, RecursionError, OverflowError) as error:
        raise _malformed(path, f"it is not JSON: {error}") from error
    if place := _first_difference(found, expected, "$", may_lack=SINCE_FORMAT_2 if _is_of_first_format(proof) else frozenset()):
        raise _malformed(path, f"it is not {name}: there is something else at `{place}`")
    return proof


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UsageError(f"'{path}' is a directory", hint="name one exported file")
        with path.open("rb") as file:
            stored = file.read(LARGEST_PROOF_BYTES + 1)
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {os_problem(error)}", hint="name an exported file, or an id in the base") from error
    if len(stored) > LARGEST_PROOF_BYTES:
        raise _malformed(path, f"it is larger than {LARGEST_PROOF_BYTES // 2**20} MiB")
    return stored


def _malformed(path: Path, problem: str) -> UsageError:
    shown = problem if len(problem) <= MAX_SHOWN else f"{problem[: MAX_SHOWN - 1]}…"
    return UsageError(
        f"'{path}' cannot be verified: {shown}", hint="name a file that `evidentia export` or `evidentia search --json` wrote"
    )


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a name that is there twice: one reader would see the first value, another the last."""
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name '{repeated}' is there twice in one object")
    return record


def _is_of_first_format(proof: FragmentExport | EvidenceResponse | SignedHead) -> bool:
    if isinstance(proof, FragmentExport):
        return proof.format == OLDER_EXPORT_FORMAT
    return isinstance(proof, EvidenceResponse) and proof.custody_format < CUSTODY_FORMAT


def _first_difference(found: object, expected: object, place: str, *, may_lack: AbstractSet[str]) -> str:
    """Return where a file says something else than was read from it, or lacks a field that it may not lack."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = sorted({*found, *(expected.keys() - may_lack)})
        places = (_first_difference(found.get(name), expected.get(name), f"{place}.{name}", may_lack=may_lack) for name in names)
        return next((each for each in places if each), "")
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return next((each for index, (a, b) in pairs if (each := _first_difference(a, b, f"{place}[{index}]", may_lack=may_lack))), "")
    return "" if type(found) is type(expected) and found == expected else place


# Exported fragments as files: how they are written; `proof_files` reads them.


def export_bytes(export: FragmentExport) -> bytes:
    """Return the bytes of an export file: indented JSON, fields in their declared order, the same for the same export."""
    encoded = msgspec.json.encode(export, order="deterministic")
    return f"{printable_json(msgspec.json.format(encoded, indent=2).decode())}\n".encode()


def write_export(path: Path, export: FragmentExport, *, is_forced: bool) -> None:
    """Write an export file; one that exists stays as it is unless forced."""
    try:
        with path.open("wb" if is_forced else "xb") as file:
            file.write(export_bytes(export))
    except FileExistsError as error:
        raise UsageError(f"'{path}' exists already", hint="pass --force to overwrite it") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {os_problem(error)}", hint="check the path and its permissions") from error


# The heads that a witness has seen: one signed head a line, oldest first, and nothing is ever taken out.


def read_witnessed(path: Path) -> list[SignedHead]:
    """Read what a witness wrote down; a file that is not there yet holds nothing."""
    try:
        stored = _read(path) if path.exists() else b""
        return [_strictly(path, line, _parsed(path, line), kind=SignedHead, name="a signed head") for line in stored.splitlines()]
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {os_problem(error)}", hint="name a file that may be new") from error


def add_witnessed(path: Path, signed: SignedHead) -> None:
    """Append a head, durably."""
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(signed) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {os_problem(error)}", hint="check the path and its permissions") from error


def put_keys(signed: SignedHead) -> None:
    """Print the public keys of a base and since when each signs."""
    for each in signed.keys:
        put(f"{each.public_key}  since version {each.sequence}{'' if each.signature else '; the key before it does not vouch for it'}")


# A verification report as text: what was checked and, when something is broken, the first link.


def put_verification(report: VerifyReport) -> None:
    """Print a report."""
    put(f"{report.target}: {'ok' if report.ok else 'BROKEN'}", f"checked {checked_counts(report)}")
    if report.custody_format < CUSTODY_FORMAT:
        put(f"by the rules of custody format {report.custody_format}, which say nothing of confidence, metadata, counts and signatures")
    if report.signed_by:
        put(f"signed by {report.signed_by}")
    if report.first_broken is not None:
        put("", "first broken link")
        put_link(report.first_broken)
        if len(report.broken) > 1:
            put(f"... and {len(report.broken) - 1} more; --json lists them")


def put_link(link: BrokenLink) -> None:
    """Print where custody stops holding."""
    put_facts([("  check", link.check), ("  where", link.where), ("  problem", link.problem)])


def checked_counts(report: VerifyReport) -> str:
    """Return in words what a verification looked at."""
    counts = {
        "document": report.documents,
        "fragment": report.fragments,
        "event": report.events,
        "commit": report.commits,
    }
    parts = [counted(count, name) for name, count in counts.items() if count]
    return ", ".join(parts) or "nothing: the first check did not pass"
