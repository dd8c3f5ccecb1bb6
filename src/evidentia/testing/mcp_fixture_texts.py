"""The words of the conformance suite's fixtures, as its scenarios describe them. Data only."""

from __future__ import annotations

from typing import Any, Final

Wire = dict[str, Any]  # Any: JSON

IMAGE: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
AUDIO: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

_IMAGE_PART: Final = {"type": "image", "data": IMAGE, "mimeType": "image/png"}
_EMBEDDED: Final = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
_MIXED: Final = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _form(message: str, **properties: str) -> Wire:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": sorted(properties),
    }
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def _sample(text: str) -> Wire:
    return {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": _text(text)}], "maxTokens": 100}}


TEXTS: Final[dict[str, list[Wire]]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_IMAGE_PART],
    "test_audio_content": [{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}],
    "test_embedded_resource": [{"type": "resource", "resource": _EMBEDDED}],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _IMAGE_PART,
        {"type": "resource", "resource": _MIXED},
    ],
}
"""Tools that always say the same."""

_NAME: Final = {"user_name": _form("What is your name?", name="string")}
_CONFIRM: Final = {"confirm": _form("Please confirm", ok="boolean")}
ASKS: Final[dict[str, tuple[dict[str, Wire], str]]] = {
    "test_input_required_result_elicitation": (_NAME, ""),
    "test_input_required_result_sampling": ({"capital_question": _sample("What is the capital of France?")}, ""),
    "test_input_required_result_list_roots": ({"client_roots": {"method": "roots/list", "params": {}}}, ""),
    "test_input_required_result_request_state": (_CONFIRM, "state"),
    "test_input_required_result_tampered_state": (_CONFIRM, "state"),
    "test_input_required_result_multiple_inputs": (
        {**_NAME, "greeting": _sample("Generate a greeting"), "client_roots": {"method": "roots/list", "params": {}}},
        "state",
    ),
}
"""Tools that ask the client first: for what, and whether they hand out a state that has to come back."""

RESOURCES: Final[dict[str, Wire]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": IMAGE},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}
TEMPLATE: Final = "test://template/{id}/data"


def _said(*parts: Wire) -> list[Wire]:
    return [{"role": "user", "content": part} for part in parts]


_GIVEN: Final = {"uri": "<resourceUri>", "mimeType": "text/plain", "text": "Embedded resource content for testing."}
PROMPTS: Final[dict[str, tuple[tuple[str, ...], list[Wire]]]] = {
    "test_simple_prompt": ((), _said(_text("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (("arg1", "arg2"), _said(_text("Prompt with arguments: arg1='<arg1>', arg2='<arg2>'"))),
    "test_prompt_with_embedded_resource": (
        ("resourceUri",),
        _said({"type": "resource", "resource": _GIVEN}, _text("Please process the embedded resource above.")),
    ),
    "test_prompt_with_image": ((), _said(_IMAGE_PART, _text("Please analyze the image above."))),
    "test_input_required_result_prompt": ((), _said(_text("Use the context that was given."))),
}
"""Prompts: their arguments, and what they say, with the arguments between angle brackets."""

WITH_DEFAULTS: Final[Wire] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
_VALUES: Final = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
_OPTIONS: Final = [f"option{number}" for number in (1, 2, 3)]
ENUMS: Final[Wire] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _VALUES},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _VALUES}},
    },
    "required": [],
}

_WORD: Final = {"type": "string"}
MORE_SCHEMAS: Final[dict[str, Wire]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": _WORD}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": _WORD}, "required": ["message"]},
    "test_x_mcp_header": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": _WORD, "city": _WORD}}},
        "properties": {
            "name": _WORD,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": _WORD,
            "email": _WORD,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
"""What fixtures take that take anything."""
