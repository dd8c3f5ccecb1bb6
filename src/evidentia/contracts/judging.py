"""What a judge is asked about an output and its sources, and what it says; a judge that cannot say is a status, never an exception.

Which models can be asked is decided by the beginning of their name, here and nowhere else.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})
"""No source comes with its text."""
NEUTRAL_SCORE = 0.5
"""What is written down for a reply that holds no score; it never decides more than a warning."""


class JudgeProvider(Vocabulary):
    """Who runs a judging model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GROQ = "groq"
    LOCAL = "local"
    """A scorer in this process: nothing leaves the machine."""


MODEL_PREFIXES: Final[Mapping[str, JudgeProvider]] = MappingProxyType(
    {
        "gpt-": JudgeProvider.OPENAI,
        "claude-": JudgeProvider.ANTHROPIC,
        "llama-": JudgeProvider.GROQ,
        "mixtral-": JudgeProvider.GROQ,
        "local:": JudgeProvider.LOCAL,
    }
)
"""How the name of a model begins, and who runs it."""

KEY_NAMES: Final[Mapping[JudgeProvider, str]] = MappingProxyType(
    {
        JudgeProvider.OPENAI: "OPENAI_API_KEY",
        JudgeProvider.ANTHROPIC: "ANTHROPIC_API_KEY",
        JudgeProvider.GROQ: "GROQ_API_KEY",
    }
)
"""What the key of a provider is called, among a tenant's secrets and in the environment; a local scorer needs none."""

_MAX_MODEL_LENGTH: Final = 200


def provider_of(model: str) -> JudgeProvider | None:
    """Return who runs a model; None for a name that no provider has: unknown prefix, nothing after it, or more than plain text."""
    if len(model) > _MAX_MODEL_LENGTH or not model.isascii() or not model.isprintable() or " " in model:
        return None
    known = (provider for prefix, provider in MODEL_PREFIXES.items() if model.startswith(prefix) and model != prefix)
    return next(known, None)


def known_model(model: str) -> bool:
    """Tell whether somebody runs a model of this name; whether it exists there is for them to say."""
    return provider_of(model) is not None


def check_model(model: str, *, field: str = "llm_grounding_model") -> None:
    """Refuse a model that nobody runs, with the beginnings that are accepted."""
    if not known_model(model):
        accepted = ", ".join(f"'{prefix}'" for prefix in MODEL_PREFIXES)
        shown = model[:_MAX_MODEL_LENGTH].encode("unicode_escape").decode()
        raise InvalidFieldError(field, f"no judge is known by '{shown}'; name a model that begins with one of {accepted}")


class JudgeStatus(Vocabulary):
    """How a judgement came about; only `judged` holds a score that may decide."""

    JUDGED = "judged"
    UNPARSEABLE = "unparseable"
    """It replied, and the reply holds no single score between 0 and 1."""
    NO_KEY = "no_key"
    UNAVAILABLE = "unavailable"
    """Refused, unreachable, or an error on its side."""
    TIMED_OUT = "timed_out"
    SOURCE_UNAVAILABLE = "source_unavailable"
    """The text of no cited source is at hand, so nothing was asked."""
    NOTHING_TO_JUDGE = "nothing_to_judge"
    """The output says nothing, so there is no claim that could lack a source; nothing failed, and nothing was asked."""
    NOT_CONFIGURED = "not_configured"
    """No judge of that name can be asked: unknown prefix or unknown local scorer."""


class JudgedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A cited source and the text that was found for it; None when it names nothing that can be read: beside others, that is fabricated."""

    citation: str
    text: str | None = None


class JudgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An output with the sources it cites, and how it is to be judged."""

    output: str
    sources: tuple[JudgedSource, ...]
    model: str
    criteria: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge said, what it cost, and what went wrong if something did."""

    status: JudgeStatus
    score: float | None = None
    """Between 0 and 1 when it judged, 0.5 when its reply could not be read, else None."""
    model: str
    problem: str = ""
    """What went wrong, for people; empty when it judged. Never the key, never what the model replied."""
    notes: tuple[str, ...] = ()
    """What a reader of the score should know: what was cut before it was shown, and what was estimated."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro: int = 0
    """Millionths of the currency of the price list; 0 where no price is known."""
    latency_ms: int = 0
