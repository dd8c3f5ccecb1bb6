"""Which questions lean on the conversation, and what they take from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.evidence import Turn
from evidentia.query.conversation import MAX_SUBJECT_WORD_LENGTH, MAX_SUBJECT_WORDS, leans, subject_words


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
