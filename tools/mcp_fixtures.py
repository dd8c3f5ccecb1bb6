"""What the public MCP conformance suite expects of a server under test: tools, resources and prompts of fixed names.

`add_fixtures` puts them in front of a server's own handlers, so that everything but these few answers is the server's. Never for use
outside of tests. Answers are written as they stand on the wire.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import warnings
from typing import TYPE_CHECKING, Any, Final

from mcp import MCPError, types
from mcp.server.subscriptions import PromptsListChanged, SubscriptionBus, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    Context = ServerRequestContext[Any, Any]  # Any: the transport's own request
    Tool = Callable[[Context, types.CallToolRequestParams], Awaitable["Wire"]]


_KEY: Final = b"a key of the fixtures, and of nothing else"
_PAUSE_S: Final = 0.02
_NO_ARGUMENTS: Final = {"type": "object"}


def add_fixtures(server: Server[Any], *, bus: SubscriptionBus) -> None:
    """Put the suite's fixtures in front of the handlers of a server; `bus` is where it publishes changes."""
    _Fixtures(server, bus).install()


class _Fixtures:
    def __init__(self, server: Server[Any], bus: SubscriptionBus) -> None:
        self._server = server
        self._bus = bus
        self._tools: dict[str, Tool] = {
            "test_error_handling": _failing,
            "test_tool_with_logging": _logging,
            "test_logging_tool": _logging,
            "test_tool_with_progress": _progressing,
            "test_sampling": _sampling,
            "test_elicitation": _eliciting,
            "test_elicitation_sep1034_defaults": _eliciting,
            "test_elicitation_sep1330_enums": _eliciting,
            "test_missing_capability": _needing,
            "test_input_required_result_multi_round": _rounds,
            "test_input_required_result_capabilities": _capable,
            "test_trigger_tool_change": self._tools_changed,
            "test_trigger_prompt_change": self._prompts_changed,
            "test_x_mcp_header": _region,
            "json_schema_2020_12_tool": _named,
            "test_streaming_elicitation": _named,
        }

    def install(self) -> None:
        for method, params, handle in (
            ("tools/list", types.PaginatedRequestParams, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("resources/list", types.PaginatedRequestParams, self._list_resources),
            ("resources/read", types.ReadResourceRequestParams, self._read_resource),
            ("resources/templates/list", types.PaginatedRequestParams, self._list_templates),
            ("resources/subscribe", types.SubscribeRequestParams, self._subscribe),
        ):
            self._wrap(method, params, handle)
        more: tuple[tuple[str, type[Any], Any], ...] = (
            ("prompts/list", types.PaginatedRequestParams, _list_prompts),
            ("prompts/get", types.GetPromptRequestParams, _get_prompt),
            ("completion/complete", types.CompleteRequestParams, _complete),
            ("logging/setLevel", types.SetLevelRequestParams, _nothing),
        )
        for method, params_type, answer in more:
            self._server.add_request_handler(method, params_type, _whole(answer))
        own = self._server.get_tool_input_schema
        self._server.get_tool_input_schema = lambda name: MORE_SCHEMAS.get(name) or (own(name) if own else None)

    def _wrap(self, method: str, params: Any, handle: Any) -> None:  # noqa: ANN401 - one pair of a request's parameters and its handler
        inner = self._server.get_request_handler(method)
        if inner is None:
            raise LookupError(method)

        async def wrapped(context: Context, given: Any) -> Any:  # noqa: ANN401 - likewise
            return await handle(context, given, inner.handler)

        self._server.add_request_handler(method, params, _whole(wrapped))

    async def _list_tools(self, context: Context, params: Any, inner: Any) -> Any:  # noqa: ANN401 - likewise
        listed = await inner(context, params)
        names = sorted({*self._tools, *TEXTS, *ASKS})
        more = [types.Tool(name=name, description="A fixture.", input_schema=MORE_SCHEMAS.get(name, _NO_ARGUMENTS)) for name in names]
        return listed.model_copy(update={"tools": [*listed.tools, *more]})

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams, inner: Any) -> Any:  # noqa: ANN401 - likewise
        if params.name in TEXTS:
            return {"content": TEXTS[params.name]}
        if params.name in ASKS:
            return _asking(context, params)
        tool = self._tools.get(params.name)
        return await (inner(context, params) if tool is None else tool(context, params))

    async def _list_resources(self, context: Context, params: Any, inner: Any) -> Any:  # noqa: ANN401 - likewise
        listed = await inner(context, params)
        more = [types.Resource(uri=uri, name=uri.rpartition("/")[2], description="A fixture.") for uri in sorted(RESOURCES)]
        return listed.model_copy(update={"resources": [*listed.resources, *more]})

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams, inner: Any) -> Any:  # noqa: ANN401 - likewise
        if params.uri in RESOURCES:
            return {"contents": [{"uri": params.uri, **RESOURCES[params.uri]}], "ttlMs": 0, "cacheScope": "private"}
        before, after = TEMPLATE.split("{id}")
        if params.uri.startswith(before) and params.uri.endswith(after):
            name = params.uri[len(before) : -len(after)]
            text = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
            contents = [{"uri": params.uri, "mimeType": "application/json", "text": text}]
            return {"contents": contents, "ttlMs": 0, "cacheScope": "private"}
        return await inner(context, params)

    async def _list_templates(self, context: Context, params: Any, inner: Any) -> Any:  # noqa: ANN401 - likewise
        listed = await inner(context, params)
        more = types.ResourceTemplate(uri_template=TEMPLATE, name="template", description="A fixture.")
        return listed.model_copy(update={"resource_templates": [*listed.resource_templates, more]})

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams, inner: Any) -> Any:  # noqa: ANN401 - likewise
        return {} if params.uri in RESOURCES else await inner(context, params)

    async def _tools_changed(self, _: Context, params: types.CallToolRequestParams) -> Wire:
        await self._bus.publish(ToolsListChanged())
        return _text(params.name)

    async def _prompts_changed(self, _: Context, params: types.CallToolRequestParams) -> Wire:
        await self._bus.publish(PromptsListChanged())
        return _text(params.name)


def _whole(answer: Any) -> Any:  # noqa: ANN401 - a handler
    """Return a handler that says of every answer that it is whole, unless that asks for more."""

    async def answered(context: Context, given: Any) -> Any:  # noqa: ANN401 - likewise
        result = await answer(context, given)
        return {"resultType": "complete", **result} if isinstance(result, dict) and result else result

    return answered


def _text(text: str) -> Wire:
    return {"content": [_part(text)]}


async def _named(_: Context, params: types.CallToolRequestParams) -> Wire:
    return _text(params.name)


async def _region(_: Context, params: types.CallToolRequestParams) -> Wire:
    return _text(f"region={(params.arguments or {}).get('region')}")


async def _failing(_: Context, __: types.CallToolRequestParams) -> Wire:
    return {**_text("This tool intentionally returns an error for testing"), "isError": True}


async def _logging(context: Context, _: types.CallToolRequestParams) -> Wire:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the older revision still has it
            await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await asyncio.sleep(_PAUSE_S)
    return _text("Tool with logging executed successfully")


async def _progressing(context: Context, _: types.CallToolRequestParams) -> Wire:
    token = (context.meta or {}).get("progress_token")
    for progress in (0, 50, 100):
        if token is not None:
            await context.session.send_progress_notification(token, progress, 100, related_request_id=str(context.request_id))
        await asyncio.sleep(_PAUSE_S)
    return _text("Tool with progress executed successfully")


async def _sampling(context: Context, params: types.CallToolRequestParams) -> Wire:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=(params.arguments or {})["prompt"]))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=100))
    reply = await context.session.send_request(request, types.CreateMessageResult, metadata=_along(context))
    return _text(f"LLM response: {reply.content.text if isinstance(reply.content, types.TextContent) else ''}")


async def _eliciting(context: Context, params: types.CallToolRequestParams) -> Wire:
    schemas = {"test_elicitation_sep1034_defaults": WITH_DEFAULTS, "test_elicitation_sep1330_enums": ENUMS}
    plain = {"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}, "required": ["username"]}
    form = types.ElicitRequestFormParams(
        message=(params.arguments or {}).get("message", "Please fill in"), requested_schema=schemas.get(params.name, plain)
    )
    reply = await context.session.send_request(types.ElicitRequest(params=form), types.ElicitResult, metadata=_along(context))
    return _text(f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}")


def _along(context: Context) -> ServerMessageMetadata:
    return ServerMessageMetadata(related_request_id=context.request_id)


async def _needing(context: Context, params: types.CallToolRequestParams) -> Wire:
    known = context.session.client_capabilities
    if known is None or known.sampling is None:
        needed: Wire = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs the client to sample", needed)
    return _text(params.name)


def _asking(_: Context, params: types.CallToolRequestParams) -> Wire:
    """Ask for what a fixture needs until everything is there and the state is one that was given out."""
    asks, state = ASKS[params.name]
    if params.request_state is not None:
        _opened(params.request_state)
    is_answered = all(_answers(request, _plain(params).get(key)) for key, request in asks.items())
    if is_answered and (not state or params.request_state is not None):
        return _text(f"state-ok: {json.dumps(_plain(params))}")
    return {"resultType": "input_required", "inputRequests": asks, **({"requestState": _sealed(state)} if state else {})}


def _answers(request: Wire, reply: Any) -> bool:  # noqa: ANN401 - JSON
    """Tell whether a reply is of the kind that a request asks for."""
    if not isinstance(reply, dict):
        return False
    if request["method"] != "elicitation/create":
        return True
    content = reply.get("content") or {}
    required = request["params"]["requestedSchema"]["required"]
    return reply.get("action") == "accept" and all(isinstance(content.get(name), str | bool) for name in required)


async def _rounds(_: Context, params: types.CallToolRequestParams) -> Wire:
    done = 0 if params.request_state is None else int(_opened(params.request_state))
    if done and f"step{done}" not in _plain(params):
        done = 0
    last = 2
    if done == last:
        return _text("All rounds are done")
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    ask = {"method": "elicitation/create", "params": {"mode": "form", "message": f"Step {done + 1}", "requestedSchema": form}}
    return {"resultType": "input_required", "inputRequests": {f"step{done + 1}": ask}, "requestState": _sealed(str(done + 1))}


async def _capable(context: Context, _: types.CallToolRequestParams) -> Wire:
    known = context.session.client_capabilities
    asks, _unused = ASKS["test_input_required_result_multiple_inputs"]
    wanted = {"sampling/createMessage": known is None or known.sampling, "elicitation/create": known is None or known.elicitation}
    chosen = {key: ask for key, ask in asks.items() if wanted.get(ask["method"])}
    return {"resultType": "input_required", "inputRequests": chosen, "requestState": _sealed("capable")}


def _plain(params: types.CallToolRequestParams | types.GetPromptRequestParams) -> Wire:
    given: Wire = params.model_dump(by_alias=True, mode="json", exclude_none=True).get("inputResponses") or {}
    return given


def _sealed(state: str) -> str:
    return f"{state}.{hmac.digest(_KEY, state.encode(), hashlib.sha256).hex()}"


def _opened(sealed: str) -> str:
    state, _, _seal = sealed.rpartition(".")
    if not hmac.compare_digest(_sealed(state).encode(), sealed.encode()):
        raise MCPError(types.INVALID_PARAMS, "requestState is not one that was given out")
    return state


async def _list_prompts(_: Context, __: types.PaginatedRequestParams) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name, description="A fixture.", arguments=[types.PromptArgument(name=each, required=True) for each in arguments]
            )
            for name, (arguments, _messages) in sorted(PROMPTS.items())
        ]
    )


async def _get_prompt(_: Context, params: types.GetPromptRequestParams) -> Wire:
    if params.name not in PROMPTS:
        raise MCPError(types.INVALID_PARAMS, "Unknown prompt")
    arguments, messages = PROMPTS[params.name]
    given = {name: (params.arguments or {}).get(name, "") for name in arguments}
    if params.name == "test_input_required_result_prompt" and not _plain(params):
        asks, _unused = ASKS["test_input_required_result_elicitation"]
        return {"resultType": "input_required", "inputRequests": {"user_context": asks["user_name"]}}
    written = json.dumps(messages)
    for name, value in given.items():
        written = written.replace(f"<{name}>", json.dumps(value)[1:-1])
    return {"messages": json.loads(written)}


async def _complete(_: Context, __: types.CompleteRequestParams) -> Wire:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


async def _nothing(_: Context, __: types.SetLevelRequestParams) -> Wire:
    return {}


# --- mcp fixture texts ---
# The words of the conformance suite's fixtures, as its scenarios describe them. Data only.

Wire = dict[str, Any]  # Any: JSON

IMAGE: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
AUDIO: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

_IMAGE_PART: Final = {"type": "image", "data": IMAGE, "mimeType": "image/png"}
_EMBEDDED: Final = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
_MIXED: Final = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}


def _part(text: str) -> Wire:
    return {"type": "text", "text": text}


def _form(message: str, **properties: str) -> Wire:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": sorted(properties),
    }
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def _sample(text: str) -> Wire:
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": _part(text)}], "maxTokens": 100},
    }


TEXTS: Final[dict[str, list[Wire]]] = {
    "test_simple_text": [_part("This is a simple text response for testing.")],
    "test_image_content": [_IMAGE_PART],
    "test_audio_content": [{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}],
    "test_embedded_resource": [{"type": "resource", "resource": _EMBEDDED}],
    "test_multiple_content_types": [
        _part("Multiple content types test:"),
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
    "test_simple_prompt": ((), _said(_part("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (("arg1", "arg2"), _said(_part("Prompt with arguments: arg1='<arg1>', arg2='<arg2>'"))),
    "test_prompt_with_embedded_resource": (
        ("resourceUri",),
        _said({"type": "resource", "resource": _GIVEN}, _part("Please process the embedded resource above.")),
    ),
    "test_prompt_with_image": ((), _said(_IMAGE_PART, _part("Please analyze the image above."))),
    "test_input_required_result_prompt": ((), _said(_part("Use the context that was given."))),
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
