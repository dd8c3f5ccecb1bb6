"""`/metrics`, and what counts each request on its way: for this machine, or for who watches over the base."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response
from starlette.routing import Route

from evidentia.contracts.control import Role
from evidentia.serving.hosting.request_log import COUNTED_BY_CALL, GONE, PASSED, REFUSED, door_of, operation_of
from evidentia.serving.identity.host_check import client_of, is_local
from evidentia.serving.operations.api_errors import ApiError
from evidentia.serving.rest.http_exchange import HEADERS, refused

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evidentia.contracts.ports import Clock
    from evidentia.serving.operations.endpoint import Endpoint, Reply
    from evidentia.serving.operations.server_context import ServerContext


PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class _Watching(NamedTuple):
    """What a token has to allow for its holder to read what was counted."""

    roles: tuple[Role, ...] = (Role.ADMIN, Role.AUDITOR)
    is_base_wide: bool = True


def metrics_route(context: ServerContext) -> Route:
    """Return the route of what was counted."""

    async def answer(request: Request) -> Response:
        try:
            if not is_local(request):
                await context.admission.admit(request.headers.get("authorization", ""), _Watching(), client=client_of(request))
        except ApiError as refusal:
            return refused(refusal)
        return Response(exposition(), headers={**HEADERS, "content-type": CONTENT_TYPE})

    return Route(PATH, answer, methods=["GET"])


class MetricsMiddleware:
    """An ASGI application that counts what the one behind it answers."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._elapsed_ns = clock.elapsed_ns
        self._measures = DoorMetrics.shared()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        measures = self._measures
        if scope["type"] != "http" or PASSED in scope:
            await self._app(scope, receive, send)
            return
        began_ns, door, status = self._elapsed_ns(), door_of(scope["path"]), GONE

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        measures.begin(door)
        try:
            await self._app(scope, receive, noting)
        finally:
            took_ns = self._elapsed_ns() - began_ns
            if door in COUNTED_BY_CALL and status < REFUSED:
                measures.leave(door)
            else:
                measures.end(door, operation_of(scope), status, took_ns=took_ns)


class CallMetrics:
    """Counts the operations that come through a door whose requests do not tell which they are for; for `ServerContext.watch`."""

    def __init__(self, door: str, *, clock: Clock) -> None:
        self._door = door
        self._elapsed_ns = clock.elapsed_ns
        self._measures = DoorMetrics.shared()

    async def __call__(self, endpoint: Endpoint, performing: Coroutine[None, None, Reply]) -> Reply:
        """Wait for an operation and count what became of it."""
        began_ns, status = self._elapsed_ns(), GONE
        try:
            reply = await performing
            status = reply.status or endpoint.status
        except ApiError as refusal:
            status = refusal.status
            raise
        finally:
            self._measures.count(self._door, endpoint.name, status, took_ns=self._elapsed_ns() - began_ns)
        return reply


# --- the series; labels are words of this program, never of a request, so there are few of them ---

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MULTIPROCESS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which several processes count together."""
_NS_PER_S: Final = 1_000_000_000
_RATE_LIMITED: Final = 429
_sharing = threading.Lock()
_shared: WeakKeyDictionary[CollectorRegistry, DoorMetrics] = WeakKeyDictionary()


class DoorMetrics:
    """The series of one registry. Thread safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "evidentia_door_requests", "Requests answered at a door.", ["door", "operation", "status"], registry=registry
        )
        self._duration = Histogram(
            "evidentia_door_duration_seconds",
            "From the request's head to the end of its answer.",
            ["door", "operation"],
            registry=registry,
            buckets=BUCKETS_S,
        )
        self._in_flight = Gauge("evidentia_door_in_flight", "Requests under way.", ["door"], registry=registry, multiprocess_mode="livesum")
        self._limited = Counter("evidentia_door_rate_limited", "Requests refused for being too many.", ["door"], registry=registry)

    @classmethod
    def shared(cls) -> DoorMetrics:
        """Return the series of this process."""
        with _sharing:
            if REGISTRY not in _shared:
                _shared[REGISTRY] = cls(REGISTRY)
            return _shared[REGISTRY]

    def begin(self, door: str) -> None:
        """Count a request that has come."""
        self._in_flight.labels(door).inc()

    def end(self, door: str, operation: str, status: int, *, took_ns: int) -> None:
        """Count how it was answered."""
        self.leave(door)
        self.count(door, operation, status, took_ns=took_ns)

    def leave(self, door: str) -> None:
        """Count that it is no longer under way."""
        self._in_flight.labels(door).dec()

    def count(self, door: str, operation: str, status: int, *, took_ns: int) -> None:
        """Count one answer."""
        self._requests.labels(door, operation, str(status)).inc()
        self._duration.labels(door, operation).observe(took_ns / _NS_PER_S)
        if status == _RATE_LIMITED:
            self._limited.labels(door).inc()


def exposition() -> bytes:
    """Return everything that was counted in this process and in those that count with it, as Prometheus reads it."""
    if MULTIPROCESS_VARIABLE not in os.environ:
        return generate_latest(REGISTRY)
    gathered = CollectorRegistry()
    MultiProcessCollector(gathered)  # type: ignore[no-untyped-call] # the package has no type here
    return generate_latest(gathered)
