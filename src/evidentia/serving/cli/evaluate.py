"""`evidentia eval`: how good the answers are on a judged collection, and whether one run is better than another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import Invocation, JsonOption, QuietOption, invocation
from evidentia.serving.cli.search import ModeOption

if TYPE_CHECKING:
    from evidentia.evaluation.beir import BeirRun
    from evidentia.evaluation.compare import Comparison

group = typer.Typer(rich_markup_mode=None, help="Evaluate retrieval against relevance judgments.", no_args_is_help=False)

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A folder with corpus.jsonl, queries.jsonl and qrels/, in the layout of BEIR.")
]
SplitOption = Annotated[str, typer.Option("--split", metavar="S", help="Which judgments: qrels/S.tsv.")]
CutOption = Annotated[int, typer.Option("--k", metavar="K", help="The cut of nDCG, P and R, from 1 to 100.")]
RunFileOption = Annotated[
    Path | None,
    typer.Option("--run-file", metavar="FILE", help="Write the rankings as a TREC run; an existing file is replaced.", show_default=False),
]
BaselineArgument = Annotated[Path, typer.Argument(metavar="BASELINE", help="Baseline, a TREC run file.")]
SystemsArgument = Annotated[
    list[Path], typer.Argument(metavar="SYSTEM...", help="Run files to compare; of several, each pair is compared.")
]
DatasetOption = Annotated[
    Path | None, typer.Option("--dataset", metavar="DIR", help="The folder with the judgments; a run has none.", show_default=False)
]
MeasureOption = Annotated[str, typer.Option("--measure", metavar="NAME", help="nDCG@10, P@5, R@100, MRR, MAP or the like.")]

SEED = 0
"""The same two runs give the same interval each time."""


@group.command("run")
def run(
    context: typer.Context,
    *,
    folder: FolderArgument,
    split: SplitOption = "test",
    mode: ModeOption = None,
    k: CutOption = 10,
    run_file: RunFileOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Evaluate a judged collection (BEIR layout) in a temporary base.

    JSON on stdout; a table on a terminal unless --json is given.
    """
    import time

    from evidentia.evaluation.beir import run_beir
    from evidentia.evaluation.runs import write_run
    from evidentia.serving.cli.progress import Bar, EmbedBar, IngestBar

    call = invocation(context, quiet=quiet, json=json)
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
    _put_run(call, found)


@group.command("compare")
def compare(
    context: typer.Context,
    *,
    baseline: BaselineArgument,
    systems: SystemsArgument,
    dataset: DatasetOption = None,
    split: SplitOption = "test",
    measure: MeasureOption = "nDCG@10",
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Compare runs with paired significance tests.

    Differences are SYSTEM minus BASELINE, with a bootstrap interval and a randomisation test.
    """
    from itertools import combinations

    import numpy as np

    from evidentia.evaluation.compare import compare_runs
    from evidentia.evaluation.datasets import load_dataset
    from evidentia.evaluation.measures import Measure
    from evidentia.evaluation.runs import read_run

    call = invocation(context, quiet=quiet, json=json)
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
    if len(compared) == 1:
        _put_comparison(call, compared[0][2], baseline=baseline, system=systems[0])
    else:
        _put_comparisons(call, compared)


def _refuse_unwritable(run_file: Path | None) -> None:
    """Say so before minutes of work, not after."""
    if run_file is None:
        return
    if run_file.is_dir():
        raise UsageError(f"'{run_file}' is a directory", hint="name a file, which may be new")
    if not run_file.absolute().parent.is_dir():
        raise UsageError(f"'{run_file}' cannot be written: its directory does not exist", hint="make the directory first")


def _put_run(call: Invocation, found: "BeirRun") -> None:
    import sys

    from evidentia.serving.cli.output import put, put_answer, put_table

    summary = {**found.report.summary(), "run": found.run.tag}
    if call.is_json or not sys.stdout.isatty():
        put_answer(summary)
        return
    put(f"{found.report.dataset}, {found.report.split}: {found.report.queries} queries")
    put()
    put_table(("measure", "value"), [(name, f"{value:.4f}") for name, value in found.report.measures.items()])
    put()
    put(f"p50 {found.report.p50_ms:.1f} ms, p99 {found.report.p99_ms:.1f} ms a query")


def _put_comparisons(call: Invocation, compared: "list[tuple[Path, Path, Comparison]]") -> None:
    """Print each run with its mean, then each pair with its difference."""
    import msgspec

    from evidentia.serving.cli.output import Figure, note, put, put_answer, put_table

    if call.is_json:
        pairs = [{"baseline": str(before), "system": str(after), **msgspec.structs.asdict(found)} for before, after, found in compared]
        put_answer({"comparisons": pairs})
        return
    means = {
        str(path): mean for before, after, found in compared for path, mean in ((before, found.baseline_mean), (after, found.system_mean))
    }
    put(f"{compared[0][2].measure} over {compared[0][2].queries} queries")
    put()
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
    lacking: dict[str, set[str]] = {}
    for before, after, found in compared:
        lacking.setdefault(str(before), set()).update(found.only_system)
        lacking.setdefault(str(after), set()).update(found.only_baseline)
    for path, missing in lacking.items():
        if missing:
            note(call, f"'{path}' lacks {len(missing)} queries that another run has; judged ones count as 0 there")


def _put_comparison(call: Invocation, found: "Comparison", *, baseline: Path, system: Path) -> None:
    import msgspec

    from evidentia.serving.cli.output import note, put_answer, put_facts

    if call.is_json:
        put_answer({"baseline": str(baseline), "system": str(system), **msgspec.structs.asdict(found)})
        return
    put_facts(
        [
            ("measure", f"{found.measure} over {found.queries} queries"),
            ("baseline", f"{found.baseline_mean:.4f}  {baseline}"),
            ("system", f"{found.system_mean:.4f}  {system}"),
            ("difference", f"{found.mean_difference:+.4f}"),
            ("interval", f"{found.low:+.4f} to {found.high:+.4f} ({found.confidence_percent:g} %, {found.resamples} resamples)"),
            ("p-value", f"{found.p_value:.4f}"),
            ("queries", f"{found.wins} better, {found.ties} equal, {found.losses} worse"),
        ]
    )
    for name, missing in (("baseline", found.only_system), ("system", found.only_baseline)):
        if missing:
            note(call, f"{len(missing)} queries have no line in the {name}; judged ones count as 0 there")
