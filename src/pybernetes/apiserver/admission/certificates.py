"""Checks permission to approve and sign certificates, and forbidden subjects.

Approving and signing need permission for the signer itself, `certificates.k8s.io/signers`, besides that for the
subresource: otherwise permission to approve one kind of certificate would be permission to approve them all.
"""

from __future__ import annotations

from collections.abc import Awaitable

from pybernetes.api import pem
from pybernetes.api.certificates.v1 import CertificateSigningRequest
from pybernetes.api.equality import semantically_equal
from pybernetes.api.gocompat.quote import quote

from ..authz.union import allows
from ..requestinfo import RequestInfo
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"


class CertificateApproval(Plugin):
    """Upstream's CertificateApproval."""

    name = "CertificateApproval"
    operations = (UPDATE,)
    resources = (f"{_REQUESTS}/approval",)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return _check(self, attributes, "approve")


class CertificateSigning(Plugin):
    """Upstream's CertificateSigning."""

    name = "CertificateSigning"
    operations = (UPDATE,)
    resources = (f"{_REQUESTS}/status",)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        new, old = attributes.new.status, attributes.old.status
        if semantically_equal(_signed(new), _signed(old)):
            return None
        return _check(self, attributes, "sign")


class CertificateSubjectRestriction(Plugin):
    """Upstream's CertificateSubjectRestriction: no client certificate makes its holder a cluster administrator."""

    name = "CertificateSubjectRestriction"
    operations = (CREATE,)
    resources = (_REQUESTS,)

    def validate(self, attributes: Attributes) -> None:
        request: CertificateSigningRequest = attributes.new
        spec = request.spec
        if spec is None or spec.signer_name != _CLIENT_SIGNER:
            return
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        try:
            subject = x509.load_pem_x509_csr(pem.decoded(spec.request)).subject
        except ValueError as error:
            raise forbidden(attributes, f"failed to parse CSR: {error}") from None
        if any(each.value == _MASTERS for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)):
            raise forbidden(attributes, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _signed(status: object) -> tuple[object, object]:
    return getattr(status, "certificate", None), getattr(status, "conditions", None) or None


async def _check(plugin: Plugin, attributes: Attributes, verb: str) -> None:
    """The user may do this for the signer, or for all signers of its domain."""
    signer = attributes.old.spec.signer_name or ""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        question = RequestInfo("", verb, {}, True, "certificates.k8s.io", "*", "signers", "", "", name)
        if await allows(plugin.registry.authorizers, attributes.user, question):
            return
    raise forbidden(attributes, f"user not permitted to {verb} requests with signerName {quote(signer)}")
