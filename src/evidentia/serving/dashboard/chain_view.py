"""Custody link by link, as its page draws it: what each link says, whether it holds, and the first that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.provenance import FragmentExport, OriginDescriptor
from evidentia.engine.answer_verification import exported
from evidentia.provenance.custody_chain import chain_faults
from evidentia.provenance.verification import UNREADABLE, verify_export

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse
    from evidentia.contracts.provenance import BrokenLink, ProvenanceEntry, VerifyReport

MAX_DRAWN: Final = 50
"""Chains of an answer that are drawn; the report is about all of them."""
_IDENTITY: Final = ("format", "identity", "layout", "log")


class Link(NamedTuple):
    """One link: its name, what it says, its hash, and what is wrong with it."""

    name: str
    about: str
    hash: str
    faults: tuple[str, ...]


class Chain(NamedTuple):
    """The custody of one fragment."""

    title: str
    links: tuple[Link, ...]

    @property
    def first_broken(self) -> int | None:
        """Return the number of the first link that does not hold, from 0; None when all do."""
        return next((number for number, link in enumerate(self.links) if link.faults), None)


def chains_of(proof: FragmentExport | EvidenceResponse, report: VerifyReport) -> list[Chain]:
    """Return the chain of a fragment, or of each of an answer's first fragments."""
    if isinstance(proof, FragmentExport):
        return [_drawn(proof, report.broken)]
    return [_fragment(each, proof, report) for each in proof.fragments[:MAX_DRAWN]]


def _fragment(fragment: EvidenceFragment, response: EvidenceResponse, report: VerifyReport) -> Chain:
    own = f"fragment '{fragment.chunk_id}'"
    told = [each for each in report.broken if each.where == own]
    if fragment.event is None or fragment.inclusion is None:
        return _outside(fragment, told)
    export = exported(fragment, response, event=fragment.event, inclusion=fragment.inclusion)
    try:
        found = verify_export(export).broken
    except UNREADABLE:
        found = report.broken
    return _drawn(export, [*found, *told])


def _drawn(export: FragmentExport, broken: Sequence[BrokenLink]) -> Chain:
    event, commit = export.event, export.commit
    return Chain(
        export.chunk_id,
        (
            Link("Identity", f"{export.document_id}, position {export.position}", "", _faults(broken, *_IDENTITY)),
            *_chain_links(export.provenance_chain, [(each.where, each.problem) for each in broken if each.check == "chain"]),
            Link("Log entry", f"{event.kind.value} as entry {event.index}", event.custody_head, _faults(broken, "event")),
            Link(
                "In the log",
                f"{len(export.inclusion.hashes)} hashes lead to the root of {export.inclusion.tree_size} entries",
                export.inclusion.root,
                _faults(broken, "inclusion"),
            ),
            Link("Version", f"version {commit.sequence} of the base vouches for that root", export.commit_hash, _faults(broken, "commit")),
        ),
    )


def _outside(fragment: EvidenceFragment, told: Sequence[BrokenLink]) -> Chain:
    content = (fragment.content + fragment.cut_off).encode()
    identity = Link("Identity", f"{fragment.document_id}, said by a source outside the base", "", _faults(told, *_IDENTITY))
    faults = list(chain_faults(fragment.provenance_chain, content=content))
    return Chain(fragment.chunk_id, (identity, *_chain_links(fragment.provenance_chain, faults)))


def _chain_links(entries: Iterable[ProvenanceEntry], faults: Sequence[tuple[str, str]]) -> list[Link]:
    links = []
    for number, entry in enumerate(entries):
        record = entry.record
        told = tuple(problem for where, problem in faults if where == f"link {number}" or where.startswith(f"link {number} "))
        if isinstance(record, OriginDescriptor):
            about = f"{record.document_id}, {record.media_type}, {record.content_length} bytes"
            links.append(Link("Origin", about, entry.hash, told))
        else:
            links.append(Link(record.step.capitalize(), f"{record.tool_id} {record.tool_version}", entry.hash, told))
    if not links and faults:
        links.append(Link("Origin", "there is none", "", tuple(problem for _, problem in faults)))
    return links


def _faults(broken: Iterable[BrokenLink], *checks: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.problem for each in broken if each.check in checks))
