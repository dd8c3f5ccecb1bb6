"""The policy enforcement point: what a base hands out passes the policies here, at least as strictly as the governance floor says.

Answers of the engine are governed there, at the mode that is settled here. Whatever else an operation hands out is screened by the
operation's entry in `SCREENS`; one that is declared to hand out content and has no entry cannot be imported.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from evidentia.base import visible_content
from evidentia.base.administration import MEMORY_SOURCES
from evidentia.contracts.errors import BelowFloorError, PolicyViolationError
from evidentia.contracts.ids import ChunkId, DocumentId, SourceId, document_of
from evidentia.contracts.operations import OPERATIONS, Operation
from evidentia.contracts.policies import Posture
from evidentia.contracts.runs import BatchId, CheckBypassed, RetrievedDocument, RunEnded, RunFacts, RunId, RunStatus, StepCall
from evidentia.contracts.vocabulary import GovernanceMode
from evidentia.engine.answer_governance import about_documents, about_one_document, facts_of, is_worth_saying
from evidentia.engine.result_hashes import sealed
from evidentia.policy.evaluator import RunEvaluator
from evidentia.policy.floor import FLOOR, Standing, refused_by

if TYPE_CHECKING:
    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.documents import VersionDiff
    from evidentia.contracts.doors import ReceiptView
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest
    from evidentia.contracts.receipts import ReplayReport
    from evidentia.contracts.retrieval import SourceTrial
    from evidentia.contracts.runs import AnyCall
    from evidentia.contracts.sources import Note
    from evidentia.contracts.tables import OpenTable, TableAnswer, TableCard
    from evidentia.policy.evaluator import PolicySet
    from evidentia.wiring.components import BaseComponents

    Item = TypeVar("Item")
    Guarded = TypeVar("Guarded")
    Arguments = Mapping[str, Any]  # Any: whatever the method takes

_RUN_ID_BYTES: Final = 8
_PASSES: Final = 1.0
"""The relevance of what was not ranked: rules about relevance are for what has a score."""
_MAX_TOLD: Final = 100
"""So many documents of one page are written down one by one; of more, how many there were."""
_DAY: Final = timedelta(days=1)
_CLOCK_SKEW: Final = timedelta(minutes=1)
"""An `as_of` that is no further back is the present moment of another clock."""


_counted: Final[ContextVar[Counter[str] | None]] = ContextVar("evidentia_screened", default=None)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Give how many things are `withheld`, and how many are handed out `flagged`, by what is screened meanwhile, on any thread of it."""
    counted: Counter[str] = Counter()
    token = _counted.set(counted)
    try:
        yield counted
    finally:
        _counted.reset(token)


class Admitted(NamedTuple):
    """A request as it is answered, and what the answer says of that."""

    request: EvidenceRequest
    remarks: tuple[str, ...] = ()


class Handed(NamedTuple):
    """One thing that is handed out, as policies are asked about it."""

    document_id: str
    source_id: str
    updated_at: datetime | None = None
    score: float = _PASSES
    chunk_id: str = ""


class EnforcementPoint:
    """Where one caller's requests and answers pass. Thread safe; it blocks where something is written to the decision log."""

    def __init__(self, parts: BaseComponents, principal: Principal, standing: Standing, *, names_mode: bool = False) -> None:
        self.parts = parts
        self.principal = principal
        self.standing = standing
        self._names_mode = names_mode
        """Whether the request itself says how it wants to be governed; one that does not asks for nothing."""
        self.is_free = standing.is_free

    def passes(self, request: EvidenceRequest) -> bool:
        """Tell whether there is surely nothing to settle about a request; False is no answer."""
        return self.is_free and request.governance is not GovernanceMode.OFF and isinstance(request.governance, GovernanceMode)

    def admit(self, request: EvidenceRequest, *, is_named: bool = False) -> Admitted:
        """Return a request at the floor at least, as an agent that the caller may be; whatever it asked for less is recorded.

        1. An agent's name that belongs to somebody else is refused; one that is left out is filled in.
        2. A mode below the floor is raised to it. `off` above the floor is a bypass where policies are in scope.
        3. Under a floor the age of documents is reckoned from now, and what policies withhold does not show in facets.
        """
        agent = self.agent(request.agent_name or "", field="agent_name", operation="retrieve")
        if agent != (request.agent_name or ""):
            request = msgspec.structs.replace(request, agent_name=agent)
        floor = self.standing.floor(agent)
        facts = facts_of(request, request.principal or self.principal)
        policies = self._in_scope(facts)
        used: list[tuple[str, Posture]] = []
        remarks: list[str] = []
        mode = _mode_of(request)
        if mode is not None and mode.rank < floor.rank:
            request = msgspec.structs.replace(request, governance=floor)
            if self._names_mode or is_named or mode is not GovernanceMode.ANNOTATE:
                remarks.append(f"governance: '{mode}' was asked for, and the floor here is '{floor}'")
                used.append((f"field 'governance': '{mode}' is below the floor '{floor}', to which it was raised", Posture.DEGRADE))
        elif mode is GovernanceMode.OFF and policies.policies:
            used.append((f"field 'governance': 'off' was used where the floor is '{floor}'", Posture.OPEN))
        if floor.rank and policies.policies and _is_past(request.as_of, now=self.parts.clock.now()):
            request = msgspec.structs.replace(request, as_of=None)
            remarks.append("governance: under a floor documents are as old as they are now, so 'as_of' was left out")
            used.append((f"field 'as_of': a past moment under the floor '{floor}', in whose place the present was taken", Posture.DEGRADE))
        if refused_by(floor) and policies.policies and request.facets:
            request = msgspec.structs.replace(request, facets=())
            remarks.append("governance: facets count what policies may withhold, so under this floor there are none")
        if used:
            self._record(facts, used)
        return Admitted(request, tuple(remarks))

    def agent(self, claimed: str, *, field: str, operation: str) -> str:
        """Return the name of the agent that asks; one that the caller may not have is refused and recorded."""
        try:
            return self.standing.agent(claimed, field=field)
        except BelowFloorError as error:
            self._record(self._facts(operation), [(str(error), Posture.CLOSED)])
            raise

    def screen(self, operation: str, answer: Guarded, arguments: Arguments) -> Guarded:
        """Return what an operation may hand out of its answer.

        Raises:
            PolicyViolationError: Policies stop what was asked for by name, or, under `enforce`, part of an answer.
        """
        facts = self._facts(operation)
        floor = self.standing.floor(facts.agent_name)
        screen = SCREENS[operation]
        if floor is GovernanceMode.OFF or screen is None:
            return answer
        policies = self._in_scope(facts)
        if not policies.policies:
            return answer
        screened: Guarded = screen(Screening(self, facts, policies, floor), answer, arguments)
        return screened

    def _facts(self, operation: str) -> RunFacts:
        """Return who is handed something, as scopes ask for it."""
        principal = self.principal
        return RunFacts(
            run_id=RunId(""),
            agent_name=self.standing.named(""),
            user_id=str(principal.principal_id),
            user_group=principal.groups[0] if principal.groups else "",
            tenant=str(principal.tenant),
            workflow_name=operation,
        )

    def _in_scope(self, facts: RunFacts) -> PolicySet:
        """Return the policies that would be about an answer; whichever operation hands something out, they are the same."""
        asked = msgspec.structs.replace(facts, workflow_name="retrieve")
        return about_documents(self.parts.governing.policies(facts.tenant).for_run(asked))

    def as_new(self, facts: RunFacts) -> RunFacts:
        """Return who asks, as a run of its own."""
        return msgspec.structs.replace(facts, run_id=RunId(self.parts.entropy.take(_RUN_ID_BYTES).hex()))

    def _record(self, facts: RunFacts, used: Sequence[tuple[str, Posture]]) -> None:
        """Write down that the floor was tried, or that something was used which only its absence allows."""
        calls: list[tuple[AnyCall, tuple[Verdict, ...], int]] = [
            (CheckBypassed(what=FLOOR, problem=problem, posture=posture), (), 0) for problem, posture in used
        ]
        calls.append((RunEnded(status=_ends(is_refused=any(posture is Posture.CLOSED for _, posture in used))), (), 0))
        self.parts.governing.log().write(self.as_new(facts), (), calls, is_enforced=True)


class Screening:
    """Asks the policies in scope about what one operation hands out, and writes down whatever they say beyond that it passes."""

    def __init__(self, point: EnforcementPoint, facts: RunFacts, policies: PolicySet, floor: GovernanceMode) -> None:
        self.point = point
        self.parts = point.parts
        self.floor = floor
        self._facts = facts
        self._policies = policies
        self._now = point.parts.clock.now()
        self._told: set[RetrievedDocument] = set()
        """What was written down already: one operation may look at a document twice."""

    def kept(self, items: Sequence[Item], handed: Callable[[Item], Handed], *, least: int = 0) -> list[Item]:
        """Return the items that no policy stops; where fewer than `least` are left, nothing is handed out."""
        is_enforced = self.floor is not GovernanceMode.ANNOTATE
        single = about_one_document(self._policies)
        said: dict[RetrievedDocument, tuple[Verdict, ...]] = {}
        kept: list[Item] = []
        for item in items:
            document = self._recorded(handed(item))
            if document not in said:
                said[document] = RunEvaluator(single, is_enforced=is_enforced).record(document)
            if not any(verdict.stops for verdict in said[document]):
                kept.append(item)
        is_refused = len(kept) < min(least, len(items))
        flagged = {each for each in said if any(map(is_worth_saying, said[each]))}
        told = [each for each in said if each in flagged and (is_refused or each not in self._told)]
        self._told.update(told)
        if (counted := _counted.get()) is not None:
            counted["withheld"] += len(items) - len(kept)
            counted["flagged"] += sum(not any(verdict.stops for verdict in said[each]) for each in told)
        if told:
            told.sort(key=lambda each: not any(verdict.stops for verdict in said[each]))  # what is stopped is told before what is flagged
            more, told = len(told[_MAX_TOLD:]), told[:_MAX_TOLD]
            # As a run of its own, so that it can be decided again from the log.
            evaluator, end = RunEvaluator(single, is_enforced=is_enforced), RunEnded(status=_ends(is_refused=is_refused))
            calls: list[tuple[AnyCall, tuple[Verdict, ...], int]] = [(each, evaluator.record(each), evaluator.count) for each in told]
            if more:
                step = StepCall(name="screened", attributes={"more": more})
                calls.append((step, evaluator.record(step), evaluator.count))
            calls.append((end, evaluator.finish(end), evaluator.count))
            decisions = self.parts.governing.log().write(self.point.as_new(self._facts), single.policies, calls, is_enforced=is_enforced)
            if is_refused:
                decision = next(each for each in decisions if each.action.stops and each.is_enforced)
                raise PolicyViolationError(decision.reason, decision)
        return kept

    def answer(self, items: Sequence[Item], handed: Callable[[Item], Handed]) -> list[Item]:
        """Return what is left of an answer; under `enforce` all of it, or nothing."""
        return self.kept(items, handed, least=len(items) if self.floor is GovernanceMode.ENFORCE else 0)

    def require(self, handed: Iterable[Handed], *, least: int | None = None) -> None:
        """Refuse the whole when policies stop any of it, or leave fewer than `least`."""
        named = list(handed)
        self.kept(named, lambda each: each, least=len(named) if least is None else least)

    def documents(self, document_ids: Iterable[str]) -> dict[str, Handed]:
        """Return documents as policies are asked about them, by id; one that is not live has no date."""
        named = [DocumentId(each) for each in dict.fromkeys(document_ids)]
        known = self.parts.reader.metadata_of(named)
        return {
            each: Handed(each, known[each].source_id, known[each].updated_at) if each in known else Handed(each, each.partition(":")[0])
            for each in named
        }

    def chunk(self, chunk_id: str) -> Handed:
        """Return a chunk as policies are asked about it, whichever version it is of."""
        stored = self.parts.reader.chunk(ChunkId(chunk_id))
        if stored is None:
            return next(iter(self.documents([document_of(ChunkId(chunk_id))]).values()))._replace(chunk_id=chunk_id)
        return Handed(stored.document_id, stored.source_id, stored.metadata.updated_at, chunk_id=chunk_id)

    def _recorded(self, handed: Handed) -> RetrievedDocument:
        return RetrievedDocument(
            relevance_score=handed.score,
            source=handed.document_id,
            collection=handed.source_id,
            age_days=_age_days(handed.updated_at, now=self._now),
            batch=BatchId(self._facts.workflow_name),
            chunk_id=handed.chunk_id,
        )


Screen = Callable[[Screening, Any, "Arguments"], Any]  # Any: the answer of the method that it is for


def governed(cls: type[Guarded]) -> type[Guarded]:
    """Have every method of a base that hands out content by a declared operation screen what it returns."""
    screened = [each for each in OPERATIONS if each.hands_out_content and SCREENS[each.name] is not None and each.base_method]
    for method, operation in {each.base_method: each for each in reversed(screened)}.items():
        setattr(cls, method, _screened(operation, getattr(cls, method)))
    return cls


def _screened(operation: Operation, method: Callable[..., Any]) -> Callable[..., Any]:  # Any: as the method has it
    signature = inspect.signature(method)

    @wraps(method)
    async def screened(self: Any, *args: object, **keywords: object) -> object:  # noqa: ANN401 - a base
        answer = await method(self, *args, **keywords)
        point: EnforcementPoint = self._point
        if point.is_free:
            return answer
        bound = signature.bind(self, *args, **keywords)
        bound.apply_defaults()
        return await asyncio.to_thread(point.screen, operation.name, answer, bound.arguments)

    return screened


# --- what each operation hands out ---
# A listing leaves out what policies stop; what is asked for by name is refused; an answer that is made of several things leaves out what
# they stop under `filter`, and is refused under `enforce`.


def _documents(screening: Screening, found: list[tuple[DocumentId, AccessRule, int]], arguments: Arguments) -> object:
    """Screen a page of documents, and go on after it until the page is as long as it was asked for, or there are no more."""
    limit, kept = arguments["limit"], []
    while found:
        handed = screening.documents(each[0] for each in found)
        kept += screening.kept(found, lambda each, handed=handed: handed[each[0]])  # type: ignore[misc]  # bound for this page
        if limit is None or len(kept) >= limit or len(found) < limit:
            break
        found = visible_content.documents(screening.parts, screening.point.principal, after=found[-1][0], limit=limit)
    return kept[:limit]


def _cards(screening: Screening, found: list[TableCard], _: Arguments) -> object:
    handed = screening.documents(each.document_id for each in found)
    return screening.kept(found, lambda each: handed[each.document_id])


def _notes(screening: Screening, found: list[Note], _: Arguments) -> object:
    return screening.kept(found, _noted)


def _noted(note: Note) -> Handed:
    source = MEMORY_SOURCES.get(note.authority_tier, SourceId("memory"))
    return Handed(f"{source}:{note.note_id}", source, note.written_at)


def _receipt(screening: Screening, view: ReceiptView, _: Arguments) -> object:
    kept = screening.kept(view.fragments, screening.chunk)
    return msgspec.structs.replace(view, fragments=tuple(kept))


def _diff(screening: Screening, diff: VersionDiff, _: Arguments) -> object:
    lists = {name: getattr(diff, name) for name in ("added", "removed", "changed", "metadata_changed", "access_changed")}
    handed = screening.documents(each.document_id for changes in lists.values() for each in changes.documents)
    kept = {each.document_id for each in screening.kept(list(handed.values()), lambda each: each)}
    cut = {
        name: msgspec.structs.replace(changes, documents=tuple(each for each in changes.documents if each.document_id in kept))
        for name, changes in lists.items()
    }
    return msgspec.structs.replace(diff, **cut)


def _named_chunks(screening: Screening, found: Sequence[Any], _: Arguments) -> object:  # Any: a stored chunk
    screening.require([Handed(each.document_id, each.source_id, each.metadata.updated_at) for each in found])
    return found


def _named_table(screening: Screening, found: OpenTable, _: Arguments) -> object:
    screening.require(screening.documents([found.card.document_id]).values())
    return found


def _named_document(screening: Screening, found: object, arguments: Arguments) -> object:
    screening.require(screening.documents([arguments["document_id"]]).values())
    return found


def _named_chunk(screening: Screening, found: object, arguments: Arguments) -> object:
    screening.require([screening.chunk(arguments["chunk_id"])])
    return found


def _named_target(screening: Screening, found: object, arguments: Arguments) -> object:
    """Screen what is verified by its id; an answer or an export that is brought along holds what its bearer has, and no more."""
    target = arguments["target"]
    if isinstance(target, str):
        is_chunk = screening.parts.reader.chunk(ChunkId(target)) is not None
        screening.require([screening.chunk(target)] if is_chunk else screening.documents([target]).values())
    return found


def _named_image(screening: Screening, found: object, arguments: Arguments) -> object:
    """Screen an image: one document that may be handed out is enough, since it shows it."""
    scope = visible_content.scope_of(screening.parts, screening.point.principal)
    screening.require(screening.documents(screening.parts.layouts().showing(arguments["image_hash"], scope)).values(), least=1)
    return found


def _trial(screening: Screening, trial: SourceTrial, _: Arguments) -> object:
    kept = screening.answer(
        trial.candidates, lambda each: Handed(each.document_id, each.source_id, each.updated_at, chunk_id=each.chunk_id)
    )
    return msgspec.structs.replace(trial, candidates=tuple(kept))


def _replay(screening: Screening, report: ReplayReport, _: Arguments) -> object:
    response = report.response
    kept = screening.answer(response.fragments, _of_fragment)
    is_whole = len(kept) == len(response.fragments) and not (response.conflicts or response.facets)
    if is_whole or not refused_by(screening.floor):
        return report
    given = {each.chunk_id for each in kept}
    conflicts = tuple(each for each in response.conflicts if given.issuperset((each.winner, *each.losers)))
    cut = sealed(msgspec.structs.replace(response, fragments=tuple(kept), conflicts=conflicts, facets={}))
    return msgspec.structs.replace(report, hidden=report.hidden + len(response.fragments) - len(kept), response=cut)


def _of_fragment(fragment: EvidenceFragment) -> Handed:
    score = fragment.confidence if fragment.is_rated else _PASSES
    return Handed(fragment.document_id, fragment.source_id, _date_of(fragment), score, fragment.chunk_id)


def _table_answer(screening: Screening, answer: TableAnswer, arguments: Arguments) -> object:
    """Screen an answer from tables: what it was made from, then what it was nearly made from.

    Where policies stop any of that and `enforce` does not refuse it, the question is asked again of the tables that they let pass.
    """
    planned = () if answer.plan is None else answer.plan.tables
    used = {*(each.document_id for each in answer.tables if each.table_id in planned), *(document_id for document_id, _ in answer.files)}
    screening.answer(list(screening.documents(sorted(used)).values()), lambda each: each)
    considered = list(screening.documents([each.document_id for each in answer.tables] + sorted(used)).values())
    if len(screening.kept(considered, lambda each: each)) == len(considered):
        return answer
    principal = screening.point.principal
    cards = screening.parts.layouts().cards(visible_content.scope_of(screening.parts, principal))
    every = screening.documents(each.document_id for each in cards)
    kept = {each.document_id for each in screening.kept(list(every.values()), lambda each: each)}
    question, limit = arguments["question"], arguments["limit"]
    return visible_content.ask_tables(screening.parts, principal, question, limit=limit, is_given=kept.__contains__)


SCREENS: Final[Mapping[str, Screen | None]] = {
    "retrieve": None,
    "retrieve_stream": None,
    "verify": _named_target,
    "export": _named_chunk,
    "show_receipt": _receipt,
    "replay": _replay,
    "why": _named_chunk,
    "list_tables": _cards,
    "open_table": _named_table,
    "ask_tables": _table_answer,
    "show_layout": _named_document,
    "show_image": _named_image,
    "list_notes": _notes,
    "list_documents": _documents,
    "list_chunks": _named_chunks,
    "test_source": _trial,
    "show_diff": _diff,
}
"""How the answer of each operation is screened; None where the engine governs it."""


def _ends(*, is_refused: bool) -> RunStatus:
    return RunStatus.BLOCKED if is_refused else RunStatus.SUCCESS


def _mode_of(request: EvidenceRequest) -> GovernanceMode | None:
    """Return the mode that a request asks for; None for a word that is none, which is refused where requests are checked."""
    try:
        return GovernanceMode(request.governance)
    except ValueError:
        return None


def _is_past(moment: object, *, now: datetime) -> bool:
    """Tell whether a moment lies so far back that documents would seem younger than they are; one without a zone is refused elsewhere."""
    if isinstance(moment, datetime):
        return moment.tzinfo is not None and now - moment > _CLOCK_SKEW
    return moment is not None


def _age_days(updated_at: datetime | None, *, now: datetime) -> int | None:
    return None if updated_at is None or updated_at.tzinfo is None else max(0, (now - updated_at) // _DAY)


def _date_of(fragment: EvidenceFragment) -> datetime | None:
    try:
        return datetime.fromisoformat(fragment.metadata.get("updated_at", ""))
    except ValueError:
        return None
