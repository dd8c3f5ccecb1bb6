"""`evidentia eval`: how good the answers are on a judged collection, whether one run is better, and a base's own calibration."""

import sys
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, command_group, flag, opt
from evidentia.serving.cli.output import Figure, put, put_answer, put_table
from evidentia.serving.cli.search_commands import ModeOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.base.sync_base import Base
    from evidentia.evaluation.beir import BeirRun
    from evidentia.evaluation.compare import Comparison
    from evidentia.evaluation.confidence_calibration import CalibrationReport

group = command_group("Evaluate retrieval against relevance judgments.")

SplitOption = Annotated[str, opt("--split", "S", "Which judgments: qrels/S.tsv.")]
SEED = 0
"""The same two runs give the same interval each time."""


@command(group, "run", has_base=False)
def run(
    call: Invocation,
    *,
    folder: Annotated[Path, arg("DIR", "A folder with corpus.jsonl, queries.jsonl and qrels/, in the layout of BEIR.")],
    split: SplitOption = "test",
    mode: ModeOption = None,
    k: Annotated[int, opt("--k", "K", "The cut of nDCG, P and R, from 1 to 100.")] = 10,
    run_file: Annotated[Path | None, opt("--run-file", "FILE", "Write the rankings as a TREC run; an existing file is replaced.")] = None,
) -> CommandResult[object]:
    """Evaluate a judged collection (BEIR layout) in a temporary base.

    JSON on stdout; a table on a terminal unless --json is given.
    """
    from evidentia.evaluation.beir import run_beir
    from evidentia.evaluation.runs import write_run
    from evidentia.serving.cli.progress import Bar, EmbedBar, IngestBar

    _refuse_unwritable(run_file)
    is_wanted = not call.is_quiet
    with (
        IngestBar(is_wanted=is_wanted) as ingesting,
        EmbedBar(is_wanted=is_wanted) as embedding,
        Bar("asking", is_wanted=is_wanted) as asking,
    ):
        found = run_beir(
            folder,
            timer_ns=time.perf_counter_ns,
            split=split,
            k=k,
            on_ingest=ingesting.update,
            on_embed=embedding.update,
            on_answer=asking.move,
            **({} if mode is None else {"mode": mode}),
        )
    if run_file is not None:
        write_run(found.run, run_file)
    summary = {**found.report.summary(), "run": found.run.tag}
    return CommandResult(summary, (lambda _: _put_run(found)) if sys.stdout.isatty() else put_answer, put_message=put_answer)


@command(group, "compare", has_base=False)
def compare(
    *,
    baseline: Annotated[Path, arg("BASELINE", "Baseline, a TREC run file.")],
    systems: Annotated[list[Path], arg("SYSTEM...", "Run files to compare; of several, each pair is compared.")],
    dataset: Annotated[Path | None, opt("--dataset", "DIR", "The folder with the judgments; a run has none.")] = None,
    split: SplitOption = "test",
    measure: Annotated[str, opt("--measure", "NAME", "nDCG@10, P@5, R@100, MRR, MAP or the like.")] = "nDCG@10",
) -> CommandResult[object]:
    """Compare runs with paired significance tests.

    Differences are SYSTEM minus BASELINE, with a bootstrap interval and a randomisation test.
    """
    import msgspec
    import numpy as np

    from evidentia.evaluation.compare import compare_runs
    from evidentia.evaluation.datasets import load_dataset
    from evidentia.evaluation.measures import Measure
    from evidentia.evaluation.runs import read_run

    chosen = Measure.parse(measure)
    if dataset is None:
        raise UsageError(
            "compare needs --dataset: a run file does not say what is relevant", hint="pass the folder the runs were made from"
        )
    judged = load_dataset(dataset, split=split)
    runs = [(path, read_run(path)) for path in (baseline, *systems)]
    compared = [
        (before, after, compare_runs(first, second, judged.qrels, measure=chosen, generator=np.random.default_rng(SEED)))
        for (before, first), (after, second) in combinations(runs, 2)
    ]
    messages = [{"baseline": str(before), "system": str(after), **msgspec.structs.asdict(found)} for before, after, found in compared]
    if len(compared) > 1:
        return CommandResult(
            {"comparisons": messages}, lambda _: _put_comparisons(compared), notes=_lacking_notes(compared), put_message=put_answer
        )
    found = compared[0][2]
    return CommandResult(messages[0], _facts(found, baseline, systems[0]), notes=_missing_notes(found), put_message=put_answer)


@command(group, "calibrate")
def calibrate(
    call: Invocation,
    base: "Base",
    *,
    judged: Annotated[
        Path, arg("JUDGED", "A folder with queries.jsonl and qrels/, or a file of JSON lines with `question` and `relevant`.")
    ],
    split: SplitOption = "test",
    dry_run: Annotated[bool, flag("--dry-run", "Fit and report without storing.")] = False,
) -> CommandResult[object]:
    """Calibrate the confidence of a base with judged questions.

    At least 20 questions are needed. Answers use the calibration from the next time on that the base is opened; removing
    calibration.json from the base goes back to the shipped one.
    """
    from evidentia.evaluation.confidence_calibration import calibrate, read_questions
    from evidentia.serving.cli.progress import Bar

    questions = read_questions(judged, split=split)
    with Bar("asking", is_wanted=not call.is_quiet) as asking:
        report = calibrate(base.path, questions, store=not dry_run, on_answer=asking.move)
    return CommandResult(report, _calibration_facts(report), put_message=put_answer)


def _calibration_facts(report: "CalibrationReport") -> list[tuple[str, object]]:
    before, after = report.before, report.after
    return [
        ("questions", f"{report.questions}, with {report.fragments} fragments, {report.relevant:.1%} of them relevant"),
        ("calibration error", f"{before.calibration_error:.4f} before, {after.calibration_error:.4f} after (cross-validated)"),
        ("Brier score", f"{before.brier:.4f} before, {after.brier:.4f} after, {report.constant_brier:.4f} for a constant"),
        ("stored", "yes" if report.is_stored else "no, a dry run"),
    ]


def _refuse_unwritable(run_file: Path | None) -> None:
    """Say so before minutes of work, not after."""
    if run_file is None:
        return
    if run_file.is_dir():
        raise UsageError(f"'{run_file}' is a directory", hint="name a file, which may be new")
    if not run_file.absolute().parent.is_dir():
        raise UsageError(f"'{run_file}' cannot be written: its directory does not exist", hint="make the directory first")


def _put_run(found: "BeirRun") -> None:
    put(f"{found.report.dataset}, {found.report.split}: {found.report.queries} queries", "")
    put_table(("measure", "value"), [(name, f"{value:.4f}") for name, value in found.report.measures.items()])
    put("", f"p50 {found.report.p50_ms:.1f} ms, p99 {found.report.p99_ms:.1f} ms a query")


def _put_comparisons(compared: "Sequence[tuple[Path, Path, Comparison]]") -> None:
    """Print each run with its mean, then each pair with its difference."""
    means = {
        str(path): mean for before, after, found in compared for path, mean in ((before, found.baseline_mean), (after, found.system_mean))
    }
    put(f"{compared[0][2].measure} over {compared[0][2].queries} queries", "")
    put_table(("run", "mean"), [(path, Figure(f"{mean:.4f}")) for path, mean in means.items()])
    put()
    put_table(
        ("baseline", "system", "difference", f"interval {compared[0][2].confidence_percent:g} %", "p-value", "better, equal, worse"),
        [
            (
                str(before),
                str(after),
                Figure(f"{found.mean_difference:+.4f}"),
                f"{found.low:+.4f} to {found.high:+.4f}",
                Figure(f"{found.p_value:.4f}"),
                f"{found.wins}, {found.ties}, {found.losses}",
            )
            for before, after, found in compared
        ],
    )


def _lacking_notes(compared: "Sequence[tuple[Path, Path, Comparison]]") -> list[str]:
    lacking: dict[str, set[str]] = {}
    for before, after, found in compared:
        lacking.setdefault(str(before), set()).update(found.only_system)
        lacking.setdefault(str(after), set()).update(found.only_baseline)
    return [
        f"'{path}' lacks {len(missing)} queries that another run has; judged ones count as 0 there"
        for path, missing in lacking.items()
        if missing
    ]


def _facts(found: "Comparison", baseline: Path, system: Path) -> list[tuple[str, object]]:
    return [
        ("measure", f"{found.measure} over {found.queries} queries"),
        ("baseline", f"{found.baseline_mean:.4f}  {baseline}"),
        ("system", f"{found.system_mean:.4f}  {system}"),
        ("difference", f"{found.mean_difference:+.4f}"),
        ("interval", f"{found.low:+.4f} to {found.high:+.4f} ({found.confidence_percent:g} %, {found.resamples} resamples)"),
        ("p-value", f"{found.p_value:.4f}"),
        ("queries", f"{found.wins} better, {found.ties} equal, {found.losses} worse"),
    ]


def _missing_notes(found: "Comparison") -> list[str]:
    sides = (("baseline", found.only_system), ("system", found.only_baseline))
    return [f"{len(missing)} queries have no line in the {name}; judged ones count as 0 there" for name, missing in sides if missing]
