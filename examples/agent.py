"""A small agent that answers from documents and spreadsheets, and that a protocol keeps honest.

    python examples/agent.py "What does the policy say about helmets?"

It asks any chat endpoint in OpenAI's form; without one, a scripted stand-in on this machine. Each tool call is checked before it runs,
the reply before it goes out, and every sentence of it against what was retrieved. What cannot be put right is not shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from endpoint import ChatEndpoint, EndpointError, Message, ToolCall, calls_of
from evidence import Evidence
from report import print_answer, print_run
from rules import PROFILES, TOOLS, policies

from evidentia import EvidentiaError, aconnect
from evidentia.agents import Context, PolicyViolationError
from evidentia.contracts.protocol import ProtocolRule
from evidentia.policy.protocol_prompt import render
from evidentia.protocol import ProtocolSession
from evidentia.protocol.self_check import WHAT_TO_DO
from evidentia.protocol.toolbox import Toolbox, ToolResult
from evidentia.testing.scripted_model import MODEL, ScriptedModel

if TYPE_CHECKING:
    from evidentia import AsyncBase

CORPUS = Path(__file__).parent / "corpus"
AGENT = "wheelhouse-agent"
NOT_FOUND = "No relevant information was found."
MAX_TURNS = 12
MAX_CORRECTIONS = 3
OK, REFUSED, WRONG_USE, NO_MODEL = 0, 1, 2, 3


def tell(what: str) -> None:
    """Say what happens, beside the output."""
    print(f"- {what}", file=sys.stderr)


class RefusedError(Exception):
    """No reply could be released."""


class Agent:
    """Answers one question: asks the model, runs its tools, and lets nothing out that was not checked."""

    def __init__(self, chat: ChatEndpoint, base: AsyncBase, context: Context, session: ProtocolSession) -> None:
        self._chat = chat
        self._context = context
        self._session = session
        self._toolbox = Toolbox(base, agent_name=AGENT, deadline_ms=10_000)
        self.evidence = Evidence(base)
        ending = f"When the next step is not_found, reply with exactly: {NOT_FOUND}"
        self._messages: list[Message] = [
            {"role": "system", "content": f"{render(session.profile)}\n{ending}"},
            {"role": "user", "content": f"{session.question}\n\n{self._next_step()}"},
        ]

    async def answer(self) -> str:
        """Return a reply that passed every check; raises RefusedError or PolicyViolationError when the model does not come to one."""
        corrections = 0
        for _ in range(MAX_TURNS):
            message = await asyncio.to_thread(self._chat.complete, self._messages, TOOLS)
            self._messages.append(message)
            calls = calls_of(message)
            for call in calls:
                self._messages.append({"role": "tool", "tool_call_id": call.call_id, "content": await self._use(call)})
            if calls:
                continue
            reply = str(message.get("content") or "")
            self._context.record_llm_call(self._chat.model, response=reply)
            problems = self._problems(reply)
            if not problems:
                return self._release(reply)
            corrections += 1
            if corrections > MAX_CORRECTIONS:
                self._release(reply)  # the policies have the last word, and it stands in the log
                break
            tell(f"reply sent back:\n{problems}")
            self._context.record_step("reply_sent_back", output=reply, attributes={"problems": problems})
            self._messages.append({"role": "user", "content": f"This reply cannot go out. Put it right and reply again:\n{problems}"})
        raise RefusedError(f"the model came to no reply that may go out, in {MAX_TURNS} turns and {MAX_CORRECTIONS} corrections")

    async def _use(self, call: ToolCall) -> str:
        """Check a call, run it, and return what the model gets to see: the result or why there is none, and what to do next."""
        try:
            number = self._session.before(call.name, call.arguments)
        except PolicyViolationError as error:
            rule = error.decision.rule
            tell(f"{call.name} {json.dumps(call.arguments)}: blocked ({rule})")
            return f"Blocked ({rule}): {error}. {WHAT_TO_DO[ProtocolRule(rule)]}.\n{self._next_step()}"
        with self._context.tool(call.name, retrieval=True) as span:
            result = await self._run(call)
            documents = await self.evidence.add(result)
            self._context.record_retrieval_results(documents)
            span.sources = len(documents)
        tell(f"{call.name} {json.dumps(call.arguments)}: {len(documents)} found")
        self._session.after(number, result.text)
        return f"{result.text}\n{self._next_step()}"

    async def _run(self, call: ToolCall) -> ToolResult:
        run = {"rag_retrieve": self._toolbox.rag_retrieve, "table_rag_retrieve": self._toolbox.table_rag_retrieve}.get(call.name)
        given = {name: call.arguments[name] for name in ("query", "top_k") if name in call.arguments}
        if run is None or "query" not in given:
            return ToolResult(text=f"Error: there is no tool '{call.name}' that takes {sorted(call.arguments)}", is_error=True)
        try:
            return await run(**given)
        except (EvidentiaError, TypeError) as error:
            return ToolResult(text=f"Error: {error}", is_error=True)

    def _problems(self, reply: str) -> str:
        """Return what has to be put right in a reply, one line each: claims without support, else what the self-check finds."""
        if not self._is_not_found(reply):
            claims = self.evidence.ground(reply).claims
            if not claims:
                return "- the reply says nothing that could be checked"
            unsupported = [f"- nothing that was retrieved supports: {claim.claim}" for claim in claims if not claim.supported]
            if unsupported:
                return "\n".join(unsupported)
        return self._session.check_reply(reply).text

    def _release(self, reply: str) -> str:
        """Record what the reply rests on, and release it; the policies may stop both."""
        if not self._is_not_found(reply):
            found = self.evidence.ground(reply)
            self._context.record_grounding(
                grounding_scores=[claim.score for claim in found.claims],
                citations=found.citations,
                unsupported_claims=found.unsupported,
                output_confidence=found.confidence_milli / 1_000,
            )
        self._context.set_result(reply)
        return self._session.release(reply)

    def _is_not_found(self, reply: str) -> bool:
        """Tell whether the reply rightly says that there is nothing to answer from; that needs no grounding."""
        return reply.strip() == NOT_FOUND and not self.evidence.passages

    def _next_step(self) -> str:
        """Return what the protocol advises, for the model to read."""
        return f"Next step: {msgspec.json.encode(self._session.advice).decode()}"


async def run(chat: ChatEndpoint, question: str, *, profile: str | dict[str, Any], directory: Path, embed: bool) -> int:
    """Make the base, put the policies in force, have the agent answer, verify what it said, and print how it came about."""
    base = await aconnect(directory, init=True)
    try:
        await base.ingest([CORPUS], source="wheelhouse", prune=True, embed=embed)
        for policy in policies(profile):
            await base.add_policy(policy)
        context = Context(agent_name=AGENT, base=base)
        try:
            async with context:
                agent = Agent(chat, base, context, ProtocolSession(question, profile=profile, context=context))
                reply = await agent.answer()
        except (RefusedError, PolicyViolationError) as error:
            print_run(context, directory)
            print(f"refused: {error}", file=sys.stderr)
            return REFUSED
        problems = await agent.evidence.verify(reply)
        if problems:
            print_run(context, directory)
            print("refused:", "; ".join(problems), file=sys.stderr)
            return REFUSED
        print_answer(reply, agent.evidence)
        print_run(context, directory)
        return OK
    finally:
        await base.close()


def main() -> int:
    """Read the command line and return the exit code: 0 answered, 1 refused, 2 wrong use, 3 no model."""
    parser = argparse.ArgumentParser(description="Answer a question from examples/corpus under the agent protocol.")
    parser.add_argument("question")
    parser.add_argument("--endpoint", help="a chat endpoint in OpenAI's form, as http://HOST:PORT/v1; the key is read from OPENAI_API_KEY")
    parser.add_argument("--model", default=MODEL, help="the model to ask there")
    parser.add_argument("--profile", default="first_call", choices=list(PROFILES))
    parser.add_argument("--script", default="good", choices=["good", "disobedient"], help="what the stand-in does without an endpoint")
    parser.add_argument("--base", type=Path, help="where the base is, or is made; a new temporary directory without it")
    parser.add_argument("--embed", action="store_true", help="find passages by meaning as well; takes longer")
    given = parser.parse_args()
    if not given.question.strip():
        parser.error("the question is empty")
    if given.base and given.base.exists() and not (given.base / "evidentia.toml").exists():
        parser.error(f"'{given.base}' exists and is no base; name one, or a directory that is still to be made")
    directory = given.base or Path(tempfile.mkdtemp(prefix="evidentia-example-")) / "base"
    with ExitStack() as stack:
        url = given.endpoint or stack.enter_context(ScriptedModel(given.script)).url
        try:
            chat = ChatEndpoint(url, model=given.model, key=os.environ.get("OPENAI_API_KEY", "") if given.endpoint else "")
            return asyncio.run(run(chat, given.question, profile=PROFILES[given.profile], directory=directory, embed=given.embed))
        except EndpointError as error:
            print(f"error: {error}", file=sys.stderr)
            return NO_MODEL
        except EvidentiaError as error:
            print(f"error: {error}", file=sys.stderr)
            return WRONG_USE


if __name__ == "__main__":
    sys.exit(main())
