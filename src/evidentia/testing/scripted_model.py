"""A chat model with a script on a real socket of this machine: it speaks OpenAI's `/chat/completions` with tool calls.

It keeps nothing between requests. What it does next follows from the messages it is sent alone, so a client that leaves a result or a
reason out gets another reply. Its answers are sentences and rows of the tool results, word by word. Nothing in it is random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from evidentia.protocol.citations import cite_piece, cite_rows
from evidentia.protocol.tool_results import EvidencePiece, ResultFacts, read_result
from evidentia.testing.fake_models import ModelHandler, ModelServer
from evidentia.text.sentences import split_sentences

CHAT_PATH = "/chat/completions"
MODEL = "scripted"


class ScriptedModel(ModelServer):
    """A server to be used in a `with` block. `script` is a name of SCRIPTS, or a function from a conversation to a turn."""

    def __init__(self, script: str | Script = "good") -> None:
        super().__init__(_Handler)
        self._script = SCRIPTS[script] if isinstance(script, str) else script
        self.asked: list[dict[str, Any]] = []  # Any: the bodies of the requests, as JSON

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request in the provider's form; raises ValueError for what is no request."""
        conversation = Conversation.of(body)
        with self._lock:
            self.asked.append(body)
        turn = self._script(conversation)
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        if isinstance(turn, Say):
            message["content"] = turn.text
        else:
            message["tool_calls"] = [_called(turn, number=len(conversation.messages))]
        ends_by = "stop" if isinstance(turn, Say) else "tool_calls"
        return {
            "object": "chat.completion",
            "model": body.get("model", MODEL),
            "choices": [{"index": 0, "message": message, "finish_reason": ends_by}],
            "usage": {"prompt_tokens": 500, "completion_tokens": 10, "total_tokens": 510},
        }


def _called(call: Call, *, number: int) -> dict[str, Any]:
    """Return a tool call in the provider's form; its arguments are JSON in a string there."""
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


class _Handler(ModelHandler):
    """Reads a request, has the script answer it, and says what is wrong with one that it cannot read."""

    models: ScriptedModel

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        content = self.rfile.read(int(self.headers["content-length"]))
        if not self.path.endswith(CHAT_PATH):
            self._send(404, {"error": {"message": f"there is nothing at {self.path}"}})
            return
        try:
            answer = self.models.reply(json.loads(content))
        except (KeyError, TypeError, ValueError) as problem:
            self._send(400, {"error": {"message": f"this is no request: {problem}"}})
            return
        self._send(200, answer)

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# --- scripted turns ---
# What scripted models do: scripts from a conversation to the next turn, and answers made of nothing but the tool results in it.

INVENTED: Final = "Every rental includes breakfast at the harbour."
"""What the inventive script adds; no document says it."""
NOTHING: Final = "No relevant information was found."
_ADVICE: Final = re.compile(r'\{"step":.*\}$', re.MULTILINE)
_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST: Final = 4
_MAX_SENTENCES: Final = 2
_MAX_ROWS: Final = 10
_AGAIN: Final = "once more"


class Say(NamedTuple):
    """A reply."""

    text: str


class Call(NamedTuple):
    """A call to a tool."""

    name: str
    arguments: Mapping[str, Any]  # Any: whatever the tool takes, as JSON


class Conversation(NamedTuple):
    """The messages of one request, the tools it offers, and what can be read in them."""

    messages: tuple[Mapping[str, Any], ...]  # Any: messages in the provider's form
    tools: frozenset[str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """Read a request; raises ValueError where the messages do not fit together."""
        messages = tuple(body["messages"])
        open_calls: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
            elif open_calls:
                raise ValueError(f"the calls {open_calls} have no result")
            open_calls += [call["id"] for call in message.get("tool_calls") or ()]
        return cls(messages, frozenset(tool["function"]["name"] for tool in body.get("tools", ())))

    @property
    def question(self) -> str:
        """Return what the user asked: the first paragraph of the first user message."""
        first = next(message for message in self.messages if message["role"] == "user")
        return str(first["content"]).partition("\n\n")[0]

    @property
    def last(self) -> str:
        """Return the text of the last message."""
        return str(self.messages[-1]["content"])

    @property
    def is_begun(self) -> bool:
        """Tell whether the model has said anything."""
        return any(message["role"] == "assistant" for message in self.messages)

    def has_asked(self, words: str) -> bool:
        """Tell whether the model has called a tool with these words."""
        calls = [call for message in self.messages for call in message.get("tool_calls") or ()]
        return any(words in call["function"]["arguments"] for call in calls)

    @property
    def advice(self) -> Mapping[str, Any]:
        """Return the latest advice that a message of the client ends with: a JSON object with `step`; empty without any."""
        said = [str(message["content"]) for message in self.messages if message["role"] in {"user", "tool"}]
        found = [match[0] for text in said for match in _ADVICE.finditer(text)]
        return json.loads(found[-1]) if found else {}

    @property
    def results(self) -> list[tuple[str, ResultFacts]]:
        """Return the query and the result of each call that found something."""
        calls = {call["id"]: call["function"] for message in self.messages for call in message.get("tool_calls") or ()}
        found: list[tuple[str, ResultFacts]] = []
        for message in self.messages:
            if message["role"] == "tool" and (function := calls[message["tool_call_id"]]):
                read = read_result(function["name"], str(message["content"]))
                if read.rows or any(piece.file for piece in read.pieces):
                    found.append((json.loads(function["arguments"]).get("query", ""), read))
        return found


Script = Callable[[Conversation], Say | Call]


def good(conversation: Conversation) -> Say | Call:
    """Follow the advice, and answer with citations."""
    advice = conversation.advice
    if advice.get("tool") in conversation.tools and advice["step"] in {"switch", "rewrite"}:
        return _advised(conversation)
    return Say(answer(conversation)) if advice.get("step") == "answer" else Say(NOTHING)


def disobedient(conversation: Conversation) -> Say | Call:
    """Break a rule at each step, and mend it when told which: the file system, the raw question, a needless call, no citation."""
    last, advice = conversation.last, conversation.advice
    if not conversation.is_begun:
        return Call("Read", {"file_path": "corpus/riding-rules.md"})
    if "filesystem_tools" in last:
        return Call(advice["tool"], {"query": conversation.question})
    if conversation.messages[-1]["role"] == "tool" and advice.get("step") in {"switch", "rewrite"}:
        return good(conversation)
    if conversation.results and not conversation.has_asked(_AGAIN):
        query, result = conversation.results[-1]
        return Call("table_rag_retrieve" if result.rows else "rag_retrieve", {"query": f"{query} {_AGAIN}"})
    return Say(answer(conversation, is_cited="citation_missing" in last))


def stubborn(conversation: Conversation) -> Say | Call:
    """Retrieve as advised, and never cite."""
    turn = good(conversation)
    return turn if isinstance(turn, Call) else Say(answer(conversation, is_cited=False))


def restless(conversation: Conversation) -> Say | Call:
    """Ask the file system for ever."""
    return Call("Read", {"file_path": f"corpus/{len(conversation.messages)}.md"})


def inventive(conversation: Conversation) -> Say | Call:
    """Add a sentence that no document holds, and take it out when told."""
    turn = good(conversation)
    if isinstance(turn, Call) or INVENTED in conversation.last:
        return turn
    return Say(f"{INVENTED} {turn.text}")


def fabulous(conversation: Conversation) -> Say | Call:
    """Add a sentence that no document holds, and keep it."""
    turn = good(conversation)
    return turn if isinstance(turn, Call) else Say(f"{INVENTED} {turn.text}")


SCRIPTS: Final[Mapping[str, Script]] = MappingProxyType(
    {script.__name__: script for script in (good, disobedient, stubborn, restless, inventive, fabulous)}
)
"""By name."""


def answer(conversation: Conversation, *, is_cited: bool = True) -> str:
    """Return an answer with its citations: from rows where there are some, else from the latest result that found something."""
    if not conversation.results:
        return NOTHING
    with_rows = [found for found in conversation.results if found[1].rows]
    query, result = (with_rows or conversation.results)[-1]
    return _from_rows(query, result, is_cited=is_cited) if result.rows else _from_text(conversation.question, result, is_cited=is_cited)


def _advised(conversation: Conversation) -> Call:
    advice = conversation.advice
    query = advice["query"]
    if "repeated_query" in conversation.last:
        query = " ".join(reversed(query.split()))
    top_k = advice.get("top_k")
    return Call(advice["tool"], {"query": query} if top_k is None else {"query": query, "top_k": top_k})


def _from_rows(query: str, result: ResultFacts, *, is_cited: bool) -> str:
    """Return a row of one cell as a sentence, and others as a list."""
    rows = result.rows[:_MAX_ROWS]
    if len(rows) == len(result.columns) == 1:
        lines = [f"{query[:1].upper()}{query[1:]}: {rows[0].cells[0]}."]
    else:
        lines = ["- " + ", ".join(f"{name}: {cell}" for name, cell in zip(result.columns, row.cells, strict=True)) for row in rows]
    cited = cite_rows([code for row in rows for code in row.codes], result.files) if is_cited else ()
    return "\n".join([*lines, *(f"\n{citation.text}" for citation in cited)])


def _from_text(question: str, result: ResultFacts, *, is_cited: bool) -> str:
    """Return the sentences that share most words with the question, out of the paragraph that does, with its image and its citation."""
    wanted = _words(question)
    paragraphs = [(piece, text) for piece in result.pieces for text in _paragraphs(piece)]
    piece, paragraph = max(paragraphs, key=lambda found: len(wanted & _words(found[1])))
    lines = [line for line in paragraph.split("\n") if line.strip()]
    prose = "\n".join(line for line in lines if not line.startswith("!["))
    sentences = [prose[span.start : span.end].strip() for span in split_sentences(prose)]
    # The sort is stable: of sentences that share as much, the earlier ones stay.
    best = sorted(sentences, key=lambda sentence: -len(wanted & _words(sentence)))[:_MAX_SENTENCES]
    said = " ".join(sentence for sentence in sentences if sentence in best)
    images = [line for line in lines if line.startswith("![") and "evidentia-image:" in line]
    return "\n\n".join([said, *images, *([cite_piece(piece).text] if is_cited else ())])


def _paragraphs(piece: EvidencePiece) -> list[str]:
    return [text for text in re.split(r"\n\s*\n", piece.text) if not text.startswith("#")] or [piece.text]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text by their beginnings, so that `helmets` is `helmet`."""
    return frozenset(word[:_SHORTEST].lower() for word in _WORD.findall(text) if len(word) >= _SHORTEST)
