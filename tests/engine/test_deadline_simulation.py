"""Thousands of requests over sources with every fault, in virtual time: none is late, none raises, and everything is declared.

What has to be declared is worked out from what each source did (`shifty_sources`), not from what the engine says it did.
The default run plays an eighth of the requests; EVIDENTIA_SOAK=full plays all of them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.shifty_sources import MAX_CANDIDATES, MAX_CHARS, MAX_REPLY_CHARS, ShiftySource
from engine.small_base import memory_folder
from evidentia.contracts.access import local_owner
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.sources import SourceAccessPolicy, SourcePolicy
from evidentia.contracts.vocabulary import CoverageState, QueryStepName
from evidentia.engine.answer_verification import verify_response
from evidentia.testing.documents import make_document
from evidentia.testing.faulty_sources import SourceFault
from evidentia.testing.virtual_time import run_virtual
from soak import cases

if TYPE_CHECKING:
    from engine.federated_base import Asking
    from engine.shifty_sources import Behaviour
    from evidentia.contracts.evidence import CoverageReport, EvidenceRequest, EvidenceResponse

ALL_SHARDS, ALL_REQUESTS, PER_ENGINE = 8, 1_260, 110
SHARDS, REQUESTS = cases(2, of=ALL_SHARDS), cases(630, of=ALL_REQUESTS)
DEADLINES_MS = (50, 200, 500)
SAMPLED = 40
P99_MS = (10, 10, 20, 20, 30, 30, 35, 60, 100, 130, 300, 10)
NAMES = tuple(f"s{number:02}" for number in range(len(P99_MS)))
OWN, DETACHED, FORBIDDEN, MISSING = "test", "t-detached", "u-forbidden", "v-missing"
QUERIES = tuple(f"{word} {place}" for word in ("harbour", "crane") for place in ("east", "west", "north", "of the pier"))
LIMITS = SourceSettings(most_candidates=MAX_CANDIDATES, most_chars=MAX_CHARS, most_reply_chars=MAX_REPLY_CHARS)
FANOUT = FanoutSettings(background_ms=1_000, background_calls=4, breaker_failures=3, breaker_open_ms=700)
MAY_HOLD = {CoverageState.SEARCHED, CoverageState.CACHED, CoverageState.STALE, CoverageState.TIMED_OUT, CoverageState.FAILED}
NEVER_ASKED = {CoverageState.SKIPPED, CoverageState.BREAKER_OPEN, CoverageState.DENIED}
TROUBLED = {CoverageState.STALE, CoverageState.TIMED_OUT, CoverageState.FAILED, CoverageState.BREAKER_OPEN}


class Simulation:
    """One base, engine after engine, and what its sources did to whom."""

    def __init__(self, shard: int, directory: Path) -> None:
        self.random = random.Random(shard)
        documents = [make_document("a", "The harbour opens at noon."), make_document("b", "The crane of the pier lifts 40 tonnes.")]
        elsewhere = SourceAccessPolicy(tenants=("elsewhere",))
        descriptors = [
            *(
                describe(name, expected_p99_ms=p99, max_qps=6 if name == NAMES[-1] else None)
                for name, p99 in zip(NAMES, P99_MS, strict=True)
            ),
            describe(DETACHED),
            describe(FORBIDDEN, policy=elsewhere),
        ]
        self.base = FederatedBase(directory, documents=documents, descriptors=descriptors)
        self.sources = {name: ShiftySource(number, self.random, self.base.clock) for number, name in enumerate(NAMES)}
        self.base.attach({**self.sources, FORBIDDEN: ShiftySource(99, self.random, self.base.clock)})
        self.seen: Counter[str] = Counter()
        self.faults: set[str] = set()
        self.sampled: list[EvidenceResponse] = []
        self.uncaught: list[dict[str, object]] = []
        self.requests = 0
        self._is_stored = shard % 4 == 0

    async def run(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.uncaught.append(context))
        while self.requests < REQUESTS:
            asking = self.new_engine()
            until = min(REQUESTS, self.requests + PER_ENGINE)
            while self.requests < until:
                await asyncio.gather(*(self.one_request(asking) for _ in range(self.random.choice((1, 1, 1, 3)))))
                await asyncio.sleep(self.random.choice((0.0, 0.01, 0.3, 0.9)))
            await asking.federation.close()

    def new_engine(self) -> Asking:
        """Return an engine that knows nothing, and forget what the sources did to the one before."""
        asking = self.base.asking(sources=LIMITS, fanout=FANOUT, store=self.base.parts.runtime if self._is_stored else None)
        asking.federation.changed()
        for source in self.sources.values():
            source.calls.clear()
        return asking

    async def one_request(self, asking: Asking) -> None:
        self.requests += 1
        request = self.make_request(f"r{self.requests}")
        began_ns = self.base.clock.elapsed_ns()
        response = await asking.retrieve(request)
        elapsed_ms = (self.base.clock.elapsed_ns() - began_ns) / 1_000_000

        assert request.latency_deadline_ms >= elapsed_ms
        assert request.latency_deadline_ms >= response.latency_ms
        assert not any(reason.startswith("deadline") for reason in response.degraded)
        self.check(request, response)
        if request.receipt:
            self.sampled.append(response)

    def make_request(self, agent_name: str) -> EvidenceRequest:
        draw = self.random
        some = tuple(SourceId(name) for name in sorted(draw.sample((*NAMES, FORBIDDEN, MISSING), draw.randint(1, 10))))
        policy = draw.choice(
            (
                SourcePolicy(most_sources=12),
                SourcePolicy(most_sources=12, allowed_sources=(*some, SourceId(OWN))),
                SourcePolicy(most_sources=12, denied_sources=some),
            )
        )
        return ask(
            draw.choice(QUERIES),
            policy=policy,
            agent_name=agent_name,
            session_context=draw.choice((None, None, "one", "two")),
            latency_deadline_ms=draw.choice(DEADLINES_MS),
            limit=draw.choice((2, 5, 30)),
            early_stop=draw.random() < 0.05,
            max_staleness_ms=draw.choice((None, None, None, 0, 2_000)),
            receipt=self.requests % SAMPLED == 0,
            without=(QueryStepName.SPELLING,),
        )

    def check(self, request: EvidenceRequest, response: EvidenceResponse) -> None:
        coverage = response.source_coverage
        named = request.source_policy.allowed_sources or ()
        unknown = {name for name in (FORBIDDEN, MISSING) if name in named}

        assert {*NAMES, DETACHED, OWN, *unknown} == set(coverage)
        assert CoverageState.SEARCHED is coverage[SourceId(OWN)].state
        for name in unknown:
            assert (CoverageState.DENIED, 0.0) == (coverage[SourceId(name)].state, coverage[SourceId(name)].searched_share)
        for name in NAMES:
            self.check_source(name, coverage[SourceId(name)], request, response)

        assert CoverageState.SKIPPED is coverage[SourceId(DETACHED)].state
        for fragment in response.fragments:
            if fragment.source_id == OWN:
                continue
            number = NAMES.index(fragment.source_id)
            assert coverage[fragment.source_id].state in MAY_HOLD
            assert f" of source {number} about {request.query.text} (" in fragment.content or "a list" in fragment.content
            assert "outside" in fragment.flags
            assert ("stale" in fragment.flags) == (coverage[fragment.source_id].state is CoverageState.STALE)
            assert len(fragment.content) <= MAX_CHARS
            assert ("cut_by_intake" in fragment.flags) == fragment.content.endswith("xxxx")

    def check_source(self, name: str, report: CoverageReport, request: EvidenceRequest, response: EvidenceResponse) -> None:
        state, source = report.state, SourceId(name)
        behaviour = self.sources[name].calls.get(request.agent_name or "")
        shown = sum(1 for fragment in response.fragments if fragment.source_id == name)
        self.seen[state] += 1

        assert shown <= report.candidates
        assert (report.state in MAY_HOLD) or not report.candidates
        assert (state is CoverageState.SEARCHED) or report.reason
        if not report.reason.startswith("given up: early stop"):
            assert (state in TROUBLED) == any(f"'{source}' is {state.value}" in reason for reason in response.degraded)
        assert (state not in NEVER_ASKED) or report.searched_share == 0.0
        if behaviour is None:
            self.check_unasked(name, report, request)
        else:
            self.check_asked(name, report, request, behaviour)

    def check_asked(self, name: str, report: CoverageReport, request: EvidenceRequest, behaviour: Behaviour) -> None:
        state = report.state
        self.faults.add(behaviour.fault.value)
        if state is CoverageState.SKIPPED:
            assert request.early_stop
            assert report.reason.startswith("given up: early stop")
            return
        truly = behaviour.states()
        if state is CoverageState.STALE:
            assert truly & {CoverageState.TIMED_OUT, CoverageState.FAILED}
            assert any(0 in behaviour.came(each) for each in truly)
            assert self.was_told(name, request)
            return
        assert state in truly, (behaviour, report)
        assert report.candidates in behaviour.came(state), (behaviour, report)
        assert report.tier is None
        if state is CoverageState.SEARCHED:
            assert 1.0 == report.searched_share
            self.check_faults(report, behaviour)
            assert bool(report.reason) == bool({"too_many", "reply_too_large"} & report.faults.keys())

    def check_faults(self, report: CoverageReport, behaviour: Behaviour) -> None:
        counted = {name: count for name, count in report.faults.items() if name != "future_date"}  # the wall clock may have gone back
        expected = behaviour.faults()
        if expected is None:
            refused = sum(count for name, count in counted.items() if name in ("not_a_candidate", "unreadable", "not_text", "duplicate_id"))
            assert min(MAX_CANDIDATES, behaviour.proposals) == refused + report.candidates
        else:
            assert expected == counted, (behaviour, report)

    def check_unasked(self, name: str, report: CoverageReport, request: EvidenceRequest) -> None:
        policy, state = request.source_policy, report.state
        is_refused = name in policy.denied_sources or (policy.allowed_sources is not None and name not in policy.allowed_sources)
        if is_refused:
            assert (CoverageState.SKIPPED, 0) == (state, report.candidates)
            assert report.reason.startswith("source_policy")
            return
        if state in (CoverageState.CACHED, CoverageState.STALE):
            assert request.max_staleness_ms != 0
            assert report.tier is not None
            assert self.was_told(name, request)
        if state in (CoverageState.BREAKER_OPEN, CoverageState.STALE):
            assert self.has_failed(name)
        if state is CoverageState.SKIPPED:
            assert self.is_reason_true(name, report.reason, request), report
        assert state in {CoverageState.CACHED, CoverageState.STALE, CoverageState.BREAKER_OPEN, CoverageState.SKIPPED}

    def is_reason_true(self, name: str, reason: str, request: EvidenceRequest) -> bool:
        p99_ms, calls = P99_MS[NAMES.index(name)], self.sources[name].calls
        if reason.startswith("too slow"):
            return p99_ms > 0.7 * request.latency_deadline_ms or len(calls) >= 100
        if "queries per second" in reason or "rate limit" in reason:
            return name == NAMES[-1] and len(calls) >= 6
        return False

    def was_told(self, name: str, request: EvidenceRequest) -> bool:
        """Tell whether the source ever ended an answer to this question, in this session or outside any."""
        sessions = {None, request.session_context}
        told = (each for each in self.sources[name].calls.values() if not each.fails and each.ends_ms <= FANOUT.background_ms)
        return any(each.ask.query.text == request.query.text and each.ask.session in sessions for each in told)

    def has_failed(self, name: str) -> bool:
        """Tell whether the source failed, or was late, so often that its breaker may be open."""
        return sum(1 for each in self.sources[name].calls.values() if each.states() != {CoverageState.SEARCHED}) >= FANOUT.breaker_failures


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_request_is_late_raises_or_hides_what_a_source_did(shard: int, tmp_path: Path) -> None:
    with memory_folder(tmp_path) as folder:
        simulation = Simulation(shard, Path(folder) / "base")
        run_virtual(simulation.run(), clock=simulation.base.clock)
        for name in NAMES:
            simulation.base.parts.sources.detach(SourceId(name))
        replayed = [
            simulation.base.parts.replayer().replay(response.receipt_id, asker=local_owner())
            for response in simulation.sampled
            if response.receipt_id is not None
        ]
        simulation.base.close()

    assert [] == simulation.uncaught
    assert cases(5_000, of=10_000) <= ALL_SHARDS * simulation.requests
    assert {fault.value for fault in SourceFault} <= simulation.faults
    assert {state.value for state in CoverageState} - {"denied"} <= set(simulation.seen)
    assert REQUESTS // SAMPLED == len(replayed) == len(simulation.sampled)
    assert all(report.is_same for report in replayed)
    assert [each.result_hash for each in simulation.sampled] == [each.response.result_hash for each in replayed]
    for response in simulation.sampled:
        assert verify_response(response).ok
        assert verify_response(msgspec.json.decode(msgspec.json.encode(response), type=type(response))).ok
