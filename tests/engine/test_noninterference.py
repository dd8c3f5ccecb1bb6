"""What you may not see cannot influence what you see: `retrieve(C, p)` equals `retrieve(C restricted to what p may see, p)`.

Who may see what is decided by an oracle of its own (`access_oracle`), the corpora are random (`random_worlds`), and the
comparison takes every field of an answer that is not about the base as a whole. The last tests break the law on purpose
and expect the comparison to notice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest
from access_oracle import RULES, may_see
from random_worlds import ENTRIES, make_documents, make_principal, make_request, make_world
from small_base import SmallBase, memory_folder

from evidentia.contracts.access import local_owner
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.ids import ChunkId, DocumentId
from evidentia.contracts.search import LexicalHits, LexicalQuery
from evidentia.contracts.settings import SearchSettings, Settings
from evidentia.policy.access import access_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from random_worlds import World

    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ids import CorpusVersion, EvidenceState, SourceId
    from evidentia.contracts.ports import EvidenceIndex, EvidenceSnapshot
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.search import AccessScope, ChunkStanding, LexicalHit, SnapshotVersion, StoredFragment
    from evidentia.contracts.vocabulary import AuthorityTier

SHARDS, CORPORA, PRINCIPALS, REQUESTS = 10, 25, 8, 11
WHY_EVERY = 10
ORACLE_SHARDS, ORACLE_DOCUMENTS, ORACLE_SCOPES = 4, 200, 250
OF_THE_WHOLE_BASE = frozenset({"commit", "commit_hash", "corpus_version", "evidence_state", "receipt_id", "request_id", "result_hash"})
"""Fields of an answer that name the version of the whole base, which differs between the two bases by construction."""
OF_THE_LOG = frozenset({"event", "inclusion"})
"""Fields of a fragment that place it in the event log of the whole base."""


@dataclass
class Tally:
    """What was run, so that the numbers are real and the cases are not empty ones."""

    cases: int = 0
    with_hidden: int = 0
    with_fragments: int = 0
    with_ties: int = 0
    with_facets: int = 0
    with_withheld: int = 0
    with_history: int = 0
    whys: int = 0
    denied_whys: int = 0
    differences: list[str] = field(default_factory=list)


# --- who sees what ---


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(ORACLE_SHARDS))
def test_the_mask_shows_exactly_what_a_naive_oracle_allows(shard: int, tmp_path: Path) -> None:
    rng = Random(f"oracle {shard}")
    documents = make_documents(rng, ORACLE_DOCUMENTS, text="everyone reads of the pier")
    triples = seen = 0
    with memory_folder(tmp_path) as folder:
        base = SmallBase(Path(folder) / "base", settings=Settings(), commits=[ChangeSet(documents=tuple(documents))])
        snapshot = base.parts.index.at(search=SearchSettings())
        for _ in range(ORACLE_SCOPES):
            caller, rules = make_principal(rng), rng.sample(RULES, rng.randint(0, 3))
            acl_scope = rng.sample(ENTRIES, rng.randint(0, 4)) if rng.random() < 0.3 else None
            scope = access_scope(caller, acl_scope=acl_scope, rules=[rule.text for rule in rules])
            expected = {each.document_id for each in documents if may_see(caller, each, rules=rules, acl_scope=acl_scope)}
            shown = {each.document_id for each in documents if snapshot.shows(each.document_id, scope=scope)}
            query = LexicalQuery(terms={"pier": 1})
            found = snapshot.search(query, scope=scope, narrowing=None, facets=("document_id",), limit=ORACLE_DOCUMENTS)

            assert expected == shown, (caller, acl_scope, rules)
            assert expected == {hit.document_id for hit in found.hits}
            assert expected == set(found.facets["document_id"])
            triples += len(documents)
            seen += len(expected)
        base.close()

    assert ORACLE_DOCUMENTS * ORACLE_SCOPES == triples
    assert 0.03 < seen / triples < 0.6


def test_the_triples_are_as_many_as_promised() -> None:
    assert ORACLE_SHARDS * ORACLE_DOCUMENTS * ORACLE_SCOPES >= 100_000


# --- noninterference ---


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_answer_is_that_of_a_base_without_what_the_caller_may_not_see(shard: int, tmp_path: Path) -> None:
    tally = Tally()
    for corpus in range(CORPORA):
        compare_world(Random(f"world {shard} {corpus}"), tally, scratch=tmp_path)

    assert [] == tally.differences
    assert CORPORA * PRINCIPALS * REQUESTS == tally.cases
    assert tally.with_hidden > tally.cases // 2
    assert tally.with_fragments > tally.cases // 5
    assert tally.with_ties > tally.cases // 20
    assert tally.with_facets > tally.cases // 10
    assert tally.with_withheld > tally.cases // 50
    assert tally.with_history > tally.cases // 20
    assert tally.whys > tally.cases // 2
    assert tally.denied_whys > tally.cases // 5


def test_the_cases_are_as_many_as_promised() -> None:
    assert SHARDS * CORPORA * PRINCIPALS * REQUESTS >= 20_000


def compare_world(rng: Random, tally: Tally, *, scratch: Path, wrap: Callable[[EvidenceIndex], EvidenceIndex] | None = None) -> None:
    """Ask every request as every principal, of the whole base and of the one with only what the principal may see.

    The whole base has a history of three commits; the other has none, and its documents came in another order.
    """
    world = make_world(rng)
    people, requests = [make_principal(rng) for _ in range(PRINCIPALS)], [make_request(rng) for _ in range(REQUESTS)]
    pairs = [(person, request) for person in people for request in requests]
    rng.shuffle(pairs)  # so that what one caller leaves in a cache is there when the next one asks
    with memory_folder(scratch) as folder:
        whole = SmallBase(Path(folder) / "whole", settings=world.settings, commits=world.commits, wrap=wrap)
        is_collected = rng.random() < 0.2
        if is_collected:
            whole.collect()
        restricted = Restricted(world, folder=Path(folder))
        for number, (person, request) in enumerate(pairs):
            asks_why = number % WHY_EVERY == 0
            version = rng.randrange(3) if not (asks_why or is_collected) else 2
            compare_case(rng, tally, world, whole=whole, restricted=restricted, person=person, request=request, version=version)
            if asks_why:
                compare_receipts(rng, tally, world, whole=whole, restricted=restricted, person=person, request=request)
        restricted.close()
        whole.close()


def compare_case(
    rng: Random,
    tally: Tally,
    world: World,
    *,
    whole: SmallBase,
    restricted: Restricted,
    person: Principal,
    request: EvidenceRequest,
    version: int,
) -> None:
    """Compare one answer; every other time, what `acl_scope` leaves out is left out of the restricted base too."""
    scope = request.source_policy.acl_scope if rng.random() < 0.5 else None
    visible = {
        key: each
        for key, each in world.versions[version].items()
        if may_see(person, each, rules=world.rules, acl_scope=scope)
        and (version == 2 or may_see(person, world.last_known(key), rules=world.rules, acl_scope=request.source_policy.acl_scope))
    }
    pinned = request if version == 2 else msgspec.structs.replace(request, corpus_version=whole.corpus_versions[version])
    answer = whole.answer(pinned, principal=person)
    other = restricted.base(visible).answer(request, principal=person)
    scores = [fragment.score for fragment in answer.fragments]
    tally.cases += 1
    tally.with_hidden += len(visible) < len(world.versions[version])
    tally.with_fragments += bool(answer.fragments)
    tally.with_ties += len(set(scores)) < len(scores)
    tally.with_facets += any(answer.facets.values())
    tally.with_withheld += bool(answer.withheld)
    tally.with_history += version < 2
    tally.differences += differences(answer, other)


def compare_receipts(
    rng: Random, tally: Tally, world: World, *, whole: SmallBase, restricted: Restricted, person: Principal, request: EvidenceRequest
) -> None:
    """Compare what `replay` and `why` say, for chunks that are seen, denied, gone, outdated and invented."""
    visible = {key: each for key, each in world.documents.items() if may_see(person, each, rules=world.rules)}
    alone = restricted.base(visible)
    asked = msgspec.structs.replace(request, receipt=True)
    receipt, other = whole.answer(asked, principal=person).receipt_id, alone.answer(asked, principal=person).receipt_id
    assert receipt is not None
    assert other is not None
    replayed, replayed_alone = whole.replay(receipt, asker=person), alone.replay(other, asker=person)
    tally.differences += differences(replayed.response, replayed_alone.response)
    if not (replayed.is_same and replayed_alone.is_same and 0 == replayed.hidden == replayed_alone.hidden):
        tally.differences.append("replay")
    for chunk_id in _chunks_to_ask_about(rng, world, visible):
        said, said_alone = whole.why(receipt, chunk_id, asker=person), alone.why(other, chunk_id, asker=person)
        tally.whys += 1
        tally.denied_whys += said.startswith("NotFoundError not_found")
        if said != said_alone:
            tally.differences.append(f"why {chunk_id}: {said} / {said_alone}")


class Restricted:
    """Bases with only some of a world's documents, one per set, made when first asked for."""

    def __init__(self, world: World, *, folder: Path) -> None:
        self._settings = world.settings
        self._folder = folder
        self._made: dict[tuple[tuple[DocumentId, str], ...], SmallBase] = {}

    def base(self, visible: Mapping[DocumentId, PreparedDocument]) -> SmallBase:
        """Return the base that never held anything else."""
        key = tuple(sorted((document_id, repr(document)) for document_id, document in visible.items()))
        if key not in self._made:
            documents = tuple(visible[document_id] for document_id, _ in reversed(key))
            self._made[key] = SmallBase(
                self._folder / f"restricted-{len(self._made)}", settings=self._settings, commits=[ChangeSet(documents=documents)]
            )
        return self._made[key]

    def close(self) -> None:
        """Close every base."""
        for base in self._made.values():
            base.close()


def differences(left: EvidenceResponse, right: EvidenceResponse) -> list[str]:
    """Return the names of the fields in which two answers differ; order counts, in maps too."""
    compared = [name for name in left.__struct_fields__ if name not in OF_THE_WHOLE_BASE | {"fragments"}]
    found = [name for name in compared if _encoded(getattr(left, name)) != _encoded(getattr(right, name))]
    if [_seen_of(fragment) for fragment in left.fragments] != [_seen_of(fragment) for fragment in right.fragments]:
        found.append("fragments")
    return found


def _seen_of(fragment: EvidenceFragment) -> bytes:
    return _encoded([getattr(fragment, name) for name in fragment.__struct_fields__ if name not in OF_THE_LOG])


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def _chunks_to_ask_about(rng: Random, world: World, visible: Mapping[DocumentId, PreparedDocument]) -> list[ChunkId]:
    seen = [chunk.chunk_id for document in visible.values() for chunk in document.chunks]
    ever = {chunk.chunk_id for version in world.versions for document in version.values() for chunk in document.chunks}
    unseen = sorted(ever - set(seen))
    invented = ChunkId(f"wiki:nothing{rng.randint(0, 9)}#0@0123456789abcdef")
    beyond = [ChunkId(f"{document_id}#{rng.randint(0, 9)}@0123456789abcdef") for document_id in rng.sample(sorted(world.documents), 2)]
    return [*rng.sample(seen, min(3, len(seen))), *rng.sample(unseen, min(4, len(unseen))), invented, *beyond]


# --- the comparison notices: engines that break the law on purpose ---


class Leaky:
    """A snapshot that does what the real one does; each subclass lets one thing through."""

    def __init__(self, inner: EvidenceSnapshot) -> None:
        self._inner = inner

    @property
    def version(self) -> SnapshotVersion:
        return self._inner.version

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        return self._inner.search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)

    def fragments(self, hits: Sequence[LexicalHit]) -> Sequence[StoredFragment]:
        return self._inner.fragments(hits)

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        return self._inner.standing(query, scope=scope, narrowing=narrowing, chunk_id=chunk_id, ranked=ranked)

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        return self._inner.sources(scope)

    def search_all(self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str]) -> LexicalHits:
        """Search what the owner of the caller's tenant sees."""
        return self._inner.search(query, scope=_owner_of(scope), narrowing=narrowing, facets=facets, limit=10_000)


class GlobalStatistics(Leaky):
    """Filters after scoring, so that scores come from what everybody holds."""

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        allowed = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=10_000)
        kept = {hit.chunk_id for hit in allowed.hits}
        everything = self.search_all(query, scope=scope, narrowing=narrowing, facets=())
        hits = tuple(hit for hit in everything.hits if hit.chunk_id in kept)
        return msgspec.structs.replace(allowed, hits=hits[:limit])


class GlobalFacets(Leaky):
    """Counts facets over everything that matches."""

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        found = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
        return msgspec.structs.replace(found, facets=self.search_all(query, scope=scope, narrowing=narrowing, facets=facets).facets)


class GlobalCount(Leaky):
    """Counts candidates over everything that matches."""

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        found = super().search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
        return msgspec.structs.replace(found, matching=self.search_all(query, scope=scope, narrowing=narrowing, facets=()).matching)


class GlobalSources(Leaky):
    """Names sources of which the caller sees nothing."""

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        return self._inner.sources(_owner_of(scope))


class GlobalExplanations(Leaky):
    """Explains scores with what everybody holds."""

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        if super().standing(query, scope=scope, narrowing=narrowing, chunk_id=chunk_id, ranked=ranked) is None:
            return None
        return super().standing(query, scope=_owner_of(scope), narrowing=narrowing, chunk_id=chunk_id, ranked=ranked)


class OneTooMany(Leaky):
    """Shows a document that the caller may not see, now and then."""

    def search(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, facets: Sequence[str], limit: int
    ) -> LexicalHits:
        chosen = _owner_of(scope) if sum(query.terms.values()) == 4 else scope
        return super().search(query, scope=chosen, narrowing=narrowing, facets=facets, limit=limit)


class ShownToAll(Leaky):
    """Hides nothing of what it is asked about by name, so that `why` speaks of denied chunks."""


class LeakyIndex:
    """An index whose snapshots leak."""

    def __init__(self, inner: EvidenceIndex, leak: type[Leaky]) -> None:
        self._inner = inner
        self._leak = leak

    def at(
        self,
        *,
        search: SearchSettings,
        corpus_version: CorpusVersion | None = None,
        evidence_state: EvidenceState | None = None,
        access_state: EvidenceState | None = None,
    ) -> EvidenceSnapshot:
        inner = self._inner.at(search=search, corpus_version=corpus_version, evidence_state=evidence_state, access_state=access_state)
        return self._leak(inner)

    def visibility(self, document_id: DocumentId, *, scope: AccessScope, evidence_state: EvidenceState | None = None) -> bool | None:
        asked = _owner_of(scope) if self._leak is ShownToAll else scope
        return self._inner.visibility(document_id, scope=asked, evidence_state=evidence_state)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leak", "field"),
    [
        (GlobalStatistics, "fragments"),
        (GlobalFacets, "facets"),
        (GlobalCount, "total_candidates"),
        (GlobalSources, "source_coverage"),
        (GlobalExplanations, "fragments"),
        (GlobalExplanations, "why"),
        (OneTooMany, "fragments"),
        (ShownToAll, "why"),
    ],
)
def test_an_engine_that_leaks_is_caught(leak: type[Leaky], field: str, tmp_path: Path) -> None:
    tally = Tally()
    for corpus in range(3):
        compare_world(Random(f"leaky {corpus}"), tally, scratch=tmp_path, wrap=lambda index: LeakyIndex(index, leak))

    assert any(found.startswith(field) for found in tally.differences)


@pytest.mark.slow
def test_a_wrapper_that_leaks_nothing_is_not_accused(tmp_path: Path) -> None:
    tally = Tally()
    for corpus in range(3):
        compare_world(Random(f"leaky {corpus}"), tally, scratch=tmp_path, wrap=lambda index: LeakyIndex(index, Leaky))

    assert [] == tally.differences


def _owner_of(scope: AccessScope) -> AccessScope:
    return access_scope(msgspec.structs.replace(local_owner(), tenant=scope.principal.tenant), acl_scope=None, rules=())
