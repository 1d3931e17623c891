"""Claims of storage against a quota: number and size, in all and by storage class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..core.v1.persistentvolumeclaim import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from ..core.v1.quota import ScopedResourceSelectorRequirement
from ..quantity import Quantity, parse
from .evaluator import Evaluator, Operation, scope_matches
from .lists import ONE, Resources

CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
_COUNT: Final = "count/persistentvolumeclaims"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_SUFFIXES: Final = (f"{CLASS_SUFFIX}persistentvolumeclaims", f"{CLASS_SUFFIX}requests.storage")


class ClaimEvaluator(Evaluator):
    """PersistentVolumeClaims."""

    group, plural = "", "persistentvolumeclaims"

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """Number and size; the names of classes are in front."""
        plain = (_COUNT, "persistentvolumeclaims", "requests.storage")
        return sorted({each for each in names if each in plain or each.endswith(_SUFFIXES)})

    def usage(self, obj: PersistentVolumeClaim, now: float) -> Resources:
        """A claim that grows counts with what it was given, if that is more."""
        result: Resources = {"persistentvolumeclaims": ONE, _COUNT: ONE}
        storage = _storage(obj)
        if storage is not None:
            result["requests.storage"] = storage
        name = storage_class(obj)
        if name:
            result[f"{name}{CLASS_SUFFIX}persistentvolumeclaims"] = ONE
            if storage is not None:
                result[f"{name}{CLASS_SUFFIX}requests.storage"] = storage
        return result

    def matches_scope(self, requirement: ScopedResourceSelectorRequirement, obj: PersistentVolumeClaim) -> bool:
        """By any class of attributes that the claim has, had, or is to get."""
        if requirement.scope_name != "VolumeAttributesClass":
            return False
        names = attributes_classes(obj)
        if requirement.operator == "Exists":
            return bool(names)
        if not names:
            return scope_matches(requirement, {})
        return any(scope_matches(requirement, {"VolumeAttributesClass": name}) for name in names)

    def uncovered_scopes(
        self,
        limited: Iterable[ScopedResourceSelectorRequirement],
        matched: Iterable[ScopedResourceSelectorRequirement],
    ) -> list[ScopedResourceSelectorRequirement]:
        """Limited scopes of which no matching quota speaks."""
        covered = {each.scope_name for each in matched}
        return [each for each in limited if each.scope_name not in covered]

    def handles(self, operation: Operation, subresource: str, old: Any, new: Any) -> bool:
        """Growth is an update."""
        if subresource == "status":
            return self.changes_usage(old, new, 0.0)
        return not subresource and operation in ("CREATE", "UPDATE")

    def changes_usage(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim, now: float) -> bool:
        """Whether it was given more or less, or its classes of attributes changed."""
        return _allocated(old) != _allocated(new) or attributes_classes(old) != attributes_classes(new)


def storage_class(claim: PersistentVolumeClaim) -> str:
    """The claim's class; the annotation of old goes before the field."""
    annotations = (claim.metadata.annotations if claim.metadata else None) or {}
    if _BETA_CLASS in annotations:
        return annotations[_BETA_CLASS]
    return (claim.spec.storage_class_name if claim.spec else None) or ""


def attributes_classes(claim: PersistentVolumeClaim) -> set[str]:
    """All classes of attributes that the claim refers to."""
    spec = claim.spec or PersistentVolumeClaimSpec()
    status = claim.status or PersistentVolumeClaimStatus()
    modify = status.modify_volume_status
    names = (
        spec.volume_attributes_class_name,
        status.current_volume_attributes_class_name,
        modify.target_volume_attributes_class_name if modify else None,
    )
    return {each for each in names if each}


def _storage(claim: PersistentVolumeClaim) -> Quantity | None:
    resources = claim.spec.resources if claim.spec else None
    asked = ((resources.requests if resources else None) or {}).get("storage")
    if asked is None:
        return None
    storage = parse(str(asked)).round_up(0)
    allocated = _allocated(claim)
    return allocated.round_up(0) if allocated is not None and allocated > storage else storage


def _allocated(claim: PersistentVolumeClaim) -> Quantity | None:
    value = ((claim.status.allocated_resources if claim.status else None) or {}).get("storage")
    return None if value is None else parse(str(value))
