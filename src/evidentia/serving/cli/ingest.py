"""`evidentia ingest`: take in files, directories and corpora, and account for all of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.serving.cli.invocation import BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.reports import IngestProgress, IngestReport
    from evidentia.contracts.vectors import EmbedProgress

TIERS = ", ".join(AuthorityTier.words())
LEVELS = ", ".join(Classification.words())

PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, directories, and .jsonl corpora.")]
SourceOption = Annotated[str, typer.Option("--source", metavar="NAME", help="Source of the documents; prefix of their ids.")]
AuthorityOption = Annotated[str, typer.Option("--authority", metavar="TIER", help=f"Authority tier: {TIERS}.")]
ClassificationOption = Annotated[str, typer.Option("--classification", metavar="LEVEL", help=f"How closely it is held: {LEVELS}.")]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="T", help="The tenant it belongs to.")]
AclOption = Annotated[
    list[str] | None,
    typer.Option("--acl", metavar="ENTRY", help="Who may see it: user:NAME, group:NAME or role:NAME; repeatable.", show_default=False),
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="T", help="A tag for every document; repeatable.", show_default=False)
]
PruneOption = Annotated[bool, typer.Option("--prune", help="Remove documents of this source whose file is gone.")]
NoEmbedOption = Annotated[bool, typer.Option("--no-embed", help="Skip embedding; run `evidentia embed` later.")]
WatchOption = Annotated[bool, typer.Option("--watch", help="Watch the paths and ingest changes every 2 seconds until interrupted.")]


def ingest(
    context: typer.Context,
    *,
    paths: PathsArgument,
    source: SourceOption = "documents",
    authority: AuthorityOption = "curated",
    classification: ClassificationOption = "internal",
    tenant: TenantOption = "default",
    acl: AclOption = None,
    tag: TagOption = None,
    prune: PruneOption = False,
    no_embed: NoEmbedOption = False,
    watch: WatchOption = False,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Ingest files, directories and corpora.

    Unchanged documents are skipped, and unreadable files are reported with a reason. New documents are searchable by words at
    once, and by vectors after the embedding step that follows.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.watch import keep_looking

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:

        def take_in(
            on_progress: "Callable[[IngestProgress], None]", on_embedding: "Callable[[EmbedProgress], None] | None" = None
        ) -> "IngestReport":
            return opened.ingest(
                paths,
                source=source,
                authority=authority,
                classification=classification,
                tenant=tenant,
                acl=acl or (),
                tags=tag or (),
                prune=prune,
                embed=not no_embed,
                on_progress=on_progress,
                on_embedding=on_embedding,
            )

        first = _first_pass(call, take_in, is_watching=watch)
        if watch:
            keep_looking(call, take_in, first=first)


def _first_pass(
    call: Invocation,
    take_in: "Callable[[Callable[[IngestProgress], None], Callable[[EmbedProgress], None]], IngestReport]",
    *,
    is_watching: bool,
) -> "IngestReport":
    from evidentia.serving.cli.ingest_report import put_report
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.progress import EmbedBar, IngestBar

    with IngestBar(is_wanted=not call.is_quiet) as bar, EmbedBar(is_wanted=not call.is_quiet) as second_bar:

        def show_embedding(progress: "EmbedProgress") -> None:
            bar.finish()
            second_bar.update(progress)

        report = take_in(bar.update, show_embedding)
    if call.is_json:
        put_json(report, is_compact=is_watching)
    else:
        put_report(call, report)
    return report
