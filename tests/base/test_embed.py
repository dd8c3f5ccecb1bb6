"""Embedding a real base with the real encoder: killed, resumed, searched meanwhile, and never mixed."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from evidentia import Principal, aconnect, connect
from evidentia.backends.onnx.encoder import PACKAGED
from evidentia.contracts.errors import InvalidFieldError, NotAllowedError
from evidentia.contracts.settings import EmbeddingSettings
from evidentia.contracts.vocabulary import Similarity
from evidentia.wiring.embedded import open_parts
from evidentia.wiring.model_registry import encoder_of

if TYPE_CHECKING:
    from evidentia import AsyncBase
    from evidentia.contracts.vectors import EmbeddingState, EmbedProgress, EmbedReport

RECORDS = 60
CHILD = Path(__file__).with_name("embedding_child.py")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base whose chunks have no vectors; tests take a copy."""
    directory = tmp_path_factory.mktemp("prepared")
    texts = [f"Record {number}: the harbour opens at {number} minutes past the hour." for number in range(RECORDS)]
    lines = [json.dumps({"_id": str(number), "title": "", "text": text}) for number, text in enumerate(texts)]
    (directory / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with connect(directory / "base", init=True) as base:
        base.ingest([directory / "corpus.jsonl"], source="log", embed=False)
    return directory / "base"


@pytest.fixture
def unembedded(prepared: Path, tmp_path: Path) -> Path:
    """Return a copy of the base without vectors."""
    return copied(prepared, tmp_path / "own")


def copied(base: Path, to: Path, settings: str = "") -> Path:
    shutil.copytree(base, to)
    if settings:
        (to / "evidentia.toml").write_text(settings, encoding="utf-8")
    return to


def state_of(base: Path) -> EmbeddingState:
    parts = open_parts(base)
    try:
        assert parts.encoder is not None
        with closing(parts.vectors()) as store:
            return store.state(parts.encoder.identity)
    finally:
        parts.close()


def embedded(base: Path) -> str:
    with connect(base) as opened:
        return opened.embed().evidence_state


def child(base: Path, *words: str) -> subprocess.Popen[bytes]:
    program = [sys.executable, str(CHILD), str(base), *words]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


# --- what it does ---


def test_ingest_embeds_and_reports_the_state_after_it(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nKeys expire after 30 days.\n", encoding="utf-8")
    told: list[EmbedProgress] = []
    with connect(tmp_path / "base", init=True) as base:
        report = base.ingest([tmp_path / "a.md"], on_embedding=told.append)
        head = base.head()

        assert (head.corpus_version, head.evidence_state, head.sequence) == (report.corpus_version, report.evidence_state, report.sequence)
        assert [(0, 1), (1, 1), (1, 1)] == [(progress.embedded, progress.chunks) for progress in told]
        assert head.evidence_state == base.embed().evidence_state
    assert (1, 1) == (state_of(tmp_path / "base").embedded, state_of(tmp_path / "base").chunks)


def test_embedding_is_a_new_state_of_the_same_corpus(unembedded: Path) -> None:
    with connect(unembedded) as base:
        before = base.head()
        report = base.embed()
        after = base.head()

        assert (RECORDS, 0, 0) == (report.embedded, report.reused, report.remaining)
        assert (after.evidence_state, after.sequence) == (report.evidence_state, report.sequence)
        assert before.corpus_version == after.corpus_version
        assert before.evidence_state != after.evidence_state
        assert base.verify().ok


def test_an_ingest_finishes_what_an_earlier_one_left(unembedded: Path, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# B\n", encoding="utf-8")
    with connect(unembedded) as base:
        base.ingest([tmp_path / "b.md"])

    assert (RECORDS + 1, RECORDS + 1) == (state_of(unembedded).embedded, state_of(unembedded).chunks)


def test_the_vector_of_a_text_that_moves_is_reused(unembedded: Path, tmp_path: Path) -> None:
    embedded(unembedded)
    corpus = tmp_path / "moved.jsonl"
    corpus.write_text(json.dumps({"_id": "again", "text": "Record 7: the harbour opens at 7 minutes past the hour."}), encoding="utf-8")
    with connect(unembedded) as base:
        base.ingest([corpus], source="other", embed=False)
        report = base.embed()

    assert (1, 1) == (report.embedded, report.reused)


def test_progress_is_told_for_every_text_and_every_batch(prepared: Path, tmp_path: Path) -> None:
    told: list[EmbedProgress] = []
    with connect(copied(prepared, tmp_path / "b", "[embedding]\nbatch_chunks = 25\n")) as base:
        base.embed(on_progress=told.append)

    assert sorted(progress.embedded for progress in told) == [progress.embedded for progress in told]
    assert set(range(RECORDS + 1)) == {progress.embedded for progress in told}
    assert {RECORDS} == {progress.chunks for progress in told}
    assert [25, 50, RECORDS] == [progress.embedded for progress in told if progress.commit is not None]


def test_the_number_of_threads_and_the_size_of_batches_do_not_show(prepared: Path, tmp_path: Path) -> None:
    settings = [f"[embedding]\nthreads = {threads}\nbatch_chunks = {size}\n" for threads, size in ((1, 1_000), (2, 1_000), (2, 7))]
    states = [embedded(copied(prepared, tmp_path / str(number), text)) for number, text in enumerate(settings)]

    assert 1 == len(set(states))


# --- which encoder it takes ---


def test_an_encoder_is_made_once_however_many_ask(tmp_path: Path) -> None:
    made = [
        encoder_of(EmbeddingSettings(threads=threads), similarity=Similarity.COSINE, directory=tmp_path / str(threads))
        for threads in (1, 2)
    ]

    assert made[0] is not None
    assert made[0] is made[1]


@pytest.mark.parametrize("similarity", list(Similarity))
def test_only_cosine_wants_unit_vectors(tmp_path: Path, similarity: Similarity) -> None:
    encoder = encoder_of(EmbeddingSettings(), similarity=similarity, directory=tmp_path)

    assert encoder is not None
    assert ("unit" if similarity is Similarity.COSINE else "none") == encoder.identity.normalisation


def test_a_relative_folder_starts_at_the_base_and_the_same_model_is_the_same_space(unembedded: Path) -> None:
    embedded(unembedded)
    (unembedded / "model").symlink_to(PACKAGED, target_is_directory=True)
    (unembedded / "evidentia.toml").write_text('[embedding]\nencoder = "folder"\nfolder = "model"\n', encoding="utf-8")
    with connect(unembedded) as base:
        assert 0 == base.embed().embedded


class Embeddings(BaseHTTPRequestHandler):
    """An embeddings endpoint whose vectors are made of the lengths of texts; refuses those it is told to."""

    refused = ""
    requests: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        self.requests.append(len(texts))
        is_refused = bool(self.refused) and any(self.refused in text for text in texts)
        rows = [{"index": index, "embedding": [float(len(text)), 1.0, 2.0]} for index, text in enumerate(texts)]
        body = json.dumps({"data": rows}).encode()
        self.send_response(400 if is_refused else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_an_endpoint_is_asked_in_batches_and_what_came_before_a_refusal_is_kept(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f'endpoint = "http://127.0.0.1:{server.server_port}/v1"\nmodel = "lengths"\ndimension = 3\nkey_variable = ""'
    own = copied(prepared, tmp_path / "b", f'[embedding]\nencoder = "endpoint"\n{address}\nbatch_chunks = 20\n')
    monkeypatch.setattr(Embeddings, "requests", [])
    monkeypatch.setattr(Embeddings, "refused", "Record 45:")
    try:
        with connect(own) as base:
            with pytest.raises(InvalidFieldError, match=r"the chunk whose id ends in '@\w{16}' got no vector: .*HTTP status 400"):
                base.embed()
            kept = state_of(own).embedded
            monkeypatch.setattr(Embeddings, "refused", "")
            report = base.embed()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert (40, RECORDS - 40, 0) == (kept, report.embedded, report.remaining)
    assert [20, 20, 20, 20] == Embeddings.requests


# --- what it refuses ---


def test_without_an_encoder_ingest_leaves_vectors_out_and_embed_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    connect(tmp_path / "base", init=True).close()
    (tmp_path / "base" / "evidentia.toml").write_text('[embedding]\nencoder = "none"\n', encoding="utf-8")
    with connect(tmp_path / "base") as base:
        assert 1 == base.ingest([tmp_path / "a.md"]).added
        with pytest.raises(InvalidFieldError, match=r"'embedding.encoder': it is 'none'"):
            base.embed()
        assert base.doctor().ok


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ('encoder = "folder"', "embedding.folder"),
        ('encoder = "folder"\nfolder = "nowhere"', "embedding.folder"),
        (f'encoder = "folder"\nfolder = "{PACKAGED}"\nquery_folder = "nowhere"', "embedding.query_folder"),
        ('encoder = "endpoint"', "embedding.endpoint"),
        ('encoder = "endpoint"\nendpoint = "http://localhost:1/v1"', "embedding.model"),
        ('encoder = "endpoint"\nendpoint = "http://localhost:1/v1"\nmodel = "m"', "embedding.dimension"),
        ('encoder = "endpoint"\nendpoint = "nonsense"\nmodel = "m"\ndimension = 3\nkey_variable = ""', "embedding.endpoint"),
        ('encoder = "endpoint"\nendpoint = "http://h/v1"\nmodel = "m"\ndimension = 3\nkey_variable = "E_NONE"', "embedding.key_variable"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_taken_in(tmp_path: Path, settings: str, field: str) -> None:
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    connect(tmp_path / "base", init=True).close()
    (tmp_path / "base" / "evidentia.toml").write_text(f"[embedding]\n{settings}\n", encoding="utf-8")
    with connect(tmp_path / "base") as base:
        with pytest.raises(InvalidFieldError) as caught:
            base.ingest([tmp_path / "a.md"])
        finding = {finding.check: finding for finding in base.doctor().findings}["vectors"]

        assert field == caught.value.field
        assert [] == base.documents()
        assert (False, str(caught.value)) == (finding.ok, finding.detail)


def test_only_the_owner_embeds(unembedded: Path) -> None:
    with connect(unembedded, principal=Principal(principal_id="bob")) as base, pytest.raises(NotAllowedError, match="embed"):  # type: ignore[arg-type]  # a plain string, as users write it
        base.embed()


def test_the_check_up_says_how_much_is_embedded_and_with_what(unembedded: Path) -> None:
    with connect(unembedded) as base:
        before = {finding.check: finding for finding in base.doctor().findings}["vectors"]
        base.embed()
        after = {finding.check: finding for finding in base.doctor().findings}["vectors"]

    assert (False, True) == (before.ok, after.ok)
    assert before.detail.startswith(f"0 of {RECORDS} chunks embedded by 'all-MiniLM-L6-v2")
    assert after.detail.startswith(f"{RECORDS} of {RECORDS} chunks embedded by 'all-MiniLM-L6-v2")
    assert "evidentia embed" in before.hint


# --- what stops it ---


async def begun(base: AsyncBase) -> asyncio.Task[EmbedReport]:
    """Return an embedding that is under way."""
    loop, reached = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: EmbedProgress) -> None:
        loop.call_soon_threadsafe(reached.set)

    work = asyncio.create_task(base.embed(on_progress=tell))
    await reached.wait()
    return work


def test_closing_the_base_ends_an_embedding_with_what_it_has(prepared: Path, tmp_path: Path) -> None:
    own = copied(prepared, tmp_path / "b", "[embedding]\nthreads = 1\n")

    async def run() -> int:
        base = await aconnect(own)
        work = await begun(base)
        await base.close()
        return (await work).remaining

    remaining = asyncio.run(run())

    assert 0 < remaining
    assert RECORDS - remaining == state_of(own).embedded


def test_a_cancelled_call_stops_the_work_behind_it(prepared: Path, tmp_path: Path) -> None:
    own = copied(prepared, tmp_path / "b", "[embedding]\nthreads = 1\nbatch_chunks = 1\n")

    async def run() -> None:
        base = await aconnect(own)
        work = await begun(base)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(run())  # which waits for worker threads when it ends

    assert state_of(own).embedded < RECORDS


def test_a_changed_encoder_embeds_anew_resumably_and_never_mixes(unembedded: Path) -> None:
    embedded(unembedded)
    (unembedded / "evidentia.toml").write_text('[search]\nsimilarity = "dot"\n[embedding]\nbatch_chunks = 25\n', encoding="utf-8")
    killed = child(unembedded, "25", "wait")
    assert killed.stdout is not None
    seen = b""
    while not seen.endswith(b"c\n"):
        seen += killed.stdout.read(2)
    killed.kill()
    killed.communicate()
    halfway = state_of(unembedded)
    with connect(unembedded) as base:
        detail = {finding.check: finding for finding in base.doctor().findings}["vectors"].detail
        report = base.embed()

    assert 25 == halfway.embedded
    assert detail.startswith(f"25 of {RECORDS}")
    assert (RECORDS - 25, 0, 0) == (report.embedded, report.reused, report.remaining)
    assert report.identity is not None
    assert ("none", report.identity) == (report.identity.normalisation, state_of(unembedded).identity)


def test_an_encoder_that_comes_back_finds_its_vectors_in_force_again(unembedded: Path) -> None:
    first = embedded(unembedded)
    (unembedded / "evidentia.toml").write_text('[search]\nsimilarity = "dot"\n', encoding="utf-8")
    second = embedded(unembedded)
    (unembedded / "evidentia.toml").unlink()
    with connect(unembedded) as base:
        report = base.embed()

        assert (0, first) == (report.embedded, report.evidence_state)
        assert first != second
        assert base.doctor().ok
        assert base.verify().ok


def test_words_are_found_while_another_process_embeds(unembedded: Path) -> None:
    with connect(unembedded) as base:
        before = base.retrieve("harbour 37 minutes", mode="lexical")
        worker = child(unembedded, "25", "wait")
        assert worker.stdout is not None
        seen = b""
        while not seen.endswith(b"c\n"):
            seen += worker.stdout.read(2)
        during = base.retrieve("harbour 37 minutes", mode="lexical")
        is_under_way = worker.poll() is None and 25 == state_of(unembedded).embedded
        worker.communicate(b"go" * RECORDS)

    assert is_under_way
    assert "Record 37: the harbour opens at 37 minutes past the hour." == during.fragments[0].content
    assert (before.fragments[0].chunk_id, len(before.fragments)) == (during.fragments[0].chunk_id, len(during.fragments))
    assert before.evidence_state != during.evidence_state
    assert 0 == worker.returncode
    assert RECORDS == state_of(unembedded).embedded


@pytest.mark.slow
def test_killed_again_and_again_it_ends_in_the_same_state_and_loses_at_most_a_batch_each_time(prepared: Path, tmp_path: Path) -> None:
    base, batch, chance = copied(prepared, tmp_path / "killed"), 8, random.Random(7)
    encoded = kills = 0
    while state_of(base).embedded < RECORDS:
        worker = child(base, str(batch))
        assert worker.stdout is not None
        patience, before = chance.randint(1, 2 * batch + 4), state_of(base).embedded
        steps = b""
        while steps.count(b"e") < patience and (step := worker.stdout.read(2)):
            steps += step
        worker.kill()
        steps += worker.communicate()[0]
        kills += worker.returncode != 0
        encoded += steps.count(b"e")
        kept = state_of(base).embedded - before
        with connect(base) as opened:
            assert opened.verify().ok
        assert steps.count(b"e") - batch <= kept <= steps.count(b"e")
    whole = copied(prepared, tmp_path / "whole")

    assert 4 <= kills
    assert encoded <= RECORDS + kills * batch
    assert embedded(whole) == embedded(base)
