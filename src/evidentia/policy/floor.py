"""The governance floor: the least that policies do to what somebody is handed, and the agents that they may ask as.

It decides from settings and facts alone; who is bound by it is decided by whoever makes the `Standing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.errors import BelowFloorError
from evidentia.contracts.settings import GovernanceSettings
from evidentia.contracts.vocabulary import GovernanceMode
from evidentia.policy.evaluator import matches

if TYPE_CHECKING:
    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import TokenInfo

FLOOR: Final = "governance_floor"
"""The name of the bypass that is recorded where somebody asks for less than the floor, or uses what only its absence allows."""
_MAX_SHOWN: Final = 80


class Standing(NamedTuple):
    """Under which floors somebody asks, and as which agents."""

    settings: GovernanceSettings = GovernanceSettings()
    tenant: str = DEFAULT_TENANT
    own: GovernanceMode = GovernanceMode.OFF
    """The floor of the token."""
    agents: tuple[str, ...] | None = None
    """The names that may be given, the first of them where none is; None is any."""

    @property
    def is_free(self) -> bool:
        """Tell whether nothing binds: no floor, and no name."""
        return self.agents is None and not _has_floor(self.settings, self.tenant, self.own)

    def floor(self, agent: str) -> GovernanceMode:
        """Return the strictest floor that applies to an agent: the base's, the tenant's, the token's and its own."""
        settings = self.settings
        named = [mode for pattern, mode in settings.agents.items() if matches(pattern, agent)]
        return max((settings.floor, settings.tenants.get(self.tenant, settings.floor), self.own, *named), key=lambda mode: mode.rank)

    def agent(self, claimed: str, *, field: str) -> str:
        """Return the name of the agent that asks.

        Raises:
            BelowFloorError: The name belongs to somebody else.
        """
        if self.agents is None or claimed in self.agents:
            return claimed
        if claimed:
            problem = f"'{claimed:.{_MAX_SHOWN}}' is not an agent of this token, which asks as {', '.join(self.agents)}"
            raise BelowFloorError(field, problem)
        return self.agents[0]

    def named(self, client: str) -> str:
        """Return the name of an agent whose client says what it is called without claiming anything by it."""
        return client if self.agents is None or client in self.agents else self.agents[0]


FREE: Final = Standing()


def local_standing(settings: GovernanceSettings, principal: Principal) -> Standing:
    """Return where somebody stands in the process that has the base open; the owner is bound where the settings say so."""
    return FREE if principal.is_owner and not settings.binds_owner else Standing(settings, str(principal.tenant))


def token_standing(settings: GovernanceSettings, token: TokenInfo) -> Standing:
    """Return where the holder of a token stands: with agents of its own, or else, under a floor, with the token's name."""
    facts = token.facts
    has_floor = _has_floor(settings, token.tenant, facts.floor)
    agents = facts.agents or ((token.name,) if has_floor and not settings.any_agent else None)
    return Standing(settings, token.tenant, facts.floor, agents)


def refused_by(floor: GovernanceMode) -> bool:
    """Tell whether a floor leaves no room for what keeps policies from stopping something: from `filter` on."""
    return floor.rank >= GovernanceMode.FILTER.rank


def _has_floor(settings: GovernanceSettings, tenant: str, own: GovernanceMode) -> bool:
    return bool(settings.agents) or any(mode.rank for mode in (settings.floor, settings.tenants.get(tenant, own), own))
