"""Which function describes which kind. Each takes a Description and writes the sections of its kind."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pybernetes.kubectl.describing.description import Description

# group/Kind -> (module of this package, function)
_KINDS: dict[str, tuple[str, str]] = {
    "/Pod": ("pod", "pod"),
    "/Node": ("node", "node"),
    "/Service": ("network", "service"),
    "/ConfigMap": ("config", "config_map"),
    "/Secret": ("config", "secret"),
    "/ServiceAccount": ("config", "service_account"),
    "/Namespace": ("config", "namespace"),
    "/PersistentVolumeClaim": ("storage", "claim"),
    "/PersistentVolume": ("storage", "volume"),
    "/ReplicationController": ("workloads", "replication_controller"),
    "/ResourceQuota": ("config", "quota"),
    "/LimitRange": ("config", "limit_range"),
    "apps/Deployment": ("workloads", "deployment"),
    "apps/ReplicaSet": ("workloads", "replica_set"),
    "apps/StatefulSet": ("workloads", "stateful_set"),
    "apps/DaemonSet": ("workloads", "daemon_set"),
    "batch/Job": ("workloads", "job"),
    "batch/CronJob": ("workloads", "cron_job"),
    "networking.k8s.io/Ingress": ("network", "ingress"),
    "storage.k8s.io/StorageClass": ("storage", "storage_class"),
    "rbac.authorization.k8s.io/Role": ("rbac", "role"),
    "rbac.authorization.k8s.io/ClusterRole": ("rbac", "role"),
    "rbac.authorization.k8s.io/RoleBinding": ("rbac", "binding"),
    "rbac.authorization.k8s.io/ClusterRoleBinding": ("rbac", "binding"),
    "scheduling.k8s.io/PriorityClass": ("config", "priority_class"),
    "/Endpoints": ("endpoints", "endpoints"),
    "discovery.k8s.io/EndpointSlice": ("endpoints", "endpoint_slice"),
    "autoscaling/HorizontalPodAutoscaler": ("autoscaling", "autoscaler"),
    "networking.k8s.io/NetworkPolicy": ("policy", "network_policy"),
    "networking.k8s.io/IngressClass": ("addresses", "ingress_class"),
    "networking.k8s.io/ServiceCIDR": ("addresses", "service_cidr"),
    "networking.k8s.io/IPAddress": ("addresses", "ip_address"),
    "certificates.k8s.io/CertificateSigningRequest": ("certificates", "signing_request"),
    "storage.k8s.io/CSINode": ("storage", "csi_node"),
    "storage.k8s.io/VolumeAttributesClass": ("storage", "volume_attributes_class"),
    "policy/PodDisruptionBudget": ("config", "disruption_budget"),
}


def describer(group: str, kind: str) -> Callable[[Description], None]:
    """The function for a kind; `generic` for those without one."""
    from importlib import import_module

    module, name = _KINDS.get(f"{group}/{kind}", ("generic", "generic"))
    found: Callable[[Description], None] = getattr(import_module(f"pybernetes.kubectl.describing.{module}"), name)
    return found
