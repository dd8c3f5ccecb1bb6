"""A version that was derived from another answers as one that was loaded, whatever happened between the two."""

from __future__ import annotations

import hashlib
import random
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia import connect
from evidentia.backends.embedded import index as index_module
from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.backends.embedded.records.archive import EmbeddedArchive
from evidentia.backends.embedded.records.collector import EmbeddedCollector
from evidentia.backends.embedded.records.database import SEGMENTS_NAME
from evidentia.backends.embedded.records.growing_array import GrowingArray, GrowingTexts
from evidentia.backends.embedded.records.metadata_columns import MetadataColumns
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.backends.embedded.stored_tables import TABLES_NAME, remove_tables
from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
from evidentia.backends.embedded.version_tables import VersionTables
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata
from evidentia.contracts.errors import BaseDamagedError, VersionCollectedError
from evidentia.contracts.ids import DocumentId, EvidenceState, PrincipalId, Sha256, SourceId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.search import DenseQuery, LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.policy.access import access_scope
from evidentia.provenance.verification import verify_base
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.documents import PreparedDocument

OWNER = access_scope(local_owner(), acl_scope=None, rules=())
READER = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.PUBLIC), acl_scope=None, rules=())
RULED = access_scope(local_owner(), acl_scope=None, rules=('language = "en" OR extra.team = "red"',))
SCOPES = (OWNER, READER, RULED)
WORDS = ["key", "keys", "lock", "locks", "zebra", "rotate", "pier", "quay"]
NARROWINGS = ('tags contains "b"', 'updated_at > "2024-01-01"', 'extra.team = "red"', 'title contains "1"')
FACETS = ("tags", "language", "extra.team", "authority_tier")
SPACE = VectorIdentity(model=Sha256("0" * 64), dimension=3, normalisation="unit", name="test")
SEARCHES = (SearchSettings(), SearchSettings(weighting="tfidf"))


class Base:
    """A base that is written and embedded in random steps."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.chance = random.Random(seed)
        self._clock, self._entropy = SteppingClock(), RepeatableEntropy()
        self.live: set[str] = set()
        create_base(directory, clock=self._clock, entropy=self._entropy)

    def opened(self) -> EmbeddedIndex:
        return EmbeddedIndex(self.directory, tokeniser=Tokeniser().identity)

    def commit(self, changes: ChangeSet) -> None:
        with closing(EmbeddedWriter(self.directory, clock=self._clock, entropy=self._entropy, language="english", wait_ms=0)) as writer:
            writer.commit(changes)

    def step(self, kind: str) -> None:
        """Do one thing of a kind to the base."""
        chance = self.chance
        if kind == "put":
            names = [f"d{number}" for number in chance.sample(range(14), chance.randint(1, 4))]
            self.commit(ChangeSet(documents=tuple(self.document(name) for name in names)))
            self.live.update(names)
        elif kind == "embed":
            with closing(EmbeddedVectors(self.directory, clock=self._clock, entropy=self._entropy, wait_ms=0)) as store:
                pending = store.pending(SPACE, limit=3)
                store.add(SPACE, {each.key: _vector(each.text) for each in pending})
        elif kind in {"merge", "collect"}:
            collector = EmbeddedCollector(self.directory, clock=self._clock, entropy=self._entropy, wait_ms=0, segments_per_size=1)
            collector.collect(keep_versions=None if kind == "merge" else 2)
        elif self.live and kind == "remove":
            name = chance.choice(sorted(self.live))
            self.commit(ChangeSet(removals=(DocumentId(f"{_source(name)}:{name}"),)))
            self.live.remove(name)
        elif self.live and kind == "move":
            change = AccessChange(document_id=DocumentId(_id(chance.choice(sorted(self.live)))), access=self._access())
            self.commit(ChangeSet(access_changes=(change,)))

    def document(self, name: str) -> PreparedDocument:
        chance = self.chance
        words = [" ".join(chance.choices(WORDS, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        text = ". ".join([*words, "The Large Lock (LL) is here"] if chance.random() < 0.3 else words)
        metadata = DocumentMetadata(
            source_id=SourceId(_source(name)),
            title=f"title {name}",
            tags=tuple(chance.sample(["a", "b", "c"], chance.randint(0, 2))),
            language=chance.choice(["en", "de"]),
            authority_tier=chance.choice(list(AuthorityTier)),
            updated_at=chance.choice([None, datetime(2023, 5, 1, tzinfo=UTC), datetime(2025, 5, 1, tzinfo=UTC)]),
            extra=chance.choice([{}, {"team": "red"}, {"team": "blue", f"own{chance.randint(0, 3)}": "yes"}]),
        )
        middle = chance.randint(0, len(text))
        spans = [span for span in ((0, middle), (middle, len(text))) if span[0] < span[1]]
        return make_document(name, text, source=_source(name), metadata=metadata, access=self._access(), spans=spans)

    def _access(self) -> AccessRule:
        return AccessRule(classification=self.chance.choice([Classification.PUBLIC, Classification.RESTRICTED]))


def _source(name: str) -> str:
    return ("one", "two", "three")[int(name[1:]) % 3]


def _id(name: str) -> str:
    return f"{_source(name)}:{name}"


def _vector(text: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.asarray([len(text) << 15, text.count("o") << 18, 1 << 20], dtype=np.int32)


def _answers(snapshot: EmbeddedSnapshot) -> list[object]:
    """Return what a version says of everything that can be asked of it."""
    said: list[object] = [snapshot.version.commit, snapshot.vectors]
    query = LexicalQuery(terms={"key": 1, "zebra": 2, "lock": 1}, expansions={"quay": 100})
    dense = DenseQuery(identity=SPACE, vector=_vector("zebra lock").astype("<i4").tobytes())
    for scope in SCOPES:
        for narrowing in (None, *map(parse, NARROWINGS)):
            found = snapshot.search(query, scope=scope, narrowing=narrowing, facets=FACETS, limit=8)
            near = snapshot.nearest(dense, scope=scope, narrowing=narrowing, phrases=(), limit=5)
            plain = snapshot.search(query, scope=scope, narrowing=narrowing, facets=(), limit=3)
            together = snapshot.count_union(found, near.hits, query=query, scope=scope, narrowing=narrowing)
            said += [found, near, plain, together, list(found.facets.items()), list(found.matching_by_source.items())]
        everything = snapshot.search(LexicalQuery(terms=dict.fromkeys(WORDS, 1)), scope=scope, narrowing=None, facets=(), limit=100).hits
        said += [snapshot.chunks(everything), snapshot.signals(everything), snapshot.lengths(everything)]
        said += [snapshot.scores(everything, query=query, dense=dense if snapshot.vectors else None, scope=scope)]
        said += [snapshot.standing(query, scope=scope, narrowing=None, chunk_id=hit.chunk_id) for hit in everything]
        said += [list(snapshot.sources(scope).items())]
        said += [snapshot.shows(DocumentId(_id(f"d{number}")), scope=scope) for number in range(14)]
        words = snapshot.lexicon(scope)
        said += [words.chunks, words.similar("kez", edits=2), words.similar("locs", edits=2), words.long_forms("ll")]
        said += [words.short_forms("large lock"), [words.chunks_with(word) for word in WORDS]]
    return said


STEPS = st.lists(st.sampled_from(["put", "put", "put", "remove", "move", "embed", "merge", "collect"]), min_size=2, max_size=9)


@settings(max_examples=cases(25, of=400), deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1 << 30))
def test_what_was_derived_says_what_was_loaded(steps: list[str], seed: int) -> None:
    with TemporaryDirectory() as folder:
        base = Base(Path(folder) / "base", seed)
        with closing(base.opened()) as kept:
            states: list[str] = []
            for kind in steps:
                base.step(kind)
                search = base.chance.choice(SEARCHES)
                with closing(base.opened()) as fresh:
                    loaded = fresh.at(search=search)

                    assert _answers(loaded) == _answers(kept.at(search=search))

                    states.append(loaded.version.commit.evidence_state)
                    old = EvidenceState(base.chance.choice(states))

                    assert _old(base, old, search) == _old_of(kept, old, search)


def _old(base: Base, state: EvidenceState, search: SearchSettings) -> list[object] | None:
    """Ask an older version of an index that has not seen a newer one: nothing is derived there."""
    with closing(base.opened()) as fresh:
        return _old_of(fresh, state, search)


def _old_of(index: EmbeddedIndex, state: EvidenceState, search: SearchSettings) -> list[object] | None:
    try:
        return _answers(index.at(search=search, evidence_state=state))
    except VersionCollectedError:
        return None


def test_a_commit_costs_no_second_look_at_other_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path / "base", 1)
    base.commit(ChangeSet(documents=tuple(base.document(f"d{number}") for number in range(14))))
    with closing(base.opened()) as index:
        before = index.at(search=SearchSettings())
        before.sources(OWNER)
        monkeypatch.setattr(VersionTables, "load", None)
        base.step("put")
        base.step("remove")
        after = index.at(search=SearchSettings())

        assert before.version.commit.sequence + 2 == after.version.commit.sequence
        assert after.tables.table is not before.tables.table


def test_requests_are_answered_from_the_version_that_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SMALL", 0)
    monkeypatch.setattr(index_module, "WATCH_S", 0.01)
    base = Base(tmp_path / "base", 2)
    base.step("put")
    with closing(base.opened()) as index:
        first = index.at(search=SearchSettings())
        holding, made = threading.Event(), threading.Event()
        whole = VersionTables.prepare

        def slow(self: VersionTables) -> None:
            holding.wait(30)
            whole(self)
            made.set()

        monkeypatch.setattr(VersionTables, "prepare", slow)
        base.step("put")

        assert first is index.at(search=SearchSettings())
        assert first is index.at(search=SearchSettings())

        holding.set()
        made.wait(30)
        index.catch_up()

        assert first.version.commit.sequence + 1 == index.at(search=SearchSettings()).version.commit.sequence


def test_a_version_that_cannot_be_made_is_an_error_of_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SMALL", 0)
    base = Base(tmp_path / "base", 3)
    base.step("put")
    with closing(base.opened()) as index:
        index.at(search=SearchSettings())
        before = set((base.directory / SEGMENTS_NAME).iterdir())
        with index._making:  # so that the thread comes when the new segment is gone
            base.step("put")
            for path in set((base.directory / SEGMENTS_NAME).iterdir()) - before:
                path.unlink()
            with pytest.raises(BaseDamagedError, match="cannot be opened"):
                index.catch_up()
        with pytest.raises(BaseDamagedError, match="cannot be opened"):
            _ask_until_it_fails(index)


def _ask_until_it_fails(index: EmbeddedIndex) -> None:
    for _ in range(3_000):
        index.at(search=SearchSettings())
        threading.Event().wait(0.01)


def test_whoever_writes_finds_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SMALL", 0)
    monkeypatch.setattr(index_module, "WATCH_S", 30)
    (tmp_path / "a.md").write_text("Keys are rotated.", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "a.md"], embed=False)
        for number in range(4):
            assert 1 == len(base.retrieve("keys", mode="lexical").fragments)
            (tmp_path / "b.md").write_text(f"Zebra {number} and zyzzyva{number}.", encoding="utf-8")
            report = base.ingest([tmp_path / "b.md"], embed=False)
            response = base.retrieve(f"zyzzyva{number}", mode="lexical")

            assert 1 == len(response.fragments)
            assert report.corpus_version == response.corpus_version


def _stored(base: Base) -> list[Path]:
    return list((base.directory / TABLES_NAME).glob("*.tab"))


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    """Return a base that counts as large, opened once, so that its tables are stored."""
    monkeypatch.setattr(index_module, "SMALL", 0)
    base = Base(tmp_path / "base", 4)
    base.commit(ChangeSet(documents=tuple(base.document(f"d{number}") for number in range(14))))
    with closing(base.opened()) as index:
        index.at(search=SearchSettings())
    return base


def test_a_large_base_opens_without_reading_its_documents(large: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    large.step("put")
    large.step("remove")
    with closing(large.opened()) as index:
        opened = _answers(index.at(search=SearchSettings()))
    monkeypatch.setattr(MetadataColumns, "prepare", None)
    with closing(large.opened()) as index:
        again = _answers(index.at(search=SearchSettings()))
    monkeypatch.undo()
    remove_tables(large.directory)
    with closing(large.opened()) as index:
        assert opened == again == _answers(index.at(search=SearchSettings()))


@pytest.mark.parametrize("harm", ["flip", "cut", "rename", "nonsense"])
def test_tables_that_are_damaged_are_not_used(large: Base, harm: str) -> None:
    with closing(large.opened()) as index:
        expected = _answers(index.at(search=SearchSettings()))
    (path,) = _stored(large)
    content = path.read_bytes()
    changed = {"flip": content[:-7] + bytes([content[-7] ^ 1]) + content[-6:], "cut": content[:-9], "nonsense": b"EVIDSEG1"}.get(
        harm, content
    )
    path.unlink()
    name = path.name if harm in {"flip", "cut"} else hashlib.sha256(changed if harm == "nonsense" else b"").hexdigest() + ".tab"
    path.with_name(name).write_bytes(changed)
    with closing(large.opened()) as index:
        assert expected == _answers(index.at(search=SearchSettings()))


def test_verification_finds_tables_that_say_something_else(large: Base) -> None:
    assert _verified(large)

    (path,) = _stored(large)
    file = Segment(path)
    arrays = {name: file.array(name).copy() for name in file.header.arrays}
    arrays["access_keys"][:] = arrays["access_keys"][0]
    unfinished = path.with_name("forged")
    digest = write_segment(unfinished, tokeniser="", chunk_count=file.header.chunk_count, arrays=arrays)
    path.unlink()
    unfinished.rename(path.with_name(f"{digest.hex()}.tab"))

    assert not _verified(large)


def _verified(base: Base) -> bool:
    with closing(EmbeddedArchive(base.directory)) as archive:
        return verify_base(archive).ok


def test_a_collection_leaves_no_tables_that_name_what_is_gone(large: Base) -> None:
    assert _stored(large)

    large.step("put")
    large.step("collect")

    assert not _stored(large)


@given(parts=st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=30), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_an_array_that_grows_is_what_was_put_in(parts: list[list[int]], cuts: list[int]) -> None:
    grown, whole = GrowingArray(np.empty(0, dtype=np.int64)), list[int]()
    states: list[tuple[GrowingArray, list[int]]] = []
    for number, part in enumerate(parts):
        if number in cuts:
            grown, whole = grown.cut(len(whole) // 2), whole[: len(whole) // 2]
        grown, whole = grown.plus(np.asarray(part, dtype=np.int64)), whole + part
        states.append((grown, whole))

    assert [whole for _, whole in states] == [grown.array.tolist() for grown, _ in states]


@given(parts=st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=8))
def test_texts_that_grow_are_what_was_put_in(parts: Sequence[list[str]]) -> None:
    grown = GrowingTexts.of(())
    for part in parts:
        grown = grown.plus(part)

    assert [text for part in parts for text in part] == grown.take(np.arange(len(grown)))
