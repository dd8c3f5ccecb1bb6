"""TLS of what leaves this process: whom a client trusts, what it shows of itself, and what went wrong, in words.

The files in the settings come first; without them `SSL_CERT_FILE` and `SSL_CERT_DIR` say who is trusted, else the system's own list.
Certificates are always checked; nothing here turns that off.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import InvalidFieldError, TlsFaultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.settings import OutboundSettings

FILE_VARIABLE: Final = "SSL_CERT_FILE"
FOLDER_VARIABLE: Final = "SSL_CERT_DIR"
_AUTHORITIES: Final = "outbound.authorities"
_CERTIFICATE: Final = "outbound.certificate"

_EXPIRED: Final = 10
_NOT_YET: Final = 9
_OTHER_NAME: Final = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH, as OpenSSL numbers them."""
_WANTS_ONE: Final = ("CERTIFICATE_REQUIRED",)
_REFUSES_OURS: Final = (
    "ALERT_UNKNOWN_CA",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE",
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "ALERT_ACCESS_DENIED",
)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
_PLAIN: Final = "does not speak TLS there; check the scheme and the port"
_NOT_TRUSTED: Final = f"shows a certificate of an authority that is not trusted; name its file in '{_AUTHORITIES}' or {FILE_VARIABLE}"
_WANTED: Final = f"wants a client certificate; name one in '{_CERTIFICATE}'"
SEEMS_WANTED: Final = f"ends connections right after the TLS handshake; it seems to want a client certificate, which '{_CERTIFICATE}' names"
_REFUSED: Final = f"does not accept the client certificate in '{_CERTIFICATE}', or wants one where none is named"


def trusted_place(outbound: OutboundSettings) -> tuple[str, str]:
    """Return the setting or variable that says who is trusted, and the file or folder it names; empty for the system's list."""
    given = ((_AUTHORITIES, outbound.authorities), *((name, os.environ.get(name, "")) for name in (FILE_VARIABLE, FOLDER_VARIABLE)))
    return next(((name, value) for name, value in given if value), ("", ""))


def trusted_bytes(outbound: OutboundSettings) -> bytes | None:
    """Return the certificates of those who are trusted, in PEM, for a package that reads no files; None for its own list."""
    field, place = trusted_place(outbound)
    if not place:
        return None
    path = Path(place)
    try:
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        return b"\n".join(each.read_bytes() for each in files)
    except OSError as error:
        raise InvalidFieldError(field, f"'{place}' cannot be read: {error.strerror}") from error


def load_pair(context: ssl.SSLContext, certificate: str, private_key: str, *, fields: tuple[str, str]) -> None:
    """Have a context show the certificate that is in the files now; connections that stand keep the one they have."""
    try:
        context.load_cert_chain(certificate, private_key, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidFieldError(fields[1], f"the key in '{private_key}' is not that of the certificate in '{certificate}'") from error
        message = f"'{certificate}' and '{private_key}' are not a certificate and its unencrypted key in PEM"
        raise InvalidFieldError(fields[0], message) from error
    except OSError as error:
        raise InvalidFieldError(fields[0], f"'{certificate}' or '{private_key}' cannot be read: {error.strerror}") from error


def show_certificate(context: ssl.SSLContext, outbound: OutboundSettings) -> None:
    """Have a context show the client certificate of the settings, where there is one."""
    if outbound.certificate:
        key = outbound.private_key or outbound.certificate
        load_pair(context, outbound.certificate, key, fields=(_CERTIFICATE, "outbound.private_key"))


def tls_fault(error: BaseException, *, host: str) -> TlsFaultError | None:
    """Return an error as the TLS fault that it is, or was caused by; None for any other. Groups of errors are searched."""
    found = next((each for each in causes_of(error) if isinstance(each, ssl.SSLError)), None)
    return None if found is None else TlsFaultError(f"'{host}' {_problem(found)}")


def handshake_fault(told: str, *, host: str) -> TlsFaultError | None:
    """Return what a package without errors of its own tells of a handshake as a TLS fault; None where it tells of something else."""
    if "CERTIFICATE_VERIFY_FAILED" in told:
        is_expired = "expired" in told
        return TlsFaultError(f"'{host}' {'shows a certificate that has expired' if is_expired else _NOT_TRUSTED}")
    if "Hostname Verification Check failed" in told or "Peer name" in told:
        return TlsFaultError(f"'{host}' shows a certificate for another name")
    if any(word in told for word in _NO_TLS):
        return TlsFaultError(f"'{host}' {_PLAIN}")
    if any(word in told for word in _WANTS_ONE):
        return TlsFaultError(f"'{host}' {_WANTED}")
    is_handshake = "handshake" in told.lower() or "SSL_ERROR" in told or "ALERT" in told
    return TlsFaultError(f"'{host}' {_REFUSED}" if "ALERT" in told else f"the TLS handshake with '{host}' failed") if is_handshake else None


def trusting(field: str, place: str) -> ssl.SSLContext:
    """Return a context that trusts the authorities in a file or folder, and no others."""
    try:
        is_folder = Path(place).is_dir()
        context = ssl.create_default_context(cafile=None if is_folder else place, capath=place if is_folder else None)
    except ssl.SSLError as error:
        raise InvalidFieldError(field, f"'{place}' holds no certificates in PEM") from error
    except OSError as error:
        raise InvalidFieldError(field, f"'{place}' cannot be read: {error.strerror}") from error
    return context


def _problem(error: ssl.SSLError) -> str:
    """Return a fault in words; of what OpenSSL says only the names of its reasons are repeated."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "shows a certificate that has expired"
        if error.verify_code == _NOT_YET:
            return "shows a certificate that is not valid yet; check both clocks"
        return "shows a certificate for another name" if error.verify_code in _OTHER_NAME else _NOT_TRUSTED
    reason = error.reason or type(error).__name__
    for words, problem in ((_WANTS_ONE, _WANTED), (_REFUSES_OURS, _REFUSED), (_NO_TLS, _PLAIN)):
        if any(word in reason for word in words):
            return problem
    return f"broke off the TLS handshake ({reason})"


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it holds where it is a group, and what it came from, each once."""
    waiting, seen = [error], {id(error)}
    while waiting:
        each = waiting.pop()
        yield each
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        found = [one for one in (*inner, each.__cause__, each.__context__) if one is not None and id(one) not in seen]
        seen.update(map(id, found))
        waiting += found
