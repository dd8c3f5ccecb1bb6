"""Front matter is a small language, and what does not fit is text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.plain import split_front_matter
from soak import cases

BLOCK = """---
title: "Keys: how to rotate"
author: 'Ada'
date: 2024-05-01   # a comment
tags: [ops, "key rotation"]
acl:
  - group:oncall
  - user:ada
empty:
---
Body.
"""


def test_keys_strings_and_lists_are_read() -> None:
    front = split_front_matter(BLOCK)

    assert {
        "title": "Keys: how to rotate",
        "author": "Ada",
        "date": "2024-05-01",
        "tags": ("ops", "key rotation"),
        "acl": ("group:oncall", "user:ada"),
        "empty": "",
    } == dict(front.declared)
    assert BLOCK[front.body_start :] == "Body.\n"


def test_windows_line_ends_are_fine() -> None:
    text = BLOCK.replace("\n", "\r\n")

    assert text[split_front_matter(text).body_start :] == "Body.\r\n"


@pytest.mark.parametrize("text", ["Body only.", "---\nno end\n", "--- x\na: b\n---\n", "\n---\na: b\n---\n", "----\na: b\n----\n"])
def test_text_without_a_fenced_block_declares_nothing(text: str) -> None:
    front = split_front_matter(text)

    assert (0, {}, ()) == (front.body_start, front.declared, front.notes)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("just words", "line 2 is not 'key: value'"),
        ("a: 1\nb\n", "line 3 is not 'key: value'"),
        ("a: 1\na: 2\n", "line 3 repeats 'a'"),
        ("a:1", "line 2 is not 'key: value'"),
        ("\n".join(f"k{number}: x" for number in range(70)), "more than 64 keys"),
    ],
)
def test_a_block_that_cannot_be_understood_is_text_with_a_note(block: str, problem: str) -> None:
    front = split_front_matter(f"---\n{block}\n---\nBody.")

    assert (0, {}) == (front.body_start, front.declared)
    assert (f"front_matter: has front matter that cannot be understood ({problem}); it counts as text",) == front.notes


@pytest.mark.parametrize("claim", ["classification: restricted", "ACL: [user:ada]", '"acl": x', "  classification : x"])
def test_a_block_that_speaks_of_access_is_understood_or_refused(claim: str) -> None:
    with pytest.raises(DocumentUnreadableError) as caught:
        split_front_matter(f"---\n{claim}\nnot front matter\n---\nBody.")

    assert caught.value.reason == "bad_claim"


def test_yaml_tricks_are_only_strings() -> None:
    front = split_front_matter("---\na: !!python/object/apply:os.system [ls]\nb: &x *x\nc: 0x10\nd: null\n---\nBody.")

    assert {"a": "!!python/object/apply:os.system [ls]", "b": "&x *x", "c": "0x10", "d": "null"} == dict(front.declared)


@settings(max_examples=cases(66, of=200), deadline=None)
@given(st.text(alphabet=st.sampled_from(list("ab-:[]#'\"\n\r \t\0,!&")), max_size=200))
def test_whatever_stands_between_the_fences_is_read_or_left(block: str) -> None:
    text = f"---\n{block}\n---\nBody."
    front = split_front_matter(text)

    assert 0 <= front.body_start <= len(text)
    assert all(len(value) <= 1_000 for value in front.declared.values())
