"""`evidentia serve`: a base over the network, through every door, until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.serving.cli.invocation import Invocation
    from evidentia.serving.hosting.supervisor import FirstLink
    from evidentia.wiring.governance_runtime import GovernanceRuntime

HostOption = Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 takes a free one.")]
GrpcPortOption = Annotated[
    int | None, typer.Option("--grpc-port", metavar="N", min=1, max=65_535, help="Listen for gRPC here too.", show_default=False)
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="HOST", help="Another accepted Host name, such as that of a reverse proxy; may be given several times."
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, max=64, help="Number of worker processes; default: this process alone.", show_default=False
    ),
]
CertificateOption = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="The TLS certificate and its chain, in PEM.", show_default=False)
]
PrivateKeyOption = Annotated[Path | None, typer.Option("--private-key", metavar="FILE", help="Its key, in PEM.", show_default=False)]
ClientCertificatesOption = Annotated[
    Path | None,
    typer.Option(
        "--client-certificates", metavar="FILE", help="Require client certificates of these authorities (mTLS).", show_default=False
    ),
]
DrainOption = Annotated[
    float,
    typer.Option(
        "--drain", metavar="SECONDS", min=0, max=600, help="How long to keep listening, reported as not ready, before a graceful shutdown."
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Write the first admin token here instead of to stderr.", show_default=False),
]
DurableOption = Annotated[bool, typer.Option("--durable", help="Sync each decision to disk before its call returns.")]


def serve(
    context: typer.Context,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8321,
    grpc_port: GrpcPortOption = None,
    allow_host: AllowHostOption = None,
    workers: WorkersOption = None,
    certificate: CertificateOption = None,
    private_key: PrivateKeyOption = None,
    client_certificates: ClientCertificatesOption = None,
    drain: DrainOption = 0,
    token_file: TokenFileOption = None,
    durable: DurableOption = False,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Serve a base over REST, JSON-RPC, MCP, gRPC and a dashboard.

    A base without tokens gets an admin token, which is printed once with a sign-in link to the dashboard.
    SIGTERM and Ctrl-C start a graceful shutdown. SIGHUP reads settings and certificates again with --workers, and certificates alone
    without.
    """
    import asyncio

    from evidentia.contracts.errors import MissingExtraError

    try:
        from evidentia.serving.hosting.host import files_of
        from evidentia.serving.hosting.tls import server_context
        from evidentia.serving.hosting.worker_messages import Hosting
    except ImportError as error:
        raise MissingExtraError("server", needed_for="`evidentia serve`") from error
    from evidentia.serving.cli.output import flush, note, put, put_json
    from evidentia.serving.cli.serve_loop import bound_socket, serve_alone, serve_with_workers
    from evidentia.wiring.governance_runtime import open_control
    from evidentia.wiring.settings_file import read_settings

    call = invocation(context, base=base, quiet=quiet, json=json)
    settings = read_settings(call.base)
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
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def announce() -> None:
        if call.is_json:
            put_json({"address": address}, is_compact=True)
        else:
            put(f"listening on {address}")
        flush()

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


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _warn_in_the_clear(call: "Invocation", host: str, *, is_encrypted: bool) -> None:
    from evidentia.serving.cli.output import note
    from evidentia.serving.identity.host_check import LOCAL_HOSTS

    if not is_encrypted and host not in LOCAL_HOSTS:
        note(call, f"warning: '{host}' can be reached by other machines, and tokens go over the network in the clear")
        note(call, "hint: give --certificate and --private-key, or put a proxy with TLS in front and listen on 127.0.0.1")


def _give_first_token(call: "Invocation", control: "GovernanceRuntime", file: Path | None, *, address: str) -> "FirstLink":
    """Make a token for the first admin where there is none; it is told even with --quiet, since nobody can get in without."""
    import sys

    from evidentia.contracts.control import Role, TokenFacts
    from evidentia.contracts.policies import DEFAULT_TENANT
    from evidentia.contracts.vocabulary import Classification
    from evidentia.serving.cli.output import note
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
