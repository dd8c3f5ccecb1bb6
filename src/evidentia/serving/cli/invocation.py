"""What every command shares: its options, the base it works on, and its reply as JSON or as text.

`@command` declares a command. It adds `--base`, `--quiet` and `--json` to the options, opens what the function asks for by the
name of a parameter, runs it, prints its `CommandResult` in the form that was asked for, and turns a failed check into an exit code.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, Self, TypeVar

import typer

from evidentia.contracts.errors import InvalidFieldError
from evidentia.serving.cli.output import flush, note, put, put_facts, put_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from evidentia.base.sync_base import Base
    from evidentia.contracts.access import Principal
    from evidentia.wiring.governance_runtime import GovernanceRuntime

DEFAULT_BASE = ".evidentia"
ENVIRONMENT_BASE = "EVIDENTIA_BASE"
CHECK_FAILED = 1
BASE_UNUSABLE = 3


def opt(
    name: str,
    metavar: str,
    text: str,
    *,
    low: int | None = None,
    high: int | None = None,
    variable: str | None = None,
    is_hidden: bool = False,
    has_default: bool = True,
) -> object:
    """Return an option with a value; `variable` of the environment stands in for it, and `has_default` shows what it is otherwise."""
    return typer.Option(name, metavar=metavar, help=text, min=low, max=high, envvar=variable, hidden=is_hidden, show_default=has_default)


def flag(name: str, text: str, *more_names: str) -> object:
    """Return an option that is there or not."""
    return typer.Option(name, *more_names, help=text)


def arg(metavar: str, text: str) -> object:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=text)


# No environment variable here: it would win over a --base that stands before the command.
BaseOption = Annotated[Path | None, opt("--base", "DIR", "The directory of the base.")]
QuietOption = Annotated[bool, flag("--quiet", "Suppress notes and progress; data and errors remain.", "-q")]
JsonOption = Annotated[bool, flag("--json", "Print JSON instead of tables.")]
AsOption = Annotated[
    str | None,
    opt("--as", "PRINCIPAL", "The principal, such as alice or 'alice clearance=confidential groups=oncall'; default: the owner."),
]

_Message = TypeVar("_Message")
_Function = TypeVar("_Function", bound="Callable[..., CommandResult[Any] | None]")


class Invocation(NamedTuple):
    """What holds for one run of a command."""

    base: Path
    is_quiet: bool = False
    is_json: bool = False
    caller: str | None = None

    @classmethod
    def from_globals(cls, *, base: str, quiet: bool, json: bool) -> Self:
        """Return what the options before the command say; an empty EVIDENTIA_BASE counts as none."""
        return cls(base=Path(base or DEFAULT_BASE), is_quiet=quiet, is_json=json)

    def with_typed(self, *, base: Path | None = None, quiet: bool = False, json: bool = False, caller: str | None = None) -> Self:
        """Return the options of a run: those after the command's name add to those before it, and a later --base wins."""
        return self._replace(base=base or self.base, is_quiet=quiet or self.is_quiet, is_json=json or self.is_json, caller=caller)

    def open_base(self) -> AbstractContextManager[Base]:
        """Open the base as the caller, for a command that does not always need one."""
        principal = self.principal()
        from evidentia.base.sync_base import connect

        return connect(self.base, principal=principal)

    def open_control(self) -> AbstractContextManager[GovernanceRuntime]:
        """Open what governs the base, for a command that checks something else first."""
        from evidentia.wiring.governance_runtime import open_control

        return open_control(self.base)

    def principal(self) -> Principal | None:
        """Return who asks; None is the owner. A caller that cannot be understood is refused before anything is opened."""
        from evidentia.serving.cli.principals import principal_from

        return None if self.caller is None else principal_from(self.caller)


class CommandResult(NamedTuple, Generic[_Message]):
    """What a command answers: a message for programs, and the same as text: a line, facts, or a function that prints it."""

    message: _Message
    text: str | Sequence[tuple[str, object]] | Callable[[_Message], object]
    notes: Iterable[str] = ()
    """Remarks on stderr below the text."""
    is_failed: bool = False
    """A check did not pass: the exit code is 1, or `exit_code`."""
    exit_code: int = CHECK_FAILED
    put_message: Callable[[object], None] = put_json

    def put(self, call: Invocation) -> None:
        """Print it in the form that the call asks for."""
        if call.is_json:
            self.put_message(self.message)
            return
        if isinstance(self.text, str):
            put(self.text)
        elif callable(self.text):
            self.text(self.message)
        else:
            put_facts(self.text)
        for line in self.notes:
            note(call, line)


def command_group(purpose: str) -> typer.Typer:
    """Return a group of commands, such as `evidentia sources`."""
    return typer.Typer(rich_markup_mode=None, help=purpose, no_args_is_help=False)


def command(
    group: typer.Typer, name: str, *, has_base: bool = True, has_caller: bool = False, raw: Collection[str] = ()
) -> Callable[[_Function], _Function]:
    """Declare a command of a group.

    Keyword parameters are its options. Parameters called `call`, `base` and `control` are handed in: the invocation, the base opened
    as the caller, its governance runtime. `has_caller` adds `--as` before `--base`; a command that has `caller` among its own options
    has it there. Whatever was typed must be UTF-8, and an error names the parameter; names of files may be anything, so a command
    whose text may be one names it in `raw`.
    """

    def declare(function: _Function) -> _Function:
        parameters = inspect.signature(function).parameters
        handed = [name for name in parameters if name in _OPENERS]
        options = [each for name, each in parameters.items() if name not in _OPENERS]
        own = {each.name for each in options} - {"caller"}

        def run(context: typer.Context, **typed: object) -> None:
            given = {name: typed.pop(name) for name in own}
            call: Invocation = context.obj.with_typed(**typed)
            _require_text(**{name.removesuffix("_"): _texts(value) for name, value in given.items() if name not in raw})
            # Order matters: what was typed is refused before anything is opened.
            with ExitStack() as opened:
                result = function(**{name: opened.enter_context(_OPENERS[name](call)) for name in handed}, **given)
                if result is None:
                    return
                result.put(call)
                flush()  # before the base is closed, which may wait for a source that is slow to let go
            if result.is_failed:
                raise typer.Exit(result.exit_code)

        _describe(run, function, [*options, *_shared(has_base=has_base, has_caller=has_caller)])
        group.command(name)(run)
        return function

    return declare


def _shared(*, has_base: bool, has_caller: bool) -> list[inspect.Parameter]:
    """Return the options that are added, in the order of the help."""
    options: dict[str, tuple[object, object]] = {"caller": (AsOption, None)} if has_caller else {}
    options |= {"base": (BaseOption, None)} if has_base else {}
    options |= {"quiet": (QuietOption, False), "json": (JsonOption, False)}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in options.items()
    ]


def _describe(run: Callable[..., None], function: Callable[..., object], options: Sequence[inspect.Parameter]) -> None:
    """Give a wrapper the name, the help and the signature that the parser reads."""
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {}
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]  # a function has it when it is set


def _texts(value: object) -> list[str]:
    """Return what was typed for an option as text; numbers and paths are none."""
    several = value if isinstance(value, list | tuple) else [value]
    return [each for each in several if isinstance(each, str)]


_OPENERS: Mapping[str, Callable[[Invocation], AbstractContextManager[Any]]] = {
    "call": nullcontext,
    "base": Invocation.open_base,
    "control": Invocation.open_control,
}


def _require_text(**fields: str | Sequence[str] | None) -> None:
    """Refuse what was typed as bytes that are no UTF-8, where it is not the name of a file."""
    for name, typed in fields.items():
        for text in (typed,) if isinstance(typed, str) else typed or ():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InvalidFieldError(name, f"'{text}' is not UTF-8") from error
