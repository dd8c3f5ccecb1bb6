"""May this caller ask this source at all? Decided purely from the source's policy and the caller's scope.

    may_ask(p, c) = c.tenant in p.tenants  and  p.minimum_clearance <= c.clearance  and  listed(p, c)  and  p.predicate over c

Lists that are empty ask nothing; of those that are not, the caller has to be in one. The owner of a local base stands in every
list and outside the predicate, and is still confined to a tenant and to a clearance. Whatever is unknown is denied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicate_values import FREE, kind_for
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or, check_fields, fields_of, matcher_of
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import entries_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evidentia.contracts.predicates import Predicate, Value
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.sources import SourceAccessPolicy

    Decider = Callable[[Mapping[str, str]], bool]

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
    """Return a predicate as a function of a caller's attributes; one that cannot be read, or compared, lets nobody in."""
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
