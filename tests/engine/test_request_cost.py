"""What a request may cost is known from its fields, bounded before any work, and never less than what it takes."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pytest

from engine.known_vectors import give_vectors
from evidentia import connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import InvalidFieldError, RequestTooCostlyError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, SubQuery, Turn
from evidentia.contracts.ids import Sha256
from evidentia.contracts.predicates import In
from evidentia.contracts.settings import LimitSettings
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import OnTimeout, RetrievalMode
from evidentia.engine.pipeline import Engine
from evidentia.engine.request_checks import check_cost, request_cost
from evidentia.wiring.embedded import open_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia import Base

LIMITS = LimitSettings()
WORDS = [f"word{number}" for number in range(6_000)]


def make(text: str = "signing keys", *, parts: int = 0, **fields: Any) -> EvidenceRequest:  # Any: the fields of a request
    subqueries = tuple(SubQuery(text=f"signing keys {number}") for number in range(parts))
    return EvidenceRequest(query=DecomposedQuery(text=text, subqueries=subqueries), **fields)


@pytest.mark.parametrize("limit", [1, 10, 50, 100])
@pytest.mark.parametrize("parts", [0, 1, 8, 16])
@pytest.mark.parametrize("is_explained", [True, False])
def test_ordinary_requests_are_never_refused(limit: int, parts: int, is_explained: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    turns = tuple(Turn(role="user", text="what about the depot? " * 20) for _ in range(30))
    narrowing = In("tags", tuple(f"t{number}" for number in range(1_000)))
    request = make(" ".join(WORDS[:100]), parts=parts, limit=limit, explain=is_explained, turns=turns, filter=narrowing)

    assert check_cost(request, max_mb=LIMITS.served_request_mb, limit="x") <= LIMITS.served_request_mb


COSTLY = {
    "query.subqueries": make(parts=1_000),
    "limit": make(limit=10_000),
    "explain": make(" ".join(WORDS)[:32_000], limit=1_000, explain=True),
    "source_policy": make(parts=16, source_policy=SourcePolicy(most_sources=1_000)),
    "turns": make(turns=tuple(Turn(role="user", text="x" * 1_000_000) for _ in range(20))),
    "filter": make(filter=" or ".join('tags contains "x"' for _ in range(100_000))),
}


@pytest.mark.parametrize("field", COSTLY)
def test_a_costly_request_is_refused_by_the_field_that_makes_it_so(field: str) -> None:
    with pytest.raises(RequestTooCostlyError) as refusal:
        check_cost(COSTLY[field], max_mb=LIMITS.served_request_mb, limit="limits.served_request_mb")

    assert field == refusal.value.field
    assert refusal.value.cost_mb > LIMITS.served_request_mb
    assert f"{refusal.value.cost_mb} MB" in str(refusal.value)
    assert "limits.served_request_mb, 96 MB" in str(refusal.value)


def test_a_request_that_asks_for_more_never_costs_less() -> None:
    smaller = make(" ".join(WORDS[:20]), parts=4, limit=20, explain=True, turns=(Turn(role="user", text="hm"),))
    larger = {
        "parts": make(" ".join(WORDS[:20]), parts=5, limit=20, explain=True, turns=smaller.turns),
        "limit": make(" ".join(WORDS[:20]), parts=4, limit=200, explain=True, turns=smaller.turns),
        "words": make(" ".join(WORDS[:40]), parts=4, limit=20, explain=True, turns=smaller.turns),
    }

    for request in larger.values():
        assert all(share >= request_cost(smaller)[field] for field, share in request_cost(request).items())
        assert sum(request_cost(request).values()) > sum(request_cost(smaller).values())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Yield a base of passages that all match, each with a vector."""
    folder = tmp_path_factory.mktemp("cost")
    chance = np.random.default_rng(1)
    lines = [json.dumps({"_id": str(number), "text": " ".join(chance.choice(WORDS[:500], 60))}) for number in range(1_500)]
    (folder / "passages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with connect(folder / "base", init=True) as opened:
        opened.ingest([folder / "passages.jsonl"], embed=False)
    space = VectorIdentity(model=Sha256("0" * 64), dimension=8, normalisation="unit", name="synthetic")
    with closing(open_parts(folder / "base")) as parts:
        give_vectors(parts, space, lambda _: np.rint(chance.standard_normal(8) * (1 << 20)).astype(np.int32))
    with connect(folder / "base") as opened:
        opened.retrieve("word1 word2", mode="lexical")
        yield opened


@pytest.mark.parametrize(
    "fields", [{"limit": 10}, {"limit": 900}, {"parts": 24, "limit": 100}, {"limit": 300, "explain": True, "text": " ".join(WORDS[:400])}]
)
def test_what_is_held_is_at_most_what_the_cost_says(base: Base, fields: dict[str, Any]) -> None:
    given = {"text": " ".join(WORDS[:5]), **fields}
    request = make(**given, mode=RetrievalMode.LEXICAL, on_timeout=OnTimeout.WAIT, receipt=False)
    tracemalloc.start()
    try:
        answer = base.retrieve(request).to_json()
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(answer) < held <= sum(request_cost(request).values())


class Untouched:
    """Stands for whatever a request that is refused must not reach."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse to be used."""
        raise AssertionError(name)


def test_what_is_refused_was_not_begun(base: Base) -> None:
    untouched: Any = Untouched()
    with closing(open_parts(base.path)) as parts:
        engine = Engine(untouched, receipts=untouched, config=parts.config, models=untouched, clock=parts.clock, entropy=untouched)
        with pytest.raises(RequestTooCostlyError, match=r"limits\.request_mb, 4096 MB"):
            engine.answer(make(parts=5_000), principal=local_owner())


def test_each_part_of_a_question_is_as_short_as_the_question(base: Base) -> None:
    query = DecomposedQuery(text="keys", subqueries=(SubQuery(text="x " * 20_000),))
    with pytest.raises(InvalidFieldError, match=r"query\.subqueries\[0\]\.text"):
        base.retrieve(EvidenceRequest(query=query))
