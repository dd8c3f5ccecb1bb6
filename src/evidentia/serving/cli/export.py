"""`evidentia export`: fragments with their proofs, for someone who has no base."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError, os_problem
from evidentia.serving.cli.invocation import BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base

ChunkArgument = Annotated[str | None, typer.Argument(metavar="CHUNK_ID", help="The chunk to export.", show_default=False)]
DocumentOption = Annotated[
    str | None, typer.Option("--document", metavar="DOC_ID", help="Export every chunk of a document instead.", show_default=False)
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", help="The file, or with --document the directory; default: stdout.", show_default=False),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def export(
    context: typer.Context,
    *,
    chunk_id: ChunkArgument = None,
    document: DocumentOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Export fragments with their proofs for offline verification."""
    from evidentia.base.sync_base import connect

    call = invocation(context, base=base, quiet=quiet, json=json)
    if (chunk_id is None) == (document is None):
        raise UsageError("export takes either a chunk id or --document", hint="`evidentia show DOC_ID` lists the chunk ids of a document")
    if document is not None and output is None:
        raise UsageError("export --document needs a directory", hint="pass -o DIR")
    with connect(call.base) as opened:
        if document is not None and output is not None:
            written = _export_document(opened, document, directory=output, is_forced=force)
        elif chunk_id is not None:
            written = _export_chunk(opened, chunk_id, file=output, is_forced=force)
    _tell(call, written)


def _export_chunk(base: "Base", chunk_id: str, *, file: Path | None, is_forced: bool) -> list[Path]:
    from evidentia.serving.cli.export_files import export_bytes, write_export
    from evidentia.serving.cli.output import put_bytes

    fragment = base.export(chunk_id)
    if file is None:
        put_bytes(export_bytes(fragment))
        return []
    write_export(file, fragment, is_forced=is_forced)
    return [file]


def _export_document(base: "Base", document_id: str, *, directory: Path, is_forced: bool) -> list[Path]:
    from evidentia.serving.cli.export_files import write_export

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


def _tell(call: Invocation, written: list[Path]) -> None:
    from evidentia.serving.cli.output import note, put, put_json

    if not written:
        return
    if call.is_json:
        put_json({"written": [str(file) for file in written]})
        return
    for file in written:
        put(str(file))
    note(call, "check a file anywhere, without a base: evidentia verify FILE")
