"""Sources as a user of a base meets them: registering, attaching, what others may know of them, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia import Base, Principal, connect
from evidentia.contracts.errors import InvalidFieldError, NotAllowedError, NotFoundError
from evidentia.contracts.ids import PrincipalId, SourceId
from evidentia.contracts.vocabulary import Classification, CoverageState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANN = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL, groups=("oncall",))
WIKI = {"source_id": "wiki", "source_type": "api", "access_policy": {"groups": ["oncall"]}, "freshness_sla_s": 60, "expected_p99_ms": 230}
WRITTEN = "2025-01-01T00:00:00Z"


class Wiki:
    """Says one thing."""

    def retrieve(self, query: str) -> list[dict[str, str]]:
        return [{"id": "1", "content": f"The wiki on {query}.", "url": "https://wiki/1", "updated_at": WRITTEN}]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    (tmp_path / "keys.md").write_text("---\nupdated: 2025-02-01\n---\n\nKeys are rotated.")
    with connect(tmp_path / "base", init=True) as opened:
        opened.ingest([tmp_path / "keys.md"], source="handbook", embed=False)
        opened.add_source(WIKI, Wiki())
        yield opened


def test_a_source_is_registered_for_good_and_attached_for_now(base: Base) -> None:
    assert CoverageState.SEARCHED is base.retrieve("keys").source_coverage[SourceId("wiki")].state
    with connect(base.path) as elsewhere:
        coverage = elsewhere.retrieve("keys").source_coverage[SourceId("wiki")]

    assert CoverageState.SKIPPED is coverage.state
    assert "attached" in coverage.reason


def test_a_source_tells_how_much_of_it_a_caller_may_see_and_its_age_to_the_owner_alone(base: Base) -> None:
    base.retrieve("keys")
    (base.path.parent / "sealed.md").write_text("---\nclassification: restricted\n---\n\nSealed.")
    base.ingest([base.path.parent / "sealed.md"], source="handbook", embed=False)
    told = {each.descriptor.source_id: each.documents for each in base.sources()}
    ages = {each.source_id: each.age_s for each in base.source_freshness()}
    with connect(base.path, principal=ANN) as hers:
        her_sources = {each.descriptor.source_id: each.documents for each in hers.sources()}
        her_ages = {each.source_id: each.age_s for each in hers.source_freshness()}
    with connect(base.path, principal=msgspec.structs.replace(ANN, groups=())) as others:
        known = [each.descriptor.source_id for each in others.sources()]

    assert {"handbook": 2, "wiki": None} == told
    assert None not in ages.values()
    assert {"handbook": 1, "wiki": None} == her_sources
    assert {"handbook": None, "wiki": None} == her_ages
    assert ["handbook"] == known


def test_an_ingest_leaves_what_is_registered_of_its_source(base: Base, tmp_path: Path) -> None:
    base.add_source({"source_id": "handbook", "source_type": "inverted_index", "latency_tier": "hot", "freshness_sla_s": 60})
    (tmp_path / "more.md").write_text("More on keys.")
    base.ingest([tmp_path / "more.md"], source="handbook", embed=False)

    assert [60] == [each.descriptor.freshness_sla_s for each in base.sources() if each.descriptor.source_id == "handbook"]


def test_documents_do_not_come_in_under_the_name_of_a_source_outside(base: Base, tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="'wiki' is registered as a source outside the base"):
        base.ingest([tmp_path / "keys.md"], source="wiki", embed=False)


@pytest.mark.parametrize(
    ("descriptor", "retriever", "problem"),
    [
        (WIKI, object(), "retriever"),
        (WIKI | {"connection": {"kind": "memory"}}, Wiki(), "connection.kind"),
        (WIKI | {"source_id": "handbook"}, Wiki(), "handbook"),
        (WIKI | {"latency": "hot"}, Wiki(), "latency"),
        (WIKI | {"latency_tier": "tepid"}, Wiki(), "latency_tier"),
    ],
)
def test_a_mistake_is_named_and_changes_nothing(base: Base, descriptor: dict[str, object], retriever: object, problem: str) -> None:
    before = base.head()
    with pytest.raises(InvalidFieldError, match=problem):
        base.add_source(descriptor, retriever)

    assert before == base.head()


def test_what_is_not_there_or_not_yours_is_refused(base: Base) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        base.test_source("nowhere", "keys")
    with pytest.raises(InvalidFieldError, match="in the base itself"):
        base.test_source("handbook", "keys")
    with connect(base.path, principal=ANN) as hers, pytest.raises(NotAllowedError):
        hers.add_source(WIKI, Wiki())


def test_a_source_that_is_removed_is_gone_and_its_receipts_still_replay(base: Base) -> None:
    response = base.retrieve("keys")
    base.remove_source("wiki")

    assert "wiki" in {fragment.source_id for fragment in response.fragments}
    assert "wiki" not in base.retrieve("keys").source_coverage
    report = base.replay(response.receipt_id or "")
    assert (True, 0) == (report.is_same, report.hidden)
