"""JSON web signatures in their compact form: for tokens of service accounts and for `cluster-info`."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_CURVES: Final[dict[str, tuple[str, hashes.HashAlgorithm, int]]] = {
    "secp256r1": ("ES256", hashes.SHA256(), 32),
    "secp384r1": ("ES384", hashes.SHA384(), 48),
    "secp521r1": ("ES512", hashes.SHA512(), 66),
}


def load_signing_key(pem: bytes) -> SigningKey:
    """A private key for tokens; ValueError if it is none that Kubernetes knows."""
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
        raise ValueError("only RSA and ECDSA keys can sign tokens")
    return key


def sign_token(claims: dict[str, Any], key: SigningKey) -> str:
    """A signed token; its header names the key by the hash of its public half, as the API server looks it up."""
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else _CURVES[key.curve.name][0]
    header = msgspec.json.encode({"alg": algorithm, "kid": key_id(key)})
    text = f"{encode(header)}.{encode(msgspec.json.encode(claims, order='sorted'))}"
    return f"{text}.{encode(_sign(text.encode(), key))}"


def key_id(key: SigningKey) -> str:
    """The name of a key: a hash of its public half."""
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encode(hashlib.sha256(public).digest())


def detached_signature(content: str, key_name: str, secret: str) -> str:
    """A signature by a shared secret, without what it signs."""
    header = encode(msgspec.json.encode({"alg": "HS256", "kid": key_name}))
    text = f"{header}.{encode(content.encode())}"
    return f"{header}..{encode(hmac.digest(secret.encode(), text.encode(), 'sha256'))}"


def encode(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _sign(text: bytes, key: SigningKey) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    _, algorithm, size = _CURVES[key.curve.name]
    r, s = decode_dss_signature(key.sign(text, ec.ECDSA(algorithm)))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")
