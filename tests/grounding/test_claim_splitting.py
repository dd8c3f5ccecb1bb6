"""Which parts of an answer are claims, and where they stand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.grounding.score import split_claims

ANSWER = """# Retention of backups

Hello! Sure, here is what I found.

Backups are kept for 90 days. They are stored in Zurich, e.g. in the vault of Dr. Meier. Is that long enough?

- Weekly backups are deleted after one year [2].
2. Nobody may restore a backup alone.

```python
print("Backups are free of charge.")
```

**Summary**

---

Let me know if you need more!
"""


def texts(answer: str) -> list[str]:
    return [claim.text for claim in split_claims(answer)]


def test_sentences_that_assert_something_are_claims_without_their_list_marks() -> None:
    expected = [
        "Backups are kept for 90 days.",
        "They are stored in Zurich, e.g. in the vault of Dr. Meier.",
        "Weekly backups are deleted after one year [2].",
        "Nobody may restore a backup alone.",
    ]

    assert expected == texts(ANSWER)


@pytest.mark.parametrize(
    "silent",
    [
        "", "   \n", "## Results", "**Results**", "Why does it rain?", "Is it safe? ", "Hi there!", "Thank you for asking.",
        "I hope this helps!", "The following steps are needed:", "---", "| a | b |", "Yes.", "```\ncode is no claim here\n```", "…", "[1]",
    ],
)  # fmt: skip
def test_what_asserts_nothing_is_no_claim(silent: str) -> None:
    assert [] == texts(silent)


@pytest.mark.parametrize(
    "claim",
    [
        "Water boils at 100 degrees.",
        "**Water boils** at 100 degrees.",
        "Here are the rules of the Zurich office, which the board of directors changed in May 2024.",
        "水在一百度沸腾。",
    ],
)
def test_what_asserts_something_is_one(claim: str) -> None:
    assert [claim] == texts(claim)


@given(st.text())
def test_spans_point_at_the_answer_in_order(answer: str) -> None:
    claims = split_claims(answer)

    assert [answer[claim.start : claim.end] for claim in claims] == [claim.text for claim in claims]
    assert all(claim.start < claim.end for claim in claims)
    assert all(before.end <= after.start for before, after in pairwise(claims))


def test_answer_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="'answer'"):
        split_claims(b"bytes")  # type: ignore[arg-type] # what a caller may do all the same


HOSTILE = {
    "backticks": "`" * 500_000,
    "open fences": "```a\n" * 100_000,
    "closed fences": "```\n```\n" * 60_000,
    "line ends": "\n" * 300_000 + "1" + "\n" * 300_000 + "x",
    "marks": "- " * 300_000,
    "sentences": "Cats are animals. " * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_hostile_answer_is_split(answer: str) -> None:
    assert all(claim.text == answer[claim.start : claim.end] for claim in split_claims(answer))
