"""JSON web signatures: keys for tokens, signing, verifying, and keys as JWKs (RFC 7515, 7517, 7518).

For tokens of service accounts, for `cluster-info`, and for tokens that other issuers signed. Written on `cryptography`:
PyJWT does no more than this file, and its import costs another 12 ms. Who verifies says with which key, and the key
decides which algorithms are possible: a public key can never be taken for a shared secret, and `none` is no algorithm.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
VerificationKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_HASHES: Final[dict[str, hashes.HashAlgorithm]] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES: Final[dict[str, tuple[str, int]]] = {
    "secp256r1": ("ES256", 32),
    "secp384r1": ("ES384", 48),
    "secp521r1": ("ES512", 66),
}
_JWK_CURVES: Final[dict[str, ec.EllipticCurve]] = {
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}
RSA_ALGORITHMS: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


# --- keys


def load_signing_key(pem: bytes) -> SigningKey:
    """A private key for tokens; ValueError if it is none that Kubernetes knows."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (TypeError, UnsupportedAlgorithm) as error:  # TypeError: it is encrypted
        raise ValueError(str(error)) from error
    if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)) or not _usable(key.public_key()):
        raise ValueError("only RSA keys and ECDSA keys on P-256, P-384 and P-521 can sign tokens")
    return key


def load_public_keys(pem: bytes) -> list[VerificationKey]:
    """Every key of a file: public keys, the public halves of private ones, keys of certificates. ValueError if none."""
    found: list[VerificationKey] = []
    for match in _BLOCK.finditer(pem):
        label, block = match[1], match[0]
        key: Any
        try:
            if label == b"CERTIFICATE":
                from cryptography import x509  # as large as the rest, and seldom needed

                key = x509.load_pem_x509_certificate(block).public_key()
            elif label.endswith(b"PRIVATE KEY"):
                key = load_signing_key(block).public_key()
            elif label.endswith(b"PUBLIC KEY"):
                key = serialization.load_pem_public_key(block)
            else:
                continue  # such as EC PARAMETERS, which openssl writes in front of a key
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError(f"data contains an unreadable {label.decode()}: {error}") from error
        if _usable(key):
            found.append(key)
    if not found:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return found


def key_id(key: SigningKey | VerificationKey) -> str:
    """The name of a key: a hash of its public half."""
    if isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
        key = key.public_key()
    public = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encode(hashlib.sha256(public).digest())


def algorithm_of(key: SigningKey | VerificationKey) -> str:
    """The algorithm that Kubernetes signs with when it has such a key."""
    if isinstance(key, (rsa.RSAPrivateKey, rsa.RSAPublicKey)):
        return "RS256"
    return _CURVES[key.curve.name][0]


def _usable(key: Any) -> bool:
    return isinstance(key, rsa.RSAPublicKey) or (
        isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES
    )


# --- signing and verifying


def sign_token(claims: dict[str, Any], key: SigningKey) -> str:
    """A signed token; its header names the key by the hash of its public half, as the API server looks it up."""
    header = msgspec.json.encode({"alg": algorithm_of(key), "kid": key_id(key)})
    text = f"{encode(header)}.{encode(msgspec.json.encode(claims, order='sorted'))}"
    return f"{text}.{encode(_sign(text.encode(), key))}"


def verifies(algorithm: str, text: bytes, signature: bytes, key: VerificationKey) -> bool:
    """Whether the owner of the key signed the text with this algorithm; one that is not for such keys never did."""
    try:
        if isinstance(key, rsa.RSAPublicKey):
            if algorithm not in RSA_ALGORITHMS:
                return False
            digest = _HASHES[algorithm[2:]]
            scheme: Any = (
                padding.PKCS1v15()
                if algorithm[:2] == "RS"
                else padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
            )
            key.verify(signature, text, scheme, digest)
            return True
        expected, size = _CURVES[key.curve.name]
        if algorithm != expected or len(signature) != 2 * size:
            return False
        r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
        key.verify(encode_dss_signature(r, s), text, ec.ECDSA(_HASHES[algorithm[2:]]))
        return True
    except InvalidSignature:
        return False


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
    algorithm, size = _CURVES[key.curve.name]
    r, s = decode_dss_signature(key.sign(text, ec.ECDSA(_HASHES[algorithm[2:]])))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


# --- JWKs


def to_jwk(key: VerificationKey) -> dict[str, str]:
    """A public key as a JWK for signatures, with the name and the algorithm that Kubernetes uses."""
    name, algorithm = key_id(key), algorithm_of(key)
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        n, e = _unsigned(numbers.n), _unsigned(numbers.e)
        return {"use": "sig", "kty": "RSA", "kid": name, "alg": algorithm, "n": n, "e": e}
    size = _CURVES[key.curve.name][1]
    point = key.public_numbers()
    curve = next(name for name, each in _JWK_CURVES.items() if each.name == key.curve.name)
    x, y = encode(point.x.to_bytes(size, "big")), encode(point.y.to_bytes(size, "big"))
    return {"use": "sig", "kty": "EC", "kid": name, "crv": curve, "alg": algorithm, "x": x, "y": y}


def from_jwk(jwk: dict[str, Any]) -> VerificationKey:
    """The key that a JWK describes. ValueError for one that cannot verify a signature of a known kind."""
    kind = jwk.get("kty")
    try:
        if kind == "RSA":
            return rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
        if kind == "EC":
            curve = _JWK_CURVES[jwk["crv"]]
            return ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), curve).public_key()
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"not a JWK: {error}") from error
    raise ValueError(f"keys of type {kind!r} are not supported")


def _unsigned(number: int) -> str:
    return encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
