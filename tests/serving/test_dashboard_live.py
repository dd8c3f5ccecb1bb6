"""Pages that keep themselves up to date: what is new is sent, and streams are few, bounded and ended in time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.serving.dashboard.live import event_of
from evidentia.serving.identity.sessions import IDLE_S
from serving.dashboard_doors import Door, ShiftedClock, filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

LIVE = "/dashboard/live"
DOCUMENTS: list[dict[str, Any]] = [{"id": "keys.md", "title": "Keys", "text": "Signing keys are rotated every 30 days."}]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("live") / "base", DOCUMENTS, source="open")


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
def door(base: Path, clock: ShiftedClock) -> Iterator[Door]:
    with serving_dashboard(base, clock=clock, every_s=0.02, max_of_one=2, most=3) as door:
        yield door


def _events(reply: httpx2.Response) -> Iterator[str]:
    pending = ""
    for text in reply.iter_text():
        pending += text
        while "\n\n" in pending:
            event, _, pending = pending.partition("\n\n")
            yield event


def test_lines_of_a_part_are_lines_of_one_event() -> None:
    assert b"data: <p>\ndata: \ndata: </p>\n\n" == event_of("<p>\n\n</p>\n")


def test_what_is_new_is_sent(door: Door, clock: ShiftedClock) -> None:
    browser = door.signed_in(Role.ADMIN)
    with browser.client.stream("GET", LIVE) as reply:
        assert "text/event-stream" in reply.headers["content-type"]
        assert "no-store" == reply.headers["cache-control"]
        events = _events(reply)
        first = next(events)
        sent = {"documents": [{"id": "more.md", "text": "More."}], "source": "open", "embed": False}
        assert 200 == door.api(door.token(Role.ADMIN)).post("/v1/documents", json=sent).status_code
        clock.shift_s += 2
        later = next(events)

    assert "Newest version" in first
    assert "more.md" not in later
    assert first != later


def test_a_stranger_hears_nothing(door: Door) -> None:
    assert 303 == door.browser().client.get(LIVE).status_code


def test_signing_out_ends_the_stream(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    with browser.client.stream("GET", LIVE) as reply:
        events = _events(reply)
        next(events)
        other = door.browser()
        other.client.cookies.update(dict(browser.client.cookies))
        other.get("/dashboard")
        assert 303 == other.post("/dashboard/sign-out").status_code
        rest = list(events)

    assert "event: signed-out" in rest[-1]


def test_a_revoked_token_ends_the_stream(door: Door, clock: ShiftedClock) -> None:
    issued = door.control.tokens.issue(name="soon gone", roles=[Role.READER], tenant="default", by="test")
    browser = door.browser()
    browser.sign_in(issued.token)
    with browser.client.stream("GET", LIVE) as reply:
        events = _events(reply)
        next(events)
        door.control.tokens.revoke(issued.info.token_id, tenant="default", by="test")
        clock.shift_s += 3
        rest = list(events)

    assert "event: signed-out" in rest[-1]


def test_an_open_stream_does_not_keep_a_session_alive(door: Door, clock: ShiftedClock) -> None:
    browser = door.signed_in(Role.READER)
    with browser.client.stream("GET", LIVE) as reply:
        events = _events(reply)
        next(events)
        clock.shift_s += IDLE_S - 10
        with browser.client.stream("GET", LIVE) as again:
            assert 200 == again.status_code
        clock.shift_s += 20
        rest = list(events)

    assert "event: signed-out" in rest[-1]


def test_one_stream_too_many_is_refused_and_its_place_is_given_back(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    with browser.client.stream("GET", LIVE) as one, browser.client.stream("GET", LIVE) as two:
        events = [_events(one), _events(two)]
        assert all("Newest version" in next(each) for each in events)
        refused = browser.client.get(LIVE, headers={"hx-request": "true"})
        assert 429 == refused.status_code
        assert "too many pages" in refused.text.lower()
    for _ in range(1_000):
        if not len(door.live):
            break
        threading.Event().wait(0.01)

    with browser.client.stream("GET", LIVE) as again:
        assert 200 == again.status_code


def test_the_server_ends_every_stream_before_it_stops(base: Path) -> None:
    with serving_dashboard(base, every_s=60) as door:
        browser = door.signed_in(Role.READER)
        with browser.client.stream("GET", LIVE) as reply:
            events = _events(reply)
            next(events)
            door.live.close()
            assert [] == list(events)
        assert 429 == browser.client.get(LIVE).status_code
