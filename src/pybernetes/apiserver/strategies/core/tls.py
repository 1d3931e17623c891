"""Whether a certificate and a key belong together, told in the words of Go's `crypto/tls`."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Final

_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\r\n]*?)-----[ \t]*\r?\n(.*?)^-----END \1-----[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)


def key_pair_problem(certificate: bytes, key: bytes) -> str | None:
    """What is wrong with the pair; None if nothing is."""
    blocks = _BLOCK.findall(certificate)
    if not blocks:
        return "tls: failed to find any PEM data in certificate input"
    chain = [body for name, body in blocks if name == b"CERTIFICATE"]
    if not chain:
        names = [name.decode("utf-8", "replace") for name, _ in blocks]
        if len(names) == 1 and names[0].endswith("PRIVATE KEY"):
            return (
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
                "PEM inputs may have been switched"
            )
        return (
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            f"following types: [{' '.join(names)}]"
        )
    problem = _key_problem(key)
    return problem or _match_problem(chain[0], certificate, key)


def _key_problem(key: bytes) -> str | None:
    names = [name.decode("utf-8", "replace") for name, _ in _BLOCK.findall(key)]
    if not names:
        return "tls: failed to find any PEM data in key input"
    if any(name == "PRIVATE KEY" or name.endswith(" PRIVATE KEY") for name in names):
        return None
    if len(names) == 1 and names[0] == "CERTIFICATE":
        return "tls: found a certificate rather than a key in the PEM for the private key"
    listed = " ".join(names)
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{listed}]"
    )


def _match_problem(leaf: bytes, certificate: bytes, key: bytes) -> str | None:
    from cryptography import x509  # heavy: only loaded for a pair that looks right
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        parsed = x509.load_der_x509_certificate(b64decode(leaf))
        public = parsed.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    mine = private.public_key()
    if type(mine) is not type(public):
        return "tls: private key type does not match public key type"
    if mine.public_bytes(*form) != public.public_bytes(*form):
        return "tls: private key does not match public key"
    return None
