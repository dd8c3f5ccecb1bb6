"""Laws that hold for any policies and any run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.policies import GroundingRules, RetrievalRules
from evidentia.contracts.runs import BatchClosed, BatchId, GroundingEntry, LlmCall, RetrievedDocument, RunEnded
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.grounding_rules import judge_scores
from evidentia.policy.retrieval_rules import CheckedDocument, judge_document, limits_of
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.policies import Policy

NAMES = ("a", "b", "c")
SCORES = st.sampled_from([-0.5, 0.0, 0.3, 0.5, 0.7, 0.7000000000000001, 0.9, 1.0, 1.5])
SHARES = st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.70000000001, 0.9, 1.0])
ACTIONS = st.sampled_from(["warn", "block"])

retrieval_rules: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "min_relevance_score": SHARES,
        "max_source_age_days": st.sampled_from([0, 10, 30, 90]),
        "min_chunks": st.integers(0, 3),
        "max_chunks": st.integers(3, 5),
        "allowed_collections": st.lists(st.sampled_from(NAMES), max_size=2),
        "blocked_sources": st.lists(st.sampled_from(NAMES), max_size=2),
        "require_source_diversity": st.booleans(),
        "action_on_low_relevance": ACTIONS,
        "action_on_stale_source": ACTIONS,
        "action_on_chunk_violation": ACTIONS,
        "action_on_unknown_age": st.sampled_from(["allow", "warn", "block"]),
    },
)
grounding_rules: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "min_grounding_score": SHARES,
        "score_relevance_floor": st.none() | SHARES,
        "score_eval_mode": st.sampled_from(["all", "average", "top_n"]),
        "score_top_n": st.integers(1, 3),
        "min_citations": st.integers(0, 3),
        "unique_citations": st.booleans(),
        "action_on_violation": ACTIONS,
        "abstention_threshold": st.none() | SHARES,
    },
)
documents = st.builds(
    RetrievedDocument,
    relevance_score=SCORES,
    source=st.sampled_from(NAMES),
    collection=st.sampled_from(NAMES),
    age_days=st.none() | st.sampled_from([0, 10, 30, 31, 91]),
    batch=st.none() | st.sampled_from([BatchId("x"), BatchId("y")]),
)
entries = st.builds(
    GroundingEntry,
    grounding_scores=st.lists(SHARES, max_size=4).map(tuple),
    citations=st.lists(st.sampled_from(NAMES), max_size=2).map(tuple),
    output_confidence=st.none() | SHARES,
)
settlings = st.sampled_from([LlmCall(), BatchClosed(), BatchClosed(batch=BatchId("x"))])
calls = st.lists(documents | entries | settlings, max_size=12)


def body(category: str, rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "p", "category": category, "rules": rules, **fields}


@st.composite
def policies(draw: st.DrawFn, *, category: str, least: int = 0) -> list[Policy]:
    """Draw a few policies of one category, with names of their own."""
    rules = retrieval_rules if category == "retrieval" else grounding_rules
    given = draw(
        st.lists(
            st.tuples(rules, st.sampled_from(["resolved", "literal"]), st.sampled_from(["enforce", "shadow"])), min_size=least, max_size=4
        )
    )
    return [
        check_policy(
            {**body(category, each), "name": f"{category[0]}{number}", "compat": compat, "enforcement": enforcement, "priority": number % 2}
        )
        for number, (each, compat, enforcement) in enumerate(given)
    ]


def follow(given: list[Policy], run: list[Any]) -> list[tuple[Verdict, ...]]:
    evaluator = RunEvaluator(PolicySet.of(given))
    return [evaluator.begin(), *(evaluator.record(call) for call in run), evaluator.finish(RunEnded())]


# --- order ---


@given(policies(category="retrieval"), policies(category="grounding"), calls, st.randoms())
def test_the_order_in_which_policies_are_given_does_not_matter(
    retrieval: list[Policy], grounding: list[Policy], run: list[Any], shuffler: Any
) -> None:
    given_policies = retrieval + grounding
    shuffled = list(given_policies)
    shuffler.shuffle(shuffled)

    assert PolicySet.of(given_policies).digest == PolicySet.of(shuffled).digest
    assert follow(given_policies, run) == follow(shuffled, run)


# --- the merged limits decide as each policy by itself ---


@given(policies(category="retrieval", least=1), st.lists(documents, max_size=12))
def test_merged_limits_decide_as_every_policy_by_itself(given_policies: list[Policy], run: list[RetrievedDocument]) -> None:
    policy_set = PolicySet.of(given_policies)
    evaluator = RunEvaluator(policy_set)
    limits = [limits_of(each, msgspec.convert(each.body.rules, RetrievalRules)) for each in policy_set.policies]
    counts: dict[str | None, int] = {}
    for document in run:
        counts[document.batch] = counts.get(document.batch, 0) + 1
        expected = [judge_document(each, CheckedDocument.of(document, count=counts[document.batch])) for each in limits]
        is_late = evaluator.is_stopped
        verdicts = evaluator.record(document)

        assert (any(expected) or is_late) == bool(verdicts)
        assert counts[document.batch] == evaluator.count
        for verdict in verdicts:
            found = [(each.policy_id, each.rule, each.action, each.reason) for each in verdict.evaluations if each.rule]
            assert [
                (policy.policy_id, violation.rule, violation.action, violation.reason)
                for policy, violations in zip(policy_set.policies, expected, strict=True)
                for violation in violations
            ] == found


@given(policies(category="grounding", least=1), st.lists(entries, max_size=6))
def test_merged_bounds_decide_as_every_policy_by_itself(given_policies: list[Policy], run: list[GroundingEntry]) -> None:
    policy_set = PolicySet.of(given_policies)
    evaluator = RunEvaluator(policy_set)
    rules = [msgspec.convert(each.body.rules, GroundingRules) for each in policy_set.policies]
    for entry in run:
        expected = [judge_scores(each, entry.grounding_scores) for each in rules]
        is_late = evaluator.is_stopped
        verdicts = evaluator.record(entry)

        assert (any(expected) or is_late) == bool(verdicts)
        for verdict in verdicts:
            assert [each.reason for each in expected if each] == [each.reason for each in verdict.evaluations if each.rule]


# --- a call that passes stands for what it would have said ---

OBJECTING = {"min_relevance_score": 9.0}
OBJECTING_GROUNDING = {"min_grounding_score": 1.0, "score_eval_mode": "all", "score_relevance_floor": 1.0}


@given(policies(category="retrieval", least=1), st.lists(documents, max_size=8))
def test_a_document_that_passes_stands_for_what_it_says_beside_a_policy_that_objects(
    given_policies: list[Policy], run: list[RetrievedDocument]
) -> None:
    evaluator = RunEvaluator(PolicySet.of(given_policies))
    # As it was stored before such a minimum was refused: it warns of every document, and stops none.
    objecting = check_policy({**body("retrieval", {}), "name": "zz", "priority": 999})
    objecting = msgspec.structs.replace(
        objecting, body=msgspec.structs.replace(objecting.body, rules={**objecting.body.rules, **OBJECTING})
    )
    beside = RunEvaluator(PolicySet.of([*given_policies, objecting]))
    for document in run:
        verdicts, (other,) = evaluator.record(document), beside.record(document)
        if not verdicts:
            (passed,) = evaluator.passed(document, count=evaluator.count)
            assert passed.evaluations == other.evaluations[:-1]


@given(policies(category="grounding", least=1), st.lists(entries, max_size=8))
def test_an_entry_that_passes_stands_for_what_it_says_beside_a_policy_that_objects(
    given_policies: list[Policy], run: list[GroundingEntry]
) -> None:
    evaluator = RunEvaluator(PolicySet.of(given_policies))
    objecting = check_policy({**body("grounding", OBJECTING_GROUNDING), "name": "zz", "priority": 999})
    beside = RunEvaluator(PolicySet.of([*given_policies, objecting]))
    for entry in run:
        verdicts, others = evaluator.record(entry), beside.record(entry)
        if not verdicts and others:
            (passed,) = evaluator.passed(entry, count=evaluator.count)
            assert passed.evaluations == others[0].evaluations[:-1]


# --- tightening ---


@st.composite
def tightened(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw rules, and the same with some of them stricter."""
    loose = draw(retrieval_rules)
    tight = dict(loose)
    if draw(st.booleans()):
        tight["min_relevance_score"] = min(1.0, loose.get("min_relevance_score", 0.7) + draw(st.sampled_from([0.0, 0.1, 0.5])))
    if draw(st.booleans()):
        tight["max_source_age_days"] = max(0, loose.get("max_source_age_days", 90) - draw(st.integers(0, 60)))
    if draw(st.booleans()):
        tight["blocked_sources"] = [*loose.get("blocked_sources", []), draw(st.sampled_from(NAMES))]
    if draw(st.booleans()) and loose.get("allowed_collections"):
        tight["allowed_collections"] = loose["allowed_collections"][:1]
    if draw(st.booleans()):
        tight["max_chunks"] = max(tight.get("min_chunks", 1), 1, loose.get("max_chunks", 10) - draw(st.integers(0, 2)))
    for action in ("action_on_low_relevance", "action_on_stale_source", "action_on_chunk_violation", "action_on_unknown_age"):
        if draw(st.booleans()):
            tight[action] = "block"
    return loose, tight


def stopped(rules: dict[str, Any], run: list[Any]) -> set[int]:
    verdicts = follow([check_policy(body("retrieval", rules))], run)
    return {number for number, each in enumerate(verdicts) if any(verdict.stops for verdict in each)}


@given(tightened(), calls)
def test_tightening_a_retrieval_policy_never_admits_more(rules: tuple[dict[str, Any], dict[str, Any]], run: list[Any]) -> None:
    loose, tight = rules
    before, after = stopped(loose, run), stopped(tight, run)

    # What a run that was stopped says at its end is not enforced, so that the end may be missing where a call was stopped.
    assert set() == before - after - {len(run) + 1}
    assert not before or after


@given(grounding_rules, st.sampled_from([0.0, 0.1, 0.3]), st.lists(entries, max_size=6))
def test_raising_the_minimum_of_grounding_never_admits_more(rules: dict[str, Any], more: float, run: list[GroundingEntry]) -> None:
    minimum = rules.get("min_grounding_score", 0.7)
    loose, tight = (
        follow([check_policy(body("grounding", {**rules, "min_grounding_score": each}))], list(run))
        for each in (minimum, min(1.0, minimum + more))
    )

    assert [] == [number for number, (before, after) in enumerate(zip(loose[:-1], tight[:-1], strict=True)) if len(before) > len(after)]


@given(policies(category="retrieval", least=1), calls)
def test_another_policy_never_admits_more(given_policies: list[Policy], run: list[Any]) -> None:
    fewer, more = follow(given_policies[1:], run), follow(given_policies, run)
    stops = [[any(verdict.stops for verdict in each) for each in verdicts] for verdicts in (fewer, more)]

    assert [] == [number for number, (before, after) in enumerate(zip(*stops, strict=True)) if before and not after and number <= len(run)]


# --- growth ---


@given(policies(category="retrieval", least=1), documents)
def test_what_is_remembered_does_not_grow_with_documents_of_one_batch(given_policies: list[Policy], document: RetrievedDocument) -> None:
    evaluator = RunEvaluator(PolicySet.of(given_policies))
    run: Any = evaluator._runs[0]
    sizes = []
    for _ in range(3):
        for _ in range(20):
            evaluator.record(document)
        sizes.append([len(held) for name in type(run).__slots__ if isinstance(held := getattr(run, name), (dict, set, list))])

    assert [sizes[0]] * 3 == sizes
