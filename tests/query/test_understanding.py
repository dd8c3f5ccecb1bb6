"""A request becomes what is searched for: the steps in their order, their switches, and the laws they keep."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import ENGLISH, SmallLexicon

from evidentia.contracts.answer_rules import TODAY, AnswerRules, rules_of
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, SubQuery, Turn
from evidentia.contracts.settings import QuerySettings
from evidentia.contracts.vocabulary import QueryStepName
from evidentia.query.lexical import MAX_EXPANSIONS, QUOTED, REQUIRED, lexical_query
from evidentia.query.synonyms import parse_synonyms
from evidentia.query.understanding import WHOLE_WEIGHT, Part, Understanding, understand
from evidentia.text.tokens import Tokeniser

OFF = QuerySettings(context=False, normalise=False, spelling=False, decompose=False)
ON = QuerySettings(spelling=True, abbreviations=True, synonyms="synonyms.txt", decompose=True)
LEXICON = SmallLexicon()
SYNONYMS = parse_synonyms("laptop, notebook\nk8s => kubernetes\nkeys, secrets", file="synonyms.txt", tokeniser=ENGLISH)
ROTATE = ENGLISH.terms("rotate")[0]
TURNS = (Turn(role="user", text="How do I rotate the signing keys in production?"), Turn(role="assistant", text="With the vault."))


def ask(
    text: str, *, settings: QuerySettings = ON, rewritten: str | None = None, rules: AnswerRules = TODAY, **fields: object
) -> Understanding:
    request = msgspec.structs.replace(EvidenceRequest(query=DecomposedQuery(text=text)), **fields)
    return understand(request, tokeniser=ENGLISH, lexicon=LEXICON, settings=settings, rules=rules, synonyms=SYNONYMS, rewritten=rewritten)


def noted(found: Understanding) -> dict[str, tuple[str, ...]]:
    return {step.step.value: step.added for step in found.steps}


def test_every_step_that_is_on_says_what_it_did_in_order() -> None:
    found = ask("and its CDN, k8s clustr?", turns=TURNS)

    assert ["context", "normalise", "spelling", "abbreviations", "synonyms", "decompose"] == [step.step.value for step in found.steps]
    assert ("rotate", "signing", "production", "keys") == noted(found)["context"]
    assert ("cluster",) == noted(found)["spelling"]
    assert ("content", "deliveri", "network") == noted(found)["abbreviations"]
    assert ("kubernet",) == noted(found)["synonyms"]
    assert 256 == found.lexical.expansions["cluster"]
    assert {96} == {found.lexical.expansions[term] for word in noted(found)["context"] for term in ENGLISH.terms(word)}
    assert {128} == {found.lexical.expansions[term] for term in ("content", "deliveri", "network", "kubernet")}
    assert "and its CDN, k8s clustr?" == found.text


def test_a_question_with_a_topic_of_its_own_is_encoded_and_asked_elsewhere_as_it_is() -> None:
    found = ask("Which nightly backups of the staging database run?", turns=TURNS)

    assert "Which nightly backups of the staging database run?" == found.text == found.asked
    assert {48} == {found.lexical.expansions[term] for word in noted(found)["context"] for term in ENGLISH.terms(word)}


def test_a_question_that_leans_is_encoded_with_words_of_the_conversation() -> None:
    found = ask("why?", turns=TURNS)

    assert "why? rotate signing production keys" == found.text == found.asked


def test_the_first_rules_follow_words_that_point_back_and_nothing_else() -> None:
    first = rules_of("evidentia-engine/6")
    leaning, standing = ask("and its CDN?", turns=TURNS, rules=first), ask("Major characters", turns=TURNS, rules=first)

    assert "and its CDN? rotate signing keys production" == leaning.text
    assert {128} == {leaning.lexical.expansions[term] for word in noted(leaning)["context"] for term in ENGLISH.terms(word)}
    assert () == noted(standing)["context"]


def test_identifiers_and_phrases_are_noted_and_kept() -> None:
    found = ask("does CVE\u20132021\u201344228 affect \u201crotate keys\u201d", settings=QuerySettings())

    assert (tuple(ENGLISH.terms("rotate keys")),) == found.lexical.preferred
    assert () == found.lexical.phrases
    assert ("cve202144228",) == noted(found)["normalise"]
    assert ("CVE-2021-44228",) == found.verbatim.identifiers
    assert "identifiers: CVE-2021-44228; phrases: rotate keys" in found.steps[1].note


def test_parts_carry_the_conversation_and_their_own_additions() -> None:
    found = ask("and it: SLO vs CDN?", turns=TURNS)

    assert "and it: SLO vs CDN?" == found.text
    assert 2 == len(found.parts)
    assert all(part.asked.endswith("rotate signing production keys") and WHOLE_WEIGHT == part.weight for part in found.parts)
    assert {"servic", "level", "object"} <= set(found.parts[0].lexical.expansions)
    assert {"content", "deliveri", "network"} <= set(found.parts[1].lexical.expansions)
    assert "servic" not in found.parts[1].lexical.expansions
    assert all(ROTATE in part.lexical.expansions for part in found.parts)


@pytest.mark.parametrize("without", [(), (QueryStepName.DECOMPOSE,)])
def test_parts_of_the_request_are_used_as_they_are(without: tuple[QueryStepName, ...]) -> None:
    given_parts = (SubQuery(text="the  SLO", weight=0.25), SubQuery(text="clustr"))
    found = ask("Redis vs Kafka", query=DecomposedQuery(text="Redis vs Kafka", subqueries=given_parts), without=without)

    assert (
        Part(text="the  SLO", lexical=lexical_query("the  SLO", ENGLISH), weight=250_000, asked="the  SLO"),
        Part(text="clustr", lexical=lexical_query("clustr", ENGLISH), weight=1_000_000, asked="clustr"),
    ) == found.parts


def test_a_rewritten_question_replaces_the_question_first() -> None:
    found = ask("hw rotate", rewritten="How are signing keys rotated?", turns=TURNS)

    assert "rewrite" == found.steps[0].step.value
    assert ("How are signing keys rotated?",) == found.steps[0].added
    assert "How are signing keys rotated?" == found.text
    assert "hw" not in found.lexical.terms


@pytest.mark.parametrize("rewritten", ["", " ?! ", "hw rotate", "x " * 20_000])
def test_a_rewritten_text_that_is_none_leaves_the_question(rewritten: str) -> None:
    found = ask("hw rotate", rewritten=rewritten)

    assert "hw rotate" == found.text
    assert () == noted(found)["rewrite"]


def test_a_request_without_rewriting_ignores_the_rewritten_text() -> None:
    found = ask("hw rotate", rewritten="other", without=(QueryStepName.REWRITE,))

    assert "hw rotate" == found.text
    assert "rewrite" not in noted(found)


@pytest.mark.parametrize("text", ["", "   ", "the of and", "?!", "\u200b"])
def test_a_question_without_a_subject_is_still_a_question(text: str) -> None:
    alone, talking = ask(text), ask(text, turns=TURNS)

    assert 1 == len(alone.parts)
    assert lexical_query(text, ENGLISH).terms == alone.lexical.terms
    assert {} == alone.lexical.expansions
    assert {ROTATE, "sign", "key", "product"} | {"secret"} >= set(talking.lexical.expansions) >= {ROTATE, "sign", "key", "product"}


def test_rules_for_english_stay_out_of_other_languages() -> None:
    request = EvidenceRequest(query=DecomposedQuery(text="Redis vs Kafka und es"), turns=TURNS)
    found = understand(request, tokeniser=Tokeniser("german"), lexicon=LEXICON, settings=QuerySettings(decompose=True))

    assert {"its rules are for English"} == {step.note for step in found.steps if step.step.value in {"context", "decompose"}}
    assert 1 == len(found.parts)


def test_steps_that_lack_what_they_need_say_so() -> None:
    found = understand(EvidenceRequest(query=DecomposedQuery(text="SLO")), tokeniser=ENGLISH, lexicon=None, settings=ON)

    assert {} == found.lexical.expansions
    assert ["the words of the base cannot be asked for"] * 2 + ["no synonyms were read"] == [step.note for step in found.steps[2:5]]


WORDS = st.sampled_from(
    ["SLO", "cdc", "laptop", "k8s", "keys", "secrets", "kubrenetes", "clustr", "and", "vs", "it", "what", "the", "How", "do", "I", "rotate",
     "service level objective", '"signing keys"', "a_b", "CVE\u20132021", "pass\u200bword", "backups?", "Redis,", "than", "larger", '"']
)  # fmt: skip
TEXT = st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=120)
CONVERSATION = st.lists(st.builds(Turn, role=st.sampled_from(["user", "assistant", ""]), text=TEXT), max_size=4).map(tuple)
SWITCHES = st.builds(
    QuerySettings,
    context=st.booleans(),
    normalise=st.booleans(),
    spelling=st.booleans(),
    abbreviations=st.booleans(),
    synonyms=st.sampled_from(["", "synonyms.txt"]),
    decompose=st.booleans(),
)


@given(TEXT, CONVERSATION)
def test_switching_everything_off_gives_exactly_the_words_of_the_question(text: str, turns: tuple[Turn, ...]) -> None:
    query = lexical_query(text, ENGLISH)

    for found in (ask(text, settings=OFF, turns=turns), ask(text, turns=turns, without=tuple(QueryStepName), rewritten="other words")):
        plain = QUOTED.sub(r"\1", REQUIRED.sub(r"\1", text))
        assert (plain, query, (Part(text=plain, lexical=query, asked=text),), ()) == (found.text, found.lexical, found.parts, found.steps)


@given(TEXT, CONVERSATION, SWITCHES)
def test_no_step_loses_a_term_or_adds_one_that_was_asked_for(text: str, turns: tuple[Turn, ...], settings: QuerySettings) -> None:
    found = ask(text, settings=settings, turns=turns)
    asked = lexical_query(text, ENGLISH).terms

    assert set(asked) <= set(found.lexical.terms)
    for query in (found.lexical, *(part.lexical for part in found.parts)):
        assert not set(query.expansions) & set(query.terms)
        assert len(query.expansions) <= MAX_EXPANSIONS
        assert all(0 < weight <= 256 for weight in query.expansions.values())
        assert list(query.expansions) == sorted(query.expansions)
    assert found == ask(text, settings=settings, turns=turns)


@given(TEXT, CONVERSATION, SWITCHES, st.sets(st.sampled_from(QueryStepName)).map(tuple))
def test_what_a_request_leaves_out_is_left_out_whatever_the_settings(
    text: str, turns: tuple[Turn, ...], settings: QuerySettings, without: tuple[QueryStepName, ...]
) -> None:
    found = ask(text, settings=settings, turns=turns, without=without)
    switched = {
        "context": settings.context,
        "normalise": settings.normalise,
        "spelling": settings.spelling,
        "abbreviations": settings.abbreviations,
        "synonyms": bool(settings.synonyms),
        "decompose": settings.decompose,
    }

    assert [name for name, is_on in switched.items() if is_on and name not in without] == [step.step.value for step in found.steps]


@pytest.mark.parametrize(
    "text",
    ["alpha beta ", "a", '"', '"a b', "and, ", "a? ", "\ufdfa ", "\u2014", "\u202e\x00", "a/", "\\", "'", "A vs B than C ", "SLO "],
)
def test_a_question_of_the_longest_kind_stays_within_bounds(text: str) -> None:
    found = ask((text * 32_768)[:32_768], turns=(Turn(role="user", text=text * 10_000),) * 20)

    assert len(found.text) <= 4 * 32_768 + 512
    assert len(found.parts) <= 6
    assert sum(len(step.note) + sum(map(len, step.added)) for step in found.steps) <= 8_192


def test_colours_of_a_terminal_are_no_part_of_a_question() -> None:
    plain = ask("tarfile.ReadError: not a gzip file")
    coloured = ask("\x1b[31mtarfile.ReadError\x1b[0m: \x1b[1;4mnot a gzip file\x1b[0m")

    assert (plain.text, plain.lexical) == (coloured.text, coloured.lexical)
