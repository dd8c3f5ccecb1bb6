"""`evidentia versions`, `gc`, `backup`, `restore` and `doctor`: the upkeep of a base."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BASE_UNUSABLE, CHECK_FAILED, CommandResult, Invocation, arg, command, opt
from evidentia.serving.cli.output import Figure, facts_of, put_facts, put_table

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.contracts.documents import VersionDiff, VersionSummary

commands = typer.Typer()

HASH_DIGITS = 16


@command(commands, "versions", has_caller=True)
def versions(
    base: "Base",
    *,
    limit: Annotated[int, opt("--limit", "N", "Maximum number of versions, or with --diff of documents of each kind.")] = 20,
    diff: Annotated[
        tuple[str, str] | None,
        opt(
            "--diff",
            "OLDER NEWER",
            "Show the difference between two versions, each given by number, corpus_version, evidence_state, or a prefix of one.",
        ),
    ] = None,
) -> "CommandResult[list[VersionSummary]] | CommandResult[VersionDiff]":
    """List versions, or show the difference between two.

    Counts and lists cover only documents that the caller may see.
    """
    if diff is None:
        return CommandResult(base.versions(limit=limit), _put_versions)
    difference = base.diff(*diff, limit=limit)
    return CommandResult(difference, _put_diff, notes=[difference.note] if difference.note else ())


@command(commands, "gc")
def gc(
    base: "Base", *, keep: Annotated[int | None, opt("--keep", "N", "Number of versions to keep; default: storage.keep_versions.")] = None
) -> CommandResult[object]:
    """Remove old versions (garbage collection).

    The event log is never shortened.
    """
    report = base.gc(keep_versions=keep)
    return CommandResult(report, facts_of(report, "versions removed", "chunks removed", "segments removed", "bytes before", "bytes after"))


@command(commands, "backup")
def backup(
    call: Invocation,
    base: "Base",
    *,
    destination: Annotated[Path, arg("FILE_OR_DIR", "A new directory, or a new file whose name ends in .tar.")],
) -> CommandResult[object]:
    """Take a consistent backup of a base in use.

    Searches, ingest and garbage collection go on meanwhile. An existing file is never overwritten.
    """
    from evidentia.serving.cli.progress import BackupBar

    with BackupBar("copying", is_wanted=not call.is_quiet) as bar:
        report = base.backup(destination, on_progress=bar.update)
    facts = facts_of(report, "corpus_version", "evidence_state", "files", "bytes", "receipts", "decisions")
    left_out = [f"'{each.name}' is not in it: {each.reason}" for each in report.left_out]
    return CommandResult(report, [("backup", report.destination), ("version", report.sequence), *facts], notes=left_out)


@command(commands, "restore", has_base=False)
def restore(
    call: Invocation,
    *,
    backup: Annotated[Path, arg("BACKUP", "What `evidentia backup` wrote.")],
    directory: Annotated[Path, arg("DIR", "A directory that is new or empty.")],
) -> CommandResult[object]:
    """Restore a base from a backup.

    Every byte of the backup is verified before anything is written.
    """
    from evidentia.base.maintenance import restore as restore_base
    from evidentia.serving.cli.progress import BackupBar

    with BackupBar("restoring", is_wanted=not call.is_quiet) as bar:
        report = restore_base(backup, directory, on_progress=bar.update)
    origin = [("base", report.directory), ("taken at", report.taken_at.isoformat()), ("version", report.sequence)]
    facts = [*origin, *facts_of(report, "corpus_version", "evidence_state", "files", "bytes")]
    return CommandResult(report, facts, notes=[f"check it: evidentia verify --base {report.directory}"])


@command(commands, "doctor")
def doctor(call: Invocation) -> CommandResult[object]:
    """Run quick health checks of the installation and the base.

    `evidentia verify` is the full check.
    """
    from evidentia.base.maintenance import check_up

    report = check_up(call.base)
    failed = [finding for finding in report.findings if not finding.ok]
    rows = [(finding.check, "ok" if finding.ok else "NOT OK", finding.detail) for finding in report.findings]
    return CommandResult(
        report,
        lambda _: put_table(("check", "state", "detail"), rows),
        notes=[f"{finding.check}: {finding.hint}" for finding in failed],
        is_failed=bool(failed),
        exit_code=BASE_UNUSABLE if any(finding.check == "base" for finding in failed) else CHECK_FAILED,
    )


def _put_versions(found: "list[VersionSummary]") -> None:
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


def _put_diff(diff: "VersionDiff") -> None:
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
