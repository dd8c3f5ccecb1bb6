"""An agent's notes as a source: found by words, by their owner only, in an order that is always the same."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.records.note_store import EmbeddedNotes
from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.evidence import SubQuery, TimeWindow
from evidentia.contracts.ids import PrincipalId, SessionId, Sha256, TenantId
from evidentia.contracts.ports import SupportsDataVersion
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.contracts.search import AccessScope
from evidentia.contracts.sources import Note
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.policy.access import is_allowed
from evidentia.sources.agent_notes import MemoryRetriever
from evidentia.testing.determinism import START, SteppingClock
from evidentia.text.tokens import Tokeniser
from evidentia.text.weights import Bm25, idf_fixed

if TYPE_CHECKING:
    from collections.abc import Iterator

ANN = Principal(principal_id=PrincipalId("ann"), tenant=TenantId("t"))


def _note(
    note_id: str, text: str, *, owner: str = "ann", tenant: str = "t", agent: str = "bot", session: str = "", title: str = ""
) -> Note:
    return Note(note_id=note_id, text=text, title=title, owner=owner, tenant=tenant, agent_name=agent, session=session, written_at=START)


def _ask(
    text: str, *, principal: Principal = ANN, session: str | None = None, limit: int = 10, window: TimeWindow | None = None
) -> SourceAsk:
    return SourceAsk(
        query=SubQuery(text=text),
        principal=principal,
        limit=limit,
        budget_ms=100,
        as_of=START,
        agent_name="bot",
        session=None if session is None else SessionId(session),
        time_window=window,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedNotes]:
    """Return an empty store of notes."""
    made = EmbeddedNotes(tmp_path / "notes.db", clock=SteppingClock())
    yield made
    made.close()


def _ids(store: EmbeddedNotes, ask: SourceAsk) -> list[str]:
    return [candidate.own_id for candidate in MemoryRetriever(store).retrieve_blocking(ask)]


def test_without_notes_nothing_is_found(store: EmbeddedNotes) -> None:
    assert [] == _ids(store, _ask("anything"))


def test_a_note_is_proposed_with_where_it_came_from_and_who_may_see_it(store: EmbeddedNotes) -> None:
    store.add(_note("n1", "The deploy key rotates on Mondays.", session="s1", title="Deploy"))

    assert [
        Candidate(
            content="The deploy key rotates on Mondays.",
            own_id="n1",
            origin="memory:bot/s1/n1",
            title="Deploy",
            updated_at=START,
            access=AccessRule(tenant=TenantId("t"), classification=Classification.PUBLIC, acl=("user:ann",)),
        )
    ] == list(MemoryRetriever(store).retrieve_blocking(_ask("rotating keys", session="s1")))


def test_the_owner_may_see_what_is_proposed_and_nobody_else(store: EmbeddedNotes) -> None:
    store.add(_note("n1", "deploy"))
    (candidate,) = MemoryRetriever(store).retrieve_blocking(_ask("deploy"))
    assert candidate.access is not None
    bob = Principal(principal_id=PrincipalId("bob"), tenant=TenantId("t"), clearance=Classification.RESTRICTED)
    elsewhere = Principal(principal_id=PrincipalId("ann"), tenant=TenantId("other"))

    assert [True, False, False] == [
        is_allowed(candidate.access, AccessScope(principal=each, rules=(), fingerprint=Sha256(""))) for each in (ANN, bob, elsewhere)
    ]


def test_only_notes_that_hold_a_word_of_the_question_are_proposed(store: EmbeddedNotes) -> None:
    store.add(_note("a", "the deploy of the search service"))
    store.add(_note("b", "the holiday of the team"))

    assert ["a"] == _ids(store, _ask("when is the deploy"))
    assert [] == _ids(store, _ask("quarterly figures"))
    assert ["b", "a"] == _ids(store, _ask("the of"))
    assert [] == _ids(store, _ask("?!"))


def test_a_title_counts_too(store: EmbeddedNotes) -> None:
    store.add(_note("a", "on mondays", title="Deploy"))

    assert ["a"] == _ids(store, _ask("deploy"))


def test_the_best_come_first_and_equal_ones_by_id(store: EmbeddedNotes) -> None:
    store.add(_note("z", "deploy deploy key"))
    store.add(_note("b", "deploy once in a much longer note about many other things"))
    store.add(_note("d", "deploy key"))
    store.add(_note("c", "deploy key"))

    assert ["z", "c", "d", "b"] == _ids(store, _ask("deploy"))
    assert ["z", "c"] == _ids(store, _ask("deploy", limit=2))


def test_notes_of_others_are_not_seen_and_have_no_influence(store: EmbeddedNotes) -> None:
    store.add(_note("a", "deploy key on monday"))
    store.add(_note("b", "deploy friday friday"))
    before = _ids(store, _ask("deploy friday key"))
    for number in range(20):
        store.add(_note(f"x{number}", "friday friday friday", owner="bob"))
        store.add(_note(f"y{number}", "friday", tenant="other"))
        store.add(_note(f"z{number}", "friday", agent="another"))

    assert before == _ids(store, _ask("deploy friday key"))


def test_a_session_sees_its_own_notes_and_those_for_every_session(store: EmbeddedNotes) -> None:
    store.add(_note("everywhere", "deploy"))
    store.add(_note("first", "deploy", session="s1"))
    store.add(_note("second", "deploy", session="s2"))

    assert ["everywhere", "first"] == _ids(store, _ask("deploy", session="s1"))
    assert ["everywhere"] == _ids(store, _ask("deploy"))


def test_what_expired_before_the_request_is_not_proposed(store: EmbeddedNotes) -> None:
    store.add(Note(note_id="a", text="deploy", owner="ann", tenant="t", agent_name="bot", written_at=START - timedelta(days=2),
                   expires_at=START))  # fmt: skip
    store.add(_note("b", "deploy"))

    assert ["b"] == _ids(store, _ask("deploy"))


def test_notes_outside_the_time_window_are_not_proposed(store: EmbeddedNotes) -> None:
    store.add(_note("a", "deploy"))
    hour = timedelta(hours=1)

    assert ["a"] == _ids(store, _ask("deploy", window=TimeWindow(start=START, end=START)))
    assert [] == _ids(store, _ask("deploy", window=TimeWindow(start=START + hour)))
    assert [] == _ids(store, _ask("deploy", window=TimeWindow(end=START - hour)))


def test_a_source_of_one_authority_holds_the_notes_of_that_authority_only(store: EmbeddedNotes) -> None:
    store.add(_note("passing", "deploy key"))
    store.add(msgspec.structs.replace(_note("lasting", "deploy"), authority_tier=AuthorityTier.USER))
    found = {
        tier: [each.own_id for each in MemoryRetriever(store, authority_tier=tier).retrieve_blocking(_ask("deploy key"))]
        for tier in (AuthorityTier.EPHEMERAL, AuthorityTier.USER, AuthorityTier.CANONICAL, None)
    }

    assert [["passing"], ["lasting"], [], ["passing", "lasting"]] == list(found.values())


def test_the_data_version_is_the_revision_of_the_notes(store: EmbeddedNotes) -> None:
    retriever = MemoryRetriever(store)
    assert isinstance(retriever, SupportsDataVersion)
    before = retriever.data_version()
    store.add(_note("a", "deploy"))

    assert before != retriever.data_version() == store.revision()


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "HTTPServer2", "the"]), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=7), query=WORDS)
def test_the_order_is_that_of_exact_scores(texts: list[str], query: str) -> None:
    """Compared with BM25 from its definition, written out here over the same weights."""
    with TemporaryDirectory() as folder:
        store = EmbeddedNotes(Path(folder) / "notes.db", clock=SteppingClock())
        for number, text in enumerate(texts):
            store.add(_note(f"{number}", text))
        found = _ids(store, _ask(query, limit=100))
        store.close()
    tokeniser = Tokeniser()
    frequencies = [Counter(tokeniser.terms(text)) for text in texts]
    lengths = [tokeniser.terms_with_positions(text)[-1][1] + 1 for text in texts]
    asked = Counter(tokeniser.terms(query))
    wanted = {term: times for term, times in asked.items() if term != "the"} or asked
    bm25 = Bm25.of(total_length=sum(lengths), documents=len(texts))
    scores: Counter[str] = Counter()
    for term, times in wanted.items():
        idf = idf_fixed("lucene", documents=len(texts), containing=sum(term in each for each in frequencies))
        for number, each in enumerate(frequencies):
            if term in each:
                scores[str(number)] += times * bm25.impact(each[term], lengths[number], idf=idf)

    assert sorted(scores, key=lambda note_id: (-scores[note_id], note_id)) == found
