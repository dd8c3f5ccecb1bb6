"""The tour of the demo, told while it happens: nothing in it is prepared beforehand."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.agents import Context, PolicyViolationError
from evidentia.base.sync_base import Base, connect
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.policy.templates import TEMPLATES
from evidentia.provenance.verification import verify_export
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.output import Figure, put, put_table
from evidentia.serving.cli.principals import principal_from
from evidentia.serving.cli.progress import EmbedBar
from evidentia.serving.cli.proof_files import checked_counts, put_link, read_export, write_export
from evidentia.serving.cli.search_report import HASH_PREFIX, NEARNESS, near_of, put_conflicts, put_footer, put_fragments
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.cli.tables_report import put_table_answer
from evidentia.wiring.governance_runtime import open_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.base.answers import EvidenceResponse
    from evidentia.contracts.access import Principal
    from evidentia.contracts.decisions import PolicyDecision
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
    put("1. Ingest", "Harbour is a parcel tracking service that does not exist. These are its documents:", "")
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
    put(
        f"The base holds {len(documents)} documents in {sum(count for *_, count in documents)} chunks.",
        f"corpus_version: {base.head().corpus_version}",
        "That is a hash of what is in the base. Someone else who ingests the same documents gets the same one.",
    )


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
    put("", "3. Access", "Everything came in as internal. A document can ask to be held more closely, never less:", "")
    put_table(
        ("document", "classification", "acl"),
        [(document_id, access.classification.value, ", ".join(access.acl)) for document_id, access in held],
    )


def _verify(base: Base) -> None:
    began = time.perf_counter()
    report = base.verify()
    elapsed_ms = round((time.perf_counter() - began) * 1000)
    put(
        "",
        "4. Verify",
        "Every hash is computed again from the stored bytes: texts, chains, the event log, commits, files.",
        f"checked {checked_counts(report)} in {elapsed_ms} ms: {_verdict(report)}",
    )


def _export(base: Base, *, file: Path) -> FragmentExport:
    chunk = _shown_chunk(base)
    write_export(file, base.export(chunk.chunk_id), is_forced=True)
    put(
        "",
        "5. Export",
        "A fragment can leave with its proof, for someone who has neither the base nor any reason to trust us:",
        f"  chunk  {chunk.chunk_id}",
        f"  file   {file}",
    )
    fragment = read_export(file)
    report = verify_export(fragment)
    put(
        f"checked {checked_counts(report)} from the file alone: {_verdict(report)}",
        "Anyone can do it without Evidentia: records are hashed as canonical JSON (RFC 8785), with SHA-256.",
    )
    return fragment


def _tamper_with_export(fragment: FragmentExport, *, file: Path) -> None:
    before = _sentence(fragment.content)
    after = _with_another_digit(before)
    write_export(file, msgspec.structs.replace(fragment, content=fragment.content.replace(before, after, 1)), is_forced=True)
    put("", "7. Tamper", f"In a copy of the export, '{before}' becomes '{after}'. Verification stops at this link:")
    _put_first_broken(verify_export(read_export(file)))


def _tamper_with_base(fragment: FragmentExport, *, original: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    before = _sentence(fragment.content)
    file, offset = change_stored_byte(copy, before=before.encode(), after=_with_another_digit(before).encode())
    put("", f"In a copy of the base, the same change is made to one byte on disk ('{file}', byte {offset}):")
    with connect(copy) as base:
        _put_first_broken(base.verify())
    put("The base itself was not touched.")


def _say_what_is_next(directory: Path, *, receipt_id: str) -> None:
    base = directory / "base"
    put(
        "",
        "Next",
        f"  evidentia --base {base} search 'what to do when the scan queue stalls' --facet source_id",
        f"  evidentia --base {base} replay {receipt_id}",
        f"  evidentia --base {base} tables ask 'How many services are there in each zone?'",
        f"  evidentia --base {base} documents",
        f"  evidentia --base {base} show {SHOWN_DOCUMENT}",
        f"  evidentia --base {base} verify",
        f"  evidentia --base {base} policy list",
        f"  evidentia --base {base} policy analyze",
        f"  evidentia --base {base} serve        # every door and the dashboard; prints a link to follow",
        f"  evidentia verify {directory / 'fragment.json'}",
        f"  evidentia verify {directory / 'fragment-tampered.json'}",
        f"Change something in '{directory / 'corpus'}' and run `evidentia demo` again: only that becomes a new version.",
    )


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


# A change to stored bytes behind a base's back, for the demo; refuses to know how a base stores them.


def change_stored_byte(directory: Path, *, before: bytes, after: bytes) -> tuple[str, int]:
    """Replace a stored stretch of text in the first file that holds it, and return the file and where it differs."""
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        stored = file.read_bytes()
        if (at := stored.find(before)) >= 0:
            file.write_bytes(stored[:at] + after + stored[at + len(before) :])
            shift = next(index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
            return file.relative_to(directory).as_posix(), at + shift
    raise UsageError(f"no file in '{directory}' holds the text to change", hint="run `evidentia demo --fresh`")


# Which part of the sample corpus belongs to which source, and how much its word weighs.


class SampleSource(NamedTuple):
    """One source of the sample corpus."""

    name: str
    path: str
    authority: str


SAMPLE_SOURCES = (
    SampleSource("handbook", "handbook", "canonical"),
    SampleSource("api", "api", "canonical"),
    SampleSource("runbooks", "runbooks", "curated"),
    SampleSource("incidents", "incidents", "curated"),
    SampleSource("security", "security", "curated"),
    SampleSource("changelog", "CHANGELOG.md", "curated"),
    SampleSource("help", "help", "curated"),
    SampleSource("clients", "clients", "curated"),
    SampleSource("tables", "tables", "curated"),
    SampleSource("tickets", "tickets/support-tickets.jsonl", "user"),
)


def copy_samples(target: Path) -> None:
    """Copy the sample corpus; a source that is there stays as it is, so that a reader can change it and run the demo again."""
    packaged = Path(__file__).with_name("demo_corpus")
    for source in SAMPLE_SOURCES:
        origin, copy = packaged / source.path, target / source.path
        if copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(origin, copy)


# The part of the tour that asks: a conflict, a question in other words, a secret asked for by two people, an answer made again.

QUESTION = "How often are signing keys rotated?"
OTHER_WORDS = "stolen credentials"
AS_OF = "2026-06-01T00:00:00Z"
"""A moment after the last of the documents: ages, and with them the order, are the same on every day."""
SECRET_QUESTION = "Who holds the root key Kittiwake?"  # noqa: S105 - a question, not a password
SECRET_WORD = "Kittiwake"  # noqa: S105
SECRET_DOCUMENT = "security:signing-key-custody.md"  # noqa: S105
INSIDER = "tomasz clearance=confidential groups=security"
OUTSIDER = "alice"
SHOWN = 3
PATIENT_MS = 10_000
"""The first question of a process also opens the index, and a demo runs on any machine."""


def ask(base: Base) -> EvidenceResponse:
    """Ask about something that two pages disagree on, then in words that no document has; return the first answer."""
    put("", "2. Ask")
    _put_command(QUESTION)
    first = _answer(base, QUESTION)
    put("", _verdict_on_conflicts(first))
    _put_command(OTHER_WORDS)
    second = _answer(base, OTHER_WORDS)
    put("", _verdict_on_words(base, second))
    return first


def ask_as_two(base: Base) -> None:
    """Ask for a secret as someone who may know it and as someone who may not."""
    put()
    if not any(document_id == SECRET_DOCUMENT and access.acl for document_id, access, _ in base.documents()):
        put("The page with the secret is gone or open to everyone, so there is nothing to keep from anyone.")
        return
    put("Now two people ask the same question about that page.")
    insider, outsider = (_answer_as(base, who) for who in (INSIDER, OUTSIDER))
    put("", f"What tells {OUTSIDER} that there is such a page? {_traces(base, insider, outsider)}")


def check_answer(base: Base, response: EvidenceResponse) -> None:
    """Verify an answer from its own bytes, and make it again from its receipt."""
    report = base.verify(response)
    again = base.replay(response.receipt_id or "")
    put(
        "",
        "The first answer is checked from its own bytes, and then made again from its receipt:",
        f"checked {checked_counts(report)}: {'everything holds' if report.ok else 'BROKEN'}",
    )
    verdict = "the same answer" if again.is_same else "ANOTHER ANSWER"
    put(f"replayed {again.receipt_id}: {verdict}, result {again.result_hash[:HASH_PREFIX]}")


def _answer_as(base: Base, who: str) -> EvidenceResponse:
    _put_command(SECRET_QUESTION, who=who)
    return _answer(base, SECRET_QUESTION, principal=principal_from(who))


def _put_command(question: str, *, who: str | None = None) -> None:
    caller = "" if who is None else f' --as "{who}"'
    put("", f'  evidentia search "{question}" --limit {SHOWN} --as-of {AS_OF}{caller}', "")


def _answer(base: Base, question: str, *, principal: Principal | None = None) -> EvidenceResponse:
    response = base.retrieve(question, principal=principal, limit=SHOWN, as_of=AS_OF, facets=("source_id",), latency_deadline_ms=PATIENT_MS)
    put_fragments(response, cutter=SnippetCutter(question, language=base.settings.text.language))
    if principal is None and question == QUESTION:
        put_conflicts(response)
        put()
    put_footer(response)
    return response


def _verdict_on_conflicts(response: EvidenceResponse) -> str:
    if not response.conflicts:
        return "The pages agree, so nothing is flagged."
    return "Two pages disagree. Both stay in the answer, and both say so; the more authoritative one holds, or else the newer one."


def _verdict_on_words(base: Base, response: EvidenceResponse) -> str:
    """Say what words alone would have found, and how near the first fragment is."""
    by_words = base.retrieve(OTHER_WORDS, mode=RetrievalMode.LEXICAL, limit=1, as_of=AS_OF, receipt=False, latency_deadline_ms=PATIENT_MS)
    found = f"Words alone find {by_words.total_candidates} fragments."
    if not response.fragments or response.fragments[0].scores.dense is None:
        return f"{found} This base has no vectors, so there is nothing else to find it by."
    nearness = NEARNESS[base.settings.search.similarity]
    first = response.fragments[0]
    return f"{found} {first.document_id} was found by its meaning: {nearness.name} {near_of(first.scores, nearness)}."


def _traces(base: Base, insider: EvidenceResponse, outsider: EvidenceResponse) -> str:
    """Look for the page in everything the outsider was given, instead of promising that it is not there."""
    given = outsider.to_json()
    found = [word for word in (SECRET_DOCUMENT, SECRET_WORD, '"security"') if word in given]
    hidden = next((fragment.chunk_id for fragment in insider.fragments if fragment.document_id == SECRET_DOCUMENT), None)
    if hidden is not None:
        found += _trace_in_why(base, receipt_id=outsider.receipt_id or "", chunk_id=hidden)
    if found:
        return f"{', '.join(found)}, which should not happen; please report it"
    return "Nothing: not the fragments, the counts, the facets, the sources, and `why` says that there is no such chunk."


def _trace_in_why(base: Base, *, receipt_id: str, chunk_id: str) -> list[str]:
    from evidentia.base.sync_base import connect

    with connect(base.path, principal=principal_from(OUTSIDER)) as theirs:
        try:
            return [f"why: {theirs.why(receipt_id, chunk_id).reason}"]
        except NotFoundError:
            return []


# The part of the tour that asks a table: rows, and where each of them stands in its file.

TABLE_QUESTION: Final = "Which services to Europe cost less than 20 EUR?"


def ask_a_table(base: Base) -> None:
    """Ask a question that no sentence answers and rows of a table do."""
    put("", f'  evidentia tables ask "{TABLE_QUESTION}"', "")
    answer = base.ask_tables(TABLE_QUESTION)
    put_table_answer(answer)
    put()
    if answer.rows:
        put("No model was asked: each word was found in the table, and the rows can be looked up where they stand.")
    else:
        put("The table with the prices is gone or has changed, and nothing is guessed.")


# The part of the tour that governs: an agent under two policies, stopped where it goes wrong, and the log of what was decided.

AGENT: Final = "harbour-helper"
SCOPE: Final = {"agents": ["harbour-*"]}
POLICIES: Final = (
    {
        "name": "No hearsay",
        "category": "retrieval",
        "rules": {"min_relevance_score": 0.0, "max_source_age_days": 730, "blocked_sources": ["tickets:T-1007"], "max_chunks": 20},
        "scope": SCOPE,
    },
    {
        "name": "Only what the evidence says",
        "category": "grounding",
        "rules": {"min_grounding_score": 0.5, "max_unsupported_claims": 0, "action_on_violation": "block"},
        "scope": SCOPE,
    },
)
GATE: Final = "Off-topic Gate"
DESK: Final = "front-desk"
OFF_TOPIC: Final = "What is the best recipe for lasagna?"
TRUE_CLAIM: Final = "Signing keys are rotated every 30 days."
FALSE_CLAIM: Final = "Signing keys are never rotated once a parcel has left Antwerp."


def govern(base: Base) -> None:
    """Put two policies in force, let an agent answer under them, and check the log of what was decided."""
    put("", "6. Govern", f"Two policies are put in force for agents called '{SCOPE['agents'][0]}':", "")
    stored = [base.add_policy(policy) for policy in POLICIES]
    put_table(
        ("policy", "category", "version"), [(each.policy.body.name, each.policy.body.category, each.policy.version) for each in stored]
    )
    put("", f"{AGENT} answers '{QUESTION}' from the evidence, and then makes something up:", "")
    context = _governed_run(base)
    put_table(("phase", "policy", "action", "reason"), [_row(decision) for decision in context.decisions])
    _guard(base)
    context.flush()  # the log is that of the answers too, and whoever verifies it next reads the disk
    put("", "Each line is a sealed record; nothing but the log is needed to check it, or to decide all of it again:")
    with open_control(base.path) as control:
        verified, replayed = verify(control.log), replay(control.log)
    put(
        f"  verified {verified.records} records: {'everything holds' if verified.ok else 'BROKEN'}",
        f"  decided {replayed.decisions} decisions again: {replayed.mismatch_count} came out differently",
    )


def _guard(base: Base) -> None:
    """Put the template against off-topic answers in force, and ask one question that the base answers and one that it does not."""
    base.add_policy({**msgspec.to_builtins(TEMPLATES[GATE]), "scope": {"agents": [DESK]}})
    put("", f"The template '{GATE}' withholds from {DESK} what is probably not relevant:", "")
    rows = []
    for question in (QUESTION, OFF_TOPIC):
        answer = base.retrieve(question, agent_name=DESK, governance="filter", as_of=AS_OF, latency_deadline_ms=PATIENT_MS)
        surest = f"{answer.fragments[0].confidence:.0%}" if answer.fragments else "-"
        rows.append((question, Figure(len(answer.fragments)), Figure(len(answer.withheld)), Figure(surest)))
    put_table(("question", "fragments", "withheld", "confidence of the first"), rows)


def _governed_run(base: Base) -> Context:
    with Context(agent_name=AGENT, base=base) as context:
        evidence = base.retrieve(QUESTION, agent_name=AGENT, as_of=AS_OF, limit=3, latency_deadline_ms=PATIENT_MS)
        _tolerate(lambda: context.record_retrieval(evidence))
        _tolerate(lambda: context.ground(TRUE_CLAIM, evidence))
        _tolerate(lambda: context.ground(FALSE_CLAIM, evidence))
    context.flush()
    return context


def _tolerate(step: Callable[[], object]) -> None:
    """Go on after a block: the run stays blocked, and what follows is still decided about."""
    try:
        step()
    except PolicyViolationError:
        return


def _row(decision: PolicyDecision) -> tuple[str, str, str, str]:
    return decision.phase.value, decision.policy_name, decision.action.value, decision.reason
