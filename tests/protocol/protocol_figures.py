"""Prints the figures of docs/protocol.md: labels found on labelled questions, queries judged, and CPU time per trace.

Run as `python tests/protocol/protocol_figures.py`; the third-party questions are counted where EVIDENTIA_DATA holds them.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from protocol_traces import NOTHING, ask, text_result

from evidentia.contracts.protocol import AgentTrace, QuestionType
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.protocol import breadth, classify_task, lint_trace, prepare_query, question_type
from evidentia.protocol.queries import explained_stems, judge_query
from evidentia.protocol.questions import read_question

HERE = Path(__file__).parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", "../shared/data"))
TRACES = 1_000
SENTENCE = (
    "The service keeps {name} keys in a vault and rotates them every ninety days unless an incident forces an earlier rotation by the "
    "security team, which records each change in the audit log with a ticket number approved by two engineers before rollout to production "
    "systems across all regions where customers store records under contract terms, part {number}; the retention period applies to backups "
    "as well as to exports and to copies that are kept by partners for reporting purposes."
)


def load(name: str) -> Any:
    """Return a file of labels."""
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def label_figures(half: str) -> dict[str, Counter[str]]:
    """Return how many of each label were found, and how many there are."""
    found: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for task, kind, size, question in load("labelled_questions.yaml")[half]:
        labels = {f"task {task}": classify_task(question) == task}
        if task == "knowledge":
            labels |= {f"type {kind}": question_type(question) == kind, f"breadth {size}": breadth(question) == size}
        wanted.update(labels.keys())
        found.update(label for label, holds in labels.items() if holds)
    return {"found": found, "wanted": wanted}


def query_figures(half: str) -> dict[str, str]:
    """Return how many queries of each kind were judged rightly."""
    found: Counter[str] = Counter()
    rows = load("labelled_queries.yaml")[half]
    for label, question, query in rows:
        facts = read_question(question)
        judged = judge_query(query, facts=facts, explained=explained_stems(facts))
        is_lost, is_foreign = judged.containment < 0.5, judged.strays > 0
        found[label] += {"good": not is_lost and not is_foreign, "lost": is_lost, "foreign": is_foreign}[label]
    return {label: f"{found[label]} of {number}" for label, number in Counter(row[0] for row in rows).items()}


def third_party() -> dict[str, list[str]]:
    """Return questions that others wrote, all of them about knowledge."""
    sets: dict[str, list[str]] = {}
    if (spider := DATA / "spider_schema/queries.jsonl").exists():
        sets["spider_schema"] = [json.loads(line)["text"] for line in spider.read_text(encoding="utf-8").splitlines()]
    if (strategy := DATA / "strategyqa/dev.json").exists():
        sets["strategyqa"] = [each["question"] for each in json.loads(strategy.read_text(encoding="utf-8"))]
    if (defog := DATA / "defog_sqleval/questions_gen_sqlite.csv").exists():
        with defog.open(encoding="utf-8", newline="") as file:
            sets["defog_sqleval"] = [row["question"] for row in csv.DictReader(file)]
    return sets


def typical_trace(number: int) -> AgentTrace:
    """Return a trace of two calls, ten pieces of about 80 words, and a reply of six blocks; no two are alike."""
    name = f"Kestrel{number}"
    pieces = text_result(*(SENTENCE.format(name=name, number=part) for part in range(1, 11)))
    blocks = [
        f"The {name} keys are rotated every ninety days by the security team, part {part}.\n"
        f'<CITATION file="handbook:doc{part}.md" filename="doc{part}.md" page=0 />'
        for part in range(1, 7)
    ]
    calls = (
        ask("rag_retrieve", f"{name} key rotation steps", NOTHING, top_k=50),
        ask("rag_retrieve", f"rotate {name} keys procedure", pieces, top_k=100),
    )
    return AgentTrace(question=f"How do I rotate the {name} keys?", calls=calls, reply="\n\n".join(blocks))


def cpu_us_per_trace() -> float:
    """Return the CPU time of one lint in microseconds."""
    traces = [typical_trace(number) for number in range(TRACES)]
    for trace in traces[:10]:
        lint_trace(trace)
    began = time.process_time()
    for trace in traces:
        lint_trace(trace)
    return (time.process_time() - began) / TRACES * 1e6


def main() -> None:
    """Print everything."""
    for half in ("tuning", "held_out"):
        figures = label_figures(half)
        for label in sorted(figures["wanted"]):
            print(f"{half:9} {label:22} {figures['found'][label]:3} of {figures['wanted'][label]}")  # noqa: T201
        print(f"{half:9} queries {query_figures(half)}")  # noqa: T201
    text_first = set(PROFILES["first_call"].text_first)
    for name, questions in third_party().items():
        tasks = Counter(classify_task(question).value for question in questions)
        text = sum(question_type(question) in text_first for question in questions)
        print(f"{name}: {len(questions)} questions, tasks {dict(tasks)}, text first {text}")  # noqa: T201
    rows = [row for half in ("tuning", "held_out") for row in load("labelled_questions.yaml")[half] if row[0] == "knowledge"]
    variants = [len(prepare_query(row[3]).variants) for row in rows]
    lists = [number for number, row in zip(variants, rows, strict=True) if row[1] in {QuestionType.LIST, QuestionType.HISTORY}]
    print(f"variants: {sum(map(bool, variants))} of {len(rows)} questions, {sum(variants) / len(rows):.1f} each; ", end="")  # noqa: T201
    print(f"lists and histories {sum(lists) / len(lists):.1f} each")  # noqa: T201
    print(f"findings in a typical trace: {len(lint_trace(typical_trace(0)))}; CPU per trace: {cpu_us_per_trace():.0f} us")  # noqa: T201


if __name__ == "__main__":
    main()
