"""Runs under the policies of a real base: in its directory, open, and behind a control plane on a socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from contexts_at_work import violation_of

from evidentia import aconnect, connect
from evidentia.agents import Context, PolicyViolationError, auto_approve
from evidentia.agents.governors import BASE_VARIABLE, TOKEN_VARIABLE
from evidentia.contracts.control import Role
from serving.rest_planes import SEED_BODY, serving

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.agents.governors import AnyBase

GUARD: dict[str, Any] = {**SEED_BODY, "scope": {}, "rules": {**SEED_BODY["rules"], "blocked_sources": ["bad"], "min_chunks": 0}}
FIELDS = ("kind", "phase", "policy_name", "rule", "action", "reason", "metadata", "status", "is_enforced")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with connect(tmp_path / "base", init=True) as base:
        base.add_policy(GUARD)
    return tmp_path / "base"


def work(ctx: Context) -> None:
    for source, score in (("a.pdf", 0.9), ("b.pdf", 0.3), ("bad", 0.99)):
        ctx.record_retrieval_result(relevance_score=score, source=source, collection="knowledge_base", age_days=14)


def told(ctx: Context) -> list[tuple[object, ...]]:
    return [tuple(getattr(decision, field) for field in FIELDS) for decision in ctx.decisions]


def expected() -> list[tuple[object, ...]]:
    """Return what a run in memory decides."""
    return told(violation_of(work, policies=[GUARD])[1])


def check(base: AnyBase | None, **fields: Any) -> Context:
    error, ctx = violation_of(work, base=base, **fields)
    assert error.decision in ctx.decisions
    assert expected() == told(ctx)
    return ctx


@pytest.mark.parametrize("durable", [False, True])
def test_a_directory(directory: Path, durable: bool) -> None:  # noqa: FBT001 - a case
    ctx = check(str(directory), durable=durable)

    assert all(decision.seq > 0 for decision in ctx.decisions)
    assert 4 == len({decision.hash for decision in ctx.decisions}) - 1


def test_a_directory_that_the_environment_names(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASE_VARIABLE, str(directory))

    check(None)


def test_an_open_base(directory: Path) -> None:
    with connect(directory) as base:
        check(base)


def test_an_open_async_base(directory: Path) -> None:
    async def run() -> Context:
        base = await aconnect(directory)
        try:
            async with Context("a", base=base) as ctx:
                with pytest.raises(PolicyViolationError):
                    work(ctx)
            assert ctx.decisions
            return ctx
        finally:
            await base.close()

    assert "blocked" == asyncio.run(run()).status


def test_a_policy_that_changes_is_for_the_next_run(directory: Path) -> None:
    with connect(directory) as base:
        with Context("a", base=base) as before:
            base.add_policy({**GUARD, "rules": {"min_chunks": 0, "blocked_sources": ["a.pdf"]}})
            before.record_retrieval_result(relevance_score=0.9, source="a.pdf", collection="knowledge_base", age_days=1)
        error, _ = violation_of(work, base=base)

    assert "Retrieved from blocked source 'a.pdf'" == str(error)


def test_a_control_plane(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(directory) as plane:
        monkeypatch.setenv(TOKEN_VARIABLE, plane.token(Role.AGENT))
        check(plane.url)


def test_a_control_plane_takes_approvals(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(directory) as plane:
        monkeypatch.setenv(TOKEN_VARIABLE, plane.token(Role.AGENT))
        with Context("a", base=plane.url, on_policy_block=auto_approve) as ctx:
            work(ctx)
        decisions = ctx.decisions

    assert "success" == ctx.status
    assert ["approval"] == [decision.rule for decision in decisions if decision.status == "bypassed"]


def test_a_control_plane_that_goes_away(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(directory) as plane:
        monkeypatch.setenv(TOKEN_VARIABLE, plane.token(Role.AGENT))
        ctx = Context("a", base=plane.url)
        ctx.__enter__()
        ctx.record_retrieval_result(relevance_score=0.9, source="a.pdf", collection="knowledge_base", age_days=14)
    with pytest.raises(PolicyViolationError):
        ctx.record_retrieval_result(relevance_score=0.9, source="bad", collection="knowledge_base", age_days=14)
    ctx.__exit__(None, None, None)

    assert "blocked" == ctx.status
    assert ["control_plane"] == [decision.rule for decision in ctx.decisions if decision.status == "bypassed"]
