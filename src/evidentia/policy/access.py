"""Access control of documents by attributes (ABAC): may this caller see this document? One rule, compiled once and decided purely.

    allowed(d, c) = d.tenant = c.tenant  and  d.classification <= c.clearance  and  acl(d, c)  and  every rule over (c, d)

An empty ACL asks nothing; otherwise one of its entries must be the caller's. The owner of a local base has every
clearance and stands in every ACL, and is still confined to a tenant. Whatever is unknown is denied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.canonical import hash_record
from evidentia.contracts.errors import EvidentiaError, FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_text import parse, render
from evidentia.contracts.predicate_values import FREE, kind_for
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or, check_fields, fields_of, matcher_of
from evidentia.contracts.search import AccessScope
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.predicate_values import Value
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.sources import SourceAccessPolicy

    Decider = Callable[[Mapping[str, str]], bool]


CALLER_PREFIX = "$caller."
NEVER = Or(clauses=())
"""The predicate that holds for nothing."""


def access_scope(principal: Principal, *, acl_scope: Iterable[str] | None, rules: Iterable[str]) -> AccessScope:
    """Return the scope of a caller: rights narrowed by `acl_scope`, rules with the caller's attributes put in."""
    narrowed = None if acl_scope is None else tuple(sorted(set(acl_scope)))
    compiled = () if principal.is_owner else tuple(_compiled(parse_rule(text), principal.attributes) for text in rules)
    fingerprint = _fingerprint(
        acl_scope=narrowed,
        clearance=principal.clearance,
        entries=entries_of(principal),
        is_owner=principal.is_owner,
        rules=tuple(render(rule) for rule in compiled),
        tenant=principal.tenant,
    )
    return AccessScope(principal=principal, acl_scope=narrowed, rules=compiled, fingerprint=fingerprint)


def is_allowed(rule: AccessRule, scope: AccessScope) -> bool:
    """Tell whether a document's access rule admits the caller; `AccessScope.rules` are for callers that have the metadata."""
    caller = scope.principal
    if rule.tenant != caller.tenant or rule.classification.rank > caller.clearance.rank:
        return False
    if not rule.acl:
        return True
    if caller.is_owner and scope.acl_scope is None:
        return True
    held = set(entries_of(caller))
    if scope.acl_scope is not None:
        wanted = set(scope.acl_scope)
        held = wanted if caller.is_owner else held & wanted
    return not held.isdisjoint(rule.acl)


def entries_of(principal: Principal) -> tuple[str, ...]:
    """Return the ACL entries a caller matches."""
    roles = [f"role:{role}" for role in principal.roles]
    groups = [f"group:{group}" for group in principal.groups]
    return tuple(sorted({f"user:{principal.principal_id}", *roles, *groups}))


def owner_digest(principal: Principal) -> str:
    """Return what says whose something is that a principal began; empty for the local owner, whose is what nobody else's is."""
    return "" if principal.is_owner else hash_record(msgspec.to_builtins(principal))


@lru_cache(maxsize=256, typed=True)
def _fingerprint(
    *,
    acl_scope: tuple[str, ...] | None,
    clearance: Classification,
    entries: tuple[str, ...],
    is_owner: bool,
    rules: tuple[str, ...],
    tenant: str,
) -> Sha256:
    """Return the hash of all that decides what a caller sees; the same few callers ask again and again."""
    record = {
        "acl_scope": None if acl_scope is None else list(acl_scope),
        "clearance": clearance,
        "entries": list(entries),
        "is_owner": is_owner,
        "rules": list(rules),
        "tenant": tenant,
    }
    return hash_record(record)


@lru_cache(maxsize=256)
def parse_rule(text: str) -> Predicate:
    """Return an access rule from its text form, naming the setting when it is wrong; every request asks for the same few."""
    try:
        rule = parse(text)
        check_fields(_without_callers(rule))
    except EvidentiaError as error:
        raise InvalidFieldError("access.rules", f"'{text}' is not a rule: {error}") from error
    return rule


def bind_rule(rule: Predicate, attributes: Mapping[str, str]) -> Predicate:
    """Put the caller's attributes where a rule asks for them; a comparison with an attribute the caller lacks never holds.

    Under NOT such a comparison must not begin to hold, so the whole NOT is denied instead.
    """
    if isinstance(rule, And | Or):
        return msgspec.structs.replace(rule, clauses=tuple(bind_rule(clause, attributes) for clause in rule.clauses))
    if _lacks(rule, attributes):
        return NEVER
    if isinstance(rule, Not):
        return Not(clause=bind_rule(rule.clause, attributes))
    if isinstance(rule, Compare | Contains):
        return msgspec.structs.replace(rule, value=_bound(rule.value, attributes))
    if isinstance(rule, In | NotIn):
        return msgspec.structs.replace(rule, values=tuple(_bound(value, attributes) for value in rule.values))
    return rule


def _without_callers(rule: Predicate) -> Predicate:
    """Return a rule in which what depends on the caller asks only for the field, so that all else can be checked."""
    if isinstance(rule, And | Or):
        return msgspec.structs.replace(rule, clauses=tuple(_without_callers(clause) for clause in rule.clauses))
    if isinstance(rule, Not):
        return Not(clause=_without_callers(rule.clause))
    return Exists(rule.field) if _lacks(rule, {}) else rule


def _compiled(rule: Predicate, attributes: Mapping[str, str]) -> Predicate:
    bound = bind_rule(rule, attributes)
    try:
        check_fields(bound)
    except InvalidFieldError:  # an attribute that is no value of the field: nothing can be known, so nothing is allowed
        return NEVER
    return bound


def _lacks(rule: Predicate, attributes: Mapping[str, str]) -> bool:
    if isinstance(rule, And | Or):
        return any(_lacks(clause, attributes) for clause in rule.clauses)
    if isinstance(rule, Not):
        return _lacks(rule.clause, attributes)
    if isinstance(rule, Compare | Contains):
        return _is_missing(rule.value, attributes)
    if isinstance(rule, In | NotIn):
        return any(_is_missing(value, attributes) for value in rule.values)
    return False


def _is_missing(value: Value, attributes: Mapping[str, str]) -> bool:
    return isinstance(value, str) and value.startswith(CALLER_PREFIX) and value.removeprefix(CALLER_PREFIX) not in attributes


def _bound(value: Value, attributes: Mapping[str, str]) -> Value:
    if isinstance(value, str) and value.startswith(CALLER_PREFIX):
        return attributes[value.removeprefix(CALLER_PREFIX)]
    return value


# --- source access ---
# May this caller ask this source at all? Decided purely from the source's policy and the caller's scope.
#
# may_ask(p, c) = c.tenant in p.tenants and p.minimum_clearance <= c.clearance and listed(p, c) and p.predicate over c
#
# Lists that are empty ask nothing; of those that are not, the caller has to be in one. The owner of a local base stands in every list and
# outside the predicate, and is still confined to a tenant and to a clearance. Whatever is unknown is denied.

_RANKS: Final[Mapping[str, int]] = {level: level.rank for level in Classification}
_HIGHEST: Final = max(_RANKS.values())


def may_ask(policy: SourceAccessPolicy, scope: AccessScope) -> bool:
    """Tell whether a source's policy lets the caller ask it; what it then returns is judged by rules of its own."""
    caller = scope.principal
    if caller.tenant not in policy.tenants:
        return False
    if _RANKS.get(policy.minimum_clearance, _HIGHEST + 1) > _RANKS.get(caller.clearance, -1):
        return False
    if not _is_listed(policy, scope):
        return False
    return caller.is_owner or not policy.predicate or _decider(policy.predicate)(caller.attributes)


def _is_listed(policy: SourceAccessPolicy, scope: AccessScope) -> bool:
    """Tell whether one of the caller's entries, as far as `acl_scope` keeps them, is on one of the lists."""
    if not (policy.roles or policy.groups or policy.principals):
        return True
    listed = {
        *(f"role:{role}" for role in policy.roles),
        *(f"group:{group}" for group in policy.groups),
        *(f"user:{principal}" for principal in policy.principals),
    }
    caller = scope.principal
    kept = listed if scope.acl_scope is None else listed.intersection(scope.acl_scope)
    return bool(kept) if caller.is_owner else not kept.isdisjoint(entries_of(caller))


@lru_cache(maxsize=256)
def _decider(text: str) -> Decider:
    """Return a predicate as a function of a caller's attributes; one that cannot be read, or compared, admits no caller."""
    try:
        predicate = parse(text)
        check_fields(predicate, fields=dict.fromkeys(fields_of(predicate), FREE))
    except (FilterSyntaxError, InvalidFieldError):
        return lambda _attributes: False
    return _decided(predicate)


def _decided(predicate: Predicate) -> Decider:
    """Return a part of a predicate as a function; a NOT that turns on something unknown is denied, elsewhere that is false already."""
    match predicate:
        case And(clauses):
            every = tuple(_decided(clause) for clause in clauses)
            return lambda attributes: all(holds(attributes) for holds in every)
        case Or(clauses):
            some = tuple(_decided(clause) for clause in clauses)
            return lambda attributes: any(holds(attributes) for holds in some)
        case Not(clause):
            denied = matcher_of(clause, fields={})
            return lambda attributes: not (_is_unknown(clause, attributes) or denied(attributes))
        case _:
            return matcher_of(predicate, fields={})


def _is_unknown(predicate: Predicate, attributes: Mapping[str, str]) -> bool:
    """Tell whether any comparison reads an attribute that the caller lacks, or that is no value of the kind compared with."""
    match predicate:
        case And(clauses) | Or(clauses):
            return any(_is_unknown(clause, attributes) for clause in clauses)
        case Not(clause):
            return _is_unknown(clause, attributes)
        case Exists():
            return False
        case Compare(field, _, value) | Contains(field, value):
            return _cannot_read(attributes, field, (value,))
        case In(field, values) | NotIn(field, values):
            return _cannot_read(attributes, field, values)


def _cannot_read(attributes: Mapping[str, str], field: str, literals: tuple[Value, ...]) -> bool:
    stated = attributes.get(field)
    return stated is None or any(kind_for(FREE, literal).read(stated) is None for literal in literals)
