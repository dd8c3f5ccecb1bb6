"""Questions in parts: the forms that are known, those that stay whole, and what people made of the same questions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import ENGLISH

from evidentia.query.decomposition import MAX_PARTS, MAX_TEXT_LENGTH, decompose
from evidentia.query.words import words_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("What is the difference between Redis and Memcached?", ("Redis", "Memcached")),
        (
            "What is the performance difference between a hot standby and a warm standby in Postgres?",
            ("performance hot standby in Postgres", "performance warm standby in Postgres"),
        ),
        ("Redis vs. Memcached for session storage", ("Redis for session storage", "Memcached for session storage")),
        ("throughput of Kafka versus Pulsar", ("throughput Kafka", "throughput Pulsar")),
        ("compare blue-green deployments with canary releases", ("blue-green deployments", "canary releases")),
        ("How does Kafka compare to Pulsar?", ("Kafka", "Pulsar")),
        ("Is the primary larger than the replica?", ("primary larger", "replica larger")),
        (
            "Does the gateway need more memory than the scheduler in staging?",
            ("gateway need memory in staging", "scheduler memory in staging"),
        ),
        ("Do more people read the wiki than the handbook?", ("people read wiki", "people read handbook")),
        ("Which is faster, gzip or zstd?", ("faster gzip", "faster zstd")),
        ('difference between "soft delete" and "hard delete"', ('"soft delete"', '"hard delete"')),
    ],
)
def test_comparisons_have_two_sides_that_share_the_rest(text: str, parts: tuple[str, ...]) -> None:
    assert parts == decompose(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("How do I rotate keys? Where are backups kept?", ("How do I rotate keys", "Where are backups kept")),
        ("How do I rotate keys? And who approves it?", ("How do I rotate keys", "who approves it rotate keys")),
        ("What is a lease and where is the lease stored?", ("What is a lease", "where is the lease stored")),
        (
            "I run three nodes. How do I upgrade? How long is the downtime?",
            ("How do I upgrade run three nodes", "How long is the downtime run three nodes"),
        ),
    ],
)
def test_several_questions_are_asked_one_by_one(text: str, parts: tuple[str, ...]) -> None:
    assert parts == decompose(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "What are the defaults for timeout, retries and backoff?",
            ("What are the defaults for timeout", "What are the defaults for retries", "What are the defaults for backoff"),
        ),
        (
            "Who owns the gateway, the scheduler, or the cache?",
            ("Who owns the gateway", "Who owns the scheduler", "Who owns the cache"),
        ),
        ("Do both Redis and Postgres support TLS?", ("Do Redis support TLS", "Do Postgres support TLS")),
        (
            "Can I keep a lease and a lock in the same table?",
            ("Can I keep a lease in the same table", "Can I keep a lock in the same table"),
        ),
        (
            "Could you watch Naruto and Puzzle Place on the same channel?",
            ("Could you watch Naruto on the same channel", "Could you watch Puzzle Place on the same channel"),
        ),
    ],
)
def test_members_of_a_list_are_asked_one_by_one_under_the_first_rules_alone(text: str, parts: tuple[str, ...]) -> None:
    assert parts == decompose(text, is_eager=True)
    assert () == decompose(text)


def test_two_questions_about_one_subject_stay_whole() -> None:
    text = "What is a lease and how long does it last?"

    assert ("What is a lease", "how long does it last lease") == decompose(text, is_eager=True)
    assert () == decompose(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "keys",
        "How do I rotate keys?",
        "Romeo and Juliet",
        "How do I configure TLS and LDAP?",
        "In Kubernetes, how do I rotate and revoke keys?",
        "Is the latency less than 10 ms?",
        "more than once",
        "who approves changes other than the owner?",
        'what does "Redis vs Memcached" mean?',
        "Do you need both hot and cold water?",
        "when and how do I rotate keys?",
        "vs",
        "A vs",
        "than than than",
        "and, and, and and and",
        "difference between",
        "between A and B and C",
        "The gateway is slow. How do I restart it?",
        " ".join(f"key{number}?" for number in range(40)),
        "Redis vs Memcached " * 200,
    ],
)
def test_what_no_rule_is_sure_of_stays_whole(text: str) -> None:
    assert () == decompose(text)


WORDS = st.sampled_from(
    ["Redis", "keys",
     "and", "or", "than", "vs", "between", "difference", "compare", "more", "faster", "which", "how", "the", "both", "same",
     "keys,", "keys?", "Kafka.", '"soft delete"', "to", "is", "in", "with", '"', "A", "10"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=40).map(" ".join) | st.text(max_size=300), st.booleans())
def test_parts_are_few_distinct_and_made_of_the_words_of_the_question(text: str, is_eager: bool) -> None:  # noqa: FBT001 - hypothesis passes it
    parts = decompose(text, is_eager=is_eager)
    asked = set(ENGLISH.terms(text))

    assert len(parts) != 1
    assert len(set(parts)) == len(parts) <= MAX_PARTS
    assert all(words_of(part, limit=1) for part in parts)
    assert all(set(ENGLISH.terms(part)) <= asked for part in parts)
    assert len(text) <= MAX_TEXT_LENGTH or not parts


class Agreement(NamedTuple):
    """How far parts agree with the steps that people wrote and that do not refer to other steps (`#1`)."""

    questions: int
    split: int
    same_number: int
    """Questions with as many parts as such steps, one at least, whether split or not."""
    same_number_split: int
    part_terms: int
    step_terms: int
    shared_terms: int
    """Content terms of parts, of the step nearest to each, and of both."""


def measure(path: Path) -> Agreement:
    questions = json.loads(path.read_text(encoding="utf-8"))
    split = same = same_split = part_terms = step_terms = shared = 0
    for question in questions:
        steps = [content_terms(step) for step in question["decomposition"] if "#" not in step]
        parts = decompose(question["question"])
        same += max(1, len(parts)) == max(1, len(steps))
        split += bool(parts)
        same_split += bool(parts) and len(parts) == len(steps)
        for part in map(content_terms, parts):
            nearest = max(steps, key=lambda step: (len(step & part), -len(step)), default=frozenset())
            part_terms += len(part)
            step_terms += len(nearest)
            shared += len(part & nearest)
    return Agreement(len(questions), split, same, same_split, part_terms, step_terms, shared)


def content_terms(text: str) -> frozenset[str]:
    return frozenset(term for word in words_of(text, limit=200) if word.is_content for term in ENGLISH.terms(word.text))


@pytest.mark.parametrize(
    ("file", "agreement"),
    [("train.json", Agreement(2061, 52, 882, 40, 426, 440, 208)), ("dev.json", Agreement(229, 10, 100, 8, 74, 65, 35))],
)
def test_agreement_with_people_is_what_the_module_says(shared_data: Path, file: str, agreement: Agreement) -> None:
    if not (shared_data / "strategyqa" / file).is_file():
        pytest.skip("the third-party sets are not here")

    assert agreement == measure(shared_data / "strategyqa" / file)
