"""An answer as people and models read it, by every door: confidence first and in words, and never a raw integer or sixteen digits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from rich.console import Console

from answer_samples import fragment_of
from engine.trace_samples import response
from evidentia import EvidenceResponse
from evidentia.contracts.evidence import RankingWeights, TermScore
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.settings import Settings
from evidentia.contracts.vocabulary import Similarity
from evidentia.protocol.tool_results import read_result
from evidentia.protocol.toolbox import text_result
from evidentia.serving.cli import search_report
from evidentia.serving.cli.invocation import Invocation
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.dashboard.answer_view import bar_of, terms_of, view_answer
from evidentia.serving.dashboard.dashboard_app import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.evidence import EvidenceFragment

TERM = TermScore(term="keys", score=654_321, frequency=2, containing=3, documents=9, length=12, idf=234_567)
FRAGMENTS = (
    fragment_of(0.412345678901, 0.512345678901, 1.0, 0.923456789012, 0.212345678901),
    fragment_of(0.734567890123, 0.498765432109, 0.4, 0.333333333333, 0.345678901234),
)
ANSWER = EvidenceResponse.of(response([msgspec.structs.replace(each, explanation=(TERM,)) for each in FRAGMENTS]))
UNLIKELY = EvidenceResponse.of(response([fragment_of(0.012345678901), fragment_of(0.171234567890)]))
WHY = WhyReport(
    receipt_id=ReceiptId("r-0"),
    chunk_id=FRAGMENTS[0].chunk_id,
    stage="answered",
    rank=1,
    score=FRAGMENTS[0].score,
    scores=FRAGMENTS[0].scores,
    confidence=FRAGMENTS[0].confidence,
    terms=(TERM,),
    reason="it is in the answer",
    smallest_change="",
)
Capture = pytest.CaptureFixture[str]


def _rich(answer: EvidenceResponse, _: Capture) -> str:
    console = Console(width=500)
    with console.capture() as captured:
        console.print(answer)
    return captured.get()


def _frame(answer: EvidenceResponse, _: Capture) -> str:
    pytest.importorskip("pandas")
    return str(answer.to_pandas().to_string())


def _search(answer: EvidenceResponse, capsys: Capture) -> str:
    cutter = SnippetCutter("keys", language="english")
    search_report.put_response(Invocation(Path()), answer, cutter=cutter, similarity=Similarity.COSINE, is_explained=True)
    return capsys.readouterr().out


def _replay(answer: EvidenceResponse, capsys: Capture) -> str:
    search_report.put_replay(Invocation(Path()), _replayed(answer), language="english")
    return capsys.readouterr().out


def _page(name: str) -> Callable[[EvidenceResponse, Capture], str]:
    def rendered(answer: EvidenceResponse, _: Capture) -> str:
        view = view_answer(answer, query="keys", settings=Settings(), chosen={}, counts={})
        return environment().get_template(name).render(answer=view, fault=None, wait_longer="", report=_replayed(answer))

    return rendered


def _replayed(answer: EvidenceResponse) -> ReplayReport:
    return ReplayReport(
        receipt_id=ReceiptId("r-0"),
        is_same=True,
        recorded_hash=answer.result_hash,
        result_hash=answer.result_hash,
        hidden=0,
        response=answer,
    )


VIEWS: dict[str, Callable[[EvidenceResponse, Capture], str]] = {
    "repr": lambda answer, _: repr(answer),
    "repr of its scores": lambda answer, _: repr([fragment.scores for fragment in answer.fragments]),
    "rich": _rich,
    "notebook": lambda answer, _: answer._repr_html_(),
    "data frame": _frame,
    "prompt": lambda answer, _: answer.to_context(),
    "tool": lambda answer, _: text_result(answer.fragments, receipt_id=answer.receipt_id).text,
    "search on the command line": _search,
    "replay on the command line": _replay,
    "search page": _page("search/answer.html"),
    "replay page": _page("search/replayed_part.html"),
}
IN_ORDER = {name: view for name, view in VIEWS.items() if name not in {"repr of its scores"}}
WITH_WORDS = [name for name in IN_ORDER if name != "prompt"]
WITH_REASON = ["notebook", "data frame", "search on the command line", "replay on the command line", "search page", "replay page"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("answer", [ANSWER, UNLIKELY], ids=["likely", "unlikely"])
def test_no_view_shows_a_raw_integer_or_more_digits_than_people_read(answer: EvidenceResponse, view: str, capsys: Capture) -> None:
    shown = VIEWS[view](answer, capsys)

    assert not _raw_numbers(shown, answer.fragments)


@pytest.mark.parametrize("view", IN_ORDER)
def test_every_view_shows_confidence_with_two_decimals(view: str, capsys: Capture) -> None:
    shown = IN_ORDER[view](ANSWER, capsys)

    assert "0.41" in shown
    assert "0.73" in shown


@pytest.mark.parametrize("view", WITH_WORDS)
def test_every_view_but_the_prompt_says_confidence_in_a_word(view: str, capsys: Capture) -> None:
    shown = IN_ORDER[view](ANSWER, capsys)

    assert "possible" in shown
    assert "likely" in shown


@pytest.mark.parametrize("view", WITH_REASON)
def test_views_of_rows_say_why_the_order_differs(view: str, capsys: Capture) -> None:
    assert "behind 1: lower authority, older" in IN_ORDER[view](ANSWER, capsys)


@pytest.mark.parametrize("view", ["repr", "rich", "notebook", "prompt", "tool", "search on the command line", "search page"])
def test_whole_answers_say_when_there_is_probably_nothing(view: str, capsys: Capture) -> None:
    assert "probably nothing here" in IN_ORDER[view](UNLIKELY, capsys).casefold()
    assert "probably nothing" not in IN_ORDER[view](ANSWER, capsys).casefold()


def test_why_leads_with_confidence(capsys: Capture) -> None:
    search_report.put_why(WHY, similarity=Similarity.COSINE)
    told = capsys.readouterr().out
    macros: Any = environment().get_template("search/fragment.html").module  # Any: what the template defines
    bar = bar_of(FRAGMENTS[0].scores, RankingWeights())
    drawn = macros.confidence_bar(WHY.confidence, "why") + macros.score_table(bar, WHY.score) + macros.term_table(terms_of(WHY.terms))

    assert re.search(r"\nconfidence +0\.41 possible\nscore +0\.\d\d\n", told)
    assert "Confidence 0.41 possible" in drawn
    assert not _raw_numbers(told + drawn, FRAGMENTS)


def test_the_last_line_of_a_search_says_what_it_is_worth_and_what_to_do(capsys: Capture) -> None:
    likely, unlikely = (_search(answer, capsys).splitlines()[-1] for answer in (ANSWER, UNLIKELY))

    assert "the best match is likely relevant (0.73)" == likely
    assert "probably nothing here: the best match is unlikely to be relevant (0.17); try other words, or add what is missing" == unlikely


def test_a_tool_result_leads_with_confidence_and_its_headings_are_for_citing() -> None:
    told = text_result(ANSWER.fragments, receipt_id=None).text
    before, _, pieces = told.partition("RAG_KNOWLEDGE BEGIN")

    assert "\nConfidence: likely [2] 0.73; possible [1] 0.41.\n" in before
    assert "onfidence" not in pieces
    assert 2 == len(read_result("rag_retrieve", told).pieces)


def _raw_numbers(shown: str, fragments: tuple[EvidenceFragment, ...]) -> list[str]:
    """Return what looks like a score as machines keep it: one of the integers behind the fragments, or a fraction of many digits."""
    kept = {value for fragment in fragments for value in (fragment.score, *msgspec.structs.asdict(fragment.scores).values()) if value}
    kept |= {TERM.score, TERM.idf}
    raw = {str(value) for value in kept if value > 1_000}
    return [number for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", shown) if number in raw or re.search(r"\.\d{5,}", number)]
