"""The filter tree: what passes, what is refused, and its normal form."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predicate_strategies import OPERATORS, predicate_trees

from evidentia.contracts import predicates
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.predicate_values import METADATA_FIELDS, Number, Value
from evidentia.contracts.predicates import (
    And,
    Compare,
    Contains,
    Exists,
    In,
    Not,
    NotIn,
    Operator,
    Or,
    Predicate,
    check_fields,
    fields_of,
    matcher_of,
    matches,
    to_cnf,
)
from evidentia.contracts.vocabulary import AuthorityTier
from soak import cases

# Few fields and few values, so that random comparisons meet random records often; some values no kind can read.
WORDS = st.sampled_from(["curated", "USER", "canonical", "en", "1.10", "2024-01-01", "2024-01-01T01:00:00+01:00", "true", "", "10", "9"])
FIELDS = st.sampled_from(["authority_tier", "content_type", "language", "updated_at", "tags", "version", "extra.rank", "elsewhere"])
VALUES: st.SearchStrategy[Value] = st.one_of(WORDS, st.integers(-1, 10), st.booleans(), st.just(Number("1.10")), st.just(Number("9.5")))
LISTS = st.lists(VALUES, max_size=3).map(tuple)
TREES = predicate_trees(FIELDS, VALUES)
STORED = st.one_of(st.none(), WORDS, st.integers(-1, 10), st.booleans(), st.floats(), st.lists(WORDS, max_size=2), st.binary(max_size=1))
RECORDS = st.dictionaries(FIELDS, STORED, max_size=6)


def nested(depth: int) -> Predicate:
    tree: Predicate = Exists("author")
    for _ in range(depth - 1):
        tree = Not(tree)
    return tree


def holds(field: str, relation: Operator, value: Value, stored: object) -> bool:
    return matches(Compare(field, relation, value), {field: stored})


# --- truth ---


@pytest.mark.parametrize("record", [{}, {"author": None}])
@pytest.mark.parametrize(
    "atom",
    [
        *(Compare("author", operator, "ada") for operator in OPERATORS),
        In("author", ("ada",)),
        NotIn("author", ("ada",)),
        NotIn("author", ()),
        Contains("author", "ada"),
        Contains("author", ""),
    ],
)
def test_a_missing_field_makes_every_comparison_false(atom: Predicate, record: dict[str, object]) -> None:
    assert not matches(atom, record)
    assert matches(Not(atom), record)


def test_exists_tells_whether_a_field_is_there() -> None:
    assert matches(Exists("author"), {"author": ""})
    assert not matches(Exists("author"), {"author": None})
    assert not matches(Exists("tags"), {"tags": ()})
    assert matches(Exists("version"), {"version": "not a version"})


def test_a_stored_value_that_cannot_be_read_counts_as_missing_in_comparisons() -> None:
    assert not holds("version", "!=", "1.0", "draft")
    assert not holds("updated_at", ">", "2024-01-01", "yesterday")
    assert not matches(NotIn("authority_tier", ("user",)), {"authority_tier": "gold"})


def test_a_literal_that_cannot_be_read_makes_its_comparison_false() -> None:
    assert not holds("authority_tier", "!=", "gold", "user")
    assert not matches(NotIn("authority_tier", ("gold", "user")), {"authority_tier": "curated"})
    assert matches(In("authority_tier", ("gold", "user")), {"authority_tier": "user"})


@given(TREES, RECORDS)
@settings(max_examples=cases(40, of=120), deadline=None)
def test_matching_is_total_and_not_always_flips(tree: Predicate, record: dict[str, object]) -> None:
    assert matches(tree, record) is not matches(Not(tree), record)


@given(FIELDS, LISTS, RECORDS)
@settings(max_examples=cases(40, of=120), deadline=None)
def test_in_is_any_equal_and_not_in_is_every_unequal(field: str, values: tuple[Value, ...], record: dict[str, object]) -> None:
    equal = [matches(Compare(field, "=", value), record) for value in values]
    unequal = [matches(Compare(field, "!=", value), record) for value in values]

    assert any(equal) is matches(In(field, values), record)
    assert (all(unequal) and matches(Exists(field), record)) is matches(NotIn(field, values), record)


@given(st.sampled_from(sorted(METADATA_FIELDS)), VALUES, RECORDS)
@settings(max_examples=cases(40, of=120), deadline=None)
def test_an_ordered_value_is_below_equal_or_above_and_only_one_of_them(field: str, value: Value, record: dict[str, object]) -> None:
    found = {operator: matches(Compare(field, operator, value), record) for operator in OPERATORS}

    assert sum(found[operator] for operator in ("<", "=", ">")) <= 1
    assert not (found["<="] and found[">"])
    assert not (found["="] and found["!="])


# --- kinds ---


def test_ranked_words_compare_by_rank_and_in_any_case() -> None:
    assert holds("authority_tier", ">=", "curated", "canonical")  # by spelling, "canonical" comes first
    assert holds("authority_tier", ">=", "CURATED", AuthorityTier.CURATED)
    assert not holds("authority_tier", ">=", "curated", "user")
    assert holds("classification", "<", "restricted", "Public")


def test_text_compares_by_code_point_and_case() -> None:
    assert holds("language", "<", "a", "Z")
    assert not holds("language", "=", "en", "EN")
    assert holds("title", ">", "z", "é")
    assert matches(Contains("title", "Guide"), {"title": "The Guide"})
    assert not matches(Contains("title", "guide"), {"title": "The Guide"})


@pytest.mark.parametrize(
    ("stored", "relation", "literal"),
    [
        ("2024-01-01T01:00:00+01:00", "=", "2024-01-01"),
        ("2024-01-01T00:00:00.5Z", "<", "2024-01-01T00:00:00.51Z"),
        ("2024-01-01T00:00:00.50z", "=", "2024-01-01 00:00:00.5Z"),
        ("2023-12-31T23:59:60Z", "=", "2024-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+23:59", "<", "0001-01-01"),
        ("9999-12-31T23:59:59-23:59", ">", "9999-12-31T23:59:59Z"),
        ("2024-02-29", "<", "2024-02-29T00:00:00.000000000001Z"),
    ],
)
def test_times_compare_as_instants_whatever_their_offset(stored: str, relation: Operator, literal: str) -> None:
    assert holds("updated_at", relation, literal, stored)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))])))
@settings(max_examples=60)
def test_times_order_as_datetimes_do(left: datetime, right: datetime) -> None:
    assert (left < right) is holds("updated_at", "<", right.isoformat(), left.isoformat())
    assert (left == right) is holds("updated_at", "=", right.isoformat(), left)


def test_a_stored_date_is_its_first_instant() -> None:
    assert holds("created_at", "=", "2024-03-01T00:00:00Z", date(2024, 3, 1))


def test_versions_follow_the_precedence_of_semantic_versioning() -> None:
    rising = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"]
    rising += ["1.2", "1.10", "2", "2.0.0.1", "2024.01.05"]

    assert all(holds("version", "<", later, earlier) for earlier, later in itertools.combinations(rising, 2))
    assert not any(holds("version", "<", earlier, later) for earlier, later in itertools.combinations(rising, 2))


def test_versions_ignore_builds_missing_zeros_and_a_leading_v() -> None:
    assert holds("version", "=", "v1.0", "1.0.0+build.5")
    assert holds("version", "=", 2, "2.0.0")
    assert holds("version", ">", Number("1.9"), "1.10")
    assert not holds("version", "=", Number("1.10"), "1.1")


def test_a_set_is_asked_about_its_members() -> None:
    record = {"tags": ("draft", "ops")}

    assert matches(Contains("tags", "ops"), record)
    assert not matches(Contains("tags", "op"), record)
    assert matches(Compare("tags", "=", "ops"), record)
    assert not matches(Compare("tags", "!=", "ops"), record)
    assert matches(Compare("tags", "!=", "legal"), record)
    assert matches(In("tags", ("legal", "ops")), record)
    assert not matches(NotIn("tags", ("legal", "ops")), record)


def test_in_a_free_field_the_literal_decides_what_is_compared() -> None:
    assert holds("extra.pages", ">", 10, "9.5") is False
    assert holds("extra.pages", ">", "10", "9.5") is True
    assert holds("extra.pages", "=", Number("9.50"), "9.5")
    assert not holds("extra.pages", "=", "9.50", "9.5")
    assert holds("extra.reviewed", "=", True, "true")
    assert not holds("extra.pages", ">", 1, "many")


def test_numbers_compare_exactly() -> None:
    assert holds("extra.sum", "=", Number("0.1"), 0.1)
    assert holds("extra.sum", ">", Number("0.3"), 0.1 + 0.2)
    assert not holds("extra.sum", "!=", 1, float("nan"))


def test_free_fields_are_found_flat_or_below_extra() -> None:
    assert matches(Compare("extra.owner", "=", "ops"), {"extra.owner": "ops"})
    assert matches(Compare("extra.owner", "=", "ops"), {"extra": {"owner": "ops"}})
    assert not matches(Exists("extra.owner"), {"extra": "ops"})


# --- what is refused ---


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (Exists("authorty_tier"), "did you mean 'authority_tier'"),
        (Exists("Language"), "did you mean 'language'"),
        (Exists("zzzzzz"), "the fields are author, "),
        (Exists("extra."), "is not a field"),
        (Exists("language.code"), "is not a field"),
        (Compare("authority_tier", ">=", "gold"), "field 'authority_tier': 'gold' is not one of 'ephemeral', 'user'"),
        (In("content_type", ("code", "poem")), "'poem' is not one of"),
        (Compare("updated_at", ">", "2024-02-30"), "'2024-02-30' is not an RFC 3339 time"),
        (Compare("updated_at", ">", "2024-02-03T10:00:00"), "with an offset"),
        (Compare("updated_at", ">", 2024), "'2024' is not an RFC 3339 time"),
        (Compare("version", ">", "draft"), "'draft' is not a version"),
        (Compare("version", ">", "1" * 300), "is not a version"),
        (Compare("title", "=", 5), "'5' is not text in quotes"),
        (Compare("content_type", "<", "code"), "'<' needs an order"),
        (Compare("tags", ">=", "a"), "'>=' needs an order"),
        (Compare("extra.done", "<", True), "'<' needs an order"),
        (Contains("version", "1"), "'contains' needs text"),
        (Contains("extra.pages", 1), "'contains' needs text"),
        (Compare("extra.score", ">", Number("1e5")), "'1e5' is not a decimal fraction"),
        (Compare("extra.score", ">", 2**53), "an integer lies between"),
        (Compare("title", "=", "\ud800"), "unpaired surrogate"),
        (Exists(""), "a name has 1 to 256 characters"),
    ],
)
def test_a_refusal_names_the_field_and_the_value(predicate: Predicate, message: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        check_fields(And((Exists("title"), Not(predicate))))

    assert message in str(refusal.value)
    str(refusal.value).encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.5, None])
def test_floats_and_nulls_are_refused_by_name(value: object) -> None:
    # What types forbid can still arrive from code that is not checked.
    with pytest.raises(InvalidFieldError, match=str(value)):
        check_fields(Compare("extra.score", ">", value))  # type: ignore[arg-type]  # the point of the test


def test_what_passes_the_check_uses_every_declared_field() -> None:
    for field in METADATA_FIELDS:
        check_fields(Exists(field + "x" if field.endswith(".") else field))
    check_fields(And((Compare("authority_tier", ">=", "Curated"), NotIn("tags", ("x",)), Compare("extra.n", "<", Number("1.5")))))


def test_other_field_schemas_can_be_checked() -> None:
    with pytest.raises(InvalidFieldError, match="did you mean 'lang'"):
        check_fields(Exists("long"), fields={"lang": METADATA_FIELDS["language"]})


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (nested(predicates.MAX_DEPTH + 1), "nested more than 64 deep"),
        (nested(50_000), "nested more than 64 deep"),
        (And((Exists("author"),) * predicates.MAX_NODES), "more than 1024 parts"),
        (And((Or(()),) * predicates.MAX_NODES), "more than 1024 parts"),
        (In("author", ("a",) * (predicates.MAX_VALUES + 1)), "more than 4096 values"),
        (Compare("author", "=", "a" * predicates.MAX_CHARS), "more than 100000 characters"),
        (Exists("a" * 257), "a name has 1 to 256 characters"),
    ],
    ids=lambda parameter: parameter if isinstance(parameter, str) else "",
)
def test_hostile_trees_are_refused_and_never_exhaust_the_stack(tree: Predicate, message: str) -> None:
    for use in (check_fields, matcher_of, to_cnf):
        with pytest.raises(InvalidFieldError, match=message):
            use(tree)


def test_the_deepest_tree_allowed_works() -> None:
    tree = nested(predicates.MAX_DEPTH)

    check_fields(tree)
    assert matches(tree, {}) is True
    assert ((Not(Exists("author")),),) == to_cnf(tree)


# --- forms ---


@given(TREES)
@settings(max_examples=60, deadline=None)
def test_json_round_trips(tree: Predicate) -> None:
    decoded = msgspec.json.decode(msgspec.json.encode(tree), type=Predicate)

    assert tree == decoded
    assert repr(tree) == repr(decoded)  # equality alone would not see True become 1


def test_json_names_each_node_by_op_and_refuses_the_rest() -> None:
    text = b'{"op":"compare","field":"language","operator":"=","value":"en"}'

    assert Compare("language", "=", "en") == msgspec.json.decode(text, type=Predicate)
    for wrong in (text.replace(b'"="', b'"~"'), text.replace(b"compare", b"like"), text.replace(b'"en"', b"0.5"), text[:-1] + b',"x":1}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=Predicate)


def test_the_json_schema_holds_no_floats() -> None:
    schema = json.dumps(msgspec.json.schema(Predicate))

    assert '"discriminator": {"propertyName": "op"' in schema
    assert '"type": "number"' not in schema


def test_fields_are_listed_once_and_sorted() -> None:
    tree = Or((Exists("title"), Not(And((Exists("author"), Compare("title", "=", "x"))))))

    assert fields_of(tree) == ("author", "title")


@given(TREES, st.lists(RECORDS, min_size=1, max_size=4))
@settings(max_examples=cases(50, of=150), deadline=None)
def test_the_normal_form_is_equivalent(tree: Predicate, records: list[dict[str, object]]) -> None:
    normal = And(tuple(Or(clause) for clause in to_cnf(tree)))

    for record in records:
        assert matches(tree, record) is matches(normal, record)


@given(TREES)
@settings(max_examples=60, deadline=None)
def test_the_normal_form_is_sorted_flat_and_stable(tree: Predicate) -> None:
    clauses = to_cnf(tree)

    assert clauses == to_cnf(And(tuple(Or(clause) for clause in clauses)))
    assert clauses == to_cnf(And((tree, tree)))
    for literal in itertools.chain(*clauses):
        assert not isinstance(literal.clause if isinstance(literal, Not) else literal, (And, Or, Not))


@given(st.permutations([Exists("author"), Compare("extra.a", "=", 1), Compare("extra.a", "=", True), Not(Exists("tags"))]))
@settings(max_examples=20)
def test_the_normal_form_ignores_the_order_of_clauses(clauses: list[Predicate]) -> None:
    assert to_cnf(Or(tuple(sorted(clauses, key=repr)))) == to_cnf(Or(tuple(clauses)))
    assert len(to_cnf(And(tuple(clauses)))) == 4  # 1 and true stay apart although Python holds them equal


def test_always_has_no_clauses_and_never_has_an_empty_one() -> None:
    assert to_cnf(And(())) == ()
    assert to_cnf(Or(())) == ((),)
    assert to_cnf(Or((Exists("author"), Not(Exists("author"))))) == ()
    assert to_cnf(And((Exists("author"), Or(())))) == ((),)


def test_a_normal_form_above_the_cap_is_refused() -> None:
    pairs = [And((Exists(f"extra.a{n}"), Exists(f"extra.b{n}"))) for n in range(11)]

    assert len(to_cnf(Or(tuple(pairs[:10])))) == predicates.MAX_CNF_CLAUSES
    with pytest.raises(InvalidFieldError, match="more than 1024 clauses"):
        to_cnf(Or(tuple(pairs)))


def test_a_normal_form_with_too_many_literals_is_refused() -> None:
    wide = Or((And(tuple(Exists(f"extra.a{n}") for n in range(200))), *(Exists(f"extra.b{n}") for n in range(200))))

    with pytest.raises(InvalidFieldError, match="16384 literals"):
        to_cnf(wide)
