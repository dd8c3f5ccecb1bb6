"""Take the pictures of the dashboard that the documentation shows: `make screenshots`.

The documents are those of `evidentia demo`. Time moves only as this says and ids come from a seed, so that a picture changes when the
dashboard does.
"""

from __future__ import annotations

import argparse
import base64
import io
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import httpx2
import uvicorn
from harbour import record_run, sent
from PIL import Image
from playwright.sync_api import sync_playwright
from watching import CHROMIUM, FLAGS, Coverage, Watched

from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli.demo_tour import AGENT, POLICIES, SAMPLE_SOURCES, SCOPE
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.application import make_app
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from watching import Scheme

START: Final = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
STEP_US: Final = 200
QUESTION: Final = "How often are signing keys rotated?"
CORPUS: Final = Path(__file__).parents[1] / "src/evidentia/serving/cli/demo_corpus"
MAX_BYTES: Final = 150_000
COLOURS: Final = 256


class SteadyClock:
    """Implements `Clock`: the time moves only when told, and each reading of what has passed is a little later than the one before."""

    def __init__(self) -> None:
        self._now = START
        self._readings = 0
        self._lock = threading.Lock()

    def pass_by(self, ms: int) -> None:
        """Let time pass."""
        with self._lock:
            self._now += timedelta(milliseconds=ms)

    def now(self) -> datetime:
        """Return the time."""
        return self._now

    def elapsed_ns(self) -> int:
        """Return what has passed since the beginning."""
        with self._lock:
            self._readings += 1
            return (int((self._now - START) / timedelta(microseconds=1)) + self._readings * STEP_US) * 1_000


class Studio:
    """A server in this process, filled with what the pictures show."""

    def __init__(self, url: str, token: str, clock: SteadyClock) -> None:
        self.url = url
        self.token = token
        self._clock = clock
        self._client = httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=120, trust_env=False)

    def fill(self) -> None:
        """Take in the documents, put policies in force, and let an agent work under them."""
        for source in SAMPLE_SOURCES:
            place = CORPUS / source.path
            paths = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
            files = [{"path": path.name, "content": base64.b64encode(path.read_bytes()).decode()} for path in paths]
            sent(self._client, "/v1/documents", {"files": files, "source": source.name, "authority": source.authority, "embed": False})
            self._clock.pass_by(60_000)
        sent(self._client, "/v1/base/embed", {})
        for policy in POLICIES:
            sent(self._client, "/v1/policies", policy)
        fresh = {"name": "Fresh enough", "category": "retrieval", "rules": {"min_relevance_score": 0.8, "max_source_age_days": 365}}
        sent(self._client, "/v1/policies", {**fresh, "scope": SCOPE})
        for minutes, age_days, is_grounded in ((9, 40, True), (6, 900, True), (3, 40, False)):
            self._record_run(age_days=age_days, is_grounded=is_grounded)
            self._clock.pass_by(minutes * 60_000)

    def _record_run(self, *, age_days: int, is_grounded: bool) -> None:
        found = sent(self._client, "/v1/evidence", {"query": QUESTION, "latency_deadline_ms": 20_000, "limit": 3})["fragments"]
        documents = [
            {
                "kind": "retrieval",
                "relevance_score": round(0.91 - 0.07 * place, 2),
                "source": each["document_id"],
                "collection": each["source_id"],
                "age_days": age_days if place == 1 else 40,
                "chunk_id": each["chunk_id"],
            }
            for place, each in enumerate(found)
        ]
        llm = {"kind": "llm", "model": "small-model", "input_tokens": 1_840, "output_tokens": 96, "cost_micro": 2_310, "duration_ms": 640}
        grounding = {
            "kind": "grounding",
            "grounding_scores": [0.93 if is_grounded else 0.31],
            "citations": [found[0]["chunk_id"]],
            "unsupported_claims": [] if is_grounded else ["Signing keys are never rotated once a parcel has left Antwerp."],
        }
        calls = [{**llm, "duration_ms": 220, "output_tokens": 24}, *documents, llm, grounding]
        record_run(self._client, agent=AGENT, calls=calls, before=self._between)

    def _between(self, call: dict[str, Any]) -> None:
        self._clock.pass_by(int(call.get("duration_ms", 0)) + 45)

    def newest(self, operation: str, name: str) -> dict[str, Any]:
        """Return the first thing that an operation lists."""
        reply = self._client.get(operation)
        assert reply.is_success, reply.text
        return dict(reply.json()[name][0])

    def close(self) -> None:
        """Hang up."""
        self._client.close()


@contextmanager
def studio(directory: Path) -> Iterator[Studio]:
    """Make a base and serve it from this process."""
    clock, entropy = SteadyClock(), RepeatableEntropy()
    create(directory / "base", clock=clock, entropy=entropy)
    with ExitStack() as stack:
        control = stack.enter_context(GovernanceRuntime(directory / "base", clock=clock, entropy=entropy))
        facts = TokenFacts(clearance=Classification.RESTRICTED, groups=("security",))
        token = control.tokens.issue(name="Ada", roles=(Role.ADMIN, Role.AUDITOR), tenant="default", by="operator", facts=facts).token
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(make_app(control), log_config=None, lifespan="on", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        made = Studio(f"http://127.0.0.1:{listening.getsockname()[1]}", token, clock)
        try:
            yield made
        finally:
            made.close()
            server.should_exit = True
            thread.join()


def main() -> None:
    """Take every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the pictures go")
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, studio(Path(work)) as place, sync_playwright() as playwright:
        place.fill()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), chromium_sandbox=False)
        asked = "/dashboard/search?" + urlencode({"q": QUESTION})
        run = place.newest(f"/v1/runs?agent={AGENT}", "runs")["facts"]["run_id"]
        chunk = place.newest("/v1/chunks?document=handbook%3Akey-rotation.md", "chunks")["chunk_id"]
        shots: list[tuple[str, str, Scheme]] = [
            ("search-light", asked, "light"),
            ("search-dark", asked, "dark"),
            ("governance", "/dashboard/governance/events", "light"),
            ("trace", "/dashboard/traces/run?" + urlencode({"id": run}), "light"),
            ("verify", "/dashboard/verify?" + urlencode({"target": chunk}), "light"),
        ]
        for name, path, scheme in shots:
            window = Watched(browser, place.url, Coverage(), scheme=scheme)
            page = window.sign_in(place.token, path=path)
            if name == "trace":
                page.get_by_text("Stopped:").evaluate("(element) => element.parentElement.scrollIntoView()")
            file = directory / f"dashboard-{name}.png"
            file.write_bytes(compressed(page.screenshot()))
            window.close()
            print(file, file.stat().st_size)  # noqa: T201 - it is a command
        browser.close()


def compressed(picture: bytes) -> bytes:
    """Return a picture with as few colours as it takes to be small."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    if written.tell() > MAX_BYTES:
        written = io.BytesIO()
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return written.getvalue()


if __name__ == "__main__":
    main()
