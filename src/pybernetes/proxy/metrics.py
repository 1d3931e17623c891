"""The proxy's metrics, with kube-proxy's names."""

from __future__ import annotations

from pybernetes.client.metrics import Registry

_SYNC_BUCKETS = tuple(0.001 * 2**n for n in range(15))
_PROGRAMMING_BUCKETS = (
    0.25, 0.5, *map(float, range(1, 60)), *(60.0 + 5 * n for n in range(12)), *(120.0 + 30 * n for n in range(7)),
)  # fmt: skip


class Metrics:
    """The proxy's metrics."""

    def __init__(self) -> None:
        registry = self.registry = Registry()
        prefix = "kubeproxy_sync_proxy_rules"
        self.sync = registry.histogram(
            f"{prefix}_duration_seconds", "SyncProxyRules latency in seconds", _SYNC_BUCKETS, ("ip_family",)
        )
        self.full_sync = registry.histogram(
            "kubeproxy_sync_full_proxy_rules_duration_seconds",
            "SyncProxyRules latency in seconds for full resyncs",
            _SYNC_BUCKETS,
            ("ip_family",),
        )
        self.partial_sync = registry.histogram(
            "kubeproxy_sync_partial_proxy_rules_duration_seconds",
            "SyncProxyRules latency in seconds for partial resyncs",
            _SYNC_BUCKETS,
            ("ip_family",),
        )
        self.programming = registry.histogram(
            "kubeproxy_network_programming_duration_seconds",
            "In Cluster Network Programming Latency in seconds",
            _PROGRAMMING_BUCKETS,
            ("ip_family",),
        )
        self.last_sync = registry.gauge(f"{prefix}_last_timestamp_seconds", "The last time proxy rules were synced")
        self.last_queued = registry.gauge(
            f"{prefix}_last_queued_timestamp_seconds", "The last time a sync of proxy rules was queued"
        )
        self.service_changes = registry.counter(
            f"{prefix}_service_changes_total", "Cumulative proxy rules Service changes"
        )
        self.endpoint_changes = registry.counter(
            f"{prefix}_endpoint_changes_total", "Cumulative proxy rules Endpoint changes"
        )
        self.pending_services = registry.gauge(
            f"{prefix}_service_changes_pending", "Pending proxy rules Service changes"
        )
        self.pending_endpoints = registry.gauge(
            f"{prefix}_endpoint_changes_pending", "Pending proxy rules Endpoint changes"
        )
        self.without_local = registry.gauge(
            f"{prefix}_no_local_endpoints_total",
            "Number of services with a Local traffic policy and no endpoints",
            ("traffic_policy",),
        )
        self.failures = registry.counter(
            f"{prefix}_nftables_sync_failures_total", "Cumulative proxy nftables sync failures", ("ip_family",)
        )
        self.repairs = registry.counter(
            "pybernetes_proxy_repairs_total", "How often the tables were rebuilt because another program changed them"
        )
        self.conntrack_deleted = registry.counter(
            "kubeproxy_conntrack_reconciler_deleted_entries_total",
            "Cumulative conntrack flows deleted by conntrack reconciler",
            ("ip_family",),
        )
        self.healthz = registry.counter(
            "kubeproxy_proxy_healthz_total", "Cumulative proxy healthz HTTP status", ("code",)
        )
        self.livez = registry.counter("kubeproxy_proxy_livez_total", "Cumulative proxy livez HTTP status", ("code",))
