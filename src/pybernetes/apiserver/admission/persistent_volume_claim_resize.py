"""A claim grows only if it is bound and its class allows it."""

from __future__ import annotations

from pybernetes.api.core.v1 import PersistentVolumeClaim
from pybernetes.api.quantity import Quantity, parse
from pybernetes.api.quota.claims import storage_class

from ..registry.lister import lister
from .plugin import UPDATE, Attributes, Plugin, forbidden


class PersistentVolumeClaimResize(Plugin):
    """Upstream's PersistentVolumeClaimResize."""

    name = "PersistentVolumeClaimResize"
    operations = (UPDATE,)
    resources = ("persistentvolumeclaims",)

    def validate(self, attributes: Attributes) -> None:
        new, old = attributes.new, attributes.old
        if _size(new) <= _size(old):
            return
        if old.status is None or old.status.phase != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        name = storage_class(new)
        found = lister(self.registry, "storage.k8s.io", "v1", "storageclasses").get("", name) if name else None
        if found is None or storage_class(old) != name or not found.allow_volume_expansion:
            raise forbidden(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize",
            )


def _size(claim: PersistentVolumeClaim) -> Quantity:
    resources = claim.spec.resources if claim.spec else None
    value = ((resources.requests if resources else None) or {}).get("storage")
    return parse(str(value or 0))
