"""Models behind an endpoint, from the settings to the answer: what they say is recorded, and what they fail to say is declared."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from evidentia import connect
from evidentia.contracts.errors import ServiceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIMENSION = 16


class Models(BaseHTTPRequestHandler):
    """Answers like an OpenAI-compatible endpoint: a vector made from the words, and one rewritten question."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = self._embedded(asked) if self.path.endswith("/embeddings") else self._rewritten()
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass

    def _embedded(self, asked: dict[str, Any]) -> dict[str, Any]:
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        return {"data": [{"index": index, "embedding": words_as_vector(text)} for index, text in enumerate(texts)]}

    def _rewritten(self) -> dict[str, Any]:
        return {"choices": [{"message": {"content": json.dumps({"query": "signing keys rotation"})}}]}


def words_as_vector(text: str) -> list[float]:
    """Return a vector in which every word moves one component."""
    vector = [0.01] * DIMENSION
    for word in text.lower().split():
        vector[hashlib.sha256(word.strip(".?").encode()).digest()[0] % DIMENSION] += 1.0
    return vector


@contextmanager
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Return an empty base beside two pages."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text("Signing keys rotate every month.\n")
    (tmp_path / "docs" / "lunch.md").write_text("Soup is served on Mondays.\n")
    connect(tmp_path / "base", init=True).close()
    return tmp_path / "base"


def test_a_rewritten_question_is_searched_recorded_and_replayed_without_the_model(base: Path) -> None:
    connect(base).ingest([base.parent / "docs"], source="docs")
    with endpoint() as url:
        (base / "evidentia.toml").write_text(f'[llm]\nendpoint = "{url}"\nkey_variable = ""\n[query]\nrewriter = "chat"\n')
        with connect(base) as opened:
            answer = opened.retrieve("and how often is that done?", mode="lexical", latency_deadline_ms=20_000)
    with connect(base) as opened:
        replayed = opened.replay(answer.receipt_id or "")
        alone = opened.retrieve("signing keys", mode="lexical", latency_deadline_ms=2_000)

    assert ("docs:keys.md",) == tuple(fragment.document_id for fragment in answer.fragments)
    assert [("rewrite", ("signing keys rotation",))] == [(step.step.value, step.added) for step in answer.understanding if step.added]
    assert replayed.is_same
    assert any(reason.startswith("rewrite: the question was searched as it is") for reason in alone.degraded)
    assert 1 == len(alone.fragments)


def test_an_endpoint_embeds_and_its_absence_is_declared(base: Path) -> None:
    with endpoint() as url:
        settings = f'[embedding]\nencoder = "endpoint"\nendpoint = "{url}"\nmodel = "m"\ndimension = {DIMENSION}\nkey_variable = ""\n'
        (base / "evidentia.toml").write_text(settings)
        with connect(base) as opened:
            opened.ingest([base.parent / "docs"], source="docs")
            answer = opened.retrieve("when do signing keys rotate?", mode="dense")
    (base.parent / "docs" / "late.md").write_text("A page that came later.\n")
    with connect(base) as opened:
        replayed = opened.replay(answer.receipt_id or "")
        alone = opened.retrieve("signing keys", latency_deadline_ms=60_000)
        with pytest.raises(ServiceUnavailableError):
            opened.ingest([base.parent / "docs"], source="docs")
        late = opened.retrieve("page that came later", mode="lexical")

    assert "docs:keys.md" == answer.fragments[0].document_id
    assert () == answer.degraded
    assert replayed.is_same
    assert any(reason.startswith("dense: the endpoint") for reason in alone.degraded)
    assert "docs:keys.md" == alone.fragments[0].document_id
    assert "docs:late.md" == late.fragments[0].document_id
