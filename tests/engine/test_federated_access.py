"""Sources that a caller may not ask, and what sources say that it may not see, have no influence on what it sees.

Both are decided by oracles of their own (`source_oracle`). An answer is compared in all its fields with that of a base in which those
sources were never registered, or whose sources never said those things.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.random_worlds import ENTRIES, make_principal
from engine.small_base import memory_folder
from engine.source_oracle import LINES, RuledSource, make_candidates, make_policy, may_ask_source, may_see_candidate
from evidentia.base.administration import try_source
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.sources import SourcePolicy
from evidentia.engine.result_hashes import response_hash
from evidentia.testing.documents import make_document
from evidentia.testing.virtual_time import run_virtual
from soak import cases

if TYPE_CHECKING:
    from engine.federated_base import Asking
    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.sources import SourceAccessPolicy

WORLDS, CALLERS, REQUESTS = cases(3, of=8), 6, 12
OF_THE_WHOLE_BASE = frozenset(
    {"commit", "commit_hash", "corpus_version", "evidence_state", "receipt_id", "request_id", "response_hash", "result_hash"}
)
"""Fields that name the version of the whole base, or are hashes of an answer with them; the tests hold `response_hash` to what is shown."""
OF_THE_LOG = frozenset({"event", "inclusion"})
QUERIES = ("gate timeout", "crane limit", "harbour pier", "cargo at the dock")
NAMES = tuple(f"s{number}" for number in range(7))
UNKNOWN = "nobody"


class SourceWorld:
    """Sources with policies and candidates, a few documents, people, and bases that know of some of the sources."""

    def __init__(self, number: int, folder: Path, *, pause_ms: float = 0) -> None:
        self.rng = rng = Random(f"sources {number}")
        self.policies: dict[str, SourceAccessPolicy] = {name: make_policy(rng) for name in NAMES}
        self.candidates: dict[str, list[Candidate]] = {name: make_candidates(rng, name, count=rng.randint(2, 9)) for name in NAMES}
        self.documents = [make_document(f"d{place}", rng.choice(LINES)) for place in range(rng.choice((0, 3)))]
        self.callers = [make_principal(rng) for _ in range(CALLERS)]
        self._folder = folder
        self._pause_ms = pause_ms
        self._made: dict[tuple[tuple[str, ...], bool], Knowing] = {}

    def knowing(self, names: tuple[str, ...], *, is_discreet: bool) -> Knowing:
        """Return a base that knows of these sources and no others, with an engine that goes on from request to request."""
        key = (names, is_discreet)
        if key not in self._made:
            self._made[key] = Knowing(
                self, names, self._folder / f"base{len(self._made)}", is_discreet=is_discreet, pause_ms=self._pause_ms
            )
        return self._made[key]

    def requests(self) -> list[EvidenceRequest]:
        """Return requests, some of which name sources or narrow the caller's rights; some repeat."""
        rng = self.rng
        return [
            ask(
                rng.choice(QUERIES),
                policy=SourcePolicy(
                    most_sources=rng.choice((2, 12, 12)),
                    allowed_sources=tuple(map(SourceId, sorted(rng.sample((*NAMES, UNKNOWN, "test"), 5))))
                    if place < REQUESTS // 3
                    else None,
                    denied_sources=tuple(map(SourceId, rng.sample(NAMES, rng.choice((0, 0, 2))))),
                    acl_scope=tuple(rng.sample(ENTRIES, 3)) if rng.random() < 0.2 else None,
                ),
                limit=rng.choice((3, 10)),
                facets=("source_id",),
                explain=True,
                provenance_required=rng.random() < 0.5,
                session_context=rng.choice((None, "s")),
            )
            for place in range(REQUESTS)
        ]

    def close(self) -> None:
        """Give back what the bases hold."""
        for knowing in self._made.values():
            knowing.base.close()


class Knowing:
    """One base with its engine and its sources."""

    def __init__(self, world: SourceWorld, names: tuple[str, ...], directory: Path, *, is_discreet: bool, pause_ms: float) -> None:
        # 40 ms for a reply: a source with a pause is late for some of what it proposes.
        descriptors = [describe(name, policy=world.policies[name], expected_p99_ms=26) for name in names]
        self.base = FederatedBase(directory, documents=world.documents, descriptors=descriptors)
        self.sources = {
            name: RuledSource(world.policies[name], world.candidates[name], is_discreet=is_discreet, pause_ms=pause_ms) for name in names
        }
        self.base.attach(self.sources)
        self.asking: Asking = self.base.asking()

    def answer(self, request: EvidenceRequest, caller: Principal) -> EvidenceResponse:
        for source in self.sources.values():
            source.acl_scope = request.source_policy.acl_scope
        return self.asking.answer(request, principal=caller)


def differences(left: EvidenceResponse, right: EvidenceResponse) -> list[str]:
    """Return the names of the fields in which two answers differ, and how; order counts, in maps too."""
    compared = [name for name in left.__struct_fields__ if name not in OF_THE_WHOLE_BASE | {"fragments"}]
    found = [
        f"{name}: {getattr(left, name)} / {getattr(right, name)}"
        for name in compared
        if msgspec.json.encode(getattr(left, name)) != msgspec.json.encode(getattr(right, name))
    ]
    shown = [
        [
            [msgspec.to_builtins(getattr(fragment, name)) for name in fragment.__struct_fields__ if name not in OF_THE_LOG]
            for fragment in answer.fragments
        ]
        for answer in (left, right)
    ]
    return found if shown[0] == shown[1] else [*found, "fragments"]


@pytest.mark.parametrize("number", range(WORLDS))
def test_a_source_that_the_caller_may_not_ask_might_as_well_not_be_registered(number: int, tmp_path: Path) -> None:
    tally: Counter[str] = Counter()
    with memory_folder(tmp_path) as folder:
        world = SourceWorld(number, Path(folder))
        whole = world.knowing(NAMES, is_discreet=False)
        for request in world.requests():
            for caller in world.callers:
                scope = request.source_policy.acl_scope
                askable = tuple(name for name in NAMES if may_ask_source(world.policies[name], caller, acl_scope=scope))
                before = {name: whole.sources[name].calls for name in NAMES}
                answer = whole.answer(request, caller)
                other = world.knowing(askable, is_discreet=False).answer(request, caller)
                tally["cases"] += 1
                tally["forbidden"] += len(NAMES) - len(askable)
                tally["named"] += any(name in (request.source_policy.allowed_sources or ()) for name in set(NAMES) - set(askable))
                tally["fragments"] += len(answer.fragments)

                assert [] == differences(without_ages(answer), without_ages(other))
                assert response_hash(answer) == answer.response_hash
                assert set(answer.source_coverage) <= {*askable, "test", *(request.source_policy.allowed_sources or ())}
                assert all(whole.sources[name].calls == before[name] for name in set(NAMES) - set(askable))
        world.close()

    assert CALLERS * REQUESTS == tally["cases"]
    assert tally["forbidden"] > 2 * tally["cases"]
    assert tally["named"] > tally["cases"] // 20
    assert tally["fragments"] > tally["cases"] // 2


def without_ages(answer: EvidenceResponse) -> EvidenceResponse:
    """Return an answer without when each thing happened, since one base was asked more often than the other; whether it was kept stays."""
    fragments = tuple(
        msgspec.structs.replace(each, extraction_timestamp=answer.as_of, provenance_chain=(), retrieval_context=None)
        for each in answer.fragments
    )
    return msgspec.structs.replace(answer, fragments=fragments)


@pytest.mark.parametrize("pause_ms", [0, 16])
@pytest.mark.parametrize("number", range(WORLDS))
def test_what_a_source_says_that_the_caller_may_not_see_might_as_well_not_be_said(number: int, pause_ms: int, tmp_path: Path) -> None:
    tally: Counter[str] = Counter()
    with memory_folder(tmp_path) as folder:
        world = SourceWorld(number, Path(folder), pause_ms=pause_ms)
        whole, discreet = world.knowing(NAMES, is_discreet=False), world.knowing(NAMES, is_discreet=True)
        for request in world.requests():
            for caller in world.callers:
                answer, other = whole.answer(request, caller), discreet.answer(request, caller)
                tally["cases"] += 1
                tally["fragments"] += len(answer.fragments)
                tally["partial"] += any("were kept, the rest is missing" in each.reason for each in answer.source_coverage.values())

                assert [] == differences(answer, other)
                assert response_hash(answer) == answer.response_hash
        hidden = sum(source.hidden for source in whole.sources.values())
        world.close()

    assert CALLERS * REQUESTS == tally["cases"]
    assert hidden > tally["cases"] // 3
    assert tally["fragments"] > tally["cases"] // 2
    assert bool(tally["partial"]) == (pause_ms > 0)


def test_a_trial_shows_only_what_the_caller_may_see(tmp_path: Path) -> None:
    world = SourceWorld(0, tmp_path)
    for name, caller in [(name, caller) for name in NAMES for caller in world.callers if may_ask_source(world.policies[name], caller)]:
        knowing = world.knowing((name,), is_discreet=False)
        trial = run_virtual(try_source(knowing.base.parts.components(), caller, name, "gate", limit=10), clock=knowing.base.clock)
        hidden = [
            each.chunk_id
            for each in trial.candidates
            if not may_see_candidate(Candidate(content="", access=each.access), world.policies[name], caller)
        ]

        assert [] == hidden
    world.close()


@pytest.mark.parametrize("number", range(WORLDS))
def test_why_says_nothing_of_what_the_caller_may_not_see(number: int, tmp_path: Path) -> None:
    asked = 0
    with memory_folder(tmp_path) as folder:
        world = SourceWorld(number, Path(folder))
        whole = world.knowing(NAMES, is_discreet=False)
        request = ask("gate crane harbour cargo", limit=100, provenance_required=False, receipt=True)
        answers = [(caller, whole.answer(request, caller)) for caller in world.callers]
        everything = sorted({fragment.chunk_id for _, answer in answers for fragment in answer.fragments if fragment.source_id in NAMES})
        for caller, answer in answers:
            seen = {fragment.chunk_id for fragment in answer.fragments}
            for chunk_id in everything:
                assert answer.receipt_id is not None
                if chunk_id in seen:
                    assert chunk_id == whole.base.parts.replayer().why(answer.receipt_id, chunk_id, asker=caller).chunk_id
                    continue
                asked += 1
                with pytest.raises(NotFoundError):
                    whole.base.parts.replayer().why(answer.receipt_id, chunk_id, asker=caller)
        world.close()

    assert asked > 0
