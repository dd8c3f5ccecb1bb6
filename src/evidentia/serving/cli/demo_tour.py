"""The tour of the demo, told while it happens: nothing in it is prepared beforehand."""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING

import msgspec

from evidentia.base.sync_base import connect
from evidentia.provenance.verification import verify_export
from evidentia.serving.cli.demo_corpus_sources import SAMPLE_SOURCES, copy_samples
from evidentia.serving.cli.demo_policies import govern
from evidentia.serving.cli.demo_questions import ask, ask_as_two, check_answer
from evidentia.serving.cli.demo_tables import ask_a_table
from evidentia.serving.cli.export_files import write_export
from evidentia.serving.cli.output import put, put_table
from evidentia.serving.cli.progress import EmbedBar
from evidentia.serving.cli.proof_files import read_export
from evidentia.serving.cli.tampering import change_stored_byte
from evidentia.serving.cli.verify_report import checked, put_link

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.base.sync_base import Base
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.provenance import FragmentExport, VerifyReport

SHOWN_DOCUMENT = "changelog:CHANGELOG.md"
SHOWN_SENTENCE = re.compile(r"expire after \d+ days")


def walk_through(directory: Path, *, is_quiet: bool = False) -> None:
    """Build the base and show what it is good for.

    1. ingest the sample corpus and embed it  2. ask two questions, and a table a third
    3. look at access, and ask for a secret as two people  4. verify the whole base, and the answer again
    5. export a fragment and check it offline  6. govern an agent's run by policies
    7. tamper with copies and have it found  8. say what to try next
    """
    with connect(directory / "base", init=True) as base:
        _ingest(base, corpus=directory / "corpus")
        _embed(base, is_quiet=is_quiet)
        answer = ask(base)
        ask_a_table(base)
        _look_at_access(base)
        ask_as_two(base)
        _verify(base)
        check_answer(base, answer)
        fragment = _export(base, file=directory / "fragment.json")
        govern(base)
    _tamper_with_export(fragment, file=directory / "fragment-tampered.json")
    _tamper_with_base(fragment, original=directory / "base", copy=directory / "tampered")
    _say_what_is_next(directory, receipt_id=answer.receipt_id or "")


def _ingest(base: Base, *, corpus: Path) -> None:
    copy_samples(corpus)
    put("1. Ingest")
    put("Harbour is a parcel tracking service that does not exist. These are its documents:")
    put()
    reports = [
        base.ingest([corpus / source.path], source=source.name, authority=source.authority, prune=True, embed=False)
        for source in SAMPLE_SOURCES
    ]
    put_table(
        ("source", "authority", "added", "changed", "unchanged", "removed", "skipped"),
        [
            (source.name, source.authority, report.added, report.changed, report.unchanged, report.removed, len(report.skipped))
            for source, report in zip(SAMPLE_SOURCES, reports, strict=True)
        ],
    )
    for entry in (entry for report in reports for entry in report.skipped):
        put(f"skipped: {entry.message}")
    put()
    if not any(report.added or report.changed or report.removed or report.access_changed for report in reports):
        put("Nothing has changed since the last run, so nothing was stored and there is no new version.")
    documents = base.documents()
    put(f"The base holds {len(documents)} documents in {sum(count for *_, count in documents)} chunks.")
    put(f"corpus_version: {base.head().corpus_version}")
    put("That is a hash of what is in the base. Someone else who ingests the same documents gets the same one.")


def _embed(base: Base, *, is_quiet: bool) -> None:
    put()
    if base.settings.embedding.encoder == "none":
        put("The settings name no encoder, so documents are found by their words alone.")
        return
    with EmbedBar(is_wanted=not is_quiet) as bar:
        report = base.embed(on_progress=bar.update)
    name = report.identity.name if report.identity else "none"
    put(f"Each chunk has a vector beside its words: {report.embedded} made now, by {name} on this machine.")


def _look_at_access(base: Base) -> None:
    held = [(document_id, access) for document_id, access, _ in base.documents() if access.acl]
    put()
    put("3. Access")
    put("Everything came in as internal. A document can ask to be held more closely, never less:")
    put()
    put_table(
        ("document", "classification", "acl"),
        [(document_id, access.classification.value, ", ".join(access.acl)) for document_id, access in held],
    )


def _verify(base: Base) -> None:
    began = time.perf_counter()
    report = base.verify()
    elapsed_ms = round((time.perf_counter() - began) * 1000)
    put()
    put("4. Verify")
    put("Every hash is computed again from the stored bytes: texts, chains, the event log, commits, files.")
    put(f"checked {checked(report)} in {elapsed_ms} ms: {_verdict(report)}")


def _export(base: Base, *, file: Path) -> FragmentExport:
    chunk = _shown_chunk(base)
    write_export(file, base.export(chunk.chunk_id), is_forced=True)
    put()
    put("5. Export")
    put("A fragment can leave with its proof, for someone who has neither the base nor any reason to trust us:")
    put(f"  chunk  {chunk.chunk_id}")
    put(f"  file   {file}")
    fragment = read_export(file)
    report = verify_export(fragment)
    put(f"checked {checked(report)} from the file alone: {_verdict(report)}")
    put("Anyone can do it without Evidentia: records are hashed as canonical JSON (RFC 8785), with SHA-256.")
    return fragment


def _tamper_with_export(fragment: FragmentExport, *, file: Path) -> None:
    before = _sentence(fragment.content)
    after = _with_another_digit(before)
    write_export(file, msgspec.structs.replace(fragment, content=fragment.content.replace(before, after, 1)), is_forced=True)
    put()
    put("7. Tamper")
    put(f"In a copy of the export, '{before}' becomes '{after}'. Verification stops at this link:")
    _put_first_broken(verify_export(read_export(file)))


def _tamper_with_base(fragment: FragmentExport, *, original: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    before = _sentence(fragment.content)
    file, offset = change_stored_byte(copy, before=before.encode(), after=_with_another_digit(before).encode())
    put()
    put(f"In a copy of the base, the same change is made to one byte on disk ('{file}', byte {offset}):")
    with connect(copy) as base:
        _put_first_broken(base.verify())
    put("The base itself was not touched.")


def _say_what_is_next(directory: Path, *, receipt_id: str) -> None:
    base = directory / "base"
    put()
    put("Next")
    put(f"  evidentia --base {base} search 'what to do when the scan queue stalls' --facet source_id")
    put(f"  evidentia --base {base} replay {receipt_id}")
    put(f"  evidentia --base {base} tables ask 'How many services are there in each zone?'")
    put(f"  evidentia --base {base} documents")
    put(f"  evidentia --base {base} show {SHOWN_DOCUMENT}")
    put(f"  evidentia --base {base} verify")
    put(f"  evidentia --base {base} policy list")
    put(f"  evidentia --base {base} policy analyze")
    put(f"  evidentia --base {base} serve        # every door and the dashboard; prints a link to follow")
    put(f"  evidentia verify {directory / 'fragment.json'}")
    put(f"  evidentia verify {directory / 'fragment-tampered.json'}")
    put(f"Change something in '{directory / 'corpus'}' and run `evidentia demo` again: only that becomes a new version.")


def _shown_chunk(base: Base) -> StoredChunk:
    """Return the chunk with the sentence that is tampered with, or the first one when a reader has changed the document."""
    chunks = base.chunks(SHOWN_DOCUMENT)
    return next((chunk for chunk in chunks if SHOWN_SENTENCE.search(chunk.content)), chunks[0])


def _sentence(content: str) -> str:
    found = SHOWN_SENTENCE.search(content) or re.search(r"[^\n]*[0-9a-z][^\n]*", content)
    return found[0] if found else content


def _with_another_digit(sentence: str) -> str:
    """Change one ASCII digit, or else one letter, so that the number of bytes stays."""
    kind = "[0-9]" if re.search("[0-9]", sentence) else "[a-z]"
    return re.sub(kind, lambda found: "8" if found[0] == "9" else "9", sentence, count=1)


def _put_first_broken(report: VerifyReport) -> None:
    if report.first_broken is None:
        put("  nothing was found, which should not happen; please report it")
        return
    put_link(report.first_broken)


def _verdict(report: VerifyReport) -> str:
    return "everything holds" if report.ok else "BROKEN"
