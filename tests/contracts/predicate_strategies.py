"""Random filter trees over given fields and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or

if TYPE_CHECKING:
    from evidentia.contracts.predicate_values import Value
    from evidentia.contracts.predicates import Operator, Predicate

OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")


def predicate_trees(fields: st.SearchStrategy[str], values: st.SearchStrategy[Value]) -> st.SearchStrategy[Predicate]:
    """Return trees of AND, OR and NOT over every kind of comparison."""
    lists = st.lists(values, max_size=3).map(tuple)
    atoms: st.SearchStrategy[Predicate] = st.one_of(
        st.builds(Compare, fields, st.sampled_from(OPERATORS), values),
        st.builds(In, fields, lists),
        st.builds(NotIn, fields, lists),
        st.builds(Contains, fields, values),
        st.builds(Exists, fields),
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda clauses: And(tuple(clauses))),
            st.lists(inner, max_size=3).map(lambda clauses: Or(tuple(clauses))),
            inner.map(Not),
        ),
        max_leaves=8,
    )
