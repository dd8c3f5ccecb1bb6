"""Who may ask a source: every clause of the rule on its own, and the whole of it against a naive restatement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.sources import SourceAccessPolicy
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import access_scope, may_ask
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ANN = Principal(
    principal_id=PrincipalId("ann"),
    clearance=Classification.INTERNAL,
    groups=("ops",),
    roles=("pilot",),
    attributes={"region": "eu", "level": "3", "crew.of": "five"},
)
ANYONE = SourceAccessPolicy()


def asks(policy: SourceAccessPolicy, principal: Principal = ANN, *, acl_scope: tuple[str, ...] | None = None) -> bool:
    return may_ask(policy, access_scope(principal, acl_scope=acl_scope, rules=()))


def demanding(predicate: str) -> SourceAccessPolicy:
    return SourceAccessPolicy(predicate=predicate)


# --- tenant, clearance, lists ---


def test_a_policy_that_demands_nothing_lets_every_caller_of_the_tenant_ask() -> None:
    assert asks(ANYONE)
    assert asks(ANYONE, Principal(principal_id=PrincipalId("nobody")))


@pytest.mark.parametrize("principal", [ANN, local_owner()])
def test_nobody_asks_a_source_of_another_tenant(principal: Principal) -> None:
    assert not asks(SourceAccessPolicy(tenants=("other", "third")), principal)
    assert not asks(SourceAccessPolicy(tenants=()), principal)
    assert asks(SourceAccessPolicy(tenants=("other", "default")), principal)


@pytest.mark.parametrize("minimum", Classification)
@pytest.mark.parametrize("clearance", Classification)
def test_the_clearance_has_to_reach_the_minimum(minimum: Classification, clearance: Classification) -> None:
    policy = SourceAccessPolicy(minimum_clearance=minimum)

    assert (minimum.rank <= clearance.rank) == asks(policy, msgspec.structs.replace(ANN, clearance=clearance))


def test_a_level_that_nobody_knows_is_out_of_reach() -> None:
    cosmic = msgspec.structs.replace(ANYONE, minimum_clearance="cosmic")

    assert not asks(cosmic, local_owner())
    assert not asks(ANYONE, msgspec.structs.replace(ANN, clearance="cosmic"))


@pytest.mark.parametrize("lists", [{"roles": ("pilot",)}, {"groups": ("x", "ops")}, {"principals": ("ann",)}])
def test_one_place_on_one_list_suffices(lists: dict[str, tuple[str, ...]]) -> None:
    closed = SourceAccessPolicy(roles=("x",), groups=("x",), principals=("x",))

    assert not asks(closed)
    assert asks(msgspec.structs.replace(closed, **lists))


@pytest.mark.parametrize("lists", [{"roles": ("ops", "ann")}, {"groups": ("pilot",)}, {"principals": ("ops", "Ann")}])
def test_a_name_on_the_list_of_another_kind_does_not_count(lists: dict[str, tuple[str, ...]]) -> None:
    assert not asks(msgspec.structs.replace(ANYONE, **lists))


def test_the_owner_stands_on_every_list_and_outside_the_predicate_and_needs_the_clearance() -> None:
    closed = SourceAccessPolicy(roles=("x",), predicate='region = "mars"', minimum_clearance=Classification.RESTRICTED)

    assert asks(closed, local_owner())
    assert not asks(closed, msgspec.structs.replace(local_owner(), clearance=Classification.INTERNAL))


# --- acl_scope ---


def test_a_scope_keeps_only_the_entries_it_names() -> None:
    policy = SourceAccessPolicy(roles=("pilot",))

    assert asks(policy, acl_scope=("role:pilot",))
    assert not asks(policy, acl_scope=("group:ops",))
    assert not asks(policy, acl_scope=())
    assert asks(ANYONE, acl_scope=())


def test_a_scope_gives_no_entry_that_the_caller_lacks() -> None:
    assert not asks(SourceAccessPolicy(roles=("auditor",)), acl_scope=("role:auditor", "role:pilot"))


def test_a_scope_narrows_the_owner_too() -> None:
    policy = SourceAccessPolicy(groups=("legal",))

    assert [True, False] == [asks(policy, local_owner(), acl_scope=scope) for scope in (("group:legal",), ("group:ops",))]


# --- the predicate ---


@pytest.mark.parametrize(
    "predicate",
    [
        'region = "eu"', 'region != "us"', "level >= 3", 'region in ("us", "eu")', 'region not in ("us")', 'region contains "e"',
        "region exists", "NOT clan exists", 'NOT region = "us"', 'clan = "x" OR level = 3', '`crew.of` = "five"', "TRUE",
    ],
)  # fmt: skip
def test_a_predicate_speaks_of_the_callers_attributes(predicate: str) -> None:
    assert asks(demanding(predicate))


@pytest.mark.parametrize(
    "predicate",
    [
        'region = "us"', "level > 3", "clan exists", "FALSE", 'clan != "x"', 'clan not in ("x")', 'region = "eu" AND clan = "x"',
        'principal_id = "ann"', 'tenant = "default"',
    ],
)  # fmt: skip
def test_what_does_not_hold_denies(predicate: str) -> None:
    assert not asks(demanding(predicate))


@pytest.mark.parametrize(
    "predicate",
    [
        'NOT clan = "x"', 'NOT NOT clan = "x"', 'NOT (region = "us" AND clan = "x")', 'NOT (region = "us" OR NOT clan = "x")',
        "NOT region < 5", "NOT region = true", 'NOT region in (1, "x")', 'NOT clan contains "x"', 'NOT clan not in ("x")',
    ],
)  # fmt: skip
def test_not_never_makes_something_of_what_is_unknown(predicate: str) -> None:
    assert not asks(demanding(predicate))


@pytest.mark.parametrize("predicate", ["region =", "(", " ", "NOT region < true", "NOT level contains 3", "`x.` exists"])
def test_a_predicate_that_cannot_be_read_denies(predicate: str) -> None:
    assert not asks(demanding(predicate))


# --- the whole rule, restated without any of its parts ---

NAMES = ("a", "b", "c")
names = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(tuple)
CLAUSES: dict[str, Callable[[Mapping[str, str]], bool]] = {
    "": lambda _: True,
    'region = "a"': lambda has: has.get("region") == "a",
    'NOT region = "a"': lambda has: "region" in has and has["region"] != "a",
    'region = "a" AND team exists': lambda has: has.get("region") == "a" and "team" in has,
    'region = "b" OR NOT (team = "c" AND region = "a")': lambda has: (
        has.get("region") == "b" or ("team" in has and "region" in has and (has["team"], has["region"]) != ("c", "a"))
    ),
    "region =": lambda _: False,
}
policies = st.builds(
    SourceAccessPolicy,
    tenants=names,
    roles=names,
    groups=names,
    principals=names,
    minimum_clearance=st.sampled_from(Classification),
    predicate=st.sampled_from(sorted(CLAUSES)),
)
principals = st.builds(
    Principal,
    principal_id=st.sampled_from(NAMES).map(PrincipalId),
    tenant=st.sampled_from(NAMES).map(TenantId),
    clearance=st.sampled_from(Classification),
    roles=names,
    groups=names,
    attributes=st.dictionaries(st.sampled_from(["region", "team"]), st.sampled_from(NAMES)),
    is_owner=st.booleans(),
)
ENTRIES = tuple(f"{kind}:{name}" for kind in ("role", "group", "user") for name in NAMES)
acl_scopes = st.none() | st.lists(st.sampled_from(ENTRIES), unique=True).map(tuple)


def restated(policy: SourceAccessPolicy, caller: Principal, acl_scope: tuple[str, ...] | None) -> bool:
    """Say the rule again, entry by entry."""
    held = [("role", name) for name in caller.roles] + [("group", name) for name in caller.groups] + [("user", caller.principal_id)]
    if caller.is_owner:
        held = [(kind, name) for kind in ("role", "group", "user") for name in NAMES]
    kept = [(kind, name) for kind, name in held if acl_scope is None or f"{kind}:{name}" in acl_scope]
    lists = {"role": policy.roles, "group": policy.groups, "user": policy.principals}
    is_listed = not any(lists.values()) or any(name in lists[kind] for kind, name in kept)
    order = list(Classification)
    is_cleared = order.index(caller.clearance) >= order.index(policy.minimum_clearance)
    return (
        caller.tenant in policy.tenants and is_cleared and is_listed and (caller.is_owner or CLAUSES[policy.predicate](caller.attributes))
    )


@settings(max_examples=cases(133, of=400))
@given(policies, principals, acl_scopes)
def test_the_rule_is_what_it_says(policy: SourceAccessPolicy, caller: Principal, acl_scope: tuple[str, ...] | None) -> None:
    open_to_tenant = msgspec.structs.replace(policy, tenants=(*policy.tenants, caller.tenant))

    assert restated(policy, caller, acl_scope) == asks(policy, caller, acl_scope=acl_scope)
    assert restated(open_to_tenant, caller, acl_scope) == asks(open_to_tenant, caller, acl_scope=acl_scope)


@given(policies, principals, acl_scopes)
def test_a_scope_never_lets_anybody_ask_more(policy: SourceAccessPolicy, caller: Principal, acl_scope: tuple[str, ...] | None) -> None:
    assert asks(policy, caller, acl_scope=acl_scope) <= asks(policy, caller)
