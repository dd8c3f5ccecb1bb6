"""Clients that write and read at once, and remember what they were told was done."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2

from serving.hosting_planes import client_of
from serving.rest_planes import STALE
from soak import IS_SOAKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ_PATHS = ("/v1/policies", "/v1/documents", "/v1/runs", "/v1/health")
PATIENCE_S = 120
PAUSE_S = 0.0 if IS_SOAKED else 0.1
"""How long a client rests after each answer, so that a server that is waited for gets the processor."""


class Load:
    """What clients did: what was acknowledged, and what was not answered as it should be."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._is_over = threading.Event()
        self._change = threading.Condition()
        self.documents: list[str] = []
        self.runs: list[str] = []
        """Of each the start and one call that is stopped were acknowledged."""
        self.reads = 0
        self.failures: list[str] = []

    @property
    def acknowledged(self) -> int:
        return len(self.documents) + len(self.runs)

    def wait_for(self, *, writes: int, reads: int) -> None:
        """Wait until so many more were answered."""
        goal = self.acknowledged + writes, self.reads + reads
        with self._change:
            assert self._change.wait_for(lambda: self.acknowledged >= goal[0] and self.reads >= goal[1], PATIENCE_S), self.failures[-5:]

    def write_documents(self, name: str) -> None:
        def once(client: httpx2.Client, number: int) -> None:
            document = f"{name}-{number}"
            self._ask(client, "POST", "/v1/documents", {"documents": [{"id": document, "text": f"Of {document}."}], "embed": False})
            self._note(self.documents, document)

        self._repeat(once)

    def write_runs(self, _: str) -> None:
        def once(client: httpx2.Client, number: int) -> None:
            del number
            run = str(self._ask(client, "POST", "/v1/runs", {"facts": {"agent_name": "rag-agent"}})["run_id"])
            self._ask(client, "POST", f"/v1/runs/{run}/calls", {"calls": [{"seq": 1, "call": STALE}]})
            self._note(self.runs, run)
            self._ask(client, "POST", f"/v1/runs/{run}/end", {"status": "success"})

        self._repeat(once)

    def read(self, _: str) -> None:
        def once(client: httpx2.Client, number: int) -> None:
            self._ask(client, "GET", READ_PATHS[number % len(READ_PATHS)])
            with self._change:
                self.reads += 1
                self._change.notify_all()

        self._repeat(once)

    def end(self) -> None:
        self._is_over.set()

    def _repeat(self, once: Callable[[httpx2.Client, int], None]) -> None:
        with client_of(self._url, self._token) as client:
            number = 0
            while not self._is_over.is_set():
                number += 1
                try:
                    once(client, number)
                    self._is_over.wait(PAUSE_S)
                except (httpx2.TransportError, _RefusedError) as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                    self._is_over.wait(0.05)

    def _ask(self, client: httpx2.Client, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        reply = client.request(method, path, json=body)
        if not reply.is_success:
            raise _RefusedError(f"{method} {path} {reply.status_code} {reply.text[:200]}")
        return dict(reply.json())

    def _note(self, kept: list[str], name: str) -> None:
        with self._change:
            kept.append(name)
            self._change.notify_all()


class _RefusedError(Exception):
    pass


@contextmanager
def loaded(url: str, token: str, *, writing: int, reading: int, name: str = "client") -> Iterator[Load]:
    """Have clients write and read meanwhile; half of those that write send documents, the others have runs."""
    load = Load(url, token)
    kinds = [load.write_documents if place % 2 else load.write_runs for place in range(writing)] + [load.read] * reading
    threads = [threading.Thread(target=kind, args=(f"{name}-{place}",), daemon=True) for place, kind in enumerate(kinds)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.end()
        for thread in threads:
            thread.join(PATIENCE_S)
