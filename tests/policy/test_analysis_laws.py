"""Laws of the analysis: every trace reproduces, and nothing on a small grid of runs contradicts what is claimed."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import BatchClosed, BatchId, GroundingEntry, LlmCall, RetrievedDocument
from evidentia.policy.analysis import FindingKind, analyze, reproduces
from evidentia.policy.analysis_blocking import execute
from evidentia.policy.analysis_scopes import covers, shared_facts
from evidentia.policy.evaluator import in_scope
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import AnyCall, RunFacts
    from evidentia.policy.analysis import PolicyFinding, Witness

ACTIONS = st.sampled_from(["warn", "block"])
NAMES = st.lists(st.sampled_from(["x", "y"]), unique=True, max_size=2)
RETRIEVAL = st.fixed_dictionaries(
    {},
    optional={
        "min_relevance_score": st.sampled_from([0, 0.5, 0.7, 1.0]),
        "max_source_age_days": st.sampled_from([0, 30, 90]),
        "min_chunks": st.sampled_from([0, 1, 2]),
        "max_chunks": st.sampled_from([2, 3]),
        "allowed_collections": NAMES,
        "blocked_sources": NAMES,
        "require_source_diversity": st.booleans(),
        "max_single_source_ratio": st.sampled_from([0.3, 0.6, 1]),
        "action_on_low_relevance": ACTIONS,
        "action_on_stale_source": ACTIONS,
        "action_on_chunk_violation": ACTIONS,
        "action_on_unknown_age": st.sampled_from(["allow", "warn", "block"]),
    },
)
GROUNDING = st.fixed_dictionaries(
    {},
    optional={
        "require_source_grounding": st.booleans(),
        "min_grounding_score": st.sampled_from([0, 0.5, 0.7]),
        "min_citations": st.sampled_from([0, 1, 2]),
        "max_unsupported_claims": st.sampled_from([None, 0, 1]),
        "abstention_threshold": st.sampled_from([None, 0, 0.5, 0.7]),
        "action_on_violation": ACTIONS,
        "score_relevance_floor": st.sampled_from([None, 0.3, 0.5, 0.7]),
        "score_eval_mode": st.sampled_from(["all", "average", "top_n"]),
        "score_top_n": st.sampled_from([1, 2]),
        "unique_citations": st.booleans(),
        "confidence_mode": st.sampled_from(["last", "min"]),
    },
)
SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "agents": st.lists(st.sampled_from(["a", "b", "a*", "*b", "?"]), max_size=2),
        "exclude_agents": st.lists(st.sampled_from(["a", "ab", "*b"]), max_size=1),
        "users": st.lists(st.sampled_from(["u", "v*"]), max_size=1),
        "exclude_users": st.lists(st.sampled_from(["*", "?*", "u"]), max_size=1),
    },
)


@st.composite
def policy_lists(draw: st.DrawFn, category: str, rules: st.SearchStrategy[dict[str, Any]], scopes: Any) -> list[Policy]:
    count = draw(st.integers(1, 3))
    return [
        check_policy(
            {
                "name": f"p{number}",
                "category": category,
                "rules": draw(rules),
                "scope": draw(scopes),
                "compat": draw(st.sampled_from(["resolved", "resolved", "literal"])),
                "enforcement": draw(st.sampled_from(["enforce", "enforce", "enforce", "shadow"])),
                "priority": draw(st.integers(1, 2)),
            }
        )
        for number in range(count)
    ]


def grid(category: str) -> Iterator[Sequence[AnyCall]]:
    """Yield small runs that between them touch every threshold that the strategies can give."""
    yield []
    if category == "grounding":
        scores: list[tuple[float, ...]] = [(), (0.4,), (0.5, 0.7), (0.7, 0.2), (0.6, 0.6, 0.9), (-0.1, 2.0)]
        cited: list[tuple[str, ...]] = [(), ("s",), ("s", "s"), ("s", "t")]
        confidences = (None, 0.4, 0.6, 0.9)
        for given_scores, citations, claims, confidence in product(scores, cited, ((), ("c",), ("c", "d")), confidences):
            entry = GroundingEntry(
                grounding_scores=given_scores, citations=citations, unsupported_claims=claims, output_confidence=confidence
            )
            yield [entry]
        yield [GroundingEntry(citations=("s",), output_confidence=0.4), GroundingEntry(citations=("s",), output_confidence=0.9)]
        return
    documents = [
        RetrievedDocument(relevance_score=score, source=source, collection=collection, age_days=age)
        for score, source, collection, age in product((-1.0, 0.6, 0.7, 1.5), ("x", "q"), ("x", "y", "q"), (None, 0, 31, 90.5))
    ]
    yield from ([document] for document in documents)
    yield from ([one, other] for one, other in pairwise(documents))
    good = RetrievedDocument(relevance_score=2.0, source="q", collection="x", age_days=0)
    yield from ([good] * count for count in range(2, 5))
    batch = BatchId("b")
    first = RetrievedDocument(relevance_score=2.0, source="q", collection="x", age_days=0, batch=batch)
    yield [first, BatchClosed(batch=batch), good, LlmCall(), good, good, good, first]


def strongest_so_far(witness: Witness, policy: str) -> list[int]:
    return [witness.strongest(policy, until=call).rank for call in range(1, len(witness.calls) + 2)]


def assert_holds(finding: PolicyFinding, policies: Sequence[Policy]) -> None:
    """Look for a run on the grid that contradicts a finding."""
    named = [next(each for each in policies if each.body.name == name) for name in finding.policies]
    facts = finding.witnesses[0].facts
    for calls in grid(named[0].body.category):
        if finding.assumes and any(isinstance(call, RetrievedDocument) and not 0 <= call.relevance_score <= 1 for call in calls):
            continue
        witness = execute(named, facts, calls)
        match finding.kind:
            case FindingKind.REDUNDANT:
                other, stricter = finding.policies
                pairs = zip(strongest_so_far(witness, stricter), strongest_so_far(witness, other), strict=True)
                assert all(high >= low for high, low in pairs), calls
            case FindingKind.CONTRADICTION | FindingKind.BLOCKS_EVERYTHING:
                assert witness.is_stopped or not calls, calls
            case FindingKind.NEVER_DECIDES:
                other = finding.policies[0]
                assert not any(each.is_decisive and (each.policy, each.rule) == (other, finding.rules[0]) for each in witness.violations)
            case FindingKind.SCOPE_NEVER_MATCHES:
                assert () == witness.policies
            case _:
                return


def assert_all_hold(policies: list[Policy]) -> None:
    analysis = analyze(policies)

    assert () == analysis.undecided
    for finding in analysis.findings:
        assert finding.witnesses
        assert all(reproduces(witness, [each for each in policies if each.body.name in finding.policies]) for witness in finding.witnesses)
        assert_holds(finding, policies)


@settings(max_examples=60)
@given(policy_lists("retrieval", RETRIEVAL, SCOPES))
def test_no_run_contradicts_a_finding_about_retrieval(policies: list[Policy]) -> None:
    assert_all_hold(policies)


@settings(max_examples=60)
@given(policy_lists("grounding", GROUNDING, st.just({})))
def test_no_run_contradicts_a_finding_about_grounding(policies: list[Policy]) -> None:
    assert_all_hold(policies)


@given(SCOPES, SCOPES)
def test_scopes_are_compared_as_trying_all_names_would(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = (check_policy({"name": "p", "category": "retrieval", "scope": scope}) for scope in (first, second))
    tried = [facts_of(agent, user) for agent in ("a", "b", "ab", "x", "abb", "q1") for user in ("", "u", "v", "vv", "w")]
    common = shared_facts(one, other)

    if common is None:
        assert not any(in_scope(one, facts) and in_scope(other, facts) for facts in tried)
    else:
        assert in_scope(one, common)
        assert in_scope(other, common)
    if covers(one, other):
        assert all(in_scope(one, facts) for facts in tried if in_scope(other, facts))


def facts_of(agent: str, user: str) -> RunFacts:
    from evidentia.contracts.runs import RunFacts, RunId

    return RunFacts(run_id=RunId("r"), agent_name=agent, user_id=user)


def test_the_grid_can_contradict() -> None:
    """The laws above would fail for a wrong claim: a laxer policy is shown to be one."""
    lax, strict = (
        check_policy({"name": name, "category": "retrieval", "rules": {"min_relevance_score": score}})
        for name, score in (("lax", 0.5), ("strict", 0.7))
    )
    witnesses = [execute([lax, strict], facts_of("a", ""), calls) for calls in grid("retrieval")]

    assert any(PolicyAction.ALLOW is witness.strongest("lax") and PolicyAction.WARN is witness.strongest("strict") for witness in witnesses)
