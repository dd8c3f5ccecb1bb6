"""The work that an operation takes does not tell what hidden documents hold: operations are counted, not seconds.

Each request is asked of three bases that look alike to its caller (`twin_bases`). Words of hidden documents have to take exactly the
work of words that occur nowhere, on the first request and on every other; only how much is hidden may tell, and where, is said below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from evidentia.contracts.evidence import EvidenceResponse
from evidentia.contracts.operations import OPERATIONS
from evidentia.engine.answer_verification import verify_response
from evidentia.engine.stage_log import TOLD_STEP_MS
from serving.twin_bases import FIRST, SECOND, Case, TwinBase, cases_of, counted, is_asked, make, seen_of, things_of
from work_counter import Work, WorkCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

Done = list[tuple[Any, Work]]

MAX_STEPS = 32
"""By so many steps of SQLite's machine finding the row of a hidden document may differ from finding none: less than a microsecond."""
WHICH_PART_DENIES = "policy/access.py"
"""An ACL is looked at where tenant and clearance do not deny already."""
MAX_LINES = 16
OF_SIZE = {
    "contracts/sources.py:is_own", "engine/ordering.py:<dictcomp>", "federation/federated_search.py:<listcomp>",
    "backends/embedded/records/source_registry.py:<dictcomp>", "backends/embedded/snapshot.py:<dictcomp>",
    "base/administration.py:<listcomp>",
}  # fmt: skip
"""One line for each source that there is."""
OF_LAYOUT = tuple(
    f"backends/embedded/lexical/{name}"
    for name in (
        "term_dictionary.py:postings",
        "term_dictionary.py:_occurrences",
        "term_dictionary.py:_starts",
        "term_dictionary.py:chunk_counts",
        "segments.py:array",
        "postings.py:",
    )
)
"""A segment of which something is hidden is read by stretches, one that is seen whole as a whole; for whatever words it is asked."""
OF_THE_LOG = ("provenance/merkle.py", "backends/embedded/records/commit_log.py")
"""Proofs lead to the root of the whole log, whose size they name."""
OF_THE_WHOLE_BASE = {"list_documents", "list_versions", "show_diff", "show_consistency", "verify"}
"""They read what changed, groups of documents, the log or the whole archive; docs/access.md says so."""


WITH_THE_BASE = {"show_consistency", "show_head", "show_signed_head", "list_versions", "show_diff"}
"""They name versions of the whole base."""


class Asked(NamedTuple):
    """All requests, and what each base did for each: the first time, and the second."""

    cases: list[Case]
    hidden: tuple[Done, Done]
    disguised: tuple[Done, Done]
    alone: tuple[Done, Done]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("twins")
    folders = [folder / name for name in ("scratch", "hidden", "disguised", "alone")]
    for each, words in zip(folders, (FIRST, FIRST, SECOND, None), strict=True):
        make(each, words)
    cases = list(cases_of(things_of(folders[1])))
    with pytest.MonkeyPatch.context() as patch, WorkCounter().installed(patch) as counter:
        done = [_asked_twice(TwinBase(each), cases, counter) for each in folders]  # the first fills what the whole process keeps
    return Asked(cases, *done[1:])


def _asked_twice(base: TwinBase, cases: list[Case], counter: WorkCounter) -> tuple[Done, Done]:
    try:
        return counted(base, cases, counter), counted(base, cases, counter)
    finally:
        base.close()


def test_every_operation_of_readers_and_agents_is_asked(asked: Asked) -> None:
    assert {each.name for each in OPERATIONS if is_asked(each)} == {case.endpoint.name for case in asked.cases}
    assert 150 < len(asked.cases)


def test_answers_are_those_of_a_base_without_what_is_hidden(asked: Asked) -> None:
    for other in (asked.disguised, asked.alone):
        pairs = [each for each in zip(asked.cases, asked.hidden[0], other[0], strict=True) if each[0].endpoint.name not in WITH_THE_BASE]

        assert [] == [str(case) for case, (left, _), (right, _) in pairs if seen_of(left) != seen_of(right)]


def test_words_of_hidden_documents_take_the_work_of_words_that_occur_nowhere(asked: Asked) -> None:
    """Both bases are of one size, and the words of the one's hidden documents occur nowhere in the other."""
    for attempt in (0, 1):
        assert [] == _unlike(asked.cases, asked.hidden[attempt], asked.disguised[attempt])


def test_a_base_with_hidden_documents_does_the_work_of_one_without(asked: Asked) -> None:
    found = []
    for case, (_, left), (_, right) in zip(asked.cases, asked.hidden[1], asked.alone[1], strict=True):
        differing = [each for each in _lines(left, right) if each not in OF_SIZE and not each.startswith((*OF_THE_LOG, *OF_LAYOUT))]
        is_filtered = isinstance(case.body, dict) and "filter" in case.body  # whether before or after the search, the size decides
        if case.endpoint.name not in OF_THE_WHOLE_BASE and not is_filtered and (differing or left.statements != right.statements):
            found.append(f"{case}: {differing}, {left.statements} / {right.statements} statements")

    assert [] == found


def _unlike(cases: Sequence[Case], done: Done, others: Done) -> list[str]:
    found = []
    for case, (_, left), (_, right) in zip(cases, done, others, strict=True):
        differing = _lines(left, right)
        is_alike = left.statements == right.statements and abs(left.steps - right.steps) <= MAX_STEPS and left.elements == right.elements
        if differing or not is_alike:
            figures = [(getattr(left, name), getattr(right, name)) for name in ("statements", "steps", "elements")]
            found.append(f"{case}: {differing} {figures}")
    return found


def _lines(left: Work, right: Work) -> list[str]:
    """Return the functions of which another number of lines ran."""
    counts = {name: abs(left.lines[name] - right.lines[name]) for name in left.lines | right.lines}
    differing = {name: count for name, count in counts.items() if count}
    of_rules = [name for name in differing if name.startswith(WHICH_PART_DENIES)]
    excused = of_rules if sum(differing[name] for name in of_rules) <= MAX_LINES else []
    named = [name for name in ("contracts/sources.py:is_own",) if differing.get(name) == 1]  # a source that a request names is looked up
    return sorted(differing.keys() - {*excused, *named})


# --- what is told of times ---


def test_nobody_but_the_owner_is_told_what_stages_took(asked: Asked) -> None:
    told = [left for case, (left, _) in zip(asked.cases, asked.hidden[0], strict=True) if case.endpoint.name == "retrieve"]
    answers = [msgspec.convert(each, EvidenceResponse) for each in told if "fragments" in each]

    assert 20 < len(answers)
    for answer in answers:
        assert {} == answer.stage_latencies_ms
        assert 0 == answer.latency_ms % TOLD_STEP_MS
        assert [] == [report.elapsed_ms for report in answer.source_coverage.values() if report.elapsed_ms % TOLD_STEP_MS]
        assert [] == [source for source, report in answer.source_coverage.items() if source in {"rich", "shelf"} and report.elapsed_ms]
        assert verify_response(answer).ok
