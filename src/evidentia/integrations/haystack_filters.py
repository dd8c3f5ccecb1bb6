"""Filters as Haystack writes them, as the filter tree of a request.

What cannot be said in the tree is refused: a restriction that is not understood must not become none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.predicate_values import Number, Value
from evidentia.contracts.predicates import And, Compare, Exists, In, Not, Or, Predicate

META = "meta."


def predicate_of(filters: Mapping[str, object]) -> Predicate:
    """Return the tree of a filter; fields are those of Evidentia, with or without `meta.` before them.

    As in Haystack, `!=` and `not in` hold where the field is missing, and a comparison with None asks whether it is.
    """
    if "conditions" in filters:
        return _group(filters)
    for key in ("field", "operator", "value"):
        if key not in filters:
            raise InvalidFieldError("filters", f"a condition has no '{key}'")
    name, operator = str(filters["field"]).removeprefix(META), filters["operator"]
    compare = _COMPARISONS.get(operator) if isinstance(operator, str) else None
    if compare is None:
        raise InvalidFieldError("filters", f"operator '{operator}' is not one of {', '.join(_COMPARISONS)}")
    return compare(name, filters["value"])


def _group(filters: Mapping[str, object]) -> Predicate:
    conditions, operator = filters["conditions"], filters.get("operator")
    if not isinstance(conditions, list) or not all(isinstance(each, Mapping) for each in conditions):
        raise InvalidFieldError("filters", "'conditions' is not a list of conditions")
    clauses = tuple(predicate_of(each) for each in conditions)
    if operator == "AND":
        return And(clauses)
    if operator == "OR":
        return Or(clauses)
    if operator == "NOT":
        return Not(And(clauses))
    raise InvalidFieldError("filters", f"operator '{operator}' is not one of AND, OR, NOT")


def _equal(name: str, value: object) -> Predicate:
    return Not(Exists(name)) if value is None else Compare(name, "=", _value(value))


def _among(name: str, value: object) -> Predicate:
    if not isinstance(value, list):
        raise InvalidFieldError("filters", f"'in' and 'not in' need a list, got {type(value).__name__}")
    return In(name, tuple(_value(each) for each in value))


def _value(value: object) -> Value:
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return Number(repr(value))
    raise InvalidFieldError("filters", f"a value cannot be of type {type(value).__name__}; write it as a text or a number")


_COMPARISONS: Mapping[str, Callable[[str, object], Predicate]] = {
    "==": _equal,
    "!=": lambda name, value: Not(_equal(name, value)),
    ">": lambda name, value: Compare(name, ">", _value(value)),
    ">=": lambda name, value: Compare(name, ">=", _value(value)),
    "<": lambda name, value: Compare(name, "<", _value(value)),
    "<=": lambda name, value: Compare(name, "<=", _value(value)),
    "in": _among,
    "not in": lambda name, value: Not(_among(name, value)),
}
