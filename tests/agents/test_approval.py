"""Somebody may let a stopped call go on: that call, once, and the log says who."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import pytest
from contexts_at_work import violation_of

from evidentia.agents import ApprovalDecision, Context, PolicyViolationError, auto_approve, auto_deny, observe, prompt_approval
from evidentia.agents.errors import InvalidRecordError

if TYPE_CHECKING:
    from evidentia.contracts.decisions import PolicyDecision

GUARD: dict[str, Any] = {"name": "Guard", "category": "retrieval", "rules": {"blocked_sources": ["bad"], "min_chunks": 0}}
CLAIMS: dict[str, Any] = {"name": "Claims", "category": "grounding", "rules": {"action_on_violation": "block"}}


def bad(ctx: Context) -> None:
    ctx.record_retrieval_result(relevance_score=0.9, source="bad", age_days=1)


def saying(*answers: object) -> Any:
    """Return somebody who gives these answers, one after the other."""
    left = iter(answers)

    def ask(error: PolicyViolationError) -> object:
        assert str(error)
        return next(left)

    return ask


def approvals(ctx: Context) -> list[PolicyDecision]:
    return [decision for decision in ctx.decisions if decision.rule == "approval"]


def test_an_approved_call_goes_on_and_the_log_says_who_let_it() -> None:
    asked = []

    def approve(error: PolicyViolationError) -> ApprovalDecision:
        asked.append(error.decision.reason)
        return ApprovalDecision(approved=True, approver="ann", elapsed_seconds=1.5)

    with Context("a", policies=[GUARD], on_policy_block=approve) as ctx:
        bad(ctx)
        bad(ctx)

    assert ["Retrieved from blocked source 'bad'"] * 2 == asked
    assert ("success", False) == (ctx.status, ctx.should_stop)
    assert ["bypassed"] * 2 == [decision.status for decision in approvals(ctx)]
    assert "ann" in approvals(ctx)[0].reason
    assert ["allow", "block", "allow", "block", "allow", "allow"] == [decision.action for decision in ctx.decisions]


def test_the_function_is_not_run_again() -> None:
    effects = []

    @observe(agent_name="a", policies=[GUARD], on_policy_block=auto_approve)
    def answer(evidentia_ctx: Context | None = None) -> str:
        assert evidentia_ctx is not None
        effects.append("before")
        bad(evidentia_ctx)
        effects.append("after")
        return "done"

    assert "done" == answer()
    assert ["before", "after"] == effects


def test_an_approval_is_for_one_call_and_the_end_is_still_enforced() -> None:
    ask = saying(ApprovalDecision(approved=True, approver="ann"), ApprovalDecision(approved=False))

    error, ctx = violation_of(bad, policies=[GUARD, CLAIMS], on_policy_block=ask)

    assert ("Citations (0) below minimum (1)", "blocked") == (str(error), ctx.status)


def test_an_approval_after_a_block_that_was_caught_does_not_lift_it() -> None:
    ask = saying(ApprovalDecision(approved=False), ApprovalDecision(approved=True))
    with Context("a", policies=[GUARD, CLAIMS], on_policy_block=ask) as ctx:
        with pytest.raises(PolicyViolationError):
            bad(ctx)
        bad(ctx)

    assert "blocked" == ctx.status


def test_a_block_at_the_end_can_be_approved() -> None:
    with Context("a", policies=[CLAIMS], on_policy_block=auto_approve) as ctx:
        pass

    assert "success" == ctx.status
    assert ["bypassed"] == [decision.status for decision in approvals(ctx)]


@pytest.mark.parametrize("said", [ApprovalDecision(approved=False), ApprovalDecision(approved=True, timed_out=True)])
def test_what_is_not_approved_raises(said: ApprovalDecision) -> None:
    _, ctx = violation_of(bad, policies=[GUARD], on_policy_block=saying(said))

    assert "blocked" == ctx.status
    assert [] == approvals(ctx)


def test_whoever_fails_to_answer_approves_nothing() -> None:
    with pytest.raises(StopIteration), Context("a", policies=[GUARD], on_policy_block=saying()) as ctx:
        bad(ctx)

    assert "blocked" == ctx.status


def test_an_answer_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="on_policy_block"), Context("a", policies=[GUARD], on_policy_block=saying(True)) as ctx:
        bad(ctx)

    assert "blocked" == ctx.status


def test_approval_works_in_async_code() -> None:
    async def run() -> str:
        async with Context("a", policies=[GUARD], on_policy_block=auto_approve) as ctx:
            bad(ctx)
        return ctx.status

    assert "success" == asyncio.run(run())


@pytest.mark.parametrize(("typed", "approved"), [("y\n", True), (" YES \n", True), ("n\n", False), ("\n", False), ("", False)])
def test_asking_at_the_terminal(typed: str, approved: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001 - an expected value
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    rules = {"blocked_sources": ["\x1b[31mred"]}
    error, _ = violation_of(
        lambda ctx: ctx.record_retrieval_result(source="\x1b[31mred"), policies=[{"name": "G", "category": "retrieval", "rules": rules}]
    )

    said = prompt_approval(error)

    assert approved is said.approved is said.lets_go_on
    assert "\x1b" not in capsys.readouterr().out
    assert not auto_deny(error).lets_go_on
