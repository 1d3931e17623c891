"""A conversion webhook for tests: `spec.hostPort` of v1 is `host` and `port` of v2. Its path says how it lies.

Its certificate is good for 127.0.0.1 and for the Service `hook` in `default`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from backends import Answer, Asked, Backend
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class ConversionWebhook(Backend):
    """A running webhook."""

    def __init__(self, tls: ssl.SSLContext, bundle: str) -> None:
        self.bundle = bundle
        self.reviews: list[dict[str, Any]] = []
        super().__init__(self._answer, tls)

    def __enter__(self) -> ConversionWebhook:
        return self

    def _answer(self, asked: Asked) -> Answer:
        review = asked.json
        self.reviews.append(review)
        request, mode = review["request"], asked.path.split("?")[0].strip("/")
        if mode == "hang":
            time.sleep(2)  # not a wait: a webhook that hangs
        objects = [convert(each, request["desiredAPIVersion"]) for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        lie(mode, response)
        answer = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
        return Answer("{" if mode == "broken" else answer, 500 if mode == "error" else 200)

    def config(self, mode: str = "good") -> dict[str, Any]:
        """What a definition says of it."""
        return {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{mode}", "caBundle": self.bundle},
            },
        }


def convert(document: dict[str, Any], version: str) -> dict[str, Any]:
    """The honest conversion."""
    made: dict[str, Any] = json.loads(json.dumps(document))
    spec = made.get("spec", {})
    if version.endswith("v2") and "hostPort" in spec:
        spec["host"], port = spec.pop("hostPort").split(":")
        spec["port"] = int(port)
    elif version.endswith("v1") and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port')}"
    made["apiVersion"] = version
    made["metadata"]["generation"] = 99  # which is none of its business
    made["metadata"].setdefault("labels", {})["converted"] = version.rpartition("/")[2]
    return made


def lie(mode: str, response: dict[str, Any]) -> None:
    objects = response["convertedObjects"]
    match mode:
        case "fail":
            response["result"] = {"status": "Failed", "message": "cannot convert"}
        case "uid":
            response["uid"] = "x"
        case "name":
            objects[0]["metadata"]["name"] = "zz"
        case "few":
            response["convertedObjects"] = []
        case "version":
            objects[0]["apiVersion"] = "x/v9"
        case "labels":
            objects[0]["metadata"]["labels"] = {"a": 1}


@contextlib.contextmanager
def conversion_webhook(folder: Path) -> Iterator[ConversionWebhook]:
    """Serves on a free port; its certificate is kept in the folder."""
    certificate = self_signed()
    (folder / "hook.pem").write_bytes(certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "hook.pem")
    with ConversionWebhook(tls, base64.b64encode(certificate.partition(b"-----BEGIN EC")[0]).decode()) as hook:
        yield hook


def self_signed() -> bytes:
    """A certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("hook.default.svc")]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return made.public_bytes(pem) + key.private_bytes(pem, form, serialization.NoEncryption())
