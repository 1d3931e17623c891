"""Keys and certificates: an authority, and what it signs.

EC P-256 everywhere: a key takes 50 microseconds (RSA 2048: 50 milliseconds), signatures are small and every Kubernetes
client accepts them. Nothing here touches the disk; who keeps which file is decided by the caller.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = datetime.timedelta(days=3650)
CERTIFICATE_LIFETIME = datetime.timedelta(days=365)
# Clocks of two machines differ; a certificate that is 'not yet valid' is a bad first impression.
CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and the certificate for its public half."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def key_pem(self) -> bytes:
        """The private key as PEM (SEC 1, the form kubeadm writes)."""
        return private_pem(self.key)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, not encrypted: the file's mode protects it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half of a key as PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Reads a private key; ValueError if it is none, or not an EC key."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except TypeError as error:
        raise ValueError("the key is encrypted") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an EC key")
    return key


def load(key: bytes, certificate: bytes) -> Identity:
    """Reads an identity; ValueError if a part is unreadable or the two do not belong together."""
    identity = Identity(load_key(key), x509.load_pem_x509_certificate(certificate))
    if identity.certificate.public_key() != identity.key.public_key():
        raise ValueError("the certificate is for another key")
    return identity


def create_authority(common_name: str) -> Identity:
    """A self-signed certificate authority."""
    key = new_key()
    name = _name(common_name, ())
    builder = (
        _builder(name, name, key, CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Identity(key, builder.sign(key, hashes.SHA256()))


def issue_client(authority: Identity, common_name: str, organizations: Iterable[str] = ()) -> Identity:
    """A client certificate: Kubernetes reads the user from the common name and the groups from the organizations."""
    return _issue(authority, _name(common_name, organizations), [ExtendedKeyUsageOID.CLIENT_AUTH], ())


def issue_server(authority: Identity, common_name: str, names: Iterable[str]) -> Identity:
    """A serving certificate for host names and IP addresses."""
    return _issue(authority, _name(common_name, ()), [ExtendedKeyUsageOID.SERVER_AUTH], names)


def signing_request(
    key: ec.EllipticCurvePrivateKey, common_name: str, organizations: Iterable[str], names: Iterable[str] = ()
) -> bytes:
    """A request, in PEM, for a certificate of this key's owner."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(common_name, organizations))
    alternatives = [_general_name(name) for name in names]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def signed_by(identity: Identity, authority: Identity) -> bool:
    """Whether the authority signed the certificate."""
    try:
        identity.certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # ValueError, TypeError or InvalidSignature: all mean no.
        return False
    return True


def expires_within(identity: Identity, margin: datetime.timedelta, now: datetime.datetime) -> bool:
    """Whether the certificate ends before `now + margin` (or has not begun)."""
    certificate = identity.certificate
    return certificate.not_valid_after_utc < now + margin or certificate.not_valid_before_utc > now


def subject_names(identity: Identity) -> set[str]:
    """The host names and IP addresses a serving certificate is good for."""
    return names_of(identity.certificate)


def organizations(identity: Identity) -> set[str]:
    """The groups of a client's certificate."""
    found = identity.certificate.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    return {str(each.value) for each in found}


def names_of(certificate: x509.Certificate) -> set[str]:
    """The host names and IP addresses in a certificate."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in extension.value}


def _issue(
    authority: Identity, subject: x509.Name, usages: list[x509.ObjectIdentifier], names: Iterable[str]
) -> Identity:
    key = new_key()
    issuer = authority.certificate
    builder = (
        _builder(subject, issuer.subject, key, CERTIFICATE_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            ),
            critical=False,
        )
    )
    alternatives = [_general_name(name) for name in names]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Identity(key, builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _name(common_name: str, organizations: Iterable[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
