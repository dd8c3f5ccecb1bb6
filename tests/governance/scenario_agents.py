"""The doors of an agent: a context that is entered in a `with` or an `async with`, in this process or over HTTP.

The judge is scripted: before each call it is told what to say, by the model it is asked for.
"""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from scenario_doors import Heard, Played, decision_fields, judgement_of
from scripted_judge import JudgedBase, ScriptedJudge

from evidentia.agents import Context
from evidentia.contracts.errors import PolicyViolationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_cases import Call, Case

    from evidentia.agents.current_context import Span
    from evidentia.agents.governors import AnyBase

Fields = dict[str, Any]  # JSON: a decision


class AgentError(Exception):
    """What an agent raises of its own."""


class PolicyKeeper(Protocol):
    """Puts policies in force for runs to come."""

    def put(self, bodies: Sequence[Fields]) -> None:
        """Put bodies in force, by their names."""
        ...


def play_sync(case: Case, *, base: AnyBase | None = None, judge: ScriptedJudge | None = None, keeper: PolicyKeeper | None = None) -> Played:
    """Return what comes of a case in a `with`; with a keeper the policies are put in force there, and not given with the run."""
    agent = _Agent(case, base=base, judge=judge, keeper=keeper)
    with suppress(PolicyViolationError, AgentError), agent.watched(), agent.context:
        agent.act()
    return agent.played()


def play_async(
    case: Case, *, base: AnyBase | None = None, judge: ScriptedJudge | None = None, keeper: PolicyKeeper | None = None
) -> Played:
    """Return what comes of a case in an `async with`."""
    return asyncio.run(_played_async(_Agent(case, base=base, judge=judge, keeper=keeper)))


async def _played_async(agent: _Agent) -> Played:
    with suppress(PolicyViolationError, AgentError), agent.watched():
        async with agent.context:
            agent.act()
    return agent.played()


class _Agent:
    """Plays a case call by call, and notes what came of each."""

    def __init__(self, case: Case, *, base: AnyBase | None, judge: ScriptedJudge | None, keeper: PolicyKeeper | None) -> None:
        self._case = case
        self._bodies = copy.deepcopy(list(case.policies))
        self._judge = judge or ScriptedJudge()
        self._judge.asked = 0
        self._keeper = keeper
        if keeper is not None:
            keeper.put(self._bodies)
        is_judged = any(body.get("rules", {}).get("llm_grounding_check") for body in self._bodies)
        self.context = Context(
            case.agent,
            user_id=case.user,
            enforce_policy=case.is_enforced,
            policies=self._bodies if keeper is None else (),
            base=JudgedBase(self._judge) if base is None and is_judged else base,
            on_abstain=case.given.get("on_abstain", "keep"),
        )
        self._heard: list[Heard] = []
        self._parents: list[str | None] = []
        self._spans: dict[str, Span] = {}
        self._names: dict[str, str] = {}
        self._feedback: list[str] = []
        self._begun: list[Fields] = []
        self._end_error: PolicyViolationError | None = None
        self._told = 0
        self._is_acting = False

    def watched(self) -> _Watched:
        """Return what notes an error that comes out of the end."""
        return _Watched(self)

    def act(self) -> None:
        """Do what the case says, until something raises that is not caught."""
        self._begun = self._decisions()
        self._is_acting = True
        for call in self._case.calls:
            if call.is_reached:
                self._do(call)
        self._feedback += [each.reason for each in self.context.take_feedback()]
        assert [] == self.context.take_feedback()
        self._script(self._case.end)
        self._is_acting = False
        if self._case.fails:
            raise AgentError

    def note_end(self, error: BaseException | None) -> None:
        """Keep a violation that was raised by the end, and not by a call."""
        if isinstance(error, PolicyViolationError) and not self._is_acting:
            self._end_error = error

    def played(self) -> Played:
        """Return what came of the run."""
        end = Heard(decisions=self._decisions(), raised=None if self._end_error is None else decision_fields(self._end_error.decision))
        if self._is_acting:
            self._feedback += [each.reason for each in self.context.take_feedback()]
        return Played(
            begin=self._begun,
            calls=self._heard,
            end=end,
            status=self.context.status.value,
            feedback=self._feedback,
            abstention=self.context.abstention_response,
            result=self.context.result,
            asked=self._judge.asked,
            should_stop=self.context.should_stop,
            parents=self._parents,
            tells=("status", "feedback", "abstention", "result", "asked", "should_stop", "parents"),
        )

    def _do(self, call: Call) -> None:
        self._script(call)
        heard = Heard()
        raised: PolicyViolationError | None = None
        try:
            self._say(call.said)
        except PolicyViolationError as error:
            raised = error
            heard.raised, heard.message = decision_fields(error.decision), str(error)
        except ValueError as error:
            heard.refused = str(getattr(error, "field", error))
        heard.decisions = self._decisions()
        self._heard.append(heard)
        self._parents.append(self._parent_of(heard))
        if raised is not None and not call.is_caught:
            raise raised

    def _script(self, call: Call) -> None:
        told = call.said.get("judgements", {})
        models = {body["name"]: body.get("rules", {}).get("llm_grounding_model", "gpt-4o-mini") for body in self._bodies}
        judged = {models[name]: judgement_of(each, models[name]) for name, each in told.items() if name in models}
        self._judge.script = {model: each for model, each in judged.items() if each is not None}

    def _say(self, said: Mapping[str, Any]) -> None:
        context, kind = self.context, said["kind"]
        if kind == "retrieval":
            context.record_retrieval_result(
                relevance_score=said["score"],
                source=said["source"],
                collection=said["collection"],
                age_days=said["age"],
                created_at=said.get("created_at"),
                batch_id=said["batch"],
            )
        elif kind == "grounding":
            context.record_grounding(
                grounding_scores=said["scores"],
                citations=said["citations"],
                unsupported_claims=said["unsupported"],
                output_confidence=said["confidence"],
            )
        elif kind == "batch":
            with context.retrieval_batch(batch_id=said["batch"]):
                pass
        elif kind == "tool":
            context.record_tool_call(said["name"], retrieval=said["is_retrieval"])
        else:
            self._say_more(kind, said["name"])

    def _say_more(self, kind: str, value: Any) -> None:
        if kind == "llm":
            self.context.record_llm_call("some-model", response=value)
        elif kind == "step":
            self.context.record_step(value)
        elif kind == "result":
            self.context.set_result(value)
        elif kind == "open":
            self._spans[value] = self.context.enter_span(value, retrieval=True)
            self._names[f"s{len(self._names) + 1}"] = value
        elif kind == "shut":
            self.context.exit_span(self._spans[value])
        else:
            for body in self._bodies:
                body["rules"].clear()
                body["rules"].update(value)
            if self._keeper is not None:
                self._keeper.put(self._bodies)

    def _decisions(self) -> list[Fields]:
        """Return what was decided since the last look."""
        decisions = self.context.decisions
        fresh = [decision_fields(each) for each in decisions[self._told :]]
        self._told = len(decisions)
        return fresh

    def _parent_of(self, heard: Heard) -> str | None:
        inputs = [each["inputs"] for each in heard.decisions]
        return self._names.get(inputs[0].get("span") or "", "run") if inputs else None


class _Watched:
    """Notes what comes out of a run, and lets it pass."""

    def __init__(self, agent: _Agent) -> None:
        self._agent = agent

    def __enter__(self) -> None:
        """Begin to watch."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._agent.note_end(error)
