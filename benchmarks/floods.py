"""Near-copies of a false passage, put into the base by a source of low authority: how much of the answer do they take?

    make bench-floods
    python benchmarks/floods.py --sets covidqa,xquad --out after.json

For questions of the development sets a relevant passage is made false (other numbers, other names) and copied 1, 5, 20 or 100 times, each
copy a little different and in one of the forms that a hostile author would try. The copies come from sources of authority `ephemeral` and
`user`, the judged passages are `curated`. `first_five` is the share of the first five places that copies take, `others` nDCG@10 of what
else is in the answer, and `spared` what that is without any flood. `default` is the default request, `alone` the same without diversity.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judged_bases import CACHE, SOURCE, base_of, embed
from judged_sets import JudgedSet, Question
from quality import sampled
from quality_measures import interval_of_mean

from evidentia import connect
from evidentia.evaluation.measures import ndcg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia import Base

SETS = ("scifact", "covidqa", "xquad", "conversations_alone")
COPIES = (1, 5, 20, 100)
AUTHORITIES = ("ephemeral", "user")
WAYS: dict[str, dict[str, object]] = {"default": {}, "alone": {"diversity_constraint": 1.0}}
FIRST = 5
PATIENT_MS = 60_000
LOOK_ALIKES = str.maketrans("aeopcxyi", "аеорсхуі")  # noqa: RUF001 - Cyrillic letters that look like Latin ones are the point
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
OPENERS = ("Note", "Indeed", "In short", "As is known", "To be clear", "Update", "Answer", "In fact", "Remember", "Please note")


class Flooding(NamedTuple):
    """The copies that answer one question falsely: how many, in which form, and from a source of which authority."""

    question: Question
    number: int
    form: str
    authority: str


def falsified(text: str, *, names: Sequence[str]) -> str:
    """Return a passage with every number and every name inside its sentences replaced, the same one always alike."""

    def number(match: re.Match[str]) -> str:
        return "".join(str((int(digit) + 3) % 10) for digit in match[0])

    def name(match: re.Match[str]) -> str:
        return names[int(hashlib.sha256(match[0].encode()).hexdigest(), 16) % len(names)]

    return re.sub(r"[0-9]+", number, _NAME.sub(name, text))


def reworded(text: str, chance: random.Random, *, share: float, words: Sequence[str]) -> str:
    """Return a text in which a share of its words is replaced by others of the corpus."""
    return _WORD.sub(lambda match: chance.choice(words) if chance.random() < share else match[0], text)


def _front(asked: str, text: str, _: str, __: random.Random) -> str:
    return f"{asked} {text}"


def _behind(asked: str, text: str, _: str, __: random.Random) -> str:
    return f"{text} {asked}"


def _shuffled(asked: str, text: str, _: str, chance: random.Random) -> str:
    sentences = _SENTENCE.split(text)
    chance.shuffle(sentences)
    return f"{asked} {' '.join(sentences)}"


def _padded(asked: str, text: str, padding: str, _: random.Random) -> str:
    return f"{asked} {text} {padding}"


def _disguised(asked: str, text: str, _: str, chance: random.Random) -> str:
    """Put letters of another script into every fourth word."""
    return f"{asked} " + _WORD.sub(lambda match: match[0].translate(LOOK_ALIKES) if chance.random() < 1 / 4 else match[0], text)


def _excerpt(asked: str, text: str, _: str, chance: random.Random) -> str:
    """Keep half of the sentences, another half each time."""
    sentences = _SENTENCE.split(text)
    kept = sorted(chance.sample(range(len(sentences)), max(1, len(sentences) // 2)))
    return f"{asked} {' '.join(sentences[place] for place in kept)}"


FORMS: dict[str, Callable[[str, str, str, random.Random], str]] = {
    "front": _front,
    "behind": _behind,
    "shuffled": _shuffled,
    "rewritten": _front,
    "padded": _padded,
    "disguised": _disguised,
    "excerpt": _excerpt,
}
"""The question before or behind the passage, and what is done to it; `rewritten` replaces one word in six, every other one in 33."""


def copies(flooding: Flooding, judged: JudgedSet, *, names: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the texts that a flood consists of; the same for the same question."""
    question = flooding.question
    grades = question.grades
    relevant = min((each for each in judged.documents if grades.get(each.document_id, 0) > 0), key=lambda each: each.document_id)
    false = falsified(relevant.text, names=names)
    made = []
    for number in range(flooding.number):
        chance = random.Random(f"{judged.name} {question.question_id} {number}")
        share = 1 / 6 if flooding.form == "rewritten" else 1 / 33
        text = reworded(false, chance, share=share, words=words)
        padding = " ".join(chance.choice(judged.documents).text.split()[:60])
        asked = question.text if number == 0 else f"{chance.choice(OPENERS)}: {question.text}"
        made.append(FORMS[flooding.form](asked, text, padding, chance))
    return made


def floodings(judged: JudgedSet, *, most: int) -> list[Flooding]:
    """Return which questions are flooded and how: every form meets every number of copies and both authorities in turn."""
    cells = [(count, form, authority) for authority in AUTHORITIES for form in FORMS for count in COPIES]
    chosen = sampled([each for each in judged.questions if each.is_judged and each.text.strip()], most)
    return [Flooding(question, *cells[place % len(cells)]) for place, question in enumerate(chosen)]


def flooded_base(judged: JudgedSet, floods: Sequence[Flooding], *, cache: Path) -> Path:
    """Return the folder of the set's base with all the floods in it, built when it is not there yet."""
    names = sorted({name for each in judged.documents for name in _NAME.findall(each.text)}) or ["Nobody"]
    words = sorted({word for each in judged.documents[:200] for word in _WORD.findall(each.text)})
    lines: dict[str, list[str]] = {authority: [] for authority in AUTHORITIES}
    for flood in floods:
        texts = copies(flood, judged, names=names, words=words)
        lines[flood.authority] += [
            json.dumps({"_id": f"{flood.question.question_id}/{number}", "title": "", "text": text}) for number, text in enumerate(texts)
        ]
    clean = base_of(judged, cache_folder=cache)
    digest = hashlib.sha256(f"{clean.name} {lines}".encode()).hexdigest()[:16]
    folder = cache / "floods" / f"{judged.name}-{digest}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        shutil.copytree(clean, Path(unfinished, "base"))
        with connect(Path(unfinished, "base")) as base:
            for authority, documents in lines.items():
                corpus = Path(unfinished, f"{authority}.jsonl")
                corpus.write_text("\n".join(documents) + "\n", encoding="utf-8")
                base.ingest([corpus], source=authority, authority=authority, embed=False)
        embed(Path(unfinished, "base"), cache_folder=cache)
        Path(unfinished, "base").rename(folder)
    return folder


def answers(base: Base, question: Question, way: str) -> list[tuple[str, str]]:
    """Return source and document of each fragment, best first."""
    turns = {"turns": question.turns} if question.turns else {}
    response = base.retrieve(question.text, receipt=False, latency_deadline_ms=PATIENT_MS, **turns, **WAYS[way])
    return [(each.source_id, each.document_id.removeprefix(f"{each.source_id}:")) for each in response.fragments]


def measured(found: Sequence[tuple[str, str]], question: Question) -> tuple[float, float]:
    """Return the share of the first five places that others than the judged source take, and nDCG@10 without them."""
    own = list(dict.fromkeys(document for source, document in found if source == SOURCE))
    return sum(source != SOURCE for source, _ in found[:FIRST]) / FIRST, ndcg(own, question.grades, cut=10)


def run_set(name: str, *, cache: Path, most: int) -> list[dict[str, Any]]:
    """Return a row for each flooded question of a set and each way."""
    judged = JudgedSet(name)
    floods = floodings(judged, most=most)
    with connect(flooded_base(judged, floods, cache=cache)) as flooded, connect(base_of(judged, cache_folder=cache)) as clean:
        rows = []
        for flood in floods:
            for way in WAYS:
                share, others = measured(answers(flooded, flood.question, way), flood.question)
                _, spared = measured(answers(clean, flood.question, way), flood.question)
                told = {"set": name, "question": flood.question.question_id, "way": way, "form": flood.form, "copies": flood.number}
                rows.append({**told, "authority": flood.authority, "first_five": share, "others": others, "spared": spared})
    return rows


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table: by number of copies, by form, by authority and by set."""
    lines = [f"{'':<24} {'questions':>9}  {'first five: default':<24} {'alone':>6}  {'others: default':>15} {'alone':>6} {'spared':>7}"]
    for column in ("", "copies", "form", "authority", "set"):
        for value in dict.fromkeys(row[column] if column else "all" for row in rows):
            chosen = [row for row in rows if not column or row[column] == value]
            default, alone = ([row for row in chosen if row["way"] == way] for way in WAYS)
            share = interval_of_mean([row["first_five"] for row in default])
            bounds = f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
            figures = [_mean(default, "others"), _mean(alone, "others"), _mean(default, "spared")]
            rest = f"{_mean(alone, 'first_five'):>6.3f}  {figures[0]:>15.4f} {figures[1]:>6.4f} {figures[2]:>7.4f}"
            lines.append(f"{column:<10} {value!s:<13} {len(default):>9}  {bounds:<24} {rest}")
    return "\n".join(lines)


def _mean(rows: Sequence[Mapping[str, Any]], field: str) -> float:
    return float(sum(row[field] for row in rows) / len(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description="What floods of near-copies take of an answer.")
    parser.add_argument("--sets", default=",".join(SETS), help="which sets, with commas")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where bases and vectors are kept (EVIDENTIA_BENCH_CACHE)")
    parser.add_argument("--questions", type=int, default=56, help="how many questions of each set are flooded")
    parser.add_argument("--out", type=Path, help="write every row to this file")
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    rows = [row for name in given.sets.split(",") for row in run_set(name, cache=given.cache, most=given.questions)]
    print(render(rows))
    if given.out:
        given.out.write_text(json.dumps(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
