"""Which floor applies to whom, and which agents somebody may be."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest

from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.control import Role, TokenFacts, TokenId, TokenInfo
from evidentia.contracts.errors import BelowFloorError
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.settings import GovernanceSettings
from evidentia.contracts.vocabulary import GovernanceMode
from evidentia.policy.floor import local_standing, token_standing

MODES = tuple(GovernanceMode)
OFF, ANNOTATE, FILTER, ENFORCE = MODES


def token(**facts: object) -> TokenInfo:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return TokenInfo(token_id=TokenId("t"), name="clerk", roles=(Role.AGENT,), tenant="acme", created_at=at, facts=TokenFacts(**facts))  # type: ignore[arg-type]


def test_the_strictest_floor_of_base_tenant_token_and_agent_applies() -> None:
    for base, tenant, own, agent in product(MODES, repeat=4):
        settings = GovernanceSettings(floor=base, tenants={"acme": tenant, "globex": ENFORCE}, agents={"a": agent, "b": ENFORCE})
        floor = token_standing(settings, token(floor=own, agents=("a",))).floor("a")

        assert max((base, tenant, own, agent), key=MODES.index) is floor


def test_the_floor_of_agents_may_be_a_pattern() -> None:
    standing = token_standing(
        GovernanceSettings(agents={"support-*": FILTER, "support-vip": ENFORCE}), token(agents=("support-vip", "web"))
    )

    assert (ENFORCE, FILTER, OFF) == (standing.floor("support-vip"), standing.floor("support-x"), standing.floor("web"))


def test_a_token_without_a_floor_anywhere_is_bound_to_nothing() -> None:
    standing = token_standing(GovernanceSettings(tenants={"globex": ENFORCE}), token())

    assert standing.is_free
    assert "anybody" == standing.agent("anybody", field="agent_name")


@pytest.mark.parametrize(
    "settings",
    [
        GovernanceSettings(floor=ANNOTATE),
        GovernanceSettings(tenants={"acme": FILTER}),
        GovernanceSettings(agents={"a": ENFORCE}),
    ],
    ids=["base", "tenant", "agent"],
)
def test_under_a_floor_a_token_without_agents_asks_by_its_own_name(settings: GovernanceSettings) -> None:
    standing = token_standing(settings, token())

    assert "clerk" == standing.agent("", field="agent_name")
    assert "clerk" == standing.named("some client")
    with pytest.raises(BelowFloorError, match=r"field 'agent_name': 'a' is not an agent of this token, which asks as clerk"):
        standing.agent("a", field="agent_name")


def test_agents_of_a_token_bind_it_with_or_without_a_floor_and_any_agent_frees_the_others() -> None:
    listed = token_standing(GovernanceSettings(), token(agents=("rag", "web")))
    free = token_standing(GovernanceSettings(floor=ENFORCE, any_agent=True), token())

    assert ("rag", "web", "rag") == tuple(listed.agent(each, field="f") for each in ("", "web", "rag"))
    with pytest.raises(BelowFloorError):
        listed.agent("clerk", field="f")
    assert ("", "whoever") == (free.agent("", field="f"), free.agent("whoever", field="f"))


def test_the_local_owner_is_bound_where_the_settings_say_so_and_everybody_else_always() -> None:
    ada = Principal(principal_id=PrincipalId("ada"), tenant=TenantId("default"))

    assert OFF is local_standing(GovernanceSettings(floor=ENFORCE), local_owner()).floor("")
    assert ENFORCE is local_standing(GovernanceSettings(floor=ENFORCE, binds_owner=True), local_owner()).floor("")
    assert ENFORCE is local_standing(GovernanceSettings(floor=ENFORCE), ada).floor("")
