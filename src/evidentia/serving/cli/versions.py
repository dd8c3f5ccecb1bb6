"""`evidentia versions`: which versions there are, and what differs between two."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.documents import VersionDiff, VersionSummary

HASH_DIGITS = 16
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", help="Maximum number of versions, or with --diff of documents of each kind.")
]
DiffOption = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--diff",
        metavar="OLDER NEWER",
        help="Show the difference between two versions, each given by number, corpus_version, evidence_state, or a prefix of one.",
        show_default=False,
    ),
]


def versions(
    context: typer.Context,
    *,
    limit: LimitOption = 20,
    diff: DiffOption = None,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """List versions, or show the difference between two.

    Counts and lists cover only documents that the caller may see.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(diff=diff)
    with asking(call, caller) as opened:
        found = opened.versions(limit=limit) if diff is None else opened.diff(*diff, limit=limit)
    if call.is_json:
        put_json(found)
    elif isinstance(found, list):
        _put_versions(found)
    else:
        _put_diff(call, found)


def _put_versions(found: "list[VersionSummary]") -> None:
    from evidentia.serving.cli.output import Figure, put_table

    rows = [
        (
            each.sequence,
            each.at.isoformat(timespec="seconds"),
            Figure("-" if each.documents is None else each.documents),
            Figure("-" if each.chunks is None else each.chunks),
            each.corpus_version[:HASH_DIGITS],
            each.evidence_state[:HASH_DIGITS],
            "kept" if each.is_kept else "gone",
        )
        for each in found
    ]
    put_table(("version", "at", "documents", "chunks", "corpus_version", "evidence_state", "state"), rows)


def _put_diff(call: Invocation, diff: "VersionDiff") -> None:
    from evidentia.serving.cli.output import note, put_facts, put_table

    kinds = {
        "added": diff.added,
        "removed": diff.removed,
        "changed": diff.changed,
        "metadata changed": diff.metadata_changed,
        "access changed": diff.access_changed,
    }
    put_facts([("older", diff.older.sequence), ("newer", diff.newer.sequence), *((name, kind.total) for name, kind in kinds.items())])
    rows = [(name, each.source_id, each.document_id) for name, kind in kinds.items() for each in kind.documents]
    if rows:
        put_table(("change", "source", "document"), rows)
    if diff.note:
        note(call, diff.note)
