"""Worlds whose judge fails: down, slow, senseless, without a key, or without anything to read."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from fault_play import END, Step, World

from evidentia.backends.llm.judge import ModelJudge
from evidentia.contracts.policies import DEFAULT_TENANT, PolicyAction, PolicyBody, Posture
from evidentia.governance.governor import LocalGovernor
from evidentia.testing.fake_models import RIGHT, RUDE, SLOW, FakeModels, models_down
from evidentia.wiring.governance_runtime import BaseTexts, GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.agents import Context
    from evidentia.contracts.ports import Governor

KEY: Final = "OPENAI_API_KEY"
TEXT: Final = "Keys expire after 30 days."
CITED: Final = "handbook:keys.md"
WORDLESS: Final = "... --- ..."
NO_KEY: Final = "judge without a key"
NEVER_ASKED: Final = "judge never asked"
RULE: Final = "llm_grounding_check"
BUDGET_MS: Final = 100

FAULTS: Final = (
    "judge down",
    "judge slow",
    "judge garbage",
    "judge out of range",
    NO_KEY,
    "no source text",
    "no output",
    "output without words",
)
PHASES: Final = ("mid_execution", "after_workflow")


class Governed:
    """A base whose runs are started by a governor of its own."""

    def __init__(self, governor: Governor) -> None:
        self._governor = governor

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs; how the log is written was settled when it was opened."""
        del durable
        return self._governor


def judged_body(posture: Posture, *, phase: str, **rules: Any) -> PolicyBody:
    """Return a policy that has outputs judged."""
    wanted = {RULE: True, "llm_grounding_phase": phase, "action_on_violation": "block", "min_citations": 0, **rules}
    return PolicyBody(name="Judged", category="grounding", rules=wanted, posture={RULE: posture})


def put(control: GovernanceRuntime, body: PolicyBody, *, tenant: str = DEFAULT_TENANT) -> None:
    """Put a policy in force."""
    control.policies.put(body, tenant=tenant, by="test")


@contextmanager
def judge_world(directory: Path, fault: str, posture: Posture, *, phase: str) -> Iterator[World]:
    """Give a base whose judge has the fault, and an agent who writes one answer; without a fault it is found to be grounded."""
    with ExitStack() as stack:
        urls = stack.enter_context(_models(fault))
        control = stack.enter_context(GovernanceRuntime(directory, judge_urls=urls))
        put(control, judged_body(posture, phase=phase))
        governor = _slow_governor(control, urls) if fault == "judge slow" else control
        is_unreadable = fault in {"judge garbage", "judge out of range"}
        yield World(
            base=Governed(governor),
            steps=_steps(fault),
            struck="ground" if phase == "mid_execution" and fault != NEVER_ASKED else END,
            what=RULE,
            logs=lambda _: control.log,
            at_most=PolicyAction.WARN if is_unreadable else PolicyAction.BLOCK,
        )


def _steps(fault: str) -> Sequence[Step]:
    said = {"no output": "", "output without words": WORDLESS}.get(fault, TEXT)
    cited = "handbook:gone.md" if fault == "no source text" else CITED

    def ground(ctx: Context) -> None:
        ctx.record_grounding(grounding_scores=[0.9], citations=[cited])

    def answer(ctx: Context) -> None:
        ctx.record_llm_call("model", response=said)

    if fault == NEVER_ASKED:
        return (Step("answer", answer),)
    return (Step("answer", answer), Step("ground", ground)) if said else (Step("ground", ground),)


@contextmanager
def _models(fault: str) -> Iterator[Mapping[str, str]]:
    if fault == "judge down":
        with models_down() as urls:
            yield urls
        return
    replies = {"judge slow": SLOW, "judge garbage": RUDE["obeys an injection"], "judge out of range": RUDE["goes too high"]}
    with FakeModels(replies.get(fault, RIGHT)) as models:
        yield models.urls


def _slow_governor(control: GovernanceRuntime, urls: Mapping[str, str]) -> LocalGovernor:
    """Return a governor who does not wait as long as a base would."""
    return LocalGovernor(
        control.policies,
        control.log,
        clock=control.clock,
        entropy=control.entropy,
        judge=ModelJudge(key_for=lambda _: "key", urls=urls),
        texts=BaseTexts(control.directory),
        judge_budget_ms=BUDGET_MS,
    )
