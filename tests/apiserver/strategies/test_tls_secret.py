"""A TLS Secret whose certificate and key do not belong together is accepted with a warning, in Go's words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pybernetes.apiserver.strategies.core.tls import key_pair_problem

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

ONE = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)


def certificate(key: Key) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    return builder.not_valid_after(datetime(2030, 1, 1, tzinfo=UTC)).sign(key, SHA256()).public_bytes(Encoding.PEM)


def pem(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("chain", "key", "problem"),
    [
        (certificate(ONE), pem(ONE), None),
        (certificate(RSA), pem(RSA), None),
        (certificate(ONE) + certificate(OTHER), pem(ONE), None),
        (certificate(ONE), pem(OTHER), "tls: private key does not match public key"),
        (certificate(ONE), pem(RSA), "tls: private key type does not match public key type"),
        (b"", pem(ONE), "tls: failed to find any PEM data in certificate input"),
        (certificate(ONE), b"", "tls: failed to find any PEM data in key input"),
        (
            certificate(ONE),
            certificate(ONE),
            "tls: found a certificate rather than a key in the PEM for the private key",
        ),
        (
            pem(ONE),
            certificate(ONE),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
        ),
        (
            public(ONE),
            pem(ONE),
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            "following types: [PUBLIC KEY]",
        ),
        (
            certificate(ONE),
            public(ONE),
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks '
            "of the following types: [PUBLIC KEY]",
        ),
    ],
)
def test_a_pair_is_judged_as_go_judges_it(chain: bytes, key: bytes, problem: str | None) -> None:
    assert key_pair_problem(chain, key) == problem
