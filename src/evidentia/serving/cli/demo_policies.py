"""The part of the tour that governs: an agent under two policies, stopped where it goes wrong, and the log of what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.agents import Context, PolicyViolationError
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.serving.cli.demo_questions import AS_OF, PATIENT_MS, QUESTION
from evidentia.serving.cli.output import put, put_table
from evidentia.wiring.governance_runtime import open_control

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.base.sync_base import Base
    from evidentia.contracts.decisions import PolicyDecision

AGENT: Final = "harbour-helper"
SCOPE: Final = {"agents": ["harbour-*"]}
POLICIES: Final = (
    {
        "name": "No hearsay",
        "category": "retrieval",
        "rules": {"min_relevance_score": 0.0, "max_source_age_days": 730, "blocked_sources": ["tickets:T-1007"], "max_chunks": 20},
        "scope": SCOPE,
    },
    {
        "name": "Only what the evidence says",
        "category": "grounding",
        "rules": {"min_grounding_score": 0.5, "max_unsupported_claims": 0, "action_on_violation": "block"},
        "scope": SCOPE,
    },
)
TRUE_CLAIM: Final = "Signing keys are rotated every 30 days."
FALSE_CLAIM: Final = "Signing keys are never rotated once a parcel has left Antwerp."


def govern(base: Base) -> None:
    """Put two policies in force, let an agent answer under them, and check the log of what was decided."""
    put()
    put("6. Govern")
    put(f"Two policies are put in force for agents called '{SCOPE['agents'][0]}':")
    put()
    stored = [base.add_policy(policy) for policy in POLICIES]
    put_table(
        ("policy", "category", "version"), [(each.policy.body.name, each.policy.body.category, each.policy.version) for each in stored]
    )
    put()
    put(f"{AGENT} answers '{QUESTION}' from the evidence, and then makes something up:")
    put()
    put_table(("phase", "policy", "action", "reason"), [_row(decision) for decision in _decisions(base)])
    put()
    put("Each line is a sealed record; nothing but the log is needed to check it, or to decide all of it again:")
    with open_control(base.path) as control:
        verified, replayed = verify(control.log), replay(control.log)
    put(f"  verified {verified.records} records: {'everything holds' if verified.ok else 'BROKEN'}")
    put(f"  decided {replayed.decisions} decisions again: {replayed.mismatch_count} came out differently")


def _decisions(base: Base) -> Sequence[PolicyDecision]:
    with Context(agent_name=AGENT, base=base) as context:
        evidence = base.retrieve(QUESTION, agent_name=AGENT, as_of=AS_OF, limit=3, latency_deadline_ms=PATIENT_MS)
        _tolerate(lambda: context.record_retrieval(evidence))
        _tolerate(lambda: context.ground(TRUE_CLAIM, evidence))
        _tolerate(lambda: context.ground(FALSE_CLAIM, evidence))
    context.flush()
    return context.decisions


def _tolerate(step: Callable[[], object]) -> None:
    """Go on after a block: the run stays blocked, and what follows is still decided about."""
    try:
        step()
    except PolicyViolationError:
        return


def _row(decision: PolicyDecision) -> tuple[str, str, str, str]:
    return decision.phase.value, decision.policy_name, decision.action.value, decision.reason
