"""Signed heads: what a base says of itself in public at each commit, and how an outsider holds it to that.

A head names the log and the commit by hashes that confirm no guess at a document, and the base's Ed25519 key signs it.
Nothing here reads a file or a clock, and no private key comes in.
"""

from __future__ import annotations

import hmac
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.provenance import (
    CUSTODY_FORMAT,
    BaseHead,
    BrokenLink,
    CommitRecord,
    ConsistencyProof,
    SignedHead,
    SigningKey,
    VerifyReport,
)
from evidentia.provenance import merkle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KEYED: Final = (
    *("parent", "corpus_version", "evidence_state", "segments_hash", "sources_hash"),
    *("roots_hash", "vectors", "vector_files_hash", "keys_hash", "contexts"),
)
"""Fields of a commit record that would confirm a guess at what the base holds; the leaves below `log_root` are salted."""
HEAD_CONTEXT: Final = b"evidentia head\n"
KEY_CONTEXT: Final = b"evidentia key\n"
"""What is signed begins with one of these, so that a signature of the one is never one of the other."""


def keyed(value: str, *, secret: bytes) -> str:
    """Return what everybody but the owner sees of a version; what is empty stays so, and without a secret everything stays."""
    return hmac.digest(secret, value.encode(), "sha256").hex() if secret and value else value


def public_commit(record: CommitRecord, *, secret: bytes) -> CommitRecord:
    """Return a commit record as everybody but the owner sees it."""
    return msgspec.structs.replace(record, **{name: keyed(getattr(record, name), secret=secret) for name in KEYED})


def head_of(commit: CommitRecord, *, public_key: str) -> BaseHead:
    """Return the head of a public commit record."""
    return BaseHead(
        custody_format=CUSTODY_FORMAT,
        base_id=commit.base_id,
        sequence=commit.sequence,
        committed_at=commit.committed_at,
        evidence_state=commit.evidence_state,
        log_size=commit.log_size,
        log_root=commit.log_root,
        commit_hash=sha256_hex(encode_struct(commit)),
        public_key=public_key,
    )


def head_message(head: BaseHead) -> bytes:
    """Return the bytes that are signed for a head."""
    return HEAD_CONTEXT + encode_struct(head)


def key_message(key: SigningKey) -> bytes:
    """Return the bytes by which one key vouches for the next."""
    return KEY_CONTEXT + encode_struct(msgspec.structs.replace(key, signature=""))


def is_signed(message: bytes, *, signature: str, public_key: str) -> bool:
    """Tell whether a key has signed a message; what is no signature or no key has not."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def head_faults(signed: SignedHead) -> Iterator[BrokenLink]:
    """Yield what is wrong with a signed head and with the keys that lead to its own.

    A key that the one before it does not vouch for is no fault here: whoever lost a key goes on with another. A witness minds it.
    """
    head, keys = signed.head, [key for key in signed.keys if key.sequence <= signed.head.sequence]
    where = f"head {head.sequence}"
    if head.custody_format != CUSTODY_FORMAT:
        yield BrokenLink(check="head", where=where, problem=f"the custody_format {head.custody_format} is not known")
    if not is_signed(head_message(head), signature=signed.signature, public_key=head.public_key):
        yield BrokenLink(check="head", where=where, problem="the key has not signed it")
    if not keys or keys[-1].public_key != head.public_key:
        yield BrokenLink(check="key", where=where, problem="the key is not the one that was in force")
    yield from _key_faults(signed.keys, base_id=head.base_id)


def verify_head(
    signed: SignedHead,
    *,
    witnessed: Sequence[SignedHead],
    earlier: Callable[[int], SignedHead],
    consistency: Callable[[int], ConsistencyProof],
) -> VerifyReport:
    """Check a signed head, and that the history it stands for continues what a witness wrote down, oldest first.

    `earlier` gives the head that the base now shows for an older commit, `consistency` its proof that the log of so many events is the
    beginning of the present one.
    """
    broken = list(head_faults(signed))
    for each in witnessed:
        broken += head_faults(each)
    if witnessed and not broken:
        broken += _witness_faults(signed, witnessed, earlier=earlier, consistency=consistency)
    key = "" if broken else signed.head.public_key
    target = f"head {signed.head.sequence}"
    return VerifyReport(ok=not broken, target=target, commits=1 + len(witnessed), broken=tuple(broken), signed_by=key)


def _witness_faults(
    signed: SignedHead,
    witnessed: Sequence[SignedHead],
    *,
    earlier: Callable[[int], SignedHead],
    consistency: Callable[[int], ConsistencyProof],
) -> Iterator[BrokenLink]:
    """Yield how the base departs from what was witnessed.

    The last head vouches for those before it: its commit names its parent, and that one its own.
    """
    last = witnessed[-1].head
    where = f"head {last.sequence}"
    if {each.head.base_id for each in witnessed} != {signed.head.base_id}:
        yield BrokenLink(check="witness", where=where, problem="it is of another base")
        return
    if any(one.head.sequence >= other.head.sequence for one, other in pairwise(witnessed)):
        yield BrokenLink(check="witness", where="witness", problem="its heads do not follow each other")
        return
    if signed.head.sequence < last.sequence:
        problem = f"the base was rolled back: its newest commit is {signed.head.sequence}"
        yield BrokenLink(check="witness", where=where, problem=problem)
        return
    if earlier(last.sequence).head != last:
        yield BrokenLink(check="witness", where=where, problem="history was rewritten: the base now shows another head")
        return
    proof = consistency(last.log_size)
    ends = (proof.first_size, proof.first_root, proof.second_size, proof.second_root)
    named = (last.log_size, last.log_root, signed.head.log_size, signed.head.log_root)
    if ends != named or not _is_consistent(proof):
        yield BrokenLink(
            check="witness", where=where, problem="history was rewritten: the log does not begin with the one that was witnessed"
        )
    known = witnessed[-1].keys
    if signed.keys[: len(known)] != known:
        yield BrokenLink(check="key", where=where, problem="history was rewritten: the keys are not those that were witnessed")
    for key in signed.keys[len(known) :]:
        if not key.signature:
            yield BrokenLink(check="key", where=f"key since commit {key.sequence}", problem="the key before it does not vouch for it")


def _key_faults(keys: Sequence[SigningKey], *, base_id: str) -> Iterator[BrokenLink]:
    previous, since = "", -1
    for key in keys:
        where = f"key since commit {key.sequence}"
        if key.base_id != base_id or key.previous != previous or key.sequence <= since:
            yield BrokenLink(check="key", where=where, problem="it does not follow the key before it")
        # The first one vouches for itself.
        elif (key.signature or not previous) and not is_signed(
            key_message(key), signature=key.signature, public_key=previous or key.public_key
        ):
            yield BrokenLink(check="key", where=where, problem="the key before it has not signed it")
        previous, since = key.public_key, key.sequence


def _is_consistent(proof: ConsistencyProof) -> bool:
    try:
        path = [bytes.fromhex(each) for each in proof.hashes]
        first, second = bytes.fromhex(proof.first_root), bytes.fromhex(proof.second_root)
    except ValueError:
        return False
    # Every log continues the empty one, and the proof of that is empty.
    return proof.first_size == 0 or merkle.verify_consistency(
        first=proof.first_size, second=proof.second_size, path=path, first_root=first, second_root=second
    )
