"""Certificates for a server on loopback, signed by an authority of their own."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

STORE_PASSWORD: Final = "changeit"  # noqa: S105 - of a file without secrets
_ADDRESS: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of one authority and one server.

    Attributes:
        authority: the authority's certificate, as ``SSL_CERT_FILE`` names it.
        chain: the server's certificate.
        key: the server's private key.
        store: the authority's certificate for a JVM, with ``STORE_PASSWORD``.
    """

    authority: Path
    chain: Path
    key: Path
    store: Path


def make_certificates(folder: Path) -> Certificates:
    """Make certificates that are valid for a day."""
    files = Certificates(
        authority=folder / "authority.pem",
        chain=folder / "chain.pem",
        key=folder / "key.pem",
        store=folder / "authority.p12",
    )
    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = _name("authority of the tests")
    may_sign = x509.BasicConstraints(ca=True, path_length=0)
    authority = _certificate(name, signer, name).add_extension(may_sign, critical=True)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(_ADDRESS))])
    server = _certificate(_name(_ADDRESS), key, name).add_extension(address, critical=False)
    signed = authority.sign(signer, hashes.SHA256())
    files.authority.write_bytes(signed.public_bytes(Encoding.PEM))
    files.chain.write_bytes(server.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM))
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    trusted = [pkcs12.PKCS12Certificate(signed, b"authority")]
    encryption = PrivateFormat.PKCS12.encryption_builder().build(STORE_PASSWORD.encode())
    files.store.write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
    return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
