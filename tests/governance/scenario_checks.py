"""Compares what came of a case with what the case says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_cases import Case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_cases import Call
    from scenario_doors import Heard, Played

Fields = dict[str, Any]  # JSON: a decision, or what is expected of one


def label_of(value: object) -> str:
    """Return how a case is called in a list of tests."""
    return value.label if isinstance(value, Case) else str(value)


def check_problems(case: Case, found: Sequence[tuple[str, str]]) -> None:
    """Check that every field is named and no other; a suggestion that a case does not name may be anything."""
    wanted = case.then["problems"]
    paths = [path.split("[")[0] if case.then.get("loose") else path for path, _ in found]
    assert sorted(path for path, *_ in wanted) == sorted(paths)
    for path, *suggestion in wanted:
        assert suggestion in ([], [dict(found).get(path)])


def check_played(case: Case, played: Played) -> None:
    """Check every call, the end, the beginning and the run as a whole."""
    reached = [call for call in case.calls if call.is_reached]
    assert len(reached) == len(played.calls)
    for place, (call, heard) in enumerate(zip(reached, played.calls, strict=True), start=1):
        _check_call(call, heard, where=f"call {place}")
    _check_call(case.end, played.end, where="end")
    _check_begin(case, played)
    _check_whole(case, played)


def _check_call(call: Call, heard: Heard, *, where: str) -> None:
    if call.refused:
        assert call.refused == heard.refused.split("[")[0], where
        assert [] == heard.decisions, where
        return
    assert heard.refused == "", where
    violated = [each for each in heard.decisions if not _is_pass(each)]
    assert len(call.expect) == len(violated), (where, violated)
    for expected, found in zip(call.expect, violated, strict=True):
        _check_fields(expected, found, where=where)
    assert call.raises == (heard.raised is not None), (where, heard.raised)
    if heard.raised is not None:
        assert heard.message in {"", heard.raised["reason"]}, where
        assert any(_agrees(expected, heard.raised) for expected in call.expect), (where, heard.raised)
    _check_passes(call, [each for each in heard.decisions if _is_pass(each)], where=where)


def _check_passes(call: Call, passed: list[Fields], *, where: str) -> None:
    if isinstance(call.passes, dict):
        assert any(_agrees(call.passes, each) for each in passed), (where, call.passes, passed)
    elif call.passes is not None:
        assert len(call.passes) == len(passed), (where, passed)


def _check_begin(case: Case, played: Played) -> None:
    if "begin" in case.then:
        assert len(case.then["begin"]) == len(played.begin), played.begin
        for expected in case.then["begin"]:
            assert any(_agrees(expected, each) for each in played.begin), (expected, played.begin)
    assert all(each["action"] == "allow" and each["phase"] == "before_workflow" for each in played.begin)
    if "notice" in case.then:
        assert case.then["notice"] in [each["rule"] for decision in played.begin for each in decision["evaluations"]]


def _check_whole(case: Case, played: Played) -> None:
    for name in ("status", "feedback", "abstention", "asked", "result"):
        if name in case.then and name in played.tells:
            assert case.then[name] == getattr(played, name), name
    if "should_stop" in played.tells:
        assert (played.status == "blocked") == played.should_stop
    if "parents" in played.tells:
        reached = [call for call in case.calls if call.is_reached]
        for call, told in zip(reached, played.parents, strict=True):
            assert call.parent in {"", told}


def _is_pass(decision: Mapping[str, Any]) -> bool:
    return bool(decision["action"] == "allow" and decision["status"] != "bypassed")


def _check_fields(expected: Mapping[str, Any], found: Mapping[str, Any], *, where: str) -> None:
    for name, value in expected.items():
        if name == "has":
            assert value == {key: found["metadata"].get(key) for key in value}, (where, found)
        elif name == "evaluations":
            assert len(value) == len(found["evaluations"]), (where, found["evaluations"])
            for inner, evaluation in zip(value, found["evaluations"], strict=True):
                _check_fields(inner, evaluation, where=f"{where} evaluations")
        elif name == "inputs":
            assert value == {key: found.get("inputs", value).get(key) for key in value}, (where, found)
        else:
            assert value == found[name], (where, name, found)


def _agrees(expected: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    try:
        _check_fields(expected, found, where="")
    except AssertionError:
        return False
    return True
