"""The one filter tree: what a filter is, whether a record passes it, and its conjunctive normal form.

Truth has two values. A field that is missing, or whose value cannot be read, makes every comparison false, `!=` and `not in`
included; `exists` tells whether it is there, and NOT flips whatever it holds. The text form lives in `predicate_text`.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from evidentia.contracts.canonical import SAFE_INTEGER, encode_struct, has_utf8
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.predicate_values import (
    FREE,
    MAX_NUMBER_CHARS,
    METADATA_FIELDS,
    FieldKind,
    Key,
    Number,
    Value,
    is_fraction,
    kind_for,
    kind_of,
)

MAX_DEPTH: Final = 64
MAX_NODES: Final = 1024
MAX_VALUES: Final = 4096
MAX_NAME_CHARS: Final = 256
MAX_CHARS: Final = 100_000
"""The most characters that the names and values of one filter hold together."""
MAX_CNF_CLAUSES: Final = 1024
MAX_CNF_LITERALS: Final = 16_384

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


class _Node(msgspec.Struct, frozen=True, tag_field="op", forbid_unknown_fields=True):
    """What every part of the tree shares: it never changes, and `op` names it in JSON."""


class And(_Node, tag="and", frozen=True):
    """Every clause holds; without clauses it always holds."""

    clauses: tuple[Predicate, ...]


class Or(_Node, tag="or", frozen=True):
    """At least one clause holds; without clauses it never holds."""

    clauses: tuple[Predicate, ...]


class Not(_Node, tag="not", frozen=True):
    """The clause does not hold; true also where the clause is false because its field is missing."""

    clause: Predicate


class Compare(_Node, tag="compare", frozen=True):
    """The field is there and stands in this relation to the value; for a set, `=` asks for a member and `!=` for none."""

    field: str
    operator: Operator
    value: Value


class In(_Node, tag="in", frozen=True):
    """The field, or a member of the set, equals one of the values."""

    field: str
    values: tuple[Value, ...]


class NotIn(_Node, tag="not_in", frozen=True):
    """The field is there and equals none of the values; of a set, no member does."""

    field: str
    values: tuple[Value, ...]


class Contains(_Node, tag="contains", frozen=True):
    """The set has this member, or the text has this part, case-sensitively."""

    field: str
    value: Value


class Exists(_Node, tag="exists", frozen=True):
    """The field has a value, readable or not; an empty set is no value."""

    field: str


Atom: TypeAlias = Compare | In | NotIn | Contains | Exists
Predicate: TypeAlias = And | Or | Not | Compare | In | NotIn | Contains | Exists
Matcher: TypeAlias = Callable[[Mapping[str, object]], bool]


def matches(predicate: Predicate, record: Mapping[str, object], *, fields: Mapping[str, FieldKind] = METADATA_FIELDS) -> bool:
    """Whether the record passes; for many records, take `matcher_of` once."""
    return matcher_of(predicate, fields=fields)(record)


def matcher_of(predicate: Predicate, *, fields: Mapping[str, FieldKind] = METADATA_FIELDS) -> Matcher:
    """Return the predicate as a function of a record; literals are read once, here.

    The function never raises: what `check_fields` would refuse is a comparison that is false. A name that `fields` does not know
    is read as a free field. `extra.owner` is found under that key, or as `owner` in the mapping under `extra`.
    """
    check_limits(predicate)
    return _compile(predicate, fields)


def check_fields(predicate: Predicate, *, fields: Mapping[str, FieldKind] = METADATA_FIELDS) -> None:
    """Raise InvalidFieldError for an unknown field, a value its field cannot hold, or an operator its kind does not take."""
    check_limits(predicate)
    for node in _walk(predicate):
        if not isinstance(node, (And, Or, Not)):
            _check_atom(node, fields)


def check_limits(predicate: Predicate) -> None:
    """Raise InvalidFieldError for a tree that is too deep or too large, or holds what has no canonical form."""
    nodes = values = chars = 0
    for node in _walk(predicate):
        nodes += 1
        _refuse_over(nodes, MAX_NODES, "parts")
        if isinstance(node, (And, Or, Not)):
            continue
        literals = _values_of(node)
        values += len(literals)
        chars += len(node.field) + sum(len(value) for value in literals if isinstance(value, str))
        _refuse_over(values, MAX_VALUES, "values")
        _refuse_over(chars, MAX_CHARS, "characters")
        _check_name(node.field)
        for value in literals:
            _check_value(node.field, value)


def count_parts(predicate: Predicate) -> int:
    """Return how many nodes and values a tree has."""
    return sum(1 if isinstance(node, (And, Or, Not)) else 1 + len(_values_of(node)) for node in _walk(predicate))


def fields_of(predicate: Predicate) -> tuple[str, ...]:
    """Return the names of the fields the predicate reads, sorted."""
    return tuple(sorted({node.field for node in _walk(predicate) if not isinstance(node, (And, Or, Not))}))


def to_cnf(predicate: Predicate) -> tuple[tuple[Atom | Not, ...], ...]:
    """Return an equivalent conjunction of disjunctions of literals, a literal being an atom or the Not of one.

    No clauses is "always", an empty clause is "never". Sorted, without duplicates and without clauses that hold both a literal and
    its opposite. Raises InvalidFieldError above MAX_CNF_CLAUSES clauses or MAX_CNF_LITERALS literals, also in between.
    """
    check_limits(predicate)
    atoms = {encode_struct(node): node for node in _walk(predicate) if not isinstance(node, (And, Or, Not))}
    clauses = sorted(tuple(sorted(clause)) for clause in _clauses(predicate, is_negated=False))
    return tuple(tuple(Not(atoms[name]) if is_negated else atoms[name] for name, is_negated in clause) for clause in clauses)


def _walk(predicate: Predicate) -> Iterator[Predicate]:
    """Yield every node, parents first; a stack of our own, so that depth is a refusal and never a RecursionError."""
    pending: list[tuple[Predicate, int]] = [(predicate, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise InvalidFieldError("filter", f"is nested more than {MAX_DEPTH} deep")
        yield node
        match node:
            case And(clauses) | Or(clauses):
                pending.extend((clause, depth + 1) for clause in reversed(clauses))
            case Not(clause):
                pending.append((clause, depth + 1))


def _values_of(atom: Atom) -> tuple[Value, ...]:
    match atom:
        case Compare(value=value) | Contains(value=value):
            return (value,)
        case In(values=values) | NotIn(values=values):
            return values
        case Exists():
            return ()


# --- limits and fields ---


def _check_name(field: str) -> None:
    if not field or len(field) > MAX_NAME_CHARS:
        raise InvalidFieldError(_shown(field), f"a name has 1 to {MAX_NAME_CHARS} characters")
    if not has_utf8(field):
        raise InvalidFieldError(_shown(field), "the name holds an unpaired surrogate")


def _check_value(field: str, value: Value) -> None:
    if isinstance(value, str):
        if not has_utf8(value):
            raise InvalidFieldError(field, f"'{_shown(value)}' holds an unpaired surrogate")
    elif isinstance(value, Number):
        if not is_fraction(value.number):
            raise InvalidFieldError(field, f"'{_shown(value.number)}' is not a decimal fraction of up to {MAX_NUMBER_CHARS} characters")
    elif not isinstance(value, int):
        raise InvalidFieldError(field, f"'{_shown(value)}' is not text, an integer, a Number, true or false")
    elif abs(value) > SAFE_INTEGER:
        raise InvalidFieldError(field, f"an integer lies between -{SAFE_INTEGER} and {SAFE_INTEGER}")


def _refuse_over(count: int, limit: int, things: str) -> None:
    if count > limit:
        raise InvalidFieldError("filter", f"holds more than {limit} {things}")


def _check_atom(atom: Atom, fields: Mapping[str, FieldKind]) -> None:
    declared = kind_of(atom.field, fields)
    if declared is None:
        raise InvalidFieldError(atom.field, f"is not a field of this filter; {_nearest(atom.field, fields)}")
    for value in _values_of(atom):
        kind = kind_for(declared, value)
        if kind.read(value) is None:
            raise InvalidFieldError(atom.field, f"'{_shown(value)}' is not {kind.expected}")
        if isinstance(atom, Contains) and not (kind.is_set or kind.has_substrings):
            raise InvalidFieldError(atom.field, f"'contains' needs text or a set of texts, and this is a {kind.name}")
        if isinstance(atom, Compare) and atom.operator not in ("=", "!=") and not kind.is_ordered:
            raise InvalidFieldError(atom.field, f"'{atom.operator}' needs an order, and a {kind.name} has none")


def _nearest(field: str, fields: Mapping[str, FieldKind]) -> str:
    """Say what was probably meant; all names where nothing comes near."""
    near = difflib.get_close_matches(field.lower(), sorted(fields), n=3)
    names = " or ".join(f"'{name}'" for name in near) if near else ", ".join(sorted(fields))
    return f"did you mean {names}?" if near else f"the fields are {names}"


def _shown(value: object) -> str:
    """Return a value for a message: short, and safe to print."""
    text = value.number if isinstance(value, Number) else str(value)
    return text[:80].encode("utf-8", "backslashreplace").decode()


# --- matching ---

_RELATIONS: Final[Mapping[str, Callable[[Key, Key], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compile(predicate: Predicate, fields: Mapping[str, FieldKind]) -> Matcher:
    match predicate:
        case And(clauses):
            every = tuple(_compile(clause, fields) for clause in clauses)
            return lambda record: all(holds(record) for holds in every)
        case Or(clauses):
            some = tuple(_compile(clause, fields) for clause in clauses)
            return lambda record: any(holds(record) for holds in some)
        case Not(clause):
            inner = _compile(clause, fields)
            return lambda record: not inner(record)
        case _:
            return _compile_atom(predicate, kind_of(predicate.field, fields) or FREE)


def _compile_atom(atom: Atom, declared: FieldKind) -> Matcher:
    field = atom.field
    match atom:
        case Compare(operator=relation, value=value):
            test = _comparison(relation, value, kind_for(declared, value))
        case In(values=values):
            test = _membership(values, declared)
        case NotIn(values=values):
            test = _absence(values, declared)
        case Contains(value=value):
            test = _containment(value, kind_for(declared, value))
        case Exists():
            test = _is_present
    return lambda record: test(_stored(record, field))


def _stored(record: Mapping[str, object], field: str) -> object:
    value = record.get(field)
    if value is not None or "." not in field:
        return value
    group, _, name = field.partition(".")
    below = record.get(group)
    return below.get(name) if isinstance(below, Mapping) else None


def _is_present(stored: object) -> bool:
    return stored is not None and not (isinstance(stored, (list, tuple, set, frozenset)) and not stored)


def _never(_stored_value: object) -> bool:
    return False


def _comparison(relation: Operator, value: Value, kind: FieldKind) -> Callable[[object], bool]:
    key = kind.read(value)
    if key is None or (relation not in ("=", "!=") and not kind.is_ordered):
        return _never
    if relation == "!=":
        return lambda stored: bool(keys := kind.read_stored(stored)) and key not in keys
    holds = _RELATIONS[relation]
    return lambda stored: any(holds(found, key) for found in kind.read_stored(stored))


def _membership(values: Iterable[Value], declared: FieldKind) -> Callable[[object], bool]:
    wanted = _keys_by_kind(values, declared)
    return lambda stored: any(key in keys for kind, keys in wanted for key in kind.read_stored(stored))


def _absence(values: tuple[Value, ...], declared: FieldKind) -> Callable[[object], bool]:
    """Mean `!=` for every value, so one value that cannot be read, on either side, makes it false."""
    if not values:
        return _is_present
    if any(kind_for(declared, value).read(value) is None for value in values):
        return _never
    unwanted = _keys_by_kind(values, declared)
    return lambda stored: all((found := kind.read_stored(stored)) and keys.isdisjoint(found) for kind, keys in unwanted)


def _keys_by_kind(values: Iterable[Value], declared: FieldKind) -> tuple[tuple[FieldKind, frozenset[Key]], ...]:
    """Group the readable values, so that a long list costs one lookup for each record."""
    groups: dict[FieldKind, set[Key]] = {}
    for value in values:
        kind = kind_for(declared, value)
        key = kind.read(value)
        if key is not None:
            groups.setdefault(kind, set()).add(key)
    return tuple((kind, frozenset(keys)) for kind, keys in groups.items())


def _containment(value: Value, kind: FieldKind) -> Callable[[object], bool]:
    if not isinstance(value, str) or not (kind.is_set or kind.has_substrings):
        return _never
    if kind.is_set:
        return lambda stored: (value,) in kind.read_stored(stored)
    return lambda stored: isinstance(stored, str) and value in stored


# --- conjunctive normal form ---

# A literal is the canonical bytes of its atom and whether it is negated: Python holds 1 and True to be equal, the bytes do not.
_CnfLiteral: TypeAlias = tuple[bytes, bool]
_Clauses: TypeAlias = frozenset[frozenset[_CnfLiteral]]

_NEVER: Final[_Clauses] = frozenset({frozenset()})


def _clauses(predicate: Predicate, *, is_negated: bool) -> _Clauses:
    """Push NOT down by De Morgan's laws, which hold because truth has two values; then distribute OR over AND."""
    match predicate:
        case Not(clause):
            return _clauses(clause, is_negated=not is_negated)
        case And(clauses) | Or(clauses):
            parts = [_clauses(clause, is_negated=is_negated) for clause in clauses]
            return _conjunction(parts) if isinstance(predicate, And) != is_negated else _disjunction(parts)
        case _:
            return frozenset({frozenset({(encode_struct(predicate), is_negated)})})


def _conjunction(parts: Iterable[_Clauses]) -> _Clauses:
    together: _Clauses = frozenset().union(*parts)
    return _NEVER if frozenset() in together else _within_cap(together)


def _disjunction(parts: list[_Clauses]) -> _Clauses:
    """Distribute; parts of one clause are joined first, at once, so that a long plain OR costs its length."""
    plain = [clause for part in parts if len(part) == 1 for clause in part]
    product = _without_tautologies([frozenset().union(*plain)])
    for part in dict.fromkeys(part for part in parts if len(part) != 1):
        _check_cap(len(product) * len(part), literals=0)
        product = _within_cap(_without_tautologies(left | right for left in product for right in part))
    return product


def _without_tautologies(clauses: Iterable[frozenset[_CnfLiteral]]) -> _Clauses:
    return frozenset(clause for clause in clauses if not any((name, not is_negated) in clause for name, is_negated in clause))


def _within_cap(clauses: _Clauses) -> _Clauses:
    _check_cap(len(clauses), literals=sum(map(len, clauses)))
    return clauses


def _check_cap(clauses: int, *, literals: int) -> None:
    if clauses > MAX_CNF_CLAUSES or literals > MAX_CNF_LITERALS:
        limits = f"{MAX_CNF_CLAUSES} clauses or {MAX_CNF_LITERALS} literals"
        raise InvalidFieldError("filter", f"needs more than {limits} in conjunctive normal form")
