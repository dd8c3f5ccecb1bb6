"""While a control plane is out of reach runs go on, by what was last seen from it, and it hears of everything when it is back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia.agents import Context, PolicyViolationError, auto_approve
from evidentia.agents.governors import MAX_KEPT, MAX_UNSENT, FailoverGovernor
from evidentia.contracts.errors import ServiceReplyError, ServiceUnavailableError
from evidentia.contracts.judging import NO_TEXTS
from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from memory_policies import MemoryPolicies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.policies import StoredPolicy
    from evidentia.contracts.ports import GovernedRun
    from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts

GUARD = PolicyBody(
    name="Guard",
    category="retrieval",
    rules={"blocked_sources": ["bad"], "min_chunks": 0, "max_chunks": 3, "action_on_chunk_violation": "block"},
)
GIVEN: dict[str, Any] = {"name": "Given", "category": "retrieval", "rules": {"blocked_sources": ["worse"], "max_chunks": 100_000}}


class ServerContext:
    """A control plane that can be out of reach, and refuses when it is told to."""

    def __init__(self, *bodies: PolicyBody) -> None:
        clock, entropy = SteppingClock(), RepeatableEntropy()
        self.policies = MemoryPolicies(clock=clock)
        for body in bodies:
            self.policies.put(body)
        self.log = MemoryLog(entropy=entropy)
        self._governor = LocalGovernor(self.policies, self.log, clock=clock, entropy=entropy)
        self.is_down = False
        self.refuses = False
        self.asked = 0

    def reach(self) -> None:
        """Count who asks, and fail when it is out of reach."""
        self.asked += 1
        if self.refuses:
            raise ServiceReplyError("401")
        if self.is_down:
            raise ServiceUnavailableError("no answer")

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return its policies."""
        self.reach()
        return self.policies.live(tenant=tenant)

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> PlaneRun:
        """Start a run."""
        self.reach()
        return PlaneRun(self, self._governor.start(facts, policies=policies, is_enforced=is_enforced))

    def kinds(self) -> list[str]:
        """Return what its log holds."""
        return [str(type(record.entry.call).__struct_config__.tag) for record in self.log.records()]


class PlaneRun:
    """A run at the plane."""

    def __init__(self, plane: ServerContext, run: GovernedRun) -> None:
        self._plane = plane
        self._run = run

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._run.facts

    def record(self, call: AnyCall, *, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> Sequence[Verdict]:
        """Record a call."""
        self._plane.reach()
        return self._run.record(call, text=text, texts=texts)

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """End the run."""
        self._plane.reach()
        return self._run.finish(end, text=text)

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided."""
        self._plane.reach()
        return self._run.decisions()


class Behind:
    """A base that stands for a plane."""

    def __init__(self, plane: ServerContext, *, retry_ns: int = 0) -> None:
        self._governor = FailoverGovernor(plane, clock=SteppingClock(), entropy=RepeatableEntropy(), retry_ns=retry_ns)

    def governor(self, *, durable: bool = False) -> FailoverGovernor:
        """Return who governs."""
        del durable
        return self._governor


def document(ctx: Context, source: str = "a.pdf") -> None:
    ctx.record_retrieval_result(relevance_score=0.9, source=source, age_days=1)


def bypasses(ctx: Context) -> list[str]:
    return [decision.reason for decision in ctx.decisions if decision.status == "bypassed"]


def test_a_plane_within_reach_decides() -> None:
    plane = ServerContext(GUARD)
    with pytest.raises(PolicyViolationError) as caught, Context("a", base=Behind(plane)) as ctx:
        document(ctx, "bad")

    assert caught.value.decision == ctx.decisions[1]
    assert ["policies", "run", "retrieval", "end"] == plane.kinds()


def test_a_plane_that_was_never_seen_leaves_the_policies_given_with_the_run() -> None:
    plane = ServerContext(GUARD)
    plane.is_down = True
    with Context("a", base=Behind(plane), policies=[GIVEN]) as ctx:
        document(ctx, "bad")
        with pytest.raises(PolicyViolationError, match="worse"):
            document(ctx, "worse")

    assert ["Check bypassed: control_plane (no answer)"] == bypasses(ctx)
    assert "blocked" == ctx.status


def test_a_plane_that_was_seen_goes_on_deciding_by_its_last_policies() -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane)
    with Context("a", base=base):
        pass
    plane.is_down = True

    with pytest.raises(PolicyViolationError, match="bad"), Context("b", base=base) as ctx:
        document(ctx, "bad")

    assert ["Check bypassed: control_plane (no answer)"] == bypasses(ctx)


def test_a_run_that_loses_the_plane_goes_on_with_its_counts() -> None:
    plane = ServerContext(GUARD)
    with Context("a", base=Behind(plane)) as ctx:
        document(ctx)
        document(ctx)
        plane.is_down = True
        document(ctx)
        with pytest.raises(PolicyViolationError, match=r"Retrieved chunks \(4\) exceeds max \(3\)"):
            document(ctx)

    assert 1 == len(bypasses(ctx))


def test_the_plane_hears_of_everything_when_it_is_back() -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane)
    with Context("a", base=base) as ctx:
        document(ctx)
        plane.is_down = True
        document(ctx)
        ctx.record_step("think")
        plane.is_down = False
        ctx.flush()
        assert ["policies", "run", "retrieval", "retrieval", "bypass", "step"] == plane.kinds()
        document(ctx)

    assert ["policies", "run", "retrieval", "retrieval", "bypass", "step", "retrieval", "end"] == plane.kinds()


def test_a_run_that_began_and_ended_without_the_plane_is_sent_with_the_next() -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane)
    plane.is_down = True
    with Context("first", base=base) as first:
        document(first)
    plane.is_down = False
    with Context("second", base=base) as second:
        pass

    records = list(plane.log.records())
    sent = [type(record.entry.call).__struct_config__.tag for record in records if record.entry.run_id == first.run_id]
    assert ["run", "bypass", "retrieval", "end"] == sent
    assert second.run_id in {record.entry.run_id for record in records}


@pytest.mark.parametrize(("is_seen", "is_enforced"), [(False, False), (True, True)])
def test_the_plane_does_not_claim_to_have_stopped_what_went_on_without_its_policies(*, is_seen: bool, is_enforced: bool) -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane)
    if is_seen:
        with Context("before", base=base):
            pass
    plane.is_down = True
    with Context("first", base=base) as first:
        try:
            document(first, "bad")
        except PolicyViolationError:
            assert is_seen
    plane.is_down = False
    with Context("second", base=base):
        pass

    verdicts = [verdict for record in plane.log.records() if record.entry.run_id == first.run_id for verdict in record.entry.verdicts]
    blocks = [verdict.is_enforced for verdict in verdicts if verdict.decisive.action == "block"]
    assert [is_enforced] == blocks
    assert ("blocked" if is_enforced else "success") == first.status


def test_a_closed_posture_stops_the_call() -> None:
    closed = PolicyBody(name="Closed", category="retrieval", posture={"control_plane": Posture.CLOSED}, rules={"min_chunks": 0})
    plane = ServerContext(closed, GUARD)
    with Context("a", base=Behind(plane)) as ctx:
        plane.is_down = True
        with pytest.raises(PolicyViolationError, match="control_plane") as caught:
            document(ctx)

    assert ("control_plane", "bypassed", "block") == (
        caught.value.decision.rule,
        caught.value.decision.status,
        caught.value.decision.action,
    )
    assert "blocked" == ctx.status


def test_a_closed_posture_of_a_policy_given_with_the_run_stops_it_at_its_beginning() -> None:
    closed: dict[str, Any] = {"name": "Closed", "category": "retrieval", "posture": {"control_plane": "closed"}}
    plane = ServerContext(GUARD)
    base = Behind(plane)
    plane.is_down = True

    with pytest.raises(PolicyViolationError, match="control_plane"), Context("a", base=base, policies=[closed]):
        pass

    plane.is_down = False
    base.governor().send_unsent()
    assert ["run", "bypass", "end"] == plane.kinds()[1:]


def test_a_plane_out_of_reach_is_a_warning_for_the_agent() -> None:
    plane = ServerContext(GUARD)
    with Context("a", base=Behind(plane)) as ctx:
        plane.is_down = True
        document(ctx)
        offered = ctx.feedback_text()

    assert "- Check bypassed: control_plane (no answer)" == offered


def test_an_open_posture_goes_on_without_the_policies_of_the_plane() -> None:
    opened = PolicyBody(name="Guard", category="retrieval", rules=GUARD.rules, posture={"control_plane": Posture.OPEN})
    plane = ServerContext(opened)
    with Context("a", base=Behind(plane)) as ctx:
        plane.is_down = True
        document(ctx, "bad")

    assert "success" == ctx.status
    assert 1 == len(bypasses(ctx))


def test_a_plane_that_refuses_is_not_out_of_reach() -> None:
    plane = ServerContext(GUARD)
    plane.refuses = True

    with pytest.raises(ServiceReplyError), Context("a", base=Behind(plane)):
        pass


def test_what_is_kept_has_a_limit_and_the_plane_is_told() -> None:
    plane = ServerContext()
    base = Behind(plane)
    plane.is_down = True
    with Context("a", base=base, policies=[GIVEN]) as ctx:
        for _ in range(MAX_KEPT + 5):
            document(ctx)
    plane.is_down = False
    with Context("b", base=base):
        pass

    sent = [record.entry.call for record in plane.log.records() if record.entry.run_id == ctx.run_id]
    assert "6 calls were dropped" in str(sent)
    assert MAX_KEPT == sum(type(call).__struct_config__.tag == "retrieval" for call in sent)


def test_approval_works_while_the_plane_is_out_of_reach() -> None:
    plane = ServerContext(GUARD)
    with Context("a", base=Behind(plane), on_policy_block=auto_approve) as ctx:
        plane.is_down = True
        document(ctx, "bad")

    assert "success" == ctx.status


def test_a_plane_that_gave_no_answer_is_not_asked_again_at_once() -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane, retry_ns=10**18)
    plane.is_down = True
    for _ in range(5):
        with Context("a", base=base) as ctx:
            document(ctx)

    assert 1 == plane.asked
    plane.is_down = False
    ctx.flush()
    assert 5 == plane.kinds().count("end")


def test_one_failure_is_enough_to_stop_sending() -> None:
    plane = ServerContext(GUARD)
    base = Behind(plane)
    plane.is_down = True
    for _ in range(5):
        with Context("a", base=base):
            pass
    before = plane.asked
    with Context("a", base=base):
        pass

    assert 2 == plane.asked - before


def test_runs_that_are_kept_have_a_limit_and_the_plane_is_told() -> None:
    plane = ServerContext()
    base = Behind(plane)
    plane.is_down = True
    for _ in range(MAX_UNSENT + 3):
        with Context("a", base=base):
            pass
    plane.is_down = False
    with Context("last", base=base) as ctx:
        pass

    assert ["Check bypassed: control_plane (3 runs were dropped)"] == bypasses(ctx)
    assert MAX_UNSENT + 1 == plane.kinds().count("end")
