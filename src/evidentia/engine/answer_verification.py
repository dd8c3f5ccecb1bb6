"""An answer checked from its own bytes: custody of every fragment, and the hash of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.ids import chunk_id_of
from evidentia.contracts.provenance import BrokenLink, FragmentExport, InclusionProof, IngestEvent, OriginDescriptor, VerifyReport
from evidentia.engine.external_candidates import OUTSIDE
from evidentia.engine.fragment_layouts import layout_problems
from evidentia.engine.result_hashes import result_hash
from evidentia.provenance.custody_chain import RETRIEVE_STEP, chain_faults
from evidentia.provenance.verification import EXPORT_FORMAT, verify_export

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse


def verify_response(response: EvidenceResponse) -> VerifyReport:
    """Check every fragment like an exported one, then recompute the hash of the answer."""
    broken: list[BrokenLink] = []
    for fragment in response.fragments:
        where = f"fragment '{fragment.chunk_id}'"
        if fragment.event is None or fragment.inclusion is None:
            broken += _outside_faults(fragment, where=where)
        else:
            broken += verify_export(exported(fragment, response, event=fragment.event, inclusion=fragment.inclusion)).broken
        if sha256_hex((fragment.content + fragment.cut_off).encode()) != fragment.content_hash:
            broken.append(BrokenLink(check="identity", where=where, problem="the content does not have its content_hash"))
        if fragment.is_truncated != bool(fragment.cut_off):
            broken.append(BrokenLink(check="identity", where=where, problem="it does not say truly whether it was cut"))
        broken += (BrokenLink(check="layout", where=where, problem=problem) for problem in layout_problems(fragment))
    recomputed = result_hash(
        request=response.request_hash,
        evidence_state=response.evidence_state,
        config=response.config_hash,
        fragments=response.fragments,
        coverage=response.source_coverage,
        withheld=response.withheld,
        policies=response.policies,
        conflicts=response.conflicts,
        facets=response.facets,
        truncation_applied=response.truncation_applied,
    )
    if recomputed != response.result_hash:
        broken.append(BrokenLink(check="result", where="answer", problem="the result_hash is not that of this answer"))
    if sha256_hex(encode_struct(response.commit)) != response.commit_hash:
        broken.append(BrokenLink(check="commit", where=f"commit {response.commit.sequence}", problem="the record does not have its hash"))
    state = (response.commit.corpus_version, response.commit.evidence_state)
    if state != (response.corpus_version, response.evidence_state):
        broken.append(BrokenLink(check="commit", where=f"commit {response.commit.sequence}", problem="the commit is of another version"))
    return VerifyReport(
        ok=not broken, target=f"answer '{response.request_id}'", fragments=len(response.fragments), commits=1, broken=tuple(broken)
    )


def _outside_faults(fragment: EvidenceFragment, *, where: str) -> Iterator[BrokenLink]:
    """Yield what is wrong with a fragment from outside the base: its chain has to hold, and there is no log to look it up in."""
    text = fragment.content + fragment.cut_off
    whole = text.encode()
    for link, problem in chain_faults(fragment.provenance_chain, content=whole):
        yield BrokenLink(check="chain", where=f"{where}, {link}", problem=problem)
    identity = chunk_id_of(fragment.document_id, position=fragment.position, content_hash=sha256_hex(whole))
    origin = fragment.provenance_chain[0].record if fragment.provenance_chain else None
    named = (origin.source_id, origin.document_id) if isinstance(origin, OriginDescriptor) else None
    if (fragment.position, fragment.start, fragment.end) != (0, 0, len(text)):
        yield BrokenLink(check="identity", where=where, problem="it is not the whole of what the source said")
    if identity != fragment.chunk_id or named != (fragment.source_id, fragment.document_id):
        yield BrokenLink(check="identity", where=where, problem="the ids are not those of this content and origin")
    is_retrieved = isinstance(origin, OriginDescriptor) and origin.extraction_method == RETRIEVE_STEP
    if not is_retrieved or OUTSIDE not in fragment.flags:
        yield BrokenLink(check="log", where=where, problem="it has no proof from the event log and does not say why")


def exported(fragment: EvidenceFragment, response: EvidenceResponse, *, event: IngestEvent, inclusion: InclusionProof) -> FragmentExport:
    """Return a fragment of an answer in the form in which it can be checked alone."""
    return FragmentExport(
        format=EXPORT_FORMAT,
        chunk_id=fragment.chunk_id,
        document_id=fragment.document_id,
        source_id=fragment.source_id,
        position=fragment.position,
        start=fragment.start,
        end=fragment.end,
        content=fragment.content + fragment.cut_off,
        provenance_chain=fragment.provenance_chain,
        event=event,
        inclusion=inclusion,
        commit=response.commit,
        commit_hash=response.commit_hash,
        is_live=fragment.is_live,
    )
