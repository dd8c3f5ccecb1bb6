"""The part of the tour that asks: a conflict, a question in other words, a secret asked for by two people, an answer made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.serving.cli.explain_report import NEARNESS, near_of
from evidentia.serving.cli.output import put
from evidentia.serving.cli.principals import principal_from
from evidentia.serving.cli.search_report import HASH_PREFIX, footer, put_conflicts, put_fragments
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.cli.verify_report import checked

if TYPE_CHECKING:
    from evidentia.base.answers import EvidenceResponse
    from evidentia.base.sync_base import Base
    from evidentia.contracts.access import Principal

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
    put()
    put("2. Ask")
    _put_command(QUESTION)
    first = _answer(base, QUESTION)
    put()
    put(_verdict_on_conflicts(first))
    _put_command(OTHER_WORDS)
    second = _answer(base, OTHER_WORDS)
    put()
    put(_verdict_on_words(base, second))
    return first


def ask_as_two(base: Base) -> None:
    """Ask for a secret as someone who may know it and as someone who may not."""
    put()
    if not any(document_id == SECRET_DOCUMENT and access.acl for document_id, access, _ in base.documents()):
        put("The page with the secret is gone or open to everyone, so there is nothing to keep from anyone.")
        return
    put("Now two people ask the same question about that page.")
    insider, outsider = (_answer_as(base, who) for who in (INSIDER, OUTSIDER))
    put()
    put(f"What tells {OUTSIDER} that there is such a page? {_traces(base, insider, outsider)}")


def check_answer(base: Base, response: EvidenceResponse) -> None:
    """Verify an answer from its own bytes, and make it again from its receipt."""
    report = base.verify(response)
    again = base.replay(response.receipt_id or "")
    put()
    put("The first answer is checked from its own bytes, and then made again from its receipt:")
    put(f"checked {checked(report)}: {'everything holds' if report.ok else 'BROKEN'}")
    verdict = "the same answer" if again.is_same else "ANOTHER ANSWER"
    put(f"replayed {again.receipt_id}: {verdict}, result {again.result_hash[:HASH_PREFIX]}")


def _answer_as(base: Base, who: str) -> EvidenceResponse:
    _put_command(SECRET_QUESTION, who=who)
    return _answer(base, SECRET_QUESTION, principal=principal_from(who))


def _put_command(question: str, *, who: str | None = None) -> None:
    caller = "" if who is None else f' --as "{who}"'
    put()
    put(f'  evidentia search "{question}" --limit {SHOWN} --as-of {AS_OF}{caller}')
    put()


def _answer(base: Base, question: str, *, principal: Principal | None = None) -> EvidenceResponse:
    response = base.retrieve(question, principal=principal, limit=SHOWN, as_of=AS_OF, facets=("source_id",), latency_deadline_ms=PATIENT_MS)
    put_fragments(response, cutter=SnippetCutter(question, language=base.settings.text.language))
    if principal is None and question == QUESTION:
        put_conflicts(response)
        put()
    put(footer(response))
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
