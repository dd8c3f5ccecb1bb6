"""What leaves the process leaves through one client, so that its rules hold for all of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from source_trees import nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidentia"
CLIENT = "foundation/outbound_http.py"
LIBRARIES = {"httpx2", "httpx", "requests", "aiohttp", "urllib.request", "http.client", "urllib3", "websockets"}
CALLS = {"create_connection", "open_connection", "open_unix_connection", "create_unix_connection", "connect_ex"}
CHANNELS = {"insecure_channel", "secure_channel"}
ALLOWED = {
    "serving/hosting/process_role.py": "open_unix_connection: between the processes of one server, over its user's own socket",
    "serving/hosting/worker_main.py": "open_connection: over a socket that the process was started with",
    "serving/hosting/supervisor.py": "open_connection: over a pair of sockets that it made itself",
    "backends/remote/grpc_calls.py": "secure_channel: gRPC brings its own transport; address and token are checked alike",
}


def test_only_the_client_imports_an_http_library() -> None:
    found = {name: sorted(libraries) for name, path in _modules() if name != CLIENT and (libraries := _libraries(path))}

    assert {} == found


def test_whoever_else_opens_a_connection_has_a_reason() -> None:
    found = {name for name, path in _modules() if name != CLIENT and _connecting(path)}

    assert set(ALLOWED) == found


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path


def _libraries(path: Path) -> set[str]:
    """Return the HTTP libraries that a module imports, other than for its annotations."""
    typing_only = {
        id(inner)
        for node in nodes_of(path)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in nodes_of(path):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {library for library in LIBRARIES for name in names if name == library or name.startswith(f"{library}.")}


def _connecting(path: Path) -> bool:
    called = {node.func.attr for node in nodes_of(path) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    return bool(called & (CALLS | CHANNELS))
