"""What earlier turns are worth: conversations asked with their own turns, and with those of another, beside the last turn alone.

    python benchmarks/conversations.py                  (or: make bench-conversations)

The last turn of each judged conversation is asked three ways: alone, after the turns before it, and after the turns of other conversations
(a topic switch: the last turn of B after the turns of A). The turns should help in the second and do no harm in the third. Differences
are paired question by question, intervals are bootstraps over questions, and the collections are shown apart since no rule may be good
for one of them only. `relevance` is the order by the match alone, `default` the default request.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged_bases import CACHE, base_of
from judged_sets import JudgedSet
from quality import PATIENT_MS, ask
from quality_measures import interval_of_mean

from evidentia import connect
from evidentia.evaluation.measures import ndcg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged_sets import Question

    from evidentia import Base

RESULTS = Path(__file__).parent / "results" / "conversations.json"
SET = "conversations"
WAYS = ("relevance", "default")
JOINS = 3


def joined(questions: Sequence[Question], *, place: int) -> list[Question]:
    """Return the judged questions after the turns of another conversation, which is another for each place."""
    donors = sorted((each for each in questions if each.turns), key=lambda each: each.question_id)
    asked = sorted((each for each in questions if each.is_judged), key=lambda each: each.question_id)
    moved = []
    for number, question in enumerate(asked):
        start = number + (place + 1) * len(donors) // (JOINS + 1)
        donor = next(
            donors[step % len(donors)]
            for step in range(start, start + len(donors))
            if donors[step % len(donors)].metadata["conversation"] != question.metadata["conversation"]
        )
        moved.append(question._replace(turns=donor.turns))
    return moved


def scores_of(base: Base, questions: Sequence[Question], way: str) -> dict[str, float]:
    """Return nDCG@10 of each question; all have the time they need."""
    scores = {}
    for question in questions:
        documents = [document for document, _ in ask(base, question, way, limit=None, deadline_ms=PATIENT_MS).fragments]
        scores[question.question_id] = ndcg(list(dict.fromkeys(documents)), question.grades, cut=10)
    return scores


def compared(before: Mapping[str, float], after: Mapping[str, float], among: Sequence[Question]) -> dict[str, Any]:
    """Return the means of both and the interval of their paired difference."""
    ids = [each.question_id for each in among]
    figure = interval_of_mean([after[each] - before[each] for each in ids])
    return {
        "questions": len(ids),
        "alone": round(sum(before[each] for each in ids) / len(ids), 4),
        "with_turns": round(sum(after[each] for each in ids) / len(ids), 4),
        "difference": round(figure.value, 4),
        "interval_95": [round(figure.low, 4), round(figure.high, 4)],
        "better_worse": [sum(after[each] > before[each] for each in ids), sum(after[each] < before[each] for each in ids)],
    }


def measure(base: Base, questions: Sequence[Question], way: str) -> dict[str, Any]:
    """Return what the turns are worth in one way of asking: one's own by collection, and those of others."""
    judged = [each for each in questions if each.is_judged]
    alone = scores_of(base, [each._replace(turns=()) for each in judged], way)
    own = scores_of(base, judged, way)
    collections = sorted({str(each.metadata["collection"]) for each in judged})
    switched = [scores_of(base, joined(questions, place=place), way) for place in range(JOINS)]
    mean = {each.question_id: sum(run[each.question_id] for run in switched) / JOINS for each in judged}
    return {
        "own_turns": compared(alone, own, judged),
        "own_turns_by_collection": {
            name: compared(alone, own, [each for each in judged if each.metadata["collection"] == name]) for name in collections
        },
        "turns_of_others": compared(alone, mean, judged),
        "turns_of_others_by_collection": {
            name: compared(alone, mean, [each for each in judged if each.metadata["collection"] == name]) for name in collections
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What earlier turns are worth.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    judged = JudgedSet(SET)
    CACHE.mkdir(parents=True, exist_ok=True)
    with connect(base_of(judged)) as base:
        ways = {way: measure(base, judged.questions, way) for way in WAYS}
    report = {
        "command": " ".join(["python", "benchmarks/conversations.py", *sys.argv[1:]]),
        "python": platform.python_version(),
        "set": SET,
        "joins": JOINS,
        "ways": ways,
    }
    chosen.out.write_text(json.dumps(report, indent=2) + "\n")
    for way, figures in ways.items():
        for name in ("own_turns", "turns_of_others"):
            print(f"{way:<10} {name:<16} {figures[name]}")


if __name__ == "__main__":
    main()
