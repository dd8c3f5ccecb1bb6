"""`evidentia show`: one document with its chunks."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.documents import StoredChunk

BEGINNING_CHARS = 60

DocumentArgument = Annotated[str, typer.Argument(metavar="DOC_ID", help="The document; `evidentia documents` lists them.")]


def show(
    context: typer.Context,
    *,
    document_id: DocumentArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show a document with its chunk ids and offsets."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:
        chunks = opened.chunks(document_id)
    if call.is_json:
        put_json(_message(chunks))
    else:
        _put(chunks)


def _message(chunks: "list[StoredChunk]") -> dict[str, object]:
    first = chunks[0]
    return {
        "document_id": first.document_id,
        "source_id": first.source_id,
        "metadata": first.metadata,
        "access": first.access,
        "chunks": [
            {
                "chunk_id": chunk.chunk_id,
                "position": chunk.position,
                "start": chunk.start,
                "end": chunk.end,
                "content_hash": chunk.content_hash,
                "content": chunk.content,
            }
            for chunk in chunks
        ],
    }


def _put(chunks: "list[StoredChunk]") -> None:
    from evidentia.serving.cli.output import put, put_facts, put_table

    metadata, access = chunks[0].metadata, chunks[0].access
    put_facts(
        [
            ("document", chunks[0].document_id),
            ("title", metadata.title or "-"),
            ("authority", metadata.authority_tier.value),
            ("classification", access.classification.value),
            ("tenant", access.tenant),
            ("acl", ", ".join(access.acl) or "-"),
            ("tags", ", ".join(metadata.tags) or "-"),
        ]
    )
    put()
    rows = [(chunk.chunk_id, chunk.start, chunk.end, _beginning(chunk.content)) for chunk in chunks]
    put_table(("chunk", "start", "end", "begins"), rows)


def _beginning(content: str) -> str:
    line = " ".join(content[: 4 * BEGINNING_CHARS].split())
    return line if len(line) <= BEGINNING_CHARS else f"{line[: BEGINNING_CHARS - 1]}…"
