"""Signs certificate requests with a CA from two files, which are read again when they change."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from .requests import RequestError, subject_alternative_names

BACKDATE: Final = datetime.timedelta(minutes=5)
"""Certificates begin earlier than now: clocks differ."""
SHORT: Final = datetime.timedelta(hours=8)
"""Shorter certificates are not shortened further by what they were backdated."""
SHORTEST: Final = datetime.timedelta(minutes=10)

_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
# In the order in which they are written.
_EXTENDED: Final = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec end system": ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft sgc": ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": ObjectIdentifier("2.16.840.1.113730.4.1"),
}

_PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


class Authority:
    """A CA whose files may be replaced while it works."""

    def __init__(self, certificate_file: str, key_file: str) -> None:
        self._files = Path(certificate_file), Path(key_file)
        self._content = (b"", b"")
        self._load()

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Iterable[str], lifetime: datetime.timedelta, now: float
    ) -> bytes:
        """The certificate as PEM: the request's subject and names, the usages asked for, never a CA."""
        self._load()
        if not request.is_signature_valid:
            raise RequestError("unable to verify certificate request signature")
        issuer = self._certificate
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(microsecond=0)
        begin, end = _validity(moment, lifetime, issuer.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(issuer.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )
        for extension, critical in _extensions(request, list(usages), issuer):
            builder = builder.add_extension(extension, critical)
        algorithm = None if isinstance(self._key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        return builder.sign(self._key, algorithm).public_bytes(serialization.Encoding.PEM)

    def _load(self) -> None:
        certificate, key = (each.read_bytes() for each in self._files)
        if (certificate, key) == self._content:
            return
        found = x509.load_pem_x509_certificates(certificate)
        if len(found) != 1:
            raise ValueError(f"{self._files[0]}: expected 1 certificate, found {len(found)}")
        private = serialization.load_pem_private_key(key, None)
        if not isinstance(private, _PrivateKey):
            raise ValueError(f"{self._files[1]}: not an EC, RSA or Ed25519 key")
        self._certificate, self._key, self._content = found[0], private, (certificate, key)


def lifetime(expiration_seconds: int | None, longest: float) -> datetime.timedelta:
    """How long a certificate lives: as asked for, between ten minutes and the signer's own limit."""
    limit = datetime.timedelta(seconds=longest)
    if expiration_seconds is None:
        return limit
    asked = datetime.timedelta(seconds=expiration_seconds)
    return limit if asked > limit else max(asked, SHORTEST)


def _validity(
    now: datetime.datetime, lifetime: datetime.timedelta, issuer_end: datetime.datetime
) -> tuple[datetime.datetime, datetime.datetime]:
    begin = now - BACKDATE
    end = min(now + lifetime if lifetime < SHORT else now + lifetime - BACKDATE, issuer_end)
    if begin >= issuer_end:
        raise ValueError(f"the signer has expired: NotAfter={issuer_end}")
    if now >= issuer_end:
        raise ValueError(f"refusing to sign a certificate that expired in the past: NotAfter={issuer_end}")
    return begin, end


def _extensions(
    request: x509.CertificateSigningRequest, usages: list[str], issuer: x509.Certificate
) -> Iterable[tuple[x509.ExtensionType, bool]]:
    unknown = [each for each in usages if each not in _KEY_USAGES and each not in _EXTENDED]
    if unknown:
        raise ValueError(f"unrecognized usage values: {unknown}")
    flags = {_KEY_USAGES[each] for each in usages if each in _KEY_USAGES}
    if flags:
        names = dict.fromkeys(_KEY_USAGES.values())
        yield x509.KeyUsage(**{name: name in flags for name in names}), True
    extended = dict.fromkeys(oid for name, oid in _EXTENDED.items() if name in usages)
    if extended:
        yield x509.ExtendedKeyUsage(list(extended)), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    try:
        identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        yield x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False
    except x509.ExtensionNotFound:
        pass
    names_of_holder = subject_alternative_names(request)
    if names_of_holder:
        yield x509.SubjectAlternativeName(names_of_holder), not list(request.subject)
