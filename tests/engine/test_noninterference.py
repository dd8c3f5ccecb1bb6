"""What you may not see cannot influence what you see: `retrieve(C, p)` equals `retrieve(C restricted to what p may see, p)`.

Who may see what is decided by an oracle of its own (`access_oracle`), the corpora are random (`random_worlds`), and the
comparison takes every field of an answer that is not about the base as a whole. Vectors are those of the packaged encoder;
often only some of the texts have one. The last tests break the law on purpose (`leaky_snapshots`) and expect the
comparison to notice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from engine.access_oracle import RULES, may_see
from engine.leaky_snapshots import (
    CrowdedOut,
    GlobalCount,
    GlobalExplanations,
    GlobalFacets,
    GlobalNearness,
    GlobalShare,
    GlobalSources,
    GlobalStatistics,
    HiddenGlossary,
    HiddenNearest,
    HiddenVocabulary,
    Leaky,
    LeakyIndex,
    OneTooMany,
    ShownToAll,
)
from engine.random_worlds import (
    ENTRIES,
    disguised_commit,
    disguised_text,
    hidden_from,
    make_documents,
    make_principal,
    make_request,
    make_world,
)
from engine.small_base import SmallBase, memory_folder
from engine.visible_contents import PICTURES, contents, layout_of, remember, shown_image
from engine.world_texts import SYNONYMS
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.ids import ChunkId, DocumentId
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings, Settings
from evidentia.contracts.vocabulary import FusionMethod, QueryStepName, RetrievalMode
from evidentia.engine.result_hashes import response_hash
from evidentia.policy.access import access_scope
from soak import cases
from work_counter import WorkCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from engine.random_worlds import World
    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, EvidenceResponse
    from evidentia.contracts.ports import EvidenceIndex

ALL_SHARDS, ALL_CORPORA, PRINCIPALS, REQUESTS = 5, 46, 8, 11
SHARDS, CORPORA = cases(1, of=ALL_SHARDS), cases(7, of=ALL_CORPORA)
WHY_EVERY = 20
ORACLE_SHARDS, ORACLE_DOCUMENTS, ORACLE_SCOPES = 4, 200, 250
OF_THE_WHOLE_BASE = frozenset(
    {"commit", "commit_hash", "corpus_version", "evidence_state", "receipt_id", "request_id", "response_hash", "result_hash"}
)
"""Fields of an answer that name the version of the whole base, which differs between the two bases by construction.

The `response_hash` covers the others of them, so it is held to be the hash of what is shown and of nothing else.
"""
LEAST_SHOWN = {
    "fragments": 5, "ties": 20, "facets": 10, "withheld": 50, "truncated": 400, "conflicts": 300, "explanations": 12,
    "vectors": 8, "vectors by rank": 40, "vectors alone": 40, "some without a vector": 500, "part of a source embedded": 60,
    QueryStepName.SPELLING.value: 100, QueryStepName.ABBREVIATIONS.value: 300, QueryStepName.SYNONYMS.value: 50,
    QueryStepName.DECOMPOSE.value: 50, QueryStepName.CONTEXT.value: 100,
}  # fmt: skip
"""In at least one of so many cases an answer shows this."""
OF_ALL_VECTORS = "backends/embedded/vectors/"
"""A scan goes through all rows, and how far it may be off is known for all of them together."""
OF_THE_LOG = frozenset({"event", "inclusion"})
"""Fields of a fragment that place it in the event log of the whole base."""


@dataclass
class Tally:
    """What was run, so that the numbers are real and the cases are not empty ones."""

    cases: int = 0
    with_hidden: int = 0
    with_history: int = 0
    whys: int = 0
    denied_whys: int = 0
    contents: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    worked: int = 0
    shown: Counter[str] = field(default_factory=Counter)
    """How many answers show what a hidden document could have touched."""
    differences: list[str] = field(default_factory=list)

    def has(self, field: str) -> bool:
        """Tell whether answers differ in a field."""
        return any(found.startswith(field) for found in self.differences)

    def add(self, answer: EvidenceResponse, request: EvidenceRequest) -> None:
        """Count what an answer shows."""
        scores = [fragment.score for fragment in answer.fragments]
        shares = [report.embedded_share for report in answer.source_coverage.values()]
        near = sum(fragment.scores.dense is not None for fragment in answer.fragments)
        found = {
            "fragments": bool(scores),
            "ties": len(set(scores)) < len(scores),
            "facets": any(answer.facets.values()),
            "withheld": bool(answer.withheld),
            "truncated": any(fragment.is_truncated for fragment in answer.fragments),
            "conflicts": bool(answer.conflicts),
            "vectors": near > 0,
            "vectors by rank": near > 0 and request.fusion is FusionMethod.RRF and request.mode is RetrievalMode.HYBRID,
            "vectors alone": near > 0 and request.mode is RetrievalMode.DENSE,
            "some without a vector": 0 < near < len(scores),
            "part of a source embedded": any(share is not None and 0 < share < 1 for share in shares),
            "explanations": any(fragment.explanation for fragment in answer.fragments),
        }
        self.shown += Counter(name for name, is_so in found.items() if is_so)
        self.shown += Counter(step.step.value for step in answer.understanding if step.added)


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
    assert tally.with_history > tally.cases // 20
    assert tally.whys > tally.cases // 2
    assert tally.denied_whys > tally.cases // 5
    assert {"documents", "tables", "ask", "table", "chunks", "layout", "notes", "image"} == set(tally.contents)
    assert tally.worked > tally.cases // 20
    assert tally.refused > sum(tally.contents.values()) // 10
    assert [] == [f"{name}: {tally.shown[name]}" for name, share in LEAST_SHOWN.items() if tally.shown[name] < tally.cases // share]


def test_the_cases_are_as_many_as_promised() -> None:
    assert ALL_SHARDS * ALL_CORPORA * PRINCIPALS * REQUESTS >= 20_000


def compare_world(
    rng: Random, tally: Tally, *, scratch: Path, wrap: Callable[[EvidenceIndex], EvidenceIndex] | None = None, until: str = ""
) -> None:
    """Ask every request as every principal, of the whole base and of the one with only what the principal may see.

    The whole base has a history of three commits; the other has none, and its documents came in another order.
    Whoever waits for one difference alone names the field in `until`.
    """
    world = make_world(rng)
    people, requests = [make_principal(rng) for _ in range(PRINCIPALS)], [make_request(rng) for _ in range(REQUESTS)]
    pairs = [(person, request) for person in people for request in requests]
    rng.shuffle(pairs)  # so that what one caller leaves in a cache is there when the next one asks
    with memory_folder(scratch) as folder:
        whole = SmallBase(
            Path(folder) / "whole", settings=world.settings, commits=world.commits, embedded=world.embedded, synonyms=SYNONYMS, wrap=wrap
        )
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
            if until and tally.has(until):
                break
        if wrap is None:
            compare_contents(tally, world, people, whole=whole, restricted=restricted)
            compare_work(tally, world, people, requests, folder=Path(folder))
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
    shown = whole.shown_version(version, principal=person)
    pinned = request if version == 2 else msgspec.structs.replace(request, corpus_version=shown)
    answer = whole.answer(pinned, principal=person)
    newest = max(number for number, each in enumerate(whole.corpus_versions) if each == whole.corpus_versions[version])
    other = restricted.base(visible, embedded=world.embedded[newest]).answer(request, principal=person)
    tally.cases += 1
    tally.with_hidden += len(visible) < len(world.versions[version])
    tally.with_history += version < 2
    tally.add(answer, request)
    tally.differences += differences(answer, other)


def compare_receipts(
    rng: Random, tally: Tally, world: World, *, whole: SmallBase, restricted: Restricted, person: Principal, request: EvidenceRequest
) -> None:
    """Compare what `replay` and `why` say, for chunks that are seen, denied, gone, outdated and invented."""
    visible = {key: each for key, each in world.documents.items() if may_see(person, each, rules=world.rules)}
    alone = restricted.base(visible, embedded=world.embedded[-1])
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


def compare_contents(tally: Tally, world: World, people: Sequence[Principal], *, whole: SmallBase, restricted: Restricted) -> None:
    """Compare documents, chunks, layouts, tables and notes as everybody but owners gets them, and images with the oracle.

    An image can be had from any version that can be read, which a base without a past does not have.
    """
    ever = {document_id: world.last_known(document_id) for version in world.versions for document_id in version}
    layouts = {document_id: layout_of(document) for document_id, document in ever.items()}
    tables = sorted({card.table_id for layout in layouts.values() if layout is not None for card in layout.tables})
    asked = [*sorted(ever), DocumentId("wiki:nothing")]
    remember(whole, people)
    for person in people:
        if person.is_owner:
            continue
        visible = {key: each for key, each in world.documents.items() if may_see(person, each, rules=world.rules)}
        alone = restricted.base(visible, embedded=world.embedded[-1])
        remember(alone, [person])
        pairs = zip(
            contents(whole, person, documents=asked, tables=tables), contents(alone, person, documents=asked, tables=tables), strict=True
        )
        for (name, left), (_, right) in pairs:
            tally.contents[name.partition(" ")[0]] += 1
            tally.refused += left.startswith("NotFoundError")
            if left != right:
                tally.differences.append(f"{name}: {left} / {right}")
        for picture in PICTURES:
            shown = any(_shows(world, person, picture, each) for version in world.versions for each in version.values())
            tally.contents["image"] += 1
            if shown != shown_image(whole, person, sha256_hex(picture)) and not whole.is_collected:
                tally.differences.append(f"image {picture!r}: {shown}")


def _shows(world: World, person: Principal, picture: bytes, document: PreparedDocument) -> bool:
    """Tell whether a version of a document shows a picture to a person, by its own rule and the last that the document had."""
    layout = layout_of(document)
    has_it = layout is not None and any(each.image_hash == sha256_hex(picture) for each in layout.images)
    sides = (document, world.last_known(document.document_id))
    return has_it and all(may_see(person, each, rules=world.rules) for each in sides)


def compare_work(tally: Tally, world: World, people: Sequence[Principal], requests: Sequence[EvidenceRequest], *, folder: Path) -> None:
    """Count the lines that run for one person's requests, and compare them with those of a base whose hidden texts are other ones."""
    chosen = [(hidden, person) for person in people if not person.is_owner and (hidden := hidden_from(person, world))]
    if not chosen:
        return
    hidden, person = min(chosen, key=lambda each: abs(2 * len(each[0]) - len(world.documents)))  # about half is hidden
    bases = [
        SmallBase(
            folder / name,
            settings=world.settings,
            commits=[disguised_commit(commit, documents) for commit in world.commits],
            embedded=[frozenset({*texts, *map(disguised_text, texts)}) for texts in world.embedded],
            synonyms=SYNONYMS,
        )
        for name, documents in (("undisguised", frozenset()), ("disguised", hidden))
    ]
    for request in requests:
        asked = [partial(base.answer, request, principal=person) for base in bases]
        tally.differences += differences(asked[0](), asked[1]())  # which also fills what the whole process keeps
        left, right = (WorkCounter().count_here(ask).lines for ask in asked)
        tally.worked += 1
        unlike = [name for name in sorted(left | right) if left[name] != right[name] and not name.startswith(OF_ALL_VECTORS)]
        tally.differences += [f"work {name}: {left[name]} / {right[name]}" for name in unlike]
    for base in bases:
        base.close()


class Restricted:
    """Bases with only some of a world's documents, one per set, made when first asked for."""

    def __init__(self, world: World, *, folder: Path) -> None:
        self._settings = world.settings
        self._folder = folder
        self._made: dict[tuple[frozenset[str], tuple[tuple[DocumentId, str], ...]], SmallBase] = {}

    def base(self, visible: Mapping[DocumentId, PreparedDocument], *, embedded: AbstractSet[str]) -> SmallBase:
        """Return the base that never held anything else."""
        chunks = {document.text[chunk.start : chunk.end] for document in visible.values() for chunk in document.chunks}
        key = (frozenset(embedded & chunks), tuple(sorted((document_id, repr(document)) for document_id, document in visible.items())))
        if key not in self._made:
            documents = tuple(visible[document_id] for document_id, _ in reversed(key[1]))
            self._made[key] = SmallBase(
                self._folder / f"restricted-{len(self._made)}",
                settings=self._settings,
                commits=[ChangeSet(documents=documents)],
                embedded=[key[0]],
                synonyms=SYNONYMS,
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
    if any(each.response_hash != response_hash(each) for each in (left, right)):
        found.append("response_hash")
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
    return [*rng.sample(seen, min(2, len(seen))), *rng.sample(unseen, min(6, len(unseen))), invented, *beyond]


# --- the comparison notices: engines that break the law on purpose ---


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
        (HiddenNearest, "fragments"),
        (CrowdedOut, "fragments"),
        (GlobalNearness, "fragments"),
        (GlobalShare, "source_coverage"),
        (HiddenVocabulary, "understanding"),
        (HiddenGlossary, "understanding"),
    ],
)
def test_an_engine_that_leaks_is_caught(leak: type[Leaky], field: str, tmp_path: Path) -> None:
    tally = Tally()
    for corpus in range(3):
        compare_world(Random(f"leaky {corpus}"), tally, scratch=tmp_path, wrap=lambda index: LeakyIndex(index, leak), until=field)
        if tally.has(field):
            return

    pytest.fail(f"nobody noticed: {tally.differences}")


@pytest.mark.slow
def test_a_wrapper_that_leaks_nothing_is_not_accused(tmp_path: Path) -> None:
    tally = Tally()
    for corpus in range(3):
        compare_world(Random(f"leaky {corpus}"), tally, scratch=tmp_path, wrap=lambda index: LeakyIndex(index, Leaky))

    assert [] == tally.differences
