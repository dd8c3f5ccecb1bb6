"""An agent's own notes as a source: found by their words, by whoever wrote them, and by nobody else.

Scores are BM25 in integers over the notes that this ask may see, so that no other note has any influence on them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.access import AccessRule
from evidentia.contracts.ids import TenantId
from evidentia.contracts.ports import BlockingRetriever, NoteStore, SupportsDataVersion
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.text.tokens import STOP_WORDS, Tokeniser
from evidentia.text.weights import LARGEST_LENGTH, QUERY_TERM_LIMIT, Bm25, idf_fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.contracts.evidence import TimeWindow
    from evidentia.contracts.sources import Note


class MemoryRetriever(BlockingRetriever, SupportsDataVersion):
    """Implements `BlockingRetriever` and `SupportsDataVersion` over the notes of one authority, or of any, in a store."""

    def __init__(self, store: NoteStore, *, authority_tier: AuthorityTier | None = None, tokeniser: Tokeniser | None = None) -> None:
        self._store = store
        self._tier = authority_tier
        self._tokeniser = tokeniser or Tokeniser()

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[Candidate]:
        """Yield the notes that hold a word of the question, best first, ties by id.

        Seen are notes of the caller's tenant, person and agent: those of the ask's session, and those for every session.
        """
        notes = self._store.of(
            tenant=ask.principal.tenant,
            owner=ask.principal.principal_id,
            agent_name=ask.agent_name,
            session=ask.session or "",
            now=ask.as_of,
        )
        seen = [note for note in notes if self._tier in (None, note.authority_tier) and _is_within(note, ask.time_window)]
        for note in self._best(seen, ask.query.text)[: ask.limit]:
            yield _candidate(note)

    def data_version(self) -> str:
        """Return a word that is another one whenever a note came, went or expired."""
        return self._store.revision()

    def _best(self, notes: Sequence[Note], query: str) -> list[Note]:
        terms = Counter(self._tokeniser.terms(query))
        asked = {term: times for term, times in sorted(terms.items()) if term not in STOP_WORDS} or dict(sorted(terms.items()))
        read = [self._read(note) for note in notes]
        scores = _scores(read, dict(list(asked.items())[:QUERY_TERM_LIMIT]))
        ranked = sorted((-score, note.note_id, number) for number, (note, score) in enumerate(zip(notes, scores, strict=True)) if score)
        return [notes[number] for _, _, number in ranked]

    def _read(self, note: Note) -> _Words:
        placed = self._tokeniser.terms_with_positions(f"{note.title}\n{note.text}")
        return _Words(frequencies=Counter(term for term, _ in placed), length=placed[-1][1] + 1 if placed else 0)


class _Words(NamedTuple):
    frequencies: Mapping[str, int]
    length: int


def _scores(read: Sequence[_Words], asked: Mapping[str, int]) -> list[int]:
    """Return the score of each note at 2^-16; 0 where no word of the question occurs, and only there."""
    if not read:
        return []
    lengths = [min(words.length, LARGEST_LENGTH) for words in read]
    bm25 = Bm25.of(total_length=sum(lengths), documents=len(read))
    totals = [0] * len(read)
    for term, times in asked.items():
        holding = [number for number, words in enumerate(read) if term in words.frequencies]
        idf = idf_fixed("lucene", documents=len(read), containing=len(holding))
        for number in holding:
            totals[number] += max(1, bm25.impact(read[number].frequencies[term], lengths[number], idf=idf)) * times
    return totals


def _is_within(note: Note, window: TimeWindow | None) -> bool:
    if window is None:
        return True
    is_late_enough = window.start is None or note.written_at >= window.start
    return is_late_enough and (window.end is None or note.written_at <= window.end)


def _candidate(note: Note) -> Candidate:
    """Return a note as its source proposes it; how much its word weighs is for the source's descriptor to say."""
    return Candidate(
        content=note.text,
        own_id=note.note_id,
        origin=f"memory:{note.agent_name}/{note.session}/{note.note_id}",
        title=note.title,
        updated_at=note.written_at,
        access=AccessRule(tenant=TenantId(note.tenant), classification=Classification.PUBLIC, acl=(f"user:{note.owner}",)),
    )
