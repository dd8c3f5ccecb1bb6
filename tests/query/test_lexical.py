"""What a question's words ask for: terms with their counts and weights, what it prefers as it is written, and what it requires."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.answer_rules import rules_of
from evidentia.query.lexical import FUNCTION_WEIGHT, LEAST_OWN_TERMS, lexical_query, own_lines_first
from evidentia.text.tokens import Tokeniser

TOKENISER = Tokeniser("none")
FIRST = rules_of("evidentia-engine/6")
NAMES = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima", "mike", "november"]


def test_terms_are_counted_and_sorted() -> None:
    query = lexical_query("keys rotate keys, Keys", TOKENISER)

    assert {"keys": 3, "rotate": 1} == query.terms
    assert ["keys", "rotate"] == list(query.terms)
    assert () == query.phrases


def test_quoted_words_are_a_phrase_and_count_as_terms_too() -> None:
    query = lexical_query('signing "rotate the keys" now', TOKENISER)

    assert (("rotate", "the", "keys"),) == query.preferred
    assert () == query.phrases
    assert {"keys": 1, "now": 1, "rotate": 1, "signing": 1, "the": 1} == query.terms


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('"rotate keys', ()),
        ('rotate keys"', ()),
        ('"rotate keys" and "key custody', (("rotate", "keys"),)),
        ('"rotate keys" and "key custody"', (("rotate", "keys"), ("key", "custody"))),
        ('"rotate keys""key custody"', (("rotate", "keys"), ("key", "custody"))),
        ('""', ()),
        ('" "', ()),
        ('"?!"', ()),
    ],
)
def test_a_quote_that_is_never_closed_is_an_ordinary_character(text: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    assert phrases == lexical_query(text, TOKENISER).preferred
    assert phrases == lexical_query(text, TOKENISER, rules=FIRST).phrases


@pytest.mark.parametrize("text", ["“rotate keys”", '“rotate keys"', '"rotate keys”', "”rotate keys“"])
def test_typographic_quotes_are_quotes_in_any_mixture(text: str) -> None:
    query = lexical_query(text, TOKENISER)

    assert (("rotate", "keys"),) == query.preferred
    assert {"keys": 1, "rotate": 1} == query.terms


def test_one_quoted_word_is_a_term_and_no_phrase() -> None:
    query = lexical_query('"keys" rotate', TOKENISER)

    assert () == query.phrases == query.preferred
    assert {"keys": 1, "rotate": 1} == query.terms


def test_a_repeated_phrase_is_preferred_once() -> None:
    assert (("a", "b"),) == lexical_query('"a b" "a b"', TOKENISER).preferred
    assert (("a", "b"), ("a", "b")) == lexical_query('"a b" "a b"', TOKENISER, rules=FIRST).phrases


@pytest.mark.parametrize(
    ("text", "required", "preferred"),
    [
        ('+"rotate keys" now', (("rotate", "keys"),), ()),
        ('+"keys"', (("keys",),), ()),
        ('+“rotate keys” "key custody"', (("rotate", "keys"),), (("key", "custody"),)),
        ('C+"rotate keys"', (), (("rotate", "keys"),)),
        ('+ "rotate keys"', (), (("rotate", "keys"),)),
        ('+"rotate keys', (), ()),
        ('+"?"', (), ()),
    ],
)
def test_only_a_plus_before_the_quote_requires(text: str, required: tuple[object, ...], preferred: tuple[object, ...]) -> None:
    query = lexical_query(text, TOKENISER)

    assert (required, preferred) == (query.phrases, query.preferred)


TRACE = """Uploads fail since Monday:
Traceback (most recent call last):
  File "/srv/app/uploads.py", line 12, in store
    raise QuotaError(limit)
app.errors.QuotaError: the bucket is over its quota
2026-01-05 10:00:00,123 ERROR [worker-3] upload was refused
	at com.harbour.Store.put(Store.java:10)
What can I do?"""


def test_a_pasted_trace_prefers_what_it_says_and_not_where_it_was() -> None:
    preferred = lexical_query(TRACE, TOKENISER).preferred

    assert ("the", "bucket", "is", "over", "its", "quota") in preferred
    assert ("raise", "quota", "error", "limit") in preferred
    assert not any("traceback" in phrase or "harbour" in phrase or "2026" in phrase for phrase in preferred)


def test_an_encoder_reads_the_question_before_what_was_pasted() -> None:
    lines = own_lines_first(TRACE).split("\n")

    assert ["Uploads fail since Monday:", "What can I do?"] == lines[:2]
    assert sorted(TRACE.split("\n")) == sorted(lines)


def test_ticks_and_fences_prefer_their_lines() -> None:
    query = lexical_query("why does `rotate keys` end\n```python\nkeys = load(path)\nsave(keys)\n```\nin ``an error``", TOKENISER)

    assert (("rotate", "keys"), ("an", "error"), ("keys", "load", "path"), ("save", "keys")) == query.preferred
    assert () == query.phrases


def test_what_was_pasted_counts_together_no_more_than_the_question() -> None:
    frames = "\n".join(f'  File "/srv/{name}/{name}{name}.py", line {number}, in {name}' for number, name in enumerate(NAMES))
    query = lexical_query(f"why are uploads refused\n{frames}", TOKENISER)
    own = {"uploads", "refused"}
    pasted = sum(times * query.weights.get(term, 256) for term, times in query.terms.items() if term not in {"why", "are", *own})

    assert not own & query.weights.keys()
    assert len(query.terms) > 3 * LEAST_OWN_TERMS
    assert pasted <= 2 * 256 * LEAST_OWN_TERMS


@pytest.mark.parametrize("text", ["at " + "(" * 30_000, "`" * 30_000, '"' * 30_000, "a.b" * 9_000, "\n" * 30_000, "1:" * 15_000])
def test_odd_texts_take_no_time(text: str) -> None:
    assert lexical_query(text, TOKENISER).terms is not None


@pytest.mark.parametrize(
    ("text", "light"),
    [
        ("how do I rotate the keys", {"how", "do", "i", "the"}),
        ("I'd rotate keys, e.g. mine, in the U.S.", {"i", "e.g", "e", "g", "mine", "in", "the", "u", "s"}),
        ("what does WHO say of vitamin D and hepatitis A", {"what", "does", "of", "and"}),
        ("a T-cell in vivo", {"a", "in"}),
        ("is_valid and on_error", {"is", "and", "on"}),
        ("what is it", set()),
        ("WHAT IS A KEY", {"what", "is", "a"}),
    ],
)
def test_function_words_count_less_unless_there_is_nothing_else(text: str, light: set[str]) -> None:
    query = lexical_query(text, TOKENISER)

    assert dict.fromkeys(light, FUNCTION_WEIGHT) == query.weights
    assert {} == lexical_query(text, TOKENISER, rules=FIRST).weights
    assert {} == lexical_query(text, Tokeniser("german")).weights


def test_a_word_that_is_repeated_counts_up_to_twice() -> None:
    counts = [lexical_query(" ".join(["keys"] * times), TOKENISER) for times in (1, 2, 3, 100)]
    totals = [query.terms["keys"] * query.weights.get("keys", 256) for query in counts]

    assert sorted(totals) == totals
    assert 256 == totals[0] < totals[-1] < 512


def test_an_identifier_is_asked_for_whole_and_in_parts_and_its_phrase_in_parts_only() -> None:
    query = lexical_query('"rotate_keys" HTTPServer2', TOKENISER)

    assert {"2": 1, "http": 1, "httpserver2": 1, "keys": 1, "rotate": 1, "rotate_keys": 1, "server": 1} == query.terms
    assert (("rotate", "keys"),) == query.preferred


def test_terms_are_those_of_the_index() -> None:
    stemming = Tokeniser("english")

    assert {"custodi": 1, "key": 1} == lexical_query("Keys' custodies", stemming).terms
    assert (("sign", "key"),) == lexical_query('"signing keys"', stemming).preferred


def test_nothing_to_ask_for_is_no_terms() -> None:
    query = lexical_query("?! … —", TOKENISER)

    assert {} == query.terms
    assert () == query.phrases


@given(st.text(max_size=80))
def test_any_text_gives_the_terms_of_the_tokeniser_and_phrases_of_at_least_two(text: str) -> None:
    query = lexical_query(text, TOKENISER)

    assert sorted(TOKENISER.terms(text)) == sorted(term for term, times in query.terms.items() for _ in range(times))
    assert all(len(phrase) > 1 for phrase in query.preferred)
    assert all(0 < weight < 256 and term in query.terms for term, weight in query.weights.items())
