"""`evidentia serve`: the control plane of a base over HTTP, until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.serving.cli.invocation import Invocation
    from evidentia.wiring.control import Control

HostOption = Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 takes a free one.")]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Write the first admin token here instead of to stderr.", show_default=False),
]
DurableOption = Annotated[bool, typer.Option("--durable", help="Have each decision on disk before its call is answered.")]


def serve(
    context: typer.Context,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8321,
    token_file: TokenFileOption = None,
    durable: DurableOption = False,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Serve policies, runs and decisions over HTTP.

    A base without tokens is given one for its first admin, which is shown once. SIGTERM and Ctrl-C let requests under way finish.
    There is no TLS here: put a proxy in front before you listen on anything but this machine.
    """
    from evidentia.serving.cli.output import flush, note, put, put_json
    from evidentia.serving.cli.serve_loop import bound_socket, run_until_stopped
    from evidentia.wiring.control import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    listening = bound_socket(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    with listening, open_control(call.base, is_durable=durable) as control:
        _give_first_token(call, control, token_file)
        if call.is_json:
            put_json({"address": address}, is_compact=True)
        else:
            put(f"listening on {address}")
        flush()
        run_until_stopped(control, listening)
        note(call, "stopped")


def _give_first_token(call: "Invocation", control: "Control", file: Path | None) -> None:
    """Make a token for the first admin where there is none; it is told even with --quiet, since nobody can get in without."""
    import sys

    from evidentia.contracts.control import Role
    from evidentia.contracts.policies import DEFAULT_TENANT
    from evidentia.serving.cli.output import note
    from evidentia.serving.cli.serve_loop import write_privately

    if control.tokens.tokens():
        return
    issued = control.tokens.issue(name="first admin", roles=(Role.ADMIN,), tenant=DEFAULT_TENANT, by="evidentia serve")
    if file is None:
        sys.stderr.write(f"token of the first admin, shown once: {issued.token}\n")
        sys.stderr.flush()
        return
    write_privately(file, issued.token)
    note(call, f"the token of the first admin is in {file}")
