"""Whether patterns have names in common is decided, not guessed."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.policy.analysis_scopes import UndecidedError, find_name

PATTERNS = st.text("ab*?", min_size=1, max_size=5) | st.sampled_from(["[ab]*", "[!a]?", "*[a-b]", "a[", "[]a]", "[!]]*"])


def both(matches: tuple[bool, ...]) -> bool:
    return all(matches)


def only_first(matches: tuple[bool, ...]) -> bool:
    return matches[0] and not any(matches[1:])


@pytest.mark.parametrize(
    ("patterns", "name"),
    [
        (["rag-*", "*-agent"], "rag-agent"),
        (["rag-agent", "rag-*"], "rag-agent"),
        (["a*b*c", "*bb*"], "abbc"),
        (["[!x]*", "x*"], None),
        (["rag-?", "rag-??"], None),
        (["Rag", "rag"], None),
    ],
)
def test_common_name_is_found_or_there_is_none(patterns: list[str], name: str | None) -> None:
    assert name == find_name(patterns, both)


@pytest.mark.parametrize(
    ("narrow", "wide", "is_covered"),
    [("rag-*", "*", True), ("rag-*", "r*", True), ("rag-*", "rag-?*", False), ("rag", "rag", True), ("[ab]", "[a-c]", True)],
)
def test_pattern_is_covered_when_no_name_is_left(narrow: str, wide: str, is_covered: bool) -> None:  # noqa: FBT001 - a column
    assert is_covered == (find_name([narrow, wide], only_first) is None)


@given(st.lists(PATTERNS, min_size=2, max_size=3), st.sampled_from([both, only_first]))
def test_search_agrees_with_trying_all_short_names(patterns: list[str], wanted: object) -> None:
    assert callable(wanted)
    found = find_name(patterns, wanted)

    def holds(name: str) -> bool:
        return bool(wanted(tuple(fnmatchcase(name, pattern) for pattern in patterns)))

    if found is None:
        assert [] == [name for size in range(1, 5) for name in map("".join, product("abx[]", repeat=size)) if holds(name)]
    else:
        assert holds(found)


def test_product_that_grows_too_large_is_undecided() -> None:
    patterns = [f"*{letter}*a??????????*" for letter in "bcdefg"]

    with pytest.raises(UndecidedError):
        find_name([*patterns, "z"], both)
