r"""The chain of a decision log: every line seals the one before it, and a Merkle tree over all of them proves single ones.

    line   = hash SP header SP details LF               hash in 64 hexadecimal digits
    leaf_i = sha256(0x00 || header || 0x00 || sha256(details))
    hash_i = sha256(hash_{i-1} || leaf_i)               hash_0 = 32 zero bytes

The details enter by their digest, so they can be taken out and the chain still holds: `~` and the digest stand in their place.
A log whose beginning was retired opens with one line `checkpoint SP {...}` that says where the rest goes on.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import Policy
from evidentia.contracts.protocol import Metadata
from evidentia.contracts.runs import CheckBypassed, RunId
from evidentia.provenance.decision_lines import REDACTED_MARK, decode_header, encode_details, encode_header, entry_of
from evidentia.provenance.merkle import Frontier

GENESIS: Final = bytes(32)
CHECKPOINT: Final = b"checkpoint "
SEED_SIZE: Final = 32
_HASH_DIGITS: Final = 64
_REDACTED_SIZE: Final = len(REDACTED_MARK) + _HASH_DIGITS
_NONCE_SIZE: Final = 12
_NONCES_AT_ONCE: Final = 256

_sha256 = hashlib.sha256


class LogPart(NamedTuple):
    """One file of a log, numbered from 1; a log is its parts one after the other."""

    log: str
    part: int

    def __str__(self) -> str:
        """Return the name of the file, without what all of them end in."""
        return f"{self.log}.{self.part:06d}"


class Line(NamedTuple):
    """A line of a log in its three parts."""

    hash: bytes
    header: bytes
    details: bytes


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for the retired beginning of a log: how long it was, its last hash, its tree, and what the rest still needs of it."""

    size: int = 0
    hash: Sha256 = Sha256(GENESIS.hex())
    edge: tuple[Sha256, ...] = ()
    """The roots of the complete subtrees over the retired records, largest first."""
    policies: dict[Sha256, tuple[Policy, ...]] = msgspec.field(default_factory=dict)
    """What was in force, by its digest, for the runs that come after."""
    acts: tuple[Metadata, ...] = ()
    """What was done to this or other logs, as the retired records told it."""

    def frontier(self) -> Frontier:
        """Return the tree over what was retired, ready to go on."""
        return Frontier(self.size, [bytes.fromhex(each) for each in self.edge])


class SealerState(NamedTuple):
    """Where a sealer stood."""

    size: int
    previous: bytes
    edge: tuple[bytes, ...]


class Sealer:
    """Turns entries into the lines of one log, in order. Not thread safe.

    `seed` makes the nonces; it must be unpredictable and is never written, or a redacted record could be guessed.
    """

    def __init__(self, log: str, *, seed: bytes) -> None:
        self.log = log
        self._seed = seed
        self._previous = GENESIS
        self._tree = Frontier()
        self._leaves: list[bytes] = []
        """Those that are not in the tree yet: many at once go in faster."""
        self._nonces: list[str] = []
        self._nonce_block = -1

    @property
    def size(self) -> int:
        """Return how many records were sealed."""
        return self._tree.size + len(self._leaves)

    @property
    def previous(self) -> bytes:
        """Return the hash of the last line, in hexadecimal digits."""
        return self._previous.hex().encode()

    def seal(self, entry: LogEntry) -> bytes:
        """Return the next line; an entry that cannot be spelt is recorded as a bypass that says so."""
        seq = self._tree.size + len(self._leaves) + 1
        nonce = self._nonce(seq)
        try:
            header, details = encode_header(entry, seq=seq), encode_details(entry, nonce=nonce)
        except (UnicodeEncodeError, TypeError, ValueError, OverflowError) as error:
            entry = _unspeakable(entry, type(error).__name__)
            header, details = encode_header(entry, seq=seq), encode_details(entry, nonce=nonce)
        leaf = _sha256(b"\x00" + header + b"\x00" + _sha256(details).digest()).digest()
        seal = _sha256(self._previous + leaf)
        self._previous = seal.digest()
        self._leaves.append(leaf)
        return b"%b %b %b\n" % (seal.hexdigest().encode(), header, details)

    def head(self) -> LogHead:
        """Return where the log stands."""
        return head_of(self.log, self._previous, self._grown())

    def mark(self) -> SealerState:
        """Return where the log stands, to come back to when lines could not be written."""
        tree = self._grown()
        return SealerState(tree.size, self._previous, tree.edge)

    def reset(self, mark: SealerState) -> None:
        """Forget every line since the mark."""
        self._previous = mark.previous
        self._tree, self._leaves = Frontier(mark.size, mark.edge), []

    def _grown(self) -> Frontier:
        self._tree.extend(self._leaves)
        self._leaves = []
        return self._tree

    def _nonce(self, seq: int) -> str:
        block, place = divmod(seq, _NONCES_AT_ONCE)
        if block != self._nonce_block:
            drawn = hashlib.shake_256(self._seed + block.to_bytes(8, "big")).digest(_NONCE_SIZE * _NONCES_AT_ONCE)
            text = binascii.b2a_base64(drawn, newline=False).decode()
            digits = len(text) // _NONCES_AT_ONCE
            self._nonces = [text[start : start + digits] for start in range(0, len(text), digits)]
            self._nonce_block = block
        return self._nonces[place]


class EntryBatch(msgspec.Struct, gc=False, eq=False):
    """Entries that somebody waits for, and the lines they became once they are sealed.

    The garbage collector does not follow it, so it must not hold the log, which holds it.
    """

    entries: tuple[LogEntry, ...]
    outcome: tuple[str, Sequence[tuple[bytes, bytes]]] | Exception | None = None

    @property
    def is_settled(self) -> bool:
        """Tell whether the lines are written, or refused."""
        return self.outcome is not None

    def settle(self, log: str, sealed: Sequence[tuple[bytes, bytes]]) -> None:
        """Note the line of each entry, behind the hash of the line before it."""
        self.outcome = (log, sealed)

    def refuse(self, error: Exception) -> None:
        """Note why the entries are not in the log."""
        self.outcome = error

    def check(self) -> None:
        """Raise what the entries were refused with, if they were."""
        if isinstance(self.outcome, Exception):
            raise self.outcome

    def records(self) -> Sequence[LogRecord] | None:
        """Return the entries with their seals, in order; None while the log has not written them."""
        if not isinstance(self.outcome, tuple):
            return None
        log, sealed = self.outcome
        lines = (read_records(log, (line.rstrip(b"\n"),), previous=previous) for previous, line in sealed)
        return tuple(record for records in lines for record in records)


def head_of(log: str, previous: bytes, frontier: Frontier) -> LogHead:
    """Return a head in the form in which it is kept elsewhere."""
    return LogHead(log=log, size=frontier.size, hash=Sha256(previous.hex()), root=Sha256(frontier.root().hex()))


def split_line(line: bytes) -> Line:
    """Take a line apart, without its end; ValueError when it has no three parts."""
    seal, header, details = line.split(b" ", 2)
    return Line(seal, header, details)


def is_redacted(details: bytes) -> bool:
    """Tell whether details were taken out."""
    return details.startswith(REDACTED_MARK)


def details_digest(details: bytes) -> bytes:
    """Return the digest of details, taken out or not; ValueError when what stands in their place is no digest."""
    if not details.startswith(REDACTED_MARK):
        return _sha256(details).digest()
    if len(details) != _REDACTED_SIZE or details != details.lower():
        raise ValueError(details)
    return bytes.fromhex(details[1:].decode("ascii"))


def leaf_of(line: Line) -> bytes:
    """Return the leaf of a line in the Merkle tree; ValueError when its details are no details."""
    return _sha256(b"\x00" + line.header + b"\x00" + details_digest(line.details)).digest()


def redact_line(line: Line) -> bytes:
    """Return a line without its details, complete with its end; the chain and the tree do not change."""
    return b"%b %b %b%b\n" % (line.hash, line.header, REDACTED_MARK, details_digest(line.details).hex().encode())


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return the line that opens a log whose beginning was retired."""
    return CHECKPOINT + msgspec.json.encode(checkpoint, order="sorted") + b"\n"


def decode_checkpoint(line: bytes) -> Checkpoint:
    """Read such a line; ValueError or MsgspecError when it is none or does not fit itself."""
    checkpoint = decode_json(line.removeprefix(CHECKPOINT), Checkpoint)
    hashes = (checkpoint.hash, *checkpoint.edge)
    if len(checkpoint.edge) != checkpoint.size.bit_count() or any(len(each) != _HASH_DIGITS for each in hashes):
        raise ValueError(checkpoint.size)
    return checkpoint


def record_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a log without their ends; what stands after the last end is not written yet, or torn, and left out."""
    for block in blocks:
        lines = block.split(b"\n")
        lines.pop()
        yield from lines


def with_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield every line with its end, and what stands after the last end."""
    for block in blocks:
        *lines, rest = block.split(b"\n")
        yield from (line + b"\n" for line in lines)
        if rest:
            yield rest


def read_records(
    log: str, lines: Iterable[bytes], *, run_id: RunId | None = None, after: int = 0, previous: bytes | None = None
) -> Iterator[LogRecord]:
    """Yield the records of a log from its lines without their ends; MsgspecError or ValueError at the first that is none.

    `previous` is the hash before the first line, in hexadecimal digits, where that is not the first of the log.
    Whether the records fit the chain is for `decision_audit` to say.
    """
    previous = previous or GENESIS.hex().encode()
    for line in lines:
        if line.startswith(CHECKPOINT):
            previous = decode_checkpoint(line).hash.encode()
            continue
        seal, header_bytes, details = line.split(b" ", 2)
        header = decode_header(header_bytes)
        if header.seq > after and (run_id is None or run_id == header.run_id):
            yield LogRecord(
                log=log,
                seq=header.seq,
                previous=Sha256(previous.decode("ascii")),
                hash=Sha256(seal.decode("ascii")),
                entry=entry_of(header, details),
                is_redacted=is_redacted(details),
            )
        previous = seal


def _unspeakable(entry: LogEntry, problem: str) -> LogEntry:
    bypass = CheckBypassed(what="decision_log", problem=f"a call cannot be written down ({problem})")
    run_id = entry.run_id.encode("ascii", "backslashreplace").decode()
    return msgspec.structs.replace(entry, run_id=run_id, call=bypass, verdicts=(), count=0)
