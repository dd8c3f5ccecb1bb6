"""What is done beside an answering thread: the same work, done once, by whoever is free; and the same answers with it as without."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

import pytest

from engine.known_vectors import RememberingEncoder, remembering_encoder
from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import ServiceError
from evidentia.engine import pipeline
from evidentia.engine.model_calls import InlineModelCalls, ThreadedModelCalls
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.request_checks import request_from
from evidentia.foundation.offload import INLINE, ThreadPoolOffloader
from evidentia.testing.determinism import SteppingClock
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from engine.embedded_samples import DemoBase
    from engine.known_vectors import Vector
    from evidentia.contracts.ports import Encoder, Offloader

    Answer = TypeVar("Answer")

REQUESTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("how are signing keys rotated", {}),
    ("how are signing keys rotated", {"mode": "dense"}),
    ("how are signing keys rotated", {"mode": "lexical"}),
    ('what does "signing keys" mean', {"facets": ["source_id", "language"]}),
    ("compare signing keys and access tokens", {"fusion": "rrf"}),
    ("which keys are rotated, and how is a leave requested", {"limit": 3}),
    ("rotated keys", {"filter": 'authority_tier = "curated"', "explain": True}),
    ("zzz qqq", {"facets": ["source_id"]}),
)
"""By words, by vectors and by both; of one part and of several; narrowed, counted, and of nothing that is there."""


@pytest.fixture
def offloader() -> Iterator[ThreadPoolOffloader]:
    helpers = ThreadPoolOffloader(helpers=1)
    yield helpers
    helpers.close()


class Counting:
    """Implements `Offloader` by another one, and counts what is begun."""

    def __init__(self, inner: Offloader) -> None:
        self._inner = inner
        self.begun = 0

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        self.begun += 1
        return self._inner.submit(work)


@pytest.mark.parametrize(("query", "fields"), REQUESTS, ids=range(len(REQUESTS)))
def test_an_answer_is_the_same_whoever_helps(
    demo: DemoBase, offloader: ThreadPoolOffloader, monkeypatch: pytest.MonkeyPatch, query: str, fields: dict[str, object]
) -> None:
    monkeypatch.setattr(pipeline, "MANY_CHUNKS", 0)
    helped = Counting(offloader)
    alone, together = (_answer(demo, by, query, fields) for by in (INLINE, helped))

    assert alone == together
    assert (0 if fields.get("mode") in {"lexical", "dense"} else 1) == helped.begun


def test_few_chunks_are_not_worth_a_hand_over(demo: DemoBase, offloader: ThreadPoolOffloader) -> None:
    helped = Counting(offloader)
    _answer(demo, helped, "how are signing keys rotated", {})

    assert 0 == helped.begun, "the few vectors are looked at in place"


def test_an_encoder_that_fails_beside_is_told_of_as_one_that_fails_in_place(demo: DemoBase, offloader: ThreadPoolOffloader) -> None:
    class Failing(RememberingEncoder):
        def encode_query(self, text: str) -> Vector:
            raise ServiceError("endpoint", text)

    alone, together = (_answer(demo, by, "signing keys", {}, encoder=Failing(packaged_encoder())) for by in (INLINE, offloader))

    assert alone == together
    assert "dense: " in str(together[-1])


def _answer(
    demo: DemoBase, offloader: Offloader, query: str, fields: dict[str, object], *, encoder: Encoder | None = None
) -> tuple[object, ...]:
    """Answer with models in place where nobody helps, and on threads of their own where somebody does."""
    parts = open_parts(demo.path, clock=SteppingClock(step_s=0))
    calls = InlineModelCalls() if offloader is INLINE else ThreadedModelCalls(parts.clock, settings=parts.settings.fanout)
    models = Models(
        encoder=lambda: encoder or remembering_encoder(), reranker=lambda: None, rewriter=lambda: None, merger=lambda: None, synonyms=None
    )
    engine = Engine(
        parts.index,
        receipts=parts.receipts,
        config=parts.config,
        models=models,
        clock=parts.clock,
        entropy=parts.entropy,
        offloader=offloader,
        calls=calls,
    )
    request = request_from(query, {"receipt": False, "as_of": "2026-01-01T00:00:00Z", "latency_deadline_ms": 60_000, **fields})
    try:
        answer = engine.answer(request, principal=local_owner())
    finally:
        calls.close()
        parts.close()
    return answer.result_hash, answer.fragments, answer.facets, answer.total_candidates, answer.understanding, answer.degraded


def test_work_is_done_by_another_thread_in_the_context_of_whoever_asks(offloader: ThreadPoolOffloader) -> None:
    word = contextvars.ContextVar[str]("word")
    word.set("said here")

    wait = offloader.submit(lambda: (threading.get_ident(), word.get()))
    ident, heard = wait()
    assert threading.get_ident() != ident
    assert "said here" == heard


def test_what_work_raises_is_raised_where_it_is_waited_for(offloader: ThreadPoolOffloader) -> None:
    def broken() -> None:
        raise ValueError("broken")

    wait = offloader.submit(broken)
    with pytest.raises(ValueError, match="broken"):
        wait()
    assert 1 == offloader.submit(lambda: 1)(), "the thread is still there"


def test_work_never_waits_for_other_work(offloader: ThreadPoolOffloader) -> None:
    """Where the only helper is busy, whoever asks does it when it waits for it."""
    may_go = threading.Event()
    busy = offloader.submit(lambda: may_go.wait(60))

    ident = offloader.submit(threading.get_ident)()
    assert threading.get_ident() == ident
    may_go.set()
    assert busy()


def test_work_that_no_helper_has_begun_is_taken_back() -> None:
    """A helper that the machine keeps waiting is not waited for."""
    offloader = ThreadPoolOffloader(helpers=1)
    offloader.submit(lambda: None)()
    started, may_go = threading.Event(), threading.Event()

    def hold_up() -> None:
        started.set()
        may_go.wait(60)

    offloader._pool.submit(hold_up)  # unknown to those who ask
    assert started.wait(60)

    done: list[int] = []
    wait = offloader.submit(lambda: done.append(threading.get_ident()))
    wait()
    may_go.set()
    offloader.close()
    assert [threading.get_ident()] == done, "it was done once, here"


def test_nobody_helps_after_the_end_nor_where_there_is_one_processor() -> None:
    before = _helpers()
    closed, alone = ThreadPoolOffloader(helpers=2), ThreadPoolOffloader(helpers=0)
    closed.submit(lambda: None)()
    assert _helpers() - before
    closed.close()

    for each in (closed, alone):
        assert threading.get_ident() == each.submit(threading.get_ident)()
    assert not _helpers() - before


def _helpers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("evidentia-engine")}
