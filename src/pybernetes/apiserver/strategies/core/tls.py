"""Checks that a certificate and a key belong together, with the messages of Go's `crypto/tls`."""

from __future__ import annotations

from pybernetes.api.pem import blocks


def key_pair_problem(certificate: bytes, key: bytes) -> str | None:
    """The error in the pair; None if it is valid."""
    found = list(blocks(certificate))
    if not found:
        return "tls: failed to find any PEM data in certificate input"
    chain = [block.data for block in found if block.type == "CERTIFICATE"]
    if not chain:
        names = [block.type for block in found]
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
    return problem or _match_problem(chain[0], key)


def _key_problem(key: bytes) -> str | None:
    names = [block.type for block in blocks(key)]
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


def _match_problem(leaf: bytes, key: bytes) -> str | None:
    from cryptography import x509  # heavy: only loaded for a pair that looks right
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        parsed = x509.load_der_x509_certificate(leaf)
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
