"""Sources from a terminal: what is registered, tried, dropped and searched, and what a mistake says."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia import connect
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.vocabulary import BreakerState, CoverageState
from evidentia.serving.cli.durations import MAX_DURATION_S, UNITS, age_in_words, seconds_of, span_of
from evidentia.serving.cli.invocation import Invocation
from evidentia.serving.cli.search_report import place_of, put_coverage_notes
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.cli.sources_report import put_statuses, put_trial
from serving.federated_bases import IN_TIME, PATIENT, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

HOSTILE = "\x1b[2J[red]wiki[/red]\n\u202e\x07:boom:"
HEAVY = {"numpy", "rich", "msgspec", "sqlite3", "asyncio"}


def test_source_is_listed_shown_tried_and_removed(run: Run, federated: Path, archive: Path) -> None:
    listed = run("sources", "list", "--base", federated)
    shown = run("sources", "show", "archive", "--base", federated)
    tried = run("sources", "test", "archive", "keys of the archive", "--base", federated)
    removed = run("sources", "remove", "archive", "--base", federated)

    assert [
        "id         type            kind  authority  SLA  state  use",
        "archive    inverted_index  base  curated    -    ready  not asked yet",
        "documents  inverted_index  own   curated    -    ready  3 documents",
    ] == listed.out.splitlines()
    assert f"\naddress       {archive}\n" in shown.out
    assert "\nmay ask       tenants default; clearance public\n" in shown.out
    assert "\nlatency tier  warm, 99 of 100 answers within 20000 ms\n" in shown.out
    assert (0, True) == (tried.exit_code, "\nstate       searched\ncandidates  1\n" in tried.out)
    assert "Keys of the archive expire after ten years." in tried.out
    assert (0, "removed archive\n") == (removed.exit_code, removed.out)
    assert ["documents"] == [each["descriptor"]["source_id"] for each in parsed(run("sources", "list", "--base", federated, "--json"))]


def test_json_is_what_python_gives(run: Run, federated: Path) -> None:
    trial = parsed(run("sources", "test", "archive", "keys", "--base", federated, "--json"))
    shown = parsed(run("sources", "show", "archive", "--base", federated, "--json"))
    fresh = parsed(run("sources", "freshness", "--base", federated, "--json"))

    assert ("archive", "searched") == (trial["source_id"], trial["report"]["state"])
    assert [1] == [each["rank"] for each in trial["candidates"]]
    assert (1, 0, True) == (shown["status"]["health"]["calls"], shown["status"]["health"]["failures"], shown["status"]["is_attached"])
    assert ["archive", "documents"] == [each["source_id"] for each in fresh]
    assert shown["freshness"] == fresh[0]


def test_typed_directory_starts_at_the_working_directory(run: Run, base: Path, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "near").symlink_to(archive)

    added = run("sources", "add", "--id", "near", "--kind", "base", "--address", "near", *PATIENT, "--base", base, "--json")

    assert str(tmp_path / "near") == parsed(added)["connection"]["address"]
    assert 0 == run("sources", "test", "near", "keys", "--base", base).exit_code


@pytest.mark.parametrize("form", ["json", "toml"])
def test_descriptor_comes_from_a_file_and_options_replace_what_it_says(run: Run, base: Path, tmp_path: Path, form: str) -> None:
    fields = {
        "source_id": "branch",
        "authority_tier": "derived",
        "connection": {"kind": "remote", "address": "https://branch.example", "key_variable": "BRANCH_KEY"},
    }
    as_toml = (
        'source_id = "branch"\nauthority_tier = "derived"\n'
        '[connection]\nkind = "remote"\naddress = "https://branch.example"\nkey_variable = "BRANCH_KEY"\n'
    )
    file = tmp_path / f"branch.{form}"
    file.write_text(json.dumps(fields) if form == "json" else as_toml, encoding="utf-8")

    stored = parsed(
        run("sources", "add", file, "--authority", "user", "--address", "https://other.example", "--role", "ops", "--base", base, "--json")
    )

    assert ("branch", "user", "warm") == (stored["source_id"], stored["authority_tier"], stored["latency_tier"])
    assert ("https://other.example", "BRANCH_KEY") == (stored["connection"]["address"], stored["connection"]["key_variable"])
    assert ["ops"] == stored["access_policy"]["roles"]


def test_every_option_reaches_the_descriptor(run: Run, base: Path) -> None:
    options = (
        *("--id", "tickets", "--type", "api", "--kind", "mcp", "--address", "tickets-server --stdio", "--tool", "search"),
        *("--key-variable", "TICKETS_KEY", "--option", "query_argument=q", "--option", "argument.project=a=b"),
        *("--authority", "user", "--latency-tier", "cold", "--expected-p99-ms", "700", "--freshness-sla", "24h"),
        *("--capability", "semantic", "--capability", "structured", "--cost-micros", "12", "--max-qps", "5"),
        *("--schema-version", "2.1.0", "--weight", "0.5", "--role", "ops", "--group", "oncall", "--principal", "ann"),
        *("--tenant", "default", "--tenant", "acme", "--min-clearance", "internal"),
    )

    stored = parsed(run("sources", "add", *options, "--base", base, "--json"))

    assert {
        "source_id": "tickets",
        "source_type": "api",
        "schema": {"fields": [], "tables": {}},
        "authority_tier": "user",
        "freshness_sla_s": 86_400,
        "latency_tier": "cold",
        "access_policy": {
            "tenants": ["default", "acme"],
            "roles": ["ops"],
            "groups": ["oncall"],
            "principals": ["ann"],
            "minimum_clearance": "internal",
            "predicate": "",
        },
        "query_capabilities": ["semantic", "structured"],
        "cost_per_query_micros": 12,
        "max_qps": 5,
        "version": "2.1.0",
        "connection": {
            "kind": "mcp",
            "address": "tickets-server --stdio",
            "tool": "search",
            "key_variable": "TICKETS_KEY",
            "options": {"argument.project": "a=b", "query_argument": "q"},
        },
        "expected_p99_ms": 700,
        "freshness_tau_s": None,
        "weight_milli": 500,
    } == stored


def test_options_alone_change_what_they_name(run: Run, federated: Path) -> None:
    before = parsed(run("sources", "show", "archive", "--base", federated, "--json"))["status"]["descriptor"]

    after = parsed(run("sources", "add", "--id", "archive", "--freshness-sla", "7d", "--base", federated, "--json"))

    assert {**before, "freshness_sla_s": 604_800} == after


MISTAKES = [
    (("--kind", "base", "--address", "x"), "field 'source_id': say what it is called"),
    (("--id", "x"), "field 'connection.kind': say where it is"),
    (("--id", "x", "--kind", "python"), "field 'connection.kind': an object of a Python program cannot be attached from here"),
    (("--id", "x", "--kind", "ftp", "--address", "x"), "field 'connection.kind': 'ftp' is not one of"),
    (("--id", "x", "--kind", "base"), "field 'connection.address': a source of kind 'base' needs it"),
    (("--id", "x", "--kind", "mcp", "--address", "x"), "field 'connection.tool': a source of kind 'mcp' needs it"),
    (("--id", "x", "--kind", "remote", "--address", "x"), "field 'connection.address': it is not an address"),
    (("--id", "x", "--kind", "base", "--address", "x", "--key-variable", "K"), "field 'connection.key_variable': "),
    (("--id", "x", "--kind", "mcp", "--address", "x", "--tool", "t", "--option", "api_key=s3cret"), "field 'connection.options': "),
    (("--id", "x", "--kind", "mcp", "--address", "x", "--tool", "t", "--option", "s3cret"), "field 'connection.options': an option is not"),
    (("--id", "a b\x1b", "--kind", "base", "--address", "x"), "field 'source_id': "),
    (("--id", "x", "--kind", "base", "--address", "x", "--type", "wiki"), "field 'source_type': 'wiki' is not one of"),
    (("--id", "x", "--kind", "base", "--address", "x", "--authority", "golden"), "field 'authority_tier': 'golden' is not one of"),
    (("--id", "x", "--kind", "base", "--address", "x", "--latency-tier", "slow"), "field 'latency_tier': 'slow' is not one of"),
    (("--id", "x", "--kind", "base", "--address", "x", "--freshness-sla", "soon"), "field 'freshness_sla_s': 'soon' is not a span of time"),
    (("--id", "x", "--kind", "base", "--address", "x", "--capability", "magic"), "field 'query_capabilities[0]': 'magic' is not one of"),
    (("--id", "x", "--kind", "base", "--address", "x", "--weight", "77"), "field 'weight_milli': expected `int` <= 10000"),
    (("--id", "x", "--kind", "base", "--address", "x", "--weight", "nan"), "field 'weight_milli': 'nan' is not a number"),
    (("--id", "x", "--kind", "base", "--address", "x", "--max-qps", "0"), "field 'max_qps': expected `int` >= 1"),
    (("--id", "x", "--kind", "base", "--address", "x", "--cost-micros", "-1"), "field 'cost_per_query_micros': expected `int` >= 0"),
    (("--id", "x", "--kind", "base", "--address", "x", "--schema-version", "1"), "field 'version': '1' is not a semantic version"),
    (("--id", "x", "--kind", "base", "--address", "x", "--min-clearance", "odd"), "field 'access_policy.minimum_clearance': 'odd' is not"),
    (("--id", "x", "--kind", "base", "--address", "x", "--tenant", ""), "field 'access_policy.tenants': "),
    (("--id", "documents", "--kind", "base", "--address", "x"), "field 'connection.kind': source 'documents' has documents in the base"),
    (("absent.json",), "'absent.json' cannot be read: no such file or directory"),
    (("bad.json",), "'bad.json' cannot be read: it is not JSON"),
    (("twice.json",), "'twice.json' cannot be read: it is not JSON: a field is there twice"),
    (("list.json",), "'list.json' cannot be read: it is not a table of fields"),
    (("bad.toml",), "'bad.toml' cannot be read: it is not TOML"),
    (("typo.json",), "field 'descriptor': there is no field 'authority'; did you mean 'authority_tier'?"),
    (("flat.json",), "field 'connection': "),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(case[0])[:60] for case in MISTAKES])
def test_mistake_names_the_field_and_registers_nothing(
    run: Run, prepared: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    files = {
        "bad.json": '{"source_id": \x1b[31m',
        "twice.json": '{"source_id": "x", "source_id": "y"}',
        "list.json": "[]",
        "bad.toml": "source_id = ",
        "typo.json": '{"source_id": "x", "authority": "user", "connection": {"kind": "base", "address": "x"}}',
        "flat.json": '{"source_id": "x", "connection": "base"}',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")

    outcome = run("sources", "add", *arguments, "--base", prepared / "base")

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert outcome.err.startswith(f"evidentia: {message}"), outcome.err
    assert not any(text in outcome.err for text in ("\x1b", "s3cret", "Traceback"))
    with connect(prepared / "base") as opened:
        assert ["documents"] == [each.descriptor.source_id for each in opened.sources()]


def test_source_that_gives_no_answer_is_reported_with_exit_code_1(run: Run, base: Path) -> None:
    run("sources", "add", "--id", "nowhere", "--kind", "base", "--address", "nowhere", "--base", base)

    told = run("sources", "test", "nowhere", "--base", base)
    as_json = run("sources", "test", "nowhere", "--base", base, "--json")

    assert (1, 1) == (told.exit_code, as_json.exit_code)
    assert "\nstate       failed\nreason      BaseMissingError: " in told.out
    assert "failed" == parsed(as_json)["report"]["state"]
    assert "2 calls, 2 failed, 0 late" in run("sources", "list", "--base", base).out


def test_caller_knows_only_sources_that_they_may_ask(run: Run, base: Path, archive: Path) -> None:
    run("sources", "add", "--id", "sealed", "--kind", "base", "--address", archive, "--role", "ops", *PATIENT, "--base", base)

    listed = run("sources", "list", "--as", "alice", "--base", base, "--json")
    refused = run("sources", "test", "sealed", "keys", "--as", "alice", "--base", base)
    unknown = run("sources", "test", "nobody", "keys", "--as", "alice", "--base", base)
    allowed = run("sources", "test", "sealed", "keys", "--as", "alice roles=ops", "--base", base)

    assert "sealed" not in listed.out
    assert (2, 2, 0) == (refused.exit_code, unknown.exit_code, allowed.exit_code)
    assert refused.err == unknown.err.replace("nobody", "sealed")


def test_data_older_than_promised_gives_exit_code_1(run: Run, base: Path, tmp_path: Path) -> None:
    (tmp_path / "dated.md").write_text("---\nupdated: 2020-01-01\n---\n\nDated.\n", encoding="utf-8")
    run("ingest", "dated.md", "--source", "dated", "--no-embed", "--base", base)

    for promise, exit_code, verdict in (("1d", 1, "too old"), ("36500d", 0, "fresh")):
        run("sources", "add", "--id", "dated", "--freshness-sla", promise, "--base", base)
        outcome = run("sources", "freshness", "--base", base)

        assert exit_code == outcome.exit_code
        dated = next(line for line in outcome.out.splitlines() if line.startswith("dated "))
        assert (promise, verdict) == (dated.split()[1], dated.split("  ")[-1])
        assert "2020-01-01" in dated


def test_what_was_kept_is_dropped_when_a_source_has_changed(run: Run, federated: Path) -> None:
    run("search", "archive keys", *IN_TIME, "--base", federated)

    first = run("sources", "changed", "archive", "--base", federated)
    second = parsed(run("sources", "changed", "archive", "--base", federated, "--json"))
    unknown = run("sources", "changed", "nobody", "--base", federated)

    assert "dropped 1 kept answer of archive\n" == first.out
    assert {"source_id": "archive", "dropped": 0} == second
    assert (2, "evidentia: no source 'nobody'") == (unknown.exit_code, unknown.err.splitlines()[0])


def test_search_tells_what_comes_from_outside(run: Run, federated: Path) -> None:
    first = run("search", "archive keys", *IN_TIME, "--base", federated)
    again = run("search", "archive keys", *IN_TIME, "--base", federated)
    anew = parsed(run("search", "archive keys", *IN_TIME, "--max-staleness-ms", "0", "--base", federated, "--json"))
    alone = run("search", "archive keys", *IN_TIME, "--most-sources", "0", "--base", federated)
    named = parsed(run("search", "archive keys", *IN_TIME, "--source", "archive", "--base", federated, "--json"))

    outside = next(line for line in first.out.splitlines() if "archive:old:archive.md" in line)
    assert ("outside", "") == (outside.split("  ")[-2].strip(), first.err)
    assert "" == again.err
    assert "searched" == anew["source_coverage"]["archive"]["state"]
    assert "archive:old" not in alone.out
    assert "note: not searched: archive (skipped: at most 0 sources outside the base are asked per part of the question)\n" == alone.err
    assert {"archive"} == {each["source_id"] for each in named["fragments"]}


def test_streamed_answer_is_the_same_and_sources_are_told_of_on_stderr(run: Run, federated: Path, tmp_path: Path) -> None:
    plain = parsed(run("search", "archive keys", *IN_TIME, "--as-of", "2030-01-01T00:00:00Z", "--base", federated, "--json"))
    options = ("--as-of", "2030-01-01T00:00:00Z", "--early-stop", "--stream", "--max-staleness-ms", "0")

    told = run("search", "archive keys", *IN_TIME, *options, "--base", federated, "--json")

    streamed = parsed(told)
    assert [each["chunk_id"] for each in plain["fragments"]] == [each["chunk_id"] for each in streamed["fragments"]]
    assert ["archive", "documents"] == sorted(line.split(": ")[1] for line in told.err.splitlines())
    assert all(": searched, " in line for line in told.err.splitlines())
    (tmp_path / "answer.json").write_text(told.out, encoding="utf-8")
    assert 0 == run("verify", "answer.json").exit_code
    assert "" == run("search", "archive keys", "--stream", "--quiet", "--base", federated).err


def test_source_that_failed_is_told_of_once(run: Run, base: Path) -> None:
    run("sources", "add", "--id", "nowhere", "--kind", "base", "--address", "nowhere", *PATIENT, "--base", base)

    outcome = run("search", "keys", *IN_TIME, "--base", base)

    assert 0 == outcome.exit_code
    (line,) = outcome.err.splitlines()
    assert line.startswith("note: not searched: nowhere (failed: BaseMissingError: ")


def test_notes_tell_what_sources_did_not_do(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with connect(base) as opened:
        response = opened.retrieve("keys", mode="lexical", receipt=False)
    coverage = {
        "a": CoverageReport(state=CoverageState.CACHED, reason="kept for 3 s", candidates=1),
        "b": CoverageReport(state=CoverageState.STALE, reason="failed; what was said before stands in", candidates=1),
        "c": CoverageReport(state=CoverageState.TIMED_OUT, reason="late", candidates=2, faults={"empty": 2, "bad_date": 1}),
        "d": CoverageReport(state=CoverageState.TIMED_OUT, reason="late"),
        "e": CoverageReport(state=CoverageState.SEARCHED),
        HOSTILE: CoverageReport(state=CoverageState.FAILED, reason=HOSTILE),
    }

    put_coverage_notes(Invocation(base=base), msgspec.structs.replace(response, source_coverage=coverage))

    err = capsys.readouterr().err
    assert [
        "note: answered from what was kept past its time: b (stale: failed; what was said before stands in)",
        "note: partly searched: c (timed_out: late)",
        "note: not searched: d (timed_out: late)",
    ] == err.splitlines()[:3]
    assert "note: faults in the reply of c: bad_date 1, empty 2" == err.splitlines()[-1]
    assert (5, False) == (len(err.splitlines()), any(character in err for character in "\x1b\x07\u202e"))


def test_place_of_a_fragment_is_its_origin_where_it_is_not_in_the_base(base: Path) -> None:
    with connect(base) as opened:
        own = opened.retrieve("keys", mode="lexical", receipt=False).fragments[0]
    outside = msgspec.structs.replace(
        own, event=None, source_id="wiki", document_id="wiki:1", metadata={"origin": "https://wiki.example/1"}
    )
    places = {
        "https://wiki.example/1": "wiki: https://wiki.example/1",
        "wiki:/pages/1": "wiki:/pages/1",
        "evidentia:0123/old:a.md": "wiki:1",
        "": "wiki:1",
        "https://wiki.example/" + "a" * 100: "wiki: https://wiki.example/" + "a" * 38 + "…",
    }

    assert own.document_id == place_of(own)
    assert list(places.values()) == [place_of(msgspec.structs.replace(outside, metadata={"origin": origin})) for origin in places]


def test_hostile_candidates_cannot_steer_the_terminal(federated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with connect(federated) as opened:
        trial = opened.test_source("archive", "keys")
    (candidate,) = trial.candidates
    hostile = msgspec.structs.replace(
        candidate,
        origin=HOSTILE,
        content=HOSTILE,
        document_id=f"archive:{HOSTILE}",
        flags=(HOSTILE,),
        updated_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    report = msgspec.structs.replace(trial.report, reason=HOSTILE, faults={HOSTILE: 1})

    put_trial(msgspec.structs.replace(trial, candidates=(hostile,), report=report), cutter=SnippetCutter("keys", language="english"))

    out = capsys.readouterr().out
    assert not any(character in out for character in "\x1b\x07\u202e")
    assert r"\x1b[2J[red]wiki[/red]\n\u202e\x07:boom:" in out


@pytest.mark.parametrize("command", ["show", "test", "remove", "changed"])
def test_hostile_ids_are_escaped(run: Run, prepared: Path, command: str) -> None:
    outcome = run("sources", command, HOSTILE, "--base", prepared / "base")

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert r"no source '\x1b[2J[red]wiki" in outcome.err
    assert "\x1b" not in outcome.err


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_table_fits_the_terminal(federated: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with connect(federated) as opened:
        first, *others = opened.sources()
    health = msgspec.structs.replace(
        first.health, calls=12_345, failures=12, timeouts=3, p50_ms=4.25, p99_ms=80.0, breaker=BreakerState.HALF_OPEN
    )
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "25")
    monkeypatch.setenv("TERM", "dumb")

    put_statuses([msgspec.structs.replace(first, health=health), *others])

    shown = terminal.getvalue()
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns
    assert "12345 calls, 12 failed, 3 late, p50 4.2 ms, p99 80.0 ms" in " ".join(shown.split())
    assert (columns < 200) or "breaker half open" in shown


def test_object_of_another_process_is_not_attached(run: Run, base: Path) -> None:
    with connect(base) as opened:
        opened.add_source({"source_id": "wiki", "source_type": "api"}, lambda query: [query])

    assert "wiki       api             python  curated    -    not attached  not asked yet" in run("sources", "list", "--base", base).out
    assert 1 == run("sources", "test", "wiki", "--base", base).exit_code


def test_help_of_the_groups_imports_nothing_heavy() -> None:
    commands = "".join(f"main({[*words.split(), '--help']});" for words in ("sources add", "memory add", "cache warm", "trace list"))
    program = f"import sys; from evidentia.serving.cli import main; {commands} print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert set() == HEAVY & set(ran.stderr.split())


@given(st.integers(0, MAX_DURATION_S))
def test_span_is_read_as_it_is_shown(seconds: int) -> None:
    assert seconds == seconds_of(span_of(seconds), field="any") == seconds_of(str(seconds), field="any")


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS)))
def test_spans_have_units(number: int, unit: str) -> None:
    assert number * UNITS[unit] == seconds_of(f" {number}{unit.upper()} ", field="any")


@pytest.mark.parametrize("text", ["", "h", "-1h", "1.5h", "1w", "1h30m", "\u0661h", "9" * 12, "9" * 400, "1 h"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(InvalidFieldError, match="field 'any'"):
        seconds_of(text, field="any")


def test_ages_are_counted_in_one_unit() -> None:
    ages = {None: "unknown", 0: "0 s", 119: "119 s", 120: "2 min", 7_199: "119 min", 7_200: "2 h", 172_799: "47 h", 172_800: "2 d"}

    assert list(ages.values()) == [age_in_words(seconds) for seconds in ages]
