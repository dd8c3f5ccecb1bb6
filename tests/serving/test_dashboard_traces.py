"""Runs with every decision at its place, requests against their deadlines, and the way from a block to a verified chain by links alone."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.ids import ReceiptId, RequestId, Sha256
from evidentia.contracts.protocol import SpanId
from evidentia.contracts.runs import RunFacts, RunId, RunSpan, RunStatus, RunSummary, RunTrace
from evidentia.contracts.telemetry import RequestTrace, TraceSpan
from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.dashboard.pages.traces_view import view_request, view_run
from evidentia.serving.dashboard.plots import AXIS
from serving.dashboard_doors import filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serving.dashboard_doors import Browser, Door

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NO_HASH = Sha256("0" * 64)
HOSTILE = "<b onmouseover=alert(1)>\"'&"
POLICY = {"name": "Guard", "category": "retrieval", "rules": {"blocked_sources": ["old.pdf"], "min_chunks": 0}}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    base = filled(tmp_path_factory.mktemp("traces") / "base", [{"id": "refunds.md", "text": "# Refunds\n\nRefunds take five days.\n"}])
    with serving_dashboard(base, every_s=0.05) as served:
        yield served


def _chunk(door: Door) -> str:
    reply = door.api(door.token(Role.ADMIN)).post("/v1/evidence", json={"query": {"text": "How long do refunds take?"}})
    return str(reply.json()["fragments"][0]["chunk_id"])


def _calls(chunk: str) -> list[dict[str, Any]]:
    return [
        {"kind": "span", "opened": "search", "name": "vector_search", "is_retrieval": True},
        {"kind": "retrieval", "relevance_score": 0.9, "source": "refunds.md", "age_days": 1, "chunk_id": chunk},
        {"kind": "span_end", "closed": "search"},
        {"kind": "llm", "model": "m", "input_tokens": 120, "output_tokens": 30, "cost_micro": 1_500, "duration_ms": 12.5},
        {
            "kind": "grounding",
            "grounding_scores": [0.91, 0.42],
            "citations": [chunk],
            "unsupported_claims": [HOSTILE],
            "output_confidence": 0.8,
        },
        {"kind": "retrieval", "relevance_score": 0.8, "source": "old.pdf", "age_days": 1},
    ]


@pytest.fixture(scope="module")
def run_id(door: Door) -> str:
    door.api(door.token(Role.ADMIN)).post("/v1/policies", json=POLICY)
    api = door.api(door.token(Role.AGENT))
    facts = {"agent_name": "rag-agent", "user_id": HOSTILE, "metadata": {}}
    started = str(api.post("/v1/runs", json={"facts": facts}).json()["run_id"])
    for seq, call in enumerate(_calls(_chunk(door)), 1):
        reply = api.post(f"/v1/runs/{started}/calls", json={"calls": [{"seq": seq, "call": call}]})
        assert 200 == reply.status_code, reply.text
    return started


def _links(page: str) -> dict[str, str]:
    """Return where the links of a page lead, by what they say."""
    found = re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>(.*?)</a>', page, re.DOTALL)
    return {html.unescape(re.sub(r"<[^>]+>", "", text)).strip(): html.unescape(address) for address, text in found}


def _follow(browser: Browser, page: str, text: str) -> str:
    address = next(address for said, address in _links(page).items() if said.startswith(text))
    reply = browser.get(address)
    assert 200 == reply.status_code, reply.text
    return reply.text


def test_from_a_block_to_a_verified_chain_by_links_alone(door: Door, run_id: str) -> None:
    browser = door.signed_in(Role.ADMIN)
    home = browser.get("/dashboard").text
    governance = _follow(browser, home, "Governance")
    events = _follow(browser, governance, "Events")
    trace = _follow(browser, events, "Trace of")
    chain = _follow(browser, trace, "Verify its chain")

    assert run_id in trace
    assert "Retrieved from blocked source &#39;old.pdf&#39;" in trace
    assert "Every link holds" in chain


def test_a_decision_stands_at_its_place_with_action_rule_reason_and_metadata(door: Door, run_id: str) -> None:
    page = door.signed_in(Role.AUDITOR).get(f"/dashboard/traces/run?id={run_id}").text
    rows = re.split(r'<tr[^>]*class="span-row">', page)
    blocked = next(row for row in rows if "old.pdf" in row and "document" in row)

    for text in (
        ">block<",
        "Retrieved from blocked source &#39;old.pdf&#39;",
        "blocked_sources",
        "blocked_source: old.pdf",
        "Guard",
        "mid_execution",
    ):
        assert text in blocked
    passed = next(row for row in rows if "refunds.md" in row)
    assert ">allow<" in passed
    assert "Retrieval quality within policy (1 chunks)" in passed
    assert re.search(r'class="depth-2">refunds.md<', page)
    assert re.search(r'class="depth-1">vector_search<', page)


def test_grounding_tokens_and_cost_are_shown_as_they_were_recorded(door: Door, run_id: str) -> None:
    page = door.signed_in(Role.AUDITOR).get(f"/dashboard/traces/run?id={run_id}").text

    for text in ("0.91", "0.42", "confidence of the output 0.8", "unsupported", "120 in, 30 out", ">0.0015<"):
        assert text in page
    assert HOSTILE not in page
    assert html.escape(HOSTILE).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in page
    assert " style=" not in page


def test_every_bar_has_the_same_in_figures_beside_it(door: Door, run_id: str) -> None:
    page = door.signed_in(Role.AUDITOR).get(f"/dashboard/traces/run?id={run_id}").text
    rows = re.findall(r'<tr[^>]*class="span-row">.*?</tr>', page, re.DOTALL)

    assert 6 == len(rows)
    for row in rows:
        assert 1 == row.count('aria-hidden="true"')
        assert 2 == len(re.findall(r'<td class="n">[\d,.]+ ms</td>', row))


def test_runs_are_listed_filtered_and_paged(door: Door, run_id: str) -> None:
    api = door.api(door.token(Role.AGENT))
    for number in range(30):
        started = api.post("/v1/runs", json={"facts": {"agent_name": f"agent {number % 2}"}}).json()["run_id"]
        api.post(f"/v1/runs/{started}/end", json={})
    browser = door.signed_in(Role.AUDITOR)
    first = browser.get("/dashboard/traces").text
    second = _follow(browser, first, "Older runs")
    blocked = browser.get("/dashboard/traces?status=blocked").text
    odd = browser.get("/dashboard/traces?agent=agent 1&minutes=60").text

    assert 25 == first.count('<tr id="run-')
    assert not set(re.findall(r'id="run-([^"]+)"', first)) & set(re.findall(r'id="run-([^"]+)"', second))
    assert run_id in second
    assert [run_id] == re.findall(r'id="run-([^"]+)"', blocked)
    assert 15 == odd.count('<tr id="run-')
    assert 422 == browser.get("/dashboard/traces?minutes=soon").status_code


def test_the_list_of_runs_is_sent_again_when_a_run_begins(door: Door) -> None:
    browser = door.signed_in(Role.AUDITOR)
    with browser.client.stream("GET", "/dashboard/traces/live?agent=newcomer") as stream:
        seen = ""
        for number, text in enumerate(stream.iter_text()):
            seen += text
            if number == 0:
                door.api(door.token(Role.AGENT)).post("/v1/runs", json={"facts": {"agent_name": "newcomer"}})
            if "newcomer</td>" in seen and seen.endswith("\n\n"):
                break

    assert "No run fits." in seen
    assert ">running<" in seen


def test_a_run_of_another_tenant_is_not_there(door: Door, run_id: str) -> None:
    stranger = door.signed_in(Role.ADMIN, tenant="other")

    assert 404 == stranger.get(f"/dashboard/traces/run?id={run_id}").status_code
    assert run_id not in stranger.get("/dashboard/traces").text
    assert run_id not in stranger.get("/dashboard/governance/events").text
    assert 422 == stranger.get("/dashboard/traces/run").status_code


def test_requests_stand_against_their_deadline_for_those_who_may_see_them(door: Door, run_id: str) -> None:
    assert run_id
    auditor = door.signed_in(Role.AUDITOR)
    listed = auditor.get("/dashboard/traces/requests").text
    link = re.search(r'href="(/dashboard/traces/request\?id=[^"]+)"', listed)
    assert link is not None
    page = auditor.get(html.unescape(link[1])).text
    reader = door.signed_in(Role.READER)

    assert 'class="deadline"' in listed
    assert "the deadline lies far beyond, at" in page
    assert "Verify its chain" in page
    assert "Every link holds" in _follow(auditor, page, "Verify its chain")
    assert 403 == reader.get("/dashboard/traces/requests").status_code
    assert "Requests</a>" not in reader.get("/dashboard/traces").text


def _span(span_id: str, parent: str | None, *, start: int = 0, duration: int = 0, kind: str = "tool", **attributes: Any) -> RunSpan:
    return RunSpan(
        span_id=SpanId(span_id),
        parent=None if parent is None else SpanId(parent),
        name=span_id,
        kind=kind,
        start_us=start,
        duration_us=duration,
        attributes=attributes,
    )


def _trace(*spans: RunSpan) -> RunTrace:
    facts = RunFacts(run_id=RunId("r"), agent_name="a")
    return RunTrace(summary=RunSummary(facts=facts, status=RunStatus.SUCCESS, started_at=NOON, policies=NO_HASH), spans=spans)


def test_spans_stand_below_their_parents_and_strays_at_the_top() -> None:
    trace = _trace(
        _span("run", None, duration=100),
        _span("one", "run", start=1),
        _span("two", "run", start=2),
        _span("stray", "gone", start=3),
        _span("inner", "one", start=4),
        _span("own", "own", start=5),
    )

    expected = [("run", 0), ("one", 1), ("inner", 2), ("two", 1), ("stray", 0), ("own", 0)]
    assert expected == [(row.name, row.depth) for row in view_run(trace, ()).rows]


def test_what_a_run_spent_is_what_its_model_calls_and_judges_say() -> None:
    used: dict[str, Any] = {"input_tokens": 10, "output_tokens": 5, "cost_micro": 250_000}
    trace = _trace(
        _span("run", None), _span("m", "run", kind="llm", **used), _span("j", "run", kind="judge", **used), _span("t", "run", **used)
    )
    spent = view_run(trace, ()).spent

    assert (2, 20, 10, "0.5") == spent


def _request(latency_ms: float, *spans: TraceSpan) -> RequestTrace:
    return RequestTrace(
        request_id=RequestId("q"),
        receipt_id=ReceiptId("c"),
        started_at=NOON,
        latency_ms=latency_ms,
        deadline_ms=100,
        principal_fingerprint=NO_HASH,
        tenant="default",
        result_hash=NO_HASH,
        spans=spans,
    )


def test_late_and_skipped_sources_are_named_and_the_deadline_is_a_line() -> None:
    view = view_request(
        _request(
            200.0,
            TraceSpan(name="plan", kind="stage", start_ms=0, duration_ms=10),
            TraceSpan(name="slow", kind="source", start_ms=10, duration_ms=150, state=CoverageState.TIMED_OUT),
            TraceSpan(name="shut", kind="source", start_ms=10, duration_ms=0, state=CoverageState.BREAKER_OPEN),
            TraceSpan(name="good", kind="source", start_ms=10, duration_ms=20, state=CoverageState.SEARCHED, attributes={"candidates": 3}),
        )
    )
    shown = {row.name: row for row in view.rows}

    assert (("slow",), ("shut",), AXIS // 2, True) == (view.late_sources, view.skipped_sources, view.deadline_x, view.is_late)
    assert shown["shut"].bar is None
    assert (True, "bad", "timed out") == (shown["slow"].is_past_deadline, shown["slow"].tone, shown["slow"].state)
    assert (False, "3 candidates") == (shown["good"].is_past_deadline, shown["good"].remark)


def test_an_answer_in_time_ends_before_the_deadline() -> None:
    view = view_request(_request(50.0))

    assert (False, AXIS, AXIS // 2) == (view.is_late, view.deadline_x, view.rows[0].bar and view.rows[0].bar.width)


def test_from_close_by_a_deadline_far_beyond_the_answer_is_left_off_the_axis() -> None:
    near, far = (view_request(_request(latency_ms), is_close=True) for latency_ms in (50.0, 5.0))

    assert (AXIS, AXIS // 2) == (near.deadline_x, near.rows[0].bar and near.rows[0].bar.width)
    assert (None, 5.0, AXIS) == (far.deadline_x, far.whole_ms, far.rows[0].bar and far.rows[0].bar.width)
