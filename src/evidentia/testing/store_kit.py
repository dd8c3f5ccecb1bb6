"""The conformance kit of a store: inherit `StoreConformance`, say how to make one, and be done when it is green.

The kit speaks only through the ports, so it holds for every backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from evidentia.contracts.access import AccessRule, local_owner
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata, PreparedDocument
from evidentia.contracts.errors import DuplicateDocumentError, NotFoundError
from evidentia.contracts.ids import DocumentId, SourceId
from evidentia.contracts.ports import Collector, CustodyArchive, EvidenceIndex, EvidenceWriter, ProvingReader, SupportsLayouts
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.policy.access import access_scope
from evidentia.provenance.layout_custody import decode_content, named_hashes
from evidentia.provenance.verification import verify_base
from evidentia.testing.documents import TABLE, illustrated_document, make_document
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from pathlib import Path


class StoreUnderTest(Protocol):
    """What the kit needs of a store."""

    @property
    def reader(self) -> ProvingReader:
        """Return a reader of the store."""
        ...

    def writer(self) -> EvidenceWriter:
        """Return the writer of the store."""
        ...

    def archive(self) -> CustodyArchive:
        """Return a snapshot for verification."""
        ...

    def collector(self) -> Collector:
        """Return what removes old versions."""
        ...

    @property
    def index(self) -> EvidenceIndex:
        """Return what opens versions for searching."""
        ...


SECRET = AccessRule(classification=Classification.CONFIDENTIAL, acl=("group:security",))


class StoreConformance(ABC):
    """What every store promises; pytest runs the `test_` methods of a subclass."""

    @abstractmethod
    def make(self, directory: Path) -> StoreUnderTest:
        """Return an empty store that lives in, or is named after, this directory."""

    def commit(self, store: StoreUnderTest, changes: ChangeSet) -> str:
        """Commit and return the corpus version."""
        writer = store.writer()
        try:
            return writer.commit(changes).corpus_version
        finally:
            writer.close()

    def test_what_was_committed_is_read_back_exactly(self, tmp_path: Path) -> None:
        """Content, offsets and custody come back as they went in."""
        store = self.make(tmp_path)
        text = "Grüße aus dem Hafen. 中文 text\r\nand a tail."
        document = make_document("a.md", text, spans=[(0, 20), (20, len(text))])
        self.commit(store, ChangeSet(documents=(document,)))

        chunks = store.reader.chunks_of(document.document_id)

        assert [text[:20], text[20:]] == [chunk.content for chunk in chunks]
        assert [chunk.chunk_id for chunk in document.chunks] == [chunk.chunk_id for chunk in chunks]
        assert document.custody == chunks[0].custody
        assert chunks[1] == store.reader.chunk(chunks[1].chunk_id)

    def test_the_version_depends_on_the_live_set_alone(self, tmp_path: Path) -> None:
        """Order, batches and detours leave no trace in corpus_version."""
        a, b, c = (make_document(name, f"text of {name}") for name in "abc")
        direct, winding = self.make(tmp_path / "direct"), self.make(tmp_path / "winding")
        expected = self.commit(direct, ChangeSet(documents=(a, b)))
        self.commit(winding, ChangeSet(documents=(c,)))
        self.commit(winding, ChangeSet(documents=(b, make_document("a", "an older text"))))
        self.commit(winding, ChangeSet(documents=(a,), removals=(c.document_id,)))

        assert expected == winding.reader.head().corpus_version

    def test_metadata_access_and_text_each_change_the_version(self, tmp_path: Path) -> None:
        """Nothing that identifies a document is left out of corpus_version."""
        store = self.make(tmp_path)
        original = make_document("a", "text")
        first = self.commit(store, ChangeSet(documents=(original,)))
        moved = self.commit(store, ChangeSet(access_changes=(AccessChange(document_id=original.document_id, access=SECRET),)))
        edited = self.commit(store, ChangeSet(documents=(make_document("a", "other text"),)))
        back = self.commit(store, ChangeSet(documents=(original,)))

        assert 3 == len({first, moved, edited})
        assert first == back

    def test_a_removed_document_is_gone_and_can_still_be_proved(self, tmp_path: Path) -> None:
        """Removal hides a document and leaves its custody."""
        store = self.make(tmp_path)
        document = make_document("a", "text")
        self.commit(store, ChangeSet(documents=(document, make_document("b", "other"))))
        self.commit(store, ChangeSet(removals=(document.document_id,)))

        stored = store.reader.chunk(document.chunks[0].chunk_id)

        assert [] == list(store.reader.chunks_of(document.document_id))
        assert stored is not None
        assert not stored.is_live
        assert self._is_whole(store)

    def test_a_change_that_cannot_be_made_changes_nothing(self, tmp_path: Path) -> None:
        """A commit is all or nothing, and the writer stays usable."""
        store = self.make(tmp_path)
        kept = make_document("a", "text")
        before = self.commit(store, ChangeSet(documents=(kept,)))
        writer = store.writer()
        try:
            for changes, error in (
                (ChangeSet(documents=(make_document("b", "x"), make_document("b", "y"))), DuplicateDocumentError),
                (ChangeSet(documents=(make_document("b", "x"),), removals=(DocumentId("test:nothing"),)), NotFoundError),
            ):
                assert error is _raised(writer, changes)
                assert before == store.reader.head().corpus_version
            assert before != writer.commit(ChangeSet(documents=(make_document("b", "x"),))).corpus_version
        finally:
            writer.close()
        assert self._is_whole(store)

    def test_a_commit_of_nothing_makes_no_version(self, tmp_path: Path) -> None:
        """A version exists only where something changed."""
        store = self.make(tmp_path)
        self.commit(store, ChangeSet(documents=(make_document("a", "text"),)))
        before = store.reader.head()
        self.commit(store, ChangeSet())

        assert before == store.reader.head()

    def test_the_log_grows_and_proves_its_past(self, tmp_path: Path) -> None:
        """Each chunk has a provable event, and every earlier log is a prefix of the present one."""
        from evidentia.provenance import merkle

        store = self.make(tmp_path)
        sizes = []
        for number in range(7):
            documents = tuple(make_document(f"{number}-{each}", f"text {number} {each}") for each in range(100))
            self.commit(store, ChangeSet(documents=documents))
            sizes.append(store.reader.head().log_size)
        head = store.reader.head()
        for first in (1, *sizes):
            proof = store.reader.consistency(first, size=head.log_size)
            assert merkle.verify_consistency(
                first=first,
                second=head.log_size,
                path=[bytes.fromhex(each) for each in proof.hashes],
                first_root=bytes.fromhex(proof.first_root),
                second_root=bytes.fromhex(head.log_root),
            )
        assert [100 * number for number in range(1, 8)] == sizes

    def test_sources_are_part_of_the_evidence_state_only(self, tmp_path: Path) -> None:
        """Registering a source changes what may answer, not the corpus."""
        store = self.make(tmp_path)
        self.commit(store, ChangeSet(documents=(make_document("a", "text"),)))
        before = store.reader.head()
        writer = store.writer()
        writer.register(SourceDescriptor(source_id=SourceId("wiki"), authority_tier=AuthorityTier.USER))
        after = writer.commit(ChangeSet())
        writer.close()

        assert before.corpus_version == after.corpus_version
        assert before.evidence_state != after.evidence_state

    def test_collection_keeps_what_is_live_and_the_log(self, tmp_path: Path) -> None:
        """Old versions go; the corpus version, custody and the log stay."""
        store = self.make(tmp_path)
        live = [make_document(f"{number}", f"text {number}") for number in range(20)]
        self.commit(store, ChangeSet(documents=tuple(make_document(f"{number}", f"old {number}") for number in range(30))))
        self.commit(store, ChangeSet(documents=tuple(live)))
        self.commit(store, ChangeSet(removals=tuple(DocumentId(f"test:{number}") for number in range(20, 30))))
        before = store.reader.head()

        report = store.collector().collect(keep_versions=1)

        after = store.reader.head()
        assert 30 == report.chunks_removed
        assert (before.corpus_version, before.log_size, before.log_root) == (after.corpus_version, after.log_size, after.log_root)
        assert store.reader.chunk(make_document("0", "old 0").chunks[0].chunk_id) is None
        assert [document.text for document in live] == [store.reader.chunks_of(document.document_id)[0].content for document in live]
        assert self._is_whole(store)

    def test_a_writer_remembers_what_is_live(self, tmp_path: Path) -> None:
        """An ingest can tell what is unchanged and where it came from."""
        store = self.make(tmp_path)
        documents = [make_document("a", "text", root="/corpus"), make_document("b", "more")]
        self.commit(store, ChangeSet(documents=tuple(documents)))
        writer = store.writer()
        try:
            known = writer.known([documents[0].document_id, DocumentId("test:nothing")])
            all_known = writer.live_documents(SourceId("test"))
        finally:
            writer.close()

        assert {documents[0].document_id: (documents[0].fingerprint, "/corpus")} == {
            key: (value.fingerprint, value.root) for key, value in known.items()
        }
        assert [each.document_id for each in documents] == list(all_known)

    def test_pages_images_and_tables_come_back_exactly(self, tmp_path: Path) -> None:
        """What a layout names by a hash is kept under it, and a document without one has none."""
        store = self.make(tmp_path)
        document = illustrated_document("a")
        self.commit(store, ChangeSet(documents=(document, make_document("b", "plain"))))
        layouts = self._layouts(store)

        layout = layouts.layout(document.document_id)

        assert layout is not None
        assert ((0, 12), "diagram") == (layout.pages, layout.images[0].name)
        assert {each.content_hash: each.content for each in document.attachments} == {
            each.content_hash: layouts.attachment(each.content_hash) for each in document.attachments
        }
        assert TABLE.content == decode_content(layouts.attachment(layout.tables[0].content) or b"")
        assert layouts.layout(DocumentId("test:b")) is None
        assert self._is_whole(store)

    def test_a_layout_that_changes_alone_is_a_change(self, tmp_path: Path) -> None:
        """The text stays, the version does not, and the way back leads to the version before."""
        store = self.make(tmp_path)
        before, after = illustrated_document("a", picture=b"old"), illustrated_document("a", picture=b"new")
        first = self.commit(store, ChangeSet(documents=(before,)))
        second = self.commit(store, ChangeSet(documents=(after,)))
        layout = self._layouts(store).layout(after.document_id)
        back = self.commit(store, ChangeSet(documents=(before,)))

        assert before.text_hash == after.text_hash
        assert first == back != second
        assert layout is not None
        assert {each.content_hash for each in after.attachments} == {*named_hashes(layout), after.metadata.layout}
        assert self._is_whole(store)

    def test_collection_removes_what_no_version_shows(self, tmp_path: Path) -> None:
        """Pictures of old versions go, those that a live document shows stay, whoever brought them."""
        store = self.make(tmp_path)
        old, new = illustrated_document("a", picture=b"old"), illustrated_document("a", picture=b"new")
        self.commit(store, ChangeSet(documents=(old, illustrated_document("gone", picture=b"new"))))
        self.commit(store, ChangeSet(documents=(new,), removals=(DocumentId("test:gone"),)))
        layouts = self._layouts(store)
        kept = [layouts.attachment(each.content_hash) is not None for each in old.attachments]
        store.collector().collect(keep_versions=1)

        live = {each.content_hash for each in new.attachments}
        assert all(kept)
        assert all(layouts.attachment(key) is not None for key in sorted(live))
        assert [each.content_hash in live for each in old.attachments] == [
            layouts.attachment(each.content_hash) is not None for each in old.attachments
        ]
        assert self._is_whole(store)

    def test_a_chunk_is_found_by_its_documents_title_and_its_headings(self, tmp_path: Path) -> None:
        """What a chunk stands under is searched with it, is not part of it, and changes with the document's title."""
        store = self.make(tmp_path)
        text = "## Rotation\n\nKeys have an age.\n\nAfter that they are replaced."
        cut = text.index("After")
        first, second = (
            make_document("a", text, spans=[(0, cut), (cut, len(text))], metadata=DocumentMetadata(source_id=SourceId("test"), title=title))
            for title in ("The handbook", "The almanac")
        )
        before = self.commit(store, ChangeSet(documents=(first,)))
        found = [self._finds(store, word) for word in ("handbook", "rotation", "almanac")]
        after = self.commit(store, ChangeSet(documents=(second,)))

        assert [[0, 1], [0, 1], []] == found
        assert [[], [0, 1], [0, 1]] == [self._finds(store, word) for word in ("handbook", "rotation", "almanac")]
        assert text[cut:] == store.reader.chunks_of(first.document_id)[1].content
        assert before != after
        assert self._is_whole(store)

    def _finds(self, store: StoreUnderTest, word: str) -> list[int]:
        """Return the positions of the chunks that the owner finds by a word."""
        snapshot = store.index.at(search=SearchSettings())
        query = LexicalQuery(terms=dict.fromkeys(Tokeniser().terms(word), 1))
        scope = access_scope(local_owner(), acl_scope=None, rules=())
        hits = snapshot.search(query, scope=scope, narrowing=None, facets=(), limit=10).hits
        return sorted(chunk.position for chunk in snapshot.chunks(hits))

    def _layouts(self, store: StoreUnderTest) -> SupportsLayouts:
        assert isinstance(store.reader, SupportsLayouts)
        return store.reader

    def _is_whole(self, store: StoreUnderTest) -> bool:
        report = verify_base(store.archive())
        assert report.ok, report.first_broken
        return report.ok


def _raised(writer: EvidenceWriter, changes: ChangeSet) -> type[Exception] | None:
    try:
        writer.commit(changes)
    except (DuplicateDocumentError, NotFoundError) as error:
        return type(error)
    return None


def many_documents(count: int, *, prefix: str = "") -> tuple[PreparedDocument, ...]:
    """Return documents with distinct ids and texts of a few chunks each."""
    made = []
    for number in range(count):
        text = f"{prefix}Document {number} speaks of harbour {number % 7}.\n\nIts second part names key_{number} and pier {number * 3}."
        cut = text.index("\n\n") + 2
        made.append(make_document(f"{prefix}{number}", text, spans=[(0, cut), (cut, len(text))]))
    return tuple(made)
