"""Receipts of older engines are answered by their own rules, and everything else by those of today."""

from __future__ import annotations

import pytest

from evidentia.contracts.answer_rules import ENGINE, TODAY, rules_of


def test_the_engine_of_today_answers_by_the_rules_of_today() -> None:
    assert TODAY == rules_of(ENGINE)


@pytest.mark.parametrize("number", [1, 4, 5, 6])
def test_an_older_engine_answers_by_its_own_rules(number: int) -> None:
    rules = rules_of(f"evidentia-engine/{number}")

    assert (False, False, False, False, 1) == (
        rules.prefers_quotations,
        rules.weighs_terms,
        rules.spares_relevance,
        rules.follows_topics,
        rules.confidence,
    )


@pytest.mark.parametrize("engine", ["evidentia-engine/8", "somebody-else/1", ""])
def test_an_engine_that_is_not_known_answers_by_the_rules_of_today(engine: str) -> None:
    assert TODAY == rules_of(engine)
