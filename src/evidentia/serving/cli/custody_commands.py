"""`evidentia verify`, `export` and `key`: recompute custody and name the first link that does not hold, or hand out the proof."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError, os_problem
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, flag, opt
from evidentia.serving.cli.output import counted, note, put, put_bytes

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.contracts.provenance import SignedHead, VerifyReport
    from evidentia.contracts.receipts import ReplayReport

commands = typer.Typer()

WHOLE_ANSWER = ("result", "response")
"""The checks of an answer that only the whole answer passes."""
RECEIPT_ID = re.compile(r"r-[0-9a-f]+-[0-9a-f]+")


@command(commands, "verify", raw=("target",))
def verify(
    call: Invocation,
    *,
    target: Annotated[
        str | None,
        arg("TARGET", "A document id, a chunk id, a receipt id, or a .json file: an export or an answer; default: the whole base."),
    ] = None,
    head: Annotated[bool, flag("--head", "Verify the signature of the log's head alone, and the keys that lead to it.")] = False,
    witness: Annotated[
        Path | None, opt("--witness", "FILE", "With --head: the heads seen so far; history must continue them, and the new one is added.")
    ] = None,
) -> "CommandResult[VerifyReport]":
    """Verify the chain of custody and name the first broken link.

    Exit code 1 means that a link does not hold. A file is checked from its own bytes and needs no base.
    A receipt is replayed, and then the custody of its answer is verified.
    """
    from evidentia.serving.cli.proof_files import put_verification

    if witness is not None and not head:
        raise UsageError("--witness goes with --head", hint="run `evidentia verify --head --witness FILE`")
    if head and target is not None:
        raise UsageError("verify takes either a target or --head", hint="run `evidentia verify --head` by itself")
    report = _checked_head(call, witness) if head else _checked(call, target)
    return CommandResult(report, put_verification, is_failed=not report.ok)


@command(commands, "key")
def key(
    base: "Base",
    *,
    rotate: Annotated[bool, flag("--rotate", "Sign with a new key from now on; the present one vouches for it and is destroyed.")] = False,
) -> "CommandResult[SignedHead]":
    """Show the public keys that sign the heads of the log, or rotate the signing key."""
    from evidentia.serving.cli.proof_files import put_keys

    if rotate:
        base.rotate_key()
    return CommandResult(base.signed_head(), put_keys)


@command(commands, "export")
def export(
    call: Invocation,
    *,
    chunk_id: Annotated[str | None, arg("CHUNK_ID", "The chunk to export.")] = None,
    document: Annotated[str | None, opt("--document", "DOC_ID", "Export every chunk of a document instead.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="The file, or with --document the directory; default: stdout.")
    ] = None,
    force: Annotated[bool, flag("--force", "Overwrite existing files.")] = False,
) -> CommandResult[object] | None:
    """Export fragments with their proofs for offline verification."""
    if (chunk_id is None) == (document is None):
        raise UsageError("export takes either a chunk id or --document", hint="`evidentia show DOC_ID` lists the chunk ids of a document")
    if document is not None and output is None:
        raise UsageError("export --document needs a directory", hint="pass -o DIR")
    with call.open_base() as base:
        if document is not None and output is not None:
            written = _export_document(base, document, directory=output, is_forced=force)
        elif chunk_id is not None:
            written = _export_chunk(base, chunk_id, file=output, is_forced=force)
    if not written:
        return None
    return CommandResult(
        {"written": [str(file) for file in written]},
        lambda _: put(*map(str, written)),
        notes=["check a file anywhere, without a base: evidentia verify FILE"],
    )


def _checked(call: Invocation, target: str | None) -> "VerifyReport":
    if target is not None and _is_file_name(target):
        return _checked_file(Path(target))
    with call.open_base() as base:
        if target is not None and RECEIPT_ID.fullmatch(target):
            return _checked_receipt(call, base.replay(target))
        return base.verify(target)


def _checked_head(call: Invocation, witness: Path | None) -> "VerifyReport":
    """Check the newest head, and a witness's record of those before; what holds is added to the record."""
    from evidentia.provenance.signed_heads import verify_head
    from evidentia.serving.cli.proof_files import add_witnessed, read_witnessed

    witnessed = [] if witness is None else read_witnessed(witness)
    with call.open_base() as base:
        signed = base.signed_head()
        report = verify_head(signed, witnessed=witnessed, earlier=base.signed_head, consistency=base.consistency)
        if not report.ok and base.signed_head() != signed:  # somebody has written meanwhile
            signed = base.signed_head()
            report = verify_head(signed, witnessed=witnessed, earlier=base.signed_head, consistency=base.consistency)
    if witness is not None and report.ok and signed not in witnessed:
        add_witnessed(witness, signed)
        note(call, f"'{witness}' now holds {counted(len(witnessed) + 1, 'head')}")
    return report


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

    report = verify_response(replayed.response)
    broken = [link for link in report.broken if link.check not in WHOLE_ANSWER]
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


def _export_chunk(base: "Base", chunk_id: str, *, file: Path | None, is_forced: bool) -> list[Path]:
    from evidentia.serving.cli.proof_files import export_bytes, write_export

    fragment = base.export(chunk_id)
    if file is None:
        put_bytes(export_bytes(fragment))
        return []
    write_export(file, fragment, is_forced=is_forced)
    return [file]


def _export_document(base: "Base", document_id: str, *, directory: Path, is_forced: bool) -> list[Path]:
    from evidentia.serving.cli.proof_files import write_export

    fragments = [base.export(chunk.chunk_id) for chunk in base.chunks(document_id)]
    # The names hold the position and the content's hash; document ids may hold anything, so they stay out.
    files = [directory / f"{fragment.position:04}-{fragment.chunk_id.rpartition('@')[2]}.json" for fragment in fragments]
    _prepare_directory(directory)
    if not is_forced and (present := next((file for file in files if file.exists()), None)):
        raise UsageError(f"'{present}' exists already", hint="pass --force to overwrite it")
    for file, fragment in zip(files, fragments, strict=True):
        write_export(file, fragment, is_forced=is_forced)
    return files


def _prepare_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"'{directory}' cannot be a directory: {os_problem(error)}", hint="name a directory, which may be new") from error
