"""Sources are asked what was understood, if they can answer it, and what they say is read beside the question as our own is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.federated_base import WITHOUT_VECTORS, FederatedBase, ask, describe
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.evidence import DecomposedQuery, SubQuery, Turn
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.sources import SchemaDefinition, SchemaField
from evidentia.contracts.vocabulary import CacheTier, CoverageState, QueryCapability, QueryStepName
from evidentia.federation.source_plan import CANNOT
from evidentia.testing.documents import make_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk

TEXTS = [f"The signing keys of gate {number} are rotated every {10 * number} days by the harbour office." for number in range(1, 9)]
ORDERS = SchemaDefinition(tables={"orders": (SchemaField(name="total", type="integer"),)})
ON_TOPIC = "Signing keys are rotated by hand at the pier."


class Listening:
    """Implements `Retriever`: always the same texts; keeps what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.asked: list[SubQuery] = []
        self._texts = texts

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield the texts."""
        self.asked.append(asked.query)
        for number, text in enumerate(self._texts):
            yield Candidate(content=text, own_id=f"{number}", origin=f"test://{number}")

    @property
    def texts(self) -> list[str]:
        """Return the texts that it was asked, in order."""
        return sorted(query.text for query in self.asked)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[FederatedBase]:
    """Return a base with eight documents about one thing."""
    made = FederatedBase(tmp_path / "base", documents=[make_document(f"d{place}", text) for place, text in enumerate(TEXTS)])
    yield made
    made.close()


def _attach(base: FederatedBase, source: Listening, name: str = "wiki", **fields: object) -> None:
    base.commit(ChangeSet(), describe(name, **fields))
    base.attach({name: source})


def _asked(base: FederatedBase, query: str | DecomposedQuery, **fields: object) -> tuple[Listening, EvidenceResponse]:
    source = Listening(ON_TOPIC)
    _attach(base, source)
    return source, base.asking().answer(ask(query, **fields))


def test_a_source_is_asked_with_the_words_of_the_conversation(base: FederatedBase) -> None:
    turns = (Turn(role="user", text="Where are the signing keys?"), Turn(role="assistant", text="The signing keys are in the vault."))
    source, _ = _asked(base, "how do I rotate them?", turns=turns)
    (asked,) = source.texts

    assert asked.startswith("how do I rotate them? ")
    assert {"signing", "keys"} <= set(asked.lower().split())


@pytest.mark.parametrize(("without", "expected"), [((), "Keys of the harbour?"), ((QueryStepName.SPELLING,), "Keys of the Harbuor?")])
def test_a_source_is_asked_without_slips(base: FederatedBase, without: tuple[QueryStepName, ...], expected: str) -> None:
    source, _ = _asked(base, "Keys of the Harbuor?", without=without)

    assert [expected] == source.texts


def test_words_in_quotes_are_asked_for_as_they_are(base: FederatedBase) -> None:
    source, _ = _asked(base, 'harbuor "harbuor office"')

    assert ['harbour "harbuor office"'] == source.texts


def test_a_source_is_asked_the_parts_that_a_question_was_split_into(tmp_path: Path) -> None:
    whole = "What is the difference between signing keys and harbour gates?"
    base = FederatedBase(tmp_path / "split", settings=f"{WITHOUT_VECTORS}[query]\ndecompose = true\n")
    source, response = _asked(base, whole)
    base.close()
    parts = next(step.added for step in response.understanding if step.step is QueryStepName.DECOMPOSE)

    assert len(parts) > 1
    assert sorted(parts) == source.texts
    assert whole not in source.texts


def test_a_source_that_can_do_nothing_of_what_is_asked_is_left_alone_and_the_answer_says_why(base: FederatedBase) -> None:
    source = Listening("total 17")
    _attach(base, source, query_capabilities=(QueryCapability.STRUCTURED,), schema=ORDERS)
    asking = base.asking()
    plain, named = (asking.answer(ask(query)) for query in ("how are keys rotated", "which orders are late"))
    notes = {each.stage: each.note for each in plain.decisions}, {each.stage: each.note for each in named.decisions}

    assert (CoverageState.SKIPPED, CANNOT) == (plain.source_coverage["wiki"].state, plain.source_coverage["wiki"].reason)
    assert f"wiki is not asked: {CANNOT}" in notes[0]["sources"]
    assert ["which orders are late"] == source.texts
    assert "part 0 requires exact_match (words), semantic (words), structured (a table or column); wiki is asked" in notes[1]["sources"]
    assert "orders" not in notes[1]["sources"]


def test_what_a_part_requires_by_itself_is_left_as_it_is(base: FederatedBase) -> None:
    part = SubQuery(text="how many keys", required_capabilities=(QueryCapability.EXACT_MATCH,))
    source, _ = _asked(base, DecomposedQuery(text="how many keys are there", subqueries=(part,)))

    assert [part] == source.asked


def test_parts_that_ask_the_same_are_asked_once(base: FederatedBase) -> None:
    parts = (SubQuery(text="signing keys"), SubQuery(text="harbour office"), SubQuery(text="signing keys", weight=0.5))
    source = Listening(ON_TOPIC)
    _attach(base, source)
    asking = base.asking()
    response = asking.answer(ask(DecomposedQuery(text="keys", subqueries=parts)))
    (trace,) = asking.traces.traces
    tiers = [span.attributes.get("tier") for span in trace.spans if span.name == "wiki"]

    assert ["harbour office", "signing keys"] == source.texts
    assert [None, None, CacheTier.REQUEST.value] == tiers
    assert CoverageState.SEARCHED is response.source_coverage["wiki"].state
    assert 3 == response.source_coverage["wiki"].candidates


def test_what_has_nothing_to_do_with_the_question_comes_last_whatever_its_source_says(base: FederatedBase) -> None:
    _attach(base, Listening("xxxx", ON_TOPIC))
    answered = base.asking().answer(ask("how are signing keys rotated"))
    order = [each.content for each in answered.fragments]
    last = answered.fragments[-1]

    assert "xxxx" == order[-1]
    assert order.index(ON_TOPIC) < len(order) - 2
    assert ("unmatched" in last.flags, 0) == (True, last.score)
    assert all("unmatched" not in each.flags for each in answered.fragments[:-1])


def test_a_fragment_from_outside_has_a_score_of_our_own(base: FederatedBase) -> None:
    _attach(base, Listening(ON_TOPIC))
    answered = base.asking().answer(ask("how are signing keys rotated"))
    outside = next(each for each in answered.fragments if each.source_id == "wiki")

    assert outside.scores.lexical > 0
