"""Every way in which a document that a caller may not see once showed through, or could: one small test each."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest

from engine.small_base import SmallBase, memory_folder
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.ids import ChunkId, DocumentId, PrincipalId, SourceId, TenantId
from evidentia.contracts.settings import Settings
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import Classification, CoverageState, FusionMethod, RetrievalMode
from evidentia.testing.documents import make_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.ids import ReceiptId

ANN = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL)
SECRET = AccessRule(classification=Classification.RESTRICTED)
INVENTED = ChunkId("test:nothing#0@0123456789abcdef")


class Maker(Protocol):
    """Makes a base with these documents, and closes it when the test is over."""

    def __call__(self, *documents: PreparedDocument) -> SmallBase:
        """Return the base."""
        ...


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Maker]:
    """Return what makes bases."""
    made: list[SmallBase] = []
    with memory_folder(tmp_path) as folder:

        def make_base(*documents: PreparedDocument) -> SmallBase:
            made.append(SmallBase(Path(folder) / str(len(made)), settings=Settings(), commits=[ChangeSet(documents=documents)]))
            return made[-1]

        yield make_base
        for base in made:
            base.close()


def change(base: SmallBase, changes: ChangeSet) -> None:
    """Make one more version of a base."""
    writer = base.parts.writer()
    writer.commit(changes)
    writer.close()


def asking(**fields: object) -> EvidenceRequest:
    """Return a request about the pier, without a receipt unless asked for."""
    return msgspec.structs.replace(EvidenceRequest(query=DecomposedQuery(text="pier"), receipt=False), **fields)


def receipt_of(base: SmallBase, caller: Principal, **fields: object) -> ReceiptId:
    """Return the receipt of an answer."""
    receipt = base.answer(asking(**fields, receipt=True), principal=caller).receipt_id
    assert receipt is not None
    return receipt


def dated(own_id: str, moment: str, access: AccessRule | None = None) -> PreparedDocument:
    """Return a document that was updated then."""
    metadata = DocumentMetadata(source_id=SourceId("test"), updated_at=datetime.fromisoformat(moment))
    return make_document(own_id, "the pier", metadata=metadata, access=access)


def chunk_of(document: PreparedDocument) -> ChunkId:
    """Return the first chunk of a document."""
    return document.chunks[0].chunk_id


def test_a_facet_spells_an_instant_as_the_seen_document_does(make: Maker) -> None:
    hidden, seen = dated("a", "2024-01-01T01:00:00+01:00", SECRET), dated("b", "2024-01-01T00:00:00+00:00")
    base = make(hidden, seen)

    assert {"2024-01-01T00:00:00+00:00": 1} == base.answer(asking(facets=("updated_at",)), principal=ANN).facets["updated_at"]


def test_the_filter_of_one_caller_does_not_answer_for_another_one_that_merely_looks_equal(make: Maker) -> None:
    one, yes = (
        make_document(own_id, "the pier", metadata=DocumentMetadata(source_id=SourceId("test"), extra={"level": level}))
        for own_id, level in (("one", "1"), ("yes", "true"))
    )
    base = make(one, yes)
    base.answer(asking(filter="extra.level = true"), principal=local_owner())
    fragments = base.answer(asking(filter="extra.level = 1"), principal=ANN).fragments

    assert [one.document_id] == [fragment.document_id for fragment in fragments]


def test_a_source_without_a_visible_document_looks_like_one_that_does_not_exist(make: Maker) -> None:
    hidden = make_document("a", "the pier", source="vault", access=SECRET)
    base = make(hidden, make_document("b", "the pier"))
    policy = SourcePolicy(allowed_sources=(SourceId("vault"), SourceId("nowhere"), SourceId("test")))
    unasked = base.answer(asking(), principal=ANN)
    coverage = base.answer(asking(source_policy=policy), principal=ANN).source_coverage

    assert ["test"] == list(unasked.source_coverage)
    assert CoverageState.DENIED is coverage[SourceId("vault")].state
    assert coverage[SourceId("nowhere")] == coverage[SourceId("vault")]


def test_why_speaks_of_a_denied_chunk_as_of_one_that_does_not_exist(make: Maker) -> None:
    hidden = make_document("a", "the pier", access=SECRET)
    base = make(hidden, make_document("b", "the pier"))
    receipt = receipt_of(base, ANN)
    denied, invented = base.why(receipt, chunk_of(hidden), asker=ANN), base.why(receipt, INVENTED, asker=ANN)

    assert denied.replace(chunk_of(hidden), "") == invented.replace(INVENTED, "")


def test_why_gives_nothing_away_after_the_version_was_collected(make: Maker) -> None:
    hidden, seen = make_document("a", "the pier", access=SECRET), make_document("b", "the pier")
    base = make(hidden, seen)
    receipt = receipt_of(base, ANN)
    change(base, ChangeSet(documents=(make_document("c", "a crane"),)))
    base.collect()
    said = {base.why(receipt, chunk_id, asker=ANN) for chunk_id in (chunk_of(hidden), chunk_of(seen), INVENTED)}

    assert 1 == len(said)
    assert said.pop().startswith("VersionCollectedError")


@pytest.mark.parametrize("position", ["9" * 30, "9" * 5000, "\N{ARABIC-INDIC DIGIT ZERO}"])
def test_why_takes_any_position_for_one_that_is_not_there(make: Maker, position: str) -> None:
    seen = make_document("b", "the pier")
    base = make(seen)
    said = base.why(receipt_of(base, ANN), ChunkId(f"{seen.document_id}#{position}@0123456789abcdef"), asker=ANN)

    assert '"stage":"scope"' in said


def test_why_tells_a_weaker_asker_no_numbers_over_what_the_caller_saw(make: Maker) -> None:
    hidden, seen = make_document("a", "the pier", access=SECRET), make_document("b", "the pier and a crane")
    base = make(hidden, seen)
    receipt = receipt_of(base, local_owner(), facets=("document_id",))
    alone = make(seen)
    other = receipt_of(alone, local_owner(), facets=("document_id",))

    assert alone.why(other, chunk_of(seen), asker=ANN) == base.why(receipt, chunk_of(seen), asker=ANN)
    assert '"documents":2' in base.why(receipt, chunk_of(seen), asker=local_owner())


def test_replay_tells_a_weaker_asker_no_numbers_over_what_the_caller_saw(make: Maker) -> None:
    hidden = [make_document(f"a{number}", "the pier", source="vault", access=SECRET) for number in range(3)]
    seen = make_document("b", "the pier and a crane")
    alone = make(seen)
    answers = []
    for base in (make(*hidden, seen), alone):
        receipt = receipt_of(base, local_owner(), facets=("document_id",), explain=True)
        response = base.replay(receipt, asker=ANN).response
        answers.append(
            (
                [(each.content, each.score, each.relevance_score, each.retrieval_context, each.explanation) for each in response.fragments],
                response.total_candidates,
                response.source_coverage,
                response.facets,
                response.decisions,
                response.tokens_used,
                response.truncation_applied,
            )
        )

    assert answers[1] == answers[0]


def test_replay_tells_the_owner_of_another_tenant_nothing(make: Maker) -> None:
    base = make(make_document("a", "the pier"), make_document("b", "the pier"))
    stranger = msgspec.structs.replace(local_owner(), tenant=TenantId("other"))
    report = base.replay(receipt_of(base, local_owner(), facets=("document_id",)), asker=stranger)

    assert () == report.response.fragments
    assert 0 == report.response.total_candidates
    assert {} == report.response.facets
    assert {} == report.response.source_coverage


def test_a_text_that_was_secret_stays_secret_when_its_document_is_opened_with_another_text(make: Maker) -> None:
    secret, opened = make_document("a", "the pier burns", access=SECRET), make_document("a", "the pier")
    base = make(secret)
    receipt = receipt_of(base, local_owner())
    change(base, ChangeSet(documents=(opened,)))
    said = base.why(receipt, chunk_of(secret), asker=ANN)

    assert () == base.replay(receipt, asker=ANN).response.fragments
    assert said.startswith("NotFoundError")


def test_a_text_that_was_opened_as_it_was_is_shown(make: Maker) -> None:
    secret = make_document("a", "the pier burns", access=SECRET)
    base = make(secret)
    receipt = receipt_of(base, local_owner())
    change(base, ChangeSet(access_changes=(AccessChange(document_id=secret.document_id, access=AccessRule()),)))

    assert [chunk_of(secret)] == [each.chunk_id for each in base.replay(receipt, asker=ANN).response.fragments]


def test_what_was_closed_since_is_not_shown_again(make: Maker) -> None:
    once = make_document("a", "the pier")
    base = make(once, make_document("b", "the pier"))
    receipt = receipt_of(base, ANN)
    change(base, ChangeSet(access_changes=(AccessChange(document_id=once.document_id, access=SECRET),)))
    report = base.replay(receipt, asker=ANN)

    assert report.is_same
    assert [DocumentId("test:b")] == [fragment.document_id for fragment in report.response.fragments]
    assert base.why(receipt, chunk_of(once), asker=ANN).startswith("NotFoundError")


def test_replay_tells_a_weaker_asker_neither_of_conflicts_with_hidden_texts_nor_of_hidden_vectors(make: Maker) -> None:
    hidden = make_document("a", "The gate timeout is 30 seconds.", access=SECRET)
    seen = make_document("b", "The gate timeout is 60 seconds.")
    shown = []
    for documents in ((hidden, seen), (seen,)):
        base = make(*documents)
        base.embed({seen.text})
        answer = base.answer(asking(query=DecomposedQuery(text="gate timeout"), receipt=True), principal=local_owner())
        assert answer.receipt_id is not None
        response = base.replay(answer.receipt_id, asker=ANN).response
        told = [(each.chunk_id, each.flags, each.scores, each.confidence, each.trust_metadata) for each in response.fragments]
        shown.append((answer.conflicts != (), told, response.conflicts, response.source_coverage, response.degraded))

    assert shown[0][0]
    assert not shown[1][0]
    assert shown[1][1:] == shown[0][1:]


def test_vectors_that_a_caller_cannot_see_do_not_show_by_being_there(make: Maker) -> None:
    """Adding a hidden document with a vector to a base without vectors changes nothing for who cannot see it."""
    hidden, seen = make_document("a", "the pier at night", access=SECRET), make_document("b", "the pier")
    base, alone = make(hidden, seen), make(seen)
    base.embed({hidden.text})
    for mode in RetrievalMode:
        for fusion in (FusionMethod.LINEAR, FusionMethod.RRF):
            answer, other = (each.answer(asking(mode=mode, fusion=fusion), principal=ANN) for each in (base, alone))

            assert other.degraded == answer.degraded
            assert other.source_coverage == answer.source_coverage
            assert [each.scores for each in other.fragments] == [each.scores for each in answer.fragments]
            assert [seen.document_id] == [each.document_id for each in answer.fragments]
