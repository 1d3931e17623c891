"""Validation of CertificateSigningRequests.

Who may decide (the `approval` subresource) and who signs (`status`) are different people, so each may change only its
part. What is stored already is tolerated even if it would be refused today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import pem
from ..field import FieldError, Path, duplicate, forbidden, invalid, not_supported, repeated, required, too_long
from ..gocompat.quote import quote
from ..meta.validation import validate_object_meta, validate_object_meta_update
from ..names import is_dns1123_label, is_dns1123_subdomain, name_is_path_segment
from ..schema import fields_by_wire
from .request import check_request
from .v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)

LEGACY_UNKNOWN_SIGNER: Final = "kubernetes.io/legacy-unknown"
MIN_EXPIRATION_SECONDS: Final = 600
MAX_DOMAIN: Final = 253
MAX_SIGNER_NAME: Final = MAX_DOMAIN + (253 + 63 + 1) + 1
APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
_LISTED: Final = fields_by_wire(CertificateSigningRequestSpec)["usages"].items
USAGES: Final = frozenset(_LISTED.enum if _LISTED else ())

_SPEC = Path("spec")
_CONDITIONS = Path("status", "conditions")
_CERTIFICATE = Path("status", "certificate")


def validate_certificate_signing_request(obj: CertificateSigningRequest) -> list[FieldError]:
    """Validate a new request."""
    return _validate(obj, None)


def validate_certificate_signing_request_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest
) -> list[FieldError]:
    """Only metadata changes."""
    return _validate_update(new, old)


def validate_certificate_signing_request_status_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest
) -> list[FieldError]:
    """The signer sets the certificate, once, or says why there is none."""
    return _validate_update(new, old, may_sign=True)


def validate_certificate_signing_request_approval_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest
) -> list[FieldError]:
    """The approver approves or denies, once."""
    return _validate_update(new, old, may_decide=True)


def _validate(obj: CertificateSigningRequest, old: CertificateSigningRequest | None) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, False, name_is_path_segment)
    spec = obj.spec or CertificateSigningRequestSpec()
    before = (old.spec if old else None) or CertificateSigningRequestSpec()
    try:
        check_request(pem.decoded(spec.request))
    except pem.PEMError as error:
        errors.append(invalid(_SPEC.child("request"), spec.request, str(error)))
    errors += _validate_usages(spec.usages or [], before.usages or [], _SPEC.child("usages"))
    signer = _SPEC.child("signerName")
    if spec.signer_name == LEGACY_UNKNOWN_SIGNER != before.signer_name:
        detail = "the legacy signerName is not allowed via this API version"
        errors.append(invalid(signer, spec.signer_name, detail))
    else:
        errors += validate_signer_name(spec.signer_name or "", signer)
    seconds = spec.expiration_seconds
    if seconds is not None and seconds < MIN_EXPIRATION_SECONDS:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid(_SPEC.child("expirationSeconds"), seconds, detail))
    errors += _validate_conditions(_conditions(obj), _conditions(old))
    if old is None or (_certificate(obj) != _certificate(old) and not _problem(_certificate(old))):
        problem = _problem(_certificate(obj))
        if problem:
            errors.append(invalid(_CERTIFICATE, "<certificate data>", problem))
    return errors


def _validate_usages(usages: list[str], before: list[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not usages:
        errors.append(required(path))
    if USAGES.issuperset(before):
        errors += [not_supported(path.index(i), each, USAGES) for i, each in enumerate(usages) if each not in USAGES]
    if len(set(before)) == len(before):
        errors += [duplicate(path.index(index), usages[index]) for index in sorted(repeated(usages))]
    return errors


def validate_signer_name(name: str, path: Path) -> list[FieldError]:
    """A domain and a path: `example.com/signer-name`."""
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    errors: list[FieldError] = []
    if len(domain) > MAX_DOMAIN:
        errors.append(too_long(path, "", MAX_DOMAIN))
    labels = domain.split(".")
    errors += _validate_parts(labels, is_dns1123_label, domain, path)
    if len(labels) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _validate_parts(rest.split("."), is_dns1123_subdomain, rest, path)
    if len(name) > MAX_SIGNER_NAME:
        errors.append(too_long(path, "", MAX_SIGNER_NAME))
    return errors


def _validate_parts(parts: list[str], rule: Callable[[str], list[str]], whole: str, path: Path) -> list[FieldError]:
    """The problems of the first part that has any."""
    for part in parts:
        if problems := rule(part):
            return [invalid(path, whole, f"validating label {quote(part)}: {problem}") for problem in problems]
    return []


def _validate_conditions(
    conditions: list[CertificateSigningRequestCondition], before: list[CertificateSigningRequestCondition]
) -> list[FieldError]:
    errors: list[FieldError] = []
    types_before = [each.type or "" for each in before]
    both_before = APPROVED in types_before and DENIED in types_before
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path, kind = _CONDITIONS.index(index), condition.type or ""
        if not kind and "" not in types_before:
            errors.append(required(path.child("type")))
        allowed = {"True"} if kind in (APPROVED, DENIED, FAILED) else {"True", "False", "Unknown"}
        if not condition.status:
            errors.append(required(path.child("status")))
        elif condition.status not in allowed:
            errors.append(not_supported(path.child("status"), condition.status, allowed))
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if other in seen and not both_before:
            errors.append(invalid(_CONDITIONS, kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen and len(set(types_before)) == len(types_before):
            errors.append(duplicate(path.child("type"), kind))
        seen.add(kind)
    return errors


def _validate_update(
    new: CertificateSigningRequest,
    old: CertificateSigningRequest,
    *,
    may_decide: bool = False,
    may_sign: bool = False,
) -> list[FieldError]:
    errors = _validate(new, old)
    for kind in (APPROVED, DENIED, FAILED):
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            errors.append(forbidden(_CONDITIONS, f"updates may not remove a condition of type {quote(kind)}"))
    if not may_decide:
        for kind in (APPROVED, DENIED):
            # What a decision says cannot change here: the strategy keeps it.
            if len(_of_type(new, kind)) > len(_of_type(old, kind)):
                errors.append(forbidden(_CONDITIONS, f"updates may not add a condition of type {quote(kind)}"))
    if _certificate(new) != _certificate(old):
        if not may_sign:
            errors.append(forbidden(_CERTIFICATE, "updates may not set certificate content"))
        elif _certificate(old):
            errors.append(forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    return errors + validate_object_meta_update(new.metadata, old.metadata)


def _conditions(obj: CertificateSigningRequest | None) -> list[CertificateSigningRequestCondition]:
    return (obj and obj.status and obj.status.conditions) or []


def _of_type(obj: CertificateSigningRequest, kind: str) -> list[CertificateSigningRequestCondition]:
    return [each for each in _conditions(obj) if each.type == kind]


def _certificate(obj: CertificateSigningRequest) -> str:
    return (obj.status or CertificateSigningRequestStatus()).certificate or ""


def _problem(certificate: str) -> str:
    """The error in the certificates a signer issued; empty if there are none."""
    data = pem.decoded(certificate)
    if not data:
        return ""
    found = False
    for block in pem.blocks(data):
        if block.type != pem.CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        try:
            pem.check_certificate(block.data)
        except pem.PEMError as error:
            return str(error)
        found = True
    return "" if found else "must contain at least one CERTIFICATE PEM block"


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "CertificateSigningRequest": validate_certificate_signing_request,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CertificateSigningRequest": validate_certificate_signing_request_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CertificateSigningRequest": validate_certificate_signing_request_status_update,
}
