"""What filters and facets may name of a document is read from what is stored, and from nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from evidentia.backends.embedded.records.metadata_columns import EXTRA_PREFIX, MetadataColumns, record_of
from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import SourceId, TenantId
from evidentia.contracts.predicate_values import METADATA_FIELDS
from evidentia.contracts.vocabulary import AuthorityTier, Classification

FACTS = DocumentMetadata(
    source_id=SourceId("s"),
    title="Keys",
    authority_tier=AuthorityTier.CANONICAL,
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    tags=("a", "b"),
    extra={"team": "red"},
)
RULE = AccessRule(tenant=TenantId("t"), classification=Classification.RESTRICTED)
RECORD = record_of("s:1", msgspec.json.encode(FACTS), msgspec.json.encode(RULE))


def test_a_record_has_the_facts_of_a_document_and_what_its_access_rule_says() -> None:
    own = {name: getattr(FACTS, name) for name in FACTS.__struct_fields__}

    assert own | {"document_id": "s:1", "tenant": RULE.tenant, "classification": RULE.classification} == dict(RECORD)
    assert len(dict(RECORD)) == len(RECORD)
    assert set(METADATA_FIELDS) - {EXTRA_PREFIX} <= set(RECORD)


def test_what_no_document_has_is_missing_from_a_record() -> None:
    assert RECORD.get("colour") is None
    assert 7 == RECORD.get("colour", 7)
    with pytest.raises(KeyError, match="colour"):
        RECORD["colour"]


@pytest.mark.parametrize(
    ("field", "value"), [("title", "Keys"), ("tags", ("a", "b")), ("extra.team", "red"), ("extra.none", None), ("colour", None)]
)
def test_a_column_holds_the_value_of_each_document(field: str, value: object) -> None:
    column = MetadataColumns(lambda: [[RECORD, RECORD]]).column(field)

    assert ([0, 0], [value]) == (column.codes.tolist(), column.values)
