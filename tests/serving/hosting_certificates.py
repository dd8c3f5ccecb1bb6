"""Certificates made for a test: an authority, and whatever it signs."""

from __future__ import annotations

import datetime
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY = datetime.timedelta(days=1)


class Pair(NamedTuple):
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for this machine."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = self._write(self._certificate(self._key, name, is_authority=True), f"{name}.pem")

    def pair(self, name: str, *, password: bytes | None = None, names: tuple[str, ...] = ("127.0.0.1",), is_expired: bool = False) -> Pair:
        """Return a certificate for these names with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._certificate(key, name, is_authority=False, names=names, is_expired=is_expired)
        certificate = self._write(signed, f"{name}.pem")
        sealing = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
        file = self._folder / f"{name}.key"
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealing))
        return Pair(certificate, file)

    def _certificate(
        self,
        key: ec.EllipticCurvePrivateKey,
        name: str,
        *,
        is_authority: bool,
        names: tuple[str, ...] = ("127.0.0.1",),
        is_expired: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC) - (2 * DAY if is_expired else 0 * DAY)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, certificate: x509.Certificate, name: str) -> Path:
        file = self._folder / name
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return file


def _name(text: str) -> x509.GeneralName:
    is_address = text.replace(".", "").isdigit()
    return x509.IPAddress(ipaddress.ip_address(text)) if is_address else x509.DNSName(text)
