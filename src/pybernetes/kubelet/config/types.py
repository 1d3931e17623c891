"""`KubeletConfiguration` (kubelet.config.k8s.io/v1beta1) as written in a file. Durations are Go's text (`15s`)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from pybernetes.api.base import Struct
from pybernetes.api.core.v1 import Taint
from pybernetes.api.types import Double, Duration, Int32, Int64, Pointer, Quantity
from pybernetes.trace.configuration import Tracing


class X509Authentication(Struct):
    """Client certificates."""

    client_ca_file: str | None = field(default=None, name="clientCAFile")


class WebhookAuthentication(Struct):
    """Tokens, by TokenReview."""

    enabled: Annotated[bool | None, Pointer] = None
    cache_ttl: Duration | None = field(default=None, name="cacheTTL")


class AnonymousAuthentication(Struct):
    """Requests without credentials."""

    enabled: Annotated[bool | None, Pointer] = None


class KubeletAuthentication(Struct):
    """The authentication settings of the kubelet's server."""

    x509: X509Authentication | None = None
    webhook: WebhookAuthentication | None = None
    anonymous: AnonymousAuthentication | None = None


class WebhookAuthorization(Struct):
    """How long answers of SubjectAccessReview are believed."""

    cache_authorized_ttl: Duration | None = field(default=None, name="cacheAuthorizedTTL")
    cache_unauthorized_ttl: Duration | None = field(default=None, name="cacheUnauthorizedTTL")


class KubeletAuthorization(Struct):
    """The authorization settings of the kubelet's server."""

    mode: str | None = None
    webhook: WebhookAuthorization | None = None


class MemorySwapConfiguration(Struct):
    """Whether containers may be swapped out."""

    swap_behavior: str | None = None


class ShutdownGracePeriodByPodPriority(Struct):
    """How long pods of at least this priority get when the node goes down."""

    priority: Int32 | None = None
    shutdown_grace_period_seconds: Int64 | None = None


class CrashLoopBackOffConfig(Struct):
    """How long a container that keeps failing may have to wait."""

    max_container_restart_period: Annotated[Duration | None, Pointer] = None


class MemoryReservation(Struct):
    """Memory of a NUMA node that is not for pods."""

    numa_node: Int32 | None = None
    limits: dict[str, Quantity] | None = None


class UserNamespaces(Struct):
    """How many ids a pod with a user namespace gets."""

    ids_per_pod: Annotated[Int64 | None, Pointer] = field(default=None, name="idsPerPod")


class KubeletConfiguration(Struct):
    """All settings of a kubelet."""

    kind: str | None = None
    api_version: str | None = None
    enable_server: Annotated[bool | None, Pointer] = None
    static_pod_path: str | None = None
    pod_logs_dir: str | None = None
    sync_frequency: Duration | None = None
    file_check_frequency: Duration | None = None
    http_check_frequency: Duration | None = None
    static_pod_url: str | None = field(default=None, name="staticPodURL")
    static_pod_url_header: dict[str, list[str]] | None = field(default=None, name="staticPodURLHeader")
    address: str | None = None
    port: Int32 | None = None
    read_only_port: Int32 | None = None
    tls_cert_file: str | None = None
    tls_private_key_file: str | None = None
    tls_cipher_suites: list[str] | None = None
    tls_curve_preferences: list[Int32] | None = None
    tls_min_version: str | None = None
    rotate_certificates: bool | None = None
    server_tls_bootstrap: bool | None = field(default=None, name="serverTLSBootstrap")
    authentication: KubeletAuthentication | None = None
    authorization: KubeletAuthorization | None = None
    registry_pull_qps: Annotated[Int32 | None, Pointer] = field(default=None, name="registryPullQPS")
    registry_burst: Int32 | None = None
    image_pull_credentials_verification_policy: str | None = None
    preloaded_images_verification_allowlist: list[str] | None = None
    event_record_qps: Annotated[Int32 | None, Pointer] = field(default=None, name="eventRecordQPS")
    event_burst: Int32 | None = None
    enable_debugging_handlers: Annotated[bool | None, Pointer] = None
    enable_contention_profiling: bool | None = None
    healthz_port: Annotated[Int32 | None, Pointer] = None
    healthz_bind_address: str | None = None
    oom_score_adj: Annotated[Int32 | None, Pointer] = None
    cluster_domain: str | None = None
    cluster_dns: list[str] | None = field(default=None, name="clusterDNS")
    streaming_connection_idle_timeout: Duration | None = None
    node_status_update_frequency: Duration | None = None
    node_status_report_frequency: Duration | None = None
    node_lease_duration_seconds: Int32 | None = None
    image_minimum_gc_age: Duration | None = field(default=None, name="imageMinimumGCAge")
    image_maximum_gc_age: Duration | None = field(default=None, name="imageMaximumGCAge")
    image_gc_high_threshold_percent: Annotated[Int32 | None, Pointer] = field(
        default=None, name="imageGCHighThresholdPercent"
    )
    image_gc_low_threshold_percent: Annotated[Int32 | None, Pointer] = field(
        default=None, name="imageGCLowThresholdPercent"
    )
    volume_stats_agg_period: Duration | None = None
    kubelet_cgroups: str | None = None
    system_cgroups: str | None = None
    cgroup_root: str | None = None
    cgroups_per_qos: Annotated[bool | None, Pointer] = field(default=None, name="cgroupsPerQOS")
    cgroup_driver: str | None = None
    cpu_manager_policy: str | None = None
    single_process_oom_kill: Annotated[bool | None, Pointer] = field(default=None, name="singleProcessOOMKill")
    cpu_manager_policy_options: dict[str, str] | None = None
    cpu_manager_reconcile_period: Duration | None = None
    memory_manager_policy: str | None = None
    topology_manager_policy: str | None = None
    topology_manager_scope: str | None = None
    topology_manager_policy_options: dict[str, str] | None = None
    qos_reserved: dict[str, str] | None = None
    runtime_request_timeout: Duration | None = None
    hairpin_mode: str | None = None
    max_pods: Int32 | None = None
    pod_cidr: str | None = field(default=None, name="podCIDR")
    pod_pids_limit: Annotated[Int64 | None, Pointer] = None
    resolv_conf: Annotated[str | None, Pointer] = None
    run_once: bool | None = None
    cpu_cfs_quota: Annotated[bool | None, Pointer] = field(default=None, name="cpuCFSQuota")
    cpu_cfs_quota_period: Annotated[Duration | None, Pointer] = field(default=None, name="cpuCFSQuotaPeriod")
    node_status_max_images: Annotated[Int32 | None, Pointer] = None
    max_open_files: Int64 | None = None
    content_type: str | None = None
    kube_api_qps: Annotated[Int32 | None, Pointer] = field(default=None, name="kubeAPIQPS")
    kube_api_burst: Int32 | None = field(default=None, name="kubeAPIBurst")
    serialize_image_pulls: Annotated[bool | None, Pointer] = None
    max_parallel_image_pulls: Annotated[Int32 | None, Pointer] = None
    eviction_hard: dict[str, str] | None = None
    eviction_soft: dict[str, str] | None = None
    eviction_soft_grace_period: dict[str, str] | None = None
    eviction_pressure_transition_period: Duration | None = None
    eviction_max_pod_grace_period: Int32 | None = None
    eviction_minimum_reclaim: dict[str, str] | None = None
    merge_default_eviction_settings: Annotated[bool | None, Pointer] = None
    pods_per_core: Int32 | None = None
    enable_controller_attach_detach: Annotated[bool | None, Pointer] = None
    protect_kernel_defaults: bool | None = None
    make_iptables_util_chains: Annotated[bool | None, Pointer] = field(default=None, name="makeIPTablesUtilChains")
    iptables_masquerade_bit: Annotated[Int32 | None, Pointer] = None
    iptables_drop_bit: Annotated[Int32 | None, Pointer] = None
    feature_gates: dict[str, bool] | None = None
    fail_swap_on: Annotated[bool | None, Pointer] = None
    memory_swap: MemorySwapConfiguration | None = None
    container_log_max_size: str | None = None
    container_log_max_files: Annotated[Int32 | None, Pointer] = None
    container_log_max_workers: Annotated[Int32 | None, Pointer] = None
    container_log_monitor_interval: Annotated[Duration | None, Pointer] = None
    config_map_and_secret_change_detection_strategy: str | None = None
    system_reserved: dict[str, str] | None = None
    kube_reserved: dict[str, str] | None = None
    reserved_system_cpus: str | None = field(default=None, name="reservedSystemCPUs")
    show_hidden_metrics_for_version: str | None = None
    system_reserved_cgroup: str | None = None
    kube_reserved_cgroup: str | None = None
    enforce_node_allocatable: list[str] | None = None
    allowed_unsafe_sysctls: list[str] | None = None
    volume_plugin_dir: str | None = None
    provider_id: str | None = field(default=None, name="providerID")
    kernel_memcg_notification: bool | None = None
    logging: dict[str, Any] | None = None
    enable_system_log_handler: Annotated[bool | None, Pointer] = None
    enable_system_log_query: Annotated[bool | None, Pointer] = None
    shutdown_grace_period: Duration | None = None
    shutdown_grace_period_critical_pods: Duration | None = None
    shutdown_grace_period_by_pod_priority: list[ShutdownGracePeriodByPodPriority] | None = None
    crash_loop_back_off: CrashLoopBackOffConfig | None = None
    reserved_memory: list[MemoryReservation] | None = None
    enable_profiling_handler: Annotated[bool | None, Pointer] = None
    enable_debug_flags_handler: Annotated[bool | None, Pointer] = None
    seccomp_default: Annotated[bool | None, Pointer] = None
    memory_throttling_factor: Annotated[Double | None, Pointer] = None
    memory_reservation_policy: str | None = None
    register_with_taints: list[Taint] | None = None
    register_node: Annotated[bool | None, Pointer] = None
    tracing: Tracing | None = None
    local_storage_capacity_isolation: Annotated[bool | None, Pointer] = None
    container_runtime_endpoint: str | None = None
    image_service_endpoint: str | None = None
    fail_cgroup_v1: Annotated[bool | None, Pointer] = None
    user_namespaces: UserNamespaces | None = None
