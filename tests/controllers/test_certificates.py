"""Certificate requests of kubelets are approved, approved ones are signed, old ones go."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from controllers.conftest import Harness, MakeHarness
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pybernetes import pki
from pybernetes.api.certificates.v1 import CertificateSigningRequest
from pybernetes.controllers.certificates.authority import Authority, lifetime
from pybernetes.controllers.certificates.cleaner import deadlines
from pybernetes.controllers.certificates.requests import RequestError, validate_for_signer
from pybernetes.controllers.certificates.signing import signer_files
from pybernetes.controllers.options import Options

APPROVING = "certificatesigningrequest-approving-controller"
SIGNING = "certificatesigningrequest-signing-controller"
CLEANER = "certificatesigningrequest-cleaner-controller"
CLIENT, SERVING, API = (
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client",
)
CLIENT_USAGES = ["digital signature", "client auth"]


def request(
    name: str = "system:node:n", organization: str = "system:nodes", *names: str
) -> x509.CertificateSigningRequest:
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        x509.NameAttribute(NameOID.COMMON_NAME, name),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        general: list[x509.GeneralName] = []
        for each in names:
            if each[0].isdigit():
                general.append(x509.IPAddress(ipaddress.ip_address(each)))
            elif "@" in each:
                general.append(x509.RFC822Name(each))
            else:
                general.append(x509.DNSName(each))
        builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def encoded(of: x509.CertificateSigningRequest) -> str:
    return base64.b64encode(of.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.parametrize(
    ("signer", "arguments", "usages", "error"),
    [
        (CLIENT, (), CLIENT_USAGES, None),
        (CLIENT, (), [*CLIENT_USAGES, "key encipherment"], None),
        (CLIENT, ("system:node:n", "x"), CLIENT_USAGES, "subject organization is not system:nodes"),
        (CLIENT, ("n",), CLIENT_USAGES, "subject common name does not begin with system:node:"),
        (CLIENT, ("system:node:n", "system:nodes", "a.b"), CLIENT_USAGES, "DNS subjectAltNames are not allowed"),
        (CLIENT, ("system:node:n", "system:nodes", "10.0.0.1"), CLIENT_USAGES, "IP subjectAltNames are not allowed"),
        (
            CLIENT,
            (),
            ["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (SERVING, ("system:node:n", "system:nodes", "10.0.0.1"), ["digital signature", "server auth"], None),
        (SERVING, (), ["digital signature", "server auth"], "DNS or IP subjectAltName is required"),
        (
            SERVING,
            ("system:node:n", "system:nodes", "a.b", "a@b"),
            ["digital signature", "server auth"],
            "Email subjectAltNames are not allowed",
        ),
        (API, ("me", "x"), ["client auth"], None),
        (API, ("me", "x"), ["client auth", "server auth"], "invalid usage for client certificate: server auth"),
        (API, ("me", "x"), ["digital signature"], "missing required usage for client certificate: client auth"),
        ("kubernetes.io/legacy-unknown", ("me", "x"), ["any"], None),
    ],
)
def test_what_signers_sign(signer: str, arguments: tuple[str, ...], usages: list[str], error: str | None) -> None:
    if error is None:
        validate_for_signer(request(*arguments), signer, usages)
        return
    with pytest.raises(RequestError) as raised:
        validate_for_signer(request(*arguments), signer, usages)
    assert str(raised.value) == error


def files(folder: Path) -> tuple[str, str]:
    authority = pki.create_authority("ca")
    (folder / "ca.crt").write_bytes(authority.certificate_pem)
    (folder / "ca.key").write_bytes(authority.key_pem)
    return str(folder / "ca.crt"), str(folder / "ca.key")


def test_a_certificate_has_the_names_and_usages_asked_for_and_is_no_authority(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    pem = Authority(*files(tmp_path)).sign(
        request("system:node:n", "system:nodes", "10.0.0.1"),
        ["digital signature", "server auth"],
        datetime.timedelta(hours=1),
        now.timestamp(),
    )
    found = x509.load_pem_x509_certificate(pem)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))
    extensions = found.extensions
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in names] == ["10.0.0.1"]
    assert found.not_valid_before_utc == now - datetime.timedelta(minutes=5)
    assert found.not_valid_after_utc == now + datetime.timedelta(hours=1)


def test_an_authority_is_read_again_when_its_files_change(tmp_path: Path) -> None:
    authority = Authority(*files(tmp_path))
    files(tmp_path)
    pem = authority.sign(request(), CLIENT_USAGES, datetime.timedelta(hours=1), datetime.datetime.now().timestamp())
    x509.load_pem_x509_certificate(pem).verify_directly_issued_by(
        x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    )


@pytest.mark.parametrize(("asked", "seconds"), [(None, 3600), (60, 600), (1200, 1200), (99999, 3600)])
def test_lifetimes_are_between_ten_minutes_and_the_flag(asked: int | None, seconds: int) -> None:
    assert lifetime(asked, 3600.0).total_seconds() == seconds


def test_signers_have_the_common_files_or_their_own() -> None:
    assert signer_files(Options()) == {}
    common = Options(cluster_signing_cert_file="c", cluster_signing_key_file="k")
    assert signer_files(common).keys() == {CLIENT, SERVING, API, "kubernetes.io/legacy-unknown"}
    own = Options(cluster_signing_kubelet_client_cert_file="x", cluster_signing_kubelet_client_key_file="y")
    assert signer_files(own) == {CLIENT: ("x", "y")}
    own.cluster_signing_cert_file, own.cluster_signing_key_file = "c", "k"
    with pytest.raises(ValueError, match="default and per controller certs at the same time"):
        signer_files(own)
    half = Options(cluster_signing_legacy_unknown_key_file="k")
    missing = "--cluster-signing-legacy-unknown-key-file needs --cluster-signing-legacy-unknown-cert-file too"
    with pytest.raises(ValueError, match=missing):
        signer_files(half)


THEN = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("conditions", "certificate", "hours"),
    [
        ([], None, 24),
        ([{"type": "Denied", "lastUpdateTime": THEN}], None, 1),
        ([{"type": "Failed", "lastUpdateTime": THEN}], None, 1),
        ([{"type": "Approved", "lastUpdateTime": THEN}], None, 24),
        ([{"type": "Approved", "lastUpdateTime": THEN}], "eA==", 1),
    ],
)
def test_requests_have_a_time_to_live(conditions: list[dict[str, Any]], certificate: str | None, hours: int) -> None:
    csr = msgspec.convert(
        {
            "metadata": {"creationTimestamp": THEN},
            "status": {"conditions": conditions, **({"certificate": certificate} if certificate else {})},
        },
        CertificateSigningRequest,
    )
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()
    assert list(deadlines(csr)) == [start + hours * 3600]


async def submit(h: Harness, name: str, signer: str, of: x509.CertificateSigningRequest, usages: list[str]) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {"request": encoded(of), "signerName": signer, "usages": usages, "expirationSeconds": 3600},
    }
    await h.client.call("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body)


def states(h: Harness, name: str, *expected: str) -> Any:
    async def check() -> bool:
        found = await h.client.get(CertificateSigningRequest, name)
        return [each.type for each in (found.status.conditions if found.status else None) or ()] == list(expected)

    return h.until(check, f"{name} is {expected}")


async def test_a_kubelets_request_is_approved_and_signed(harness: MakeHarness, tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    authority = (tmp_path / "ca.crt").read_bytes()
    options = Options(cluster_signing_cert_file=certificate, cluster_signing_key_file=key)
    async with harness(APPROVING, SIGNING, options=options) as h:
        await submit(h, "kubelet", CLIENT, request(), CLIENT_USAGES)
        await submit(h, "person", API, request("me", "x"), ["client auth"])

        async def issued() -> bool:
            found = await h.client.get(CertificateSigningRequest, "kubelet")
            return bool(found.status and found.status.certificate)

        await h.until(issued)
        found = await h.client.get(CertificateSigningRequest, "kubelet")
        assert found.status is not None
        assert [(each.type, each.reason) for each in found.status.conditions or ()] == [("Approved", "AutoApproved")]
        pem = base64.b64decode(found.status.certificate or "")
        x509.load_pem_x509_certificate(pem).verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        await states(h, "person")


async def test_an_approved_request_that_its_signer_must_refuse_fails(harness: MakeHarness, tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    options = Options(cluster_signing_cert_file=certificate, cluster_signing_key_file=key)
    async with harness(SIGNING, options=options) as h:
        await submit(h, "bad", CLIENT, request("me"), CLIENT_USAGES)
        found = await h.client.get(CertificateSigningRequest, "bad")
        body = msgspec.to_builtins(found)
        body["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test", "message": "x"}]}
        await h.client.call("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/bad/approval", body)
        await states(h, "bad", "Approved", "Failed")
        found = await h.client.get(CertificateSigningRequest, "bad")
        assert found.status is not None
        failed = (found.status.conditions or [])[1]
        assert (failed.reason, failed.message) == (
            "SignerValidationFailure",
            "subject common name does not begin with system:node:",
        )


async def test_pending_requests_are_deleted_after_a_day(harness: MakeHarness) -> None:
    async with harness(CLEANER) as h:
        await submit(h, "old", API, request("me", "x"), ["client auth"])
        await h.until(lambda: h.controller(CLEANER).queue.delayed, "its time is noted")
        h.clock.advance(24 * 3600 + 5)

        async def gone() -> bool:
            found = await h.client.list(CertificateSigningRequest)
            return "old" not in [each.metadata and each.metadata.name for each in found.items or ()]

        await h.until(gone)
