"""CertificateSigningRequests."""

from __future__ import annotations

from typing import Final

from pybernetes.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)

from . import duration
from .printer import AGE, NAME, NONE, Cells, Printer, age, name, text


def _request(request: CertificateSigningRequest, now: float) -> Cells:
    spec = request.spec or CertificateSigningRequestSpec()
    return [
        name(request),
        age(request, now),
        spec.signer_name or NONE,
        spec.username or "",
        NONE if spec.expiration_seconds is None else duration.human(spec.expiration_seconds),
        _condition(request.status or CertificateSigningRequestStatus()),
    ]


def _condition(status: CertificateSigningRequestStatus) -> str:
    """A denial beats an approval. The conditions' own status is not looked at: they are there or they are not."""
    types = {each.type for each in status.conditions or ()}
    word = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    return word + (",Failed" if "Failed" in types else "") + (",Issued" if status.certificate else "")


PRINTERS: Final[dict[str, Printer]] = {
    "CertificateSigningRequest": Printer(
        (
            NAME,
            AGE,
            text("SignerName", "Who shall sign"),
            text("Requestor", "Who asks"),
            text("RequestedDuration", "How long the certificate shall be valid"),
            text("Condition", "What was decided"),
        ),
        _request,
    ),
}
