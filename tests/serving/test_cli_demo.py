"""The demo tells what happens, finds its own tampering, and keeps its hands off what is not its own."""

from __future__ import annotations

import re
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import pytest

from engine.known_vectors import remembering_encoder
from evidentia.backends.onnx import encoder as onnx_encoder
from evidentia.serving.cli import main
from serving.cli_runs import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serving.cli_runs import Run

CHANGING = re.compile(r"r-[0-9a-f]{12}-[0-9a-f]{32}|\d+(\.\d)? ms|byte \d+")
RESULT = re.compile(r"result [0-9a-f]{16}")


class Told(NamedTuple):
    """What a first demo said, and the directory that it left."""

    outcome: Outcome
    directory: Path


@pytest.fixture(scope="module", autouse=True)
def encoder_that_remembers() -> Iterator[None]:
    """Encode the pages of the demo once for all the demos of this file, none of which is about how that is done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_encoder, "packaged_encoder", lambda **_: remembering_encoder())
        yield


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Return one demo that several tests read; those that change something have their own, since a base knows where its files are."""
    directory = tmp_path_factory.mktemp("demo")
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(directory), redirect_stdout(out), redirect_stderr(err):
        patch.delenv("EVIDENTIA_BASE", raising=False)
        exit_code = main(["demo"])
    return Told(Outcome(exit_code, out.getvalue(), err.getvalue()), directory / ".demo")


def test_demo_builds_verifies_exports_and_finds_tampering(run: Run, told: Told) -> None:
    outcome, directory = told

    assert (0, "") == (outcome.exit_code, outcome.err)
    assert 4 == outcome.out.count("everything holds")
    assert 2 == outcome.out.count("  check    ")
    assert "security:signing-key-custody.md  confidential    group:security" in outcome.out
    assert "'expire after 30 days' becomes 'expire after 90 days'" in outcome.out
    assert run("verify", "--base", directory / "base").exit_code == 0
    assert run("verify", "--base", directory / "tampered").exit_code == 1
    assert run("verify", directory / "fragment.json").exit_code == 0
    assert run("verify", directory / "fragment-tampered.json").exit_code == 1


def test_demo_asks_as_two_people_and_only_one_learns_of_the_page(told: Told) -> None:
    out = told.outcome.out
    *_, insider, outsider = out.split("  evidentia search ")[:5]

    assert "security:signing-key-custody.md" in insider
    assert "signing-key-custody" not in outsider.split("4. Verify")[0]
    assert "What tells alice that there is such a page? Nothing:" in outsider
    assert ": the same answer, result " in out


def test_demo_shows_a_conflict_with_its_reason_and_finds_by_meaning(told: Told) -> None:
    asked = told.outcome.out.split("2. Ask")[1].split("3. Access")[0]
    conflict, other_words = asked.split('  evidentia search "stolen credentials"')

    assert re.search(r"\n1 .* handbook:key-rotation\.md .* holds ", conflict)
    assert re.search(r" handbook:security-basics\.md .* contradicted ", conflict)
    assert re.search(r"\nSigning keys rotated every  30 days \(\S+\)  90 days \(\S+\)  updated_at\n", conflict)
    assert "Two pages disagree." in conflict
    assert "Words alone find 0 fragments. handbook:security-basics.md was found by its meaning: cosine 0." in other_words


def test_demo_asks_a_table_and_shows_where_its_rows_stand(run: Run, tmp_path: Path) -> None:
    asked = run("demo").out.split("  evidentia tables ask ")[1].split("3. Access")[0]
    (tmp_path / ".demo" / "corpus" / "tables" / "postage.csv").unlink()
    without = run("demo")

    assert re.search(r"\nservice.*\nDinghy.*\nCutter.*\n\n2 rows\n", asked)
    assert "source      tables:postage.csv, sheet 1, rows 6, 9\n" in asked
    assert 0 == without.exit_code
    assert "declined: " in without.out
    assert "and nothing is guessed." in without.out


def test_demo_stops_an_agent_that_makes_something_up_and_decides_it_all_again(run: Run, told: Told) -> None:
    governed = told.outcome.out.split("6. Govern")[1].split("7. Tamper")[0]

    assert "below threshold (0.5)" in governed
    assert "everything holds" in governed
    assert "0 came out differently" in governed
    assert 0 == run("policy", "replay", "--base", told.directory / "base").exit_code


def test_demo_says_the_same_every_time_but_for_receipts_and_times(run: Run, told: Told) -> None:
    """Others than the owner see results that are keyed with a secret of the base; the owner's are the same in every base."""

    def lasting(out: str) -> str:
        before, _, rest = CHANGING.sub("", out).partition("3. Access")
        as_others, _, after = rest.partition("4. Verify")
        return "".join((before, RESULT.sub("", as_others), after))

    assert lasting(told.outcome.out) == lasting(run("demo", "--fresh").out)
    assert RESULT.search(told.outcome.out.partition("3. Access")[0])


def test_demo_without_an_encoder_says_so(run: Run, tmp_path: Path) -> None:
    run("demo")
    (tmp_path / ".demo" / "base" / "evidentia.toml").write_text('[embedding]\nencoder = "none"\n', encoding="utf-8")

    out = run("demo").out

    assert "The settings name no encoder, so documents are found by their words alone." in out
    assert "there is nothing else to find it by" in out


def test_demo_has_nothing_to_hide_when_the_page_was_opened(run: Run, tmp_path: Path) -> None:
    run("demo")
    (tmp_path / ".demo" / "corpus" / "security" / "signing-key-custody.md").write_text("# Kittiwake\n\nis open\n", encoding="utf-8")

    outcome = run("demo")

    assert 0 == outcome.exit_code
    assert "there is nothing to keep from anyone" in outcome.out


def test_second_demo_finds_everything_unchanged_and_fresh_begins_again(run: Run, tmp_path: Path) -> None:
    first = run("demo", "--dir", "here")
    second = run("demo", "--dir", "here")
    page = tmp_path / "here" / "corpus" / "handbook" / "overview.md"
    page.write_text("# Changed\n", encoding="utf-8")
    third = run("demo", "--dir", "here")
    fourth = run("demo", "--dir", "here", "--fresh")

    assert "Nothing has changed since the last run" not in first.out
    assert "Nothing has changed since the last run" in second.out
    assert "handbook   canonical      0        1          4" in third.out
    assert "handbook   canonical      5        0          0" in fourth.out
    assert "# Changed\n" != page.read_text(encoding="utf-8")


def test_demo_keeps_out_of_directories_that_are_not_its_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "project" / "corpus").mkdir(parents=True)
    (tmp_path / "project" / "corpus" / "mine.md").write_text("mine", encoding="utf-8")

    outcome = run("demo", "--dir", "project", "--fresh")

    assert 2 == outcome.exit_code
    assert "'project' is not empty and was not made by the demo" in outcome.err
    assert (tmp_path / "project" / "corpus" / "mine.md").exists()


def test_demo_works_when_a_reader_has_rewritten_the_page_it_shows(run: Run, tmp_path: Path) -> None:
    run("demo")
    (tmp_path / ".demo" / "corpus" / "CHANGELOG.md").write_text("# Änderungen\n\nnothing here\n", encoding="utf-8")

    outcome = run("demo")

    assert 0 == outcome.exit_code
    assert 2 == outcome.out.count("  check    ")
