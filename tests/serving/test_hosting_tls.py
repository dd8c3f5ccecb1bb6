"""Encrypted connections: what a server shows, what it asks for, and what it refuses to start with."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time
from typing import TYPE_CHECKING

import httpx2
import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.settings import ServerSettings
from evidentia.serving.cli import main
from evidentia.serving.hosting.tls import TlsFiles, server_context, tls_files
from serving.hosting_certificates import Authority
from serving.hosting_planes import COMMAND, client_of, hosted_alone, make_base, served

if TYPE_CHECKING:
    from pathlib import Path

    from serving.hosting_certificates import Pair


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def trusting(authority: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def words_of(pair: Pair) -> tuple[str, ...]:
    return "--certificate", str(pair.certificate), "--private-key", str(pair.key)


def shown_by(url: str, context: ssl.SSLContext) -> tuple[str, str | None]:
    """Return the common name that a server shows, and the version of TLS."""
    host, port = url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as plain, context.wrap_socket(plain, server_hostname=host) as wrapped:
        certificate = wrapped.getpeercert()
        assert certificate is not None
        subject: tuple[tuple[tuple[str, str], ...], ...] = certificate["subject"]  # type: ignore[assignment] # as documented
        return subject[0][0][1], wrapped.version()


def test_a_server_with_a_certificate_speaks_tls_and_says_that_it_always_will(tmp_path: Path, authority: Authority) -> None:
    base = make_base(tmp_path)
    with served(base, *words_of(authority.pair("server"))) as server:
        with client_of(server.url, verify=trusting(authority)) as client:
            health = client.get("/v1/health")
        with pytest.raises(httpx2.TransportError), client_of(server.url.replace("https", "http")) as plain:
            plain.get("/v1/health")

    assert server.url.startswith("https://")
    assert 200 == health.status_code
    assert "max-age=31536000" == health.headers["strict-transport-security"]
    assert f"{server.url}/dashboard/enter?code=" in server.said


def test_old_versions_of_tls_are_not_spoken(authority: Authority) -> None:
    pair = authority.pair("server")
    context = server_context(TlsFiles(str(pair.certificate), str(pair.key)))

    assert context is not None
    assert ssl.TLSVersion.TLSv1_2 == context.minimum_version
    assert all("GCM" in each["name"] or "CHACHA20" in each["name"] for each in context.get_ciphers())


def test_a_client_without_a_certificate_is_not_let_in_where_one_is_asked_for(tmp_path: Path, authority: Authority) -> None:
    base = make_base(tmp_path)
    stranger = Authority(tmp_path, "stranger")
    own = authority.pair("server")
    files = {"certificate": str(own.certificate), "private_key": str(own.key), "client_certificates": str(authority.file)}
    codes: dict[str, int] = {}
    with hosted_alone(base, **files) as server:
        for name, pair in (("none", None), ("stranger", stranger.pair("foreign")), ("own", authority.pair("client"))):
            with client_of(server.url, verify=trusting(authority, pair)) as client:
                try:
                    codes[name] = client.get("/v1/health").status_code
                except httpx2.TransportError:
                    codes[name] = 0

    assert {"none": 0, "stranger": 0, "own": 200} == codes


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_a_new_certificate_is_shown_after_sighup(tmp_path: Path, authority: Authority, workers: tuple[str, ...]) -> None:
    base = make_base(tmp_path)
    first, second = authority.pair("first"), authority.pair("second")
    context = trusting(authority)
    with served(base, *words_of(first), *workers) as server:
        before = shown_by(server.url, context)
        second.certificate.replace(first.certificate)
        second.key.replace(first.key)
        server.process.send_signal(signal.SIGHUP)
        after = before
        while after[0] == "first":
            time.sleep(0.05)
            after = shown_by(server.url, context)
        code = server.stop()

    assert ("first", "TLSv1.3") == before
    assert "second" == after[0]
    assert 0 == code


@pytest.mark.slow
def test_a_certificate_that_became_wrong_stays_out(tmp_path: Path, authority: Authority) -> None:
    pair = authority.pair("server")
    with served(make_base(tmp_path), *words_of(pair)) as server:
        pair.certificate.write_text("nothing")
        server.process.send_signal(signal.SIGHUP)
        while "stays as it was" not in server.said:
            shown_by(server.url, trusting(authority))
            time.sleep(0.05)
        shown = shown_by(server.url, trusting(authority))

    assert "server" == shown[0]


@pytest.mark.parametrize("case", ["missing certificate", "no key", "other key", "sealed key", "no certificate", "wrong authorities"])
def test_files_that_do_not_fit_are_refused_by_name(tmp_path: Path, authority: Authority, case: str) -> None:
    pair, other, sealed = authority.pair("server"), authority.pair("other"), authority.pair("sealed", password=b"secret")
    nothing = tmp_path / "nothing.pem"
    files, field = {
        "missing certificate": (TlsFiles(str(nothing), str(pair.key)), "server.certificate"),
        "no key": (TlsFiles(str(pair.certificate)), "server.private_key"),
        "other key": (TlsFiles(str(pair.certificate), str(other.key)), "server.private_key"),
        "sealed key": (TlsFiles(str(sealed.certificate), str(sealed.key)), "server.certificate"),
        "no certificate": (TlsFiles(str(pair.key), str(pair.key)), "server.certificate"),
        "wrong authorities": (TlsFiles(str(pair.certificate), str(pair.key), str(pair.key)), "server.client_certificates"),
    }[case]

    with pytest.raises(InvalidFieldError) as raised:
        server_context(files)
    assert field == raised.value.field


def test_the_command_refuses_files_that_do_not_fit_before_it_listens(tmp_path: Path, authority: Authority) -> None:
    base = make_base(tmp_path)
    words = ["--certificate", str(authority.pair("server").certificate), "--private-key", str(tmp_path / "nothing.key")]

    assert 2 == main(["serve", "--port", "0", "--base", str(base), *words])


def test_files_in_the_settings_are_found_beside_the_base_and_those_given_count_more(tmp_path: Path) -> None:
    settings = ServerSettings(certificate="own.pem", private_key="/keys/own.key", client_certificates="ca.pem")
    stored = tls_files(settings, directory=tmp_path)
    given = tls_files(settings, directory=tmp_path, given=TlsFiles("a.pem", "a.key"))

    assert (str(tmp_path / "own.pem"), "/keys/own.key", str(tmp_path / "ca.pem")) == stored
    assert ("a.pem", "a.key", str(tmp_path / "ca.pem")) == given


@pytest.mark.slow
def test_listening_to_other_machines_in_the_clear_is_warned_of(tmp_path: Path) -> None:
    with served(make_base(tmp_path), "--host", "0.0.0.0") as server:  # noqa: S104 - that is what is warned of
        pass

    assert "in the clear" in server.said
    assert "--certificate" in server.said


def test_the_help_names_every_option() -> None:
    told = subprocess.run([*COMMAND, "serve", "--help"], check=True, capture_output=True, text=True).stdout

    assert all(f"--{name}" in told for name in ("workers", "certificate", "private-key", "client-certificates", "drain", "grpc-port"))
