"""The index knows a chunk's context; nothing else of the chunk does, and nobody else's context has a part in it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from evidentia.backends.embedded.lexical.postings import CONTEXT_START, MAX_CONTEXT_TERMS, PostingsBuilder
from evidentia.backends.embedded.records import schema
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import ChangeSet, DocumentMetadata
from evidentia.contracts.ids import PrincipalId, SourceId
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import access_scope
from evidentia.provenance.verification import verify_base
from evidentia.query.lexical import lexical_query
from evidentia.testing.documents import make_document
from evidentia.text.contexts import CONTEXT_FORM
from evidentia.text.tokens import Tokeniser
from evidentia.wiring import embedded
from older_schemas import forget_contexts, forget_signatures

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.documents import CommitSummary, PreparedDocument
    from evidentia.contracts.search import AccessScope
    from evidentia.wiring.embedded import EmbeddedComponents

TOKENISER = Tokeniser("english")
OWNER = access_scope(local_owner(), acl_scope=None, rules=())
READER = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.INTERNAL), acl_scope=None, rules=())
TEXT = "# Keys\n\nHow keys live.\n\n## Rotation\n\n### Staging\n\nKeys are younger there.\n\nYounger keys are many."
LAST = TEXT.index("Younger")


def guide(title: str = "The handbook", *, path: str = "src/auth/token_store.md", access: AccessRule | None = None) -> PreparedDocument:
    metadata = DocumentMetadata(source_id=SourceId("test"), title=title, path=path)
    return make_document("a", TEXT, metadata=metadata, access=access, spans=[(0, LAST - 2), (LAST, len(TEXT))])


@pytest.fixture
def parts(tmp_path: Path) -> EmbeddedComponents:
    embedded.create(tmp_path / "base")
    return embedded.open_parts(tmp_path / "base")


def commit(parts: EmbeddedComponents, *documents: PreparedDocument) -> CommitSummary:
    writer = parts.writer()
    try:
        return writer.commit(ChangeSet(documents=documents))
    finally:
        writer.close()


def found(parts: EmbeddedComponents, question: str, *, scope: AccessScope = OWNER) -> list[int]:
    """Return the positions of the chunks that a question finds, in order."""
    snapshot = parts.index.at(search=SearchSettings())
    hits = snapshot.search(lexical_query(question, TOKENISER), scope=scope, narrowing=None, facets=(), limit=10)
    return sorted(chunk.position for chunk in snapshot.chunks(hits.hits))


@pytest.mark.parametrize("word", ["handbook", "staging", "rotation", "token_store", "auth", "store"])
def test_a_chunk_is_found_by_its_title_headings_and_path(parts: EmbeddedComponents, word: str) -> None:
    commit(parts, guide())

    assert 1 in found(parts, word)


def test_content_offsets_ids_and_corpus_version_know_nothing_of_it(parts: EmbeddedComponents) -> None:
    document = guide()
    summary = commit(parts, document)
    stored = parts.reader.chunks_of(document.document_id)

    assert [(0, LAST - 2, TEXT[: LAST - 2]), (LAST, len(TEXT), TEXT[LAST:])] == [(each.start, each.end, each.content) for each in stored]
    assert [each.chunk_id for each in document.chunks] == [each.chunk_id for each in stored]
    assert parts.reader.head().corpus_version == summary.corpus_version


def test_a_phrase_does_not_reach_from_the_text_into_the_context(parts: EmbeddedComponents) -> None:
    commit(parts, guide("many handbooks"))

    assert [1] == found(parts, '+"are many"')
    assert [0, 1] == found(parts, '+"many handbooks"')
    assert [] == found(parts, '+"many src"')
    assert [] == found(parts, '+"md many"')
    assert [] == found(parts, '+"handbooks staging"')


def test_a_title_that_changes_alone_is_indexed_anew_and_the_older_version_keeps_its_own(parts: EmbeddedComponents) -> None:
    before = commit(parts, guide("The handbook"))
    after = commit(parts, guide("The almanac"))
    old = parts.index.at(search=SearchSettings(), evidence_state=before.evidence_state)
    query = lexical_query("handbook", TOKENISER)

    assert before.evidence_state != after.evidence_state
    assert [] == found(parts, "handbook")
    assert [0, 1] == found(parts, "almanac")
    assert 2 == len(old.search(query, scope=OWNER, narrowing=None, facets=(), limit=10).hits)
    assert verify_base(parts.archive()).ok


def test_a_change_that_leaves_the_context_indexes_nothing(parts: EmbeddedComponents) -> None:
    commit(parts, guide())
    tagged = msgspec.structs.replace(guide().metadata, tags=("x",))
    commit(parts, msgspec.structs.replace(guide(), metadata=tagged))

    assert 1 == len(list((parts.directory / "segments").iterdir()))


def test_merged_segments_keep_contexts(parts: EmbeddedComponents) -> None:
    commit(parts, make_document("b", "Nothing of the kind."))
    commit(parts, guide("The almanac"))
    commit(parts, guide())
    parts.collector().collect(keep_versions=1)

    assert [0, 1] == found(parts, "handbook")
    assert [1] == found(parts, '+"Younger keys"')
    assert [] == found(parts, "almanac")
    assert verify_base(parts.archive()).ok


def test_an_explanation_tells_the_context_from_the_text(parts: EmbeddedComponents) -> None:
    commit(parts, guide())
    snapshot = parts.index.at(search=SearchSettings())
    last = guide().chunks[1].chunk_id
    standing = snapshot.standing(lexical_query("younger keys staging", TOKENISER), scope=OWNER, narrowing=None, chunk_id=last)

    assert standing is not None
    assert {"younger": (1, 0), "key": (2, 1), "stage": (1, 1)} == {each.term: (each.frequency, each.in_context) for each in standing.terms}


def test_the_context_of_what_is_hidden_has_no_influence(parts: EmbeddedComponents, tmp_path: Path) -> None:
    """The same mask hides a chunk and its context: scores, counts and words are those of a base without it."""
    embedded.create(tmp_path / "open")
    alone = embedded.open_parts(tmp_path / "open")
    seen = make_document("b", "A word about staging.", metadata=DocumentMetadata(source_id=SourceId("test"), title="Handbook of staging"))
    secret = AccessRule(classification=Classification.RESTRICTED)
    commit(parts, seen, guide(access=secret))
    commit(alone, seen)

    answers = []
    for each in (parts, alone):
        snapshot = each.index.at(search=SearchSettings())
        hits = snapshot.search(lexical_query("handbook staging", TOKENISER), scope=READER, narrowing=None, facets=(), limit=10)
        answers.append(([(hit.chunk_id, hit.score) for hit in hits.hits], hits.matching, snapshot.lexicon(READER).chunks_with("handbook")))
    assert answers[0] == answers[1]
    assert [] == found(parts, "rotation", scope=READER)


def test_an_older_base_has_none_until_a_document_is_put_again(parts: EmbeddedComponents) -> None:
    """Documents that were indexed before are named by the state; the same documents with and without contexts never share one."""
    with_contexts = commit(parts, guide(), make_document("b", "Other words."))
    parts.close()
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    forget_signatures(database)
    database.execute("PRAGMA user_version = 5")
    database.commit()
    database.close()
    older = embedded.open_parts(parts.directory)
    states = [older.reader.head().evidence_state]
    assert verify_base(older.archive()).ok
    states.append(commit(older, guide()).evidence_state)
    mixed = older.reader.commit_record()[0]
    assert verify_base(older.archive()).ok
    states.append(commit(older, make_document("b", "Other words.")).evidence_state)

    assert ("", CONTEXT_FORM) != (mixed.contexts, older.reader.commit_record()[0].contexts)
    assert CONTEXT_FORM == older.reader.commit_record()[0].contexts
    assert 3 == len(set(states))
    assert with_contexts.evidence_state == states[-1]
    assert with_contexts.corpus_version == older.reader.head().corpus_version
    older.collector().collect(keep_versions=1)
    assert states[-1] == older.reader.head().evidence_state
    assert verify_base(older.archive()).ok


def test_verification_finds_a_form_that_was_changed(parts: EmbeddedComponents) -> None:
    commit(parts, guide())
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    database.execute("UPDATE context_forms SET form = 'another'")
    database.commit()
    database.close()

    assert ("commit", "contexts") == next((each.check, each.where) for each in verify_base(parts.archive()).broken)


def test_a_context_has_at_most_so_many_terms_and_lengthens_its_chunk() -> None:
    arrays = PostingsBuilder(TOKENISER).build(
        ["one two", "three"], chunk_keys=[1, 2], contexts=[("a_b", " ".join(f"w{n}" for n in range(99))), ()]
    )
    in_context = arrays["positions"][arrays["positions"] >= CONTEXT_START]

    assert MAX_CONTEXT_TERMS == len(in_context)
    assert [2 + len(np.unique(in_context)), 1] == arrays["lengths"].tolist()


def test_a_base_that_no_writer_has_brought_up_knows_no_form(parts: EmbeddedComponents) -> None:
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    forget_contexts(database)
    database.execute("PRAGMA user_version = 6")
    since, form = schema.context_form(database)
    database.close()

    assert "" == form
    assert since > 1 << 32
