"""Who may ask a source and who may see what it says, written a second time in the plainest Python; and sources to try it on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from engine.access_oracle import LEVELS
from engine.random_worlds import ENTRIES
from evidentia.contracts.access import AccessRule
from evidentia.contracts.ids import TenantId
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.sources import SourceAccessPolicy
from evidentia.contracts.vocabulary import Classification, ContentType
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from random import Random

    from evidentia.contracts.access import Principal
    from evidentia.contracts.retrieval import SourceAsk

TENANTS = ("default", "default", "other")
LINES = (
    "The gate timeout is 30 seconds.",
    "The gate timeout is 60 seconds.",
    "The crane limit is 40 tonnes.",
    "The crane limit is 50 tonnes. Cargo waits at the dock.",
    "harbour crane pier",
    "harbour gate tide",
    "the pier of the harbour is closed",
    "cargo cargo dock",
)


def may_ask_source(policy: SourceAccessPolicy, caller: Principal, *, acl_scope: Sequence[str] | None = None) -> bool:
    """Tell whether a caller may ask a source; lists that are empty ask nothing, and the owner stands in every list."""
    if caller.tenant not in policy.tenants or LEVELS.index(policy.minimum_clearance) > LEVELS.index(caller.clearance):
        return False
    listed = [
        *(f"role:{each}" for each in policy.roles),
        *(f"group:{each}" for each in policy.groups),
        *(f"user:{each}" for each in policy.principals),
    ]
    if listed and not _stands_in(listed, caller, acl_scope):
        return False
    return caller.is_owner or not policy.predicate or caller.attributes.get("team") == "ops"


def may_see_candidate(
    candidate: Candidate, policy: SourceAccessPolicy, caller: Principal, *, acl_scope: Sequence[str] | None = None
) -> bool:
    """Tell whether a caller may see what a source that it may ask proposes."""
    if candidate.access is None:
        return LEVELS.index(policy.minimum_clearance) <= LEVELS.index(caller.clearance)
    rule = candidate.access
    if rule.tenant != caller.tenant or LEVELS.index(rule.classification) > LEVELS.index(caller.clearance):
        return False
    return not rule.acl or _stands_in(rule.acl, caller, acl_scope)


def make_policy(rng: Random) -> SourceAccessPolicy:
    """Return who may ask a source; two in five are open to a tenant."""
    if rng.random() < 0.4:
        return SourceAccessPolicy(tenants=(rng.choice(TENANTS),))
    return SourceAccessPolicy(
        tenants=tuple(sorted(set(rng.sample(TENANTS, rng.randint(1, 2))))),
        roles=tuple(rng.sample(("auditor", "pilot"), rng.choice((0, 0, 1)))),
        groups=tuple(rng.sample(("ops", "legal"), rng.choice((0, 0, 1)))),
        principals=tuple(rng.sample(("ann", "bob"), rng.choice((0, 0, 1)))),
        minimum_clearance=rng.choice((Classification.PUBLIC, Classification.PUBLIC, Classification.INTERNAL, Classification.CONFIDENTIAL)),
        predicate=rng.choice(("", "", 'team = "ops"')),
    )


def make_candidates(rng: Random, name: str, *, count: int) -> list[Candidate]:
    """Return what a source proposes, in its order; many of them are for some callers only, and texts repeat."""
    is_scored = rng.random() < 0.5
    return [
        Candidate(
            content=rng.choice(LINES),
            own_id=f"{place}",
            origin=f"test://{name}/{place}" if rng.random() < 0.9 else "",
            score=rng.choice((0.1, 0.5, 0.5, 0.9)) if is_scored else None,
            updated_at=rng.choice((None, START - timedelta(days=rng.randint(1, 400)))),
            confidence=rng.choice((None, 0.2, 0.9)),
            content_type=rng.choice((ContentType.DOCUMENTATION, ContentType.RUNBOOK)),
            access=make_rule(rng),
        )
        for place in range(count)
    ]


def make_rule(rng: Random) -> AccessRule | None:
    """Return who may see a candidate; None leaves it to the source."""
    if rng.random() < 0.35:
        return None
    return AccessRule(
        tenant=TenantId(rng.choice(("default", "default", "default", "other"))),
        classification=rng.choice((*Classification, Classification.PUBLIC, Classification.PUBLIC)),
        acl=tuple(sorted(rng.sample(ENTRIES, rng.choice((0, 0, 1, 2))))),
    )


class RuledSource:
    """Implements `Retriever`: what it proposes has rules of its own. With `is_discreet` it proposes only what the asker may see.

    `acl_scope` is what the present request keeps of the caller's rights, which sources are not told. After each proposal it pauses.
    """

    def __init__(
        self, policy: SourceAccessPolicy, candidates: Sequence[Candidate], *, is_discreet: bool = False, pause_ms: float = 0
    ) -> None:
        self.acl_scope: Sequence[str] | None = None
        self.calls = 0
        self.hidden = 0
        self._policy = policy
        self._candidates = list(candidates)
        self._is_discreet = is_discreet
        self._pause_s = pause_ms / 1_000

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield what it has for whoever asks; what it holds back takes no time."""
        self.calls += 1
        for candidate in self._candidates:
            is_seen = may_see_candidate(candidate, self._policy, asked.principal, acl_scope=self.acl_scope)
            self.hidden += not is_seen
            if is_seen:
                await asyncio.sleep(self._pause_s)
            if is_seen or not self._is_discreet:
                yield candidate


def _stands_in(listed: Sequence[str], caller: Principal, acl_scope: Sequence[str] | None) -> bool:
    kept = [entry for entry in listed if acl_scope is None or entry in acl_scope]
    if caller.is_owner:
        return bool(kept)
    held = {f"user:{caller.principal_id}", *(f"role:{each}" for each in caller.roles), *(f"group:{each}" for each in caller.groups)}
    return any(entry in held for entry in kept)
