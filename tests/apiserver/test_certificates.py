"""A CertificateSigningRequest over the wire: asked for, approved, signed."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from apiserver.client import Client
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def certificate() -> str:
    builder = x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1)
    builder = builder.not_valid_before(datetime(2024, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2034, 1, 1, tzinfo=UTC))
    return text(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


@pytest.fixture
def request_(client: Client) -> dict[str, Any]:
    asked = x509.CertificateSigningRequestBuilder(NAME).sign(KEY, hashes.SHA256())
    spec = {
        "request": text(asked.public_bytes(serialization.Encoding.PEM)),
        "signerName": "example.com/signer",
        "usages": ["client auth"],
        "username": "somebody-else",
    }
    made = client.post(PATH, {"metadata": {"generateName": "csr-"}, "spec": spec})
    assert made.status == 201, made.body
    obj: dict[str, Any] = made.json
    return obj


def test_the_server_says_who_asked(request_: dict[str, Any]) -> None:
    assert request_["spec"]["username"] != "somebody-else"
    assert "system:masters" in request_["spec"]["groups"]
    assert request_["status"] == {}


def test_only_the_approval_subresource_approves(client: Client, request_: dict[str, Any]) -> None:
    path = f"{PATH}/{request_['metadata']['name']}"
    request_["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Because"}]}
    assert client.put(path, request_).json["status"] == {}
    refused = client.put(f"{path}/status", request_)
    assert refused.status == 422
    assert 'updates may not add a condition of type "Approved"' in refused.message
    approved = client.put(f"{path}/approval", request_)
    assert approved.status == 200, approved.body
    (condition,) = approved.json["status"]["conditions"]
    assert condition["reason"] == "Because"
    assert condition["lastUpdateTime"]


def test_only_the_status_subresource_signs(client: Client, request_: dict[str, Any]) -> None:
    path = f"{PATH}/{request_['metadata']['name']}"
    request_["status"] = {"certificate": certificate()}
    assert "certificate" not in client.put(f"{path}/approval", request_).json["status"]
    assert client.put(f"{path}/status", request_).json["status"] == request_["status"]
    assert client.get(path).json["status"] == request_["status"]
