"""Tests of policies: cases in a file, run by the evaluator that decides live runs, with what differs from what was expected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from evidentia.contracts.decisions import DecisionStatus, Verdict
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError, PolicyInvalidError
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.protocol import ReplyDrafted, RunCall, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.runs import (
    AnyCall,
    BatchClosed,
    CheckBypassed,
    GroundingEntry,
    LlmCall,
    RetrievedDocument,
    RunEnded,
    RunFacts,
    RunStatus,
    SpanClosed,
    SpanOpened,
    StepCall,
    ToolCall,
)
from evidentia.contracts.shapes import shape_fault
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.handlers import check_call
from evidentia.policy.rule_checks import nearest
from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES

__all__ = ["CaseResult", "Mismatch", "PolicyCase", "parse_suite", "policies_in", "run_case", "run_suite"]


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Where a case came to something else: the call, the field, and both values."""

    where: str
    field: str
    expected: object
    actual: object


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one case; it passed when nothing differs."""

    name: str
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def passed(self) -> bool:
        """Tell whether everything was as expected."""
        return not self.mismatches


def run_suite(cases: Iterable[PolicyCase]) -> tuple[CaseResult, ...]:
    """Return what became of every case, in order."""
    return tuple(run_case(case) for case in cases)


def run_case(case: PolicyCase) -> CaseResult:
    """Record the calls of a case one by one and compare.

    A call that is stopped does not end the case: later calls are decided as they are in an agent that catches the error.
    """
    policies = PolicySet.of(case.policies).for_run(case.facts)
    evaluator = RunEvaluator(policies, is_enforced=case.is_enforced)
    found = list(_differences("before the run", case.begin_expected, evaluator.begin()))
    is_stopped = False
    for number, given in enumerate(case.calls):
        verdicts: Sequence[Verdict] = ()
        for _ in range(given.times):
            verdicts = evaluator.record(given.call) or evaluator.passed(given.call, count=evaluator.count)
            is_stopped = is_stopped or (not given.call.is_announced and any(verdict.stops for verdict in verdicts))
        expected = case.calls_expected[number] if number < len(case.calls_expected) else None
        found.extend(_differences(f"call {number + 1}, {given.kind}", expected, verdicts))
    verdicts = evaluator.finish(case.end)
    is_stopped = is_stopped or any(verdict.stops for verdict in verdicts)
    found.extend(_differences("at the end", case.end_expected, verdicts))
    status = RunStatus.BLOCKED if is_stopped else case.end.status
    if case.run_expected not in {None, status}:
        found.append(Mismatch(where="the run", field="status", expected=case.run_expected, actual=status))
    return CaseResult(name=case.name, mismatches=tuple(found))


def _differences(where: str, expected: Expectation | None, verdicts: Sequence[Verdict]) -> Iterator[Mismatch]:
    if expected is None:
        return
    actual = _facts(_chosen(expected, verdicts))
    for name, wanted in _wanted(expected).items():
        if name == "reason_contains":
            if str(wanted) not in str(actual["reason"]):
                yield Mismatch(where=where, field="reason", expected=f"… {wanted} …", actual=actual["reason"])
        elif name == "metadata":
            yield from _metadata_differences(where, expected.metadata, actual["metadata"])
        elif wanted != actual[name]:
            yield Mismatch(where=where, field=name, expected=wanted, actual=actual[name])


def _metadata_differences(where: str, expected: Mapping[str, object], actual: object) -> Iterator[Mismatch]:
    held = actual if isinstance(actual, dict) else {}
    for key, wanted in sorted(expected.items()):
        if key not in held or _plain(held[key]) != _plain(wanted):
            yield Mismatch(where=where, field=f"metadata.{key}", expected=wanted, actual=held.get(key))


def _chosen(expected: Expectation, verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict that is meant: of the category that is named, else the strongest, the first of equals."""
    meant = [verdict for verdict in verdicts if expected.category in {None, verdict.decisive.category}]
    return max(meant, key=lambda verdict: verdict.decisive.action.rank, default=None)


def _wanted(expected: Expectation) -> dict[str, object]:
    named = {name: getattr(expected, name) for name in Expectation.__struct_fields__}
    return {name: value for name, value in named.items() if value is not None and value != {}}


def _facts(verdict: Verdict | None) -> dict[str, object]:
    """Return what a call came to; one that no policy looks at is allowed, and says nothing else."""
    if verdict is None:
        return {
            "action": PolicyAction.ALLOW,
            "reason": "",
            "rule": "",
            "status": DecisionStatus.EVALUATED,
            "policy": "",
            "category": "",
            "stops": False,
            "metadata": {},
            "abstention_response": None,
        }
    decisive = verdict.decisive
    return {
        "action": decisive.action,
        "reason": decisive.reason,
        "rule": decisive.rule,
        "status": decisive.status,
        "policy": decisive.policy_name,
        "category": decisive.category,
        "stops": verdict.stops,
        "metadata": dict(decisive.metadata),
        "abstention_response": verdict.abstention_response,
    }


def _plain(value: object) -> object:
    """Return a value as JSON has it, so that a tuple and a list of the same are equal."""
    return msgspec.to_builtins(value)


# --- checked reading of decoded files ---
# Reading decoded YAML, JSON or TOML: what is not known is refused with its path and the nearest word that would be right.

MAX_SHOWN: Final = 80

_Message = TypeVar("_Message")


def read_message(fields: object, kind: type[_Message], path: str) -> _Message:
    """Return a message from its fields."""
    names = getattr(kind, "__struct_fields__", ())
    return converted(mapping(fields, f"{path}.", names), kind, path)


def converted(value: object, kind: type[_Message], path: str) -> _Message:
    """Return a value in its type."""
    try:
        return convert(value, kind)
    except msgspec.ValidationError as error:
        place, problem = shape_fault(error, kind)
        raise InvalidFieldError(f"{path}{place}" if place.startswith("[") or not place else f"{path}.{place}", problem) from error


def mapping(value: object, path: str, known: Collection[str]) -> Mapping[str, object]:
    """Return names with values, all of them known; `path` ends where a name follows."""
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path.rstrip(".") or "file", f"expected names with values, not {kind_of(value)}")
    refuse_others(value, path, known)
    return value


def refuse_others(value: Mapping[Any, object], path: str, known: Collection[str]) -> None:  # Any: keys as an author wrote them
    """Refuse the first name that is not known."""
    for key in value:
        if key not in known:
            raise InvalidFieldError(f"{path}{str(key)[:MAX_SHOWN]}", f"unknown key{_nearest(str(key), known)}")


def listed(value: object, path: str) -> Sequence[object]:
    """Return a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidFieldError(path, f"expected a list, not {kind_of(value)}")
    return value


def known_word(value: object, path: str, words: Collection[str]) -> str:
    """Return one of the words."""
    if not isinstance(value, str) or value not in words:
        raise InvalidFieldError(path, f"'{str(value)[:MAX_SHOWN]}' is not known{_nearest(str(value), words)}")
    return value


def kind_of(value: object) -> str:
    """Return what something is, for a message."""
    return "nothing" if value is None else type(value).__name__


def _nearest(typed: str, known: Collection[str]) -> str:
    near = nearest(typed, known)
    return f"; did you mean '{near}'?" if near else f"; known are {', '.join(known)}"


# --- shape of a suite ---
# What a file of policy tests may say, and reading it: every mistake is named with its path and the nearest word that would be right.

MAX_TIMES: Final = 10_000
CALLS: Final[Mapping[str, type[RunCall]]] = {
    "retrieval": RetrievedDocument,
    "batch": BatchClosed,
    "grounding": GroundingEntry,
    "tool": ToolCall,
    "llm": LlmCall,
    "step": StepCall,
    "span": SpanOpened,
    "span_end": SpanClosed,
    "bypass": CheckBypassed,
    "task": TaskOpened,
    "ask": ToolAsked,
    "answer": ToolAnswered,
    "reply": ReplyDrafted,
}
END: Final = "end"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call should come to; what is not said is not compared."""

    action: PolicyAction | None = None
    reason: str | None = None
    reason_contains: str | None = None
    rule: str | None = None
    status: DecisionStatus | None = None
    policy: str | None = None
    category: str | None = None
    """Whose verdict is meant where several categories decide; else the strongest is compared."""
    stops: bool | None = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)  # Any: JSON
    """Keys that must be there with these values; others may be there too."""
    abstention_response: str | None = None


class GivenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a case, and how often it is recorded."""

    call: AnyCall
    kind: str
    times: int = 1


class PolicyCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case: policies, calls in order, and what they should come to."""

    name: str
    policies: tuple[Policy, ...]
    facts: RunFacts
    is_enforced: bool = True
    calls: tuple[GivenCall, ...]
    end: RunEnded
    begin_expected: Expectation | None = None
    calls_expected: tuple[Expectation | None, ...] = ()
    end_expected: Expectation | None = None
    run_expected: RunStatus | None = None


def parse_suite(document: object, *, load: Callable[[str], object] | None = None) -> tuple[PolicyCase, ...]:
    """Return the cases of a decoded file; `load` reads the policy files that cases name. Raises InvalidFieldError with the path."""
    suite = mapping(document, "", ("policies", "run", "cases", "name", "given", "when", "then"))
    if "cases" not in suite:
        return (_case(suite, "", {}, load, number=0),)
    refuse_others(suite, "", ("policies", "run", "cases"))
    shared = {name: suite[name] for name in ("policies", "run") if name in suite}
    cases = listed(suite["cases"], "cases")
    if not cases:
        raise InvalidFieldError("cases", "there is no case")
    return tuple(_case(case, f"cases[{number}].", shared, load, number=number) for number, case in enumerate(cases))


def _case(document: object, path: str, shared: Mapping[str, object], load: Callable[[str], object] | None, *, number: int) -> PolicyCase:
    case = mapping(document, path, ("name", "given", "when", "then"))
    given = mapping(case.get("given") or {}, f"{path}given.", ("policies", "run", "enforce"))
    policies = [
        *_policies(shared.get("policies"), "policies", load),
        *_policies(given.get("policies"), f"{path}given.policies", load),
    ]
    if not policies:
        raise InvalidFieldError(f"{path}given.policies", "there is no policy to test; name one, a template or a file")
    calls, end = _calls(case.get("when") or [], f"{path}when")
    facts = {"run_id": f"case-{number + 1}", "agent_name": "agent", **_run_facts(shared, ""), **_run_facts(given, f"{path}given.")}
    expected = _then(case.get("then"), f"{path}then", calls=len(calls))
    return PolicyCase(
        name=converted(case.get("name") or f"case {number + 1}", str, f"{path}name"),
        policies=tuple(policies),
        facts=converted(facts, RunFacts, f"{path}given.run"),
        is_enforced=converted(given.get("enforce", True), bool, f"{path}given.enforce"),
        calls=calls,
        end=end,
        **expected,
    )


def _run_facts(holder: Mapping[str, object], path: str) -> Mapping[str, object]:
    return mapping(holder.get("run") or {}, f"{path}run.", RunFacts.__struct_fields__)


def _policies(value: object, path: str, load: Callable[[str], object] | None) -> list[Policy]:
    return [policy for number, each in enumerate(listed(value or [], path)) for policy in _policy(each, f"{path}[{number}]", load)]


def _policy(value: object, path: str, load: Callable[[str], object] | None) -> list[Policy]:
    """Return the policy that an entry writes out, or those that it names by template or file."""
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, f"expected a policy, not {kind_of(value)}")
    if "template" in value:
        refuse_others(value, f"{path}.", ("template",))
        return [check_policy(TEMPLATES[known_word(value["template"], f"{path}.template", tuple(TEMPLATES))])]
    if "file" in value:
        refuse_others(value, f"{path}.", ("file",))
        if load is None:
            raise InvalidFieldError(f"{path}.file", "policy files cannot be read here; write the policy out")
        loaded = load(converted(value["file"], str, f"{path}.file"))
        return [_checked(each, f"{path}.file({number})") for number, each in enumerate(policies_in(loaded, f"{path}.file"))]
    return [_checked(value, path)]


def policies_in(document: object, path: str = "") -> Sequence[object]:
    """Return the policies of a decoded policy file: one body, a list of bodies, or `policies:` with a list."""
    if isinstance(document, Mapping) and "policies" in document:
        refuse_others(document, f"{path}.", ("policies",))
        return listed(document["policies"], f"{path}.policies".lstrip("."))
    return [document] if isinstance(document, Mapping) else listed(document, path or "policies")


def _checked(value: object, path: str) -> Policy:
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, f"expected a policy, not {kind_of(value)}")
    try:
        return check_policy(value)
    except PolicyInvalidError as error:
        first = error.problems[0]
        remark = f"; did you mean '{first.suggestion}'?" if first.suggestion else ""
        raise InvalidFieldError(f"{path}.{first.path}", f"{first.problem}{remark}") from error


def _calls(value: object, path: str) -> tuple[tuple[GivenCall, ...], RunEnded]:
    entries = listed(value, path)
    calls: list[GivenCall] = []
    end = RunEnded()
    for number, entry in enumerate(entries):
        at = f"{path}[{number}]"
        kind, fields, times = _call_parts(entry, at)
        if kind == END:
            if number + 1 < len(entries):
                raise InvalidFieldError(at, "the end stands last")
            end = read_message(fields, RunEnded, f"{at}.{END}")
            continue
        call = read_message(fields, CALLS[kind], f"{at}.{kind}")
        _check(call, f"{at}.{kind}")
        calls.append(GivenCall(call=call, kind=kind, times=times))  # type: ignore[arg-type]  # every value of CALLS is one of them
    return tuple(calls), end


def _call_parts(entry: object, path: str) -> tuple[str, object, int]:
    """Return what is recorded, its fields, and how often; `step` alone is a call without fields."""
    if isinstance(entry, str):
        return known_word(entry, path, (*CALLS, END)), {}, 1
    parts = dict(mapping(entry, f"{path}.", (*CALLS, END, "times")))
    times = converted(parts.pop("times", 1), int, f"{path}.times")
    if not 1 <= times <= MAX_TIMES:
        raise InvalidFieldError(f"{path}.times", f"{times} is not between 1 and {MAX_TIMES}")
    if len(parts) != 1:
        raise InvalidFieldError(path, f"expected one call, found {len(parts)}: {', '.join(sorted(parts)) or 'none'}")
    ((kind, fields),) = parts.items()
    return kind, fields or {}, times


def _check(call: RunCall, path: str) -> None:
    try:
        check_call(call)
    except InvalidFieldError as error:
        problem = str(error).removeprefix(f"field '{error.field}': ")
        raise InvalidFieldError(f"{path}.{error.field}", problem) from error


def _then(value: object, path: str, *, calls: int) -> dict[str, Any]:  # Any: the fields of a case that hold what is expected
    if value is None:
        raise InvalidFieldError(path, "nothing is expected, so the case cannot fail; name an action for a call, the end or the run")
    parts = mapping({"calls": value} if isinstance(value, list) else value, f"{path}.", ("begin", "calls", "end", "run"))
    entries = listed(parts.get("calls") or [], f"{path}.calls")
    if len(entries) > calls:
        raise InvalidFieldError(f"{path}.calls[{calls}]", f"there are {calls} calls, and something is expected of {len(entries)}")
    expected = tuple(_expectation(each, f"{path}.calls[{number}]") for number, each in enumerate(entries))
    run = parts.get("run")
    found: dict[str, Any] = {
        "begin_expected": _expectation(parts.get("begin"), f"{path}.begin"),
        "calls_expected": expected,
        "end_expected": _expectation(parts.get("end"), f"{path}.end"),
        "run_expected": None if run is None else RunStatus(known_word(run, f"{path}.run", RunStatus.words())),
    }
    if not any((*expected, found["begin_expected"], found["end_expected"], found["run_expected"])):
        raise InvalidFieldError(path, "nothing is expected, so the case cannot fail; name an action for a call, the end or the run")
    return found


def _expectation(value: object, path: str) -> Expectation | None:
    if value is None:
        return None
    if isinstance(value, str):
        return Expectation(action=PolicyAction(known_word(value, path, PolicyAction.words())))
    fields = dict(mapping(value, f"{path}.", Expectation.__struct_fields__))
    for name, words in (("action", PolicyAction.words()), ("status", DecisionStatus.words())):
        if fields.get(name) is not None:
            fields[name] = known_word(fields[name], f"{path}.{name}", words)
    return converted(fields, Expectation, path) if fields else None
