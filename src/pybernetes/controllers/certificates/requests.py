"""Parses a certificate request, and decides whether a signer of Kubernetes may grant it. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from pybernetes.api import pem
from pybernetes.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
API_SERVER_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"

_NODE_PREFIX: Final = "system:node:"
_CLIENT: Final = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVING: Final = frozenset({"digital signature", "key encipherment", "server auth"})
_RSA_ONLY: Final = frozenset({"key encipherment"})


class RequestError(ValueError):
    """A request that its signer must refuse; the words are upstream's."""


def parse_request(csr: CertificateSigningRequest) -> x509.CertificateSigningRequest:
    """The PKCS #10 request inside."""
    spec = csr.spec or CertificateSigningRequestSpec()
    block = next(pem.blocks(base64.b64decode(spec.request or "")), None)
    if block is None or block.type != pem.CERTIFICATE_REQUEST:
        raise RequestError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(block.data)
    except ValueError as error:
        raise RequestError(str(error)) from error


def validate_for_signer(request: x509.CertificateSigningRequest, signer: str, usages: Iterable[str]) -> None:
    """Raise RequestError unless this signer signs such requests."""
    wanted = frozenset(usages)
    if signer == KUBELET_CLIENT:
        validate_kubelet_client(request, wanted)
    elif signer == KUBELET_SERVING:
        validate_kubelet_serving(request, wanted)
    elif signer == API_SERVER_CLIENT:
        _validate_api_server_client(list(usages))


def validate_kubelet_client(request: x509.CertificateSigningRequest, usages: frozenset[str]) -> None:
    """Raise RequestError unless it is for a kubelet that calls the API server: a node's name and nothing else."""
    if _organizations(request) != ["system:nodes"]:
        raise RequestError("subject organization is not system:nodes")
    names = subject_alternative_names(request)
    for kind, text in (
        (x509.DNSName, "DNS"),
        (x509.RFC822Name, "Email"),
        (x509.IPAddress, "IP"),
        (x509.UniformResourceIdentifier, "URI"),
    ):
        if any(isinstance(each, kind) for each in names):
            raise RequestError(f"{text} subjectAltNames are not allowed")
    if not common_name(request).startswith(_NODE_PREFIX):
        raise RequestError("subject common name does not begin with system:node:")
    if usages not in (_CLIENT, _CLIENT - _RSA_ONLY):
        raise RequestError(f"usages did not match [{' '.join(sorted(_CLIENT))}]")


def validate_kubelet_serving(request: x509.CertificateSigningRequest, usages: frozenset[str]) -> None:
    """Raise RequestError unless it is for a kubelet that is called: a node's name, and where it is reached."""
    if _organizations(request) != ["system:nodes"]:
        raise RequestError("subject organization is not system:nodes")
    names = subject_alternative_names(request)
    if not any(isinstance(each, (x509.DNSName, x509.IPAddress)) for each in names):
        raise RequestError("DNS or IP subjectAltName is required")
    if any(isinstance(each, x509.RFC822Name) for each in names):
        raise RequestError("Email subjectAltNames are not allowed")
    if any(isinstance(each, x509.UniformResourceIdentifier) for each in names):
        raise RequestError("URI subjectAltNames are not allowed")
    if usages not in (_SERVING, _SERVING - _RSA_ONLY):
        raise RequestError(f"usages did not match [{' '.join(sorted(_SERVING))}]")
    if not common_name(request).startswith(_NODE_PREFIX):
        raise RequestError("subject common name does not begin with system:node:")


def _validate_api_server_client(usages: list[str]) -> None:
    for each in usages:
        if each not in _CLIENT:
            raise RequestError(f"invalid usage for client certificate: {each}")
    if "client auth" not in usages:
        raise RequestError("missing required usage for client certificate: client auth")


def common_name(request: x509.CertificateSigningRequest) -> str:
    """The common name of the request's subject; Go takes the last if there are several."""
    found = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[-1].value) if found else ""


def subject_alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Where the holder will be reached."""
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _organizations(request: x509.CertificateSigningRequest) -> list[str]:
    return [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def is_approved(csr: CertificateSigningRequest) -> bool:
    """Whether the request is approved and not denied."""
    found = _conditions(csr)
    return "Approved" in found and "Denied" not in found


def is_decided(csr: CertificateSigningRequest) -> bool:
    """Whether the request is approved or denied."""
    found = _conditions(csr)
    return "Approved" in found or "Denied" in found


def has_failed(csr: CertificateSigningRequest) -> bool:
    """Whether the signer has refused."""
    conditions = (csr.status.conditions if csr.status else None) or ()
    return any(each.type == "Failed" and each.status in (None, "", "True") for each in conditions)


def is_issued(csr: CertificateSigningRequest) -> bool:
    """Whether there is a certificate."""
    return bool(csr.status and csr.status.certificate)


def _conditions(csr: CertificateSigningRequest) -> set[str | None]:
    return {each.type for each in (csr.status.conditions if csr.status else None) or ()}
