"""Policies over a real socket: the seed's body, versions, conditions, pushes, pages and every refusal."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.wiring.embedded import create
from serving.rest_planes import SEED_BODY, Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("starlette", reason="the extra `server` is not installed")

TENANTS = count(1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it."""
    return shared.within(f"t{next(TENANTS)}")


def created(plane: Served, **fields: Any) -> dict[str, Any]:
    reply = plane.admin.post("/v1/policies/", json={**SEED_BODY, **fields})
    assert 201 == reply.status_code, reply.text
    return dict(reply.json())


@pytest.mark.parametrize("path", ["/v1/policies/", "/v1/policies"])
def test_the_seeds_body_makes_a_policy(plane: Served, path: str) -> None:
    reply = plane.admin.post(path, json=SEED_BODY)

    stored = reply.json()
    assert 201 == reply.status_code
    assert '"1"' == reply.headers["etag"]
    assert f"/v1/policies/{stored['policy']['policy_id']}" == reply.headers["location"]
    assert 0.75 == stored["policy"]["body"]["rules"]["min_relevance_score"]
    assert {"agents": ["rag-agent"]} == stored["policy"]["body"]["scope"]
    assert stored["updated_by"].startswith("a admin (")


def test_a_policy_is_found_by_id_and_by_name(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]

    by_id, by_name = plane.reader.get(f"/v1/policies/{policy_id}"), plane.reader.get("/v1/policies/RAG%20Quality%20Guard/")

    assert 200 == by_id.status_code == by_name.status_code
    assert by_id.json() == by_name.json()


def test_a_bad_policy_is_told_every_field_and_the_nearest_name(plane: Served) -> None:
    reply = plane.admin.post("/v1/policies", json={**SEED_BODY, "rules": {"min_chunk": 1, "max_chunks": 0}, "scope": {"agent": ["x"]}})

    error = reply.json()["error"]
    problems = {each["path"]: each for each in error["problems"]}
    assert 422 == reply.status_code
    assert "policy_invalid" == error["code"]
    assert {"rules.min_chunk", "rules.max_chunks", "scope.agent"} == set(problems)
    assert "min_chunks" == problems["rules.min_chunk"]["suggestion"]
    assert "agents" == problems["scope.agent"]["suggestion"]


def test_a_name_that_is_taken_is_a_conflict(plane: Served) -> None:
    created(plane)

    reply = plane.admin.post("/v1/policies", json=SEED_BODY)

    assert (409, "policy_conflict") == (reply.status_code, reply.json()["error"]["code"])


def test_put_replaces_and_keeps_the_versions(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]

    replaced = plane.admin.put(f"/v1/policies/{policy_id}", json={**SEED_BODY, "priority": 7}, headers={"if-match": '"1"'})

    assert (200, '"2"') == (replaced.status_code, replaced.headers["etag"])
    versions = plane.reader.get(f"/v1/policies/{policy_id}/versions").json()["versions"]
    assert [(1, 100), (2, 7)] == [(each["policy"]["version"], each["policy"]["body"]["priority"]) for each in versions]
    assert 100 == plane.reader.get(f"/v1/policies/{policy_id}?version=1").json()["policy"]["body"]["priority"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_another_version_in_if_match_is_refused(plane: Served, method: str) -> None:
    policy_id = created(plane)["policy"]["policy_id"]
    body = None if method == "DELETE" else SEED_BODY

    for tag in ('"2"', '"x"', "nonsense", 'W/"7", "9"'):
        reply = plane.admin.request(method, f"/v1/policies/{policy_id}", json=body, headers={"if-match": tag})

        assert (412, "version_changed") == (reply.status_code, reply.json()["error"]["code"])
    assert '"1"' == plane.admin.get(f"/v1/policies/{policy_id}").headers["etag"]


def test_without_a_condition_or_with_one_that_holds_the_change_is_made(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]

    conditions: list[dict[str, str]] = [{}, {"if-match": "*"}, {"if-match": '"0", W/"3"'}]
    replies = [
        plane.admin.patch(f"/v1/policies/{policy_id}", json={"priority": number}, headers=headers)
        for number, headers in enumerate(conditions)
    ]

    assert ['"2"', '"3"', '"4"'] == [reply.headers["etag"] for reply in replies]


def test_patch_changes_what_is_named_and_nothing_else(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]

    reply = plane.admin.patch(f"/v1/policies/{policy_id}", json={"rules": {"max_chunks": 3}, "description": "shorter"})

    body = reply.json()["policy"]["body"]
    assert (3, 0.75, "shorter") == (body["rules"]["max_chunks"], body["rules"]["min_relevance_score"], body["description"])
    assert ["rag-agent"] == body["scope"]["agents"]


def test_a_patch_that_makes_no_policy_is_refused(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]
    patches: list[dict[str, Any]] = [{"naame": "x"}, {"category": "grounding"}, {"rules": {"max_chunks": 0}}, {"name": None}, {"rules": 3}]

    replies = [plane.admin.patch(f"/v1/policies/{policy_id}", json=patch) for patch in patches]

    assert [(422, "policy_invalid")] * 5 == [(reply.status_code, reply.json()["error"]["code"]) for reply in replies]


def test_a_removed_policy_is_gone_from_the_list_and_stays_in_its_versions(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]

    assert plane.admin.delete(f"/v1/policies/{policy_id}").json()["is_removed"]
    assert 404 == plane.reader.get(f"/v1/policies/{policy_id}").status_code
    assert 404 == plane.admin.delete(f"/v1/policies/{policy_id}").status_code
    assert [] == plane.reader.get("/v1/policies").json()["policies"]
    assert [True] == [each["is_removed"] for each in plane.reader.get(f"/v1/policies/{policy_id}/versions").json()["versions"]]


def test_pages_hold_every_policy_once(plane: Served) -> None:
    for number in range(7):
        created(plane, name=f"p{number}", priority=number % 3)

    names: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = plane.reader.get("/v1/policies", params=query).json()
        names += [each["policy"]["body"]["name"] for each in page["policies"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert ["p0", "p3", "p6", "p1", "p4", "p2", "p5"] == names


def test_filters_narrow_the_list(plane: Served) -> None:
    created(plane, name="a")
    created(plane, name="b", enabled=False, enforcement="shadow")
    created(plane, name="c", category="grounding", rules={})

    def listed(**query: str) -> list[str]:
        return [each["policy"]["body"]["name"] for each in plane.reader.get("/v1/policies", params=query).json()["policies"]]

    assert ["c"] == listed(category="grounding")
    assert ["b"] == listed(enabled="false")
    assert ["b"] == listed(enforcement="shadow")
    assert ["a"] == listed(name="a")
    assert [] == listed(category="retrieval", enabled="true", name="b")


REFUSED_QUERIES = {
    "categoryx=x": "category",
    "enforcement=shado": "shadow",
    "limit=0": "",
    "limit=501": "",
    "limit=-1": "",
    "limit=%EF%BC%91": "",
    "limit=1&limit=2": "",
    "enabled=yes": "",
    "name=": "",
    "cursor=zz": "",
    "cursor=WzFd": "",
}


def test_parameters_that_cannot_be_right_are_refused(plane: Served) -> None:
    replies = {query: plane.reader.get(f"/v1/policies?{query}") for query in REFUSED_QUERIES}

    assert {422} == {reply.status_code for reply in replies.values()}
    told = {query: reply.json()["error"]["problems"][0].get("suggestion", "") for query, reply in replies.items()}
    assert told == REFUSED_QUERIES


def test_a_push_is_all_or_nothing(plane: Served) -> None:
    good = {"policies": [{**SEED_BODY, "name": "a"}, {**SEED_BODY, "name": "b"}]}
    bad = {"policies": [{**SEED_BODY, "name": "c"}, {**SEED_BODY, "name": "d", "rules": {"min_chunk": 1}}]}

    dry = plane.admin.post("/v1/policies/push", json={**good, "dry_run": True}).json()
    pushed = plane.admin.post("/v1/policies/push", json=good).json()
    again = plane.admin.post("/v1/policies/push", json=good).json()
    refused = plane.admin.post("/v1/policies/push", json=bad)

    assert ["created", "created"] == [each["action"] for each in dry["results"]] == [each["action"] for each in pushed["results"]]
    assert ["unchanged", "unchanged"] == [each["action"] for each in again["results"]]
    assert (422, "policies[1].rules.min_chunk") == (refused.status_code, refused.json()["error"]["problems"][0]["path"])
    assert 2 == len(plane.reader.get("/v1/policies").json()["policies"])


def test_every_template_can_be_put_in_force(plane: Served) -> None:
    templates = plane.reader.get("/v1/policies/templates").json()["templates"]

    assert 13 == len(templates)
    assert [201] * 13 == [plane.admin.post("/v1/policies", json=each).status_code for each in templates.values()]


def test_the_schemas_are_served(plane: Served) -> None:
    whole, rules = plane.reader.get("/v1/policies/schema").json(), plane.reader.get("/v1/policies/schema/grounding").json()

    assert "category" in whole["properties"]
    assert 0.7 == rules["properties"]["min_grounding_score"]["default"]
    assert 404 == plane.reader.get("/v1/policies/schema/groundng").status_code


def test_changes_and_their_authors_are_in_the_audit(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]
    plane.admin.patch(f"/v1/policies/{policy_id}", json={"priority": 1})
    plane.admin.delete(f"/v1/policies/{policy_id}")

    auditor = plane.client(Role.AUDITOR)
    first = auditor.get("/v1/audit", params={"limit": 3}).json()
    rest = auditor.get("/v1/audit", params={"limit": 100, "cursor": first["next_cursor"]}).json()
    changes = [
        (each["kind"], each["change"], each["version"]) for each in (*first["changes"], *rest["changes"]) if each["kind"] == "policy"
    ]

    assert [("policy", "created", 1), ("policy", "updated", 2), ("policy", "removed", 2)] == changes
    assert rest["next_cursor"] is None


def test_a_tenant_sees_only_its_own(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]
    other = plane.within("other").admin

    assert [] == other.get("/v1/policies").json()["policies"]
    assert 404 == other.get(f"/v1/policies/{policy_id}").status_code
    assert 404 == other.delete(f"/v1/policies/{policy_id}").status_code
    assert 404 == other.get(f"/v1/policies/{policy_id}/versions").status_code
    assert ["token"] == [each["kind"] for each in other.get("/v1/audit").json()["changes"]]
    assert 201 == other.post("/v1/policies", json=SEED_BODY).status_code


def test_of_two_writers_with_one_version_one_wins(plane: Served) -> None:
    policy_id = created(plane)["policy"]["policy_id"]
    barrier, statuses = threading.Barrier(6), list[int]()
    plane.admin.get("/v1/policies")

    def change(number: int) -> None:
        barrier.wait()
        reply = plane.admin.patch(f"/v1/policies/{policy_id}", json={"priority": number}, headers={"if-match": '"1"'})
        statuses.append(reply.status_code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [200, 412, 412, 412, 412, 412] == sorted(statuses)


def test_policies_outlive_the_plane(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as first:
        policy_id, token = created(first)["policy"]["policy_id"], first.token(Role.READER)
    with serving(tmp_path / "base") as second:
        reply = second.nobody.get(f"/v1/policies/{policy_id}", headers={"authorization": f"Bearer {token}"})

    assert (200, "RAG Quality Guard") == (reply.status_code, reply.json()["policy"]["body"]["name"])
