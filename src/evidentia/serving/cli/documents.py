"""`evidentia documents`: the list of what is in."""

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation


def documents(
    context: typer.Context,
    *,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """List the live documents, ordered by id."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.output import note, put_json, put_table

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:
        found = opened.documents()
    if call.is_json:
        put_json(
            [
                {
                    "document_id": document_id,
                    "tenant": access.tenant,
                    "classification": access.classification,
                    "acl": access.acl,
                    "chunks": count,
                }
                for document_id, access, count in found
            ]
        )
        return
    rows = [(document_id, access.classification.value, ", ".join(access.acl) or "-", count) for document_id, access, count in found]
    put_table(("document", "classification", "acl", "chunks"), rows)
    if not found:
        note(call, "the base is empty; next: evidentia ingest PATH")
