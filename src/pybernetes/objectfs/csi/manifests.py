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
# Of sidecar mode: the Deployment, Service, configuration and Secret of the webhook.
WEBHOOK = "objectfs-csi-webhook"
WEBHOOK_PORT = 8443
# Namespaces with this label, of value `enabled`, have their pods changed.
INJECT = "objectfs.pybernetes.io/inject"


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
                host_path("volumes", f"{HOST}/volume"),
                host_path("cache", f"{HOST}/cache"),
                host_path("run", f"{HOST}/run"),
                host_path("local", local),
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
        _rule("snapshot.storage.k8s.io", ["*"], "get", "list", "watch", "create", "patch", "update", "delete"),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], "create"),
    ]
    if mode == "sidecar":
        cluster_rules += [
            _rule("", ["namespaces"], "get"),
            _rule("", ["secrets"], "create", "patch"),
            _named_rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", WEBHOOK, "get", "patch"),
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
    ]
    if mode == "sidecar":
        objects += _webhook(meta, labels, image, local)
    else:
        objects.append(_daemon_set(meta, labels, image, mode, local))
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
                        host_path("kubelet", "/var/lib/kubelet"),
                        host_path("local", local),
                    ],
                },
            },
        },
    }


def _webhook(meta: dict[str, Any], labels: dict[str, str], image: str, local: str) -> list[dict[str, Any]]:
    """The webhook that injects clients into pods, instead of a plugin on each node."""
    app = {"app": WEBHOOK}
    container = {
        "name": "webhook",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["objectfs", "csi", "webhook", "--image", image, "--local", local],
        "env": [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{"containerPort": WEBHOOK_PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": WEBHOOK_PORT, "scheme": "HTTPS"}},
    }
    spec = {
        "serviceAccountName": "objectfs-csi",
        "priorityClassName": "system-cluster-critical",
        "containers": [container],
    }
    service = {"name": WEBHOOK, "namespace": meta["namespace"], "path": "/mutate"}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**meta, "name": WEBHOOK},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": app},
                "template": {"metadata": {"labels": {**labels, **app}}, "spec": spec},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "name": WEBHOOK},
            "spec": {"selector": app, "ports": [{"port": 443, "targetPort": WEBHOOK_PORT}]},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": WEBHOOK, "labels": labels},
            "webhooks": [
                {
                    "name": "inject.objectfs.pybernetes.io",
                    # The webhook adds its caBundle.
                    "clientConfig": {"service": service},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
                    ],
                    "namespaceSelector": {"matchLabels": {INJECT: "enabled"}},
                    "failurePolicy": "Fail",
                    "sideEffects": "NoneOnDryRun",
                    "admissionReviewVersions": ["v1"],
                    "timeoutSeconds": 10,
                    "reinvocationPolicy": "IfNeeded",
                }
            ],
        },
    ]


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
                    "volumes": [host_path("local", local)],
                },
            },
        },
    }


def _rule(group: str, resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _named_rule(group: str, resource: str, name: str, *verbs: str) -> dict[str, Any]:
    return {**_rule(group, [resource], *verbs), "resourceNames": [name]}


def host_path(name: str, path: str) -> dict[str, Any]:
    """A volume of a pod: a folder of its node."""
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
