"""Step 12: the policies in scope for whoever asks, over the fragments of an answer. One evaluator decides here and in an agent's run.

`annotate` flags what they warn of or would stop, `filter` withholds what they stop and says so, `enforce` lets the answer fail.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, GovernedFragment, WithheldFragment
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import AnyCall, BatchClosed, BatchId, RetrievedDocument, RunEnded, RunFacts, RunId, RunStatus
from evidentia.contracts.vocabulary import GovernanceMode
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.provenance.evidence_tags import age_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from evidentia.contracts.access import Principal
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.ports import AnswerLog

NO_POLICIES: Final = PolicySet()
ANSWER: Final = BatchId("answer")
"""The batch that the fragments of one answer are counted in."""
FLAGS: Final = {PolicyAction.WARN: "policy_warn", PolicyAction.BLOCK: "policy_block"}
_OTHER_FLAG: Final = "policy"
ALL_FLAGS: Final = (*FLAGS.values(), _OTHER_FLAG)
"""Whatever policies may say of a fragment."""
_MAX_SETS: Final = 256
_RETRIEVAL: Final = "retrieval"
_MANY: Final = 10**9
_DAY_S: Final = 86_400


class Governing(NamedTuple):
    """Where policies come from, and where what they say is written."""

    policies: Callable[[str], PolicySet]
    """Those in force for a tenant."""
    log: Callable[[], AnswerLog]
    """Opened when there is something to write."""


class Governed(NamedTuple):
    """The fragments that are left, those that were withheld, and everything that was said."""

    fragments: tuple[EvidenceFragment, ...]
    withheld: tuple[WithheldFragment, ...] = ()
    remarks: tuple[GovernedFragment, ...] = ()
    calls: tuple[tuple[AnyCall, tuple[Verdict, ...], int], ...] = ()
    """Every fragment as it was recorded, with the verdicts on it and the count at that moment."""
    degraded: tuple[str, ...] = ()
    is_enforced: bool = False

    @property
    def stop(self) -> Verdict | None:
        """Return the first verdict that stops; None when nothing does."""
        return next((verdict for _, verdicts, _ in self.calls for verdict in verdicts if verdict.stops), None)


def facts_of(request: EvidenceRequest, principal: Principal) -> RunFacts:
    """Return who asks, as scopes ask for it."""
    return RunFacts(
        run_id=RunId(""),
        agent_name=request.agent_name or "",
        user_id=str(principal.principal_id),
        user_group=principal.groups[0] if principal.groups else "",
        tenant=str(principal.tenant),
        session_id=str(request.session_context or ""),
        workflow_name="retrieve",
    )


@lru_cache(maxsize=_MAX_SETS)
def about_documents(policies: PolicySet) -> PolicySet:
    """Return those of the policies that have something to say of documents; others are for an agent's own run."""
    groups = [group for group in policies.groups if RetrievedDocument in group.compiled.listens_to]
    return PolicySet.of(policy for group in groups for policy in group.policies)


@lru_cache(maxsize=_MAX_SETS)
def about_one_document(policies: PolicySet) -> PolicySet:
    """Return those policies without their counts of results, which are about an answer and not about one document by itself."""
    return PolicySet.of(_uncounted(policy) for policy in about_documents(policies).policies)


def govern(fragments: Sequence[EvidenceFragment], policies: PolicySet, *, mode: GovernanceMode, as_of: datetime) -> Governed:
    """Record every fragment as a document of one batch, and do with it what the mode says."""
    is_enforced = mode is not GovernanceMode.ANNOTATE
    evaluator = RunEvaluator(policies, is_enforced=is_enforced)
    kept: list[EvidenceFragment] = []
    withheld: list[WithheldFragment] = []
    remarks: list[GovernedFragment] = []
    calls: list[tuple[AnyCall, tuple[Verdict, ...], int]] = []
    for fragment in fragments:
        document = recorded(fragment, as_of=as_of)
        verdicts = evaluator.record(document)
        calls.append((document, verdicts, evaluator.count))
        remarks.extend(_remark(fragment, verdict) for verdict in verdicts if is_worth_saying(verdict))
        stop = next((verdict for verdict in verdicts if verdict.stops), None)
        if stop is not None:
            withheld.append(WithheldFragment(chunk_id=fragment.chunk_id, reason=_reason(stop)))
        else:
            kept.append(_flagged(fragment, verdicts))
    closed = BatchClosed(batch=ANSWER)
    settled = evaluator.record(closed)
    calls.append((closed, settled, evaluator.count))
    failed = mode is GovernanceMode.ENFORCE and evaluator.is_stopped
    end = RunEnded(status=RunStatus.BLOCKED if failed else RunStatus.SUCCESS)
    ended = evaluator.finish(end)
    calls.append((end, ended, evaluator.count))
    degraded = tuple(_reason(verdict) for verdict in (*settled, *ended) if is_worth_saying(verdict))
    return Governed(tuple(kept), tuple(withheld), tuple(remarks), tuple(calls), degraded, is_enforced=is_enforced)


def recorded(fragment: EvidenceFragment, *, as_of: datetime) -> RetrievedDocument:
    """Return a fragment as a run records it: its confidence is the relevance, its document the source, its source the collection."""
    return RetrievedDocument(
        relevance_score=fragment.confidence,
        source=str(fragment.document_id),
        collection=str(fragment.source_id),
        age_days=age_days(fragment, as_of=as_of),
        batch=ANSWER,
        chunk_id=str(fragment.chunk_id),
    )


def age_days(fragment: EvidenceFragment, *, as_of: datetime) -> int | None:
    """Return how many whole days old a fragment is; None when it has no date that can be read. What is dated later is new."""
    age = age_s(fragment, as_of=as_of)
    return None if age is None else age // _DAY_S


def _uncounted(policy: Policy) -> Policy:
    if policy.body.category != _RETRIEVAL:
        return policy
    # Imported here: most bases have no floor, and a search of one need not load the rules of every category.
    from evidentia.policy.rules import check_policy

    rules = {**policy.body.rules, "min_chunks": 0, "max_chunks": _MANY, "require_source_diversity": False}
    body = msgspec.structs.replace(policy.body, rules=rules)
    return check_policy(body, policy_id=policy.policy_id, version=policy.version, tenant=policy.tenant)  # with a digest of its own


def is_worth_saying(verdict: Verdict) -> bool:
    """Tell whether a verdict is more than that something passes."""
    return verdict.decisive.action is not PolicyAction.ALLOW


def _reason(verdict: Verdict) -> str:
    return f"policy '{verdict.decisive.policy_name}': {verdict.decisive.reason}"


def _remark(fragment: EvidenceFragment, verdict: Verdict) -> GovernedFragment:
    said = verdict.decisive
    return GovernedFragment(
        chunk_id=fragment.chunk_id,
        action=said.action,
        policy_id=said.policy_id,
        policy_name=said.policy_name,
        policy_digest=said.digest,
        rule=said.rule,
        reason=said.reason,
        metadata=said.metadata,
        status=said.status,
    )


def _flagged(fragment: EvidenceFragment, verdicts: Sequence[Verdict]) -> EvidenceFragment:
    """Return a fragment that says what policies said of it; one of which none said anything stays as it is."""
    flags = [FLAGS.get(verdict.decisive.action, _OTHER_FLAG) for verdict in verdicts if is_worth_saying(verdict)]
    return msgspec.structs.replace(fragment, flags=(*fragment.flags, *flags)) if flags else fragment
