"""Claims, volumes and classes for tests, as users write them."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.storage.v1 import StorageClass


def claim(
    name: str = "data", *, namespace: str = "ns", size: str = "1Gi", uid: str | None = "u-data", **more: Any
) -> PersistentVolumeClaim:
    """A claim; `annotations`, `status` aside the rest is its spec."""
    metadata = {"name": name, "namespace": namespace, "annotations": more.pop("annotations", None), "uid": uid}
    status = more.pop("status", None)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, PersistentVolumeClaim)


def volume(
    name: str = "v", *, size: str = "1Gi", phase: str | None = "Available", to: Any = None, **more: Any
) -> PersistentVolume:
    """A volume of an NFS server; `labels`, `annotations`, `finalizers` aside the rest is its spec; `to` is claimRef."""
    metadata: dict[str, Any] = {"name": name}
    metadata |= {key: more.pop(key) for key in ("labels", "annotations", "finalizers") if key in more}
    metadata |= {"deletionTimestamp": more.pop("deleted")} if "deleted" in more else {}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": to,
        **more,
    }
    if not {"csi", "hostPath", "local"} & more.keys():
        spec["nfs"] = {"server": "s", "path": "/p"}
    status = {"phase": phase} if phase else None
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, PersistentVolume)


def storage_class(name: str, provisioner: str = "disks.example.com", **more: Any) -> StorageClass:
    """A class; `annotations` and `created` are metadata."""
    metadata = {
        "name": name,
        "annotations": more.pop("annotations", None),
        "creationTimestamp": more.pop("created", None),
    }
    return msgspec.convert({"metadata": metadata, "provisioner": provisioner, **more}, StorageClass)


def reference(name: str = "data", uid: str | None = "u-data", namespace: str = "ns") -> dict[str, Any]:
    """What a volume says of its claim."""
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": name, "namespace": namespace, "uid": uid}


DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
