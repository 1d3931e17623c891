"""How CertificateSigningRequests are created, decided and signed.

The request says who asked: the server writes the user, and nothing the client says about it counts. After that the
spec is fixed; `approval` takes the conditions, `status` the certificate.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from pybernetes.api.certificates.validation import (
    APPROVED,
    DENIED,
    validate_certificate_signing_request_approval_update,
)
from pybernetes.api.field import FieldError
from pybernetes.apiserver.registry.strategy import Context, Prepare, Strategy, ValidateUpdate


class CertificateSigningRequestStrategy(Strategy):
    """CertificateSigningRequests."""

    def prepare_for_create(self, obj: CertificateSigningRequest, context: Context) -> None:
        spec, user = obj.spec, context.user
        if spec is not None:
            spec.username = user.name or None
            spec.uid = user.uid or None
            spec.groups = list(user.groups) or None
            spec.extra = {key: list(values) for key, values in user.extra.items()} or None
        obj.status = CertificateSigningRequestStatus()

    def prepare_for_update(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
    ) -> None:
        new.spec, new.status = old.spec, old.status

    def prepare_for_status_update(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
    ) -> None:
        new.spec = old.spec
        for kind in (APPROVED, DENIED):
            _keep(kind, _conditions(new), _conditions(old))
        _set_times(new, old, context.now)

    def prepare_for_approval(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
    ) -> None:
        """Only conditions change."""
        _set_times(new, old, context.now)
        new.spec = old.spec
        certificate = old.status.certificate if old.status else None
        new.status = CertificateSigningRequestStatus(conditions=_conditions(new) or None, certificate=certificate)

    def validate_approval(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        """Validation errors of an approval or denial."""
        return validate_certificate_signing_request_approval_update(new, old)

    def rules(self, subresource: str) -> tuple[Prepare, ValidateUpdate]:
        if subresource == "approval":
            return self.prepare_for_approval, self.validate_approval
        return super().rules(subresource)


def _conditions(obj: CertificateSigningRequest) -> list[CertificateSigningRequestCondition]:
    return (obj.status and obj.status.conditions) or []


def _keep(
    kind: str, new: list[CertificateSigningRequestCondition], old: list[CertificateSigningRequestCondition]
) -> None:
    """A decision stays as it was, unless one was added or removed, which validation refuses."""
    before = [each for each in old if each.type == kind]
    places = [index for index, each in enumerate(new) if each.type == kind]
    if len(before) == len(places):
        for index, condition in zip(places, before, strict=True):
            new[index] = condition


def _set_times(new: CertificateSigningRequest, old: CertificateSigningRequest, now: str) -> None:
    """A condition that does not say since when holds since it first did."""
    since = {
        (each.type, each.status): each.last_transition_time
        for each in reversed(_conditions(old))
        if each.last_transition_time
    }
    for condition in _conditions(new):
        condition.last_update_time = condition.last_update_time or now
        if not condition.last_transition_time:
            condition.last_transition_time = since.get((condition.type, condition.status)) or now


STRATEGIES: Final[dict[str, type[Strategy]]] = {"certificatesigningrequests": CertificateSigningRequestStrategy}
