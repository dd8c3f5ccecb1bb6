"""A harbour's base, served by `evidentia serve` in a process of its own, and those who speak to it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import httpx2

from evidentia.base.sync_base import connect
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PLAIN: Final = '[embedding]\nencoder = "none"\n'
OTHER_TENANT: Final = "acme"
SCRIPT: Final = "<img src=x onerror=\"window.canary=1;alert('canary')\"><script>window.canary=1</script>"
"""What must be shown as text wherever somebody can write it."""
READY: Final = re.compile(r"listening on (\S+)")
TOKEN: Final = re.compile(r"token of the first admin, shown once: (\S+)")
LINK: Final = re.compile(r"dashboard of the first admin, .*: (http\S+)")
START_S: Final = 60
STOP_S: Final = 20

KEYS: Final = "Signing keys are rotated every {days} days.\n\nA signing key opens the harbour gate.\n"
PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "gate.md": ("The gate", "The harbour gate opens at six in the morning.\n\nA signing key is needed to open it earlier.\n"),
    "crane.md": ("The crane", "The crane lifts forty tonnes, and no more in wind.\n\nIts key hangs in the harbour office.\n"),
    "tide.md": ("The tide", "Ships of deep draught leave with the morning tide.\n"),
    "keys.md": ("Signing keys", KEYS.format(days=30)),
}


def run_cli(*arguments: str, base: Path) -> str:
    """Run a command over a base and return what it prints."""
    done = subprocess.run([_command(), *arguments, "--base", str(base)], capture_output=True, text=True, check=False, timeout=START_S)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def document(name: str, title: str, text: str, **metadata: str | Sequence[str]) -> dict[str, Any]:
    """Return a document as it is sent."""
    return {"id": name, "title": title, "text": text, "metadata": dict(metadata)}


class Harbour:
    """A server that runs."""

    def __init__(self, base: Path, process: subprocess.Popen[str]) -> None:
        self.base = base
        self.said: list[str] = []
        """Every line of its log, for what must not be in there."""
        self._process = process
        self._clients: list[httpx2.Client] = []
        self._told = threading.Condition()
        self._ears = [threading.Thread(target=self._listen, args=(stream,), daemon=True) for stream in (process.stdout, process.stderr)]
        for ear in self._ears:
            ear.start()
        self.url = self._wait_for(READY)
        self.token = self._wait_for(TOKEN)
        self.link = self._wait_for(LINK)
        self.admin = self.holding(self.token)
        self.other_admin = self.admin
        """The admin of the other tenant, once there is one."""

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._told:
                    self.said.append(line.rstrip("\n"))
                    self._told.notify_all()

    def _wait_for(self, pattern: re.Pattern[str]) -> str:
        def found() -> re.Match[str] | None:
            return next((match for line in self.said if (match := pattern.search(line))), None)

        with self._told:
            match = self._told.wait_for(found, timeout=START_S)
        assert match is not None, f"the server did not say '{pattern.pattern}': {self.said}"
        return str(match[1])

    def holding(self, token: str) -> httpx2.Client:
        """Return a client of the API that shows a token."""
        client = httpx2.Client(base_url=self.url, headers={"authorization": f"Bearer {token}"}, timeout=30, trust_env=False)
        self._clients.append(client)
        return client

    def issue(self, name: str, *roles: str, by: httpx2.Client | None = None, **request: Any) -> dict[str, Any]:
        """Return a new token with what is known of it."""
        body = {"name": name, "roles": roles or ("reader",), **request}
        return sent(by or self.admin, "/v1/tokens", body)

    def close(self) -> None:
        """Stop it as its operator would."""
        for client in self._clients:
            client.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            for ear in self._ears:
                ear.join()


def sent(client: httpx2.Client, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send a message and return what was answered."""
    reply = client.post(path, json=body)
    assert reply.is_success, reply.text
    return dict(reply.json())


@contextmanager
def served(directory: Path, *, settings: str = PLAIN) -> Iterator[Harbour]:
    """Make a base that is empty and serve it."""
    base = directory / "base"
    with connect(base, init=True):
        pass
    (base / SETTINGS_NAME).write_text(settings, encoding="utf-8")
    command = [_command(), "serve", "--base", str(base), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        harbour = Harbour(base, process)
    except BaseException:
        process.kill()
        process.wait()
        raise
    try:
        yield harbour
    finally:
        harbour.close()


def furnish(harbour: Harbour) -> None:
    """Fill the base: a handbook and a wiki that disagree, secrets of a group, and what another tenant has."""
    pages = [document(name, title, text, tags=("harbour",), updated="2026-01-05") for name, (title, text) in PAGES.items()]
    sent(harbour.admin, "/v1/documents", {"documents": pages, "source": "handbook", "authority": "canonical"})
    wiki = document("keys.md", "Signing keys", KEYS.format(days=90), tags=("wiki",))
    sent(harbour.admin, "/v1/documents", {"documents": [wiki], "source": "wiki", "authority": "user"})
    hostile = document("hostile.md", f"Harbour notes {SCRIPT}", f"A signing key note {SCRIPT} for the harbour gate.\n", tags=(SCRIPT,))
    sent(harbour.admin, "/v1/documents", {"documents": [hostile], "source": "wiki", "authority": "user"})
    code = document("code.md", "The code", "The harbour gate code is changed with the signing key every Monday.\n", tags=("secret",))
    guarded = {"documents": [code], "source": "security", "classification": "confidential", "acl": ["group:security"]}
    sent(harbour.admin, "/v1/documents", guarded)
    other = run_cli("tokens", "add", "--name", "acme admin", "--role", "admin", "--tenant", OTHER_TENANT, "--quiet", base=harbour.base)
    plans = document("plans.md", "Plans", "The acme gate is painted, and its signing key is green.\n")
    harbour.other_admin = harbour.holding(other.split()[-1])
    sent(harbour.other_admin, "/v1/documents", {"documents": [plans], "source": "plans"})
    run_cli("sources", "add", "--id", "handbook", "--freshness-sla", "7d", base=harbour.base)


def chunk_of(harbour: Harbour, document_id: str) -> str:
    """Return the id of the first chunk of a document."""
    reply = harbour.admin.get("/v1/chunks", params={"document": document_id})
    assert reply.is_success, reply.text
    return str(reply.json()["chunks"][0]["chunk_id"])


def record_run(
    client: httpx2.Client, *, agent: str, calls: Sequence[dict[str, Any]], before: Callable[[dict[str, Any]], None] = lambda _: None
) -> str:
    """Record a run as an agent does, and return its id; what is to happen `before` each call does."""
    run_id = str(sent(client, "/v1/runs", {"facts": {"agent_name": agent}})["run_id"])
    for seq, call in enumerate(calls, start=1):
        before(call)
        if sent(client, f"/v1/runs/{run_id}/calls", {"calls": [{"seq": seq, "call": call}]})["stopped_at"] is not None:
            break
    sent(client, f"/v1/runs/{run_id}/end", {})
    return run_id


def _command() -> str:
    return str(Path(sys.executable).with_name("evidentia"))
