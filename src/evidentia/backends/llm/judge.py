"""A language model as judge of whether an output is grounded in its sources, chosen by the beginning of its name.

The judge never raises for the model's sake: no key, no reply, a slow or a senseless one are statuses. It sends nothing when no
source has a text, and nothing it hands back holds the key or what the model replied.
"""

from __future__ import annotations

import re
import threading
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from evidentia.backends.llm.judge_messages import BASE_URLS, PromptLimits, Usage, read_reply, read_score, write_prompt, write_request
from evidentia.backends.llm.model_endpoint import Endpoint, EndpointSettings, endpoint_address
from evidentia.contracts.errors import EvidentiaError, InvalidFieldError
from evidentia.contracts.grounding import GroundingReason, GroundingScore
from evidentia.contracts.judging import KEY_NAMES, MODEL_PREFIXES, NEUTRAL_SCORE, Judgement, JudgeProvider, JudgeStatus, provider_of
from evidentia.contracts.ports import ClaimScorer, GroundingJudge
from evidentia.foundation.outbound_http import Failure, is_sendable_key, require_confidential
from evidentia.text.counting import count_tokens
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.backends.llm.judge_messages import JudgePrompt, WireReply, WireRequest
    from evidentia.contracts.judging import JudgeRequest


# --- prices: list prices per million tokens, in millionths of a dollar, so that costs are integers ---
# Providers change their prices; whoever needs exact costs passes a table of their own. A model without a price costs 0 here.

_TOKENS_PER_PRICE: Final = 1_000_000
_RELEASE: Final = re.compile(r"-(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|latest)\Z")

_Micro = Annotated[int, msgspec.Meta(ge=0)]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Millionths of a dollar for a million tokens in and a million tokens out."""

    input_micro: _Micro
    output_micro: _Micro


PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "gpt-4o-mini": Price(input_micro=150_000, output_micro=600_000),
        "gpt-4o": Price(input_micro=2_500_000, output_micro=10_000_000),
        "gpt-4.1-mini": Price(input_micro=400_000, output_micro=1_600_000),
        "gpt-4.1": Price(input_micro=2_000_000, output_micro=8_000_000),
        "claude-3-5-haiku": Price(input_micro=800_000, output_micro=4_000_000),
        "claude-sonnet-4": Price(input_micro=3_000_000, output_micro=15_000_000),
        "llama-3.1-8b-instant": Price(input_micro=50_000, output_micro=80_000),
        "llama-3.3-70b-versatile": Price(input_micro=590_000, output_micro=790_000),
        "mixtral-8x7b-32768": Price(input_micro=240_000, output_micro=240_000),
    }
)
"""List prices of the summer of 2025, by the name without the date of a release."""


def price_of(model: str, *, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a model, else that of the model whose release it is; None where neither has one."""
    return prices.get(model) or prices.get(_RELEASE.sub("", model))


def cost_micro(model: str, *, input_tokens: int, output_tokens: int, prices: Mapping[str, Price]) -> int:
    """Return the cost in millionths of a dollar, rounded up; 0 where no price is known."""
    price = price_of(model, prices=prices)
    if price is None:
        return 0
    return -(-(input_tokens * price.input_micro + output_tokens * price.output_micro) // _TOKENS_PER_PRICE)


# --- a scorer in this process as a judge: nothing leaves the machine and nothing is paid ---

_FULL_MILLI: Final = 1_000


def says_something(text: str) -> bool:
    """Tell whether a text holds a letter or a digit; without one it claims nothing."""
    return any(char.isalnum() for char in text)


def sentences_as_claims(output: str) -> Sequence[str]:
    """Return the sentences of an output that say something."""
    sentences = (output[start:end] for start, end in split_sentences(output))
    return [sentence for sentence in sentences if says_something(sentence)]


def judge_by_scorer(request: JudgeRequest, scorer: ClaimScorer, *, claims: Sequence[str], remaining_ms: Callable[[], int]) -> Judgement:
    """Return the mean of the claims' scores times the share of citations that name something, rounded down to a thousandth.

    A single claim that was not scored leaves no judgement.
    """
    passages = [source.text for source in request.sources if source.text is not None]
    try:
        scores = scorer.score(claims, passages, budget_ms=remaining_ms())
    except Exception as error:  # noqa: BLE001 - a scorer is anybody's code, and no judge may stop an agent
        return _verdict(request, JudgeStatus.UNAVAILABLE, problem=f"the scorer raised {type(error).__name__}")
    if len(scores) != len(claims) or any(not 0 <= score.score_milli <= _FULL_MILLI for score in scores):
        problem = "the scorer gave no score between 0 and 1,000 for each claim"
        return _verdict(request, JudgeStatus.UNPARSEABLE, problem=problem, score=NEUTRAL_SCORE)
    unscored = sum(map(_is_unscored, scores))
    if unscored:
        status = JudgeStatus.UNAVAILABLE if remaining_ms() > 0 else JudgeStatus.TIMED_OUT
        return _verdict(request, status, problem=f"{unscored} of {len(scores)} claims were not scored")
    found, cited = (len(passages), len(request.sources)) if request.sources else (1, 1)
    mean_milli = sum(score.score_milli for score in scores) * found // (len(scores) * cited)
    notes = ("a local scorer does not read criteria",) if request.criteria.strip() else ()
    return Judgement(status=JudgeStatus.JUDGED, score=mean_milli / _FULL_MILLI, model=request.model, notes=notes)


def _is_unscored(score: GroundingScore) -> bool:
    return any(note.reason is GroundingReason.UNSCORED for note in score.reasons)


def _verdict(request: JudgeRequest, status: JudgeStatus, *, problem: str, score: float | None = None) -> Judgement:
    return Judgement(status=status, score=score, model=request.model, problem=problem)


# --- a model behind a provider as a judge ---

MAX_REPLY_BYTES: Final = 1 << 16
RETRY_WAIT_MS: Final = 250
"""Before the second attempt, where the provider asks for no other wait."""

ESTIMATED: Final = "tokens are estimated as a quarter of the characters"
PERHAPS_PAID: Final = "the request was sent and may have been paid for"

_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1_000
_MAX_BUDGET_MS: Final = 3_600_000
_WORTH_ANOTHER: Final = frozenset({"busy", "failed"})
_STATUS_OF: Final = MappingProxyType({"timeout": JudgeStatus.TIMED_OUT, "too_large": JudgeStatus.UNPARSEABLE})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ModelJudge(GroundingJudge):
    """Implements `GroundingJudge`. Thread safe.

    `key_for` is asked for the key by its name at every judgement, so that a new secret counts at once. `urls` puts another address in
    the place of a provider's own, by the provider's word. `scorers` are the judges called `local:NAME`.
    """

    def __init__(
        self,
        *,
        key_for: Callable[[str], str | None],
        urls: Mapping[str, str] = _NOTHING,
        scorers: Mapping[str, ClaimScorer] | None = None,
        prices: Mapping[str, Price] = PRICES,
        limits: PromptLimits | None = None,
        split_claims: Callable[[str], Sequence[str]] = sentences_as_claims,
        elapsed_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._key_for = key_for
        self._urls = {**BASE_URLS, **_checked_urls(urls)}
        self._scorers = dict(scorers or {})
        self._prices = prices
        self._limits = limits or PromptLimits()
        self._split_claims = split_claims
        self._elapsed_ns = elapsed_ns
        self._sleep = sleep
        self._endpoints: dict[JudgeProvider, Endpoint] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Return the judgement, or the status that says why there is none; never raises for the model's sake."""
        span = _Span(self._elapsed_ns, budget_ms=min(budget_ms, _MAX_BUDGET_MS))
        provider = provider_of(request.model)
        if provider is None:
            problem = f"the model's name begins with none of {', '.join(MODEL_PREFIXES)}"
            verdict = _without(request, JudgeStatus.NOT_CONFIGURED, problem)
        else:
            verdict = _refuse(request, span) or self._ask(request, provider, span)
        return msgspec.structs.replace(verdict, latency_ms=span.elapsed_ms())

    def close(self) -> None:
        """Close the connections; the judge says that it is unavailable afterwards."""
        with self._lock:
            self._is_closed = True
            endpoints, self._endpoints = self._endpoints, {}
        for endpoint in endpoints.values():
            endpoint.close()

    def _ask(self, request: JudgeRequest, provider: JudgeProvider, span: _Span) -> Judgement:
        if provider is JudgeProvider.LOCAL:
            return self._ask_scorer(request, span)
        key = self._read_key(KEY_NAMES[provider])
        if key is None:
            return _without(request, JudgeStatus.NO_KEY, f"there is no usable key called '{KEY_NAMES[provider]}'")
        endpoint = self._endpoint(provider)
        if endpoint is None:
            return _without(request, JudgeStatus.UNAVAILABLE, "the judge is closed")
        prompt = write_prompt(request, limits=self._limits)
        reply = self._send(endpoint, write_request(prompt, model=request.model, provider=provider, key=key), span)
        if isinstance(reply, Failure):
            return _failed(request, reply)
        return self._conclude(request, prompt, read_reply(reply, provider=provider))

    def _ask_scorer(self, request: JudgeRequest, span: _Span) -> Judgement:
        name = request.model.partition(":")[2]
        scorer = self._scorers.get(name)
        if scorer is None:
            known = ", ".join(sorted(self._scorers)) or "none"
            return _without(request, JudgeStatus.NOT_CONFIGURED, f"there is no local scorer '{name}'; known are: {known}")
        claims = self._split_claims(request.output)
        if not claims:
            return _without(request, JudgeStatus.NOTHING_TO_JUDGE, "the output makes no claim")
        return judge_by_scorer(request, scorer, claims=claims, remaining_ms=span.remaining_ms)

    def _read_key(self, name: str) -> str | None:
        """Return the key; a store of secrets that fails has none, and why stays with it."""
        try:
            key = self._key_for(name)
        except EvidentiaError:
            return None
        return key if key is not None and is_sendable_key(key) else None

    def _endpoint(self, provider: JudgeProvider) -> Endpoint | None:
        """Return the connections to a provider; None when the judge is closed."""
        with self._lock:
            if self._is_closed:
                return None
            if provider not in self._endpoints:
                settings = EndpointSettings(url=self._urls[provider], model="named in each request", timeout_ms=_MAX_BUDGET_MS)
                self._endpoints[provider] = Endpoint(settings)
            return self._endpoints[provider]

    def _send(self, endpoint: Endpoint, request: WireRequest, span: _Span) -> bytes | Failure:
        """Return the reply, of the second attempt if the first met a busy or failing provider and the wait fits into the time."""
        reply = self._post(endpoint, request, span)
        if not isinstance(reply, Failure) or reply.reason not in _WORTH_ANOTHER:
            return reply
        wait_ms = reply.retry_after_s * _MS_PER_S or RETRY_WAIT_MS
        if wait_ms >= span.remaining_ms():
            return reply
        self._sleep(wait_ms / _MS_PER_S)
        return self._post(endpoint, request, span) if span.remaining_ms() > 0 else reply

    def _post(self, endpoint: Endpoint, request: WireRequest, span: _Span) -> bytes | Failure:
        remaining_ms = max(span.remaining_ms(), 1)
        return endpoint.post(request.path, request.body, max_bytes=MAX_REPLY_BYTES, timeout_ms=remaining_ms, headers=request.headers)

    def _conclude(self, request: JudgeRequest, prompt: JudgePrompt, reply: WireReply | None) -> Judgement:
        if reply is None:
            problem = "the reply does not have the provider's form"
            return _without(request, JudgeStatus.UNPARSEABLE, problem, score=NEUTRAL_SCORE, notes=prompt.notes)
        usage = reply.usage or _estimate(prompt, said=reply.said or "")
        score = None if reply.said is None else read_score(reply.said)
        return Judgement(
            status=JudgeStatus.UNPARSEABLE if score is None else JudgeStatus.JUDGED,
            score=NEUTRAL_SCORE if score is None else score,
            model=request.model,
            problem="the reply is not one score between 0 and 1" if score is None else "",
            notes=prompt.notes if reply.usage else (*prompt.notes, ESTIMATED),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micro=cost_micro(request.model, **usage._asdict(), prices=self._prices),
        )


class _Span:
    """How much of a budget is gone."""

    def __init__(self, elapsed_ns: Callable[[], int], *, budget_ms: int) -> None:
        self._elapsed_ns = elapsed_ns
        self._budget_ms = budget_ms
        self._started_ns = elapsed_ns()

    def elapsed_ms(self) -> int:
        return (self._elapsed_ns() - self._started_ns) // _NS_PER_MS

    def remaining_ms(self) -> int:
        return self._budget_ms - self.elapsed_ms()


def _refuse(request: JudgeRequest, span: _Span) -> Judgement | None:
    """Return why nothing is to be asked, if so."""
    if not says_something(request.output):
        return _without(request, JudgeStatus.NOTHING_TO_JUDGE, "the output holds no letter and no digit")
    if request.sources and all(source.text is None for source in request.sources):
        return _without(request, JudgeStatus.SOURCE_UNAVAILABLE, "no cited source has a text at hand")
    if span.remaining_ms() <= 0:
        return _without(request, JudgeStatus.TIMED_OUT, "no time was left to ask")
    return None


def _checked_urls(urls: Mapping[str, str]) -> Mapping[JudgeProvider, str]:
    remote = {provider.value: provider for provider in BASE_URLS}
    for word in urls:
        if word not in remote:
            raise InvalidFieldError("urls", f"'{word}' is none of the providers {', '.join(remote)}")
    addresses = {remote[word]: endpoint_address(url) for word, url in urls.items()}
    for address in addresses.values():
        require_confidential(address, field="url")  # every judgement sends a key
    return {provider: address.url for provider, address in addresses.items()}


def _estimate(prompt: JudgePrompt, *, said: str) -> Usage:
    return Usage(count_tokens(prompt.instructions + prompt.material, "chars4"), count_tokens(said, "chars4"))


def _failed(request: JudgeRequest, failure: Failure) -> Judgement:
    status = _STATUS_OF.get(failure.reason, JudgeStatus.UNAVAILABLE)
    is_unparseable = status is JudgeStatus.UNPARSEABLE
    is_perhaps_paid = status in {JudgeStatus.TIMED_OUT, JudgeStatus.UNPARSEABLE}
    return _without(
        request,
        status,
        failure.problem,
        score=NEUTRAL_SCORE if is_unparseable else None,
        notes=(PERHAPS_PAID,) if is_perhaps_paid else (),
    )


def _without(
    request: JudgeRequest, status: JudgeStatus, problem: str, *, score: float | None = None, notes: tuple[str, ...] = ()
) -> Judgement:
    return Judgement(status=status, score=score, model=request.model, problem=problem, notes=notes)
