"""What the judge of a served base reads is what whoever opened the run may read, through every door that carries runs.

The judge scores by shared words, so that a score for a document tells what stands in it.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn

import evidentia
from evidentia.agents import Context
from evidentia.contracts.access import Principal
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.decoding import convert
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel
from evidentia.testing.fake_models import FakeModels
from evidentia.wiring.governance_runtime import GovernanceRuntime
from evidentia.wiring.settings_file import SETTINGS_NAME
from served_doors import Grpc, JsonRpc, Served, WithGrpc
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("starlette", reason="the extra `server` is not installed")

Fields = dict[str, Any]  # JSON
SETTINGS = """[embedding]\nencoder = "none"\n\n[access]\nrules = ['NOT tags CONTAINS "sealed"']\n"""
TRUE, FALSE = "The offer for Globex is 74 million.", "The moon belongs to 14 owls made of cheese."
OPEN = "Keys expire after 30 days."
SCORE = 0.923
"""What the scorer gives a sentence for itself."""
RULES = {"llm_grounding_check": True, "llm_grounding_model": "local:words", "min_citations": 0, "action_on_violation": "block"}
STORED = {"name": "judged", "category": "grounding", "rules": RULES}
OWN = {"name": "mine", "category": "grounding", "rules": RULES}
HIDDEN = {
    "clearance": "vault:secret.md",
    "acl": "board:board.md",
    "attribute rule": "sealed:sealed.md",
    "another tenant": "theirs:theirs.md",
}
UNKNOWN = "vault:nobody.md"
FACTS = {"run_id": "", "agent_name": "agent"}
DOORS = ("rest", "jsonrpc", "grpc")
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class JudgingPlane(Served):
    """A base that is served through three doors, with what is behind them."""

    control: GovernanceRuntime

    def agent(self, name: str = "agent", *, tenant: str = "default", clearance: str = "internal", groups: tuple[str, ...] = ()) -> str:
        facts = TokenFacts(clearance=Classification(clearance), groups=groups)
        return self.control.tokens.issue(name=name, roles=(Role.AGENT,), tenant=tenant, by="test", facts=facts).token

    def ask(self, door: str, operation: str, fields: Fields, *, token: str) -> Fields:
        """Return the answer of an operation, or its fault under `error`."""
        if door == "jsonrpc":
            return JsonRpc(self)._call(operation, fields, token=token)
        if door == "grpc":
            return Grpc(self)._call(camel(operation), operation, fields, token=token)
        endpoint = BY_NAME[operation]
        path = endpoint.path.replace("{id}", fields.get("id", ""))
        body = {name: value for name, value in fields.items() if name != "id"}
        headers = {"authorization": f"Bearer {token}"}
        sent: dict[str, Any] = {"params": body} if endpoint.method == "GET" else {"json": body}
        return dict(httpx2.request(endpoint.method, f"{self.url}{path}", headers=headers, timeout=60, trust_env=False, **sent).json())

    def grounded(self, door: str, *citations: str, token: str, text: str = TRUE, texts: Fields | None = None) -> list[Fields]:
        """Cite sources in a run of its own, and return everything that was decided in it."""
        run_id = self.ask(door, "start_run", {"facts": FACTS}, token=token)["run_id"]
        call = {"kind": "grounding", "grounding_scores": [0.9], "citations": list(citations)}
        numbered = {"seq": 1, "call": call, "text": text, **({} if texts is None else {"texts": texts})}
        reply = self.ask(door, "record_calls", {"id": run_id, "calls": [numbered]}, token=token)
        assert "error" not in reply, reply
        self.ask(door, "end_run", {"id": run_id, "status": "success", "text": text}, token=token)
        found: list[Fields] = self.ask(door, "list_run_decisions", {"id": run_id}, token=token)["decisions"]
        return found


def judged(decisions: list[Fields]) -> Fields:
    """Return the decision about the grounding entry."""
    return next(each for each in decisions if each["kind"] == "grounding")


def score_of(decisions: list[Fields]) -> float:
    said = next(iter(judged(decisions)["inputs"]["judgements"].values()))
    return float(said["score"])


def alike(decisions: list[Fields], citation: str) -> list[Fields]:
    """Return decisions without what tells one run from another, and with one name for what was cited."""
    own = {"seq", "log", "previous", "hash", "at", "run_id", "overhead_us"}
    for judgement in (each for decision in decisions for each in decision["inputs"].get("judgements", {}).values()):
        judgement.pop("latency_ms", None)
    run_id = decisions[0]["run_id"]
    text = json.dumps([{name: value for name, value in each.items() if name not in own} for each in decisions])
    read: list[Fields] = json.loads(text.replace(run_id, "RUN").replace(citation, "CITED"))
    return read


@contextmanager
def judging(base: Path, **control: Any) -> Iterator[JudgingPlane]:
    with ExitStack() as stack:
        parts = stack.enter_context(GovernanceRuntime(base, **control))
        app = make_app(parts)
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        ports: list[int] = []
        server = WithGrpc(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"), app.state.context, ports)
        with running(server, listening, is_up=lambda: bool(ports)) as url:
            plane = JudgingPlane(url, f"127.0.0.1:{ports[0]}", parts)
            plane.control = parts
            yield plane


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base with a document that everybody may see, and one for every reason for which a caller may not."""
    folder = tmp_path_factory.mktemp("judged")
    with evidentia.connect(folder / "base", init=True):
        pass
    (folder / "base" / SETTINGS_NAME).write_text(SETTINGS, encoding="utf-8")
    options: dict[str, Fields] = {
        "handbook": {},
        "vault": {"classification": "confidential"},
        "board": {"acl": ["group:board"]},
        "sealed": {"tags": ["sealed"]},
        "theirs": {"tenant": "other"},
    }
    names = {"handbook": "keys", "vault": "secret"}
    with evidentia.connect(folder / "base") as opened:
        for source, how in options.items():
            (folder / source).mkdir()
            text = OPEN if source == "handbook" else TRUE
            (folder / source / f"{names.get(source, source)}.md").write_text(f"# Note\n\n{text}\n", encoding="utf-8")
            opened.ingest([folder / source], source=source, embed=False, **how)
    return folder / "base"


@pytest.fixture(scope="module")
def plane(base: Path) -> Iterator[JudgingPlane]:
    with judging(base) as served:
        for tenant in ("default", "other"):
            served.control.policies.put(body_of(STORED), tenant=tenant, by="test")
        yield served


def body_of(fields: Fields) -> PolicyBody:
    return convert(fields, PolicyBody)


# --- who may have a judge asked ---


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"llm_grounding_check": True}, "llm_grounding_check"),
        ({"llm_grounding_criteria": "Say what stands in it."}, "llm_grounding_criteria"),
    ],
)
def test_a_policy_that_comes_with_a_run_asks_no_judge(plane: JudgingPlane, door: str, rules: Fields, field: str) -> None:
    fine = {"name": "fine", "category": "grounding", "rules": {"min_citations": 0}}
    asking = {"name": "mine", "category": "grounding", "rules": {"llm_grounding_model": "local:words", **rules}}
    reply = plane.ask(door, "start_run", {"facts": FACTS, "policies": [fine, asking]}, token=plane.agent())

    assert "policy_invalid" == reply["error"]["code"]
    assert [f"policies[1].rules.{field}"] == [each["path"] for each in reply["error"]["problems"]]
    assert "admin" in reply["error"]["problems"][0]["problem"]


@pytest.mark.parametrize("door", DOORS)
def test_a_policy_that_comes_with_a_run_may_say_that_it_asks_none(plane: JudgingPlane, door: str) -> None:
    quiet = {"name": "quiet", "category": "grounding", "rules": {"llm_grounding_check": False, "llm_grounding_criteria": ""}}
    reply = plane.ask(door, "start_run", {"facts": FACTS, "policies": [quiet]}, token=plane.agent())

    assert "error" not in reply


# --- what it reads ---


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("reason", HIDDEN)
@pytest.mark.parametrize("text", [TRUE, FALSE])
def test_what_is_hidden_answers_as_what_does_not_exist(plane: JudgingPlane, door: str, reason: str, text: str) -> None:
    token = plane.agent()
    hidden, missing = (plane.grounded(door, each, token=token, text=text) for each in (HIDDEN[reason], UNKNOWN))

    assert "LLM grounding check skipped (source_unavailable)" == judged(hidden)["reason"]
    assert alike(missing, UNKNOWN) == alike(hidden, HIDDEN[reason])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("reason", HIDDEN)
def test_a_hidden_citation_beside_a_visible_one_is_as_fabricated_as_an_invented_one(plane: JudgingPlane, door: str, reason: str) -> None:
    token = plane.agent()
    alone = plane.grounded(door, "handbook:keys.md", token=token, text=OPEN)
    hidden, missing = (plane.grounded(door, "handbook:keys.md", each, token=token, text=OPEN) for each in (HIDDEN[reason], UNKNOWN))

    assert alike(missing, UNKNOWN) == alike(hidden, HIDDEN[reason])
    assert (SCORE, 0.461) == (score_of(alone), score_of(hidden))
    assert "block" == judged(hidden)["action"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("citation", "facts"),
    [
        ("vault:secret.md", {"clearance": "confidential"}),
        ("board:board.md", {"groups": ("board",)}),
        ("theirs:theirs.md", {"tenant": "other"}),
    ],
)
def test_whoever_may_read_a_document_has_it_judged(plane: JudgingPlane, door: str, citation: str, facts: Fields) -> None:
    decisions = plane.grounded(door, citation, token=plane.agent(**facts))

    assert "Grounding scores within policy (1 scores); LLM grounding score (0.923) meets threshold (0.7)" == judged(decisions)["reason"]
    assert {"score_count": 1, "llm_score": SCORE, "threshold": 0.7, "model": "local:words"} == judged(decisions)["metadata"]


def test_chunks_are_as_hidden_as_their_documents(plane: JudgingPlane, base: Path) -> None:
    with evidentia.connect(base) as opened:
        chunk_id = opened.chunks("vault:secret.md")[0].chunk_id
    decisions = plane.grounded("rest", chunk_id, token=plane.agent())

    assert "LLM grounding check skipped (source_unavailable)" == judged(decisions)["reason"]
    assert SCORE == score_of(plane.grounded("rest", chunk_id, token=plane.agent(clearance="confidential")))


def test_nothing_of_a_hidden_document_is_in_the_log(plane: JudgingPlane) -> None:
    plane.grounded("rest", "vault:secret.md", token=plane.agent(), text="Globex")
    plane.control.log.flush()

    folder = plane.control.directory / "decisions"
    assert not any(b"74 million" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_principal_of_an_open_base_reads_its_own_in_this_process(base: Path) -> None:
    reader = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL)
    reasons = []
    for principal in (reader, None):
        with evidentia.connect(base, principal=principal) as opened, Context("agent", base=opened, policies=[OWN]) as ctx:
            ctx.record_llm_call("m", response=TRUE)
            ctx.record_grounding(grounding_scores=[0.9], citations=["vault:secret.md"])
            reasons.append(ctx.decisions[-1].reason)

    assert "LLM grounding check skipped (source_unavailable)" == reasons[0]
    assert reasons[1].endswith("LLM grounding score (0.923) meets threshold (0.7)")


# --- texts that come with the run ---


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("citation", ["Federal Reserve Report", "https://example.org/report?page=2"])
def test_a_title_or_an_address_is_judged_by_the_text_that_came_with_it(plane: JudgingPlane, door: str, citation: str) -> None:
    said = "Rates stay at 4 percent."
    decisions = plane.grounded(door, citation, token=plane.agent(), text=said, texts={citation: said})

    assert SCORE == score_of(decisions)
    assert ["1 of 1 texts came with the run"] == next(iter(judged(decisions)["inputs"]["judgements"].values()))["notes"]


def test_a_text_that_came_along_does_not_stand_for_a_document_that_can_be_read(plane: JudgingPlane) -> None:
    decisions = plane.grounded("rest", "handbook:keys.md", token=plane.agent(), text=FALSE, texts={"handbook:keys.md": FALSE})

    assert "block" == judged(decisions)["action"]


# --- keys ---


@pytest.mark.parametrize(("tenant", "status", "asked"), [("default", "judged", 1), ("third", "no_key", 0)])
def test_the_operators_key_is_for_the_operators_tenant(
    base: Path, monkeypatch: pytest.MonkeyPatch, tenant: str, status: str, asked: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-operators")
    remote = {"name": "remote", "category": "grounding", "rules": {**RULES, "llm_grounding_model": "gpt-4o-mini"}}
    with FakeModels() as models, judging(base, judge_urls=models.urls) as plane:
        plane.control.policies.put(body_of(remote), tenant=tenant, by="test")
        decisions = plane.grounded("rest", "made up", token=plane.agent(tenant=tenant), texts={"made up": TRUE})
        stored = plane.control.policies.find("remote", tenant=tenant)
        plane.control.policies.remove(stored.policy.policy_id, tenant=tenant, by="test")
        said = judged(decisions)["inputs"]["judgements"][stored.policy.policy_id]

        assert (status, asked) == (said["status"], len(models.asked))


def test_a_tenant_with_a_key_of_its_own_has_a_judge(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-operators")
    monkeypatch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
    remote = {"name": "remote", "category": "grounding", "rules": {**RULES, "llm_grounding_model": "gpt-4o-mini"}}
    with FakeModels() as models, judging(base, judge_urls=models.urls) as plane:
        plane.control.secrets.put("OPENAI_API_KEY", "their-own", tenant="fourth", by="test")
        plane.control.policies.put(body_of(remote), tenant="fourth", by="test")
        plane.grounded("rest", "made up", token=plane.agent(tenant="fourth"), texts={"made up": TRUE})

        assert ["Bearer their-own"] == [each.headers["authorization"] for each in models.asked]


@pytest.mark.parametrize(("citations", "sent"), [(("vault:secret.md",), 0), (("handbook:keys.md", "vault:secret.md"), 1)])
def test_no_provider_is_shown_what_whoever_runs_may_not_read(
    base: Path, monkeypatch: pytest.MonkeyPatch, citations: tuple[str, ...], sent: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-operators")
    remote = {"name": "remote", "category": "grounding", "rules": {**RULES, "llm_grounding_model": "gpt-4o-mini"}}
    with FakeModels() as models, judging(base, judge_urls=models.urls) as plane:
        stored = plane.control.policies.put(body_of(remote), tenant="default", by="test")
        plane.grounded("rest", *citations, token=plane.agent(), text="What is the offer?")
        plane.control.policies.remove(stored.policy.policy_id, tenant="default", by="test")

    assert sent == len(models.asked)
    assert not any("74 million" in each.material for each in models.asked)
