"""`evidentia verify`: recompute custody and name the first link that does not hold."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.provenance import VerifyReport
    from evidentia.contracts.receipts import ReplayReport

CHECK_FAILED = 1
WHOLE_ANSWER = "result"
"""The check of an answer that only the whole answer passes."""

TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="A document id, a chunk id, a receipt id, or a .json file: an export or an answer; default: the whole base.",
        show_default=False,
    ),
]
RECEIPT_ID = re.compile(r"r-[0-9a-f]+-[0-9]+")


def verify(
    context: typer.Context,
    *,
    target: TargetArgument = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Verify the chain of custody and name the first broken link.

    Exit code 1 means that a link does not hold. A file is checked from its own bytes and needs no base.
    A receipt is replayed, and then the custody of its answer is verified.
    """
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.verify_report import put_report

    call = invocation(context, base=base, quiet=quiet, json=json)
    report = _checked(call, target)
    if call.is_json:
        put_json(report)
    else:
        put_report(report)
    if not report.ok:
        raise typer.Exit(CHECK_FAILED)


def _checked(call: Invocation, target: str | None) -> "VerifyReport":
    if target is not None and _is_file_name(target):
        return _checked_file(Path(target))

    from evidentia.base.sync_base import connect

    with connect(call.base) as opened:
        if target is not None and RECEIPT_ID.fullmatch(target):
            return _checked_receipt(call, opened.replay(target))
        return opened.verify(target)


def _checked_file(path: Path) -> "VerifyReport":
    from evidentia.contracts.provenance import FragmentExport
    from evidentia.engine.answer_verification import verify_response
    from evidentia.provenance.verification import verify_export
    from evidentia.serving.cli.proof_files import read_proof

    proof = read_proof(path)
    return verify_export(proof) if isinstance(proof, FragmentExport) else verify_response(proof)


def _checked_receipt(call: Invocation, replayed: "ReplayReport") -> "VerifyReport":
    """Check what a receipt answers: the whole by its recorded hash, each fragment that may be seen by its custody.

    The replay has compared the hash of the whole answer; that of the part which may be seen would be another one.
    """
    import msgspec

    from evidentia.contracts.provenance import BrokenLink
    from evidentia.engine.answer_verification import verify_response
    from evidentia.serving.cli.output import note

    report = verify_response(replayed.response)
    broken = [link for link in report.broken if link.check != WHOLE_ANSWER]
    target = f"receipt '{replayed.receipt_id}'"
    if not replayed.is_same:
        problem = f"the recorded result_hash is {replayed.recorded_hash}, and the question now gives {replayed.result_hash}"
        broken.append(BrokenLink(check="replay", where=target, problem=problem))
    if replayed.hidden:
        note(call, f"{replayed.hidden} of its fragments were not checked one by one: not for you to see today")
    return msgspec.structs.replace(report, ok=not broken, target=target, broken=tuple(broken))


def _is_file_name(target: str) -> bool:
    """Tell a file from an id: an id has a colon after its source, and a file that is there is meant."""
    return (":" not in target and target.endswith(".json")) or "\0" in target or Path(target).exists()
