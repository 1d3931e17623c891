"""Signs approved requests of the signers that Kubernetes has itself, with the CAs of the flags.

Woken by: CertificateSigningRequests. Writes: their certificate, or the condition `Failed` with the reason. A signer
without a CA leaves its requests to other signers.
"""

from __future__ import annotations

import base64
from typing import Final

from pybernetes.api import errors
from pybernetes.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import Key, copy

from ..base import Controller
from ..options import Options
from .authority import Authority, lifetime
from .requests import (
    API_SERVER_CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
    RequestError,
    has_failed,
    is_approved,
    is_issued,
    parse_request,
    validate_for_signer,
)

_FLAGS: Final = {
    KUBELET_SERVING: "kubelet_serving",
    KUBELET_CLIENT: "kubelet_client",
    API_SERVER_CLIENT: "kube_apiserver_client",
    LEGACY_UNKNOWN: "legacy_unknown",
}


class CertificateSigningRequestSigningController(Controller[CertificateSigningRequest]):
    """Signs."""

    name = "certificatesigningrequest-signing-controller"
    kind = CertificateSigningRequest
    workers = 5

    def setup(self) -> None:
        """Load the authorities."""
        self.authorities = {signer: Authority(*files) for signer, files in signer_files(self.options).items()}

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "certificate"

    async def reconcile(self, key: Key) -> float | None:
        """Sign a request that is approved and ours."""
        csr = self.own.get(key)
        if csr is None or is_issued(csr) or not is_approved(csr) or has_failed(csr):
            return None
        spec = csr.spec or CertificateSigningRequestSpec()
        authority = self.authorities.get(spec.signer_name or "")
        if authority is None:
            return None
        changed = copy(csr)
        changed.status = changed.status or CertificateSigningRequestStatus()
        usages = spec.usages or []
        now = self.clock.now()
        try:
            request = parse_request(csr)
            validate_for_signer(request, spec.signer_name or "", usages)
        except RequestError as error:
            failed = CertificateSigningRequestCondition(
                type="Failed",
                status="True",
                reason="SignerValidationFailure",
                message=str(error),
                last_update_time=rfc3339(now),
            )
            changed.status.conditions = [*(changed.status.conditions or ()), failed]
        else:
            life = lifetime(spec.expiration_seconds, self.options.cluster_signing_duration)
            try:
                certificate = authority.sign(request, usages, life, now)
            except (ValueError, OSError) as error:
                raise errors.InternalError(f"error auto signing csr: {error}") from error
            changed.status.certificate = base64.b64encode(certificate).decode()
        await self.client.update_status(changed)
        return None


def signer_files(options: Options) -> dict[str, tuple[str, str]]:
    """The certificate and key file of each signer, its own or the common ones; ValueError if both or half are given."""
    own = {}
    for signer, flag in _FLAGS.items():
        certificate, key = (f"cluster_signing_{flag}_{part}_file" for part in ("cert", "key"))
        files = getattr(options, certificate), getattr(options, key)
        if any(files) and not all(files):
            given, missing = (certificate, key) if files[0] else (key, certificate)
            raise ValueError(f"{_spelled(given)} needs {_spelled(missing)} too")
        if all(files):
            own[signer] = files
    common = options.cluster_signing_cert_file, options.cluster_signing_key_file
    if own and all(common):
        raise ValueError("cannot specify default and per controller certs at the same time")
    return own or (dict.fromkeys(_FLAGS, common) if all(common) else {})


def _spelled(field: str) -> str:
    return "--" + field.replace("_", "-")
