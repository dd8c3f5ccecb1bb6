"""The chain of a decision log: whatever is changed, dropped, put in or moved is located, and what is proven can be checked by strangers."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.decisions import DecisionStatus, Evaluation, LogEntry, LogHead, Verdict
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policies import Policy, PolicyAction, PolicyBody, PolicyId
from evidentia.contracts.protocol import SpanId
from evidentia.contracts.runs import (
    BatchClosed,
    BatchId,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    Phase,
    PoliciesRecorded,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunId,
    RunStarted,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)
from evidentia.provenance.decision_audit import ChainAudit, checkpoint_after
from evidentia.provenance.decision_chain import (
    LogPart,
    Sealer,
    encode_checkpoint,
    read_records,
    record_lines,
    redact_line,
    split_line,
    with_ends,
)
from evidentia.provenance.decision_proofs import LogTree, verify_growth, verify_record
from evidentia.provenance.merkle import Frontier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.runs import AnyCall

LOG = "log"
DIGEST = Sha256("d" * 64)
HOSTILE = 'a b\n~"\\ \u2028\x00é☃ \U0001f600 checkpoint {}\r\n'


def _verdict(action: PolicyAction = PolicyAction.BLOCK) -> Verdict:
    said = Evaluation(
        policy_id=PolicyId("p-1"),
        policy_name="strict",
        digest=DIGEST,
        category="retrieval",
        rule="blocked_sources",
        action=action,
        reason="Retrieved from blocked source 'x'",
        metadata={"blocked_source": "x"},
    )
    return Verdict(phase=Phase.MID_EXECUTION, decisive=said, evaluations=(said,))


CALLS: tuple[AnyCall, ...] = (
    PoliciesRecorded(policies=(Policy(policy_id=PolicyId("p-1"), digest=DIGEST, body=PolicyBody(name="strict", category="retrieval")),)),
    RunStarted(facts=RunFacts(run_id=RunId("r"), agent_name="agent", metadata={"a": [1, None]}), is_enforced=False),
    RetrievedDocument(relevance_score=0.5, source="s", collection="c", age_days=3, batch=BatchId("b"), chunk_id="k", span=SpanId("x")),
    RetrievedDocument(relevance_score=-0.25, age_days=2.5),
    RetrievedDocument(),
    BatchClosed(batch=BatchId("b")),
    GroundingEntry(
        grounding_scores=(0.1, 1.0),
        citations=("a",),
        unsupported_claims=("u",),
        output_confidence=0.5,
        judgements={PolicyId("p-1"): Judgement(status=JudgeStatus.JUDGED, score=0.4, model="local:x")},
    ),
    ToolCall(name="search", is_retrieval=True, duration_ms=1.5, sources=2, attributes={"k": 1}),
    LlmCall(model="m", input_tokens=1, output_tokens=2, cost_micro=3),
    StepCall(name="plan"),
    SpanOpened(opened=SpanId("x"), name="n", is_retrieval=True),
    SpanClosed(closed=SpanId("x"), sources=1),
    CheckBypassed(what="w", problem="p"),
    RunEnded(),
)


def _entry(call: AnyCall, *, run: str = "r", verdicts: tuple[Verdict, ...] = (), at_us: int = 7) -> LogEntry:
    return LogEntry(at_us=at_us, run_id=RunId(run), policies=DIGEST, call=call, verdicts=verdicts, count=2, overhead_us=1.25)


def _documents(count: int) -> list[LogEntry]:
    return [_entry(RetrievedDocument(source=f"doc-{number}", relevance_score=0.9), at_us=number) for number in range(count)]


def _sealed(entries: Sequence[LogEntry], *, seed: bytes = b"seed") -> tuple[list[bytes], LogHead]:
    sealer = Sealer(LOG, seed=seed)
    return [sealer.seal(entry) for entry in entries], sealer.head()


def _audit(content: bytes, *heads: LogHead) -> ChainAudit:
    return ChainAudit(LOG, [(LogPart(LOG, 1), [content] if content else [])], heads=heads)


def _place(audit: ChainAudit) -> tuple[str, int] | None:
    return None if audit.fault is None else (audit.fault.log, audit.fault.line)


@pytest.mark.parametrize("verdicts", [(), (_verdict(), _verdict(PolicyAction.WARN))])
def test_every_kind_of_call_is_read_back_as_it_was_recorded(verdicts: tuple[Verdict, ...]) -> None:
    entries = [_entry(call, verdicts=verdicts) for call in CALLS]
    lines, head = _sealed(entries)
    records = list(read_records(LOG, record_lines([b"".join(lines)])))

    assert entries == [record.entry for record in records]
    assert list(range(1, len(CALLS) + 1)) == [record.seq for record in records]
    assert ["0" * 64, *(record.hash for record in records)][:-1] == [record.previous for record in records]
    assert head == _audit(b"".join(lines)).head()


@given(st.text(), st.text(), st.text())
def test_no_text_can_leave_its_place_in_a_line(run: str, source: str, reason: str) -> None:
    verdict = msgspec.structs.replace(_verdict(), abstention_response=reason)
    entries = [
        _entry(RetrievedDocument(source=source, collection=HOSTILE), run=run, verdicts=(verdict,)),
        _entry(StepCall(name=source, attributes={reason: HOSTILE}), run=HOSTILE),
    ]
    lines, _ = _sealed(entries)

    assert [1, 1] == [line.count(b"\n") for line in lines]
    assert entries == [record.entry for record in read_records(LOG, record_lines(lines))]
    assert _audit(b"".join(lines)).fault is None


@pytest.mark.parametrize(
    "call", [RetrievedDocument(source="\ud800"), StepCall(attributes={"x": 1 << 70}), StepCall(attributes={"x": object()})]
)
def test_a_call_that_cannot_be_spelt_is_recorded_as_a_bypass(call: AnyCall) -> None:
    lines, _ = _sealed([_entry(call, run="r\ud800"), _entry(StepCall(name="next"))])
    first, second = read_records(LOG, record_lines(lines))

    assert isinstance(first.entry.call, CheckBypassed)
    assert ("decision_log", "r\\ud800") == (first.entry.call.what, first.entry.run_id)
    assert StepCall(name="next") == second.entry.call
    assert _audit(b"".join(lines)).fault is None


def test_every_flipped_byte_is_located_in_its_line() -> None:
    entries = [_entry(call, verdicts=(_verdict(),) if number == 2 else ()) for number, call in enumerate(CALLS[1:6])]
    lines, _ = _sealed(entries)
    lines[3] = redact_line(split_line(lines[3][:-1]))
    content = b"".join(lines)
    line_of = [number for number, line in enumerate(lines, start=1) for _ in line]
    missed = []
    for position, flip in ((position, flip) for position in range(len(content)) for flip in (0x01, 0x20, 0x80)):
        changed = bytearray(content)
        changed[position] ^= flip
        if _place(_audit(bytes(changed))) != ("log.000001", line_of[position]):
            missed.append((position, flip))

    assert [] == missed
    assert _audit(content).fault is None


@settings(max_examples=60)
@given(st.data())
def test_a_dropped_inserted_or_moved_record_is_located(data: st.DataObject) -> None:
    lines, head = _sealed(_documents(12))
    other, _ = _sealed(_documents(12), seed=b"other")
    change = data.draw(st.sampled_from(["drop", "insert", "repeat", "swap", "foreign"]))
    # The first record of any log fits at the beginning of another: there it is the second that does not.
    at = data.draw(st.integers(1 if change in {"insert", "foreign"} else 0, 10))
    changed = list(lines)
    if change == "drop":
        del changed[at]
    elif change == "insert":
        changed.insert(at, other[data.draw(st.integers(0, 11))])
    elif change == "repeat":
        changed.insert(at + 1, lines[at])
    elif change == "foreign":
        changed[at] = other[at]
    else:
        later = data.draw(st.integers(at + 1, 11))
        changed[at], changed[later] = changed[later], changed[at]
    expected = at + 2 if change == "repeat" else at + 1

    assert ("log.000001", expected) == _place(_audit(b"".join(changed)))
    assert ("log.000001", expected) == _place(_audit(b"".join(changed), head))


def test_a_missing_end_shows_against_a_head_that_was_kept() -> None:
    lines, head = _sealed(_documents(9))
    shorter = b"".join(lines[:6])

    assert _audit(shorter).fault is None
    assert ("log.000001", 7) == _place(_audit(shorter, head))
    assert ("log.000001", 7) == _place(_audit(shorter + lines[6][:30], head))


def test_a_log_that_was_written_anew_does_not_have_the_head_that_was_kept() -> None:
    _, kept = _sealed(_documents(6))
    rewritten, _ = _sealed(_documents(9), seed=b"other")

    assert _audit(b"".join(rewritten)).fault is None
    assert ("log.000001", 6) == _place(_audit(b"".join(rewritten), kept))


def test_a_head_must_have_its_root_too() -> None:
    lines, head = _sealed(_documents(5))

    assert _audit(b"".join(lines), head).fault is None
    assert ("log.000001", 5) == _place(_audit(b"".join(lines), msgspec.structs.replace(head, root=Sha256("0" * 64))))


def test_a_line_that_was_never_finished_is_set_aside_wherever_it_was_cut() -> None:
    lines, head = _sealed(_documents(4))
    whole = b"".join(lines[:3])
    cuts = range(1, len(lines[3]) - 1)
    audits = [_audit(whole + lines[3][:cut], msgspec.structs.replace(head, size=0)) for cut in cuts]

    assert [("log.000001", 4)] * len(cuts) == [(audit.torn.log, audit.torn.line) for audit in audits if audit.torn is not None]
    assert {(None, 3)} == {(audit.fault, audit.records) for audit in audits}
    assert 3 == len(list(read_records(LOG, record_lines([whole + lines[3][:40]]))))


def test_parts_are_one_chain_and_a_torn_part_must_be_the_last() -> None:
    lines, head = _sealed(_documents(6))
    parts = [(LogPart(LOG, 1), [b"".join(lines[:4])]), (LogPart(LOG, 2), [b"".join(lines[4:])])]
    torn = [(LogPart(LOG, 1), [b"".join(lines[:4])[:-5]]), parts[1]]

    assert (None, head) == (ChainAudit(LOG, parts).fault, ChainAudit(LOG, parts).head())
    assert ("log.000001", 4) == _place(ChainAudit(LOG, torn))
    assert ("log.000002", 1) == _place(ChainAudit(LOG, parts[1:]))
    assert (LogPart(LOG, 2), 2) == ChainAudit(LOG, parts).place_of(6)


def test_redaction_changes_neither_the_chain_nor_the_tree() -> None:
    lines, head = _sealed([_entry(call, verdicts=(_verdict(),)) for call in CALLS])
    redacted = [redact_line(split_line(line[:-1])) for line in lines]
    audit = _audit(b"".join(redacted), head)
    records = list(read_records(LOG, record_lines(redacted)))

    assert (None, head, [(1, len(CALLS) + 1)]) == (audit.fault, audit.head(), audit.redacted)
    assert [type(call) for call in CALLS] == [type(record.entry.call) for record in records]
    assert all(record.is_redacted for record in records)
    assert {(PolicyAction.BLOCK, "blocked_sources", "", DecisionStatus.EVALUATED)} == {
        (said.action, said.rule, said.reason, said.status) for record in records for said in [record.entry.verdicts[0].decisive]
    }
    assert not any(b"Retrieved from" in line for line in redacted)
    assert redacted == [redact_line(split_line(line[:-1])) for line in redacted]


def test_equal_details_cannot_be_told_by_their_digest() -> None:
    lines, _ = _sealed([_entry(RetrievedDocument(source="same"))] * 600)
    digests = {redact_line(split_line(line[:-1])).split(b" ~")[1] for line in lines}

    assert 600 == len(digests)


def test_what_could_not_be_written_is_forgotten_by_the_chain() -> None:
    entries = _documents(7)
    sealer = Sealer(LOG, seed=b"seed")
    lines = [sealer.seal(entry) for entry in entries[:3]]
    mark = sealer.mark()
    for entry in entries[3:6]:
        sealer.seal(entry)
    sealer.reset(mark)
    lines += [sealer.seal(entry) for entry in entries[3:]]

    assert (lines, sealer.head()) == _sealed(entries)


@given(st.lists(st.integers(0, 40), max_size=8))
def test_a_tree_that_grows_by_many_is_the_one_that_grows_by_one(steps: list[int]) -> None:
    by_many, by_one, number = Frontier(), Frontier(), 0
    for step in steps:
        leaves = [hashlib.sha256(b"%d" % each).digest() for each in range(number, number + step)]
        by_many.extend(leaves)
        for leaf in leaves:
            by_one.append(leaf)
        number += step

        assert (by_one.size, by_one.edge, by_one.root()) == (by_many.size, by_many.edge, by_many.root())


def _stranger_accepts(proof: dict[str, object], head: dict[str, object]) -> bool:
    """Check a proof as docs/decision-log.md says, with nothing but SHA-256."""

    def digest(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    _, header, details = str(proof["line"]).encode().split(b" ", 2)
    inner = bytes.fromhex(details[1:].decode()) if details[:1] == b"~" else digest(details)
    node = digest(b"\x00", header, b"\x00", inner)
    index, last = json.loads(header)[0] - 1, int(str(head["size"])) - 1
    path = [bytes.fromhex(each) for each in proof["path"]]  # type: ignore[attr-defined]  # a list of digits, as JSON has it
    for sibling in path:
        if last == 0:
            return False
        if index % 2 or index == last:
            node = digest(b"\x01", sibling, node)
            while index % 2 == 0 and index:
                index, last = index // 2, last // 2
        else:
            node = digest(b"\x01", node, sibling)
        index, last = index // 2, last // 2
    return last == 0 and node.hex() == head["root"]


def test_a_stranger_can_check_every_proof_of_every_size() -> None:
    lines, _ = _sealed(_documents(18))
    lines[4] = redact_line(split_line(lines[4][:-1]))
    tree = LogTree(LOG, record_lines(lines))
    for size in range(1, 19):
        head = _audit(b"".join(lines[:size])).head()
        for seq in range(1, size + 1):
            proof = tree.prove_record(seq, size=size)
            spoken = msgspec.to_builtins(proof)

            assert _stranger_accepts(spoken, msgspec.to_builtins(head))
            assert verify_record(proof, head)
            assert not _stranger_accepts(
                {**spoken, "line": proof.line.replace("doc-", "Doc-").replace("~", "~00")}, msgspec.to_builtins(head)
            )


@pytest.mark.parametrize(
    "change",
    [{"seq": 4}, {"line": "x"}, {"line": ""}, {"path": ()}, {"path": ("zz",)}, {"size": 8}, {"log": "other"}],
)
def test_a_changed_proof_proves_nothing(change: dict[str, object]) -> None:
    lines, head = _sealed(_documents(9))
    proof = LogTree(LOG, record_lines(lines)).prove_record(3)

    assert verify_record(proof, head)
    assert not verify_record(msgspec.structs.replace(proof, **change), head)


def test_growth_is_proven_between_any_two_heads() -> None:
    lines, _ = _sealed(_documents(11))
    tree = LogTree(LOG, record_lines(lines))
    heads = [_audit(b"".join(lines[:size])).head() for size in range(1, 12)]
    other = _audit(b"".join(_sealed(_documents(11), seed=b"other")[0][:6])).head()

    assert all(verify_growth(tree.prove_growth(first, second)) for first in heads for second in heads if first.size <= second.size)
    assert not verify_growth(msgspec.structs.replace(tree.prove_growth(heads[5], heads[10]), first=other))
    with pytest.raises(NotFoundError):
        tree.prove_growth(heads[10], heads[5])


@pytest.mark.parametrize("last", range(1, 12))
def test_what_is_retired_leaves_a_log_that_goes_on_from_there(last: int) -> None:
    """Cut anywhere, the rest fits, has the same head, and its records can still be proven."""
    lines, head = _sealed([_entry(CALLS[0]), *_documents(10)])
    checkpoint = checkpoint_after(record_lines(lines), last=last)
    cut = [encode_checkpoint(checkpoint), *lines[last:]]
    audit = _audit(b"".join(cut), head)
    tree = LogTree(LOG, record_lines(cut))

    assert (None, head, 11 - last) == (audit.fault, audit.head(), audit.records)
    assert last == audit.checkpoint.size
    assert {DIGEST: CALLS[0].policies} == audit.checkpoint.policies  # type: ignore[union-attr]  # the first is the policies
    assert all(verify_record(tree.prove_record(seq), head) for seq in range(last + 1, 12))
    assert list(read_records(LOG, record_lines(lines)))[last:] == list(read_records(LOG, record_lines(cut)))
    with pytest.raises(NotFoundError):
        tree.prove_record(last)


def test_a_log_can_be_cut_again() -> None:
    lines, head = _sealed([_entry(CALLS[0]), *_documents(10)])
    once = [encode_checkpoint(checkpoint_after(record_lines(lines), last=4)), *lines[4:]]
    twice = encode_checkpoint(checkpoint_after(record_lines(once), last=9))

    assert encode_checkpoint(checkpoint_after(record_lines(lines), last=9)) == twice
    assert (None, head) == ((audit := _audit(twice + b"".join(lines[9:]))).fault, audit.head())


@pytest.mark.parametrize(
    "change", [b"checkpoint {}\n", b"checkpoint \n", b"checkpoint [1]\n", b'checkpoint {"size":3}\n', b"checkpoint: {}\n"]
)
def test_a_checkpoint_that_is_none_is_located(change: bytes) -> None:
    lines, _ = _sealed(_documents(4))

    assert ("log.000001", 1 if change != b"checkpoint {}\n" else 2) == _place(_audit(change + b"".join(lines[1:])))


@given(st.lists(st.binary(max_size=6)))
def test_lines_with_their_ends_are_the_bytes_they_came_from(blocks: list[bytes]) -> None:
    assert b"".join(blocks) == b"".join(with_ends(blocks))
