"""The governance floor in process: what a request is raised to, what is withheld, what is refused, and what the log says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import Principal, connect
from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import BelowFloorError, PolicyViolationError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.runs import CheckBypassed, RetrievedDocument, RunEnded, RunFacts, RunId, StepCall
from evidentia.contracts.vocabulary import Classification
from evidentia.governance.decision_queries import decisions
from evidentia.governance.decision_replay import replay
from evidentia.governance.governed_runs import APPROVAL
from evidentia.governance.log_maintenance import verify
from evidentia.wiring.governance_runtime import GovernanceRuntime, PrincipalGovernor
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evidentia import Base

    Opened = Callable[..., Base]

ASK = {"mode": "lexical", "latency_deadline_ms": 20_000}
GUARD = {
    "name": "Guard",
    "category": "retrieval",
    "rules": {"min_relevance_score": 0.0, "max_source_age_days": 90, "min_chunks": 3, "action_on_chunk_violation": "block"},
    "compat": "literal",
}
OLD = "archive:old.md"


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Opened:
    """Return what opens a base with a stale document and a policy against it, under settings, as somebody or as the owner."""
    for name, text in (("handbook", "Signing keys rotate every month."), ("archive", "Signing keys rotated every year.")):
        (tmp_path / name).mkdir()
        dated = "---\nupdated_at: 2020-01-01\n---\n" if name == "archive" else ""
        (tmp_path / name / ("old.md" if dated else "keys.md")).write_text(f"{dated}{text}\n")
        (tmp_path / name / "prices.csv").write_text(f"item,price\n{name},4\n")
    with connect(tmp_path / "base", init=True) as base:
        for name in ("handbook", "archive"):
            base.ingest([tmp_path / name], source=name, embed=False)

    def open_with(settings: str, *, name: str = "ada", policy: object = GUARD) -> Base:
        (tmp_path / "base" / SETTINGS_NAME).write_text(settings)
        with connect(tmp_path / "base") as owner:
            owner.add_policy(policy)  # type: ignore[arg-type]
        who = Principal(principal_id=PrincipalId(name), clearance=Classification.INTERNAL) if name else None
        base = connect(tmp_path / "base", principal=who)
        request.addfinalizer(base.close)
        return base

    return open_with


def said(base: Base) -> list[tuple[str, str, str]]:
    """Return what the log says that was got around, or stopped: the rule, the action and what it was about."""
    governor = base.governor()
    governor = governor._control if isinstance(governor, PrincipalGovernor) else governor
    assert isinstance(governor, GovernanceRuntime)
    governor.log.flush()
    found = decisions(governor.log, limit=10_000).decisions
    return [
        (each.rule, each.action.value, str(each.inputs.get("source", "")))
        for each in found
        if each.status is DecisionStatus.BYPASSED or each.action.stops
    ]


def floor_of(word: str) -> str:
    return f'[governance]\nfloor = "{word}"\n'


LENIENT = {**GUARD, "rules": {"min_relevance_score": 0.0, "max_source_age_days": 90}}


def test_a_request_below_the_floor_is_answered_at_it_says_so_and_can_be_verified_and_replayed(opened: Opened) -> None:
    base = opened(floor_of("filter"), policy=LENIENT)
    answer = base.retrieve("signing keys", governance="off", **ASK)

    assert ["handbook:keys.md"] == [each.document_id for each in answer.fragments]
    assert ["governance: 'off' was asked for, and the floor here is 'filter'"] == [each for each in answer.degraded if "floor" in each]
    assert base.verify(answer).ok
    assert base.replay(answer.receipt_id or "").is_same
    assert ("governance_floor", "warn", "") in said(base)


def test_a_request_that_asks_for_nothing_or_for_more_is_no_attempt(opened: Opened) -> None:
    base = opened(floor_of("filter"), policy=LENIENT)
    plain = base.retrieve("signing keys", **ASK)
    with pytest.raises(PolicyViolationError):
        base.retrieve("signing keys", governance="enforce", **ASK)

    assert ["handbook:keys.md"] == [each.document_id for each in plain.fragments]
    assert [] == [each for each in plain.degraded if "floor" in each]
    assert "governance_floor" not in {rule for rule, _, _ in said(base)}


def test_under_a_floor_a_document_is_as_old_as_it_is_now_and_facets_are_not_told(opened: Opened) -> None:
    base = opened(floor_of("filter"), policy=LENIENT)
    answer = base.retrieve("signing keys", as_of="2020-01-02T00:00:00Z", facets=("source_id",), **ASK)

    assert ["handbook:keys.md"] == [each.document_id for each in answer.fragments]
    assert {} == answer.facets
    assert 2 == sum(each.startswith("governance:") for each in answer.degraded)


def test_off_without_a_floor_is_a_recorded_bypass_where_a_policy_is_in_scope(opened: Opened) -> None:
    base = opened("", policy=LENIENT)

    assert 2 == len(base.retrieve("signing keys", governance="off", **ASK).fragments)
    assert [("governance_floor", "allow", "")] == said(base)


@pytest.mark.parametrize("word", ["filter", "enforce"])
def test_what_is_asked_for_by_name_is_refused_and_listings_leave_it_out_whatever_counts_say(opened: Opened, word: str) -> None:
    base = opened(floor_of(word))
    for ask in (base.chunks, base.verify):
        with pytest.raises(PolicyViolationError, match="exceeds max"):
            ask(OLD)

    assert [each for each in base.documents() if each[0] == OLD] == []
    assert "handbook:keys.md" in {each[0] for each in base.documents()}
    assert 1 == len(base.chunks("handbook:keys.md"))
    assert {("max_source_age_days", "block", OLD)} == set(said(base))


def test_a_page_of_documents_is_as_long_as_it_was_asked_for(opened: Opened) -> None:
    base = opened(floor_of("filter"), policy={**LENIENT, "rules": {"blocked_sources": [OLD, "archive:prices.csv"]}})

    assert ["handbook:keys.md", "handbook:prices.csv"] == [each[0] for each in base.documents(limit=2)]
    assert ["handbook:prices.csv"] == [each[0] for each in base.documents(after="handbook:keys.md", limit=2)]


def test_a_listing_writes_down_a_hundred_documents_and_how_many_more(opened: Opened, tmp_path: Path) -> None:
    with connect(tmp_path / "base") as owner:
        (tmp_path / "many").mkdir()
        for number in range(120):
            (tmp_path / "many" / f"{number}.md").write_text(f"Page {number}.\n")
        owner.ingest([tmp_path / "many"], source="many", embed=False)
    base = opened(floor_of("filter"), policy={**LENIENT, "rules": {"allowed_collections": ["handbook"]}})
    base.documents()
    governor = base.governor()
    governor = governor._control if isinstance(governor, PrincipalGovernor) else governor
    assert isinstance(governor, GovernanceRuntime)
    governor.log.flush()
    found = decisions(governor.log, limit=1_000).decisions

    assert 100 == sum(each.action.stops for each in found)
    assert [{"more": 22}] == [each.entry.call.attributes for each in governor.log.records() if isinstance(each.entry.call, StepCall)]
    assert replay(governor.log).ok


def test_a_base_that_another_base_asks_keeps_to_its_own_floor(opened: Opened, tmp_path: Path) -> None:
    shut = opened(floor_of("filter"), policy=LENIENT)
    with connect(tmp_path / "front", init=True) as owner:
        owner.add_source({"source_id": "back", "source_type": "inverted_index", "connection": {"kind": "base", "address": str(shut.path)}})
    who = Principal(principal_id=PrincipalId("ada"), clearance=Classification.INTERNAL)
    with connect(tmp_path / "front", principal=who) as front:
        found = front.retrieve("signing keys", governance="off", **ASK).fragments

    assert ["Signing keys rotate every month."] == [each.content.strip() for each in found if "keys" in each.content]


def test_tables_that_policies_stop_take_no_part_in_answers(opened: Opened) -> None:
    policy = {**LENIENT, "rules": {"blocked_sources": ["archive:prices.csv"]}}
    base = opened(floor_of("filter"), policy=policy)
    answer = base.ask_tables("price of archive")

    assert {"handbook:prices.csv"} == {each.document_id for each in (*answer.tables, *base.tables())}
    assert not any("archive" in str(row) for row in answer.rows)


def test_an_old_answer_is_replayed_without_what_the_floor_withholds_today(opened: Opened) -> None:
    before = opened("", policy={**LENIENT, "enabled": False})
    receipt = before.retrieve("signing keys", **ASK).receipt_id or ""
    filtered = opened(floor_of("filter"), policy=LENIENT).replay(receipt)

    assert (True, 1, ["handbook:keys.md"]) == (
        filtered.is_same,
        filtered.hidden,
        [each.document_id for each in filtered.response.fragments],
    )
    with pytest.raises(PolicyViolationError):
        opened(floor_of("enforce"), policy=LENIENT).replay(receipt)


def test_under_annotate_everything_is_handed_out_and_what_policies_say_is_written_down(opened: Opened) -> None:
    base = opened(floor_of("annotate"), policy=LENIENT)
    governor = base.governor()
    governor = governor._control if isinstance(governor, PrincipalGovernor) else governor
    assert isinstance(governor, GovernanceRuntime)

    assert 1 == len(base.chunks(OLD))
    governor.log.flush()
    found = decisions(governor.log, limit=100).decisions
    assert [("list_chunks", OLD, False)] == [
        (each.inputs["batch"], each.inputs["source"], each.is_enforced) for each in found if each.kind == "retrieval"
    ]


def test_the_owner_is_free_unless_the_settings_bind_the_owner(opened: Opened) -> None:
    free = opened(floor_of("enforce"), name="", policy=LENIENT)
    assert 1 == len(free.chunks(OLD))
    assert 2 == len(free.retrieve("signing keys", governance="off", **ASK).fragments)

    bound = opened(floor_of("enforce") + "binds_owner = true\n", name="", policy=LENIENT)
    with pytest.raises(PolicyViolationError):
        bound.chunks(OLD)
    with pytest.raises(PolicyViolationError):
        bound.retrieve("signing keys", governance="off", **ASK)


def test_runs_of_a_bound_owner_are_enforced_by_stored_policies_and_approve_nothing(opened: Opened) -> None:
    base = opened(floor_of("enforce") + "binds_owner = true\n", name="", policy=LENIENT)
    governor = base.governor()
    facts = RunFacts(run_id=RunId(""), agent_name="clerk")
    with pytest.raises(BelowFloorError, match="field 'is_enforced': the run is not to be enforced, and the floor here is 'enforce'"):
        governor.start(facts, is_enforced=False)
    with pytest.raises(BelowFloorError, match="field 'policies'"):
        governor.start(facts, policies=[LENIENT])  # type: ignore[list-item]
    run = governor.start(facts)
    assert any(each.stops for each in run.record(RetrievedDocument(source=OLD, relevance_score=1.0, age_days=400)))
    with pytest.raises(BelowFloorError, match="does not approve for itself"):
        run.record(CheckBypassed(what=APPROVAL, problem="approved by 'me'"))
    run.finish(RunEnded())

    assert 3 == sum(rule == "governance_floor" and action == "block" for rule, action, _ in said(base))


def test_under_annotate_a_run_may_be_unenforced_and_bring_policies_and_both_are_recorded(opened: Opened) -> None:
    base = opened(floor_of("annotate") + "binds_owner = true\n", name="", policy=LENIENT)
    run = base.governor().start(
        RunFacts(run_id=RunId(""), agent_name="clerk"),
        policies=[{**LENIENT, "name": "mine"}],  # type: ignore[list-item]
        is_enforced=False,
    )
    run.finish(RunEnded())

    assert [("governance_floor", "allow", "")] * 2 == said(base)


def test_a_conflict_with_what_is_withheld_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Signing keys are rotated every 30 days.\n")
    (tmp_path / "note.md").write_text("Signing keys are rotated every 90 days.\n")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "policy.md"], source="policies", authority="canonical", embed=False)
        base.ingest([tmp_path / "note.md"], source="notes", authority="user", embed=False)
        base.add_policy({**LENIENT, "rules": {"min_relevance_score": 0.0, "blocked_sources": ["notes:note.md"]}})
        question = "how often are signing keys rotated?"
        told = base.retrieve(question, **ASK)
        withheld = [base.retrieve(question, governance="filter", limit=limit, **ASK) for limit in (1, 10)]

        assert ["90 days"] == [value for each in told.conflicts for value in each.losing_values]
        for answer in withheld:
            assert () == answer.conflicts
            assert "90 days" not in str(answer.to_dict())
            assert base.replay(answer.receipt_id or "").is_same


def test_what_a_source_says_in_a_trial_passes_the_policies(opened: Opened) -> None:
    class Wiki:
        def retrieve(self, query: str) -> list[dict[str, str]]:
            return [{"id": each, "content": f"{each} on {query}."} for each in ("open", "shut")]

    policy = {**LENIENT, "rules": {"min_relevance_score": 0.0, "blocked_sources": ["wiki:shut"]}}
    for word in ("filter", "enforce"):
        base = opened(floor_of(word) + "binds_owner = true\n", name="", policy=policy)
        base.add_source({"source_id": "wiki", "source_type": "api"}, Wiki())
        if word == "filter":
            assert ["wiki:open"] == [each.document_id for each in base.test_source("wiki", "keys").candidates]
        else:
            with pytest.raises(PolicyViolationError):
                base.test_source("wiki", "keys")


def test_what_was_recorded_can_be_decided_again_and_the_log_verifies(opened: Opened) -> None:
    base = opened(floor_of("filter"))
    base.documents()
    base.retrieve("signing keys", governance="off", **ASK)
    with pytest.raises(PolicyViolationError):
        base.chunks(OLD)
    governor = base.governor()
    governor = governor._control if isinstance(governor, PrincipalGovernor) else governor
    assert isinstance(governor, GovernanceRuntime)
    governor.log.flush()
    report = replay(governor.log)

    assert verify(governor.log).ok
    assert report.ok, report.mismatches
