"""PersistentVolumeClaims: two fields for one source, and a namespace in it that is still behind a feature gate."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.v1.persistentvolumeclaim import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from pybernetes.api.core.v1.reference import TypedLocalObjectReference, TypedObjectReference
from pybernetes.api.core.validation.persistentvolumeclaim import STORAGE_CLASS
from pybernetes.api.field import Path
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.quantity import parse
from pybernetes.apiserver.registry.strategy import Context, Strategy


class PersistentVolumeClaimStrategy(Strategy):
    """`dataSource` and `dataSourceRef` show the same, whichever of them was given."""

    returns_deleted = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        obj.status = PersistentVolumeClaimStatus(phase="Pending")
        _prepare_sources(obj.spec or PersistentVolumeClaimSpec(), None)

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        new.status = old.status
        _prepare_sources(new.spec or PersistentVolumeClaimSpec(), old.spec)
        if old.spec is not None:
            _mirror(old.spec)

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        warnings: list[str] = []
        if STORAGE_CLASS in ((obj.metadata and obj.metadata.annotations) or {}):
            path = Path("metadata", "annotations").key(STORAGE_CLASS)
            warnings.append(f'{path}: deprecated since v1.8; use "storageClassName" attribute instead')
        return warnings + claim_spec_warnings(obj.spec or PersistentVolumeClaimSpec(), Path("spec"))


def claim_spec_warnings(spec: PersistentVolumeClaimSpec, path: Path) -> list[str]:
    """Parts of a byte."""
    resources = spec.resources or VolumeResourceRequirements()
    warnings: list[str] = []
    for name, values in (("requests", resources.requests), ("limits", resources.limits)):
        size = (values or {}).get("storage")
        if size is not None and not parse(str(size)).is_whole():
            at = path.child("resources", name).key("storage")
            warnings.append(f"{at}: fractional byte value {quote(str(size))} is invalid, must be an integer")
    return warnings


def _prepare_sources(spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | None) -> None:
    reference = spec.data_source_ref
    if reference is not None and reference.namespace and not (old and old.data_source_ref):
        spec.data_source_ref = None  # the gate CrossNamespaceVolumeDataSource is off
    had = old is not None and (old.data_source is not None or old.data_source_ref is not None)
    if not had and spec.data_source_ref is None and not _was_always_allowed(spec.data_source):
        spec.data_source = None
    _mirror(spec)


def _was_always_allowed(source: TypedLocalObjectReference | None) -> bool:
    """Other sources were once dropped without a word, and through the old field they still are."""
    if source is None:
        return False
    group = source.api_group or ""
    return (source.kind, group) in (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


def _mirror(spec: PersistentVolumeClaimSpec) -> None:
    source, reference = spec.data_source, spec.data_source_ref
    if source is not None and reference is None:
        spec.data_source_ref = TypedObjectReference(api_group=source.api_group, kind=source.kind, name=source.name)
    elif reference is not None and source is None and not reference.namespace:
        spec.data_source = TypedLocalObjectReference(
            api_group=reference.api_group, kind=reference.kind, name=reference.name
        )


STRATEGIES: Final[dict[str, type[Strategy]]] = {"persistentvolumeclaims": PersistentVolumeClaimStrategy}
