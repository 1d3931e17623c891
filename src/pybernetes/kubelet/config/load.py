"""From a file's bytes to a `KubeletConfiguration` with its defaults, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pybernetes.api import strict
from pybernetes.api.patch import merge_patch
from pybernetes.api.times import parse_duration

from .types import (
    AnonymousAuthentication,
    CrashLoopBackOffConfig,
    KubeletAuthentication,
    KubeletAuthorization,
    KubeletConfiguration,
    WebhookAuthentication,
    WebhookAuthorization,
    X509Authentication,
)

GROUP_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"

DEFAULTS: Final[dict[str, Any]] = {
    "enable_server": True,
    "sync_frequency": "1m0s",
    "file_check_frequency": "20s",
    "http_check_frequency": "20s",
    "address": "0.0.0.0",
    "port": 10250,
    "event_record_qps": 50,
    "event_burst": 100,
    "enable_debugging_handlers": True,
    "healthz_port": 10248,
    "healthz_bind_address": "127.0.0.1",
    "oom_score_adj": -999,
    "cluster_domain": "",
    "streaming_connection_idle_timeout": "4h0m0s",
    "node_lease_duration_seconds": 40,
    "image_minimum_gc_age": "2m0s",
    "image_gc_high_threshold_percent": 85,
    "image_gc_low_threshold_percent": 80,
    "cgroup_root": "/",
    "cgroups_per_qos": True,
    "cgroup_driver": "cgroupfs",
    "cpu_manager_policy": "none",
    "cpu_manager_reconcile_period": "10s",
    "memory_manager_policy": "None",
    "topology_manager_policy": "none",
    "runtime_request_timeout": "2m0s",
    "max_pods": 110,
    "pod_pids_limit": -1,
    "resolv_conf": "/etc/resolv.conf",
    "cpu_cfs_quota": True,
    "cpu_cfs_quota_period": "100ms",
    "node_status_max_images": 50,
    "eviction_pressure_transition_period": "5m0s",
    "merge_default_eviction_settings": False,
    "enable_controller_attach_detach": True,
    "container_log_max_size": "10Mi",
    "container_log_max_files": 5,
    "container_log_max_workers": 1,
    "container_log_monitor_interval": "10s",
    "config_map_and_secret_change_detection_strategy": "Watch",
    "enable_system_log_handler": True,
    "seccomp_default": False,
    "fail_cgroup_v1": False,
    "register_node": True,
    "local_storage_capacity_isolation": True,
    "container_runtime_endpoint": "unix:///run/containerd/containerd.sock",
    "pod_logs_dir": "/var/log/pods",
    "image_pull_credentials_verification_policy": "NeverVerifyPreloadedImages",
    "fail_swap_on": False,
}
"""Upstream's, but for three: cgroup v1 and swap are not refused, since this kubelet can do with both; and
`clusterDomain` is empty by default, as upstream's."""

EVICTION_HARD: Final = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

UNSUPPORTED: Final[dict[str, tuple[Any, ...]]] = {
    "cgroup_driver": ("cgroupfs",),
    "memory_manager_policy": ("None",),
    "topology_manager_policy": ("none",),
    "config_map_and_secret_change_detection_strategy": ("Watch", "Cache", "Get"),
    "image_pull_credentials_verification_policy": ("NeverVerifyPreloadedImages",),
    "run_once": (False,),
    "server_tls_bootstrap": (False, True),
    "qos_reserved": (),
    "reserved_memory": (),
    "user_namespaces": (),
}
"""Settings with the values that this kubelet can do; another value is refused."""


WITHOUT_EFFECT: Final = (
    "content_type",
    "enable_contention_profiling",
    "enable_debug_flags_handler",
    "enable_profiling_handler",
    "event_burst",
    "event_record_qps",
    "fail_cgroup_v1",
    "fail_swap_on",
    "feature_gates",
    "hairpin_mode",
    "image_service_endpoint",
    "iptables_drop_bit",
    "iptables_masquerade_bit",
    "kernel_memcg_notification",
    "kube_api_burst",
    "kube_api_qps",
    "kubelet_cgroups",
    "local_storage_capacity_isolation",
    "logging",
    "make_iptables_util_chains",
    "memory_reservation_policy",
    "memory_swap",
    "memory_throttling_factor",
    "oom_score_adj",
    "pod_cidr",
    "preloaded_images_verification_allowlist",
    "protect_kernel_defaults",
    "registry_burst",
    "registry_pull_qps",
    "show_hidden_metrics_for_version",
    "streaming_connection_idle_timeout",
    "system_cgroups",
    "tls_curve_preferences",
    "topology_manager_policy_options",
    "topology_manager_scope",
    "volume_plugin_dir",
    "volume_stats_agg_period",
)
"""Upstream's settings that are taken and change nothing here."""


class KubeletConfigError(ValueError):
    """A file that is no valid configuration."""


def load(data: bytes, drop_ins: Sequence[tuple[str, bytes]] = ()) -> KubeletConfiguration:
    """The configuration in a YAML or JSON file, without defaults; `KubeletConfigError` says what is wrong.

    Drop-ins (name and content) are put over it one after another: objects are merged, all else is replaced.
    """
    value = _document(data)
    for name, content in drop_ins:
        try:
            value = merge_patch.apply(value, _document(content))
        except KubeletConfigError as error:
            raise KubeletConfigError(f"{name}: {error}") from None
    try:
        config, problems = strict.convert(KubeletConfiguration, value)
    except strict.DecodeError as error:
        raise KubeletConfigError(str(error)) from None
    if problems:
        raise KubeletConfigError(strict.strict_decoding_error(problems))
    return config


def _document(data: bytes) -> Any:
    """A file's value; it must say that it is a KubeletConfiguration, and nothing twice."""
    if not data.lstrip().startswith(b"{"):
        from pybernetes.api.yaml import YAMLProblem, yaml_to_json

        try:
            data, repeated = yaml_to_json(data)
        except YAMLProblem as problem:
            raise KubeletConfigError(str(problem)) from None
        if repeated:
            raise KubeletConfigError("\n  ".join(("yaml: unmarshal errors:", *repeated)))
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise KubeletConfigError(str(error)) from None
    found = value if isinstance(value, dict) else {}
    version, kind = found.get("apiVersion"), found.get("kind")
    if (version, kind) != (GROUP_VERSION, KIND):
        raise KubeletConfigError(f'no kind "{kind}" is registered for version "{version}"')
    return value


def without_effect(config: KubeletConfiguration) -> list[str]:
    """The names of settings that were given but have no effect here, as the file spells them."""
    return [
        _wire(name)
        for name in WITHOUT_EFFECT
        if getattr(config, name) is not None and getattr(config, name) != DEFAULTS.get(name)
    ]


def set_defaults(config: KubeletConfiguration) -> None:
    """Fill in what was not said."""
    for name, value in DEFAULTS.items():
        if getattr(config, name) is None:
            setattr(config, name, value)
    if config.node_status_report_frequency is None:
        config.node_status_report_frequency = config.node_status_update_frequency or "5m0s"
    config.node_status_update_frequency = config.node_status_update_frequency or "10s"
    if config.serialize_image_pulls is None:
        config.serialize_image_pulls = (config.max_parallel_image_pulls or 0) < 2
    if config.enforce_node_allocatable is None:
        config.enforce_node_allocatable = ["pods"]
    authentication = config.authentication = config.authentication or KubeletAuthentication()
    authentication.x509 = authentication.x509 or X509Authentication()
    authentication.anonymous = authentication.anonymous or AnonymousAuthentication()
    if authentication.anonymous.enabled is None:
        authentication.anonymous.enabled = False
    webhook = authentication.webhook = authentication.webhook or WebhookAuthentication()
    webhook.enabled = True if webhook.enabled is None else webhook.enabled
    webhook.cache_ttl = webhook.cache_ttl or "2m0s"
    authorization = config.authorization = config.authorization or KubeletAuthorization()
    authorization.mode = authorization.mode or "Webhook"
    review = authorization.webhook = authorization.webhook or WebhookAuthorization()
    review.cache_authorized_ttl = review.cache_authorized_ttl or "5m0s"
    review.cache_unauthorized_ttl = review.cache_unauthorized_ttl or "30s"
    backoff = config.crash_loop_back_off = config.crash_loop_back_off or CrashLoopBackOffConfig()
    backoff.max_container_restart_period = backoff.max_container_restart_period or "5m0s"
    if config.eviction_hard is None:
        config.eviction_hard = dict(EVICTION_HARD)
    elif config.merge_default_eviction_settings:
        config.eviction_hard = {**EVICTION_HARD, **config.eviction_hard}


def check(config: KubeletConfiguration) -> None:
    """`KubeletConfigError` with all that is wrong, or cannot be done here."""
    problems = [
        f"{_wire(name)} = {getattr(config, name)!r} is not supported"
        for name, able in UNSUPPORTED.items()
        if getattr(config, name) not in (None, *able)
    ]
    for name in type(config).__struct_fields__:
        value = getattr(config, name)
        if isinstance(value, str) and name.endswith(("_frequency", "_period", "_age", "_timeout", "_interval")):
            try:
                if parse_duration(value) < 0:
                    problems.append(f"{_wire(name)} must not be negative, got {value}")
            except ValueError:
                problems.append(f"{_wire(name)}: invalid duration {value!r}")
    high, low = config.image_gc_high_threshold_percent or 0, config.image_gc_low_threshold_percent or 0
    if not (0 <= low < high <= 100):
        problems.append(
            f"imageGCLowThresholdPercent ({low}) must be less than imageGCHighThresholdPercent ({high}), both 0 to 100"
        )
    if (config.max_pods or 0) < 0:
        problems.append(f"maxPods must not be negative, got {config.max_pods}")
    if config.cpu_manager_policy not in ("none", "static"):
        problems.append(f"unknown cpuManagerPolicy {config.cpu_manager_policy!r}")
    problems += _enforcement(config)
    problems += config.tracing.problems("tracing.") if config.tracing else []
    behavior = config.memory_swap.swap_behavior if config.memory_swap else None
    if behavior not in (None, "", "NoSwap", "LimitedSwap"):
        problems.append(
            f'invalid configuration: memorySwap.swapBehavior "{behavior}" must be one of: "", "LimitedSwap" or "NoSwap"'
        )
    mode = config.authorization.mode if config.authorization else None
    if mode not in ("Webhook", "AlwaysAllow"):
        problems.append(f"unknown authorization.mode {mode!r}")
    parallel = config.max_parallel_image_pulls
    if parallel is not None and (parallel < 1 or (config.serialize_image_pulls and parallel > 1)):
        problems.append(
            f"maxParallelImagePulls {parallel} must be positive, and cannot be more than 1 with serializeImagePulls"
        )
    if problems:
        raise KubeletConfigError("invalid configuration: " + "; ".join(problems))


def _enforcement(config: KubeletConfiguration) -> list[str]:
    """Validation errors of `enforceNodeAllocatable`."""
    problems = []
    wanted = config.enforce_node_allocatable or []
    for each in wanted:
        who = each.removesuffix("-compressible")
        if who in ("system-reserved", "kube-reserved"):
            name = "systemReservedCgroup" if who == "system-reserved" else "kubeReservedCgroup"
            if not (config.system_reserved_cgroup if who == "system-reserved" else config.kube_reserved_cgroup):
                problems.append(f"{name} must be specified when {each} contained in enforceNodeAllocatable")
            if each != who and who in wanted:
                problems.append(f"both {who} and {each} cannot be specified in enforceNodeAllocatable")
        elif each == "none" and len(wanted) > 1:
            problems.append("enforceNodeAllocatable may not contain additional enforcements when none is specified")
        elif each not in ("pods", "none"):
            problems.append(
                f"option {each!r} specified for enforceNodeAllocatable. Valid options are none, pods, "
                "system-reserved, kube-reserved, system-reserved-compressible, kube-reserved-compressible"
            )
    if "pods" in wanted and not config.cgroups_per_qos:
        problems.append("enforceNodeAllocatable is not supported unless cgroupsPerQOS is enabled")
    return problems


def seconds(text: str | None) -> float:
    """A duration of the configuration in seconds."""
    return parse_duration(text or "0s") / 1e9


def _wire(name: str) -> str:
    fields = dict(
        zip(KubeletConfiguration.__struct_fields__, KubeletConfiguration.__struct_encode_fields__, strict=True)
    )
    return fields[name]
