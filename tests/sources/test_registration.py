"""What may be registered: every mistake is an error that names the field and says what would do."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import SemanticVersion, SourceId
from evidentia.contracts.sources import SchemaDefinition, SchemaField, SourceAccessPolicy, SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, ConnectionKind, LatencyTier, QueryCapability
from evidentia.sources.registration import check_change, checked_descriptor, schema_change


def test_a_mapping_becomes_a_descriptor() -> None:
    given_fields = {
        "source_id": "team.wiki",
        "source_type": "API",
        "authority_tier": "Canonical",
        "latency_tier": "warm",
        "query_capabilities": ["semantic", "exact-match"],
        "schema": {"fields": [{"name": "title", "type": "text"}], "tables": {"pages": [{"name": "id", "type": "int", "is_indexed": True}]}},
        "access_policy": {"tenants": ["a", "b"], "roles": ["reader"], "predicate": 'team = "search" AND level >= 3'},
        "connection": {"kind": "remote", "address": "https://wiki.example:8443/api?space=x", "key_variable": "WIKI_KEY"},
        "max_qps": 5,
    }

    read = checked_descriptor(given_fields)

    assert (SourceId("team.wiki"), AuthorityTier.CANONICAL, LatencyTier.WARM) == (read.source_id, read.authority_tier, read.latency_tier)
    assert (QueryCapability.SEMANTIC, QueryCapability.EXACT_MATCH) == read.query_capabilities
    assert ConnectionKind.REMOTE is read.connection.kind
    assert read == checked_descriptor(read)


@pytest.mark.parametrize(
    "connection",
    [
        {},
        {"kind": "python"},
        {"kind": "python", "options": {"index": "main"}},
        {"kind": "memory"},
        {"kind": "base", "address": "/srv/other base"},
        {"kind": "remote", "address": "http://127.0.0.1:8000"},
        {"kind": "mcp", "address": "npx -y some-server", "tool": "search"},
        {"kind": "mcp", "address": "https://host/mcp", "tool": "search", "key_variable": "_KEY2", "options": {"max_tokens": "5"}},
    ],
)
def test_every_kind_of_connection_can_be_registered(connection: dict[str, object]) -> None:
    assert SourceId("s") == checked_descriptor({"source_id": "s", "connection": connection}).source_id


MISTAKES: list[tuple[dict[str, object], str]] = [
    ({}, "field 'descriptor': object missing required field `source_id`"),
    ({"source_id": ""}, "field 'source_id': '' is not 1 to 128 letters, digits, dots, underscores or hyphens"),
    ({"source_id": "a:b"}, "field 'source_id': 'a:b' is not 1 to 128"),
    ({"source_id": "wi\x1bki"}, r"field 'source_id': 'wi\\x1bki' is not"),
    ({"source_id": "a" * 129}, "field 'source_id': 'a+' is not"),
    ({"source_id": 5}, "field 'source_id': expected `str`, got `int`"),
    ({"sourceid": "a"}, "field 'descriptor': there is no field 'sourceid'; did you mean 'source_id'"),
    ({"owner": "a"}, "there is no field 'owner'; the fields are access_policy, authority_tier, connection, "),
    ({"schema": {"field": []}}, "field 'schema': there is no field 'field'; did you mean 'fields'"),
    ({"schema": {"fields": [{"nam": "x"}]}}, r"field 'schema.fields\[0\]': there is no field 'nam'"),
    ({"connection": {"password": "x"}}, "field 'connection': there is no field 'password'; the fields are address, key_variable, kind"),
    ({"authority_tier": "gold"}, "field 'authority_tier': 'gold' is not one of ephemeral, user, derived, curated, canonical"),
    ({"latency_tier": "fast"}, "field 'latency_tier': 'fast' is not one of hot, warm, cold, archive"),
    ({"source_type": 7}, "field 'source_type': '7' is not one of inverted_index, vector_store, "),
    ({"query_capabilities": ["semantic", "x"]}, r"field 'query_capabilities\[1\]': 'x' is not one of exact_match, semantic, "),
    ({"query_capabilities": ["semantic", "SEMANTIC"]}, "field 'query_capabilities': 'semantic' stands there twice"),
    ({"access_policy": {"minimum_clearance": "top"}}, "field 'access_policy.minimum_clearance': 'top' is not one of public, internal"),
    ({"access_policy": {"tenants": []}}, "field 'access_policy.tenants': without a tenant nobody may ask"),
    ({"access_policy": {"roles": [" "]}}, "field 'access_policy.roles': ' ' is empty"),
    ({"access_policy": {"groups": ["a", "a"]}}, "field 'access_policy.groups': 'a' stands there twice"),
    (
        {"access_policy": {"predicate": "team ="}},
        "field 'access_policy.predicate': it is not a filter over the caller's attributes .*column",
    ),
    ({"access_policy": {"predicate": "a < true"}}, "field 'access_policy.predicate': .*'<' needs an order"),
    ({"max_qps": 0}, "field 'max_qps': expected `int` >= 1"),
    ({"freshness_sla_s": 2**60}, "field 'freshness_sla_s': .* is outside the safe integers"),
    ({"weight_milli": 1.5}, "field 'weight_milli': expected `int`"),
    ({"version": "1.0"}, "field 'version': '1.0' is not a semantic version such as '1.0.0'"),
    ({"version": "v1.0.0"}, "field 'version'"),
    ({"version": "01.0.0"}, "field 'version'"),
    ({"schema": {"fields": [{"name": "", "type": "t"}]}}, "field 'schema.fields.name': '' is empty"),
    ({"schema": {"fields": [{"name": "a", "type": "t"}] * 2}}, "field 'schema.fields': 'a' stands there twice"),
    ({"schema": {"tables": {"straße": []}}}, "field 'schema.tables': key 'straße' is not an ASCII string"),
    ({"schema": {"tables": {"a\n": []}}}, r"field 'schema.tables': 'a\\n' is empty"),
    ({"schema": {"fields": [{"name": "a", "type": "t", "description": "\ud800"}]}}, "unpaired surrogate"),
    ({"connection": {"kind": "carrier pigeon"}}, "'carrier pigeon' is not one of own, python, base, remote, mcp, memory"),
    ({"connection": {"kind": "base"}}, "field 'connection.address': a source of kind 'base' needs it"),
    ({"connection": {"kind": "base", "address": "  "}}, "field 'connection.address': a source of kind 'base' needs it"),
    ({"connection": {"kind": "base", "address": "/a\x00b"}}, "field 'connection.address': .* holds control characters"),
    (
        {"connection": {"kind": "base", "address": "/a", "key_variable": "K"}},
        "field 'connection.key_variable': a source of kind 'base' needs no",
    ),
    ({"connection": {"kind": "remote"}}, "field 'connection.address': a source of kind 'remote' needs it"),
    ({"connection": {"kind": "remote", "address": "ftp://h"}}, "field 'connection.address': it is not an address such as https://host"),
    ({"connection": {"kind": "remote", "address": "https://"}}, "field 'connection.address': it is not an address"),
    ({"connection": {"kind": "remote", "address": "https://h:99999"}}, "field 'connection.address': it is not an address"),
    ({"connection": {"kind": "remote", "address": "https://[::1"}}, "field 'connection.address': it is not an address"),
    ({"connection": {"kind": "remote", "address": "https://h/a b"}}, "field 'connection.address': it is not an address"),
    ({"connection": {"kind": "mcp", "address": "x"}}, "field 'connection.tool': a source of kind 'mcp' needs it"),
    ({"connection": {"kind": "mcp", "tool": "x"}}, "field 'connection.address': a source of kind 'mcp' needs it"),
    ({"connection": {"kind": "python", "address": "x"}}, "field 'connection.address': a source of kind 'python' has none; leave it out"),
    ({"connection": {"kind": "memory", "tool": "x"}}, "field 'connection.tool': a source of kind 'memory' has none"),
    ({"connection": {"address": "x"}}, "field 'connection.address': a source of kind 'own' has none"),
    ({"connection": {"options": {"a": "b"}}}, "field 'connection.options': the base's own sources have none"),
    ({"connection": {"kind": "python", "options": {"ü": "b"}}}, "field 'connection.options': key 'ü' is not an ASCII string"),
]


@pytest.mark.parametrize(("fields", "problem"), MISTAKES)
def test_a_mistake_is_named_with_its_field(fields: dict[str, object], problem: str) -> None:
    needs_name = "source_id" not in fields and bool(fields)
    with pytest.raises(InvalidFieldError, match=problem) as caught:
        checked_descriptor({"source_id": "s"} | fields if needs_name else fields)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "connection",
    [
        {"kind": "remote", "address": "https://user:hunter2@host/path"},
        {"kind": "remote", "address": "https://hunter2@host/path"},
        {"kind": "remote", "address": "https://host/path?api_key=hunter2"},
        {"kind": "remote", "address": "https://host/path?x=1&key=hunter2"},
        {"kind": "mcp", "address": "https://host/path?access-token=hunter2", "tool": "t"},
        {"kind": "remote", "address": "https://host", "key_variable": "hunter2-secret"},
        {"kind": "remote", "address": "https://host", "key_variable": "sk-hunter2"},
        {"kind": "remote", "address": "https://host", "options": {"apiKey": "hunter2"}},
        {"kind": "python", "options": {"db_password": "hunter2"}},
    ],
)
def test_a_key_is_neither_stored_nor_repeated(connection: dict[str, object]) -> None:
    with pytest.raises(InvalidFieldError, match="environment variable") as caught:
        checked_descriptor({"source_id": "s", "connection": connection})

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("thing", [5, "text", None, ["source_id"], object(), {1: 2}, {"source_id": object()}])
def test_what_is_no_descriptor_is_refused(thing: object) -> None:
    with pytest.raises(InvalidFieldError):
        checked_descriptor(thing)  # type: ignore[arg-type]  # the point of the test


def test_a_descriptor_made_in_code_is_checked_as_well() -> None:
    wrong = SourceDescriptor(source_id=SourceId("s"), latency_tier="soon")  # type: ignore[arg-type]  # structs do not check
    with pytest.raises(InvalidFieldError, match="'soon' is not one of hot, warm, cold, archive"):
        checked_descriptor(wrong)


@given(
    fields=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["source_id", "connection", "schema", "fields", "tables", "kind", "name", "version", "access_policy"])
                | st.text(max_size=3),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_is_given_the_only_error_is_a_named_field(fields: object) -> None:
    try:
        read = checked_descriptor(fields)  # type: ignore[arg-type]  # the point of the test
    except InvalidFieldError:
        return

    assert read == msgspec.json.decode(encode_struct(read), type=SourceDescriptor)


# --- changes ---

TITLE = SchemaField(name="title", type="text")
BODY = SchemaField(name="body", type="text")
BASE = SchemaDefinition(fields=(TITLE,), tables={"pages": (BODY,)})


def _source(version: str, schema: SchemaDefinition = BASE, *, weight: int = 1_000) -> SourceDescriptor:
    return SourceDescriptor(source_id=SourceId("s"), version=SemanticVersion(version), schema=schema, weight_milli=weight)


def _replaced(*, fields: tuple[SchemaField, ...] = (TITLE,), **tables: tuple[SchemaField, ...]) -> SchemaDefinition:
    return SchemaDefinition(fields=fields, tables=tables or {"pages": (BODY,)})


COMPATIBLE = [
    (_replaced(fields=(TITLE, BODY)), "field 'body' is new"),
    (_replaced(fields=(SchemaField(name="title", type="text", is_indexed=True),)), "field 'title' is described otherwise"),
    (_replaced(pages=(BODY,), people=()), "table 'people' is new"),
    (_replaced(pages=(BODY, TITLE)), "field 'title' of table 'pages' is new"),
]
BREAKING = [
    (_replaced(fields=()), "field 'title' is gone"),
    (_replaced(fields=(SchemaField(name="title", type="int"),)), "field 'title' was 'text' and is 'int'"),
    (_replaced(people=(BODY,)), "table 'pages' is gone"),
    (_replaced(pages=()), "field 'body' of table 'pages' is gone"),
    (_replaced(pages=(SchemaField(name="body", type="blob"),)), "field 'body' of table 'pages' was 'text' and is 'blob'"),
]


@pytest.mark.parametrize(("schema", "words"), COMPATIBLE)
def test_a_changed_schema_needs_a_higher_version(schema: SchemaDefinition, words: str) -> None:
    with pytest.raises(InvalidFieldError, match=re.escape(f"the schema changed ({words}), which needs a higher version than '1.2.0'")):
        check_change(_source("1.2.0"), _source("1.2.0", schema))
    check_change(_source("1.2.0"), _source("1.2.1", schema))
    check_change(_source("1.2.0-rc.1"), _source("1.2.0", schema))

    assert "compatible" == schema_change(BASE, schema)


@pytest.mark.parametrize(("schema", "words"), BREAKING)
def test_a_breaking_change_needs_a_higher_major_version(schema: SchemaDefinition, words: str) -> None:
    for version in ("1.2.0", "1.9.0"):
        with pytest.raises(
            InvalidFieldError, match=re.escape(f"({words}), which needs a higher major version than '1.2.0': at least '2.0.0'")
        ):
            check_change(_source("1.2.0"), _source(version, schema))
    check_change(_source("1.2.0"), _source("2.0.0", schema))

    assert "breaking" == schema_change(BASE, schema)


def test_what_is_not_the_schema_changes_without_a_version() -> None:
    check_change(_source("1.2.0"), _source("1.2.0", weight=5))
    check_change(None, _source("0.1.0"))

    assert "none" == schema_change(BASE, BASE)


@pytest.mark.parametrize(("old", "new"), [("1.2.0", "1.1.9"), ("1.0.0", "1.0.0-rc.1"), ("1.0.0-rc.2", "1.0.0-rc.1"), ("10.0.0", "9.0.0")])
def test_versions_never_go_back(old: str, new: str) -> None:
    with pytest.raises(InvalidFieldError, match=re.escape(f"'{new}' is lower than '{old}', which is registered")):
        check_change(_source(old), _source(new))


def test_a_new_order_of_fields_is_a_change() -> None:
    assert "compatible" == schema_change(SchemaDefinition(fields=(TITLE, BODY)), SchemaDefinition(fields=(BODY, TITLE)))


def test_the_checks_keep_what_they_do_not_mind() -> None:
    policy = SourceAccessPolicy(tenants=("b", "a"), principals=("x",))
    descriptor = SourceDescriptor(source_id=SourceId("s"), access_policy=policy, connection=SourceConnection(kind=ConnectionKind.PYTHON))

    assert descriptor == checked_descriptor(descriptor)
