"""Policies by form and template, events as they happen, trials with plots: over a real server, without scripts."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.policies import PolicyBody
from evidentia.contracts.policy_trials import HistogramBar
from evidentia.policy.rules import rules_schema
from evidentia.serving.dashboard import plots
from evidentia.serving.dashboard.pages import policy_forms as forms
from evidentia.serving.dashboard.pages.governance import differences
from evidentia.wiring.embedded import create
from serving.dashboard_doors import serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

    from serving.dashboard_doors import Browser, Door

HOSTILE = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"
NEW = "/dashboard/governance/policies/new"
GOOD: dict[str, Any] = {"kind": "retrieval", "relevance_score": 0.92, "source": "manual.pdf", "collection": "kb", "age_days": 14}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    base = tmp_path_factory.mktemp("governance") / "base"
    create(base)
    with serving_dashboard(base, every_s=0.05) as served:
        yield served


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Door]:
    create(tmp_path / "base")
    with serving_dashboard(tmp_path / "base", every_s=0.05) as served:
        yield served


def _form(page: str) -> dict[str, str]:
    """Return what a browser would send for the form of a policy as it stands."""
    fields: dict[str, str] = {}
    text = page[page.index('<form class="policy"') :]
    for tag in re.findall(r"<input[^>]*>", text):
        given = {name: html.unescape(value) for name, value in re.findall(r'([\w:-]+)="([^"]*)"', tag)}
        if "name" in given and (given.get("type") != "checkbox" or " checked" in tag):
            fields[given["name"]] = given.get("value", "")
    for name, inner in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', text, re.DOTALL):
        fields[name] = html.unescape(inner)
    for name, inner in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', text, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', inner) or re.search(r'value="([^"]*)"', inner)
        fields[name] = html.unescape(chosen[1]) if chosen else ""
    return fields


def _created(browser: Browser, *, category: str = "retrieval", **fields: str) -> str:
    """Create a policy by the form, and return its id."""
    form = _form(browser.get(f"{NEW}?category={category}").text)
    reply = browser.post(NEW, {**form, **fields})
    assert 303 == reply.status_code, reply.text
    return reply.headers["location"].rpartition("/")[2]


def _run(api: httpx2.Client, *calls: dict[str, Any], agent: str = "rag-agent", ends: bool = True) -> str:
    run_id = str(api.post("/v1/runs", json={"facts": {"agent_name": agent}}).json()["run_id"])
    for seq, call in enumerate(calls, 1):
        reply = api.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": seq, "call": call}]})
        assert 200 == reply.status_code, reply.text
    if ends:
        api.post(f"/v1/runs/{run_id}/end", json={})
    return run_id


def test_the_fields_of_the_form_come_from_the_schema_of_the_category(door: Door) -> None:
    page = door.signed_in(Role.ADMIN).get(f"{NEW}?category=retrieval").text

    for name, part in rules_schema("retrieval")["properties"].items():
        assert f'name="rules.{name}"' in page
        assert html.escape(part["description"], quote=True).replace("&#x27;", "&#39;") in page
    assert 'id="rules.max_single_source_ratio" name="rules.max_single_source_ratio" value="0.6"' in page
    assert 'min="0" max="1"' in page
    assert "From 0 to 1. Default: 0.6." in page


def test_a_policy_is_created_by_the_form_and_is_in_force(door: Door) -> None:
    browser = door.signed_in(Role.ADMIN)
    policy_id = _created(
        browser,
        name="RAG Quality Guard",
        **{"rules.min_relevance_score": "0.75", "rules.allowed_collections": "kb\nfaq", "scope.agents": "rag-*", "posture_all": "closed"},
    )
    stored = door.api(door.token(Role.READER)).get(f"/v1/policies/{policy_id}").json()["policy"]["body"]
    shown = browser.get("/dashboard/governance").text

    assert (0.75, ["kb", "faq"]) == (stored["rules"]["min_relevance_score"], stored["rules"]["allowed_collections"])
    assert ({"agents": ["rag-*"]}, {"*": "closed"}, True) == (stored["scope"], stored["posture"], stored["enabled"])
    assert "RAG Quality Guard" in shown
    assert "agents: rag-*" in shown


@pytest.mark.parametrize("template", ["Strict Compliance Retrieval", "Medical Q&A", "First Call"])
def test_a_template_fills_in_the_form_and_is_created_as_it_stands(door: Door, template: str) -> None:
    browser = door.signed_in(Role.ADMIN)
    page = browser.client.get(NEW, params={"template": template}).text
    browser.csrf = _form(page)["csrf"]
    reply = browser.post(NEW, {**_form(page), "name": f"From {template}"})
    api = door.api(door.token(Role.READER))
    made = api.get(f"/v1/policies/{reply.headers['location'].rpartition('/')[2]}").json()["policy"]["body"]
    wanted = api.get("/v1/policies/templates").json()["templates"][template]

    assert html.escape(template) in page
    assert wanted["rules"].items() <= made["rules"].items()
    assert (wanted["category"], wanted["description"]) == (made["category"], made["description"])


def test_what_is_wrong_stands_beside_its_field_with_a_suggestion_and_nothing_is_saved(door: Door) -> None:
    browser = door.signed_in(Role.ADMIN)
    form = _form(browser.get(f"{NEW}?category=retrieval").text)
    wrong = {
        "name": "Wrong",
        "rules.min_chunks": "12",
        "rules.max_chunks": "3",
        "rules.max_single_source_ratio": "a lot",
        "rules.action_on_low_relevance": "blok",
        "posture_rules": "max_source_age_day = open",
    }
    reply = browser.post(NEW, {**form, **wrong})
    page = reply.text

    assert 422 == reply.status_code
    for field in ("rules.max_single_source_ratio", "rules.action_on_low_relevance", "posture_rules"):
        assert f'id="{field}-problem"' in page
        assert re.search(rf'id="{field}"[^>]*aria-describedby="{field}-help {field}-problem" aria-invalid="true"', page), field
    assert "did you mean &#39;block&#39;?" in page
    assert "did you mean &#39;max_source_age_days&#39;?" in page
    assert 'value="a lot"' in page
    assert 'value="12"' in page
    assert "Wrong" not in browser.get("/dashboard/governance").text


def test_a_policy_is_disabled_and_enabled_by_a_button(door: Door) -> None:
    browser = door.signed_in(Role.ADMIN)
    policy_id = _created(browser, name="Switched")
    path = f"/dashboard/governance/policies/{policy_id}/enabled"
    off = browser.post(path, {"enabled": "false", "version": "1"})
    body = door.api(door.token(Role.READER)).get(f"/v1/policies/{policy_id}").json()["policy"]
    late = browser.post(path, {"enabled": "true", "version": "1"})
    on = browser.post(path, {"enabled": "true", "version": "2"})

    assert (303, False, 2) == (off.status_code, body["body"]["enabled"], body["version"])
    assert 412 == late.status_code
    assert 303 == on.status_code


def test_an_edit_is_a_new_version_and_the_difference_is_shown(door: Door) -> None:
    browser = door.signed_in(Role.ADMIN)
    policy_id = _created(browser, name="Edited")
    path = f"/dashboard/governance/policies/{policy_id}"
    form = _form(browser.get(f"{path}/edit").text)
    reply = browser.post(f"{path}/edit", {**form, "rules.max_chunks": "8", "scope.agents": "one\ntwo"})
    stale = browser.post(f"{path}/edit", {**form, "rules.max_chunks": "9"})
    page = browser.get(f"{path}?older=1&newer=2").text

    assert 303 == reply.status_code
    assert 412 == stale.status_code
    assert "<code>rules.max_chunks</code></th><td><del>10</del></td><td><ins>8</ins></td>" in page
    assert "<code>scope.agents</code></th><td><del>none</del></td><td><ins>one, two</ins></td>" in page
    assert "rules.min_chunks</code></th><td><del>" not in page


def test_a_policy_is_removed_only_after_a_confirmation(door: Door) -> None:
    browser = door.signed_in(Role.ADMIN)
    policy_id = _created(browser, name="Removed")
    path = f"/dashboard/governance/policies/{policy_id}/remove"
    asked = browser.get(path)
    unconfirmed = browser.post(path)
    still_there = browser.get("/dashboard/governance").text
    confirmed = browser.post(path, {"confirm": "yes"})
    gone = browser.get("/dashboard/governance")
    again = browser.get("/dashboard/governance").text

    assert "Remove Removed?" in asked.text
    assert (422, 303) == (unconfirmed.status_code, confirmed.status_code)
    assert ">Removed</a>" in still_there
    assert "is removed" in gone.text
    assert ">Removed</a>" not in again
    assert 200 == browser.get(path.removesuffix("/remove")).status_code


def test_a_reader_sees_no_buttons_and_is_refused(door: Door) -> None:
    policy_id = _created(door.signed_in(Role.ADMIN), name="Looked at")
    reader = door.signed_in(Role.READER)
    listed = reader.get("/dashboard/governance").text
    shown = reader.get(f"/dashboard/governance/policies/{policy_id}").text
    path = f"/dashboard/governance/policies/{policy_id}"
    refused = [
        reader.get(NEW),
        reader.get(f"{path}/edit"),
        reader.post(f"{path}/enabled", {"enabled": "false"}),
        reader.post(f"{path}/remove", {"confirm": "yes"}),
        reader.post(NEW, {"name": "x", "category": "retrieval"}),
        reader.get("/dashboard/governance/shadow?policy=Looked at"),
        reader.get("/dashboard/governance/calibrate?rule=min_relevance_score"),
    ]

    assert "Looked at" in listed
    for word in ("New Policy", "Disable", ">Edit<", ">Remove<", "Try a policy", "Calibrate"):
        assert word not in listed + shown
    assert [403] * 5 == [reply.status_code for reply in refused[:5]]
    assert "this needs the role" in refused[5].text.lower()
    assert "this needs the role" in refused[6].text.lower()


def test_events_have_their_fields_newest_first_and_lead_to_the_decision(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    _created(browser, name="Guard")
    api = fresh.api(fresh.token(Role.AGENT))
    _run(api, GOOD, agent="first")
    run_id = _run(api, {**GOOD, "age_days": 400}, agent="second", ends=False)
    page = browser.get("/dashboard/governance/events").text
    blocks = browser.get("/dashboard/governance/events?action=block&agent=second&policy=Guard").text
    nothing = browser.get("/dashboard/governance/events?agent=nobody").text

    assert page.index("Source age (400 days) exceeds max (90 days)") < page.index("Retrieval quality within policy (1 chunks)")
    row = re.search(r"<tr id=[^>]*class=\"stops\">.*?</tr>", blocks, re.DOTALL)
    assert row is not None
    for text in ("second", "Guard", "mid_execution", ">block<", "age_days: 400", "max_age: 90", "evaluated"):
        assert text in row[0]
    assert "within policy" not in blocks
    link = re.search(r'href="(/dashboard/traces/run\?id=[^"]+)#(d-\d+-0)"', row[0])
    assert link is not None
    trace = browser.get(html.unescape(link[1])).text
    assert f'id="{link[2]}"' in trace
    assert run_id in trace
    assert "Nothing was decided" in nothing


def test_events_are_paged(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    _created(browser, name="Guard", **{"rules.max_chunks": "500"})
    _run(fresh.api(fresh.token(Role.AGENT)), *[{**GOOD, "source": f"s{each}"} for each in range(60)], ends=False)
    first = browser.get("/dashboard/governance/events").text
    following = re.search(r'href="([^"]+cursor=[^"]+)" rel="next"', first)
    assert following is not None
    second = browser.get(html.unescape(following[1])).text

    assert 50 == first.count("<tr id=")
    assert not set(re.findall(r'<tr id="([^"]+)"', first)) & set(re.findall(r'<tr id="([^"]+)"', second))
    assert "hx-sse:connect" in first
    assert "hx-sse:connect" not in second


def test_a_block_arrives_without_a_reload_and_is_announced(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    _created(browser, name="Guard")
    api = fresh.api(fresh.token(Role.AGENT))
    page = browser.get("/dashboard/governance/events?action=block").text
    live = re.search(r'hx-sse:connect="([^"]+)"', page)
    assert live is not None
    seen = ""
    with browser.client.stream("GET", html.unescape(live[1])) as stream:
        for number, text in enumerate(stream.iter_text()):
            if number == 0:
                assert "Nothing was decided" in text
                _run(api, {**GOOD, "age_days": 400}, agent="live-agent", ends=False)
            seen += text
            if "live-agent" in seen and seen.endswith("\n\n"):
                break

    assert "text/event-stream" in stream.headers["content-type"]
    announced = re.findall(r'aria-live="polite"[^>]*>([^<]*)<', seen)
    assert "" == announced[0]
    assert "Newest: block by Guard for live-agent" in announced[-1]
    assert "Source age (400 days) exceeds max (90 days)" in announced[-1]


def test_a_live_stream_ends_when_the_session_does(fresh: Door) -> None:
    browser = fresh.signed_in(Role.READER)
    with browser.client.stream("GET", "/dashboard/governance/events/live") as stream:
        texts = stream.iter_text()
        next(texts)
        browser.post("/dashboard/sign-out")
        rest = "".join(texts)

    assert "event: signed-out" in rest


def test_nothing_that_others_wrote_is_markup(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    policy_id = _created(browser, name=HOSTILE, description=HOSTILE, **{"rules.blocked_sources": HOSTILE, "scope.agents": f"{HOSTILE}\n*"})
    api = fresh.api(fresh.token(Role.AGENT))
    run_id = _run(api, {**GOOD, "source": HOSTILE, "collection": HOSTILE, "chunk_id": HOSTILE}, agent=HOSTILE, ends=False)
    paths = [
        "/dashboard/governance",
        f"/dashboard/governance/policies/{policy_id}",
        f"/dashboard/governance/policies/{policy_id}/edit",
        f"/dashboard/governance/policies/{policy_id}/remove",
        "/dashboard/governance/events",
        f"/dashboard/governance/events?agent={HOSTILE}&policy={HOSTILE}&run={HOSTILE}",
        "/dashboard/governance/shadow?policy=" + HOSTILE,
        f"/dashboard/governance/calibrate?rule={HOSTILE}&agent={HOSTILE}",
        "/dashboard/traces",
        f"/dashboard/traces/run?id={run_id}",
    ]
    for path in paths:
        page = browser.client.get(path.split("?")[0], params=dict(re.findall(r"[?&](\w+)=([^&]*)", path))).text

        assert "<script>alert" not in page, path
        assert "<img src=x" not in page, path
        assert " style=" not in page, path
        assert "<script" not in page.split("</head>")[1], path


def test_a_candidate_is_tried_over_recorded_runs_and_changes_nothing(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    api = fresh.api(fresh.token(Role.AGENT))
    _created(browser, name="Guard", **{"rules.action_on_low_relevance": "warn"})
    for score in (0.9, 0.75, 0.6):
        _run(api, {**GOOD, "relevance_score": score})
    other = fresh.api(fresh.token(Role.AGENT, tenant="other"))
    _run(other, {**GOOD, "relevance_score": 0.1, "source": "secret.pdf"}, agent="hidden-agent")
    form = _form(browser.get(f"{NEW}?category=retrieval").text)
    tried = browser.post(
        "/dashboard/governance/shadow",
        {**form, "name": "Candidate", "rules.min_relevance_score": "0.8", "rules.action_on_low_relevance": "block"},
    )
    page = tried.text

    assert 200 == tried.status_code
    assert re.search(r"Newly blocked</span></th><td class=\"n\">2</td>", page)
    assert "Candidate: min_relevance_score" in page
    assert "hidden-agent" not in page
    assert "secret.pdf" not in page
    assert "Candidate" not in browser.get("/dashboard/governance").text


def test_a_candidate_that_is_wrong_is_shown_in_its_form(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    form = _form(browser.get(f"{NEW}?category=retrieval").text)
    tried = browser.post("/dashboard/governance/shadow", {**form, "name": "Candidate", "rules.max_chunks": "0"})

    assert 422 == tried.status_code
    assert 'id="rules.max_chunks-problem"' in tried.text


def test_a_threshold_is_proposed_with_plots_and_goes_into_the_form(fresh: Door) -> None:
    browser = fresh.signed_in(Role.ADMIN)
    policy_id = _created(browser, name="Guard", **{"rules.min_relevance_score": "0.1"})
    api = fresh.api(fresh.token(Role.AGENT))
    too_few = browser.get("/dashboard/governance/calibrate?rule=min_relevance_score&policy=Guard").text
    for each in range(110):
        _run(api, {**GOOD, "relevance_score": 0.5 + each / 250})
    page = browser.get("/dashboard/governance/calibrate?rule=min_relevance_score&policy=Guard").text
    link = re.search(rf'href="(/dashboard/governance/policies/{policy_id}/edit\?rule=min_relevance_score&amp;value=([0-9.]+))', page)

    assert "100 are needed" in too_few
    assert link is not None
    assert 0.52 == pytest.approx(float(link[2]), abs=0.01)
    assert f'name="rules.min_relevance_score" value="{link[2]}"' in browser.get(html.unescape(link[1])).text
    assert 2 == page.count('<svg class="chart"')
    assert '<table id="values">' in page


def test_the_trial_operations_are_for_auditors_and_admins(door: Door) -> None:
    body = {"policy": {"name": "x", "category": "retrieval"}}
    statuses = [door.api(door.token(role)).post("/v1/trials/shadow", json=body).status_code for role in Role]

    assert {Role.READER: 403, Role.AGENT: 403, Role.AUDITOR: 200, Role.ADMIN: 200} == dict(zip(Role, statuses, strict=True))


def test_every_rule_of_every_category_survives_the_form() -> None:
    for category in ("retrieval", "grounding", "protocol"):
        schema = rules_schema(category)
        defaults = {name: part["default"] for name, part in schema["properties"].items() if part["default"] != ""}
        fields = forms.rule_fields(schema, defaults)
        sent = {field.name: field.value for field in fields if field.kind != "flag" or field.value == "true"}
        body = forms.body_of_form({**sent, "name": "x", "category": category}, schema)

        assert msgspec.json.encode(defaults) == msgspec.json.encode(body["rules"])


@pytest.mark.parametrize(
    ("typed", "value"),
    [("0.7", 0.7), ("12", 12), ("-3", -3), ("1e3", 1000.0), ("nan", "nan"), ("0x10", "0x10"), ("1 2", "1 2"), ("9" * 50, "9" * 50)],
)
def test_what_is_no_number_goes_as_it_was_typed(typed: str, value: object) -> None:
    body = forms.body_of_form({"rules.max_chunks": typed}, rules_schema("retrieval"))

    assert value == body["rules"]["max_chunks"]


def test_the_difference_names_only_what_differs() -> None:
    one = PolicyBody(name="x", category="retrieval", rules={"a": 1, "b": [1]}, posture={"*": "open"})  # type: ignore[dict-item]
    two = PolicyBody(name="x", category="retrieval", rules={"a": 2, "b": [1], "c": None}, enabled=False)

    assert [("enabled", "yes", "no"), ("posture.*", "open", "none"), ("rules.a", "1", "2")] == differences(one, two)
    assert [] == differences(one, one)


def test_a_bar_never_leaves_the_axis_and_is_always_seen() -> None:
    for start in (0, 1, 999_999, 1_000_000):
        for duration in (0, 1, 1_000_000, 5_000_000):
            bar = plots.time_bar(start, duration, 1_000_000)

            assert plots.LEAST_BAR <= bar.width
            assert 0 <= bar.x <= bar.x + bar.width <= plots.AXIS
    assert (0, plots.LEAST_BAR) == plots.time_bar(0, 0, 0)


@pytest.mark.parametrize(("rule", "counts"), [("min_relevance_score", [0, 3, 10]), ("max_source_age_days", [10, 7, 0])])
def test_a_threshold_catches_what_lies_beyond_it(rule: str, counts: list[int]) -> None:
    bars = (HistogramBar(low=0.0, high=0.5, good=2, other=1), HistogramBar(low=0.5, high=1.0, good=7, other=0))
    caught = plots.caught_by(rule, bars)

    assert counts == [each.values for each in caught]
    assert [0.0, 0.5, 1.0] == [each.threshold for each in caught]
