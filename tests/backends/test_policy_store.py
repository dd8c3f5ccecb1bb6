"""Policies on disk: versions, names, conflicts, audit, and what other connections and later processes see of them."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_store_samples import MovedClock, body, policies_in

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME
from evidentia.contracts.control import PushAction
from evidentia.contracts.errors import BaseDamagedError, BaseVersionError, NotFoundError, PolicyConflictError, PolicyInvalidError
from evidentia.contracts.policies import ChangeKind, PolicyId

if TYPE_CHECKING:
    from pathlib import Path

HERE: dict[str, Any] = {"tenant": "default", "by": "ann"}


def test_nothing_is_written_before_the_first_change(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)

    assert () == policies.live(tenant="default")
    assert [] == list(policies.changes(tenant="default"))
    with pytest.raises(NotFoundError):
        policies.find("guard", tenant="default")
    with pytest.raises(NotFoundError):
        policies.remove(PolicyId("guard"), **HERE)
    assert PushAction.CREATED is policies.push([{"name": "a", "category": "retrieval"}], **HERE, is_dry=True)[0].action
    assert not (tmp_path / GOVERNANCE_NAME).exists()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    policies_in(tmp_path).put(body(), **HERE)

    assert 0o600 == (tmp_path / GOVERNANCE_NAME).stat().st_mode & 0o777


def test_a_new_policy_is_version_one_with_complete_rules(tmp_path: Path) -> None:
    stored = policies_in(tmp_path).put(body(), **HERE)

    assert 1 == stored.policy.version
    assert 10 == stored.policy.body.rules["max_chunks"]
    assert "ann" == stored.updated_by


def test_every_version_stays_readable(tmp_path: Path) -> None:
    clock = MovedClock()
    policies = policies_in(tmp_path, clock=clock)
    first = policies.put(body(), **HERE)
    clock.move(days=1)
    second = policies.put(body(rules={"min_relevance_score": 0.9}), **HERE, policy_id=first.policy.policy_id, expected=1)

    assert 2 == second.policy.version
    assert first.created_at == second.created_at < second.updated_at
    assert first == policies.find("guard", tenant="default", version=1)
    assert second == policies.find(first.policy.policy_id, tenant="default")
    assert [first, second] == list(policies.versions("guard", tenant="default"))
    assert first.policy.digest != second.policy.digest


def test_another_version_than_the_expected_is_a_conflict(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policy_id = policies.put(body(), **HERE).policy.policy_id
    policies.put(body(priority=5), **HERE, policy_id=policy_id)

    with pytest.raises(PolicyConflictError, match="version 2 is in force, not 1"):
        policies.put(body(priority=6), **HERE, policy_id=policy_id, expected=1)
    with pytest.raises(PolicyConflictError, match="version 2 is in force, not 1"):
        policies.remove(policy_id, **HERE, expected=1)
    assert 5 == policies.find("guard", tenant="default").policy.body.priority


def test_a_live_name_is_taken(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policies.put(body("a"), **HERE)
    other = policies.put(body("b"), **HERE)

    with pytest.raises(PolicyConflictError, match="taken"):
        policies.put(body("a"), **HERE)
    with pytest.raises(PolicyConflictError, match="taken"):
        policies.put(body("a"), **HERE, policy_id=other.policy.policy_id)
    with pytest.raises(PolicyConflictError, match="not in force"):
        policies.put(body("c"), **HERE, expected=3)
    assert ["a", "b"] == [each.policy.body.name for each in policies.live(tenant="default")]


def test_a_name_with_the_expected_version_is_its_next_version(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    first = policies.put(body(), **HERE, expected=0)

    second = policies.put(body(priority=1), **HERE, expected=1)

    assert (first.policy.policy_id, 2) == (second.policy.policy_id, second.policy.version)


def test_a_name_that_was_given_up_can_be_taken_again(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    renamed = policies.put(body("a"), **HERE).policy.policy_id
    policies.put(body("b"), **HERE, policy_id=renamed)

    again = policies.put(body("a"), **HERE).policy

    assert renamed != again.policy_id
    assert renamed == policies.find("b", tenant="default").policy.policy_id


def test_a_removed_policy_is_found_by_its_version_alone(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policy_id = policies.put(body(), **HERE).policy.policy_id
    removed = policies.remove(policy_id, tenant="default", by="bob")

    assert removed.is_removed
    assert () == policies.live(tenant="default")
    assert policies.find("guard", tenant="default", version=1).is_removed
    with pytest.raises(NotFoundError):
        policies.find(policy_id, tenant="default")
    with pytest.raises(NotFoundError):
        policies.remove(policy_id, **HERE)
    with pytest.raises(NotFoundError):
        policies.put(body(), **HERE, policy_id=policy_id)


def test_a_policy_that_comes_back_goes_on_counting(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    before = policies.put(body(), **HERE).policy
    policies.remove(before.policy_id, **HERE)

    after = policies.put(body(), **HERE).policy

    assert (before.policy_id, 2) == (after.policy_id, after.version)
    kinds = [change.change for change in policies.changes(tenant="default")]
    assert [ChangeKind.CREATED, ChangeKind.REMOVED, ChangeKind.CREATED] == kinds


def test_live_policies_stand_by_priority_then_name(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    for name, priority in (("c", 1), ("b", 100), ("a", 100)):
        policies.put(body(name, priority=priority), **HERE)

    assert ["c", "a", "b"] == [each.policy.body.name for each in policies.live(tenant="default")]


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policy_id = policies.put(body(), tenant="one", by="ann").policy.policy_id
    policies.put(body(), tenant="two", by="bob")

    with pytest.raises(NotFoundError):
        policies.find(policy_id, tenant="two")
    with pytest.raises(NotFoundError):
        policies.remove(policy_id, tenant="two", by="bob")
    assert [1, 1] == [len(policies.live(tenant=tenant)) for tenant in ("one", "two")]
    assert ["ann"] == [change.by for change in policies.changes(tenant="one")]


def test_a_bad_body_changes_nothing(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)

    with pytest.raises(PolicyInvalidError, match="min_chunk"):
        policies.put(body(rules={"min_chunk": 1}), **HERE)
    assert not (tmp_path / GOVERNANCE_NAME).exists()


def test_the_audit_is_read_page_by_page(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    for number in range(5):
        policies.put(body(f"p{number}"), **HERE)

    first = policies.changes(tenant="default", limit=2)
    rest = policies.changes(tenant="default", after=first[-1].seq)

    assert ["p0", "p1"] == [change.name for change in first]
    assert ["p2", "p3", "p4"] == [change.name for change in rest]


# --- push ---


def raw(name: str, **rules: object) -> dict[str, object]:
    return {"name": name, "category": "retrieval", "rules": rules}


def test_a_push_says_what_became_of_each(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policies.push([raw("a", max_chunks=3), raw("b", max_chunks=3)], **HERE)

    results = policies.push([raw("b", max_chunks=4), raw("c"), raw("a", max_chunks=3)], **HERE)

    expected = [("b", PushAction.UPDATED, 2), ("c", PushAction.CREATED, 1), ("a", PushAction.UNCHANGED, 1)]
    assert expected == [(each.name, each.action, each.version) for each in results]


def test_a_dry_push_foresees_what_a_push_does(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)
    policies.push([raw("a"), raw("b")], **HERE)
    policies.remove(PolicyId(policies.find("b", tenant="default").policy.policy_id), **HERE)
    pushed = [raw("a"), raw("b", max_chunks=2), raw("c")]

    foreseen = policies.push(pushed, **HERE, is_dry=True)

    assert ["a"] == [each.policy.body.name for each in policies.live(tenant="default")]
    assert foreseen == policies.push(pushed, **HERE)


def test_one_bad_body_in_a_push_changes_nothing_and_all_problems_are_told(tmp_path: Path) -> None:
    policies = policies_in(tmp_path)

    with pytest.raises(PolicyInvalidError) as caught:
        policies.push([raw("a"), raw("b", min_chunk=1), {"name": "c", "category": "retrievall"}, raw("a")], **HERE)

    paths = [problem.path for problem in caught.value.problems]
    assert ["policies[1].rules.min_chunk", "policies[2].category", "policies[3].name"] == paths
    assert () == policies.live(tenant="default")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["put", "remove"])), max_size=12))
def test_versions_count_up_without_gaps_whatever_happens(tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str]]) -> None:
    policies = policies_in(tmp_path_factory.mktemp("acts"))
    for name, act in acts:
        live = {each.policy.body.name: each.policy.policy_id for each in policies.live(tenant="default")}
        if act == "put":
            policies.put(body(name), **HERE, policy_id=live.get(name))
        elif name in live:
            policies.remove(live[name], **HERE)

    for name in dict(acts):
        puts = sum(1 for each in acts if each == (name, "put"))
        if puts:
            assert list(range(1, puts + 1)) == [each.policy.version for each in policies.versions(name, tenant="default")]


# --- others ---


def test_a_change_of_another_connection_is_seen_at_once(tmp_path: Path) -> None:
    here, there = policies_in(tmp_path), policies_in(tmp_path)
    here.put(body("a"), **HERE)
    known = here.live(tenant="default")

    assert known is here.live(tenant="default")
    there.put(body("b"), **HERE)
    assert ["a", "b"] == [each.policy.body.name for each in here.live(tenant="default")]


def test_of_two_writers_at_once_one_wins(tmp_path: Path) -> None:
    policy_id = policies_in(tmp_path).put(body(), **HERE).policy.policy_id
    barrier, outcomes = threading.Barrier(8), list[str]()

    def change(number: int) -> None:
        own = policies_in(tmp_path)
        barrier.wait()
        try:
            own.put(body(priority=number), **HERE, policy_id=policy_id, expected=1)
            outcomes.append("won")
        except PolicyConflictError:
            outcomes.append("lost")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["lost"] * 7 + ["won"] == sorted(outcomes)
    assert [1, 2] == [each.policy.version for each in policies_in(tmp_path).versions(policy_id, tenant="default")]


def create_many(directory: Path, prefix: str, count: int) -> None:
    policies = policies_in(directory)
    for number in range(count):
        policies.put(body(f"{prefix}{number}"), **HERE)


def test_processes_that_write_together_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=create_many, args=(tmp_path, prefix, 10)) for prefix in "ab"]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [0, 0] == [child.exitcode for child in children]
    assert 20 == len(policies_in(tmp_path).live(tenant="default"))
    assert list(range(1, 21)) == [change.seq for change in policies_in(tmp_path).changes(tenant="default")]


def put_and_die(directory: Path) -> None:
    import os

    policies_in(directory).put(body("kept"), **HERE)
    os._exit(9)


def test_what_was_answered_survives_a_killed_process(tmp_path: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=put_and_die, args=(tmp_path,))
    child.start()
    child.join()

    assert 9 == child.exitcode
    assert ["kept"] == [each.policy.body.name for each in policies_in(tmp_path).live(tenant="default")]


# --- damage ---


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE policies SET is_removed = 1",
        "UPDATE policies SET version = 1",
        "UPDATE policy_versions SET stored = replace(stored, '0.5', '0.1')",
        "DELETE FROM policy_versions WHERE version = 2",
    ],
)
def test_a_row_that_was_tampered_with_is_damage(tmp_path: Path, statement: str) -> None:
    policies = policies_in(tmp_path)
    policy_id = policies.put(body(), **HERE).policy.policy_id
    policies.put(body(priority=3), **HERE, policy_id=policy_id)
    policies._file.close()
    with sqlite3.connect(tmp_path / GOVERNANCE_NAME) as database:
        database.execute(statement.replace("replace(stored,", "CAST(replace(CAST(stored AS TEXT),").replace("'0.1')", "'0.1') AS BLOB)"))
    database.close()

    with pytest.raises(BaseDamagedError):
        policies.find(policy_id, tenant="default", version=2)
    with pytest.raises(BaseDamagedError):
        policies.live(tenant="default")


def test_a_file_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    policies_in(tmp_path).put(body(), **HERE)
    with sqlite3.connect(tmp_path / GOVERNANCE_NAME) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(BaseVersionError):
        policies_in(tmp_path).live(tenant="default")
