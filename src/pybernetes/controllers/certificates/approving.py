"""Approves kubelets' requests for client certificates, if the requesting user is permitted to have one.

Woken by: CertificateSigningRequests. Writes: their approval. A kubelet may renew its own (`selfnodeclient`); a
bootstrap token may ask for a node's first one (`nodeclient`). Both are permissions: a SubjectAccessReview tells.
"""

from __future__ import annotations

from typing import Final

from cryptography import x509

from pybernetes.api import errors
from pybernetes.api.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from pybernetes.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)
from pybernetes.client.keys import Key, copy

from ..base import Controller
from .requests import (
    KUBELET_CLIENT,
    RequestError,
    common_name,
    is_decided,
    is_issued,
    parse_request,
    validate_kubelet_client,
)

_MESSAGES: Final = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}


class CertificateSigningRequestApprovingController(Controller[CertificateSigningRequest]):
    """Approves."""

    name = "certificatesigningrequest-approving-controller"
    kind = CertificateSigningRequest
    workers = 5

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "certificate"

    async def reconcile(self, key: Key) -> float | None:
        """Approve a request if it is a kubelet's and the user has the permission."""
        csr = self.own.get(key)
        if csr is None or is_issued(csr) or is_decided(csr):
            return None
        try:
            tried = permissions(csr, parse_request(csr))
        except RequestError as error:
            self.log.warning("%s: %s", key, error)
            return None
        for each in tried:
            if await self._authorized(csr, each):
                await self._approve(csr, _MESSAGES[each])
                return None
        if tried:
            why = f"recognized csr {key.name} as {tried} but subject access review was not approved"
            raise errors.Conflict("certificates.k8s.io", "certificatesigningrequests", key.name, why)
        return None

    async def _authorized(self, csr: CertificateSigningRequest, subresource: str) -> bool:
        spec = csr.spec or CertificateSigningRequestSpec()
        review = SubjectAccessReview(
            spec=SubjectAccessReviewSpec(
                user=spec.username,
                uid=spec.uid,
                groups=spec.groups,
                extra=spec.extra,
                resource_attributes=ResourceAttributes(
                    group="certificates.k8s.io",
                    resource="certificatesigningrequests",
                    verb="create",
                    subresource=subresource,
                    version="*",
                ),
            )
        )
        answer = await self.client.create(review)
        return bool(answer.status and answer.status.allowed)

    async def _approve(self, csr: CertificateSigningRequest, message: str) -> None:
        changed = copy(csr)
        changed.status = changed.status or CertificateSigningRequestStatus()
        condition = CertificateSigningRequestCondition(
            type="Approved", status="True", reason="AutoApproved", message=message
        )
        changed.status.conditions = [*(changed.status.conditions or ()), condition]
        await self.client.update(changed, subresource="approval")


def permissions(csr: CertificateSigningRequest, request: x509.CertificateSigningRequest) -> list[str]:
    """The permissions of which the user needs any for this request to be approved; none if it is for another signer."""
    spec = csr.spec or CertificateSigningRequestSpec()
    if spec.signer_name != KUBELET_CLIENT:
        return []
    try:
        validate_kubelet_client(request, frozenset(spec.usages or ()))
    except RequestError:
        return []
    return ["selfnodeclient", "nodeclient"] if spec.username == common_name(request) else ["nodeclient"]
