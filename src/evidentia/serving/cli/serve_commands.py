"""`evidentia serve` and `mcp`: a base over the network through every door, or for one MCP client, until it is told to stop."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.contracts.errors import BaseMissingError, MissingExtraError
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import Invocation, command, flag, opt
from evidentia.serving.cli.output import flush, note, put, put_json

if TYPE_CHECKING:
    from socket import socket

    from evidentia.serving.hosting.supervisor import FirstLink
    from evidentia.wiring.governance_runtime import GovernanceRuntime

commands = typer.Typer()

AllowHostOption = Annotated[
    list[str] | None,
    opt("--allow-host", "HOST", "Another accepted Host name, such as that of a reverse proxy; may be given several times."),
]
HINT = "write an address and a port, such as 127.0.0.1:8322 or [::1]:8322"
NO_TOKENS_HINT = "make one with `evidentia tokens add --name NAME --role agent`, or listen on 127.0.0.1"


@command(commands, "serve")
def serve(
    call: Invocation,
    *,
    host: Annotated[str, opt("--host", "HOST", "The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, opt("--port", "N", "The port; 0 takes a free one.", low=0, high=65535)] = 8321,
    grpc_port: Annotated[int | None, opt("--grpc-port", "N", "Listen for gRPC here too.", low=1, high=65535)] = None,
    allow_host: AllowHostOption = None,
    workers: Annotated[
        int | None, opt("--workers", "N", "Number of worker processes; default: this process alone.", low=1, high=64)
    ] = None,
    certificate: Annotated[Path | None, opt("--certificate", "FILE", "The TLS certificate and its chain, in PEM.")] = None,
    private_key: Annotated[Path | None, opt("--private-key", "FILE", "Its key, in PEM.")] = None,
    client_certificates: Annotated[
        Path | None, opt("--client-certificates", "FILE", "Require client certificates of these authorities (mTLS).")
    ] = None,
    drain: Annotated[
        float, opt("--drain", "SECONDS", "How long to keep listening, reported as not ready, before a graceful shutdown.", low=0, high=600)
    ] = 0,
    token_file: Annotated[Path | None, opt("--token-file", "FILE", "Write the first admin token here instead of to stderr.")] = None,
    durable: Annotated[bool, flag("--durable", "Sync each decision to disk before its call returns.")] = False,
) -> None:
    """Serve a base over REST, JSON-RPC, MCP, gRPC and a dashboard.

    A base without tokens gets an admin token, which is printed once with a sign-in link to the dashboard.
    SIGTERM and Ctrl-C start a graceful shutdown. SIGHUP reads settings and certificates again with --workers, and certificates alone
    without.
    """
    import asyncio

    try:
        from evidentia.serving.hosting.host import files_of
        from evidentia.serving.hosting.request_log import begin_logging
        from evidentia.serving.hosting.tls import server_context
        from evidentia.serving.hosting.worker_messages import Hosting
    except ImportError as error:
        raise MissingExtraError("server", needed_for="`evidentia serve`") from error
    from evidentia.serving.cli.serve_loop import bound_socket, serve_alone, serve_with_workers
    from evidentia.wiring.governance_runtime import open_control
    from evidentia.wiring.settings_file import read_settings

    settings = read_settings(call.base)
    begin_logging(settings.telemetry)
    hosting = Hosting(
        base=str(call.base),
        host=host,
        hosts=tuple(allow_host or ()),
        certificate=_text(certificate),
        private_key=_text(private_key),
        client_certificates=_text(client_certificates),
        is_durable=durable,
        drain_s=drain,
        workers=workers or 1,
        is_supervised=workers is not None,
        grpc_port=grpc_port,
    )
    is_encrypted = server_context(files_of(hosting, settings)) is not None
    listening = bound_socket(host, port)
    scheme = "https" if is_encrypted else "http"
    address = f"{scheme}://{_authority(host, listening)}"
    announce = partial(_announce, call, address)

    with listening:
        with open_control(call.base, is_durable=durable) as control:
            _warn_in_the_clear(call, host, is_encrypted=is_encrypted)
            link = _give_first_token(call, control, token_file, address=address)
            if workers is None:
                serving = serve_alone(
                    control, hosting, listening, settings=settings, link=link, announce=announce, tell=lambda line: note(call, line)
                )
                asyncio.run(serving)
        if workers is not None:
            asyncio.run(serve_with_workers(hosting, listening, link=link, announce=announce))
    note(call, "stopped")


@command(commands, "mcp", has_caller=True, raw=("profile",))
def mcp(
    call: Invocation,
    *,
    http: Annotated[str | None, opt("--http", "HOST:PORT", "Listen here instead of on stdin; port 0 takes a free one.")] = None,
    allow_host: AllowHostOption = None,
    principals: Annotated[
        Path | None, opt("--principals", "FILE", "JSON file that maps token names to clearances, groups and attributes.")
    ] = None,
    profile: Annotated[
        str, opt("--profile", "PROFILE", "Protocol profile for replies: first_call, thorough, or a file of your own.")
    ] = "first_call",
) -> None:
    """Serve a base to an MCP client.

    Over stdin and stdout the client asks as the owner, or as the principal after --as.
    Over HTTP it asks as the holder of its bearer token; a base without tokens is open to this machine alone.
    There is no TLS here: put a proxy in front before you listen on anything but this machine.
    """
    from evidentia.contracts.access import local_owner
    from evidentia.wiring.settings_file import has_base

    principal = call.principal() or local_owner()
    if not has_base(call.base):
        raise BaseMissingError(str(call.base))
    try:
        from evidentia.serving.identity.callers import Grants
        from evidentia.serving.mcp.standalone_server import serve_http, serve_stdio
    except ImportError as error:
        raise MissingExtraError("mcp", needed_for="`evidentia mcp`") from error
    from evidentia.serving.cli.trace_lint import read_profile

    checked = read_profile(profile)
    if http is None:
        serve_stdio(call.base, principal=principal, profile=checked)
        return
    from evidentia.serving.cli.serve_loop import bound_socket

    host, port = _address(http)
    _refuse_open_door(call.base, host)
    grants = Grants() if principals is None else Grants.read(principals.read_bytes())
    with bound_socket(host, port) as listening:
        _announce(call, f"http://{_authority(host, listening)}/mcp")
        serve_http(call.base, listening, alone=principal, grants=grants, hosts=[host, *(allow_host or ())], profile=checked)
        note(call, "stopped")


def _announce(call: Invocation, address: str) -> None:
    """Tell where it can be reached, at once: whoever started it waits for the line."""
    if call.is_json:
        put_json({"address": address}, is_compact=True)
    else:
        put(f"listening on {address}")
    flush()


def _authority(host: str, listening: "socket") -> str:
    return f"{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _warn_in_the_clear(call: Invocation, host: str, *, is_encrypted: bool) -> None:
    from evidentia.serving.identity.host_check import LOCAL_HOSTS

    if not is_encrypted and host not in LOCAL_HOSTS:
        note(call, f"warning: '{host}' can be reached by other machines, and tokens go over the network in the clear")
        note(call, "hint: give --certificate and --private-key, or put a proxy with TLS in front and listen on 127.0.0.1")


def _give_first_token(call: Invocation, control: "GovernanceRuntime", file: Path | None, *, address: str) -> "FirstLink":
    """Make a token for the first admin where there is none; it is told even with --quiet, since nobody can get in without."""
    from evidentia.contracts.control import Role, TokenFacts
    from evidentia.contracts.policies import DEFAULT_TENANT
    from evidentia.contracts.vocabulary import Classification
    from evidentia.serving.cli.serve_loop import write_privately
    from evidentia.serving.hosting.supervisor import NO_LINK, FirstLink
    from evidentia.serving.identity.sessions import hash_of, new_code

    if control.tokens.tokens():
        return NO_LINK
    # Whoever starts the server can read the whole base as it lies on disk, so the first admin may see all of it.
    facts = TokenFacts(clearance=Classification.RESTRICTED)
    issued = control.tokens.issue(name="first admin", roles=(Role.ADMIN,), tenant=DEFAULT_TENANT, by="evidentia serve", facts=facts)
    if file is not None:
        write_privately(file, issued.token)
        note(call, f"the token of the first admin is in {file}")
        return NO_LINK
    code = new_code(control.entropy)
    sys.stderr.write(f"token of the first admin, shown once: {issued.token}\n")
    sys.stderr.write(f"dashboard of the first admin, good once and for an hour: {address}/dashboard/enter?code={code}\n")
    sys.stderr.flush()
    return FirstLink(hash_of(code), issued.info.token_id)


def _address(text: str) -> tuple[str, int]:

    host, _, port = text.rpartition(":")
    highest = 65_535
    if not host or not port.isascii() or not port.isdecimal() or int(port) > highest:
        raise UsageError(f"field 'http': '{text}' is no address with a port", hint=HINT)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _refuse_open_door(base: Path, host: str) -> None:
    """Refuse to listen to other machines as long as nobody could be told from anybody."""
    from evidentia.wiring.governance_runtime import open_tokens

    if host in {"127.0.0.1", "localhost", "::1"}:
        return
    with open_tokens(base) as (tokens, _):
        if not tokens.tokens():
            raise UsageError(f"field 'http': the base has no tokens, so '{host}' would be open to everybody", hint=NO_TOKENS_HINT)
