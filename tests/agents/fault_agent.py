"""An agent in a process of its own, which says of each call that came back that it did, until somebody kills it.

python fault_agent.py BASE WAY
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.agents import Context, PolicyViolationError

if TYPE_CHECKING:
    from collections.abc import Iterator


def work(ctx: Context) -> Iterator[str]:
    """Record without end, and yield what each call is known by in the log."""
    for number in itertools.count():
        ctx.record_retrieval_result(relevance_score=0.9, source=f"document-{number}", age_days=1)
        yield f"document-{number}"
        ctx.record_llm_call("model", response="Keys expire after 30 days.")
        with suppress(PolicyViolationError):  # stopped, and gone on with: it is in the log all the same
            ctx.record_grounding(grounding_scores=[0.9], citations=[f"citation-{number}"])
        yield f"citation-{number}"


def say(known_by: str) -> None:
    """Tell whoever started this process; at once, since it may be the last word."""
    sys.stdout.write(f"{known_by}\n")
    sys.stdout.flush()


def run_sync(base: Path) -> None:
    """Work in a sync context."""
    with Context("agent", base=base, durable=True) as ctx:
        say(ctx.run_id)
        for known_by in work(ctx):
            say(known_by)


async def run_async(base: Path) -> None:
    """Work in an async context."""
    async with Context("agent", base=base, durable=True) as ctx:
        say(ctx.run_id)
        for known_by in work(ctx):
            say(known_by)
            await asyncio.sleep(0)


if __name__ == "__main__":
    if sys.argv[2] == "sync":
        run_sync(Path(sys.argv[1]))
    else:
        asyncio.run(run_async(Path(sys.argv[1])))
