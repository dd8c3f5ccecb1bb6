"""The access rule: what each part asks, that unknown is denied, and that tightening never admits more."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import matches
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import NEVER, access_scope, bind_rule, entries_of, is_allowed

ANN = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL, groups=("ops",), roles=("pilot",))
OPEN = AccessRule()
RECORD = {"classification": "internal", "language": "en", "tags": ("open",), "extra": {"region": "eu", "team": "ops"}}


def allows(rule: AccessRule, principal: Principal, *, acl_scope: tuple[str, ...] | None = None, rules: tuple[str, ...] = ()) -> bool:
    """Decide as a backend does: the access rule first, then every rule over the document's fields."""
    scope = access_scope(principal, acl_scope=acl_scope, rules=rules)
    return is_allowed(rule, scope) and all(matches(each, RECORD) for each in scope.rules)


# --- tenant, clearance, ACL ---


def test_an_empty_acl_asks_only_for_tenant_and_clearance() -> None:
    assert allows(OPEN, Principal(principal_id=PrincipalId("anyone"), clearance=Classification.INTERNAL))


@pytest.mark.parametrize("principal", [ANN, local_owner()])
def test_nothing_crosses_a_tenant(principal: Principal) -> None:
    assert not allows(AccessRule(tenant=TenantId("other"), classification=Classification.PUBLIC), principal)


@pytest.mark.parametrize("classification", Classification)
@pytest.mark.parametrize("clearance", Classification)
def test_clearance_reaches_as_high_as_its_rank(classification: Classification, clearance: Classification) -> None:
    caller = msgspec.structs.replace(ANN, clearance=clearance)

    assert (classification.rank <= clearance.rank) == allows(AccessRule(classification=classification), caller)


def test_a_new_principal_is_cleared_for_public_documents_alone() -> None:
    nobody = Principal(principal_id=PrincipalId("nobody"))

    assert allows(AccessRule(classification=Classification.PUBLIC), nobody)
    assert not allows(OPEN, nobody)


@pytest.mark.parametrize("entry", ["user:ann", "group:ops", "role:pilot"])
def test_one_entry_of_an_acl_suffices(entry: str) -> None:
    assert allows(AccessRule(acl=("group:legal", entry)), ANN)


@pytest.mark.parametrize("entry", ["user:ops", "group:ann", "group:pilot", "role:ops", "ann", "ops", "team:ops", "user:Ann", "user:", "*"])
def test_an_entry_of_another_kind_or_spelling_is_not_the_callers(entry: str) -> None:
    assert not allows(AccessRule(acl=(entry,)), ANN)


def test_an_acl_does_not_stand_in_for_clearance() -> None:
    assert not allows(AccessRule(classification=Classification.RESTRICTED, acl=("user:ann",)), ANN)


def test_the_owner_stands_in_every_acl_and_needs_the_clearance() -> None:
    closed = AccessRule(classification=Classification.RESTRICTED, acl=("group:legal",))

    assert allows(closed, local_owner())
    assert not allows(closed, msgspec.structs.replace(local_owner(), clearance=Classification.INTERNAL))


def test_the_owner_is_bound_by_no_rule() -> None:
    assert allows(OPEN, local_owner(), rules=('extra.region = "$caller.region"', "FALSE"))


# --- acl_scope ---


def test_a_scope_keeps_only_the_entries_it_names() -> None:
    assert allows(AccessRule(acl=("group:ops",)), ANN, acl_scope=("group:ops",))
    assert not allows(AccessRule(acl=("role:pilot",)), ANN, acl_scope=("group:ops",))


@pytest.mark.parametrize("acl_scope", [("group:legal",), ("group:legal", "group:ops"), ()])
def test_a_scope_gives_no_entry_that_the_caller_lacks(acl_scope: tuple[str, ...]) -> None:
    assert not allows(AccessRule(acl=("group:legal",)), ANN, acl_scope=acl_scope)


def test_a_scope_narrows_the_owner_too() -> None:
    legal, ops = AccessRule(acl=("group:legal",)), AccessRule(acl=("group:ops",))

    assert [True, False] == [allows(rule, local_owner(), acl_scope=("group:legal",)) for rule in (legal, ops)]
    assert not allows(legal, local_owner(), acl_scope=())


def test_a_scope_leaves_documents_without_an_acl() -> None:
    assert allows(OPEN, ANN, acl_scope=())


# --- rules over caller and document ---


@pytest.mark.parametrize(
    "text",
    [
        'extra.region = "$caller.region"',
        'extra.region != "$caller.region"',
        'tags contains "$caller.region"',
        'extra.region in ("eu", "$caller.region")',
        'extra.region not in ("us", "$caller.region")',
        'NOT extra.region = "$caller.region"',
        'NOT NOT extra.region = "$caller.region"',
        'NOT (language = "de" AND extra.region = "$caller.region")',
        'NOT (language = "de" OR NOT extra.region = "$caller.region")',
        'language = "en" AND extra.region = "$caller.region"',
        'language = "en" AND NOT (extra.region = "$caller.region" AND language = "de")',
        'language = "de" OR extra.region = "$caller.region"',
        'language = "de" OR NOT extra.region = "$caller.region"',
    ],
)
def test_an_attribute_that_the_caller_lacks_denies(text: str) -> None:
    assert not allows(OPEN, ANN, rules=(text,))


def test_under_or_only_the_comparison_with_the_missing_attribute_is_denied() -> None:
    assert allows(OPEN, ANN, rules=('language = "en" OR extra.region = "$caller.region"',))


@pytest.mark.parametrize(
    "text",
    [
        'classification <= "$caller.ceiling"',
        'NOT classification > "$caller.ceiling"',
        'language = "en" OR classification <= "$caller.ceiling"',
        'updated_at < "$caller.ceiling" OR language = "en"',
    ],
)
def test_an_attribute_that_is_no_value_of_the_field_denies(text: str) -> None:
    assert not allows(OPEN, msgspec.structs.replace(ANN, attributes={"ceiling": "cosmic"}), rules=(text,))


def test_an_attribute_stands_where_the_rule_names_it() -> None:
    bound = bind_rule(
        parse('extra.region in ("$caller.region", "us") AND NOT tags contains "$caller.banned"'), {"region": "eu", "banned": "x"}
    )

    assert parse('extra.region in ("eu", "us") AND NOT tags contains "x"') == bound


def test_an_attribute_is_a_value_and_never_a_rule_or_another_attribute() -> None:
    attributes = {"region": '$caller.secret" OR TRUE', "secret": "eu", "team": "$caller.secret"}
    caller = msgspec.structs.replace(ANN, attributes=attributes)

    assert not allows(OPEN, caller, rules=('extra.region = "$caller.region"',))
    assert not allows(OPEN, caller, rules=('extra.region = "$caller.team"',))


def test_a_rule_without_attributes_is_left_as_it_is() -> None:
    rule = parse('language = "en" AND NOT tags contains "draft" OR author exists')

    assert rule == bind_rule(rule, {})


def test_what_lacks_an_attribute_becomes_the_rule_that_never_holds() -> None:
    assert NEVER == bind_rule(parse('NOT extra.region = "$caller.region"'), {})


def test_every_rule_has_to_hold() -> None:
    assert allows(OPEN, ANN, rules=('language = "en"', "TRUE"))
    assert not allows(OPEN, ANN, rules=('language = "en"', 'language = "de"'))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('clasification <= "internal"', "did you mean 'classification'"),
        ('language = "en" OR NOT $caller = "x"', "column"),
        ('language = "en" AND secrecy = "$caller.x"', "'secrecy'"),
        ("", "column 1"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named_with_its_fault(text: str, named: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        access_scope(ANN, acl_scope=None, rules=(text,))

    assert "access.rules" == caught.value.field
    assert f"'{text}' is not a rule" in str(caught.value)
    assert named in str(caught.value)


# --- fingerprints ---

RULE = 'extra.region = "$caller.region"'
EUROPEAN = msgspec.structs.replace(ANN, groups=("ops", "legal"), attributes={"region": "eu"})


def fingerprint(principal: Principal, *, acl_scope: tuple[str, ...] | None = None, rules: tuple[str, ...] = (RULE,)) -> str:
    """Return the fingerprint of a caller's rights."""
    return access_scope(principal, acl_scope=acl_scope, rules=rules).fingerprint


def test_equal_rights_have_equal_fingerprints() -> None:
    told_otherwise = msgspec.structs.replace(
        EUROPEAN, groups=("legal", "ops", "legal"), roles=("pilot", "pilot"), attributes={"shoe_size": "43", "region": "eu"}
    )

    assert fingerprint(EUROPEAN) == fingerprint(told_otherwise)
    assert fingerprint(EUROPEAN, acl_scope=("a", "b")) == fingerprint(EUROPEAN, acl_scope=("b", "a", "b"))


def test_each_difference_of_rights_is_a_difference_of_fingerprints() -> None:
    replaced = [
        EUROPEAN,
        msgspec.structs.replace(EUROPEAN, tenant=TenantId("other")),
        msgspec.structs.replace(EUROPEAN, clearance=Classification.PUBLIC),
        msgspec.structs.replace(EUROPEAN, principal_id=PrincipalId("bob")),
        msgspec.structs.replace(EUROPEAN, groups=("ops",)),
        msgspec.structs.replace(EUROPEAN, groups=("ops",), roles=("pilot", "legal")),
        msgspec.structs.replace(EUROPEAN, roles=()),
        msgspec.structs.replace(EUROPEAN, attributes={"region": "us"}),
        msgspec.structs.replace(EUROPEAN, attributes={}),
        msgspec.structs.replace(EUROPEAN, is_owner=True),
    ]
    found = [fingerprint(each) for each in replaced]
    found += [fingerprint(EUROPEAN, acl_scope=acl_scope) for acl_scope in ((), ("group:ops",), ("group:ops", "group:legal"))]
    found += [fingerprint(EUROPEAN, rules=rules) for rules in ((), (RULE, "FALSE"), ("extra.level = 1",), ("extra.level = true",))]

    assert len(found) == len(set(found))


# --- tightening never admits more ---

GROUPS, ROLES, USERS = ("ops", "legal"), ("pilot", "auditor"), ("ann", "bob")
ENTRIES = (*(f"group:{each}" for each in GROUPS), *(f"role:{each}" for each in ROLES), *(f"user:{each}" for each in USERS))
RULES = (
    "TRUE", "FALSE", 'language = "en"', 'extra.region = "$caller.region"', 'NOT extra.region = "$caller.region"',
    'tags contains "open" OR extra.team = "$caller.team"', 'classification <= "$caller.ceiling"',
)  # fmt: skip
acls = st.lists(st.sampled_from(ENTRIES), unique=True).map(lambda entries: tuple(sorted(entries)))
access_rules = st.builds(
    AccessRule, tenant=st.sampled_from(["default", "other"]).map(TenantId), classification=st.sampled_from(Classification), acl=acls
)
principals = st.builds(
    Principal,
    principal_id=st.sampled_from(USERS).map(PrincipalId),
    tenant=st.sampled_from(["default", "other"]).map(TenantId),
    clearance=st.sampled_from(Classification),
    roles=st.lists(st.sampled_from(ROLES), unique=True).map(tuple),
    groups=st.lists(st.sampled_from(GROUPS), unique=True).map(tuple),
    attributes=st.dictionaries(st.sampled_from(["region", "team", "ceiling"]), st.sampled_from(["eu", "us", "ops", "internal"])),
    is_owner=st.booleans(),
)
acl_scopes = st.none() | acls
rule_texts = st.lists(st.sampled_from(RULES), max_size=2).map(tuple)


@given(access_rules, principals, acl_scopes, rule_texts, st.sampled_from(Classification))
def test_raising_the_classification_admits_no_one_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...], level: Classification
) -> None:
    raised = msgspec.structs.replace(rule, classification=max(rule.classification, level, key=lambda each: each.rank))

    assert allows(raised, caller, acl_scope=acl_scope, rules=rules) <= allows(rule, caller, acl_scope=acl_scope, rules=rules)


@given(access_rules, principals, acl_scopes, rule_texts, acls.filter(bool))
def test_adding_an_acl_admits_no_one_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...], acl: tuple[str, ...]
) -> None:
    without = msgspec.structs.replace(rule, acl=())
    closed = msgspec.structs.replace(rule, acl=acl)

    assert allows(closed, caller, acl_scope=acl_scope, rules=rules) <= allows(without, caller, acl_scope=acl_scope, rules=rules)


@given(access_rules, principals, acl_scopes, rule_texts, st.sampled_from(ENTRIES))
def test_striking_an_entry_from_an_acl_that_keeps_others_admits_no_one_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...], entry: str
) -> None:
    longer = msgspec.structs.replace(rule, acl=tuple(sorted({*rule.acl, entry, "user:cid"})))
    shorter = msgspec.structs.replace(rule, acl=tuple(each for each in longer.acl if each != entry))

    assert allows(shorter, caller, acl_scope=acl_scope, rules=rules) <= allows(longer, caller, acl_scope=acl_scope, rules=rules)


@given(access_rules, principals, acl_scopes, rule_texts, st.sampled_from(Classification))
def test_lowering_a_clearance_admits_to_nothing_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...], level: Classification
) -> None:
    lowered = msgspec.structs.replace(caller, clearance=min(caller.clearance, level, key=lambda each: each.rank))

    assert allows(rule, lowered, acl_scope=acl_scope, rules=rules) <= allows(rule, caller, acl_scope=acl_scope, rules=rules)


@given(access_rules, principals, acl_scopes, rule_texts)
def test_leaving_a_group_or_a_role_or_ownership_admits_to_nothing_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...]
) -> None:
    before = allows(rule, caller, acl_scope=acl_scope, rules=rules)
    for change in ({"groups": caller.groups[1:]}, {"roles": caller.roles[1:]}, {"is_owner": False}):
        assert allows(rule, msgspec.structs.replace(caller, **change), acl_scope=acl_scope, rules=rules) <= before


@given(access_rules, principals, acl_scopes, rule_texts, st.sampled_from(RULES))
def test_adding_a_rule_admits_no_one_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...], added: str
) -> None:
    more = (*rules, added)

    assert allows(rule, caller, acl_scope=acl_scope, rules=more) <= allows(rule, caller, acl_scope=acl_scope, rules=rules)


@given(access_rules, principals, acls, rule_texts)
def test_narrowing_the_scope_admits_to_nothing_else(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...], rules: tuple[str, ...]
) -> None:
    wide = allows(rule, caller, rules=rules)
    narrow = allows(rule, caller, acl_scope=acl_scope, rules=rules)

    assert narrow <= wide
    assert allows(rule, caller, acl_scope=acl_scope[1:], rules=rules) <= narrow


@given(access_rules, principals, acl_scopes, rule_texts)
def test_equal_fingerprints_see_the_same(
    rule: AccessRule, caller: Principal, acl_scope: tuple[str, ...] | None, rules: tuple[str, ...]
) -> None:
    twin = msgspec.structs.replace(
        caller, groups=caller.groups[::-1], roles=caller.roles * 2, attributes={**caller.attributes, "unused": "x"}
    )

    assert fingerprint(caller, acl_scope=acl_scope, rules=rules) == fingerprint(twin, acl_scope=acl_scope, rules=rules)
    assert allows(rule, caller, acl_scope=acl_scope, rules=rules) == allows(rule, twin, acl_scope=acl_scope, rules=rules)
    assert entries_of(caller) == entries_of(twin)
