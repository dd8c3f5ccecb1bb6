"""Which questions lean on the conversation, and what they take from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import ENGLISH, SmallLexicon

from evidentia.contracts.evidence import Turn
from evidentia.query.conversation import (
    FOLLOWING_WEIGHT,
    MAX_SUBJECT_WORD_LENGTH,
    MAX_SUBJECT_WORDS,
    MAX_TOPIC_WORDS,
    PARTING_WEIGHT,
    follow,
    leans,
    subject_words,
)

PAGES = (
    *[
        f"An important part of chapter {number}: the major characters, how they apply, the options and the difference."
        for number in range(30)
    ],
    "Market cap is the share price times the shares; NAV is the net asset value.",
    "The Saviors are a group in the Walking Dead series.",
    "Medicaid buy-in lets workers with disabilities apply for coverage.",
    "Groundwater of the city is tested twice a year.",
    "The harbour master rents moorings by the week.",
    *[f"Volume {number} of the catalogue lists old maps." for number in range(25)],
)
BASE = SmallLexicon(PAGES)


def turns(*texts: str) -> tuple[Turn, ...]:
    """Return turns of which those of the assistant are written with a leading `>`."""
    return tuple(Turn(role="assistant", text=text[1:]) if text.startswith(">") else Turn(role="user", text=text) for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "why?",
        "",
        "and for staging?",
        "What about backups?",
        "how about the nightly backup schedule",
        "for staging",
        "how do I restart it?",
        "Does it support snapshots of encrypted volumes?",
        "how do I fix that?",
        "does this service support snapshots?",
        "who owns the one in production?",
        "Can I do the same for staging?",
        "show me more",
        "what is their owner's name?",
    ],
)
def test_questions_that_need_the_conversation(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize(
    "text",
    [
        "kubernetes",
        "How do I rotate the signing keys?",
        "When a key is rotated, what happens to it?",
        "What is a lease and how long is it?",
        "Is it possible to rotate keys?",
        "How long does it take to rebuild an index?",
        "Which service that handles billing is slow?",
        "What does this error mean: ORA-00942?",
        "Does IT own the laptops?",
        "In Kubernetes, how do I rotate keys?",
        "is there a limit on uploads?",
        "And how do I rotate the signing keys in production?",
        '"it" in a title',
    ],
)
def test_questions_that_stand_by_themselves(text: str) -> None:
    assert not leans(text)


def test_the_subject_is_that_of_the_newest_question_of_the_caller() -> None:
    conversation = turns("Where are the invoices?", "How do I rotate the signing keys?", ">Open the vault and run the playbook.")

    assert ("rotate", "signing", "keys") == subject_words(conversation)


def test_turns_that_lean_themselves_hand_on_to_the_one_before() -> None:
    conversation = turns("Where are the invoices?", "How do I rotate the signing keys?", ">In the vault.", "and for staging?")

    assert ("staging", "rotate", "signing", "keys") == subject_words(conversation)


def test_others_are_heard_only_when_the_caller_names_nothing() -> None:
    assert ("Open", "vault") == subject_words(turns("why?", ">Open the vault."))
    assert () == subject_words(turns("why?", ">Yes."))
    assert () == subject_words(())


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert('x')</script> ${jndi:ldap://x} '; DROP TABLE--",
        "a" * 5_000,
        '"must occur" "exactly so"',
        "\u202eevil\x00 \ud800",
        "key " * 5_000 + " ".join(f"word{number}" for number in range(900)),
    ],
)
def test_only_few_and_short_words_are_taken_from_hostile_turns(text: str) -> None:
    taken = subject_words((Turn(role="user", text=text),) * 50)

    assert len(taken) <= MAX_SUBJECT_WORDS
    assert all(len(word) <= MAX_SUBJECT_WORD_LENGTH and not set(word) & set('"<>${};()\x00\u202e ') for word in taken)


@given(st.text(max_size=200), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=80)), max_size=20))
def test_any_text_is_read_the_same_way_twice(text: str, said: list[tuple[str, str]]) -> None:
    conversation = tuple(Turn(role=role, text=spoken) for role, spoken in said)

    assert leans(text) == leans(text)
    assert subject_words(conversation) == subject_words(conversation)
    assert len(subject_words(conversation)) <= MAX_SUBJECT_WORDS


# --- following a topic ---


@pytest.mark.parametrize(
    ("asked", "said", "taken"),
    [
        ("Which is more important?", "What's the difference between Market Cap and NAV?", "NAV"),
        ("Major characters", "who are the Saviors group in the Walking Dead series?", "Saviors"),
        ("How can I apply?", "What can you tell me about the Medicaid Buy-In Program?", "Medicaid"),
        ("What are the options?", "Where do I rent moorings in the harbour?", "moorings"),
        ("Is it important?", "How often is the groundwater tested?", "groundwater"),
        ("why?", "How often is the groundwater tested?", "groundwater"),
        ("Is the groundwater tested?", "Is groundwater of the city safe, if tested?", "safe"),
    ],
)
def test_a_question_without_a_topic_of_its_own_leans(asked: str, said: str, taken: str) -> None:
    found = follow(asked, turns(said, ">I see."), tokeniser=ENGLISH, lexicon=BASE)

    assert "leans" in found.note
    assert taken in found.encoded
    assert found.encoded == found.asked == found.words[:MAX_SUBJECT_WORDS]
    assert {FOLLOWING_WEIGHT} == set(found.weights.values())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("Does it depend on moorings?", "points back"),
        ("Are shares of the harbour listed beside their moorings?", "both speak of 'share'"),
        ("Moorings", "it is short"),
    ],
)
def test_a_question_that_goes_on_is_searched_with_the_conversation_and_encoded_without(asked: str, why: str) -> None:
    found = follow(asked, turns("How many shares does market cap count?"), tokeniser=ENGLISH, lexicon=BASE)

    assert why in found.note
    assert "market" in found.weights
    assert {FOLLOWING_WEIGHT} == set(found.weights.values())
    assert () == found.encoded


def test_a_topic_switch_is_hardly_drawn_back() -> None:
    found = follow("Who rents moorings at the harbour by the week?", turns("How is NAV computed?"), tokeniser=ENGLISH, lexicon=BASE)

    assert "topic of its own, 'rent'" in found.note
    assert () == found.encoded == found.asked
    assert {PARTING_WEIGHT} == set(found.weights.values())


def test_an_older_turn_counts_half_and_thanks_are_passed_over() -> None:
    conversation = turns("How is NAV computed?", "And market cap?", ">Like this.", "Thank you!")
    found = follow("why?", conversation, tokeniser=ENGLISH, lexicon=BASE)

    assert FOLLOWING_WEIGHT == found.weights["market"]
    assert FOLLOWING_WEIGHT // 2 == found.weights["nav"]


def test_what_others_said_is_taken_only_when_the_caller_named_nothing() -> None:
    answered = follow("why?", turns("Tell me more", ">Groundwater is tested."), tokeniser=ENGLISH, lexicon=BASE)

    assert {"Groundwater", "tested"} == set(answered.words)
    assert () == follow("why?", turns("Thanks", ">You are welcome to it."), tokeniser=ENGLISH, lexicon=None).encoded[1:]


TALK = st.lists(st.builds(Turn, role=st.sampled_from(["user", "assistant", ""]), text=st.text(max_size=90)), min_size=1, max_size=30)


@given(st.sampled_from(PAGES) | st.text(max_size=90), TALK, st.sampled_from([BASE, SmallLexicon(()), None]))
def test_what_is_taken_is_bounded_and_comes_from_the_turns(asked: str, talk: list[Turn], lexicon: SmallLexicon | None) -> None:
    found = follow(asked, talk, tokeniser=ENGLISH, lexicon=lexicon)

    assert found == follow(asked, talk, tokeniser=ENGLISH, lexicon=lexicon)
    assert len(found.words) <= MAX_TOPIC_WORDS
    assert len(found.encoded) <= MAX_SUBJECT_WORDS
    assert all(len(word) <= MAX_SUBJECT_WORD_LENGTH for word in found.words)
    assert all(0 < weight <= FOLLOWING_WEIGHT for weight in found.weights.values())
    assert set(found.encoded) | set(found.asked) <= set(found.words)


def test_a_huge_conversation_costs_no_more_than_its_newest_turns() -> None:
    newest = turns(*("word " * 5_000, "groundwater " + "x" * 9_000) * 8)
    asked = Asked()
    found = follow("why?", (*turns("never read " * 1_000) * 500, *newest), tokeniser=ENGLISH, lexicon=asked)

    assert found == follow("why?", newest, tokeniser=ENGLISH, lexicon=BASE)
    assert asked.times <= 64


class Asked(SmallLexicon):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(PAGES)
        self.times = 0

    def chunks_with(self, term: str) -> int:
        self.times += 1
        return super().chunks_with(term)
