"""What happens when something cannot be checked: open, degrade or closed, by rule or fault, and by policy where it says so."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from evidentia.contracts.policies import ALL_RULES, Policy, PolicyAction, Posture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


CONTROL_PLANE: Final = "control_plane"
DECISION_LOG: Final = "decision_log"
DECISION_LOG_BUFFERED: Final = "decision_log_buffered"

DEFAULT_POSTURES: Final[Mapping[str, Posture]] = MappingProxyType(
    {
        "llm_grounding_check": Posture.OPEN,
        "max_source_age_days": Posture.OPEN,
        CONTROL_PLANE: Posture.DEGRADE,
        DECISION_LOG: Posture.CLOSED,
        DECISION_LOG_BUFFERED: Posture.DEGRADE,
    }
)
"""By rule, or by what else can fail: the control plane, the log when each decision must be on disk, and the log when it need not."""

OTHERWISE: Final = Posture.DEGRADE
"""For a rule that neither the policy nor the table names."""

FAULTS: Final = (CONTROL_PLANE, DECISION_LOG, DECISION_LOG_BUFFERED)

_STRICTEST_FIRST: Final = (Posture.CLOSED, Posture.DEGRADE, Posture.OPEN)
_ACTIONS: Final[Mapping[Posture, PolicyAction]] = MappingProxyType(
    {Posture.OPEN: PolicyAction.ALLOW, Posture.DEGRADE: PolicyAction.WARN, Posture.CLOSED: PolicyAction.BLOCK}
)


def posture_of(policy: Policy, rule: str) -> Posture:
    """Return the posture of a rule or fault: the policy's own for it, its own for all, else the default."""
    own = policy.body.posture
    if rule in own:
        return own[rule]
    if ALL_RULES in own:
        return own[ALL_RULES]
    return DEFAULT_POSTURES.get(rule, OTHERWISE)


def strictest(policies: Sequence[Policy], fault: str) -> Posture:
    """Return the strictest posture that policies have for a rule or fault; the default where there are none."""
    postures = [posture_of(policy, fault) for policy in policies] or [DEFAULT_POSTURES[fault]]
    return next(posture for posture in _STRICTEST_FIRST if posture in postures)


def action_of(posture: Posture) -> PolicyAction:
    """Return what becomes of a call whose check was not made."""
    return _ACTIONS[posture]
