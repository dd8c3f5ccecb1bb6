"""What a file of policy tests may say, and reading it: every mistake is named with its path and the nearest word that would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import InvalidFieldError, PolicyInvalidError
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.protocol import ReplyDrafted, TaskOpened, ToolAnswered, ToolAsked
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
from evidentia.governance.policy_tests_reading import converted, kind_of, known_word, listed, mapping, read_message, refuse_others
from evidentia.policy.calls import check_call
from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.calls import RunCall

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
    facts = {"run_id": f"case-{number + 1}", "agent_name": "agent", **_facts(shared, ""), **_facts(given, f"{path}given.")}
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


def _facts(holder: Mapping[str, object], path: str) -> Mapping[str, object]:
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
