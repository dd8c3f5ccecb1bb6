"""Whatever a contract holds arrives as it was: contract, message, bytes, message, contract."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect as look
from wire_values import instances, values_of

from evidentia.contracts.control import PolicyPatch
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, TimeWindow
from evidentia.contracts.predicates import MAX_DEPTH, And, Compare, Exists, In, Not, Or, Predicate
from evidentia.contracts.runs import RetrievedDocument
from evidentia.protobuf.conversion import CONVERSIONS, from_message, to_message
from evidentia.protobuf.evidentia.v1 import evidence_service_pb2, types_pb2
from evidentia.protobuf.methods import METHODS
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of

if TYPE_CHECKING:
    from evidentia.protobuf.methods import Method
    from evidentia.serving.operations.endpoint import Endpoint

BY_OPERATION = {camel(endpoint.name): endpoint for endpoint in ENDPOINTS}


def through_the_wire(name: str, it: object) -> Any:
    message = to_message(name, it)
    return from_message(name, type(message).FromString(message.SerializeToString()))


def method(name: str) -> Method:
    return next(each for each in METHODS if each.name == name)


def endpoint_of(name: str) -> Endpoint:
    return BY_OPERATION[name]


def exactly(it: object) -> object:
    """Return what tells 1 from 1.0 and one offset from another, which equality does not."""
    if isinstance(it, msgspec.Struct):
        return {name: exactly(getattr(it, name)) for name in it.__struct_fields__}
    if isinstance(it, Mapping):
        return {key: exactly(value) for key, value in it.items()}
    if isinstance(it, tuple | list):
        return [exactly(value) for value in it]
    return (type(it).__name__, str(it))


@pytest.mark.parametrize("name", sorted(CONVERSIONS))
def test_a_contract_arrives_as_it_was(name: str) -> None:
    contract = CONVERSIONS[name][0]
    is_struct = isinstance(contract, type)
    originals = list(instances(contract)) if is_struct else values_of(look.type_info(contract))

    for original in originals:
        arrived = through_the_wire(name, original)

        assert original == arrived
        assert exactly(original) == exactly(arrived)


STRUCTS: dict[str, type[msgspec.Struct]] = {name: row[0] for name, row in CONVERSIONS.items() if isinstance(row[0], type)}
OMITTING = sorted(name for name, struct in STRUCTS.items() if struct.__struct_config__.omit_defaults)


@pytest.mark.parametrize("name", OMITTING)
def test_a_contract_that_omits_its_defaults_omits_them_after_the_wire(name: str) -> None:
    least = next(instances(CONVERSIONS[name][0]))

    assert msgspec.json.encode(least) == msgspec.json.encode(through_the_wire(name, least))


@pytest.mark.parametrize("name", sorted(BY_OPERATION))
def test_a_request_arrives_as_it_was(name: str) -> None:
    kind = flat_of(endpoint_of(name)).message
    each = method(name)

    for original in instances(kind, skip_null_defaults=True):
        message = each.request.FromString(each.request(**each.write_request(original)).SerializeToString())
        arrived = msgspec.convert(each.read_request(message), kind)

        assert original == arrived
        assert exactly(original) == exactly(arrived)


@pytest.mark.parametrize("name", sorted(BY_OPERATION))
def test_a_reply_arrives_as_it_was(name: str) -> None:
    each = method(name)
    kind = endpoint_of(name).reply or dict[str, Any]

    for original in values_of(look.type_info(kind)):
        message = each.response.FromString(each.response(**each.write_response(original)).SerializeToString())
        arrived = msgspec.convert(each.read_response(message), kind)

        assert original == arrived
        assert exactly(original) == exactly(arrived)


# --- filters ---

VALUES = st.one_of(st.text(max_size=5), st.integers(-(2**53) + 1, 2**53 - 1), st.booleans())
TREES: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(
        st.builds(Exists, st.text(max_size=5)),
        st.builds(Compare, st.text(max_size=5), st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), VALUES),
        st.builds(In, st.text(max_size=5), st.lists(VALUES, max_size=3).map(tuple)),
    ),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda clauses: And(tuple(clauses))),
        st.lists(inner, max_size=3).map(lambda clauses: Or(tuple(clauses))),
    ),
    max_leaves=12,
)


@given(TREES)
def test_a_filter_arrives_as_it_was(tree: Predicate) -> None:
    assert exactly(tree) == exactly(through_the_wire("Predicate", tree))


@pytest.mark.parametrize("depth", [1, 29, 30, 31, 32, MAX_DEPTH, 4 * MAX_DEPTH])
def test_a_filter_arrives_however_deep_it_is(depth: int) -> None:
    tree: Predicate = Exists("title")
    for level in range(depth):
        tree = Not(tree) if level % 2 else And((tree, Exists("é")))
    request = EvidenceRequest(query=DecomposedQuery(text="q"), filter=tree)
    retrieve = method("Retrieve")
    raw = retrieve.request(**retrieve.write_request(request)).SerializeToString()

    fields = retrieve.read_request(retrieve.request.FromString(raw))

    assert request == msgspec.convert(fields, EvidenceRequest)


# --- what is left out ---


def test_what_is_left_out_has_the_default_of_the_contract() -> None:
    message = evidence_service_pb2.RetrieveRequest(query={"decomposed_query": {"text": "why"}})

    fields = method("Retrieve").read_request(message)

    assert EvidenceRequest(query=DecomposedQuery(text="why")) == msgspec.convert(fields, EvidenceRequest)


def test_a_default_that_is_not_zero_is_told_to_whoever_reads_the_message() -> None:
    facts = {"run_id": "r", "agent_name": "a"}
    message = to_message("RunFacts", msgspec.convert(facts, CONVERSIONS["RunFacts"][0]))

    assert "default" == message.workflow_name


def test_a_field_that_is_required_is_refused_by_name_when_it_is_left_out() -> None:
    message = evidence_service_pb2.RetrieveRequest(query={"decomposed_query": {}})

    with pytest.raises(msgspec.ValidationError, match=r"missing required field `text` - at `\$.query`"):
        msgspec.convert(method("Retrieve").read_request(message), EvidenceRequest)


def test_an_empty_text_is_not_the_same_as_none() -> None:
    message = evidence_service_pb2.RetrieveRequest(query={"decomposed_query": {"text": ""}}, session_context="")
    given_empty = method("Retrieve").read_request(message)

    assert "" == given_empty["session_context"]
    assert "" == given_empty["query"]["text"]


def test_an_empty_list_is_not_the_same_as_none() -> None:
    policy = CONVERSIONS["SourcePolicy"][0]

    assert () == through_the_wire("SourcePolicy", policy(allowed_sources=())).allowed_sources
    assert through_the_wire("SourcePolicy", policy()).allowed_sources is None


def test_a_patch_changes_only_what_it_names() -> None:
    patch = method("ChangePolicy")
    fields = patch.read_request(patch.request(id="p", enabled=False, rules_json='{"min_chunks": 0}'))

    del fields["id"]

    assert PolicyPatch(enabled=False, rules={"min_chunks": 0}) == msgspec.convert(fields, PolicyPatch)


def test_numbers_outside_what_a_field_takes_are_refused_by_name() -> None:
    message = evidence_service_pb2.RetrieveRequest(query={"decomposed_query": {"text": "q"}}, limit=0)

    with pytest.raises(msgspec.ValidationError, match=r"at `\$.limit`"):
        msgspec.convert(method("Retrieve").read_request(message), EvidenceRequest)


def test_a_word_of_a_newer_schema_is_refused_by_name() -> None:
    message = evidence_service_pb2.RetrieveRequest.FromString(b"\x98\x01\x7f" + b"\x0a\x05\x0a\x03\x0a\x01q")

    with pytest.raises(msgspec.ValidationError, match=r"Invalid enum value '127' - at `\$.mode`"):
        msgspec.convert(method("Retrieve").read_request(message), EvidenceRequest)


def test_a_union_without_a_member_is_refused() -> None:
    message = types_pb2.NumberedCall(seq=1, call={})

    with pytest.raises(msgspec.ValidationError, match=r"at `\$.call`"):
        from_message("NumberedCall", message)


# --- what protobuf's own types would have changed ---


def test_whole_numbers_in_free_fields_stay_whole() -> None:
    schema = method("ShowPolicySchema")

    arrived = schema.read_response(schema.response(**schema.write_response({"whole": 1, "real": 1.0})))

    assert ("int", "float") == (type(arrived["whole"]).__name__, type(arrived["real"]).__name__)


@pytest.mark.parametrize("age", [3, 3.0])
def test_an_age_in_whole_days_stays_whole(age: float) -> None:
    arrived = through_the_wire("RetrievedDocument", RetrievedDocument(age_days=age))

    assert type(age) is type(arrived.age_days)


def test_a_moment_keeps_its_offset() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))

    assert "2026-01-02T03:04:05.678901+02:00" == through_the_wire("TimeWindow", TimeWindow(start=moment)).start.isoformat()
