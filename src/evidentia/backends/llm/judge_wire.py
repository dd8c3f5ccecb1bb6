"""How each provider is asked and what its reply looks like: OpenAI and Groq share one form, Anthropic has another.

A reply is hostile: what does not have the form is no reply, and figures that cannot be right are no figures.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

import msgspec

from evidentia.contracts.judging import JudgeProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.backends.llm.judge_prompt import JudgePrompt

BASE_URLS: Final[Mapping[JudgeProvider, str]] = MappingProxyType(
    {
        JudgeProvider.OPENAI: "https://api.openai.com/v1",
        JudgeProvider.ANTHROPIC: "https://api.anthropic.com/v1",
        JudgeProvider.GROQ: "https://api.groq.com/openai/v1",
    }
)

MAX_REPLY_TOKENS: Final = 32
"""Enough for `{"score": 0.42}`, and for nothing else."""
MAX_THOUGHT_TOKENS: Final = 2_048
"""For models that think before they speak: their thoughts count as a reply."""

_ANTHROPIC_VERSION: Final = "2023-06-01"
_GENERATION: Final = re.compile(r"gpt-([0-9]+)(?!.*-chat)")
_FIRST_THINKING: Final = 5
_CUT_OFF: Final = frozenset({"length", "max_tokens", "content_filter", "refusal"})

_Form = TypeVar("_Form")
_Tokens = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]


class WireRequest(NamedTuple):
    """A request as it is sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Return it without the headers, which hold the key."""
        return f"WireRequest(path={self.path!r})"


class Usage(NamedTuple):
    """What the provider counted."""

    input_tokens: int
    output_tokens: int


class WireReply(NamedTuple):
    """What a model said, whole and alone (None when it was cut off, or several), and what was counted (None when that is not told)."""

    said: str | None
    usage: Usage | None


def write_request(prompt: JudgePrompt, *, model: str, provider: JudgeProvider, key: str) -> WireRequest:
    """Return the request that shows a prompt to a model, at temperature 0 where the model takes one."""
    if provider is JudgeProvider.ANTHROPIC:
        body = {
            "model": model,
            "system": prompt.instructions,
            "messages": [{"role": "user", "content": prompt.material}],
            "max_tokens": MAX_REPLY_TOKENS,
            "temperature": 0,
        }
        headers = {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}
        return WireRequest("messages", headers, msgspec.json.encode(body))
    messages = [{"role": "system", "content": prompt.instructions}, {"role": "user", "content": prompt.material}]
    manner = (
        {"max_completion_tokens": MAX_THOUGHT_TOKENS} if thinks(model) else {"max_completion_tokens": MAX_REPLY_TOKENS, "temperature": 0}
    )
    body = {"model": model, "messages": messages, "stream": False, **manner}
    return WireRequest("chat/completions", {"authorization": f"Bearer {key}"}, msgspec.json.encode(body))


def thinks(model: str) -> bool:
    """Tell whether a model thinks first: those of OpenAI do from the fifth generation on, and refuse a temperature."""
    found = _GENERATION.match(model)
    return found is not None and int(found[1]) >= _FIRST_THINKING


def read_reply(content: bytes, *, provider: JudgeProvider) -> WireReply | None:
    """Return what was said and counted; None for a body that is no reply of that provider."""
    try:
        if provider is JudgeProvider.ANTHROPIC:
            return _from_anthropic(msgspec.json.decode(content, type=_AnthropicReply))
        return _from_openai(msgspec.json.decode(content, type=_OpenAiReply))
    except (ValueError, RecursionError):
        return None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _OpenAiReply(msgspec.Struct):
    choices: list[_Choice]
    usage: msgspec.Raw = msgspec.Raw()


class _OpenAiUsage(msgspec.Struct):
    prompt_tokens: _Tokens
    completion_tokens: _Tokens


class _Block(msgspec.Struct):
    type: str
    text: str | None = None


class _AnthropicReply(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: msgspec.Raw = msgspec.Raw()


class _AnthropicUsage(msgspec.Struct):
    input_tokens: _Tokens
    output_tokens: _Tokens
    cache_creation_input_tokens: _Tokens | None = None
    cache_read_input_tokens: _Tokens | None = None


def _from_openai(reply: _OpenAiReply) -> WireReply:
    counted = _read_usage(reply.usage, form=_OpenAiUsage)
    usage = Usage(counted.prompt_tokens, counted.completion_tokens) if counted else None
    if len(reply.choices) != 1 or reply.choices[0].finish_reason in _CUT_OFF:
        return WireReply(None, usage)
    return WireReply(reply.choices[0].message.content, usage)


def _from_anthropic(reply: _AnthropicReply) -> WireReply:
    counted = _read_usage(reply.usage, form=_AnthropicUsage)
    usage = Usage(_all_input(counted), counted.output_tokens) if counted else None
    if len(reply.content) != 1 or reply.content[0].type != "text" or reply.stop_reason in _CUT_OFF:
        return WireReply(None, usage)
    return WireReply(reply.content[0].text, usage)


def _all_input(usage: _AnthropicUsage) -> int:
    """Return what went in: the provider counts what its cache took or gave apart from the rest."""
    return usage.input_tokens + (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)


def _read_usage(usage: msgspec.Raw, *, form: type[_Form]) -> _Form | None:
    try:
        return msgspec.json.decode(usage, type=form)
    except (ValueError, RecursionError):
        return None
