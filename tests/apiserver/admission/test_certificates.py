"""CertificateSubjectRestriction, CertificateApproval, CertificateSigning."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from apiserver.client import Client
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pybernetes.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)
from pybernetes.api.errors import Forbidden
from pybernetes.api.resources import RESOURCES
from pybernetes.apiserver.admission.certificates import CertificateApproval, CertificateSigning
from pybernetes.apiserver.admission.plugin import UPDATE, Attributes
from pybernetes.apiserver.authz.authorizer import Decision
from pybernetes.apiserver.requestinfo import RequestInfo
from pybernetes.apiserver.user import User

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
REQUESTS = next(each for each in RESOURCES if each.plural == "certificatesigningrequests")


def request(organization: str, signer: str) -> dict[str, Any]:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization), x509.NameAttribute(NameOID.COMMON_NAME, "x")]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    text = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    body = base64.b64encode(text.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": body, "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"generateName": "r-"}, "spec": spec}


@pytest.mark.parametrize(
    ("organization", "signer", "status"),
    [
        ("system:masters", "kubernetes.io/kube-apiserver-client", 403),
        ("developers", "kubernetes.io/kube-apiserver-client", 201),
        ("system:masters", "example.com/own", 201),
    ],
)
def test_no_certificate_grants_system_masters(admin: Client, organization: str, signer: str, status: int) -> None:
    answer = admin.post(PATH, request(organization, signer))
    assert answer.status == status
    if status == 403:
        end = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        assert answer.message.endswith(end)


class Only:
    """Allows one verb on one signer."""

    kind = name = "test"

    def __init__(self, verb: str, signer: str) -> None:
        self._allowed = (verb, "certificates.k8s.io", "signers", signer)

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        asked = (info.verb, info.group, info.resource, info.name)
        return (Decision.ALLOW if asked == self._allowed else Decision.NO_OPINION), ""


def attributes(subresource: str, after: CertificateSigningRequestStatus | None = None) -> Attributes:
    spec = CertificateSigningRequestSpec(signer_name="example.com/a")
    old = CertificateSigningRequest(spec=spec)
    new = CertificateSigningRequest(spec=spec, status=after)
    return Attributes(UPDATE, REQUESTS, subresource, "", "r", new, old, User("u"), False, [])


class _Registry:
    def __init__(self, *authorizers: Only) -> None:
        self.authorizers = list(authorizers)


async def verdict(kind: Any, subject: Attributes, *authorizers: Only) -> str:
    plugin = kind(_Registry(*authorizers))
    try:
        pending = plugin.validate(subject)
        if pending is not None:
            await pending
    except Forbidden as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("kind", "subresource", "verb"),
    [(CertificateApproval, "approval", "approve"), (CertificateSigning, "status", "sign")],
)
async def test_permission_for_the_signer_or_its_domain_is_needed(kind: Any, subresource: str, verb: str) -> None:
    condition = CertificateSigningRequestCondition(type="Failed", status="True")
    change = attributes(subresource, CertificateSigningRequestStatus(conditions=[condition]))
    refused = f'user not permitted to {verb} requests with signerName "example.com/a"'
    assert (await verdict(kind, change)).endswith(refused)
    assert (await verdict(kind, change, Only(verb, "example.com/b"))).endswith(refused)
    assert await verdict(kind, change, Only(verb, "example.com/a")) == ""
    assert await verdict(kind, change, Only(verb, "example.com/*")) == ""


async def test_a_status_without_certificate_and_conditions_needs_no_permission() -> None:
    assert await verdict(CertificateSigning, attributes("status", CertificateSigningRequestStatus())) == ""
