"""A text's own explanations of its short forms are found; what merely stands in parentheses is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.definitions import MAX_LONG_LENGTH, MAX_LOOKED_AT, MAX_SHORT_LENGTH, find_definitions, words_of

if TYPE_CHECKING:
    from pathlib import Path

BETA = "\N{GREEK SMALL LETTER BETA}"
PIECES = [
    "(",
    ")",
    " ",
    "\n",
    "|",
    "- ",
    ": ",
    "SLA",
    "service level agreement",
    "a",
    "IL-6",
    "**",
    "東",
    BETA,
    ", ",
]


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("The service level agreement (SLA) holds.", "SLA", "service level agreement"),
        ("The Service\nLevel  Agreement (SLA) holds.", "SLA", "service level agreement"),
        ("an SLA (service level agreement) holds", "SLA", "service level agreement"),
        ("an SLA (Service Level Agreement, signed) holds", "SLA", "service level agreement"),
        ('a "service level agreement" (SLA)', "SLA", "service level agreement"),
        (f"{'word ' * 40}\n\nService level agreement (SLA)", "SLA", "service level agreement"),
        ("over secure sockets layer (SSL)", "SSL", "secure sockets layer"),
        ("interleukin 6 (IL-6; see below)", "IL-6", "interleukin 6"),
        (f"transforming growth factor-{BETA} (TGF-{BETA})", f"TGF-{BETA}", f"transforming growth factor-{BETA}"),
        ("hepatocellular carcinoma (HCC)", "HCC", "hepatocellular carcinoma"),
        ("reactive oxygen species ('ROS')", "ROS", "reactive oxygen species"),
        ("dendritic cells (DCs)", "DC", "dendritic cells"),
        ("жизненный цикл данных (ЖЦД)", "ЖЦД", "жизненный цикл данных"),
        ("**SLA** - service level agreement", "SLA", "service level agreement"),
        ("# Terms\n\n- RPO: recovery point objective, how much may be lost\n", "RPO", "recovery point objective"),
        ("| Term | Meaning |\n|---|---|\n| RTO   | recovery time objective | x |", "RTO", "recovery time objective"),
        ("RTO\n: recovery time objective", "RTO", "recovery time objective"),
        ("1. RTO \N{EN DASH} recovery time objective", "RTO", "recovery time objective"),
    ],
)
def test_an_explanation_is_found(text: str, short: str, long: str) -> None:
    assert [(short, long)] == find_definitions(text)


@pytest.mark.parametrize(
    "text",
    [
        "The key (see section 2) rotates.",
        "measured again (n = 30, p < 0.05)",
        "a good idea (maybe)",
        "The API (see the manual)",
        "shown in the table (Table 1)",
        "the Smiths agreed (Smith)",
        "Note: keys rotate",
        "SLA: 99.9 % uptime",
        "(SLA)",
        "SLA (SLA)",
        "service level. Agreement was reached (SLA)",
        "the mouths (TH)",
        "see http://www.example.org/sla/ (SLA)",
        "service level agreement",
        "",
    ],
)
def test_what_explains_nothing_gives_nothing(text: str) -> None:
    assert [] == find_definitions(text)


def test_a_pair_is_given_once_in_the_order_of_the_text() -> None:
    text = "recovery time objective (RTO), service level agreement (SLA), Recovery Time Objective (RTO)"

    assert [("RTO", "recovery time objective"), ("SLA", "service level agreement")] == find_definitions(text)


@pytest.mark.parametrize("before", ["x" * 200, "x " * 100, "word " * 40])
def test_a_long_form_is_never_cut_inside_a_word(before: str) -> None:
    found = find_definitions(f"{before} s{'x' * MAX_LONG_LENGTH}l a (SLA)")

    assert [] == found


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_what_is_found_stands_in_the_text_and_within_bounds(text: str) -> None:
    words = words_of(text)
    for short, long in find_definitions(text):
        assert short in text
        assert 2 <= len(short) <= MAX_SHORT_LENGTH
        assert len(long) <= 2 * MAX_LONG_LENGTH
        assert long == " ".join(long.split()) == long.lower()
        assert words_of(long) in words


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for short, long in find_definitions(text):
        assert short.isprintable()
        assert long.isprintable()


@pytest.mark.parametrize(
    "piece",
    ["(", ")", "()", "(AB)", "a b (AB) ", "(" + "a" * 99, "\n", "AB: alpha beta\n", "|", " |", "A", "AB (", "* ", "(A\n\n", "AB\n: a"],
)
def test_hostile_repetition_ends(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))

    assert len(find_definitions(text)) <= 2


def test_only_so_many_parentheses_and_lines_are_looked_at() -> None:
    many = MAX_LOOKED_AT + 10

    assert [] == find_definitions("(xx)" * many + " service level agreement (SLA)")
    assert [] == find_definitions("x: y\n" * many + "SLA: service level agreement")


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [("Service  Level", "service level", True), ("T-cell receptor", "t cell receptor", True), ("service levels", "service level", False)],
)
def test_long_forms_are_compared_as_lower_case_words(first: str, second: str, *, is_same: bool) -> None:
    assert is_same == (words_of(first) == words_of(second))


def test_definitions_of_a_real_corpus_are_those_its_field_uses(shared_data: Path) -> None:
    corpus = shared_data / "scifact" / "corpus.jsonl"
    if not corpus.exists():
        pytest.skip(f"no SciFact at {corpus}")
    found: dict[tuple[str, str], int] = {}
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            for short, long in find_definitions(json.loads(line)["text"]):
                found[short, long] = found.get((short, long), 0) + 1
    best = sorted(found, key=lambda pair: (-found[pair], pair))[:12]

    assert len(found) > 3_500
    assert {("ROS", "reactive oxygen species"), ("CI", "confidence interval"), ("BMI", "body mass index")} <= set(best)
