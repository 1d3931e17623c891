"""The flags of `pyb controller-manager`, with upstream's names and defaults, as attributes.

A field is a flag: `concurrent_deployment_syncs` is `--concurrent-deployment-syncs`. A controller reads the fields it
needs from `self.options`; tests make an `Options(...)` with what they want to be different.
"""

# ruff: noqa: RUF009
# `_flag` makes a dataclass field.

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

from pybernetes.flags import boolean, seconds

Seconds = float
"""A duration: `1h2m3s` on the command line, seconds here."""


def _flag(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(slots=True)
class Options:
    """The flags of the controller manager."""

    kubeconfig: str = _flag("", "kubeconfig with the server's address and our credentials; empty = inside of a pod")
    master: str = _flag("", "address of the API server, instead of the kubeconfig's")
    controllers: tuple[str, ...] = _flag(("*",), "controllers to run: * = all that are on by default, -NAME = not NAME")
    kube_api_qps: float = _flag(0.0, "requests per second to the API server, 0 = no limit")
    kube_api_burst: int = _flag(30, "requests at once, with --kube-api-qps")
    min_resync_period: Seconds = _flag(43200.0, "everything is looked at again after once to twice this time")
    controller_start_interval: Seconds = _flag(0.0, "wait between the starts of two controllers")
    v: int = _flag(0, "how much to log")

    leader_elect: bool = _flag(True, "work only while holding the lock")
    leader_elect_lease_duration: Seconds = _flag(15.0, "others take over when the lock was not renewed for so long")
    leader_elect_renew_deadline: Seconds = _flag(10.0, "give up when the lock could not be renewed for so long")
    leader_elect_retry_period: Seconds = _flag(2.0, "wait between two tries")
    leader_elect_resource_name: str = _flag("kube-controller-manager", "name of the lock")
    leader_elect_resource_namespace: str = _flag("kube-system", "namespace of the lock")

    bind_address: str = _flag("0.0.0.0", "address of the health endpoint")
    secure_port: int = _flag(10257, "port of the health endpoint, 0 = none")
    tls_cert_file: str = _flag("", "certificate of the health endpoint; empty = a self-signed one")
    tls_private_key_file: str = _flag("", "key of the certificate")
    client_ca_file: str = _flag("", "who this CA has signed may ask for /metrics if he may")

    concurrent_cron_job_syncs: int = _flag(5, "CronJobs at once")
    concurrent_daemonset_syncs: int = _flag(2, "DaemonSets at once")
    concurrent_deployment_syncs: int = _flag(5, "Deployments at once")
    concurrent_endpoint_syncs: int = _flag(5, "Endpoints at once")
    concurrent_ephemeralvolume_syncs: int = _flag(5, "ephemeral volumes at once")
    concurrent_gc_syncs: int = _flag(20, "objects the garbage collector looks at at once")
    concurrent_horizontal_pod_autoscaler_syncs: int = _flag(5, "HorizontalPodAutoscalers at once")
    concurrent_job_syncs: int = _flag(5, "Jobs at once")
    concurrent_namespace_syncs: int = _flag(10, "namespaces at once")
    concurrent_rc_syncs: int = _flag(5, "ReplicationControllers at once")
    concurrent_replicaset_syncs: int = _flag(5, "ReplicaSets at once")
    concurrent_resource_quota_syncs: int = _flag(5, "ResourceQuotas at once")
    concurrent_resourceclaim_syncs: int = _flag(50, "ResourceClaims at once")
    concurrent_device_taint_eviction_syncs: int = _flag(8, "device evictions at once")
    concurrent_service_endpoint_syncs: int = _flag(5, "EndpointSlices of Services at once")
    concurrent_serviceaccount_token_syncs: int = _flag(5, "token Secrets at once")
    concurrent_statefulset_syncs: int = _flag(5, "StatefulSets at once")
    concurrent_ttl_after_finished_syncs: int = _flag(5, "finished Jobs at once")
    concurrent_validating_admission_policy_status_syncs: int = _flag(5, "ValidatingAdmissionPolicies at once")
    mirroring_concurrent_service_endpoint_syncs: int = _flag(5, "mirrored Endpoints at once")

    allocate_node_cidrs: bool = _flag(False, "give each node a range of pod addresses")
    cluster_cidr: str = _flag("", "one or two ranges of pod addresses")
    cluster_name: str = _flag("kubernetes", "no effect: only cloud providers use it, and there are none")
    cidr_allocator_type: str = _flag("RangeAllocator", "how pod addresses are given; RangeAllocator only")
    service_cluster_ip_range: str = _flag("", "one or two ranges of Service addresses")
    load_balancer_pool: tuple[str, ...] = _flag(
        (), "ranges that Services of type LoadBalancer get addresses from: networks, FIRST-LAST; none = no addresses"
    )
    node_cidr_mask_size: int = _flag(0, "size of a node's range; 0 = 24 (IPv4), 64 (IPv6)")
    node_cidr_mask_size_ipv4: int = _flag(0, "size of a node's IPv4 range; 0 = 24")
    node_cidr_mask_size_ipv6: int = _flag(0, "size of a node's IPv6 range; 0 = 64")

    node_monitor_period: Seconds = _flag(5.0, "how often nodes are looked at")
    node_monitor_grace_period: Seconds = _flag(50.0, "a node silent for so long is unhealthy")
    node_startup_grace_period: Seconds = _flag(60.0, "a node that has just started may be silent for so long")
    node_eviction_rate: float = _flag(0.1, "nodes per second whose pods are evicted in a healthy zone")
    secondary_node_eviction_rate: float = _flag(0.01, "nodes per second whose pods are evicted in an unhealthy zone")
    unhealthy_zone_threshold: float = _flag(0.55, "a zone with this fraction of nodes not ready is unhealthy")
    large_cluster_size_threshold: int = _flag(50, "zones up to this size evict nothing when unhealthy")

    endpoint_updates_batch_period: Seconds = _flag(0.0, "pod changes wait this long for more, for Endpoints")
    endpointslice_updates_batch_period: Seconds = _flag(0.0, "pod changes wait this long for more, for EndpointSlices")
    mirroring_endpointslice_updates_batch_period: Seconds = _flag(0.0, "Endpoints changes wait this long for more")
    max_endpoints_per_slice: int = _flag(100, "endpoints in an EndpointSlice")
    mirroring_max_endpoints_per_subset: int = _flag(1000, "endpoints mirrored from a subset")

    horizontal_pod_autoscaler_sync_period: Seconds = _flag(15.0, "how often autoscalers compute")
    horizontal_pod_autoscaler_downscale_stabilization: Seconds = _flag(300.0, "how far back scaling down looks")
    horizontal_pod_autoscaler_tolerance: float = _flag(0.1, "how far off a metric may be without scaling")
    horizontal_pod_autoscaler_cpu_initialization_period: Seconds = _flag(300.0, "CPU samples of young pods are skipped")
    horizontal_pod_autoscaler_initial_readiness_delay: Seconds = _flag(30.0, "readiness of young pods is preliminary")

    cluster_signing_cert_file: str = _flag("", "CA that signs certificate requests")
    cluster_signing_key_file: str = _flag("", "key of the CA")
    cluster_signing_kubelet_serving_cert_file: str = _flag("", "CA for kubernetes.io/kubelet-serving")
    cluster_signing_kubelet_serving_key_file: str = _flag("", "its key")
    cluster_signing_kubelet_client_cert_file: str = _flag("", "CA for kubernetes.io/kube-apiserver-client-kubelet")
    cluster_signing_kubelet_client_key_file: str = _flag("", "its key")
    cluster_signing_kube_apiserver_client_cert_file: str = _flag("", "CA for kubernetes.io/kube-apiserver-client")
    cluster_signing_kube_apiserver_client_key_file: str = _flag("", "its key")
    cluster_signing_legacy_unknown_cert_file: str = _flag("", "CA for kubernetes.io/legacy-unknown")
    cluster_signing_legacy_unknown_key_file: str = _flag("", "its key")
    cluster_signing_duration: Seconds = _flag(365 * 24 * 3600.0, "longest life of a signed certificate")

    service_account_private_key_file: str = _flag("", "key that signs the tokens of token Secrets; empty = none")
    root_ca_file: str = _flag("", "CA that is given to pods and put into token Secrets")
    use_service_account_credentials: bool = _flag(False, "each controller is a service account of its own")
    legacy_service_account_token_clean_up_period: Seconds = _flag(31536000.0, "how long unused token Secrets live")

    enable_garbage_collector: bool = _flag(True, "the API server's flag of this name must agree")
    enable_dynamic_provisioning: bool = _flag(True, "volumes are made for claims")
    enable_hostpath_provisioner: bool = _flag(False, "refused: volumes in folders of the host are not supported")
    namespace_sync_period: Seconds = _flag(300.0, "how often ending namespaces are looked at again")
    pvclaimbinder_sync_period: Seconds = _flag(15.0, "how often volumes and claims are looked at again")
    attach_detach_reconcile_sync_period: Seconds = _flag(60.0, "how often attachments are looked at again")
    disable_attach_detach_reconcile_sync: bool = _flag(False, "do not look at attachments again")
    disable_force_detach_on_timeout: bool = _flag(False, "never detach by force")
    resource_quota_sync_period: Seconds = _flag(300.0, "how often quotas are counted anew")
    terminated_pod_gc_threshold: int = _flag(12500, "so many finished pods may stay; 0 = all")


def parse(argv: list[str]) -> Options:
    """The flags; exits with a message on a bad one."""
    parser = argparse.ArgumentParser(
        prog="pyb controller-manager", description="Runs the controllers of Kubernetes.", allow_abbrev=False
    )
    hints = get_type_hints(Options, localns={"Seconds": _Seconds})
    for each in fields(Options):
        name = "--" + each.name.replace("_", "-")
        names = ["-v", "--v"] if each.name == "v" else [name]
        if each.name == "concurrent_rc_syncs":  # upstream has both spellings
            names.append("--concurrent_rc_syncs")
        kind = hints[each.name]
        help = each.metadata["help"].replace("%", "%%")
        if kind is bool:
            parser.add_argument(
                *names, dest=each.name, type=boolean, nargs="?", const=True, default=each.default, help=help
            )
        else:
            parser.add_argument(*names, dest=each.name, type=_TYPES.get(kind, _list), default=each.default, help=help)
    return Options(**vars(parser.parse_args(argv)))


class _Seconds:
    """Stands for `Seconds` while the flags are made: at run time a float is a float."""


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_TYPES: dict[Any, Callable[[str], Any]] = {str: str, int: int, float: float, _Seconds: seconds}
