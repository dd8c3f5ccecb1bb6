"""Policies over answers: what they say of a fragment is flagged, withheld or fatal, written down, and the same again on replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import Principal, connect
from evidentia.contracts.errors import NotAllowedError, PolicyInvalidError, PolicyViolationError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RunId
from evidentia.governance import decision_queries
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base

ANY_SCORE = {"min_relevance_score": 0.0}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a base with a handbook and an archive, dated long ago and not at all."""
    (tmp_path / "handbook").mkdir()
    (tmp_path / "archive").mkdir()
    (tmp_path / "handbook" / "keys.md").write_text("Signing keys rotate every month.\n")
    (tmp_path / "archive" / "old.md").write_text("---\nupdated_at: 2020-01-01\n---\nSigning keys rotated every year.\n")
    with connect(tmp_path / "base", init=True) as opened:
        opened.ingest([tmp_path / "handbook"], source="handbook", embed=False)
        opened.ingest([tmp_path / "archive"], source="archive", embed=False)
        yield opened


def policy(**rules: object) -> dict[str, object]:
    return {"name": "Guard", "category": "retrieval", "rules": {**ANY_SCORE, **rules}}


def asked(base: Base, governance: str = "annotate", **fields: object) -> dict[str, tuple[str, ...]]:
    """Return what policies said of each fragment, by its source; the answer verifies and can be made again."""
    request = {"mode": "lexical", "as_of": "2026-01-01T00:00:00Z", "governance": governance, "latency_deadline_ms": 20_000}
    answer = base.retrieve("signing keys", **{**request, **fields})
    assert base.verify(answer).ok
    assert answer.receipt_id is not None
    assert base.replay(answer.receipt_id).is_same
    return {fragment.source_id: tuple(flag for flag in fragment.flags if flag.startswith("policy")) for fragment in answer.fragments}


def test_without_policies_nothing_is_said_and_no_file_is_made(base: Base) -> None:
    assert {"handbook": (), "archive": ()} == asked(base, "enforce")
    assert not (base.path / "governance.db").exists()
    assert not (base.path / "decisions").exists()


def test_a_stale_fragment_is_flagged_withheld_or_fatal_as_the_mode_says(base: Base) -> None:
    base.add_policy(policy(max_source_age_days=90))

    assert {"handbook": (), "archive": ("policy_block",)} == asked(base, "annotate")
    assert {"handbook": ()} == asked(base, "filter")
    assert {"handbook": (), "archive": ()} == asked(base, "off")
    with pytest.raises(PolicyViolationError, match=r"Source age \(2192 days\) exceeds max \(90 days\)") as raised:
        asked(base, "enforce")
    assert ("Guard", "max_source_age_days", PolicyAction.BLOCK) == (
        raised.value.decision.policy_name,
        raised.value.decision.rule,
        raised.value.decision.action,
    )
    assert raised.value.decision == raised.value.decisions[0]


def test_the_error_of_an_answer_carries_every_decision_that_stopped_it(base: Base) -> None:
    base.add_policy(policy(blocked_sources=["archive:old.md", "handbook:keys.md"]))
    with pytest.raises(PolicyViolationError) as raised:
        base.retrieve("signing keys", mode="lexical", governance="enforce")

    assert {"archive:old.md", "handbook:keys.md"} == {each.metadata["blocked_source"] for each in raised.value.decisions}


def test_what_is_withheld_is_declared_with_the_policy_and_its_reason(base: Base) -> None:
    base.add_policy(policy(allowed_collections=["handbook"]))
    answer = base.retrieve("signing keys", mode="lexical", governance="filter")

    assert ["policy 'Guard': Collection 'archive' not in allowed list"] == [each.reason for each in answer.withheld]
    assert [("archive", "block", "allowed_collections")] == [
        (remark.chunk_id.partition(":")[0], remark.action.value, remark.rule) for remark in answer.governance
    ]
    assert 64 == len(answer.policies)


def test_an_answer_with_too_little_says_so_and_one_source_that_dominates_too(base: Base) -> None:
    base.add_policy(policy(min_chunks=5, max_source_age_days=99_999, require_source_diversity=True, max_single_source_ratio=0.4))
    answer = base.retrieve("signing keys", mode="lexical")

    assert ["policy 'Guard': Retrieved chunks (2) below minimum (5)"] == [each for each in answer.degraded if "minimum" in each]
    assert any("dominates at 50% (max 40%)" in each for each in answer.degraded)


def test_policies_are_for_the_agents_and_tenants_they_name(base: Base) -> None:
    base.add_policy({**policy(blocked_sources=["archive:old.md"]), "scope": {"agents": ["rag-*"]}})

    assert {"handbook": (), "archive": ()} == asked(base, "filter")
    assert {"handbook": (), "archive": ()} == asked(base, "filter", agent_name="other")
    assert {"handbook": ()} == asked(base, "filter", agent_name="rag-agent")


def test_an_old_answer_is_replayed_under_the_policies_of_its_time(base: Base) -> None:
    base.add_policy(policy(blocked_sources=["archive:old.md"]))
    answer = base.retrieve("signing keys", mode="lexical", governance="filter")
    base.remove_policy("Guard")

    assert base.replay(answer.receipt_id or "").is_same
    assert 2 == len(base.retrieve("signing keys", mode="lexical", governance="filter").fragments)


def test_another_policy_is_another_answer_even_where_it_says_the_same(base: Base) -> None:
    as_of = "2026-01-01T00:00:00Z"
    without = base.retrieve("signing keys", mode="lexical", as_of=as_of)
    base.add_policy(policy(max_source_age_days=99_999))
    under = base.retrieve("signing keys", mode="lexical", as_of=as_of)

    assert [fragment.chunk_id for fragment in without.fragments] == [fragment.chunk_id for fragment in under.fragments]
    assert without.result_hash != under.result_hash


def test_every_governed_answer_is_a_run_of_the_decision_log(base: Base) -> None:
    base.add_policy(policy(max_source_age_days=90))
    annotated = base.retrieve("signing keys", mode="lexical", agent_name="reader")
    with pytest.raises(PolicyViolationError):
        base.retrieve("signing keys", mode="lexical", governance="enforce")
    governor = base.governor()
    assert isinstance(governor, GovernanceRuntime)
    log = governor.log
    log.flush()
    runs = decision_queries.runs(log)
    trace = decision_queries.trace(log, RunId(annotated.request_id))

    assert [(str(annotated.request_id), "success")] == [(str(run.facts.run_id), run.status.value) for run in runs if run.facts.agent_name]
    assert ["blocked"] == [run.status.value for run in runs if not run.facts.agent_name]
    assert {"archive:old.md", "handbook:keys.md"} == {str(span.attributes["source"]) for span in trace.spans if span.kind == "document"}


def test_only_the_owner_changes_policies_and_a_bad_one_is_refused_by_field(base: Base, tmp_path: Path) -> None:
    with pytest.raises(PolicyInvalidError, match=r"rules\.max_chunk.*max_chunks"):
        base.add_policy(policy(max_chunk=3))
    with connect(tmp_path / "base", principal=Principal(principal_id=PrincipalId("ada"))) as other, pytest.raises(NotAllowedError):
        other.add_policy(policy())
    assert [] == base.policies()
