"""Whose runs, decisions and receipts are whose: the owner's own, an auditor's within the clearance, and nobody else's."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.contracts.control import Role, TokenFacts, TokenLimits
from evidentia.contracts.decisions import RecordProof
from evidentia.contracts.runs import OWNED_FACTS, RunFacts, RunId
from evidentia.contracts.vocabulary import Classification
from evidentia.provenance.decision_chain import leaf_of, split_line
from evidentia.serving.jsonrpc import dispatch
from serving.rest_planes import GOOD, SEED_BODY, Served, serving
from serving.served_bases import A, B, asked, made

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

HIDDEN = f"_{A}__shelf:restricted.md"
OPEN = f"_{A}__shelf:internal.md"
CONTENT_HASH = re.compile(r"@[0-9a-f]{16}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(made(tmp_path_factory.mktemp("owned"))) as served:
        yield served


@pytest.fixture(scope="module")
def plane(shared: Served) -> Served:
    within = shared.within(A)
    reply = within.admin.post("/v1/policies", json={**SEED_BODY, "scope": {}, "name": "guard"})
    assert 201 == reply.status_code, reply.text
    return within


def holder(plane: Served, role: Role, *, name: str, level: str = "internal", **more: Any) -> httpx2.Client:
    return plane.holding(plane.token(role, name=name, facts=TokenFacts(clearance=Classification(level), **more)))


def run_of(client: httpx2.Client, *documents: dict[str, Any], **facts: Any) -> str:
    reply = client.post("/v1/runs", json={"facts": {"agent_name": "rag-agent", **facts}})
    assert reply.status_code in {200, 201}, reply.text
    run_id = str(reply.json()["run_id"])
    for seq, document in enumerate(documents, start=1):
        assert 200 == client.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": seq, "call": {**GOOD, **document}}]}).status_code
    return run_id


def chunk_of(client: httpx2.Client, document: str) -> str:
    return str(client.get("/v1/chunks", params={"document": document}).json()["chunks"][0]["chunk_id"])


PATHS = ("/v1/runs/{id}", "/v1/runs/{id}/trace", "/v1/runs/{id}/decisions")


def told(reply: httpx2.Response, *names: str) -> tuple[int, str]:
    text = reply.text
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "…")
    return reply.status_code, text


# --- runs, traces and decisions ---


def test_a_run_is_there_for_who_began_it_and_for_auditors_of_the_tenant(plane: Served) -> None:
    alice, bob = holder(plane, Role.AGENT, name="alice"), holder(plane, Role.AGENT, name="bob")
    run_id = run_of(alice, {"source": "manual.pdf"})
    missing = f"{run_id[:-4]}zzzz"

    for path in PATHS:
        assert 200 == alice.get(path.format(id=run_id)).status_code
        assert 200 == plane.auditor.get(path.format(id=run_id)).status_code
        for stranger in (bob, plane.reader):
            foreign, nothing = stranger.get(path.format(id=run_id)), stranger.get(path.format(id=missing))
            assert (404, told(nothing, missing)) == (foreign.status_code, told(foreign, run_id))
    listed = {client: [each["facts"]["run_id"] for each in client.get("/v1/runs").json()["runs"]] for client in (alice, bob, plane.reader)}
    assert [[run_id], [], []] == list(listed.values())
    assert [] == bob.get("/v1/decisions").json()["decisions"]
    assert [] == bob.get("/v1/decisions", params={"run": run_id}).json()["decisions"]
    assert [] == bob.get("/v1/governance/events").json()["events"]
    assert {run_id} == {each["run_id"] for each in alice.get("/v1/decisions").json()["decisions"]}


def test_another_token_neither_records_into_a_run_nor_ends_it(plane: Served) -> None:
    alice, bob = holder(plane, Role.AGENT, name="alice"), holder(plane, Role.AGENT, name="bob")
    same_name = holder(plane, Role.AGENT, name="alice")
    run_id = run_of(alice)
    missing = f"{run_id[:-4]}zzzz"
    for stranger in (bob, same_name, plane.admin, plane.within(B).agent):
        for tail, body in (("calls", {"calls": [{"seq": 1, "call": GOOD}]}), ("end", {})):
            foreign = stranger.post(f"/v1/runs/{run_id}/{tail}", json=body)
            nothing = stranger.post(f"/v1/runs/{missing}/{tail}", json=body)
            assert (404, told(nothing, missing)) == (foreign.status_code, told(foreign, run_id))

    assert ("running", 0) == tuple(alice.get(f"/v1/runs/{run_id}").json()[name] for name in ("status", "documents"))


def test_a_name_that_somebody_chose_is_free_for_everybody_else(plane: Served) -> None:
    alice, bob = holder(plane, Role.AGENT, name="alice"), holder(plane, Role.AGENT, name="bob")
    first, second = run_of(alice, run_id="nightly"), run_of(bob, {"source": "a"}, run_id="nightly")

    assert first != second
    assert (0, 1) == (alice.get("/v1/runs/nightly").json()["documents"], bob.get("/v1/runs/nightly").json()["documents"])
    unused = holder(plane, Role.AGENT, name="carol").get("/v1/runs/nightly")
    assert told(unused, "nightly") == told(holder(plane, Role.AGENT, name="carol").get("/v1/runs/no-such"), "no-such")


def test_ids_that_the_server_makes_hold_96_random_bits_at_least(plane: Served) -> None:
    alice = holder(plane, Role.READER, name="alice")
    answers = [asked(alice, "key expire") for _ in range(3)]
    receipts = [each["receipt_id"].rpartition("-")[2] for each in answers]
    runs = [run_of(plane.agent).rpartition("-")[2] for _ in range(3)]

    assert all(re.fullmatch(r"[0-9a-f]{24,}", each) for each in (*receipts, *runs))
    assert 6 == len({each[:6] for each in (*receipts, *runs)})
    log = answers[0]["receipt_id"].rpartition("-")[0]
    assert {404} == {alice.get(f"/v1/receipts/{log}-{number}").status_code for number in range(1, 9)}


def test_an_auditor_sees_no_id_above_the_clearance(plane: Served) -> None:
    alice = holder(plane, Role.AGENT, name="alice", groups=("oncall",))
    chunk = chunk_of(holder(plane, Role.READER, name="r", groups=("oncall",)), f"_{A}__shelf:oncall.md")
    open_chunk = chunk_of(alice, OPEN)
    run_id = run_of(
        alice, {"source": f"_{A}__shelf:oncall.md", "chunk_id": chunk, "age_days": 400}, {"source": OPEN, "chunk_id": open_chunk}
    )
    cited = {"kind": "grounding", "citations": [chunk, open_chunk], "unsupported_claims": [f"as {chunk} says"]}
    alice.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": 3, "call": cited}]})
    auditor, oncall = (holder(plane, Role.AUDITOR, name="eve", groups=groups) for groups in ((), ("oncall",)))

    for path in (*PATHS, "/v1/decisions?run={id}", "/v1/governance/events?run={id}"):
        own, seen, full = (each.get(path.format(id=run_id)).text for each in (alice, auditor, oncall))
        assert "oncall.md" not in seen, path
        assert chunk.rpartition("@")[2] not in seen, path
        assert ("internal.md" in own) == ("internal.md" in seen), path
        assert own == full, path
    decisions = auditor.get(f"/v1/runs/{run_id}/decisions").json()["decisions"]
    masks = {each["inputs"]["chunk_id"] for each in decisions if each["inputs"].get("chunk_id")}
    assert {open_chunk} == {each for each in masks if CONTENT_HASH.search(each)}
    assert all(each == open_chunk or re.fullmatch(r"hidden-[0-9a-f]{16}", each) for each in masks)


def test_trials_and_the_audit_name_no_document_above_the_clearance(plane: Served) -> None:
    founder = holder(plane, Role.ADMIN, name="founder", level="restricted")
    document = {"document_ids": [HIDDEN], "classification": "restricted"}
    assert 200 == founder.post("/v1/documents/access", json=document).status_code
    for source in (HIDDEN, OPEN, "wiki"):
        run_of(holder(plane, Role.AGENT, name="alice"), {"source": source, "age_days": 1})
    trial = {"policy": {**SEED_BODY, "scope": {}, "name": "tried", "rules": {"max_source_age_days": 0, "action_on_stale_source": "block"}}}
    seen, audit = plane.auditor.post("/v1/trials/shadow", json=trial).text, plane.auditor.get("/v1/audit", params={"limit": 500}).text
    full = holder(plane, Role.AUDITOR, name="eve", level="restricted")

    assert HIDDEN in full.get("/v1/audit", params={"limit": 500}).text
    assert HIDDEN in full.post("/v1/trials/shadow", json=trial).text
    assert (False, False) == (HIDDEN in audit, HIDDEN in seen)
    assert (True, True) == (OPEN in seen, "wiki" in seen)


def test_of_a_run_above_the_clearance_an_auditor_sees_what_was_decided_and_no_content(plane: Served) -> None:
    alice = holder(plane, Role.AGENT, name="alice", level="restricted")
    run_id = run_of(alice, {"source": "the secret plan", "age_days": 400}, metadata={"about": "the secret plan"})
    cleared, auditor = (holder(plane, Role.AUDITOR, name="eve", level=level) for level in ("restricted", "internal"))

    for path in (*PATHS, "/v1/decisions", "/v1/governance/events", "/v1/runs"):
        assert "the secret plan" in cleared.get(path.format(id=run_id)).text or path == "/v1/governance/events"
        assert "the secret plan" not in auditor.get(path.format(id=run_id)).text, path
    seen = auditor.get(f"/v1/runs/{run_id}/decisions").json()["decisions"]
    assert ["block"] == [each["action"] for each in seen if each["action"] != "allow"]
    assert {True} == {each["is_redacted"] for each in seen}


def test_the_proof_of_anothers_record_proves_without_its_details(plane: Served) -> None:
    alice, auditor = holder(plane, Role.AGENT, name="alice"), holder(plane, Role.AUDITOR, name="eve")
    run_id = run_of(alice, {"source": HIDDEN})
    decision = alice.get(f"/v1/runs/{run_id}/decisions").json()["decisions"][-1]
    path = f"/v1/decisions/{decision['log']}/{decision['seq']}/proof"
    own, others = (msgspec.convert(client.get(path).json(), RecordProof) for client in (alice, auditor))

    assert HIDDEN in own.line
    assert HIDDEN not in others.line
    assert leaf_of(split_line(own.line.encode())) == leaf_of(split_line(others.line.encode()))
    assert 404 == holder(plane, Role.AGENT, name="bob").get(path).status_code


def test_what_a_run_records_of_its_owner_is_the_servers_to_say(plane: Served) -> None:
    alice = holder(plane, Role.AGENT, name="alice", level="confidential")
    run_id = run_of(alice)
    facts = alice.get(f"/v1/runs/{run_id}").json()["facts"]

    assert "confidential" == facts["clearance"]
    assert facts["token_id"] in {each["token_id"] for each in plane.admin.get("/v1/tokens").json()["tokens"] if each["name"] == "alice"}
    for name in OWNED_FACTS:
        reply = alice.post("/v1/runs", json={"facts": {"agent_name": "a", name: facts[name]}})
        assert (422, f"facts.{name}") == (reply.status_code, reply.json()["error"]["problems"][0]["path"])


def test_a_run_that_claims_the_owner_of_another_in_a_process_beside_is_shown_as_it_says(plane: Served) -> None:
    """Whoever writes to the directory writes the log: what nobody owns is for auditors alone."""
    run = plane.control.start(RunFacts(run_id=RunId("beside"), agent_name="a", tenant=A))

    assert 404 == plane.agent.get(f"/v1/runs/{run.facts.run_id}").status_code
    assert 200 == plane.auditor.get(f"/v1/runs/{run.facts.run_id}").status_code


# --- receipts ---


def test_a_receipt_is_for_who_asked_and_within_the_clearance_for_auditors(plane: Served) -> None:
    alice, bob = holder(plane, Role.READER, name="alice", level="restricted"), holder(plane, Role.READER, name="bob", level="restricted")
    auditor, cleared = (holder(plane, Role.AUDITOR, name="eve", level=level) for level in ("internal", "restricted"))
    answer = asked(alice, "key of restricted matters")
    name, missing = answer["receipt_id"], answer["receipt_id"][:-4] + "zzzz"
    hidden = {each["chunk_id"] for each in answer["fragments"] if re.search(r":(restricted|confidential)\.md", each["chunk_id"])}

    assert hidden
    for path in ("", "/why?chunk=x"):
        foreign, nothing = bob.get(f"/v1/receipts/{name}{path}"), bob.get(f"/v1/receipts/{missing}{path}")
        assert (404, told(nothing, missing)) == (foreign.status_code, told(foreign, name))
    assert 404 == bob.post(f"/v1/receipts/{name}/replay").status_code
    own, seen = alice.get(f"/v1/receipts/{name}").json(), auditor.get(f"/v1/receipts/{name}").json()
    replayed = auditor.post(f"/v1/receipts/{name}/replay").json()
    assert "" == seen["query"]
    assert own["query"] == cleared.get(f"/v1/receipts/{name}").json()["query"]
    for text in (json.dumps(seen), json.dumps(replayed)):
        assert [] == [each for each in hidden if each in text or each.rpartition("@")[2] in text]
        assert "restricted matters" not in text
        assert own["result_hash"] not in text
    assert (True, len(hidden)) == (replayed["is_same"], replayed["hidden"])
    assert len(own["fragments"]) == len(seen["fragments"])
    for chunk in sorted(hidden):
        assert 404 == auditor.get(f"/v1/receipts/{name}/why", params={"chunk": chunk}).status_code


def test_the_trace_of_a_request_confirms_no_guess_at_its_answer(shared: Served) -> None:
    answer = asked(shared.within("default").agent, "key expire")
    foreign = asked(shared.within(A).agent, "key expire")
    traces = shared.auditor.get("/v1/traces", params={"limit": 500})
    (trace,) = [each for each in traces.json()["traces"] if each["request_id"] == answer["request_id"]]

    assert answer["result_hash"] not in traces.text
    assert trace == shared.auditor.get(f"/v1/traces/{answer['request_id']}").json()
    assert foreign["request_id"] not in traces.text
    assert 404 == shared.auditor.get(f"/v1/traces/{foreign['request_id']}").status_code
    assert 403 == shared.within(A).auditor.get("/v1/traces").status_code


def test_only_who_may_see_the_whole_base_sees_its_hashes_unkeyed(plane: Served, shared: Served) -> None:
    sent = {"documents": [{"id": "one", "text": "a text"}], "embed": False, "source": "sent"}
    report = plane.admin.post("/v1/documents", json=sent).json()
    changed = {"document_ids": [f"_{A}__sent:one"], "classification": "public"}
    summary = plane.admin.post("/v1/documents/access", json=changed).json()
    head = plane.reader.get("/v1/base/head").json()
    owners = holder(shared, Role.AUDITOR, name="eve", level="restricted").get("/v1/base/head").json()

    for name in ("corpus_version", "evidence_state"):
        assert head[name] == summary[name] == shared.auditor.get("/v1/base/head").json()[name]
        assert owners[name] not in {head[name], report[name]}


def test_an_admin_sees_of_receipts_and_documents_what_the_token_may(plane: Served) -> None:
    alice = holder(plane, Role.READER, name="alice", level="restricted")
    name = asked(alice, "key of restricted matters")["receipt_id"]
    replayed = plane.admin.post(f"/v1/receipts/{name}/replay").json()

    assert replayed["hidden"]
    assert "restricted matters" not in json.dumps(replayed)
    for path, body in (("access", {"document_ids": [HIDDEN], "classification": "public"}), ("remove", {"document_ids": [HIDDEN]})):
        foreign = plane.admin.post(f"/v1/documents/{path}", json=body)
        nothing = plane.admin.post(f"/v1/documents/{path}", json={**body, "document_ids": ["x:y.md"]})
        assert (404, told(nothing, "x:y.md")) == (foreign.status_code, told(foreign, HIDDEN))


def test_an_admin_replaces_no_document_that_it_may_not_see(plane: Served) -> None:
    owner = holder(plane, Role.ADMIN, name="whole", level="restricted")
    before = owner.get("/v1/chunks", params={"document": HIDDEN}).json()
    text = before["chunks"][0]["content"]
    for guess in (text, "something else"):
        body = {"source": "shelf", "files": [{"path": "restricted.md", "content": base64.b64encode(guess.encode()).decode()}]}
        reply = plane.admin.post("/v1/documents", json=body)
        assert (409, "document_elsewhere") == (reply.status_code, reply.json()["error"]["code"])

    assert before == owner.get("/v1/chunks", params={"document": HIDDEN}).json()


def test_traces_and_freshness_name_nothing_above_the_clearance(shared: Served) -> None:
    plane = shared.within("default")
    asked(holder(plane, Role.READER, name="cleared", level="restricted"), "key of restricted matters")
    low = holder(plane, Role.AUDITOR, name="low-auditor")
    listed = low.get("/v1/traces").json()["traces"]
    whole = holder(plane, Role.AUDITOR, name="full-auditor", level="restricted").get("/v1/traces").json()["traces"]

    assert {"default"} == {each["tenant"] for each in listed}
    assert [] == [span for each in listed for span in each["spans"] if span["kind"] == "source"]
    assert "document." not in json.dumps(listed)
    assert "document." in json.dumps(whole)
    seen = {each["source_id"] for each in low.get("/v1/sources/freshness").json()["sources"]}
    assert seen <= {each["descriptor"]["source_id"] for each in low.get("/v1/sources").json()["sources"]}


def test_a_source_that_an_auditor_sees_is_called_by_its_name(plane: Served) -> None:
    agent = holder(plane, Role.AGENT, name="names")
    source = OPEN.partition(":")[0]
    run = run_of(agent, {"source": source, "chunk_id": chunk_of(plane.admin, OPEN)})
    trace = holder(plane, Role.AUDITOR, name="reads-names").get(f"/v1/runs/{run}/trace").text

    assert source in trace
    assert "hidden-" not in trace


def test_policies_that_come_with_a_run_are_small(plane: Served) -> None:
    rules = {"allowed_collections": [f"collection-{number}" for number in range(2_000)]}
    body = {"facts": {"agent_name": "rag-agent"}, "policies": [{"name": "wide", "category": "retrieval", "rules": rules}]}
    reply = holder(plane, Role.AGENT, name="wide-agent").post("/v1/runs", json=body)

    assert (422, "policies") == (reply.status_code, reply.json()["error"]["problems"][0]["path"])


def test_a_batch_ends_where_its_answers_are_full(plane: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_BATCH_BYTES", 2_000)
    call = {"jsonrpc": "2.0", "method": "list_documents", "params": {}}
    found = plane.admin.post("/rpc", json=[{**call, "id": number} for number in range(40)]).json()

    assert list(range(40)) == [each["id"] for each in found]
    refused = [each["error"]["data"]["code"] for each in found if "error" in each]
    assert {"batch_too_large"} == set(refused)
    assert 20 < len(refused) < 40


# --- what an admin may give ---


def minted(client: httpx2.Client, **fields: Any) -> tuple[int, str]:
    reply = client.post("/v1/tokens", json={"name": "new", "roles": ["reader"], **fields})
    return reply.status_code, reply.json()["error"]["message"] if reply.status_code != 201 else ""


def test_an_admin_gives_no_more_than_it_has(plane: Served) -> None:
    soon = datetime.now(UTC) + timedelta(days=2)
    facts = TokenFacts(
        clearance=Classification.CONFIDENTIAL,
        groups=("finance",),
        attributes={"site": "north"},
        limits=TokenLimits(requests_per_minute=100, requests_per_day=5_000),
    )
    admin = plane.holding(plane.token(Role.ADMIN, name="boss", facts=facts, expires_at=soon))
    refused: dict[str, dict[str, Any]] = {
        "facts.clearance": {"clearance": "restricted"},
        "facts.groups": {"groups": ["finance", "board"]},
        "facts.attributes": {"attributes": {"site": "south"}},
        "facts.is_delegate": {"is_delegate": True},
        "facts.limits.requests_per_minute": {"limits": {"requests_per_minute": 101}},
        "facts.limits.requests_per_day": {"limits": {"requests_per_day": 5_001}},
    }
    for field, given in refused.items():
        status, message = minted(admin, facts=given)
        assert (403, True) == (status, f"'{field}'" in message), (field, message)
    assert 403 == minted(admin, expires_at=(soon + timedelta(seconds=1)).isoformat())[0]
    within = {"clearance": "confidential", "groups": ["finance"], "attributes": {"site": "north"}, "limits": {"requests_per_minute": 100}}
    assert 201 == minted(admin, facts=within)[0]
    info = admin.post("/v1/tokens", json={"name": "heir", "roles": ["admin"]}).json()["info"]
    assert ({"requests_per_minute": 100, "requests_per_day": 5_000}, soon) == (
        info["facts"]["limits"],
        datetime.fromisoformat(info["expires_at"]),
    )
    assert 403 == minted(plane.admin, facts={"limits": {"requests_per_minute": 6_001}})[0]


# --- what others have is told nowhere ---


def test_a_source_that_tenants_share_names_none_of_the_others(plane: Served, shared: Served) -> None:
    for tenant in (A, B):
        assert 201 == shared.within(tenant).agent.post("/v1/notes", json={"text": "a note"}).status_code
    asked(plane.agent, "note")
    sources = {each["descriptor"]["source_id"]: each for each in plane.auditor.get("/v1/sources").json()["sources"]}

    assert [A] == sources["memory"]["descriptor"]["access_policy"]["tenants"]
    assert {"calls": 0, "failures": 0, "timeouts": 0} == {
        name: sources["memory"]["health"][name] for name in ("calls", "failures", "timeouts")
    }


def test_the_audit_of_a_tenant_counts_its_own_lines(plane: Served, shared: Served) -> None:
    for number in range(3):
        for tenant in (A, B):
            assert 201 == minted(shared.within(tenant).admin, name=f"t{number}")[0]
    changes = plane.auditor.get("/v1/audit", params={"limit": 500}).json()["changes"]

    assert list(range(1, len(changes) + 1)) == [each["seq"] for each in changes]
    page = plane.auditor.get("/v1/audit", params={"limit": 2}).json()
    following = plane.auditor.get("/v1/audit", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert changes[:4] == [*page["changes"], *following["changes"]]


def test_the_decisions_of_a_tenant_are_counted_chained_and_proved_by_themselves(plane: Served, shared: Served) -> None:
    before = plane.auditor.get("/v1/decisions/verify").json()
    run_of(plane.agent, {"source": "a"}, {"source": "b"})
    others = [run_of(shared.within(tenant).agent, *({"source": "c"} for _ in range(20))) for tenant in (B, "default")]
    last = run_of(plane.agent, {"source": "d"})
    after, whole = (client.get("/v1/decisions/verify").json() for client in (plane.auditor, shared.auditor))
    decisions = plane.agent.get("/v1/decisions", params={"limit": 500}).json()["decisions"]
    proof = plane.agent.get(f"/v1/decisions/{decisions[0]['log']}/{decisions[0]['seq']}/proof").json()

    assert others
    assert (True, True) == (after["ok"], whole["ok"])
    assert before["records"] + 5 <= after["records"] <= before["records"] + 8 < whole["records"]
    assert {last} == {decisions[0]["run_id"]}
    assert after["records"] == proof["size"]
    own = {each["log"] for each in after["heads"]}
    assert 404 == shared.within(B).agent.get(f"/v1/decisions/{decisions[0]['log']}/{decisions[0]['seq']}/proof").status_code
    assert own < {each["log"] for each in whole["heads"]}
    assert own.isdisjoint({each["log"] for each in shared.within(B).auditor.get("/v1/decisions/verify").json()["heads"]})


def test_answers_of_a_tenant_stand_in_its_own_log(plane: Served, shared: Served) -> None:
    asked(holder(plane, Role.READER, name="alice"), "key expire")
    asked(shared.within(B).agent, "key expire")
    runs = {each["log"] for each in plane.auditor.get("/v1/decisions", params={"limit": 500}).json()["decisions"]}

    assert 1 == len(runs)
    assert runs == {each["log"] for each in plane.auditor.get("/v1/decisions/verify").json()["heads"]}
