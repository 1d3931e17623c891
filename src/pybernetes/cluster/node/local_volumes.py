"""The API objects of local volumes: the default StorageClass, the CSIDriver, the driver's rights."""

from __future__ import annotations

from pybernetes.cluster.certificates import LOCAL_VOLUMES_USER

LOCAL_DRIVER = "local.csi.pybernetes.io"


def objects() -> list[tuple[str, dict[str, object]]]:
    """The default StorageClass, its driver, and the driver's rights: upstream's for the controllers beside a driver."""
    group, name, snapshots = "rbac.authorization.k8s.io", LOCAL_VOLUMES_USER, "snapshot.storage.k8s.io"
    read, change = ["get", "list", "watch"], ["get", "list", "watch", "update", "patch"]
    rules: list[tuple[str, list[str], list[str]]] = [
        ("", ["persistentvolumes"], [*change, "create", "delete"]),
        ("", ["persistentvolumeclaims"], change),
        ("", ["persistentvolumeclaims/status"], ["patch", "update"]),
        ("", ["nodes", "pods"], read),
        ("", ["secrets"], ["get"]),
        ("", ["events"], ["create", "patch", "update"]),
        ("events.k8s.io", ["events"], ["create", "patch", "update"]),
        ("storage.k8s.io", ["storageclasses", "csinodes", "volumeattributesclasses"], read),
        ("storage.k8s.io", ["csistoragecapacities"], [*change, "create", "delete"]),
        ("apiextensions.k8s.io", ["customresourcedefinitions"], ["create"]),
        (snapshots, ["volumesnapshotclasses"], [*read, "create"]),
        (snapshots, ["volumesnapshots", "volumesnapshotcontents"], [*change, "create", "delete"]),
        (snapshots, ["volumesnapshots/status", "volumesnapshotcontents/status"], ["patch", "update"]),
    ]
    role: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [of], "resources": what, "verbs": verbs} for of, what, verbs in rules],
    }
    binding: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": LOCAL_VOLUMES_USER}],
    }
    driver: dict[str, object] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": LOCAL_DRIVER},
        "spec": {"attachRequired": False, "podInfoOnMount": False, "fsGroupPolicy": "File"},
    }
    standard: dict[str, object] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": LOCAL_DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }
    storage = "/apis/storage.k8s.io/v1"
    return [
        (f"/apis/{group}/v1/clusterroles", role),
        (f"/apis/{group}/v1/clusterrolebindings", binding),
        (f"{storage}/csidrivers", driver),
        (f"{storage}/storageclasses", standard),
    ]
