"""Whether the lines of a log are those that were written: the first that was changed, dropped, put in or moved is named.

Nothing is decoded but what was done to the log itself, so this is about as fast as hashing is.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from evidentia.contracts.decisions import LogFault, LogHead
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import PoliciesRecorded, StepCall
from evidentia.provenance.decision_chain import (
    CHECKPOINT,
    GENESIS,
    Checkpoint,
    LogPart,
    decode_checkpoint,
    head_of,
    is_redacted,
    leaf_of,
    split_line,
)
from evidentia.provenance.decision_lines import ADMIN_RUN, REDACTED_MARK, LineHeader, decode_header, entry_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.protocol import Metadata

_ADMIN = b',"%b","step",' % ADMIN_RUN.encode()
_sha256 = hashlib.sha256


class ChainAudit:
    """What the lines of one log show, read from first to last; it ends at the first that does not fit."""

    def __init__(self, log: str, parts: Iterable[tuple[LogPart, Iterable[bytes]]], *, heads: Sequence[LogHead] = ()) -> None:
        self.log = log
        self.starts: list[tuple[int, LogPart]] = []
        """The seq with which each part begins."""
        self.fault: LogFault | None = None
        self.torn: LogFault | None = None
        """What a writer that was killed left at the end: part of a line, that nobody was told is there."""
        self.checkpoint = Checkpoint()
        self.checkpoint_digest = ""
        """Of the line, so that whoever retires can say which one was put there."""
        self.redacted: list[tuple[int, int]] = []
        """The seqs of redacted records, as ranges without their ends."""
        self.acts: list[Metadata] = []
        """What was done to logs, as records of this one say."""
        self.hearsay: list[Metadata] = []
        """The same, as lines after the first that does not fit say."""
        self._heads: dict[int, list[LogHead]] = {}
        for head in heads:
            self._heads.setdefault(head.size, []).append(head)
        self._part = LogPart(log, 1)
        self._line = 0
        self._previous = GENESIS
        self._frontier = self.checkpoint.frontier()
        for part, blocks in parts:
            self._read_part(part, blocks)
        self._miss_records(heads)

    @property
    def records(self) -> int:
        """Return how many records fit, those that were retired left out."""
        return self._frontier.size - self.checkpoint.size

    def head(self) -> LogHead:
        """Return where the log stands after the last record that fits."""
        return head_of(self.log, self._previous, self._frontier)

    def place_of(self, seq: int) -> tuple[LogPart, int]:
        """Return the part and the line of a record."""
        start, part = max(each for each in self.starts if each[0] <= seq)
        has_checkpoint = part == self.starts[0][1] and bool(self.checkpoint_digest)
        return part, seq - start + 1 + has_checkpoint

    def _read_part(self, part: LogPart, blocks: Iterable[bytes]) -> None:
        if self.torn is not None and self.fault is None:
            self._fail("the last line has no end, and the log goes on")
        if self.fault is None:
            self._part, self._line = part, 0
        self._read(blocks)

    def _read(self, blocks: Iterable[bytes]) -> None:
        rest = b""
        for block in blocks:
            *lines, rest = block.split(b"\n")
            if self.fault is None:
                self._read_lines(lines)
            if self.fault is not None:
                self._hear(lines)
        if rest and self.fault is None:
            self._judge_tail(rest)

    def _read_lines(self, lines: list[bytes]) -> None:
        if self._line == 0 and not self.starts and lines and lines[0].startswith(CHECKPOINT):
            self._resume(lines.pop(0))
        if not self.starts or self.starts[-1][1] != self._part:
            self.starts.append((self._frontier.size + 1, self._part))
        if self.fault is None:
            self._check(lines)

    def _hear(self, lines: list[bytes]) -> None:
        """Take in what is told after a fault: it proves nothing, and may still tell whether the checkpoint is the one that was made."""
        for line in lines:
            if _ADMIN in line:
                with suppress(ValueError):
                    parts = split_line(line)
                    act = act_of(decode_header(parts.header), parts.details)
                    self.hearsay += [] if act is None else [act]

    def _check(self, lines: list[bytes]) -> None:
        """Check lines against the chain; written out, since a million of them pass through here."""
        previous, heads, seq = self._previous, self._heads, self._frontier.size
        leaves: list[bytes] = []
        for line in lines:
            seq += 1
            parts = line.split(b" ", 2)
            if len(parts) != 3 or not parts[1].startswith(b"[%d," % seq):  # noqa: PLR2004 - hash, header, details
                break
            seal, header, details = parts
            if details[:1] == REDACTED_MARK:
                leaf = self._redacted_leaf(line, seq)
            else:
                leaf = _sha256(b"\x00" + header + b"\x00" + _sha256(details).digest()).digest()
            sealed = _sha256(previous + leaf)
            if sealed.hexdigest().encode() != seal:
                break
            previous = sealed.digest()
            leaves.append(leaf)
            if _ADMIN in header:
                self._note_act(header, details)
            if seq in heads:
                self._grow(previous, leaves)
                leaves = []
                if not self._is_head(heads[seq]):
                    self._line -= 1
                    self._fail("the log up to here is not the one whose head was kept")
                    return
        self._grow(previous, leaves)
        if seq != self._frontier.size:
            self._fail("the record is not the one that was written here")

    def _grow(self, previous: bytes, leaves: list[bytes]) -> None:
        self._previous = previous
        self._line += len(leaves)
        self._frontier.extend(leaves)

    def _is_head(self, kept: list[LogHead]) -> bool:
        head = self.head()
        return all((each.hash, each.root) == (head.hash, head.root) for each in kept)

    def _redacted_leaf(self, line: bytes, seq: int) -> bytes:
        if self.redacted and self.redacted[-1][1] == seq:
            self.redacted[-1] = (self.redacted[-1][0], seq + 1)
        else:
            self.redacted.append((seq, seq + 1))
        try:
            return leaf_of(split_line(line))
        except ValueError:
            return b""  # no digest, so nothing that fits

    def _note_act(self, header: bytes, details: bytes) -> None:
        act = act_of(decode_header(header), details)
        if act is not None:
            self.acts.append(act)

    def _resume(self, line: bytes) -> None:
        self._line = 1
        self.checkpoint_digest = _sha256(line).hexdigest()
        try:
            self.checkpoint = decode_checkpoint(line)
            self._previous, self._frontier = bytes.fromhex(self.checkpoint.hash), self.checkpoint.frontier()
        except ValueError:  # a MsgspecError is one
            self._line = 0
            self._fail("the checkpoint cannot be read")
            return
        self.acts.extend(self.checkpoint.acts)
        kept = self._heads.get(self.checkpoint.size)
        if kept is not None and not self._is_head(kept):
            self._line = 0
            self._fail("the checkpoint is not the head that was kept")

    def _judge_tail(self, tail: bytes) -> None:
        """Tell a line that was never finished from one whose end was changed."""
        if self._fits(tail) or self._fits(tail[:-1]):
            self._fail("the end of the line was changed")
        else:
            self.torn = LogFault(log=str(self._part), line=self._line + 1, problem="torn: the line was never finished and is set aside")

    def _fits(self, line: bytes) -> bool:
        try:
            parts = split_line(line)
            return _sha256(self._previous + leaf_of(parts)).hexdigest().encode() == parts.hash
        except ValueError:
            return False

    def _miss_records(self, heads: Sequence[LogHead]) -> None:
        longest = max((head.size for head in heads), default=0)
        if self.fault is None and longest > self._frontier.size:
            self._fail(f"records are missing: the log had {longest} of them, and {self._frontier.size} are left")

    def _fail(self, problem: str) -> None:
        self.fault = LogFault(log=str(self._part), line=self._line + 1, problem=problem)


def act_of(header: LineHeader, details: bytes) -> Metadata | None:
    """Return what a record says was done to a log; None when it is not about that, or nobody can say any more."""
    if header.run_id != ADMIN_RUN or header.kind != "step" or is_redacted(details):
        return None
    call = entry_of(header, details).call
    return {"act": call.name, **call.attributes} if isinstance(call, StepCall) else None


def checkpoint_after(lines: Iterable[bytes], *, last: int) -> Checkpoint:
    """Return what stands for the records up to `last` once they are retired, from lines that were found to fit."""
    before = Checkpoint()
    frontier, previous, policies, acts = before.frontier(), before.hash.encode(), dict(before.policies), list(before.acts)
    for line in lines:
        if line.startswith(CHECKPOINT):
            before = decode_checkpoint(line)
            frontier, previous, policies, acts = before.frontier(), before.hash.encode(), dict(before.policies), list(before.acts)
            continue
        parts = split_line(line)
        header = decode_header(parts.header)
        if header.seq > last:
            break
        frontier.append(leaf_of(parts))
        previous = parts.hash
        if header.kind == "policies" and isinstance(call := entry_of(header, parts.details).call, PoliciesRecorded):
            policies[header.policies] = call.policies
        elif (act := act_of(header, parts.details)) is not None:
            acts.append(act)
    edge = tuple(Sha256(each.hex()) for each in frontier.edge)
    return Checkpoint(size=frontier.size, hash=Sha256(previous.decode()), edge=edge, policies=policies, acts=tuple(acts))
