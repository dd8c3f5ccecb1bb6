"""Replies made of real sentences: none that is right is accused, and breaks are found under their names.

A reply quotes one to three sentences from each of some abstracts, as a paragraph or a list, with the citation and the image behind it; then
one thing is broken at a time.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from evidentia.protocol.citations import DocumentCitation
from evidentia.protocol.reply_audit import ReplyAudit, audit_reply
from evidentia.protocol.tool_results import ResultFacts, read_result
from evidentia.text.marks import neutralise
from evidentia.text.sentences import split_sentences

CORPUS = Path(os.environ.get("EVIDENTIA_DATA", Path(__file__).parents[3] / "shared" / "data")) / "scifact" / "corpus.jsonl"
REPLIES = 400


class Part(NamedTuple):
    """One paragraph or list of a reply, the image behind it, and its citation."""

    text: str
    image: str
    citation: str


class Case(NamedTuple):
    """A reply that is right, and what it was made from."""

    question: str
    results: list[ResultFacts]
    parts: list[Part]

    def audit(self, parts: list[Part], *, tail: str = "") -> ReplyAudit:
        """Audit a reply of some parts with something at its end."""
        reply = "\n\n".join("\n".join(line for line in part if line) for part in parts) + tail
        return audit_reply(reply, question=self.question, results=self.results, has_supplement_allowed=True, is_sufficient=False)


def read_abstracts() -> list[tuple[str, list[str]]]:
    """Return titles with their sentences of common length, for abstracts that have two or more."""
    found: list[tuple[str, list[str]]] = []
    for line in CORPUS.read_text(encoding="utf-8").splitlines()[:3_000]:
        record = json.loads(line)
        sentences = [record["text"][span.start : span.end].replace("\n", " ") for span in split_sentences(record["text"])]
        kept = [sentence for sentence in sentences if 40 < len(sentence) < 400 and sentence[-1] not in "?:" and "|" not in sentence]
        if len(kept) > 1:
            found.append((record["title"], kept[:6]))
    return found


def make_case(abstracts: list[tuple[str, list[str]]], chance: random.Random, *, number: int) -> Case:
    chosen = chance.sample(abstracts, chance.randint(2, 6))
    pieces: list[str] = []
    parts: list[Part] = []
    for place, (_, sentences) in enumerate(chosen):
        kept = chance.randint(1, len(sentences))
        image = f"![figure](evidentia-image:{place:02x}{number:06x})" if chance.random() < 0.3 else ""
        shown = [neutralise(" ".join(sentences[:kept])), image, neutralise(" ".join(sentences[kept:]))]
        heading = f'### [{place + 1}] file="d:{place}" filename="d{place}.pdf" page={place}'
        pieces.append("\n".join(line for line in (heading, *shown) if line))
        quoted = chance.sample(sentences[:kept], min(kept, chance.randint(1, 3)))
        follows_list = bool(parts) and parts[-1].text.startswith("-")
        text = " ".join(quoted) if follows_list or chance.random() < 0.6 else "\n".join(f"- {sentence}" for sentence in quoted)
        parts.append(Part(text, image, DocumentCitation(file=f"d:{place}", filename=f"d{place}.pdf", page=place).text))
    result = "\n".join(("RAG_KNOWLEDGE BEGIN", *pieces, "RAG_KNOWLEDGE END"))
    return Case(f"{chosen[0][0]}?", [read_result("rag_retrieve", result)], parts)


def names(found: ReplyAudit) -> set[str]:
    return {finding.rule.value for finding in found.findings if finding.count is None}


def breaks_of(case: Case, chance: random.Random) -> dict[str, tuple[str, ReplyAudit]]:
    """Return what is broken, the rule that speaks of it, and the audit of the broken reply."""
    parts = case.parts
    place = chance.randrange(len(parts))

    def changed(**fields: str) -> list[Part]:
        return [*parts[:place], parts[place]._replace(**fields), *parts[place + 1 :]]

    uncited = [part._replace(citation="") for part in parts]
    tags = "\n".join(part.citation for part in parts)
    words = parts[place].text.split(" ")
    inside = " ".join((*words[: len(words) // 2], parts[place].citation, *words[len(words) // 2 :]))
    swapped = [parts[0]._replace(citation=parts[1].citation), parts[1]._replace(citation=parts[0].citation), *parts[2:]]
    found = {
        "dropped": ("citation_missing", case.audit(changed(citation=""))),
        "page": ("citation_unresolved", case.audit(changed(citation=parts[place].citation.replace("page=", "page=9")))),
        "quotes": ("citation_grammar", case.audit(changed(citation=parts[place].citation.replace("page=", "page=x")))),
        "inside": ("citation_placement", case.audit(changed(text=inside, citation=""))),
        "swapped": ("citation_placement", case.audit(swapped)),
        "at the end": ("citations_at_end", case.audit(uncited, tail=f"\n{tags}")),
        "under a heading": ("citations_at_end", case.audit(uncited, tail=f"\n\n## Sources\n\n{tags}")),
    }
    images = "\n".join(part.image for part in parts if part.image)
    if images:
        bare = [part._replace(image="") for part in parts]
        found["image left out"] = ("image_ignored", case.audit(bare))
        if not parts[-1].image:
            found["images heaped"] = ("images_at_end", case.audit(bare, tail=f"\n\n{images}"))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason=f"no collection at {CORPUS}")
def test_right_replies_are_not_accused_and_breaks_are_named() -> None:
    chance = random.Random(11)
    abstracts = read_abstracts()
    accused: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for number in range(REPLIES):
        case = make_case(abstracts, chance, number=number)
        right = case.audit(case.parts)
        accused.update(names(right))
        assert (right.says_not_found, right.uses_evidence) == (False, True)
        for name, (rule, found) in breaks_of(case, chance).items():
            tried[name] += 1
            missed[name] += rule not in names(found)

    assert {} == accused
    assert {} == {name: count for name, count in missed.items() if count * 50 > tried[name]}
    assert 2_500 < sum(tried.values())
