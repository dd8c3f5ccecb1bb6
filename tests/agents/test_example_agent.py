"""The example agent against a scripted model on a real socket: it obeys or is corrected, and shows nothing that was not checked."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from evidentia import connect
from evidentia.governance.decision_expansion import expand
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.governance.log_scan import scan
from evidentia.protocol.citations import DocumentCitation, TableCitation, find_citations
from evidentia.testing.fake_models import FakeModels, FakeReply, models_down
from evidentia.testing.scripted_model import INVENTED, NOTHING, Call, Conversation, Say, ScriptedModel, disobedient, good
from evidentia.wiring.governance_runtime import open_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.decisions import PolicyDecision

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELMETS = "What does the policy say about helmets?"
PRICE = "What is the monthly price of the Cargo Long?"
FOLDING = "How do I fold the city bike?"
MODULES = ("agent", "endpoint", "evidence", "report", "rules")
BROKEN_RULES = ["filesystem_tools", "raw_query", "needless_call"]


class Ran(NamedTuple):
    code: int
    out: str
    told: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Run the example in this process, and take its modules out again: their names are short."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def main(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["agent.py", *arguments])
        code = importlib.import_module("agent").main()
        return Ran(code, *capsys.readouterr())

    yield main
    for name in MODULES:
        sys.modules.pop(name, None)


def ran_apart(*arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "agent.py"), *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def decided(base: Path) -> list[PolicyDecision]:
    """Return every decision of the log, which holds and comes out the same when it is made again."""
    with open_control(base) as control:
        assert verify(control.log).ok
        assert 0 == replay(control.log).mismatch_count
        return list(expand(scan(control.log, lambda *_: True)))


def blocked(base: Path, *, kind: str) -> list[str]:
    return [decision.rule for decision in decided(base) if decision.action.stops and decision.kind == kind]


def answer_of(out: str) -> str:
    return out.partition("\nCitations\n")[0]


def assert_citations_resolve(answer: str, base_path: Path) -> None:
    citations = [found.citation for found in find_citations(answer)]

    assert citations
    with connect(base_path) as base:
        known = {document_id for document_id, _, _ in base.documents()}
        rows = {(card.document_id, card.sheet): base.open_table(card.table_id).content.rows for card in base.tables()}
        for citation in citations:
            assert isinstance(citation, DocumentCitation | TableCitation)
            assert citation.file in known
            if isinstance(citation, TableCitation):
                assert set(citation.rows) <= set(rows[citation.file, citation.sheet])  # type: ignore[index]  # ids are plain texts here
        assert base.verify().ok


@pytest.mark.parametrize("question", [HELMETS, PRICE])
@pytest.mark.parametrize("script", ["good", "disobedient"])
def test_example_ends_with_a_cited_and_verified_answer(tmp_path: Path, script: str, question: str) -> None:
    base = tmp_path / "base"
    ran = ran_apart(question, "--script", script, "--base", str(base))

    assert 0 == ran.code, ran.told
    wanted = ("must wear a helmet at all times",) if question == HELMETS else ("Cargo Long", "75")
    assert all(words in answer_of(ran.out) for words in wanted)
    assert_citations_resolve(answer_of(ran.out), base)
    assert ([] if script == "good" else BROKEN_RULES) == blocked(base, kind="ask")
    assert ("reply sent back" in ran.told) is (script == "disobedient")
    released = [decision for decision in decided(base) if decision.kind in {"reply", "grounding", "end"}]
    assert ["reply", "grounding", "end", "end"] == [decision.kind for decision in released]
    assert not any(decision.action.stops for decision in released)


def test_receipts_that_are_printed_replay_to_the_same_answer(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run(HELMETS, "--base", str(tmp_path / "base"))
    receipts = re.findall(r"receipt +(\S+)", ran.out)

    assert 1 == len(receipts)
    with connect(tmp_path / "base") as base:
        assert base.replay(receipts[0]).is_same


def test_image_is_shown_next_to_its_text(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run(FOLDING, "--script", "disobedient", "--base", str(tmp_path / "base"))

    assert 0 == ran.code, ran.told
    lines = [line for line in answer_of(ran.out).splitlines() if line]
    assert ["The procedure for", "![the red latch i", '<CITATION file="w'] == [line[:17] for line in lines]
    image = re.search(r"evidentia-image:([0-9a-f]{64})", lines[1])
    assert image is not None
    with connect(tmp_path / "base") as base:
        assert (EXAMPLES / "corpus" / "latch.png").read_bytes() == base.image(image[1])[1]


@pytest.mark.parametrize("question", [HELMETS, PRICE])
def test_thorough_profile_blocks_the_file_system_as_well(run: Callable[..., Ran], tmp_path: Path, question: str) -> None:
    ran = run(question, "--script", "disobedient", "--profile", "thorough", "--base", str(tmp_path / "base"))

    assert 0 == ran.code, ran.told
    assert BROKEN_RULES[:2] == blocked(tmp_path / "base", kind="ask")
    assert_citations_resolve(answer_of(ran.out), tmp_path / "base")


def test_nothing_found_is_said_after_every_source_was_asked(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("What is the population of Mars?", "--base", str(tmp_path / "base"))

    assert 0 == ran.code, ran.told
    assert NOTHING == ran.out.splitlines()[0]
    assert "Citations" not in ran.out
    assert {"table_rag_retrieve", "rag_retrieve"} == set(re.findall(r"- (\w+) \{", ran.told))


@pytest.mark.parametrize(
    ("script", "kind", "rules"),
    [("stubborn", "reply", ["citation_missing"]), ("fabulous", "grounding", ["min_grounding_score"]), ("restless", "reply", [])],
)
def test_model_that_never_complies_is_refused(run: Callable[..., Ran], tmp_path: Path, script: str, kind: str, rules: list[str]) -> None:
    with ScriptedModel(script) as model:
        ran = run(HELMETS, "--endpoint", model.url, "--base", str(tmp_path / "base"))

    assert 1 == ran.code
    assert "refused: " in ran.told
    assert "helmet" not in ran.out.lower()
    assert INVENTED not in ran.out
    assert rules == blocked(tmp_path / "base", kind=kind)


def test_sentence_without_support_is_sent_back_and_taken_out(run: Callable[..., Ran], tmp_path: Path) -> None:
    with ScriptedModel("inventive") as model:
        ran = run(HELMETS, "--endpoint", model.url, "--base", str(tmp_path / "base"))

    assert 0 == ran.code, ran.told
    assert f"nothing that was retrieved supports: {INVENTED}" in ran.told
    assert INVENTED not in ran.out


def test_answer_after_nothing_was_found_is_refused(run: Callable[..., Ran], tmp_path: Path) -> None:
    def boastful(conversation: Conversation) -> Say | Call:
        turn = disobedient(conversation)
        return Say("Mars has a population of nine people.") if isinstance(turn, Say) else turn

    with ScriptedModel(boastful) as model:
        ran = run("What is the population of Mars?", "--endpoint", model.url, "--base", str(tmp_path / "base"))

    assert 1 == ran.code
    assert "nine people" not in ran.out


@pytest.mark.parametrize("text", ["", "Hello!", "# Helmets"])
def test_reply_that_says_nothing_is_refused(run: Callable[..., Ran], tmp_path: Path, text: str) -> None:
    def silent(conversation: Conversation) -> Say | Call:
        turn = good(conversation)
        return turn if isinstance(turn, Call) else Say(text)

    with ScriptedModel(silent) as model:
        ran = run(HELMETS, "--endpoint", model.url, "--base", str(tmp_path / "base"))

    assert 1 == ran.code
    assert "\nDecisions" == ran.out[:10]


def test_model_is_sent_the_protocol_the_tools_and_each_reason(run: Callable[..., Ran], tmp_path: Path) -> None:
    with ScriptedModel("disobedient") as model:
        assert 0 == run(HELMETS, "--endpoint", model.url, "--model", "any", "--base", str(tmp_path / "base")).code

    messages = model.asked[-1]["messages"]
    assert "any" == model.asked[-1]["model"]
    assert messages[0]["content"].startswith("# Retrieval protocol: ")
    assert {"rag_retrieve", "table_rag_retrieve", "Read"} == {tool["function"]["name"] for tool in model.asked[0]["tools"]}
    told = [message["content"] for message in messages if message["role"] == "tool"]
    assert BROKEN_RULES == [found[1] for text in told if (found := re.match(r"Blocked \((\w+)\): ", text))]
    assert all('Next step: {"step":' in text for text in told)
    assert "citation_missing" in messages[-1]["content"]


def test_unknown_tools_and_odd_arguments_are_errors_that_the_model_sees(run: Callable[..., Ran], tmp_path: Path) -> None:
    odd = [Call("table_rag_retrieve", {"query": 5}), Call("rag_retrieve", {"query": "helmets", "top_k": "many"}), Call("", {})]

    def clumsy(conversation: Conversation) -> Say | Call:
        made = sum(message["role"] == "assistant" for message in conversation.messages)
        return odd[made] if made < len(odd) else Say("Helmets are free.")

    with ScriptedModel(clumsy) as model:
        ran = run(HELMETS, "--endpoint", model.url, "--profile", "thorough", "--base", str(tmp_path / "base"))

    told = [message["content"] for message in model.asked[-1]["messages"] if message["role"] == "tool"]
    assert 1 == ran.code
    assert 3 == len(told)
    assert all(text.startswith(("Blocked", "Error: ")) for text in told)


def test_dead_endpoint_is_an_error_without_a_trace(tmp_path: Path) -> None:
    with models_down() as urls:
        ran = ran_apart(HELMETS, "--endpoint", urls["openai"], "--base", str(tmp_path / "base"))

    assert 3 == ran.code
    assert re.fullmatch(r"error: http://\S+ gave no answer: .*\n", ran.told)
    assert "" == ran.out


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (FakeReply(status=500), "answered 500"),
        (FakeReply(body=b"<!doctype html>"), "gave no answer"),
        (FakeReply(body=b'{"choices": []}'), "in another form"),
        (FakeReply(body=b'{"choices": [{"message": {"tool_calls": ["Read"]}}]}'), "in another form"),
        (FakeReply(manner="hang_up"), "gave no answer"),
        (FakeReply(manner="cut"), "gave no answer"),
    ],
)
def test_answer_that_cannot_be_read_is_an_error(run: Callable[..., Ran], tmp_path: Path, reply: FakeReply, said: str) -> None:
    with FakeModels(reply) as models:
        ran = run(HELMETS, "--endpoint", models.url, "--base", str(tmp_path / "base"))

    assert 3 == ran.code
    assert said in ran.told
    assert "" == ran.out


def test_directory_of_others_is_not_made_a_base(run: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")

    with pytest.raises(SystemExit, match="2"):
        run(HELMETS, "--base", str(tmp_path))
    assert [tmp_path / "letter.txt"] == list(tmp_path.iterdir())


def test_disobedient_script_needs_to_be_told_the_reason() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    asked = [{"role": "user", "content": HELMETS}, {"role": "assistant", "tool_calls": [call]}]
    advice = 'Next step: {"step":"switch","tool":"rag_retrieve","query":"helmets"}'

    def turn(told: str) -> Say | Call:
        return disobedient(Conversation.of({"messages": [*asked, {"role": "tool", "tool_call_id": "1", "content": told}]}))

    assert Call("rag_retrieve", {"query": HELMETS}) == turn(f"Blocked (filesystem_tools): no\n{advice}")
    assert Say(NOTHING) == turn("Blocked: no")


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "user", "content": "Well?"}]}, {"messages": 3}, 5],
)
def test_scripted_model_refuses_what_is_no_request(body: Any) -> None:
    with ScriptedModel() as model:
        connection = HTTPConnection("127.0.0.1", urlsplit(model.url).port)
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        said = json.load(response)
        connection.close()

    assert 400 == response.status
    assert "this is no request" in said["error"]["message"]
