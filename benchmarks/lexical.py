"""Lexical search over 100,000 and 500,000 passages, beside tantivy and bm25s over the same terms, in one run.

    make bench-lexical

Queries are words drawn from passages as they occur, common ones included. Figures are CPU milliseconds per query on one thread.
Evidentia is asked as three callers who see all, 30 % and 1 % of the passages; the other two know no callers.
"Bare" is the search itself: exact scores, exact order, exact number of matches. "Retrieve" is the public call, with
custody, proofs and hashes of every fragment; its receipt is left out, because its cost is a disk's sync. "Custody alone" is
what the public call cannot do without: reading the fragments and the ten that may contradict them, proving that the log holds
them, and computing their chains; nothing is ranked, chosen or put together.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from passages import passages

from evidentia import Principal, connect
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import Settings
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.request_checks import request_from
from evidentia.engine.selection import POOL_BEYOND_LIMIT
from evidentia.policy.access import access_scope
from evidentia.provenance.custody_chain import stored_chain
from evidentia.text.tokens import Tokeniser
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evidentia.contracts.ports import EvidenceSnapshot, SearchableSnapshot
    from evidentia.contracts.search import AccessScope, LexicalHits, SearchHit

SIZES = (100_000, 500_000)
QUERIES = 300
WARM_UP = 30
SHAPES = ((3, 10), (8, 100))
RESULTS = Path(__file__).parent / "results" / "lexical.json"
CALLERS = {"all": ("one", "thirty", "rest"), "30 %": ("one", "thirty"), "1 %": ("one",)}


def group_of(number: int) -> str:
    """Return the group a passage belongs to: 1 %, 29 % and 70 %."""
    return "one" if number % 100 == 0 else "thirty" if number % 100 < 30 else "rest"


def caller(groups: Iterable[str]) -> Principal:
    return Principal(principal_id="bench", clearance=Classification.INTERNAL, groups=tuple(groups))  # type: ignore[arg-type]  # a plain name


def make_queries(texts: list[str], *, words: int) -> list[str]:
    """Return questions of distinct words that occur together in a passage."""
    chance = np.random.default_rng(words)
    made: list[str] = []
    while len(made) < QUERIES + WARM_UP:
        distinct = sorted(set(texts[int(chance.integers(len(texts)))].rstrip(".").split()))
        if len(distinct) >= words:
            made.append(" ".join(chance.choice(distinct, words, replace=False)))
    return made


def timed(search: Callable[[Any], object], queries: list[Any]) -> dict[str, float]:
    for query in queries[:WARM_UP]:
        search(query)
    spent = []
    for query in queries[WARM_UP:]:
        started = time.process_time_ns()
        search(query)
        spent.append(time.process_time_ns() - started)
    p50, p99 = np.percentile(spent, [50, 99]) / 1e6
    return {"p50_ms": round(float(p50), 3), "p99_ms": round(float(p99), 3)}


def build_base(work: Path, texts: list[str]) -> None:
    connect(work, init=True).close()
    with connect(work) as base:
        for group in CALLERS["all"]:
            corpus = work / f"{group}.jsonl"
            with corpus.open("w") as file:
                for number, text in enumerate(texts):
                    if group_of(number) == group:
                        file.write(json.dumps({"_id": f"p{number}", "text": text}) + "\n")
            base.ingest([corpus], source="bench", embed=False, acl=[f"group:{group}"])
        base.gc()


def build_tantivy(tokens: list[list[str]]) -> Callable[[tuple[list[str], int]], object]:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("id", stored=False, fast=True, indexed=False)
    builder.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(400_000_000, 1)
    for number, terms in enumerate(tokens):
        writer.add_document(tantivy.Document(id=number, text=" ".join(terms)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: tuple[list[str], int]) -> object:
        clauses = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term, "freq")) for term in query[0]]
        return searcher.search(tantivy.Query.boolean_query(clauses), query[1])

    return search


def build_bm25s(tokens: list[list[str]]) -> Callable[[tuple[list[str], int]], object]:
    import bm25s

    retriever = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    retriever.index(tokens, show_progress=False)
    return lambda query: retriever.retrieve([query[0]], k=query[1], show_progress=False, n_threads=0)


def measure(size: int, work: Path) -> dict[str, Any]:
    texts = list(passages(size))
    build_base(work, texts)
    tokeniser = Tokeniser()
    tokens = [tokeniser.terms(text) for text in texts]
    peers = {"tantivy": build_tantivy(tokens), "bm25s": build_bm25s(tokens)}
    queries = {words: make_queries(texts, words=words) for words, _ in SHAPES}
    del texts, tokens
    parts = embedded.open_parts(work)
    search_settings = Settings().search
    started = time.process_time_ns()
    snapshot = parts.index.at(search=search_settings)
    report: dict[str, Any] = {
        "passages": size,
        "open_snapshot_ms": round((time.process_time_ns() - started) / 1e6, 1),
        "cold_mask_ms": {},
        "rows": [],
    }
    scopes = {name: access_scope(caller(groups), acl_scope=None, rules=()) for name, groups in CALLERS.items()}
    for name, scope in scopes.items():
        started = time.process_time_ns()
        snapshot.view(scope)
        report["cold_mask_ms"][name] = round((time.process_time_ns() - started) / 1e6, 2)
    engine = parts.engine(parts.config)
    for words, limit in SHAPES:
        asked = [tokeniser.terms(query) for query in queries[words]]
        for peer, search in peers.items():
            report["rows"].append(
                {"engine": peer, "terms": words, "top": limit, "sees": "all", **timed(search, [(terms, limit) for terms in asked])}
            )
        for name, scope in scopes.items():
            lexical = [LexicalQuery(terms=Counter(terms)) for terms in asked]
            bare = timed(partial(_bare, snapshot, scope, limit), lexical)
            report["rows"].append({"engine": "evidentia bare", "terms": words, "top": limit, "sees": name, **bare})
            requests = [request_from(query, {"limit": limit, "mode": "lexical", "receipt": False}) for query in queries[words]]
            whole = timed(partial(engine.answer, principal=caller(CALLERS[name])), requests)
            report["rows"].append({"engine": "evidentia retrieve", "terms": words, "top": limit, "sees": name, **whole})
            best = [_bare(snapshot, scope, limit + POOL_BEYOND_LIMIT, query).hits for query in lexical]
            custody = timed(partial(_custody, snapshot, limit), best)
            report["rows"].append({"engine": "evidentia custody alone", "terms": words, "top": limit, "sees": name, **custody})
    parts.close()
    return report


def _bare(snapshot: EvidenceSnapshot, scope: AccessScope, limit: int, query: LexicalQuery) -> LexicalHits:
    return snapshot.search(query, scope=scope, narrowing=None, facets=(), limit=limit)


def _custody(snapshot: SearchableSnapshot, limit: int, hits: Sequence[SearchHit]) -> object:
    chunks = snapshot.chunks(hits)[:limit]
    return snapshot.proofs(chunks), [stored_chain(chunk) for chunk in chunks]


def main(sizes: Iterable[int]) -> None:
    measured = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            measured.append(measure(size, Path(folder)))
            print(json.dumps(measured[-1], indent=1), flush=True)
    if tuple(sizes) == SIZES:
        report = {"command": "make bench-lexical", "python": platform.python_version(), "queries": QUERIES, "sizes": measured}
        RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(tuple(int(each) for each in sys.argv[1:]) or SIZES)
