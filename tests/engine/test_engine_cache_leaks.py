"""What was kept for one caller, question or session never reaches another, through the whole engine.

An engine that has answered many is compared with one that has answered nobody. Where a similar question's candidates are used, which
depends on who asked before, they have to be this caller's own, and in the order that this question gives them.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from math import log
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.known_vectors import give_vectors, remembering_encoder
from engine.random_worlds import ENTRIES, make_principal
from engine.small_base import memory_folder
from engine.source_oracle import make_policy, make_rule, may_ask_source, may_see_candidate
from evidentia.contracts.access import normalised
from evidentia.contracts.evidence import RankingWeights
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourcePolicy
from evidentia.contracts.vocabulary import Classification, CoverageState, RetrievalMode
from evidentia.testing.determinism import START
from evidentia.testing.documents import make_document
from evidentia.testing.virtual_time import run_virtual
from evidentia.text.tokens import Tokeniser
from soak import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from engine.federated_base import Asking
    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk

ALL_SHARDS, CASES = 8, 255
SHARDS = cases(3, of=ALL_SHARDS)
AS_OF = START + timedelta(days=300)
QUERIES = (
    "how do I enable the gate",
    "how do I disable the gate",
    "how do i enable the gate",
    "enable the crane",
    "disable the crane",
    "who opens the harbour",
)
VERBS = ("enable", "disable")
THINGS = ("gate", "crane", "harbour")
NAMES = ("s0", "s1", "s2", "s3")
BY_RELEVANCE = RankingWeights(relevance=1.0, authority=0.0, freshness=0.0, utility=0.0)
K1, B = 1.5, 0.75


class TellingSource:
    """Implements `Retriever`: what it says depends on the question, and every candidate says to whom and in which session it was said."""

    def __init__(self, name: str, policy: SourceAccessPolicy) -> None:
        self.policy = policy
        self._name = name
        rng = Random(f"telling {name}")
        self.rules = {f"{verb} {thing}": make_rule(rng) for verb in VERBS for thing in THINGS}

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield one candidate per verb and thing, those with the question's own words first."""
        words = asked.query.text.lower().split()
        texts = sorted(self.rules, key=lambda text: (-sum(word in words for word in text.split()), text))
        for place, text in enumerate(texts):
            verb, thing = text.split()
            yield Candidate(
                content=f"{verb} {verb} the {thing} like this, says {self._name}",
                own_id=text,
                origin=f"test://{self._name}/{place}",
                access=self.rules[text],
                metadata={"to": told(asked.principal), "about": asked.query.text, "within": asked.session or ""},
            )


def told(principal: Principal) -> str:
    return sha256(msgspec.json.encode(principal, order="deterministic")).hexdigest()


class LeakWorld:
    """One base, sources with policies, people some of whom differ in one right only, and an engine that remembers."""

    def __init__(self, shard: int, directory: Path, *, is_semantic: bool) -> None:
        self.rng = rng = Random(f"leaks {shard}")
        self.sources = {name: TellingSource(name, make_policy(rng)) for name in NAMES[1:]}
        self.sources[NAMES[0]] = TellingSource(NAMES[0], SourceAccessPolicy(tenants=("default", "other")))
        documents = [make_document("gate", "Enable the gate with its key."), make_document("crane", "Nobody may disable the crane.")]
        descriptors = [describe(name, policy=source.policy) for name, source in sorted(self.sources.items())]
        self.base = FederatedBase(directory, documents=documents, descriptors=descriptors, settings="", encoder=remembering_encoder)
        encoder = remembering_encoder()
        give_vectors(self.base.parts, encoder.identity, lambda chunk: encoder.encode_document(chunk.text))
        self.base.attach(self.sources)
        self.settings = CacheSettings(semantic=is_semantic, similarity_milli=600)
        self.callers = self._callers()

    def _callers(self) -> list[Principal]:
        people = [normalised(make_principal(self.rng)) for _ in range(3)]
        twins = [
            msgspec.structs.replace(people[0], clearance=Classification.PUBLIC),
            msgspec.structs.replace(people[1], groups=("ops",), roles=()),
            msgspec.structs.replace(people[2], attributes={**people[2].attributes, "team": "ops"}, is_owner=False),
        ]
        return [*people, *twins]

    def request(self) -> EvidenceRequest:
        """Return a request by whoever."""
        rng = self.rng
        return ask(
            rng.choice(QUERIES),
            policy=SourcePolicy(most_sources=12, acl_scope=tuple(rng.sample(ENTRIES, 3)) if rng.random() < 0.15 else None),
            principal=None,
            as_of=AS_OF,
            mode=RetrievalMode.HYBRID,
            session_context=rng.choice((None, None, "one", "two")),
            max_staleness_ms=rng.choice((None, None, None, None, 0)),
            limit=40,
            ranking_weights=BY_RELEVANCE,
            diversity_constraint=1.0,
        )


def is_reused(response: EvidenceResponse, source: str) -> bool:
    report = response.source_coverage[source]  # type: ignore[index]  # a plain word will do
    return report.reason.startswith("found for a similar question")


def leaks(world: LeakWorld, request: EvidenceRequest, caller: Principal, response: EvidenceResponse) -> list[str]:
    """Return what an answer holds that this caller must not have, or must not have had from there."""
    scope = request.source_policy.acl_scope
    named = sorted(set(response.source_coverage) & set(NAMES))
    found = [f"'{name}' is named" for name in named if not may_ask_source(world.sources[name].policy, caller, acl_scope=scope)]
    for fragment in response.fragments:
        if fragment.source_id not in NAMES:
            continue
        source = world.sources[fragment.source_id]
        candidate = Candidate(content="", access=source.rules[fragment.document_id.partition(":")[2]])
        if not may_see_candidate(candidate, source.policy, caller, acl_scope=scope):
            found.append(f"{fragment.chunk_id} is shown")
        if fragment.metadata["extra.to"] != told(caller):
            found.append(f"{fragment.chunk_id} was said to somebody else")
        if fragment.metadata.get("extra.within", "") not in ("", request.session_context):
            found.append(f"{fragment.chunk_id} was said in another session")
        if fragment.metadata["extra.about"] != request.query.text and not is_reused(response, fragment.source_id):
            found.append(f"{fragment.chunk_id} was said of another question")
    return found


async def ask_at_random(world: LeakWorld, asking: Asking, tally: Counter[str]) -> None:
    for _ in range(CASES):
        request, caller = world.request(), world.rng.choice(world.callers)
        prefetch = request.session_context is None and world.rng.random() < 0.1
        response = await asking.retrieve(request, principal=caller, prefetch=prefetch)
        outside = [report for source, report in response.source_coverage.items() if source in NAMES]
        reused = [source for source in NAMES if source in response.source_coverage and is_reused(response, source)]
        tally["cases"] += 1
        tally["cached"] += any(report.state is CoverageState.CACHED for report in outside)
        tally["reused"] += bool(reused)
        tally["fragments"] += len(response.fragments)

        assert [] == leaks(world, request, caller, response)
        if not reused:
            fresh = await world.base.asking(cache=world.settings).retrieve(request, principal=caller)
            assert fresh.result_hash == response.result_hash
        for source in reused:
            shown = [fragment for fragment in response.fragments if fragment.source_id == source]
            assert_in_the_order_of(request.query.text, shown)


def assert_in_the_order_of(query: str, shown: Sequence[EvidenceFragment]) -> None:
    """Tell a source's fragments by their BM25 among themselves, reckoned here in floats; those that are equal stand in any order."""
    scores = bm25(query, [fragment.content for fragment in shown])

    assert all(before >= after - 1e-3 for before, after in pairwise(scores)), (query, scores)


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """Return Lucene's BM25 of texts among themselves."""
    tokeniser = Tokeniser()
    asked, read = set(tokeniser.terms(query)), [Counter(tokeniser.terms(text)) for text in texts]
    lengths = [tokeniser.terms_with_positions(text)[-1][1] + 1 for text in texts]
    mean = sum(lengths) / max(1, len(lengths))
    scores = []
    for counts, length in zip(read, lengths, strict=True):
        score = 0.0
        for term in sorted(asked):
            holding = sum(1 for each in read if each[term])
            idf = log(1 + (len(read) - holding + 0.5) / (holding + 0.5))
            score += idf * counts[term] / (counts[term] + K1 * (1 - B + B * length / mean))
        scores.append(score)
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_kept_reaches_another_caller_question_or_session(shard: int, tmp_path: Path) -> None:
    is_semantic = shard % 2 == 1
    tally: Counter[str] = Counter()
    with memory_folder(tmp_path) as folder:
        world = LeakWorld(shard, Path(folder) / "base", is_semantic=is_semantic)
        run_virtual(ask_at_random(world, world.base.asking(cache=world.settings), tally), clock=world.base.clock)
        world.base.close()

    assert 2_000 <= ALL_SHARDS * tally["cases"]
    assert tally["cached"] > tally["cases"] // 3
    assert tally["fragments"] > tally["cases"]
    assert (tally["reused"] > tally["cases"] // 20) == is_semantic


def test_what_is_asked_ahead_of_time_within_a_session_stays_in_it(tmp_path: Path) -> None:
    world = LeakWorld(0, tmp_path / "base", is_semantic=False)
    asking, caller = world.base.asking(), world.callers[0]
    within = ask(QUERIES[0], as_of=AS_OF, session_context="one", policy=SourcePolicy(most_sources=12))
    elsewhere = msgspec.structs.replace(within, session_context="two")
    asking.answer(within, principal=caller, prefetch=True)
    response = asking.answer(elsewhere, principal=caller)
    world.base.close()

    assert response.fragments
    assert [] == leaks(world, elsewhere, caller, response)
