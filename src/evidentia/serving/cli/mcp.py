"""`evidentia mcp`: a base for MCP clients, over stdin and stdout or over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation

HttpOption = Annotated[
    str | None,
    typer.Option("--http", metavar="HOST:PORT", help="Listen here instead of on stdin; port 0 takes a free one.", show_default=False),
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="HOST", help="Another accepted Host name, such as that of a reverse proxy; may be given several times."
    ),
]
PrincipalsOption = Annotated[
    Path | None,
    typer.Option("--principals", metavar="FILE", help="JSON file that maps token names to clearances, groups and attributes."),
]
ProfileOption = Annotated[
    str, typer.Option("--profile", metavar="PROFILE", help="Protocol profile for replies: first_call, thorough, or a file of your own.")
]
HINT = "write an address and a port, such as 127.0.0.1:8322 or [::1]:8322"
NO_TOKENS_HINT = "make one with `evidentia tokens add --name NAME --role agent`, or listen on 127.0.0.1"


def mcp(
    context: typer.Context,
    *,
    http: HttpOption = None,
    allow_host: AllowHostOption = None,
    principals: PrincipalsOption = None,
    profile: ProfileOption = "first_call",
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Serve a base to an MCP client.

    Over stdin and stdout the client asks as the owner, or as the principal after --as.
    Over HTTP it asks as the holder of its bearer token; a base without tokens is open to this machine alone.
    There is no TLS here: put a proxy in front before you listen on anything but this machine.
    """
    from evidentia.contracts.access import local_owner
    from evidentia.contracts.errors import BaseMissingError, MissingExtraError
    from evidentia.serving.cli.principals import principal_from
    from evidentia.wiring.settings_file import has_base

    call = invocation(context, base=base, quiet=quiet, json=json)
    asking = local_owner() if caller is None else principal_from(caller)
    if not has_base(call.base):
        raise BaseMissingError(str(call.base))
    try:
        from evidentia.serving.identity.callers import Grants
        from evidentia.serving.mcp.running import serve_http, serve_stdio
    except ImportError as error:
        raise MissingExtraError("mcp", needed_for="`evidentia mcp`") from error
    from evidentia.serving.cli.policy_lint_files import read_profile

    checked = read_profile(profile)
    if http is None:
        serve_stdio(call.base, principal=asking, profile=checked)
        return

    from evidentia.serving.cli.output import flush, note, put, put_json
    from evidentia.serving.cli.serve_loop import bound_socket

    host, port = _address(http)
    _refuse_open_door(call.base, host)
    grants = Grants() if principals is None else Grants.read(principals.read_bytes())
    with bound_socket(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/mcp"
        if call.is_json:
            put_json({"address": address}, is_compact=True)
        else:
            put(f"listening on {address}")
        flush()
        serve_http(call.base, listening, alone=asking, grants=grants, hosts=[host, *(allow_host or ())], profile=checked)
        note(call, "stopped")


def _address(text: str) -> tuple[str, int]:
    from evidentia.serving.cli.cli_errors import UsageError

    host, _, port = text.rpartition(":")
    highest = 65_535
    if not host or not port.isascii() or not port.isdecimal() or int(port) > highest:
        raise UsageError(f"field 'http': '{text}' is no address with a port", hint=HINT)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _refuse_open_door(base: Path, host: str) -> None:
    """Refuse to listen to other machines as long as nobody could be told from anybody."""
    from evidentia.serving.cli.cli_errors import UsageError
    from evidentia.wiring.governance_runtime import open_tokens

    if host in {"127.0.0.1", "localhost", "::1"}:
        return
    with open_tokens(base) as (tokens, _):
        if not tokens.tokens():
            raise UsageError(f"field 'http': the base has no tokens, so '{host}' would be open to everybody", hint=NO_TOKENS_HINT)
