"""The PKCS #10 request inside a CertificateSigningRequest: well-formed, and signed by the key it is for."""

from __future__ import annotations

from .. import pem

_SEQUENCE = 16


def check_request(data: bytes) -> None:
    """Raise PEMError unless the text is a certificate request with a valid signature."""
    block = next(pem.blocks(data), None)
    if block is None or block.type != pem.CERTIFICATE_REQUEST:
        raise pem.PEMError("PEM block type must be CERTIFICATE REQUEST")
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        request = x509.load_der_x509_csr(block.data)
        valid = request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        raise pem.PEMError(_malformed(block.data)) from None
    if not valid:
        raise pem.PEMError(_bad_signature(request.public_key()))


def _malformed(data: bytes) -> str:
    """Go's words for bytes that do not even begin like a request; deeper faults get words of our own."""
    if not data:
        return "asn1: syntax error: sequence truncated"
    tag, compound, length = data[0] & 31, bool(data[0] & 32), data[1] if len(data) > 1 else 0
    if tag == _SEQUENCE and compound:
        return "asn1: structure error: malformed certificate request"
    found = f"{{class:{data[0] >> 6} tag:{tag} length:{length} isCompound:{str(compound).lower()}}}"
    wanted = (
        "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> "
        "stringType:0 timeType:0 set:false omitEmpty:false}"
    )
    return f"asn1: structure error: tags don't match (16 vs {found}) {wanted} certificateRequest @2"


def _bad_signature(key: object) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ec.EllipticCurvePublicKey):
        return "x509: ECDSA verification failure"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "x509: Ed25519 verification failure"
    return "crypto/rsa: verification error"
