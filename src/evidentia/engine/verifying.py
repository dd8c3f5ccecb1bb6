"""An answer checked from its own bytes: custody of every fragment, and the hash of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.provenance import BrokenLink, FragmentExport, VerifyReport
from evidentia.engine.results import result_hash
from evidentia.provenance.verify import EXPORT_FORMAT, verify_export

if TYPE_CHECKING:
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse


def verify_response(response: EvidenceResponse) -> VerifyReport:
    """Check every fragment like an exported one, then recompute the hash of the answer."""
    broken: list[BrokenLink] = []
    for fragment in response.fragments:
        broken += verify_export(exported(fragment, response)).broken
        where = f"fragment '{fragment.chunk_id}'"
        if sha256_hex((fragment.content + fragment.cut_off).encode()) != fragment.content_hash:
            broken.append(BrokenLink(check="identity", where=where, problem="the content does not have its content_hash"))
        if fragment.is_truncated != bool(fragment.cut_off):
            broken.append(BrokenLink(check="identity", where=where, problem="it does not say truly whether it was cut"))
    recomputed = result_hash(
        request=response.request_hash,
        evidence_state=response.evidence_state,
        config=response.config_hash,
        fragments=response.fragments,
        coverage=response.source_coverage,
        withheld=response.withheld,
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


def exported(fragment: EvidenceFragment, response: EvidenceResponse) -> FragmentExport:
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
        event=fragment.event,
        inclusion=fragment.inclusion,
        commit=response.commit,
        commit_hash=response.commit_hash,
        is_live=fragment.is_live,
    )
