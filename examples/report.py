"""What is printed of a run: the answer with its citations, what was decided on the way, and where that is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence import citations_of

if TYPE_CHECKING:
    from pathlib import Path

    from evidence import Evidence

    from evidentia.agents import Context

MAX_REASON_LENGTH = 110


def print_answer(reply: str, evidence: Evidence) -> None:
    """Print an answer that was verified, and what it rests on."""
    print("".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in reply))
    cited = citations_of(reply)
    if not cited:
        return
    print("\nCitations")
    for citation in cited:
        print(f"  {citation.text}")
    print("\nGrounding")
    for claim in evidence.ground(reply).claims:
        print(f"  {claim.score:.3f}  {claim.claim}")
    print("\nVerified")
    for document_id in dict.fromkeys(citation.file for citation in cited):
        print(f"  document {document_id}")
    for receipt_id in evidence.receipts:
        print(f"  receipt  {receipt_id}")


def print_run(context: Context, directory: Path) -> None:
    """Print what was decided, how the run ended, and how to look at its log."""
    print("\nDecisions")
    for decision in context.decisions:
        reason = decision.reason if len(decision.reason) <= MAX_REASON_LENGTH else decision.reason[: MAX_REASON_LENGTH - 3] + "..."
        print(f"  {decision.action.value:<6} {decision.kind:<10} {decision.policy_name:<17} {decision.rule:<18} {reason}")
    stopped = " (a call was stopped on the way)" if context.should_stop else ""
    print(f"\nrun {context.run_id}: {context.status.value}{stopped}")
    print(f"base and decision log: {directory}")
    print(f"  evidentia --base {directory} policy log verify")
    print(f"  evidentia --base {directory} policy log export")
