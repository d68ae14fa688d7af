"""The certificate and the private key of TLS, read before anything is served: what is wrong with them, in one sentence.

>>> check(None, None)
>>> check("certificate.pem", None)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: TLS needs both --certificate and --private-key
"""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from counterpoint.errors import InvalidParameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


def check(certificate: str | None, private_key: str | None) -> None:
    """`InvalidParameter` unless both files are there and fit, or neither was given."""
    if certificate is None and private_key is None:
        return
    if certificate is None or private_key is None:
        raise InvalidParameter("TLS needs both --certificate and --private-key")
    first, *others = _certificates(certificate)
    key = _public(_private(private_key))
    if _public(first) != key:
        if key in map(_public, others):
            raise InvalidParameter(
                f"the certificate of the service comes first in {certificate!r}, and those of its issuers behind it: "
                f"the key in {private_key!r} is of a later one"
            )
        raise InvalidParameter(f"the key in {private_key!r} is not that of the certificate in {certificate!r}")
    _must_be_current(first, certificate)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, private_key)
    except ssl.SSLError as error:
        raise InvalidParameter(f"OpenSSL refuses the certificate in {certificate!r}: {error.reason}") from None


def _certificates(file: str) -> list[x509.Certificate]:
    data = _read(file, "certificate")
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise InvalidParameter(f"{file!r} is not a certificate in PEM (-----BEGIN CERTIFICATE-----)") from None


def _private(file: str) -> "PrivateKeyTypes":
    data = _read(file, "private key")
    try:
        return serialization.load_pem_private_key(data, None)
    except TypeError:
        raise InvalidParameter(
            f"the private key in {file!r} is encrypted, and the service asks for no password: decrypt it, as in "
            "openssl pkey -in KEY -out PLAIN, and let only the service read it"
        ) from None
    except ValueError:
        raise InvalidParameter(f"{file!r} is not a private key in PEM (-----BEGIN PRIVATE KEY-----)") from None


def _public(of: "x509.Certificate | PrivateKeyTypes") -> bytes:
    """The public key of a certificate, or of a private key."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return of.public_key().public_bytes(serialization.Encoding.DER, form)


def _must_be_current(certificate: x509.Certificate, file: str) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    now = datetime.now(UTC)
    if now < begins:
        raise InvalidParameter(f"the certificate in {file!r} is valid from {begins:%Y-%m-%d %H:%M} UTC on")
    if now > ends:
        raise InvalidParameter(
            f"the certificate in {file!r} ended on {ends:%Y-%m-%d %H:%M} UTC: every client refuses it"
        )


def _read(file: str, what: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidParameter(f"the {what} {file!r} cannot be read: {error.strerror}") from None
