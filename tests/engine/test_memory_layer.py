"""Notes that agents write for themselves: found again by the same principal, agent and session, and by nobody else, ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evidentia.base.async_base import AsyncBase
from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.vocabulary import AuthorityTier, Classification, CoverageState
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.testing.documents import make_document
from evidentia.testing.virtual_time import VirtualClock
from evidentia.wiring import embedded as wiring
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from evidentia.base.answers import EvidenceResponse

NOTE = "The signing keys were rotated by hand on Monday."
QUESTION = "when were the signing keys rotated?"
TRIES = 50
ANN = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL)
BOB = Principal(principal_id=PrincipalId("bob"), clearance=Classification.RESTRICTED)
OTHER_ANN = Principal(principal_id=PrincipalId("ann"), tenant=TenantId("other"), clearance=Classification.RESTRICTED)


class Agents:
    """One base as several principals use it, with a clock that is set."""

    def __init__(self, directory: Path) -> None:
        self.clock = VirtualClock()
        entropy = RepeatableEntropy()
        wiring.create(directory, clock=self.clock, entropy=entropy)
        (directory / SETTINGS_NAME).write_text('[embedding]\nencoder = "none"\n', encoding="utf-8")
        self.parts = wiring.open_parts(directory, clock=self.clock, entropy=entropy)
        self.owner, self.ann, self.bob, self.other_ann = (
            AsyncBase(self.parts.components(), principal=principal) for principal in (local_owner(), ANN, BOB, OTHER_ANN)
        )

    async def ask(self, base: AsyncBase, *, agent: str = "ops", session: str | None = "s1", **fields: object) -> EvidenceResponse:
        """Ask until the notes were looked at: a busy machine may take longer than they are waited for."""
        for _ in range(TRIES):
            response = await base.retrieve(QUESTION, agent_name=agent, session_context=session, mode="lexical", **fields)
            if all(report.state not in (CoverageState.TIMED_OUT, CoverageState.STALE) for report in response.source_coverage.values()):
                return response
        raise AssertionError

    async def finds(self, base: AsyncBase, *, agent: str = "ops", session: str | None = "s1", **fields: object) -> list[str]:
        """Return what is found."""
        return [fragment.content for fragment in (await self.ask(base, agent=agent, session=session, **fields)).fragments]


def with_agents(directory: Path, story: Callable[[Agents], Awaitable[None]]) -> None:
    """Tell a story and close the base."""

    async def run() -> None:
        agents = Agents(directory)
        try:
            await story(agents)
        finally:
            await agents.owner.close()

    asyncio.run(run())


def test_a_note_is_found_by_who_wrote_it_in_the_same_session(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        note = await agents.ann.remember(NOTE, agent="ops", session="s1")
        response = await agents.ask(agents.ann)
        (fragment,) = response.fragments

        assert NOTE == fragment.content
        assert AuthorityTier.EPHEMERAL is fragment.authority_tier
        assert note.note_id in fragment.document_id
        assert (await agents.ann.verify(response)).ok
        assert response.receipt_id is not None
        assert (await agents.ann.replay(response.receipt_id)).is_same
        assert [note] == await agents.ann.notes(agent="ops", session="s1")

    with_agents(tmp_path / "base", story)


def test_a_note_is_found_by_nobody_else(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        note = await agents.ann.remember(NOTE, agent="ops", session="s1")
        # Everybody has notes, so that everybody may ask where they are kept.
        for base in (agents.owner, agents.bob, agents.other_ann):
            await base.remember("Something else.", agent="ops", session="s1")
        assert [NOTE] == await agents.finds(agents.ann)

        for base in (agents.owner, agents.bob, agents.other_ann):
            assert NOTE not in await agents.finds(base)
            assert NOTE not in [each.text for each in await base.notes()]
            assert 0 == await base.forget([note.note_id])
        assert [] == await agents.finds(agents.ann, agent="other")
        assert [] == await agents.finds(agents.ann, session="s2")
        assert [] == await agents.finds(agents.ann, session=None)
        assert [NOTE] == await agents.finds(agents.ann)

    with_agents(tmp_path / "base", story)


def test_a_note_without_a_session_is_found_in_every_session_of_its_agent(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        await agents.ann.remember(NOTE, agent="ops")

        assert [NOTE] == await agents.finds(agents.ann, session="s1")
        assert [NOTE] == await agents.finds(agents.ann, session="s2")
        assert [NOTE] == await agents.finds(agents.ann, session=None)
        assert [] == await agents.finds(agents.ann, agent="other", session=None)

    with_agents(tmp_path / "base", story)


def test_a_note_expires(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        await agents.ann.remember(NOTE, agent="ops", session="s1", ttl_s=60)
        agents.clock.jump(59)
        assert [NOTE] == await agents.finds(agents.ann)
        agents.clock.jump(2)

        assert [] == await agents.finds(agents.ann)
        assert [] == await agents.ann.notes()

    with_agents(tmp_path / "base", story)


def test_the_weight_of_a_note_is_that_of_its_tier(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        await agents.ann.remember(NOTE, agent="ops", session="s1")
        said = "The signing keys are rotated on Mondays, says Ann."
        await agents.ann.remember(said, agent="ops", session="s1", authority="user")
        tiers = {fragment.content: fragment.authority_tier for fragment in (await agents.ask(agents.ann)).fragments}
        demanding = {"minimum_authority": "user"}

        assert {NOTE: AuthorityTier.EPHEMERAL, said: AuthorityTier.USER} == tiers
        assert [said] == await agents.finds(agents.ann, source_policy=demanding)
        with pytest.raises(InvalidFieldError, match="authority"):
            await agents.ann.remember(NOTE, authority="canonical")

    with_agents(tmp_path / "base", story)


def test_what_was_forgotten_is_found_by_nothing_that_was_kept(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        note = await agents.ann.remember(NOTE, agent="ops", session="s1")
        await agents.ann.remember("Another note about signing keys.", agent="ops", session="s1")
        first, again = await agents.ask(agents.ann), await agents.ask(agents.ann)
        states = [each.source_coverage["memory"].state for each in (first, again)]  # type: ignore[index]  # a plain word will do
        removed = await agents.ann.forget([note.note_id])

        assert [CoverageState.SEARCHED, CoverageState.CACHED] == states
        assert first.result_hash == again.result_hash
        assert 1 == removed
        assert ["Another note about signing keys."] == await agents.finds(agents.ann)
        assert ["Another note about signing keys."] == await agents.finds(agents.ann)
        assert NOTE not in [each.text for each in await agents.ann.notes()]

    with_agents(tmp_path / "base", story)


def test_notes_stand_beside_the_documents_of_the_base(tmp_path: Path) -> None:
    async def story(agents: Agents) -> None:
        text = "Signing keys are rotated every 90 days."
        writer = agents.parts.writer()
        writer.commit(ChangeSet(documents=(make_document("keys", text),)))
        writer.close()
        await agents.ann.remember(NOTE, agent="ops", session="s1")

        assert {NOTE, text} == set(await agents.finds(agents.ann))
        assert [text] == await agents.finds(agents.bob)

    with_agents(tmp_path / "base", story)
