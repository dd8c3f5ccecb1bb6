"""The versions of a base and their differences: what came, went and changed, cut to what whoever asks may see."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia import AccessRule, Base, Principal, aconnect, connect
from evidentia.contracts.errors import InvalidFieldError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.documents import ChangedDocuments, VersionDiff

ANN = Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty directory for documents."""
    made = tmp_path / "docs"
    made.mkdir()
    return made


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return an empty base."""
    with connect(tmp_path / "base", init=True) as made:
        yield made


def ids(found: ChangedDocuments) -> list[str]:
    return [each.document_id.partition(":")[2].removesuffix(".md") for each in found.documents]


def shape(diff: VersionDiff) -> tuple[list[str], ...]:
    return tuple(ids(each) for each in (diff.added, diff.removed, diff.changed, diff.metadata_changed, diff.access_changed))


def write(folder: Path, name: str, text: str, *, level: str = "internal", tag: str = "plain") -> None:
    (folder / f"{name}.md").write_text(f"---\nclassification: {level}\ntags: [{tag}]\n---\n\n{text}\n")


def take_in(base: Base, folder: Path) -> int:
    base.ingest([folder], source="book", prune=True, embed=False)
    return base.head().sequence


def test_versions_are_listed_newest_first_with_what_they_hold(base: Base, folder: Path) -> None:
    write(folder, "a", "One.")
    first = take_in(base, folder)
    write(folder, "b", "Two.")
    second = take_in(base, folder)
    found = base.versions()

    assert [second, first, 0] == [each.sequence for each in found]
    assert [(2, 2), (1, 1), (0, 0)] == [(each.documents, each.chunks) for each in found]
    assert all(each.is_kept for each in found)
    head = base.head()
    assert (head.corpus_version, head.evidence_state, head.committed_at) == (found[0].corpus_version, found[0].evidence_state, found[0].at)
    assert [second] == [each.sequence for each in base.versions(limit=1)]


def test_each_kind_of_change_is_named_with_its_source(base: Base, folder: Path) -> None:
    for name in ("gone", "other", "tagged", "moved", "same", "all"):
        write(folder, name, f"The page {name}.")
    older = take_in(base, folder)
    (folder / "gone.md").unlink()
    write(folder, "other", "Another page.")
    write(folder, "tagged", "The page tagged.", tag="fancy")
    write(folder, "all", "All is new.", level="confidential", tag="fancy")
    write(folder, "new", "A new page.")
    take_in(base, folder)
    base.set_access(["book:moved.md"], AccessRule(acl=("group:oncall",)))
    diff = base.diff(older, base.head().sequence)

    assert (["new"], ["gone"], ["all", "other"], ["all", "tagged"], ["all", "moved"]) == shape(diff)
    assert {"book"} == {each.source_id for kind in (diff.added, diff.removed, diff.changed) for each in kind.documents}
    assert (6, 6) == (diff.older.documents, diff.newer.documents)
    assert "" == diff.note
    assert (["gone"], ["new"], ["all", "other"], ["all", "tagged"], ["all", "moved"]) == shape(base.diff(base.head().sequence, older))


def test_a_version_is_named_by_number_hash_or_the_beginning_of_one(base: Base, folder: Path) -> None:
    write(folder, "a", "One.")
    take_in(base, folder)
    older, newer = base.versions()[1], base.versions()[0]
    wanted = base.diff(older.sequence, newer.sequence)

    assert (["a"], [], [], [], []) == shape(wanted)
    for one, other in ((str(older.sequence), str(newer.sequence)), (older.corpus_version, newer.evidence_state[:12])):
        assert wanted == base.diff(one, other)
    for name in ("99", 99, -1, "x" * 64, "", older.corpus_version[:7], older.corpus_version + "0"):
        with pytest.raises(NotFoundError):
            base.diff(name, newer.sequence)


def test_the_same_version_twice_differs_in_nothing(base: Base, folder: Path) -> None:
    write(folder, "a", "One.")
    newest = take_in(base, folder)

    assert ([], [], [], [], []) == shape(base.diff(newest, newest))


def test_a_text_that_is_cut_elsewhere_is_changed(tmp_path: Path, folder: Path) -> None:
    write(folder, "a", "".join(f"## Part {number}\n\n{'word ' * 60}\n\n" for number in range(4)))
    with connect(tmp_path / "base", init=True) as base:
        older = take_in(base, folder)
    (tmp_path / "base" / "evidentia.toml").write_text("[ingest]\nchunk_chars = 200\nchunk_max_chars = 300\n")
    with connect(tmp_path / "base") as base:
        diff = base.diff(older, take_in(base, folder))

        assert ([], [], ["a"], [], []) == shape(diff)


def test_long_lists_are_cut_with_their_totals_and_a_note(base: Base, folder: Path) -> None:
    for number in range(7):
        write(folder, f"p{number}", f"Page {number}.")
    diff = base.diff(0, take_in(base, folder), limit=3)

    assert (7, ["p0", "p1", "p2"]) == (diff.added.total, ids(diff.added))
    assert "only the first 3" in diff.note
    for limit in (0, -1, 10**9):
        with pytest.raises(InvalidFieldError, match="limit"):
            base.diff(0, 1, limit=limit)
        with pytest.raises(InvalidFieldError, match="limit"):
            base.versions(limit=limit)


def test_what_gc_removed_is_named_without_what_it_held(base: Base, folder: Path) -> None:
    write(folder, "a", "One.")
    first = take_in(base, folder)
    write(folder, "a", "Two.")
    second = take_in(base, folder)
    base.gc(keep_versions=1)
    kept = {each.sequence: (each.is_kept, each.documents) for each in base.versions()}

    assert (False, None) == kept[first]
    assert (True, 1) == kept[second]
    assert 4 == len(kept)
    with pytest.raises(VersionCollectedError):
        base.diff(first, second)
    assert ([], [], [], [], []) == shape(base.diff(second, base.head().sequence))


def test_a_caller_sees_the_difference_of_what_it_may_see(base: Base, folder: Path) -> None:
    for name, level in {"open": "internal", "closed": "confidential", "opened": "confidential", "shut": "internal"}.items():
        write(folder, name, f"The page {name}.", level=level)
    older = take_in(base, folder)
    for name, level in {"open": "internal", "closed": "confidential", "opened": "internal", "shut": "confidential"}.items():
        write(folder, name, f"The other page {name}.", level=level)
    newer = take_in(base, folder)
    with connect(base.path, principal=ANN) as hers:
        diff = hers.diff(older, newer)
        counts = {each.sequence: each.documents for each in hers.versions()}

    # What was opened is new to her; what was shut she may see in neither, by the last rule it has.
    assert (["opened"], [], ["open"], [], []) == shape(diff)
    assert (1, 2) == (diff.older.documents, diff.newer.documents) == (counts[older], counts[newer])


def test_access_rules_of_the_settings_hold_here_too(base: Base, folder: Path) -> None:
    write(folder, "a", "One.", tag="hidden")
    write(folder, "b", "Two.")
    newest = take_in(base, folder)
    (base.path / "evidentia.toml").write_text("""[access]\nrules = ['NOT tags CONTAINS "hidden"']\n""")
    with connect(base.path, principal=ANN) as hers:
        assert (["b"], [], [], [], []) == shape(hers.diff(0, newest))
        assert 1 == hers.versions()[0].documents


def test_the_async_form_says_the_same(base: Base, folder: Path) -> None:
    write(folder, "a", "One.")
    newest = take_in(base, folder)

    async def ask() -> tuple[object, object]:
        async with await aconnect(base.path) as opened:
            return await opened.versions(limit=2), await opened.diff(0, newest)

    assert (base.versions(limit=2), base.diff(0, newest)) == asyncio.run(ask())


# --- against a naive history ---


class Page(NamedTuple):
    """A document as the test remembers it."""

    text: str
    tag: str
    level: Classification


NAMES = st.sampled_from("abcd")
LEVELS = st.sampled_from([Classification.PUBLIC, Classification.INTERNAL, Classification.CONFIDENTIAL])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.sampled_from(["One.", "Two.", "Three."]), st.sampled_from(["x", "y"]), LEVELS),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("move"), NAMES, LEVELS),
    ),
    min_size=2,
    max_size=7,
)


def play(base: Base, folder: Path, steps: list[tuple[str, ...]]) -> list[tuple[int, dict[str, Page]]]:
    """Do what the steps say, one commit each, and return what each version holds."""
    present: dict[str, Page] = {}
    history: list[tuple[int, dict[str, Page]]] = [(0, {})]
    for act, name, *rest in steps:
        if act == "write":
            text, tag, level = rest
            present[name] = Page(text, tag, Classification(level))
            shutil.rmtree(folder)
            folder.mkdir()
            write(folder, name, text, tag=tag, level=str(Classification(level).value))
            base.ingest([folder], source="book", embed=False)
            base.set_access([f"book:{name}.md"], AccessRule(classification=Classification(level)))
        elif name in present and act == "remove":
            del present[name]
            base.remove([f"book:{name}.md"])
        elif name in present:
            present[name] = present[name]._replace(level=Classification(rest[0]))
            base.set_access([f"book:{name}.md"], AccessRule(classification=Classification(rest[0])))
        history.append((base.head().sequence, dict(present)))
    return history


def seen(history: list[tuple[int, dict[str, Page]]], number: int, clearance: Classification | None) -> dict[str, Page]:
    last = {name: page.level for _, pages in history for name, page in pages.items()}
    pages = history[number][1]
    if clearance is None:
        return pages
    return {name: page for name, page in pages.items() if max(page.level.rank, last[name].rank) <= clearance.rank}


@settings(max_examples=25)
@given(steps=STEPS, clearance=st.one_of(st.none(), LEVELS), choice=st.integers(0, 100))
def test_differences_are_those_of_a_naive_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, ...]], clearance: Classification | None, choice: int
) -> None:
    work = tmp_path_factory.mktemp("history")
    (work / "docs").mkdir()
    with connect(work / "base", init=True) as base:
        history = play(base, work / "docs", steps)
    first, second = sorted((choice % len(history), choice // 7 % len(history)))
    old, new = seen(history, first, clearance), seen(history, second, clearance)
    both = sorted(old.keys() & new.keys())
    principal = None if clearance is None else Principal(principal_id=PrincipalId("ann"), clearance=clearance)
    with connect(work / "base", principal=principal) as base:
        diff = base.diff(history[first][0], history[second][0])
        counts = {each.sequence: each.documents for each in base.versions(limit=100)}

    assert (
        sorted(new.keys() - old.keys()),
        sorted(old.keys() - new.keys()),
        [name for name in both if old[name].text != new[name].text],
        [name for name in both if old[name].tag != new[name].tag],
        [name for name in both if old[name].level != new[name].level],
    ) == shape(diff)
    assert [len(seen(history, number, clearance)) for number in range(len(history))] == [counts[sequence] for sequence, _ in history]
    shutil.rmtree(work)
