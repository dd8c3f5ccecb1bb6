"""`evidentia policy lint-trace`: what agents did, as they wrote it down, held against a profile of the protocol."""

from pathlib import Path
from typing import Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

TracesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Traces in JSON, JSONL or YAML: one, a list, or one a line; - reads stdin.")
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="PROFILE",
        help="first_call, thorough, or a file with one of your own; default: what each trace names.",
        show_default=False,
    ),
]

FOUND = 1


def lint_trace(
    context: typer.Context,
    *,
    files: TracesArgument,
    profile: ProfileOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Lint agent traces against the agent protocol; the exit code is 1 when one breaks a rule.

    Each finding names the rule, the section it is written in, the call or the paragraph, and the reason. No base is needed.
    """
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_lint_files import lint_files, read_profile

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(profile=profile)
    linted = lint_files(call, files, profile=None if profile is None else read_profile(profile))
    if call.is_json:
        put_json([each.as_json() for each in linted])
    else:
        from evidentia.serving.cli.policy_lint_files import put_findings

        put_findings(linted)
    if any(each.findings for each in linted):
        raise typer.Exit(FOUND)
