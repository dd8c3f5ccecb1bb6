"""Starts runs in this process: the policies of the store and those given with the run, checked, compiled once, scoped and pinned."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from evidentia.contracts.access import local_owner
from evidentia.contracts.decisions import LogEntry, PolicyDecision, Verdict
from evidentia.contracts.errors import FieldProblem, PolicyInvalidError
from evidentia.contracts.ids import TenantId
from evidentia.contracts.policies import Policy, PolicyBody, PolicyId, Posture, StoredPolicy
from evidentia.contracts.ports import AnswerLog, Clock, DecisionLog, Entropy, Governor, GroundingJudge, SourceTexts
from evidentia.contracts.runs import AnyCall, PoliciesRecorded, RunFacts, RunId, RunStarted
from evidentia.foundation.lru import LruCache, SharedLruCache
from evidentia.governance.decision_expansion import expand, micros
from evidentia.governance.governed_runs import JUDGE_BUDGET_MS, ConfiguredJudge, LocalRun, Pinned
from evidentia.governance.run_journal import unsealed
from evidentia.policy.evaluator import EDITION, PolicySet, RunEvaluator
from evidentia.policy.posture import DECISION_LOG, DECISION_LOG_BUFFERED, strictest
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.ids import Sha256


MAX_COMPILED: Final = 64
"""How many sets of policies, and how many bodies given with runs, are kept compiled."""

_RUN_ID_BYTES: Final = 12
_encode = msgspec.json.Encoder(order="deterministic").encode


class LivePolicies(Protocol):
    """The part of a policy store that starting a run needs."""

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, enabled or not, by priority and then name."""
        ...


class CompiledPolicies:
    """Checks bodies and compiles sets of policies, each once while it is in use. Thread safe; governors may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checked: SharedLruCache[tuple[str, bytes], Policy] = SharedLruCache(MAX_COMPILED)
        self._compiled: LruCache[tuple[tuple[str, Sha256], ...], PolicySet] = LruCache(MAX_COMPILED)

    def checked(self, bodies: Sequence[PolicyBody | Mapping[str, Any]], *, tenant: str) -> list[Policy]:
        """Return the policies of bodies, or raise PolicyInvalidError with the problems of all of them.

        Any: whatever an author wrote; that is what is checked.
        """
        policies: list[Policy] = []
        problems: list[FieldProblem] = []
        for place, body in enumerate(bodies):
            try:
                policies.append(self._check(body, tenant=tenant))
            except PolicyInvalidError as error:
                problems.extend(each._replace(path=f"policies[{place}].{each.path}") for each in error.problems)
        problems.extend(_twice(policies))
        if problems:
            raise PolicyInvalidError(problems)
        return policies

    def compiled(self, policies: Sequence[Policy]) -> PolicySet:
        """Return the set of the enabled ones."""
        enabled = [policy for policy in policies if policy.body.enabled]
        key = tuple((policy.policy_id, policy.digest) for policy in enabled)
        with self._lock:
            known = self._compiled.get(key)
            if known is None:
                known = PolicySet.of(enabled)
                self._compiled.put(key, known)
        return known

    def _check(self, body: PolicyBody | Mapping[str, Any], *, tenant: str) -> Policy:
        try:
            key = (tenant, _encode(body))
        except (TypeError, UnicodeEncodeError, OverflowError):
            # Not JSON, so surely not a policy either: the check says what is wrong with it.
            return check_policy(body, tenant=tenant)
        known = self._checked.get(key)
        if known is None:
            known = check_policy(body, tenant=tenant)
            self._checked.put(key, known)
        return known


class LocalGovernor(Governor):
    """Implements `Governor` in this process. Thread safe.

    `is_durable` says how the log was opened: where it is, a decision that cannot be written down stops the call, unless a policy's
    posture for `decision_log` says otherwise; where it is not, the run goes on and a bypass is recorded as soon as the log takes it.
    """

    def __init__(
        self,
        store: LivePolicies | None,
        log: DecisionLog,
        *,
        clock: Clock,
        entropy: Entropy,
        judge: GroundingJudge | None = None,
        texts: SourceTexts | None = None,
        is_durable: bool = False,
        judge_budget_ms: int = JUDGE_BUDGET_MS,
        compiled: CompiledPolicies | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._clock = clock
        self._entropy = entropy
        self._judging = ConfiguredJudge(judge, texts, budget_ms=judge_budget_ms)
        self._is_durable = is_durable
        self._compiled = compiled or CompiledPolicies()
        self._lock = threading.Lock()
        self._holding = threading.Lock()
        self._recorded: set[tuple[int, Sha256]] = set()
        self._held: list[LocalRun] = []

    @property
    def log(self) -> DecisionLog:
        """Return the log that this governor writes."""
        return self._log

    def start(
        self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True, principal: Principal | None = None
    ) -> LocalRun:
        """Pin the policies in scope, those of the store and those given, and decide about the beginning.

        What the run cites is read as `principal` may; without one, as the owner of the tenant may.

        1. Take the live policies of the tenant, and check those given; one with the name of a stored policy stands beside it.
        2. Compile them, unless this very set is compiled already, and leave out what is not in scope.
        3. Write down the policies, once per log, and who runs.
        """
        if not facts.run_id:
            facts = msgspec.structs.replace(facts, run_id=RunId("run-" + self._entropy.take(_RUN_ID_BYTES).hex()))
        in_scope = self._compiled.compiled(self._in_force(facts, policies)).for_run(facts)
        pinned = Pinned(
            facts=facts,
            principal=_reader_of(facts, principal),
            policies=in_scope,
            is_enforced=is_enforced,
            log_posture=self._log_posture(in_scope.policies),
            at_us=micros(self._clock.now(), field="now"),
        )
        evaluator = RunEvaluator(in_scope, is_enforced=is_enforced)
        run = LocalRun(pinned, evaluator=evaluator, log=self._log, clock=self._clock, judging=self._judging, keep=self._keep)
        self._retry_held()
        self._begin(run, in_scope.digest)
        if not run.retry():
            self._keep(run)
        return run

    def _keep(self, run: LocalRun) -> None:
        """Remember a run whose log did not take everything; with a lock of its own, since the caller holds the lock of the run."""
        with self._holding:
            if run not in self._held:
                self._held.append(run)

    def _retry_held(self) -> None:
        """Write what earlier runs had to hold back, before anything that comes after them."""
        with self._lock:
            with self._holding:
                held, self._held = self._held, []
            for run in held:
                if not run.retry():
                    self._keep(run)

    def _in_force(self, facts: RunFacts, given: Sequence[PolicyBody]) -> list[Policy]:
        stored = [] if self._store is None else [each.policy for each in self._store.live(tenant=facts.tenant)]
        taken = {policy.policy_id for policy in stored}
        checked = self._compiled.checked(given, tenant=facts.tenant) if given else []
        return [*stored, *(_beside(policy) if policy.policy_id in taken else policy for policy in checked)]

    def _log_posture(self, policies: Sequence[Policy]) -> Posture:
        """Return the strictest posture among the policies in scope for a log that takes nothing."""
        return strictest(policies, DECISION_LOG if self._is_durable else DECISION_LOG_BUFFERED)

    def _begin(self, run: LocalRun, digest: Sha256) -> None:
        # A forked process writes a log of its own, which has to hold the policies too.
        written = (os.getpid(), digest)
        with self._lock:
            if written not in self._recorded:
                # Under the lock, so that no run under these policies stands in the log before them.
                run.begin(is_known=False)
                self._recorded.add(written)
                return
        run.begin(is_known=True)


def _reader_of(facts: RunFacts, principal: Principal | None) -> Principal:
    """Return as whom a run reads: the owner of a local base owns every tenant, anybody else stays in their own."""
    reader = principal or local_owner()
    return msgspec.structs.replace(reader, tenant=TenantId(facts.tenant)) if reader.is_owner else reader


def _beside(policy: Policy) -> Policy:
    """Return a policy given with a run under an id of its own, since the store has one of its name: both are evaluated."""
    policy_id = PolicyId(f"{policy.policy_id}-given")
    return check_policy(policy.body, policy_id=policy_id, version=policy.version, tenant=policy.tenant)


def _twice(policies: Sequence[Policy]) -> list[FieldProblem]:
    names = [policy.body.name for policy in policies]
    return [
        FieldProblem(f"policies[{place}].name", f"'{name}' is given twice; give each policy its own name")
        for place, name in enumerate(names)
        if name in names[:place]
    ]


# --- answers of the engine ---
# Writes what policies said of an answer into the decision log: one short run for each answer, under its request id.


class LoggedAnswers(AnswerLog):
    """Implements `AnswerLog`. Thread safe."""

    def __init__(self, log: DecisionLog, *, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._known: set[Sha256] = set()
        self._compiled = CompiledPolicies()

    def write(
        self, facts: RunFacts, policies: Sequence[Policy], calls: Sequence[tuple[AnyCall, tuple[Verdict, ...], int]], *, is_enforced: bool
    ) -> Iterator[PolicyDecision]:
        """Write who asked, every fragment with its verdicts, and the end; the policies come before their first use.

        Decisions are spelt out when they are read: most answers just go on.
        """
        in_scope = self._compiled.compiled(policies)
        at_us = micros(self._clock.now(), field="now")
        begun = RunEvaluator(in_scope, is_enforced=is_enforced).begin()
        told = [(RunStarted(facts=facts, is_enforced=is_enforced, edition=EDITION), begun, 0), *calls]
        entries = [
            LogEntry(at_us=at_us, run_id=facts.run_id, policies=in_scope.digest, call=call, verdicts=verdicts, count=count)
            for call, verdicts, count in told
        ]
        named = LogEntry(at_us=at_us, run_id=facts.run_id, policies=in_scope.digest, call=PoliciesRecorded(policies=in_scope.policies))
        with self._lock:
            self._log.append(entries if in_scope.digest in self._known else [named, *entries])
            self._known.add(in_scope.digest)
        return expand(unsealed(entry) for entry in (named, *entries))
