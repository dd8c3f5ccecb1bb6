"""A model that is slow, hangs, raises, talks nonsense or holds the interpreter's lock: words answer, in time, and the answer says why."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import evidentia
from engine.known_vectors import give_vectors
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import SearchTimedOutError, ServiceUnavailableError
from evidentia.contracts.settings import FanoutSettings
from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.model_calls import ModelMissingError, ThreadedModelCalls
from evidentia.engine.pipeline import TOO_SLOW, UNSEARCHED, Engine
from evidentia.engine.request_checks import request_from
from evidentia.engine.understanding import AS_WRITTEN
from evidentia.foundation.loop_thread import LoopThread
from evidentia.foundation.object_process import ObjectProcess
from evidentia.foundation.offload import outbound_deadline
from evidentia.testing.fake_models import FakeModels, FakeReply
from evidentia.testing.faulty_models import (
    DIMENSION,
    SPACE,
    FaultyEncoder,
    FaultyMerger,
    FaultyReranker,
    FaultyRewriter,
    ModelFault,
    SlowReceipts,
)
from evidentia.wiring import embedded as wiring
from evidentia.wiring.isolated_models import IsolatedEncoder
from evidentia.wiring.model_registry import AttachedModels
from evidentia.wiring.settings_file import SETTINGS_NAME
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.wiring.embedded import EmbeddedComponents

QUERY = "how often are signing keys rotated"
AS_OF = "2026-01-01T00:00:00Z"
PATIENCE_S = 15
"""Nothing here should come near it, on a machine that is busy; what hangs would take an hour."""
EVERY_FAULT = [fault for fault in ModelFault if fault not in {ModelFault.NONE, ModelFault.HOLDS_LOCK}]
WORDS = {"understand", "rewrite", "dense", "merge", "rerank"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base whose chunks have vectors of the faulty encoder."""
    home = tmp_path_factory.mktemp("slow")
    texts = ["Signing keys are rotated every quarter.", "A leave is requested by form.", "Keys of the office are kept at the desk."]
    for number, text in enumerate(texts):
        (home / f"{number}.md").write_text(f"# Page {number}\n\n{text}\n", encoding="utf-8")
    with evidentia.connect(home / "base", init=True) as base:
        base.ingest([home / f"{number}.md" for number in range(len(texts))], embed=False)
    parts = wiring.open_parts(home / "base")
    assert give_vectors(parts, SPACE, lambda chunk: FaultyEncoder().encode_document(chunk.text))
    parts.close()
    return home / "base"


@contextmanager
def opened(folder: Path, **models: object) -> Iterator[EmbeddedComponents]:
    attached = AttachedModels(**{"encoder": FaultyEncoder(), **models})  # type: ignore[arg-type]  # models by their names
    parts = wiring.open_parts(folder, attached=attached)
    try:
        yield parts
    finally:
        parts._workers._pool = None  # a thread that a test holds on to is not waited for
        parts.close()


def ask(parts: EmbeddedComponents, deadline_ms: int = 500, **fields: object) -> EvidenceResponse:
    """Ask without an event loop, and hold the answer to a generous bound."""
    request = request_from(QUERY, {"as_of": AS_OF, "latency_deadline_ms": deadline_ms, "receipt": False, **fields})
    portal = LoopThread("test")
    began = time.monotonic()
    try:
        return parts.retrieve_blocking(request, principal=local_owner(), on_loop=portal.run)
    finally:
        took_s = time.monotonic() - began
        portal.close()
        assert took_s < PATIENCE_S, "it waited for what was slow"


def stages(response: EvidenceResponse) -> list[str]:
    return [reason.partition(":")[0] for reason in response.degraded if reason.partition(":")[0] in WORDS]


@pytest.mark.parametrize("fault", EVERY_FAULT)
@pytest.mark.parametrize("is_first", [True, False])
def test_words_answer_for_an_encoder(folder: Path, fault: ModelFault, is_first: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    encoder = FaultyEncoder(ModelFault.NONE, pause_s=3)
    with opened(folder, encoder=encoder) as parts:
        if not is_first:
            assert not stages(ask(parts, 5_000))
        encoder.fault = fault
        response = ask(parts)
    assert response.fragments
    assert ["dense"] == stages(response), "one message, and no other that contradicts it"
    assert "secret" not in str(response.degraded)


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_words_answer_for_a_rewriter(folder: Path, fault: ModelFault) -> None:
    with opened(folder, rewriter=FaultyRewriter(fault, pause_s=3)) as parts:
        response = ask(parts, 1_000)
    assert response.fragments
    assert ["rewrite"] == stages(response)


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_the_order_of_the_search_stands_in_for_a_reranker(folder: Path, fault: ModelFault) -> None:
    with opened(folder, reranker=FaultyReranker(fault, pause_s=3)) as parts:
        response, without = ask(parts), ask(parts, rerank=False)
    assert ["rerank"] == stages(response)
    assert [each.chunk_id for each in without.fragments] == [each.chunk_id for each in response.fragments]


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_legs_are_merged_by_rule_where_the_model_does_not(folder: Path, fault: ModelFault) -> None:
    with opened(folder, merger=FaultyMerger(fault, pause_s=3)) as parts:
        response = ask(parts, fusion="learned")
    assert response.fragments
    assert ["merge"] == stages(response)


@pytest.mark.parametrize("model", ["encoder", "reranker", "merger"])
def test_a_model_that_was_left_out_is_left_out_of_the_replay(folder: Path, model: str) -> None:
    broken = {"encoder": FaultyEncoder, "reranker": FaultyReranker, "merger": FaultyMerger}[model](ModelFault.ERROR)
    with opened(folder, **{model: broken}) as parts:
        response = ask(parts, 5_000, receipt=True, fusion="learned" if model == "merger" else "linear")
        broken.fault = ModelFault.NONE
        assert response.receipt_id is not None
        assert parts.replayer().replay(response.receipt_id, asker=local_owner()).is_same


def test_an_event_loop_is_answered_in_time_as_well(folder: Path) -> None:
    async def run(parts: EmbeddedComponents) -> EvidenceResponse:
        request = request_from(QUERY, {"as_of": AS_OF, "receipt": False})
        return await asyncio.wait_for(parts.retrieve(request, principal=local_owner()), PATIENCE_S)

    with opened(folder, encoder=FaultyEncoder(ModelFault.HANG)) as parts:
        response = asyncio.run(run(parts))
    assert response.fragments
    assert ["dense"] == stages(response)


def test_a_model_that_hangs_is_soon_left_alone(folder: Path) -> None:
    encoder = FaultyEncoder(ModelFault.HANG)
    with opened(folder, encoder=encoder) as parts:
        answers = [ask(parts, 50) for _ in range(12)]
    assert FanoutSettings().breaker_failures == encoder.calls
    assert "left alone" in str(answers[-1].degraded)
    assert all(answer.fragments for answer in answers)


def test_a_model_that_is_only_a_little_late_is_asked_again() -> None:
    calls = ThreadedModelCalls(SystemClock(), settings=FanoutSettings(breaker_failures=1))
    may_go = threading.Event()
    late = calls.begin("encoder", may_go.wait, wait_ms=60_000)
    hurried = calls.begin("encoder", partial(time.sleep, 0.05), wait_ms=1)
    with pytest.raises(ModelMissingError, match="within 1 ms"):
        hurried()
    for _ in range(200):  # until the hurried call has ended
        try:
            assert 7 == calls.begin("encoder", lambda: 7, wait_ms=60_000)()
            break
        except ModelMissingError:
            time.sleep(0.02)
    else:
        pytest.fail("a caller in a hurry took the model from the others")
    may_go.set()
    assert late()
    calls.close()


def test_an_encoder_that_holds_the_lock_holds_up_nobody_from_its_own_process(folder: Path) -> None:
    encoder = IsolatedEncoder(partial(FaultyEncoder, ModelFault.HOLDS_LOCK, pause_s=1.5))
    beats: list[float] = []
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(0.01):
            beats.append(time.monotonic())

    with opened(folder, encoder=encoder) as parts:
        parts._load_models(parts.engine(parts.config))
        beating = threading.Thread(target=beat)
        beating.start()
        response = ask(parts)
        is_over.set()
        beating.join()
        encoder.close()
    assert response.fragments
    assert ["dense"] == stages(response)
    assert 1.2 > max(after - before for before, after in pairwise(beats))


def test_an_encoder_in_a_process_of_its_own_gives_the_same_answers(folder: Path) -> None:
    with opened(folder) as parts:
        here = ask(parts, 5_000)
    encoder = IsolatedEncoder(FaultyEncoder)
    with opened(folder, encoder=encoder) as parts:
        there = ask(parts, 5_000)
        encoder.close()
    assert not stages(there)
    assert here.result_hash == there.result_hash


def test_a_process_that_hangs_or_dies_is_begun_again() -> None:
    process = ObjectProcess(FaultyEncoder, hung_s=2)
    assert DIMENSION == len(process.call("encode_query", "text"))
    assert process._process is not None
    process._process.kill()
    with pytest.raises(ServiceUnavailableError):
        process.call("encode_query", "text")
    assert DIMENSION == len(process.call("encode_query", "text"))
    with pytest.raises(AttributeError):
        process.call("no_such_method")
    process.close()
    hanging = ObjectProcess(partial(FaultyEncoder, ModelFault.HANG), hung_s=1)
    with pytest.raises(ServiceUnavailableError):
        hanging.call("encode_query", "text")
    with outbound_deadline(0.2), pytest.raises(ServiceUnavailableError, match="started"):
        hanging.call("encode_query", "text")
    hanging.close()


@pytest.mark.parametrize(
    "reply",
    [FakeReply(pause_s=3, body=b"{}"), FakeReply(status=503, body=b""), FakeReply(manner="hang", body=b"{}"), FakeReply(body=b"{}")],
    ids=["slow", "503", "hang", "{}"],
)
def test_words_answer_for_an_endpoint(folder: Path, reply: FakeReply, monkeypatch: pytest.MonkeyPatch) -> None:
    from evidentia.backends.llm import endpoint_encoder
    from evidentia.backends.llm.model_endpoint import EndpointSettings

    monkeypatch.setattr(endpoint_encoder, "_identity_of", lambda _: SPACE)
    with FakeModels(reply) as models:
        settings = endpoint_encoder.EmbeddingSettings(endpoint=EndpointSettings(url=models.url, model="m"), dimension=DIMENSION)
        encoder = endpoint_encoder.EndpointEncoder(settings)
        with opened(folder, encoder=encoder) as parts:
            answers = [ask(parts), ask(parts)]
        encoder.close()
    assert all(each.fragments for each in answers)
    assert [["dense"], ["dense"]] == [stages(each) for each in answers]
    if reply.status == 503:
        assert "503" in str(answers[1].degraded), "there is no time for another attempt, and so no wait for one"


def test_a_hybrid_request_after_a_lexical_one_waits_for_the_model_outside_its_time(folder: Path) -> None:
    class Opening(FaultyEncoder):
        is_open = False

        def open(self) -> None:
            time.sleep(1.5)
            self.is_open = True

        def encode_query(self, text: str) -> object:  # type: ignore[override]  # as it is
            assert self.is_open
            return super().encode_query(text)

    with opened(folder, encoder=Opening()) as parts:
        ask(parts, mode="lexical")
        response = ask(parts)
    assert response.fragments
    assert not stages(response)


def test_a_receipt_that_waits_for_the_disk_does_not_hold_up_the_answer(folder: Path) -> None:
    with opened(folder) as parts:
        parts.receipts = SlowReceipts(parts.receipts, pause_s=3)  # type: ignore[assignment]  # a fault
        ask(parts)
        response = ask(parts, receipt=True)
    assert response.fragments
    assert response.receipt_id is None
    assert "receipt" in str(response.degraded)


def test_receipts_that_wait_for_the_disk_take_no_threads_from_other_requests(folder: Path) -> None:
    with opened(folder) as parts:
        parts.receipts = SlowReceipts(parts.receipts, pause_s=20)  # type: ignore[assignment]  # a fault
        ask(parts)
        threads = parts._workers._pool._max_workers if parts._workers._pool is not None else 0
        answers = [ask(parts, 300, receipt=True) for _ in range(threads + 4)]
    assert all(each.fragments for each in answers)


@pytest.fixture
def may_go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def held(parts: EmbeddedComponents, monkeypatch: pytest.MonkeyPatch, name: str, may_go: threading.Event, *, once: bool = False) -> None:
    """Have a step of the engine wait, from the second request on."""
    ask(parts, 5_000)
    step, calls = getattr(Engine, name), 0

    def wait(self: Engine, *given: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1 or not once:
            assert may_go.wait(60)
        return step(self, *given, **named)

    monkeypatch.setattr(Engine, name, wait)


def test_a_question_that_takes_too_long_to_understand_is_searched_as_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, may_go: threading.Event
) -> None:
    with opened(folder) as parts:
        held(parts, monkeypatch, "_understand_query", may_go, once=True)
        response = ask(parts, 3_000, receipt=True)
        assert response.fragments
        assert AS_WRITTEN in response.degraded
        may_go.set()
        assert response.receipt_id is not None
        assert parts.replayer().replay(response.receipt_id, asker=local_owner()).is_same


def test_a_search_by_vectors_that_hangs_leaves_the_words(folder: Path, monkeypatch: pytest.MonkeyPatch, may_go: threading.Event) -> None:
    with opened(folder) as parts:
        held(parts, monkeypatch, "search_base", may_go, once=True)
        response = ask(parts)
    assert response.fragments
    assert AS_WRITTEN in response.degraded


@pytest.mark.parametrize("step", ["_scope_access", "conclude"])
def test_what_cannot_be_answered_in_time_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch, may_go: threading.Event, step: str) -> None:
    with opened(folder) as parts:
        held(parts, monkeypatch, step, may_go)
        response = ask(parts, receipt=True)
        with pytest.raises(SearchTimedOutError, match="500 ms"):
            ask(parts, on_timeout="refuse")
    assert not response.fragments
    assert (UNSEARCHED,) == response.degraded
    assert response.receipt_id is None
    assert {CoverageState.TIMED_OUT} == {report.state for report in response.source_coverage.values()}
    assert ("*" in response.source_coverage) is (step == "_scope_access")
    assert response.unfinished_note


def test_an_own_search_that_does_not_finish_is_told_from_one_that_finds_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, may_go: threading.Event
) -> None:
    with opened(folder) as parts:
        empty = ask(parts, filter='language = "none"', mode="lexical")
        held(parts, monkeypatch, "search_base", may_go)
        response = ask(parts, mode="lexical")
        with pytest.raises(SearchTimedOutError) as refused:
            ask(parts, mode="lexical", on_timeout="refuse")
        threading.Timer(1.5, may_go.set).start()
        waited = ask(parts, mode="lexical", on_timeout="wait")
    assert {CoverageState.SEARCHED} == {report.state for report in empty.source_coverage.values()}
    assert not empty.degraded
    assert {(CoverageState.TIMED_OUT, 0.0, TOO_SLOW)} == {
        (report.state, report.searched_share, report.reason) for report in response.source_coverage.values()
    }
    assert 1 == len(response.degraded)
    assert "search_timed_out" == refused.value.code
    assert waited.fragments


def test_how_a_timeout_is_taken_is_no_part_of_the_question(folder: Path) -> None:
    with opened(folder) as parts:
        hashes = {ask(parts, 5_000, on_timeout=how).result_hash for how in ("degrade", "wait", "refuse")}
    assert 1 == len(hashes)


def test_models_are_kept_apart_by_a_setting(tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\nSigning keys are rotated every quarter.\n", encoding="utf-8")
    with evidentia.connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "keys.md"])
        here = base.retrieve(QUERY, as_of=AS_OF, latency_deadline_ms=20_000)
    (tmp_path / "base" / SETTINGS_NAME).write_text('[models]\nisolate = ["encoder"]\n', encoding="utf-8")
    with evidentia.connect(tmp_path / "base") as base:
        there = base.retrieve(QUERY, as_of=AS_OF, latency_deadline_ms=20_000)
    assert not stages(there)
    assert here.result_hash == there.result_hash
