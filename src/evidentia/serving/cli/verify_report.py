"""A verification report as text: what was checked and, when something is broken, the first link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.output import put, put_facts

if TYPE_CHECKING:
    from evidentia.contracts.provenance import BrokenLink, VerifyReport


def put_report(report: VerifyReport) -> None:
    """Print a report."""
    put(f"{report.target}: {'ok' if report.ok else 'BROKEN'}")
    put(f"checked {checked(report)}")
    if report.first_broken is not None:
        put()
        put("first broken link")
        put_link(report.first_broken)
        if len(report.broken) > 1:
            put(f"... and {len(report.broken) - 1} more; --json lists them")


def put_link(link: BrokenLink) -> None:
    """Print where custody stops holding."""
    put_facts([("  check", link.check), ("  where", link.where), ("  problem", link.problem)])


def checked(report: VerifyReport) -> str:
    """Return in words what a verification looked at."""
    counts = {
        "document": report.documents,
        "fragment": report.fragments,
        "event": report.events,
        "commit": report.commits,
    }
    parts = [f"{count} {name if count == 1 else name + 's'}" for name, count in counts.items() if count]
    return ", ".join(parts) or "nothing: the first check did not pass"
