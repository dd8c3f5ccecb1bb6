"""Every receipt of SciFact's test queries gives its answer again, from the stored vectors, whatever became of the base since."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.embedded_samples import AS_OF, DEADLINE_MS, SOURCE, copy_vectors, differing
from evidentia import AccessRule, connect
from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.engine.receipt_replay import Replayer
from evidentia.engine.request_checks import request_from
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.embedded_samples import Asked, DemoBase
    from evidentia import Base
    from evidentia.contracts.receipts import EngineConfig

ADDED, REMOVED, NARROWED, EMBEDDED = 400, 200, 100, 250
NO_ENCODER = '[embedding]\nencoder = "none"\n'


@pytest.mark.slow
def test_every_receipt_replays_after_the_base_has_moved_on(asked: Asked, tmp_path: Path) -> None:
    """Documents come and go, access changes, vectors are added, another encoder takes over, the encoder is removed, versions are."""
    asked = asked.part(0)
    count = len(asked.texts)
    path = tmp_path / "base"
    shutil.copytree(asked.path, path, ignore=shutil.ignore_patterns("receipts"))
    with connect(path) as base:
        answers = [base.retrieve(text, as_of=AS_OF, facets=["language"], latency_deadline_ms=DEADLINE_MS) for text in asked.texts]
        receipts = [answer.receipt_id or "" for answer in answers]

        assert [] == differing(asked.hashes, [answer.result_hash for answer in answers])
        assert count == len(set(receipts))
        assert count == _replayed(base, receipts)
        _move_on(base, asked, tmp_path)
        changed = _hashes(base, asked.texts)
        assert count == len(differing(asked.hashes, changed))
        assert count == _replayed(base, receipts)

    _let_another_encoder_rule(asked.path, path)
    with connect(path) as base:
        assert _says_so(base, "dense: the vectors are of another encoder")
        assert count == _replayed(base, receipts)

    (path / "evidentia.toml").write_text(NO_ENCODER)
    with connect(path) as base:
        assert _says_so(base, "dense: the settings name no encoder")
        assert count == _replayed(base, receipts)
        base.gc(keep_versions=base.head().sequence)
        assert count == _replayed(base, receipts)
        base.gc(keep_versions=1)
        for receipt in receipts:
            with pytest.raises(VersionCollectedError, match="was removed by gc"):
                base.replay(receipt)
        assert base.verify().ok


def test_an_answer_without_an_encoder_is_the_same_once_there_is_one(demo: DemoBase, tmp_path: Path) -> None:
    """What was answered by words alone is answered again by words alone: the receipt records that there was no vector."""
    shutil.copytree(demo.path, tmp_path / "base")
    settings = (tmp_path / "base" / "evidentia.toml").read_text()
    (tmp_path / "base" / "evidentia.toml").write_text(settings + NO_ENCODER)
    with connect(tmp_path / "base") as base:
        answer = base.retrieve("How do I rotate the signing keys?", as_of=AS_OF)
        assert any(reason.startswith("dense: ") for reason in answer.degraded)
    (tmp_path / "base" / "evidentia.toml").write_text(settings)
    with connect(tmp_path / "base") as base:
        again = base.retrieve("How do I rotate the signing keys?", as_of=AS_OF)
        replayed = base.replay(answer.receipt_id or "")

    assert again.result_hash != answer.result_hash
    assert answer.result_hash == replayed.result_hash
    assert any(reason.startswith("dense: ") for reason in replayed.response.degraded)


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_a_replay_asks_no_encoder(demo: DemoBase, tmp_path: Path, mode: str) -> None:
    shutil.copytree(demo.path, tmp_path / "base")
    with connect(tmp_path / "base") as base:
        answers = [base.retrieve(text, mode=mode, as_of=AS_OF) for text in ("parcel size limit?", "who is on call, and what is an SLA?")]
    (tmp_path / "base" / "evidentia.toml").write_text((tmp_path / "base" / "evidentia.toml").read_text() + NO_ENCODER)
    with connect(tmp_path / "base") as base:
        replayed = [base.replay(answer.receipt_id or "") for answer in answers]

    assert [answer.result_hash for answer in answers] == [report.result_hash for report in replayed]
    for answer, report in zip(answers, replayed, strict=True):
        assert [fragment.scores for fragment in answer.fragments] == [fragment.scores for fragment in report.response.fragments]


class Backwards:
    """Implements `Reranker`: holds the last candidate to be the best."""

    @property
    def identity(self) -> str:
        return "backwards"

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        del query, budget_ms
        return range(len(passages))


def test_a_receipt_without_a_reranker_is_not_read_by_one_that_came_since(demo: DemoBase, tmp_path: Path) -> None:
    shutil.copytree(demo.path, tmp_path / "base")
    parts = open_parts(tmp_path / "base")
    request = request_from("How do I rotate the signing keys?", {"as_of": AS_OF})

    def engine_for(config: EngineConfig) -> Engine:
        models = Models(encoder=lambda: parts.encoder, reranker=Backwards, rewriter=lambda: None, merger=lambda: None, synonyms=None)
        return Engine(parts.index, receipts=parts.receipts, config=config, models=models, clock=parts.clock, entropy=RepeatableEntropy())

    plain = parts.engine(parts.config).answer(request, principal=local_owner())
    reranking = engine_for(msgspec.structs.replace(parts.config, reranker=Backwards().identity))
    reranked = reranking.answer(request, principal=local_owner())
    replayer = Replayer(parts.index, receipts=parts.receipts, engine_for=engine_for, config=parts.config, clock=parts.clock)
    again = [replayer.replay(answer.receipt_id or ReceiptId(""), asker=local_owner()) for answer in (plain, reranked)]
    parts.close()

    assert [fragment.score for fragment in plain.fragments] != [fragment.score for fragment in reranked.fragments]
    assert [True, True] == [report.is_same for report in again]
    assert {None} == {fragment.scores.reranked for fragment in again[0].response.fragments}


def _move_on(base: Base, asked: Asked, folder: Path) -> None:
    lines = asked.corpus.read_bytes().splitlines()
    copies = [{**json.loads(line), "_id": f"again-{number}"} for number, line in enumerate(lines[:ADDED])]
    (folder / "more.jsonl").write_text("".join(json.dumps(record) + "\n" for record in copies))
    added = base.ingest([folder / "more.jsonl"], source="more", embed=False).added
    embedded = copy_vectors(asked.path, base.path, batch=100, limit=EMBEDDED)
    ids = [document_id for document_id, _, _ in base.documents() if document_id.startswith(SOURCE)]
    chosen = random.Random(7).sample(ids, REMOVED + NARROWED)
    removed = base.remove(chosen[:REMOVED]).removed
    closed = AccessRule(classification=Classification.RESTRICTED, acl=("group:nobody",))
    narrowed = base.set_access(chosen[REMOVED:], closed).access_changed

    assert (ADDED, EMBEDDED, REMOVED, NARROWED) == (added, embedded, removed, narrowed)


def _let_another_encoder_rule(origin: Path, path: Path) -> None:
    other = msgspec.structs.replace(packaged_encoder().identity, name="another")
    assert copy_vectors(origin, path, batch=2_000, identity=other) > 0


def _says_so(base: Base, reason: str) -> bool:
    return any(each.startswith(reason) for each in base.retrieve("cells", receipt=False).degraded)


def _hashes(base: Base, texts: Sequence[str]) -> list[str]:
    return [
        base.retrieve(text, as_of=AS_OF, facets=["language"], receipt=False, latency_deadline_ms=DEADLINE_MS).result_hash for text in texts
    ]


def _replayed(base: Base, receipts: Sequence[str]) -> int:
    """Return how many receipts gave the recorded answer again."""
    return sum(base.replay(receipt).is_same for receipt in receipts)
