"""An answer checked from its own bytes: custody of every fragment, and the hash of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.ids import chunk_id_of
from evidentia.contracts.provenance import (
    CUSTODY_FORMAT,
    BrokenLink,
    FragmentExport,
    InclusionProof,
    IngestEvent,
    OriginDescriptor,
    VerifyReport,
)
from evidentia.engine.external_candidates import OUTSIDE
from evidentia.engine.fragment_layouts import layout_problems
from evidentia.engine.result_hashes import response_hash, result_hash
from evidentia.engine.stage_log import LATE
from evidentia.provenance.custody_chain import RETRIEVE_STEP, chain_faults
from evidentia.provenance.verification import EXPORT_FORMAT, fragment_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse
    from evidentia.contracts.receipts import Receipt


def verify_response(response: EvidenceResponse) -> VerifyReport:
    """Check every fragment like an exported one, then recompute the hashes of the answer: in the first format, the one that it has."""
    broken: list[BrokenLink] = []
    for fragment in response.fragments:
        where = f"fragment '{fragment.chunk_id}'"
        if fragment.event is None or fragment.inclusion is None:
            broken += _outside_faults(fragment, where=where)
        else:
            broken += fragment_faults(exported(fragment, response, event=fragment.event, inclusion=fragment.inclusion))
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
    if problem := _response_problem(response):
        broken.append(BrokenLink(check="response", where="answer", problem=problem))
    if sha256_hex(encode_struct(response.commit)) != response.commit_hash:
        broken.append(BrokenLink(check="commit", where=f"commit {response.commit.sequence}", problem="the record does not have its hash"))
    state = (response.commit.corpus_version, response.commit.evidence_state)
    if state != (response.corpus_version, response.evidence_state):
        broken.append(BrokenLink(check="commit", where=f"commit {response.commit.sequence}", problem="the commit is of another version"))
    return VerifyReport(
        ok=not broken,
        target=f"answer '{response.request_id}'",
        fragments=len(response.fragments),
        commits=1,
        broken=tuple(broken),
        custody_format=response.custody_format,
    )


def verify_receipt(response: EvidenceResponse, receipt: Receipt | None) -> VerifyReport:
    """Check an answer from its own bytes, and that it is what the base wrote down when it gave it; no receipt vouches for none.

    That an answer was late is known only once its receipt is written, so the receipt's hash does not speak of that remark.
    """
    report = verify_response(response)
    if receipt is not None and (receipt.result_hash, receipt.custody_format) == (response.result_hash, response.custody_format):
        is_late = bool(response.degraded) and response.degraded[-1].startswith(LATE)
        noted = _hash_of(msgspec.structs.replace(response, degraded=response.degraded[:-1])) if is_late else ""
        if receipt.response_hash in (response.response_hash, noted):
            return report
    fault = BrokenLink(check="receipt", where=f"receipt '{response.receipt_id}'", problem="it does not vouch for this answer")
    return msgspec.structs.replace(report, ok=False, broken=(*report.broken, fault))


def _response_problem(response: EvidenceResponse) -> str:
    if response.custody_format not in range(1, CUSTODY_FORMAT + 1):
        return f"the custody_format {response.custody_format} is not known"
    if response.custody_format < CUSTODY_FORMAT:
        return "it has a response_hash, which its custody_format does not know" if response.response_hash else ""
    return "" if _hash_of(response) == response.response_hash else "the response_hash is not that of this answer"


def _hash_of(response: EvidenceResponse) -> str:
    """Return the hash of an answer from anywhere; a number that has none makes no answer."""
    try:
        return response_hash(response)
    except (OverflowError, ValueError):
        return ""


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
