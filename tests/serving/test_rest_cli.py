"""`evidentia tokens` in this process, and `evidentia serve` as a process that is asked, stopped and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from evidentia.serving.cli import main
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.wiring.embedded import create
from serving.rest_planes import SEED_BODY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serving.cli_runs import Run

pytest.importorskip("starlette", reason="the extra `server` is not installed")

COMMAND = [sys.executable, "-c", "import sys; from evidentia.serving.cli import main; sys.exit(main())"]
SHOWN = "token of the first admin, shown once: "


@pytest.fixture
def base(tmp_path: Path) -> Path:
    create(tmp_path / "base")
    return tmp_path / "base"


# --- tokens ---


def test_a_token_is_printed_once_and_listed_without_its_secret(run: Run, base: Path) -> None:
    added = run("tokens", "add", "--name", "bob", "--role", "agent", "--role", "reader", "--expires", "30d", "--base", base)
    token = added.out.strip()
    listed = run("tokens", "list", "--base", base)

    assert 0 == added.exit_code == listed.exit_code
    assert token.startswith("evt_")
    assert token.split("_")[1] in added.err
    assert "bob" in listed.out
    assert "reader, agent" in listed.out
    assert "valid" in listed.out
    assert token.split("_", 2)[2] not in listed.out


def test_a_revoked_token_is_listed_as_revoked(run: Run, base: Path) -> None:
    info = json.loads(run("tokens", "add", "--name", "bob", "--role", "admin", "--base", base, "--json").out)["info"]
    revoked = run("tokens", "revoke", info["token_id"], "--base", base)

    assert (0, f"revoked {info['token_id']}\n") == (revoked.exit_code, revoked.out)
    assert "revoked" in run("tokens", "list", "--base", base).out
    assert json.loads(run("tokens", "list", "--base", base, "--json").out)[0]["revoked_at"]


def test_an_empty_list_says_what_to_do(run: Run, base: Path) -> None:
    assert "tokens add" in run("tokens", "list", "--base", base).err


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "x", "--role", "root"),
        ("--name", " ", "--role", "admin"),
        ("--name", "x", "--role", "admin", "--tenant", "a/b"),
        ("--name", "x", "--role", "admin", "--expires", "soon"),
        ("--name", "x", "--role", "admin", "--expires", "0s"),
        ("--name", "x"),
    ],
)
def test_a_token_that_cannot_be_right_is_refused(run: Run, base: Path, words: tuple[str, ...]) -> None:
    outcome = run("tokens", "add", *words, "--base", base)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert "hint: " in outcome.err


def test_without_a_base_there_are_no_tokens(run: Run, tmp_path: Path) -> None:
    for words in (("list",), ("add", "--name", "x", "--role", "admin"), ("revoke", "x")):
        assert 3 == run("tokens", *words, "--base", tmp_path / "nothing").exit_code
    assert not (tmp_path / "nothing").exists()


def test_a_token_that_is_not_there_is_not_revoked(run: Run, base: Path) -> None:
    assert 2 == run("tokens", "revoke", "nothing", "--base", base).exit_code


# --- serve ---


class Process:
    """A plane in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def stopped(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@contextmanager
def served(base: Path, *words: str) -> Iterator[Process]:
    arguments = [*COMMAND, "serve", "--port", "0", "--base", str(base), "--json", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield Process(process, str(json.loads(process.stdout.readline())["address"]))
        finally:
            process.kill()


def asked(plane: Process, method: str, path: str, token: str, **options: object) -> httpx2.Response:
    with httpx2.Client(base_url=plane.url, timeout=60, trust_env=False) as client:
        return client.request(method, path, headers={"authorization": f"Bearer {token}"}, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_plane_gives_its_first_token_serves_and_stops_in_order(base: Path, number: int) -> None:
    with served(base) as plane:
        assert plane.process.stderr is not None
        token = plane.process.stderr.readline().removeprefix(SHOWN).strip()
        created = asked(plane, "POST", "/v1/policies/", token, json=SEED_BODY)
        began = asked(plane, "POST", "/v1/runs", token, json={"facts": {"agent_name": "rag-agent"}})
        exit_code, said = plane.stopped(number)

    assert [201, 201] == [created.status_code, began.status_code]
    assert 0 == exit_code
    assert "Traceback" not in said
    assert "stopped" in said


@pytest.mark.slow
def test_policies_tokens_and_decisions_survive_a_killed_plane(base: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    with served(base, "--token-file", str(file), "--durable") as plane:
        token = file.read_text().strip()
        asked(plane, "POST", "/v1/policies/", token, json=SEED_BODY)
        run_id = asked(plane, "POST", "/v1/runs", token, json={"facts": {"agent_name": "rag-agent"}}).json()["run_id"]
        plane.process.kill()
        plane.process.wait()
    with served(base) as again:
        policies = asked(again, "GET", "/v1/policies", token).json()["policies"]
        run = asked(again, "GET", f"/v1/runs/{run_id}", token)
        report = asked(again, "GET", "/v1/decisions/verify", token).json()

    assert 0o600 == file.stat().st_mode & 0o777
    assert ["RAG Quality Guard"] == [each["policy"]["body"]["name"] for each in policies]
    assert "running" == run.json()["status"]
    assert report["ok"]


@pytest.mark.slow
def test_an_address_that_is_taken_is_told_before_anything_is_made(run: Run, base: Path) -> None:
    with bound_socket("127.0.0.1", 0) as taken:
        outcome = run("serve", "--port", str(taken.getsockname()[1]), "--base", base)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert "address already in use" in outcome.err.lower()


def test_serving_without_a_base_is_refused(tmp_path: Path) -> None:
    assert 3 == main(["serve", "--port", "0", "--base", str(tmp_path / "nothing")])
