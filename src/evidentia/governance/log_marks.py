"""Finding a few lines of a log by what they hold: where runs begin and end, where policies are stated, whose runs they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.runs import RunStarted
from evidentia.governance.kept_logs import logs_with_parts, readable
from evidentia.governance.log_scan import Found, run_needle
from evidentia.provenance.decision_chain import CHECKPOINT
from evidentia.provenance.decision_lines import decode_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.runs import RunId
    from evidentia.governance.kept_logs import KeptLogs

RUN_MARK: Final = b'","run","'
END_MARK: Final = b'","end","'
POLICIES_MARK: Final = b'","policies","'
"""How the kind stands in a header, between the run and the digest of the policies."""


def marks_of(runs: Iterable[RunId], digests: Iterable[Sha256]) -> list[bytes]:
    """Return how the kind stands in a header before the digest; details may hold the same, so headers decide."""
    stated = [b'","policies","%b"' % digest.encode() for digest in sorted(digests)]
    return [*stated, RUN_MARK, END_MARK] if runs else stated


def marked(content: bytes, marks: Iterable[bytes]) -> list[bytes]:
    """Return the lines that hold a mark, or open a log that was cut, the last first."""
    starts: set[int] = {0} if content.startswith(CHECKPOINT) else set()
    for mark in marks:
        found = content.find(mark)
        while found >= 0:
            starts.add(content.rfind(b"\n", 0, found) + 1)
            found = content.find(mark, found + 1)
    ends = ((start, content.find(b"\n", start)) for start in sorted(starts, reverse=True))
    return [content[start:end] for start, end in ends if end >= 0]


def read_line(log: str, line: bytes) -> LogRecord:
    """Return a record of which the place in the chain does not matter."""
    seal, header, details = line.split(b" ", 2)
    return Found(log, seal, seal, decode_header(header), details).record()


def tenants_of(logs: KeptLogs, run_ids: Iterable[RunId]) -> dict[RunId, set[str]]:
    """Return whose runs these are, by every line that begins one of them."""
    wanted = tuple(run_ids)
    marks = [run_needle(run_id) + b',"run","' for run_id in wanted]
    logs.flush()
    owners: dict[RunId, set[str]] = {}
    for log, parts in logs_with_parts(logs):
        with readable(log):
            for content in (content for part in parts for content in logs.blocks(part)):
                records = (read_line(log, line) for line in marked(content, marks) if not line.startswith(CHECKPOINT))
                for record in records:
                    if isinstance(record.entry.call, RunStarted) and record.entry.run_id in wanted:
                        owners.setdefault(record.entry.run_id, set()).add(record.entry.call.facts.tenant)
    return owners


def runs_of(logs: KeptLogs, agent: str) -> set[RunId]:
    """Return the runs of an agent, by the lines that begin them."""
    return _runs_with(logs, (b'"agent_name":' + msgspec.json.encode(agent),), ("run",))


def runs_holding(logs: KeptLogs, marks: tuple[bytes, ...]) -> set[RunId]:
    """Return the runs of which a line holds one of the marks, be it in its header or in its details."""
    return _runs_with(logs, marks, ())


def _runs_with(logs: KeptLogs, marks: tuple[bytes, ...], kinds: tuple[str, ...]) -> set[RunId]:
    logs.flush()
    found: set[RunId] = set()
    for log, parts in logs_with_parts(logs):
        with readable(log):
            lines = (line for part in parts for content in logs.blocks(part) for line in marked(content, marks))
            headers = (decode_header(line.split(b" ", 2)[1]) for line in lines if not line.startswith(CHECKPOINT))
            found.update(header.run_id for header in headers if not kinds or header.kind in kinds)
    return found
