"""The user's file of synonyms: how it is read, what it refuses, and what it adds to a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import ENGLISH

from evidentia.contracts.errors import InvalidFieldError
from evidentia.query.lexical import PARTIAL_WEIGHT
from evidentia.query.synonyms import MAX_ADDED, MAX_FILE_LENGTH, MAX_LINES, MAX_TERMS, Synonyms, expand_synonyms, parse_synonyms

FILE = """\
# groups work both ways
laptop, notebook, portable computer   # three entries
k8s => kubernetes
prod, live => production environment
"""


def parse(text: str) -> Synonyms:
    return parse_synonyms(text, file="synonyms.txt", tokeniser=ENGLISH)


def added(question: str, text: str = FILE) -> list[str]:
    return list(expand_synonyms(question, tokeniser=ENGLISH, synonyms=parse(text)).weights)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("which Laptops do we buy?", ["notebook", "portabl", "comput"]),
        ("a portable computer", ["laptop", "notebook"]),
        ("portable disk, computer desk", []),
        ("k8s upgrade", ["kubernet"]),
        ("kubernetes upgrade", []),
        ("prod outage", ["product", "environ"]),
        ("production environment", []),
        ('the "laptop" policy', []),
        ("laptop and live", ["notebook", "portabl", "comput", "product", "environ"]),
        ("", []),
    ],
)
def test_entries_of_the_question_add_their_synonyms(question: str, terms: list[str]) -> None:
    assert terms == added(question)


def test_the_longest_entry_counts_at_each_place() -> None:
    rules = "computer => pc\nportable computer => laptop"

    assert ["laptop"] == added("portable computer", rules)
    assert ["pc"] == added("computer", rules)


def test_groups_meet_but_do_not_chain() -> None:
    rules = "lorry, truck\ntruck, rig"

    assert ["lorri", "rig"] == added("truck", rules)
    assert ["truck"] == added("lorry", rules)


def test_additions_count_half_and_the_note_names_the_entries() -> None:
    found = expand_synonyms("k8s laptop", tokeniser=ENGLISH, synonyms=parse(FILE))

    assert {PARTIAL_WEIGHT} == set(found.weights.values())
    assert "k 8 s, laptop" == found.note


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("alone", "at least two entries"),
        ("a1, , b1", "an entry is empty"),
        ("a1, b1,", "an entry is empty"),
        ("=> b1", "an entry is empty"),
        ("a1 =>", "an entry is empty"),
        ("a1 => b1 => c1", "only once"),
        ("a1, ?!", "no word to search for"),
        (f"a1, {'x' * 101}", "more than 100 characters"),
        (f"a1, {'x ' * 9}", "more than 8 words"),
        (", ".join(f"w{number}" for number in range(33)), "more than 32 entries"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem) as caught:
        parse(f"# fine\nfine, good\n{line}\n")

    assert "'synonyms.txt', line 3" in str(caught.value)
    assert "query.synonyms" == caught.value.field


def test_files_and_entries_that_grow_too_far_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="characters"):
        parse("#" * (MAX_FILE_LENGTH + 1))
    with pytest.raises(InvalidFieldError, match="lines"):
        parse("\n" * (MAX_LINES + 1))
    with pytest.raises(InvalidFieldError, match=f"more than {MAX_ADDED} synonyms"):
        parse("\n".join(f"busy, other{number}x" for number in range(MAX_ADDED + 1)))


@pytest.mark.parametrize("text", ["", "# nothing", "\ufeff# nothing\r\n\r\n", "key, keys"])
def test_a_file_without_synonyms_adds_nothing(text: str) -> None:
    assert Synonyms(additions={}, longest=parse(text).longest) == parse(text)
    assert [] == added("key", text)


def test_a_question_full_of_entries_is_expanded_only_so_far() -> None:
    rules = "\n".join(
        f"w{chr(97 + number)}x => {', '.join(f'v{chr(97 + number)}{chr(97 + other)}' for other in range(20))}" for number in range(20)
    )

    assert MAX_TERMS == len(added(" ".join(f"w{chr(97 + number)}x" for number in range(20)), rules))


@given(st.text(max_size=200))
def test_any_text_is_a_file_or_an_error_that_names_it(text: str) -> None:
    problem = ""
    synonyms = Synonyms()
    try:
        synonyms = parse(text)
    except InvalidFieldError as error:
        problem = str(error)

    assert not problem or "'synonyms.txt'" in problem
    assert all(len(entry) <= synonyms.longest for entry in synonyms.additions)
