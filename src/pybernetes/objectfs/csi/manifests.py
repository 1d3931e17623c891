"""The objects of the driver: the mount pod and Secret of a volume, and the one YAML that installs the driver. Pure."""

from __future__ import annotations

import base64
import json
from typing import Any

from pybernetes.objectfs.csi.request import NAME, Volume, environment, pod_name, safe_name

NAMESPACE = "objectfs-system"
IMAGE = "localhost/pybernetes/pyb:latest"
# What the driver keeps on a node; the kubelet's folder is a node's own, also where nodes are namespaces of one machine.
HOST = f"/var/lib/kubelet/plugins/{NAME}"
# For metadata in SQLite and objects in a folder.
LOCAL = "/var/lib/objectfs"
# Where the host's volumes are in a mount pod.
MOUNTS = "/jfs"
FINGERPRINT = "objectfs.pybernetes.io/fingerprint"
REFERENCES = "objectfs.pybernetes.io/references"
LABEL = "app.kubernetes.io/name"
MOUNT_LABEL = "objectfs-mount"


def host_folder(id: str) -> str:
    """Where a volume is mounted on its node."""
    return f"{HOST}/volume/{safe_name(id)}"


def secret(volume: Volume, node: str, namespace: str) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in environment(volume).items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{pod_name(node, volume.id)}-secret",
            "namespace": namespace,
            "labels": {LABEL: MOUNT_LABEL},
        },
        "data": data,
    }


def mount_pod(
    volume: Volume, node: str, namespace: str, image: str, references: list[str], local: str = LOCAL
) -> dict[str, Any]:
    """The pod that mounts a volume on a node."""
    name, place = pod_name(node, volume.id), safe_name(volume.id)
    words = ["mount", "env:META_URL", f"{MOUNTS}/{place}", "--holder", "/run/objectfs/holder.sock"]
    words += ["--holder-name", place]
    options = ["default_permissions", "allow_other", *volume.options]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL: MOUNT_LABEL},
            "annotations": {
                FINGERPRINT: volume.fingerprint(image),
                REFERENCES: json.dumps(references),
                "volume": volume.id,
            },
        },
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "client",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "args": ["objectfs", *words, "-o", ",".join(options)],
                    "envFrom": [{"secretRef": {"name": f"{name}-secret"}}],
                    "securityContext": {"privileged": True},
                    "resources": dict(volume.resources),
                    "volumeMounts": [
                        {"name": "volumes", "mountPath": MOUNTS, "mountPropagation": "Bidirectional"},
                        {"name": "cache", "mountPath": "/var/objectfsCache"},
                        {"name": "run", "mountPath": "/run/objectfs"},
                        {"name": "local", "mountPath": local},
                    ],
                }
            ],
            "volumes": [
                _host("volumes", f"{HOST}/volume"),
                _host("cache", f"{HOST}/cache"),
                _host("run", f"{HOST}/run"),
                _host("local", local),
            ],
        },
    }


def install(image: str, mode: str, namespace: str, provisioner: bool, local: str = LOCAL) -> list[dict[str, Any]]:
    """Everything that a cluster needs for the driver."""
    labels = {LABEL: "objectfs-csi"}
    meta = {"name": "objectfs-csi", "namespace": namespace, "labels": labels}
    rules = [
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list", "create", "patch", "delete"]},
    ]
    cluster_rules = [
        _rule("", ["persistentvolumes"], "get", "list", "watch", "create", "patch", "update", "delete"),
        _rule("", ["persistentvolumes/status", "persistentvolumeclaims/status"], "patch", "update"),
        _rule("", ["persistentvolumeclaims"], "get", "list", "watch", "patch", "update"),
        _rule("", ["nodes", "secrets", "pods"], "get", "list", "watch"),
        _rule("", ["events"], "create", "patch", "update"),
        _rule("events.k8s.io", ["events"], "create", "patch", "update"),
        _rule("storage.k8s.io", ["storageclasses", "csinodes", "volumeattributesclasses"], "get", "list", "watch"),
        _rule("snapshot.storage.k8s.io", ["*"], "get", "list", "watch", "patch", "update"),
    ]
    subject = [{"kind": "ServiceAccount", "name": "objectfs-csi", "namespace": namespace}]
    group = "rbac.authorization.k8s.io"
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "objectfs-csi"},
            "subjects": subject,
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "objectfs-csi", "labels": labels},
            "rules": cluster_rules,
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "objectfs-csi", "labels": labels},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "objectfs-csi"},
            "subjects": subject,
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": NAME, "labels": labels},
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": False,
                "fsGroupPolicy": "None",
                "volumeLifecycleModes": ["Persistent"],
            },
        },
        _daemon_set(meta, labels, image, mode, local),
    ]
    if provisioner:
        objects.append(_controller(meta, labels, image, local))
    return objects


def _daemon_set(meta: dict[str, Any], labels: dict[str, str], image: str, mode: str, local: str) -> dict[str, Any]:
    both = "Bidirectional"
    container = {
        "name": "plugin",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["objectfs", "csi", "node", "--mode", mode, "--image", image, "--local", local],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "kubelet", "mountPath": "/var/lib/kubelet", "mountPropagation": both},
            {"name": "local", "mountPath": local},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**meta, "name": "objectfs-csi-node"},
        "spec": {
            "selector": {"matchLabels": {"app": "objectfs-csi-node"}},
            "template": {
                "metadata": {"labels": {**labels, "app": "objectfs-csi-node"}},
                "spec": {
                    "serviceAccountName": "objectfs-csi",
                    "hostNetwork": True,
                    "dnsPolicy": "ClusterFirstWithHostNet",
                    "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [container],
                    "volumes": [
                        _host("kubelet", "/var/lib/kubelet"),
                        _host("local", local),
                    ],
                },
            },
        },
    }


def _controller(meta: dict[str, Any], labels: dict[str, str], image: str, local: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**meta, "name": "objectfs-csi-controller"},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": "objectfs-csi-controller"}},
            "template": {
                "metadata": {"labels": {**labels, "app": "objectfs-csi-controller"}},
                "spec": {
                    "serviceAccountName": "objectfs-csi",
                    "priorityClassName": "system-cluster-critical",
                    "containers": [
                        {
                            "name": "controller",
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "args": ["objectfs", "csi", "controller"],
                            # For metadata in SQLite and objects in a folder: a cluster of one node.
                            "volumeMounts": [{"name": "local", "mountPath": local}],
                        }
                    ],
                    "volumes": [_host("local", local)],
                },
            },
        },
    }


def _rule(group: str, resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _host(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
