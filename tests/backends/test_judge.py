"""The judge on real sockets: what each provider is asked, what is believed, and what becomes of slow, failing, rude and absent ones."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.backends.llm.judge import ESTIMATED, MAX_REPLY_BYTES, PERHAPS_PAID, RETRY_WAIT_MS, ModelJudge, Price
from evidentia.backends.llm.judge_messages import MAX_REPLY_TOKENS, MAX_THOUGHT_TOKENS, PromptLimits, read_material
from evidentia.contracts.errors import BaseForbiddenError, InvalidFieldError
from evidentia.contracts.judging import NEUTRAL_SCORE, JudgedSource, Judgement, JudgeRequest, JudgeStatus, check_model, known_model
from evidentia.testing.fake_models import FAILING, LATE, RIGHT, RUDE, SLOW, FakeModels, FakeReply, models_down

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evidentia.contracts.ports import GroundingJudge

KEYS = {"OPENAI_API_KEY": "key-of-openai", "ANTHROPIC_API_KEY": "key-of-anthropic", "GROQ_API_KEY": "key-of-groq"}
PATIENT_MS = 120_000
HASTY_MS = 300
OUTPUT = "The gate opens at six. It closes at nine."
SOURCES = (
    JudgedSource(citation="port:gate", text="The gate opens at six."),
    JudgedSource(citation="port:night", text="It closes at nine."),
)
MODELS = ("gpt-4o-mini", "claude-sonnet-4-20250514", "llama-3.1-8b-instant", "mixtral-8x7b-32768")


def asking(model: str = "gpt-4o-mini", **changes: Any) -> JudgeRequest:
    return JudgeRequest(**{"output": OUTPUT, "sources": SOURCES, "model": model, **changes})


@contextmanager
def judging(urls: Mapping[str, str], **changes: Any) -> Iterator[ModelJudge]:
    judge = ModelJudge(**{"key_for": KEYS.get, "urls": urls, "sleep": lambda _: None, **changes})
    try:
        yield judge
    finally:
        judge.close()


def judged(
    *replies: FakeReply, budget_ms: int = PATIENT_MS, request: JudgeRequest | None = None, **changes: Any
) -> tuple[Judgement, FakeModels]:
    with FakeModels(*replies) as models, judging(models.urls, **changes) as judge:
        return judge.judge(request or asking(), budget_ms=budget_ms), models


# --- which models ---


@pytest.mark.parametrize("model", [*MODELS, "gpt-x", "local:overlap"])
def test_known_prefixes_are_accepted(model: str) -> None:
    check_model(model)

    assert known_model(model)


@pytest.mark.parametrize(
    "model",
    [
        "",
        "gpt",
        "gpt-",
        "local:",
        "o1",
        "GPT-4o",
        " gpt-4o",
        "gpt-4o mini",
        "gpt-4o\n",
        "gpt-\x00",
        "gpt-é",
        "gpt-\ud800",
        "gpt-" + "x" * 200,
    ],
)
def test_unknown_models_are_refused_with_what_is_accepted(model: str) -> None:
    assert not known_model(model)
    with pytest.raises(InvalidFieldError, match=r"'llm_grounding_model'.*'gpt-', 'claude-', 'llama-', 'mixtral-', 'local:'"):
        check_model(model)


def test_a_model_that_nobody_runs_is_not_asked() -> None:
    found, models = judged(request=asking("davinci"))

    assert (JudgeStatus.NOT_CONFIGURED, None) == (found.status, found.score)
    assert [] == models.asked


# --- what each provider is asked ---


@pytest.mark.parametrize(
    ("model", "key"), [("gpt-4o-mini", "key-of-openai"), ("llama-3.1-8b-instant", "key-of-groq"), ("mixtral-8x7b-32768", "key-of-groq")]
)
def test_openai_and_groq_are_asked_in_one_form(model: str, key: str) -> None:
    found, models = judged(request=asking(model))
    (asked,) = models.asked
    body = asked.body

    assert (JudgeStatus.JUDGED, 1.0, model, "", ()) == (found.status, found.score, found.model, found.problem, found.notes)
    assert "/v1/chat/completions" == asked.path
    assert (f"Bearer {key}", "application/json", "identity") == tuple(
        asked.headers[name] for name in ("authorization", "content-type", "accept-encoding")
    )
    assert {"model", "messages", "stream", "temperature", "max_completion_tokens"} == set(body)
    assert (model, False, 0, MAX_REPLY_TOKENS) == (body["model"], body["stream"], body["temperature"], body["max_completion_tokens"])
    assert ["system", "user"] == [message["role"] for message in body["messages"]]
    assert "x-api-key" not in asked.headers


def test_anthropic_is_asked_in_its_own_form() -> None:
    found, models = judged(request=asking("claude-sonnet-4-20250514"))
    (asked,) = models.asked
    body = asked.body

    assert (JudgeStatus.JUDGED, 1.0) == (found.status, found.score)
    assert "/v1/messages" == asked.path
    assert ("key-of-anthropic", "2023-06-01") == (asked.headers["x-api-key"], asked.headers["anthropic-version"])
    assert {"model", "system", "messages", "temperature", "max_tokens"} == set(body)
    assert ("claude-sonnet-4-20250514", 0, MAX_REPLY_TOKENS) == (body["model"], body["temperature"], body["max_tokens"])
    assert ["user"] == [message["role"] for message in body["messages"]]
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(("model", "thinks"), [("gpt-5", True), ("gpt-5-mini", True), ("gpt-5-chat-latest", False), ("gpt-4.1", False)])
def test_models_that_think_get_room_and_no_temperature(model: str, thinks: bool) -> None:  # noqa: FBT001 - a column of the table
    _, models = judged(request=asking(model))
    body = models.asked[0].body

    assert thinks == ("temperature" not in body)
    assert (MAX_THOUGHT_TOKENS if thinks else MAX_REPLY_TOKENS) == body["max_completion_tokens"]


@pytest.mark.parametrize("model", MODELS)
def test_every_provider_is_shown_the_same(model: str) -> None:
    _, models = judged(request=asking(model, criteria="Dates must be exact."))
    (asked,) = models.asked

    assert (OUTPUT, tuple((source.citation, source.text) for source in SOURCES)) == read_material(asked.material, fence=asked.fence)
    assert "Dates must be exact." in asked.instructions
    assert "Dates must be exact." not in asked.material


def test_the_score_is_the_models() -> None:
    found, _ = judged(FakeReply(says='{"score": 0.42}'))
    bare, _ = judged(FakeReply(says=" 0.42\n"))

    assert (JudgeStatus.JUDGED, 0.42) == (found.status, found.score)
    assert 0.42 == bare.score


def test_a_fabricated_output_gets_less_than_a_grounded_one() -> None:
    with FakeModels() as models, judging(models.urls) as judge:
        grounded = judge.judge(asking(), budget_ms=PATIENT_MS)
        fabricated = judge.judge(asking(output="Entry costs eleven crowns at noon."), budget_ms=PATIENT_MS)
        uncited = judge.judge(asking(sources=()), budget_ms=PATIENT_MS)

    assert (1.0, 0.16, 0.0) == (grounded.score, fabricated.score, uncited.score)


# --- nothing is asked ---


def test_without_the_text_of_any_source_nothing_is_sent() -> None:
    found, models = judged(request=asking(sources=(JudgedSource(citation="gone"), JudgedSource(citation="away"))))

    assert (JudgeStatus.SOURCE_UNAVAILABLE, None, "no cited source has a text at hand") == (found.status, found.score, found.problem)
    assert (0, 0, 0) == (found.input_tokens, found.output_tokens, found.cost_micro)
    assert [] == models.asked


def test_a_source_without_a_text_beside_others_is_shown_as_fabricated() -> None:
    found, models = judged(request=asking(sources=(*SOURCES, JudgedSource(citation="gone"))))

    assert JudgeStatus.JUDGED is found.status
    assert '"gone" (not found: this citation is fabricated)' in models.asked[0].material


def test_an_empty_source_is_at_hand() -> None:
    found, _ = judged(request=asking(sources=(JudgedSource(citation="blank", text=""),)))

    assert (JudgeStatus.JUDGED, 0.0) == (found.status, found.score)


@pytest.mark.parametrize("output", ["", " \n\t", "...", "\u200b\ufeff", "\x00"])
@pytest.mark.parametrize("model", ["gpt-4o-mini", "local:any"])
def test_an_output_that_says_nothing_is_not_judged(output: str, model: str) -> None:
    found, models = judged(request=asking(model, output=output))

    assert (JudgeStatus.NOTHING_TO_JUDGE, None) == (found.status, found.score)
    assert [] == models.asked


@pytest.mark.parametrize("budget_ms", [0, -1])
def test_without_time_nothing_is_sent(budget_ms: int) -> None:
    found, models = judged(budget_ms=budget_ms)

    assert (JudgeStatus.TIMED_OUT, None, ()) == (found.status, found.score, found.notes)
    assert [] == models.asked


@pytest.mark.parametrize("key", [None, "", "a b", "a\n", "é", "a\x00"])
@pytest.mark.parametrize(
    ("model", "name"), [("gpt-4o", "OPENAI_API_KEY"), ("claude-3-5-haiku-latest", "ANTHROPIC_API_KEY"), ("llama-3", "GROQ_API_KEY")]
)
def test_without_a_usable_key_nothing_is_sent(key: str | None, model: str, name: str) -> None:
    names: list[str] = []

    def key_for(asked: str) -> str | None:
        names.append(asked)
        return key

    found, models = judged(request=asking(model), key_for=key_for)

    assert (JudgeStatus.NO_KEY, None, f"there is no usable key called '{name}'") == (found.status, found.score, found.problem)
    assert [name] == names
    assert [] == models.asked


def test_a_failing_store_of_secrets_is_no_key() -> None:
    def key_for(name: str) -> str | None:
        raise BaseForbiddenError(name)

    found, models = judged(key_for=key_for)

    assert JudgeStatus.NO_KEY == found.status
    assert [] == models.asked


def test_a_new_key_counts_at_once() -> None:
    keys = iter(["first", "second"])
    with FakeModels() as models, judging(models.urls, key_for=lambda _: next(keys)) as judge:
        judge.judge(asking(), budget_ms=PATIENT_MS)
        judge.judge(asking(), budget_ms=PATIENT_MS)

    assert ["Bearer first", "Bearer second"] == [asked.headers["authorization"] for asked in models.asked]


# --- rude, failing, late and absent models ---


@pytest.mark.parametrize("model", MODELS[:3])
@pytest.mark.parametrize("reply", RUDE.values(), ids=RUDE)
def test_a_rude_model_is_not_believed(reply: FakeReply, model: str) -> None:
    found, models = judged(reply, request=asking(model))

    assert (JudgeStatus.UNPARSEABLE, NEUTRAL_SCORE) == (found.status, found.score)
    assert found.problem
    assert 1 == len(models.asked)


@pytest.mark.parametrize("reply", FAILING.values(), ids=FAILING)
def test_a_failing_model_is_unavailable(reply: FakeReply) -> None:
    found, models = judged(reply)
    is_tried_again = reply.status == 429 or reply.status >= 500

    assert (JudgeStatus.UNAVAILABLE, None, ()) == (found.status, found.score, found.notes)
    assert found.problem.startswith("'127.0.0.1' ")
    assert (2 if is_tried_again else 1) == len(models.asked)


@pytest.mark.parametrize("reply", LATE.values(), ids=LATE)
def test_a_reply_that_is_never_whole_is_given_up(reply: FakeReply) -> None:
    found, models = judged(reply, budget_ms=HASTY_MS)

    assert (JudgeStatus.TIMED_OUT, None, (PERHAPS_PAID,)) == (found.status, found.score, found.notes)
    assert len(models.asked) <= 1
    assert HASTY_MS <= found.latency_ms


def test_models_that_are_down_are_unavailable() -> None:
    with models_down() as urls, judging(urls) as judge:
        found = [judge.judge(asking(model), budget_ms=PATIENT_MS) for model in MODELS]

    assert {JudgeStatus.UNAVAILABLE} == {each.status for each in found}
    assert all("cannot be spoken to" in each.problem for each in found)


def test_a_redirect_is_not_followed() -> None:
    with FakeModels() as elsewhere:
        moved = FakeReply(status=307, headers={"location": f"{elsewhere.url}/chat/completions"})
        found, _ = judged(moved)

    assert JudgeStatus.UNAVAILABLE == found.status
    assert [] == elsewhere.asked


def test_a_reply_may_be_as_long_as_it_is_allowed_to_be() -> None:
    whole = b'{"choices": [{"message": {"content": "0.5"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
    longest, _ = judged(FakeReply(body=whole.ljust(MAX_REPLY_BYTES)))
    longer, _ = judged(FakeReply(body=whole.ljust(MAX_REPLY_BYTES + 1)))

    assert [JudgeStatus.JUDGED, JudgeStatus.UNPARSEABLE] == [longest.status, longer.status]
    assert f"more than {MAX_REPLY_BYTES} bytes" in longer.problem


def test_a_closed_judge_says_so() -> None:
    with FakeModels() as models:
        judge = ModelJudge(key_for=KEYS.get, urls=models.urls)
        judge.judge(asking(), budget_ms=PATIENT_MS)
        judge.close()
        found = judge.judge(asking(), budget_ms=PATIENT_MS)

    assert (JudgeStatus.UNAVAILABLE, "the judge is closed") == (found.status, found.problem)
    assert 1 == len(models.asked)


# --- a second attempt ---


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_passing_failure_is_tried_once_more(status: int) -> None:
    waits: list[float] = []
    found, models = judged(FakeReply(status=status), RIGHT, sleep=waits.append)

    assert (JudgeStatus.JUDGED, 1.0) == (found.status, found.score)
    assert [RETRY_WAIT_MS / 1000] == waits
    assert models.asked[0].body == models.asked[1].body


@pytest.mark.parametrize(
    ("asked", "waits"),
    [("7", [7.0]), ("0", [0.25]), ("Wed, 21 Oct 2026 07:28:00 GMT", [0.25]), ("119", [119.0]), ("120", []), ("999999999", [])],
)
def test_the_wait_a_provider_asks_for_is_kept_when_it_fits(asked: str, waits: list[float]) -> None:
    waited: list[float] = []
    busy = FakeReply(status=429, headers={"retry-after": asked})
    found, models = judged(busy, RIGHT, sleep=waited.append, elapsed_ns=lambda: 0)

    assert waits == waited
    assert (JudgeStatus.JUDGED if waits else JudgeStatus.UNAVAILABLE) == found.status
    assert 1 + len(waits) == len(models.asked)


def test_nothing_is_sent_when_the_wait_took_all_the_time() -> None:
    clock_ns = [0]

    def oversleep(seconds: float) -> None:
        clock_ns[0] += int(seconds * 1e9) + PATIENT_MS * 1_000_000

    found, models = judged(FakeReply(status=503), RIGHT, sleep=oversleep, elapsed_ns=lambda: clock_ns[0])

    assert JudgeStatus.UNAVAILABLE == found.status
    assert 1 == len(models.asked)


def test_a_second_attempt_that_is_late_is_late() -> None:
    found, _ = judged(FakeReply(status=503), SLOW, budget_ms=PATIENT_MS, elapsed_ns=_stepping(PATIENT_MS - 100))

    assert JudgeStatus.TIMED_OUT == found.status


def _stepping(jump_ms: int) -> Callable[[], int]:
    """Return a clock that stands still, and has gone on by so much from its fourth reading on: when the second attempt begins."""
    readings: list[int] = []

    def read() -> int:
        readings.append(0)
        return jump_ms * 1_000_000 if len(readings) > 4 else 0

    return read


# --- the key ---


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("echo", [401, 200, 500])
def test_the_key_is_shown_nowhere(model: str, echo: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = f'{{"error": "wrong key {" ".join(KEYS.values())}"}}'.encode()
    with FakeModels(FakeReply(status=echo, body=body)) as models, judging(models.urls) as judge:
        found = judge.judge(asking(model), budget_ms=PATIENT_MS)
        shown = repr(found) + caplog.text + repr(judge) + repr({name: value for name, value in vars(judge).items() if name != "_key_for"})

    assert JudgeStatus.JUDGED != found.status
    assert [] == [key for key in KEYS.values() if key in shown]


# --- tokens and costs ---


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("gpt-4o-mini", 81),
        ("gpt-4o-mini-2024-07-18", 81),
        ("claude-sonnet-4-20250514", 1_650),
        ("llama-3.1-8b-instant", 26),
        ("gpt-unheard-of", 0),
    ],
)
def test_costs_come_from_the_providers_figures(model: str, cost: int) -> None:
    found, _ = judged(request=asking(model))

    assert (500, 10, cost) == (found.input_tokens, found.output_tokens, found.cost_micro)
    assert () == found.notes


def test_prices_can_be_replaced() -> None:
    found, _ = judged(prices={"gpt-4o-mini": Price(input_micro=1_000_000, output_micro=2_000_000)})

    assert 520 == found.cost_micro


def test_what_the_cache_of_a_provider_took_counts_as_input() -> None:
    usage = {"input_tokens": 100, "output_tokens": 7, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 3}
    found, _ = judged(FakeReply(usage=usage), request=asking("claude-sonnet-4-20250514"))

    assert (123, 7) == (found.input_tokens, found.output_tokens)


LYING: tuple[dict[str, Any], ...] = (
    {},
    {"prompt_tokens": -1, "completion_tokens": 1},
    {"prompt_tokens": 10**12, "completion_tokens": 1},
    {"prompt_tokens": "9"},
    {"prompt_tokens": 1.5},
)


@pytest.mark.parametrize("usage", LYING)
def test_figures_that_cannot_be_right_are_estimated_and_that_is_told(usage: dict[str, Any]) -> None:
    found, models = judged(FakeReply(usage=usage, says="0.25"))
    (asked,) = models.asked
    characters = len(asked.instructions) + len(asked.material)

    assert (JudgeStatus.JUDGED, 0.25, (ESTIMATED,)) == (found.status, found.score, found.notes)
    assert (-(-characters // 4), 1) == (found.input_tokens, found.output_tokens)
    assert 0 < found.cost_micro


def test_an_unreadable_reply_was_paid_for_too() -> None:
    found, _ = judged(FakeReply(says="hello"))

    assert (JudgeStatus.UNPARSEABLE, 500, 10, 81) == (found.status, found.input_tokens, found.output_tokens, found.cost_micro)


def test_what_was_cut_is_told() -> None:
    found, models = judged(limits=PromptLimits(output_chars=10, source_chars=5, sources=1))
    (asked,) = models.asked

    assert (
        "output (cut: 10 of 41 characters are shown)",
        "source 1 (cut: 5 of 22 characters are shown)",
        "1 further sources were not shown",
    ) == found.notes
    assert ("The gate o", (("port:gate", "The g"),)) == read_material(asked.material, fence=asked.fence)


# --- addresses and threads ---


@pytest.mark.parametrize(
    ("urls", "problem"), [({"local": "http://x/v1"}, "'urls'"), ({"azure": "http://x"}, "'urls'"), ({"openai": "nowhere"}, "'url'")]
)
def test_addresses_are_checked_when_the_judge_is_made(urls: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        ModelJudge(key_for=KEYS.get, urls=urls)


def test_a_judge_is_a_grounding_judge() -> None:
    judge: GroundingJudge = ModelJudge(key_for=KEYS.get)

    assert JudgeStatus.NOTHING_TO_JUDGE == judge.judge(asking(output=""), budget_ms=1).status


def test_threads_share_a_judge() -> None:
    found: dict[str, Judgement] = {}
    with FakeModels() as models, judging(models.urls) as judge:

        def ask(model: str) -> None:
            found[model] = judge.judge(asking(model), budget_ms=PATIENT_MS)

        threads = [threading.Thread(target=ask, args=(model,)) for model in MODELS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert dict.fromkeys(MODELS, 1.0) == {model: each.score for model, each in found.items()}


def test_the_same_request_is_sent_as_the_same_bytes() -> None:
    with FakeModels() as models, judging(models.urls) as judge:
        first = judge.judge(asking(), budget_ms=PATIENT_MS)
        second = judge.judge(asking(), budget_ms=PATIENT_MS)

    assert models.asked[0].body == models.asked[1].body
    assert msgspec.structs.replace(first, latency_ms=0) == msgspec.structs.replace(second, latency_ms=0)
