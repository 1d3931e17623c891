"""The objects a cluster with nodes begins with. They are made once; who deletes or changes one has his way."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.cluster.admin import Admin
from pybernetes.cluster.certificates import INGRESS_USER, KUBELET_CLIENT_USER
from pybernetes.cluster.components import CLUSTER_DNS_IP
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.node import containerd, local_volumes
from pybernetes.cluster.rootless.rights import ANNOTATION

_RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name"
DNS_CONFIG_MAP = "coredns"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def objects(runtime: str = "containerd") -> list[tuple[str, dict[str, object]]]:
    """Path and object: the API server may call kubelets, and each low-level runtime has a RuntimeClass."""
    binding: dict[str, object] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "pybernetes:kubelet-api-admin"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:kubelet-api-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KUBELET_CLIENT_USER}],
    }
    classes: list[tuple[str, dict[str, object]]] = [
        (
            _CLASSES,
            {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name},
        )
        for name in (containerd.runtimes() if runtime == "containerd" else [runtime])
    ]
    return [
        (_RBAC, binding),
        *classes,
        *cluster_dns(),
        *network_policy(),
        *load_balancers(),
        *ingress(),
        *local_volumes.objects(),
    ]


def network_policy() -> list[tuple[str, dict[str, object]]]:
    """The right of nodes' network processes to read what NetworkPolicies are about."""
    group, name = "rbac.authorization.k8s.io", "pybernetes:network-policy"
    verbs = ["list", "watch"]
    role: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "namespaces", "nodes"], "verbs": verbs},
            {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": verbs},
            {
                "apiGroups": ["policy.networking.k8s.io"],
                "resources": ["clusternetworkpolicies"],
                "verbs": verbs,
            },
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": ["clusternetworkpolicies.policy.networking.k8s.io"],
                "verbs": verbs,
            },
        ],
    }
    binding: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "system:kube-proxy"}],
    }
    return [(f"/apis/{group}/v1/clusterroles", role), (_RBAC, binding)]


def load_balancers() -> list[tuple[str, dict[str, object]]]:
    """The right of nodes' network processes to see the signs of life of other nodes."""
    group, name = "rbac.authorization.k8s.io", "pybernetes:load-balancers"
    role: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list", "watch"]}],
    }
    binding: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "system:kube-proxy"}],
    }
    path = f"/apis/{group}/v1/namespaces/kube-node-lease"
    return [(f"{path}/roles", role), (f"{path}/rolebindings", binding)]


def ingress() -> list[tuple[str, dict[str, object]]]:
    """The IngressClass `pybernetes`, which is the default, and the rights of its controller."""
    group, networking = "rbac.authorization.k8s.io", "networking.k8s.io"
    read = ["get", "list", "watch"]
    made: dict[str, object] = {
        "apiVersion": f"{networking}/v1",
        "kind": "IngressClass",
        "metadata": {"name": "pybernetes", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "pybernetes.io/ingress"},
    }
    role: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": INGRESS_USER},
        "rules": [
            {"apiGroups": [networking], "resources": ["ingresses", "ingressclasses"], "verbs": read},
            {"apiGroups": [networking], "resources": ["ingresses/status"], "verbs": ["patch", "update"]},
            {"apiGroups": [""], "resources": ["services", "secrets"], "verbs": read},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
            {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
            # Who may see its metrics.
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ],
    }
    binding: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": INGRESS_USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": INGRESS_USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": INGRESS_USER}],
    }
    classes = f"/apis/{networking}/v1/ingressclasses"
    return [(f"/apis/{group}/v1/clusterroles", role), (_RBAC, binding), (classes, made)]


def cluster_dns() -> list[tuple[str, dict[str, object]]]:
    """The Service `kube-dns`, and the right of nodes' resolvers to read their configuration.

    Its address is on every node itself (`network.node_dns`), so no proxy serves it: that is what its label says.
    """
    rbac = "rbac.authorization.k8s.io"
    labels = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS", PROXY_NAME_LABEL: "node-dns"}
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    service: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "labels": labels},
        "spec": {"clusterIP": CLUSTER_DNS_IP, "ports": ports},
    }
    name = "pybernetes:node-dns"
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [DNS_CONFIG_MAP],
        "verbs": ["get", "list", "watch"],
    }
    role: dict[str, object] = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [rule],
    }
    binding: dict[str, object] = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "system:kube-proxy"}],
    }
    roles = f"/apis/{rbac}/v1/namespaces/kube-system"
    return [
        ("/api/v1/namespaces/kube-system/services", service),
        (f"{roles}/roles", role),
        (f"{roles}/rolebindings", binding),
    ]


def tell(admin: Admin, names: Sequence[str], differences: Sequence[str]) -> None:
    """Lets Nodes say what is not isolated on them."""
    change = {"metadata": {"annotations": {ANNOTATION: "; ".join(differences)}}}
    for name in names:
        try:
            code, answer = admin.request("PATCH", f"/api/v1/nodes/{name}", change, "application/merge-patch+json")
        except OSError as error:
            raise ClusterError(f"the API server cannot be asked to change {name}: {error}") from error
        if code != 200:
            raise ClusterError(f"the API server does not change {name}: {answer.get('message', code)}")


def create(admin: Admin, runtime: str = "containerd") -> None:
    """Makes those that do not exist."""
    for path, content in objects(runtime):
        try:
            code, answer = admin.request("POST", path, content)
        except OSError as error:
            raise ClusterError(f"the API server cannot be asked to make what nodes need: {error}") from error
        if code == 422 and path.endswith("/services"):
            continue  # an older cluster gave its address to another Service
        if code not in (201, 409):
            raise ClusterError(f"the API server does not make what nodes need: {answer.get('message', code)}")
