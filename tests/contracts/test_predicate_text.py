"""The text form of filters: reading, writing, and saying where a text goes wrong."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from predicate_strategies import predicate_trees

from evidentia.contracts import predicates
from evidentia.contracts.errors import FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_text import KEYWORDS, MAX_TEXT_CHARS, parse, render
from evidentia.contracts.predicate_values import Number, Value
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or, Predicate
from soak import cases

CHARACTERS = st.characters(exclude_categories=["Cs"])
FIELDS = st.one_of(
    st.sampled_from(["language", "extra.due-date", "tags", *sorted(KEYWORDS), "AND", "a.", "`", "a``b", "-1"]),
    st.text(CHARACTERS, min_size=1, max_size=6),
)
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.text(CHARACTERS, max_size=6),
    st.sampled_from(['"', "\\", "\n", "\u2028", "true", "1"]),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.booleans(),
    st.from_regex(r"\A-?[0-9]{1,9}\.[0-9]{1,9}\Z").map(Number),
)
TREES = predicate_trees(FIELDS, VALUES)
EXAMPLE = 'authority_tier >= "curated" AND language = "en" AND updated_at > "2024-01-01"'
VALID = (
    EXAMPLE,
    'NOT (a in ("x", 1, 2.50) OR `b c` not in ()) AND tags contains "\\u00e9\\n" OR d not exists',
    "true AND NOT false OR a = -1",
)

a, b, c = Exists("a"), Exists("b"), Exists("c")


def without_single_clauses(tree: Predicate) -> Predicate:
    match tree:
        case And((clause,)) | Or((clause,)):
            return without_single_clauses(clause)
        case And(clauses):
            return And(tuple(map(without_single_clauses, clauses)))
        case Or(clauses):
            return Or(tuple(map(without_single_clauses, clauses)))
        case Not(clause):
            return Not(without_single_clauses(clause))
        case _:
            return tree


def refusal_of(text: str) -> FilterSyntaxError:
    with pytest.raises(FilterSyntaxError) as refusal:
        parse(text)
    return refusal.value


def parse_or_refuse(text: str) -> None:
    """Fail on any exception but the one that is promised."""
    refusal: FilterSyntaxError | None = None
    try:
        tree = parse(text)
    except FilterSyntaxError as error:
        refusal = error

    if refusal is None:
        assert tree == parse(render(tree))
    else:
        assert 1 <= refusal.column <= len(text) + 1
        str(refusal).encode()


def test_the_example_of_the_specification_reads_as_it_says() -> None:
    expected = And((Compare("authority_tier", ">=", "curated"), Compare("language", "=", "en"), Compare("updated_at", ">", "2024-01-01")))

    assert expected == parse(EXAMPLE)
    assert render(expected) == EXAMPLE


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a exists or b exists and c exists", Or((a, And((b, c))))),
        ("(a exists or b exists) and c exists", And((Or((a, b)), c))),
        ("not a exists and b exists", And((Not(a), b))),
        ("NOT (a exists AND b exists)", Not(And((a, b)))),
        ("not not a exists", Not(Not(a))),
        ("a exists and (b exists and c exists)", And((a, And((b, c))))),
        ("((a exists))", a),
        ("TRUE", And(())),
        ("False", Or(())),
    ],
)
def test_not_binds_tightest_then_and_then_or(text: str, tree: Predicate) -> None:
    assert tree == parse(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('a="x"', Compare("a", "=", "x")),
        ('a Contains "x"', Contains("a", "x")),
        ('a IN ("x","y")', In("a", ("x", "y"))),
        ('a Not In ("x")', NotIn("a", ("x",))),
        ("a in ()", In("a", ())),
        ("a not exists", Not(a)),
        ("extra.due-date exists", Exists("extra.due-date")),
        ("`and` exists", Exists("and")),
        ("`due date``s` exists", Exists("due date`s")),
        (r'a = "say \"hi\" \\ \u00e9\ud83d\ude00"', Compare("a", "=", 'say "hi" \\ é😀')),
        ('a = "two\nlines"', Compare("a", "=", "two\nlines")),
    ],
)
def test_each_condition_reads(text: str, tree: Predicate) -> None:
    assert tree == parse(text)


@pytest.mark.parametrize(
    ("text", "value"), [("-7", -7), ("007", 7), ("1.10", Number("1.10")), ("true", True), ("FALSE", False), ('"1"', "1")]
)
def test_each_value_keeps_its_type(text: str, value: Value) -> None:
    tree = parse(f"a = {text}")

    assert isinstance(tree, Compare)
    assert (type(value), value) == (type(tree.value), tree.value)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a field, NOT or '(', found the end"),
        ("a", 2, "expected an operator (= != < <= > >= in, not in, contains, exists), found the end"),
        ("a = en", 5, "expected a value, found 'en'; text stands in double quotes"),
        ("a = 'en'", 5, "expected a value, found '''; text stands in double quotes"),
        ("a == 1", 4, "expected a value, found '='"),
        ("a > 2024-01-01", 5, "expected a number, found '2024-01-01'; dates, versions and other text stand in double quotes"),
        ("a > 1.2.3", 5, "expected a number, found '1.2.3'"),
        ('a = "x', 5, 'expected a closing "'),
        ("`a", 1, "expected a closing `"),
        (r'a = "x\q"', 7, "escapes of JSON"),
        (r'a = "\ud800"', 5, "unpaired surrogate"),
        ("a = 9007199254740992", 5, "an integer lies between"),
        ("a in (1 2)", 9, "expected ',' or ')', found '2'"),
        ("a in (1,", 9, "expected a value, found the end"),
        ("a in 1", 6, "expected '('"),
        ("a not b", 7, "expected 'in' or 'exists', found 'b'"),
        ("(a exists", 10, "expected AND, OR or ')', found the end"),
        ("a exists)", 9, "expected AND, OR or the end, found ')'"),
        ("a exists b exists", 10, "expected AND, OR or the end, found 'b'"),
        ("and exists", 1, "stands in backticks"),
        ("é = 1", 1, "stands in backticks"),
        ("😀", 1, "found '😀'"),
    ],
)
def test_a_refusal_points_at_the_column_and_says_what_was_expected(text: str, column: int, problem: str) -> None:
    refusal = refusal_of(text)

    assert column == refusal.column
    assert text == refusal.text
    assert problem in str(refusal)


@given(TREES)
@settings(max_examples=cases(66, of=200), deadline=None)
@example(Compare("extra.x", "=", 'quote " backslash \\ end'))
@example(Not(And((Or((Exists("not"),)),))))
def test_reading_undoes_writing(tree: Predicate) -> None:
    read = parse(render(tree))

    assert without_single_clauses(tree) == read
    assert repr(without_single_clauses(tree)) == repr(read)  # equality alone would not see True become 1
    assert render(tree) == render(read)


@given(st.one_of(st.text(max_size=30), st.text(st.sampled_from('aé"`\\()=!<>,.-1 \n\ud800'), max_size=30)))
@settings(max_examples=cases(83, of=250), deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    parse_or_refuse(text)


TOKENS = ["(", ")", ",", "=", "!=", "and", "OR", "not", "in", "contains", "exists", "true", "a", "`b`", '"x"', "1", "2.5", '"', "`", "\\"]


@given(st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join))
@settings(max_examples=cases(66, of=200), deadline=None)
def test_any_run_of_tokens_is_read_or_refused(text: str) -> None:
    parse_or_refuse(text)


@given(st.sampled_from(VALID), st.integers(0, 100), st.integers(0, 4), st.text(max_size=3))
@settings(max_examples=cases(83, of=250), deadline=None)
def test_any_damaged_filter_is_read_or_refused(valid: str, start: int, length: int, patch: str) -> None:
    start %= len(valid)
    parse_or_refuse(valid[:start] + patch + valid[start + length :])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(" * 100_000, "nested at most 64 deep"),
        ("(" * 65 + "a exists" + ")" * 65, "nested at most 64 deep"),
        ("not " * 100_000 + "a exists", "nested at most 64 deep"),
        ("a exists or b exists and (" * 40 + "c exists" + ")" * 40, "nested more than 64 deep"),
        (" and ".join(["a exists"] * 1025), "at most 1024 parts"),
        (" and ".join(["a exists"] * 1024), "more than 1024 parts"),
        ("a in (" + "1," * 5000 + "1)", "at most 4096 values"),
        ('a = "' + "x" * 100_001 + '"', "more than 100000 characters"),
        ("`" + "x" * 300 + "` exists", "1 to 256 characters"),
        (" " * (MAX_TEXT_CHARS + 1), "at most 1000000 characters"),
        ("a = " + "9" * 100_000, "expected a number"),
        ("a = 1." + "9" * 100_000, "expected a number"),
        ('"' * 100_000, "expected a field"),
        ("a = " + '"\\' * 50_000, "expected a closing"),
    ],
    ids=lambda parameter: parameter[:12],
)
def test_hostile_texts_are_refused_at_once(text: str, problem: str) -> None:
    assert problem in str(refusal_of(text))


def test_the_deepest_filters_allowed_round_trip() -> None:
    tree: Predicate = a
    for depth in range(predicates.MAX_DEPTH - 1):
        tree = (Not(tree), And((tree, b)), Or((tree, c)))[depth % 3]

    assert tree == parse(render(tree))
    assert a == parse("(" * 64 + "a exists" + ")" * 64)


def test_a_tree_at_every_size_limit_fits_into_a_text() -> None:
    many = In("a", ("\x01" * 48_000, *(["\x01"] * (predicates.MAX_VALUES - 2))))
    tree = And((many, Compare("b", "=", "\x01" * 40_000), *([c] * 1000)))

    assert tree == parse(render(tree))


def test_a_tree_that_is_too_deep_is_not_written() -> None:
    tree: Predicate = a
    for _ in range(50_000):
        tree = Not(tree)

    with pytest.raises(InvalidFieldError, match="nested more than 64 deep"):
        render(tree)
