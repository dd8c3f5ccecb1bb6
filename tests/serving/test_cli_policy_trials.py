"""Trying policies out from a terminal: cases, replay, shadow, calibration, analysis, and care of the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.policy_trials import Calibration, HistogramBar, TriggerRate
from evidentia.contracts.runs import RetrievedDocument, RunEnded, RunFacts, RunId, RunStatus
from evidentia.serving.cli.policy_report import histogram
from evidentia.wiring.governance_runtime import open_control
from serving.test_cli_policy import GUARD, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run


CASES = """\
policies: [{file: guard.json}]
run: {agent_name: rag-agent}
cases:
- name: other collections are blocked
  when: [{retrieval: {relevance_score: 0.9, collection: hr, age_days: 1}}]
  then: [{action: block, rule: allowed_collections}]
"""


@pytest.fixture
def guarded(run: Run, base: Path, tmp_path: Path) -> Path:
    """Return a base with a policy and 120 runs of two documents under it, one of each tenth stale."""
    (tmp_path / "guard.json").write_text(json.dumps(GUARD), encoding="utf-8")
    assert 0 == run("policy", "add", "guard.json", "--base", base).exit_code
    with open_control(base) as control:
        for number in range(120):
            governed = control.start(RunFacts(run_id=RunId(f"run-{number:03}"), agent_name="rag-agent"))
            first = RetrievedDocument(relevance_score=0.6 + number / 400, source="manual", collection="kb", age_days=number % 10 * 11)
            stopped = any(verdict.stops for verdict in governed.record(first))
            if not stopped:
                governed.record(RetrievedDocument(relevance_score=0.95, source="faq", collection="kb", age_days=1))
            governed.finish(RunEnded(status=RunStatus.BLOCKED if stopped else RunStatus.SUCCESS))
    return base


def test_cases_pass_and_fail_with_a_readable_difference(run: Run, tmp_path: Path) -> None:
    (tmp_path / "guard.json").write_text(json.dumps(GUARD), encoding="utf-8")
    (tmp_path / "cases.yaml").write_text(CASES, encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(CASES.replace("action: block", "action: warn"), encoding="utf-8")
    passed, failed = run("policy", "test", "cases.yaml"), run("policy", "test", "cases.yaml", "wrong.yaml")
    as_json = run("policy", "test", "wrong.yaml", "--json")

    assert (0, ["cases.yaml", "  ok    other collections are blocked", "", "1 passed, 0 failed"]) == (
        passed.exit_code,
        passed.out.splitlines(),
    )
    assert 1 == failed.exit_code
    assert [
        "  FAIL  other collections are blocked",
        "        call 1, retrieval: action",
        "        - expected  warn",
        "        + actual    block",
        "",
        "1 passed, 1 failed",
    ] == failed.out.splitlines()[3:]
    assert (1, False, "block") == (as_json.exit_code, parsed(as_json)[0]["ok"], parsed(as_json)[0]["mismatches"][0]["actual"])


def test_bad_case_is_named_with_file_and_path(run: Run, tmp_path: Path) -> None:
    (tmp_path / "guard.json").write_text(json.dumps(GUARD), encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(CASES.replace("relevance_score", "relevence_score"), encoding="utf-8")
    refused = run("policy", "test", "bad.yaml")

    assert 2 == refused.exit_code
    assert "'bad.yaml': field 'cases[0].when[0].retrieval.relevence_score': unknown key; did you mean 'relevance_score'?" in refused.err


def test_directory_of_cases_is_run_by_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    empty = run("policy", "test", "suite")
    (tmp_path / "suite" / "guard.policy").write_text(json.dumps(GUARD), encoding="utf-8")
    for name in ("b.yaml", "a.yaml"):
        (tmp_path / "suite" / name).write_text(CASES.replace("guard.json", "guard.policy"), encoding="utf-8")
    passed = run("policy", "test", "suite", "--json")

    assert (2, True) == (empty.exit_code, "holds no cases" in empty.err)
    assert ["suite/a.yaml", "suite/b.yaml"] == [each["file"] for each in parsed(passed)]


def test_replay_decides_the_same_and_notices_a_change(run: Run, guarded: Path) -> None:
    whole, one = run("policy", "replay", "--base", guarded), run("policy", "replay", "--run", "run-007", "--base", guarded, "--json")
    log = next((guarded / "decisions").iterdir())
    log.write_text(log.read_text(encoding="utf-8").replace('"r":0.95', '"r":0.15'), encoding="utf-8")
    changed = run("policy", "replay", "--base", guarded)

    assert (0, "verdict         the same") == (whole.exit_code, whole.out.splitlines()[0])
    assert (0, 1) == (one.exit_code, parsed(one)["runs"])
    assert (1, True) == (changed.exit_code, "verdict         different" in changed.out)
    assert 1 == run("policy", "log", "verify", "--base", guarded).exit_code


def test_shadow_says_what_a_candidate_would_change(run: Run, guarded: Path, tmp_path: Path) -> None:
    stricter = {**GUARD, "rules": {**GUARD["rules"], "max_source_age_days": 50}}
    (tmp_path / "stricter.json").write_text(json.dumps(stricter), encoding="utf-8")
    told = run("policy", "shadow", "stricter.json", "--base", guarded)
    report = parsed(run("policy", "shadow", "stricter.json", "--base", guarded, "--json"))
    lax = parsed(run("policy", "shadow", "--without", "RAG Guard", "--base", guarded, "--json"))

    # Ages 55, 66, 77 and 88 of twelve runs each are newly too old; 99 always was.
    assert (48, 48, 0) == (report["changes"]["newly_blocked"], report["runs_newly_blocked"], report["changes"]["newly_allowed"])
    assert "newly blocked        48" in told.out
    assert "RAG Guard: max_source_age_days       48" in told.out
    assert (12, 12) == (lax["changes"]["newly_allowed"], lax["truncated_runs"])


def test_shadow_without_a_file_reports_live_trials(run: Run, guarded: Path) -> None:
    none = run("policy", "shadow", "--base", guarded)
    trial = PolicyBody(name="trial", category="retrieval", rules={"min_relevance_score": 0.99}, enforcement="shadow")  # type: ignore[arg-type]  # read as a word
    with open_control(guarded) as control:
        governed = control.start(RunFacts(run_id=RunId("tried"), agent_name="rag-agent"), policies=[trial])
        governed.record(RetrievedDocument(relevance_score=0.9, source="s", collection="kb", age_days=1))
        governed.finish(RunEnded())
    (live,) = parsed(run("policy", "shadow", "--base", guarded, "--json"))

    assert (0, "", True) == (none.exit_code, none.out, "no recorded run had a policy in shadow" in none.err)
    assert ("trial", 1, 1) == (live["name"], live["runs"], live["changes"]["newly_warned"])
    assert "trial, version 1, in 1 run" == run("policy", "shadow", "--base", guarded).out.splitlines()[0]


def test_calibrate_draws_the_threshold_and_applies_it(run: Run, guarded: Path) -> None:
    told = run("policy", "calibrate", "--rule", "min_relevance_score", "--base", guarded)
    found = parsed(run("policy", "calibrate", "--rule", "min_relevance_score", "--base", guarded, "--json"))["calibration"]
    applied = run("policy", "calibrate", "--rule", "min_relevance_score", "--apply", "--base", guarded, "--json")
    rules = parsed(run("policy", "show", "RAG Guard", "--base", guarded, "--json"))["policy"]["body"]["rules"]

    assert (108, 216) == (found["good_runs"], found["good_values"])
    assert f"apply it: {found['command']}" == told.out.splitlines()[-1]
    assert any(line.startswith("────") and line.endswith(f"{found['threshold']:g}") for line in told.out.splitlines())
    assert (2, found["threshold"]) == (parsed(applied)["applied"]["policy"]["version"], rules["min_relevance_score"])


def test_command_of_a_calibration_does_what_it_says(run: Run, guarded: Path) -> None:
    import shlex

    found = parsed(run("policy", "calibrate", "--rule", "max_source_age_days", "--base", guarded, "--json"))["calibration"]
    done = run(*shlex.split(found["command"])[1:], "--base", guarded)

    assert (0, "RAG Guard: version 2\n") == (done.exit_code, done.out)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rule", "max_chunks"], "has no threshold to calibrate"),
        (["--rule", "min_relevance_score", "--agent", "nobody"], "0 good runs recorded a value"),
        (["--rule", "min_grounding_score", "--apply"], "which policy is to be changed?"),
        (["--rule", "min_relevance_score", "--policy", "none"], "no policy 'none'"),
        (["--rule", "min_relevance_score", "--since", "yesterday"], "neither a date such as 2026-03-01 nor a span"),
    ],
)
def test_calibration_that_cannot_be_made_is_refused(run: Run, guarded: Path, arguments: list[str], problem: str) -> None:
    refused = run("policy", "calibrate", *arguments, "--base", guarded)

    assert (2, True) == (refused.exit_code, problem in refused.err), refused.err


def test_analysis_fails_on_errors_and_on_warnings_when_strict(run: Run, base: Path, tmp_path: Path) -> None:
    other = {**GUARD, "name": "Other", "rules": {"allowed_collections": ["hr"]}}
    (tmp_path / "both.json").write_text(json.dumps([GUARD, other]), encoding="utf-8")
    (tmp_path / "twin.json").write_text(json.dumps([GUARD, {**GUARD, "name": "Twin"}]), encoding="utf-8")
    (tmp_path / "guard.json").write_text(json.dumps(GUARD), encoding="utf-8")
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    run("policy", "add", "guard.json", "--base", base)
    contradiction = run("policy", "analyze", "both.json")

    assert (1, "error: contradiction") == (contradiction.exit_code, contradiction.out.splitlines()[0])
    assert "  trace: agent 'rag-x' ('Other' alone lets this pass)" in contradiction.out.splitlines()
    assert [0, 1] == [run("policy", "analyze", "twin.json", *more).exit_code for more in ([], ["--strict"])]
    assert [0, 1] == [run("policy", "analyze", "other.json", *more, "--base", base).exit_code for more in ([], ["--beside-base"])]
    assert 1 == parsed(run("policy", "analyze", "--base", base, "--json"))["policies"]


def test_log_verifies_until_an_end_is_cut_that_somebody_kept(run: Run, guarded: Path, tmp_path: Path) -> None:
    verified = run("policy", "log", "verify", "--base", guarded, "--json")
    (tmp_path / "heads.json").write_text(verified.out, encoding="utf-8")
    log = next((guarded / "decisions").iterdir())
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    without, beside = (
        run("policy", "log", "verify", "--base", guarded),
        run("policy", "log", "verify", "--heads", "heads.json", "--base", guarded),
    )

    assert (0, True) == (verified.exit_code, parsed(verified)["ok"])
    assert (0, 1) == (without.exit_code, beside.exit_code)


def test_redacted_and_retired_records_leave_a_log_that_verifies(run: Run, guarded: Path) -> None:
    unexplained = run("policy", "log", "redact", "--run", "run-003", "--why", " ", "--base", guarded)
    redacted = run("policy", "log", "redact", "--run", "run-003", "--why", "a request", "--base", guarded)
    replayed = parsed(run("policy", "replay", "--base", guarded, "--json"))
    none = run("policy", "log", "retire", "--before", "2000-01-01", "--why", "old", "--base", guarded)
    retired = run("policy", "log", "retire", "--before", "2999-01-01", "--why", "old", "--base", guarded, "--json")

    assert (2, True) == (unexplained.exit_code, "say who does this and why" in unexplained.err)
    assert "redacted 4 records\n" == redacted.out
    assert (True, 4) == (replayed["ok"], replayed["redacted"])
    assert ("retired 0 records\n", True) == (none.out, parsed(retired)["records"] > 100)
    assert 0 == run("policy", "log", "verify", "--base", guarded).exit_code


def test_proof_fits_the_root_that_verification_prints(run: Run, guarded: Path) -> None:
    (head,) = parsed(run("policy", "log", "verify", "--base", guarded, "--json"))["heads"]
    proof = parsed(run("policy", "log", "proof", f"{head['log']}:5", "--base", guarded))
    missing = run("policy", "log", "proof", f"{head['log']}:99999", "--base", guarded)
    wrong = run("policy", "log", "proof", "5", "--base", guarded)

    assert (head["root"], head["size"], 5) == (proof["root"], proof["size"], proof["seq"])
    assert [2, 2] == [missing.exit_code, wrong.exit_code]


def test_export_prints_decisions_as_lines(run: Run, guarded: Path) -> None:
    lines = run("policy", "log", "export", "--run", "run-001", "--base", guarded).out.splitlines()
    decisions: list[dict[str, Any]] = [json.loads(line) for line in lines]

    assert ["run", "retrieval", "retrieval", "end"] == [each["kind"] for each in decisions]
    assert "" == run("policy", "log", "export", "--since", "2999-01-01", "--base", guarded).out
    assert 120 < len(run("policy", "log", "export", "--base", guarded).out.splitlines())


def test_histogram_leaves_out_empty_ends_and_marks_the_threshold() -> None:
    rate = TriggerRate(threshold=0.3, values=3, value_triggers=0, runs=3, run_triggers=0)
    bars = [
        HistogramBar(low=place / 10, high=(place + 1) / 10, good=(0, 0, 0, 2, 1, 0, 0)[place], other=int(place == 4)) for place in range(7)
    ]
    found = Calibration(
        rule="r", category="c", unit="document", percentile=5, threshold=0.3, observed=0.3, low=None, high=None, good_runs=3, good_values=3,
        effective_values=3, predicted=rate, histogram=tuple(bars), patch={}, command="",
    )  # fmt: skip

    assert [
        "0.2",
        "--- ------------------------- 0.3",
        f"0.3 {'#' * 50} 2",
        f"0.4 {'#' * 25}{'.' * 25} 2",
        "0.5",
    ] == histogram(found, good="#", other=".", line="-")
