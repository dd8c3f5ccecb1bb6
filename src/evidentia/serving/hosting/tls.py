"""The certificate a server shows, and the ones it asks for; what does not fit is refused before anybody is listened to."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.errors import InvalidFieldError
from evidentia.foundation import client_tls

if TYPE_CHECKING:
    from evidentia.contracts.settings import ServerSettings

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2, which is the least that is spoken: forward secrecy and authenticated encryption only."""


class TlsFiles(NamedTuple):
    """Where certificate and key are; empty for none."""

    certificate: str = ""
    private_key: str = ""
    client_certificates: str = ""

    @property
    def is_on(self) -> bool:
        """Tell whether anything is encrypted."""
        return bool(self.certificate or self.private_key or self.client_certificates)


NO_FILES: Final = TlsFiles()


def tls_files(settings: ServerSettings, *, directory: Path, given: TlsFiles = NO_FILES) -> TlsFiles:
    """Return the files that were given, else those of the settings; relative paths in the settings begin at the base."""
    if given.certificate or given.private_key:
        return given._replace(client_certificates=given.client_certificates or _beside(directory, settings.client_certificates))
    return TlsFiles(
        certificate=_beside(directory, settings.certificate),
        private_key=_beside(directory, settings.private_key),
        client_certificates=given.client_certificates or _beside(directory, settings.client_certificates),
    )


def server_context(files: TlsFiles) -> ssl.SSLContext | None:
    """Return what encrypts connections; None when nothing is to be encrypted.

    Raises:
        InvalidFieldError: A file is missing or is not what it should be, or the key is not the certificate's.
    """
    if not files.is_on:
        return None
    for field, path in (("server.certificate", files.certificate), ("server.private_key", files.private_key)):
        _check_readable(field, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    load_pair(context, files)
    if files.client_certificates:
        _check_readable("server.client_certificates", files.client_certificates)
        try:
            context.load_verify_locations(files.client_certificates)
        except ssl.SSLError as error:
            message = f"'{files.client_certificates}' holds no certificates in PEM"
            raise InvalidFieldError("server.client_certificates", message) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def load_pair(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Have a context show the certificate that is in the files now; connections that stand keep the one they have."""
    client_tls.load_pair(context, files.certificate, files.private_key, fields=("server.certificate", "server.private_key"))


def _beside(directory: Path, path: str) -> str:
    return str(directory / path) if path else ""


def _check_readable(field: str, path: str) -> None:
    if not path:
        raise InvalidFieldError(field, "name the file; a certificate and its key are needed both")
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        raise InvalidFieldError(field, f"the file '{path}' cannot be read: {error.strerror}") from error
