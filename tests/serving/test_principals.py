"""Who asks, as typed: what each word becomes, and which word is named when it is wrong."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.access import Principal
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.principals import principal_from

KNOWN = {"clearance", "groups", "roles", "tenant"}


def test_plain_name_is_an_ordinary_colleague() -> None:
    principal = principal_from("alice")

    assert Principal(principal_id="alice", clearance=Classification.INTERNAL) == principal  # type: ignore[arg-type]  # a plain id
    assert (False, (), ()) == (principal.is_owner, principal.groups, principal.roles)


def test_words_after_the_name_are_facts_and_the_rest_are_attributes() -> None:
    principal = principal_from(
        "  alice clearance=confidential groups=security,oncall,security roles=auditor tenant=acme department=eng a=b=c "
    )

    assert ("alice", "acme", Classification.CONFIDENTIAL) == (principal.principal_id, principal.tenant, principal.clearance)
    assert (("oncall", "security"), ("auditor",)) == (principal.groups, principal.roles)
    assert {"department": "eng", "a": "b=c"} == principal.attributes


def test_json_object_is_the_message_itself() -> None:
    principal = Principal(
        principal_id="alice smith",  # type: ignore[arg-type]  # a plain id
        clearance=Classification.RESTRICTED,
        groups=("a b",),
        attributes={"team": "x y"},
    )

    assert principal == principal_from(msgspec.json.encode(principal).decode())
    assert Classification.PUBLIC is principal_from('{"principal_id": "bob"}').clearance


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it names nobody"),
        ("   ", "it names nobody"),
        ("groups=a", "it begins with 'groups=a', and the first word is the name"),
        ("alice smith", "'smith' is not of the form key=value"),
        ("alice =x", "'=x' has no usable key"),
        ("alice 1a=x", "'1a=x' has no usable key"),
        ("alice groups=", "'groups=' has no value"),
        ("alice groups=a,,b", "'groups=a,,b' has an empty name between its commas"),
        ("alice team=a team=b", "'team=b' gives 'team' a second time"),
        ("alice clearance=top", "'clearance=top' is not one of public, internal, confidential, restricted"),
        ("alice \udcff=x", "is not UTF-8"),
        ("{", "the JSON object is no principal: input data was truncated"),
        ("{}", "missing required field `principal_id`"),
        ('{"principal_id": ""}', "'principal_id' is empty"),
        ('{"principal_id": "a", "clearence": "public"}', "'clearence' is not a field of a principal"),
        ('{"principal_id": "a", "groups": "b"}', "expected `array`, got `str`, at 'groups'"),
        ("alice " + "x" * 10_000, "'xxxxxxxxxx"),
    ],
)
def test_wrong_word_is_named(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        principal_from(text)

    assert problem in caught.value.format_message()
    assert caught.value.format_message().startswith("field 'principal' (--as): ")
    assert len(caught.value.format_message()) < 300


WORDS = st.text("abcXYZ019_.-", min_size=1, max_size=8)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_.-]{0,6}", fullmatch=True).filter(lambda key: key not in KNOWN), WORDS), WORDS)
def test_every_fact_arrives(facts: dict[str, str], name: str) -> None:
    principal = principal_from(" ".join([name, *(f"{key}={value}" for key, value in facts.items())]))

    assert (name, facts) == (principal.principal_id, principal.attributes)


@given(st.text())
def test_any_text_is_a_principal_or_a_mistake(text: str) -> None:
    try:
        principal = principal_from(text)
    except UsageError:
        return

    assert principal.principal_id
