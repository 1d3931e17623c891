"""Computes the status of a CustomResourceDefinition; pure.

A definition gets the names it asks for unless another one of its group has them; those it got it keeps. Once all were
accepted it is established, and stays so whatever names it asks for later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pybernetes.api.apiextensions.schemas import schema_of
from pybernetes.api.apiextensions.v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
)
from pybernetes.api.apiextensions.validation.names import APPROVAL, SEE, approval, is_protected
from pybernetes.api.apiextensions.validation.structural import validate_structural
from pybernetes.api.field import Path, aggregate, invalid
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.pem import blocks, check_certificate, decoded

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are gone."""
NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"
NON_STRUCTURAL: Final = "NonStructuralSchema"
APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"

_INSTALLED = "the initial names have been accepted"


def find(definition: CustomResourceDefinition, type: str) -> CustomResourceDefinitionCondition | None:
    """A condition, if it was ever set."""
    conditions = (definition.status.conditions if definition.status else None) or ()
    return next((each for each in conditions if each.type == type), None)


def is_true(definition: CustomResourceDefinition, type: str) -> bool:
    """Whether a condition holds."""
    condition = find(definition, type)
    return condition is not None and condition.status == "True"


def put(definition: CustomResourceDefinition, now: str, type: str, status: str, reason: str, message: str) -> None:
    """Set a condition; its time is that of its last change of status."""
    if definition.status is None:
        definition.status = CustomResourceDefinitionStatus()
    found = find(definition, type)
    if found is None:
        found = CustomResourceDefinitionCondition(type=type, last_transition_time=now)
        definition.status.conditions = [*(definition.status.conditions or ()), found]
    elif found.status != status or found.last_transition_time is None:
        found.last_transition_time = now
    found.status, found.reason, found.message = status, reason, message


def remove(definition: CustomResourceDefinition, type: str) -> None:
    """Take a condition away."""
    status = definition.status
    if status is not None and status.conditions:
        status.conditions = [each for each in status.conditions if each.type != type] or None


def settle(definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: str) -> None:
    """Bring accepted names and conditions up to date; `others` are the other definitions of the group."""
    spec = definition.spec or CustomResourceDefinitionSpec()
    status = definition.status
    if status is None:
        status = definition.status = CustomResourceDefinitionStatus()
    if spec.names != status.accepted_names or find(definition, NAMES_ACCEPTED) is None:
        _accept_names(definition, others, now)
    if is_true(definition, NAMES_ACCEPTED) and not is_true(definition, ESTABLISHED):
        if _has_bad_ca_bundle(spec):
            message = "The conversion webhook CABundle is invalid"
            put(definition, now, ESTABLISHED, "False", "InvalidCABundle", message)
        else:
            put(definition, now, ESTABLISHED, "True", "InitialNamesAccepted", _INSTALLED)
    _say_if_not_structural(definition, now)
    _say_if_approved(definition, now)


def _accept_names(definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: str) -> None:
    wanted = (definition.spec and definition.spec.names) or CustomResourceDefinitionNames()
    assert definition.status is not None
    had = definition.status.accepted_names or CustomResourceDefinitionNames()
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.status and other.status.accepted_names) or CustomResourceDefinitionNames()
        resources |= {names.plural or "", names.singular or "", *(names.short_names or ())}
        kinds |= {names.kind or "", names.list_kind or ""}
    accepted = msgspec.structs.replace(had)
    problem: tuple[str, str] | None = None
    for field, reason, taken in (("plural", "PluralConflict", resources), ("singular", "SingularConflict", resources)):
        problem = _accept(accepted, wanted, field, reason, taken) or problem
    if (wanted.short_names or []) != (had.short_names or []):
        known = had.short_names or ()
        clashes = [name for name in wanted.short_names or () if name not in known and name in resources]
        if clashes:
            texts = [f"{quote(name)} is already in use" for name in clashes]
            problem = ("ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        else:
            accepted.short_names = wanted.short_names
    for field, reason in (("kind", "KindConflict"), ("list_kind", "ListKindConflict")):
        problem = _accept(accepted, wanted, field, reason, kinds) or problem
    accepted.categories = wanted.categories
    definition.status.accepted_names = accepted
    if problem is None:
        put(definition, now, NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
    else:
        put(definition, now, NAMES_ACCEPTED, "False", *problem)
        if find(definition, ESTABLISHED) is None:
            put(definition, now, ESTABLISHED, "False", "NotAccepted", "not all names are accepted")


def _accept(
    accepted: CustomResourceDefinitionNames,
    wanted: CustomResourceDefinitionNames,
    field: str,
    reason: str,
    taken: set[str],
) -> tuple[str, str] | None:
    name = getattr(wanted, field) or ""
    if name != (getattr(accepted, field) or "") and name in taken:
        return reason, f"{quote(name)} is already in use"
    setattr(accepted, field, name or None)
    return None


def _has_bad_ca_bundle(spec: CustomResourceDefinitionSpec) -> bool:
    webhook = spec.conversion.webhook if spec.conversion else None
    bundle = webhook.client_config.ca_bundle if webhook and webhook.client_config else None
    if not bundle:
        return False
    found = [block.data for block in blocks(decoded(bundle)) if block.type == "CERTIFICATE"]
    try:
        for each in found:
            check_certificate(each)
    except ValueError:
        return True
    return not found


def _say_if_not_structural(definition: CustomResourceDefinition, now: str) -> None:
    spec = definition.spec or CustomResourceDefinitionSpec()
    errors = []
    if spec.preserve_unknown_fields:
        errors.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    for index, version in enumerate(spec.versions or ()):
        schema = schema_of(version)
        if schema is not None and spec.preserve_unknown_fields:  # of all others validation has made sure
            at = Path("spec").child("versions").index(index).child("schema").child("openAPIV3Schema")
            errors += validate_structural(schema, at)
    if errors:
        put(definition, now, NON_STRUCTURAL, "True", "Violations", aggregate(errors))
    else:
        remove(definition, NON_STRUCTURAL)


def _say_if_approved(definition: CustomResourceDefinition, now: str) -> None:
    if not is_protected((definition.spec and definition.spec.group) or ""):
        return
    meta = definition.metadata or ObjectMeta()
    value = (meta.annotations or {}).get(APPROVAL, "")
    needed = f"protected groups must have approval annotation {quote(APPROVAL)}"
    match approval(meta):
        case "missing":
            put(definition, now, APPROVED, "False", "MissingAnnotation", f"{needed}, {SEE}")
        case "bypassed":
            put(definition, now, APPROVED, "False", "UnapprovedAnnotation", f"not approved: {quote(value)}")
        case "approved":
            put(definition, now, APPROVED, "True", "ApprovedAnnotation", f"approved in {value}")
        case _:
            how = 'with either a URL or a reason starting with "unapproved"'
            put(definition, now, APPROVED, "False", "InvalidAnnotation", f"{needed} {how}, {SEE}")
