"""What policies decided lately, newest first, and as it happens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.contracts.policies import PolicyAction
from evidentia.serving.dashboard.dashboard_app import PageRoute
from evidentia.serving.dashboard.live import stream
from evidentia.serving.dashboard.pages.governance_view import tone_of
from evidentia.serving.dashboard.pages.traces_view import facts_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

PAGE: Final = 50
DEFAULT_MINUTES: Final = 60
MINUTES: Final = (("15", "last 15 minutes"), ("60", "last hour"), ("1440", "last day"), ("10080", "last week"), ("527040", "last year"))
ACTIONS: Final = (("", "any action"), *((word, word) for word in PolicyAction.words()))
_FILTERS: Final = ("agent", "policy", "action", "run")


class Wanted(NamedTuple):
    """Which events are looked for."""

    minutes: int
    filters: Mapping[str, str]
    cursor: str


class Events(NamedTuple):
    """Some events, and where those that follow begin."""

    shown: tuple[PolicyDecision, ...]
    next_cursor: str | None


def routes(path: str) -> Sequence[PageRoute]:
    """Return the addresses of the events."""
    return [PageRoute(path, show), PageRoute(f"{path}/live", live)]


async def show(app: DashboardApp, request: Request) -> Response:
    """Show events, page by page; the first page keeps itself up to date."""
    wanted = wanted_of(request.query_params)
    events = await _read(app, app.call, app.signed_in(request).identity, wanted)
    return app.render(
        request,
        "governance/events.html",
        wanted=wanted,
        minutes=MINUTES,
        actions=ACTIONS,
        **_told(events),
    )


async def live(app: DashboardApp, request: Request) -> Response:
    """Send the newest events again whenever there is another; a look at the end of the log tells."""
    wanted = wanted_of(request.query_params)._replace(cursor="")
    kept: dict[tuple[object, ...], str] = {}

    async def part(identity: Identity) -> str:
        newest = (await app.poll(identity, "list_decisions", limit=1)).decisions
        minute = app.context.parts.clock.now().replace(second=0, microsecond=0)
        mark = (minute, *((each.log, each.seq, each.part) for each in newest))
        if mark not in kept:
            kept.clear()
            events = await _read(app, app.poll, identity, wanted)
            kept[mark] = app.part("governance/events_table.html", identity, wanted=wanted, **_told(events))
        return kept[mark]

    return stream(app, request, part)


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """Return which events an address asks for."""
    minutes = query.get("minutes", "")
    is_number = minutes.isascii() and minutes.isdecimal() and len(minutes) <= len(MINUTES[-1][0])
    number = int(minutes) if is_number else DEFAULT_MINUTES
    filters = {name: query.get(name, "").strip() for name in _FILTERS}
    return Wanted(min(max(1, number), int(MINUTES[-1][0])), filters, query.get("cursor", ""))


async def _read(
    app: DashboardApp, ask: Callable[..., Awaitable[Any]], identity: Identity, wanted: Wanted
) -> Events:  # Any: as `DashboardApp.call`
    """Return events from the newest on, up to the time that is asked for: that never reads further back than a page."""
    filters = {name: value or None for name, value in wanted.filters.items()}
    page = await ask(identity, "list_decisions", **filters, limit=PAGE, cursor=wanted.cursor or None)
    since = app.context.parts.clock.now() - timedelta(minutes=wanted.minutes)
    shown = tuple(each for each in page.decisions if each.at >= since)
    is_over = len(shown) < len(page.decisions)
    return Events(shown, None if is_over else page.next_cursor)


def _told(events: Events) -> dict[str, Any]:  # Any: whatever a template takes
    return {"events": events, "facts_of": facts_of, "tone_of": tone_of}
