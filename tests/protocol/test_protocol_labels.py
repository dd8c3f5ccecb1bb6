"""Kinds of tasks, types and breadths of questions, held against labelled questions; the held-out half decides the figures of the docs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from evidentia.contracts.protocol import Breadth, QuestionType, TaskKind
from evidentia.protocol import breadth, classify_task, explicit_file, question_type
from evidentia.protocol.queries import explained_stems, judge_query
from evidentia.protocol.questions import read_question

HERE = Path(__file__).parent


def labelled(name: str, half: str) -> list[list[str]]:
    document: Any = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    found: list[list[str]] = document[half]
    return found


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_labels_of_questions_are_found(half: str) -> None:
    rows = labelled("labelled_questions.yaml", half)
    knowledge = [row for row in rows if row[0] == "knowledge"]
    tasks = sum(classify_task(question) == task for task, _, _, question in rows)
    types = sum(question_type(question) == kind for _, kind, _, question in knowledge)
    breadths = sum(breadth(question) == size for _, _, size, question in knowledge)

    assert len(rows) >= 75
    assert len(rows) == tasks
    assert len(knowledge) - 1 <= types
    assert len(knowledge) - 1 <= breadths


def test_every_label_has_questions_in_both_halves() -> None:
    for half in ("tuning", "held_out"):
        rows = labelled("labelled_questions.yaml", half)

        assert set(QuestionType.words()) == {row[1] for row in rows}
        assert set(Breadth.words()) == {row[2] for row in rows}
        assert {"knowledge", "code", "mixed"} == {row[0] for row in rows}


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_good_queries_are_not_accused_and_lost_subjects_are_found(half: str) -> None:
    found: Counter[str] = Counter()
    rows = labelled("labelled_queries.yaml", half)
    for label, question, query in rows:
        facts = read_question(question)
        judged = judge_query(query, facts=facts, explained=explained_stems(facts))
        is_lost, is_foreign = judged.containment < 0.5, judged.strays > 0
        found[label] += {"good": not is_lost and not is_foreign, "lost": is_lost, "foreign": is_foreign}[label]
    wanted = Counter(row[0] for row in rows)

    assert (wanted["good"], wanted["lost"]) == (found["good"], found["lost"])
    assert found["foreign"] >= (wanted["foreign"] + 2) // 3


@pytest.mark.parametrize("question", ["", "???", "42", "…"])
def test_what_has_no_words_is_uncertain_and_unclear(question: str) -> None:
    assert (TaskKind.UNCERTAIN, QuestionType.UNCLEAR, Breadth.UNSURE) == (
        classify_task(question),
        question_type(question),
        breadth(question),
    )


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Read notes/todo.md and tell me what is open.", "notes/todo.md"),
        ("What is in /etc/hosts?", "/etc/hosts"),
        ("Please open the file config.yaml", "config.yaml"),
        ("Show me ./src/app.py", "./src/app.py"),
        ("What does the file ~/plan.txt say?", "~/plan.txt"),
        ("What is our travel policy?", None),
        ("Read the travel policy to me.", None),
        ("How do I open an account at Norwind?", None),
    ],
)
def test_file_that_is_asked_for_by_name_is_found(question: str, path: str | None) -> None:
    assert path == explicit_file(question)
