"""Starting runs: which policies are in force, for how long, and what the log is told of them."""

from __future__ import annotations

import threading

import msgspec
import pytest
from governed_parts import FACTS, body, document, governor, new_log, new_store, records_of

from evidentia.contracts.errors import NotFoundError, PolicyConflictError, PolicyInvalidError
from evidentia.contracts.policies import PolicyBody, PolicyScope
from evidentia.contracts.runs import PoliciesRecorded, RunEnded, RunFacts, RunId, RunStarted
from evidentia.governance.governor import CompiledPolicies


def _facts(run_id: str, **fields: str) -> RunFacts:
    return RunFacts(run_id=RunId(run_id), **{"agent_name": "rag-agent", **fields})  # type: ignore[arg-type]  # texts all of them


def _names(run: object) -> list[str]:
    return [policy.body.name for policy in run.policies.policies]  # type: ignore[attr-defined]  # a local run has them


def test_the_policies_of_the_store_and_those_given_are_both_in_force() -> None:
    store = new_store()
    store.put(body("Stored"))

    run = governor(store).start(FACTS, policies=[body("Given")])

    assert ["Given", "Stored"] == _names(run)


def test_a_given_policy_stands_beside_the_stored_one_of_its_name_and_cannot_loosen_it() -> None:
    store = new_store()
    store.put(body("Guard", min_relevance_score=0.95, action_on_low_relevance="block"))

    run = governor(store).start(FACTS, policies=[body("Guard", min_relevance_score=0.1)])
    (verdict,) = run.record(document(relevance_score=0.9))

    assert ["Guard", "Guard"] == _names(run)
    assert verdict.stops
    assert 2 == len({evaluation.policy_id for evaluation in verdict.evaluations})


def test_a_disabled_policy_and_one_of_another_tenant_are_not_in_force() -> None:
    store = new_store()
    store.put(PolicyBody(name="Off", category="retrieval", enabled=False))
    store.put(body("Elsewhere"), tenant="acme")

    assert [] == _names(governor(store).start(FACTS))
    assert ["Elsewhere"] == _names(governor(store).start(_facts("r-2", tenant="acme")))


def test_a_policy_out_of_scope_is_not_in_force() -> None:
    given = [PolicyBody(name="Others", category="retrieval", scope=PolicyScope(agents=("writer-*",)))]

    assert [] == _names(governor().start(FACTS, policies=given))
    assert ["Others"] == _names(governor().start(_facts("r-2", agent_name="writer-1"), policies=given))


def test_a_run_keeps_the_policies_it_began_with_and_the_next_one_has_the_new_ones() -> None:
    store = new_store()
    stored = store.put(body("Guard", min_relevance_score=0.5))
    governing = governor(store)
    before = governing.start(FACTS)

    store.put(body("Guard", min_relevance_score=0.99), policy_id=stored.policy.policy_id, expected=1)
    after = governing.start(_facts("r-2"))

    assert () == before.record(document(relevance_score=0.6))
    assert 1 == len(after.record(document(relevance_score=0.6)))
    assert before.policies.digest != after.policies.digest


def test_a_removed_policy_is_out_of_force_from_the_next_run_on() -> None:
    store = new_store()
    stored = store.put(body("Guard"))
    governing = governor(store)
    governing.start(FACTS)

    store.remove(stored.policy.policy_id)

    assert [] == _names(governing.start(_facts("r-2")))


def test_a_set_of_policies_is_compiled_once() -> None:
    compiled = CompiledPolicies()

    first = governor(compiled=compiled).start(FACTS, policies=[body("Guard")])
    second = governor(compiled=compiled).start(_facts("r-2"), policies=[body("Guard")])

    assert first.policies is second.policies


def test_the_log_holds_the_policies_once_before_the_first_run_under_them() -> None:
    log = new_log()
    governing = governor(log=log)

    governing.start(FACTS, policies=[body("Guard")])
    governing.start(_facts("r-2"), policies=[body("Guard")])
    governing.start(_facts("r-3"), policies=[body("Other")])

    calls = [record.entry.call for record in records_of(log)]
    assert [PoliciesRecorded, RunStarted, RunStarted, PoliciesRecorded, RunStarted] == [type(call) for call in calls]


def test_many_threads_that_start_at_once_record_the_policies_once() -> None:
    log = new_log()
    governing = governor(log=log)
    together = threading.Barrier(8)

    def start(number: int) -> None:
        together.wait()
        governing.start(_facts(f"r-{number}"), policies=[body("Guard")])

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    kinds = [type(record.entry.call) for record in records_of(log)]
    assert PoliciesRecorded is kinds[0]
    assert [RunStarted] * 8 == kinds[1:]


def test_the_beginning_is_decided_about() -> None:
    log = new_log()

    run = governor(log=log).start(FACTS, policies=[body("Guard"), body("Claims", "grounding")])

    assert ["Retrieval rules stored", "Grounding rules stored"] == [decision.reason for decision in run.decisions()]


def test_a_run_without_an_id_is_given_one() -> None:
    run = governor().start(RunFacts(run_id=RunId(""), agent_name="rag-agent"))

    assert run.facts.run_id.startswith("run-")


def test_every_problem_of_every_given_policy_is_named() -> None:
    given = [body("A", min_chunk=3), body("B", min_chunks=9, max_chunks=2), body("C")]

    with pytest.raises(PolicyInvalidError) as caught:
        governor().start(FACTS, policies=given)

    paths = [problem.path for problem in caught.value.problems]
    assert "policies[0].rules.min_chunk" in paths
    assert any(path.startswith("policies[1].rules") for path in paths)
    assert not any(path.startswith("policies[2]") for path in paths)


def test_two_given_policies_of_one_name_are_refused() -> None:
    with pytest.raises(PolicyInvalidError, match="given twice"):
        governor().start(FACTS, policies=[body("A"), body("A", min_chunks=2)])


def test_a_store_keeps_versions_and_says_who_changed_what() -> None:
    store = new_store()
    first = store.put(body("Guard"), by="ann")
    second = store.put(body("Guard", min_chunks=2), by="bob", policy_id=first.policy.policy_id, expected=1)
    store.remove(first.policy.policy_id, by="cleo", expected=2)

    assert 2 == second.policy.version
    assert first.created_at == second.created_at
    assert [] == list(store.live())
    assert 1 == store.find("Guard", version=1).policy.version
    assert ["created", "updated", "removed"] == [change.change.value for change in store.changes()]
    assert ["ann", "bob", "cleo"] == [change.by for change in store.changes()]
    with pytest.raises(NotFoundError):
        store.find("Guard")


def test_a_store_refuses_a_name_that_is_taken_and_a_version_that_is_not_in_force() -> None:
    store = new_store()
    stored = store.put(body("Guard"))

    with pytest.raises(PolicyConflictError):
        store.put(body("Guard"))
    with pytest.raises(PolicyConflictError):
        store.put(body("Guard"), policy_id=stored.policy.policy_id, expected=4)
    with pytest.raises(PolicyConflictError):
        store.remove(stored.policy.policy_id, expected=4)
    with pytest.raises(NotFoundError):
        store.put(body("New"), policy_id=msgspec.convert("p-none", type(stored.policy.policy_id)))


def test_a_name_that_was_removed_can_be_used_again() -> None:
    store = new_store()
    stored = store.put(body("Guard"))
    store.remove(stored.policy.policy_id)

    again = store.put(body("Guard"))

    assert 2 == again.policy.version
    assert ["Guard"] == [each.policy.body.name for each in store.live()]


def test_a_run_in_shadow_stops_nothing_and_writes_everything() -> None:
    run = governor().start(FACTS, policies=[body("Guard", blocked_sources=["bad"])], is_enforced=False)

    (verdict,) = run.record(document(source="bad"))
    run.finish(RunEnded())

    assert not verdict.stops
    assert "shadow" == run.decisions()[1].status.value
