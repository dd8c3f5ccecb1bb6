"""bm25s as a user installs it: the Lucene method, the Snowball stemmer, its English stop words, whole documents.

Its rankings depend on nothing of ours and are kept, so that a comparison needs the package only once.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from judged_sets import JudgedSet

K1, B = 1.5, 0.75


def bm25s_rankings(judged: JudgedSet, *, cache: Path, depth: int) -> dict[str, list[str]]:
    """Return the ids of the documents for every question, best first; only documents that share a word with it."""
    asked = [(each.question_id, each.text) for each in judged.questions]
    key = hashlib.sha256(json.dumps([judged.corpus_digest, asked, depth, K1, B]).encode()).hexdigest()[:16]
    path = cache / "bm25s" / f"{judged.name}-{key}.json"
    if path.exists():
        known: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
        return known
    rankings = _rank(judged, depth=depth)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rankings), encoding="utf-8")
    return rankings


def _rank(judged: JudgedSet, *, depth: int) -> dict[str, list[str]]:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    texts = [f"{each.title}\n\n{each.text}" if each.title else each.text for each in judged.documents]
    retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
    retriever.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    rankings = {}
    for question in judged.questions:
        words = bm25s.tokenize([question.text], stopwords="en", stemmer=stemmer, show_progress=False)
        places, scores = retriever.retrieve(words, k=min(depth, len(texts)), show_progress=False, n_threads=0)
        found = zip(places[0], scores[0], strict=True)
        rankings[question.question_id] = [judged.documents[int(place)].document_id for place, score in found if score > 0]
    return rankings
