"""Tokens of every kind, good and bad, and the servers that others would run: an issuer, a webhook."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from backends import Answer, Asked, Backend, server_tls
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from pybernetes import jws, pki

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_HASH = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_SIZES = {"ES256": 32, "ES384": 48, "ES512": 66}


def part(value: Any) -> str:
    """One part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims: dict[str, Any], key: PrivateKey | bytes | None, alg: str, **header: Any) -> str:
    """A token signed with this algorithm, whatever the key; bytes are a shared secret, None is no signature."""
    text = f"{part({'alg': alg, **header})}.{part(claims)}"
    return f"{text}.{part(_signature(text.encode(), key, alg))}"


def _signature(text: bytes, key: PrivateKey | bytes | None, alg: str) -> bytes:
    if key is None:
        return b""
    if isinstance(key, bytes):
        return hmac.digest(key, text, hashlib.sha256)
    digest = _HASH[alg[2:]]
    if isinstance(key, rsa.RSAPrivateKey):
        if alg.startswith("PS"):
            return key.sign(text, padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH), digest)
        return key.sign(text, padding.PKCS1v15(), digest)
    r, s = decode_dss_signature(key.sign(text, ec.ECDSA(digest)))
    size = _SIZES[alg]
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def public_pem(key: PrivateKey) -> bytes:
    """What an attacker has of a key."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def claims_of(text: str) -> dict[str, Any]:
    """What a token says."""
    payload = text.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


class HTTPSServer(Backend):
    """Answers GET and POST by a function of path, headers and body: (status, headers, body)."""

    def __init__(self, authority: pki.Identity) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[str, dict[str, str], bytes], tuple[int, dict[str, str], Any]] = lambda *_: (404, {}, "")
        super().__init__(self._ask, server_tls(pki.issue_server(authority, "127.0.0.1", ["127.0.0.1", "localhost"])))
        self.url = self.origin

    def _ask(self, asked: Asked) -> Answer:
        self.asked.append((asked.path, asked.headers, asked.body))
        status, headers, content = self.answer(asked.path, asked.headers, asked.body)
        return Answer(content, status, headers)


class Issuer(HTTPSServer):
    """An OpenID Connect issuer: discovery, keys that can be rotated, claims that are kept elsewhere."""

    def __init__(self, authority: pki.Identity) -> None:
        super().__init__(authority)
        self.keys: dict[str, PrivateKey] = {
            "rsa": rsa.generate_private_key(65537, 2048),
            "p256": ec.generate_private_key(ec.SECP256R1()),
            "p384": ec.generate_private_key(ec.SECP384R1()),
            "p521": ec.generate_private_key(ec.SECP521R1()),
        }
        self.documents: dict[str, Any] = {}
        self.cache_control = ""
        self.answer = self._answer

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], Any]:
        if path == "/.well-known/openid-configuration":
            return 200, {}, {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        if path == "/keys":
            caching = {"Cache-Control": self.cache_control} if self.cache_control else {}
            keys = [{**jws.to_jwk(key.public_key()), "kid": name} for name, key in self.keys.items()]
            return 200, caching, {"keys": keys}
        return (200, {}, self.documents[path]) if path in self.documents else (404, {}, "no")

    def claims(self, **more: Any) -> dict[str, Any]:
        """What a good token says; None takes a claim out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": "kube", "sub": "jane", "iat": now, "exp": now + 600}
        return {name: value for name, value in {**usual, **more}.items() if value is not None}

    def token(self, key: str = "rsa", alg: str = "RS256", **claims: Any) -> str:
        """A token of this issuer."""
        return token(self.claims(**claims), self.keys[key], alg, kid=key)
