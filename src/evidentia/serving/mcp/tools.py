"""What each tool does: arguments in, text and structured content out. A failure is an outcome with a message, never a stack trace."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import EvidentiaError, InvalidFieldError
from evidentia.protocol import ProtocolSession
from evidentia.protocol.self_check import list_for_agent
from evidentia.protocol.toolbox import Toolbox, ToolResult, text_result
from evidentia.serving.mcp.conversations import ConversationMemory, KeptCall, KeptReceipt
from evidentia.serving.mcp.tool_definitions import (
    CHECK,
    RAG,
    RETRIEVE,
    TABLE,
    VERIFY,
    CheckAsk,
    TableAsk,
    TextAsk,
    VerifyAsk,
    check_words,
    read,
    read_request,
    read_response,
)
from evidentia.serving.operations.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evidentia.base.async_base import AsyncBase
    from evidentia.contracts.protocol import Profile
    from evidentia.contracts.provenance import VerifyReport
    from evidentia.serving.identity.callers import Caller
    from evidentia.serving.operations.served_base import ServedBase

    ToolboxMaker = Callable[[AsyncBase, str], Toolbox]

RECEIPT_KEY: Final = "evidentia/receipt_id"
CHUNKS_KEY: Final = "evidentia/chunk_ids"
MAX_MESSAGE_LENGTH: Final = 600

_log = logging.getLogger(__name__)


class ToolOutcome(NamedTuple):
    """What a tool says: text for the model, values for programs, and where the evidence of a text can be looked up."""

    text: str
    structured: dict[str, Any] | None = None  # Any: JSON
    meta: dict[str, Any] | None = None  # Any: JSON
    is_error: bool = False


def agent_tools(base: AsyncBase, agent_name: str) -> Toolbox:
    """Return the agent's tools over a base."""
    return Toolbox(base, agent_name=agent_name)


class ToolHandlers:
    """Runs the tools for whoever is connected."""

    def __init__(self, served_base: ServedBase, memory: ConversationMemory, *, toolbox: ToolboxMaker = agent_tools) -> None:
        self._office = served_base
        self._memory = memory
        self._toolbox = toolbox
        self._tools: dict[str, Callable[[Mapping[str, Any], Caller], Awaitable[ToolOutcome]]] = {
            RAG: self._rag,
            TABLE: self._table,
            RETRIEVE: self._retrieve,
            VERIFY: self._verify,
            CHECK: self._check,
        }

    def has(self, name: str) -> bool:
        """Tell whether there is a tool of this name."""
        return name in self._tools

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:  # Any: JSON as the client sent it
        """Run a tool of which `has` is true."""
        try:
            check_words(arguments)
            return await self._tools[name](arguments, caller)
        except EvidentiaError as error:
            return ToolOutcome(text=failure_text(error), is_error=True)
        except ApiError as refusal:
            return ToolOutcome(text=f"Error: {refusal}\nHint: {refusal.fault.hint}", is_error=True)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, no client reads a stack trace
            _log.error("tool failed: %s raised %s", name, type(error).__name__)
            return ToolOutcome(text="Error: something went wrong inside the server", is_error=True)

    async def _rag(self, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:
        ask = read(TextAsk, arguments)
        toolbox = self._toolbox(self._office.base_for(caller.principal, caller.token), caller.agent_name)
        return self._told(RAG, arguments, await toolbox.rag_retrieve(ask.query, ask.top_k), caller, session=ask.session)

    async def _table(self, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:
        ask = read(TableAsk, arguments)
        toolbox = self._toolbox(self._office.base_for(caller.principal, caller.token), caller.agent_name)
        return self._told(TABLE, arguments, await toolbox.table_rag_retrieve(ask.query), caller, session=ask.session)

    async def _retrieve(self, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:
        request = read_request(arguments, agent_name=caller.agent_name)
        base = self._office.base_for(caller.principal, caller.token, names_mode=arguments.get("governance") is not None)
        response = await base.retrieve(request)
        result = text_result(response.fragments, receipt_id=response.receipt_id, unfinished=response.unfinished_note)
        if response.receipt_id is not None:
            self._memory.note_receipt(caller, KeptReceipt(response.receipt_id, response.as_of, len(response.fragments)))
        # To the protocol it is a search of documents, whatever it is called and however many fragments it asks for.
        self._memory.conversation(caller, request.session_context or "").add(KeptCall(RAG, {"query": request.query.text}, result.text))
        return ToolOutcome(text=result.text, structured=response.to_dict())

    async def _verify(self, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:
        ask = read(VerifyAsk, arguments)
        if (ask.receipt_id is None) == (ask.response is None):
            raise InvalidFieldError("receipt_id", "give either 'receipt_id' or 'response'")
        if ask.receipt_id is not None:
            return await self._verify_receipt(ask.receipt_id, caller)
        base = self._office.base_for(caller.principal, caller.token)
        report: VerifyReport = await base.verify(read_response(ask.response or {}))
        return _verified(msgspec.to_builtins(report))

    async def _verify_receipt(self, receipt_id: str, caller: Caller) -> ToolOutcome:
        """Answer a receipt again; what the asker may no longer see is counted and not shown, and then only the hashes are compared."""
        await self._office.receipt(receipt_id, asker=caller.principal)
        base = self._office.base_for(caller.principal, caller.token)
        again = await base.replay(receipt_id)
        custody = None if again.hidden else await base.verify(again.response)
        found: dict[str, Any] = {
            "ok": again.is_same and (custody is None or custody.ok),
            "target": receipt_id,
            "is_same": again.is_same,
            "recorded_hash": again.recorded_hash,
            "result_hash": again.result_hash,
            "hidden": again.hidden,
            "fragments": len(again.response.fragments),
            "broken": [] if custody is None else msgspec.to_builtins(custody.broken),
        }
        return _verified(found)

    async def _check(self, arguments: Mapping[str, Any], caller: Caller) -> ToolOutcome:
        """Check a reply on a thread: what was retrieved may be long."""
        ask = read(CheckAsk, arguments)
        calls = self._memory.conversation(caller, ask.session).calls_for(ask.question)
        return await asyncio.to_thread(_checked, ask, calls, self._office.profile)

    def _told(self, name: str, arguments: Mapping[str, Any], result: ToolResult, caller: Caller, *, session: str) -> ToolOutcome:
        given = {key: value for key, value in arguments.items() if key != "session"}
        self._memory.conversation(caller, session).add(KeptCall(name, given, result.text))
        meta: dict[str, Any] = {CHUNKS_KEY: [fragment.chunk_id for fragment in result.fragments]}
        if result.receipt_id is not None:
            self._memory.note_receipt(caller, KeptReceipt(result.receipt_id, self._office.now(), len(result.fragments)))
            meta[RECEIPT_KEY] = result.receipt_id
        return ToolOutcome(text=result.text, meta=meta, is_error=result.is_error)


def failure_text(error: EvidentiaError) -> str:
    """Return what to tell a model about an error: what happened and what to do."""
    message = str(error)
    shown = message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[: MAX_MESSAGE_LENGTH - 1]}…"
    return f"Error: {shown}\nHint: {error.hint}"


def _checked(ask: CheckAsk, calls: Sequence[KeptCall], profile: Profile) -> ToolOutcome:
    """Go through calls as the protocol would have seen them, then check the reply.

    What is wrong with a call that was made can no longer be put right; it is told beside, and does not hold the reply up.
    """
    session = ProtocolSession(ask.question, profile=profile)
    for call in calls:
        session.answered(session.before(call.name, call.arguments), call.text)
    report = session.check_reply(ask.reply)
    findings = tuple(each for each in report.findings if each.call is None)
    text = list_for_agent(findings)
    structured = {
        "ok": not findings,
        "findings": msgspec.to_builtins(findings),
        "calls": [msgspec.to_builtins(each) for each in report.findings if each.call is not None],
        "self_check": [each.question for each in report.answers if not each.is_yes],
        "text": text,
    }
    return ToolOutcome(text=text or "ok: the reply may go out", structured=structured)


def _verified(found: dict[str, Any]) -> ToolOutcome:
    if found["ok"]:
        return ToolOutcome(text=f"ok: custody holds ({found['fragments']} fragments)", structured=found)
    links = "; ".join(f"{link['check']} at {link['where']}" for link in found["broken"][:5])
    return ToolOutcome(text=f"broken: {links or 'the answer is no longer the same'}", structured=found)
