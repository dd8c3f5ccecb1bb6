"""Every client of ours over real TLS: its own authority, a client certificate, a proxy, and each fault called what it is."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import evidentia
from evidentia.backends.llm.model_endpoint import Endpoint, EndpointSettings
from evidentia.backends.mcp.mcp_retriever import McpTool
from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.backends.remote.remote_retriever import RemoteEvidentia
from evidentia.contracts.access import local_owner
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.errors import InvalidFieldError, ServiceUnavailableError, TlsFaultError
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.settings import OutboundSettings
from evidentia.contracts.sources import SourceConnection
from evidentia.contracts.vocabulary import Classification, ConnectionKind, LatencyTier
from evidentia.foundation.outbound_http import Failure, check_outbound
from evidentia.wiring.governance_runtime import open_tokens
from serving.forward_proxy import forward_proxy
from serving.hosting_certificates import Authority
from serving.hosting_planes import hosted_alone, make_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serving.hosting_certificates import Pair

NAME = "evidence.test"
"""A name that only the proxy of these tests knows."""
KEY = "EVIDENTIA_TEST_TLS_TOKEN"
ASK = SourceAsk(query=SubQuery(text="cranes"), principal=local_owner(), limit=2, budget_ms=20_000, as_of=datetime(2026, 3, 1, tzinfo=UTC))
PROXY_KEY = "name:word"
CLIENTS = ("connect", "governor", "source", "mcp", "endpoint", "grpc")


class Planes:
    """A served base that wants client certificates, and what a client needs to reach it."""

    def __init__(self, url: str, grpc_url: str, token: str, outbound: OutboundSettings) -> None:
        self.url = url
        self.grpc_url = grpc_url
        self.token = token
        self.outbound = outbound


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Planes]:
    folder = tmp_path_factory.mktemp("served")
    base = make_base(folder, f'hosts = ["{NAME}"]')
    facts = TokenFacts(clearance=Classification.RESTRICTED, is_delegate=True)
    with open_tokens(base) as (tokens, _):
        token = tokens.issue(name="all", roles=(Role.ADMIN, Role.AGENT), tenant=DEFAULT_TENANT, by="test", facts=facts).token
    own, shown = authority.pair("server", names=("127.0.0.1", NAME)), authority.pair("client")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        grpc_port = free.getsockname()[1]
    files = {"certificate": str(own.certificate), "private_key": str(own.key), "client_certificates": str(authority.file)}
    with hosted_alone(base, grpc_port=grpc_port, **files) as server:
        outbound = OutboundSettings(authorities=str(authority.file), certificate=str(shown.certificate), private_key=str(shown.key))
        yield Planes(server.url, f"grpcs://127.0.0.1:{grpc_port}", token, outbound)


def reach(client: str, url: str, grpc_url: str, token: str, outbound: OutboundSettings) -> object:
    """Return what a client of ours is answered, or raise what it raises."""
    if client in {"connect", "grpc"}:
        with evidentia.connect(url if client == "connect" else grpc_url, token=token, outbound=outbound) as base:
            return base.head().sequence
    if client == "governor":
        with closing(RemoteGovernor(url, token=token, outbound=outbound)) as governor:
            return governor.live(tenant=DEFAULT_TENANT)
    if client == "endpoint":
        with closing(Endpoint(EndpointSettings(url=url, model="m", key_variable=KEY, timeout_ms=20_000, outbound=outbound))) as endpoint:
            reply = endpoint.post("v1/evidence", b"{}", max_bytes=1 << 20)
            if isinstance(reply, Failure) and reply.reason == "tls":
                raise reply.error()
            assert not isinstance(reply, Failure) or reply.reason == "refused", reply
            return reply
    connection = SourceConnection(kind=ConnectionKind.MCP, address=f"{url}/mcp", tool="retrieve", key_variable=KEY)
    source = McpTool(connection, outbound=outbound) if client == "mcp" else RemoteEvidentia(url, key_variable=KEY, outbound=outbound)

    async def ask() -> list[Any]:
        try:
            return [each async for each in source.retrieve(ASK)]
        finally:
            await source.aclose()

    return asyncio.run(ask())


@contextmanager
def tls_server(pair: Pair | None) -> Iterator[int]:
    """Give the port of a server that shows a certificate, or speaks no TLS, and says nothing more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
        context.set_alpn_protocols(["h2", "http/1.1"])
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            taken.settimeout(20)
            try:
                if pair is None:
                    taken.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                else:
                    context.wrap_socket(taken, server_side=True).close()
            except OSError:
                pass
            finally:
                taken.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(30)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_authority_and_certificate_is_answered(plane: Planes, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, plane.token)

    reach(client, plane.url, plane.grpc_url, plane.token, plane.outbound)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_without_a_certificate_is_told_that_one_is_wanted(plane: Planes, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, plane.token)
    bare = msgspec.structs.replace(plane.outbound, certificate="", private_key="")

    with pytest.raises(TlsFaultError) as raised:
        reach(client, plane.url, plane.grpc_url, plane.token, bare)
    assert "tls_fault" == raised.value.code
    assert "client certificate" in str(raised.value) or "handshake" in str(raised.value)


FAULTS = {"stranger": "not trusted", "expired": "expired", "other name": "another name", "plain": "does not speak TLS"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_called_what_it_is(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch, client: str, fault: str
) -> None:
    monkeypatch.setenv(KEY, "k")
    pairs = {
        "stranger": Authority(tmp_path, "stranger").pair("server"),
        "expired": authority.pair("expired", is_expired=True),
        "other name": authority.pair("other", names=("elsewhere.test",)),
        "plain": None,
    }
    outbound = OutboundSettings(authorities=str(authority.file))
    with tls_server(pairs[fault]) as port, pytest.raises(TlsFaultError) as raised:
        reach(client, f"https://127.0.0.1:{port}", f"grpcs://127.0.0.1:{port}", "token", outbound)

    assert FAULTS[fault] in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_goes_by_the_proxy_which_sees_the_name_and_nothing_else(
    plane: Planes, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, plane.token)
    with forward_proxy() as proxy:
        url, grpc_url = (each.replace("127.0.0.1", NAME) for each in (plane.url, plane.grpc_url))
        reach(client, url, grpc_url, plane.token, msgspec.structs.replace(plane.outbound, proxy=proxy.url))
        asked = list(proxy.asked)

    wanted = (grpc_url if client == "grpc" else url).partition("://")[2]
    assert {f"CONNECT {wanted} HTTP/1.1"} == set(asked)


def test_a_proxy_of_the_environment_is_not_asked(plane: Planes, monkeypatch: pytest.MonkeyPatch) -> None:
    with forward_proxy() as proxy:
        for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(variable, proxy.url)
        reach("connect", plane.url, plane.grpc_url, plane.token, plane.outbound)

    assert [] == proxy.asked


def test_this_machine_and_named_hosts_are_reached_without_the_proxy() -> None:
    outbound = OutboundSettings(proxy="http://127.0.0.1:9", no_proxy=("here.test", ".inside.test"))
    ways = {host: check_outbound(outbound, host=host).proxy for host in ("127.0.0.1", "here.test", "a.inside.test", "elsewhere.test")}

    assert {"127.0.0.1": "", "here.test": "", "a.inside.test": "", "elsewhere.test": "http://127.0.0.1:9"} == ways


def test_a_proxy_may_want_a_password_which_goes_nowhere_in_the_clear(plane: Planes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_TEST_PROXY", PROXY_KEY)
    url = plane.url.replace("127.0.0.1", NAME)
    with forward_proxy(password=PROXY_KEY) as proxy:
        bare = msgspec.structs.replace(plane.outbound, proxy=proxy.url)
        with pytest.raises(ServiceUnavailableError, match="through the proxy"):
            reach("connect", url, "", plane.token, bare)
        reach("connect", url, "", plane.token, msgspec.structs.replace(bare, proxy_key_variable="EVIDENTIA_TEST_PROXY"))

    with pytest.raises(InvalidFieldError, match="in the clear"):
        check_outbound(OutboundSettings(proxy="http://proxy.test:3128", proxy_key_variable="EVIDENTIA_TEST_PROXY"), host="a.test")
    with pytest.raises(InvalidFieldError, match="proxy_key_variable"):
        check_outbound(OutboundSettings(proxy="http://name:word@proxy.test:3128"), host="a.test")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_the_authorities_of_the_environment_are_trusted(
    tmp_path: Path, plane: Planes, authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    folder = tmp_path / "trusted"
    folder.mkdir()
    (folder / f"{_subject_hash('authority')}.0").write_bytes(authority.file.read_bytes())
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(variable, str(authority.file if variable == "SSL_CERT_FILE" else folder))
    trusting = msgspec.structs.replace(plane.outbound, authorities="")

    for client in ("connect", "grpc"):
        reach(client, plane.url, plane.grpc_url, plane.token, trusting)


def test_a_client_without_settings_is_told_its_way_by_variables(plane: Planes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("authorities", "certificate", "private_key"):
        monkeypatch.setenv(f"EVIDENTIA_{name.upper()}", getattr(plane.outbound, name))

    with evidentia.connect(plane.url, token=plane.token) as base:
        assert 0 <= base.head().sequence


def test_a_source_is_reached_as_the_settings_of_the_base_say_or_as_its_own_options_do(
    tmp_path: Path, plane: Planes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, plane.token)
    (tmp_path / "note.md").write_text("Cranes are tall.")
    base_path = tmp_path / "base"
    with evidentia.connect(base_path, init=True) as base:
        base.ingest([tmp_path / "note.md"])
    told = {name: getattr(plane.outbound, name) for name in ("authorities", "certificate", "private_key")}
    options = {f"outbound.{name}": value for name, value in told.items()}

    def states(lines: str, **given: str) -> dict[str, str]:
        (base_path / "evidentia.toml").write_text(lines)
        with evidentia.connect(base_path) as base:
            connection = SourceConnection(kind=ConnectionKind.REMOTE, address=plane.url, key_variable=KEY, options=given)
            base.add_source(
                evidentia.SourceDescriptor(source_id=SourceId("there"), connection=connection, latency_tier=LatencyTier.ARCHIVE)
            )
            answer = base.retrieve("cranes", latency_deadline_ms=20_000)
            return {source: f"{each.state.value} {each.reason}" for source, each in answer.source_coverage.items()}

    settings = "[outbound]\n" + "".join(f'{name} = "{value}"\n' for name, value in told.items())
    by_settings, by_options, by_neither = states(settings), states("", **options), states("")

    assert by_settings["there"].startswith("searched"), by_settings
    assert by_options["there"].startswith("searched"), by_options
    assert "not trusted" in by_neither["there"], by_neither


@pytest.mark.parametrize("case", ["missing", "no certificates", "other key", "no address"])
def test_files_that_do_not_fit_are_refused_by_name_before_anybody_is_asked(tmp_path: Path, authority: Authority, case: str) -> None:
    pair, other = authority.pair("own"), authority.pair("foreign")
    wrong, field = {
        "missing": (OutboundSettings(authorities=str(tmp_path / "none.pem")), "outbound.authorities"),
        "no certificates": (OutboundSettings(authorities=str(pair.key)), "outbound.authorities"),
        "other key": (OutboundSettings(certificate=str(pair.certificate), private_key=str(other.key)), "outbound.private_key"),
        "no address": (OutboundSettings(proxy="proxy.test:3128"), "outbound.proxy"),
    }[case]

    with pytest.raises(InvalidFieldError) as raised:
        evidentia.connect("https://127.0.0.1:9", token=PROXY_KEY, outbound=wrong)
    assert field == raised.value.field


def test_a_source_registered_over_the_network_may_not_name_files_or_a_proxy(plane: Planes) -> None:
    options = {"outbound.proxy": "http://10.0.0.1:3128"}
    connection = SourceConnection(kind=ConnectionKind.REMOTE, address="https://example.com", options=options)
    with evidentia.connect(plane.url, token=plane.token, outbound=plane.outbound) as base, pytest.raises(InvalidFieldError) as raised:
        base.add_source(evidentia.SourceDescriptor(source_id=SourceId("far"), connection=connection))

    assert "connection.options" == raised.value.field


def _subject_hash(name: str) -> str:
    """Return the name under which OpenSSL looks for an authority in a folder: a hash of its common name as UTF8String, in lower case."""
    value = name.encode()
    pair = bytes.fromhex("0603550403") + bytes((0x0C, len(value))) + value
    inner = bytes((0x30, len(pair))) + pair
    digest = hashlib.sha1(bytes((0x31, len(inner))) + inner, usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}"
