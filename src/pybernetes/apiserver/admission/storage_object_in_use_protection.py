"""Claims, volumes and classes of attributes stay while they are in use: their controllers remove the finalizer."""

from __future__ import annotations

from .plugin import CREATE, Attributes, Plugin

_FINALIZERS = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Upstream's StorageObjectInUseProtection."""

    name = "StorageObjectInUseProtection"
    operations = (CREATE,)
    resources = ("persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses.storage.k8s.io")

    def admit(self, attributes: Attributes) -> None:
        finalizer = _FINALIZERS[attributes.resource.plural]
        meta = attributes.new.metadata
        present = meta.finalizers or []
        if finalizer not in present:
            meta.finalizers = [*present, finalizer]
