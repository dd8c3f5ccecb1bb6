"""`evidentia init`, `ingest` and `embed`: make a base, take in files, directories and corpora, and account for all of them."""

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, flag, opt
from evidentia.serving.cli.output import counted, facts_of, note, put, put_facts, put_json, put_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.base.sync_base import Base
    from evidentia.contracts.reports import IngestProgress, IngestReport, SkippedInput
    from evidentia.contracts.vectors import EmbedProgress

commands = typer.Typer()

TIERS = ", ".join(AuthorityTier.words())
LEVELS = ", ".join(Classification.words())
MAX_ROWS = 20
LOOK_EVERY_S = 2.0


@command(commands, "init")
def init(
    call: Invocation, *, directory: Annotated[Path | None, arg("DIR", "Directory of the new base; default: --base.")] = None
) -> CommandResult[object]:
    """Create an empty base with a commented evidentia.toml."""
    from evidentia.base.sync_base import connect

    path = directory or call.base
    _refuse_existing(path)
    with connect(path, init=True) as made:
        head = made.head()
    return CommandResult(
        {"base": str(path), "corpus_version": head.corpus_version, "sequence": head.sequence},
        f"made a base at '{path}'",
        notes=[f"settings are in '{path / 'evidentia.toml'}'; next: evidentia ingest PATH"],
    )


@command(commands, "ingest")
def ingest(
    call: Invocation,
    base: "Base",
    *,
    paths: Annotated[list[Path], arg("PATH...", "Files, directories, and .jsonl corpora.")],
    source: Annotated[str, opt("--source", "NAME", "Source of the documents; prefix of their ids.")] = "documents",
    authority: Annotated[str, opt("--authority", "TIER", f"Authority tier: {TIERS}.")] = "curated",
    classification: Annotated[str, opt("--classification", "LEVEL", f"How closely it is held: {LEVELS}.")] = "internal",
    tenant: Annotated[str, opt("--tenant", "T", "The tenant it belongs to.")] = "default",
    acl: Annotated[list[str] | None, opt("--acl", "ENTRY", "Who may see it: user:NAME, group:NAME or role:NAME; repeatable.")] = None,
    tag: Annotated[list[str] | None, opt("--tag", "T", "A tag for every document; repeatable.")] = None,
    prune: Annotated[bool, flag("--prune", "Remove documents of this source whose file is gone.")] = False,
    no_embed: Annotated[bool, flag("--no-embed", "Skip embedding; run `evidentia embed` later.")] = False,
    watch: Annotated[bool, flag("--watch", "Watch the paths and ingest changes every 2 seconds until interrupted.")] = False,
) -> None:
    """Ingest files, directories and corpora.

    Unchanged documents are skipped, and unreadable files are reported with a reason. New documents are searchable by words at
    once, and by vectors after the embedding step that follows.
    """

    def take_in(
        on_progress: "Callable[[IngestProgress], None]", on_embedding: "Callable[[EmbedProgress], None] | None" = None
    ) -> "IngestReport":
        return base.ingest(
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


@command(commands, "embed")
def embed(call: Invocation, base: "Base") -> CommandResult[object]:
    """Embed every chunk that has no vector yet.

    An interrupted run can be resumed, and searches go on meanwhile.
    """
    from evidentia.serving.cli.progress import EmbedBar

    with EmbedBar(is_wanted=not call.is_quiet) as bar:
        report = base.embed(on_progress=bar.update)
    encoder = report.identity.name if report.identity else "none"
    return CommandResult(report, [("encoder", encoder), *facts_of(report, "embedded", "reused", "remaining", "evidence_state")])


def _refuse_existing(directory: Path) -> None:
    from evidentia.base.sync_base import connect
    from evidentia.contracts.errors import BaseMissingError

    if directory.exists() and not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory", hint="name a directory, which may be new")
    try:
        connect(directory).close()
    except BaseMissingError:
        return
    raise UsageError(f"there is a base at '{directory}' already", hint="use it with --base, or name another directory")


def _first_pass(
    call: Invocation,
    take_in: "Callable[[Callable[[IngestProgress], None], Callable[[EmbedProgress], None]], IngestReport]",
    *,
    is_watching: bool,
) -> "IngestReport":
    from evidentia.serving.cli.progress import EmbedBar, IngestBar

    with IngestBar(is_wanted=not call.is_quiet) as bar, EmbedBar(is_wanted=not call.is_quiet) as second_bar:

        def show_embedding(progress: "EmbedProgress") -> None:
            bar.finish()
            second_bar.update(progress)

        report = take_in(bar.update, show_embedding)
    if call.is_json:
        put_json(report, is_compact=is_watching)
    else:
        put_ingest(call, report)
    return report


def put_ingest(call: Invocation, report: "IngestReport") -> None:
    """Print a report; what was skipped is also said on stderr, since the exit code does not tell."""
    put_facts(
        [
            *facts_of(report, "added", "changed", "unchanged", "access changed", "removed"),
            ("skipped", len(report.skipped)),
            *facts_of(report, "chunks", "corpus_version"),
        ]
    )
    _put_entries("skipped", report.skipped)
    _put_entries("notes", report.notes)
    if report.skipped:
        note(call, f"{counted(len(report.skipped), 'input was', 'inputs were')} skipped; everything else is in")


def _put_entries(title: str, entries: "Sequence[SkippedInput]") -> None:
    if not entries:
        return
    put()
    put_table(("path", "reason", "message"), [(entry.path, entry.reason, entry.message) for entry in entries[:MAX_ROWS]], title=title)
    if len(entries) > MAX_ROWS:
        put(f"... and {len(entries) - MAX_ROWS} more; --json lists all")


# Looking again at the same paths, at intervals, and telling what changed.


def keep_looking(
    call: Invocation,
    take_in: "Callable[[Callable[[IngestProgress], None]], IngestReport]",
    *,
    first: "IngestReport",
    pause: "Callable[[float], None]" = time.sleep,
) -> None:
    """Ingest again and again until interrupted; a pass that finds nothing prints nothing."""
    note(call, "watching; press Ctrl-C to stop")
    skipped_before = _skipped(first)
    while True:
        sys.stdout.flush()  # whoever reads through a pipe wants each pass when it is over
        pause(LOOK_EVERY_S)
        stored: list[str] = []
        report = take_in(partial(_remember, stored))
        newly_skipped = sorted(_skipped(report) - skipped_before)
        skipped_before = _skipped(report)
        if _has_changes(report) or newly_skipped:
            _tell(call, report, stored=stored, newly_skipped=newly_skipped)


def _remember(stored: list[str], progress: "IngestProgress") -> None:
    stored.extend(progress.document_ids)


def _skipped(report: "IngestReport") -> set[str]:
    return {entry.message for entry in report.skipped}


def _has_changes(report: "IngestReport") -> bool:
    return bool(report.added or report.changed or report.access_changed or report.removed)


def _tell(call: Invocation, report: "IngestReport", *, stored: list[str], newly_skipped: list[str]) -> None:
    if call.is_json:
        put_json(report, is_compact=True)
        return
    for document_id in stored:
        put(f"stored   {document_id}")
    if report.removed:
        put(f"removed  {counted(report.removed, 'document')}")
    for message in newly_skipped:
        put(f"skipped  {message}")
    put(f"version  {report.corpus_version}")
