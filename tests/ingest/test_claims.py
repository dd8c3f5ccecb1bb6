"""What a document says about itself may lower trust and tighten access, never the opposite."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import DocumentMetadata, IngestOptions
from evidentia.contracts.errors import DocumentUnreadableError, InvalidFieldError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import IngestSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType, DeprecationStatus
from evidentia.ingest.document_claims import Claims, apply_claims, check_options, check_settings
from evidentia.ingest.version_control import FileHistory

DEFAULTS = DocumentMetadata(source_id=SourceId("documents"), title="file name")
MAY_2024 = datetime(2024, 5, 1, tzinfo=UTC)
JUNE_2024 = datetime(2024, 6, 1, tzinfo=UTC)
HISTORY = FileHistory(blob="", commit="c", author="Grace", created_at=MAY_2024, updated_at=JUNE_2024)


def claims(options: IngestOptions | None = None, history: FileHistory | None = None, **declared: str | tuple[str, ...]) -> Claims:
    return apply_claims(declared, defaults=DEFAULTS, options=options or IngestOptions(), history=history)


def test_every_known_key_has_its_place() -> None:
    result = claims(
        title="T",
        author="Ada",
        created="2024-05-01",
        updated="2024-06-01T02:00:00+02:00",
        tags=("b", "a"),
        version="2.1.0",
        language="de",
        content_type="Runbook",
        status="deprecated",
        authority="derived",
        classification="confidential",
        acl=("user:b", "group:a", "user:b"),
    )

    assert result.metadata == DocumentMetadata(
        source_id=SourceId("documents"),
        title="T",
        author=result.metadata.author,
        created_at=MAY_2024,
        updated_at=JUNE_2024,
        tags=("a", "b"),
        version=result.metadata.version,
        language="de",
        content_type=ContentType.RUNBOOK,
        deprecation_status=DeprecationStatus.DEPRECATED,
        authority_tier=AuthorityTier.DERIVED,
    )
    assert ("Ada", "2.1.0") == (result.metadata.author, result.metadata.version)
    assert AccessRule(classification=Classification.CONFIDENTIAL, acl=("group:a", "user:b")) == result.access
    assert () == result.notes


def test_the_names_of_the_contract_are_read_like_the_short_ones() -> None:
    result = claims(authority_tier="derived", deprecation_status="deprecated")
    both = claims(authority="user", authority_tier="derived", status="archived", deprecation_status="active")

    assert (AuthorityTier.DERIVED, DeprecationStatus.DEPRECATED) == (result.metadata.authority_tier, result.metadata.deprecation_status)
    assert (AuthorityTier.USER, DeprecationStatus.ARCHIVED) == (both.metadata.authority_tier, both.metadata.deprecation_status)
    assert ({}, ()) == (result.metadata.extra, result.notes)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("autority", "authority"),
        ("authority-tier", "authority_tier"),
        ("clasification", "classification"),
        ("deprecaton_status", "deprecation_status"),
        ("titel", "title"),
        ("tag", "tags"),
        ("acls", "acl"),
        ("content-type", "content_type"),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_kept_and_reported(key: str, meant: str) -> None:
    result = apply_claims({key: "derived"}, defaults=DEFAULTS, options=IngestOptions())

    assert {key: "derived"} == result.metadata.extra
    assert [
        f"unknown_key: has the key '{key}', which says nothing to us and is kept as an extra field; write '{meant}' if you mean that"
    ] == [*result.notes]


@pytest.mark.parametrize("key", ["owner", "data", "state", "team", "category", "source", "service", "slug", "layout"])
def test_a_key_of_ones_own_is_no_mistake(key: str) -> None:
    assert () == apply_claims({key: "x"}, defaults=DEFAULTS, options=IngestOptions()).notes


def test_a_document_cannot_raise_its_authority() -> None:
    result = claims(IngestOptions(authority=AuthorityTier.USER), authority="canonical")

    assert AuthorityTier.USER is result.metadata.authority_tier
    assert ("claim_ignored: makes a claim that was not followed: 'authority: canonical' would raise it above 'user'",) == result.notes


def test_a_document_cannot_lower_its_classification() -> None:
    result = claims(IngestOptions(access=AccessRule(classification=Classification.CONFIDENTIAL)), classification="public")

    assert Classification.CONFIDENTIAL is result.access.classification
    assert (
        "claim_ignored: makes a claim that was not followed: 'classification: public' would lower it below 'confidential'",
    ) == result.notes


def test_an_acl_of_the_options_is_not_replaced() -> None:
    result = claims(IngestOptions(access=AccessRule(acl=("group:legal",))), acl=("user:mallory",))

    assert ("group:legal",) == result.access.acl
    assert ("claim_ignored: makes a claim that was not followed: 'acl' is set by the options already",) == result.notes


@pytest.mark.parametrize("entry", ["everyone", "user:", "admin:x", "user:a b", "user:a,b:c", "user:\u202ex"])
def test_an_acl_that_is_not_understood_keeps_the_document_out(entry: str) -> None:
    with pytest.raises(DocumentUnreadableError) as caught:
        claims(acl=(entry,))

    assert caught.value.reason == "bad_claim"


RANKED = st.sampled_from([*Classification.words(), *AuthorityTier.words(), "", "CANONICAL", "Public"])


@given(
    classification=st.sampled_from(["", "Public", *Classification.words()]),
    authority=RANKED,
    given_level=st.sampled_from(list(Classification)),
    tier=st.sampled_from(list(AuthorityTier)),
)
def test_no_claim_loosens_anything(classification: str, authority: str, given_level: Classification, tier: AuthorityTier) -> None:
    options = IngestOptions(authority=tier, access=AccessRule(classification=given_level))
    result = claims(options, classification=classification, authority=authority)

    assert result.access.classification.rank >= given_level.rank
    assert result.metadata.authority_tier.rank <= tier.rank


def test_the_document_beats_version_control_and_version_control_beats_nothing() -> None:
    result = claims(history=HISTORY, date="2025-01-01")

    assert datetime(2025, 1, 1, tzinfo=UTC) == result.metadata.updated_at
    assert MAY_2024 == result.metadata.created_at
    assert result.metadata.author == "Grace"


def test_a_date_that_is_none_is_noted_and_left_out() -> None:
    result = claims(date="yesterday")

    assert result.metadata.updated_at is None
    assert ("claim_ignored: makes a claim that was not followed: 'date: yesterday' is no ISO 8601 date",) == result.notes


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "99999-01-01", "2024-02-30"])
def test_a_date_beyond_the_calendar_is_no_date(text: str) -> None:
    assert claims(date=text).metadata.updated_at is None


def test_unknown_keys_are_kept_bounded_and_ascii() -> None:
    declared: dict[str, str | tuple[str, ...]] = {f"key{number:03}": "x" for number in range(40)}
    result = apply_claims({**declared, "K\u00e9y \n": "\0v" * 900}, defaults=DEFAULTS, options=IngestOptions())

    assert len(result.metadata.extra) == 32
    assert all(key.isascii() for key in result.metadata.extra)
    assert "\ufffdv" * 250 == result.metadata.extra["k_y"]
    assert len(result.notes) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (IngestOptions(source=SourceId("a/b")), "field 'source': 'a/b' is not 1 to 128 letters, digits, dots, underscores or hyphens"),
        (IngestOptions(source=SourceId("")), "field 'source': '' is not 1 to 128 letters, digits, dots, underscores or hyphens"),
        (
            IngestOptions(access=AccessRule(acl=("bob",))),
            "field 'acl': 'bob' is not of the form user:name, group:name or role:name",
        ),
        (IngestOptions(tags=("a\nb",)), "field 'tags': 'a\\nb' is empty, longer than 100 characters or holds control characters"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(options: IngestOptions, message: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_options(options)

    assert message == str(caught.value)


def test_options_are_sorted_and_without_repeats() -> None:
    options = check_options(IngestOptions(access=AccessRule(acl=("user:b", "user:a", "user:b")), tags=("y", "x", "y")))

    assert (("user:a", "user:b"), ("x", "y")) == (options.access.acl, options.tags)


def test_a_chunk_cannot_be_meant_to_be_longer_than_the_longest() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_settings(IngestSettings(chunk_chars=5_000))

    assert str(caught.value) == "field 'ingest.chunk_chars': 5000 is more than ingest.chunk_max_chars (4000)"
