"""The part of the tour that asks: one question, one secret asked for by two people, and an answer that can be made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.serving.cli.output import put
from evidentia.serving.cli.principals import principal_from
from evidentia.serving.cli.search_report import HASH_PREFIX, footer, put_fragments
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.cli.verify_report import checked

if TYPE_CHECKING:
    from evidentia.base.answers import EvidenceResponse
    from evidentia.base.sync_base import Base
    from evidentia.contracts.access import Principal

QUESTION = "How often do we rotate signing keys?"
SECRET_QUESTION = "Who holds the root key Kittiwake?"  # noqa: S105 - a question, not a password
SECRET_WORD = "Kittiwake"  # noqa: S105
SECRET_DOCUMENT = "security:signing-key-custody.md"  # noqa: S105
INSIDER = "tomasz clearance=confidential groups=security"
OUTSIDER = "alice"
SHOWN = 3
PATIENT_MS = 10_000
"""The first question of a process also opens the index, and a demo runs on any machine."""


def ask(base: Base) -> EvidenceResponse:
    """Ask the first question and show its answer."""
    put()
    put("2. Ask")
    put(f'  evidentia search "{QUESTION}"')
    put()
    return _answer(base, QUESTION)


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
    put()
    put(f'  evidentia search "{SECRET_QUESTION}" --as "{who}"')
    put()
    return _answer(base, SECRET_QUESTION, principal=principal_from(who))


def _answer(base: Base, question: str, *, principal: Principal | None = None) -> EvidenceResponse:
    response = base.retrieve(
        question,
        principal=principal,
        mode=RetrievalMode.LEXICAL,
        limit=SHOWN,
        facets=("source_id",),
        latency_deadline_ms=PATIENT_MS,
    )
    put_fragments(response, cutter=SnippetCutter(question, language=base.settings.text.language))
    put(footer(response))
    return response


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
