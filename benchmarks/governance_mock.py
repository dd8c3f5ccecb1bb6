"""A control plane that allows everything, as the published client of the field speaks to one: it answers at once and keeps nothing.

    python benchmarks/governance_mock.py PORT

It runs in a process of its own, so that its work is not counted as the client's.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ALLOWED: dict[str, Any] = {"action": "allow", "reason": "", "metadata": {}, "evaluations": []}
REPLIES: dict[str, dict[str, Any]] = {
    "policy-check/": ALLOWED,
    "policy-manifest/": {"manifest_version": "1", "ttl_seconds": 3600, "checkpoints": [], "surfaces": [], "policies": []},
    "runs/start/": {"run_id": "run-1", "workflow_id": "workflow-1", "started_at": "2026-01-01T00:00:00Z"},
    "steps/": {"governance": ALLOWED},
    "complete/": {
        "run_id": "run-1",
        "duration": 0.0,
        "governance": {"action": "allow", "reason": "", "retry_feedback": "", "max_retries": 0},
    },
}


class Allowing(BaseHTTPRequestHandler):
    """Answers every request by how its path ends."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    def do_POST(self) -> None:
        """Read the body, then answer."""
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        reply = next((reply for ending, reply in REPLIES.items() if path.endswith(ending)), {})
        content = json.dumps(reply).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n".encode()
        # In one piece: two would wait for each other on a connection that stays open.
        self.wfile.write(head + content)


def main() -> None:
    """Serve until the process is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Allowing)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
