"""Asking from the command line: the table, the JSON, who sees what, and coming back to an answer."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia import EvidenceResponse, connect
from evidentia.serving.cli.search_report import age_of

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Outcome, Run

AS_OF = "2026-01-01T00:00:00Z"
HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202ereversed"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base with four documents of two sources; the tests here only ask it."""
    directory = tmp_path_factory.mktemp("asked")
    (directory / "keys.md").write_text(
        "---\nupdated: 2025-12-02\ntags: [security]\n---\n\n# Keys\n\nRotate the signing keys every 90 days.\n", encoding="utf-8"
    )
    (directory / "codes.md").write_text("# Codes\n\nHRB-4012 means that a key has expired.\n", encoding="utf-8")
    (directory / "odd.md").write_text(f"# Odd\n\nA walrus {HOSTILE} rotates.\n", encoding="utf-8")
    (directory / "secret.md").write_text(
        '---\nclassification: confidential\nacl: ["group:security"]\ntags: [sealed]\n---\n\nThe root key is called Kittiwake.\n',
        encoding="utf-8",
    )
    with connect(directory / "base", init=True) as base:
        base.ingest([directory / "keys.md", directory / "odd.md"], source="handbook", authority="canonical")
        base.ingest([directory / "codes.md", directory / "secret.md"], source="api")
    return directory / "base"


def parsed(outcome: Outcome, *, exit_code: int = 0) -> Any:  # JSON
    assert outcome.exit_code == exit_code, outcome.err
    return json.loads(outcome.out)


def document_ids(response: Any) -> list[str]:  # JSON
    return [fragment["document_id"] for fragment in response["fragments"]]


def test_table_leads_with_confidence_in_number_and_word(run: Run, asked: Path) -> None:
    outcome = run("search", "rotate signing keys", "--base", asked, "--mode", "lexical", "--as-of", AS_OF)

    lines = outcome.out.splitlines()
    assert (0, "") == (outcome.exit_code, outcome.err)
    assert ["#", "confidence", "source", "authority", "age", "snippet"] == lines[0].split()
    assert re.match(r"1  [01]\.\d\d [a-z ]+  handbook:keys\.md +canonical  30 d ", lines[1])
    assert lines[1].endswith("# Keys Rotate the signing keys every 90 days.")
    assert "unknown" in lines[2]
    footer = r"\d of \d matching fragments, receipt r-[0-9a-f]{12}-[0-9a-f]{32}, result [0-9a-f]{16}, \d+\.\d ms"
    assert re.fullmatch(footer, lines[-2])
    assert re.match(r"the best match is .*relevant \([01]\.\d\d\)|probably nothing here: ", lines[-1])
    assert "\x1b" not in outcome.out


def test_json_is_the_whole_response_and_verifies_anywhere(run: Run, asked: Path, tmp_path: Path) -> None:
    outcome = run("search", "rotate keys", "--base", asked, "--json", "--facet", "source_id", "--facet", "tags", "--explain")
    (tmp_path / "answer.json").write_text(outcome.out, encoding="utf-8")

    response = parsed(outcome)
    verified = run("verify", "answer.json")

    assert set(EvidenceResponse.__struct_fields__) == set(response)
    assert msgspec.convert(response, EvidenceResponse).result_hash == response["result_hash"]
    assert response["fragments"][0]["explanation"]
    assert (0, True) == (verified.exit_code, verified.out.startswith("answer '"))


def test_options_reach_the_request(run: Run, asked: Path) -> None:
    def ask(*options: str) -> Any:
        return parsed(run("search", "key OR rotates", "--base", asked, "--json", *options))

    assert 1 == len(ask("--limit", "1")["fragments"])
    assert ["api:codes.md", "api:secret.md"] == sorted(document_ids(ask("--source", "api")))
    assert ["handbook:keys.md"] == document_ids(ask("--filter", 'tags contains "security"'))
    assert "2026-01-01T00:00:00Z" == ask("--as-of", AS_OF)["as_of"]
    assert ask("--no-receipt")["receipt_id"] is None
    assert [] == ask("--tokens", "1")["fragments"]
    assert [] == ask("--mode", "lexical")["degraded"]


@pytest.mark.parametrize("option", ["--max-sources", "--most-sources"])
def test_number_of_sources_is_bounded_under_both_names(run: Run, asked: Path, option: str) -> None:
    assert 0 == run("search", "key", option, "1", "--base", asked).exit_code
    assert "source_policy" in run("search", "key", option, "-1", "--base", asked).err


def test_earlier_version_can_be_asked(run: Run, base: Path, tmp_path: Path) -> None:
    before = parsed(run("search", "keys expire", "--base", base, "--json"))
    (tmp_path / "new.md").write_text("# New\n\nAlso about keys that expire.\n", encoding="utf-8")
    run("ingest", "new.md", "--base", base)

    now = parsed(run("search", "keys expire", "--base", base, "--json"))
    then = parsed(run("search", "keys expire", "--base", base, "--json", "--corpus-version", before["corpus_version"]))

    assert document_ids(before) == document_ids(then) != document_ids(now)


def test_facets_are_small_tables(run: Run, asked: Path) -> None:
    out = run("search", "key rotates", "--base", asked, "--facet", "source_id", "--facet", "tags").out

    assert "\n\nsource_id  documents\napi                2\nhandbook           2\n" in out
    assert "\n\ntags      documents\nsealed            1\nsecurity          1\n" in out


def test_notes_say_what_is_missing(run: Run, asked: Path) -> None:
    outcome = run("search", "key", "--base", asked, "--tokens", "10", "--source", "api", "--source", "nowhere")

    assert "withheld: it does not fit the token budget\n" in outcome.err
    assert "note: not searched: handbook (skipped: source_policy does not allow it)\n" in outcome.err
    assert "note: not searched: nowhere (denied: there is no such source, or none of it may be seen)\n" in outcome.err
    assert "" == run("search", "key", "--base", asked, "--quiet").err


def test_base_without_vectors_says_how_to_make_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\nKeys expire.\n", encoding="utf-8")
    run("init")
    run("ingest", "keys.md", "--no-embed")

    before = run("search", "keys")
    run("embed")
    after = run("search", "keys")

    assert "note: dense: this base holds no vectors, so only words were searched; `evidentia embed` makes them\n" == before.err
    assert "" == after.err


def test_nothing_found_by_words_is_an_answer(run: Run, asked: Path) -> None:
    outcome = run("search", "absolutelynothing", "--base", asked, "--mode", "lexical")

    assert 0 == outcome.exit_code
    assert outcome.out.startswith("nothing that you may see matches\n\n0 of 0 matching fragments, receipt r-")


def test_explanation_names_chunks_terms_and_stages(run: Run, asked: Path) -> None:
    out = run("search", "HRB-4012 expired", "--base", asked, "--explain", "--limit", "1").out

    assert "\n\napi:codes.md#0@" in out
    assert re.search(r"\nterm +score +frequency +in context +containing +length\n", out)
    assert re.search(r"\nhrb4012 +\d+\.\d\d +1 +0? +1 of 4 ", out)
    assert re.search(r"\n# +confidence +score +relevance +authority +freshness +utility +words +cosine\n", out)
    assert re.search(r"\nunderstanding +what it did +added\n", out)
    assert re.search(r"\nstage +left +what it did\n", out)


def test_hostile_content_cannot_steer_the_terminal(run: Run, asked: Path) -> None:
    for options in ((), ("--json",)):
        outcome = run("search", "walrus", "--base", asked, *options)
        assert not any(character in outcome.out + outcome.err for character in "\x1b\x07\x9b\u202e")
    assert "walrus \\x1b]0;owned\\x07 \\x9b31m \\u202ereversed" in run("search", "walrus", "--base", asked).out


@pytest.mark.parametrize(
    ("caller", "is_seen"),
    [
        ("alice", False),
        ("alice clearance=confidential", False),
        ("alice groups=security", False),
        ("alice clearance=confidential groups=security", True),
        ("alice clearance=confidential groups=security tenant=acme", False),
        ('{"principal_id": "alice", "clearance": "restricted", "groups": ["security"]}', True),
    ],
)
def test_caller_sees_what_they_may_see(run: Run, asked: Path, caller: str, is_seen: object) -> None:
    outcome = run("search", "Kittiwake key", "--base", asked, "--as", caller, "--json", "--facet", "tags", "--facet", "classification")

    assert is_seen == ("api:secret.md" in document_ids(parsed(outcome)))
    assert is_seen == ("sealed" in outcome.out) == ("confidential" in outcome.out.replace(caller, ""))


def test_replay_gives_the_same_answer_and_hides_what_may_not_be_seen(run: Run, asked: Path) -> None:
    caller = "eve clearance=confidential groups=security"
    response = parsed(run("search", "Kittiwake key", "--base", asked, "--as", caller, "--json"))

    own = parsed(run("replay", response["receipt_id"], "--base", asked, "--as", caller, "--json"))
    theirs = run("replay", response["receipt_id"], "--base", asked, "--as", "alice")

    assert (True, 0, response["result_hash"]) == (own["is_same"], own["hidden"], own["result_hash"])
    assert document_ids(response) == document_ids(own["response"])
    assert (0, True) == (theirs.exit_code, theirs.out.startswith(f"receipt {response['receipt_id']}: the same answer\nrecorded  "))
    assert theirs.err == "note: 1 fragment is not shown: not for you to see today\n"
    assert "secret.md" not in theirs.out


def test_why_tells_where_a_chunk_stands(run: Run, asked: Path) -> None:
    response = parsed(run("search", "key", "--base", asked, "--limit", "1", "--json"))
    every = parsed(run("search", "key", "--base", asked, "--json", "--diversity", "1"))
    first, second = (fragment["chunk_id"] for fragment in every["fragments"][:2])

    shown = run("why", response["receipt_id"], first, "--base", asked).out
    left = parsed(run("why", response["receipt_id"], second, "--base", asked, "--json"))

    assert re.search(r"\nstage +answered\nrank +1\nconfidence +[01]\.\d\d [a-z ]+\nscore +0\.\d\d\n", shown)
    assert re.search(r"\n# +confidence +score +relevance +authority +freshness +utility +words +cosine\n1 ", shown)
    assert re.search(r"\nterm  score  frequency  in context  containing  length\nkey ", shown)
    assert ("rerank", 2, "limit=2") == (left["stage"], left["rank"], left["smallest_change"])
    assert {"receipt_id", "chunk_id", "score", "scores", "confidence", "terms", "reason"} <= set(left)


def test_why_about_a_question_of_words_has_no_column_for_vectors(run: Run, asked: Path) -> None:
    response = parsed(run("search", "key", "--base", asked, "--mode", "lexical", "--json"))

    shown = run("why", response["receipt_id"], response["fragments"][0]["chunk_id"], "--base", asked).out

    assert re.search(r"\n# +confidence +score +relevance +authority +freshness +utility +words\n", shown)


def test_why_about_a_hidden_chunk_is_like_one_that_is_not_there(run: Run, asked: Path) -> None:
    found = parsed(run("search", "Kittiwake", "--base", asked, "--json"))
    receipt = parsed(run("search", "Kittiwake key", "--base", asked, "--as", "alice", "--json"))["receipt_id"]
    hidden = found["fragments"][0]["chunk_id"]

    refused = run("why", receipt, hidden, "--base", asked, "--as", "alice")
    unknown = run("why", receipt, "api:nothing.md#0@0000000000000000", "--base", asked, "--as", "alice")

    assert (2, 2) == (refused.exit_code, unknown.exit_code)
    assert refused.err == unknown.err.replace("api:nothing.md#0@0000000000000000", hidden)


def test_verify_of_a_receipt_replays_and_checks_custody(run: Run, base: Path) -> None:
    receipt = parsed(run("search", "keys expire", "--base", base, "--mode", "lexical", "--json"))["receipt_id"]

    good = run("verify", receipt, "--base", base)
    (base / "evidentia.toml").write_text("", encoding="utf-8")
    report = parsed(run("verify", receipt, "--base", base, "--json"))

    assert (0, True) == (good.exit_code, good.out.startswith(f"receipt '{receipt}': ok\nchecked "))
    assert (True, 1, []) == (report["ok"], report["fragments"], report["broken"])


def test_receipt_of_another_tenant_is_checked_as_far_as_its_owner_may_see(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.md").write_text("# Theirs\n\nKeys of another tenant.\n", encoding="utf-8")
    run("ingest", "theirs.md", "--source", "theirs", "--tenant", "acme", "--base", base)
    receipt = parsed(run("search", "keys", "--base", base, "--as", "ann tenant=acme", "--json"))["receipt_id"]

    outcome = run("verify", receipt, "--base", base)

    assert 0 == outcome.exit_code
    assert outcome.err == "note: 1 of its fragments were not checked one by one: not for you to see today\n"


def test_receipt_that_was_tampered_with_is_not_believed(run: Run, base: Path) -> None:
    receipt = parsed(run("search", "keys expire", "--base", base, "--json"))["receipt_id"]
    (file,) = (base / "receipts").iterdir()
    file.write_bytes(file.read_bytes().replace(b"keys expire", b"keys explre"))

    for command in ("verify", "replay"):
        assert 3 == run(command, receipt, "--base", base).exit_code


CHANGES: dict[str, Any] = {
    "content": lambda answer: answer["fragments"][0].update(content="Keys never expire."),
    "score": lambda answer: answer["fragments"][0].update(score=1),
    "order": lambda answer: answer["fragments"].reverse(),
    "left out": lambda answer: answer["fragments"].pop(),
    "facets": lambda answer: answer["facets"]["source_id"].update(api=9),
    "result hash": lambda answer: answer.update(result_hash="0" * 64),
    "commit": lambda answer: answer["commit"].update(corpus_version="0" * 64),
    "coverage": lambda answer: answer["source_coverage"].pop("api"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_answer_fails_verification(run: Run, asked: Path, tmp_path: Path, change: str) -> None:
    answer = parsed(run("search", "key rotates", "--base", asked, "--json", "--facet", "source_id"))
    CHANGES[change](answer)
    (tmp_path / "changed.json").write_text(json.dumps(answer), encoding="utf-8")

    outcome = run("verify", "changed.json")

    assert 1 == outcome.exit_code
    assert "first broken link" in outcome.out


def test_answer_with_something_else_in_it_is_refused(run: Run, asked: Path, tmp_path: Path) -> None:
    answer = parsed(run("search", "key", "--base", asked, "--json"))
    cases = {
        "there is something else at `$.approved_by`": {**answer, "approved_by": "the board"},
        "there is something else at `$.fragments[0].verdict`": {
            **answer,
            "fragments": [{**answer["fragments"][0], "verdict": "true"}, *answer["fragments"][1:]],
        },
        "object missing required field `commit`": {name: value for name, value in answer.items() if name != "commit"},
        "there is something else at `$.degraded`": {name: value for name, value in answer.items() if name != "degraded"},
        "there is something else at `$.tokens_used`": {
            name: value for name, value in answer.items() if name not in {"custody_format", "response_hash", "tokens_used"}
        },
    }
    for problem, content in cases.items():
        (tmp_path / "more.json").write_text(json.dumps(content), encoding="utf-8")
        outcome = run("verify", "more.json")
        assert (2, True) == (outcome.exit_code, f"it is not an answer: {problem}" in outcome.err.lower()), outcome.err


def test_answer_of_the_first_format_is_read_without_the_fields_of_the_second(run: Run, asked: Path, tmp_path: Path) -> None:
    answer = parsed(run("search", "key", "--base", asked, "--json"))
    for fragment in answer["fragments"]:
        del fragment["retrieval_context"]["leg_ranks"], fragment["retrieval_context"]["relevance_signal"]
    older = {name: value for name, value in answer.items() if name not in {"custody_format", "response_hash"}}
    (tmp_path / "older.json").write_text(json.dumps(older), encoding="utf-8")

    outcome = run("verify", "older.json")

    assert (0, "") == (outcome.exit_code, outcome.err)
    assert "by the rules of custody format 1" in outcome.out


@pytest.mark.parametrize("number", [-1, 2**53, 2**63, 2**64, 10**400], ids=["negative", "double", "signed", "unsigned", "huge"])
def test_impossible_numbers_in_an_answer_never_crash_verify(run: Run, asked: Path, tmp_path: Path, number: int) -> None:
    answer = parsed(run("search", "key", "--base", asked, "--json", "--facet", "source_id"))
    first = answer["fragments"][0]
    cases: list[Any] = [
        {**answer, "fragments": [{**first, "score": number}]},
        {**answer, "fragments": [{**first, "position": number, "start": number}]},
        {**answer, "facets": {"source_id": {"api": number}}},
        {**answer, "total_candidates": number},
        {**answer, "commit": {**answer["commit"], "log_size": number}},
    ]
    for content in cases:
        (tmp_path / "odd.json").write_text(json.dumps(content), encoding="utf-8")
        assert run("verify", "odd.json").exit_code in {0, 1, 2}


def test_age_is_counted_in_one_unit(asked: Path) -> None:
    with connect(asked) as base:
        fragment = base.retrieve("rotate signing keys", limit=1, receipt=False).fragments[0]
    updated = datetime(2025, 12, 2, tzinfo=UTC)
    ages = {
        timedelta(hours=3): "3 h",
        timedelta(days=2): "2 d",
        timedelta(days=59): "59 d",
        timedelta(days=400): "13 mo",
        timedelta(days=800): "2 y",
        timedelta(days=-1): "later",
    }

    assert list(ages.values()) == [age_of(fragment, as_of=updated + age) for age in ages]
    assert "unknown" == age_of(msgspec.structs.replace(fragment, metadata={}), as_of=updated)


MISTAKES = [
    (("a", "--filter", "language = en"), "filter, column 12: expected a value"),
    (("a", "--filter", 'langage = "en"'), "field 'langage': is not a field of this filter; did you mean 'language'"),
    (("a", "--limit", "nan"), "invalid value for '--limit'"),
    (("a", "--limit", "-1"), "field 'limit': expected `int` >= 1"),
    (("a", "--limit", "10001"), "field 'limit': expected `int` <= 10000"),
    (("a", "--tokens", "-5"), "field 'token_budget': expected `int` >= 1"),
    (("a", "--deadline-ms", "0"), "field 'latency_deadline_ms': expected `int` >= 1"),
    (("a", "--mode", "fuzzy"), "field 'mode': 'fuzzy' is not one of hybrid, lexical, dense"),
    (("a", "--facet", "colour"), "field 'facets': field 'colour'"),
    (("a", "--as", "bob clearance=top"), "field 'principal' (--as): 'clearance=top' is not one of"),
    (("a", "--as-of", "yesterday"), "field 'as_of': "),
    (("a", "--as-of", "2026-01-01T00:00:00"), "field 'as_of': '2026-01-01T00:00:00' has no time zone"),
    (("a", "--corpus-version", "0" * 64), "no corpus_version '0000"),
    (("",), "field 'query': it is empty"),
    (("word " * 2_000_000,), "field 'query': 10000000 characters are more than search.max_query_chars"),
    (("\udcff",), "field 'query': it holds an unpaired surrogate"),
    (("a", "--filter", '"\udcff"'), "field 'filter': "),
    (("a", "--source", "\udcff"), "field 'source_policy': "),
    (("a", "--as", "x" * 10_000_000 + "="), "field 'principal' (--as): it begins with 'xxx"),
    (("a", "--corpus-version", "v" * 10_000_000), "no corpus_version 'vvv"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[f"{number}" for number in range(len(MISTAKES))])
def test_bad_request_names_its_field_on_one_line(run: Run, asked: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("search", "--base", asked, *arguments)

    first, second = outcome.err.splitlines()
    assert (2, "") == (outcome.exit_code, outcome.out)
    assert first.startswith(f"evidentia: {message}")
    assert len(first) < 1000
    assert second.startswith("hint: ")


def test_unknown_receipts_are_named(run: Run, asked: Path) -> None:
    for command in (("replay", "r-000000000000-1"), ("why", "r-000000000000-1", "c"), ("verify", "r-000000000000-1"), ("replay", "x")):
        outcome = run(*command, "--base", asked)
        assert (2, True) == (outcome.exit_code, outcome.err.startswith("evidentia: no receipt '")), outcome.err
