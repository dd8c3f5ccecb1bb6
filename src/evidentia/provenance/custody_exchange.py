"""What one base says, as candidates of another: its fragments in its order, each checked before it is proposed.

A fragment whose custody does not hold is not proposed; a candidate without content stands in its place and names the fault, so that the
intake can count it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.evidence import DecomposedQuery, EvidenceFragment, EvidenceRequest, EvidenceResponse
from evidentia.contracts.ids import chunk_id_of
from evidentia.contracts.provenance import FragmentExport
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import ContentType, CoverageState
from evidentia.provenance.custody_chain import chain_faults, logged_chain
from evidentia.provenance.verification import EXPORT_FORMAT, UNREADABLE, fragment_faults

if TYPE_CHECKING:
    from collections.abc import Iterator


FAULT_KEY: Final = "evidentia.fault"
"""Metadata of the candidate that stands for a fragment with broken custody."""
BROKEN_CUSTODY: Final = "broken_custody"

_UNFINISHED: Final = (CoverageState.TIMED_OUT, CoverageState.FAILED, CoverageState.BREAKER_OPEN)
_MAX_LIMIT: Final = 10_000
_MAX_DEADLINE_MS: Final = 2**32 - 1


def request_of(ask: SourceAsk, *, asks_others: bool = False) -> EvidenceRequest:
    """Return what another base is asked: the same question of the same caller, with the time that is left.

    Unless `asks_others`, it answers with what it holds itself: two bases that name each other would otherwise ask on until the time is up.
    """
    return EvidenceRequest(
        query=DecomposedQuery(text=ask.query.text),
        principal=ask.principal,
        limit=min(max(1, ask.limit), _MAX_LIMIT),
        latency_deadline_ms=min(max(1, ask.budget_ms), _MAX_DEADLINE_MS),
        as_of=ask.as_of,
        agent_name=ask.agent_name or None,
        session_context=ask.session,
        time_window=ask.time_window,
        source_policy=SourcePolicy() if asks_others else SourcePolicy(most_sources=0),
    )


def candidates_of(response: EvidenceResponse, *, principal: Principal) -> Iterator[Candidate]:
    """Yield the fragments of an answer as candidates, in its order, which their scores repeat.

    The other base does not say who else may see a fragment, so it is for the one alone who asked.
    """
    access = AccessRule(tenant=principal.tenant, classification=principal.clearance, acl=(f"user:{principal.principal_id}",))
    count = len(response.fragments)
    for place, fragment in enumerate(response.fragments):
        if _is_broken(fragment, response):
            yield Candidate(content="", metadata={FAULT_KEY: BROKEN_CUSTODY})
        else:
            yield _candidate(fragment, response, score=(count - place) / count, access=access)


def unfinished(response: EvidenceResponse) -> str:
    """Return in words what another base did not look into, so that nobody takes what it found for all there is; empty when it did."""
    missing = sorted(source for source, report in response.source_coverage.items() if report.state in _UNFINISHED)
    return f"the other base did not look into all it has: {len(missing)} of its sources gave no answer in time" if missing else ""


def origin_of(fragment: EvidenceFragment, response: EvidenceResponse) -> str:
    """Return where a fragment can be found: the base, the chunk, and the version of the corpus that held it."""
    return f"evidentia:{response.commit.base_id}/{fragment.chunk_id}?corpus_version={response.corpus_version}"


def _candidate(fragment: EvidenceFragment, response: EvidenceResponse, *, score: float, access: AccessRule) -> Candidate:
    said = fragment.metadata
    metadata = {
        "upstream_authority": fragment.authority_tier.value,
        "upstream_custody_head": logged_chain(fragment.provenance_chain)[-1].hash,
        "upstream_receipt": response.receipt_id or "",
        "upstream_result_hash": response.result_hash,
        "upstream_source": fragment.source_id,
    }
    return Candidate(
        content=fragment.content + fragment.cut_off,
        own_id=fragment.chunk_id,
        score=score,
        origin=origin_of(fragment, response),
        title=said.get("title", ""),
        updated_at=_moment(said.get("updated_at", "")),
        media_type=said.get("media_type", "text/plain"),
        content_type=_content_type(said.get("content_type", "")),
        confidence=fragment.confidence,
        access=access,
        metadata={name: value for name, value in metadata.items() if value},
    )


def _is_broken(fragment: EvidenceFragment, response: EvidenceResponse) -> bool:
    try:
        content = (fragment.content + fragment.cut_off).encode()
        content_hash = sha256_hex(content)
        chunk_id = chunk_id_of(fragment.document_id, position=fragment.position, content_hash=content_hash)
        if (content_hash, chunk_id) != (fragment.content_hash, fragment.chunk_id):
            return True
        if fragment.event is None or fragment.inclusion is None:
            return next(chain_faults(fragment.provenance_chain, content=content), None) is not None
        return next(fragment_faults(_exported(fragment, response)), None) is not None
    except UNREADABLE:
        return True


def _exported(fragment: EvidenceFragment, response: EvidenceResponse) -> FragmentExport:
    names = ("chunk_id", "document_id", "source_id", "position", "start", "end", "provenance_chain", "event", "inclusion", "is_live")
    taken = {name: getattr(fragment, name) for name in names}
    content = fragment.content + fragment.cut_off
    return FragmentExport(format=EXPORT_FORMAT, content=content, commit=response.commit, commit_hash=response.commit_hash, **taken)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _content_type(word: str) -> ContentType:
    try:
        return ContentType(word)
    except ValueError:
        return ContentType.DOCUMENTATION
