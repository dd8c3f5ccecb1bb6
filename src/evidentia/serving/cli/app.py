"""Every command under its name, and the options that stand before it."""

from typing import Annotated

import typer

from evidentia.serving.cli import (
    backup,
    cache,
    demo,
    doctor,
    documents,
    embed,
    evaluate,
    export,
    gc,
    ingest,
    init,
    mcp,
    memory,
    policy,
    replay,
    restore,
    search,
    serve,
    show,
    sources,
    tables,
    tokens,
    trace,
    verify,
    versions,
    why,
)
from evidentia.serving.cli.invocation import DEFAULT_BASE, ENVIRONMENT_BASE, Invocation, JsonOption, QuietOption
from evidentia.serving.cli.output import put

app = typer.Typer(
    name="evidentia",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BaseGlobal = Annotated[
    str, typer.Option("--base", metavar="DIR", envvar=ENVIRONMENT_BASE, show_default=True, help="The directory of the base.")
]
VersionGlobal = Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")]


@app.callback(invoke_without_command=True)
def _globals(
    context: typer.Context,
    *,
    base: BaseGlobal = DEFAULT_BASE,
    quiet: QuietOption = False,
    json: JsonOption = False,
    version: VersionGlobal = False,
) -> None:
    """Evidence retrieval for AI agents, with access control, chain of custody and policy governance.

    Data goes to stdout; notes and progress go to stderr.
    Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 3 the base is missing or damaged.
    """
    if version:
        put(f"evidentia {_installed_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    context.obj = Invocation.from_globals(base=base, quiet=quiet, json=json)


def _installed_version() -> str:
    from importlib.metadata import version

    return version("evidentia")


app.command("init")(init.init)
app.command("ingest")(ingest.ingest)
app.command("embed")(embed.embed)
app.command("documents")(documents.documents)
app.command("show")(show.show)
app.command("search")(search.search)
app.command("replay")(replay.replay)
app.command("why")(why.why)
app.add_typer(trace.group, name="trace")
app.command("verify")(verify.verify)
app.command("export")(export.export)
app.command("versions")(versions.versions)
app.command("gc")(gc.gc)
app.command("backup")(backup.backup)
app.command("restore")(restore.restore)
app.command("doctor")(doctor.doctor)
app.add_typer(sources.group, name="sources")
app.add_typer(tables.group, name="tables")
app.add_typer(memory.group, name="memory")
app.add_typer(cache.group, name="cache")
app.add_typer(policy.group, name="policy")
app.add_typer(evaluate.group, name="eval")
app.command("serve")(serve.serve)
app.command("mcp")(mcp.mcp)
app.add_typer(tokens.group, name="tokens")
app.command("demo")(demo.demo)
