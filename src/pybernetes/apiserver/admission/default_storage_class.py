"""A claim that names no class gets the default one."""

from __future__ import annotations

from pybernetes.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec

from ..registry.lister import lister
from .newest import newest_with
from .plugin import CREATE, Attributes, Plugin

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Plugin):
    """Upstream's DefaultStorageClass."""

    name = "DefaultStorageClass"
    operations = (CREATE,)
    resources = ("persistentvolumeclaims",)

    def admit(self, attributes: Attributes) -> None:
        claim: PersistentVolumeClaim = attributes.new
        annotations = (claim.metadata.annotations if claim.metadata else None) or {}
        spec = claim.spec = claim.spec or PersistentVolumeClaimSpec()
        if spec.storage_class_name is not None or _BETA_CLASS in annotations:
            return
        classes = lister(self.registry, "storage.k8s.io", "v1", "storageclasses")
        spec.storage_class_name = newest_with(classes.list(), _DEFAULT)
