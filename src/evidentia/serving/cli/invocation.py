"""The options every command shares, which may stand before or after its name."""

from pathlib import Path
from typing import Annotated, NamedTuple, Self

import typer

DEFAULT_BASE = ".evidentia"
ENVIRONMENT_BASE = "EVIDENTIA_BASE"

# No environment variable here: it would win over a --base that stands before the command.
BaseOption = Annotated[Path | None, typer.Option("--base", metavar="DIR", help="The directory of the base.", show_default=False)]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress notes and progress; data and errors remain.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help="The principal, such as alice or 'alice clearance=confidential groups=oncall'; default: the owner.",
        show_default=False,
    ),
]


class Invocation(NamedTuple):
    """What holds for one run of a command."""

    base: Path
    is_quiet: bool = False
    is_json: bool = False

    @classmethod
    def from_globals(cls, *, base: str, quiet: bool, json: bool) -> Self:
        """Return what the options before the command say; an empty EVIDENTIA_BASE counts as none."""
        return cls(base=Path(base or DEFAULT_BASE), is_quiet=quiet, is_json=json)


def invocation(context: typer.Context, *, base: Path | None = None, quiet: bool = False, json: bool = False) -> Invocation:
    """Return the options of a run: those after the command's name add to those before it, and a later --base wins."""
    before: Invocation = context.obj
    return Invocation(base=base or before.base, is_quiet=quiet or before.is_quiet, is_json=json or before.is_json)
