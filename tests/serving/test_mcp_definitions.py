"""What every conversation pays for: the definitions of the tools, and what stands in them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from mcp import types

from evidentia.contracts.evidence import EvidenceRequest
from evidentia.serving.mcp.tool_definitions import DEFINITIONS, MAX_TOKENS, REQUEST_FIELDS, CheckAsk, TableAsk, TextAsk, VerifyAsk, listed
from evidentia.text.counting import count_tokens


def test_all_definitions_together_cost_less_than_two_thousand_tokens() -> None:
    wire = [types.Tool.model_validate(listed(each)).model_dump(by_alias=True, exclude_none=True) for each in DEFINITIONS]

    assert MAX_TOKENS > count_tokens(json.dumps(wire))


def test_retrieve_takes_every_field_of_a_request_but_who_asks() -> None:
    assert set(EvidenceRequest.__struct_fields__) - {"principal"} == set(REQUEST_FIELDS)


@pytest.mark.parametrize(
    ("name", "message"),
    [("rag_retrieve", TextAsk), ("table_rag_retrieve", TableAsk), ("verify", VerifyAsk), ("check_reply", CheckAsk)],
)
def test_a_schema_names_what_is_read(name: str, message: type) -> None:
    (definition,) = [each for each in DEFINITIONS if each.name == name]

    assert set(message.__struct_fields__) == set(definition.takes["properties"])  # type: ignore[attr-defined]  # a message
    assert False is definition.takes["additionalProperties"]


def test_every_tool_says_that_it_changes_nothing() -> None:
    annotations = [listed(each)["annotations"] for each in DEFINITIONS]

    assert all(each["readOnlyHint"] and not each["destructiveHint"] for each in annotations)


def test_help_does_not_import_the_package() -> None:
    code = "import sys; from evidentia.serving.cli import main; main(['mcp', '--help']); sys.exit('mcp' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
